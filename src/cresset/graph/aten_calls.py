"""Which aten operator a call is: what a program calls, as PyTorch's recordings name it.

`call_of` finds the overload and its arguments in the schema's order. Functions of layers that take their arguments
otherwise are in `FORMS`; indexing is made of views and `index` by `REWRITTEN`. What is found neither here nor in the
table is entered, if it is made of operators.
"""

import inspect
import itertools
from numbers import Number

import cresset

from ..ops import aten_table
from ..ops.aten_forms import REDUCTIONS
from ..ops.indexing import bags_by_rows

SAME_NAMES = {
    "input": "self",
    "self": "input",
    "x": "self",
    "A": "self",
    "B": "b",
    "axis": "dim",
    "keepdims": "keepdim",
    "dims": "dim",
    "sizes": "size",
    "shape": "size",
}
SWAPPED = {
    "add",
    "mul",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "maximum",
    "minimum",
    "logical_and",
    "logical_or",
    "logical_xor",
}
TYPES = {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "int": "int32", "long": "int64",
    "short": "int16",
    "char": "int8", "byte": "uint8", "bool": "bool", "cfloat": "complex64", "cdouble": "complex128",
}  # fmt: skip


class NoForm(Exception):
    """The call, as its arguments are, is no single aten operator."""


def fits(value, kind, numbers=False):
    """Whether a value may be given for an argument of a schema's type. `numbers`: a number may stand for a tensor."""
    if kind.endswith("?"):
        return value is None or fits(value, kind[:-1], numbers)
    if kind.endswith("]"):
        element, _, count = kind[:-1].rpartition("[")
        if isinstance(value, (list, tuple)):
            return all(fits(item, element) for item in value)
        return bool(count) and fits(value, element)
    if kind == "Tensor":
        return isinstance(value, cresset.Tensor) or (numbers and _is_number(value))
    if kind == "int":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == "float":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "Scalar":
        return _is_number(value)
    if kind == "str":
        return isinstance(value, str)
    if kind == "Device":
        return isinstance(value, (cresset.device, str))
    known = {
        "ScalarType": cresset.dtype,
        "Layout": cresset.layout,
        "MemoryFormat": cresset.memory_format,
        "Generator": cresset.Generator,
    }
    return kind in known and isinstance(value, known[kind])


def _is_number(value):
    return isinstance(value, (int, float, complex))


def _plain(value):
    """A number of NumPy's as one of Python's, also in a list."""
    if isinstance(value, (list, tuple)):
        return type(value)([_plain(item) for item in value]) if type(value) in (list, tuple) else value
    is_foreign = isinstance(value, Number) and not isinstance(value, (int, float, complex))
    return value.item() if is_foreign and hasattr(value, "item") else value


def as_given(value, kind):
    """The value as the schema has it: lists for sequences, one number for each place, devices as objects."""
    if value is None:
        return None
    kind = kind.removesuffix("?")
    if kind.endswith("]"):
        element, _, count = kind[:-1].rpartition("[")
        if isinstance(value, (list, tuple)):
            return [as_given(item, element) for item in value]
        return [value] * int(count)
    if kind == "Device":
        return cresset.device(value)
    return float(value) if kind == "float" and type(value) is int else value


def bind(schema, args, kwargs, numbers=False):
    """The arguments in the schema's order with its defaults; None if they do not fit it."""
    declared = schema.arguments
    places = [a for a in declared if not a.keyword_only]
    args, kwargs = [_plain(value) for value in args], {name: _plain(value) for name, value in kwargs.items()}
    given = {}
    if len(args) > len(places) or (
        args and places and places[min(len(args), len(places)) - 1].type.startswith("int[]")
    ):
        args = _gathered(args, places)
        if args is None:
            return None
    for argument, value in zip(places, args, strict=False):
        given[argument.name] = value
    names = {a.name for a in declared}
    for name, value in kwargs.items():
        name = name if name in names else SAME_NAMES.get(name, name)
        if name not in names or name in given:
            return None
        given[name] = value
    bound = []
    for argument in declared:
        if argument.name in given:
            value = given[argument.name]
            if not fits(value, argument.type, numbers):
                return None
            bound.append(as_given(value, argument.type))
        elif argument.has_default:
            bound.append(as_given(default_of(argument), argument.type))
        else:
            return None
    return bound


def default_of(argument):
    """The default of a schema's argument, where it is a word (`contiguous_format`) as an object."""
    value = argument.default
    if argument.type.rstrip("?") == "MemoryFormat" and isinstance(value, str):
        return getattr(cresset, value)
    return value


def _gathered(args, places):
    """Sizes may be given one by one: view(2, 3). They are the last argument then."""
    for k, argument in enumerate(places):
        if (
            argument.type.startswith("int[")
            and k < len(args)
            and isinstance(args[k], int)
            and not isinstance(args[k], bool)
        ):
            rest = args[k:]
            if all(isinstance(r, int) and not isinstance(r, bool) for r in rest) and (
                len(rest) > 1 or argument.type == "int[]"
            ):
                return (*args[:k], tuple(rest))
    return args if len(args) <= len(places) else None


def find(name, args, kwargs, scalars):
    """(schema, arguments) of the overload of `aten::name` that a call takes; None if there is none.

    Args:
        scalars: take the overloads for numbers (`add.Scalar`) that PyTorch's functions pass over.
    """
    name, _, overload = name.partition(".")
    candidates = aten_table.overloads(f"aten::{name}") or aten_table.overloads(f"aten::special_{name}")
    candidates = [schema for schema in candidates if not overload or schema.overload_name == overload]
    for numbers in (True, False) if name in aten_table.NUMBERS_AS_TENSORS and not scalars else (False, True):
        for schema in candidates:
            bound = bind(schema, args, kwargs, numbers)
            if bound is not None:
                return schema, bound
    return None


def call_of(func, name, args, kwargs, scalars=False):
    """(schema, arguments in its order) of the aten operator that a call is. None: there is none for it.

    Args:
        func: what was called. A function that is written in Python is bound by the names of its parameters, an operator
            by their order.
    """
    kwargs = {key: value for key, value in kwargs.items() if not (key == "generator" and value is None)}
    own = FORMS.get((_is_layer_function(func), name))
    if own is not None:
        try:
            name, args, *named = own(*args, **kwargs)
        except NoForm:
            return None
        return find(name, args, named[0] if named else {}, scalars)
    if args and _is_number(args[0]) and len(args) > 1 and isinstance(args[1], cresset.Tensor) and name in SWAPPED:
        args = (args[1], args[0], *args[2:])
    if name == "sub" and args and _is_number(args[0]):
        name, args = "rsub", (args[1], args[0], *args[2:])
    if hasattr(func, "__wrapped__"):
        return _find_by_names(func, name, args, kwargs, scalars)
    return find(name, args, kwargs, scalars)


def _is_layer_function(func):
    return (getattr(getattr(func, "__wrapped__", func), "__module__", None) or "").startswith("cresset.nn.functional")


def _find_by_names(func, name, args, kwargs, scalars):
    """An overload that has the parameters of a Python function; those that it does not have are at their defaults."""
    try:
        signature = inspect.signature(func)
        bound = signature.bind(*args, **kwargs)
    except (TypeError, ValueError):
        return None
    parameters = signature.parameters
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters.values()):
        return find(name, args, kwargs, scalars) if not _is_layer_function(func) else None
    for numbers, schema in itertools.product((False, True), aten_table.overloads(f"aten::{name}")):
        names = {argument.name for argument in schema.arguments}
        given = {}
        for key, value in bound.arguments.items():
            key_there = key if key in names else SAME_NAMES.get(key, key)
            if key == "reduction" and value in REDUCTIONS:
                value = REDUCTIONS.index(value)
            if key_there in names:
                if value is not None or not _is_default(parameters[key], value):
                    given[key_there] = value
            elif not _is_default(parameters[key], value):
                break
        else:
            found = bind(schema, (), given, numbers)
            if found is not None:
                return schema, found
    return None


def _is_default(parameter, value):
    default = parameter.default
    return default is value or (
        default is not parameter.empty
        and type(default) is type(value)
        and isinstance(value, (bool, int, float, str))
        and default == value
    )


# ---- functions of layers, and others, whose arguments aten has in another form

# (whether it is a function of layers, name) -> function of the call's arguments: (aten name, args[, kwargs])
FORMS = {}


def _form(*names, layers=True):
    def enter(function):
        FORMS.update({(layers, name): function for name in names})
        return function

    return enter


@_form("batch_norm")
def _batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    return "batch_norm", (
        input,
        weight,
        bias,
        running_mean,
        running_var,
        training,
        0.0 if momentum is None else momentum,
        eps,
        False,
    )


@_form("instance_norm")
def _instance_norm(
    input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5
):
    return "instance_norm", (input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)


@_form("layer_norm")
def _layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    return "layer_norm", (input, list(normalized_shape), weight, bias, eps, False)


@_form("group_norm")
def _group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    return "group_norm", (input, num_groups, weight, bias, eps, False)


@_form("embedding")
def _embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    if max_norm is not None:
        raise RuntimeError(
            "embedding: max_norm writes to the table while it is read, which a recording cannot hold; leave max_norm "
            "out"
        )
    place = -1 if padding_idx is None else padding_idx % weight.shape[0]
    return "embedding", (weight, input, place, scale_grad_by_freq, sparse)


def _dropout_like(aten):
    def form(input, p=0.5, training=True, inplace=False):
        return aten + "_" * bool(inplace), (input, float(p), bool(training))

    return form


_form("dropout")(_dropout_like("dropout"))
_form("alpha_dropout")(_dropout_like("alpha_dropout"))
_form("feature_alpha_dropout")(_dropout_like("feature_alpha_dropout"))


@_form("cross_entropy")
def _cross_entropy(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0
):
    return "cross_entropy_loss", (
        input,
        target,
        weight,
        _number(reduction, size_average, reduce),
        ignore_index,
        label_smoothing,
    )


@_form("nll_loss")
def _nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    return "nll_loss_nd", (input, target, weight, _number(reduction, size_average, reduce), ignore_index)


@_form("mse_loss")
def _mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    if weight is not None or input.shape != target.shape:
        raise NoForm
    return "mse_loss", (input, target, _number(reduction, size_average, reduce))


@_form("l1_loss")
def _l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    if weight is not None or input.shape != target.shape:
        raise NoForm
    return "l1_loss", (input, target, _number(reduction, size_average, reduce))


def _number(reduction, size_average, reduce):
    if size_average is not None or reduce is not None or reduction not in REDUCTIONS:
        raise NoForm
    return REDUCTIONS.index(reduction)


@_form("interpolate")
def _interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    dims = input.dim() - 2
    if recompute_scale_factor or mode == "area" or (antialias and mode not in ("bilinear", "bicubic")):
        raise NoForm
    if size is not None:
        size, scale_factor = [size] * dims if isinstance(size, int) else list(size), None
    else:
        scale_factor = [
            float(f) for f in ([scale_factor] * dims if isinstance(scale_factor, (int, float)) else scale_factor)
        ]
    smooth = {1: "linear1d", 2: f"{mode}2d", 3: "trilinear3d"}.get(dims)
    if mode in ("nearest", "nearest-exact"):
        return f"{'upsample_nearest' if mode == 'nearest' else '_upsample_nearest_exact'}{dims}d.vec", (
            input,
            size,
            scale_factor,
        )
    if mode not in ("linear", "bilinear", "bicubic", "trilinear") or smooth is None:
        raise NoForm
    return f"_upsample_{smooth}_aa.vec" if antialias else f"upsample_{smooth}.vec", (
        input,
        size,
        bool(align_corners),
        scale_factor,
    )


@_form("unfold")
def _unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    return "im2col", (
        input,
        *([n, n] if isinstance(n, int) else list(n) for n in (kernel_size, dilation, padding, stride)),
    )


@_form("fold")
def _fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    return "col2im", (
        input,
        *([n, n] if isinstance(n, int) else list(n) for n in (output_size, kernel_size, dilation, padding, stride)),
    )


@_form("grid_sample")
def _grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    return "grid_sampler", (input, grid, modes.index(mode), paddings.index(padding_mode), bool(align_corners))


@_form("affine_grid")
def _affine_grid(theta, size, align_corners=None):
    return "affine_grid_generator", (theta, list(size), bool(align_corners))


@_form("logsigmoid")
def _logsigmoid(input):
    return "log_sigmoid", (input,)


@_form("pad")
def _pad(input, pad, mode="constant", value=None):
    return "pad", (input, list(pad), mode, value if value is None else float(value))


@_form("max_pool2d", layers=False)
def _max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    return "max_pool2d_with_indices" if return_indices else "max_pool2d", (
        input,
        kernel_size,
        [] if stride is None else stride,
        padding,
        dilation,
        ceil_mode,
    )


def _inner(name):
    def form(*args):
        return name, args

    return form


for _dims in (1, 2, 3):
    _form(f"_avg_pool{_dims}d", layers=False)(_inner(f"avg_pool{_dims}d"))


@_form("_max_unpool", layers=False)
def _max_unpool(input, indices, size, rank):
    sizes = list(size[-rank:])
    return (
        ("max_unpool2d", (input, indices, sizes))
        if rank == 2
        else ("max_unpool3d", (input, indices, sizes, [1] * 3, [0] * 3))
    )


for _dims in (2, 3):
    _form(f"_fractional_max_pool{_dims}d", layers=False)(_inner(f"fractional_max_pool{_dims}d"))


@_form("kl_div_elementwise", layers=False)
def _kl_div_elementwise(input, target, log_target=False):
    return "kl_div", (input, target, 0), {"log_target": log_target}


@_form("logsigmoid", layers=False)
def _native_logsigmoid(input):
    return "log_sigmoid", (input,)


@_form("einsum", layers=False)
def _einsum(equation, *operands):
    tensors = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    if not isinstance(equation, str):
        raise NoForm
    return "einsum", (equation, list(tensors))


@_form("to", layers=False)
def _to(input, *args, **kwargs):
    options = dict(kwargs)
    if args and isinstance(args[0], cresset.Tensor):
        return "to", (input, *args), kwargs
    if args and isinstance(args[0], cresset.dtype):
        return "to", (input, *args), kwargs
    if args and args[0] is not None:
        options["device"] = args[0]
    if len(args) > 1 and args[1] is not None:
        options["dtype"] = args[1]
    options.update(zip(("non_blocking", "copy"), args[2:], strict=False))
    options = {key: value for key, value in options.items() if value is not None and value is not False}
    if "dtype" in options and "device" not in options:
        return "to", (input, options.pop("dtype")), options
    options.setdefault("dtype", input.dtype)
    return "to", (input,), options


def _cast(dtype):
    def form(input, memory_format=None):
        return "to", (input, getattr(cresset, dtype)), {}

    return form


for _name, _dtype in TYPES.items():
    _form(_name, layers=False)(_cast(_dtype))


@_form("split", layers=False)
def _split(input, split_size, dim=0):
    return "split" if isinstance(split_size, int) else "split_with_sizes", (input, split_size, dim)


@_form("type_as", layers=False)
def _type_as(input, other):
    return "type_as", (input, other)


@_form("div_floor", layers=False)
def _div_floor(input, other):
    return "floor_divide", (input, other)


@_form("div_trunc", layers=False)
def _div_trunc(input, other):
    return "div", (input, other), {"rounding_mode": "trunc"}


@_form("to_dtype", layers=False)
def _to_dtype(input, dtype):
    return "to", (input, dtype)


@_form("gelu_tanh", layers=False)
def _gelu_tanh(input):
    return "gelu", (input,), {"approximate": "tanh"}


@_form("trigamma", layers=False)
def _trigamma(input):
    return "polygamma", (1, input)


@_form("polygamma_elementwise", layers=False)
def _polygamma(input, n):
    return "polygamma", (n, input)


@_form("div", "true_divide", layers=False)
def _div(input, other, *, rounding_mode=None):
    if _is_number(input):
        raise NoForm
    return "div", (input, other), {} if rounding_mode is None else {"rounding_mode": rounding_mode}


# ---- indexing, which is made of views and `index`


def getitem(tensor, index):
    """tensor[index] by select, slice, unsqueeze and index, as PyTorch records it."""
    view, tensors = _viewed(tensor, index)
    if not tensors:
        return view if view is not tensor else cresset.ops.aten.alias(tensor)
    return cresset.ops.aten.index(view, tensors)


def setitem(tensor, index, value):
    """tensor[index] = value by views and copy_, fill_ or index_put_."""
    view, tensors = _viewed(tensor, index)
    if tensors:
        value = (
            value
            if isinstance(value, cresset.Tensor)
            else cresset.tensor(value, dtype=tensor.dtype, device=tensor.device)
        )
        view.index_put_(tensors, value.to(tensor.dtype) if value.dtype != tensor.dtype else value)
    elif isinstance(value, cresset.Tensor):
        while value.dim() > view.dim() and value.shape[0] == 1:
            value = value.squeeze(0)
        view.copy_(value)
    else:
        view.fill_(value)


def _viewed(tensor, index):
    """What is left after the integers, slices, None and ... of an index, and the tensors that are left of it."""
    items = list(index) if isinstance(index, tuple) else [index]
    used = sum(_dims_of(item) for item in items)
    if any(item is Ellipsis for item in items):
        place = next(k for k, item in enumerate(items) if item is Ellipsis)
        items[place : place + 1] = [slice(None)] * (tensor.dim() - used)
    view, dim, tensors = tensor, 0, []
    for item in items:
        if item is None:
            view, dim = view.unsqueeze(dim), dim + 1
        elif isinstance(item, bool):
            view = view.unsqueeze(dim)
            tensors += [None] * (dim - len(tensors)) + [cresset.tensor([item])]
            dim += 1
        elif isinstance(item, slice):
            if item.step is not None and item.step <= 0:
                raise ValueError("step must be greater than zero")
            if (item.start, item.stop, item.step) != (None, None, None):
                step = 1 if item.step is None else item.step
                view = cresset.ops.aten.slice(view, dim, item.start, item.stop, step)
            dim += 1
        elif isinstance(item, cresset.Tensor) and (item.dim() or item.dtype in (cresset.bool, cresset.uint8)):
            tensors += [None] * (dim - len(tensors)) + [item]
            dim += max(item.dim(), 1) if item.dtype in (cresset.bool, cresset.uint8) else 1
        elif isinstance(item, cresset.Tensor):
            tensors += [None] * (dim - len(tensors)) + [item]
            dim += 1
        elif isinstance(item, int):
            view = view.select(dim, item)
        else:
            tensors += [None] * (dim - len(tensors)) + [cresset.tensor(item)]
            dim += tensors[-1].dim() if tensors[-1].dtype == cresset.bool else 1
    return view, tensors


def _dims_of(item):
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    if isinstance(item, cresset.Tensor) and item.dtype in (cresset.bool, cresset.uint8):
        return item.dim()
    return 1


def _reciprocal_times(number, tensor):
    return tensor.reciprocal() * number


REWRITTEN = {"__getitem__": getitem, "__setitem__": setitem, "_embedding_bags": bags_by_rows}


def _filled(size, fill_value, *, dtype=None, **options):
    """`full` of the number in a tensor, which may depend on the inputs: it is written, not read."""
    if dtype is None:
        default, of = cresset.get_default_dtype(), fill_value.dtype
        dtype = default if of.is_floating_point else default.to_complex() if of.is_complex else of
    return cresset.empty(size, dtype=dtype, **options).fill_(fill_value)


def rewritten(name, args):
    """A function made of aten's operators for what is none: indexing, a number divided by a tensor, tensors full of the
    number in another, bags of rows. None for the rest.
    """
    if name == "full" and len(args) == 2 and isinstance(args[1], cresset.Tensor):
        return _filled
    if name in ("div", "true_divide") and len(args) == 2 and _is_number(args[0]):
        return _reciprocal_times
    return REWRITTEN.get(name)
