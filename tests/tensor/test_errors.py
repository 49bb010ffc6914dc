"""What cannot be done raises PyTorch's exception class with a message that says what is wrong, and changes nothing."""

import pytest

import cresset as torch

REFUSED = [
    (lambda: torch.ones(3) + torch.ones(4), RuntimeError, r"add.*\(3,\).*\(4,\)"),
    (lambda: torch.ones(2, 3) @ torch.ones(2, 3), RuntimeError, r"2.*3"),
    (lambda: torch.ones(2).view(3), RuntimeError, "invalid for input of size 2"),
    (lambda: torch.ones(2, 3)[2], IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
    (lambda: torch.ones(2, 3).sum(5), IndexError, "Dimension out of range"),
    (lambda: torch.ones(2)[torch.tensor([5])], IndexError, "out of bounds"),
    (lambda: torch.tensor(1)[0], IndexError, "0-dim"),
    (lambda: torch.ones(2)[1.5], IndexError, "float"),
    (lambda: torch.ones(2)["a"], TypeError, "str"),
    (lambda: torch.ones(2)[::-1], ValueError, "step must be greater than zero"),
    (lambda: torch.tensor([[1, 2], [3]]), ValueError, "length 2 at dim 1"),
    (lambda: torch.tensor("a"), TypeError, "str"),
    (lambda: torch.tensor(None), RuntimeError, "NoneType"),
    (lambda: torch.tensor(2**64), ValueError, "Overflow"),
    (lambda: torch.ones(2) + 2**70, OverflowError, "too big"),
    (lambda: torch.ones(2)[2**70], ValueError, "Overflow"),
    (lambda: torch.zeros(2**70), TypeError, "Overflow"),
    (lambda: torch.empty(2**62), RuntimeError, "overflow"),
    (lambda: torch.zeros(10**13), RuntimeError, "can't allocate memory: you tried to allocate 40000000000000 bytes"),
    (lambda: torch.ones(1).expand(2**31, 2**31, 2**31), RuntimeError, "overflow"),
    (lambda: torch.ones(2).resize_(2**62), RuntimeError, "overflow"),
    (lambda: torch.zeros(-1), RuntimeError, "negative dimension -1"),
    (lambda: torch.add(torch.ones(2), 1, beta=2), TypeError, "unexpected keyword argument 'beta'"),
    (lambda: torch.exp(), TypeError, 'missing 1 required positional argument: "input"'),
    (lambda: torch.exp("a"), TypeError, r"argument 'input' \(position 1\) must be Tensor, not str"),
    (lambda: torch.exp(torch.ones(1), torch.ones(1)), TypeError, "takes 1 positional argument but 2 were given"),
    (lambda: torch.zeros(2, device="banana"), RuntimeError, "banana"),
    (lambda: torch.zeros(2, dtype="float"), TypeError, "torch.dtype"),
    (lambda: torch.ones(2, dtype=torch.int64).add_(0.5), RuntimeError, "can't be cast"),
    (lambda: -torch.tensor([True]), RuntimeError, "bool"),
    (lambda: torch.tensor([True]) - torch.tensor([True]), RuntimeError, "bool"),
    (lambda: ~torch.ones(1), TypeError, "float32"),
    (lambda: torch.ones(2, dtype=torch.int64) // 0, RuntimeError, "ZeroDivision"),
    (lambda: torch.ones(2, dtype=torch.int64) % torch.tensor([1, 0]), RuntimeError, "ZeroDivision"),
    (lambda: torch.ones(2, dtype=torch.int64) ** -1, RuntimeError, "negative integer powers"),
    (lambda: torch.where(torch.ones(1), 1, 2), RuntimeError, "boolean"),
    (lambda: torch.clamp(torch.ones(1)), RuntimeError, "At least one of"),
    (lambda: torch.add(torch.arange(2), 1, alpha=0.5), RuntimeError, "alpha"),
    (lambda: bool(torch.ones(2)), RuntimeError, "ambiguous"),
    (lambda: int(torch.ones(2)), ValueError, "one element"),
    (lambda: torch.ones(2).item(), RuntimeError, "2 elements"),
    (lambda: len(torch.tensor(1)), TypeError, "0-d"),
    (lambda: torch.tensor(1).as_subclass(int), TypeError, "does not inherit from Tensor"),
    (lambda: torch.ones(2).requires_grad_(torch.ones(2)), TypeError, "bool"),
    (lambda: torch.ones(2).size(0, 1), TypeError, "takes 1"),
    (lambda: torch.Tensor.add_(1.0, torch.ones(2)), TypeError, "must be Tensor"),
    (lambda: torch.ones(2).index_put_([], torch.tensor(1.0)), RuntimeError, "at least one index"),
    (lambda: torch.ops.aten.index(torch.ones(2), []), IndexError, "at least one index"),
    (lambda: torch.tril_indices(2**62, 2**62), RuntimeError, "overflow"),
    (lambda: torch.manual_seed(2**65), ValueError, "seed"),
    (lambda: torch.ones(1).foo, AttributeError, "foo"),
    (lambda: torch.zeross, AttributeError, "did you mean 'zeros'"),
]


@pytest.mark.parametrize(
    ("call", "kind", "text"), REFUSED, ids=[str(i) + "-" + text for i, (_, _, text) in enumerate(REFUSED)]
)
def test_a_bad_call_raises(call, kind, text):
    with pytest.raises(kind, match=text) as caught:
        call()
    assert caught.type.__name__ == kind.__name__  # and not one of its many subclasses


def test_a_subclass_of_runtime_error_where_an_operation_does_not_know_a_dtype():
    with pytest.raises(NotImplementedError, match="not implemented for 'float32'"):
        torch.bitwise_and(torch.ones(1), torch.ones(1))


FAILING_IN_PLACE = [
    lambda t: t.add_(torch.ones(4)),
    lambda t: t.mul_(1j),
    lambda t: t.copy_(torch.ones(7)),
    lambda t: t.__setitem__(5, 1.0),
    lambda t: t.__setitem__(0, torch.ones(3)),
    lambda t: t.__setitem__(slice(None), "a"),
    lambda t: t.masked_fill_(torch.ones(2, dtype=torch.bool), 0),
    lambda t: t.resize_(-1),
    lambda t: t.set_(torch.zeros(2, dtype=torch.int64)),
    lambda t: t.as_strided_((9,), (1,)),
    lambda t: t.fill_(torch.ones(2)),
    lambda t: t.normal_(0, -1),
    lambda t: t.uniform_(1, 0),
    lambda t: t.unsqueeze_(5),
    lambda t: torch.add(torch.ones(2), torch.ones(4), out=t),
    lambda t: torch.add(torch.ones(3), 1j, out=t),
]


@pytest.mark.parametrize("change", FAILING_IN_PLACE, ids=range(len(FAILING_IN_PLACE)))
def test_operands_are_untouched_when_an_operation_fails(change):
    t = torch.arange(3.0)
    with pytest.raises((RuntimeError, TypeError, IndexError, ValueError)):
        change(t)
    assert t.tolist() == [0, 1, 2] and t.shape == (3,) and t.stride() == (1,)


WRITES_TO_SEVERAL_PLACES = [
    lambda t: t.__setitem__([0, 9], 5.0),
    lambda t: t.index_add_(0, torch.tensor([0, 9]), torch.ones(2)),
    lambda t: t.scatter_(0, torch.tensor([0, 9]), 5.0),
]


@pytest.mark.parametrize("change", WRITES_TO_SEVERAL_PLACES, ids=["setitem", "index_add_", "scatter_"])
def test_nothing_is_written_when_one_of_several_places_is_wrong(change):
    t = torch.arange(3.0)
    with pytest.raises((RuntimeError, IndexError)):
        change(t)
    assert t.tolist() == [0, 1, 2]


def test_memory_that_ran_out_does_not_harm_what_comes_after():
    for _ in range(3):
        with pytest.raises(RuntimeError, match="allocate"):
            torch.zeros(10**14)
    assert torch.ones(10).sum().item() == 10


def test_names_of_arguments_may_be_those_of_numpy():
    assert torch.ones(2, 3).sum(axis=0, keepdims=True).shape == (1, 3)


def test_checks_of_a_program_say_what_did_not_hold():
    with pytest.raises(RuntimeError, match="Expected cond to be True"):
        torch._check(False)
    with pytest.raises(TypeError, match="cond tensor must have dtype torch.bool"):
        torch._check_tensor_all(torch.ones(2))
