"""Classes that are derived from ScriptModule: what is marked with script_method is compiled when a module is made."""

import copy
import io
from typing import List  # noqa: UP035  -- as old programs write it

import pytest

import cresset as torch


class Scaled(torch.jit.ScriptModule):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((size,), 2.0))

    @torch.jit.script_method
    def scale(self, x, times: int):
        return x * self.weight * times


class Stepped(Scaled):
    __constants__ = ["steps"]

    def __init__(self, size):
        super().__init__(size)
        self.steps = 2
        self.kept = torch.jit.Attribute([1, 2, 3], List[int])
        self.register_buffer("calls", torch.zeros(1))

    @torch.jit.script_method
    def forward(self, x):
        for i in range(self.steps):
            x = self.scale(x, i + 1)
        if bool(x.sum() > 100):
            x = x - 1
        self.calls += 1
        return x + len(self.kept)

    def in_python(self, x):
        return {"python": self(x)}


def test_marked_methods_run_as_programs_and_others_in_python():
    model = Stepped(2)
    assert isinstance(model, Stepped)
    assert isinstance(model, torch.jit.ScriptModule)
    assert model(torch.ones(2)).tolist() == [11.0, 11.0]
    assert model(torch.full((2,), 10.0)).tolist() == [82.0, 82.0]
    assert model.calls.item() == 2
    assert model.scale(torch.ones(2), 5).tolist() == [10.0, 10.0]
    assert model.in_python(torch.ones(2))["python"].tolist() == [11.0, 11.0]
    assert "def forward(self" in model.code
    assert "torch.sub(" in model.code
    assert (model.steps, model.kept) == (2, [1, 2, 3])


def test_a_script_module_has_the_registers_of_a_module():
    model = Stepped(3)
    assert sorted(model.state_dict()) == ["calls", "weight"]
    model.double().eval()
    assert model.weight.dtype is torch.float64
    assert not model.training
    model(torch.ones(3, dtype=torch.float64)).sum().backward()
    assert model.weight.grad.tolist() == [8.0, 8.0, 8.0]


def test_a_script_module_is_saved_copied_and_held_by_others():
    model, file = Stepped(2), io.BytesIO()
    torch.jit.save(model, file)
    assert torch.jit.load(io.BytesIO(file.getvalue()))(torch.ones(2)).tolist() == [11.0, 11.0]
    other = copy.deepcopy(model)
    other.weight.data.fill_(1.0)
    assert isinstance(other, Stepped)
    assert other(torch.ones(2)).tolist() == [5.0, 5.0]
    assert model(torch.ones(2)).tolist() == [11.0, 11.0]

    class Holder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, x):
            return self.inner(x) * 2

    assert torch.jit.script(Holder())(torch.ones(2)).tolist() == [22.0, 22.0]


def test_a_forward_that_is_not_marked_stays_pythons():
    class Plain(torch.jit.ScriptModule):
        def forward(self, x):
            return {"a": x, **{"b": 1}}

    assert Plain()(torch.ones(1))["b"] == 1


def test_what_cannot_be_compiled_is_refused_when_the_module_is_made():
    class Wrong(torch.jit.ScriptModule):
        @torch.jit.script_method
        def forward(self, x):
            return x.no_such_method()

    with pytest.raises(RuntimeError, match="no attribute or method 'no_such_method'"):
        Wrong()


class Heads(torch.nn.Module):
    """Layers of different shapes, one of which is asked for by its name."""

    def __init__(self):
        super().__init__()
        self.heads = torch.nn.ModuleDict(
            {"small": torch.nn.Linear(3, 2), "wide": torch.nn.Linear(3, 4), "plain": torch.nn.Identity()}
        )

    def forward(self, x, which: str):
        for name, head in self.heads.items():
            if name == which:
                return head(x)
        raise ValueError("no head " + which)


def test_a_loop_over_layers_of_other_types_is_left_by_return():
    heads = Heads()
    scripted, x = torch.jit.script(heads), torch.ones(1, 3)
    for which in heads.heads:
        assert torch.equal(scripted(x, which), heads(x, which))
    with pytest.raises(torch.jit.Error, match="no head tall"):
        scripted(x, "tall")
