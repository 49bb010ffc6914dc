"""Python data that holds itself, is nested without end, lies about its length, or changes while it is read: an error,
no crash.
"""

import collections
import contextlib
import copy
import gc

import pytest

import cresset as torch

DEEP = 100_000


def nested(levels, kind=list):
    data = kind([1.0])
    for _ in range(levels):
        data = kind([data])
    return data


def own():
    data = [0]
    data += [data]
    return data


def each_other():
    a, b = [0], [0]
    a.append(b), b.append(a)
    return a


class Endless:
    """Each element is the sequence itself, and iterating does not end."""

    def __len__(self):
        return 2

    def __getitem__(self, i):
        return self


class EndlessNumbers:
    def __len__(self):
        return 3

    def __getitem__(self, i):
        return i


# What reads nested data itself, with PyTorch's errors.
READERS = {
    "tensor": torch.tensor, "as_tensor": torch.as_tensor, "asarray": torch.asarray, "FloatTensor": torch.FloatTensor,
    "Tensor": torch.Tensor,
    "new_tensor": torch.ones(1).new_tensor, "new": torch.ones(1).new,
    "tensor of float": lambda d: torch.tensor(d, dtype=torch.float32),
    "index": lambda d: torch.ones(3, 3)[d], "index in a tuple": lambda d: torch.ones(3, 3)[(d,)],
    "index to assign": lambda d: torch.ones(3, 3).__setitem__(d, 1), "nested_tensor": torch.nested.nested_tensor,
    "FloatStorage": torch.FloatStorage,
    "sparse_coo_tensor": lambda d: torch.sparse_coo_tensor(d, d),
}  # fmt: skip
HOSTILE = {
    "own": own,
    "each other": each_other,
    "in a tuple": lambda: (0, own()),
    "endless": Endless,
    "deep": lambda: nested(DEEP),
    "deep tuple": lambda: nested(DEEP, tuple),
}


@pytest.mark.parametrize("data", HOSTILE)
@pytest.mark.parametrize("reader", READERS)
def test_data_without_an_end_is_refused(reader, data):
    with pytest.raises((TypeError, ValueError, IndexError)):
        READERS[reader](HOSTILE[data]())


def test_errors_are_those_of_pytorch():
    with pytest.raises(TypeError, match="self-referential lists are incompatible"):
        torch.tensor(own())
    with pytest.raises(ValueError, match="too many dimensions 'list'"):
        torch.tensor(nested(DEEP))
    assert torch.tensor(nested(100)).shape == (1,) * 101


# Functions written in Python get the data whole, and functions that take lists of tensors look into them for classes
# that override.
@pytest.mark.parametrize("data", ["own", "each other", "deep"])
@pytest.mark.parametrize(
    "call",
    [
        lambda d: torch.einsum("i", d), lambda d: torch.block_diag(d), lambda d: torch.atleast_1d(d),
        lambda d: torch.meshgrid(d), lambda d: torch.broadcast_tensors(d),
        lambda d: torch.cartesian_prod(d), lambda d: torch.where(torch.ones(2) > 0, d, 1),
        lambda d: torch.isin(torch.ones(2), d), lambda d: torch.cat(d),
        lambda d: torch.histogramdd(torch.ones(3, 2), d), lambda d: torch.quantile(torch.ones(3), d),
        lambda d: torch.norm(torch.ones(3), dim=d),
        lambda d: torch.allclose(d, d), lambda d: torch.ones(d), lambda d: torch.ones(4).reshape(d),
        lambda d: torch.ones(3).sum(d), lambda d: torch.stack(d),
        lambda d: torch.nn.functional.pad(torch.ones(3), d), lambda d: torch.vmap(lambda x: x)(d),
        lambda d: torch.func.grad(lambda x: x)(d),
        lambda d: torch.utils._pytree.tree_flatten(d), lambda d: torch.utils.data.default_collate([d, d]),
        lambda d: torch.utils.data.default_convert(d),
        lambda d: torch._foreach_add(d, 1), lambda d: torch.autograd.grad(d, d),
        lambda d: torch.ones(3).index_put_((d,), torch.ones(1)),
        lambda d: torch.nn.utils.rnn.pad_sequence(d), lambda d: torch.testing.assert_close(d, d),
    ],
)  # fmt: skip
def test_functions_that_take_lists_end_with_an_exception(call, data):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - each has its own
        call(HOSTILE[data]())
    assert isinstance(
        caught.value, (TypeError, ValueError, RuntimeError, AttributeError, RecursionError, AssertionError)
    )


def test_a_sequence_is_read_no_further_than_its_length():
    with pytest.raises(ValueError, match="length 3"):
        torch.tensor(EndlessNumbers())
    assert torch.tensor(collections.deque([1, 2, 3])).tolist() == [1, 2, 3] and torch.tensor(range(3)).tolist() == [
        0,
        1,
        2,
    ]


def test_rows_of_other_lengths_are_refused_where_the_first_is_empty():
    for data in ([[], [1]], [[], [[1]]], [[], 1]):
        with pytest.raises((ValueError, TypeError)):
            torch.tensor(data)
    assert torch.tensor([[], []]).shape == (2, 0)


class Clearing:
    """A number that empties the list it stands in when it is asked for."""

    def __init__(self, data):
        self.data = data

    def number(self):
        self.data.clear()
        gc.collect()
        return 1

    __index__ = __int__ = number

    def __float__(self):
        return float(self.number())


@pytest.mark.parametrize(
    "call",
    [
        torch.tensor, lambda d: torch.tensor(d, dtype=torch.float64), torch.FloatTensor, torch.ones,
        lambda d: torch.ones(4).reshape(d), lambda d: torch.ones(4)[d],
        lambda d: torch.ones(4).sum(d), lambda d: torch.ones(3).tile(d),
        lambda d: torch._foreach_add([torch.ones(1)] * len(d), d), lambda d: torch.ones(4).split(d),
        lambda d: torch.nn.functional.pad(torch.ones(4), d),
        lambda d: torch.nn.functional.interpolate(torch.ones(1, 1, 4), scale_factor=d),
    ],
)  # fmt: skip
def test_a_list_may_become_shorter_while_it_is_read(call):
    data = []
    data += [Clearing(data)] + [10**6 + i for i in range(1000)]
    with contextlib.suppress(TypeError, ValueError, RuntimeError, IndexError):
        call(data)
    assert torch.tensor([1, 2]).tolist() == [1, 2]


def test_a_very_long_history_is_destroyed_copied_and_walked():
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(DEEP):
        y = y + 1
    y.sum().backward()
    assert x.grad.item() == 1
    del y
    z = x
    for _ in range(DEEP):
        z = torch.cat([z])  # a node with a list
    del z
    gc.collect()


def test_modules_nested_deep_or_in_a_ring_are_walked_or_refused():
    inner = outer = torch.nn.Sequential(torch.nn.Linear(1, 1))
    for _ in range(3000):
        outer = torch.nn.Sequential(outer)
    walks = (
        lambda: list(outer.named_parameters()), outer.state_dict, lambda: outer(torch.ones(1)),
        lambda: copy.deepcopy(outer), lambda: repr(outer), outer.eval,
        lambda: outer.to(torch.float64), outer.zero_grad,
    )  # fmt: skip
    for ring in (False, True):
        if ring:
            inner.add_module("loop", outer)
        for walk in walks:
            with contextlib.suppress(RecursionError):
                walk()
    inner._modules.clear()
    assert torch.nn.Linear(1, 1)(torch.ones(1)).shape == (1,)
