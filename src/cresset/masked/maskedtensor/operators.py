"""Who answers for which operator on masked tensors: two tables, see Note [Masked tensors] in core.py."""

import functools

import cresset

from ...autograd.engine import add_gradients
from ...pytree import tree_map_only
from .. import reducing
from . import binary, passthrough, reductions, unary
from .core import MaskedTensor, is_masked_tensor, made_of, recorded, wrapped


@functools.cache
def above_autograd():
    """Name of a function or method -> its rule, made of differentiable steps."""
    table = {name: reductions.reduction(name) for name in reductions.REDUCE_NAMES}
    table |= {name: passthrough.pieces(name) for name in ("split", "split_with_sizes", "chunk", "unbind")}
    table["tensor_backward"] = cresset.Tensor.backward.__wrapped__  # the derivatives ask masked gradients
    table["backward"] = add_gradients
    table["softmax"] = reductions.softmax(reducing.softmax)
    table["log_softmax"] = reductions.softmax(reducing.log_softmax)
    # Of half precision it is made of operators on bits.
    table["nextafter"] = functools.partial(binary.elementwise, cresset.nextafter)
    table |= {"where": _where, "contiguous": _contiguous, "_is_any_true": _is_any_true}
    table |= {
        "to_dense": _to_dense,
        "to_sparse": _to_sparse,
        "to_sparse_coo": _to_sparse,
        "to_sparse_csr": _to_sparse_csr,
    }
    return table


@functools.cache
def below_autograd():
    """Name of an operator of aten -> its rule, called with the overload and the arguments."""
    table = {}
    for packets, rule in (
        (unary.NATIVE_UNARY_FNS, unary.elementwise),
        (unary.NATIVE_INPLACE_UNARY_FNS, unary.in_place),
        (binary.NATIVE_BINARY_FNS, binary.elementwise),
        (binary.NATIVE_INPLACE_BINARY_FNS, binary.in_place),
        (passthrough.PASSTHROUGH_FNS, passthrough.moved),
    ):
        table |= {packet.__name__: rule for packet in packets if packet is not None}
    table |= {name: functools.partial(_reduced, reductions.reduction(name)) for name in reductions.REDUCE_NAMES}
    table |= dict.fromkeys(("detach", "clone", "ones_like", "zeros_like"), unary.elementwise)
    table |= {"_to_copy": _to_copy, "copy_": _copy, "_local_scalar_dense": _item}
    table["pow"] = _pow
    table["where"] = lambda func, condition, input, other: _chosen(condition, input, other)
    table |= dict.fromkeys(("index_add", "index_put", "scatter_add", "slice_scatter", "select_scatter"), _added)
    table |= dict.fromkeys(("index_add_", "index_put_", "scatter_add_"), _added_in_place)
    table["new_zeros"] = _new_zeros
    return table


def _reduced(rule, func, *args, **kwargs):
    return rule(*args, **kwargs)


def _pow(func, input, exponent):
    tensors = cresset.is_tensor(input) and cresset.is_tensor(exponent)
    return binary.elementwise(func, input, exponent) if tensors else unary.elementwise(func, input, exponent)


def _new_zeros(func, input, *args, **kwargs):
    """Nothing is there yet: what a derivative collects a gradient on."""
    data = func(recorded(input._masked_data), *args, **kwargs)
    return made_of(data, cresset.zeros_like(data, dtype=cresset.bool))


def _parts(args, kwargs):
    """The arguments by their data and by their masks; a plain tensor of numbers among them has nothing there."""

    def there(tensor):
        if is_masked_tensor(tensor):
            return tensor._masked_mask.to(cresset.float32)
        is_index = tensor.dtype == cresset.bool or not (tensor.is_floating_point() or tensor.is_complex())
        return tensor if is_index else cresset.zeros_like(tensor, dtype=cresset.float32)

    data = tree_map_only(MaskedTensor, lambda masked: masked._masked_data, (args, kwargs))
    return data, tree_map_only(cresset.Tensor, there, (args, kwargs))


def _added(func, *args, **kwargs):
    """Elements put into another tensor: they are there, and what was there is, too."""
    data, mask = _parts(args, kwargs)
    return made_of(func(*data[0], **data[1]), func(*mask[0], **mask[1]) != 0)


def _added_in_place(func, input, *args, **kwargs):
    data, mask = _parts((input, *args), kwargs)
    func(*data[0], **data[1])
    input._masked_mask = func(*mask[0], **mask[1]) != 0
    return input


def _to_copy(func, input, **kwargs):
    data = func(input._masked_data, **kwargs)
    return made_of(data, func(input._masked_mask, **{**kwargs, "dtype": cresset.bool}))


def _copy(func, input, source, non_blocking=False):
    if not is_masked_tensor(input):
        raise TypeError("copy_: a plain tensor cannot take the elements of a MaskedTensor; call to_tensor(value) first")
    if not is_masked_tensor(source):
        return binary.in_place(func, input, source, non_blocking)
    if input.layout != source.layout:
        raise TypeError(f"copy_: expected a source of layout {input.layout}, got {source.layout}")
    input._masked_data.copy_(source._masked_data, non_blocking)
    input._masked_mask.copy_(source._masked_mask, non_blocking)
    return input


def _item(func, input):
    if not input._masked_mask.all():
        raise ValueError(
            "item: the element of this MaskedTensor is masked out; to_tensor(value) says what stands for it"
        )
    return input._masked_data.item()


def _is_any_true(input):
    if input.dtype != cresset.bool:
        raise ValueError(f"_is_any_true: expected a boolean tensor, got a MaskedTensor of {input.dtype}")
    data, mask = recorded(input._masked_data), recorded(input._masked_mask)
    return made_of((data & mask).any(), cresset.tensor(True))


def _everywhere(value, like):
    """A plain operand of `where` as a masked tensor: all of it is there."""
    if is_masked_tensor(value):
        return value
    if not cresset.is_tensor(value):
        value = cresset.full_like(like._masked_data, value)
    return wrapped(value, cresset.ones_like(value, dtype=cresset.bool))


def _chosen(condition, input, other):
    like = input if is_masked_tensor(input) else other
    input, other = _everywhere(input, like), _everywhere(other, like)
    data = cresset.where(condition, input.get_data(), other.get_data())
    return wrapped(data, cresset.where(condition, input.get_mask(), other.get_mask()))


def _where(condition, input, other):
    if is_masked_tensor(condition):  # the method: its tensor comes first
        raise TypeError("where: expected a condition that is a plain bool tensor, got a MaskedTensor")
    if not cresset.is_tensor(condition):
        raise TypeError(f"where: expected a condition that is a tensor, got {type(condition).__name__}")
    return _chosen(condition, input, other)


def _contiguous(input, memory_format=cresset.contiguous_format):
    if input.is_contiguous(memory_format=memory_format):
        return input
    return wrapped(
        input.get_data().contiguous(memory_format=memory_format),
        input.get_mask().contiguous(memory_format=memory_format),
    )


def _to_dense(input, dtype=None, *, masked_grad=None):
    if not input.is_sparse:
        return input if dtype is None else input.to(dtype)
    return wrapped(input.get_data().to_dense(dtype, masked_grad=masked_grad), input.get_mask().to_dense())


def _sparse(input, mask):
    data = input.get_data()
    return wrapped((data if not input.is_sparse else data.to_dense()).sparse_mask(mask), mask)


def _to_sparse(input, sparse_dim=None, *, layout=None):
    if layout is not None and layout is not cresset.sparse_coo:
        if layout is cresset.sparse_csr:
            return _to_sparse_csr(input)
        raise TypeError(
            f"to_sparse: the data of a MaskedTensor lies as torch.sparse_coo or torch.sparse_csr, not {layout}"
        )
    if sparse_dim not in (None, input.dim()):
        raise TypeError(
            f"to_sparse: a MaskedTensor has no dense dimensions, got sparse_dim={sparse_dim} of {input.dim()}"
        )
    return input if input.is_sparse_coo() else _sparse(input, input.get_mask().to_sparse_coo().coalesce())


def _to_sparse_csr(input, dense_dim=None):
    if input.dim() != 2:
        raise ValueError(
            f"Only 2D tensors can be converted to the SparseCsr layout but got shape: {tuple(input.shape)}"
        )
    if dense_dim:
        raise TypeError(f"to_sparse_csr: a MaskedTensor has no dense dimensions, got dense_dim={dense_dim}")
    return input if input.is_sparse_csr() else _sparse(input, input.get_mask().to_sparse_csr())
