"""Random indices (ints, slices, None, ellipsis, bools, lists and tensors of ints and bools, mixed) read and write as in
PyTorch.

Values, shapes, gradients and exception classes are compared.
"""

import math
import random

import pytest

pytest.importorskip("torch")

VALUES = [
    "torch.ones(1).requires_grad_()", "torch.arange(3.).requires_grad_()", "torch.ones(1, 1, 1, 1).requires_grad_()",
    "torch.arange(2.).reshape(2, 1).requires_grad_()", "torch.tensor(5.).requires_grad_()", "[1]", "2.5",
]  # fmt: skip


def random_item(rng, size):
    """One element of an index into a dimension of that size, as text; now and then one that does not fit."""

    def end():
        return rng.choice(["", str(rng.randint(-size - 1, size + 1))])

    def place():
        return rng.randint(-size, size - 1) if size else 0

    kind = rng.choice(
        [
            "int",
            "int",
            "slice",
            "slice",
            "slice",
            "none",
            "ellipsis",
            "bool",
            "tensor",
            "list",
            "mask",
            "column",
            "scalar",
        ]
    )
    if kind == "int":
        return str(rng.randint(-size - 1, size))
    if kind == "slice":
        return f"{end()}:{end()}" + rng.choice(["", ":1", ":2", ":3"])
    if kind == "none":
        return "None"
    if kind == "ellipsis":
        return "..."
    if kind == "bool":
        return rng.choice(["True", "False", "torch.tensor(True)", "torch.tensor(False)"])
    if kind == "tensor":
        return f"torch.tensor({[place() for _ in range(rng.randint(1, 3))]})"
    if kind == "list":
        return str([place() for _ in range(rng.randint(1, 3))])
    if kind == "mask":
        mask = str([rng.random() < 0.5 for _ in range(size)])
        return f"torch.tensor({mask}, dtype=torch.bool)" if size == 0 or rng.random() < 0.5 else mask
    if kind == "column":
        return f"torch.tensor({[[place()] for _ in range(2)]}, dtype=torch.{rng.choice(['int64', 'int32'])})"
    return f"torch.tensor({place()})"


def random_program(seed):
    rng = random.Random(seed)
    shape = [rng.choice([0, 1, 2, 3, 3, 4]) for _ in range(rng.choice([0, 1, 2, 2, 3, 3, 4]))]
    items, dim = [], 0
    for _ in range(rng.choice([1, 1, 2, 2, 3, 4])):
        items.append(random_item(rng, shape[dim] if dim < len(shape) else 2))
        dim += items[-1] not in ("None", "...", "True", "False")
    index = ", ".join(items) + ("," if rng.random() < 0.1 else "")
    start = f"t = torch.arange({math.prod(shape)}.).reshape({shape})"
    weighted = "({0} * torch.arange({0}.numel()).reshape({0}.shape)).sum().backward()"
    what = rng.choice(["read", "write", "read with gradient", "write with gradient"])
    if what == "read":
        return f"{start}\nt[{index}]"
    if what == "write":
        return f"{start}\nt[{index}] = -7\nt"
    if what == "read with gradient":
        return f"{start}.requires_grad_()\ny = t[{index}]\n{weighted.format('y')}\n[y.detach(), t.grad]"
    return (
        f"{start}.requires_grad_()\nu = t * 1\nv = {rng.choice(VALUES)}\nu[{index}] = "
        f"v\n{weighted.format('u')}\n[u.detach(), t.grad, getattr(v, 'grad', None)]"
    )


def test_random_programs_are_of_all_kinds():
    programs = [random_program(seed) for seed in range(1500)]
    for part in ["...", "None", ":", "True", "torch.tensor([[", "[1", "backward", "] = -7"]:
        assert sum(part in program for program in programs) > 30, part


@pytest.mark.parametrize("block", range(15))
def test_random_indices(block, agree, outcomes):
    for seed in range(100 * block, 100 * block + 100):
        program = random_program(seed)
        ours, theirs = outcomes(program)
        # PyTorch does not look at the places when nothing is read or written through them; here a wrong place is always
        # an error.
        if ours[0] == ("raises", "IndexError") and "out of bounds" in ours[1] and "IndexError" not in str(theirs[:1]):
            assert "[]" in str(theirs) or "shape mismatch" in str(theirs), program
            continue
        agree(program)
