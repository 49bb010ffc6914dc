"""The rules of the native half that a reader may rely on: where an operator's and a device's facts stand, and what
files are called.
"""

import re
from pathlib import Path

import pytest

import cresset

ROOT = Path(__file__).resolve().parents[2]
NATIVE, KERNELS, OPS = ROOT / "native", ROOT / "src/cresset/cuda/kernels", ROOT / "src/cresset/ops"

# Topics that end like a verb's noun all the same.
NOUNS = {"pooling", "indexing", "sorting", "scaling", "sampling", "resampling", "padding"}


def files(*patterns):
    return sorted(file for pattern in patterns for file in NATIVE.glob(pattern))


def code_of(file):
    """The text of a C++ file without its comments."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", file.read_text(), flags=re.DOTALL)


def registered(folder, macro):
    """file -> the names in its lines REGISTER(...)."""
    found = {file: re.findall(rf"^{macro}\((\w+)\)", file.read_text(), re.M) for file in files(f"{folder}/*.cpp")}
    return {file: names for file, names in found.items() if names}


REGISTERED = {"ops": registered("ops", "REGISTER"), "cuda": registered("cuda", "REGISTER_KERNELS")}


def topic_of(stem, topics):
    """The topic that a file's name begins with: `reduction_moments` is about `reduction`."""
    return next((t for t in sorted(topics, key=len, reverse=True) if stem == t or stem.startswith(t + "_")), None)


def python_topics():
    names = {file.stem for file in OPS.glob("*.py")} | {folder.name for folder in OPS.iterdir() if folder.is_dir()}
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("folder", ["ops", "cuda"])
def test_a_file_registers_under_its_own_name(folder):
    wrong = {file.name: names for file, names in REGISTERED[folder].items() if names != [file.stem]}
    assert not wrong


def test_every_file_that_adds_operators_or_kernels_registers_them():
    adds = {
        file
        for file in files("ops/*.cpp")
        if re.search(r"\br\.add\(|\br\.add_|\badd_older_overload\(r,", code_of(file))
    }
    adds |= {file for file in files("cuda/*.cpp") if "set_kernel(" in code_of(file)}
    known = set(REGISTERED["ops"]) | set(REGISTERED["cuda"])
    assert len(known) > 45
    assert adds - known == {NATIVE / "ops/older_overload.cpp"}  # which adds for others


def test_every_operator_written_down_is_registered():
    operators = set(cresset._native.operators())
    written = {}
    for file in REGISTERED["ops"]:
        for name in re.findall(r'\br\.add\(\s*"(\w+)(?:\.\w+)?\(', file.read_text()):
            written.setdefault(name, file.name)
    assert len(written) > 150
    assert {name: file for name, file in written.items() if name not in operators} == {}


def test_a_topic_has_one_name_on_every_floor():
    topics = python_topics()
    wrong = [
        f"native/{folder}/{file.name}: src/cresset/ops has no topic of this name"
        for folder in REGISTERED
        for file in REGISTERED[folder]
        if not topic_of(file.stem, topics)
    ]
    of_the_cpu = {topic_of(file.stem, topics) for file in REGISTERED["ops"]}
    wrong += [
        f"native/cuda/{file.name}: native/ops has no file of this topic"
        for file in REGISTERED["cuda"]
        if topic_of(file.stem, topics) not in of_the_cpu
    ]
    assert not wrong


def test_kernels_are_called_like_the_topic_or_the_machinery_that_launches_them():
    topics = python_topics() | {file.stem for file in files("cuda/*.cpp", "cuda/*.h")}
    entries = [file for file in sorted(KERNELS.glob("*.cuh")) if re.search(r'extern "C" __global__', file.read_text())]
    assert len(entries) > 20
    assert [file.name for file in entries if not topic_of(file.stem, topics)] == []


def test_files_are_called_by_nouns_not_by_what_they_are_doing():
    named = [*files("ops/*", "cuda/*"), *KERNELS.glob("*.cuh")]
    assert [f.name for f in named if any(w.endswith("ing") and w not in NOUNS for w in f.stem.split("_"))] == []


def test_no_floor_but_cuda_itself_names_the_cuda_device():
    found = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in files("**/*.h", "**/*.cpp")
        if file.parent.name != "cuda"
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if "DeviceType::cuda" in line
    ]
    assert not found


# Words in base/ and dispatch/ that are names of operators too, and what they stand for there.
OTHER_MEANINGS = {
    **dict.fromkeys("float double half bfloat16 bool int long short chalf cfloat cdouble char byte".split(), "a dtype"),
    **dict.fromkeys(["cpu", "cuda"], "a device"),
    "max": "no limit, in the files of a cgroup",
    "to_dtype": "the cast that autocast makes: called, not described",
    "mul": "the product of a gradient and a slope that was made before: called, not described",
}  # fmt: skip


def test_no_fact_of_a_single_operator_stands_in_dispatch_or_base():
    operators = set(cresset._native.operators())
    found = [
        f"{file.relative_to(ROOT)}: {word}"
        for file in files("base/*", "dispatch/*")
        for word in re.findall(r'"(\w+)"', code_of(file))
        if word in operators and word not in OTHER_MEANINGS
    ]
    assert not found


def test_the_plug_ins_of_a_device_are_its_backend():
    pointers = [
        f"{file.relative_to(ROOT)}: {line.strip()}"
        for file in files("tensor/*.h", "dispatch/*.h", "ops/*.h")
        for line in code_of(file).splitlines()
        if re.match(r"\s*extern\b.*\(\*\w*(device|launch|pinned)\w*\)", line)
    ]
    assert not pointers


def test_the_end_of_a_thread_wants_no_memory():
    """The C library would end the process where there is none; see Note [Destructors at the end of a thread]."""
    assert b"\0__cxa_thread_atexit" not in Path(cresset._native.__file__).read_bytes()
