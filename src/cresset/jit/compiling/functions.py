"""From a Python function to its source, signature and graph."""

import ast
import inspect
import textwrap

from ...graph import types
from ...graph.function import Argument, FunctionSchema
from ...graph.pooling import pool_constants
from ...graph.source import Source
from ...ops.namespaces import split_commas
from ..frontend import NotSupportedError
from . import annotating
from .annotating import Lookup
from .emitter import Emitter
from .errors import CompileError
from .statements import always_leaves
from .sugar import Variable


class Definition:
    """A function's syntax tree, the text it is from, the names it sees."""

    def __init__(self, tree, source, names, function=None):
        self.tree, self.source, self.names, self.function = tree, source, names, function

    @property
    def name(self):
        return self.tree.name

    @property
    def place(self):
        return self.source.range_of(self.tree)


def unwrapped(function):
    """The function behind what decorators put around it."""
    function = getattr(function, "__original_fn", function)
    return inspect.unwrap(getattr(function, "__func__", function))


def names_of(function):
    """The names that a Python function sees: those around it, its file's, Python's own."""
    code, cells = function.__code__, function.__closure__ or ()
    around = {}
    for name, cell in zip(code.co_freevars, cells, strict=True):
        try:
            around[name] = cell.cell_contents
        except ValueError:
            continue  # not assigned yet
    own = function.__globals__.get("__builtins__", {})
    return Lookup(around, function.__globals__, own if isinstance(own, dict) else vars(own))


def read(function):
    """The Definition of a Python function."""
    function = unwrapped(function)
    try:
        lines, first = inspect.getsourcelines(function)
        filename = inspect.getsourcefile(function) or "<string>"
    except (OSError, TypeError):
        raise OSError(
            f"Can't get source for {function}. TorchScript requires source access in order to carry out compilation, "
            "make sure original .py files are available."
        ) from None
    text = "".join(lines)
    plain = textwrap.dedent(text)
    indent = len(lines[0]) - len(lines[0].lstrip())
    source = Source(plain.rstrip("\n"), filename, first, indent)
    try:
        tree = ast.parse(plain, type_comments=True)
    except SyntaxError:
        tree = ast.parse(plain)  # a comment that only looks like one of a type
    (definition,) = tree.body[:1]
    if not isinstance(definition, ast.FunctionDef):
        raise CompileError(
            source.range_of(definition),
            (
                f"Expected a single top-level function, found {type(definition).__name__}: "
                f"{getattr(function, '__name__', '?')} (lambdas cannot be compiled)"
            ),
        )
    return Definition(definition, source, names_of(function), function)


def signature(unit, definition, self_type=None, given=None, loose=False):
    """(the Arguments, the declared type of the result or None).

    Args:
        self_type: of a method's first parameter.
        given: types by name for parameters without an annotation; else those are tensors.
        loose: one of our own functions: a parameter that is None by default may be None.
    """
    tree, function = definition.tree, definition.function
    arguments = tree.args
    if arguments.vararg is not None or arguments.kwarg is not None:
        raise NotSupportedError(
            definition.place,
            "Compiled functions can't take variable number of arguments or use keyword-only arguments with defaults",
        )
    positional = [*arguments.posonlyargs, *arguments.args]
    hints = dict(getattr(function, "__annotations__", None) or {})
    comment = _comment_signature(unit, definition, len(positional) - (self_type is not None))
    defaults = _defaults(unit, definition, positional, arguments.kwonlyargs)
    found = []
    for number, argument in enumerate([*positional, *arguments.kwonlyargs]):
        place = definition.source.range_of(argument)
        keyword = number >= len(positional)
        if number == 0 and self_type is not None:
            found.append(Argument(argument.arg, self_type))
            continue
        has_default = argument.arg in defaults
        default = defaults.get(argument.arg)
        if comment is not None and not keyword:
            type = comment[0][number - (self_type is not None)]
        elif argument.type_comment:
            type = annotating.from_text(argument.type_comment.rstrip(","), definition.names, unit.class_type, place)
        else:
            type = _hinted(unit, definition, hints.get(argument.arg, _NOTHING), argument.annotation, place)
        length = annotating.broadcast_length(hints.get(argument.arg))
        if type is None:
            type = (given or {}).get(argument.arg)
        if type is None and given is not None and has_default:
            type = unit.infer(default)
        if type is None:
            type = types.TensorType()
            if loose and has_default and default is None:
                type = types.OptionalType(type)
        found.append(Argument(argument.arg, type, _as_default(default, type, length), has_default, keyword, length))
    result = (
        comment[1]
        if comment is not None
        else _hinted(unit, definition, hints.get("return", _NOTHING), tree.returns, definition.place)
    )
    return found, result


def _as_default(value, type, length):
    """A default as a value of its parameter's type: a float for 0, a list for the number that stands for one."""
    inner = type.element if isinstance(type, types.OptionalType) else type
    if isinstance(inner, types.ListType) and length and isinstance(value, (int, float)):
        return [value] * length
    if isinstance(inner, types.FloatType) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


_NOTHING = object()


def _hinted(unit, definition, hint, tree, place):
    if hint is not _NOTHING and not isinstance(hint, str):
        return annotating.from_python(hint, unit.class_type, place, definition.names)
    if isinstance(hint, str):
        return annotating.from_text(hint, definition.names, unit.class_type, place)
    return annotating.from_tree(tree, definition.names, unit.class_type, place) if tree is not None else None


def _defaults(unit, definition, positional, keyword_only):
    function = definition.function
    if function is not None:
        values = function.__defaults__ or ()
        found = dict(
            zip([argument.arg for argument in positional[len(positional) - len(values) :]], values, strict=True)
        )
        found |= function.__kwdefaults__ or {}
        for name, value in found.items():
            if _can_change(value):
                raise CompileError(
                    definition.place,
                    "Mutable default parameters are not supported because Python binds them to the function and they "
                    "persist across function calls.\n As a workaround, make the default None and instantiate the "
                    f"default parameter within the body of the function. Found {type(value)} on parameter {name}",
                )
        return found
    trees = definition.tree.args
    found = dict(
        zip(
            [argument.arg for argument in positional[len(positional) - len(trees.defaults) :]],
            trees.defaults,
            strict=True,
        )
    )
    found |= {
        argument.arg: tree for argument, tree in zip(keyword_only, trees.kw_defaults, strict=True) if tree is not None
    }
    return {name: unit.default_literal(tree, definition.source) for name, tree in found.items()}


def _can_change(value):
    """Whether a default is, or holds, something that a call could change for the next."""
    return isinstance(value, (list, dict, set)) or isinstance(value, tuple) and any(map(_can_change, value))


def _comment_signature(unit, definition, count):
    """What a comment `# type: (Tensor, int) -> Tensor` says; None without one."""
    text = definition.tree.type_comment
    if text is None or "->" not in text:
        return None
    inside, _, result = text.rpartition("->")
    place = definition.place
    read = lambda part: annotating.from_text(part, definition.names, unit.class_type, place)  # noqa: E731
    parts = split_commas(inside.strip().removeprefix("(").removesuffix(")"))
    if len(parts) != count:
        raise CompileError(place, f"the comment has {len(parts)} types for {count} parameters: {text}")
    return [read(part) for part in parts], read(result)


def compile_into(unit, function, definition, self_type=None, given=None, loose=False, defined_in=None):
    """Fill in a Function's schema and graph from its Definition."""
    arguments, result = signature(unit, definition, self_type, given, loose)
    name = function.qualified_name.rpartition(".")[2]
    if result is not None:
        function.schema = FunctionSchema(name, arguments, result)
    emitter = Emitter(unit, definition.source, definition.names, result, self_type, loose)
    emitter.in_init = definition.name in ("__init__", "__post_init__")
    emitter.defined_in = defined_in
    graph = emitter.graph
    for argument in arguments:
        emitter.variables[argument.name] = Variable(graph.addInput(argument.name, argument.type))
    body = list(definition.tree.body)
    if not always_leaves(body):
        end = ast.copy_location(ast.Return(None), definition.tree)
        body.append(end)
    try:
        emitter.emit_body(body)
    except RecursionError:
        raise CompileError(definition.place, f"'{name}' is nested too deeply to be compiled") from None
    returned = emitter.variables.get("$return")
    graph.setInsertPoint(graph.block())
    final = emitter.result_type or types.NoneType()
    if returned is not None:
        value = returned.meaning
    elif types.NoneType().isSubtypeOf(final) or result is None:
        value = emitter.constant(None)
    else:  # no way leads to the end
        value = graph.insert("prim::Uninitialized", (), [final]).output()
    for one in emitter.result_values:
        one.setType(final)
    graph.registerOutput(value)
    if value.type() != final and isinstance(value.type(), types.NoneType) and result is None:
        final = value.type()
    graph.eliminate_dead_code()
    pool_constants(graph)
    function.schema = FunctionSchema(name, arguments, final)
    function.graph = graph
    function.docstring = ast.get_docstring(definition.tree)
    return function
