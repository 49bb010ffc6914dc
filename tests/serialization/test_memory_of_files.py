"""What reading a file takes: at most 16 times its size and 16 MB, and no longer than its size warrants, whatever its
opcodes.
"""

import io
import os
import pickle
import struct
import subprocess
import sys
import time
import zipfile

import pytest

import cresset
from cresset.serialization import bounds

from .test_hostile_files import fuzz

COUNT = 400_000  # opcodes, so that one that takes 60 bytes is beyond the bound


def named(module, name):
    return fuzz.named(module, name) + b"q\x00"


def text(word):
    return b"X" + struct.pack("<I", len(word.encode())) + word.encode()


def numbers(count, tail=b""):
    """`count` different numbers, each as LONG1 of four bytes."""
    return b"".join(b"\x8a\x04" + struct.pack("<I", n) + tail for n in range(70_000, 70_000 + count))


def storage(key="0", count=1):
    return (
        b"("
        + text("storage")
        + fuzz.named("torch", "FloatStorage")
        + text(key)
        + text("cpu")
        + b"K"
        + bytes([count])
        + b"t"
    )


def hungry_pickles():
    """Pickles that make as much as they can of few bytes: from a title to the bytes."""
    tensor = (
        storage()
        + b"q\x01Qq\x02"
        + named("torch._utils", "_rebuild_tensor_v2")
        + b"(h\x02K\x00K\x01\x85K\x01\x85\x89}tq\x03"
    )
    module = fuzz.named("torch.nn.modules.linear", "Identity") + b"q\x00"
    found = {
        f"{name} over and over": b"N" + code * COUNT + b"."
        for name, code in {
            "EMPTY_SET": b"\x8f", "EMPTY_DICT": b"}", "EMPTY_LIST": b"]", "EMPTY_TUPLE": b")", "MARK": b"(",
            "NONE": b"N", "NEWTRUE": b"\x88", "DUP": b"2",
            "TUPLE1": b"\x85", "MEMOIZE": b"\x94", "LIST of nothing": b"(l", "TUPLE of nothing": b"(t",
            "DICT of nothing": b"(d", "FROZENSET of nothing": b"(\x91",
            "BININT1": b"K\x05", "BININT2": b"M\xff\xff", "BININT": b"J\xff\xff\xff\x7f",
            "LONG1 of nothing": b"\x8a\x00", "LONG1": b"\x8a\x05\x01\x02\x03\x04\x05",
            "LONG4 of nothing": b"\x8b\0\0\0\0", "INT": b"I999\n", "LONG": b"L999L\n", "FLOAT": b"F1\n",
            "BINFLOAT": b"G12345678", "UNICODE": b"Vab\n",
            "SHORT_BINUNICODE": b"\x8c\x02ab", "short text with a wide letter": b"\x8c\x05a\xf0\x9f\x98\x80",
            "BINBYTES": b"C\x02ab", "STRING": b"S'ab'\n",
            "SHORT_BINSTRING": b"U\x02ab", "BYTEARRAY8": b"\x96\x01\0\0\0\0\0\0\0a", "a dictionary of one": b"}NNs",
            "a set of one": b"\x8f(N\x90",
            "a list of one": b"]Na", "BINPUT": b"q\x07", "TUPLE2": b"N\x86", "TUPLE3": b"NN\x87",
            "SETITEM": b"}}0NNs0}",
        }.items()
    }  # fmt: skip
    found |= {
        "a tuple of many": b"(" + b"N" * COUNT + b"t.",
        "a list of many": b"](" + b"N" * COUNT + b"e.",
        "a list of many lists": b"](" + b"]" * COUNT + b"e.",
        "a dictionary of many numbers": b"}(" + numbers(COUNT // 6, b"N") + b"u.",
        "a dictionary of many numbers, one by one": b"}" + numbers(COUNT // 6, b"Ns") + b".",
        "a set of many numbers": b"\x8f(" + numbers(COUNT // 6) + b"\x90.",
        "a frozenset of many numbers": b"(" + numbers(COUNT // 6) + b"\x91.",
        "a memo with gaps": b"N" + b"".join(b"r" + struct.pack("<I", 7 * n + 5) for n in range(COUNT // 4)) + b".",
        "one wide letter in a long text": b"X" + struct.pack("<I",
            2 * COUNT + 4) + b"a" * (2 * COUNT) + b"\xf0\x9f\x98\x80.",
        "a long number": b"\x8b" + struct.pack("<I", COUNT) + b"\x7f" * COUNT + b".",
        "references to a storage": b"(" + storage() + b"q\x01Q" + b"h\x01Q" * (COUNT // 3) + b".",
        "references to a tensor": b"(" + tensor + b"h\x00h\x03R" * (COUNT // 5) + b".",
        "modules": b"(" + module + b"h\x00)\x81" * (COUNT // 4) + b".",
        "modules with state": b"(" + module + (b"h\x00)\x81}X\x01\x00\x00\x00aNsb") * (COUNT // 13) + b".",
        "copies of a long list": b"(](" + b"N" * 100_000 + b"eq\x01" + named("builtins",
            "list") + b"h\x00h\x01\x85R" * 10_000 + b".",
    }  # fmt: skip
    for module, name, arguments in (
        ("collections", "OrderedDict", b")"), ("collections", "Counter", b")"), ("collections", "defaultdict", b")"),
        ("builtins", "set", b")"),
        ("builtins", "dict", b")"), ("builtins", "list", b")"), ("builtins", "frozenset", b")"),
        ("builtins", "bytearray", b")"), ("builtins", "complex", b")"),
        ("torch", "Size", b")\x85"), ("collections", "deque", b")"), ("argparse", "Namespace", b")"),
        ("decimal", "Decimal", b")"), ("pathlib", "Path", b")"),
    ):  # fmt: skip
        found[f"{module}.{name} over and over"] = (
            b"(" + named(module, name) + (b"h\x00" + arguments + b"R") * (COUNT // 4) + b"."
        )
    return found


MEASURE = """
import os, pickle, sys, time
import cresset
def status(word):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(word))
for path in sys.argv[1:]:
    cresset.load  # what every load needs is there before the first is measured
    if os.fork() == 0:
        before, start, said = status("VmRSS"), time.perf_counter(), "value"
        try:
            value = cresset.safetensors.load_file(path) if path.endswith("safetensors") else cresset.load(path, weights_only=False)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"[:300]
        print(path, status("VmHWM") - before, time.perf_counter() - start, said, sep="\\t", flush=True)
        os._exit(0)
    os.wait()
"""  # noqa: E501


def measured(paths):
    """From each path to (bytes of memory at most, seconds, what came of it), each read by a process of its own."""
    warm = os.path.join(os.path.dirname(paths[0]), "warm.pt")
    cresset.save(cresset.nn.Identity(), warm)
    program = MEASURE.replace("cresset.load  #", f"cresset.load({warm!r}, weights_only=False)  #")
    done = subprocess.run(
        [sys.executable, "-c", program, *paths],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return {row[0]: (int(row[1]), float(row[2]), row[3]) for row in rows}


def written(folder, files):
    paths = {}
    for at, (title, data) in enumerate(files.items()):
        paths[title] = os.path.join(folder, f"{at}.{'safetensors' if data[8:9] == b'{' else 'pt'}")
        with open(paths[title], "wb") as file:
            file.write(data)
    return paths


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the memory of a process is read from /proc")
@pytest.mark.parametrize("form", ["archive", "stream"])
def test_no_opcode_takes_more_memory_than_promised(form, tmp_path):
    wrap = (lambda data: fuzz.archive(data, [bytes(64)])) if form == "archive" else fuzz.stream
    paths = written(tmp_path, {title: wrap(b"\x80\x04" + data) for title, data in hungry_pickles().items()})
    found = measured(list(paths.values()))
    assert len(found) == len(paths)
    refused = 0
    for title, path in paths.items():
        used, seconds, said = found[path]
        assert used <= bounds.promised(os.path.getsize(path)), (title, used / os.path.getsize(path), said)
        assert seconds < 60, (title, said)
        assert said == "value" or said.startswith(("UnpicklingError", "RuntimeError")), (title, said)
        refused += "16 times" in said
    assert refused > 20


def hungry_headers():
    """Headers of safetensors files whose values take much."""
    for title, inner in {
        "lists": b"[],",
        "objects": b"{},",
        "texts": b'"a",',
        "numbers": b"99999,",
        "wide letters": '\U0001f600"'.encode(),
    }.items():
        text = b'{"a":[' + inner * (3_000_000 // len(inner)) + b"0]}"
        yield title, struct.pack("<Q", len(text)) + text
    names = (
        b"{"
        + b",".join(
            b'"%d":{"dtype":"F32","shape":[16],"data_offsets":[%d,%d]}' % (n, 64 * n, 64 * n + 64)
            for n in range(40_000)
        )
        + b"}"
    )
    yield "names", struct.pack("<Q", len(names)) + names + bytes(64 * 40_000)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the memory of a process is read from /proc")
def test_no_header_takes_more_memory_than_promised(tmp_path):
    paths = written(tmp_path, dict(hungry_headers()))
    found = measured(list(paths.values()))
    for title, path in paths.items():
        used, seconds, said = found[path]
        assert used <= bounds.promised(os.path.getsize(path)), (title, used / os.path.getsize(path), said)
        assert seconds < 60 and (said == "value" or said.startswith("SafetensorError")), (title, said)
    assert found[paths["names"]][2] == "value"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the memory of a process is read from /proc")
def test_no_directory_takes_more_memory_than_promised(tmp_path):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a/data.pkl", b"N.")
        for number in range(20_000):
            archive.writestr(f"a/{number}", b"")
    paths = written(tmp_path, {"archive": file.getvalue()})
    used, _, said = measured(list(paths.values()))[paths["archive"]]
    assert said == "value" and used <= bounds.promised(len(file.getvalue()))


@pytest.mark.parametrize(
    "value",
    [
        [float(n) for n in range(300_000)],
        {n: n + 0.5 for n in range(300_000)},
        [str(n) for n in range(200_000)],
        {f"word {n}": n for n in range(100_000)},
        [{"a": n, "b": [n]} for n in range(30_000)],
        {n << 61: None for n in range(20_000)},
        set(range(200_000)),
        {(str(n), str(n + 1)): n for n in range(100_000)},
        {(n, n + 1): n for n in range(100_000)},
        [(n, n) for n in range(100_000)],
        [True] * 1_000_000,
    ],
    ids=lambda value: f"{type(value).__name__} of {len(value)}",
)
def test_large_files_of_plain_values_are_within_it(value):
    for settings in ({}, {"pickle_protocol": 4}, {"_use_new_zipfile_serialization": False}):
        file = io.BytesIO()
        cresset.save(value, file, **settings)
        file.seek(0)
        assert cresset.load(file) == value


def test_many_small_tensors_are_within_it():
    base = cresset.arange(1000.0)
    value = [base[n % 1000] for n in range(20_000)]
    for settings in ({}, {"_use_new_zipfile_serialization": False}):
        file = io.BytesIO()
        cresset.save(value, file, **settings)
        file.seek(0)
        assert [float(x) for x in cresset.load(file)[:3]] == [0.0, 1.0, 2.0]


def nested(levels, start=b")", wrap=b"\x85"):
    return start + wrap * levels


SLOW = {
    # Equal hashes: each new key is compared with all before it.
    "numbers with one hash": b"}(" + b"".join(b"\x8a\x0b" + (n * (2**61 - 1)).to_bytes(11, "little",
        signed=True) + b"N" for n in range(30_000)) + b"u.",
    "a set with one hash": b"\x8f(" + b"".join(b"\x8a\x0b" + (n * (2**61 - 1)).to_bytes(11, "little",
        signed=True) for n in range(30_000)) + b"\x90.",
    "complex numbers with one hash": b"}(" + fuzz.named("builtins", "complex") + b"q\x00N"
    + b"".join(b"h\x00J" + struct.pack("<i", -1000003 * n) + b"J" + struct.pack("<i",
        n) + b"\x86RN" for n in range(2000)) + b"u.",
    "pairs of numbers with one hash": b"}(" + b"".join(
        b"\x8a\x0b" + (n * (2**61 - 1)).to_bytes(11, "little", signed=True) + b"N\x86N" for n in range(30_000)) + b"u.",
    # Two keys that are equal, each a tower of pairs: comparing them would visit every path.
    "equal towers of pairs": b"}" + 2 * ((b"(K\x01\x91" + b"q\x00(h\x00h\x00\x86\x91" * 40 + b"Ns").replace(b"q\x00(h\x00", b"q\x000(h\x00")) + b".",  # noqa: E501
    "names of shared lists for a storage": b"]" + b"q\x00(h\x00h\x00l" * 60 + b"q\x01(" + text("storage") + fuzz.named("torch", "FloatStorage") + b"h\x01" + text("cpu") + b"K\x01tQ.",  # noqa: E501
    "a number of elements of shared lists": b"]" + b"q\x00(h\x00h\x00l" * 60 + b"q\x01(" + text("storage") + fuzz.named("torch", "FloatStorage") + text("0") + text("cpu") + b"h\x01tQ.",  # noqa: E501
    "a fraction with a large exponent": b"\x80\x02" + fuzz.named("fractions",
        "Fraction") + text("1e999999999") + b"\x85R.",
    "a tensor of no size copied": storage() + b"Qq\x01" + fuzz.named("torch._utils",
        "_rebuild_device_tensor_from_cpu_tensor") + b"("
    + fuzz.named("torch._utils", "_rebuild_tensor_v2") + b"(h\x01K\x00\x8a\x06\0\0\0\0\0\x10\x85K\x00\x85\x89}tR" + fuzz.named("torch", "float64") + text("cpu") + b"\x89tR.",  # noqa: E501
}  # fmt: skip


@pytest.mark.parametrize("title", SLOW)
def test_a_file_that_would_take_for_ever_is_refused_at_once(title):
    for data in (fuzz.archive(SLOW[title], [bytes(64)]), fuzz.stream(SLOW[title])):
        start = time.perf_counter()
        with pytest.raises((pickle.UnpicklingError, RuntimeError)):
            cresset.load(io.BytesIO(data), weights_only=False)
        assert time.perf_counter() - start < 20


def test_a_deep_list_of_storages_is_refused():
    data = fuzz.stream(b"N.").removesuffix(pickle.dumps([], 2)) + b"\x80\x02]" + nested(100_000) + b"a."
    with pytest.raises(RuntimeError, match="list of its storages"):
        cresset.load(io.BytesIO(data))


def test_the_names_in_a_file_take_no_more_than_promised():
    for piece in (b"N\x94", b"\x8c\x00\x94", b"cab\ncd\n"):
        data = fuzz.archive(b"\x80\x04" + piece * COUNT + b".")
        with pytest.raises(pickle.UnpicklingError, match="16 times"):
            cresset.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data))
