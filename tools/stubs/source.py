"""Stubs of Python modules, from their source: what is annotated keeps its annotation; a parameter that is not says what
its default says, or Any; names that are imported are offered on."""

import ast
import re

from .words import ALIASES, IMPORTS, OF_CONSTANTS, OF_DEFAULTS, is_builtin, is_public

_KEPT_DECORATORS = {
    "property",
    "staticmethod",
    "classmethod",
    "overload",
    "abstractmethod",
    "dataclass",
    "final",
    "cached_property",
}
_KEPT_CALLS = {"TypeVar", "ParamSpec", "TypeVarTuple", "NewType", "NamedTuple", "namedtuple"}
_TENSOR_RESULTS = ("cresset.ops", "cresset.nn.functional", "cresset.linalg", "cresset.fft", "cresset.signal")


def last_name(node):
    """The last word of a dotted name or of what is called: property, setter, dataclass."""
    if isinstance(node, ast.Call):
        return last_name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def defined_names(statements):
    """Every name that the statements of a module's top level bind."""
    for node in statements:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name))
        elif isinstance(node, (ast.If, ast.Try)):
            yield from defined_names(node.body)
            yield from defined_names(node.orelse)
            for handler in getattr(node, "handlers", []):
                yield from defined_names(handler.body)


class Source:
    """The stub of one module's source."""

    def __init__(self, text, module, is_package):
        self.tree = ast.parse(text)
        self.module, self.is_package = module, is_package
        self.with_out = set()  # functions to which a decorator adds the keyword out=
        self.names = {
            *defined_names(self.tree.body),
            "Any",
            "Callable",
            "Iterable",
            "Iterator",
            "Sequence",
            "AbstractContextManager",
        }
        self.lines = []

    def print(self):
        self.statements(self.tree.body)
        return self.lines

    # ---- types

    def annotation(self, node):
        """An annotation's text, or Any where it uses a name that only exists elsewhere."""
        if node is None:
            return None
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value, mode="eval").body
            except SyntaxError:
                return "Any"
        used = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        if not all(name in self.names or is_builtin(name) for name in used):
            return "Any"
        return ast.unparse(node)

    def of_default(self, node):
        if isinstance(node, ast.UnaryOp):
            node = node.operand
        return OF_DEFAULTS.get(type(node.value)) if isinstance(node, ast.Constant) else None

    def of_value(self, node, parameters):
        """The type of what is assigned to an attribute: a constant, a parameter handed on, a Parameter."""
        if isinstance(node, ast.Constant):
            return OF_CONSTANTS.get(type(node.value), "Any")
        if isinstance(node, ast.Name):
            return parameters.get(node.id, "Any")
        if isinstance(node, ast.Call) and last_name(node) == "Parameter" and "Parameter" in self.names:
            return "Parameter"
        return "Any"

    # ---- statements

    def statements(self, body):
        for node in body:
            if isinstance(node, ast.Import):
                self.imported(node)
            elif isinstance(node, ast.ImportFrom):
                self.imported_from(node)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if node.name not in ("__getattr__", "_"):  # the latter: a rule that a decorator keeps
                    self.lines += self.function(node, "")
            elif isinstance(node, ast.ClassDef):
                self.lines += self.class_(node, "")
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                self.lines += self.assignment(node)
            elif isinstance(node, ast.If):
                self.statements(node.body if not _is_main(node) else [])
            elif isinstance(node, ast.Try):
                self.statements(node.body)

    def imported(self, node):
        for alias in node.names:
            self.lines.append(f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else ""))

    def imported_from(self, node):
        if node.module == "__future__":
            return
        place = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self.lines.append(f"from {place} import *")
                continue
            name = alias.asname or alias.name
            own = node.level or (node.module or "").partition(".")[0] == "cresset"
            self.lines.append(
                f"from {place} import {alias.name}" + (f" as {name}" if alias.asname or own and is_public(name) else "")
            )

    def assignment(self, node, indent=""):
        if isinstance(node, ast.AnnAssign):
            if not isinstance(node.target, ast.Name):
                return []
            note = self.annotation(node.annotation)
            value = f" = {ast.unparse(node.value)}" if node.value and note.endswith("TypeAlias") else ""
            return [f"{indent}{node.target.id}: {note}{value}"]
        found = []
        for target in node.targets:
            if isinstance(target, ast.Name):
                found.append(self.one_assignment(target.id, node.value, indent))
            elif isinstance(target, ast.Tuple):
                values = (
                    node.value.elts
                    if isinstance(node.value, ast.Tuple) and len(node.value.elts) == len(target.elts)
                    else [None] * len(target.elts)
                )
                found += [
                    self.one_assignment(t.id, v, indent) for t, v in zip(target.elts, values) if isinstance(t, ast.Name)
                ]
        return [line for line in found if line]

    def one_assignment(self, name, value, indent):
        if (
            name in ("__getattr__", "__dir__", "__slots__")
            or not is_public(name)
            and last_name(value) not in _KEPT_CALLS
        ):
            return None
        if name == "__call__":
            return f"{indent}def __call__(self, *args: Any, **kwargs: Any) -> Any: ..."
        if name == "__all__":
            return f"{indent}__all__ = {ast.unparse(value)}" if _is_list_of_strings(value) else None
        if last_name(value) in _KEPT_CALLS:
            return f"{indent}{name} = {ast.unparse(value)}"
        if isinstance(value, ast.Name) and value.id in self.names and value.id in self.kinds():
            return f"{indent}{name} = {value.id}"
        return (
            f"{indent}{name}: "
            f"{OF_CONSTANTS.get(type(value.value), 'Any') if isinstance(value, ast.Constant) else 'Any'}"
        )

    def functions(self):
        return {node.name: node for node in self.tree.body if isinstance(node, ast.FunctionDef)}

    def kinds(self):
        """Names of the classes and functions of this module: what may be offered under another name as it is."""
        return {node.name for node in self.tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}

    # ---- functions

    def function(self, node, indent, in_class=False):
        words = [last_name(d) for d in node.decorator_list]
        lines = [
            f"{indent}@{_plain(d)}"
            for d in node.decorator_list
            if last_name(d) in _KEPT_DECORATORS or in_class and last_name(d) in ("setter", "deleter", "getter")
        ]
        result = self.annotation(node.returns) or self.result(node, in_class)
        if "contextmanager" in words:
            result = "AbstractContextManager[Any]"
        is_method = in_class and "staticmethod" not in words
        prefix = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
        parameters = self.parameters(node.args, is_method)
        if not in_class and node.name in self.with_out:
            parameters += ", out: Any = ..." if node.args.kwonlyargs or node.args.vararg else ", *, out: Any = ..."
        return [*lines, f"{indent}{prefix}def {node.name}({parameters}) -> {result}: ..."]

    def result(self, node, in_class):
        if node.name == "__new__":
            return "Self"
        if node.name in (
            "__init__",
            "__setstate__",
            "__setattr__",
            "__delattr__",
            "__setitem__",
            "__delitem__",
            "__del__",
            "__exit__",
        ):
            return "None"
        if node.name in ("__len__", "__hash__", "__int__"):
            return "_int"
        if node.name in ("__repr__", "__str__", "extra_repr"):
            return "_str"
        if node.name in ("__bool__", "__contains__"):
            return "_bool"
        own = list(_own_nodes(node))
        if any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in own):
            return "Iterator[Any]"
        values = [part.value for part in own if isinstance(part, ast.Return) and part.value is not None]
        is_abstract = all(isinstance(part, (ast.Raise, ast.Expr, ast.Pass)) for part in node.body)
        if not values and not is_abstract:
            return "None"
        if in_class and values and all(isinstance(value, ast.Name) and value.id == "self" for value in values):
            return "Self"
        if not in_class and self.module.startswith(_TENSOR_RESULTS) and is_public(node.name):
            return "_Tensor"
        return "Any"

    def parameter_types(self, arguments):
        """Name and type of each parameter that may be given by name or place."""
        plain = [*arguments.posonlyargs, *arguments.args]
        defaults = [None] * (len(plain) - len(arguments.defaults)) + arguments.defaults
        for argument, default in [*zip(plain, defaults), *zip(arguments.kwonlyargs, arguments.kw_defaults)]:
            yield (
                argument.arg,
                self.annotation(argument.annotation) or (default and self.of_default(default)) or "Any",
                default,
            )

    def parameters(self, arguments, is_method):
        types = {name: (kind, default) for name, kind, default in self.parameter_types(arguments)}
        parts = []
        for number, argument in enumerate([*arguments.posonlyargs, *arguments.args]):
            kind, default = types[argument.arg]
            parts.append(
                argument.arg if is_method and number == 0 else f"{argument.arg}: {kind}" + (" = ..." if default else "")
            )
            if argument in arguments.posonlyargs and number + 1 == len(arguments.posonlyargs):
                parts.append("/")
        if arguments.vararg:
            parts.append(f"*{arguments.vararg.arg}: {self.annotation(arguments.vararg.annotation) or 'Any'}")
        elif arguments.kwonlyargs:
            parts.append("*")
        for argument in arguments.kwonlyargs:
            kind, default = types[argument.arg]
            parts.append(f"{argument.arg}: {kind}" + (" = ..." if default else ""))
        if arguments.kwarg:
            parts.append(f"**{arguments.kwarg.arg}: {self.annotation(arguments.kwarg.annotation) or 'Any'}")
        return ", ".join(parts)

    # ---- classes

    def class_(self, node, indent):
        bases = [ast.unparse(base) for base in node.bases if not isinstance(base, ast.Call)]
        fields = [
            ast.unparse(base) for base in node.bases if isinstance(base, ast.Call) and last_name(base) == "namedtuple"
        ]
        bases += fields
        bases += [
            f"metaclass={ast.unparse(k.value)}"
            for k in node.keywords
            if k.arg == "metaclass" and last_name(k.value) == "ABCMeta"
        ]
        lines = [f"{indent}@{_plain(d)}" for d in node.decorator_list if last_name(d) in _KEPT_DECORATORS]
        lines.append(f"{indent}class {node.name}" + (f"({', '.join(bases)}):" if bases else ":"))
        inner, body, seen = indent + "    ", [], set()
        is_enum = any("Enum" in base or "Flag" in base for base in bases)
        for part in node.body:
            if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
                seen.add(part.name)
                body += self.function(part, inner, in_class=True)
            elif isinstance(part, ast.ClassDef):
                seen.add(part.name)
                body += self.class_(part, inner)
            elif isinstance(part, (ast.Assign, ast.AnnAssign)):
                seen.update(name for name in defined_names([part]))
                if is_enum and isinstance(part, ast.Assign):
                    body.append(f"{inner}{ast.unparse(part)}")
                else:
                    body += self.assignment(part, inner)
        attributes = [
            f"{inner}{name}: {kind}"
            for name, kind in self.attributes(node).items()
            if name not in seen and not name.startswith("__")
        ]
        return [*lines, *(attributes + body or [f"{inner}..."])]

    def attributes(self, node):
        """What the methods assign to self, with types where all assignments agree on one."""
        found = {}
        for method in node.body:
            if (
                not isinstance(method, ast.FunctionDef)
                or not method.args.args
                or "staticmethod" in map(last_name, method.decorator_list)
            ):
                continue
            first = method.args.args[0].arg
            parameters = {name: kind for name, kind, _ in self.parameter_types(method.args)}
            for part in ast.walk(method):
                if not isinstance(part, (ast.Assign, ast.AnnAssign)):
                    continue
                for target in part.targets if isinstance(part, ast.Assign) else [part.target]:
                    values = [part.value]
                    targets = [target]
                    if isinstance(target, ast.Tuple):
                        targets = target.elts
                        values = (
                            part.value.elts
                            if isinstance(part.value, ast.Tuple) and len(part.value.elts) == len(targets)
                            else [None] * len(targets)
                        )
                    for one, value in zip(targets, values):
                        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == first:
                            kind = (
                                self.annotation(part.annotation)
                                if isinstance(part, ast.AnnAssign)
                                else self.of_value(value, parameters)
                                if value
                                else "Any"
                            )
                            found[one.attr] = kind if found.get(one.attr, kind) == kind else "Any"
        return found


def _own_nodes(function):
    """The nodes of a function's body, without those of functions inside it."""
    stack = list(function.body)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            stack += ast.iter_child_nodes(node)


def _plain(decorator):
    return ast.unparse(decorator)


def _is_main(node):
    return isinstance(node.test, ast.Compare) and last_name(node.test.left) == "__name__"


def _is_list_of_strings(node):
    return isinstance(node, (ast.List, ast.Tuple)) and all(
        isinstance(part, ast.Constant) and isinstance(part.value, str) for part in node.elts
    )


def whole(lines):
    """The text of a stub: what its lines use of other modules, then the lines."""
    lines = _without_unused(lines)
    used = _words(lines)
    own = {line.partition(":")[0] for line in lines}  # _native.pyi has some of the names itself
    aliases = [f"{name}: TypeAlias = {meaning}" for name, meaning in ALIASES.items() if name in used - own]
    used |= _words(aliases)
    first = ["# Printed by tools/stubs."]
    if "builtins" in used:
        first.append("import builtins")
    for module, names in IMPORTS.items():
        chosen = [name for name in names if name.rpartition(" ")[2] in used - own]
        if chosen:
            first.append(f"from {module} import {', '.join(chosen)}")
    return "\n".join([*first, *aliases, *lines, ""])


def _words(lines):
    return {word for line in lines for word in re.findall(r"\w+", line)}


def _without_unused(lines):
    """The lines without imports of names that are neither offered on (`a as a`) nor used."""
    used = _words(line for line in lines if not line.startswith(("import ", "from ")))

    def is_needed(line):
        if not line.startswith(("import ", "from ")) or line.endswith("*"):
            return True
        what, _, name = line.rpartition("import ")[2].partition(" as ")
        return what == name or (name or what).partition(".")[0] in used

    return [line for line in lines if is_needed(line)]
