"""Calls of our operators as calls of aten's."""

import functools
from typing import NamedTuple

from .. import _native
from ..graph import aten_calls
from ..ops import aten_table, formulas, namespaces
from ..ops.pointwise import definitions
from ..ops.registry import _default, signature_parts, signature_text

_operators = _native.operators()


def aten_call(name, args, out=None):
    """(overload, args, kwargs) of the operator of torch.ops.aten that a call of ours is, as PyTorch hands it over:
    without what is at its default. None: it is made of others.
    """
    base = name.partition(".")[0]
    if out is not None:
        return _with_out(name, base, args, out)
    if base in _SEVERAL:
        return None
    found = _find(name, base, args)
    if found is None:
        if base in definitions and not base.endswith("_"):
            return None
        return _own(name), *_given(name, args)
    schema, bound = found
    return _overload(schema), *without_defaults(schema, bound)


class _Parameter(NamedTuple):
    """A parameter of one of our operators."""

    name: str
    has_default: bool
    default: object
    keyword_only: bool


@functools.cache
def _parameters(name):
    return [
        _Parameter(
            part.name,
            part.default is not None,
            None if part.default is None else _default(part.default, part.type),
            part.keyword_only,
        )
        for part in signature_parts(name)
    ]


def _overload(schema):
    return getattr(aten_table.packet(schema.op), schema.overload_name or "default")


def _given(name, args):
    """The arguments of a call of ours: those at the end that are at their defaults left out."""
    parts = _parameters(name)
    values = list(args)
    while values and parts[len(values) - 1].has_default and _same(values[-1], parts[len(values) - 1].default):
        values.pop()
    return tuple(values), {}


def _named(name, args):
    """The same as positions up to the first default, and names."""
    places, words, apart = [], {}, False
    for part, value in zip(_parameters(name), args, strict=False):
        if part.name == "requires_grad" or (part.name == "generator" and value is None):
            continue
        if part.has_default and _same(value, part.default):
            apart = True
        elif apart or part.keyword_only:
            words[part.name] = value
        else:
            places.append(value)
    return tuple(places), words


def _softmax(name):
    def form(input, dim, dtype=None, *rest):
        if dtype is not None:
            input = input.to(dtype)
        return name, (input, dim, False), {}

    return form


def _convolution(dims):
    def form(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        if isinstance(padding, str):
            return f"conv{dims}d", (input, weight, bias, stride, padding, dilation, groups), {}
        many = [[n] * dims if isinstance(n, int) else list(n) for n in (stride, padding, dilation)]
        many = [n * dims if len(n) == 1 else n for n in many]
        return "convolution", (input, weight, bias, *many, False, [0] * dims, groups), {}

    return form


def _narrow(input, dim, start, length):
    """The part as a slice."""
    if not isinstance(start, int):
        return "narrow", (input, dim, start, length), {}
    first = start + input.shape[dim] if start < 0 else start
    return "slice", (input, dim, first, first + length), {}


def _chunk(input, chunks, dim=0):
    """Parts of one size."""
    size = -(-input.shape[dim] // chunks)
    return ("split", (input, size, dim), {}) if size else ("chunk", (input, chunks, dim), {})


def _reshape(input, shape):
    """A view, where one can show all elements."""
    from .handling import without_modes  # which asks this module

    wanted = list(shape)
    with without_modes():
        try:
            _operators["empty_strided"](tuple(input.shape), input.stride(), device="meta").view(wanted)
        except (RuntimeError, TypeError):  # elements would have to move, or the sizes are symbols
            return "reshape", (input, wanted), {}
    return "view", (input, wanted), {}


def _spread(name, base, args):
    """var, std and the pairs with the mean: all are called with a correction."""
    given = dict(zip((part.name for part in _parameters(name)), args, strict=False))
    correction, dim = given.get("correction"), given.get("dim")
    unbiased = given.get("unbiased", True)
    if correction is None and (dim is not None or not unbiased):
        correction = int(unbiased)
    dim = [dim] if isinstance(dim, int) else dim if dim is None else list(dim)
    return aten_table.find(f"aten::{base}.correction"), [given["input"], dim, correction, given.get("keepdim", False)]


# Powers that we have operators of their own for.
POWERS = {
    "square": 2, "cube": 3, "power_half": 0.5, "power_minus_half": -0.5, "power_minus_one": -1, "power_minus_two": -2,
}  # fmt: skip


def _over(name):
    """any and all, of which those of one dimension have an overload of their own."""

    def form(input, dim=None, keepdim=False):
        dim = dim[0] if isinstance(dim, (list, tuple)) and len(dim) == 1 else dim
        return name, (input,) if dim is None else (input, dim, keepdim), {}

    return form


def _power(aten, exponent):
    return lambda input: (aten, (input, exponent), {})


# Operators of ours that PyTorch takes apart before a handler sees them, into one other: name -> (aten's name, args,
# kwargs) of the arguments.
_APART = {
    "softmax": _softmax("_softmax"),
    "log_softmax": _softmax("_log_softmax"),
    **{f"conv{dims}d": _convolution(dims) for dims in (1, 2, 3)},
    "narrow": _narrow,
    "chunk": _chunk,
    "reshape": _reshape,
    "any": _over("any"),
    "all": _over("all"),
    **{f"{name}{end}": _power(f"pow{end}", exponent) for name, exponent in POWERS.items() for end in ("", "_")},
}
# The same into several others (fx/experimental/composites.py).
_SEVERAL = ("linear", "matmul")
_SPREADS = ("var", "std", "var_mean", "std_mean")


def converted(name, args):
    """`to` and its like: the tensor itself where nothing changes, else _to_copy of what does."""
    given = {p.name: a for p, a in zip(_parameters(name), args, strict=True)}
    input, other = given["input"], given.get("other")
    dtype = other.dtype if other is not None else given.get("dtype") or METHODS_OF_DTYPES.get(name) or input.dtype
    device = other.device if other is not None else given.get("device")
    device = input.device if device is None else _native.device(device)
    if device.type == "cuda" and device.index is None and input.device.type == "cuda":
        device = input.device
    format = given.get("memory_format")
    plain = format is None or format is _native.preserve_format
    same = dtype == input.dtype and device == input.device and (plain or input.is_contiguous(memory_format=format))
    if same and not given.get("copy"):
        return None
    words = {"dtype": dtype} if dtype != input.dtype else {}
    if device != input.device:
        words["device"] = device
    if given.get("non_blocking"):
        words["non_blocking"] = True
    if not plain:
        words["memory_format"] = format
    return aten_table.packet("_to_copy").default, (input,), words


def made_contiguous(input, memory_format=None):
    """`contiguous`: the tensor itself where it is so already, else its clone in that order."""
    format = memory_format or _native.contiguous_format
    if input.is_contiguous(memory_format=format):
        return None
    return aten_table.packet("clone").default, (input,), {"memory_format": format}


METHODS_OF_DTYPES = {name: getattr(_native, dtype) for name, dtype in aten_calls.TYPES.items()}


def _find(name, base, args):
    if base in _APART:
        aten, places, words = _APART[base](*_given(name, args)[0])
        return aten_calls.find(aten, places, words, False)
    if base in _SPREADS:
        return _spread(name, base, args)
    own = aten_calls.FORMS.get((False, base))
    if own is not None:
        return aten_calls.call_of(_operators[base], base, _given(name, args)[0], {})
    places, words = _named(name, args)
    return (
        aten_calls.call_of(_operators[base], base, places, words)
        or aten_calls.call_of(_operators[base], base, _given(name, args)[0], {})
        or aten_calls.find(base, tuple(args), {}, False)
    )


def _with_out(name, base, args, out):
    """A call with out=: the overload that writes to these tensors."""
    found = _find(name, base, args)
    if found is None:
        return None
    schema, bound = found
    overload = out_overload(schema)
    if overload is None:
        return None
    places, words = without_defaults(schema, bound)
    names = [a.name for a in overload._schema.arguments if a.is_written]
    return overload, places, {**words, **dict(zip(names, out, strict=True))}


@functools.cache
def out_overload(schema):
    """The overload of an operator that writes its results to tensors that are given: `add.out` for `add.Tensor`."""
    packet = aten_table.packet(schema.op)
    for name in ("out", f"{schema.overload_name}_out"):
        overload = getattr(packet, name, None) if packet is not None else None
        if overload is None:
            continue
        others = [a.type for a in overload._schema.arguments if not a.is_written]
        if others == [a.type for a in schema.arguments]:
            return overload
    return None


def without_defaults(schema, bound):
    """args and kwargs as PyTorch hands them to __torch_dispatch__: without trailing defaults."""
    places, words = [], {}
    for argument, value in zip(schema.arguments, bound, strict=True):
        is_default = argument.has_default and _same(value, aten_calls.default_of(argument))
        if argument.keyword_only:
            if not is_default:
                words[argument.name] = value
        else:
            places.append((value, is_default))
    while places and places[-1][1]:
        places.pop()
    return tuple(value for value, _ in places), words


def _same(value, default):
    if isinstance(value, (list, tuple)):
        return isinstance(default, (list, tuple)) and list(value) == list(default)
    return (
        value is default
        or (type(value) is type(default) and isinstance(value, (bool, int, float, str)) and value == default)
        or (isinstance(value, float) and type(default) is int and value == default)
    )


class OwnOverload(namespaces.OpOverload):
    """`torch.ops.cresset.<name>`: an operator of ours that aten has none for."""

    def __init__(self, name, run=None):
        base = name.partition(".")[0]
        text = f"{name}(...) -> Tensor" if run is not None else signature_text(name).replace("int[...]", "int[]")
        super().__init__(namespaces.Schema(f"cresset::{text}"))
        self._run = _operators[base] if run is None else run
        self.__doc__ = self._run.__doc__

    def __call__(self, *args, **kwargs):
        return self._run(*args, **kwargs)


@functools.cache
def own_function(name, function):
    """A function of ours that is no operator, as classes see it."""
    return _entered(OwnOverload(name, function))


@functools.cache
def _own(name):
    return _entered(OwnOverload(name))


def _entered(overload):
    """An overload that `torch.ops.cresset` knows."""
    packets = namespaces.namespace("cresset")._packets
    packet = packets.setdefault(overload._schema.op, namespaces.OpOverloadPacket(overload._schema.name))
    packet._overloads[overload._overloadname] = overload
    overload.overloadpacket = packet
    return overload


def made_of_others(name, args, out):
    """A call that aten has no operator for, by what it is made of; handlers see those."""
    base = name.partition(".")[0]
    if out is None and base in ("div", "true_divide"):  # of a number by a tensor
        return _operators["mul"](_operators["reciprocal"](args[1]), args[0])
    if out is None and base in _SEVERAL:
        from .handling import without_modes  # which asks this module

        with without_modes():  # what a module makes when it is loaded is nothing that a mode sees
            from ..fx.experimental import composites  # upward: what make_fx writes them with
        return composites.called(base, *_given(name, args))
    if out is None:
        formula = next(iter(formulas.definition(base)._formulas.values()))
        return formula(*args)
    places, words = _named(name, args)
    result = _operators[base](*places, **words)
    for target, value in zip(out, result if isinstance(result, (list, tuple)) else [result], strict=True):
        if target.shape != value.shape:
            target.resize_(value.shape)
        target.copy_(value)
    return out
