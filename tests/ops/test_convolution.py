"""Convolution in one to three dimensions."""

import pytest

import cresset
import cresset.nn.functional as F
from cresset.autograd import gradcheck, gradgradcheck


def test_a_kernel_of_ones_sums_its_neighbors():
    image = cresset.arange(9.0).reshape(1, 1, 3, 3)
    sums = F.conv2d(image, cresset.ones(1, 1, 3, 3), padding=1)
    assert sums[0, 0].tolist() == [[8.0, 15.0, 12.0], [21.0, 36.0, 27.0], [20.0, 33.0, 24.0]]


def test_no_images_may_become_images_of_no_height():
    assert F.conv_transpose2d(cresset.ones(0, 3, 0, 3), cresset.ones(3, 2, 2, 2), stride=2).shape == (0, 2, 0, 6)
    with pytest.raises(RuntimeError, match="Output size is too small"):
        F.conv_transpose2d(cresset.ones(1, 3, 0, 3), cresset.ones(3, 2, 2, 2), stride=2)


@pytest.mark.parametrize(("x", "weight"), [((0, 1, 0), (1, 2, 2)), ((0, 1, 0), (1, 2, 1)), ((0, 2, 3), (2, 1, 2))])
def test_a_transposed_convolution_of_no_images_has_derivatives(x, weight):
    x, weight = cresset.ones(x, requires_grad=True), cresset.ones(weight, requires_grad=True)
    y = F.conv_transpose1d(x, weight)
    got, of_weight = cresset.autograd.grad(y.pow(3).sum(), (x, weight), create_graph=True)
    assert got.shape == x.shape and got.requires_grad and not of_weight.any()


def test_small_integers_are_nothing_that_a_transposed_convolution_is_implemented_for():
    layer = cresset.nn.ConvTranspose2d(2, 3, 2)
    for dtype in (cresset.bool, cresset.uint8, cresset.int32):
        with pytest.raises(NotImplementedError, match="not implemented for .* with a weight of dtype 'Float'"):
            layer(cresset.ones(1, 2, 3, 3, dtype=dtype))
    with pytest.raises(RuntimeError, match="expected scalar type Long but found Float"):
        layer(cresset.ones(1, 2, 3, 3, dtype=cresset.int64))


@pytest.mark.parametrize("width", [1, 7, 16, 33, 50])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
def test_every_element_is_the_product_with_its_patch(width, stride, dilation):
    x = cresset.arange(2.0 * 3 * 6 * width).reshape(2, 3, 6, width) % 7 - 3
    w = cresset.arange(4.0 * 3 * 2 * 3).reshape(4, 3, 2, 3) % 5 - 2
    y = F.conv2d(x, w, stride=stride, dilation=dilation, padding=(1, 2 * dilation))
    padded = F.pad(x, (2 * dilation, 2 * dilation, 1, 1))
    for row in range(y.shape[2]):
        for column in range(y.shape[3]):
            top, left = row * stride, column * stride
            patch = padded[:, :, top : top + dilation + 1 : dilation, left : left + 2 * dilation + 1 : dilation]
            assert (y[:, :, row, column] == cresset.einsum("nchw,ochw->no", patch, w)).all()


def test_a_transposed_convolution_is_the_gradient_of_a_convolution():
    x = cresset.randn(2, 4, 9, 9, dtype=cresset.float64, requires_grad=True)
    w = cresset.randn(6, 2, 3, 3, dtype=cresset.float64)
    y = F.conv2d(x, w, stride=2, padding=1, groups=2)
    grad = cresset.randn(*y.shape, dtype=cresset.float64)
    (expected,) = cresset.autograd.grad(y, x, grad)
    assert cresset.allclose(F.conv_transpose2d(grad, w, stride=2, padding=1, groups=2), expected)


def test_same_padding_keeps_the_size():
    x = cresset.ones(1, 1, 5, 6)
    assert F.conv2d(x, cresset.ones(1, 1, 2, 3), padding="same").shape == x.shape


@pytest.mark.parametrize("channels", [(8, 12), (32, 48), (36, 40)])
def test_results_do_not_depend_on_the_number_of_threads(channels):
    before, after = channels
    x, w = cresset.randn(5, before, 20, 20, requires_grad=True), cresset.randn(after, before, 3, 3, requires_grad=True)
    before, results = cresset.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            cresset.set_num_threads(threads)
            y = F.conv2d(x, w, padding=1)
            results.append((y, *cresset.autograd.grad(y, (x, w), cresset.ones_like(y))))
    finally:
        cresset.set_num_threads(before)
    for others in results[1:]:
        assert all((one == other).all() for one, other in zip(results[0], others))


def _whole_numbers(*shape):
    return (cresset.arange(float(cresset.Size(shape).numel())) * 7 % 11 - 5).reshape(shape)


# Note [Fewer multiplications] in native/ops/convolution_winograd.h: images with 16, 32, ... channels and kernels of 3 x
# 3.
_TILED = [
    (2, 32, 32, 8, 8, 1),
    (3, 16, 48, 15, 22, 1),
    (2, 64, 32, 9, 30, 0),
    (2, 48, 80, 6, 13, 2),
    (1, 32, 112, 40, 41, (3, 0)),
    (8, 128, 144, 5, 4, 1),
]


@pytest.mark.parametrize("images, before, after, height, width, padding", _TILED)
@pytest.mark.parametrize("layout", [cresset.contiguous_format, cresset.channels_last])
def test_fewer_multiplications_give_the_same_whole_numbers(images, before, after, height, width, padding, layout):
    """Whole numbers, halves and quarters are exact in float32: what float64 gives by the definition has to come out."""
    x, w = _whole_numbers(images, before, height, width), _whole_numbers(after, before, 3, 3)
    bias = _whole_numbers(after)
    expected = F.conv2d(x.double(), w.double(), bias.double(), padding=padding)
    grad = _whole_numbers(*expected.shape)
    x, w = x.to(memory_format=layout).requires_grad_(), w.requires_grad_()
    y = F.conv2d(x, w, bias, padding=padding)
    assert y.dtype == cresset.float32 and (y == expected).all()
    assert y.is_contiguous(memory_format=layout)
    exact = [t.detach().double().requires_grad_() for t in (x, w)]
    wanted = cresset.autograd.grad(F.conv2d(*exact, padding=padding), exact, grad.double())
    for ours, definition in zip(cresset.autograd.grad(y, (x, w), grad), wanted):
        assert (ours == definition).all()


# Note [Sums over stretches] in native/ops/convolution_direct.h: rank, images, channels before and after, groups, size,
# kernel, stride, padding, dilation.
_DIRECT = [
    (2, 2, 20, 36, 1, (15, 17), (3, 3), (2, 2), (1, 1), (1, 1)),
    (2, 3, 3, 40, 1, (30, 31), (7, 7), (2, 2), (3, 3), (1, 1)),
    (2, 2, 200, 300, 1, (9, 10), (1, 1), (1, 1), (0, 0), (1, 1)),
    (2, 1, 96, 100, 1, (33, 56), (1, 5), (1, 3), (1, 2), (1, 2)),
    (2, 2, 20, 72, 4, (33, 20), (5, 2), (3, 2), (3, 1), (2, 1)),
    (2, 2, 50, 50, 50, (30, 41), (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 2, 64, 64, 64, (29, 28), (5, 3), (2, 1), (2, 0), (1, 2)),
    (1, 3, 40, 24, 2, (900,), (3,), (3,), (3,), (1,)),
    (3, 2, 17, 33, 1, (6, 9, 12), (3, 2, 3), (2, 1, 2), (1, 0, 1), (1, 2, 1)),
    (2, 2, 560, 24, 1, (12, 12), (3, 3), (1, 1), (1, 1), (1, 1)),
]


@pytest.mark.parametrize("rank, images, before, after, groups, size, kernel, stride, padding, dilation", _DIRECT)
def test_sums_over_stretches_give_the_same_whole_numbers(
    rank, images, before, after, groups, size, kernel, stride, padding, dilation
):
    """Whole numbers are exact in float32: what float64 gives, by way of patches, has to come out."""
    convolve = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[rank]
    x, w = _whole_numbers(images, before, *size), _whole_numbers(after, before // groups, *kernel)
    bias, places = _whole_numbers(after), (stride, padding, dilation, groups)
    exact = [t.double().requires_grad_() for t in (x, w, bias)]
    expected = convolve(*exact, *places)
    ours = [t.requires_grad_() for t in (x, w, bias)]
    y = convolve(*ours, *places)
    assert y.dtype == cresset.float32 and (y == expected).all()
    grad = _whole_numbers(*expected.shape)
    for one, definition in zip(
        cresset.autograd.grad(y, ours, grad), cresset.autograd.grad(expected, exact, grad.double())
    ):
        assert (one == definition).all()


def test_a_value_that_is_not_finite_reaches_only_its_neighbors():
    x, w = cresset.ones(2, 32, 12, 12), cresset.ones(32, 32, 3, 3)
    x[1, 4, 5, 6] = float("inf")
    y = F.conv2d(x, w)  # row 5 is seen by rows 3 to 5 of the result
    seen = cresset.zeros(2, 32, 10, 10, dtype=cresset.bool)
    seen[1, :, 3:6, 4:7] = True
    assert (y[seen] == float("inf")).all() and (y[~seen] == 288.0).all()

    x, w = x.requires_grad_(), w.requires_grad_()
    grad = cresset.zeros(2, 32, 10, 10)
    grad[1, 7, 3, 4] = 2.0  # its first patch ends at the infinity
    ours, filters = cresset.autograd.grad(F.conv2d(x, w), (x, w), grad)
    expected = cresset.zeros(2, 32, 12, 12)
    expected[1, :, 3:6, 4:7] = 2.0
    assert (ours == expected).all()
    others = [channel for channel in range(32) if channel != 4]
    assert (filters[7, others] == 2.0).all() and (filters[:7, others] == 0.0).all()
    assert filters[7, 4, 2, 2] == float("inf") and filters.isnan().sum() == 32 * 9 - 1  # elsewhere infinity times 0


@pytest.mark.cpu_only("cuDNN multiplies with TF32")
def test_numbers_near_the_largest_do_not_overflow_on_the_way():
    x, w = cresset.full((1, 32, 16, 16), 3e38), cresset.zeros(32, 32, 3, 3)
    w[:, 0, 1, 1] = 1.0
    assert (F.conv2d(x, w, padding=1) == cresset.tensor(3e38)).all()


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True])
def test_convolutions_have_derivatives_of_every_order(rank, transposed):
    convolve = getattr(F, f"conv{'_transpose' if transposed else ''}{rank}d")
    sizes = (4, 5, 3)[:rank]
    x = cresset.randn(2, 2, *sizes, dtype=cresset.float64, requires_grad=True)
    w = cresset.randn(2, 1 if not transposed else 2, *(3, 2, 2)[:rank], dtype=cresset.float64, requires_grad=True)
    groups = 1 if transposed else 2
    b = cresset.randn(2, dtype=cresset.float64, requires_grad=True)
    run = lambda *args: convolve(*args, stride=2, padding=1, groups=groups)  # noqa: E731
    assert gradcheck(run, (x, w, b))
    assert gradgradcheck(run, (x, w, b))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: F.conv2d(cresset.ones(1, 3, 5, 5), cresset.ones(4, 2, 3, 3)), "2 channels, but got 3 channels"),
        (lambda: F.conv2d(cresset.ones(1, 3, 2, 2), cresset.ones(4, 3, 3, 3)), "Kernel size can't be greater than"),
        (lambda: F.conv2d(cresset.ones(1, 3, 5, 5), cresset.ones(4, 3, 3, 3), stride=0), "non-positive stride"),
        (lambda: F.conv2d(cresset.ones(3, 5), cresset.ones(4, 3, 3, 3)), "Expected 3D \\(unbatched\\) or 4D"),
        (lambda: F.conv2d(cresset.ones(1, 3, 5, 5), cresset.ones(4, 3, 3, 3), padding="other"), "Invalid padding"),
    ],
)
def test_what_does_not_fit_is_an_error_that_says_why(call, message):
    with pytest.raises(RuntimeError, match=message):
        call()


def test_a_step_beyond_the_input_leads_nowhere():
    for stride in (4, (1 << 63) - 1):
        assert cresset.conv1d(cresset.ones(1, 3), cresset.ones(1, 1, 3), stride=stride).tolist() == [[3.0]]


def test_a_dilation_of_zero_is_refused_where_there_is_something_to_convolve():
    weight = cresset.ones(2, 3, 2)
    assert cresset.conv1d(cresset.ones(0, 3, 5), weight, dilation=0).shape == (0, 2, 5)
    with pytest.raises(RuntimeError, match="dilation should be greater than zero, but got .0."):
        cresset.conv1d(cresset.ones(1, 3, 5), weight, dilation=0)
    with pytest.raises(RuntimeError, match="dilation should be greater than zero"):
        cresset.conv1d(cresset.ones(0, 3, 5), weight, dilation=-1)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("channels, results, kernel, size", [(1, 1, 3, 4), (3, 2, 3, 4), (3, 2, 1, 4), (8, 8, 3, 20)])
@pytest.mark.parametrize("convolve", ["conv1d", "conv_transpose1d"])
def test_whole_numbers_are_convolved_exactly(convolve, channels, results, kernel, size, dtype):
    x = cresset.arange(channels * size).reshape(1, channels, size) % 5
    w = cresset.arange(channels * results * kernel) % 3
    w = w.reshape((results, channels, kernel) if convolve == "conv1d" else (channels, results, kernel))
    call = getattr(cresset.nn.functional, convolve)
    whole = call(x.to(getattr(cresset, dtype)), w.to(getattr(cresset, dtype)))
    assert whole.tolist() == call(x.double(), w.double()).to(whole.dtype).tolist()


@pytest.mark.parametrize("stride", [1, 2])
def test_few_points_and_a_large_filter_give_each_image_the_bits_it_has_alone(stride):
    """Such images are computed together, so that the filter is read once."""
    cresset.manual_seed(0)
    weight = cresset.randn(520, 512, 3, 3) * 0.02
    images = cresset.randn(9, 512, 3, 3)
    together, grads = _result_and_gradients(images, weight, stride)
    for number in range(9):
        alone, grads_alone = _result_and_gradients(images[number : number + 1], weight, stride)
        assert cresset.equal(alone[0], together[number])
        assert cresset.equal(grads_alone[0][0], grads[0][number])


def test_few_points_and_a_large_filter_agree_with_float64():
    cresset.manual_seed(0)
    weight, images = cresset.randn(520, 300, 3, 3) * 0.02, cresset.randn(5, 300, 2, 3)
    result, grads = _result_and_gradients(images, weight, 1)
    wanted, wanted_grads = _result_and_gradients(images.double(), weight.double(), 1)
    for found, right in zip([result, *grads], [wanted, *wanted_grads], strict=True):
        cresset.testing.assert_close(found.double(), right, rtol=1e-4, atol=1e-4)


def _result_and_gradients(images, weight, stride):
    images, weight = images.clone().requires_grad_(), weight.clone().requires_grad_()
    result = cresset.nn.functional.conv2d(images, weight, stride=stride, padding=1)
    return result.detach(), cresset.autograd.grad(result.square().sum(), [images, weight])


def test_the_former_base_of_transposed_convolutions_is_there_and_says_that_it_is_former():
    from cresset.nn.modules.conv import _ConvTransposeMixin, _ConvTransposeNd

    class Upward(_ConvTransposeMixin):
        _dimensions = 2

    with pytest.warns(FutureWarning, match="deprecated internal class"):
        assert isinstance(Upward(2, 3, 2), _ConvTransposeNd)
