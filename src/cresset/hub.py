"""torch.hub: models from a repository's hubconf.py (a folder, or GitHub), and state dicts from addresses, kept in a
folder.
"""

import errno
import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import uuid
import warnings
import zipfile
from urllib.error import HTTPError, URLError
from urllib.parse import urlparse
from urllib.request import Request, urlopen

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
READ_DATA_CHUNK = 128 * 1024
_hub_dir = None


def _get_torch_home():
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir():
    """The folder that downloads are kept in: what set_dir said, or $TORCH_HOME/hub, or ~/.cache/torch/hub."""
    return _hub_dir if _hub_dir is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d):
    """Keep downloads in folder `d`."""
    global _hub_dir
    _hub_dir = os.path.expanduser(d)


# ---- repositories


def _parse_repository(github):
    """owner, name and branch of "owner/name:branch"."""
    repository, _, branch = github.partition(":")
    owner, slash, name = repository.partition("/")
    if not (owner and slash and name) or "/" in name:
        raise ValueError(
            f'hub: expected "owner/name" or "owner/name:branch", got {github!r}; for a folder say source="local"'
        )
    return owner, name, branch or None


def _check_trust(owner, name, trust_repo):
    """What a repository holds is code: ask, or believe, or refuse, before it runs."""
    full, listed = f"{owner}_{name}", os.path.join(get_dir(), "trusted_list")
    trusted = set()
    if os.path.exists(listed):
        with open(listed) as file:
            trusted = set(file.read().split())
    if trust_repo in (None, True) or full in trusted or owner in ("facebookresearch", "pytorch"):
        if trust_repo is None and full not in trusted:
            warnings.warn(
                (
                    f"hub: running code of {owner}/{name}, which is not in the list of trusted repositories; say "
                    "trust_repo=True"
                ),
                stacklevel=4,
            )
    else:
        answer = input(
            f"The repository {owner}/{name} is not in the list of trusted ones, and its code will run. Trust it and "
            "go on? (y/N) "
        )
        if answer.lower() not in ("y", "yes"):
            raise Exception("Untrusted repository.")
    if trust_repo is not None and full not in trusted:
        os.makedirs(get_dir(), exist_ok=True)
        with open(listed, "a") as file:
            file.write(full + "\n")


def _fetch_repository(github, force_reload, trust_repo, verbose):
    owner, name, branch = _parse_repository(github)
    if trust_repo not in (True, False, None, "check"):
        raise ValueError(f'hub: trust_repo should be True, False, "check" or None, got {trust_repo!r}')
    branches = [branch] if branch else ["main", "master"]
    for one in branches:
        folder = os.path.join(get_dir(), "_".join((owner, name, one.replace("/", "_"))))
        if os.path.exists(folder) and not force_reload:
            _check_trust(owner, name, trust_repo)
            if verbose:
                sys.stderr.write(f"Using cache found in {folder}\n")
            return folder
    _check_trust(owner, name, trust_repo)
    os.makedirs(get_dir(), exist_ok=True)
    problem = None
    for one in branches:
        archive = os.path.join(get_dir(), f"{uuid.uuid4().hex}.zip")
        try:
            download_url_to_file(f"https://github.com/{owner}/{name}/zipball/{one}", archive, progress=False)
        except HTTPError as error:
            problem = error
            continue
        except URLError as error:
            raise RuntimeError(
                f"hub: cannot reach github.com for {github!r} ({error.reason}); a copy on disk can be loaded with "
                'source="local"'
            ) from error
        folder = os.path.join(get_dir(), "_".join((owner, name, one.replace("/", "_"))))
        with tempfile.TemporaryDirectory(dir=get_dir()) as unpacked, zipfile.ZipFile(archive) as file:
            file.extractall(unpacked)
            (top,) = os.listdir(unpacked)
            shutil.rmtree(folder, ignore_errors=True)
            shutil.move(os.path.join(unpacked, top), folder)
        os.remove(archive)
        return folder
    raise ValueError(f"hub: cannot find {branches} in https://github.com/{owner}/{name} ({problem})")


def _import_hubconf(folder):
    path = os.path.join(folder, "hubconf.py")
    if not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, "hub: there is no hubconf.py", path)
    spec = importlib.util.spec_from_file_location("hubconf", path)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    missing = [name for name in getattr(module, "dependencies", []) if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _entry(module, name):
    if not isinstance(name, str):
        raise ValueError(f"Invalid input: model should be a string of function name, got {type(name).__name__}")
    function = getattr(module, name, None)
    if not callable(function):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return function


def _folder(repo_or_dir, source, force_reload, trust_repo, verbose):
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    return repo_or_dir if source == "local" else _fetch_repository(repo_or_dir, force_reload, trust_repo, verbose)


def load(
    repo_or_dir,
    model,
    *args,
    source="github",
    trust_repo="check",
    force_reload=False,
    verbose=True,
    skip_validation=False,
    **kwargs,
):
    """Call the function `model` of a hubconf.py with the arguments; most give a model.

    Args:
        repo_or_dir: "owner/name:branch" on GitHub, or a folder when source="local".
        trust_repo: whether its code may run: True, False (ask), "check" (ask unless it was trusted before).
        force_reload: download again what is kept already.
    """
    return _entry(_import_hubconf(os.fspath(_folder(repo_or_dir, source, force_reload, trust_repo, verbose))), model)(
        *args, **kwargs
    )


def list(github, force_reload=False, skip_validation=False, trust_repo="check", verbose=True):  # noqa: A001
    """The functions that a repository's hubconf.py offers."""
    module = _import_hubconf(_fetch_repository(github, force_reload, trust_repo, verbose))
    return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(github, model, force_reload=False, skip_validation=False, trust_repo="check"):  # noqa: A001
    """The docstring of a function of a repository's hubconf.py."""
    return _entry(_import_hubconf(_fetch_repository(github, force_reload, trust_repo, True)), model).__doc__


# ---- files

try:
    from tqdm import tqdm
except ImportError:

    class tqdm:  # type: ignore[no-redef]
        """How far something has come, as a percentage on standard error: the few things of the tqdm package that
        downloads use, where that is not installed.
        """

        def __init__(self, iterable=None, total=None, desc="", disable=False, **_others):
            self.iterable, self.total, self.desc, self.disable, self.n = iterable, total, desc, disable, 0

        def update(self, n=1):
            self.n += n
            if not self.disable:
                done = f"{100 * self.n // self.total} %" if self.total else str(self.n)
                sys.stderr.write(f"\r{self.desc and self.desc + ': '}{done}")

        def __iter__(self):
            for item in self.iterable:
                yield item
                self.update()
            self.close()

        def close(self):
            if not self.disable:
                sys.stderr.write("\n")
                self.disable = True

        def __enter__(self):
            return self

        def __exit__(self, *exception):
            self.close()


def download_url_to_file(url, dst, hash_prefix=None, progress=True):
    """Download to the file `dst`; nothing is left there when it fails, or when the SHA-256 does not begin with
    `hash_prefix`.
    """
    request = Request(url, headers={"User-Agent": "cresset.hub"})
    part, digest = f"{os.path.expanduser(dst)}.{uuid.uuid4().hex}.partial", hashlib.sha256()
    try:
        with urlopen(request) as source, open(part, "wb") as file:
            size = int(source.headers.get("Content-Length") or 0) or None
            with tqdm(
                total=size,
                desc=os.path.basename(dst),
                disable=not progress,
                unit="B",
                unit_scale=True,
                unit_divisor=1024,
            ) as bar:
                while chunk := source.read(READ_DATA_CHUNK):
                    file.write(chunk)
                    digest.update(chunk)
                    bar.update(len(chunk))
        if hash_prefix is not None and digest.hexdigest()[: len(hash_prefix)] != hash_prefix:
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')
        shutil.move(part, os.path.expanduser(dst))
    finally:
        if os.path.exists(part):
            os.remove(part)


def load_state_dict_from_url(
    url, model_dir=None, map_location=None, progress=True, check_hash=False, file_name=None, weights_only=True
):
    """What was saved at an address, downloaded once to `model_dir` (the hub's "checkpoints").

    check_hash compares the file with the "-<hash>" in its name. No code of the file runs: weights_only is True here,
    where PyTorch still says False.
    """
    from .serialization import load

    folder = model_dir if model_dir is not None else os.path.join(get_dir(), "checkpoints")
    os.makedirs(folder, exist_ok=True)
    name = file_name if file_name is not None else os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        sys.stderr.write(f'Downloading: "{url}" to {path}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, found.group(1) if found else None, progress)
    return load(path, map_location=map_location, weights_only=weights_only)
