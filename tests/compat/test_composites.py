"""Functions made of other ops give PyTorch's results, gradients and exception classes for the same small programs."""

import random

import pytest

import cresset

torch = pytest.importorskip("torch")


def programs(lib):
    """Name and program: the same text for both libraries."""
    x = lib.tensor([[0.5, -1.0, 2.0], [3.0, 0.25, -4.0]], dtype=lib.float64)
    i = lib.tensor([[0, 3, 1], [2, 2, 5]])
    nan = lib.tensor([[1.0, float("nan"), 3.0], [float("nan"), 2.0, 1.0]])
    yield from {
        "flatten 0-d": lambda: x[0, 0].flatten(),
        "unflatten twice -1": lambda: x.unflatten(1, (-1, -1)),
        "movedim": lambda: x.reshape(1, 2, 3).movedim((0, 2), (1, 0)),
        "rot90": lambda: lib.rot90(x, 3),
        "tile": lambda: x.tile((2, 1, 2)),
        "repeat_interleave": lambda: i.repeat_interleave(lib.tensor([1, 0, 2]), 1),
        "repeat_interleave 0-d": lambda: lib.tensor(3).repeat_interleave(2, dim=0),
        "take_along_dim": lambda: x.take_along_dim(i % 2, 0),
        "broadcast_shapes": lambda: lib.broadcast_shapes((2, 1), (3,)),
        "tensor_split": lambda: x.tensor_split((2, 1, -1), 1),
        "hsplit uneven": lambda: x.hsplit(2),
        "dstack": lambda: lib.dstack([x, x]),
        "meshgrid": lambda: lib.meshgrid(x[0], x[1], indexing="xy"),
        "combinations": lambda: lib.combinations(x[0], 2, True),
        "block_diag": lambda: lib.block_diag(x, i, lib.tensor(1.0)),
        "block_diag none": lambda: lib.block_diag(),
        "vander": lambda: lib.vander(i[0], 4),
        "diag_embed": lambda: lib.diag_embed(x, -1, 0, 2),
        "diagonal_scatter": lambda: x.diagonal_scatter(x[0, :2], 1),
        "einsum": lambda: lib.einsum("ij,kj->k", x, x),
        "einsum diagonal": lambda: lib.einsum("...ii->...i", x @ x.t()),
        "einsum error": lambda: lib.einsum("ij->ik", x),
        "tensordot": lambda: lib.tensordot(x, x, ([1], [1])),
        "kron": lambda: lib.kron(x, i),
        "cross": lambda: lib.cross(x, x.flip(0), dim=1),
        "addr mixed": lambda: lib.addr(i, x[:, 0], x[0]),
        "addmv scalar": lambda: lib.addmv(x[0, 0], x, x[0], beta=2, alpha=3),
        "quantile": lambda: x.quantile(lib.tensor([0.1, 0.6], dtype=lib.float64), 1, True),
        "quantile nan": lambda: nan.quantile(0.5, 0),
        "nanquantile": lambda: nan.nanquantile(0.3, 1),
        "nanmedian": lambda: nan.nanmedian(1),
        "nanmean": lambda: nan.nanmean(0),
        "nansum ints": lambda: i.nansum(0),
        "cov": lambda: x.cov(aweights=x[0].abs(), fweights=i[0] + 1),
        "cov of one row": lambda: x[:1].cov(),
        "corrcoef": lambda: x.corrcoef(),
        "std_mean": lambda: lib.std_mean(x, 1, False),
        "aminmax": lambda: x.aminmax(dim=0, keepdim=True),
        "logcumsumexp": lambda: x.logcumsumexp(1),
        "diff bool": lambda: (x > 0).diff(),
        "gradient": lambda: lib.gradient(x, spacing=[2.0, 0.5]),
        "trapezoid": lambda: lib.trapezoid(x, x.flip(1)),
        "histc": lambda: x.histc(4),
        "histogram": lambda: x.histogram(3, weight=x, density=True),
        "bincount": lambda: i[0].bincount(x[0]),
        "cdist": lambda: lib.cdist(x, x.flip(1), 3.0),
        "renorm": lambda: x.renorm(1, 1, 2.0),
        "isclose ints": lambda: i.isclose(i + 1, rtol=0.5),
        "isin": lambda: lib.isin(i, lib.arange(2, 40)),
        "unique": lambda: i.unique(return_inverse=True, return_counts=True),
        "unique dim": lambda: i.unique(dim=1, return_inverse=True),
        "unique_consecutive": lambda: i.unique_consecutive(return_counts=True),
        "searchsorted": lambda: lib.searchsorted(x.msort().t().contiguous(), x.t().contiguous(), right=True),
        "bucketize mixed": lambda: lib.bucketize(i, lib.tensor([0.5, 2.0])),
        "complex": lambda: lib.complex(x, x[0]),
        "polar ints": lambda: lib.polar(i, i),
        "tril_indices": lambda: lib.tril_indices(3, 4, -1),
        "kaiser_window": lambda: lib.kaiser_window(7, True, 5.0),
        "general_hamming": lambda: lib.signal.windows.general_hamming(6, sym=False),
        "stft": lambda: lib.view_as_real(lib.stft(x.reshape(-1), 4, 2, window=x.new_ones(4), return_complex=True)),
        "norm nuc": lambda: lib.norm(x, "nuc"),
        "mvlgamma": lambda: (x.abs() + 2).mvlgamma(3),
        "masked var": lambda: lib.masked.var(x, 1, mask=x > -2),
    }.items()


OURS, THEIRS = dict(programs(cresset)), dict(programs(torch))


def plain(value):
    """A result as plain Python values: shape, dtype and elements of each tensor."""
    if isinstance(value, (cresset.Tensor, torch.Tensor)):
        return tuple(value.shape), str(value.dtype), value.detach().flatten().tolist()
    return [plain(each) for each in value] if isinstance(value, (tuple, list)) else value


def outcome(program):
    try:
        return plain(program())
    except Exception as error:
        return type(error).__name__


def agree(ours, theirs):
    if isinstance(theirs, (tuple, list)):
        return len(ours) == len(theirs) and all(map(agree, ours, theirs))
    if isinstance(theirs, (float, complex)):
        return ours == pytest.approx(theirs, rel=1e-5, abs=1e-6, nan_ok=True)
    return ours == theirs


@pytest.mark.parametrize("name", THEIRS)
def test_same_outcome(name):
    ours, theirs = outcome(OURS[name]), outcome(THEIRS[name])
    assert agree(ours, theirs), f"{ours} instead of {theirs}"


def random_einsum(rng):
    """An equation and the shapes of its operands; now and then it is wrong."""
    size = {letter: rng.choice([1, 2, 3, 4]) for letter in "abcD"}
    dots = [rng.choice([1, 2]) for _ in range(rng.randint(0, 2))]
    terms, shapes = [], []
    for _ in range(rng.randint(1, 4)):
        letters = [rng.choice("abcD") for _ in range(rng.randint(0, 3))]
        at = rng.randint(0, len(letters)) if rng.random() < 0.3 else None
        shape = [1 if rng.random() < 0.05 else size[letter] for letter in letters]
        if at is not None:
            letters.insert(at, "...")
            shape[at:at] = dots[rng.randint(0, len(dots)) :]
        terms.append("".join(letters))
        shapes.append(shape)
    equation = ",".join(terms)
    if rng.random() < 0.7:
        output = rng.sample("abcD", rng.randint(0, 3))
        equation += "->" + "".join(output) + rng.choice(["", "..."])
    return equation, shapes


@pytest.mark.parametrize("seed", range(200))
def test_einsum_agrees_on_random_equations(seed):
    equation, shapes = random_einsum(random.Random(seed))
    results = []
    for lib in (cresset, torch):
        operands = []
        for position, shape in enumerate(shapes):
            count = lib.ones(shape).numel()
            numbers = (lib.arange(count, dtype=lib.float64) + position).sin()
            operands.append(numbers.reshape(shape).requires_grad_())

        def program(lib=lib, operands=operands):
            result = lib.einsum(equation, *operands)
            return [result, *lib.autograd.grad((result * result).sum(), operands)]

        results.append(outcome(program))
    assert agree(*results), f"{equation} of {shapes}: {results[0]} instead of {results[1]}"
