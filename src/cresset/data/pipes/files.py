"""Pipes of files: list_files, open_files, read_from_stream; and streams that close themselves."""

import contextlib
import fnmatch
import os
import warnings

from .pipe import IterDataPipe, functional_datapipe

__all__ = ["FileListerIterDataPipe", "FileOpenerIterDataPipe", "StreamReaderIterDataPipe", "StreamWrapper"]

MOST_LEVELS = 10  # of lists and dictionaries in which streams are looked for


class StreamWrapper:
    """A file that is closed when nobody refers to it any more, or when the last stream that was made from it is.

    Args:
        parent_stream: the StreamWrapper that this one was made from, as a member from an archive.
        name: stands in its repr.
    """

    def __init__(self, file_obj, parent_stream=None, name=None):
        self.closed = True  # until there is something to close
        if parent_stream is not None:
            if not isinstance(parent_stream, StreamWrapper):
                raise RuntimeError(f"Parent stream should be StreamWrapper, {type(parent_stream)} was given")
            parent_stream.child_counter += 1
        self.file_obj, self.parent_stream, self.name = file_obj, parent_stream, name
        self.child_counter, self.close_on_last_child, self.closed = 0, False, False

    @classmethod
    def close_streams(cls, v, depth=0):
        """Close every stream in a sample: itself, or in its lists, tuples and dictionaries."""
        if isinstance(v, StreamWrapper):
            v.close()
        elif depth <= MOST_LEVELS and isinstance(v, (dict, list, tuple)):
            for part in v.values() if isinstance(v, dict) else v:
                cls.close_streams(part, depth + 1)

    def close(self, *args, **kwargs):
        """Close the file; and the stream that this one was made from, if it only waited for that."""
        if self.closed:
            return
        self.closed = True
        parent = self.parent_stream
        if parent is not None:
            parent.child_counter -= 1
            if parent.child_counter == 0 and parent.close_on_last_child:
                parent.close()
        with contextlib.suppress(AttributeError):  # an object that need not be closed
            self.file_obj.close(*args, **kwargs)

    def autoclose(self):
        """Close when all streams that were made from this one are closed: at once, if there are none."""
        self.close_on_last_child = True
        if self.child_counter == 0:
            self.close()

    def __getattr__(self, name):
        return getattr(self.__dict__["file_obj"], name)

    def __dir__(self):
        return sorted({*self.__dict__, *dir(type(self)), *dir(self.file_obj)})

    def __del__(self):
        self.close()

    def __iter__(self):
        yield from self.file_obj

    def __next__(self):
        return next(self.file_obj)

    def __repr__(self):
        return f"StreamWrapper<{'' if self.name is None else f'{self.name},'}{self.file_obj!r}>"

    def __getstate__(self):
        return self.file_obj

    def __setstate__(self, file_obj):
        self.__init__(file_obj)


@functional_datapipe("list_files")
class FileListerIterDataPipe(IterDataPipe):
    """The paths of the files in folders (functional name: ``list_files``).

    Args:
        root: a folder, several, or a pipe of them; a file stands for itself.
        masks: patterns, as fnmatch reads them, one of which a file's name must fit.
        recursive: also what lies in folders of folders.
        abspath: whole paths.
        non_deterministic: in the order of the file system, which may differ from machine to machine, not by name.
        length: what len() says; -1: an error.
    """

    def __init__(self, root=".", masks="", *, recursive=False, abspath=False, non_deterministic=False, length=-1):
        super().__init__()
        if not isinstance(root, IterDataPipe):
            from .each import IterableWrapperIterDataPipe  # which closes streams

            root = IterableWrapperIterDataPipe([root] if isinstance(root, str) else root)
        self.datapipe, self.masks, self.recursive, self.abspath = root, masks, recursive, abspath
        self.non_deterministic, self.length = non_deterministic, length

    def __iter__(self):
        for path in self.datapipe:
            yield from get_file_pathnames_from_root(
                path, self.masks, self.recursive, self.abspath, self.non_deterministic
            )

    def __len__(self):
        return said(self)


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(IterDataPipe):
    """(path, open file) of each path (functional name: ``open_files``).

    Args:
        mode: "r", "t", "rt": as text, in `encoding`; "b", "rb": as bytes.
        length: what len() says; -1: an error.
    """

    def __init__(self, datapipe, mode="r", encoding=None, length=-1):
        super().__init__()
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe, self.mode, self.encoding, self.length = datapipe, mode, encoding, length

    def __iter__(self):
        yield from get_file_binaries_from_pathnames(self.datapipe, self.mode, self.encoding)

    def __len__(self):
        return said(self)


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe):
    """(path, content) of each (path, open file) (functional name: ``read_from_stream``).

    Args:
        chunk: how many bytes or letters at a time; None: all at once.
    """

    def __init__(self, datapipe, chunk=None):
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self):
        for path, stream in self.datapipe:
            while content := stream.read(self.chunk):
                yield path, content
            stream.close()


def said(pipe):
    """The length that a pipe was told."""
    if pipe.length == -1:
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")
    return pipe.length


def match_masks(name, masks):
    """Whether a name fits one of these patterns, or there are none."""
    return not masks or any(fnmatch.fnmatch(name, mask) for mask in ([masks] if isinstance(masks, str) else masks))


def get_file_pathnames_from_root(root, masks, recursive=False, abspath=False, non_deterministic=False):
    """The paths of the files in `root`, or of `root` itself if it is one."""

    def refuse(error):
        warnings.warn(f"{error.filename} : {error.strerror}", stacklevel=2)
        raise error

    placed = os.path.abspath if abspath else str
    if os.path.isfile(root):
        if match_masks(os.path.basename(root), masks):
            yield placed(root)
        return
    for folder, folders, names in os.walk(root, onerror=refuse):
        if not non_deterministic:
            names.sort()
            folders.sort()
        if not recursive:
            folders.clear()
        for name in names:
            if match_masks(name, masks):
                yield os.path.join(placed(folder), name)


def get_file_binaries_from_pathnames(pathnames, mode, encoding=None):
    """(path, open file) of each path; `mode` may leave out the "r"."""
    mode = f"r{mode}" if mode in ("b", "t") else mode
    for path in pathnames:
        if not isinstance(path, str):
            raise TypeError(f"Expected string type for pathname, but got {type(path)}")
        yield path, StreamWrapper(open(path, mode, encoding=encoding))  # noqa: SIM115  # closed by the wrapper
