"""torch._custom_ops: operators of one's own by registrations on their names; the older form of torch.library."""

from ._custom_op import impl as _operators
from .library import get_ctx, impl_abstract

__all__ = ["custom_op", "get_ctx", "impl", "impl_abstract", "impl_backward", "impl_save_for_backward"]


def custom_op(qualname, func_or_schema=None):
    """Define an operator by a schema, or by the type hints of a function of its name (a decorator).

    >>> from cresset import _custom_ops
    >>> _custom_ops.custom_op("example_oldest::negated", "(Tensor x) -> Tensor")
    >>> _ = _custom_ops.impl("example_oldest::negated", func=lambda x: -x)
    >>> cresset.ops.example_oldest.negated(cresset.ones(1))
    tensor([-1.])
    """
    _operators.validate_namespace(_operators.parse_qualname(qualname)[0])

    def make(func):
        _operators._checked_function(qualname, func)
        _operators.defined(qualname, _operators.infer_schema(func, mutates_args=()))
        return func

    if isinstance(func_or_schema, str):
        _operators.defined(qualname, func_or_schema)
        return None
    return make if func_or_schema is None else make(func_or_schema)


def _registered(register, func):
    return register if func is None else register(func)


def impl(qualname, *, device_types=("cpu", "cuda"), func=None):
    """A kernel for device types; without `func`, a decorator."""
    return _registered(_operators.find_custom_op(qualname).impl(device_types), func)


def impl_save_for_backward(qualname, *, func=None):
    """What is saved for backward: `func(inputs, output)`; without it, a decorator."""
    return _registered(_operators.find_custom_op(qualname).impl_save_for_backward(), func)


def impl_backward(qualname, output_differentiability=None, *, func=None):
    """The derivative: `func(ctx, saved, *grads)` gives a dict of gradients by argument; without it, a decorator."""
    return _registered(_operators.find_custom_op(qualname).impl_backward(output_differentiability), func)


def _destroy(qualname):
    """Forget an operator; another may have its name then."""
    _operators.find_custom_op(qualname)._destroy()
