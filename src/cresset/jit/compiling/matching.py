"""Which overload of an operator a call means, and the conversions that its arguments need.

PyTorch's rule: the overloads in order, first without conversions, then with them (a tensor where a number is asked
for); the first that fits is taken. A single number stands for `int[2]`, a tuple for a list, text for a device. Nothing
is written to the graph before a whole schema fits.
"""

import functools
import re

from ...graph import types
from ...graph.graph import Value
from ...ops import aten_table
from ...ops.namespaces import NAMESPACES, Schema
from .errors import CompileError

_IMPLICIT = {
    types.IntType: "aten::IntImplicit",
    types.FloatType: "aten::FloatImplicit",
    types.NumberType: "aten::ScalarImplicit",
    types.ComplexType: "aten::ComplexImplicit",
}
_OF_SCALAR = {
    types.IntType: "aten::Int.Scalar",
    types.FloatType: "aten::Float.Scalar",
    types.ComplexType: "aten::Complex.Scalar",
}
_DEFAULT_WORDS = {"Mean": 1, "contiguous_format": 0, "preserve_format": 1, "long": 4, "strided": 0, "None": None}


@functools.cache
def formals(schema):
    """(argument, type, length of int[N] or None) for each parameter of a schema, and the types of its results. `...`
    has the type None.
    """
    found = []
    for argument in schema.arguments:
        if argument.type == "..." or argument.name == "...":
            found.append((argument, None, None))
            continue
        fixed = re.fullmatch(r"(?:int|float|SymInt|bool)\[(\d+)\]\??", argument.type)
        found.append((argument, types.parse_schema_type(argument.type), int(fixed[1]) if fixed else None))
    returns = (
        []
        if [r.type for r in schema.returns] == ["..."]
        else [types.parse_schema_type(result.type) for result in schema.returns]
    )
    return found, returns


# A dtype is an int in programs: x.view(4) would be a view as the fourth dtype. As in PyTorch, that is not meant.
_HIDDEN = {"aten::view.dtype"}


class Mismatch(Exception):
    """Why a schema does not fit."""


def _schemas(kind):
    """The Schemas of an operator of PyTorch's, or of one that the program defined with torch.library."""
    found = aten_table.overloads(kind)
    if found:
        return found
    namespace, _, name = kind.partition("::")
    packet = NAMESPACES[namespace]._packets.get(name) if namespace in NAMESPACES else None
    return [] if packet is None else [overload._schema for overload in packet._overloads.values()]


def match_operator(emitter, kind, args, kwargs, place):
    """Write the call of an operator; gives its value (a tuple for several results, None's constant for none)."""
    candidates = [schema for schema in _schemas(kind) if str(schema).partition("(")[0] not in _HIDDEN]
    if not candidates:
        raise CompileError(place, f"Unknown builtin op: {kind}")
    if "out" in kwargs and not any(argument.name == "out" for schema in candidates for argument in schema.arguments):
        candidates = [with_out(schema) for schema in candidates if _gives_a_tensor(schema)] or candidates
    reasons = []
    for convert in (False, True):
        for schema in candidates:
            try:
                plan, known = match_schema(schema, args, kwargs, convert)
            except Mismatch as reason:
                if not convert:
                    reasons.append((schema, str(reason)))
                continue
            return _write(emitter, kind, schema, plan, known, place)
    if len(reasons) == 1:
        raise CompileError(place, f"{reasons[0][1]}\n\nDeclaration: {reasons[0][0]}\n\nThe call is")
    text = "".join(f"\n  {schema}\n  {reason}\n" for schema, reason in reasons)
    given = ", ".join([*(str(a.type()) for a in args), *(f"{k}={v.type()}" for k, v in kwargs.items())])
    raise CompileError(
        place,
        (
            f"Arguments for call are not valid ({given}).\nThe following variants are available:\n{text}\nThe original "
            "call is"
        ),
    )


def _gives_a_tensor(schema):
    return [result.type for result in schema.returns] == ["Tensor"] and any(
        argument.type == "Tensor" for argument in schema.arguments
    )


@functools.cache
def with_out(schema):
    """The form of an operator that writes its result into a tensor that it is given."""
    text = str(schema)
    inside, _, _ = text.rpartition(") -> ")
    star = "" if any(argument.keyword_only for argument in schema.arguments) else ", *"
    name, _, parameters = inside.partition("(")
    name += "_out" if schema.overload_name else ".out"
    return Schema(f"{name}({parameters}{star}, Tensor(a!) out) -> Tensor(a!)")


def match_schema(schema, args, kwargs, convert):
    """[(what to write for each parameter)] and the types found for open ones. Raises Mismatch."""
    parameters, _ = formals(schema)
    plan, known, left, used = [], {}, list(args), set()
    for position, (argument, formal, length) in enumerate(parameters):
        if formal is None:  # the rest, whatever it is
            plan += left
            left = []
            continue
        if left and not argument.keyword_only:
            if convert and _rest_is_a_list(parameters, position, formal, length, left[0]):
                plan.append(("list", formal, list_plan(left, formal, argument.name)))
                left = []
                continue
            value = left.pop(0)
            if argument.name in kwargs:
                raise Mismatch(f"argument '{argument.name}' is given twice")
        elif argument.name in kwargs:
            value = kwargs[argument.name]
            used.add(argument.name)
        elif position == 0 and argument.name == "self" and "input" in kwargs:
            value = kwargs["input"]
            used.add("input")
        elif argument.has_default:
            plan.append(("default", formal, argument, length))
            continue
        else:
            raise Mismatch(f"Argument {argument.name} not provided.")
        plan.append(convert_plan(value, formal, length, known, convert, argument.name))
    if left:
        raise Mismatch(
            f"Expected at most {sum(not p[0].keyword_only for p in parameters)} arguments but found {len(args)} "
            "positional arguments."
        )
    unknown = set(kwargs) - used
    if unknown:
        raise Mismatch(f"Unknown keyword argument '{min(unknown)}'.")
    for step, (argument, formal, _) in zip(
        plan, parameters, strict=False
    ):  # what a later argument widened must still take the earlier ones
        if (
            isinstance(step, Value)
            and formal is not None
            and types.has_variables(formal)
            and not step.type().isSubtypeOf(types.substitute(formal, known))
        ):
            raise Mismatch(
                f"Could not match type {step.type()} to {types.substitute(formal, known)} in argument "
                f"'{argument.name}'."
            )
    return plan, known


def _rest_is_a_list(parameters, position, formal, length, first):
    """Whether the last list may be given item by item: x.view(2, 3), torch.zeros(2, 3)."""
    last = position == len(parameters) - 1 or parameters[position + 1][0].keyword_only
    return (
        last
        and isinstance(formal, types.ListType)
        and length is None
        and not types.has_variables(formal)
        and not isinstance(first.type(), (types.ListType, types.TupleType))
    )


def list_plan(values, formal, name):
    """The values, if each can be an item of the list."""
    for value in values:
        convert_plan(value, formal.element, None, {}, True, name)
    return list(values)


def is_written_in_place(value):
    """Whether the items of a list are those that its node has: nobody has a name for it or has changed it."""
    return value.node().kind() == "prim::ListConstruct" and not value.hasDebugName() and not value.hasUses()


def convert_plan(value, formal, length, known, convert, name=""):
    """What to write so that `value` becomes a `formal`: the value, or (how, ...). Raises Mismatch."""
    actual = value.type()
    if convert and type(actual) is types.NumberType and type(types.substitute(formal, known)) in _OF_SCALAR:
        formal = types.substitute(formal, known)  # of a list of floats, a number becomes an item as a float
    if types.has_variables(formal):
        if not types.match_variables(formal, actual, known):
            raise Mismatch(f"Could not match type {actual} to {formal} in argument '{name}'.")
        formal = types.substitute(formal, known)
        if formal is None:
            raise Mismatch(f"the type of argument '{name}' cannot be found out")
    inner = formal.element if isinstance(formal, types.OptionalType) else formal
    if length is not None and isinstance(inner, types.ListType) and actual.isSubtypeOf(inner.element):
        return ("repeat", inner, value, length)
    if actual.isSubtypeOf(formal):
        return value
    if (
        isinstance(actual, types.TupleType)
        and isinstance(inner, types.ListType)
        and all(part.isSubtypeOf(inner.element) for part in actual.elements())
    ):
        return ("tuple", inner, value)
    if (
        isinstance(actual, types.TupleType)
        and isinstance(inner, types.ListType)
        and convert
        and all(part.isSubtypeOf(inner.element) or isinstance(part, types.TensorType) for part in actual.elements())
    ):
        return ("tuple", inner, value)
    if convert and isinstance(actual, types.StringType) and isinstance(inner, types.DeviceObjType):
        return ("call", "aten::device", value, types.DeviceObjType())
    if convert and isinstance(actual, types.TensorType) and type(inner) in _IMPLICIT:
        return ("call", _IMPLICIT[type(inner)], value, inner)
    if convert and type(actual) is types.NumberType and type(inner) in _OF_SCALAR:
        return ("call", _OF_SCALAR[type(inner)], value, inner)
    if (
        isinstance(actual, types.ListType)
        and isinstance(inner, types.ListType)
        and is_written_in_place(value)
        and all(item.type().isSubtypeOf(inner.element) for item in value.node().inputs())
    ):
        return ("list", inner, value.node().inputs())  # a list written in place takes the type that is asked for
    raise Mismatch(
        f"Expected a value of type '{formal.annotation_str}' for argument '{name}' but instead found type "
        f"'{actual.annotation_str}'."
    )


def carry_out(emitter, step):
    """Write what a step of a plan needs; gives the value."""
    if isinstance(step, Value):
        return step
    how, *rest = step
    graph = emitter.graph
    if how == "default":
        formal, argument, length = rest
        return default_constant(emitter, formal, argument.default, length)
    if how == "repeat":
        formal, value, length = rest
        return graph.insert("prim::ListConstruct", [value] * length, [formal]).output()
    if how == "tuple":
        formal, value = rest
        parts = parts_of_tuple(emitter, value)
        parts = [carry_out(emitter, convert_plan(part, formal.element, None, {}, True)) for part in parts]
        return graph.insert("prim::ListConstruct", parts, [formal]).output()
    if how == "list":
        formal, values = rest
        parts = [carry_out(emitter, convert_plan(value, formal.element, None, {}, True)) for value in values]
        return graph.insert("prim::ListConstruct", parts, [formal]).output()
    kind, value, result = rest
    schema = aten_table.find(kind) if "." in kind else aten_table.overloads(kind)[0]
    return graph.insert(kind.partition(".")[0], [value], [result], schema=schema).output()


def parts_of_tuple(emitter, value):
    """The parts of a tuple; those of one that is made here are known, so that it need not be made."""
    node = value.node()
    if node.kind() == "prim::TupleConstruct":
        return node.inputs()
    if node.kind() == "prim::Constant":
        return [emitter.constant(*each) for each in zip(node.attributes["value"], value.type().elements(), strict=True)]
    return emitter.graph.insert("prim::TupleUnpack", [value], value.type().elements()).outputs()


def default_constant(emitter, formal, value, length=None):
    """The constant that a parameter's default is."""
    value = (
        _DEFAULT_WORDS.get(value, value)
        if isinstance(value, str) and not isinstance(formal, types.StringType)
        else value
    )
    inner = formal.element if isinstance(formal, types.OptionalType) else formal
    if value is None:
        return emitter.constant(None)
    if isinstance(inner, types.ListType):
        items = list(value) if isinstance(value, (list, tuple)) else [value] * (length or 1)
        items = items * length if length and len(items) == 1 else items
        parts = [default_constant(emitter, inner.element, item) for item in items]
        return emitter.graph.insert("prim::ListConstruct", parts, [inner]).output()
    if isinstance(inner, types.FloatType):
        value = float(value)
    return emitter.constant(value)


def _write(emitter, kind, schema, plan, known, place):
    graph = emitter.graph
    inputs = [carry_out(emitter, step) for step in plan]
    _, returns = formals(schema)
    results = [types.substitute(one, known) for one in returns]
    if kind == "aten::list" and not results:
        results = [inputs[0].type()]
    graph.place = place
    node = graph.insert(kind, inputs, results, schema=schema)
    outputs = node.outputs()
    if not outputs:
        return emitter.constant(None)
    if len(outputs) == 1:
        return outputs[0]
    fields = [result.name for result in schema.returns]
    packed = types.NamedTupleType(None, fields, results) if all(fields) else types.TupleType(results)
    return graph.insert("prim::TupleConstruct", outputs, [packed]).output()


def match_function(emitter, function_schema, args, kwargs, place, skip_self=False, convert=True):
    """The inputs for a call of a compiled function: arguments in its order, converted, defaults filled in."""
    parameters = function_schema.arguments[1:] if skip_self else function_schema.arguments
    left, used, plan = list(args), set(), []
    name = function_schema.name
    for argument in parameters:
        if left and not argument.kwarg_only:
            value = left.pop(0)
            if argument.name in kwargs:
                raise CompileError(
                    place,
                    f"{name}(): argument '{argument.name}' is given twice. Declaration: {function_schema}. The call is",
                )
        elif argument.name in kwargs:
            value = kwargs[argument.name]
            used.add(argument.name)
        elif argument.has_default:
            plan.append(("python", argument))
            continue
        else:
            raise CompileError(
                place,
                f"{name}() is missing value for argument '{argument.name}'. Declaration: {function_schema}. "
                "The call is",
            )
        try:
            plan.append(convert_plan(value, argument.type, argument.broadcast, {}, convert, argument.name))
        except Mismatch as reason:
            raise CompileError(place, f"{name}() {reason}\n\nDeclaration: {function_schema}. The call is") from None
    if left:
        raise CompileError(
            place,
            (
                f"{name}() expected at most {len(parameters)} argument(s) but received {len(args)} argument(s). "
                f"Declaration: {function_schema}. The call is"
            ),
        )
    if unknown := set(kwargs) - used:
        raise CompileError(
            place,
            f"{name}() got an unknown keyword argument '{min(unknown)}'. Declaration: {function_schema}. The call is",
        )
    return [
        emitter.literal(step[1].default_value, step[1].type)
        if isinstance(step, tuple) and step[0] == "python"
        else carry_out(emitter, step)
        for step in plan
    ]
