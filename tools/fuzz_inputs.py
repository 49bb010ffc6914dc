"""The damaged and hostile files that tools/fuzz_files.py feeds to the readers: good files of every kind, and how they
are changed. `Inputs(kinds).make(rng)` gives (kind, bytes).
"""

import bz2
import collections
import gzip
import io
import itertools
import json
import lzma
import pickle
import pickletools
import re
import struct
import tarfile
import zipfile
import zlib

import cresset
from cresset import vision
from cresset.serialization import safetensors
from cresset.utils import protobuf
from cresset.utils.tensorboard import records as event_records

WEIGHTS = {
    "pt": 30, "module": 8, "program": 6, "exported": 6, "names": 3, "safetensors": 16, "npy": 9, "npz": 6, "tar": 4,
    "events": 2,
    "records": 9, "inspect": 5, "picture": 4, "idx": 2, "cifar": 2,
}  # fmt: skip
PROGRAMS = {"program", "exported"}
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
        "dotted name through the list": b"\x80\x04" + text("collections") + text("OrderedDict.__init__.__globals__") + b"\x93.",  # noqa: E501
        "dotted name of a constructor": b"\x80\x04" + text("torch._utils") + text("_rebuild_tensor_v2.__globals__") + b"\x93.",  # noqa: E501
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
            made.writestr(zipfile.ZipInfo("x.npy"), arrays_[0])
            made.writestr(zipfile.ZipInfo("y.npy"), arrays_[0])
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
        named("numpy", "dtype") + b"U\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x03abctbsU\x06labels](K\x01K\x02es."  # noqa: E501
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
    programs = []
    modules = [
        cresset.jit.script(Branching()),
        cresset.jit.trace(cresset.nn.Sequential(cresset.nn.Linear(2, 2), cresset.nn.ReLU()), cresset.ones(1, 2)),
    ]
    for module in modules:
        programs.append(records_of(module.save_to_buffer({"note.txt": "a"})))
    return programs


def records_archive(records, pack=()):
    """An archive with these records, and right checksums; those in `pack` are compressed."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name, data in records.items():
            entry = zipfile.ZipInfo(f"archive/{name}")  # without the time of day
            made.writestr(entry, data, zipfile.ZIP_DEFLATED if name in pack else zipfile.ZIP_STORED)
    return file.getvalue()


class Exported(cresset.nn.Module):
    """A program with most of what exported programs have: buffers, a constant, a free size, several outputs."""

    def __init__(self):
        super().__init__()
        self.fc, self.norm = cresset.nn.Linear(3, 2), cresset.nn.BatchNorm1d(2)
        self.register_buffer("shift", cresset.ones(2), persistent=False)
        self.plain = cresset.tensor([1.0, 2.0])

    def forward(self, x, flag=True, scale=2.0):
        a, b = (self.norm(self.fc(x)) * scale + self.shift + self.plain).split([1, 1], 1)
        return {"a": a.view(x.shape[0], -1), "b": b.max(1)[0]}, x.shape[0] * 2 + 1


def records_of(data):
    """The records of an archive: {name: bytes}."""
    from cresset.serialization.archive import ArchiveReader, FileSource

    reader = ArchiveReader(FileSource(io.BytesIO(data)), packed=True)
    return {name: reader.read(name) for name in reader.records}


def good_exported():
    """Exported programs, each as {name of the record: bytes}."""
    batch = cresset.export.Dim("batch", min=2, max=64)
    programs = [
        cresset.export.export(
            Exported(), (cresset.ones(4, 3),), dynamic_shapes={"x": {0: batch}}, preserve_module_call_signature=("fc",)
        ),
        cresset.export.export(cresset.nn.ReLU(), (cresset.ones(2),)),
    ]
    files = []
    for program in programs:
        file = io.BytesIO()
        cresset.export.save(program, file, extra_files={"note.txt": "a"})
        files.append(records_of(file.getvalue()))
    return files


JSON_VALUES = [
    None, True, -1, 0, 1 << 62, 10**30, 1.5, float("inf"), "", "x", "a\n    b", "__import__('os').system('true')",
    "\x1b[2J",
    "self", "import", "torch.ops.aten.add.Tensor", "torch.ops.load_library.x.y", "os.system", "_operator.methodcaller",
    "Symbol('s0')", "Mul(" * 40, "*" * 5, "../../etc/passwd", "__class__.__init__.__globals__", [], {}, [[]],
    {"as_int": 1 << 40},
    {"as_name": "x"}, {"as_string": "s"}, {"as_expr": {"expr_str": "__import__('os')", "hint": None}},
    '[1, {"type": "collections.namedtuple", "context": "\\"subprocess.Popen\\"", "children_spec": []}]',
]  # fmt: skip


def change_json(text, rng):
    """Values of JSON text removed, exchanged, put elsewhere, renamed."""
    value = json.loads(text)
    places = []  # (container, key) of each part

    def walk(part):
        for key in range(len(part)) if isinstance(part, list) else list(part):
            places.append((part, key))
            if isinstance(part[key], (list, dict)):
                walk(part[key])

    walk(value)
    for _ in range(rng.choice((1, 1, 2, 4))):
        part, key = rng.choice(places)
        if key not in (range(len(part)) if isinstance(part, list) else part):
            continue  # an earlier change has removed it
        kind = rng.randrange(5)
        other, name = rng.choice(places)
        known = other[name] if name in (range(len(other)) if isinstance(other, list) else other) else None
        if kind == 0:
            del part[key]
        elif kind == 1:
            part[key] = rng.choice(JSON_VALUES)
        elif kind == 2:
            part[key] = json.loads(json.dumps(known))
        elif kind == 3 and isinstance(part, dict):
            part[str(rng.choice(JSON_VALUES))] = part.pop(key)
        elif isinstance(part, list):
            part[key:key] = json.loads(json.dumps([known])) * rng.choice((1, 1, 50))
    return json.dumps(value).encode()


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
        weights = {kind: weight for kind, weight in WEIGHTS.items() if not kinds or kind in kinds}
        cresset.manual_seed(0)  # of the good models' weights
        self.files, self.pickles = good_files()
        self.opcodes = [(opcodes_of(pickled), storages) for pickled, storages in self.pickles]
        self.spare = [opcodes for opcodes, _ in self.opcodes]
        self.hostile = [data for data in hostile_pickles().values() if len(data) < 2000]
        self.others = other_files() if set(weights) - PROGRAMS else {}
        self.programs, self.exported = good_programs(), good_exported()
        modules = [pickle_of(module) for module in good_modules()]
        self.modules = [(opcodes_of(pickled), storages) for pickled, storages in modules]
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
        if kind == "exported":
            return kind, self.make_exported(rng)
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
        data = records_archive(records, sources if rng.random() < 0.5 else ())
        return change_bytes(data, rng) if way == 9 else data

    def make_exported(self, rng):
        records = dict(rng.choice(self.exported))
        texts = [name for name in records if name.endswith(".json")]
        way = rng.randrange(10)
        if way < 6:
            name = "models/model.json" if way < 4 else rng.choice(texts)
            records[name] = change_json(records[name], rng)
        elif way < 8:
            name = rng.choice(list(records))
            records[name] = change_bytes(records[name], rng)
        elif way == 8:
            records["data/sample_inputs/model.pt"] = self.make_pt(rng)
        data = records_archive(records, texts if rng.random() < 0.1 else ())
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
