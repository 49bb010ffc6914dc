"""torch.masked: what is under a False of the mask does not count."""

import math

import pytest

import cresset

REDUCTIONS = ["sum", "prod", "amax", "amin", "mean", "norm", "var", "std", "logsumexp"]


def reduce(name, *arguments, **options):
    return getattr(cresset.masked, name)(*arguments, **options)


@pytest.mark.parametrize("name", REDUCTIONS)
class TestEveryReduction:
    """What each promises by being in the list."""

    def test_masked_elements_do_not_count(self, name):
        x = cresset.tensor([[1.0, 7.0, 2.0, 4.0], [9.0, 3.0, 5.0, 8.0]])
        mask = cresset.tensor([True, False, True, True])
        kept = x[:, mask]
        assert cresset.allclose(reduce(name, x, dim=1, mask=mask), reduce(name, kept, dim=1))

    def test_all_dimensions_and_keepdim(self, name):
        x = cresset.tensor([[1.0, 7.0], [9.0, 3.0]])
        assert reduce(name, x).shape == ()
        assert reduce(name, x, dim=(0, 1), keepdim=True).shape == (1, 1)
        assert reduce(name, x, dim=-1, keepdim=True).shape == (2, 1)

    def test_masked_elements_get_no_gradient(self, name):
        x = cresset.tensor([1.0, 7.0, 2.0], requires_grad=True)
        reduce(name, x, dim=0, mask=cresset.tensor([True, False, True])).backward()
        assert x.grad[1].item() == 0.0


@pytest.mark.parametrize(
    ("name", "value"), [("sum", 0.0), ("prod", 1.0), ("amax", -math.inf), ("amin", math.inf), ("logsumexp", -math.inf)]
)
def test_nothing_gives_the_value_that_changes_nothing(name, value):
    assert reduce(name, cresset.ones(2), dim=0, mask=cresset.tensor([False, False])).item() == value


def test_mean_and_median_of_nothing_are_nan():
    mask = cresset.tensor([False, False])
    assert math.isnan(cresset.masked.mean(cresset.ones(2), 0, mask=mask).item())
    assert math.isnan(cresset.masked.median(cresset.ones(2), 0, mask=mask).item())


def test_softmax_shares_one_among_the_unmasked():
    x, mask = cresset.tensor([1.0, 100.0, 1.0]), cresset.tensor([True, False, True])
    assert cresset.masked.softmax(x, 0, mask=mask).tolist() == [0.5, 0.0, 0.5]
    assert cresset.masked.softmin(-x, 0, mask=mask).tolist() == [0.5, 0.0, 0.5]
    assert cresset.allclose(cresset.masked.log_softmax(x, 0, mask=mask).exp(), cresset.tensor([0.5, 0.0, 0.5]))


def test_running_sum_and_product_pass_over_masked_elements():
    x, mask = cresset.tensor([2, 3, 4]), cresset.tensor([True, False, True])
    assert cresset.masked.cumsum(x, 0, mask=mask).tolist() == [2, 2, 6]
    assert cresset.masked.cumprod(x, 0, mask=mask).tolist() == [2, 2, 8]


def test_place_of_extremes():
    x, mask = cresset.tensor([2, 9, 4, 1]), cresset.tensor([True, False, True, False])
    assert cresset.masked.argmax(x, 0, mask=mask).item() == 2
    assert cresset.masked.argmin(x, 0, mask=mask).item() == 0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: cresset.masked.sum(x, mask=cresset.ones(2, 2, 2)), IndexError, "mask dimensionality higher"),
        (lambda x: cresset.masked.median(x.long()), ValueError, "floating point"),
        (lambda x: cresset.masked.var(x, 0, True, correction=1), ValueError, "only one of 'correction' and 'unbiased'"),
    ],
)
def test_error_says_what_is_wrong(call, error, message):
    with pytest.raises(error, match=message):
        call(cresset.zeros(2, 2))


def test_the_product_over_no_dimension_leaves_the_elements():
    x, mask = cresset.tensor([[2.0, 3.0]]), cresset.tensor([[True, False]])
    assert cresset.masked.prod(x, [], mask=mask).tolist() == [[2.0, 1.0]]
    assert cresset.masked.prod(x, (), mask=mask).item() == 2.0


def test_identities_of_reductions_go_by_names_with_and_without_their_module():
    identity = cresset.masked._reduction_identity
    x = cresset.ones(2)
    assert identity("masked.amax", x).item() == identity("amax", x).item() == -math.inf
    assert identity("masked.mean", x) is None
    with pytest.raises(NotImplementedError, match="masked.other"):
        identity("masked.other", x)
