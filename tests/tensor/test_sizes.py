"""Sizes beyond what 64 bits can count are errors, never smaller numbers."""

import pytest

import cresset as torch

F = torch.nn.functional
LARGE, LARGEST = 2**62, 2**63 - 1


def many(*size):
    return torch.ones(1).expand(*size)


@pytest.mark.parametrize("call", [
    lambda: torch.cat([many(LARGE), many(LARGE)]),
    lambda: torch.cat([many(LARGE)] * 4),
    lambda: torch.hstack([many(LARGE)] * 4),
    lambda: torch.stack([many(LARGE), many(LARGE)]),
    lambda: torch.ones(4).repeat(LARGE),
    lambda: torch.ones(4).repeat(2**32, 2**32),
    lambda: torch.ones(4, device="meta").repeat(LARGE),
    lambda: torch.ones(3).repeat(-1),
    lambda: torch.tile(torch.ones(4), (LARGE,)),
    lambda: torch.repeat_interleave(torch.ones(4), torch.tensor([LARGE] * 4)),
    lambda: torch.repeat_interleave(torch.ones(2), torch.tensor([LARGEST, LARGEST])),
    lambda: torch.repeat_interleave(torch.tensor([LARGEST, LARGEST, 2])),
    lambda: torch.repeat_interleave(torch.ones(4), LARGE),
    lambda: F.pad(torch.ones(2), (LARGEST, LARGEST)),
    lambda: F.pad(torch.ones(2), (LARGE, LARGE)),
    lambda: F.pad(torch.ones(2, device="meta"), (LARGEST, LARGEST)),
    lambda: F.pad(torch.ones(2), (-LARGEST, -LARGEST)),
    lambda: F.pad(torch.ones(1, 2), (LARGEST, LARGEST), mode="replicate"),
    lambda: torch.nn.ConstantPad1d(LARGEST, 0.0)(torch.ones(1, 2)),
    lambda: torch.bincount(torch.tensor([LARGEST])),
    lambda: torch.bincount(torch.tensor([LARGE])),
    lambda: F.one_hot(torch.tensor([LARGE])),
    lambda: torch.ones(3).narrow(0, 1, LARGEST),
    lambda: torch.ones(3).split([LARGE, LARGE, LARGE, LARGE, 3]),
    lambda: torch.ones(3).split([LARGEST, LARGEST, 5]),
    lambda: torch.ones(3).tensor_split(2**40),
    lambda: torch.ones(1).expand(2**32, 2**32),
    lambda: torch.ones(1).expand(LARGE, 4, 0),
    lambda: torch.zeros(LARGE, 4, 0),
    lambda: torch.ones(0).view(LARGE, 4, 0),
    lambda: torch.full((2**31, 2**33), 1.0),
    lambda: torch.empty(2**33, 2**33, device="meta"),
    lambda: torch.ones(1).resize_(LARGE),
    lambda: torch.ones(4)[2:].resize_(LARGEST),
    lambda: torch.empty_strided((3, 3), (LARGE, LARGE)),
    lambda: torch.ones(1).set_(torch.ones(4).untyped_storage(), LARGEST, (1,), (1,)),
    lambda: torch.ones(4).as_strided((LARGE, 4), (0, 0)),
    lambda: torch.arange(LARGE),
    lambda: torch.linspace(0, 1, LARGE),
    lambda: torch.eye(2**33),
    lambda: torch.outer(many(2**32), many(2**32)),
    lambda: torch.kron(many(2**32), many(2**32)),
    lambda: many(2**33, 1) + many(1, 2**33),
    lambda: F.conv1d(torch.ones(1, 1, 3), torch.ones(1, 1, 2), padding=LARGEST),
    lambda: F.conv1d(torch.ones(1, 1, 3), torch.ones(1, 1, 3), dilation=LARGE),
    lambda: F.conv_transpose1d(torch.ones(1, 1, 3), torch.ones(1, 1, 2), stride=LARGE),
    lambda: F.max_pool1d(torch.ones(1, 1, 3), 2, dilation=LARGEST),
    lambda: F.unfold(torch.ones(1, 1, 3, 3), (2, 2), padding=2**61),
    lambda: F.fold(torch.ones(1, 4, 9), (2**32, 2**32), (2, 2)),
    lambda: F.interpolate(torch.ones(1, 1, 3, 3), size=(2**32, 2**32), mode="bilinear"),
    lambda: torch.histogramdd(torch.ones(3, 2), bins=[2**32, 2**32]),
    lambda: torch.segment_reduce(torch.ones(3), "sum", lengths=torch.tensor([LARGEST, LARGEST, 5])),
    lambda: torch.UntypedStorage(-1),
])  # fmt: skip
def test_what_would_be_too_large_is_refused(call):
    with pytest.raises((RuntimeError, TypeError)):
        call()


def test_steps_beyond_the_end_take_the_first_element():
    x = torch.arange(3.0)
    assert x[::LARGEST].tolist() == [0.0] and x[1:LARGEST:LARGEST].tolist() == [1.0] and x[3::LARGEST].tolist() == []
    assert torch.arange(6.0).view(3, 2)[::LARGEST].tolist() == [[0.0, 1.0]]
    assert torch.ones(4).unfold(0, 2, LARGEST).tolist() == [[1.0, 1.0]]


def test_diagonals_outside_are_empty_however_far_they_are():
    x = torch.ones(3, 3)
    for offset in (3, -3, LARGEST, -LARGEST - 1):
        assert x.diagonal(offset).tolist() == []
    assert x.tril(LARGEST).equal(x) and x.triu(-LARGEST - 1).equal(x)


def test_more_chunks_than_elements_are_as_many_as_elements():
    assert [c.tolist() for c in torch.arange(3).chunk(LARGEST)] == [[0], [1], [2]]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.sum(0),
        lambda x: x.amax(0),
        lambda x: x.argmax(64),
        lambda x: x.max(0),
        lambda x: x.all(),
        lambda x: x.std((0, 1)),
        lambda x: x.logsumexp(64),
        lambda x: x.sum((64,)),
        lambda x: torch.linalg.vector_norm(x),
        lambda x: x.flip(0),
        lambda x: x.squeeze((0, 1)),
    ],
)
def test_a_set_of_dimensions_beyond_the_64th_is_refused(call):
    with pytest.raises(RuntimeError, match="only tensors with up to 64 dims are supported, this one has 65"):
        call(torch.ones([1] * 65))


def test_64_dimensions_are_reduced():
    x = torch.ones([1] * 63 + [2])
    assert x.sum(63).shape == (1,) * 63 and x.sum().item() == 2
    assert x.flip(63).shape == x.shape and x.squeeze((0, 1)).dim() == 62


def test_a_size_stays_one_when_a_tuple_is_put_before_it():
    size = torch.Size([2, 3])
    assert type((1,) + size) is torch.Size and (1,) + size == (1, 2, 3)
    assert ("batch",) + size == ("batch", 2, 3) and type(("batch",) + size) is tuple
    with pytest.raises(TypeError, match=r"can only concatenate tuple \(not list\) to torch.Size"):
        size + [1]

    class Answers:
        def __radd__(self, other):
            return "answered"

    assert size + Answers() == "answered"


def test_an_empty_tensor_has_no_address():
    assert torch.empty(0).data_ptr() == 0
    assert torch.ones(4)[2:2].data_ptr() == 0
    assert torch.ones(4).data_ptr() != 0


def test_the_number_of_a_device_has_digits_alone():
    for text in ("cuda: 2", "cuda:+2"):
        with pytest.raises(RuntimeError, match="Invalid device string"):
            torch.device(text)


def test_errors_of_subclasses_orders_and_switches():
    with pytest.raises(TypeError, match="does not inherit from Tensor"):
        torch.ones(1).as_subclass(int)
    with pytest.raises(AttributeError, match="dim_order"):
        torch.eye(2).to_sparse().dim_order()
    with pytest.raises(TypeError, match="argument 'warn_only' must be bool, not int"):
        torch.use_deterministic_algorithms(False, warn_only=1)
    with pytest.raises(RuntimeError, match="but got zero"):
        torch._assert_async(torch.tensor(0))
