"""SobolEngine gives PyTorch's points."""

import pytest

import cresset

torch = pytest.importorskip("torch")


def both(program):
    def run(lib):
        try:
            return program(lib.quasirandom.SobolEngine, lib)
        except Exception as error:
            return type(error).__name__

    ours, theirs = run(cresset), run(torch)
    assert ours == theirs


@pytest.mark.parametrize("dimension", [1, 2, 3, 19, 40, 21201])
def test_points(dimension):
    both(lambda engine, lib: engine(dimension).draw(5).tolist())
    both(lambda engine, lib: engine(dimension).sobolstate.tolist())


@pytest.mark.parametrize("dimension", [1, 3, 40])
@pytest.mark.parametrize("seed", [0, 123, None])
def test_scrambled_points(dimension, seed):
    def program(engine, lib):
        lib.manual_seed(7)
        made = engine(dimension, scramble=True, seed=seed)
        return made.draw(9).tolist(), made.draw(3, dtype=lib.float64).tolist(), repr(made), made.shift.tolist()

    both(program)


@pytest.mark.parametrize(
    "steps",
    [
        [("draw", 1), ("draw", 1), ("draw", 6)],
        [("fast_forward", 1), ("draw", 3)],
        [("fast_forward", 5), ("draw", 3), ("fast_forward", 100), ("draw", 2)],
        [("draw", 4), ("fast_forward", 0), ("draw", 4)],
        [("draw", 4), ("reset",), ("draw", 2)],
        [("draw_base2", 3), ("draw_base2", 3), ("draw_base2", 4)],
        [("draw", 1), ("draw_base2", 3)],
        [("draw", 300)],
    ],
)
def test_steps(steps):
    def program(engine, lib):
        made, found = engine(3, scramble=True, seed=1), []
        for name, *arguments in steps:
            result = getattr(made, name)(*arguments)
            found.append((result.tolist() if isinstance(result, lib.Tensor) else repr(result), made.num_generated))
        return found

    both(program)


def test_out_and_errors():
    both(lambda engine, lib: engine(2).draw(3, out=lib.empty(0)).tolist())
    both(lambda engine, lib: engine(0))
    both(lambda engine, lib: engine(21202))
