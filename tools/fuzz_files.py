"""Feed damaged and hostile files to everything that reads files: python tools/fuzz_files.py COUNT SEED [KIND ...].

Each input is a good file with bits, bytes, pieces or opcodes changed, or a pickle that would run code in Python's own
unpickler. A reader may give a value or one of its errors. Anything else is a finding: another exception, code that
runs, an import, a file that is written, more memory than SECURITY.md promises, a program whose tensors or whose values
take more than the file's size and a megabyte, ten seconds of work or two minutes without an end, a page with a script,
a terminal sequence in what is printed. The inputs depend on the seed alone.

The kinds: pt, module (saved whole), program (TorchScript), exported (.pt2), names, safetensors, npy, npz, tar, events,
records (of runs), inspect, picture, idx, cifar. Beside one another they come in these proportions: WEIGHTS.
"""

import ast
import collections
import contextlib
import ctypes
import io
import itertools
import logging
import os
import pickle
import random
import re
import resource
import signal
import sys
import time
import tracemalloc
import types
import warnings
import zlib

import cresset
from cresset import vision
from cresset.data.readers import arrays, tar
from cresset.serialization import bounds, safetensors
from cresset.train import report
from cresset.vision import pictures
from cresset.vision.datasets import cifar, mnist

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fuzz_inputs import (  # noqa: E402, F401
    DANGEROUS_NAMES,
    PROGRAMS,
    WEIGHTS,
    Inputs,
    archive,
    good_modules,
    good_values,
    hostile_pickles,
    named,
    records_archive,
    stream,
)

ERRORS = (pickle.UnpicklingError, RuntimeError, EOFError, ValueError)


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


def read_exported(data, strict):
    """Load, and sometimes print and make the module that would run; a program that was changed is not run, but its
    source is looked at.
    """
    program = cresset.export.load(io.BytesIO(data), extra_files={"note.txt": ""})
    sources = [program.graph_module.code]
    if strict:
        text = str(program)
        sources.append(program.module().code)
        if not (text + sources[1]).replace("\n", "").isprintable():
            raise Finding(f"a program prints {text!r}")
    for source in sources:
        check_source(source)
    return program.state_dict


CALLED = re.compile(r"torch\.ops\.aten\.\w+\.\w+|_?operator[._]\w+|_(un)?flatten|getattr|device")
HARMLESS = (
    ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Assign, ast.Return, ast.Expr, ast.Constant, ast.Name,
    ast.Load,
    ast.Store, ast.Attribute, ast.Subscript, ast.Tuple, ast.List, ast.Dict, ast.Call, ast.keyword, ast.BinOp,
    ast.UnaryOp,
    ast.Compare, ast.operator, ast.unaryop, ast.cmpop,
)  # fmt: skip


def check_source(source):
    """A finding if the source of a graph does more than call operators."""
    for part in ast.walk(ast.parse(source.strip() + "\n")):
        if not isinstance(part, HARMLESS):
            raise Finding(f"the source of a graph has {type(part).__name__}: {source}")
        if isinstance(part, ast.Call) and not CALLED.fullmatch(ast.unparse(part.func)):
            raise Finding(f"the source of a graph calls {ast.unparse(part.func)}: {source}")


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
    "exported": read_exported,
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
    if _watching[0] in PROGRAMS and (event, "<unknown>") in (
        ("compile", arguments[1] if len(arguments) > 1 else None),
        ("open", arguments[0]),
    ):
        # ast.parse: a syntax tree and no code (running any is the event "exec"); for its error it looks for a file of
        # this name
        return
    if _watching[0] == "exported" and event == "compile" and str(arguments[1]).startswith("<fx graph "):
        return  # the source that a graph has; `check_source` looks at it
    if (
        _watching[0]
        and event.startswith(FORBIDDEN)
        and not (event == "open" and arguments[0] == place.path and arguments[1] in ("rb", "r"))
    ):
        _seen.append((event, str(arguments)[:200]))


MEGABYTE = 1 << 20
LARGE, COUNTED = 20_000, 16  # the values of programs of this size, and of one in so many others, are counted


def check_values(kind, data, strict):
    """A finding if reading the program takes more than its share: the system counts what the process got, which may be
    a table of the interpreter that grew just now, and not what it had already; here what is allocated is counted. Too
    much is counted again: a part of the library that a file is the first to need, and a table that grows, are so once.
    """
    for _ in range(2):
        tracemalloc.start()
        with contextlib.suppress(Exception):
            READERS[kind](data, strict)
        values = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        if values <= len(data) + MEGABYTE:
            return
    raise Finding(f"{values} bytes of values for a file of {len(data)}")


def try_input(kind, data, strict, memory):
    """Read one input under watch; "value" or the name of the error. A Finding if something else happened."""
    _seen.clear()
    if kind in PROGRAMS:
        memory.start()
    in_use = cresset._native.host_memory_statistics()["in_use"]
    cresset._native.reset_peak_host_memory()
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
    if kind in PROGRAMS:
        tensors = cresset._native.host_memory_statistics()["peak"] - in_use
        if tensors > len(data) + MEGABYTE:
            raise Finding(f"{tensors} bytes of tensors for a file of {len(data)}")
        if memory.used() > len(data) + MEGABYTE or len(data) > LARGE or zlib.crc32(data) % COUNTED == 0:
            check_values(kind, data, strict)
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
    for kind, strict in itertools.product(inputs.kinds, (True, False)):
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
            records_archive(records, [name for name in records if name.startswith("code/")])
            for records in inputs.programs
        ]
    if kind == "exported":
        return [records_archive(records) for records in inputs.exported]
    if kind == "module":
        return [archive(b"".join(opcodes), storages) for opcodes, storages in inputs.modules]
    return [archive(b"N."), *inputs.others["npz"], *inputs.others["npy"]] if kind == "inspect" else inputs.others[kind]


class Memory:
    """The most memory that the process had since `start`, as the system counts it; nothing where it does not."""

    def __init__(self):
        self.counts, self.peak, self.most, self.before = os.access("/proc/self/clear_refs", os.W_OK), 0, 0, 0
        # Blocks of 256 kB and more come from the system and go back to it, or one that is kept would hide the next.
        if hasattr(ctypes.CDLL(None), "mallopt"):
            M_MMAP_THRESHOLD = -3
            ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 1 << 18)

    def start(self):
        self.used()
        if self.counts:
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")
            self.before = self._read("VmRSS")

    def used(self):
        used = self._read("VmHWM") - self.before if self.counts and self.before else 0
        self.peak, self.most = max(self.peak, used), max(self.most, used)
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
            return kind, data, try_input(kind, data, rng.random() < 0.5, memory)
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
            memory.most = 0  # since the block began, from any start to the next
            for number in block:
                kind, _, outcome = attempt(number)
                outcomes[outcome] += 1
                outcomes[kind] += 1
            if max(memory.used(), memory.most) > promised("", 0):  # which each of them may take
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
