"""Results do not depend on the number of threads, to the bit: forward and backward, at sizes at which the work is
shared.
"""

import pytest

import cresset
import cresset.nn.functional as F  # noqa: N812
from cresset import nn

pytestmark = pytest.mark.cpu_only("how work is shared among its threads")

ELEMENTS = 300_000  # above every kernel's threshold


def long_vector(dtype=cresset.float32):
    return cresset.randn(ELEMENTS).to(dtype)


def rows(count=512, width=700):
    return cresset.randn(count, width)


def positions(count, below):
    return cresset.randint(0, below, (count,))


CASES = {
    "sum": lambda: (cresset.sum, [long_vector()]),
    "sum of halves": lambda: (cresset.sum, [long_vector(cresset.bfloat16)]),
    "sum over columns": lambda: (lambda x: x.sum(0), [rows()]),
    "sum over rows": lambda: (lambda x: x.sum(1), [rows()]),
    "sum of a transpose": lambda: (lambda x: x.t().sum(), [rows()]),
    "mean": lambda: (cresset.mean, [long_vector()]),
    "prod": lambda: (cresset.prod, [1 + long_vector(cresset.float64) * 1e-4]),
    "var": lambda: (cresset.var, [long_vector()]),
    "var over columns": lambda: (lambda x: x.var(0), [rows()]),
    "norm": lambda: (cresset.linalg.vector_norm, [long_vector()]),
    "logsumexp": lambda: (lambda x: x.logsumexp(0), [long_vector()]),
    "cumsum": lambda: (lambda x: x.cumsum(0), [long_vector()]),
    "cumsum of columns": lambda: (lambda x: x.cumsum(0), [rows()]),
    "cumprod": lambda: (lambda x: x.cumprod(1), [rows(600, 40)]),
    "max": lambda: (lambda x: x.max(1).values, [rows()]),
    "median": lambda: (lambda x: x.median(1).values, [rows()]),
    "sort": lambda: (lambda x: x.sort().values, [long_vector()]),
    "topk": lambda: (lambda x: x.topk(5, 1).values, [rows()]),
    "softmax": lambda: (lambda x: x.softmax(1), [rows()]),
    "softmax over columns": lambda: (lambda x: x.softmax(0), [rows()]),
    "log_softmax": lambda: (lambda x: x.log_softmax(1), [rows()]),
    "softmax of short rows": lambda: (lambda x: x.softmax(1), [rows(30_001, 10)]),
    "layer_norm": lambda: (lambda x, w, b: F.layer_norm(x, (700,), w, b),
        [rows(), cresset.randn(700), cresset.randn(700)]),
    "group_norm": lambda: (lambda x, w, b: F.group_norm(x, 4, w, b),
        [cresset.randn(8, 16, 40, 40), cresset.randn(16), cresset.randn(16)]),
    "batch_norm": lambda: (lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
        [cresset.randn(8, 16, 40, 40), cresset.randn(16), cresset.randn(16)]),
    "rms_norm": lambda: (lambda x, w: F.rms_norm(x, (700,), w), [rows(), cresset.randn(700)]),
    "add broadcast": lambda: (lambda x, y: x + y, [rows(), cresset.randn(700)]),
    "matmul": lambda: (cresset.matmul, [cresset.randn(300, 260), cresset.randn(260, 180)]),
    "matmul with few rows": lambda: (cresset.matmul, [cresset.randn(3, 2600), cresset.randn(2600, 700)]),
    "matmul of large matrices": lambda: (cresset.matmul, [cresset.randn(700, 600), cresset.randn(600, 800)]),
    "matmul of doubles": lambda: (cresset.matmul, [cresset.randn(200, 300).double(), cresset.randn(300, 150).double()]),
    "matmul of halves": lambda: (cresset.matmul,
        [cresset.randn(200, 300).bfloat16(), cresset.randn(300, 150).bfloat16()]),
    "matrix times vector": lambda: (cresset.mv, [cresset.randn(900, 1100), cresset.randn(1100)]),
    "dot": lambda: (cresset.dot, [long_vector(), long_vector()]),
    "bmm": lambda: (cresset.bmm, [cresset.randn(24, 70, 50), cresset.randn(24, 50, 60)]),
    "linear": lambda: (F.linear, [cresset.randn(256, 200), cresset.randn(300, 200), cresset.randn(300)]),
    "conv1d": lambda: (lambda x, w: F.conv1d(x, w, padding=1), [cresset.randn(8, 16, 500), cresset.randn(32, 16, 3)]),
    "conv2d": lambda: (lambda x, w, b: F.conv2d(x, w, b, padding=1),
        [cresset.randn(8, 16, 28, 28), cresset.randn(32, 16, 3, 3), cresset.randn(32)]),
    "conv2d with stride": lambda: (lambda x, w: F.conv2d(x, w, stride=2),
        [cresset.randn(8, 16, 29, 29), cresset.randn(32, 16, 3, 3)]),
    "conv2d of few channels": lambda: (lambda x, w: F.conv2d(x, w, padding=3, stride=2),
        [cresset.randn(4, 3, 64, 64), cresset.randn(64, 3, 7, 7)]),
    "conv2d 1x1": lambda: (F.conv2d, [cresset.randn(8, 64, 28, 28), cresset.randn(32, 64, 1, 1)]),
    "depthwise conv2d": lambda: (lambda x, w: F.conv2d(x, w, padding=1, groups=32),
        [cresset.randn(8, 32, 28, 28), cresset.randn(32, 1, 3, 3)]),
    "conv3d": lambda: (F.conv3d, [cresset.randn(2, 8, 10, 14, 14), cresset.randn(8, 8, 3, 3, 3)]),
    "conv_transpose2d": lambda: (lambda x, w: F.conv_transpose2d(x, w, stride=2),
        [cresset.randn(4, 16, 20, 20), cresset.randn(16, 8, 3, 3)]),
    "max_pool2d": lambda: (lambda x: F.max_pool2d(x, 3, 2, 1), [cresset.randn(8, 16, 48, 48)]),
    "avg_pool2d": lambda: (lambda x: F.avg_pool2d(x, 3, 2, 1), [cresset.randn(8, 16, 48, 48)]),
    "adaptive_avg_pool2d": lambda: (lambda x: F.adaptive_avg_pool2d(x, 5), [cresset.randn(8, 16, 48, 48)]),
    "interpolate": lambda: (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), [cresset.randn(4, 8, 40, 40)]),
    "grid_sample": lambda: (lambda x, g: F.grid_sample(x, g, align_corners=False),
        [cresset.randn(2, 8, 40, 40), cresset.rand(2, 60, 60, 2)]),
    "attention": lambda: (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [cresset.randn(2, 4, 150, 32) for _ in range(3)]),
    "cross_entropy": lambda: (lambda x: F.cross_entropy(x, positions(512, 700)), [rows()]),
    "mse_loss": lambda: (F.mse_loss, [long_vector(), long_vector()]),
    "embedding": lambda: (lambda w: F.embedding(positions(9000, 50), w), [cresset.randn(50, 40)]),
    "index_add": lambda: (lambda x, s: x.index_add(0, positions(9000, 50), s),
        [cresset.randn(50, 40), cresset.randn(9000, 40)]),
    "scatter_add": lambda: (lambda x, s: x.scatter_add(0, cresset.randint(0, 50, (9000, 40)), s),
        [cresset.randn(50, 40), cresset.randn(9000, 40)]),
    "scatter_reduce": lambda: (lambda x, s: x.scatter_reduce(0, cresset.randint(0, 50, (9000, 40)), s, "mean"),
        [cresset.randn(50, 40), cresset.randn(9000, 40)]),
    "index_put": lambda: (lambda x, s: x.index_put((positions(9000, 50),), s, accumulate=True),
        [cresset.randn(50, 40), cresset.randn(9000, 40)]),
    "indexing": lambda: (lambda x: x[positions(9000, 512)], [rows()]),
    "cdist": lambda: (cresset.cdist, [cresset.randn(200, 30), cresset.randn(150, 30)]),
    "fft": lambda: (lambda x: cresset.fft.rfft(x).abs(), [rows()]),
    "fft of columns": lambda: (lambda x: cresset.fft.irfft(cresset.fft.rfft2(x, dim=(1, 0)), dim=0), [rows()]),
    "fft of a long line": lambda: (lambda x: cresset.fft.irfft(cresset.fft.rfft(x)), [long_vector()]),
    "fft of a prime number": lambda: (lambda x: cresset.fft.fft(x).abs(), [rows(60, 1009)]),
    "dropout": lambda: (lambda x: F.dropout(x, 0.3), [long_vector()]),
    "lstm": lambda: (lambda x: nn.LSTM(24, 48, 2, batch_first=True)(x)[0], [cresset.randn(32, 20, 24)]),
    "gru": lambda: (lambda x: nn.GRU(24, 48, bidirectional=True)(x)[0], [cresset.randn(20, 32, 24)]),
    "transformer layer": lambda: (nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True),
        [cresset.randn(16, 50, 32)]),
    "randn": lambda: (lambda: cresset.randn(ELEMENTS), []),
    "rand": lambda: (lambda: cresset.rand(ELEMENTS), []),
    "randperm": lambda: (lambda: cresset.randperm(ELEMENTS).float(), []),
    "multinomial": lambda: (lambda: cresset.rand(1000).multinomial(50_000, True).float(), []),
}  # fmt: skip


def forward_and_backward(make, threads):
    """The bytes of the result and of all gradients, computed with that many threads."""
    before = cresset.get_num_threads()
    cresset.set_num_threads(threads)
    try:
        cresset.manual_seed(5)
        function, inputs = make()
        for tensor in inputs:
            tensor.requires_grad_()
        result = function(*inputs)
        made = [result]
        if result.requires_grad:
            (result * result.detach().cos()).sum().backward()
            made += [tensor.grad for tensor in inputs]
        return [bytes_of(tensor) for tensor in made]
    finally:
        cresset.set_num_threads(before)


def bytes_of(tensor):
    return tensor.detach().reshape(-1).view(cresset.uint8)


@pytest.mark.parametrize("case", CASES)
def test_threads_do_not_change_a_bit(case):
    alone, two, three = (forward_and_backward(CASES[case], threads) for threads in (1, 2, 3))
    for first, second, third in zip(alone, two, three, strict=True):
        assert first.equal(second)
        assert first.equal(third)


UNARY = "abs acosh asinh atan ceil cos cosh digamma erf erfc erfinv exp expm1 floor i0 lgamma log log1p logit neg reciprocal relu rsqrt sigmoid sign sin sinh sqrt tan tanh trunc".split()  # noqa: E501


@pytest.mark.parametrize("name", UNARY)
def test_threads_do_not_change_a_bit_of_a_pointwise_function(name):
    make = lambda: (getattr(cresset, name), [long_vector()])  # noqa: E731
    alone, two = (forward_and_backward(make, threads) for threads in (1, 2))
    assert all(a.equal(b) for a, b in zip(alone, two, strict=True))
