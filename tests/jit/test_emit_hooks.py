"""What is told of functions and modules that were compiled; an archive written, read and written again is the same."""

import io
import zipfile
from typing import List, Optional  # noqa: UP035

import pytest

import cresset as torch
from cresset import nn
from cresset._jit_internal import _disable_emit_hooks


@pytest.fixture
def told():
    names = []
    torch._C._jit_set_emit_hooks(lambda module: names.append(module.name), lambda function: names.append(function.name))
    yield names
    torch._C._jit_set_emit_hooks(None, None)


def twice(x):
    return x + x


def test_each_function_is_told_of_once_the_called_one_first(told):
    def quadruple(x):
        return twice(twice(x))

    torch.jit.script(quadruple)
    assert told == ["twice", "quadruple"]
    torch.jit.script(quadruple)
    assert told == ["twice", "quadruple"]


def test_a_module_is_told_of_after_its_submodules(told):
    class Inner(nn.Module):
        def forward(self, x):
            return 2 * x

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner(x)

    torch.jit.script(Outer())
    assert told == ["Inner", "Outer"]
    with _disable_emit_hooks():
        torch.jit.trace(lambda x: x + 1, torch.ones(1))
    assert told == ["Inner", "Outer"]


def sources(program):
    file = io.BytesIO()
    torch.jit.save(program, file)
    with zipfile.ZipFile(file) as archive:
        texts = [archive.read(name).decode() for name in archive.namelist() if name.endswith(".py")]
    file.seek(0)
    return texts, torch.jit.load(file)


def first_of(x: Optional[List[int]], y: int) -> int:
    if x is None:
        y = 1
    else:
        y = x[0] + y
    return y


def never() -> torch.Tensor:
    raise ValueError("no result")


@pytest.mark.parametrize("make", [lambda: nn.Conv2d(1, 2, 3), lambda: first_of, lambda: never])
def test_what_is_read_is_written_as_it_was(make):
    texts, loaded = sources(torch.jit.script(make()))
    again, _ = sources(loaded)
    assert texts == again


def test_attributes_of_the_same_types_are_told_from_others():
    one, other, third = (torch.jit.script(module) for module in (nn.Linear(2, 3), nn.Linear(3, 2), nn.ReLU()))
    match = torch._C._ivalue_tags_match
    assert match(one._c, other._c) and not match(one._c, third._c)
