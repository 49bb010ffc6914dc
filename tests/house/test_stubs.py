"""Type stubs say what is there: every name in a `.pyi` file exists, with the parameters the stub gives it."""

import ast
import importlib
import importlib.util
import inspect
import types
from pathlib import Path

import pytest

from cresset import _native


def is_public(name):
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


def parameters(node):
    arguments = node.args
    return [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def real_parameters(thing):
    """The parameters a callable reports, or None when it does not say or takes anything."""
    try:
        found = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in found):
        return None
    return [p.name for p in found]


def check(body, owner, place):
    """The differences between the statements of a stub and the object they describe, as messages."""
    found = []
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names = [node.name]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names = [node.target.id] if not isinstance(owner, type) else []  # an annotated attribute may be per object
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        else:
            continue
        for name in filter(is_public, names):
            if not hasattr(owner, name):
                found.append(f"{place}:{node.lineno}: {name} is in the stub but not in {owner.__name__}")
                continue
            real = getattr(owner, name)
            if isinstance(node, ast.ClassDef):
                if not isinstance(real, type):
                    found.append(f"{place}:{node.lineno}: {name} is a class in the stub, a {type(real).__name__} here")
                else:
                    found += check(node.body, real, place)
            elif isinstance(node, ast.FunctionDef) and not node.decorator_list:
                written, actual = parameters(node), real_parameters(real)
                if node.args.vararg or node.args.kwarg or actual is None or name.startswith("__"):
                    continue
                if isinstance(owner, type) and "self" in written[:1]:  # whatever it is called there
                    written, actual = written[1:], actual[1:]
                    if owner is _native.Tensor:
                        actual = [word for word in actual if word != "out"]  # which is the function's, not the method's
                if written != actual:
                    found.append(f"{place}:{node.lineno}: {name}({', '.join(written)}) takes ({', '.join(actual)})")
    return found


def stubs():
    folder = Path(importlib.import_module("cresset").__file__).parent
    return {file: ".".join(file.relative_to(folder.parent).with_suffix("").parts) for file in folder.rglob("*.pyi")}


def test_stubs_agree_with_the_package():
    problems = []
    for file, module in sorted(stubs().items()):
        problems += check(
            ast.parse(file.read_text()).body, importlib.import_module(module.removesuffix(".__init__")), file
        )
    assert not problems, "\n" + "\n".join(problems)


def test_the_native_module_has_a_stub():
    """Without one a type checker sees nothing of Tensor, whatever py.typed says."""
    assert "cresset._native" in stubs().values()


@pytest.mark.parametrize(
    "stub, problem",
    [
        ("def gone(x): ...", "gone is in the stub but not in made_up"),
        ("def twice(y): ...", "twice(y) takes (x)"),
        ("class twice: ...", "twice is a class in the stub, a function here"),
        ("class Box:\n    def close(self): ...", "close is in the stub but not in Box"),
        ("class Box:\n    def open(self, key): ...", "open(key) takes ()"),
        ("limit: int", "limit is in the stub but not in made_up"),
    ],
)
def test_a_wrong_stub_is_found(stub, problem):
    (found,) = check(ast.parse(stub).body, made_up(), "made_up.pyi")
    assert problem in found


def test_a_right_stub_is_left_alone():
    stub = "count: int\ndef twice(x: int) -> int: ...\nclass Box:\n    size: int\n    def open(self) -> None: ..."
    assert check(ast.parse(stub).body, made_up(), "made_up.pyi") == []


def made_up():
    module = types.ModuleType("made_up")
    exec("count = 1\ndef twice(x): return 2 * x\nclass Box:\n    def open(self): pass", vars(module))
    return module


def test_every_module_has_a_stub():
    folder = Path(importlib.import_module("cresset").__file__).parent
    modules = {file for file in folder.rglob("*.py") if "cli" not in file.parts and file.name != "__main__.py"}
    assert {file.with_suffix(".pyi") for file in modules} <= set(stubs())


def test_the_hand_written_types_exist():
    """tools/stubs/native_types.pyi says by hand what no operator's signature says."""
    text = (Path(__file__).parents[2] / "tools" / "stubs" / "native_types.pyi").read_text()
    assert check(ast.parse(text).body, importlib.import_module("cresset._native"), "native_types.pyi") == []
