"""Random programs mean the same scripted, loaded from a file, and in Python; and the ones that once did not."""

from typing import List, Optional

import pytest

import cresset

from . import random_scripts


def test_random_programs_mean_what_they_mean_in_python(tmp_path):
    found = {number: random_scripts.differences(number, tmp_path) for number in range(60)}
    assert {number: wrong for number, wrong in found.items() if wrong} == {}


def test_the_comparison_sees_a_difference(tmp_path, monkeypatch):
    script = cresset.jit.script
    monkeypatch.setattr(cresset.jit, "script", lambda program: script(_of_one_more(program)))
    number = next(n for n in range(100) if not random_scripts.Program(n).is_module)
    assert [how for how, _, _ in random_scripts.differences(number, tmp_path)] == ["scripted", "loaded"]


def _of_one_more(program):
    def changed(x: int) -> int:
        return x + 1

    return changed


def all_of_a_comprehension(numbers: List[int]):
    return all([n > 1 for n in numbers]), any([n > 1 for n in numbers]), sum([n * 0.5 for n in numbers])  # noqa: C419


def grown_before_it_is_asked(numbers: List[int]):
    flags = [True]
    flags.append(len(numbers) > 5)
    whole = [1, 2]
    for number in numbers:
        whole.append(number)
    return all(flags), sum(whole), list(cresset.zeros(whole).shape)


@pytest.mark.parametrize("program", [all_of_a_comprehension, grown_before_it_is_asked])
def test_a_list_that_was_filled_later_is_not_taken_for_its_first_items(program):
    assert cresset.jit.script(program)([1, 3, 2]) == program([1, 3, 2])


def test_a_tuple_of_a_list_with_a_name_is_refused():
    def as_tuple(numbers: List[int]):
        made = [1, 2]
        made.append(3)
        return tuple(made)

    with pytest.raises(RuntimeError, match="cannot statically infer"):
        cresset.jit.script(as_tuple)


def test_a_list_with_a_name_does_not_change_its_type():
    def length(items: Optional[List[Optional[int]]]) -> int:
        return 0 if items is None else len(items)

    def asks(count: int) -> int:
        made = [1, 2]
        made.append(count)
        return length(made)

    with pytest.raises(RuntimeError, match="Expected a value of type"):
        cresset.jit.script(asks)


def returns_in_a_branch_that_is_never_taken(number: int) -> int:
    if number > 5:
        if False:
            return 1
        number = number + 1
    for i in range(3):
        if False:
            return 7
        number += i
    return number * 2


@pytest.mark.parametrize("number", [2, 7])
def test_what_follows_a_branch_that_is_never_taken_is_kept(number):
    program = returns_in_a_branch_that_is_never_taken
    assert cresset.jit.script(program)(number) == program(number)


def test_an_item_of_a_tensor_joins_a_list_of_floats():
    def gathered(x: cresset.Tensor) -> List[float]:
        found = [0.5]
        found.append(x.sum().item())
        return found

    assert cresset.jit.script(gathered)(cresset.ones(3)) == [0.5, 3.0]


class Counts(cresset.nn.Module):
    n: int

    def __init__(self):
        super().__init__()
        self.n = 0

    def one_more(self) -> int:
        self.n += 1
        return self.n

    def forward(self, most: int):
        return 0 < self.one_more() < most < self.one_more() * 5, self.n


@pytest.mark.parametrize("most", [1, 3, 50])
def test_what_stands_between_two_comparisons_is_computed_once(most):
    assert cresset.jit.script(Counts())(most) == Counts()(most)
