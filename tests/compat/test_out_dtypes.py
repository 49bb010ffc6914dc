"""An out= of another dtype is written to, or refused, as in PyTorch."""

import warnings

import pytest

import cresset

torch = pytest.importorskip("torch")

CALLS = (
    """
all(x) all(x, 0) any(b, 0) argmax(x) argmin(x, 0) nonzero(x) isposinf(x) isneginf(x) signbit(x) isin(x, x)
searchsorted(x[0], x) searchsorted(x[0], x, out_int32=True) bucketize(x, x[0])
sum(x, 0) nansum(x, 0) nansum(i, 0) nanmean(x, 0) prod(x, 0) amax(x, 0) logsumexp(x, 0) cumsum(x, 0) cumprod(x, 0) logcumsumexp(x, 0) softmax(x, 0)
mm(x, x) bmm(x[None], x[None]) mv(x, x[0]) dot(x[0], x[0]) addmm(x, x, x) matmul(x, x) outer(x[0], x[1])
tensordot(x, x, 1) kron(x, x) inner(x, x) addr(x, x[0], x[0]) chain_matmul(x, x)
cat([x, x]) stack([x, x]) hstack([x, x]) vstack([x, x]) dstack([x, x]) column_stack([x, x]) gather(x, 0, i) take(x, i) index_select(x, 0, i[0]) masked_select(x, b) take_along_dim(x, i, 0)
diag(x) triu(x) tril(x) where(b, x, x) floor(x) ceil(x) trunc(x) round(x) frac(x) neg(x) sign(x) sgn(x)
nan_to_num(x) bitwise_not(i) add(x, x) eq(x, x) exp(x) logical_and(x, x) histc(x) quantile(x, 0.5) renorm(x, 2, 0, 1.0)
diff(x) nextafter(x, x) msort(x) norm(x, 2, 0) mvlgamma(y, 1) polygamma(1, x)
bernoulli(x/8) abs(c) abs(x) abs(i) clamp(x, 0, 1) clamp(i, 0) clamp(i, 0.5) clamp(x, x) clamp(x, max=x) clamp_min(x, 0) clamp_min(x, x) clamp_max(i, 1) clamp_max(i, i)
fft.fft(c) fft.rfft(x) fft.irfft(c) fft.hfft(c) fft.fft2(c) fft.ifftn(c)
linalg.inv(x) linalg.det(x) linalg.solve(x, x) linalg.svdvals(x) linalg.eigvalsh(x) linalg.cross(x3, x3)
linalg.vector_norm(x) linalg.matrix_norm(x) linalg.matrix_power(x, 2) linalg.cond(x) linalg.pinv(x)
""".strip()  # noqa: E501
    .replace(") ", ")\n")
    .splitlines()
)
DTYPES = "float16 float32 float64 int32 int64 uint8 bool complex64 complex128".split()


@pytest.mark.parametrize("call", CALLS)
def test_what_out_takes(call):
    def taken(library):
        x = library.tensor([[2.0, 0.5], [0.25, 3.0]])
        names = {"x": x, "y": x + 3, "b": x > 1, "i": library.tensor([[0, 1], [1, 0]]), "c": x.to(library.complex64),
                 "x3": library.tensor([1.0, 2.0, 3.0])}  # fmt: skip
        answers = {}
        for dtype in DTYPES:
            names["out"] = library.empty(0, dtype=getattr(library, dtype))
            try:
                eval(f"library.{call[:-1]}, out=out)", {"library": library, **names})
                answers[dtype] = "taken"
            except (RuntimeError, TypeError) as error:
                answers[dtype] = type(error).__name__
        return answers

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert taken(cresset) == taken(torch)
