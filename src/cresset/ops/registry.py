"""How operators reach the public namespaces: `operator` for native ones, `function` for functions made of others.

`functions` and `methods` collect what `cresset` and `Tensor` offer, by name.
"""

import functools
import importlib
import inspect
import types
import warnings
from collections import namedtuple
from typing import Any

from .. import _native
from .autocast import by_device, set_policy

functions: dict[str, Any] = {}  # name -> callable, becomes cresset.<name>
methods: dict[str, Any] = {}  # name -> callable, becomes Tensor.<name>
batch_rules: dict[
    str, Any
] = {}  # name or name.overload -> rule(call) for vmap, or the word for one that many share: see func/words.py
export_rules: dict[
    str, Any
] = {}  # name -> rule(g, arguments by name): how it is written as ONNX, on the graph of onnx/graph.py
placement_rules: dict[
    str, Any
] = {}  # name -> rule(call, arguments): how operands and results may lie on several processes, or the word for one that
# many share: see distributed/tensor/words.py

_operators = _native.operators()
# What obeys __torch_function__: operators and functions made of them.
OBEYING = (_native.Operator, type(_native.overridable(len)))

for _name, _operator in _operators.items():
    _is_function, _is_method = _native.operator_forms(_name)
    if _is_function:
        functions[_name] = _operator
    if _is_method:
        methods[_name] = _operator


class Overload:
    """One signature of a native operator that has several."""

    def __init__(self, operator, name, overload):
        self.operator, self.name, self.overload = operator, name, overload

    def __call__(self, *args, **kwargs):
        return self.operator(*args, **kwargs)

    def derivative(self, function):
        return self.operator.derivative(function, overload=self.overload)

    def batch(self, rule):
        """Decorator: what it does inside vmap, where its arguments are batches. `rule` gets a Call of
        func/batching.py."""
        return batch(f"{self.name}.{self.overload}" if self.overload else self.name)(rule)

    def onnx(self, rule):
        """Decorator: how it is written as ONNX; see `onnx`."""
        return onnx(self.name)(rule)

    def placement(self, rule):
        """Decorator: how it runs on tensors that lie on several processes; see `placement`."""
        return placement(self.name)(rule)


def operator(name, doc=None, *, autocast=None, batch=None, casts_out=False, in_python=None):
    """The native operator `name` (or an overload of it, `name.overload`), with its documentation and facts.

    Args:
        autocast: what autocast does to it; see autocast.py.
        batch: what it does inside vmap, as a word of func/words.py. Other rules are given by the decorator `batch`.
        casts_out: whether an out= of another dtype is written to, where the result can be cast; others refuse it.
        in_python: {device: module} where the kernel is a Python function of the operator's name: it gets the arguments
            and gives the results, or NotImplemented where the CPU has to.
    """
    if batch is not None:
        batch_rules[name.removesuffix(".")] = batch
    name, _, overload = name.partition(".")
    native = _operators.get(name)
    if native is None:
        raise KeyError(f"operator: there is no native operator {name!r}")
    if doc is not None:
        native.__doc__ = inspect.cleandoc(doc)
    if autocast is not None:
        set_policy(name, autocast)
    if casts_out:
        _native.let_cast_out(name)
    for device, module in (in_python or {}).items():
        _native.set_python_kernel(name, device, functools.partial(_kernel_of, module, name))
    return Overload(native, name, overload)


def _kernel_of(module, name, *args):
    return getattr(importlib.import_module(module), name)(*args)


def kept_for(**arguments):
    """Decorator of a derivative: for which argument's gradient (a name, or several in a tuple) an argument is read.

    Where none of these needs a gradient, the derivative gets its shape, dtype and device instead, as from
    `<argument>_info`: no data is kept, and changing the tensor in place is nobody's concern.
    """

    def note(derivative):
        derivative.kept_for = {name: (x,) if isinstance(x, str) else x for name, x in arguments.items()}
        return derivative

    return note


def constant(*arguments):
    """Decorator of a derivative: these arguments (an index, a mask) have no gradient. The node does not list them, and
    the derivative yields nothing for them.
    """

    def note(derivative):
        derivative.constants = frozenset(arguments)
        return derivative

    return note


def flat(derivative):
    """Decorator of a derivative: the one by the first argument does not change with it. A gradient that is itself
    recorded leads to the argument all the same, by a slope of zero, as PyTorch's does; see `Pointwise.derivative`.
    """
    derivative.flat = "input"
    return derivative


def batch(*names):
    """Decorator: what these operators (or overloads, `name.overload`) do inside vmap; `rule` is a function of a Call,
    or a word as in `operator`.
    """

    def enter(rule):
        batch_rules.update(dict.fromkeys(names, rule))
        return rule

    return enter


def onnx(*names):
    """Decorator: how these operators are written as ONNX. The rule gets the graph (onnx/graph.py) and the arguments
    that it names.
    """

    def enter(rule):
        export_rules.update(dict.fromkeys(names, rule))
        return rule

    return enter


def placement(*names):
    """Decorator: how these operators (also in place) run on tensors that lie on several processes. The rule gets a Call
    of distributed/tensor/dispatch.py and the arguments; or a word, as in `batch`.
    """

    def enter(rule):
        placement_rules.update(dict.fromkeys(names, rule))
        return rule

    return enter


def function(
    definition=None, *, method=False, inplace=False, out=False, name=None, asks_others=True, takes_list=False,
    autocast=None,
):  # fmt: skip
    """Offer a Python function as cresset.<name>.

    Args:
        method: True: also as Tensor.<name>; "only": not as a function.
        inplace: also as Tensor.<name>_, which copies the result into its first argument.
        out: add the keyword out=, into which the result is copied; "cast": also where it has another dtype, if the
            result can be cast to it.
        name: the public name, when it is not the function's.
        asks_others: whether modes and arguments with __torch_function__ may answer in its place.
        takes_list: whether a list behind a first argument of text stands for its elements, also for those who are
            asked.
        autocast: what autocast does to it; see autocast.py.
    """
    if definition is None:
        options = {
            "method": method,
            "inplace": inplace,
            "out": out,
            "name": name,
            "asks_others": asks_others,
            "takes_list": takes_list,
            "autocast": autocast,
        }
        return functools.partial(function, **options)
    public = name or definition.__name__
    offered = _with_out(definition, public, out == "cast") if out else definition
    if not asks_others:
        _overridable[offered] = offered
    if takes_list:
        offered.takes_list = True  # read by let_others_answer, also of what autocast makes of it
    if method != "only":
        functions[public] = offered
    if method:
        methods[public] = offered
    if inplace:
        methods[public + "_"] = _in_place(definition, public)
    if autocast is not None:
        offered.autocast = by_device(autocast)
    return offered


def let_others_answer(table, home="torch", prefix="", homes=None):
    """Let the functions in a table, but for a module's private ones, ask modes and arguments with __torch_function__
    first, as operators do.

    Args:
        home: what their `__module__` is, as in PyTorch.
        prefix: that of PyTorch's names for the functions of the module, by which they are asked about: `linalg_inv`.
        homes: those at home elsewhere, by name.
    """
    for name, offered in table.items():
        if isinstance(offered, types.FunctionType) and (
            table is functions or table is methods or not name.startswith("_")
        ):
            if offered not in _overridable:
                offered.__name__ = prefix + name if prefix else offered.__name__
                _overridable[offered] = _native.overridable(
                    offered, (homes or {}).get(name, home), True, False, hasattr(offered, "takes_list")
                )
            table[name] = _overridable[offered]


def tell_names_apart():
    """Give each method that is a function, too, and each further name an object of its own, by which
    __torch_function__ is asked: `Tensor.add` is not `torch.add`, and `torch.arcsin` says that it is.
    """
    for table in (functions, methods):
        for name, offered in table.items():
            if isinstance(offered, OBEYING) and (
                offered.__name__ != name or (table is methods and functions.get(name) is offered)
            ):
                home = "torch.Tensor" if table is methods else offered.__module__
                table[name] = _native.face(offered, name, home)


_overridable = {}  # function -> its form that obeys __torch_function__


def _with_out(definition, public, casts, name=None):
    @functools.wraps(definition)
    def with_out(*args, out=None, **kwargs):
        result = definition(*args, **kwargs)
        return result if out is None else _store(public, out, result, casts, name)

    signature = inspect.signature(definition)
    parameter = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
    with_out.__signature__ = signature.replace(parameters=[*signature.parameters.values(), parameter])
    return with_out


def _store(public, out, result, casts, name=None):
    """Copy a result (or several) into out=, as native operators do. `name`: what an error calls the result."""
    if isinstance(result, (tuple, list)):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise TypeError(f"{public}(): out= must hold {len(result)} tensors")
        names = getattr(result, "__match_args__", [name] * len(result)) if name else [None] * len(result)
        stored = [_store(public, o, r, casts, n) for o, r, n in zip(out, result, names, strict=True)]
        return type(result)(*stored) if hasattr(result, "_fields") else type(result)(stored)
    _native.check_cast(public, result.dtype, out.dtype, name)
    if result.dtype != out.dtype and not casts:
        raise RuntimeError(
            f"{public}: Expected out tensor to have dtype {str(result.dtype)[6:]}, but got {str(out.dtype)[6:]} instead"
        )
    if (out.requires_grad or result.requires_grad) and _native.is_grad_enabled():
        raise RuntimeError(
            f"{public}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    if _native.storage_info(out)[0] == _native.storage_info(result)[0]:
        result = result.clone()
    resize_out(public, out, result.shape)
    return out.copy_(result)


def resize_out(public, out, shape):
    """Give out= the shape of a result; one that holds something is not resized without a word."""
    if out.shape == shape:
        return
    if out.numel():
        warnings.warn(
            f"An output with one or more elements was resized since it had shape {list(out.shape)}, which does not "
            f"match the required output shape {list(shape)} of {public}: give an out= of the right shape, or an empty "
            "one",
            stacklevel=4,
        )
    out.resize_(shape)


def _in_place(definition, public):
    @functools.wraps(definition)
    def in_place(input, *args, **kwargs):
        result = definition(as_it_was(input, *args, *kwargs.values()), *args, **kwargs)
        _native.check_cast(f"{public}_", result.dtype, input.dtype)
        return input.copy_(result)

    in_place.__name__ = in_place.__qualname__ = public + "_"
    in_place.__doc__ = f"In-place form of `{public}`."
    return in_place


def as_it_was(input, *others):
    """What the result that will be copied into `input` is computed from: a copy, where backward may ask for it."""
    recorded = _native.is_grad_enabled() and any(getattr(x, "requires_grad", False) for x in (input, *others))
    return input.clone() if recorded else input


def functions_in_place(*names):
    """Offer methods that change their tensor as functions, too: cresset.<name>_(tensor, ...)."""
    for name in names:

        def in_place(input, *args, _name=name, **kwargs):
            return getattr(input, _name)(*args, **kwargs)

        in_place.__name__ = in_place.__qualname__ = name
        in_place.__doc__ = f"Tensor.{name}."
        functions.setdefault(name, in_place)


def alias(name, *others):
    """Offer what is known as `name` under further names as well."""
    for table in (functions, methods):
        if name in table:
            for other in others:
                table[other] = table[name]
    if name + "_" in methods:
        for other in others:
            methods[other + "_"] = methods[name + "_"]


_KINDS = {
    "Tensor": "Tensor", "Operand": "Tensor | Number", "Scalar": "Number", "int": "int", "SymInt": "int",
    "float": "float", "bool": "bool", "str": "str", "ScalarType": "dtype",
    "Device": "device", "Layout": "layout", "MemoryFormat": "memory_format", "Generator": "Generator",
}  # fmt: skip


def _annotation(kind):
    optional = kind.endswith("?")
    kind = kind.rstrip("?")
    base, bracket, _ = kind.partition("[")
    text = _KINDS.get(base.rstrip("?"), base)
    if bracket:
        text = f"Sequence[{text}]"
    return text + (" | None" if optional else "")


def _default(text, kind):
    if text in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[text]
    if kind.startswith("str"):
        return text
    if text.startswith(("[", "(")):
        return tuple(int(part) for part in text[1:-1].split(",") if part.strip())
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


def _pieces(text):
    """The parameters of a signature's text, and its result."""
    inside, _, result = text[text.index("(") + 1 :].rpartition(") ->")
    depth, part, pieces = 0, "", []
    for character in inside + ",":
        depth += character in "[(" and 1 or (character in "])" and -1 or 0)
        if character == "," and depth == 0:
            pieces.append(part.strip())
            part = ""
        else:
            part += character
    return [piece for piece in pieces if piece], result


Part = namedtuple("Part", "type name default keyword_only")


@functools.cache
def signature_text(name):
    """The signature of a native operator, `name` or `name.overload`, as text."""
    native = _operators[name.partition(".")[0]]
    return next(text for text in native.signatures if text[: text.index("(")] == name)


def signature_parts(name):
    """The parameters of a native operator, `name` or `name.overload`: a Part each."""
    parts, keyword_only = [], False
    for piece in _pieces(signature_text(name))[0]:
        if piece == "*":
            keyword_only = True
            continue
        type_text, _, rest = piece.partition(" ")
        parameter, _, default = rest.partition("=")
        parts.append(Part(type_text, parameter, default or None, keyword_only))
    return parts


def signature_of(text):
    """inspect.Signature of a native operator's signature text."""
    parameters, kind = [], inspect.Parameter.POSITIONAL_OR_KEYWORD
    pieces, result = _pieces(text)
    for piece in pieces:
        if piece == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
            continue
        type_text, _, rest = piece.partition(" ")
        name, equals, default = rest.partition("=")
        if type_text == "int[...]":
            parameters.append(inspect.Parameter(name, inspect.Parameter.VAR_POSITIONAL, annotation="int"))
            kind = inspect.Parameter.KEYWORD_ONLY
            continue
        value = _default(default, type_text) if equals else inspect.Parameter.empty
        parameters.append(inspect.Parameter(name, kind, default=value, annotation=_annotation(type_text)))
    returns = result.strip().replace("Tensor[]", "tuple[Tensor, ...]")
    return inspect.Signature(parameters, return_annotation=returns)


def _signature_with_out(operator):
    signature = signature_of(operator.signatures[0])
    if not operator.takes_out:
        return signature
    annotation = "tuple[Tensor, ...] | None" if signature.return_annotation.startswith("(") else "Tensor | None"
    out = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
    return signature.replace(parameters=[*signature.parameters.values(), out])


_native.Operator.__signature__ = property(_signature_with_out)
