"""Older and rarer methods of tensors, most of them other names for something that is there."""

import functools
import warnings

import cresset
from cresset.tensor import refuse_gradient

from .registry import function, functions, methods


@function(method="only")
def resize(input, *sizes):
    """The elements in another shape that has as many; the old name of `reshape`."""
    warnings.warn("non-inplace resize is deprecated", stacklevel=2)
    sizes = tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    if cresset.Size(sizes).numel() != input.numel():
        raise RuntimeError(
            f"resize: a tensor of shape {tuple(input.shape)} has {input.numel()} elements, shape {sizes} has another number; "
            "only resize_, in place, may change it"
        )
    return input.reshape(sizes)


@function(method="only")
def resize_as(input, tensor):
    """The elements in the shape of `tensor`; the old name of `reshape_as`."""
    return resize(input, *tensor.shape)


@function(method="only")
def map2_(input, x, y, callable):
    """Replace each element by callable(element, element of x, element of y).

    >>> cresset.tensor([1.0, 2.0]).map2_(cresset.ones(2), cresset.zeros(2), lambda a, b, c: a + b + c)
    tensor([2., 3.])
    """
    refuse_gradient("map2_", input, x, y)
    columns = (t.expand_as(input).reshape(-1).tolist() for t in (input, x, y))
    made = [callable(*elements) for elements in zip(*columns, strict=True)]
    return input.copy_(cresset.tensor(made, dtype=input.dtype).reshape(input.shape))


@function(method="only")
def prelu(input, weight):
    """`input` where it is positive, `weight` times it elsewhere.

    >>> cresset.tensor([-2.0, 3.0]).prelu(cresset.tensor(0.5))
    tensor([-1.,  3.])
    """
    return cresset.prelu(input, weight)


@function(method="only")
def reinforce(input, reward):
    """Gone from PyTorch; log_prob of a distribution does it."""
    raise RuntimeError(
        "reinforce() was removed: use -distributions.Categorical(probs).log_prob(action) * reward as a loss"
    )


@function(method="only", name="__rdiv__")
def _reversed_division(input, other):
    """other / input."""
    return input.reciprocal() * other


@function(method="only")
def const_data_ptr(input):
    """The address of the first element, to read from."""
    return input.data_ptr()


@function(method="only")
def module_load(input, other, assign=False):
    """What Module.load_state_dict puts in the place of this tensor: `other`, or this one with its values copied in.

    >>> cresset.zeros(2).module_load(cresset.ones(2))
    tensor([1., 1.])
    """
    return other.detach() if assign else input.copy_(other).detach()


@function(method="only")
def storage_type(input):
    """The class of `storage()`."""
    return type(input.storage())


@function(method="only")
def record_stream(input, stream):
    """Say that a stream uses the tensor, so that its memory is not given away before. On the CPU nothing runs behind."""
    if input.device.type == "cpu":
        raise NotImplementedError("record_stream: there are no streams on 'cpu'")
    cresset._native.cuda.record_stream(input, stream.cuda_stream)


@function(method=True)
def is_distributed(input) -> bool:
    """Whether the tensor is spread over processes: never, here."""
    return False


@function
def is_signed(input) -> bool:
    """Whether the dtype has negative numbers.

    >>> cresset.is_signed(cresset.tensor([1], dtype=cresset.uint8))
    False
    """
    return input.dtype.is_signed


# In-place methods that PyTorch offers as functions, too.
for _name in (
    "addmv_", "arccos_", "arccosh_", "arcsin_", "arcsinh_", "arctan_", "arctanh_", "clip_", "detach_", "fix_", "negative_", "resize_as_", "as_strided_",
):  # fmt: skip

    def _in_place(input, *args, _name=_name, **kwargs):
        return getattr(input, _name)(*args, **kwargs)

    _in_place.__name__ = _in_place.__qualname__ = _name
    _in_place.__doc__ = f"Tensor.{_name}."
    functions.setdefault(_name, _in_place)


def _with_older_order(today):
    """Take the factors as numbers in front of what they multiply, too: addr(beta, input, alpha, vec1, vec2), x.addr(beta, alpha, vec1, vec2)."""

    @functools.wraps(today)
    def either_order(*args, **kwargs):
        if len(args) not in (4, 5):
            return today(*args, **kwargs)
        *factors, first, second = args
        input = factors.pop(0 if isinstance(factors[0], cresset.Tensor) else 1)
        if isinstance(first, cresset.Tensor) and not any(isinstance(factor, cresset.Tensor) and factor.dim() for factor in factors):
            name = today.__name__
            warnings.warn(f"This overload of {name} is deprecated; write {name}(input, first, second, beta=beta, alpha=alpha)", stacklevel=2)
            return today(input, first, second, **dict(zip(("beta", "alpha"), factors, strict=False)), **kwargs)
        return today(*args, **kwargs)

    return either_order


for _name in ("addmv", "addr", "addbmm"):
    functions[_name] = methods[_name] = _with_older_order(functions[_name])
    methods[_name + "_"] = _with_older_order(methods[_name + "_"])
