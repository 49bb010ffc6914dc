"""Feed damaged and hostile files to everything that reads files: python tools/fuzz_files.py COUNT SEED [KIND ...].

Each input is a good file with bits, bytes, pieces or opcodes changed, or a pickle that would run code in Python's own
unpickler. A reader may give a value or one of its errors. Anything else is a finding: another exception, code that
runs, an import, a file that is written, more memory than SECURITY.md promises, ten seconds of work or two minutes
without an end, a page with a script, a terminal sequence in what is printed. The inputs depend on the seed alone.

The kinds: pt, module (saved whole), program (TorchScript), names, safetensors, npy, npz, tar, events, records (of
    runs), inspect, picture, idx, cifar. Beside one another they
come in these proportions: WEIGHTS.
"""

import bz2
import collections
import contextlib
import gzip
import io
import itertools
import json
import logging
import lzma
import os
import pickle
import pickletools
import random
import re
import resource
import signal
import struct
import sys
import tarfile
import time
import types
import warnings
import zipfile
import zlib

import cresset
from cresset import vision
from cresset.data.readers import arrays, tar
from cresset.serialization import bounds, safetensors
from cresset.train import report
from cresset.utils import protobuf
from cresset.utils.tensorboard import records as event_records
from cresset.vision import pictures
from cresset.vision.datasets import cifar, mnist

ERRORS = (pickle.UnpicklingError, RuntimeError, EOFError, ValueError)
WEIGHTS = {
    "pt": 30, "module": 8, "program": 6, "names": 3, "safetensors": 16, "npy": 9, "npz": 6, "tar": 4, "events": 2,
    "records": 9, "inspect": 5, "picture": 4, "idx": 2, "cifar": 2,
}  # fmt: skip
DANGEROUS_NAMES = [
    ("os", "system"), ("posix", "system"), ("nt", "system"), ("builtins", "eval"), ("__builtin__", "eval"),
    ("builtins", "exec"), ("builtins", "getattr"),
    ("builtins", "__import__"), ("builtins", "open"), ("builtins", "compile"), ("subprocess", "Popen"),
    ("subprocess", "call"), ("functools", "partial"),
    ("operator", "attrgetter"), ("operator", "methodcaller"), ("importlib", "import_module"), ("runpy", "run_path"),
    ("torch.hub", "load"),
    ("torch._utils", "_import_dotted_name"), ("torch.serialization", "load"), ("torch", "load"), ("cresset", "load"),
    ("cresset.serialization.saving", "save"),
    ("pickle", "loads"), ("_pickle", "loads"), ("shutil", "rmtree"), ("ctypes", "CDLL"), ("code", "interact"),
    ("pty", "spawn"), ("socket", "socket"),
    ("types", "FunctionType"), ("types", "CodeType"), ("marshal", "loads"), ("builtins", "type"),
    ("builtins", "object"), ("copyreg", "_reconstructor"),
    ("copyreg", "add_extension"), ("numpy.testing._private.utils", "runstring"), ("numpy", "load"),
    ("webbrowser", "open"), ("timeit", "timeit"),
    ("collections", "namedtuple"), ("builtins", "setattr"), ("builtins", "vars"), ("builtins", "map"),
    ("builtins", "breakpoint"), ("sys", "exit"), ("asyncio", "run"),
]  # fmt: skip


def named(module, name):
    return b"c" + module.encode() + b"\n" + name.encode() + b"\n"


def hostile_pickles(command="true"):
    """Pickles that run code, or try to, when Python's own unpickler reads them: from a title to the bytes."""
    argument = b"X" + struct.pack("<I", len(command)) + command.encode()
    text = lambda word: b"\x8c" + bytes([len(word)]) + word.encode()  # noqa: E731  (SHORT_BINUNICODE)
    corpus = {
        f"REDUCE {module}.{name}": b"\x80\x02" + named(module, name) + argument + b"\x85R."
        for module, name in DANGEROUS_NAMES
    }
    corpus |= {
        f"STACK_GLOBAL {module}.{name}": b"\x80\x04" + text(module) + text(name) + b"\x93" + argument + b"\x85R."
        for module, name in DANGEROUS_NAMES
    }
    corpus |= {
        "INST os.system": b"(S'" + command.encode() + b"'\nios\nsystem\n.",
        "OBJ os.system": b"(" + named("os", "system") + argument + b"o.",
        "NEWOBJ subprocess.Popen": b"\x80\x02" + named("subprocess", "Popen") + argument + b"\x85\x81.",
        "NEWOBJ_EX subprocess.Popen": b"\x80\x04" + named("subprocess", "Popen") + argument + b"\x85}\x92.",
        "EXT1": b"\x80\x02\x82\x01.",
        "EXT2": b"\x80\x02\x83\x01\x00.",
        "EXT4": b"\x80\x02\x84\x01\x00\x00\x00.",
        "getattr chain": b"\x80\x02" + named("builtins", "getattr") + named("os",
            "path") + b"X\x06\x00\x00\x00system\x86R" + argument + b"\x85R.",
        "dotted name": b"\x80\x04" + text("collections") + text("abc.sys.modules") + b"\x93.",
        "dotted name through the list": b"\x80\x04" + text("collections") + text("OrderedDict.__init__.__globals__") + b"\x93.",
        "dotted name of a constructor": b"\x80\x04" + text("torch._utils") + text("_rebuild_tensor_v2.__globals__") + b"\x93.",
        "BUILD poisons a class": b"\x80\x02" + named("collections", "OrderedDict") + b"}X\x05\x00\x00\x00itemsNsb.",
        "BUILD poisons an instance": b"\x80\x02" + named("collections",
            "OrderedDict") + b")R}X\x05\x00\x00\x00itemsNsb.",
        "BUILD sets __class__": b"\x80\x02" + named("collections",
            "OrderedDict") + b")R}X\x09\x00\x00\x00__class__" + named("collections", "Counter") + b"sb.",
        "BUILD with slots": b"\x80\x02" + named("collections",
            "OrderedDict") + b")RN}X\x09\x00\x00\x00__class__" + named("collections", "Counter") + b"s\x86b.",
        "BUILD on a list": b"\x80\x02]}X\x01\x00\x00\x00aNsb.",
        "BUILD on a function's name": b"\x80\x02" + named("_codecs", "encode") + b"}X\x08\x00\x00\x00__call__Nsb.",
        "REDUCE of a string": b"\x80\x02X\x09\x00\x00\x00os.system" + argument + b"\x85R.",
        "REDUCE of a made object": b"\x80\x02" + named("collections", "Counter") + b")R" + argument + b"\x85R.",
        "REDUCE of a dtype": b"\x80\x02" + named("torch", "float32") + argument + b"\x85R.",
        "defaultdict with a function": b"\x80\x02" + named("collections", "defaultdict") + named("os",
            "getcwd") + b"\x85R.",
        "defaultdict that makes storages": b"\x80\x02" + named("collections", "defaultdict") + named("torch",
            "FloatStorage") + b"\x85R.",
        "Tensor called with a size": b"\x80\x02" + named("torch", "Tensor") + b"J\xff\xff\xff\x7f\x85R.",
        "storage called with a size": b"\x80\x02" + named("torch.storage",
            "UntypedStorage") + b"J\xff\xff\xff\x7f\x85R.",
        "bytearray of a size": b"\x80\x02" + named("builtins", "bytearray") + b"J\xff\xff\xff\x7f\x85R.",
        "bytes of a size": b"\x80\x02" + named("builtins", "bytes") + b"J\xff\xff\xff\x7f\x85R.",
        "long string": b"\x80\x02X\xff\xff\xff\x7fabc.",
        "longer string": b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fabc.",
        "long bytes": b"\x80\x05\x96\xff\xff\xff\xff\xff\xff\xff\x00abc.",
        "negative string": b"\x80\x02T\xff\xff\xff\xffabc.",
        "negative integer": b"\x80\x02\x8b\xff\xff\xff\xffabc.",
        "digits without end": b"L" + b"9" * 20000 + b"L\n.",
        "memo that is not there": b"\x80\x02j\xff\xff\xff\xff.",
        "frame beyond the end": b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xffK\x01",
        "deep key": b"\x80\x02}" + b")" + b"\x85" * 100000 + b"Ns.",
        "deep key of a set": b"\x80\x04\x8f(" + b")" + b"\x85" * 100000 + b"\x90.",
        "deep key by REDUCE": b"\x80\x02" + named("builtins", "set") + b"])" + b"\x85" * 100000 + b"a\x85R.",
        "deep value as a constructor": b"\x80\x02)" + b"\x85" * 100000 + b")R.",
        "key of shared halves": b"\x80\x02}K\x01" + b"2\x86" * 60 + b"Ns.",
        "copies of one list": b"\x80\x02]q\x00(" + b"N" * 20000 + b"e(" + (named("builtins",
            "set") + b"q\x01h\x00\x85R" + b"h\x01h\x00\x85R" * 5000) + b"t.",
        "persistent id that is a name": b"\x80\x02" + named("os", "system") + b"Q.",
        "storage of another class": b"\x80\x02(X\x07\x00\x00\x00storage" + named("collections",
            "Counter") + b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x01tQ.",
        "storage without end": b"\x80\x02(X\x07\x00\x00\x00storage" + named("torch",
            "FloatStorage") + b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpu\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x0ftQ.",
        "negative storage": b"\x80\x02(X\x07\x00\x00\x00storage" + named("torch",
            "FloatStorage") + b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuJ\xff\xff\xff\xfftQ.",
        "storage with a path for a key": b"\x80\x02(X\x07\x00\x00\x00storage" + named("torch",
            "FloatStorage") + b"X\x10\x00\x00\x00../../etc/passwdX\x03\x00\x00\x00cpuK\x01tQ.",
    }  # fmt: skip
    return corpus


# ---------------------------------------------------------------- good files


def archive(pickled, storages=(), folder="archive"):
    """An archive with this pickle and these storages, whose checksums are right."""
    from cresset.serialization.archive import ArchiveWriter

    file = io.BytesIO()
    writer = ArchiveWriter(file, folder)
    writer.write("data.pkl", pickled)
    writer.write("byteorder", b"little")
    for key, data in enumerate(storages):
        writer.write(f"data/{key}", data)
    writer.write("version", b"3\n")
    writer.close()
    return file.getvalue()


def stream(pickled):
    """A file in the format before archives with this pickle and no storages."""
    from cresset.serialization.saving import MAGIC_NUMBER, PROTOCOL_VERSION

    return (
        b"".join(pickle.dumps(value, 2) for value in (MAGIC_NUMBER, PROTOCOL_VERSION, {"little_endian": True}))
        + pickled
        + pickle.dumps([], 2)
    )


def good_values():
    model = cresset.nn.Sequential(cresset.nn.Linear(3, 2), cresset.nn.BatchNorm1d(2))
    base = cresset.arange(6.0)
    plain = {
        "epoch": 3,
        "loss": 0.25,
        "name": "run",
        "pair": (1, 2.5),
        "list": [1, [2, [3]]],
        "set": {1, 2},
        "bytes": b"ab",
        "none": None,
        "big": 2**70,
        "complex": 1j,
    }
    return [
        model.state_dict(),
        {
            "whole": base,
            "part": base[2:4],
            "turned": base.view(2, 3).t(),
            "parameter": cresset.nn.Parameter(cresset.ones(2)),
        },
        plain,
        [
            cresset.zeros(2, dtype=cresset.uint16),
            cresset.zeros(3, device="meta"),
            cresset.Size([2, 3]),
            cresset.float32,
            cresset.device("cpu"),
            base.storage(),
        ],
        collections.OrderedDict(
            a=cresset.ones(1, dtype=cresset.bool),
            b=collections.Counter("aab"),
            c=slice(1, 2),
            d=collections.defaultdict(list, x=[1]),
        ),
    ]


def pickle_of(value, **settings):
    """(the pickle, the storages) of what save writes for `value`."""
    from cresset.serialization.archive import ArchiveReader, FileSource

    file = io.BytesIO()
    cresset.save(value, file, **settings)
    reader = ArchiveReader(FileSource(io.BytesIO(file.getvalue())))
    names = sorted((name for name in reader.records if name.startswith("data/")), key=lambda name: int(name[5:]))
    return reader.read("data.pkl"), [reader.read(name) for name in names]


def good_modules():
    nn = cresset.nn
    return [nn.Linear(2, 1), nn.LSTM(1, 1), nn.Sequential(nn.LayerNorm(2), nn.ReLU()), nn.Embedding(2, 2)]


def good_files():
    """Files of both formats of save, and (pickle, storages) of the archives among them."""
    files, pickles = [], []
    for value in good_values():
        for settings in ({}, {"pickle_protocol": 4}, {"_use_new_zipfile_serialization": False}):
            file = io.BytesIO()
            cresset.save(value, file, **settings)
            files.append(file.getvalue())
            if settings.get("_use_new_zipfile_serialization", True):
                pickles.append(pickle_of(value, **settings))
    return files, pickles


def other_files():
    """Files that others than save write, by kind."""
    header = lambda text: b"\x93NUMPY\x01\0" + struct.pack("<H", len(text) + 1) + text + b"\n"  # noqa: E731
    arrays_ = [
        header(b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }") + bytes(24),
        header(b"{'descr': '|u1', 'fortran_order': True, 'shape': (3,), }") + b"abc",
        header(b"{'descr': [('a', '<f4'), ('b', '<i2')], 'fortran_order': False, 'shape': (1,), }") + bytes(6),
    ]
    archives = []
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", compression) as made:
            made.writestr("x.npy", arrays_[0])
            made.writestr("y.npy", arrays_[0])
        archives.append(file.getvalue())
    tensors = {
        "a": cresset.ones(2, 3),
        "b": cresset.zeros(4, dtype=cresset.int64),
        "c": cresset.tensor([True]),
        "empty": cresset.zeros(0, 2),
    }
    stored = io.BytesIO()
    cresset.save([1], stored)
    members = {
        "a.txt": b"text",
        "a.json": b'{"a": [1]}',
        "a.npy": arrays_[0],
        "b.cls": b"7",
        "b" * 120 + ".txt": b"",
        "c.pt": stored.getvalue(),
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as made:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            made.addfile(member, io.BytesIO(data))
    shard = packed.getvalue()
    lines = [
        {"kind": "start", "time": 1.5, "model": "Net", "parameters": 3, "optimizer": "SGD", "epochs": 2, "seed": 0,
            "device": "cpu", "monitor": "loss"},
        {"kind": "step", "time": 2.5, "step": 1, "epoch": 1, "batch": 1, "loss": 0.5, "lr": 0.1},
        {"kind": "checkpoint", "step": 1, "file": "last.pt"},
        {"kind": "epoch", "time": 3.5, "epoch": 1, "step": 2, "loss": 0.25, "val_loss": "nan", "<script>": 1},
        {"kind": "resume", "epoch": 1, "step": 2},
        {"kind": "end", "time": 4.5, "reason": "finished", "best": 0.25, "best_epoch": 1},
    ]  # fmt: skip
    image = cresset.arange(192).view(3, 8, 8).to(cresset.uint8)
    drawn = [bytes(memoryview(vision.io.encode_png(part))) for part in (image, image[:1])] + [
        bytes(memoryview(vision.io.encode_jpeg(image)))
    ]
    for form in ("GIF", "BMP", "TIFF", "WEBP", "PPM"):
        file = io.BytesIO()
        vision.transforms.functional.to_pil_image(image).save(file, form)
        drawn.append(file.getvalue())
    events = b"".join(
        event_records.frame(protobuf.double(1, 1.5) + protobuf.message(3, text)) for text in ("brain.Event:2", "loss")
    )
    numpys = b"\x80\x02}U\x04data" + named("numpy.core.multiarray", "_reconstruct") + named("numpy",
        "ndarray") + b"K\x00\x85U\x01b\x87R(K\x01K\x03\x85" + (
        named("numpy", "dtype") + b"U\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x03abctbsU\x06labels](K\x01K\x02es."
    )  # fmt: skip
    return {
        "safetensors": [safetensors.save(tensors, {"format": "pt"}),
            safetensors.save({"w": cresset.ones(5).bfloat16()})],
        "npy": arrays_, "npz": archives, "tar": [shard, shard, gzip.compress(shard), bz2.compress(shard),
            lzma.compress(shard)], "events": [events],
        "records": ["".join(json.dumps(line) + "\n" for line in lines).encode()], "picture": drawn, "cifar": [numpys],
        "idx": [b"\0\0\x08\x03" + struct.pack(">3I", 1, 2, 3) + bytes(6),
            b"\0\0\x0d\x01" + struct.pack(">I", 2) + bytes(8)],
    }  # fmt: skip


class Branching(cresset.nn.Module):
    """A program with most of what source in archives has."""

    def __init__(self):
        super().__init__()
        self.layers = cresset.nn.ModuleList([cresset.nn.Linear(2, 2), cresset.nn.BatchNorm1d(2)])
        self.names, self.limits, self.pair = ["a", "b"], {"low": -1.0}, (1, "x")
        self.register_buffer("seen", cresset.zeros(1))

    def forward(self, x: cresset.Tensor, times: int = 2, scale: float | None = None):
        for layer in self.layers:
            x = layer(x)
        total: list[cresset.Tensor] = []
        for i in range(times):
            if i % 2 == 0:
                total.append(x * i)
            elif scale is not None:
                total.append(x / scale)
        while bool(x.sum() > 100):
            x = x.clamp(self.limits["low"], 1.0)
        if len(total) == 0:
            raise ValueError(f"{self.names[0]} {times}")
        self.seen += 1
        return x, total, {"n": len(total)}, cresset.tensor([1.0, 2.0])


def good_programs():
    """TorchScript archives, each as {name of the record: bytes}."""
    from cresset.serialization.archive import ArchiveReader, FileSource

    programs = []
    modules = [
        cresset.jit.script(Branching()),
        cresset.jit.trace(cresset.nn.Sequential(cresset.nn.Linear(2, 2), cresset.nn.ReLU()), cresset.ones(1, 2)),
    ]
    for module in modules:
        reader = ArchiveReader(FileSource(io.BytesIO(module.save_to_buffer({"note.txt": "a"}))), packed=True)
        programs.append({name: reader.read(name) for name in reader.records})
    return programs


def program_archive(records, pack=()):
    """An archive with these records, and right checksums; those in `pack` are compressed."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name, data in records.items():
            made.writestr(f"archive/{name}", data, zipfile.ZIP_DEFLATED if name in pack else zipfile.ZIP_STORED)
    return file.getvalue()


SOURCE_WORDS = [
    b"__import__('os').system('true')", b"exec('1')", b"self", b"torch.load('x')", b"ops.prim.", b"CONSTANTS.c9",
    b"__torch__.X", b"(" * 50, b"[" * 300, b"annotate(List[int], [])", b"-", b"lambda: 1",
    b"import os\n", b"while True:\n", b"x.__class__", b"getattr(self, '__dict__')", b"9" * 400, b"*x",
    b"0x7fffffffffffffffffff", b"NoneType", b"Tuple[", b"->", b"print", b"open('x')", b"\n",
]  # fmt: skip


def change_source(text, rng):
    """Words and lines of source removed, doubled, exchanged, put in."""
    parts = re.split(rb"(\W)", text)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at, kind = rng.randrange(len(parts)), rng.randrange(4)
        if kind == 0:
            del parts[at : at + rng.randrange(1, 4)]
        elif kind == 1:
            parts[at:at] = [rng.choice(parts)]
        elif kind == 2:
            parts[at] = rng.choice(SOURCE_WORDS)
        else:
            other = rng.randrange(len(parts))
            parts[at], parts[other] = parts[other], parts[at]
        if not parts:
            break
    return b"".join(parts)


def opcodes_of(pickled):
    """The pickle as a list of opcodes with their arguments."""
    places = [position for _, _, position in pickletools.genops(pickled)] + [len(pickled)]
    return [pickled[a:b] for a, b in zip(places, places[1:], strict=False)]


# ---------------------------------------------------------------- changes

NUMBERS = [
    0,
    1,
    2,
    7,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    2**63 - 1,
    2**63,
    2**64 - 1,
]
OPCODES = [bytes([code]) for code in b"Rb\x81\x92\x93o012(tQsuae\x85\x86\x94\x90\x91\x8f]})ld"]
WORDS = [
    b"\x1b[2J", b"\n", b"\0", b"9" * 30, b"-1", b"1e999", b"null", b"[]", b"{}", b'"', b"<script>1</script>", b"NaN",
    b"true", b"\xff\xfe", b"..", b"/", b"\xe2\x80\xae",
]  # fmt: skip


def change_bytes(data, rng):
    """Bits, bytes, numbers and pieces of `data` changed."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        if not data:
            break
        at = rng.randrange(len(data))
        kind = rng.randrange(8)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.randrange(256)
        elif kind == 2 and rng.random() < 0.5:
            del data[at:]
        elif kind == 3:
            del data[at : at + rng.randrange(1, 33)]
        elif kind == 4:
            other = rng.randrange(len(data))
            data[at:at] = data[other : other + rng.randrange(1, 65)] * rng.choice((1, 1, 1, 50))
        elif kind == 5:
            width = rng.choice((1, 2, 4, 8))
            data[at : at + width] = (rng.choice(NUMBERS) & (256**width - 1)).to_bytes(
                width, rng.choice(("little", "big"))
            )
        elif kind == 6:
            word = rng.choice(WORDS)
            data[at : at + rng.choice((0, len(word)))] = word
        else:
            other = rng.randrange(len(data))
            piece = data[other : other + rng.randrange(1, 65)]
            data[at : at + len(piece)] = piece
    return bytes(data)


def change_opcodes(opcodes, rng, spare):
    """Opcodes removed, doubled, exchanged, taken from another pickle, or given other arguments."""
    changed = list(opcodes)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(changed))
        kind = rng.randrange(7)
        if kind == 0 and len(changed) > 2:
            del changed[at]
        elif kind == 1:
            changed[at:at] = [changed[rng.randrange(len(changed))]] * rng.choice((1, 1, 1, 1, 200))
        elif kind == 2:
            other = rng.randrange(len(changed))
            changed[at], changed[other] = changed[other], changed[at]
        elif kind == 3:
            other = rng.choice(spare)
            start = rng.randrange(len(other))
            changed[at:at] = other[start : start + rng.randrange(1, 8)]
        elif kind == 4:
            changed.insert(at, named(*rng.choice(DANGEROUS_NAMES)))
        elif kind == 5:
            changed.insert(at, rng.choice(OPCODES))
        else:
            argument = bytearray(changed[at])
            if len(argument) > 1:
                width = min(len(argument) - 1, rng.choice((1, 2, 4, 8)))
                argument[1 : 1 + width] = (rng.choice(NUMBERS) & (256**width - 1)).to_bytes(width, "little")
                changed[at] = bytes(argument)
    return b"".join(changed)


def mend_checksums(data):
    """A PNG file whose pieces have the right checksums, so that the change in one is looked at."""
    mended, at = [data[:8]], 8
    while at + 12 <= len(data):
        (size,) = struct.unpack_from(">I", data, at)
        piece = data[at + 4 : at + 8 + size]
        if len(piece) < 4:
            break
        mended.append(struct.pack(">I", len(piece) - 4) + piece + struct.pack(">I", zlib.crc32(piece)))
        at += 12 + size
    return b"".join(mended)


class Inputs:
    """The inputs of one seed: `make(rng)` gives (kind, bytes)."""

    def __init__(self, kinds=None):
        self.files, self.pickles = good_files()
        self.opcodes = [(opcodes_of(pickled), storages) for pickled, storages in self.pickles]
        self.spare = [opcodes for opcodes, _ in self.opcodes]
        self.hostile = [data for data in hostile_pickles().values() if len(data) < 2000]
        self.others = other_files()
        self.programs = good_programs()
        modules = [pickle_of(module) for module in good_modules()]
        self.modules = [(opcodes_of(pickled), storages) for pickled, storages in modules]
        weights = {kind: weight for kind, weight in WEIGHTS.items() if not kinds or kind in kinds}
        self.kinds, self.weights = list(weights), list(itertools.accumulate(weights.values()))

    def make(self, rng):
        (kind,) = rng.choices(self.kinds, cum_weights=self.weights)
        if kind in ("pt", "names"):
            return kind, self.make_pt(rng)
        if kind == "module":
            opcodes, storages = rng.choice(self.modules)
            return kind, archive(
                change_opcodes(opcodes, rng, self.spare)
                if rng.random() < 0.7
                else change_bytes(b"".join(opcodes), rng),
                storages,
            )
        if kind == "program":
            return kind, self.make_program(rng)
        if kind == "inspect":
            data = (
                self.make_pt(rng)
                if rng.random() < 0.5
                else change_bytes(
                    rng.choice(self.others[rng.choice(("npz", "npy", "safetensors", "tar", "events"))]), rng
                )
            )
            return kind, data
        data = change_bytes(rng.choice(self.others[kind]), rng)
        return kind, mend_checksums(data) if kind == "picture" and data[
            :4
        ] == b"\x89PNG" and rng.random() < 0.7 else data

    def make_program(self, rng):
        records = dict(rng.choice(self.programs))
        sources = [name for name in records if name.startswith("code/")]
        way = rng.randrange(10)
        if way < 4:
            name = rng.choice(sources)
            records[name] = change_source(records[name], rng)
        elif way < 7:
            name = rng.choice(("data.pkl", "data.pkl", "constants.pkl"))
            records[name] = change_opcodes(opcodes_of(records[name]), rng, self.spare)
        elif way == 7:
            name = rng.choice(list(records))
            records[name] = change_bytes(records[name], rng)
        elif way == 8:
            records["data.pkl"] = rng.choice(self.hostile)
        data = program_archive(records, sources if rng.random() < 0.5 else ())
        return change_bytes(data, rng) if way == 9 else data

    def make_pt(self, rng):
        way = rng.randrange(10)
        if way < 3:
            return change_bytes(rng.choice(self.files), rng)
        if way < 7:
            opcodes, storages = rng.choice(self.opcodes)
            return archive(change_opcodes(opcodes, rng, self.spare), storages)
        if way < 9:
            pickled, storages = rng.choice(self.pickles)
            return archive(change_bytes(pickled, rng), storages)
        data = rng.choice(self.hostile)
        data = data if rng.random() < 0.3 else change_bytes(data, rng)
        return archive(data) if rng.random() < 0.5 else stream(data)


# ---------------------------------------------------------------- the readers


class Paper(io.StringIO):
    """What is printed while it is looked at: a finding if a terminal would obey it."""

    def check(self):
        if not self.getvalue().replace("\n", "").isprintable():
            raise Finding(f"printed {self.getvalue()!r}")


class Place:
    """One file in memory with a path, whose content is exchanged for each input."""

    def __init__(self):
        self.file = os.memfd_create("fuzz")
        self.path = f"/proc/{os.getpid()}/fd/{self.file}"

    def put(self, data):
        os.ftruncate(self.file, 0)
        os.pwrite(self.file, data, 0)
        return self.path


def read_inspect(path):
    from cresset.cli import CommandError, contents

    paper = Paper()
    try:
        with contextlib.redirect_stdout(paper):
            contents.run(types.SimpleNamespace(file=path, json=False))
    except CommandError as error:
        return type(error).__name__, str(error)
    finally:
        paper.check()


def read_program(data):
    """Load and compile, and look at all of it; a program that was changed is not run, since it may do anything that
    programs do.
    """
    module = cresset.jit.load(io.BytesIO(data), _extra_files={"note.txt": ""})
    for part in module.modules():
        for name in part._script_type.methods:
            part._c._get_method(name).code  # noqa: B018
    return str(module), module.state_dict()


def read_records(path):
    lines = report.read_records(path)
    page = report.report_html(lines, "run")
    if "<script" in page or "\x1b" in page:
        raise Finding(f"the page has {page[page.find('<script') :][:100]!r}")
    return page


READERS = {  # from a kind to a function of (bytes, is it the strict way)
    "pt": lambda data, strict: cresset.load(io.BytesIO(data), weights_only=strict),
    "module": lambda data, strict: cresset.load(io.BytesIO(data), weights_only=False),
    "program": lambda data, strict: (
        read_program(data) if strict else cresset.load(io.BytesIO(data), weights_only=False)
    ),
    "names": lambda data, strict: cresset.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data)),
    "safetensors": lambda data, strict: safetensors.load(data),
    "npy": lambda data, strict: arrays.ArrayDataset(place.put(data)) if strict else tar._array(data),
    "npz": lambda data, strict: arrays.ArrayDataset(place.put(data)),
    "tar": lambda data, strict: list(tar.TarDataset(place.put(data))),
    "events": lambda data, strict: cresset.load(place.put(data)) if strict else read_inspect(place.put(data)),
    "records": lambda data, strict: read_records(place.put(data)),
    "inspect": lambda data, strict: read_inspect(place.put(data)),
    "picture": lambda data, strict: vision.io.decode_image(
        cresset.frombuffer(bytearray(data or b"0"), dtype=cresset.uint8), apply_exif_orientation=strict
    ),
    "idx": lambda data, strict: mnist.read_idx(place.put(data)),
    "cifar": lambda data, strict: cifar.read_pickle(place.put(data)),
}
place = Place()
logging.getLogger("PIL").setLevel(logging.CRITICAL + 1)  # it tells of damaged pictures


def promised(kind, size):
    """The memory that reading may take; see SECURITY.md."""
    return bounds.promised(size) + (
        16 * (pictures.FREE_PIXELS + pictures.PIXELS_PER_BYTE * size) if kind == "picture" else 0
    )


# ---------------------------------------------------------------- the watch


class Finding(Exception):
    """What must not happen."""


class Endless(Finding):
    """It took too long."""


FORBIDDEN = (
    "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "subprocess.Popen", "os.mkdir", "os.remove",
    "os.rename", "os.rmdir", "os.chmod", "os.putenv",
    "shutil.", "socket.", "ctypes.", "exec", "compile", "import", "open", "pty.", "webbrowser.", "code.__new__",
    "pickle.find_class", "sys._getframe",
)  # fmt: skip
_watching = [False]
_seen = []


def _audit(event, arguments):
    if _watching[0] == "program" and (event, "<unknown>") in (
        ("compile", arguments[1] if len(arguments) > 1 else None),
        ("open", arguments[0]),
    ):
        # ast.parse: a syntax tree and no code (running any is the event "exec"); for its error it looks for a file of
        # this name
        return
    if (
        _watching[0]
        and event.startswith(FORBIDDEN)
        and not (event == "open" and arguments[0] == place.path and arguments[1] in ("rb", "r"))
    ):
        _seen.append((event, str(arguments)[:200]))


def try_input(kind, data, strict):
    """Read one input under watch; "value" or the name of the error. A Finding if something else happened."""
    _seen.clear()
    _watching[0] = kind
    try:
        value = READERS[kind](data, strict)
        outcome = "value"
        del value
    except ERRORS as error:
        outcome = type(error).__name__
    except (AttributeError, NotImplementedError) as error:
        if isinstance(error, AttributeError) and (kind not in ("pt", "module") or (kind == "pt" and strict)):
            raise Finding(f"{type(error).__name__}: {error}") from error
        outcome = type(error).__name__
    except Finding:
        raise
    except Exception as error:
        raise Finding(f"{type(error).__name__}: {error}") from error
    finally:
        _watching[0] = False
    if _seen:
        raise Finding(f"the file caused {_seen[0]}")
    return outcome


def warm_up(inputs):
    """Load what good files need, so that an import afterwards is a finding."""
    try:
        import numpy

        values = [numpy.float64(1.5), numpy.arange(3)]
    except ImportError:
        values = []
    for value in [*good_values(), *values, *good_modules()]:
        for settings in ({}, {"_use_new_zipfile_serialization": False}):
            file = io.BytesIO()
            cresset.save(value, file, **settings)
            for weights_only in (True, False):
                file.seek(0)
                with contextlib.suppress(pickle.UnpicklingError):
                    cresset.load(file, weights_only=weights_only)
    for kind, strict in itertools.product(WEIGHTS, (True, False)):
        samples = (
            [archive(data) for data in hostile_pickles().values()]
            if kind in ("pt", "names")
            else self_made(inputs, kind)
        )
        for data in samples:
            for changed in (data, data[: len(data) // 2], b""):
                with contextlib.suppress(*ERRORS, AttributeError):
                    READERS[kind](changed, strict)
    rng = random.Random(0)
    for _ in range(2000):  # rarer errors, and the modules that word them
        kind, data = inputs.make(rng)
        with contextlib.suppress(Exception):
            READERS[kind](data, rng.random() < 0.5)


def self_made(inputs, kind):
    """The good files of a kind."""
    if kind == "program":
        return [
            program_archive(records, [name for name in records if name.startswith("code/")])
            for records in inputs.programs
        ]
    if kind == "module":
        return [archive(b"".join(opcodes), storages) for opcodes, storages in inputs.modules]
    return [archive(b"N."), *inputs.others["npz"], *inputs.others["npy"]] if kind == "inspect" else inputs.others[kind]


class Memory:
    """The most memory that the process had since `start`, as the system counts it; nothing where it does not."""

    def __init__(self):
        self.counts, self.peak, self.before = os.access("/proc/self/clear_refs", os.W_OK), 0, 0

    def start(self):
        if self.counts:
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")
            self.before = self._read("VmRSS")

    def used(self):
        used = self._read("VmHWM") - self.before if self.counts else 0
        self.peak = max(self.peak, used)
        return used

    @staticmethod
    def _read(word):
        with open("/proc/self/status") as file:
            return next(1024 * int(line.split()[1]) for line in file if line.startswith(word))


BLOCK = 500  # inputs whose memory is looked at together


def run(count, seed, report=None, kinds=None):
    """Try `count` inputs. Gives how often each outcome came, the findings as (number of the input, text, bytes), and
    the most memory that one block took.
    """
    inputs, outcomes, findings, memory = Inputs(kinds), collections.Counter(), [], Memory()
    warm_up(inputs)
    if _audit not in run.hooked:
        sys.addaudithook(_audit)
        run.hooked.append(_audit)

    def too_long(*_):
        raise Endless("it does not end")

    timers = {signal.SIGPROF: (signal.ITIMER_PROF, 10), signal.SIGALRM: (signal.ITIMER_REAL, 120)}

    def attempt(number, again=True):
        rng = random.Random(seed * 1_000_003 + number)
        kind, data = inputs.make(rng)
        for timer, seconds in timers.values():
            signal.setitimer(timer, seconds)
        try:
            return kind, data, try_input(kind, data, rng.random() < 0.5)
        except Endless as finding:
            if again:  # the machine may have been asleep
                return attempt(number, again=False)
            findings.append((number, f"{kind}: {finding}", data))
        except Finding as finding:
            findings.append((number, f"{kind}: {finding}", data))
        return kind, data, "finding"

    before = {number: signal.signal(number, too_long) for number in timers}
    try:
        for start in range(0, count, BLOCK):
            block = range(start, min(count, start + BLOCK))
            memory.start()
            for number in block:
                kind, _, outcome = attempt(number)
                outcomes[outcome] += 1
                outcomes[kind] += 1
            if memory.used() > promised("", 0):  # which each of them may take
                findings += greedy(attempt, block, memory)
            if report and (start + BLOCK) // report > start // report:
                print(
                    (
                        f"{start + BLOCK} inputs, {len(findings)} findings, {memory.peak >> 20} MB at most, "
                        f"{dict(outcomes)}"
                    ),
                    flush=True,
                )
    finally:
        for number, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])
    return outcomes, findings, memory.peak


def greedy(attempt, numbers, memory):
    """Those of the inputs that take more memory than promised, each looked at alone."""
    found = []
    for number in numbers:
        memory.start()
        kind, data, _ = attempt(number)
        if memory.used() > promised(kind, len(data)):
            found.append((number, f"{kind}: {memory.used()} bytes of memory for a file of {len(data)}", data))
    return found


run.hooked = []


def main():
    if len(sys.argv) < 3 or not set(sys.argv[3:]) <= set(WEIGHTS):
        print(__doc__)
        return 2
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    warnings.simplefilter("ignore")  # Pillow's, of damaged pictures
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))  # what asks for more gets a MemoryError
    start = time.perf_counter()
    outcomes, findings, peak = run(count, seed, report=50_000, kinds=sys.argv[3:])
    seconds = time.perf_counter() - start
    for number, text, data in findings[:20]:
        path = f"finding-{seed}-{number}-{zlib.crc32(data):08x}.bin"
        with open(path, "wb") as file:
            file.write(data)
        print(f"input {number} of seed {seed}: {text}; kept as {os.path.abspath(path)}")
    print(
        f"{count} inputs in {seconds:.1f} s ({count / seconds:.0f} a second), {peak >> 20} MB at most: "
        f"{dict(outcomes)}, {len(findings)} findings"
    )
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
