"""The examples in the docstrings of nn and optim run and print what they say."""

import doctest
import importlib
import pkgutil

import pytest

import cresset
import cresset.nn.functional as F
from cresset import nn, optim

MODULES = [
    info.name
    for package in (nn, optim)
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
    if not info.name.endswith("__init__")
]


@pytest.mark.cpu_only("examples print no device")
@pytest.mark.parametrize("name", MODULES)
@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_examples(name):
    module = importlib.import_module(name)
    names = {"cresset": cresset, "torch": cresset, "nn": nn, "F": F, "optim": optim}
    assert doctest.testmod(module, extraglobs=names, raise_on_error=False).failed == 0
