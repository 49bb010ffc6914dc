"""Small programs that run in cresset and in PyTorch, and the comparison of what they return or raise."""

import inspect
import warnings

import pytest

import cresset

torch = pytest.importorskip("torch")


def plain(value):
    """A result as Python values, to compare across libraries."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def close(a, b):
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    if isinstance(a, (float, complex)) and isinstance(b, (float, complex)):
        return a == b or abs(a - b) <= 1e-5 * max(1, abs(a), abs(b)) or (a != a and b != b)
    return type(a) is type(b) and a == b


def outcome(program, lib):
    """What a program returns, or the class of what it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return plain(program(lib))
    except NameError:
        raise  # a mistake of the program itself, not what the library says
    except Exception as error:
        return f"{type(error).__name__}"


def leaf(lib, values, **options):
    return lib.tensor(values, requires_grad=True, **options)


def names(node, depth=4):
    """The names of the nodes behind, as nested lists."""
    if depth == 0 or node is None:
        return None
    return [node.name(), [names(behind, depth - 1) for behind, _ in node.next_functions]]


def cube(lib):
    class Cube(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 3 * x**2

    return Cube


def programs(*groups):
    """The functions of some classes, as parameters of a test."""
    return [
        pytest.param(program, id=f"{group.__name__}-{name}")
        for group in groups
        for name, program in vars(group).items()
        if inspect.isfunction(program)
    ]


def assert_same(program):
    expected, got = outcome(program, torch), outcome(program, cresset)
    assert close(got, expected), f"\ncresset: {got}\nPyTorch: {expected}"
