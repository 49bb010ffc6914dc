"""softmax and log_softmax on CUDA give what the CPU gives, and so do their gradients."""

import math

import pytest

import cresset
import cresset.nn.functional as F

TOLERANCE = {"float32": 2e-6, "float64": 1e-12, "float16": 1e-3, "bfloat16": 1e-2}


def result_and_gradient(f, x):
    x = x.detach().clone().requires_grad_()
    y = f(x)
    y.backward(cresset.linspace(-1, 1, y.numel(), dtype=cresset.float64).reshape(y.shape).to(y.device, y.dtype))
    return y.detach(), x.grad


def check(f, x, cuda, tolerance):
    for got, want in zip(result_and_gradient(f, x.to(cuda)), result_and_gradient(f, x), strict=True):
        assert got.dtype == want.dtype
        cresset.testing.assert_close(got.cpu(), want, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("softmax", [F.softmax, F.log_softmax], ids=["softmax", "log_softmax"])
class TestSoftmax:
    @pytest.mark.parametrize("dtype", TOLERANCE)
    @pytest.mark.parametrize(("shape", "dim"), [((7, 10), 1), ((3, 257), 1), ((2, 3072), 1), ((2, 5, 3), 1), ((40, 33), 0), ((9,), 0), ((), 0), ((4, 1), 1)])
    def test_along_any_dim(self, softmax, dtype, shape, dim, cuda):
        x = 3 * cresset.randn(shape, generator=cresset.Generator().manual_seed(1))
        check(lambda t: softmax(t, dim), x.to(getattr(cresset, dtype)), cuda, TOLERANCE[dtype] * (10 if softmax is F.log_softmax else 1))

    @pytest.mark.parametrize("n", [20000, 20001])
    def test_rows_longer_than_the_registers(self, softmax, n, cuda):
        check(lambda t: softmax(t, 1), cresset.randn(2, n, generator=cresset.Generator().manual_seed(1)), cuda, 1e-5)

    @pytest.mark.parametrize("n", [5, 200, 2000, 20000])
    def test_rows_with_infinities(self, softmax, n, cuda):
        x = cresset.full((5, n), -math.inf)
        x[0, 3], x[1, n - 1], x[1, 1], x[2, 2], x[3, 0] = 1, 2, 0, math.inf, math.nan  # the last row has nothing else
        for t in (x, x.T.contiguous()):
            got, want = softmax(t.to(cuda), t.shape.index(n)), softmax(t, t.shape.index(n))
            cresset.testing.assert_close(got.cpu(), want, rtol=1e-6, atol=1e-6, equal_nan=True)

    def test_another_dtype_and_strides(self, softmax, cuda):
        x = cresset.randn(6, 5, 4, generator=cresset.Generator().manual_seed(1)).half()
        check(lambda t: softmax(t.permute(2, 0, 1)[:, ::2], 1, dtype=cresset.float32), x, cuda, 1e-3)
        check(lambda t: softmax(t[1:, 1:, 1:], 2), x, cuda, 1e-3)

    def test_of_nothing(self, softmax, cuda):
        assert softmax(cresset.zeros(0, 3, device=cuda), 1).shape == (0, 3)
        assert softmax(cresset.zeros(3, 0, device=cuda), 1).shape == (3, 0)
