"""Fourier transforms on CUDA through cuFFT: what the CPU gives, for any dimensions, lengths and norms, with
gradients."""

import pytest

import cresset

TOLERANCE = {"float32": 1e-5, "float64": 1e-12, "complex64": 1e-5, "complex128": 1e-12}


def made(*shape, dtype="complex64", seed=0):
    generator = cresset.Generator().manual_seed(seed)
    return cresset.randn(shape, dtype=getattr(cresset, dtype), generator=generator)


def agrees(function, tensor, tolerance=None):
    """The result, and the gradient of the argument for a fixed one of the result."""

    def computed(device):
        there = tensor.detach().to(device).requires_grad_()
        result = function(there)
        result.backward(made(*result.shape, dtype=str(result.dtype)[6:], seed=9).to(device))
        return result.detach(), there.grad

    if tolerance is None:
        tolerance = TOLERANCE[str(tensor.dtype)[6:]]
    for result, expected in zip(computed("cuda"), computed("cpu"), strict=True):
        assert result.is_cuda and result.dtype == expected.dtype and result.shape == expected.shape
        error = (result.cpu() - expected).abs().max().item()
        assert error <= tolerance * max(expected.abs().max().item(), 1)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", ["fft", "ifft"])
def test_every_dtype(name, dtype):
    agrees(getattr(cresset.fft, name), made(3, 8, dtype=dtype))


@pytest.mark.parametrize(
    "name, dtype",
    [
        ("rfft", "float32"),
        ("rfft", "float64"),
        ("ihfft", "float32"),
        ("irfft", "complex64"),
        ("irfft", "complex128"),
        ("hfft", "complex64"),
    ],
)
@pytest.mark.parametrize("n", [None, 7, 12])
def test_real_transforms(name, dtype, n):
    agrees(lambda x: getattr(cresset.fft, name)(x, n=n), made(3, 9, dtype=dtype))


@pytest.mark.parametrize(
    "name, dtype", [("rfftn", "float64"), ("ihfftn", "float64"), ("irfftn", "complex128"), ("hfftn", "complex128")]
)
@pytest.mark.parametrize("dim", [(1, 2), (0, 2), (2, 0), (0, 1, 2), (-1,)])
def test_real_transforms_of_several_dimensions(name, dtype, dim):
    agrees(lambda x: getattr(cresset.fft, name)(x, dim=dim), made(4, 3, 5, dtype=dtype))


@pytest.mark.parametrize("n", [1, 2, 3, 5, 16, 17, 30, 64])
def test_lengths(n):
    agrees(cresset.fft.fft, made(2, n))


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_any_dimension(dim):
    agrees(lambda x: cresset.fft.fft(x, dim=dim), made(4, 3, 5))


@pytest.mark.parametrize("dim", [(0,), (2, 3), (0, 1), (1, 3), (3, 0, 1), (1, 2, 3), (0, 1, 2, 3), None])
def test_several_dimensions(dim):
    agrees(lambda x: cresset.fft.fftn(x, dim=dim), made(2, 3, 4, 5))
    agrees(lambda x: cresset.fft.ifftn(x, dim=dim), made(2, 3, 4, 5))


def test_dimensions_of_one_element():
    agrees(lambda x: cresset.fft.fftn(x, dim=(0, 1, 2)), made(1, 4, 1))
    agrees(lambda x: cresset.fft.fft(x, dim=0, norm="ortho"), made(1, 4))
    agrees(lambda x: cresset.fft.fft(x, dim=0), made(4, 1))


@pytest.mark.parametrize("norm", ["forward", "backward", "ortho", None])
def test_norms(norm):
    for name in ("fft", "ifft", "irfft", "hfft"):
        agrees(lambda x: getattr(cresset.fft, name)(x, norm=norm), made(2, 6))


@pytest.mark.parametrize("n", [3, 6, 11])
def test_lengths_that_are_cut_or_filled(n):
    agrees(lambda x: cresset.fft.fft(x, n=n, dim=0), made(6, 2))
    agrees(lambda x: cresset.fft.fft2(x, s=(n, 4)), made(2, 6, 5))


def test_tensors_of_any_strides():
    agrees(lambda x: cresset.fft.fft(x.transpose(0, 1)), made(5, 4))
    agrees(lambda x: cresset.fft.fft(x[:, ::2], dim=0), made(5, 8))
    agrees(lambda x: cresset.fft.fft(x.conj()), made(2, 5))
    agrees(lambda x: cresset.fft.fft2(x[1:, :, 1:]), made(3, 4, 5))
    agrees(lambda x: cresset.fft.fft(x[:1].expand(3, 4)), made(2, 4))


def test_a_transform_and_its_inverse_give_the_tensor_back():
    x = made(2, 3, 8, dtype="float64").cuda()
    cresset.testing.assert_close(cresset.fft.irfftn(cresset.fft.rfftn(x), x.shape), x)
    z = made(2, 3, 7, dtype="complex128").cuda()
    cresset.testing.assert_close(cresset.fft.ifftn(cresset.fft.fftn(z)), z)


def test_second_derivatives():
    x = made(5, dtype="float64").cuda().requires_grad_()
    assert cresset.autograd.gradgradcheck(lambda x: cresset.fft.rfft(x).abs().square().sum(), (x,))


@pytest.mark.parametrize(
    "function, dtype",
    [
        (cresset.fft.fft, "complex64"),
        (cresset.fft.fft2, "complex64"),
        (cresset.fft.rfft, "float32"),
        (cresset.fft.ihfft, "float32"),
    ],
)
def test_halves(function, dtype):
    x, half = made(4, 8, dtype=dtype), {"complex64": cresset.complex32, "float32": cresset.float16}[dtype]
    result = function(x.cuda().to(half))
    assert result.dtype == cresset.complex32
    expected = function(x)
    assert (result.to(cresset.complex64).cpu() - expected).abs().max() < 5e-3 * expected.abs().max()
    along = (0,) if function is cresset.fft.fft2 else 0
    turned = function(x.cuda().to(half).mT, dim=along).to(cresset.complex64)
    cresset.testing.assert_close(turned, function(x.cuda().mT, dim=along), rtol=2e-2, atol=2e-2)


def test_halves_to_real_signals_and_what_is_refused():
    x = made(3, 5)
    result = cresset.fft.irfft(x.cuda().to(cresset.complex32))
    assert result.dtype == cresset.float16
    assert (result.float().cpu() - cresset.fft.irfft(x)).abs().max() < 1e-2
    with pytest.raises(RuntimeError, match="powers of two"):
        cresset.fft.fft(x.cuda().to(cresset.complex32))
    with pytest.raises(RuntimeError, match="Unsupported dtype bfloat16"):
        cresset.fft.fft(cresset.ones(4, dtype=cresset.bfloat16, device="cuda"))


def test_the_argument_stays():
    for name in ("fft", "irfft", "hfft"):
        x = made(3, 5).cuda()
        before = x.clone()
        getattr(cresset.fft, name)(x)
        assert cresset.equal(x, before)
    z = made(2, 3, 5).cuda()
    before = z.clone()
    cresset.fft.irfftn(z)
    assert cresset.equal(z, before)


def test_nothing_to_transform():
    assert cresset.fft.fft(cresset.zeros(0, 4, device="cuda")).shape == (0, 4)
    assert cresset.fft.rfft(cresset.zeros(0, 4, device="cuda")).shape == (0, 3)
    with pytest.raises(RuntimeError, match="Invalid number of data points"):
        cresset.fft.fft(cresset.zeros(4, 0, device="cuda"))


def test_what_cannot_be_transformed():
    with pytest.raises(RuntimeError, match="expects a real input"):
        cresset.fft.rfft(cresset.zeros(4, dtype=cresset.complex64, device="cuda"))
    with pytest.raises(IndexError, match="Dimension out of range"):
        cresset.fft.fft(cresset.zeros(4, device="cuda"), dim=1)


def test_integers_and_results_to_write_to():
    x = cresset.arange(6, device="cuda")
    expected = cresset.fft.fft(cresset.arange(6))
    cresset.testing.assert_close(cresset.fft.fft(x).cpu(), expected)
    out = cresset.empty(0, dtype=cresset.complex64, device="cuda")
    assert cresset.fft.fft(x, out=out) is out
    cresset.testing.assert_close(out.cpu(), expected)


def test_short_time_transforms():
    window = cresset.hann_window(8)
    signal = made(2, 40, dtype="float32")

    def spectrum(x):
        return cresset.stft(x, 8, 4, window=window.to(x.device), return_complex=True)

    agrees(spectrum, signal)
    back = cresset.istft(spectrum(signal.cuda()), 8, 4, window=window.cuda(), length=40)
    cresset.testing.assert_close(back.cpu(), signal)


def test_another_stream():
    x = made(4, 16)
    there = x.cuda()
    cresset.cuda.synchronize()
    stream = cresset.cuda.Stream()
    with cresset.cuda.stream(stream):
        result = cresset.fft.fft(there)
    stream.synchronize()
    cresset.testing.assert_close(result.cpu(), cresset.fft.fft(x))


def test_plans_are_kept():
    plans = cresset.backends.cuda.cufft_plan_cache
    plans.clear()
    assert plans.size == 0 and plans.max_size == 4096
    x = made(4, 16).cuda()
    for _ in range(3):
        cresset.fft.fft(x)
    assert plans.size == 1
    for n in range(2, 7):
        cresset.fft.fft(x, n=n)
    assert plans.size == 6
    plans[0].max_size = 2
    assert plans.size == 2
    cresset.fft.fft(x, n=3)
    assert cresset.backends.cuda.cufft_plan_cache["cuda:0"].size == 2
    plans.max_size = 4096
    with pytest.raises(RuntimeError, match="non-negative"):
        plans.max_size = -1
    plans.clear()
    assert plans.size == 0


def test_graphs():
    x = made(4, 16).cuda()
    expected = cresset.fft.irfft(cresset.fft.fft(x))  # makes the plans
    cresset.cuda.synchronize()
    graph = cresset.cuda.CUDAGraph()
    with cresset.cuda.graph(graph):
        result = cresset.fft.irfft(cresset.fft.fft(x))
    x.mul_(2)
    graph.replay()
    cresset.testing.assert_close(result, expected * 2)
