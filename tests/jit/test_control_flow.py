"""Branches, loops and the ways out of them: functions drawn at random give what Python gives."""

import importlib.util
import random

import pytest

import cresset

NAMES = ("a", "b", "c")


class Writer:
    """Draws the source of a function of three integers, whose loops end."""

    def __init__(self, rng):
        self.rng, self.counters = rng, 0

    def condition(self):
        first, second = self.rng.choice(NAMES), self.rng.choice((*NAMES, "3", "7"))
        return self.rng.choice((f"{first} % 2 == 0", f"{first} > {second}", f"{first} != {second} and {second} < 5"))

    def assignment(self):
        x, y, z = (self.rng.choice(NAMES) for _ in range(3))
        one, other = self.rng.sample(NAMES, 2)
        return self.rng.choice(
            (f"{x} = ({y} + {z}) % 11", f"{x} = {y} + 1", f"{x} += 2", f"{one}, {other} = {other}, {one} % 7")
        )

    def block(self, depth, in_loop):
        lines = []
        for _ in range(self.rng.randint(1, 3)):
            lines += self.statement(depth, in_loop)
        return lines

    def statement(self, depth, in_loop):
        kind = self.rng.random()
        if depth and kind < 0.45:
            lines = [f"if {self.condition()}:", *self.indented(depth - 1, in_loop)]
            if self.rng.random() < 0.4:
                lines += [f"elif {self.condition()}:", *self.indented(depth - 1, in_loop)]
            return lines + (["else:", *self.indented(depth - 1, in_loop)] if self.rng.random() < 0.5 else [])
        if depth and kind < 0.6:
            self.counters += 1
            counter = f"i{self.counters}"
            if self.rng.random() < 0.5:
                return [f"for {counter} in range(4):", *self.indented(depth - 1, True)]
            start, body = f"{counter} = 0", self.indented(depth - 1, True)
            return [start, f"while {counter} < 5 and a < 40:", f"    {counter} += 1", *body]
        if in_loop and kind < 0.75:
            return [self.rng.choice(("continue", "break"))]
        if kind < 0.8:
            return [f"return {self.rng.choice(NAMES)} * 100 + a"]
        return [self.assignment()]

    def indented(self, depth, in_loop):
        return ["    " + line for line in self.block(depth, in_loop)]

    def function(self, name):
        body = [line for _ in range(3) for line in self.statement(3, False)]
        head = f"def {name}(a: int, b: int, c: int) -> int:"
        return "\n".join([head, *("    " + line for line in [*body, "return a * 10000 + b * 100 + c"])])


@pytest.mark.parametrize("seed", range(6))
def test_functions_of_branches_and_loops_give_what_python_gives(tmp_path, seed):
    writer = Writer(random.Random(seed))
    sources = [writer.function(f"f{number}") for number in range(40)]
    path = tmp_path / f"drawn_{seed}.py"
    path.write_text("\n\n\n".join(sources) + "\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for number, source in enumerate(sources):
        function = getattr(module, f"f{number}")
        scripted = cresset.jit.script(function)
        for numbers in ((0, 0, 0), (1, 2, 3), (5, 1, 8), (7, 7, 2), (30, 4, 9)):
            assert scripted(*numbers) == function(*numbers), f"{numbers}\n{source}"


def test_what_was_assigned_before_continue_in_an_inner_branch_is_kept(tmp_path):
    def sum_of_odd(n: int) -> int:
        total, i = 0, 0
        while i < n:
            if i % 2 == 0:
                total += 0
            elif i > 4:
                total, i = total + 10 * i, i + 1
                continue
            total += i
            i += 1
        return total

    assert cresset.jit.script(sum_of_odd)(10) == sum_of_odd(10) == 1 + 2 + 3 + 4 + 50 + 6 + 70 + 8 + 90
