"""The examples in the documentation of files, mixed precision and devices run."""

import doctest
import importlib

import pytest

import cresset

MODULES = [
    "_utils", "accelerator", "amp.autocast_mode", "amp.grad_scaler", "backends", "backends.cpu", "backends.cuda",
    "backends.cudnn", "backends.mha", "backends.mps",
    "backends.openmp", "backends.precision", "cpu", "cuda", "cuda.memory", "cuda.streams", "mps", "mtia",
    "devices.absent", "safetensors", "serialization", "serialization.loading",
    "serialization.locations", "serialization.names", "serialization.options", "serialization.records",
    "serialization.safetensors", "serialization.saving",
    "storage", "xpu",
]  # fmt: skip


def examples():
    finder, found = doctest.DocTestFinder(exclude_empty=True), []
    for name in MODULES:
        module = importlib.import_module(f"cresset.{name}")
        names = {"cresset": cresset, "nn": cresset.nn, "optim": cresset.optim}
        found += [test for test in finder.find(module, f"cresset.{name}", module=module, globs=names) if test.examples]
    return found


@pytest.mark.parametrize("test", examples(), ids=lambda test: test.name)
def test_its_examples_give_what_they_show(test):
    said = []
    cresset.manual_seed(0)
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(test, out=said.append)
    assert said == [], "".join(said)


def test_there_are_examples():
    assert len(examples()) > 25
