"""MaskedTensor: data, and a mask of the same shape that says which elements are there.

Note [Masked tensors]
A masked tensor is a wrapper without memory of its own (docs/subclasses.md). What works element by element, or only
moves elements, is answered below autograd, by `__torch_dispatch__`: the gradient then has the mask of the result, which
is that of the operand. What takes elements together (reductions, softmax, conversions between layouts) is answered
above autograd, by `__torch_function__`: `Unwrapped` goes from the tensor to its plain data and `Wrapped` back, between
them are ordinary operators, and the gradient comes back with the operand's mask.

The data may be sparse (COO, CSR): then it has a value for exactly those elements that the mask specifies.
"""

import warnings

import cresset

from ..._native import Tensor, function_behind
from ...autograd import Function
from ...overrides import DisableTorchFunctionSubclass, enable_reentrant_dispatch
from ..masks import _where

__all__ = ["MaskedTensor", "is_masked_tensor"]

_LAYOUTS = (cresset.strided, cresset.sparse_coo, cresset.sparse_csr)
_DTYPES = frozenset(
    [cresset.float16, cresset.float32, cresset.float64, cresset.bool, cresset.int8, cresset.int16, cresset.int32,
     cresset.int64]
)  # fmt: skip


def is_masked_tensor(obj, /):
    """Whether an object is a MaskedTensor.

    >>> from cresset.masked import is_masked_tensor, masked_tensor
    >>> is_masked_tensor(masked_tensor(cresset.ones(2), cresset.tensor([True, False])))
    True
    """
    return isinstance(obj, MaskedTensor)


def recorded(data):
    """The plain tensor that holds the elements: the data itself, or the values of sparse data."""
    return data if data.layout is cresset.strided else data._recorded


def with_recorded(data, elements):
    """Data of the same places with other elements."""
    return elements if data.layout is cresset.strided else data._with(elements)


def _same_places(a, b):
    """Whether two sparse tensors specify the same elements."""
    if a.layout is cresset.sparse_coo:
        return cresset.equal(a.indices(), b.indices())
    return cresset.equal(a.crow_indices(), b.crow_indices()) and cresset.equal(a.col_indices(), b.col_indices())


def _tensors_match(a, b, exact=True, rtol=1e-05, atol=1e-08):
    """Whether two plain tensors of a layout have the same places and elements, whatever their dtypes."""
    if is_masked_tensor(a) or is_masked_tensor(b):
        raise ValueError("Neither `a` nor `b` can be a MaskedTensor.")
    if a.layout != b.layout:
        raise ValueError(f"`a` and `b` must have the same layout. Got {a.layout} and {b.layout}")
    if a.layout is not cresset.strided and not _same_places(a, b):
        return False
    a, b = recorded(a), recorded(b).to(a.dtype)
    if a.dim() != b.dim():
        return False
    return bool(cresset.eq(a, b).all()) if exact else cresset.allclose(a, b, rtol=rtol, atol=atol)


def _masks_match(a, b):
    """Whether two masked tensors have the same mask; True where one of them has none."""
    return not (is_masked_tensor(a) and is_masked_tensor(b)) or _tensors_match(a.get_mask(), b.get_mask())


def _prepared(data, mask):
    """(data, mask) as a masked tensor keeps them: copies that agree in their places."""
    if data.layout != mask.layout:
        raise TypeError(f"data and mask must have the same layout. Got {data.layout} and {mask.layout}")
    if data.layout not in _LAYOUTS:
        raise TypeError(f"data layout of {data.layout} is not supported.")
    if mask.dtype != cresset.bool:
        raise TypeError(f"mask must have dtype bool. Got {mask.dtype}")
    if data.dtype not in _DTYPES:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.dim() != mask.dim():
        raise ValueError(f"data.dim() must equal mask.dim(). Got {data.dim()} and {mask.dim()}")
    if data.shape != mask.shape:
        raise ValueError(f"data.size() must equal mask.size(). Got {tuple(data.shape)} and {tuple(mask.shape)}")
    data, mask = data.detach(), mask.detach()
    if data.layout is cresset.sparse_coo:
        data, mask = data.coalesce(), mask.coalesce()
    if data.layout is not cresset.strided:
        if data._nnz() != mask._nnz():
            data = _where(mask, data, 0)
        if data._nnz() != mask._nnz() or not _same_places(data, mask):
            kind = (
                "COO tensors but do not have the same indices."
                if data.layout is cresset.sparse_coo
                else "CSR tensors but do not share either crow or col indices."
            )
            raise ValueError(f"data and mask are both sparse {kind}")
    return data.clone(), mask.clone()


def _described(data, mask, indent):
    """The elements as text, one dimension a level; "--" for what is not there."""
    if data.dim() == 1:
        there = mask.tolist()
        texts = [f"{number:8.4f}" if isinstance(number, float) else str(number) for number in data.tolist()]
        width = max((8 if not on else len(text) for text, on in zip(texts, there, strict=True)), default=0)
        return "[" + ", ".join(text if on else "--".rjust(width) for text, on in zip(texts, there, strict=True)) + "]"
    inner = [indent + _described(d, m, indent + "  ") for d, m in zip(data, mask, strict=True)]
    return "[\n" + ",\n".join(inner) + "\n" + indent[:-2] + "]"


class MaskedTensor(Tensor):
    """A tensor with a mask: where it is False, there is no element. Operations leave out what is not there.

    Args:
        data: the elements: a tensor, dense or sparse (COO, CSR), copied.
        mask: a bool tensor of the same shape and layout, copied.
        requires_grad: whether autograd follows the tensor, a leaf.

    >>> from cresset.masked import MaskedTensor
    >>> mask = cresset.tensor([[True, False], [True, True]])
    >>> x = MaskedTensor(cresset.tensor([[1.0, 2.0], [3.0, 4.0]]), mask)
    >>> x * 10
    MaskedTensor(
      [
        [ 10.0000,       --],
        [ 30.0000,  40.0000]
      ]
    )
    >>> x.mean(0)
    MaskedTensor(
      [  2.0000,   4.0000]
    )
    """

    @staticmethod
    def __new__(cls, data, mask, requires_grad=False):
        """Check the parts and make the wrapper around them."""
        for name, value in (("data", data), ("mask", mask)):
            if is_masked_tensor(value) or not cresset.is_tensor(value):
                raise TypeError(f"{name} must be a Tensor. Got {type(value).__name__}")
        if data.requires_grad:
            warnings.warn(
                "It is not recommended to create a MaskedTensor with a tensor that requires_grad. To avoid this, you "
                "can use data.detach().clone(); as_masked_tensor keeps the history",
                UserWarning,
                stacklevel=3,
            )
        if requires_grad and not (data.is_floating_point() or data.is_complex()):
            raise RuntimeError(
                f"Only Tensors of floating point and complex dtype can require gradients. Got data of {data.dtype}"
            )
        made = made_of(*_prepared(data, mask), cls)
        if requires_grad:
            made.requires_grad_()
        return made

    # ---- what it is made of

    def get_data(self):
        """The data, with its history; what stands where nothing is there has no meaning."""
        return with_recorded(self._masked_data, Unwrapped.apply(self))

    def get_mask(self):
        """The mask."""
        return self._masked_mask

    def to_tensor(self, value):
        """A plain tensor with `value` where nothing is there.

        >>> x = cresset.masked.masked_tensor(cresset.ones(2), cresset.tensor([True, False]))
        >>> x.to_tensor(-1)
        tensor([ 1., -1.])
        """
        if self.layout is not cresset.strided:
            return self.to_dense().to_tensor(value)
        return self.get_data().masked_fill(~self.get_mask(), value)

    # ---- layout

    @property
    def layout(self):
        return self._masked_data.layout

    def is_sparse_coo(self):
        """Whether the data lies as coordinates."""
        return self.layout is cresset.sparse_coo

    def is_sparse_csr(self):
        """Whether the data lies as compressed rows."""
        return self.layout is cresset.sparse_csr

    @property
    def is_sparse(self):
        return self.layout is not cresset.strided

    def is_contiguous(self, memory_format=cresset.contiguous_format):
        """Whether the data is contiguous; sparse data has no such thing."""
        if self.is_sparse:
            raise ValueError("MaskedTensors with sparse data do not have is_contiguous")
        return self._masked_data.is_contiguous(memory_format=memory_format)

    def __repr__(self, *, tensor_contents=None):
        data, mask = self._masked_data, self._masked_mask
        if self.is_sparse:
            data, mask = data.to_dense(), mask.to_dense()
        if data.dim() == 0:
            number, there = data.item(), mask.item()
            text = f"{number:8.4f}" if isinstance(number, float) else str(number)
            return f"MaskedTensor({text if there else '--'}, {there})"
        return "MaskedTensor(\n  " + _described(data, mask, "    ") + "\n)"

    def __reduce_ex__(self, protocol):
        return type(self), (self._masked_data, self._masked_mask, self.requires_grad)

    # ---- calls

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        from .operators import above_autograd

        rule = above_autograd().get(getattr(function_behind(func), "__name__", None))
        if rule is not None:
            return rule(*args, **(kwargs or {}))
        with DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        from .operators import below_autograd

        rule = below_autograd().get(func.overloadpacket.__name__)
        if rule is None:
            return NotImplemented
        with enable_reentrant_dispatch():  # sparse data answers for itself
            return rule(func, *args, **(kwargs or {}))


def made_of(data, mask, cls=MaskedTensor):
    """A masked tensor around parts that fit: it writes to their memory."""
    data = data.detach()
    made = Tensor._make_wrapper_subclass(
        cls,
        data.shape,
        strides=data.stride() if data.layout is cresset.strided else None,
        storage_offset=data.storage_offset() if data.layout is cresset.strided else None,
        dtype=data.dtype,
        device=data.device,
    )
    made._masked_data, made._masked_mask = data, mask
    return made


def plain(grad, data):
    """A gradient's elements in the places of `data`, zero where nothing is there."""
    if not is_masked_tensor(grad):
        return grad if data.layout is cresset.strided or grad.layout is cresset.strided else recorded(grad)
    return recorded(grad._masked_data).masked_fill(~recorded(grad._masked_mask), 0)


class Unwrapped(Function):
    """From a masked tensor to its elements; the gradient comes back with the mask."""

    @staticmethod
    def forward(ctx, masked):
        ctx.data, ctx.mask = masked._masked_data, masked._masked_mask
        return recorded(masked._masked_data).detach()

    @staticmethod
    def backward(ctx, grad):
        if is_masked_tensor(grad):
            return grad
        return made_of(with_recorded(ctx.data, grad), ctx.mask)


class Wrapped(Function):
    """From elements, in the places of `data`, to a masked tensor; the gradient is theirs, zero where nothing is."""

    @staticmethod
    def forward(ctx, elements, data, mask):
        ctx.data = data
        return made_of(with_recorded(data, elements), mask)

    @staticmethod
    def backward(ctx, grad):
        return plain(grad, ctx.data), None, None


class AsMasked(Function):
    """From data to a masked tensor; the gradient is one, too."""

    @staticmethod
    def forward(ctx, data, mask):
        if is_masked_tensor(data) or not cresset.is_tensor(data):
            raise TypeError(f"data must be a Tensor. Got {type(data).__name__}")
        return made_of(*_prepared(data, mask))

    @staticmethod
    def backward(ctx, grad):
        return grad, None


def wrapped(data, mask):
    """A masked tensor of differentiable data."""
    return Wrapped.apply(recorded(data), data.detach(), mask)
