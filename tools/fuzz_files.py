"""Feed damaged and hostile files to load: python tools/fuzz_files.py COUNT SEED.

Each input is a good file with bits, bytes, pieces or opcodes changed, or a pickle that would run code in Python's own unpickler. load may give a value
or one of its errors. Anything else is a finding: another exception, code that runs, an import, a file that is written, memory beyond the file's size,
or ten seconds without an end. The inputs depend on the seed alone.
"""

import collections
import contextlib
import io
import os
import pickle
import pickletools
import random
import signal
import struct
import sys
import time
import zlib

import cresset
from cresset import _native
from cresset.serialization import safetensors

ERRORS = (pickle.UnpicklingError, RuntimeError, EOFError, ValueError)
DANGEROUS_NAMES = [
    ("os", "system"), ("posix", "system"), ("nt", "system"), ("builtins", "eval"), ("__builtin__", "eval"), ("builtins", "exec"), ("builtins", "getattr"),
    ("builtins", "__import__"), ("builtins", "open"), ("builtins", "compile"), ("subprocess", "Popen"), ("subprocess", "call"), ("functools", "partial"),
    ("operator", "attrgetter"), ("operator", "methodcaller"), ("importlib", "import_module"), ("runpy", "run_path"), ("torch.hub", "load"),
    ("torch._utils", "_import_dotted_name"), ("torch.serialization", "load"), ("torch", "load"), ("cresset", "load"), ("cresset.serialization.saving", "save"),
    ("pickle", "loads"), ("_pickle", "loads"), ("shutil", "rmtree"), ("ctypes", "CDLL"), ("code", "interact"), ("pty", "spawn"), ("socket", "socket"),
    ("types", "FunctionType"), ("types", "CodeType"), ("marshal", "loads"), ("builtins", "type"), ("builtins", "object"), ("copyreg", "_reconstructor"),
    ("copyreg", "add_extension"), ("numpy.testing._private.utils", "runstring"), ("numpy", "load"), ("webbrowser", "open"), ("timeit", "timeit"),
    ("collections", "namedtuple"), ("builtins", "setattr"), ("builtins", "vars"), ("builtins", "map"), ("builtins", "breakpoint"), ("sys", "exit"), ("asyncio", "run"),
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
        "getattr chain": b"\x80\x02" + named("builtins", "getattr") + named("os", "path") + b"X\x06\x00\x00\x00system\x86R" + argument + b"\x85R.",
        "dotted name": b"\x80\x04" + text("collections") + text("abc.sys.modules") + b"\x93.",
        "dotted name through the list": b"\x80\x04" + text("collections") + text("OrderedDict.__init__.__globals__") + b"\x93.",
        "dotted name of a constructor": b"\x80\x04" + text("torch._utils") + text("_rebuild_tensor_v2.__globals__") + b"\x93.",
        "BUILD poisons a class": b"\x80\x02" + named("collections", "OrderedDict") + b"}X\x05\x00\x00\x00itemsNsb.",
        "BUILD poisons an instance": b"\x80\x02" + named("collections", "OrderedDict") + b")R}X\x05\x00\x00\x00itemsNsb.",
        "BUILD sets __class__": b"\x80\x02" + named("collections", "OrderedDict") + b")R}X\x09\x00\x00\x00__class__" + named("collections", "Counter") + b"sb.",
        "BUILD with slots": b"\x80\x02" + named("collections", "OrderedDict") + b")RN}X\x09\x00\x00\x00__class__" + named("collections", "Counter") + b"s\x86b.",
        "BUILD on a list": b"\x80\x02]}X\x01\x00\x00\x00aNsb.",
        "BUILD on a function's name": b"\x80\x02" + named("_codecs", "encode") + b"}X\x08\x00\x00\x00__call__Nsb.",
        "REDUCE of a string": b"\x80\x02X\x09\x00\x00\x00os.system" + argument + b"\x85R.",
        "REDUCE of a made object": b"\x80\x02" + named("collections", "Counter") + b")R" + argument + b"\x85R.",
        "REDUCE of a dtype": b"\x80\x02" + named("torch", "float32") + argument + b"\x85R.",
        "defaultdict with a function": b"\x80\x02" + named("collections", "defaultdict") + named("os", "getcwd") + b"\x85R.",
        "defaultdict that makes storages": b"\x80\x02" + named("collections", "defaultdict") + named("torch", "FloatStorage") + b"\x85R.",
        "Tensor called with a size": b"\x80\x02" + named("torch", "Tensor") + b"J\xff\xff\xff\x7f\x85R.",
        "storage called with a size": b"\x80\x02" + named("torch.storage", "UntypedStorage") + b"J\xff\xff\xff\x7f\x85R.",
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
        "copies of one list": b"\x80\x02]q\x00(" + b"N" * 20000 + b"e(" + (named("builtins", "set") + b"q\x01h\x00\x85R" + b"h\x01h\x00\x85R" * 5000) + b"t.",
        "persistent id that is a name": b"\x80\x02" + named("os", "system") + b"Q.",
        "storage of another class": b"\x80\x02(X\x07\x00\x00\x00storage" + named("collections", "Counter") + b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x01tQ.",
        "storage without end": b"\x80\x02(X\x07\x00\x00\x00storage" + named("torch", "FloatStorage") + b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpu\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x0ftQ.",
        "negative storage": b"\x80\x02(X\x07\x00\x00\x00storage" + named("torch", "FloatStorage") + b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuJ\xff\xff\xff\xfftQ.",
        "storage with a path for a key": b"\x80\x02(X\x07\x00\x00\x00storage" + named("torch", "FloatStorage") + b"X\x10\x00\x00\x00../../etc/passwdX\x03\x00\x00\x00cpuK\x01tQ.",
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


def good_files():
    """Files of every kind, and (pickle, storages) of the archives among them."""
    files, pickles = [], []
    for value in good_values():
        for settings in ({}, {"pickle_protocol": 4}, {"_use_new_zipfile_serialization": False}):
            file = io.BytesIO()
            cresset.save(value, file, **settings)
            files.append(("pt", file.getvalue()))
            if settings.get("_use_new_zipfile_serialization", True):
                from cresset.serialization.archive import ArchiveReader, FileSource

                reader = ArchiveReader(FileSource(file := io.BytesIO(file.getvalue())))
                storages = [
                    reader.read(name)
                    for name in sorted((n for n in reader.records if n.startswith("data/")), key=lambda n: int(n[5:]))
                ]
                pickles.append((reader.read("data.pkl"), storages))
    tensors = {
        "a": cresset.ones(2, 3),
        "b": cresset.zeros(4, dtype=cresset.int64),
        "c": cresset.tensor([True]),
        "empty": cresset.zeros(0, 2),
    }
    files.append(("safetensors", safetensors.save(tensors, {"format": "pt"})))
    files.append(("safetensors", safetensors.save({"w": cresset.ones(5).bfloat16()})))
    return files, pickles


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


def change_bytes(data, rng):
    """Bits, bytes, numbers and pieces of `data` changed."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        if not data:
            break
        at = rng.randrange(len(data))
        kind = rng.randrange(7)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.randrange(256)
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            del data[at : at + rng.randrange(1, 33)]
        elif kind == 4:
            other = rng.randrange(len(data))
            data[at:at] = data[other : other + rng.randrange(1, 65)]
        elif kind == 5:
            width = rng.choice((1, 2, 4, 8))
            data[at : at + width] = (rng.choice(NUMBERS) & (256**width - 1)).to_bytes(width, "little")
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
            changed.insert(at, changed[rng.randrange(len(changed))])
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
            changed.insert(
                at,
                rng.choice(
                    (
                        b"R",
                        b"b",
                        b"\x81",
                        b"\x92",
                        b"\x93",
                        b"o",
                        b"0",
                        b"1",
                        b"2",
                        b"(",
                        b"t",
                        b"Q",
                        b"s",
                        b"u",
                        b"a",
                        b"e",
                        b"\x85",
                        b"\x86",
                        b"\x94",
                        b"\x90",
                        b"\x91",
                    )
                ),
            )
        else:
            argument = bytearray(changed[at])
            if len(argument) > 1:
                width = min(len(argument) - 1, rng.choice((1, 2, 4, 8)))
                argument[1 : 1 + width] = (rng.choice(NUMBERS) & (256**width - 1)).to_bytes(width, "little")
                changed[at] = bytes(argument)
    return b"".join(changed)


class Inputs:
    """The inputs of one seed: `make(rng)` gives (kind, bytes)."""

    def __init__(self):
        self.files, self.pickles = good_files()
        self.opcodes = [(opcodes_of(pickled), storages) for pickled, storages in self.pickles]
        self.spare = [opcodes for opcodes, _ in self.opcodes]
        self.hostile = [data for data in hostile_pickles().values() if len(data) < 2000]

    def make(self, rng):
        way = rng.randrange(10)
        if way < 3:
            kind, data = rng.choice(self.files)
            return kind, change_bytes(data, rng)
        if way < 7:
            opcodes, storages = rng.choice(self.opcodes)
            return "pt", archive(change_opcodes(opcodes, rng, self.spare), storages)
        if way < 8:
            pickled, storages = rng.choice(self.pickles)
            return "pt", archive(change_bytes(pickled, rng), storages)
        if way < 9:
            data = rng.choice(self.hostile)
            data = data if rng.random() < 0.3 else change_bytes(data, rng)
            return "pt", archive(data) if rng.random() < 0.5 else stream(data)
        kind, data = self.files[-1 - rng.randrange(2)]
        return kind, change_bytes(data, rng)


# ---------------------------------------------------------------- the watch


class Finding(Exception):
    """What must not happen."""


FORBIDDEN = (
    "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "subprocess.Popen", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.chmod", "os.putenv",
    "shutil.", "socket.", "ctypes.", "exec", "compile", "import", "open", "pty.", "webbrowser.", "code.__new__", "pickle.find_class", "sys._getframe", "mmap.",
)  # fmt: skip
_watching = [False]
_seen = []


def _audit(event, arguments):
    if _watching[0] and event.startswith(FORBIDDEN):
        _seen.append((event, str(arguments)[:200]))


def read(kind, data, weights_only):
    if kind == "safetensors":
        return safetensors.load(data)
    return cresset.load(io.BytesIO(data), weights_only=weights_only)


def try_input(kind, data, weights_only):
    """Read one input under watch; "value" or the name of the error. A Finding if something else happened."""
    _seen.clear()
    _native.reset_peak_host_memory()
    before = _native.host_memory_statistics()["in_use"]
    _watching[0] = True
    try:
        value = read(kind, data, weights_only)
        outcome = "value"
        del value
    except ERRORS as error:
        outcome = type(error).__name__
    except (AttributeError, NotImplementedError) as error:
        if weights_only and not isinstance(error, NotImplementedError):
            raise Finding(f"{type(error).__name__}: {error}") from error
        outcome = type(error).__name__
    except Exception as error:
        raise Finding(f"{type(error).__name__}: {error}") from error
    finally:
        _watching[0] = False
    if _seen:
        raise Finding(f"the file caused {_seen[0]}")
    used = _native.host_memory_statistics()["peak"] - before
    if used > len(data) + 2**20:
        raise Finding(f"{used} bytes of memory for a file of {len(data)}")
    return outcome


def warm_up():
    """Load what a good file needs, so that an import afterwards is a finding."""
    try:
        import numpy

        values = [numpy.float64(1.5), numpy.arange(3)]
    except ImportError:
        values = []
    for value in [*good_values(), *values]:
        for settings in ({}, {"_use_new_zipfile_serialization": False}):
            file = io.BytesIO()
            cresset.save(value, file, **settings)
            for weights_only in (True, False):
                file.seek(0)
                cresset.load(file, weights_only=weights_only)
    for data in hostile_pickles().values():
        for weights_only in (True, False):
            with contextlib.suppress(*ERRORS, AttributeError):
                read("pt", archive(data), weights_only)
    with contextlib.suppress(RuntimeError):
        safetensors.load(b"\x02" + bytes(7) + b"{]")


def run(count, seed, report=None):
    """Try `count` inputs. Gives how often each outcome came, and the findings as (number of the input, text)."""
    inputs, outcomes, findings = Inputs(), collections.Counter(), []
    warm_up()
    if _audit not in run.hooked:
        sys.addaudithook(_audit)
        run.hooked.append(_audit)
    has_alarm = hasattr(signal, "setitimer")
    if has_alarm:

        def too_long(*_):
            raise Finding("ten seconds without an end")

        before = signal.signal(signal.SIGALRM, too_long)
    try:
        for number in range(count):
            rng = random.Random(seed * 1_000_003 + number)
            kind, data = inputs.make(rng)
            if has_alarm:
                signal.setitimer(signal.ITIMER_REAL, 10)
            try:
                outcomes[try_input(kind, data, rng.random() < 0.5)] += 1
            except Finding as finding:
                findings.append((number, str(finding), data))
            if report and number % report == report - 1:
                print(f"{number + 1} inputs, {len(findings)} findings, {dict(outcomes)}", flush=True)
    finally:
        if has_alarm:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
    return outcomes, findings


run.hooked = []


def main():
    if len(sys.argv) != 3:
        print(__doc__)
        return 2
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    start = time.perf_counter()
    outcomes, findings = run(count, seed, report=100_000)
    seconds = time.perf_counter() - start
    for number, text, data in findings[:20]:
        path = f"finding-{seed}-{number}-{zlib.crc32(data):08x}.bin"
        with open(path, "wb") as file:
            file.write(data)
        print(f"input {number} of seed {seed}: {text}; kept as {os.path.abspath(path)}")
    print(
        f"{count} inputs in {seconds:.1f} s ({count / seconds:.0f} a second): {dict(outcomes)}, {len(findings)} findings"
    )
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
