"""Print the type stubs of the package, each module's beside it, in another folder.

    python -m tools.stubs NATIVE FOLDER     # FOLDER/cresset/__init__.pyi and so on

The build runs this in the source tree; NATIVE is the native module it has just linked. Three sources give a stub:
native_types.pyi (the native types as far as no operator says it), the operators' signatures (schemas.py), and the
modules' own source (source.py). What a module offers beyond its source, because it was made while it was imported, is
added from the module itself.
"""

import importlib
import inspect
import pathlib
import sys
import types

from . import preload  # isort: skip  # noqa: F401

import cresset
from cresset import _native
from cresset.ops import registry
from cresset.ops.pointwise import definitions

from .schemas import Operators
from .source import Source, defined_names, whole
from .words import is_public

PACKAGE = pathlib.Path(cresset.__file__).parent
NATIVE_TYPES = pathlib.Path(__file__).with_name("native_types.pyi")
WITHOUT = ("cresset.cli", "cresset.__main__")  # programs, not modules to import


def modules():
    """Every module of the package: its dotted name, its file, whether it is a package."""
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = ("cresset", *file.relative_to(PACKAGE).with_suffix("").parts)
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        if not name.startswith(WITHOUT):
            yield name, file, is_package


def indented(lines):
    return ["    " + line for line in lines]


class Printer:
    def __init__(self):
        self.operators = Operators(set(definitions))
        self.sources = {
            name: (Source(file.read_text(encoding="utf-8"), name, is_package), file)
            for name, file, is_package in modules()
        }
        self.homes = {}  # a class or function -> where its stub stands
        for name, (source, _) in self.sources.items():
            module = importable(name)
            for word in source.kinds():
                found = getattr(module, word, None)
                if found is not None:
                    self.homes.setdefault(id(found), (name, word))

    # ---- cresset/_native.pyi

    def native(self):
        types_text = NATIVE_TYPES.read_text(encoding="utf-8")
        written = {
            line.split("(")[0].split(":")[0].split()[-1]
            for line in types_text.partition("class Tensor:")[2].splitlines()
            if line.startswith("    ") and line.strip()
        }
        methods = []
        for name, thing in sorted(vars(_native.Tensor).items()):
            if name in written or not is_public(name) or name.startswith("__"):
                continue
            if isinstance(thing, type(_native.operators()["add"])):
                methods += self.operators.operator(name, thing, method=True)
            elif callable(thing):
                methods += self.operators.function(name, thing, method=True)
        singletons = [line for name, thing in sorted(vars(_native).items()) if (line := singleton(name, thing))]
        functions = [
            f"def {name}(*args: Any, **kwargs: Any) -> Any: ..."
            for name, thing in sorted(vars(_native).items())
            if is_public(name) and callable(thing) and not isinstance(thing, type)
        ]
        first = ['_T = TypeVar("_T")', "", *self.operators.named_tuples()]
        types_lines = types_text.rstrip().splitlines()
        return whole([*first, *types_lines, *indented(methods), "", *singletons, *functions, "cuda: Any"])

    # ---- the modules

    def module(self, name):
        source, file = self.sources[name]
        module = importable(name)
        source.with_out = {
            word for word in source.functions() if gets_out(source.functions()[word], getattr(module, word, None))
        }
        lines = source.print()
        known = set(defined_names(source.tree.body))
        more = []
        if source.is_package:
            for child in sorted(child for child in self.sources if child.rpartition(".")[0] == name):
                word = child.rpartition(".")[2]
                if is_public(word) and word not in known:
                    known.add(word)
                    more.append(f"from . import {word} as {word}")
        for word in names_of(module) if module else []:
            if (
                is_public(word)
                and (word not in known or name == "cresset" and word in registry.functions)
                and not word.startswith("__")
            ):
                more += self.made(name, word, getattr(module, word, None))
        lines = [*lines, *more]
        for word in ("Tensor", "Generator"):  # in operators' signatures
            if word not in known and any(word in line for line in more):
                lines.insert(0, f"from cresset._native import {word}")
        for word in self.operators.named_in(more):
            lines.insert(0, f"from cresset._native import {word}")
        return whole(lines)

    def made(self, module, word, thing):
        """What a module holds under a name that its source does not bind."""
        if isinstance(thing, type(_native.operators()["add"])):
            return self.operators.operator(word, thing)
        if (line := singleton(word, thing)) is not None:
            return [line]
        home = self.homes.get(id(thing))
        if home and home[0] != module and not (module == "cresset" and word in registry.functions):
            return [f"from {home[0]} import {home[1]} as {word}"]
        if isinstance(thing, types.ModuleType):
            inside = thing.__name__.startswith("cresset.") and thing.__name__ in self.sources
            return [f"import {thing.__name__} as {word}"] if inside else []
        if isinstance(thing, type):
            return [
                (
                    f"class {word}({thing.__bases__[0].__name__ if thing.__bases__[0] in (tuple, Exception) else 'Any'}): "  # noqa: E501
                    "..."
                )
            ]
        if callable(thing):
            return self.operators.function(word, thing)
        return [f"{word}: Any"]


def gets_out(node, function):
    """Whether a function takes out= that its definition does not name."""
    try:
        return "out" in inspect.signature(function).parameters and all(
            argument.arg != "out" for argument in [*node.args.args, *node.args.kwonlyargs]
        )
    except (TypeError, ValueError):
        return False


def names_of(module):
    """Its names, those that load later included; a function called __dir__ may be Tensor's method, waiting to be
    installed.
    """
    own = vars(module).get("__dir__")
    names = dir(module) if own is None or not own.__code__.co_argcount else vars(module)
    settings = vars(type(module)) if type(module) is not types.ModuleType else ()  # of a backend
    return sorted({*names, *settings})


def singleton(name, thing):
    for kind in ("dtype", "layout", "memory_format"):
        if isinstance(thing, getattr(_native, kind)):
            return f"{name}: _{kind}"
    return None


def importable(name):
    try:
        return importlib.import_module(name)
    except ImportError:  # of what is optional
        return None


def main():
    folder = pathlib.Path(sys.argv[2])
    printer = Printer()
    texts = {
        printer.sources[name][1].relative_to(PACKAGE.parent).with_suffix(".pyi"): printer.module(name)
        for name in printer.sources
    }
    texts[pathlib.Path("cresset/_native.pyi")] = printer.native()
    for stub in (folder / "cresset").rglob("*.pyi"):  # of modules that have another name now
        if stub.relative_to(folder) not in texts:
            stub.unlink()
    for path, text in texts.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
