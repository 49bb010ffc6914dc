"""How a tensor of a module becomes another one, when the module is converted or loaded: what `to` asks for, and taking
over data or being swapped (torch.__future__).
"""

import cresset
from cresset import _native

from ..tensors.swapping import swap_tensors
from .parameter import Parameter


def can_keep(old, new):
    """Whether `old` can take the data of `new` and stay the same object."""
    return (
        cresset._has_compatible_shallow_copy_type(old, new)
        and not cresset.__future__.get_overwrite_module_params_on_conversion()
    )


def swap_loaded(tensor, new, saved):
    """Let a tensor of a module become what `module_load` made of a saved one."""
    if new is saved or new is tensor:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning one of the inputs in "
            "module_load"
        )
    if isinstance(tensor, Parameter):
        if isinstance(new, Parameter):
            new.requires_grad_(tensor.requires_grad)
        else:
            new = Parameter(new, requires_grad=tensor.requires_grad)
    swap_tensors(tensor, new)


def swaps(new):
    """Whether a converted parameter is swapped with the old one: on demand, and where a class has data of its own."""
    return cresset.__future__.get_swap_module_params_on_conversion() or hasattr(type(new), "__tensor_flatten__")


def swap_parameter(name, parameter, new, fn):
    """Let a parameter, and its gradient, become what `fn` makes of it."""
    grad, parameter.grad = parameter.grad, None  # as its holder, the parameter would keep it from being swapped
    try:
        swap_tensors(parameter, Parameter(new, parameter.requires_grad))
    except Exception as error:
        parameter.grad = grad
        raise RuntimeError(f"_apply(): Couldn't swap {name}") from error
    if grad is None:
        return
    with cresset.no_grad():
        new_grad = fn(grad).requires_grad_(grad.requires_grad)
    try:
        swap_tensors(grad, new_grad)
    except Exception as error:
        raise RuntimeError(f"_apply(): Couldn't swap {name}.grad") from error
    parameter.grad = grad


def parse_to(*args, **kwargs):
    """The device, dtype, non_blocking and memory_format that a call of `to` asks for."""
    device, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
    non_blocking, memory_format = kwargs.pop("non_blocking", False), kwargs.pop("memory_format", None)
    other = kwargs.pop("tensor", None)
    copy = kwargs.pop("copy", False)
    if kwargs:
        raise TypeError(
            "to() received an invalid combination of arguments - got an unexpected keyword argument "
            f"{next(iter(kwargs))!r}"
        )
    flags = []
    # A bool stands behind a dtype or a tensor, or behind both a device and a dtype.
    behind = 1 if args and isinstance(args[0], (cresset.Tensor, cresset.dtype)) else 2
    for place, value in enumerate(args):
        if isinstance(value, cresset.Tensor):
            other = value
        elif isinstance(value, cresset.dtype) or value in (float, int, bool, complex):
            dtype = value
        elif isinstance(value, bool):
            if place < behind:
                raise TypeError(
                    f"to() received an invalid combination of arguments - got the bool {value} at position {place + 1}"
                )
            flags.append(value)
        elif isinstance(value, (str, int, cresset.device)):
            device = value
        elif value is not None:
            raise TypeError(f"to() received an invalid combination of arguments - got ({type(value).__name__})")
    if flags:
        non_blocking, *rest = flags
        copy = copy or any(rest)
    if copy:
        raise RuntimeError("nn.Module.to: does not accept copy=True, it changes the module in place; deepcopy it first")
    if other is not None:
        device, dtype = other.device, other.dtype
    if isinstance(device, (str, int)):
        device = cresset.device(device)
    if dtype is not None:
        dtype = _native.as_dtype(dtype)
    return device, dtype, non_blocking, memory_format
