"""The examples in the documentation of cresset.vision give what they show."""

import doctest
import importlib
import pkgutil

import pytest

import cresset
import cresset.vision

pytest.importorskip("PIL")
MODULES = [found.name for found in pkgutil.walk_packages(cresset.vision.__path__, "cresset.vision.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name), extraglobs={"cresset": cresset}).failed == 0


def test_there_are_examples():
    found = [importlib.import_module(name) for name in MODULES]
    assert sum(len(doctest.DocTestFinder().find(module)) for module in found) > 20
