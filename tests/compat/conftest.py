"""The fixture `agree`: run the same small program in cresset and in PyTorch, and compare what comes out.

A program is Python text in which `torch` is the library and `np` is NumPy; its last line is an expression. What it
gives (tensors with dtype, shape, strides and elements; dtypes; sizes; text; numbers; nested lists and tuples of these),
or the class of what it raises, is compared.
"""

import ast
import math
import warnings

import pytest

import cresset


def described(value, lib):
    """A value as plain Python data that is the same for both libraries."""
    if isinstance(value, lib.Tensor):
        kind = str(value.dtype)
        if value.device.type == "meta":
            elements = "meta"
        else:
            plain = value.detach()
            small = value.dtype.itemsize == 1 and value.dtype.is_floating_point
            elements = described((plain.float() if small else plain).resolve_conj().tolist(), lib)
        strides = value.stride() if value.numel() else "of no elements"
        return ("Tensor", kind, tuple(value.shape), strides, bool(value.requires_grad), elements)
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value
    if isinstance(value, complex):
        return (described(value.real, lib), described(value.imag, lib))
    if isinstance(value, lib.Size):
        return ("Size", tuple(value))
    if isinstance(value, (list, tuple)):
        return [described(item, lib) for item in value]
    if isinstance(value, dict):
        return {key: described(item, lib) for key, item in value.items()}
    if value is None or isinstance(value, (bool, int, str, bytes)):
        return value
    if isinstance(value, type):
        return value.__name__
    if type(value).__module__ == "numpy":
        return ("numpy", str(value.dtype), value.tolist())
    return str(value).replace("cresset", "torch")


def outcome(program, lib):
    import numpy as np

    names = {"torch": lib, "np": np}
    body = ast.parse(program).body
    *statements, last = body
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(ast.Module(statements, []), "<program>", "exec"), names)
            return described(eval(compile(ast.Expression(last.value), "<program>", "eval"), names), lib)
    except Exception as error:
        return ("raises", type(error).__name__), str(error)


@pytest.fixture
def outcomes():
    """What a program gives in cresset and in PyTorch."""
    torch = pytest.importorskip("torch")
    return lambda program: (outcome(program, cresset), outcome(program, torch))


@pytest.fixture
def agree(outcomes):
    def check(program):
        ours, theirs = outcomes(program)
        raised = isinstance(theirs, tuple) and theirs and isinstance(theirs[0], tuple) and theirs[0][0] == "raises"
        if raised and isinstance(ours, tuple) and ours[:1] == theirs[:1]:
            return  # the class is the same; the sentences are our own
        assert ours == theirs, f"\n{program}\ncresset: {ours}\nPyTorch: {theirs}"

    return check
