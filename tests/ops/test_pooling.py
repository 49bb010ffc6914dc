"""Pooling over windows, and the way back."""

import pytest

import cresset
import cresset.nn.functional as F
from cresset.autograd import gradcheck, gradgradcheck


def test_max_pool_gives_the_maximum_and_its_place():
    values, places = F.max_pool2d(cresset.arange(16.0).reshape(1, 1, 4, 4), 2, return_indices=True)
    assert values.flatten().tolist() == [5.0, 7.0, 13.0, 15.0]
    assert places.flatten().tolist() == [5, 7, 13, 15]


def test_max_pool_finds_nan():
    assert F.max_pool1d(cresset.tensor([[1.0, float("nan"), 2.0, 3.0]]), 2).isnan().tolist() == [[True, False]]


def test_max_unpool_puts_maxima_back():
    x = cresset.tensor([[[1.0, 3.0, 5.0, 2.0]]])
    values, places = F.max_pool1d(x, 2, return_indices=True)
    assert F.max_unpool1d(values, places, 2).tolist() == [[[0.0, 3.0, 5.0, 0.0]]]


def test_avg_pool_counts_padding_only_when_asked():
    x = cresset.ones(1, 1, 4)
    assert F.avg_pool1d(x, 2, padding=1).flatten().tolist() == [0.5, 1.0, 0.5]
    assert F.avg_pool1d(x, 2, padding=1, count_include_pad=False).flatten().tolist() == [1.0, 1.0, 1.0]
    assert F.avg_pool2d(cresset.ones(1, 2, 2), 2, divisor_override=2).item() == 2.0


def test_ceil_mode_keeps_a_window_that_reaches_over_the_end():
    x = cresset.arange(5.0).reshape(1, 5)
    assert F.max_pool1d(x, 2).tolist() == [[1.0, 3.0]]
    assert F.max_pool1d(x, 2, ceil_mode=True).tolist() == [[1.0, 3.0, 4.0]]


def test_adaptive_windows_cover_the_input():
    assert F.adaptive_avg_pool1d(cresset.arange(5.0).reshape(1, 5), 2).tolist() == [[1.0, 3.0]]
    assert F.adaptive_max_pool2d(cresset.arange(6.0).reshape(1, 2, 3), (1, None)).tolist() == [[[3.0, 4.0, 5.0]]]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pools_have_derivatives_of_every_order(rank):
    x = cresset.randperm(2 * 5**rank).to(cresset.float64).reshape(1, 2, *[5] * rank).requires_grad_()
    for name, argument in [("max_pool", 2), ("avg_pool", 3), ("adaptive_avg_pool", 2), ("adaptive_max_pool", 3)]:
        pool = getattr(F, f"{name}{rank}d")
        assert gradcheck(lambda t: pool(t, argument), (x,))
        assert gradgradcheck(lambda t: pool(t, argument), (x,))


def test_errors_say_what_is_wrong(refused):
    with pytest.raises(RuntimeError, match="pad should be at most half of effective kernel size"):
        F.max_pool2d(cresset.ones(1, 5, 5), 2, padding=2)
    with pytest.raises(RuntimeError, match="Output size is too small"):
        F.avg_pool2d(cresset.ones(1, 5, 5), 7)
    with refused(RuntimeError, "invalid max index"):
        F.max_unpool1d(cresset.ones(1, 1), cresset.tensor([[9]]), 2)


def test_of_no_channels_come_no_channels():
    assert F.adaptive_max_pool2d(cresset.ones(0, 3, 3), 2).shape == (0, 2, 2)
    assert F.adaptive_avg_pool2d(cresset.ones(2, 0, 3, 3), 2).shape == (2, 0, 2, 2)
    with pytest.raises(RuntimeError, match="non-zero size for non-batch dimensions"):
        F.adaptive_avg_pool2d(cresset.ones(2, 1, 0, 3), 2)


@pytest.mark.parametrize("channels", [1, 7, 8, 9, 33])
@pytest.mark.parametrize("dtype", [cresset.float32, cresset.float64, cresset.bfloat16, cresset.int32, cresset.int8])
def test_innermost_channels_give_the_same_maxima_and_places(channels, dtype):
    x = (cresset.arange(2 * channels * 5 * 6).reshape(2, channels, 5, 6) * 37 % 101).to(dtype)
    if dtype.is_floating_point:
        x[0, 0, 1, 1] = float("nan")
        x[1, -1] = float("-inf")  # nothing is larger than the start: the first place stands
    expected, places = F.max_pool2d(x, 3, 2, 1, return_indices=True)
    got, found = F.max_pool2d(x.contiguous(memory_format=cresset.channels_last), 3, 2, 1, return_indices=True)
    assert found.tolist() == places.tolist() and got.nan_to_num(7).tolist() == expected.nan_to_num(7).tolist()


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
def test_windows_side_by_side_have_the_maxima_of_each(stride, dilation):
    """Whole windows are compared element by element for many at once, those that reach over an end one by one."""
    x = cresset.randint(0, 9, (2, 3, 40)).float()  # with ties: the first place counts
    x[0, 0, 7] = float("nan")
    values, places = cresset.max_pool1d(x, 4, stride, 2, dilation, return_indices=True)
    for plane in range(6):
        line = x.reshape(6, 40)[plane].tolist()
        for o, (value, place) in enumerate(
            zip(values.reshape(6, -1)[plane].tolist(), places.reshape(6, -1)[plane].tolist(), strict=True)
        ):
            at = [i for k in range(4) if 0 <= (i := o * stride - 2 + k * dilation) < 40]
            nan = [i for i in at if line[i] != line[i]]
            best = nan[-1] if nan else max(at, key=lambda i: line[i])
            assert place == best and (value == line[best] or value != value)


def test_one_window_of_all_is_the_mean_and_spreads_its_gradient():
    x = cresset.randn(3, 5, 31, 17, dtype=cresset.float64, requires_grad=True)
    y = cresset.nn.functional.adaptive_avg_pool2d(x, 1)
    assert cresset.allclose(y.flatten(1), x.mean((2, 3)))
    y.sum().backward()
    assert cresset.allclose(x.grad, cresset.full_like(x, 1 / (31 * 17)))


@pytest.mark.parametrize("name", ["adaptive_avg_pool", "adaptive_max_pool"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_no_gradient_flows_through_an_adaptive_pooling_without_windows(name, rank):
    x = cresset.ones(1, 2, *[4] * rank, requires_grad=True)
    y = getattr(F, f"{name}{rank}d")(x, 0)
    assert y.shape == (1, 2, *[0] * rank)
    with pytest.raises(RuntimeError, match="Expected grad_output to have non-zero size for non-batch dimensions"):
        y.sum().backward()


def test_max_pool3d_keeps_the_layout_of_one_volume():
    batch = cresset.arange(2.0 * 4 * 4 * 4).reshape(1, 2, 4, 4, 4).contiguous(memory_format=cresset.channels_last_3d)
    values, places = F.max_pool3d(batch[0], 2, return_indices=True)
    assert values.stride() == places.stride() == (1, 8, 4, 2)
    assert values.flatten().tolist() == F.max_pool3d(batch[0].contiguous(), 2).flatten().tolist()


@pytest.mark.parametrize("rank, count", [(2, "two"), (3, "three")])
def test_unpooling_without_a_window_is_named(rank, count):
    layer, shape = getattr(cresset.nn, f"MaxUnpool{rank}d")(()), (1,) * (rank + 1)
    with pytest.raises(RuntimeError, match=f"There should be exactly {count} elements"):
        layer(cresset.ones(shape), cresset.zeros(shape, dtype=cresset.int64))


def test_a_mean_over_a_window_longer_than_an_int_is_refused():
    for pool in (lambda x: F.avg_pool1d(x, 2**40, ceil_mode=True), lambda x: F.lp_pool1d(x, 2, 2**40, ceil_mode=True)):
        with pytest.raises(RuntimeError, match="value cannot be converted to type int without overflow"):
            pool(cresset.ones(3, 15))
