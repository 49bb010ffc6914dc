"""Writing through indices and masks."""

import pytest

import cresset
from cresset.autograd import gradcheck, gradgradcheck


def index(*values):
    return cresset.tensor(values)


def test_assignment_through_an_index():
    x = cresset.zeros(3, 2)
    x[index(2, 0)] = cresset.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.tolist() == [[3.0, 4.0], [0.0, 0.0], [1.0, 2.0]]
    x[:, index(0)] = 9
    assert x[:, 0].tolist() == [9.0, 9.0, 9.0]


def test_assignment_under_a_mask():
    x = cresset.arange(6.0).reshape(2, 3)
    x[x > 3] = 0
    assert x.tolist() == [[0, 1, 2], [3, 0, 0]]
    x[cresset.tensor([False, True])] = 7
    assert x.tolist() == [[0, 1, 2], [7, 7, 7]]
    x[x == 7] = cresset.tensor([1.0, 2.0, 3.0])
    assert x.tolist() == [[0, 1, 2], [1, 2, 3]]


@pytest.mark.cpu_only("which of several writes counts is not settled on a device")
def test_the_last_of_several_writes_counts():
    x = cresset.zeros(2)
    x[index(0, 0, 0)] = cresset.tensor([1.0, 2.0, 3.0])
    assert x.tolist() == [3.0, 0.0]
    assert cresset.zeros(2).scatter(0, index(1, 1), cresset.tensor([4.0, 5.0])).tolist() == [0.0, 5.0]


def test_index_put_accumulates_every_occurrence():
    x = cresset.zeros(3).index_put((index(0, 0, 2),), cresset.tensor([1.0, 2.0, 4.0]), accumulate=True)
    assert x.tolist() == [3.0, 0.0, 4.0]


@pytest.mark.parametrize("value", [300, -0.5, float("nan")])
def test_a_number_that_is_written_nowhere_may_be_any(value):
    bytes, nowhere = cresset.zeros(3, dtype=cresset.uint8), cresset.zeros(0, dtype=cresset.int64)
    assert bytes.scatter(0, nowhere, value).tolist() == [0, 0, 0]
    assert bytes.scatter(0, nowhere, value, reduce="add").tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="reduce argument must be either add or multiply"):
        bytes.scatter(0, nowhere, value, reduce="mean")
    with pytest.raises(RuntimeError, match="without overflow"):
        bytes.scatter(0, cresset.tensor([1]), value)


def test_functional_forms_leave_their_input_alone():
    x = cresset.zeros(3)
    x.index_add(0, index(0), cresset.ones(1))
    x.masked_fill(x == 0, 1)
    x.scatter(0, index(0), 1.0)
    assert x.tolist() == [0.0, 0.0, 0.0]
    assert x.index_add_(0, index(0), cresset.ones(1)) is x
    assert x.tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("reduce", "with_self", "without_self"),
    [("sum", 6, 5), ("prod", 6, 6), ("mean", 2, 2.5), ("amax", 3, 3), ("amin", 1, 2)],
)
def test_scatter_reduce(reduce, with_self, without_self):
    x, i, source = cresset.tensor([1.0, 8.0]), index(0, 0), cresset.tensor([2.0, 3.0])
    assert x.scatter_reduce(0, i, source, reduce).tolist() == [with_self, 8.0]
    assert x.scatter_reduce(0, i, source, reduce, include_self=False).tolist() == [without_self, 8.0]
    if reduce != "sum":
        assert x.index_reduce(0, i, source, reduce).tolist() == [with_self, 8.0]
        assert x.index_reduce(0, i, source, reduce, include_self=False).tolist() == [without_self, 8.0]


def test_halves_are_summed_in_float_and_rounded_once():
    # In bfloat16, 256 + 1 is 256 again: adding one by one would not move.
    x = cresset.full((1,), 256.0, dtype=cresset.bfloat16)
    many = cresset.zeros(256, dtype=cresset.int64)
    assert x.index_add(0, many, cresset.ones(256, dtype=cresset.bfloat16)).item() == 512
    assert x.scatter_add(0, many, cresset.ones(256, dtype=cresset.bfloat16)).item() == 512
    assert x.index_put((many,), cresset.ones(256, dtype=cresset.bfloat16), accumulate=True).item() == 512


def test_masked_fill_broadcasts_and_takes_numbers_and_0d_tensors():
    x = cresset.tensor([1.0, 2.0])
    mask = cresset.tensor([[True, False], [False, True]])
    assert x.masked_fill(mask, 0).tolist() == [[0, 2], [1, 0]]
    assert x.masked_fill(mask[0], cresset.tensor(5.0)).tolist() == [5, 2]


def test_put_and_masked_scatter():
    x = cresset.zeros(2, 2)
    assert x.put(index(1, -1), cresset.tensor([5.0, 6.0])).tolist() == [[0, 5], [0, 6]]
    assert x.put(index(1, 1), cresset.tensor([5.0, 6.0]), accumulate=True).tolist() == [[0, 11], [0, 0]]
    mask = cresset.tensor([[True, False], [True, True]])
    assert x.masked_scatter(mask, cresset.tensor([1.0, 2.0, 3.0, 4.0])).tolist() == [[1, 0], [2, 3]]


def test_writes_to_a_view_reach_the_whole():
    x = cresset.zeros(2, 3)
    x.t().index_fill_(0, index(0, -1), 1)
    assert x.tolist() == [[1, 0, 1], [1, 0, 1]]
    x.t().scatter_(0, cresset.tensor([[1, 0]]), 5.0)
    assert x.tolist() == [[1, 5, 1], [5, 0, 1]]
    x[:, ::2].masked_fill_(cresset.tensor([True, False]), 7)
    assert x.tolist() == [[7, 5, 1], [7, 0, 1]]


def test_a_masked_fill_of_an_expanded_tensor_warns_and_writes_only_under_the_mask():
    x = cresset.zeros(2)
    with pytest.warns(UserWarning, match="expanded tensors is deprecated"):
        x.expand(2, 2).masked_fill_(cresset.tensor([[True, False], [False, False]]), 5)
    assert x.tolist() == [5.0, 0.0]


X = cresset.zeros(3, 4)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: X.scatter(0, cresset.tensor([[5]]), 1.0), RuntimeError, "index 5 is out of bounds for dimension 0"),
        (lambda: X.scatter(0, cresset.zeros(5, 5, dtype=cresset.int64), X), RuntimeError, "no larger than self"),
        (lambda: X.scatter(0, cresset.tensor([[0]]), X.long()), RuntimeError, "Expected self.dtype to be equal"),
        (lambda: X.clone().scatter_(0, cresset.tensor([[0]]), 1j), RuntimeError, "without overflow"),
        (lambda: X.scatter_reduce(0, cresset.tensor([[0]]), X, "most"), RuntimeError, "must be either sum, prod, mean"),
        (lambda: X.index_add(0, index(0, 1), X), RuntimeError, r"Number of indices \(2\)"),
        (lambda: X.index_copy(0, index(5), X[:1]), IndexError, "index 5 is out of bounds for dimension 0"),
        (lambda: X.index_fill(0, index(3), 1), IndexError, "index 3 is out of bounds for dimension 0"),
        (lambda: X.masked_fill(X, 1), RuntimeError, "only supports boolean masks"),
        (lambda: X.masked_fill(X > 0, index(1, 2)), RuntimeError, "only supports a 0-dimensional value tensor"),
        (lambda: X.byte().masked_fill(X > 0, 300), RuntimeError, "cannot be converted to type uint8 without overflow"),
        (
            lambda: X.byte().masked_fill(X > 0, cresset.tensor(-1.5)),
            RuntimeError,
            "cannot be converted to type uint8 without overflow",
        ),
        (
            lambda: X.byte().index_fill(0, index(0), cresset.tensor(300)),
            RuntimeError,
            "cannot be converted to type uint8 without overflow",
        ),
        (
            lambda: X.clone().__setitem__(X > 0, cresset.tensor(1j)),
            RuntimeError,
            "cannot be converted to type float32 without overflow",
        ),
        (
            lambda: X.masked_scatter(X == 0, cresset.ones(2)),
            RuntimeError,
            "Number of elements of source < number of ones",
        ),
        (lambda: X.put(index(12), cresset.ones(1)), IndexError, "out of range"),
        (lambda: X.index_put((index(0),), cresset.ones(5)), RuntimeError, "shape mismatch: value tensor of shape"),
        (lambda: X.expand(2, 3, 4).masked_scatter_(X > 0, X), RuntimeError, "single memory location"),
        (lambda: X.scatter_(0, cresset.tensor([[0]]), X), RuntimeError, "single memory location"),
    ],
)
def test_a_wrong_write_is_an_error_that_says_so(call, error, message, refused):
    with refused(error, message):
        call()


I, TWO = index(0, 2, 0), cresset.tensor([[0, 2, 1], [1, 1, 0]])
MASK = cresset.tensor([True, False, True])
WRITERS = {
    "index_put": lambda x, s: x.index_put((index(0, 2),), s[:2]),
    "index_put accumulate": lambda x, s: x.index_put((I,), s, accumulate=True),
    "scatter": lambda x, s: x.scatter(0, cresset.tensor([[0, 2], [1, 1]]), s),
    "scatter value": lambda x, s: x.scatter(0, TWO, 2.0) * s,
    "scatter_": lambda x, s: (x * 1).scatter_(0, cresset.tensor([[0, 2], [1, 1]]), s),
    "scatter_add": lambda x, s: x.scatter_add(0, TWO, s),
    "index_add": lambda x, s: x.index_add(0, I, s, alpha=2),
    "index_add_": lambda x, s: (x * 1).index_add_(0, I, s),
    "index_copy": lambda x, s: x.index_copy(0, index(2, 0), s[:2]),
    "index_fill": lambda x, s: x.index_fill(1, I, s.sum()),
    "masked_fill": lambda x, s: x.masked_fill(MASK, s.sum()),
    "masked_fill_": lambda x, s: (x * 1).masked_fill_(MASK, s.sum()),
    "masked_scatter": lambda x, s: x.masked_scatter(MASK, s),
    "put": lambda x, s: x.put(index(0, 5), s[0, :2]),
    "put accumulate": lambda x, s: x.put(index(0, 0), s[0, :2], accumulate=True),
}
for reduce in ("sum", "prod", "mean", "amax", "amin"):
    for self_counts in (True, False):
        WRITERS[f"scatter_reduce {reduce} {self_counts}"] = lambda x, s, r=reduce, c=self_counts: x.scatter_reduce(
            0, TWO, s, r, include_self=c
        )
        if reduce != "sum":
            WRITERS[f"index_reduce {reduce} {self_counts}"] = lambda x, s, r=reduce, c=self_counts: x.index_reduce(
                0, I, s, r, include_self=c
            )


@pytest.mark.parametrize("name", WRITERS)
def test_writers_differentiate_twice(name):
    x, source = (cresset.randn(3, 3, dtype=cresset.float64, requires_grad=True) for _ in range(2))
    assert gradcheck(WRITERS[name], [x, source])
    assert gradgradcheck(WRITERS[name], [x, source])


def test_a_product_with_one_zero_has_a_derivative_there():
    x = cresset.ones(1)
    source = cresset.tensor([0.0, 3.0], requires_grad=True)
    x.scatter_reduce(0, index(0, 0), source, "prod").sum().backward()
    assert source.grad.tolist() == [3.0, 0.0]


def test_the_second_derivative_of_a_product_of_several_zeros_is_refused():
    x, src = (cresset.tensor(v, requires_grad=True) for v in ([1.0], [0.0, 0.0]))
    index = cresset.tensor([0, 0])
    for product in (cresset.scatter_reduce, cresset.index_reduce):
        (grad,) = cresset.autograd.grad(product(x, 0, index, src, "prod"), src, create_graph=True)
        assert grad.tolist() == [0, 0]
        with pytest.raises(RuntimeError, match="Double backward is unsupported for src"):
            cresset.autograd.grad(grad.sum(), src)


def test_a_mask_that_overlaps_what_is_filled_is_refused():
    mask = cresset.tensor([True, False, True])
    for value in (False, cresset.tensor(False)):
        with pytest.raises(RuntimeError, match="masked_fill_: unsupported operation: some elements of the input"):
            mask[1:].masked_fill_(mask[:-1], value)
    assert mask.masked_fill(mask, False).tolist() == [False, False, False]
    assert mask.masked_fill_(mask, False).tolist() == [False, False, False]
