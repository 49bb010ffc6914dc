"""The marks that source carries for the compiler: in Python they change nothing but what can be asked."""

import subprocess
import sys
from typing import Dict, List, Optional, Tuple, Union

import pytest

import cresset as torch
from cresset._jit_internal import (
    FunctionModifiers,
    boolean_dispatch,
    get_torchscript_modifier,
    is_ignored_fn,
    should_drop,
)


@pytest.mark.parametrize(
    "mark, word",
    [
        (torch.jit.ignore, FunctionModifiers.IGNORE),
        (torch.jit.ignore(drop=True), FunctionModifiers.UNUSED),
        (torch.jit.ignore(), FunctionModifiers.IGNORE),
        (torch.jit.unused, FunctionModifiers.UNUSED),
        (torch.jit.export, FunctionModifiers.EXPORT),
    ],
)
def test_a_marked_function_runs_as_before(mark, word):
    @mark
    def double(x):
        return 2 * x

    assert double(3) == 6 and get_torchscript_modifier(double) == word


def test_a_function_without_a_mark_is_compiled_when_called():
    def plain():
        pass

    assert (
        get_torchscript_modifier(plain) == FunctionModifiers.DEFAULT
        and not is_ignored_fn(plain)
        and not should_drop(plain)
    )


def test_a_property_can_be_marked():
    class Box:
        @torch.jit.unused
        @property
        def size(self):
            return 3

    assert Box().size == 3 and should_drop(Box.size.fget)


def test_ignore_refuses_what_is_no_bool():
    with pytest.raises(RuntimeError, match="must be a bool or a function"):
        torch.jit.ignore(3)


def test_python_is_neither_scripting_nor_tracing():
    assert torch.jit.is_scripting() is False and torch.jit.is_tracing() is False


def test_fork_and_wait_give_the_result():
    future = torch.jit.fork(lambda a, b: a + b, 1, b=2)
    assert torch.jit.wait(future) == 3 and isinstance(future, torch.jit.Future)


def test_annotate_gives_the_value_and_attribute_keeps_both():
    assert torch.jit.annotate(List[int], [1]) == [1]
    assert tuple(torch.jit.Attribute(3, int)) == (3, int)


@pytest.mark.parametrize(
    "value, type_, expected",
    [
        ([1, 2], List[int], True),
        ([1, "a"], List[int], False),
        ({"a": [1]}, Dict[str, List[int]], True),
        ({1: [1]}, Dict[str, List[int]], False),
        ((1, "a"), Tuple[int, str], True),
        ((1,), Tuple[int, str], False),
        (None, Optional[int], True),
        ("x", Optional[int], False),
        (3, Union[int, str], True),
        (3, (str, int), True),
        ([torch.ones(1)], list[torch.Tensor], True),
        (3, int | None, True),
    ],
)
def test_isinstance_looks_into_containers(value, type_, expected):
    assert torch.jit.isinstance(value, type_) is expected


def test_isinstance_warns_that_an_empty_list_is_of_any_type():
    with pytest.warns(UserWarning, match="inner type of a container is lost"):
        assert torch.jit.isinstance([], List[int])


def test_isinstance_wants_to_know_what_is_inside():
    with pytest.raises(RuntimeError, match="without a contained type"):
        torch.jit.isinstance([1], list)


def test_interface_is_for_classes():
    with pytest.raises(RuntimeError, match="must be applied to a class"):
        torch.jit.interface(lambda: None)

    @torch.jit.interface
    class Walks:
        def walk(self, x: int) -> int:
            pass

    assert isinstance(Walks, type)


def test_an_interface_may_be_of_modules_but_not_of_a_kind_of_them():
    class Step(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            pass

    assert torch.jit.interface(Step) is Step
    with pytest.raises(RuntimeError, match="does not support inheritance"):
        torch.jit.interface(type("Sub", (Step,), {}))


def test_script_if_tracing_calls_python_when_nothing_traces():
    @torch.jit.script_if_tracing
    def add(a, b):
        """Adds."""
        return a + b

    assert add(1, 2) == 3 and add.__doc__ == "Adds."


def test_overloads_are_kept_by_name():
    @torch.jit._overload
    def f(x: int) -> int: ...

    @torch.jit._overload
    def f(x: str) -> str: ...

    from cresset._jit_internal import _get_fn_overloads, _qualified_name

    assert [g.__annotations__["x"] for g in _get_fn_overloads(_qualified_name(f))] == [int, str]


def test_settings_are_read_back():
    before = torch.jit.set_fusion_strategy([("STATIC", 1)])
    assert torch.jit.set_fusion_strategy(before) == [("STATIC", 1)]
    torch.jit.enable_onednn_fusion(True)
    assert torch.jit.onednn_fusion_enabled()
    torch.jit.enable_onednn_fusion(False)
    with torch.jit.strict_fusion(), torch.jit.fuser("fuser1"), torch.jit.optimized_execution(False):
        pass


def test_a_setting_that_is_none_is_refused():
    with pytest.raises(RuntimeError, match="STATIC"):
        torch.jit.set_fusion_strategy([("LUCKY", 1)])
    with pytest.raises(Exception, match="unrecognized fuser"), torch.jit.fuser("fuser9"):
        pass


def test_boolean_dispatch_chooses_by_one_argument():
    f = boolean_dispatch("flag", 1, False, lambda x, flag=True: ("yes", x), lambda x, flag=False: ("no", x), None, "f")
    assert f(1) == ("no", 1) and f(1, True) == ("yes", 1) and f(1, flag=True) == ("yes", 1) and f.__name__ == "f"


def test_the_marks_do_not_load_the_compiler():
    code = "import sys, cresset.jit; print(any(name.startswith('cresset.graph') for name in sys.modules))"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        == "False"
    )
