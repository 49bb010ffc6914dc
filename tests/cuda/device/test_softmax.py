"""softmax and log_softmax on CUDA give what the CPU gives, and so do their gradients."""

import math

import pytest
from agreeing import agree, agree_with_gradients

import cresset
import cresset.nn.functional as F

TOLERANCE = {"float32": 2e-5, "float64": 1e-12, "float16": 1e-2, "bfloat16": 5e-2}


@pytest.mark.parametrize("softmax", [F.softmax, F.log_softmax], ids=["softmax", "log_softmax"])
class TestSoftmax:
    @pytest.mark.parametrize(
        ("shape", "dim", "dtype"),
        [
            ((7, 10), 1, "float32"), ((3, 257), 1, "float16"), ((2, 3072), 1, "bfloat16"), ((2, 5, 3), 1, "float32"),
            ((40, 33), 0, "float64"),
            ((3, 600), 1, "float64"), ((9,), 0, "float32"), ((), 0, "float32"), ((4, 1), 1, "float32"),
            ((2, 50, 4), 1, "bfloat16"),
        ],
    )  # fmt: skip
    def test_along_any_dim(self, softmax, shape, dim, dtype):
        x = 3 * cresset.randn(shape, generator=cresset.Generator().manual_seed(1))
        agree_with_gradients(lambda t: softmax(t, dim), x.to(getattr(cresset, dtype)), tolerance=TOLERANCE[dtype])

    @pytest.mark.parametrize("n", [20000, 20001])
    def test_rows_longer_than_the_registers(self, softmax, n):
        agree_with_gradients(
            lambda t: softmax(t, 1), cresset.randn(2, n, generator=cresset.Generator().manual_seed(1)), tolerance=1e-5
        )

    @pytest.mark.parametrize("n", [5, 200, 2000, 20000])
    def test_rows_with_infinities(self, softmax, n):
        x = cresset.full((5, n), -math.inf)
        x[0, 3], x[1, n - 1], x[1, 1], x[2, 2], x[3, 0] = 1, 2, 0, math.inf, math.nan  # the last row has nothing else
        for t in (x, x.T.contiguous()):
            agree(lambda t: softmax(t, t.shape.index(n)), t, tolerance=1e-6)

    def test_another_dtype_and_strides(self, softmax):
        x = cresset.randn(6, 5, 4, generator=cresset.Generator().manual_seed(1)).half()
        agree_with_gradients(lambda t: softmax(t.permute(2, 0, 1)[:, ::2], 1, dtype=cresset.float32), x, tolerance=1e-3)
        agree_with_gradients(lambda t: softmax(t[1:, 1:, 1:], 2), x, tolerance=1e-3)

    def test_memory_that_begins_between_vectors(self, softmax):
        x = cresset.randn(20001, generator=cresset.Generator().manual_seed(1))
        agree_with_gradients(lambda t: softmax(t[1:].view(4, 5000), 1), x, tolerance=1e-5)
        agree_with_gradients(lambda t: softmax(t[1:].view(1, 20000), 1), x, tolerance=1e-5)

    def test_of_nothing(self, softmax):
        assert softmax(cresset.zeros(0, 3, device="cuda"), 1).shape == (0, 3)
        assert softmax(cresset.zeros(3, 0, device="cuda"), 1).shape == (3, 0)
