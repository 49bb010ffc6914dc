"""torch.jit.script: what it compiles, what it shows of it, and what it says of what it refuses. (tests/compat compares
results with PyTorch's.)
"""

from typing import Dict, List, Optional, Tuple

import pytest

import cresset as torch
from cresset import Tensor, nn


def run(function, *args):
    scripted = torch.jit.script(function)
    scripted.graph.lint()
    return scripted(*args)


def test_a_function_runs_and_shows_its_graph_and_code():
    def f(x: Tensor, k: int = 2) -> Tensor:
        return x * k

    scripted = torch.jit.script(f)
    assert scripted(torch.ones(2)).tolist() == [2.0, 2.0] and scripted(torch.ones(2), k=5).tolist() == [5.0, 5.0]
    assert "aten::mul" in str(scripted.graph) and "torch.mul(x, k)" in scripted.code
    assert str(scripted.schema) == "f(Tensor x, int k=2) -> Tensor"


def test_a_function_is_compiled_once():
    def f(x: Tensor) -> Tensor:
        return x

    assert torch.jit.script(f) is torch.jit.script(f)


def test_comprehensions_may_have_conditions():
    def f(xs: List[int]) -> List[int]:
        return [x * 2 for x in xs if x > 1 if x < 9]

    assert run(f, [1, 2, 3, 10]) == [4, 6]


def test_a_list_can_be_walked_backwards():
    def f(xs: List[int]) -> int:
        total = 0
        for x in reversed(xs):
            total = total * 10 + x
        return total

    assert run(f, [1, 2, 3]) == 321


def test_a_comment_may_say_the_type_of_a_variable():
    def f(n: int):
        xs = []  # type: List[int]
        xs.append(n)
        return xs

    assert run(f, 3) == [3]


def test_no_grad_ends_with_its_block():
    def f(x: Tensor) -> Tuple[bool, bool]:
        with torch.no_grad():
            y = x * 2
        return y.requires_grad, (x * 2).requires_grad

    assert run(f, torch.ones(1, requires_grad=True)) == (False, True)


def test_set_grad_enabled_is_a_manager_and_a_call():
    def f(x: Tensor) -> bool:
        with torch.set_grad_enabled(False):
            y = x * 2
        return y.requires_grad

    assert run(f, torch.ones(1, requires_grad=True)) is False
    assert torch.is_grad_enabled()


def test_an_optional_is_known_after_a_check_that_leaves():
    def f(x: Optional[Tensor], k: Optional[int]) -> Tensor:
        if x is None:
            return torch.zeros(1)
        if k is None:
            raise ValueError("k is missing")
        return x * k

    assert run(f, None, None).item() == 0 and run(f, torch.ones(1), 3).item() == 3
    with pytest.raises(Exception, match="k is missing"):
        run(f, torch.ones(1), None)


def test_a_loop_may_be_left_from_its_middle():
    def f(xs: List[int]) -> Tuple[int, int]:
        seen = 0
        for x in xs:
            if x < 0:
                return -1, seen
            if x == 3:
                continue
            if x > 9:
                break
            seen += x
        return 0, seen

    assert run(f, [1, 3, 4]) == (0, 5) and run(f, [1, 20, 4]) == (0, 1) and run(f, [1, -1]) == (-1, 1)


def test_loops_in_loops_may_be_left_together():
    def f(n: int) -> int:
        i = 0
        while True:
            for j in range(10):
                if i * j > n:
                    return i * 100 + j
            i += 1
            if i > 50:
                break
        return -1

    expected = next(i * 100 + j for i in range(51) for j in range(10) if i * j > 20)
    assert run(f, 20) == expected and run(f, 10**6) == -1


def test_dicts_keep_the_order_of_insertion():
    def f() -> List[str]:
        d: Dict[str, int] = {}
        for word in ["c", "a", "b"]:
            d[word] = len(d)
        return list(d.keys())

    assert run(f) == ["c", "a", "b"]


def test_modules_with_equal_layers_share_their_types():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 3))
    scripted = torch.jit.script(model)
    types = [scripted._modules[name]._script_type for name in ("0", "1", "2")]
    assert types[0] is types[1] and types[0] is not types[2]


def test_parameters_are_shared_with_the_module():
    model = nn.Linear(2, 2)
    scripted = torch.jit.script(model)
    assert scripted.weight is model.weight
    scripted(torch.ones(1, 2)).sum().backward()
    assert model.weight.grad is not None


def test_inlined_graph_has_no_calls():
    scripted = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    assert "prim::CallMethod" in str(scripted.forward.graph)
    inlined = scripted.forward.inlined_graph
    inlined.lint()
    assert "prim::Call" not in str(inlined) and "aten::linear" in str(inlined)


class TestRefusals:
    """Each names the file, the line, a caret and the reason."""

    def refused(self, function):
        with pytest.raises(Exception) as caught:
            torch.jit.script(function)
        text = str(caught.value)
        assert "test_script.py" in text and "<--- HERE" in text, text
        return caught.value

    def test_an_import_in_a_function(self):
        def f(x: Tensor):
            import random

            return x + random.random()

        error = self.refused(f)
        assert isinstance(
            error, torch.jit.frontend.UnsupportedNodeError
        ) and "import statements aren't supported" in str(error)

    def test_a_name_that_is_not_there(self):
        def f(x: Tensor):
            return nothing_of_that_name  # noqa: F821

        assert "undefined value nothing_of_that_name" in str(self.refused(f))

    def test_types_that_do_not_fit(self):
        def f(x: int, y: str):
            return x + y

        error = self.refused(f)
        assert isinstance(error, RuntimeError) and "aten::add.int(int a, int b)" in str(error)

    def test_the_chain_of_calls_is_told(self):
        def inner(x: Tensor):
            return x.nothing()

        def f(x: Tensor):
            return inner(x)

        text = str(self.refused(f))
        assert (
            "'Tensor' object has no attribute or method 'nothing'" in text
            and "'inner' is being compiled since it was called from" in text
        )

    def test_a_variable_of_one_branch(self):
        def f(x: int):
            if x > 1:
                y = 3
            return y

        assert "y is not defined in all branches" in str(self.refused(f))

    def test_a_variable_that_changes_its_type_in_a_loop(self):
        def f(n: int):
            y = None
            for i in range(n):
                y = i
            return y

        assert "previously had type NoneType but is now being assigned to a value of type int" in str(self.refused(f))

    def test_an_attribute_that_has_no_type(self):
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.thing = object()

            def forward(self, x: Tensor):
                return self.thing

        assert "failed to convert Python type: 'object'" in str(self.refused(M()))

    def test_a_failed_compilation_can_be_tried_again(self):
        def f(x: Tensor):
            return x.nothing()

        first, second = str(self.refused(f)), str(self.refused(f))
        assert first == second

    def test_a_class_of_modules(self):
        with pytest.raises(RuntimeError, match="inherits from nn.Module"):
            torch.jit.script(nn.Linear)

    def test_source_that_is_not_there(self):
        scope = {"torch": torch, "__name__": "nowhere"}
        exec("def f(x):\n    return x\n", scope)
        with pytest.raises(OSError, match="Can't get source"):
            torch.jit.script(scope["f"])


class TestCompilationUnit:
    def test_functions_of_a_text_call_each_other(self):
        unit = torch.jit.CompilationUnit(
            "def twice(x: Tensor) -> Tensor:\n    return torch.add(x, x)\ndef f(x: Tensor, n: int=2):\n    for i in "
            "range(n):\n        x = twice(x)\n    return x.relu()\n"
        )
        assert unit.f(torch.ones(1)).item() == 4 and unit.twice(torch.ones(1)).item() == 2
        assert unit.find_function("g") is None and len(unit.get_functions()) == 2

    def test_names_of_the_program_around_are_seen(self):
        def doubled(x: torch.Tensor):
            return x * 2

        text = "def f(x):\n    # type: (int) -> Tensor\n    return doubled(torch.full([1], float(x))) + _Point(3).x"
        assert torch.jit.CompilationUnit(text).f(4).item() == 11
        text = "def f(x: Tensor):\n    return twice(x)\n"
        unit = torch.jit.CompilationUnit()
        unit.define(text, rcb=lambda name: doubled if name == "twice" else None)
        assert unit.f(torch.ones(1)).item() == 2
        with pytest.raises(RuntimeError, match="undefined value twice"):
            torch.jit.CompilationUnit(text)

    def test_the_frame_that_names_are_looked_up_in_can_be_further_out(self):
        def made(text):
            return torch.jit.CompilationUnit(text, _frames_up=1)

        def tripled(x: torch.Tensor):
            return x * 3

        assert made("def f(x: Tensor):\n    return tripled(x)\n").f(torch.ones(1)).item() == 3

    def test_numbers_of_the_program_around_are_refused_as_in_scripts(self):
        number = 3
        with pytest.raises(RuntimeError, match="python value of type 'int' cannot be used as a value"):
            torch.jit.CompilationUnit("def f(x: Tensor):\n    return x + number\n")
        assert number == 3

    def test_an_operator_that_is_not_there_is_refused(self):
        with pytest.raises(RuntimeError, match="has no attribute or method 'nothing'"):
            torch.jit.CompilationUnit("def f(x: Tensor):\n    return torch.nothing(x)\n")


class _Point:
    def __init__(self, x: int):
        self.x = x


def test_what_was_compiled_can_be_forgotten():
    from cresset.jit.scripting import unit

    scripted = torch.jit.script(nn.Linear(2, 2))
    assert nn.Linear in torch.jit._recursive.concrete_type_store.type_store
    torch.jit._recursive.concrete_type_store = torch.jit._recursive.ConcreteTypeStore()
    torch.jit._state._clear_class_state()
    assert not unit.module_types and scripted(torch.ones(1, 2)).shape == (1, 2)
    assert torch.jit.script(nn.Linear(2, 2))(torch.ones(1, 2)).shape == (1, 2)


@pytest.mark.parametrize("default", [[1], {"a": 1}, ([1], 2)])
def test_defaults_that_a_call_could_change_are_refused(default):
    def f(x, y=default):
        return x

    with pytest.raises(RuntimeError, match=r"Mutable default parameters are not supported.*\n.*on parameter y"):
        torch.jit.script(f)


def test_signatures_are_printed_as_pytorch_prints_them():
    def f(x, a: float = 2.0, b: float = 1e-5, c: str = "d", e: Tuple[int, float] = (1, -3.0)) -> Tuple[int, float]:
        return e

    def one_more(x: int) -> int:
        return x + 1

    def later(x: int) -> torch.jit.Future[int]:
        return torch.jit.fork(one_more, x)

    assert str(torch.jit.script(f).schema) == (
        'f(Tensor x, float a=2., float b=1.0000000000000001e-05, str c="d", (int, float) e=(1, -3.)) -> ((int, float))'
    )
    assert str(torch.jit.script(later).schema) == "later(int x) -> Future(int)"
