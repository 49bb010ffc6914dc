"""What scripts take of Python's values: lists of elements, `out=`, numbers out of tensors, dataclasses, inheritance."""

import dataclasses
import functools
import io
import re
from dataclasses import dataclass
from math import inf, nan
from typing import Any, Dict, List, Tuple, Union

import pytest

import cresset
from cresset import Tensor, nn
from cresset.pytree import tree_leaves


def loaded(function):
    """The function, written to a file and read again."""
    file = io.BytesIO()
    cresset.jit.save(cresset.jit.script(function), file)
    return cresset.jit.load(io.BytesIO(file.getvalue()))


def rows(x):
    y: List[List[float]] = x.tolist()
    return y


def whole_numbers(x) -> List[int]:
    return x.tolist()


def one(x):
    return cresset.jit.annotate(float, x.item())


def test_tolist_gives_what_its_annotation_says():
    for run in (cresset.jit.script(rows), loaded(rows)):
        assert run(cresset.tensor([[1.0, 2.0], [3.0, 4.0]])) == [[1.0, 2.0], [3.0, 4.0]]
    assert cresset.jit.script(whole_numbers)(cresset.tensor([3, 4])) == [3, 4]
    assert cresset.jit.script(one)(cresset.tensor(2.5)) == 2.5


def test_tolist_without_an_annotation_or_of_another_kind_is_refused():
    def bare(x):
        return x.tolist()

    def texts(x):
        y: List[str] = x.tolist()
        return y

    with pytest.raises(RuntimeError, match=r"(?s)Expected type hint for result of tolist\(\).*line \d+.*<--- HERE"):
        cresset.jit.script(bare)
    with pytest.raises(RuntimeError, match="str is not one of the supported element types for tolist"):
        cresset.jit.script(texts)
    with pytest.raises(RuntimeError, match="annotation list dimension and runtime tensor dimension must match"):
        cresset.jit.script(rows)(cresset.ones(2))
    with pytest.raises(RuntimeError, match="annotation element type and runtime tensor element type must match"):
        cresset.jit.script(whole_numbers)(cresset.ones(2))


def into(x):
    y = cresset.empty(2, 3)
    cresset.add(x, 1, out=y)
    return cresset.sin(x, out=cresset.empty(0)) + y


def test_out_is_written():
    x = cresset.ones(2, 3)
    for run in (cresset.jit.script(into), loaded(into)):
        assert cresset.equal(run(x), x.sin() + 2)


def test_tensors_behind_an_ellipsis_are_refused_with_their_line():
    def behind(x, i: Tensor):
        return x[..., i]

    with pytest.raises(
        RuntimeError, match="(?s)Ellipses followed by tensor indexing.*test_script_values.py.*<--- HERE"
    ):
        cresset.jit.script(behind)


@dataclass(order=True)
class Point:
    x: float
    y: float = 2.0

    def norm(self) -> float:
        return (self.x * self.x + self.y * self.y) ** 0.5


@dataclass
class Counted:
    n: int
    seen: int = dataclasses.field(default=0, init=False)

    def __post_init__(self):
        self.twice = self.n * 2


@dataclass
class Listed:
    items: List[int] = dataclasses.field(default_factory=list)


def of_points(a: float) -> float:
    p = Point(a)
    if p == Point(a, 2.0) and p < Point(a, y=3.0) and Point(a + 1.0) >= p:
        return p.norm()
    return -1.0


def of_counted(n: int) -> int:
    c = Counted(n)
    c.seen += 1
    return c.twice + c.seen


def test_dataclasses_are_made_compared_and_ordered():
    assert cresset.jit.script(of_points)(1.5) == 2.5 and loaded(of_points)(1.5) == 2.5
    assert cresset.jit.script(of_counted)(3) == 7
    assert cresset.jit.script(Point) is Point


def test_a_dataclass_whose_defaults_are_made_is_refused():
    def use() -> int:
        return len(Listed().items)

    with pytest.raises(RuntimeError, match="default_factory of items is not supported"):
        cresset.jit.script(use)


class Base:
    def __init__(self, a: int):
        self.a = a

    def get(self) -> int:
        return self.a

    def both(self) -> int:
        return self.get() + 1


class Child(Base):
    def __init__(self, a: int):
        super().__init__(a)
        self.b = 10

    def get(self) -> int:
        return self.a * 2 + self.b


def of_child(a: int) -> int:
    return Child(a).both()


def test_a_class_has_the_methods_of_the_classes_above_it():
    assert cresset.jit.script(of_child)(2) == 15 and loaded(of_child)(2) == 15
    with pytest.raises(RuntimeError, match="does not support inheritance yet"):
        cresset.jit.script(Child)


class Packed(nn.Module):
    """Recurrent layers on sequences of several lengths."""

    def __init__(self, kind):
        super().__init__()
        self.layer = getattr(nn, kind)(3, 4, bidirectional=True)

    def forward(self, x: Tensor, lengths: Tensor):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
        out, state = self.layer(packed)
        padded, counts = nn.utils.rnn.pad_packed_sequence(out, total_length=6)
        return padded, counts, state


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_sequences_without_padding(kind):
    cresset.manual_seed(0)
    module, x, lengths = Packed(kind), cresset.randn(5, 3, 3), cresset.tensor([2, 5, 3])
    want = tree_leaves(module(x, lengths))
    for run in (cresset.jit.script(module), loaded(module)):
        for got, expected in zip(tree_leaves(run(x, lengths)), want, strict=True):
            assert cresset.equal(got, expected)


def total(packed: nn.utils.rnn.PackedSequence):
    return packed.data.sum(), packed.batch_sizes


def test_a_packed_sequence_is_an_argument():
    packed = nn.utils.rnn.pack_padded_sequence(cresset.ones(3, 2), cresset.tensor([3, 1]))
    result = cresset.jit.script(total)(packed)
    assert result[0].item() == 4.0 and result[1].tolist() == [2, 1, 1]


def test_text_is_stripped_of_white_space_and_nothing_else():
    def words(text: str) -> list[str]:
        return [text.strip(), text.lstrip(), text.rstrip(), text.strip("t")]

    text = " \ttent of nuf\n"
    assert cresset.jit.script(words)(text) == words(text)


def test_an_attribute_marked_with_its_type_is_its_value():
    class Counts(cresset.nn.Module):
        def __init__(self):
            super().__init__()
            self.seen = cresset.jit.Attribute({}, dict[str, int])

        def forward(self, word: str) -> int:
            self.seen[word] = self.seen[word] + 1 if word in self.seen else 1
            return self.seen[word]

    scripted = cresset.jit.script(Counts())
    assert [scripted("a"), scripted("a"), scripted("b")] == [1, 2, 1]


def test_buffers_that_are_not_persistent_are_in_a_compiled_modules_state_dict():
    """As in PyTorch, whose files have every buffer."""

    class Shift(cresset.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("by", cresset.ones(1), persistent=False)

        def forward(self, x: cresset.Tensor) -> cresset.Tensor:
            return x + self.by

    assert list(Shift().state_dict()) == [] and list(cresset.jit.script(Shift()).state_dict()) == ["by"]


def view_as_a_row(x: Tensor):
    return x.view(-1), x.view(4), x.view([2, 2])


def test_a_view_of_one_size_is_no_view_as_a_dtype():
    row, four, square = cresset.jit.script(view_as_a_row)(cresset.arange(4.0).reshape(2, 2))
    assert row.tolist() == four.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert square.shape == (2, 2)


def sum_beside_a_name(x: Tensor) -> Tuple[float, str]:
    return 1.5 + x.sum().item(), "a"


def test_a_number_in_a_tuple_becomes_what_is_asked_for():
    assert cresset.jit.script(sum_beside_a_name)(cresset.ones(2, dtype=cresset.int64)) == (3.5, "a")


class Overloaded(nn.Module):
    @cresset.jit._overload_method  # noqa: F811
    def twice(self, x: int) -> int: ...

    @cresset.jit._overload_method  # noqa: F811
    def twice(self, x: Tensor) -> Tensor: ...  # noqa: F811

    def twice(self, x):  # noqa: F811
        return x + x

    def forward(self, x: Tensor):
        return self.twice(x), self.twice(x.size(0))


@cresset.jit._overload  # noqa: F811
def half(x: int) -> float: ...


@cresset.jit._overload  # noqa: F811
def half(x: Tensor) -> Tensor: ...  # noqa: F811


def half(x):  # noqa: F811
    return x / 2


def halves(x: Tensor):
    return half(x), half(x.size(0))


def test_an_overload_that_fits_as_it_is_comes_before_one_that_converts():
    doubled, count = cresset.jit.script(Overloaded())(cresset.arange(3))
    assert (doubled.tolist(), count) == ([0, 2, 4], 6)
    divided, number = cresset.jit.script(halves)(cresset.arange(3))
    assert (divided.tolist(), number) == ([0.0, 0.5, 1.0], 1.5)


@cresset.jit.script
def how_many(x: List[int]) -> int:
    return len(x)


def test_a_class_is_no_list():
    with pytest.raises(RuntimeError, match="Expected a value of type 'List\\[int\\]'.*found type 'type'"):
        how_many(list)


def test_tensordot_takes_its_dimensions_in_every_form():
    a, b = cresset.ones(2, 3), cresset.ones(3, 4)

    def pairs(a, b):
        return cresset.tensordot(a, b, ([1], [0]))

    def lists(a, b):
        return cresset.tensordot(a, b, [[1], [0]])

    def number(a, b, dims: int):
        return cresset.tensordot(a, b, dims=dims)

    assert loaded(pairs)(a, b).tolist() == loaded(lists)(a, b).tolist() == [[3.0] * 4] * 2
    assert loaded(number)(a, b, 1).tolist() == [[3.0] * 4] * 2 and loaded(number)(a, b, 0).shape == (2, 3, 3, 4)
    with pytest.raises(cresset.jit.Error, match="dims >= 0"):
        loaded(number)(a, b, -1)


def test_a_function_with_some_arguments_given_is_called_with_them():
    more = functools.partial(cresset.add, other=2, alpha=3)

    def call(x):
        return more(x)

    assert loaded(call)(cresset.ones(2)).tolist() == [7.0, 7.0]


@pytest.mark.parametrize(
    ("pattern", "value", "text"),
    [
        ("%d|%i|%s", 2.5, "2|2|2.5"),
        ("%s|%s|%s", 3.0, "3.|3.|3."),
        ("%f|%e|%E", 2.5, "2.500000|2.500000e+00|2.500000E+00"),
        ("100%% of %s|%%|%d", 1.0, "100% of 1.|%|1"),
    ],
)
def test_percent_formats_write_numbers_as_torchscript_does(pattern, value, text):
    count = pattern.replace("%%", "").count("%")
    unit = cresset.jit.CompilationUnit(f'def f(x: float):\n    return "{pattern}" % ({"x, " * count})')
    assert unit.f(value) == text


@pytest.mark.parametrize(
    ("pattern", "kind", "value", "words"),
    [
        ("half %", "str", "a", "Incomplete format specifier"),
        ("%d", "str", "a", "%d requires a number for formatting, but got String"),
        ("%e", "Tensor", cresset.ones(1), "%e requires a number for formatting, but got Tensor"),
        ("%c", "str", "ab", "%c requires an int or char for formatting, but got String"),
        ("%s %s", "str", "a", "Too few arguments for format string"),
        ("plain", "str", "a", "Too many arguments for format string"),
        ("%.2f", "float", 1.5, "The specifier %. is not supported in TorchScript format strings"),
    ],
)
def test_percent_formats_say_what_does_not_fit(pattern, kind, value, words):
    unit = cresset.jit.CompilationUnit(f'def f(x: {kind}):\n    return "{pattern}" % x')
    with pytest.raises(RuntimeError, match=re.escape(words)):
        unit.f(value)


def test_slices_are_made_by_a_call_as_well():
    def pieces(x: List[int], t: Tuple[int, int, int], y: Tensor):
        every = slice(1, 4, 2)
        return (
            x[slice(2)],
            x[every],
            x[slice(None, None, 2)],
            t[slice(1, 3)],
            y[slice(1, 3), slice(None)],
            y[..., every],
        )

    x, y = [1, 2, 3, 4, 5], cresset.arange(24).view(4, 6)
    given, expected = cresset.jit.script(pieces)(x, (1, 2, 3), y), pieces(x, (1, 2, 3), y)
    assert given[:4] == expected[:4] == ([1, 2], [2, 4], [1, 3, 5], (2, 3))
    assert all(map(cresset.equal, given[4:], expected[4:]))

    def named(x: List[int]):
        return x[slice(1, stop=2)]

    with pytest.raises(RuntimeError, match="Slice does not accept any keyword arguments"):
        cresset.jit.script(named)


class Steps(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = nn.ModuleList([nn.Threshold(float(k), 0.0) for k in range(5)])

    def forward(self, x):
        for step in self.steps[1:3]:
            x = step(x)
        return x, len(self.steps[::2]), self.steps[::-2][0](x)


def test_pieces_of_module_lists():
    x = cresset.arange(6.0)
    given, expected = cresset.jit.script(Steps())(x), Steps()(x)
    assert cresset.equal(given[0], expected[0]) and given[1] == 3 and cresset.equal(given[2], expected[2])


# ---- what Python's own classes and types can do


def test_containers_and_text_have_a_truth():
    def truths(numbers: List[int], table: Dict[int, int], text: str):
        found = [bool(numbers), bool(table), bool(text), not numbers, not table]
        if table:
            found.append(True)
        while numbers:
            numbers.pop()
        return found, len(numbers)

    scripted = cresset.jit.script(truths)
    assert scripted([1], {}, "a") == ([True, False, True, False, True], 0)
    assert scripted([], {1: 2}, "") == ([False, True, False, True, False, True], 0)


def test_isinstance_asks_for_any_list_and_refuses_bare_generics():
    def is_list(x: Any):
        return isinstance(x, list)

    scripted = cresset.jit.script(is_list)
    assert scripted([1]) and not scripted(1)

    def bare_list(x: Any):
        return isinstance(x, List)

    def bare_dict(x: Any):
        return isinstance(x, Dict)

    with pytest.raises(RuntimeError, match="Attempted to use List without a contained type"):
        cresset.jit.script(bare_list)
    with pytest.raises(RuntimeError, match="Attempted to use Dict without contained types"):
        cresset.jit.script(bare_dict)


def test_numbers_have_no_methods_of_tensors():
    def add(x: int):
        return x.add(1)

    with pytest.raises(RuntimeError, match="'int' object has no attribute or method 'add'"):
        cresset.jit.script(add)


def test_constructors_of_one_dtype():
    def made():
        return (
            cresset.FloatTensor([1.0, 2.0]),
            cresset.LongTensor([[1], [2]]),
            cresset.BoolTensor([True]),
            cresset.IntTensor(2, 3),
        )

    floats, longs, bools, ints = cresset.jit.script(made)()
    assert floats.tolist() == [1.0, 2.0] and longs.tolist() == [[1], [2]] and bools.tolist() == [True]
    assert ints.shape == (2, 3) and ints.dtype == cresset.int32


def test_checks_are_assertions():
    def positive(x):
        cresset._check(bool(x.sum() > 0), message="sum is not positive")
        cresset._check(x.dim() == 1)
        return x

    scripted = cresset.jit.script(positive)
    assert scripted(cresset.ones(1)).item() == 1
    with pytest.raises(cresset.jit.Error, match="sum is not positive"):
        scripted(-cresset.ones(1))

    def empty(x):
        cresset._check()
        return x

    def twice(x):
        cresset._check(True, cond=False)
        return x

    with pytest.raises(RuntimeError, match="expects 1 or 2 arguments"):
        cresset.jit.script(empty)
    with pytest.raises(RuntimeError, match="multiple values for argument 'cond'"):
        cresset.jit.script(twice)


class Card:
    def __init__(self, value: int):
        self.value = value

    def __lt__(self, other: "Card") -> bool:
        return self.value < other.value

    def __eq__(self, other: "Card") -> bool:
        return self.value == other.value

    def __len__(self) -> int:
        return self.value

    def __add__(self, other: int) -> int:
        return self.value + other

    def __delitem__(self, key: int):
        self.value = key

    @classmethod
    def dealt(cls, value: int) -> "Card":
        return cls(value)


def test_objects_are_sorted_deleted_from_and_made_by_class_methods():
    def program(cards: List[Card], value: int):
        low = [card.value for card in sorted(cards)]
        cards.sort(reverse=True)
        made = cards[0].dealt(value)
        del made[9]
        return low, [card.value for card in cards], made

    low, high, made = cresset.jit.script(program)([Card(2), Card(3), Card(1)], 5)
    assert (low, high, made.value) == ([1, 2, 3], [3, 2, 1], 9)
    assert made == Card(9) and len(made) == 9 and made + 1 == 10 and bool(made)


@cresset.jit.interface
class Step:
    def one(self, x: Tensor) -> Tensor:
        pass


class Up:
    def __init__(self, by: int):
        self.by = by

    def one(self, x: Tensor) -> Tensor:
        return x + self.by


class Times:
    def __init__(self, by: int):
        self.by = by

    def one(self, x: Tensor) -> Tensor:
        return x * self.by


def test_branches_of_several_types_come_back_from_files():
    def anything(flag: bool) -> Any:
        if flag:
            return 1
        else:
            return "a"

    def number_or_text(flag: bool):
        x: Union[int, str] = 1
        if flag:
            x = "a"
        return x

    def either(x, flag: bool):
        if flag:
            step: Step = Up(1)
        else:
            step = Times(3)
        return step.one(x)

    def both(x):
        for step in cresset.jit.annotate(List[Step], [Up(1), Times(3)]):
            x = step.one(x)
        return x

    assert [loaded(anything)(flag) for flag in (True, False)] == [1, "a"]
    assert [loaded(number_or_text)(flag) for flag in (True, False)] == ["a", 1]
    assert [loaded(either)(cresset.ones(1), flag).item() for flag in (True, False)] == [2, 3]
    assert loaded(both)(cresset.ones(1)).item() == 6
    assert "unchecked_cast(Any, 1)" in cresset.jit.script(anything).code


def test_bare_containers_are_refused_outside_of_scripts_as_well():
    for kind, name in ((List, "List"), (Tuple, "Tuple"), (list, "List"), (Dict, "Dict"), (dict, "Dict")):
        with pytest.raises(RuntimeError, match=f"Attempted to use {name} without"):
            cresset.jit.isinstance([1], kind)


class Bare:
    def __init__(self):
        self.x = 1


class Unmade:
    def get(self) -> int:
        return 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Unmade()", "Class Unmade does not have an __init__ function defined"),
        ("Bare() + 1", "object has no attribute or method '__add__'"),
        ("-Bare()", "object has no attribute or method '__neg__'"),
        ("Bare() < Bare()", "object has no attribute or method '__lt__'"),
    ],
)
def test_what_a_class_does_not_define_is_named(text, words):
    with pytest.raises(RuntimeError, match=words):
        cresset.jit.CompilationUnit(f"def f():\n    return {text}")


def test_del_and_with_name_the_methods_that_are_missing():
    with pytest.raises(RuntimeError, match="Class does not define __delitem__"):
        cresset.jit.CompilationUnit("def f():\n    b = Bare()\n    del b[1]")
    with pytest.raises(RuntimeError, match="does not define __enter__ and __exit__ methods"):
        cresset.jit.CompilationUnit("def f():\n    with Bare():\n        pass")


def test_inf_and_nan_are_known_by_their_names():
    def numbers():
        return inf, -inf, nan != nan

    assert cresset.jit.script(numbers)() == numbers() == (inf, -inf, True)


def test_a_value_of_another_type_is_no_member_of_a_union():
    def taken(x: Union[int, str]):
        return x

    with pytest.raises(RuntimeError, match=r"Expected a member of Union\[int, str\] for argument 'x'.*'float'"):
        cresset.jit.script(taken)(1.5)
