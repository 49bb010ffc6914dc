"""Classes, containers and errors of scripts, as PyTorch's programs expect them."""

from typing import Dict, List, NamedTuple, Union  # noqa: UP035

import pytest

import cresset as torch
from cresset import nn


class Said(nn.SELU):
    def __prepare_scriptable__(self):
        return nn.ReLU()


def test_a_module_may_say_what_is_compiled_in_its_place():
    x = torch.tensor([-1.0, 2.0])
    model = nn.Sequential(Said(), nn.Identity())
    assert torch.jit.script(model)(x).tolist() == [0.0, 2.0]
    assert type(model[0]) is Said and torch.equal(model(x), nn.SELU()(x))


def test_a_function_may_stand_for_an_object():
    class Adder:
        def __call__(self, *numbers):
            return sum(numbers)

        def __prepare_scriptable__(self):
            def add(a: int, b: int) -> int:
                return a + b

            return add

    assert torch.jit.script(Adder())(1, 2) == 3


def test_a_scripted_list_is_shared_with_programs_and_has_one_type():
    numbers = torch.jit.script([1, 2])

    @torch.jit.script
    def grow(x: List[int]) -> None:
        x.append(3)

    grow(numbers)
    assert numbers == [1, 2, 3]
    for wrong in (lambda: numbers.append("a"), lambda: "a" in numbers, lambda: numbers.count("a")):
        with pytest.raises(TypeError, match="expected a value of type int"):
            wrong()


def test_a_scripted_dict_is_shared_with_programs_and_has_one_type():
    names = torch.jit.script({1: "a"})

    @torch.jit.script
    def add(x: Dict[int, str]) -> None:
        x[2] = "b"

    add(names)
    assert names == {1: "a", 2: "b"}
    with pytest.raises(TypeError):
        names["c"] = "c"
    with pytest.raises(KeyError):
        "c" in names  # noqa: B015


def test_methods_of_a_class_are_compiled_with_it():
    class Incomplete:
        def __init__(self):
            self.a = 1

        def get(self):
            return self.b

    with pytest.raises(RuntimeError, match="object has no attribute or method 'b'.*forget to initialize"):
        torch.jit.script(Incomplete)


def test_an_attribute_is_made_at_the_top_of_init():
    class Sometimes:
        def __init__(self, x: int):
            if x > 1:
                self.a = x

    with pytest.raises(RuntimeError, match="cannot be in a control-flow block"):
        torch.jit.script(Sometimes)


def test_a_class_may_name_itself_as_text_in_its_annotations():
    @torch.jit.script
    class Node:
        def __init__(self, a: int):
            self.a = a

        def count(self, others: List["Node"]) -> "Node":
            return Node(len(others))

    @torch.jit.script
    def count(node: Node) -> int:
        return node.count([node, node]).a

    assert count(Node(0)) == 2


class Times(NamedTuple):
    start: "int"
    steps: "List[float]"


def test_fields_of_named_tuples_may_be_annotated_by_text():
    @torch.jit.script
    def total(x: Times) -> float:
        return x.start + x.steps[0]

    assert total(Times(1, [0.5])) == 1.5


def test_objects_say_what_they_are_as_numbers_and_conditions():
    @torch.jit.script
    class Half:
        def __init__(self):
            self.a = 0.5

        def __int__(self):
            return int(self.a)

        def __float__(self):
            return self.a

        def __bool__(self):
            return True

    @torch.jit.script
    def numbers(x: Half):
        return int(x), float(x), bool(x)

    assert numbers(Half()) == (0, 0.5, True)


@torch.jit.interface
class Doubles:
    def run(self, x: int) -> int:
        pass


def test_an_attribute_of_an_interface_takes_any_object_that_has_its_methods():
    @torch.jit.script
    class Double:
        def __init__(self):
            self.factor = 2

        def run(self, x: int) -> int:
            return self.factor * x

    class Holder(nn.Module):
        doubles: Doubles

        def __init__(self):
            super().__init__()
            self.doubles = Double()

        def forward(self, x: int) -> int:
            return self.doubles.run(x)

    assert torch.jit.script(Holder())(3) == 6


def test_a_submodule_is_exchanged_by_one_of_its_type_alone():
    scripted = torch.jit.script(nn.Sequential(nn.Linear(1, 1), nn.ReLU()))
    scripted[0].weight.data.fill_(2)
    other = torch.jit.script(nn.Linear(1, 1))
    setattr(scripted, "0", other)
    assert scripted[0] is other
    with pytest.raises(RuntimeError, match="non-scripted module"):
        setattr(scripted, "0", nn.Linear(1, 1))
    with pytest.raises(RuntimeError, match="for field '0', but found"):
        setattr(scripted, "0", torch.jit.script(nn.ReLU()))


def test_a_union_has_its_members_in_one_order():
    @torch.jit.script
    def same(x: Union[str, int, None]) -> Union[None, str, int]:
        return x

    assert "x: Union[int, NoneType, str]) -> Union[int, NoneType, str]" in same.code


def test_constants_of_classes_may_be_none():
    class Holder(nn.Module):
        __constants__ = ["w"]  # noqa: RUF012

        def __init__(self):
            super().__init__()
            self.w = None

        def forward(self, x):
            return x, self.w

    import io

    file = io.BytesIO()
    torch.jit.save(torch.jit.script(Holder()), file)
    file.seek(0)
    assert torch.jit.load(file).w is None


def wrong_list():
    a: int = [1, 2]
    return a


def wrong_del(x: List[int]):
    del x[0:1]
    return x


def wrong_dict(x: Dict[str, int]):
    return {**x}


@torch.jit.ignore
class Ignored:
    pass


def makes_ignored(x):
    return Ignored()


@pytest.mark.parametrize(
    "function, words",
    [
        (wrong_list, "Expected an annotation of type List but got int"),
        (wrong_del, "deletion at a single index"),
        (wrong_dict, "Dict expansion"),
        (makes_ignored, "Cannot instantiate class 'Ignored'"),
    ],
)
def test_errors_say_what_programs_look_for(function, words):
    with pytest.raises((RuntimeError, torch.jit.frontend.FrontendError), match=words):
        torch.jit.script(function)


def inner(x: int) -> int:
    return x


def outer(x):
    return inner("text")


def outermost(x):
    return outer(x)


def test_an_error_names_who_called_whom():
    with pytest.raises(RuntimeError) as caught:
        torch.jit.script(outermost)
    assert "'outer' is being compiled since it was called from 'outermost'" in str(caught.value)


def test_a_module_without_super_init_is_refused_in_words():
    class Forgot(nn.Module):
        def __init__(self):
            self.a = 1

    with pytest.raises(RuntimeError, match=r"has not been initialized, did you forget to call 'super\(\)'"):
        torch.jit.script(Forgot())


def test_a_text_of_functions_may_be_indented():
    unit = torch.jit.CompilationUnit("""
        def double(x: int) -> int:
            return x + x
    """)
    assert unit.double(2) == 4


def test_a_future_has_its_type_in_square_brackets():
    def wait(x: torch.jit.Future[int]) -> int:
        return torch.jit._wait(x)

    assert "Future[int]" in str(torch.jit.script(wait).graph)
