"""A topic is one word on every floor: native/ops, native/cuda, the CUDA kernels, cresset/ops and tests/ops agree on the
names of their files.

A file is `<topic>` or `<topic>_<part>`. What several topics use is machinery and has a name of its own, which is listed
here.
"""

from pathlib import Path

import pytest

from cresset.ops import TOPICS

ROOT = Path(__file__).resolve().parents[2]

# Machinery of cresset/ops: how operators are offered and what their files share.
PYTHON_MACHINERY = {
    "__init__", "registry", "autocast", "batches", "dimensions", "namespaces", "return_types", "aten_forms",
    "aten_transformer", "aten_table", "tags", "attention_choice", "homes",
}  # fmt: skip
# Tests of what holds for all topics.
ABOUT_ALL = {"aten_table", "hostile_arguments", "private_layout", "rare_calls", "signals", "threads"}
# Words of the native floors that are machinery, or instruction sets and libraries, or topics of the floors below the
# operators.
NATIVE_MACHINERY = {
    "channel_sums", "fold", "gemm", "indexed_walk", "ordered_items", "patches", "older_overload", "update", "backend",
    "compact", "cpu",
    "lapack",
    "activity", "background", "compile", "cublas", "cudnn", "cufft", "cupti", "cusolver",
    "device", "driver", "fault", "fused", "group_text",
    "copies", "launch", "library", "lookback", "many", "nccl", "slots",
    "memory", "printed", "queue", "replay", "radix_sort",
    "transpose", "wait", "block", "complex", "digits", "divider", "float8", "math", "ordered_keys", "philox", "rows",
    "special", "tensor_core", "types",
    "extremes",
}  # fmt: skip
PYTHON_TOPICS = {*TOPICS, "pointwise"}


def topic_of(stem, known):
    """The topic that a file is about: the longest beginning of its name, up to an underscore, that is one."""
    parts = stem.split("_")
    return next((name for end in range(len(parts), 0, -1) if (name := "_".join(parts[:end])) in known), None)


def test_every_file_of_the_operators_is_a_topic_or_machinery():
    stems = {file.stem for file in (ROOT / "src" / "cresset" / "ops").glob("*.py")}
    assert stems - PYTHON_MACHINERY == set(TOPICS)


def test_every_test_of_the_operators_is_about_a_topic():
    stems = {file.stem.removeprefix("test_") for file in (ROOT / "tests" / "ops").glob("test_*.py")}
    assert {stem for stem in stems - ABOUT_ALL if topic_of(stem, PYTHON_TOPICS) is None} == set()


@pytest.mark.parametrize(
    "folder, suffix", [("native/ops", ".cpp"), ("native/cuda", ".cpp"), ("src/cresset/cuda/kernels", ".cuh")]
)
def test_native_files_have_the_same_words(folder, suffix):
    stems = {file.stem for file in (ROOT / folder).glob(f"*{suffix}")}
    assert stems
    assert {stem for stem in stems if topic_of(stem, PYTHON_TOPICS | NATIVE_MACHINERY) is None} == set()


@pytest.mark.parametrize(
    "stem, topic",
    [
        ("scan", "scan"),
        ("matmul_integer", "matmul"),
        ("convolution_winograd_avx2", "convolution"),
        ("scanning", None),
        ("products", None),
    ],
)
def test_a_word_of_its_own_is_found(stem, topic):
    assert topic_of(stem, PYTHON_TOPICS) == topic
