"""torch._C._nn: the functions below torch.nn. Those that are public there are found here, too."""

import operator

from .. import _native
from ..nn import functional
from ..ops.namespaces import namespace
from ..show.missing_names import MissingName

# The same under the names of PyTorch's kernels.
_SAME = {"slow_conv3d": ("conv3d", 3), "thnn_conv2d": ("conv2d", 2)}

_OF_ATEN = ("reflection_pad", "replication_pad", "upsample_", "_upsample_")  # padding and resizing by kind
# Those that take other arguments than torch.nn.functional's, a reduction as a number, or have no name there.
_AS_IN_ATEN = frozenset(
    ["binary_cross_entropy", "col2im", "cross_entropy_loss", "hardsigmoid_", "hardswish_", "huber_loss", "im2col",
     "l1_loss", "log_sigmoid", "mish_", "mse_loss", "multi_margin_loss", "multilabel_margin_loss", "nll_loss",
     "nll_loss2d", "nll_loss_nd", "relu6_", "silu_", "smooth_l1_loss", "soft_margin_loss"]
)  # fmt: skip


def __getattr__(name):
    if name in _SAME:
        convolution, dims = _SAME[name]
        return _of_a_kernel(getattr(functional, convolution), dims)
    if name in _AS_IN_ATEN:
        return getattr(namespace("aten"), name)
    if name.startswith(_OF_ATEN) and (found := getattr(namespace("aten"), name, None)) is not None:
        return found
    if name.startswith("_") or not callable(found := getattr(functional, name, None)):
        raise MissingName(__name__, name)
    return found


def _of_a_kernel(convolution, dims):
    """A convolution with the arguments of PyTorch's kernel, which takes the kernel's size, too."""

    def run(input, weight, kernel_size, bias=None, stride=1, padding=0):
        for what, given in (("kernel_size", kernel_size), ("stride", stride), ("padding", padding)):
            if not isinstance(given, int) and len(given) != dims:
                raise RuntimeError(
                    f"It is expected {what} equals to {dims}, but got size {len(given)} ({dims}D {what} expected)"
                )
        return convolution(input, weight, bias, stride, padding)

    return run


def _parse_to(*args, **kwargs):
    """What the arguments of `to` mean: (device, dtype, non_blocking, memory_format), with None for what was not said.

    >>> cresset._C._nn._parse_to("cpu", cresset.float16, non_blocking=True)
    (device(type='cpu'), torch.float16, True, None)
    """
    if args and isinstance(args[0], _native.Tensor):
        other, rest = args[0], args[1:]
        args = (other.device, other.dtype, *rest)
    elif "other" in kwargs:
        other = kwargs.pop("other")
        args = (other.device, other.dtype, *args)
    elif args and isinstance(args[0], _native.dtype):
        args = (kwargs.pop("device", None), *args)
    names = ("device", "dtype", "non_blocking", "copy")
    if len(args) > len(names):
        raise TypeError(
            f"to: takes at most {len(names)} arguments without a name (device, dtype, non_blocking, copy), got "
            f"{len(args)}"
        )
    given = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name not in (*names, "memory_format") or name in given:
            raise TypeError(f"to: got an unexpected argument {name}={value!r}")
        given[name] = value
    device, dtype, memory_format = given.get("device"), given.get("dtype"), given.get("memory_format")
    if dtype is not None:
        dtype = _native.as_dtype(dtype)
    if device is not None and not isinstance(device, _native.device):
        device = _native.device(device) if isinstance(device, str) else _native.device("cuda", operator.index(device))
    if memory_format is not None and not isinstance(memory_format, _native.memory_format):
        raise TypeError(
            f"to: memory_format must be a memory format such as torch.channels_last, not {type(memory_format).__name__}"
        )
    return device, dtype, bool(given.get("non_blocking", False)), memory_format
