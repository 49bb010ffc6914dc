"""Functions of how a number is stored: frexp, hash_tensor, and nextafter of half precision."""

import math

import cresset

from . import registry
from .dimensions import is_integer
from .registry import function, operator

frexp = operator("frexp", """Mantissa and exponent: input = mantissa * 2 ** exponent with 1/2 <= |mantissa| < 1.

    >>> mantissa, exponent = cresset.frexp(cresset.tensor([6.0, -0.5]))
    >>> mantissa, exponent
    (tensor([ 0.7500, -0.5000]), tensor([3, 0], dtype=torch.int32))
    """, batch="leading")  # fmt: skip


@frexp.derivative
def _(grad, exponent):
    yield lambda: cresset.ldexp(grad, -exponent)


@function(method=True, out=True)
def hash_tensor(input, dim=(), *, keepdim=False, mode=0):
    """The exclusive or of the elements, each as 64 bits (a double, or an integer), over all dimensions or `dim`.

    >>> cresset.hash_tensor(cresset.tensor([5, 3]))
    tensor(6, dtype=torch.uint64)
    """
    if mode != 0:
        raise RuntimeError(f"hash_tensor: only mode 0 (exclusive or) is there, got {mode}")
    if input.is_complex():
        raise NotImplementedError(f"hash_tensor: not implemented for {input.dtype}")
    dims = [int(dim)] if is_integer(dim) else list(dim)
    if input.numel() == 0 and not dims:
        raise RuntimeError(
            f"hash_tensor: a tensor of shape {tuple(input.shape)} has no elements; say which dim to reduce"
        )
    rank = max(input.ndim, 1)
    for each in dims:
        if not -rank <= each < rank:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {each})"
            )
    dims = sorted({each % rank for each in dims}) if dims else list(range(input.ndim))
    if input.ndim == 0:
        dims = []
    for each in dims:
        if input.shape[each] == 0:
            raise IndexError(f"hash_tensor: dimension {each} is to be reduced, but has no elements")
    if input.is_floating_point():
        bits = input.detach().double().view(cresset.int64)
    else:
        bits = input.view(cresset.int64) if input.dtype == cresset.uint64 else input.to(cresset.int64)
    kept = [d for d in range(input.ndim) if d not in dims]
    bits = bits.permute([*kept, *dims]).reshape(
        [input.shape[d] for d in kept] + [math.prod(input.shape[d] for d in dims)]
    )
    while (count := bits.shape[-1]) > 1:  # fold the second half onto the first
        half = count // 2
        folded = bits[..., :half] ^ bits[..., half : 2 * half]
        bits = cresset.cat([folded, bits[..., 2 * half :]], -1) if count % 2 else folded
    result = bits[..., 0].contiguous().view(cresset.uint64)
    return result.reshape([1 if d in dims else size for d, size in enumerate(input.shape)]) if keepdim else result


_nextafter = registry.functions[
    "nextafter"
]  # of float and double; between two numbers of half precision lie thousands of floats


@function(method=True, inplace=True, out="cast")
def nextafter(input, other):
    """The next representable number after `input` towards `other`.

    >>> one, two = cresset.tensor([1.0, 2.0], dtype=cresset.bfloat16)
    >>> cresset.nextafter(one, two).item()
    1.0078125
    """
    dtype = cresset.result_type(input, other)
    if dtype not in (cresset.float16, cresset.bfloat16) or input.is_meta:
        return _nextafter(input, other)
    input, other = cresset.broadcast_tensors(*(cresset.as_tensor(x, dtype=dtype) for x in (input, other)))
    if cresset.is_grad_enabled() and (input.requires_grad or other.requires_grad):
        # With the derivatives of `_nextafter`.
        result = cresset.where(input != other, input, input.detach()) + other * 0
        with cresset.no_grad():
            return result.copy_(nextafter(input, other))
    bits = input.contiguous().view(cresset.int16).int()
    # The bits without the sign count up from zero to infinity: one more is one further away from zero.
    stepped = cresset.where((input < other) == (input > 0), bits + 1, bits - 1)
    smallest = cresset.where(other > 0, 1, 0x8001)
    stepped = cresset.where(input == 0, smallest, stepped) & 0xFFFF
    stepped = cresset.where(stepped > 0x7FFF, stepped - 0x10000, stepped).to(cresset.int16).view(input.dtype)
    return cresset.where(input == other, other, cresset.where(input.isnan() | other.isnan(), input + other, stepped))
