"""Copies and conversions: documentation and derivatives."""

import cresset

from .registry import function, operator

clone = operator("clone", """A copy with memory of its own; gradients flow through it.

    >>> cresset.tensor([1.0, 2.0]).clone()
    tensor([1., 2.])
    """)  # fmt: skip
contiguous = operator("contiguous", """The tensor itself if its elements lie in row-major order, otherwise a copy that does.""")


@clone.derivative
@contiguous.derivative
def _(grad):
    yield lambda: grad


to = operator("to", """The tensor with another dtype or on another device; itself when nothing changes.

    >>> cresset.tensor([1.7]).to(cresset.int64)
    tensor([1])
    """)  # fmt: skip

NAMED = "float double half bfloat16 long int short char byte bool cfloat cdouble chalf cpu".split()


def _convert_back(grad, input_info):
    yield lambda: _fit_dtype(grad, input_info)


def _fit_dtype(grad, info):
    if grad.is_complex() and not info.dtype.is_complex:
        grad = cresset.real(grad)
    return grad.to(info.device, info.dtype)


for _name in ["to.", "to.dtype", "to_dtype.", *(name + "." for name in NAMED)]:
    operator(_name).derivative(_convert_back)
for _name in NAMED[:-1]:
    operator(_name, f"The tensor as {_name}; itself when it is that already.")
operator("cpu", "The tensor in host memory; itself when it is there already.")
operator("to_dtype", "The tensor as another dtype; itself when it is that already.")

copy_ = operator("copy_", """Fill the tensor with the elements of `src`, broadcast and converted.""")


@copy_.derivative
def _(grad, src_info):
    yield lambda: cresset.zeros_like(grad)
    yield lambda: _fit_dtype(grad, src_info)


@operator("copy_.number").derivative
def _(grad):
    yield lambda: cresset.zeros_like(grad)


operator("resize_", """Give the tensor another size, in place; new elements are undefined.""")
operator("set_", """Share the memory, sizes and strides of `source`.""")


@function(method=True)
def type_as(input, other):
    """The tensor with the dtype and device of `other`.

    >>> cresset.tensor([1]).type_as(cresset.tensor([0.5]))
    tensor([1.])
    """
    return input.to(other)
