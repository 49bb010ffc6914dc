"""torch.onnx.symbolic_helper: what symbolic functions of one's own are written with (see
`register_custom_op_symbolic`).

A symbolic function gets tensors as values of the graph and all other arguments as they are, numbers and lists; so that
`parse_args` checks them, and `_get_const` finds them known.
"""

import functools

import cresset

from ..graph.recording import Value
from .errors import OnnxExporterError
from .errors import UnsupportedOperatorError as _Unsupported
from .graph import data_type

__all__ = ["cast_pytorch_to_onnx", "parse_args", "scalar_type_to_onnx"]

_DTYPES = {
    "Byte": cresset.uint8, "Char": cresset.int8, "Short": cresset.int16, "Int": cresset.int32, "Long": cresset.int64,
    "Half": cresset.float16, "Float": cresset.float32,
    "Double": cresset.float64, "ComplexHalf": cresset.complex32, "ComplexFloat": cresset.complex64,
    "ComplexDouble": cresset.complex128, "Bool": cresset.bool,
}  # fmt: skip
_SHORT = {"Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double", "ComplexFloat", "ComplexDouble", "Bool"}

# ONNX's number of a dtype: by the name that TorchScript has for it, and in the order of TorchScript's numbers.
cast_pytorch_to_onnx = {name: data_type(_DTYPES[name]) for name in _SHORT}
scalar_type_to_pytorch_type = list(_DTYPES.values())
scalar_type_to_onnx = [data_type(dtype) if name in _SHORT else 0 for name, dtype in _DTYPES.items()]


def _is_value(x):
    """Whether an argument is a tensor of the graph, rather than a number known now."""
    return isinstance(x, (Value, str))


def _is_tensor(x):
    """Whether an argument is a tensor."""
    return _is_value(x)


def _is_none(x):
    """Whether an argument was left out."""
    return x is None


def _get_const(value, desc, arg_name):
    """An argument that must be known now, as what `desc` says: see `parse_args`."""
    return _parse_arg(value, desc, arg_name)


def _maybe_get_const(value, descriptor):
    """The same, or the value itself where it is not known."""
    return value if _is_value(value) and _data(value) is None else _parse_arg(value, descriptor)


def _maybe_get_scalar(value):
    """The number that a value is, or the value itself."""
    data = _data(value)
    return data.item() if data is not None and data.numel() == 1 else value


def _get_tensor_sizes(x, allow_nonstatic=True):
    """The sizes of a tensor of the graph, with None for those that vary; None if nothing is known."""
    if not isinstance(x, Value):
        return None
    sizes = [size if isinstance(size, int) else None for size in x.shape]
    return sizes if allow_nonstatic or None not in sizes else None


def _get_tensor_rank(x):
    """How many dimensions a tensor of the graph has; None if that is not known."""
    return len(x.shape) if isinstance(x, Value) else None


def _get_tensor_dim_size(x, dim):
    """One size of a tensor of the graph; None if it varies or is not known."""
    sizes = _get_tensor_sizes(x)
    return None if sizes is None else sizes[dim]


def _data(value):
    """The elements of a value that does not depend on the inputs; None for others."""
    return value.data if isinstance(value, Value) else value if isinstance(value, cresset.Tensor) else None


_READERS = {"i": int, "f": float, "b": bool, "s": str}


def _parse_arg(value, desc, arg_name=None, node_name=None):
    if desc in ("none", "v"):
        return value
    if value is None:
        return None
    data = _data(value)
    if desc == "t":
        return value if data is None else data
    if isinstance(value, (Value, str)) and data is None and not (desc == "s" and isinstance(value, str)):
        where = f" of {node_name}" if node_name else ""
        raise _Unsupported(
            f"onnx.export: the argument {arg_name or ''!r}{where} must be known when the model is exported, and "
            "depends on its inputs"
        )
    if data is not None:
        value = data.tolist()
    if desc in ("is", "fs"):
        return [_READERS[desc[0]](item) for item in (value if isinstance(value, (list, tuple)) else [value])]
    if desc not in _READERS:
        raise OnnxExporterError(f"parse_args: {desc!r} is none of v, i, is, f, fs, b, s, t, none")
    return _READERS[desc](value)


def parse_args(*arg_descriptors):
    """Decorator of a symbolic function: what its arguments behind the graph are to be.

    Args:
        arg_descriptors: for each argument "v" (a value of the graph), "i", "f", "b", "s" (an int, float, bool, string),
            "is", "fs" (lists), "t" (a tensor), or "none" (as it is).
    """

    def decorate(function):
        names = function.__code__.co_varnames[1 : function.__code__.co_argcount]

        @functools.wraps(function)
        def checked(g, *args, **kwargs):
            if len(args) > len(arg_descriptors):
                raise AssertionError(
                    f"{function.__name__}: got {len(args)} arguments, and parse_args says what {len(arg_descriptors)} "
                    "are: "
                    "a mismatch between the number of arguments and their descriptors"
                )
            found = [
                _parse_arg(arg, descriptor, name, function.__name__)
                for arg, descriptor, name in zip(args, arg_descriptors, names + ("",) * len(args), strict=False)
            ]
            return function(g, *found, **kwargs)

        return checked

    return decorate


def _onnx_unsupported(op_name, value=None):
    """Say that an operator cannot be written."""
    raise _Unsupported(f"onnx.export: Unsupported: ONNX export of operator {op_name}")


def _onnx_opset_unsupported(op_name, current_opset, supported_opset, value=None):
    """Say that an operator can be written from another opset on."""
    raise _Unsupported(
        f"onnx.export: Unsupported: ONNX export of {op_name} in opset {current_opset}. Please try opset version "
        f"{supported_opset}."
    )


def _onnx_opset_unsupported_detailed(op_name, current_opset, supported_opset, reason, value=None):
    """The same with a reason."""
    raise _Unsupported(
        f"onnx.export: Unsupported: ONNX export of {op_name} in opset {current_opset}. {reason}. Please try opset "
        f"version {supported_opset}."
    )


def _unsqueeze_helper(g, input, axes_i):
    """Length-one dimensions at these places."""
    return g.op("Unsqueeze", input, g.op("Constant", value_t=cresset.tensor(list(axes_i))))


def _squeeze_helper(g, input, axes_i):
    """The tensor without these length-one dimensions."""
    return g.op("Squeeze", input, g.op("Constant", value_t=cresset.tensor(list(axes_i))))


def _reshape_helper(g, input, shape, allowzero=0):
    """The tensor in another shape: a value of the graph or a list of ints."""
    shape = shape if _is_value(shape) else g.op("Constant", value_t=cresset.tensor(list(shape), dtype=cresset.int64))
    return g.op("Reshape", input, shape, **({"allowzero_i": allowzero} if allowzero else {}))


def _repeat_interleave_split_helper(g, self, reps, dim):
    """`reps` slices of a tensor along a dimension: the parts that repeat_interleave repeats."""
    if reps <= 1:
        return [self]
    split = g.op(
        "Split", self, g.op("Constant", value_t=cresset.ones(reps, dtype=cresset.int64)), axis_i=dim, outputs=reps
    )
    return split if isinstance(split, list) else [split]
