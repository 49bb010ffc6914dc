"""Functions of Python and torch that the compiler knows by itself, by their identity.

KNOWN: called with the meanings of the arguments. READS_TREE: called with the syntax tree, because an argument is a type
    or a name. CONDITIONS: questions that may be answered when the program is compiled.
"""

import ast
import builtins
import math
import typing
import warnings

import cresset
from cresset import _native, nn

from ...graph import types
from ...graph.scalar_types import number_of
from ...ops import aten_table
from .. import marks
from . import annotating, sugar
from .errors import CompileError
from .matching import is_written_in_place
from .sugar import Py, Several, is_value

KNOWN, READS_TREE, CONDITIONS = {}, {}, {}


def known(*things):
    def note(write):
        KNOWN.update({id(thing): write for thing in things})
        return write

    return note


def reads_tree(*things):
    def note(write):
        READS_TREE.update({id(thing): write for thing in things})
        return write

    return note


def condition(*things):
    def note(answer):
        CONDITIONS.update({id(thing): answer for thing in things})
        READS_TREE.update(
            {
                id(thing): lambda emitter, tree, wanted: emitter.bool_value(answer(emitter, tree)[0], tree)
                for thing in things
            }
        )
        return answer

    return note


# ---- Python's functions that are operators

for _name, _kind in {
    "abs": "prim::abs", "round": "aten::round", "divmod": "aten::divmod", "ord": "aten::ord", "chr": "aten::chr",
    "hex": "aten::hex", "oct": "aten::oct", "bin": "aten::bin", "pow": "aten::pow",
    "float": "aten::Float", "int": "aten::Int", "bool": "aten::Bool", "complex": "aten::Complex", "str": "aten::str",
    "sum": "aten::sum", "any": "aten::any", "all": "aten::all", "hash": "aten::hash",
}.items():  # fmt: skip

    def _write(emitter, args, kwargs, tree, kind=_kind):
        if not args and not kwargs and kind in ("aten::Float", "aten::Int", "aten::Bool", "aten::str"):
            return emitter.constant({"aten::Float": 0.0, "aten::Int": 0, "aten::Bool": False, "aten::str": ""}[kind])
        args = [emitter.value(one, tree) for one in args]
        already = {
            "aten::Float": types.FloatType,
            "aten::Int": types.IntType,
            "aten::Bool": types.BoolType,
            "aten::str": types.StringType,
            "aten::Complex": types.ComplexType,
        }.get(kind)
        if already is not None and len(args) == 1 and isinstance(args[0].type(), already):
            return args[0]
        if already is not None and isinstance(args[0].type(), types.ClassType):
            magic = f"__{already.__name__.removesuffix('Type').lower()}__".replace("string", "str")
            if magic in args[0].type().methods:
                return emitter.call_method(args[0], magic, [], {}, tree)
        if kind == "aten::Bool" and isinstance(args[0].type(), (types.ListType, types.DictType, types.StringType)):
            return emitter.bool_value(emitter.to_bool(args[0], tree), tree)
        if kind == "prim::abs" and isinstance(args[0].type(), types.TensorType):
            kind = "aten::abs"
        if kind == "aten::sum" and isinstance(args[0].type(), types.TupleType):
            args[0] = as_list(emitter, args[0], tree)
        return emitter.operator(kind, args, tree, **{name: emitter.value(one, tree) for name, one in kwargs.items()})

    KNOWN[id(getattr(builtins, _name))] = _write


def as_list(emitter, value, tree):
    return emitter.iteration_as_list(sugar.Static(emitter.unpack(value, tree)), tree)


def _operator_of(kind):
    return lambda emitter, args, kwargs, tree: emitter.operator(kind, [emitter.value(one, tree) for one in args], tree)


for _name in (
    "acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh degrees erf erfc exp expm1 fabs factorial floor "
    "fmod frexp gamma gcd isfinite isinf isnan ldexp lgamma log log10 log1p "
    "modf pow radians sin sinh sqrt tan tanh"
).split():
    if aten_table.overloads(f"aten::{_name}"):
        KNOWN[id(getattr(math, _name))] = _operator_of(f"aten::{_name}")
KNOWN[id(math.remainder)] = _operator_of("aten::mathremainder")


def _extreme(name):
    def write(emitter, args, kwargs, tree):
        values = [emitter.value(one, tree) for one in args]
        if len(values) == 1 and isinstance(values[0].type(), types.TupleType):
            values = [as_list(emitter, values[0], tree)]
        result = values[0]
        if any(isinstance(value.type(), types.TensorType) for value in values):
            return emitter.operator(f"aten::{name}", values, tree)
        if len(values) == 1:
            return emitter.operator(f"prim::{name}", values, tree)
        for other in values[1:]:
            result = emitter.operator(f"prim::{name}", [result, other], tree)
        return result

    return write


KNOWN[id(min)], KNOWN[id(max)] = _extreme("min"), _extreme("max")


@known(_native.name_node)
def _(emitter, args, kwargs, tree):
    """What a node of autograd is called is no part of a program."""
    return args[0]


@known(len)
def _(emitter, args, kwargs, tree):
    (thing,) = args
    if isinstance(thing, Several) or (isinstance(thing, sugar.Iteration) and thing.count is not None):
        return emitter.constant(len(thing.items) if isinstance(thing, Several) else thing.count)
    if isinstance(thing, sugar.Iteration):
        return thing.length(emitter, emitter.place(tree))
    if (
        isinstance(thing, Py)
        and isinstance(thing.object, (tuple, list, dict, str))
        and (thing.constant or emitter.loose)
    ):
        return emitter.constant(len(thing.object))
    value = emitter.value(thing, tree)
    type = value.type()
    if isinstance(type, types.TupleType):
        return emitter.constant(len(type.elements()))
    if isinstance(type, types.ClassType):
        if type.is_module and "__len__" not in type.methods:
            return emitter.constant(len(emitter.module_names(value)) or len(type.parameters))
        return emitter.call_method(value, "__len__", [], {}, tree)
    return emitter.operator("aten::len", [value], tree)


@known(range)
def _(emitter, args, kwargs, tree):
    values = [emitter.value(one, tree) for one in args]
    for number, value in enumerate(values):
        if isinstance(value.type(), types.TensorType):
            values[number] = emitter.operator("aten::IntImplicit", [value], tree)
        elif not isinstance(value.type(), types.IntType):
            raise emitter.error(
                tree, f"all inputs of range must be ints, found {value.type().annotation_str} in argument {number}"
            )
    if len(values) == 1:
        return sugar.Range(None, values[0], None)
    if len(values) in (2, 3):
        return sugar.Range(*values) if len(values) == 3 else sugar.Range(*values, None)
    raise emitter.error(tree, f"range expected 1 to 3 arguments, got {len(values)}")


@known(enumerate)
def _(emitter, args, kwargs, tree):
    start = args[1] if len(args) > 1 else kwargs.get("start")
    return sugar.Counted(emitter.iteration(args[0], tree), emitter.value(start, tree) if start is not None else None)


@known(zip)
def _(emitter, args, kwargs, tree):
    return sugar.Zipped([emitter.iteration(one, tree) for one in args])


@known(slice)
def _(emitter, args, kwargs, tree):
    if kwargs:
        raise emitter.error(tree, "Slice does not accept any keyword arguments")
    if not 1 <= len(args) <= 3:
        raise emitter.error(tree, f"slice expected 1 to 3 arguments, got {len(args)}")
    given = [emitter.value(one, tree) for one in args]
    start, stop, step, *_ = [emitter.constant(None), *given, None, None] if len(given) == 1 else [*given, None]
    if step is None or isinstance(step.type(), types.NoneType):
        step = emitter.constant(1)
    return sugar.Bounds(start, stop, step)


@known(reversed)
def _(emitter, args, kwargs, tree):
    items = emitter.iteration(args[0], tree)
    if items.count is not None:
        return sugar.Static(
            [items.item(emitter, number, emitter.place(tree)) for number in reversed(range(items.count))]
        )
    value = emitter.value(items if isinstance(items, sugar.Range) else args[0], tree)
    return emitter.operator(
        "aten::slice", [value, emitter.constant(None), emitter.constant(None), emitter.constant(-1)], tree
    )


@known(print)
def _(emitter, args, kwargs, tree):
    values = [emitter.value(one, tree) for one in args]
    emitter.place(tree)
    emitter.graph.insert("prim::Print", values, 0)
    return emitter.constant(None)


@reads_tree(list)
def _(emitter, tree, wanted):
    args, _ = emitter.arguments(tree)
    if not args:
        return emitter.expression_List(ast.copy_location(ast.List([], ast.Load()), tree), wanted)
    if isinstance(args[0], (sugar.Iteration, Several)):
        return emitter.iteration_as_list(emitter.iteration(args[0], tree), tree)
    value = emitter.value(args[0], tree)
    if isinstance(value.type(), (types.TupleType, types.DictType)) or (
        isinstance(value.type(), types.ClassType) and value.type().is_module
    ):
        found = emitter.iteration(value, tree)
        if isinstance(value.type(), types.ClassType):
            return found
        return emitter.iteration_as_list(found, tree)
    if isinstance(value.type(), types.TensorType):
        return emitter.operator("aten::unbind", [value, emitter.constant(0)], tree)
    return emitter.operator("aten::list", [value], tree)


@reads_tree(dict)
def _(emitter, tree, wanted):
    args, kwargs = emitter.arguments(tree)
    if not args:
        keys = [ast.copy_location(ast.Constant(keyword.arg), tree) for keyword in tree.keywords]
        return emitter.expression_Dict(
            ast.copy_location(ast.Dict(keys, [keyword.value for keyword in tree.keywords]), tree), wanted
        )
    value = emitter.value(args[0], tree)
    return emitter.operator("aten::dict", [value], tree)


@known(tuple)
def _(emitter, args, kwargs, tree):
    if not args:
        return emitter.value(Several([]), tree)
    thing = args[0]
    if is_value(thing) and isinstance(thing.type(), types.TupleType):
        return thing
    if is_value(thing) and is_written_in_place(thing):
        return emitter.value(Several(thing.node().inputs()), tree)
    items = emitter.iteration(thing, tree)
    if items.count is None:
        raise emitter.error(
            tree,
            "cannot statically infer the length of a tuple made of a list; use a list, or a tuple with written items",
        )
    return Several([items.item(emitter, number, emitter.place(tree)) for number in range(items.count)])


@known(sorted)
def _(emitter, args, kwargs, tree):
    values = [emitter.value(one, tree) for one in args]
    if isinstance(values[0].type(), types.DictType):
        values[0] = emitter.operator("aten::keys", [values[0]], tree)
    made = emitter.operator("aten::sorted", values, tree)
    if "reverse" in kwargs:
        raise emitter.error(tree, "sorted(reverse=) is not supported; use list.sort(reverse=True)")
    return made


# ---- torch


@reads_tree(marks.annotate)
def _(emitter, tree, wanted):
    if len(tree.args) != 2:
        raise emitter.error(tree, "annotate takes a type and a value")
    type = emitter.read_annotation(tree.args[0], tree)
    return emitter.as_declared(emitter.emit_value(tree.args[1], type), type, tree, convert=True)


@known(marks._unwrap_optional)
def _(emitter, args, kwargs, tree):
    value = emitter.value(args[0], tree)
    if not isinstance(value.type(), types.OptionalType):
        return value
    schema = aten_table.overloads("aten::_unwrap_optional")[0]
    return emitter.graph.insert("aten::_unwrap_optional", [value], [value.type().element], schema=schema).output()


@known(marks.fork)
def _(emitter, args, kwargs, tree):
    callee, *rest = args
    place = emitter.place(tree)
    rest, kwargs = emitter.values(rest, kwargs, tree)
    inner = emitter.beside()
    outside, taken = [], {}

    def into(value):
        if value not in taken:
            taken[value] = inner.graph.addInput(None, value.type())
            outside.append(value)
        return taken[value]

    if isinstance(callee, sugar.Closure):
        return _fork_closure(emitter, inner, callee.tree, into, outside)
    if is_value(callee):
        callee = into(callee)
    elif isinstance(callee, sugar.Method):
        callee = sugar.Method(into(callee.value), callee.name)
    inner.graph.place = place
    result = inner.value(
        inner.call(callee, [into(one) for one in rest], {name: into(one) for name, one in kwargs.items()}, tree), tree
    )
    inner.graph.registerOutput(result)
    inner.graph.eliminate_dead_code()
    return emitter.graph.insert("prim::fork", outside, [types.FutureType(result.type())], Subgraph=inner.graph).output()


def _fork_closure(emitter, inner, tree, into, outside):
    for node in ast.walk(tree):
        variable = emitter.variables.get(node.id) if isinstance(node, ast.Name) else None
        if variable is not None and node.id not in inner.variables:
            inner.variables[node.id] = sugar.Variable(
                into(variable.meaning) if is_value(variable.meaning) else variable.meaning
            )
    inner.emit_body(tree.body)
    result = inner.variables["$return"].meaning
    inner.graph.registerOutput(result)
    inner.graph.eliminate_dead_code()
    return emitter.graph.insert("prim::fork", outside, [types.FutureType(result.type())], Subgraph=inner.graph).output()


@known(marks.wait)
def _(emitter, args, kwargs, tree):
    return emitter.wait(emitter.value(args[0], tree), tree)


@known(warnings.warn)
def _(emitter, args, kwargs, tree):
    message = emitter.value(args[0], tree)
    level = kwargs.get("stacklevel") or (args[2] if len(args) > 2 else None)
    emitter.operator(
        "aten::warn", [message, emitter.value(level, tree) if level is not None else emitter.constant(2)], tree
    )
    return emitter.constant(None)


@reads_tree(cresset._assert)
def _(emitter, tree, wanted):
    emitter.emit_Assert(ast.copy_location(ast.Assert(tree.args[0], tree.args[1] if len(tree.args) > 1 else None), tree))
    return emitter.constant(None)


@reads_tree(cresset._check)
def _(emitter, tree, wanted):
    given = {keyword.arg: keyword.value for keyword in tree.keywords}
    if not 1 <= len(tree.args) + len(given) <= 2:
        raise emitter.error(
            tree, f"torch._check() expects 1 or 2 arguments (cond, message), got {len(tree.args) + len(given)}"
        )
    for name, value in zip(("cond", "message"), tree.args, strict=False):
        if name in given:
            raise emitter.error(tree, f"torch._check() got multiple values for argument '{name}'")
        given[name] = value
    if unknown := set(given) - {"cond", "message"}:
        raise emitter.error(tree, f"torch._check() got an unexpected keyword argument '{min(unknown)}'")
    if "cond" not in given:
        raise emitter.error(tree, "torch._check() missing required argument 'cond'")
    emitter.emit_Assert(ast.copy_location(ast.Assert(given["cond"], given.get("message")), tree))
    return emitter.constant(None)


def _typed_maker(dtype):
    """`torch.LongTensor(...)`: of elements, or of sizes."""

    def write(emitter, args, kwargs, tree):
        if kwargs:
            raise emitter.error(
                tree, "constructors of one dtype take neither dtype, device nor other keyword arguments"
            )
        values = [emitter.value(one, tree) for one in args]
        number = emitter.constant(number_of(dtype))
        if len(values) == 1 and not isinstance(values[0].type(), types.IntType):
            return emitter.operator("aten::tensor", values, tree, dtype=number)
        sizes = emitter.graph.insert("prim::ListConstruct", values, [types.ListType(types.IntType())]).output()
        return emitter.operator("aten::empty", [sizes], tree, dtype=number)

    return write


for _dtype in "bool uint8 int8 int16 int32 int64 float16 float32 float64 bfloat16".split():
    _dtype = getattr(cresset, _dtype)
    known(getattr(cresset, cresset.empty(0, dtype=_dtype).type().removeprefix("torch.")))(_typed_maker(_dtype))


@reads_tree(getattr)
def _(emitter, tree, wanted):
    name = tree.args[1]
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
        raise emitter.error(tree, "getattr's second argument must be a string literal")
    if len(tree.args) == 3:
        present, _, _ = CONDITIONS[id(hasattr)](emitter, tree)
        if not present:
            return emitter.emit(tree.args[2])
    return emitter.member(emitter.emit(tree.args[0]), name.value, tree)


@reads_tree(typing.cast)
def _(emitter, tree, wanted):
    return emitter.emit(tree.args[1])


# ---- questions


@condition(marks.is_scripting)
def _(emitter, tree):
    return True, {}, {}


@condition(marks.is_tracing)
def _(emitter, tree):
    return False, {}, {}


@condition(hasattr)
def _(emitter, tree):
    value = emitter.emit(tree.args[0])
    name = tree.args[1].value if isinstance(tree.args[1], ast.Constant) else None
    if not isinstance(name, str):
        raise emitter.error(tree, "hasattr's second argument must be a string literal")
    if isinstance(value, Py):
        return hasattr(value.object, name), {}, {}
    type = emitter.value(value, tree).type()
    if isinstance(type, types.NamedTupleType):
        return name in type.fields, {}, {}
    if isinstance(type, types.TensorType):
        return hasattr(cresset.Tensor, name), {}, {}
    if not isinstance(type, types.ClassType):
        raise emitter.error(tree, f"hasattr's first argument must be an object, got {type.annotation_str}")
    return (
        any(
            name in table
            for table in (type.attributes, type.constants, type.methods, type.properties, type.static_methods)
        ),
        {},
        {},
    )


@condition(cresset.is_tensor)
def _(emitter, tree):
    return ask_type(emitter, tree.args[0], [types.TensorType()], tree)


@condition(callable)
def _(emitter, tree):
    meaning = emitter.emit(tree.args[0])
    return not is_value(meaning) or isinstance(meaning.type(), (types.FunctionType, types.ClassType)), {}, {}


_PYTHON_CONTAINERS = {"list": types.AnyListType(), "dict": dict}


@condition(isinstance, marks.isinstance)
def _(emitter, tree):
    if len(tree.args) != 2:
        raise emitter.error(tree, "isinstance takes two arguments")
    wanted = tree.args[1]
    options = list(wanted.elts) if isinstance(wanted, ast.Tuple) else _alternatives(wanted)
    read = []
    for option in options:
        if isinstance(option, ast.Name) and option.id in _PYTHON_CONTAINERS:
            read.append(_PYTHON_CONTAINERS[option.id])
            continue
        named = _python_object(emitter, option)
        if isinstance(named, tuple):
            read += [
                _PYTHON_CONTAINERS[one.__name__]
                if one in (list, dict)
                else annotating.from_python(one, emitter.unit.class_type, emitter.source.range_of(option))
                for one in named
            ]
        elif isinstance(named, type) and issubclass(named, nn.Module):
            read.append(named)
        else:
            try:
                read.append(emitter.read_annotation(option, tree))
            except CompileError:
                if not isinstance(named, type) or named in marks._BARE:
                    raise
                read.append(named)  # a class of Python's, which no value of a program is of
    return ask_type(emitter, tree.args[0], read, tree)


def _alternatives(tree):
    return (
        [*_alternatives(tree.left), *_alternatives(tree.right)]
        if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.BitOr)
        else [tree]
    )


def _python_object(emitter, tree):
    try:
        return annotating._object(tree, emitter.names)
    except KeyError:
        return None


def _fits(actual, option):
    if option is dict:
        return isinstance(actual, types.DictType)
    if isinstance(option, type):
        return (
            isinstance(actual, types.ClassType)
            and actual.python_class is not None
            and issubclass(actual.python_class, option)
        )
    return actual.isSubtypeOf(option)


def ask_type(emitter, tree, options, whole):
    """Whether the value of `tree` is one of the types: known beforehand, or asked when the program runs; and what each
    answer tells.
    """
    meaning = emitter.emit(tree)
    if isinstance(meaning, (Several, sugar.Iteration)):
        return any(option == types.AnyTupleType() for option in options), {}, {}
    value = emitter.value(meaning, tree)
    actual = value.type()
    members = (
        [actual.element, types.NoneType()]
        if isinstance(actual, types.OptionalType)
        else list(actual.members)
        if isinstance(actual, types.UnionType)
        else [actual]
    )
    fitting = [member for member in members if any(_fits(member, option) for option in options)]
    name = tree.id if isinstance(tree, ast.Name) else None
    if len(fitting) == len(members):
        return True, {}, {}
    if isinstance(actual, types.AnyType):
        asked = [option for option in options if isinstance(option, types.Type)]
        told = types.UnionType(asked)
        yes, no = ({name: told} if name and not isinstance(told, (types.AnyListType, types.AnyTupleType)) else {}), {}
    elif not fitting:
        return False, {}, {}
    else:
        asked = fitting
        rest = [member for member in members if member not in fitting]
        yes, no = ({name: types.UnionType(fitting)}, {name: types.UnionType(rest)}) if name else ({}, {})
    emitter.place(whole)
    return emitter.graph.insert("prim::isinstance", [value], [types.BoolType()], types=asked).output(), yes, no
