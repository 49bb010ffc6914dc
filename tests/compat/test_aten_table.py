"""The table of schemas is PyTorch's."""

import re

import pytest

import cresset
from cresset.ops import aten_table

torch = pytest.importorskip("torch")


def test_every_line_of_the_table_is_in_pytorchs_registry_in_the_same_order():
    theirs = {}
    for schema in torch._C._jit_get_all_schemas():
        theirs.setdefault(schema.name, []).append(re.sub(r"\bSymInt\b", "int", str(schema)))
    for name, lines in aten_table._lines().items():
        places = [theirs[name].index(line) for line in lines]
        assert places == sorted(places), name


def test_tags_are_those_of_pytorch():
    for name in ("sin.default", "add.Tensor", "add_.Tensor", "sum.dim_IntList", "nonzero.default", "bernoulli.default"):
        packet, _, overload = name.partition(".")
        ours, theirs = (getattr(getattr(lib.ops.aten, packet), overload).tags for lib in (cresset, torch))
        assert sorted(tag.name for tag in ours) == sorted(tag.name for tag in theirs), name
