"""torch._inductor.utils: a folder of one's own for what is compiled."""

import contextlib
import os
import shutil
import tempfile

__all__ = ["fresh_cache", "fresh_inductor_cache"]


@contextlib.contextmanager
def fresh_cache(cache_entries=None, dir=None, delete=True):
    """Inside, loops are compiled into an empty folder ($CRESSET_CACHE).

    Args:
        cache_entries: an empty dict, which gets the sizes of the files in it at the end, by name.
        dir: where the folder is made.
        delete: whether it is removed at the end.
    """
    folder, before = tempfile.mkdtemp(dir=dir), os.environ.get("CRESSET_CACHE")
    os.environ["CRESSET_CACHE"] = folder
    try:
        yield
        if cache_entries is not None:
            cache_entries.update({entry.name: entry.stat().st_size for entry in os.scandir(folder) if entry.is_file()})
    finally:
        if before is None:
            del os.environ["CRESSET_CACHE"]
        else:
            os.environ["CRESSET_CACHE"] = before
        if delete:
            shutil.rmtree(folder, ignore_errors=True)


fresh_inductor_cache = fresh_cache
