"""torch.fft: discrete Fourier transforms. Native operators transform complex tensors, real ones, and to real ones; the
others prepare for them.
"""

import math

import cresset

from ._native import name_node as _name_node
from .ops import autocast as _autocast
from .ops import registry as _registry
from .ops.check import only_strided
from .ops.dimensions import is_integer
from .show import missing_names as _missing_names

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn",
    "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip


def _scale(who, norm, count, forward):
    if norm not in (None, "backward", "forward", "ortho"):
        raise RuntimeError(f'{who}: Invalid normalization mode: "{norm}"')
    if norm == "ortho":
        return 1 / math.sqrt(count)
    return 1 / count if forward == (norm == "forward") else 1.0


_COMPLEX_OF = {cresset.float16: cresset.complex32, cresset.float64: cresset.complex128}


def _check_dtype(who, input):
    """float16 is transformed on CUDA only, bfloat16 nowhere."""
    if input.dtype == cresset.bfloat16 or (input.dtype in (cresset.float16, cresset.complex32) and not input.is_cuda):
        raise RuntimeError(f"{who}: Unsupported dtype {str(input.dtype)[6:]}")


def _complex(who, input):
    _check_dtype(who, input)
    if input.is_complex():
        return input
    return _real(who, input).to(_COMPLEX_OF.get(input.dtype, cresset.complex64))


def _real(who, input):
    if input.is_complex():
        kind = "real-valued" if who == "rfftn" else "real"
        raise RuntimeError(f"{who} expects a {kind} input tensor, but got {str(input.dtype)[6:]}")
    _check_dtype(who, input)
    return input if input.is_floating_point() else input.to(cresset.get_default_dtype())


def _listed(s):
    """One length is a list of one, also in a tensor of no dimension."""
    return [int(s)] if is_integer(s) else s


def _dims(who, input, s, dim):
    """The transformed dimensions and their lengths, as numpy.fft has them."""
    s = _listed(s)
    if dim is not None:
        dims = [int(dim)] if is_integer(dim) else list(dim)
        if s is not None and len(s) != len(dims):
            raise RuntimeError(f"{who}: When given, dim and shape arguments must have the same length")
        wrapped = []
        for d in dims:
            if not input.ndim:
                raise IndexError(f"{who}: Dimension specified as {d} but tensor has no dimensions")
            if not -input.ndim <= d < input.ndim:
                raise IndexError(
                    f"Dimension out of range (expected to be in range of [{-input.ndim}, {input.ndim - 1}], but got "
                    f"{d})"
                )
            wrapped.append(d % input.ndim)
        if len(set(wrapped)) != len(wrapped):
            raise RuntimeError(f"{who}: FFT dims must be unique")
    else:
        count = input.ndim if s is None else len(s)
        if count > input.ndim:
            raise RuntimeError(
                f"{who}: Got shape with {count} values but input tensor only has {input.ndim} dimensions."
            )
        wrapped = list(range(input.ndim - count, input.ndim))
    sizes = [input.shape[d] if s is None or s[k] == -1 else s[k] for k, d in enumerate(wrapped)]
    for n in sizes:
        if n < 1:
            raise RuntimeError(f"{who}: Invalid number of data points ({n}) specified")
    return wrapped, sizes


def _fitted(input, dims, sizes):
    """Cut or padded with zeros to the given lengths."""
    for d, n in zip(dims, sizes, strict=True):
        have = input.shape[d]
        if n < have:
            input = input.narrow(d, 0, n)
        elif n > have:
            shape = list(input.shape)
            shape[d] = n - have
            input = cresset.cat([input, input.new_zeros(shape)], d)
    return input


def _c2c(who, input, s, dim, norm, forward, of_real=None):
    """`of_real`: what autograd calls it, unless `input` is complex."""
    node = None if input.is_complex() else of_real
    input = _complex(who, input)
    dims, sizes = _dims(who, input, s, dim)
    if not dims:
        return input.clone()
    scale = _scale(who, norm, math.prod(sizes), forward)
    result = cresset.fft_complex(_fitted(input, dims, sizes), dims, forward, scale)
    return result if node is None else _name_node(result, node)


def _r2c(who, input, s, dim, norm, forward=True):
    input = _real(who, input)
    dims, sizes = _dims(who, input, s, dim)
    if not dims:
        raise RuntimeError(f"{who} must transform at least one axis")
    scale = _scale(who, norm, math.prod(sizes), forward)
    result = cresset.fft_from_real(_fitted(input, dims, sizes), dims, forward, scale)
    return result if forward else _name_node(result, "ConjBackward0" if len(dims) == 1 else "FftC2CBackward0")


def _c2r(who, input, s, dim, norm, forward=False):
    input, s = _complex(who, input), _listed(s)
    dims, sizes = _dims(who, input, s, dim)
    if not dims:
        raise RuntimeError(f"{who} must transform at least one axis")
    if s is None or s[-1] == -1:
        sizes[-1] = 2 * (input.shape[dims[-1]] - 1)
        if sizes[-1] < 1:
            raise RuntimeError(f"{who}: Invalid number of data points ({sizes[-1]}) specified")
    n = sizes[-1]
    half = _fitted(input, dims, [*sizes[:-1], n // 2 + 1])
    return cresset.fft_to_real(half, dims, n, forward, _scale(who, norm, math.prod(sizes), forward))


def _out(result, out):
    if out is None:
        return result
    if out.is_complex() != result.is_complex() or not (out.is_complex() or out.is_floating_point()):
        kind = "complex" if result.is_complex() else "floating point"
        raise RuntimeError(f"fft: expects a {kind} output tensor, but got {out.dtype}")
    _registry.resize_out("fft", out, result.shape)
    return out.copy_(result)


@_autocast.autocast(cpu="float32")
def fft(input, n=None, dim=-1, norm=None, *, out=None):
    """The Fourier transform along one dimension.

    >>> cresset.fft.fft(cresset.tensor([1.0, 0.0, 0.0, 0.0])).real
    tensor([1., 1., 1., 1.])
    """
    return _out(_c2c("fft", input, None if n is None else (n,), (dim,), norm, True, "FftR2CBackward0"), out)


@_autocast.autocast(cpu="float32")
def ifft(input, n=None, dim=-1, norm=None, *, out=None):
    """The inverse of fft."""
    return _out(_c2c("ifft", input, None if n is None else (n,), (dim,), norm, False, "ConjBackward0"), out)


@_autocast.autocast(cpu="float32")
def rfft(input, n=None, dim=-1, norm=None, *, out=None):
    """The Fourier transform of a real signal: the first half, which determines the rest."""
    return _out(_r2c("rfft", input, None if n is None else (n,), (dim,), norm), out)


@_autocast.autocast(cpu="float32")
def irfft(input, n=None, dim=-1, norm=None, *, out=None):
    """The inverse of rfft: a real signal of length n (2 (m - 1) by default)."""
    return _out(_c2r("irfft", input, None if n is None else (n,), (dim,), norm), out)


@_autocast.autocast(cpu="float32")
def hfft(input, n=None, dim=-1, norm=None, *, out=None):
    """The Fourier transform of a signal that is Hermitian in time, given by its first half: a real spectrum."""
    return _out(_c2r("hfft", input, None if n is None else (n,), (dim,), norm, True), out)


@_autocast.autocast(cpu="float32")
def ihfft(input, n=None, dim=-1, norm=None, *, out=None):
    """The inverse of hfft."""
    return _out(_r2c("ihfft", input, None if n is None else (n,), (dim,), norm, False), out)


@_autocast.autocast(cpu="float32")
def fft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """The Fourier transform along two dimensions."""
    return fftn(input, s, dim, norm, out=out)


@_autocast.autocast(cpu="float32")
def ifft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """The inverse of fft2."""
    return ifftn(input, s, dim, norm, out=out)


@_autocast.autocast(cpu="float32")
def rfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """The Fourier transform of a real signal along two dimensions."""
    return rfftn(input, s, dim, norm, out=out)


@_autocast.autocast(cpu="float32")
def irfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """The inverse of rfft2."""
    return irfftn(input, s, dim, norm, out=out)


def hfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """The Fourier transform of a Hermitian signal along two dimensions."""
    return hfftn(input, s, dim, norm, out=out)


def ihfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """The inverse of hfft2."""
    return ihfftn(input, s, dim, norm, out=out)


@_autocast.autocast(cpu="float32")
def fftn(input, s=None, dim=None, norm=None, *, out=None):
    """The Fourier transform along several dimensions (all by default)."""
    return _out(_c2c("fftn", input, s, dim, norm, True), out)


@_autocast.autocast(cpu="float32")
def ifftn(input, s=None, dim=None, norm=None, *, out=None):
    """The inverse of fftn."""
    return _out(_c2c("ifftn", input, s, dim, norm, False), out)


@_autocast.autocast(cpu="float32")
def rfftn(input, s=None, dim=None, norm=None, *, out=None):
    """The Fourier transform of a real signal along several dimensions; the last one is halved."""
    return _out(_r2c("rfftn", input, s, dim, norm), out)


@_autocast.autocast(cpu="float32")
def irfftn(input, s=None, dim=None, norm=None, *, out=None):
    """The inverse of rfftn."""
    return _out(_c2r("irfftn", input, s, dim, norm), out)


def hfftn(input, s=None, dim=None, norm=None, *, out=None):
    """The Fourier transform of a Hermitian signal along several dimensions."""
    return _out(_c2r("hfftn", input, s, dim, norm, True), out)


def ihfftn(input, s=None, dim=None, norm=None, *, out=None):
    """The inverse of hfftn."""
    return _out(_r2c("ihfftn", input, s, dim, norm, False), out)


def _check_fraction(name, dtype):
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name} requires a floating point or complex dtype, got {dtype}")


def fftfreq(n, d=1.0, *, dtype=None, device=None, requires_grad=False, layout=None, out=None):
    """The frequencies of fft's bins.

    >>> cresset.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    only_strided("fftfreq", layout)
    _check_fraction("fftfreq", dtype)
    values = cresset.arange(n, dtype=dtype or cresset.get_default_dtype(), device=device)
    values[(n + 1) // 2 :] -= n
    values = values * (1.0 / (n * d) if n * d else math.inf)
    return _out(values.requires_grad_(bool(requires_grad)), out)


def rfftfreq(n, d=1.0, *, dtype=None, device=None, requires_grad=False, layout=None, out=None):
    """The frequencies of rfft's bins."""
    only_strided("rfftfreq", layout)
    _check_fraction("rfftfreq", dtype)
    count = n // 2 + 1 + (n % 2 if n < 0 else 0)  # halves are cut, as in C
    values = cresset.arange(count, dtype=dtype or cresset.get_default_dtype(), device=device) * (
        1.0 / (n * d) if n * d else math.inf
    )
    return _out(values.requires_grad_(bool(requires_grad)), out)


def fftshift(input, dim=None):
    """The zero frequency moved to the middle.

    >>> cresset.fft.fftshift(cresset.arange(4))
    tensor([2, 3, 0, 1])
    """
    dims = list(range(input.ndim)) if dim is None else [int(dim)] if is_integer(dim) else list(dim)
    return input.roll([input.shape[d] // 2 for d in dims], dims)


def ifftshift(input, dim=None):
    """The inverse of fftshift."""
    dims = list(range(input.ndim)) if dim is None else [int(dim)] if is_integer(dim) else list(dim)
    return input.roll([(input.shape[d] + 1) // 2 for d in dims], dims)


_autocast.apply(globals())
_registry.let_others_answer(globals(), "torch._C._fft", "fft_")
__getattr__ = _missing_names.of(__name__)
