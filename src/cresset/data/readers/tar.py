"""TarDataset: a stream of samples from tar files ("shards"), whose members with the same name but for the ending form
one sample.
"""

import glob
import io
import math
import os
import re

import cresset

from ..datasets import IterableDataset
from ..workers import get_worker_info


def _array(data):
    from .arrays import DTYPES, read_numpy_header

    file = io.BytesIO(data)
    shape, described, by_columns = read_numpy_header(file, "npy")
    kind = described.lstrip("<|=") if isinstance(described, str) else described
    if kind not in DTYPES or by_columns:
        raise ValueError(f"arrays of {described!r}{' in column order' if by_columns else ''} are not read")
    dtype = getattr(cresset, DTYPES[kind])
    rest = bytearray(file.read())
    if math.prod(shape) * dtype.itemsize != len(rest):
        raise ValueError(f"an array of shape {shape} and dtype {dtype} does not have {len(rest)} bytes")
    return cresset.frombuffer(rest, dtype=dtype).view(shape) if rest else cresset.empty(shape, dtype=dtype)


def _tensors(data):
    return cresset.load(io.BytesIO(data), weights_only=True)


def _json(data):
    from ...serialization.bounds import read_json

    return read_json(data)


def _safetensors(data):
    from ...serialization import safetensors

    return safetensors.load(data)


MAX_EXTENSION = 1 << 16  # bytes of a header's extension: long names, times
COMPRESSED = {b"\x1f\x8b": "gzip", b"BZ": "bz2", b"\xfd7": "lzma"}  # by their first two bytes


def _members(path, file):
    """(member, the function that opens it) of a tar file, from front to end. What is wrong with the file is a
    ValueError.
    """
    import importlib
    import tarfile

    class Member(tarfile.TarInfo):
        def _proc_member(self, archive):  # where every header goes, before what follows it is read at once
            if self.size < 0 or (self.type in b"xgXLK" and self.size > MAX_EXTENSION):
                raise ValueError(f"a header says that {self.size} bytes follow")
            return super()._proc_member(archive)

    kind = COMPRESSED.get(file.read(2))
    file.seek(0)
    try:
        # Not tarfile's own unpacking, which takes as much memory as a piece of the file unpacks to.
        stream = importlib.import_module(kind).open(file) if kind else file
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=Member) as archive:
            for member in archive:
                yield member, archive.extractfile
    except Exception as error:
        raise ValueError(f"{path}: not a tar file, or cut short: {error}") from None


def _text(data):
    return data.decode("utf-8")


DECODERS = {
    "txt": _text,
    "text": _text,
    "json": _json,
    "cls": int,
    "id": int,
    "npy": _array,
    "pt": _tensors,
    "pth": _tensors,
    "safetensors": _safetensors,
}


def expand(pattern):
    """The files that a pattern names: braces `{000..009}` count, `*` and `?` match what is there.

    >>> expand("shard-{08..10}.tar")
    ['shard-08.tar', 'shard-09.tar', 'shard-10.tar']
    """
    if match := re.search(r"\{(\d+)\.\.(\d+)\}", pattern):
        first, last = match[1], match[2]
        numbers = range(int(first), int(last) + 1)
        return [
            path
            for n in numbers
            for path in expand(f"{pattern[: match.start()]}{n:0{len(first)}d}{pattern[match.end() :]}")
        ]
    if not glob.has_magic(pattern):
        return [pattern]
    if not (found := sorted(glob.glob(pattern))):
        raise FileNotFoundError(f"TarDataset: no file matches {pattern!r}")
    return found


def _read(path, member, extract):
    try:
        return extract(member).read()
    except Exception as error:
        raise ValueError(f"{path}: not a tar file, or cut short: {error}") from None


class TarDataset(IterableDataset):
    """Samples from tar files, read from front to end: dictionaries with "__key__" and one entry for each ending.

    `a/7.jpg` and `a/7.cls`, one after the other in a shard, give ``{"__key__": "a/7", "jpg": ..., "cls": ...}``. The
    shards are shared out: each worker of a DataLoader, and each rank, reads its own.

    Args:
        shards: a path, a pattern such as ``"train-{000..099}.tar"`` or ``"train-*.tar"``, or a list of them. Compressed
            files are read, too.
        decode: True decodes txt, json, cls, npy, pt and safetensors and leaves others as bytes; a dictionary adds
            functions of the bytes by ending; False leaves all as bytes.
        shuffle: read the shards in an order drawn from `seed` and the epoch.
        seed: of the order.
        rank, world_size: this process and how many there are, in distributed training.
        transform: a function of the sample.
    """

    def __init__(self, shards, decode=True, shuffle=False, seed=0, rank=0, world_size=1, transform=None):
        given = [shards] if isinstance(shards, (str, os.PathLike)) else list(shards)
        self.shards = [path for pattern in given for path in expand(os.fspath(pattern))]
        if not self.shards:
            raise ValueError("TarDataset: no shards were given")
        if not 0 <= rank < world_size:
            raise ValueError(f"TarDataset: rank must be from 0 to world_size - 1 = {world_size - 1}, got {rank}")
        self.decoders = {**(DECODERS if decode else {}), **(decode if isinstance(decode, dict) else {})}
        self.shuffle, self.seed, self.rank, self.world_size = shuffle, seed, rank, world_size
        self.transform, self.epoch = transform, 0

    def set_epoch(self, epoch):
        """Choose the order of the shards for this epoch; all workers and ranks must have the same."""
        self.epoch = epoch

    def own_shards(self):
        """The shards that this worker of this rank reads."""
        shards = self.shards
        if self.shuffle:
            generator = cresset.Generator().manual_seed(self.seed + self.epoch)
            shards = [shards[i] for i in cresset.randperm(len(shards), generator=generator).tolist()]
        shards = shards[self.rank :: self.world_size]
        worker = get_worker_info()
        return shards if worker is None else shards[worker.id :: worker.num_workers]

    def __iter__(self):
        for path in self.own_shards():
            for sample in self.samples(path):
                yield sample if self.transform is None else self.transform(sample)

    def samples(self, path):
        """The samples of one shard: runs of members with the same key."""
        from ...serialization.bounds import TIMES, promised

        sample, total = {}, 0
        with open(path, "rb") as file:
            limit = promised(os.fstat(file.fileno()).st_size) // 4  # what a decoder makes of it takes memory, too
            for member, extract in _members(path, file):
                folder, name = os.path.split(member.name)
                if not member.isfile() or name.startswith("."):
                    continue
                stem, _, ending = name.partition(".")
                key = os.path.join(folder, stem)
                if sample and sample["__key__"] != key:
                    yield sample
                    sample, total = {}, 0
                sample["__key__"] = key
                if ending in sample:
                    raise ValueError(f"{path}: the member {member.name!r} appears twice in its sample")
                total += member.size
                if total > limit:
                    raise ValueError(
                        f"{path}: the sample {key!r} takes {total} bytes, more than {TIMES // 4} times the file's size"
                    )
                sample[ending] = self.decoded(path, member.name, ending.lower(), _read(path, member, extract))
        if sample:
            yield sample

    def decoded(self, path, name, ending, data):
        decoder = self.decoders.get(ending) or self.decoders.get(ending.rpartition(".")[2])
        if decoder is None:
            return data
        try:
            return decoder(data)
        except Exception as error:
            raise ValueError(f"{path}: the member {name!r} cannot be decoded: {error}") from error
