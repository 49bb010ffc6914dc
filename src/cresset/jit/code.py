"""Graphs as TorchScript source: what `.code` shows, and what the `code/` files of archives hold for PyTorch and for our
own compiler to read.

A value that is used once, by the next statement, stands inside it; other values get a name. Tensors, and text that is
not plain ASCII, are numbered constants (`CONSTANTS.c0`), which an archive keeps beside the source.
"""

import itertools
import keyword
import re

from .. import _native
from ..graph.function import Function
from ..graph.types import (
    AnyType,
    ClassType,
    EnumType,
    InterfaceType,
    ListType,
    NamedTupleType,
    NoneType,
    OptionalType,
    TensorType,
    UnionType,
)
from .builtins.strings import float_text
from .steps import ALIASES
from .typed_values import Mismatch, accept

_RESERVED = {
    *keyword.kwlist, "torch", "ops", "CONSTANTS", "self", "fork", "inf", "nan", "infj", "nanj", "print", "range",
    "getattr", "annotate", "isinstance", "uninitialized",
    "unchecked_cast", "unchecked_unwrap_optional", "int", "float", "bool", "complex", "str", "len", "Tensor", "List",
    "Dict", "Tuple", "Optional", "Union", "Any", "Final", "Module",
    "device", "awaitable", "min", "max", "abs", "rpc_async", "rpc_sync", "rpc_remote", "tuple", "list", "dict",
    "NoneType", "number", "Device", "Generator", "Future", "RRef", "prim",
    "aten", "__torch__",
}  # fmt: skip
_CASTS = {"aten::Bool": "bool", "aten::Int": "int", "aten::Float": "float", "aten::Complex": "complex"}
_IMPLICIT = {"aten::IntImplicit": "int", "aten::FloatImplicit": "float", "aten::ComplexImplicit": "complex",
    "aten::ScalarImplicit": "number"}  # fmt: skip
_STATEMENTS = {"prim::If", "prim::Loop", "prim::SetAttr", "prim::Print", "prim::RaiseException", "prim::Enter",
    "prim::Exit", "prim::fork", "prim::CreateObject", "aten::_set_item"}  # fmt: skip


class ConstMap:
    """The numbered constants of a source: `constants.c0`."""

    def __init__(self, constants):
        self._constants = list(constants)

    def __getattr__(self, name):
        if re.fullmatch(r"c\d+", name) and int(name[1:]) < len(self._constants):
            return self._constants[int(name[1:])]
        raise AttributeError(f"there is no constant {name!r}; there are {len(self._constants)}")

    const_mapping = property(lambda self: {f"c{number}": value for number, value in enumerate(self._constants)})


class Constants:
    """The numbered constants of an archive; one tensor has one number."""

    def __init__(self):
        self.values, self._numbers = [], {}

    def name(self, value):
        key = ("text", value) if isinstance(value, str) else id(value)
        if key not in self._numbers:
            self._numbers[key] = len(self.values)
            self.values.append(value)
        return f"CONSTANTS.c{self._numbers[key]}"


def function_code(function):
    """(the source of a function or method, the constants that it names)."""
    constants = Constants()
    return "\n".join(_Printer(function, constants, set(), types_self=False).lines) + "\n", constants.values


def archive_sources(roots):
    """({"code/__torch__/a.py": source}, constants): classes and functions and everything that they name. Where two
    had one name (modules from two archives, say), one has another now, and what mentions names is to be written anew:
    then it gives None.
    """
    printed, constants = _Archive(), Constants()
    pending = list(roots)
    while pending:
        root = pending.pop(0)
        if not printed.begin(root.qualified_name, root):
            continue
        found = set()
        printed.add(root.qualified_name, _definition(root, constants, found))
        pending += sorted(found, key=lambda one: one.qualified_name)
    return None if printed.renamed else (printed.files(), constants.values)


class _Archive:
    def __init__(self):
        self._known, self._texts, self.renamed = {}, {}, False

    def begin(self, name, root):
        """Whether a definition is a new one."""
        if name in self._known:
            if self._known[name] is root or self._known[name] == root:
                return False
            if not isinstance(root, (ClassType, Function)):
                raise RuntimeError(f"save: two different definitions are called {name}")
            name = root.qualified_name = self._free(name)
            self.renamed = True
        self._known[name] = root
        return True

    def _free(self, name):
        module, _, last = re.sub(r"\.___torch_mangle_\d+(?=\.[^.]*$)", "", name).rpartition(".")
        candidates = (f"{module}.___torch_mangle_{count}.{last}" for count in itertools.count())
        return next(candidate for candidate in candidates if candidate not in self._known)

    def add(self, name, text):
        self._texts.setdefault(name.rpartition(".")[0], []).append(text)

    def files(self):
        return {f"code/{module.replace('.', '/')}.py": "".join(texts) for module, texts in self._texts.items()}


# ---- definitions


def _definition(root, constants, found):
    if isinstance(root, InterfaceType):
        return _interface(root, found)
    if isinstance(root, ClassType):
        return _class(root, constants, found)
    if isinstance(root, NamedTupleType):
        fields = zip(root.fields, root.elements(), strict=True)
        return f"class {root.qualified_name.rpartition('.')[2]}(NamedTuple):\n" + "".join(
            f"  {name} : {annotation(type_, found)}\n" for name, type_ in fields
        )
    if isinstance(root, EnumType):
        members = "".join(
            f"  {name} = {_plain(getattr(value, 'value', value), constants)}\n" for name, value in root.members.items()
        )
        return f"class {root.qualified_name.rpartition('.')[2]}(Enum):\n{members}"
    return "\n".join(_Printer(root, constants, found).lines) + "\n"


def _interface(type_, found):
    text = (
        f"class {type_.qualified_name.rpartition('.')[2]}({'ModuleInterface' if type_.is_module else 'Interface'}):\n"
    )
    for name, function in type_.methods.items():
        arguments = ["self"] + [f"{a.name}: {annotation(a.type, found)}" for a in function.schema.arguments[1:]]
        text += f"  def {name}({', '.join(arguments)}) -> {annotation(function.schema.returns, found)}:\n    pass\n"
    return text


def _class(type_, constants, found):
    lines = [f"class {type_.qualified_name.rpartition('.')[2]}{'(Module)' if type_.is_module else ''}:"]
    if type_.is_module:
        for title, names in (("__parameters__", type_.parameters), ("__buffers__", type_.buffers)):
            quoted = "".join(f"{_quoted(name)}, " for name in type_.attributes if name in names)
            lines.append(f"  {title} = [{quoted}]")
        for title, hooks in (
            ("__forward_pre_hooks__", type_.forward_pre_hooks),
            ("__forward_hooks__", type_.forward_hooks),
        ):
            if hooks:
                lines.append(f"  {title} = [{''.join(f'{_quoted(hook.name)}, ' for hook in hooks)}]")
    for name, kind in type_.attributes.items():
        text = annotation(kind, found)
        lines.append(f"  {name} : {text}" if _is_name(name) else f"  __annotations__[{_quoted(name)}] = {text}")
    for name, value in type_.constants.items():
        kind = _final(value)
        if kind is not None and _is_name(name):
            lines.append(f"  {name} : Final[{kind}] = {_plain(value, constants)}")
    functions = [*type_.methods.values(), *type_.forward_hooks, *type_.forward_pre_hooks]
    for function in dict.fromkeys(functions):
        function.ensure_defined()
        if function.graph is not None:
            lines += [f"  {line}" for line in _Printer(function, constants, found).lines]
    return "\n".join(lines) + "\n"


def _final(value):
    """The annotation of a constant of a class; None for one that source cannot say."""
    if value is None:
        return "NoneType"
    for kind in (bool, int, float, str):
        if type(value) is kind:
            return kind.__name__
    if isinstance(value, (list, tuple)) and value:
        parts = [_final(item) for item in value]
        if None in parts:
            return None
        if isinstance(value, tuple):
            return f"Tuple[{', '.join(parts)}]"
        return f"List[{parts[0]}]" if len(set(parts)) == 1 else None
    return None


def annotation(type_, found):
    """A type as source says it; the classes that it names are added to `found`."""
    _collect(type_, found)
    return type_.annotation_str


def _collect(type_, found):
    if isinstance(type_, (ClassType, NamedTupleType, EnumType)):
        found.add(type_)
    for part in type_.containedTypes():
        _collect(part, found)


# ---- values


def _is_name(text):
    return text.isidentifier() and text.isascii() and not keyword.iskeyword(text)


def _quoted(text):
    escapes = {"\\": "\\\\", "'": "\\'", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\a": "\\a", "\b": "\\b",
        "\f": "\\f", "\v": "\\v"}  # fmt: skip
    return '"' + "".join(escapes.get(c) or (c if " " <= c <= "~" else f"\\{ord(c):03o}") for c in text) + '"'


def _is_plain_text(text):
    return all(" " <= c <= "~" or c in "\n\r\t" for c in text)


def _plain(value, constants):
    """A constant as source, without its type."""
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, complex):
        return f"complex({float_text(value.real)}, {float_text(value.imag)})"
    if isinstance(value, str):
        return _quoted(value) if _is_plain_text(value) else constants.name(value)
    if isinstance(value, _native.device):
        return f"torch.device({_quoted(str(value))})"
    if isinstance(value, _native.Tensor):
        return constants.name(value)
    if isinstance(value, (_native.dtype, _native.layout, _native.memory_format)):
        from .numbering import number_of

        return str(number_of(value))
    if isinstance(value, list):
        return "[" + ", ".join(_plain(item, constants) for item in value) + "]"
    if isinstance(value, tuple):
        return "(" + ", ".join(_plain(item, constants) for item in value) + ("," if len(value) == 1 else "") + ")"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_plain(k, constants)}: {_plain(v, constants)}" for k, v in value.items()) + "}"
    raise RuntimeError(f"code: a constant of type {type(value).__name__} has no source form")


def _needs_annotation(type_):
    """Whether the type of a list or dict cannot be read off its items."""
    return (
        isinstance(type_, (OptionalType, UnionType, InterfaceType, NoneType))
        or str(type_) == "Any"
        or any(map(_needs_annotation, type_.containedTypes()))
    )


class _Printer:
    """The lines of one function."""

    def __init__(self, function, constants, found, types_self=True):
        self.constants, self.found, self.taken = constants, found, set(_RESERVED)
        self.types_self = types_self  # files say what self is
        self.names, self.inline, self.lines, self.indent = {}, {}, [], 0
        function.ensure_defined()
        graph = function.graph
        self._header(function, graph)
        self.indent = 1
        self._body(graph.block())
        self._return(graph)

    def _header(self, function, graph):
        parts = []
        defaulted = _defaulted(function.schema.arguments)
        for argument, value in zip(function.schema.arguments, graph.inputs(), strict=True):
            is_self = not parts and function.owner is not None
            if is_self:
                self.names[value] = "self"
                parts.append(f"self: {annotation(argument.type, self.found)}" if self.types_self else "self")
                continue
            name = self._new_name(argument.name)
            self.names[value] = name
            default = f"={_plain(argument.default_value, self.constants)}" if argument in defaulted else ""
            parts.append(f"{name}: {annotation(argument.type, self.found)}{default}")
        separator = ",\n    "
        self.lines += (
            f"def {function.name}({separator.join(parts)}) -> {annotation(function.schema.returns, self.found)}:".split(
                "\n"
            )
        )

    def _return(self, graph):
        outputs = [self.text(value) for value in graph.outputs()]
        if len(outputs) == 1:
            self.say(f"return {outputs[0]}")
        else:
            self.say(f"return ({', '.join(outputs)})" if outputs else "return None")

    # ---- names and expressions

    def say(self, line):
        self.lines.append("  " * self.indent + line)

    def _new_name(self, wanted):
        base = re.sub(r"\W", "_", wanted.rpartition(".")[0] if re.search(r"\.\d+$", wanted) else wanted, flags=re.ASCII)
        if not base or base[0].isdigit():
            base = "_" + base
        if wanted.isdigit():
            base, number = "_", 0
            while f"_{number}" in self.taken:
                number += 1
            name = f"_{number}"
        else:
            name, number = base, 0
            while name in self.taken:
                name = f"{base}{number}"
                number += 1
        self.taken.add(name)
        return name

    def name(self, value):
        if value not in self.names:
            self.names[value] = self._new_name(value.debugName())
        return self.names[value]

    def text(self, value):
        """The value as an expression."""
        node = value.node()
        if node.kind() == "prim::Constant":
            return self._constant(node, value)
        if value in self.inline:
            return self.inline[value]
        return self.name(value)

    def _constant(self, node, value):
        if "function" in node.attributes:
            self.found.add(node.attributes["function"])
            return node.attributes["function"].qualified_name
        constant, type_ = node.attributes.get("value"), value.type()
        if isinstance(type_, EnumType):
            self.found.add(type_)
            return f"{type_.qualified_name}.{constant.name}"
        text = _plain(constant, self.constants)
        if isinstance(constant, (list, dict)) and (not constant or _needs_annotation(type_)):
            return f"annotate({annotation(type_, self.found)}, {text})"
        return text

    # ---- statements

    def _body(self, block):
        nodes = [node for node in block.nodes() if node.kind() != "prim::Constant"]
        self._choose_inlined(nodes, block)
        before, depth = len(self.lines), self.indent
        for node in nodes:
            self._statement(node)
        self.indent = depth
        return len(self.lines) > before

    def _choose_inlined(self, nodes, block):
        """Values that may stand inside the statement that uses them: used once, by what comes next, so that nothing
        changes its order.
        """
        readers = {}
        for node in nodes:
            for value in node.inputs():
                readers[value] = node
        inlined = set()
        position = {node: number for number, node in enumerate(nodes)}
        for reader in [*nodes, block.returnNode()]:
            at = position.get(reader, len(nodes)) - 1
            if reader.kind() in ("prim::Loop", "prim::fork") or (
                reader.kind() == "prim::Return" and block.owningNode() is not None
            ):
                continue
            for value in reversed(reader.inputs()[: 1 if reader.kind() == "prim::If" else None]):
                if value.node().kind() == "prim::Constant":
                    continue
                while at >= 0 and nodes[at] in inlined:
                    at -= 1
                if at < 0 or nodes[at] is not value.node() or not self._may_be_inlined(value):
                    break
                inlined.add(nodes[at])
                at -= 1
        self.inlined = getattr(self, "inlined", set()) | inlined

    def _may_be_inlined(self, value):
        node = value.node()
        return (
            node.outputsSize() == 1
            and len(value.uses()) == 1
            and not node.blocks()
            and node.kind() not in _STATEMENTS
            and node.kind() not in ALIASES
            and node.kind()
            not in ("prim::GetAttr", "prim::TupleUnpack", "prim::ListUnpack", "prim::Uninitialized", "prim::isinstance")
        )

    def _statement(self, node):
        form = getattr(self, "_" + node.kind().replace("::", "_"), None) if node.kind() in _STATEMENTS else None
        if form is not None:
            form(node)
            return
        expression = self.expression(node)
        if node in self.inlined:
            self.inline[node.output()] = expression
            return
        outputs = [self.name(value) for value in node.outputs()]
        if not outputs:
            self.say(expression)
        else:
            trailing = "," if node.kind() in ("prim::TupleUnpack", "prim::ListUnpack") else ""
            self.say(f"{', '.join(outputs)}{trailing} = {expression}")

    def _prim_If(self, node):
        self.say(f"if {self.text(node.inputsAt(0))}:")
        for number, block in enumerate(node.blocks()):
            if number:
                self.say("else:")
            self.indent += 1
            printed = self._body(block)
            if node.outputs():
                widened = [output.type() for output in node.outputs()]
                self._assign([self.name(value) for value in node.outputs()], block.outputs(), widened)
            elif not printed:
                self.say("pass")
            self.indent -= 1

    def _assign(self, names, values, types=None):
        """Several at once: none may see another's new value.

        Args:
            types: what the names are to be: a reader does not find out that a number and a text make a Union.
        """
        texts = [self.text(value) for value in values]
        for place, (value, type_) in enumerate(zip(values, types or (), strict=False)):
            if isinstance(type_, (AnyType, UnionType, InterfaceType)) and value.type() != type_:
                texts[place] = f"unchecked_cast({annotation(type_, self.found)}, {texts[place]})"
        kept = [(name, text) for name, text in zip(names, texts, strict=True) if name != text]
        if kept:
            self.say(f"{', '.join(name for name, _ in kept)} = {', '.join(text for _, text in kept)}")
        else:
            self.say("pass")

    def _prim_Loop(self, node):
        most, begin, *carried = node.inputs()
        (block,) = node.blocks()
        round_value, *inside = block.inputs()
        go_on, *results = block.outputs()
        for value, output, start in zip(inside, node.outputs(), carried, strict=True):
            name = self.name(value)
            self.names[output] = name
            self.say(f"{name} = {self.text(start)}")
        always = self._is_true(begin) and self._is_true(go_on)
        endless = most.node().kind() == "prim::Constant" and most.node().attributes.get("value") == 2**63 - 1
        if always:
            self.say(f"for {self.name(round_value)} in range({self.text(most)}):")
            targets, values, further = [self.name(v) for v in inside], results, []
        else:
            condition = self._new_name("0")
            targets, values, further = [condition, *map(self.name, inside)], [go_on, *results], []
            if endless and not round_value.uses():
                self.say(f"{condition} = {self.text(begin)}")
            else:  # both a count and a condition
                counter, limit = self.name(round_value), self._new_name("0")
                self.say(f"{limit} = {self.text(most)}")
                self.say(f"{counter} = 0")
                self.say(f"{condition} = torch.__and__(torch.lt({counter}, {limit}), {self.text(begin)})")
                further = [counter, limit]
            self.say(f"while {condition}:")
        self.indent += 1
        printed = self._body(block)
        if further:
            counter, limit = further
            after = self._new_name("0")
            self.say(f"{after} = torch.add({counter}, 1)")
            texts = [
                f"torch.__and__(torch.lt({after}, {limit}), {self.text(go_on)})",
                after,
                *(self.text(v) for v in results),
            ]
            self.say(f"{', '.join([targets[0], counter, *targets[1:]])} = {', '.join(texts)}")
        elif targets:
            self._assign(targets, values)
        elif not printed:
            self.say("pass")
        self.indent -= 1

    @staticmethod
    def _is_true(value):
        return value.node().kind() == "prim::Constant" and value.node().attributes.get("value") is True

    def _prim_SetAttr(self, node):
        target, value = node.inputs()
        name = node.attributes["name"]
        if not _is_name(name):
            raise RuntimeError(f"code: an attribute called {name!r} cannot be set in source")
        self.say(f"{self._object(target)}.{name} = {self.text(value)}")

    def _prim_Print(self, node):
        self.say(f"print({', '.join(self.text(value) for value in node.inputs())})")

    def _prim_RaiseException(self, node):
        texts = [self.text(value) for value in node.inputs()]
        self.say(f"ops.prim.RaiseException({', '.join(texts if texts[-1] != 'None' else texts[:1])})")

    def _aten__set_item(self, node):
        self.say(f"torch._set_item({', '.join(self.text(value) for value in node.inputs())})")
        for output in node.outputs():
            self.names[output] = self.text(node.inputsAt(0))

    def _prim_Enter(self, node):
        used = node.outputs() and node.output().uses()
        self.say(f"with {self.text(node.inputsAt(0))}{f' as {self.name(node.output())}' if used else ''}:")
        self.indent += 1
        self.say("pass")

    def _prim_Exit(self, node):
        self.indent -= 1

    def _prim_fork(self, node):
        inner, name = node.attributes["Subgraph"], self._new_name("__forked_function")
        for value, given in zip(inner.inputs(), node.inputs(), strict=True):
            self.names[value] = self.text(given)
        self.say(f"def {name}():")
        self.indent += 1
        self._body(inner.block())
        self._return(inner)
        self.indent -= 1
        self.say(f"{self.name(node.output())} = fork({name})")

    def _prim_CreateObject(self, node):
        made = annotation(node.output().type(), self.found)
        self.say(f"{self.name(node.output())} = {made}.__new__({made})")

    # ---- expressions

    def _object(self, value):
        text = self.text(value)
        return text if text.isidentifier() else f"({text})"

    def expression(self, node):
        kind, inputs = node.kind(), node.inputs()
        texts = [self.text(value) for value in inputs]
        form = _EXPRESSIONS.get(kind)
        if form is not None:
            return form(self, node, texts)
        if kind in _CASTS and len(texts) == 1:
            return f"{_CASTS[kind]}({texts[0]})"
        if kind in _IMPLICIT:
            return f"annotate({_IMPLICIT[kind]}, {texts[0]})"
        namespace, _, name = kind.partition("::")
        prefix = "torch" if namespace == "aten" else f"ops.{namespace}"
        return f"{prefix}.{name}({', '.join(self._arguments(node, texts))})"

    def _arguments(self, node, texts):
        """The arguments, without those at the end that are the default."""
        schema = node.schema
        if schema is None or len(schema.arguments) != len(texts):
            return texts
        given = list(zip(schema.arguments, node.inputs(), texts, strict=True))
        positional = [
            (text, _is_default(argument, value)) for argument, value, text in given if not argument.keyword_only
        ]
        while positional and positional[-1][1]:
            positional.pop()
        named = [f"{a.name}={text}" for a, value, text in given if a.keyword_only and not _is_default(a, value)]
        return [text for text, _ in positional] + named


def _defaulted(arguments):
    """The parameters whose defaults source can say: those at the end whose defaults have the parameter's type (one
    number for a list has not). Calls give all arguments.
    """
    found = []
    for argument in reversed(arguments):
        if not argument.has_default:
            break
        try:
            accept(argument.type)(argument.default_value)
        except Mismatch:
            break
        found.append(argument)
    return found


def _is_default(argument, value):
    node = value.node()
    return (
        argument.has_default
        and node.kind() == "prim::Constant"
        and _same(node.attributes.get("value"), argument.default)
    )


def _same(value, default):
    if isinstance(value, _native.Tensor):
        return False
    return type(value) is type(default) and value == default


def _attribute(printer, node, texts):
    name, target = node.attributes["name"], printer._object(node.inputsAt(0))
    return f"{target}.{name}" if _is_name(name) else f"getattr({target}, {_quoted(name)})"


def _call_method(printer, node, texts):
    printer._object(node.inputsAt(0))
    return f"({texts[0]}).{node.attributes['name']}({''.join(f'{text}, ' for text in texts[1:])})"


def _call_function(printer, node, texts):
    return f"{texts[0]}({''.join(f'{text}, ' for text in texts[1:])})"


def _made_tuple(printer, node, texts):
    type_ = node.output().type()
    if isinstance(type_, NamedTupleType):
        return f"{annotation(type_, printer.found)}({', '.join(texts)})"
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


def _made_list(printer, node, texts):
    type_, text = node.output().type(), f"[{', '.join(texts)}]"
    plain_tensors = isinstance(type_, ListType) and isinstance(type_.element, TensorType) and texts
    if plain_tensors or (texts and not _needs_annotation(type_)):
        return text
    return f"annotate({annotation(type_, printer.found)}, {text})"


def _made_dict(printer, node, texts):
    pairs = ", ".join(f"{key}: {value}" for key, value in zip(texts[::2], texts[1::2], strict=True))
    type_ = node.output().type()
    return (
        f"{{{pairs}}}"
        if pairs and not _needs_annotation(type_)
        else f"annotate({annotation(type_, printer.found)}, {{{pairs}}})"
    )


def _is_one_of(printer, node, texts):
    types = [annotation(type_, printer.found) for type_ in node.attributes["types"]]
    return f"isinstance({texts[0]}, {types[0] if len(types) == 1 else '(' + ', '.join(types) + ')'})"


def _tuple_part(printer, node, texts):
    begin, end = node.attributes["beg"], node.attributes["end"]
    return f"({texts[0]})[{begin}:{end}]"


def _python_call(printer, node, texts):
    raise RuntimeError(
        f"Could not export Python function call '{node.attributes.get('name')}'. Remove calls to Python functions "
        "before export. "
        "Did you forget to add @script or @script_method annotation? If this is a nn.ModuleList, add it to "
        "__constants__"
    )


_EXPRESSIONS = {
    "prim::GetAttr": _attribute,
    "prim::CallMethod": _call_method,
    "prim::CallFunction": _call_function,
    "prim::TupleConstruct": _made_tuple,
    "prim::ListConstruct": _made_list,
    "prim::DictConstruct": _made_dict,
    "prim::TupleUnpack": lambda printer, node, texts: texts[0],
    "prim::ListUnpack": lambda printer, node, texts: texts[0],
    "prim::TupleIndex": lambda printer, node, texts: f"({texts[0]})[{texts[1]}]",
    "prim::TupleSlice": _tuple_part,
    "prim::isinstance": _is_one_of,
    "prim::PythonOp": _python_call,
    "prim::unchecked_cast": lambda printer, node,
    texts: f"unchecked_cast({annotation(node.output().type(), printer.found)}, {texts[0]})",
    "prim::unchecked_unwrap_optional": lambda printer, node, texts: f"unchecked_unwrap_optional({texts[0]})",
    "prim::Uninitialized": lambda printer, node,
    texts: f"uninitialized({annotation(node.output().type(), printer.found)})",
    "prim::EnumName": lambda printer, node, texts: f"{texts[0]}.name",
    "prim::EnumValue": lambda printer, node, texts: f"{texts[0]}.value",
    "prim::tolist": lambda printer, node,
    texts: f"annotate({annotation(node.output().type(), printer.found)}, {texts[0]}.tolist())",
    "aten::__getitem__": lambda printer, node, texts: f"{texts[0]}[{texts[1]}]",
    "aten::format": lambda printer, node, texts: f"torch.format({', '.join(texts)})",
}  # fmt: skip
