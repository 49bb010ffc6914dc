"""Write the type stubs that follow from the registry: cresset/_native.pyi and cresset/__init__.pyi.

    python tools/make_stubs.py           # writes them
    python tools/make_stubs.py --check   # exit status 1 if they are not up to date
"""

import inspect
import keyword
import pathlib
import re
import sys

import cresset
from cresset import _native
from cresset.ops import registry

HEADER = '"""Made by tools/make_stubs.py from the registry of operators; do not edit."""\n\nimport builtins\nfrom collections.abc import Sequence\nfrom typing import Any, TypeAlias\n\n_int: TypeAlias = builtins.int\n_float: TypeAlias = builtins.float\n_bool: TypeAlias = builtins.bool\n_Number: TypeAlias = _bool | _int | _float | complex\n'
PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "cresset"
KNOWN = {"Tensor", "Number", "int", "float", "bool", "str", "dtype", "device", "layout", "memory_format", "Generator", "Sequence", "None", "tuple"}


def annotation(value, own_names):
    """The annotation as text, with Any for what the stub does not know. Names that a class uses for methods are qualified."""
    if value is inspect.Parameter.empty:
        return None
    text = value if isinstance(value, str) else getattr(value, "__name__", "Any")
    if text.startswith("("):
        text = f"tuple[{', '.join(part.split()[0] for part in text[1:-1].split(','))}]"
    words = set(re.findall(r"[A-Za-z_]+", text))
    if not words <= KNOWN:
        return "Any"
    text = re.sub(r"\b(int|float|bool|Number)\b", r"_\1", text)
    return re.sub(r"\b(dtype|device|layout)\b", lambda m: "_" + m[0] if m[0] in own_names else m[0], text)


def definition(name, thing, own_names, method):
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        first = "self, " if method else ""
        return f"def {name}({first}*args: Any, **kwargs: Any) -> Any: ..."
    parts, star = [], False
    for k, p in enumerate(signature.parameters.values()):
        text = p.name
        if method and k == 0 and p.kind not in (p.VAR_POSITIONAL, p.KEYWORD_ONLY):
            parts.append(p.name)
            continue
        if p.kind is p.VAR_POSITIONAL:
            text, star = "*" + text, True
        elif p.kind is p.VAR_KEYWORD:
            text = "**" + text
        elif p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        note = annotation(p.annotation, own_names)
        if note:
            text += f": {note}"
        if p.default is not p.empty:
            text += " = ..." if note else "=..."
        parts.append(text)
    returns = annotation(signature.return_annotation, own_names) or "Any"
    return f"def {name}({', '.join(parts)}) -> {returns}: ..."


def usable(name):
    return name.isidentifier() and not keyword.iskeyword(name)


def native_stub():
    out = [HEADER]
    singletons = {}
    for name, thing in sorted(vars(_native).items()):
        if isinstance(thing, (_native.dtype, _native.layout, _native.memory_format)):
            singletons[name] = type(thing).__name__
    for cls in ("dtype", "device", "layout", "memory_format", "Size", "Generator", "Operator", "Node", "SavedTensor"):
        base = "(tuple[_int, ...])" if cls == "Size" else ""
        members = [f"    {n}: Any" for n in sorted(vars(getattr(_native, cls))) if not n.startswith("_") and usable(n) and n not in ("count", "index")]
        out += ["", f"class {cls}{base}:", *(members or ["    ..."])]
    out += ["", "_dtype: TypeAlias = dtype", "_device: TypeAlias = device", "_layout: TypeAlias = layout", "", "class Tensor:"]
    members = dict(sorted(vars(_native.Tensor).items()))
    own = {n for n in members if usable(n)}
    for name, thing in members.items():
        if name.startswith("_") and not (name.startswith("__") and name.endswith("__")) or not usable(name) or name in ("__dict__", "__doc__", "__module__", "__hash__", "__weakref__", "__ipow__", "__dictoffset__", "__weaklistoffset__"):
            continue
        thing = getattr(_native.Tensor, name) if not isinstance(thing, property) else thing
        if not callable(thing):
            out.append(f"    {name}: Any")
        else:
            out.append("    " + definition(name, thing, own, method=True))
    out.append("")
    names = {"bool", "int", "float", *singletons}
    for name, kind in singletons.items():
        out.append(f"{name}: {kind}" if kind not in names else f"{name}: _{kind}")
    out.append("default_generator: Generator")
    for name, thing in sorted(vars(_native).items()):
        if callable(thing) and not isinstance(thing, type) and not name.startswith("_") and usable(name):
            out.append(f"def {name}(*args: Any, **kwargs: Any) -> Any: ...")
    return "\n".join(out) + "\n"


def package_stub():
    out = [HEADER, "from . import _native as _native"]
    classes = [n for n in ("Tensor", "Size", "Generator", "dtype", "device", "layout", "memory_format") if hasattr(_native, n)]
    out.append(f"from ._native import {', '.join(f'{n} as {n}' for n in classes)}")
    dtypes = sorted(n for n, v in vars(_native).items() if isinstance(v, (_native.dtype, _native.layout, _native.memory_format)))
    out.append(f"from ._native import {', '.join(f'{n} as {n}' for n in dtypes if n not in ('bool', 'int', 'float'))}")
    out += ["_dtype: TypeAlias = dtype", "_device: TypeAlias = device", "_layout: TypeAlias = layout", "bool: _dtype", "int: _dtype", "float: _dtype"]
    out.append("def __getattr__(name: str) -> Any: ...")
    for name, thing in sorted(registry.functions.items()):
        if usable(name) and not name.startswith("_") and callable(thing):
            out.append(definition(name, thing, {"bool", "int", "float", "dtype", "device", "layout"}, method=False))
    return "\n".join(out) + "\n"


def main():
    stubs = {PACKAGE / "_native.pyi": native_stub(), PACKAGE / "__init__.pyi": package_stub()}
    stale = [str(path.name) for path, text in stubs.items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv:
        if stale:
            sys.exit(f"not up to date: {', '.join(stale)}; run python tools/make_stubs.py")
        return
    for path, text in stubs.items():
        path.write_text(text)
    print(f"wrote {', '.join(map(str, stubs))} for cresset {cresset.__version__}")


if __name__ == "__main__":
    main()
