"""The source of a TorchScript archive (`code/__torch__/...py`), compiled as all other source is. It is parsed, never
executed.

Its dialect: `torch.add(...)` and `ops.prim.dtype(...)` are operators, `__torch__.package.Name` classes and functions of
    the archive, `CONSTANTS.c0` its tensors; `annotate`, `uninitialized`, `unchecked_cast`
say types, and a nested function is what `fork` begins.
"""

import ast
import builtins
import math

from ...graph import types
from ...graph.function import Argument, Function, FunctionSchema
from ...graph.source import Source
from ...graph.types import ClassType, EnumType, InterfaceType, NamedTupleType
from .. import marks
from . import annotating, sugar
from .annotating import Lookup
from .errors import CompileError
from .functions import Definition, compile_into
from .known import reads_tree
from .unit import Unit


def uninitialized(type):
    """`uninitialized(T)` of the dialect: a value that is never read."""


def unchecked_cast(type, value):
    """`unchecked_cast(T, x)` of the dialect: a value of which the type was found out."""


@reads_tree(uninitialized)
def _(emitter, tree, wanted):
    return emitter.graph.insert("prim::Uninitialized", (), [emitter.read_annotation(tree.args[0], tree)]).output()


@reads_tree(unchecked_cast)
def _(emitter, tree, wanted):
    type = emitter.read_annotation(tree.args[0], tree)
    return emitter.graph.insert("prim::unchecked_cast", [emitter.emit_value(tree.args[1])], [type]).output()


_PYTHON = {
    name: getattr(builtins, name)
    for name in "int float bool str complex print range enumerate zip isinstance getattr hasattr tuple list dict len "
    "min max abs sorted".split()
}
_NAMES = {
    **_PYTHON, "annotate": marks.annotate, "fork": marks.fork, "uninitialized": uninitialized,
    "unchecked_cast": unchecked_cast, "inf": math.inf, "nan": math.nan,
    "infj": complex(0, math.inf), "nanj": complex(0, math.nan), "Exception": Exception,
}  # fmt: skip


class Operators(sugar.Sugar):
    """`torch`, `ops.prim`: names in it are operators."""

    what = "a namespace of operators"

    def __init__(self, namespace):
        self.namespace = namespace


class AllOperators(sugar.Sugar):
    """`ops`."""

    what = "the namespaces of operators"


class Path(sugar.Sugar):
    """`__torch__.package`: the beginning of a qualified name."""

    what = "the beginning of a name"

    def __init__(self, name):
        self.name = name


class Constants(sugar.Sugar):
    """`CONSTANTS`."""

    what = "the archive's constants"


class Names(Lookup):
    """What names mean in an archive."""

    def __init__(self):
        super().__init__(_NAMES)

    def meaning(self, name):
        """The meaning of a name that is none of Python's, or None."""
        if name in ("torch", "aten"):
            return Operators("aten")
        if name == "ops":
            return AllOperators()
        if name == "CONSTANTS":
            return Constants()
        if name == "__torch__":
            return Path("__torch__")
        return sugar.Py(_NAMES[name], constant=True) if name in _NAMES else None


class ArchiveCompiler(Unit):
    """Compiles an archive's source.

    Args:
        read_source: gives the text of the file for `__torch__.package`, or None.
        constants: the archive's tensors and objects, which `CONSTANTS.c0` names.
    """

    def __init__(self, read_source, constants=()):
        super().__init__()
        self.read_source, self.constants = read_source, list(constants)
        self.files = {}  # "__torch__.package" -> {name: syntax tree}, Source
        self.types, self.compiled = {}, {}

    # ---- files

    def _file(self, package):
        if package not in self.files:
            text = self.read_source(package)
            if text is None:
                self.files[package] = ({}, None)
            else:
                text = text.decode() if isinstance(text, bytes) else text
                source = Source(text, f"code/{package.replace('.', '/')}.py")
                try:
                    tree = ast.parse(text)
                except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
                    raise RuntimeError(
                        f"jit.load: {source.filename} cannot be read as TorchScript: {problem}"
                    ) from None
                named = {one.name: one for one in tree.body if isinstance(one, (ast.ClassDef, ast.FunctionDef))}
                self.files[package] = (named, source)
        return self.files[package]

    def _find(self, qualified):
        package, _, name = qualified.rpartition(".")
        named, source = self._file(package) if package else ({}, None)
        return named.get(name), source

    def class_type(self, python):
        """The type that a qualified name means."""
        if isinstance(python, str):
            return self.type(python) if python.startswith("__torch__.") else None
        return None

    def type(self, qualified):
        """The ClassType, NamedTupleType, EnumType or InterfaceType of this name."""
        if qualified not in self.types:
            tree, source = self._find(qualified)
            if not isinstance(tree, ast.ClassDef):
                raise RuntimeError(f"jit.load: the archive has no class {qualified}")
            self._read_class(qualified, tree, source)
        return self.types[qualified]

    def function(self, qualified, given=None):
        """The Function of this name."""
        if not isinstance(qualified, str):
            raise RuntimeError(f"jit.load: {qualified!r} is no name of a function")
        if qualified not in self.compiled:
            tree, source = self._find(qualified)
            if not isinstance(tree, ast.FunctionDef):
                raise RuntimeError(f"jit.load: the archive has no function {qualified}")
            definition = Definition(tree, source, Names())
            self.compiled[qualified] = Function(
                qualified, compile=lambda function: compile_into(self, function, definition, loose=True)
            )
        return self.compiled[qualified]

    def defined(self, function, place=None):
        try:
            return super().defined(function, place)
        except RecursionError:
            raise RuntimeError(f"jit.load: {function.qualified_name} is nested too deeply") from None

    # ---- classes

    def _read_class(self, qualified, tree, source):
        base = tree.bases[0].id if tree.bases and isinstance(tree.bases[0], ast.Name) else ""
        read = lambda annotation: annotating.from_tree(
            annotation, Names(), self.class_type, source.range_of(annotation)
        )  # noqa: E731
        if base == "NamedTuple":
            fields = [(one.target.id, read(one.annotation)) for one in tree.body if isinstance(one, ast.AnnAssign)]
            self.types[qualified] = NamedTupleType(
                qualified, [name for name, _ in fields], [type for _, type in fields]
            )
        elif base == "Enum":
            self._read_enum(qualified, tree, source)
        elif base in ("Interface", "ModuleInterface"):
            made = self.types[qualified] = InterfaceType(qualified, base == "ModuleInterface")
            for one in tree.body:
                if isinstance(one, ast.FunctionDef):
                    made.methods[one.name] = self._declared(made, one, source)
        elif base in ("Module", ""):
            self._fill_class_type(ClassType(qualified, base == "Module"), tree, source, read)
        else:
            raise CompileError(source.range_of(tree), f"class {qualified} has an unknown base {base!r}")

    def _read_enum(self, qualified, tree, source):
        members, inside = {}, None
        for one in tree.body:
            if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
                value = self._literal(one.value, source)
                members[one.targets[0].id] = value
                inside = self.infer(value)
        import enum

        if inside is None:
            raise CompileError(source.range_of(tree), f"enumeration {qualified} has no members of a known type")
        python = enum.Enum(qualified.rpartition(".")[2], members, module="torch.jit")
        self.types[qualified] = EnumType(qualified, inside, {member.name: member for member in python}, python)
        self.classes[python] = self.types[qualified]

    def _fill_class_type(self, made, tree, source, read):
        self.types[made.qualified_name] = made
        for one in tree.body:
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                final = (
                    isinstance(one.annotation, ast.Subscript)
                    and isinstance(one.annotation.value, ast.Name)
                    and one.annotation.value.id == "Final"
                )
                if final and one.value is not None:
                    made.constants[one.target.id] = self._literal(one.value, source)
                else:
                    made.attributes[one.target.id] = read(one.annotation)
            elif isinstance(one, ast.Assign):
                self._class_line(made, one, source, read)
            elif isinstance(one, ast.FunctionDef):
                self._add_method(made, one, source)
        for hook in (*made.forward_pre_hooks, *made.forward_hooks):
            if not isinstance(hook, Function):
                raise CompileError(source.range_of(tree), f"class {made.qualified_name} has no hook {hook!r}")

    def _class_line(self, made, line, source, read):
        (target,) = line.targets
        if isinstance(target, ast.Name) and target.id in (
            "__parameters__",
            "__buffers__",
            "__forward_hooks__",
            "__forward_pre_hooks__",
        ):
            names = self._literal(line.value, source)
            if target.id == "__parameters__":
                made.parameters |= set(names)
            elif target.id == "__buffers__":
                made.buffers |= set(names)
            else:
                (made.forward_hooks if target.id == "__forward_hooks__" else made.forward_pre_hooks).extend(names)
        elif isinstance(target, ast.Subscript) and isinstance(
            target.slice, ast.Constant
        ):  # __annotations__["0"] = type
            made.attributes[target.slice.value] = read(line.value)

    def _add_method(self, made, tree, source):
        definition = Definition(tree, source, Names())

        def compile(function):
            compile_into(self, function, definition, self_type=made, loose=True)

        function = Function(f"{made.qualified_name}.{tree.name}", owner=made, compile=compile)
        if tree.args.args and _is_self(tree.args.args[0], made):
            made.methods[tree.name] = function
        else:
            function._compile = lambda function: compile_into(self, function, definition, loose=True)
            made.static_methods[tree.name] = function
        for hooks in (made.forward_hooks, made.forward_pre_hooks):
            hooks[:] = [function if hook == tree.name else hook for hook in hooks]

    def _declared(self, owner, tree, source):
        read = lambda annotation: annotating.from_tree(annotation, Names(), self.class_type, source.range_of(tree))  # noqa: E731
        arguments = [Argument("self", owner)]
        arguments += [
            Argument(one.arg, read(one.annotation) if one.annotation is not None else types.TensorType())
            for one in tree.args.args[1:]
        ]
        return Function(
            f"{owner.qualified_name}.{tree.name}",
            FunctionSchema(
                tree.name, arguments, read(tree.returns) if tree.returns is not None else types.TensorType()
            ),
            owner=owner,
        )

    def _literal(self, tree, source):
        """A plain value written in the source."""
        if isinstance(tree, ast.Attribute) and isinstance(tree.value, ast.Name) and tree.value.id == "CONSTANTS":
            return self.constant_at(tree.attr, source.range_of(tree))
        if (
            isinstance(tree, ast.Call)
            and isinstance(tree.func, ast.Name)
            and tree.func.id == "annotate"
            and len(tree.args) == 2
        ):
            return self._literal(tree.args[1], source)
        if isinstance(tree, ast.Call) and ast.unparse(tree.func) == "torch.device" and len(tree.args) == 1:
            import cresset

            return cresset.device(self._literal(tree.args[0], source))
        if isinstance(tree, ast.Name) and tree.id in ("inf", "nan"):
            return _NAMES[tree.id]
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
            return -self._literal(tree.operand, source)
        if isinstance(tree, (ast.List, ast.Tuple)):
            parts = [self._literal(part, source) for part in tree.elts]
            return parts if isinstance(tree, ast.List) else tuple(parts)
        if isinstance(tree, ast.Dict):
            return {
                self._literal(k, source): self._literal(v, source) for k, v in zip(tree.keys, tree.values, strict=True)
            }
        if isinstance(tree, ast.Constant):
            return tree.value
        raise CompileError(source.range_of(tree), "expected a plain value")

    default_literal = _literal

    # ---- what names mean

    def constant_at(self, name, place):
        number = int(name[1:]) if name[:1] == "c" and name[1:].isdigit() else -1
        if not 0 <= number < len(self.constants):
            raise CompileError(place, f"the archive has no constant {name}")
        return self.constants[number]

    def special_member(self, base, name, emitter, tree):
        """`base.name` where base is one of this dialect's; None if it is not."""
        if isinstance(base, AllOperators):
            return Operators(name)
        if isinstance(base, Operators):
            return sugar.Operator(f"{base.namespace}::{name}")
        if isinstance(base, Constants):
            value = self.constant_at(name, emitter.place(tree))
            type = self.infer(value)
            if type is None:
                raise emitter.error(tree, f"constant {name} has a type that programs do not know")
            return emitter.constant(value, type)
        if isinstance(base, sugar.ClassMaker) and name in getattr(base.type, "methods", ()):
            return sugar.Compiled(base.type.methods[name])  # a hook, called before or behind forward
        if isinstance(base, Path):
            whole = f"{base.name}.{name}"
            found, _ = self._find(whole)
            if isinstance(found, ast.ClassDef):
                return sugar.ClassMaker(self.type(whole))
            if isinstance(found, ast.FunctionDef):
                return sugar.Compiled(self.function(whole))
            return Path(whole)
        return None

    def late_member(self, value, name, emitter, place):
        return None

    def callable_meaning(self, thing, emitter, args, kwargs, tree):
        return None

    def tensor_function(self, name):
        return None


def _is_self(argument, owner):
    """Whether a method's first argument is its object: one of another name than `self` has the class for its type."""
    annotation = argument.annotation
    return argument.arg == "self" or (annotation is not None and ast.unparse(annotation) == owner.qualified_name)
