"""Stubs of native operators, one @overload a signature, and of Python functions that the tables of operators hold."""

import inspect
import re

from cresset.ops import registry

from .words import OF_DEFAULTS, OF_SCHEMAS, is_usable, safe

_KNOWN = {
    "Tensor",
    "int",
    "float",
    "bool",
    "str",
    "None",
    "Any",
    "tuple",
    "list",
    "dict",
    "Sequence",
    "Callable",
    "Iterable",
    "Iterator",
    "Generator",
}


def type_text(kind, numbers=False):
    """The Python type of a signature's parameter type, for instance `int[1]?`."""
    optional = kind.endswith("?")
    base, bracket, rest = kind.rstrip("?").partition("[")
    text = OF_SCHEMAS[base.rstrip("?")]
    if base == "Tensor" and numbers and not bracket:
        text = OF_SCHEMAS["Operand"]
    if bracket:
        element = f"{text} | None" if base.endswith("?") else text
        text = f"Sequence[{element}]"
        if rest.rstrip("]").isdigit():  # int[2]: one integer stands for several
            text = f"{element} | {text}"
    return text + (" | None" if optional else "")


def result_text(results, named):
    """The Python type of a signature's results; `named` collects the named tuples that are needed."""
    results = results.strip()
    if not results.startswith("("):
        return (
            f"tuple[{OF_SCHEMAS['Tensor']}, ...]"
            if results == "Tensor[]"
            else {"()": "None"}.get(results) or OF_SCHEMAS[results]
        )
    parts = [part.split() for part in results[1:-1].split(",") if part.strip()]
    if not parts:
        return "None"
    types = [type_text(part[0]) if part[0] != "Tensor[]" else "tuple[Tensor, ...]" for part in parts]
    if all(len(part) == 2 for part in parts):
        names = tuple(part[1] for part in parts)
        if all(map(is_usable, names)):
            named[names] = types
            return tuple_name(names)
    return f"tuple[{', '.join(types)}]"


class Operators:
    """Prints operators and functions of the tables. Collects the named tuples that their results are."""

    def __init__(self, pointwise):
        self.pointwise = pointwise  # names of the operators that take numbers for tensors
        self.named = {}

    def overload(self, text, method, takes_out):
        """The parameters and the result of one signature, as forms: with a list, and with the integers one by one."""
        name = text[: text.index("(")].partition(".")[0]
        pieces, results = registry._pieces(text)
        numbers = name.rstrip("_") in self.pointwise
        forms, keyword_only = [[]], False
        for number, piece in enumerate(pieces):
            if piece == "*":
                keyword_only = True
                forms = [form if any(p.startswith("*") for p in form) else [*form, "*"] for form in forms]
                continue
            kind, _, rest = piece.partition(" ")
            parameter, _, default = rest.partition("=")
            if method and number == 0:
                forms = [["self"]]
                continue
            end = " = ..." if default else ""
            if kind == "int[...]":
                forms = [[*form, f"{safe(parameter)}: Sequence[_int]{end}"] for form in forms] + [
                    [*form, f"*{safe(parameter)}: _int"] for form in forms
                ]
            else:
                forms = [[*form, f"{safe(parameter)}: {type_text(kind, numbers)}{end}"] for form in forms]
        if takes_out and not method:
            count = results.count("Tensor")
            out = "Tensor | None" if not results.strip().startswith("(") or count < 2 else "tuple[Tensor, ...] | None"
            forms = [
                [*form, *([] if keyword_only or any(p.startswith("*") for p in form) else ["*"]), f"out: {out} = ..."]
                for form in forms
            ]
        result = result_text(results, self.named)
        return [f"({', '.join(form)}) -> {result}" for form in forms]

    def operator(self, name, operator, method=False):
        # Forms of old stay callable, but a type checker need not offer them.
        texts = [text for text in operator.signatures if ".older" not in text.partition("(")[0]]
        forms = [form for text in texts for form in self.overload(text, method, operator.takes_out)]
        forms = list(dict.fromkeys(forms))
        if len(forms) == 1:
            return [f"def {name}{forms[0]}: ..."]
        return [line for form in forms for line in ("@overload", f"def {name}{form}: ...")]

    def function(self, name, function, method=False):
        """A Python function by its signature. One of an operator's kind gives a Tensor unless it says otherwise."""
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            return [f"def {name}({'self, ' if method else ''}*args: Any, **kwargs: Any) -> Any: ..."]
        parts, star = [], False
        for number, p in enumerate(signature.parameters.values()):
            if p.default is not p.empty and (p.name.startswith("_") or method and p.name == "out"):
                continue  # of the inside; out= is the function's
            text = safe(p.name)
            if method and number == 0 and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                parts.append("self")
                continue
            if p.kind is p.VAR_POSITIONAL:
                text, star = "*" + text, True
            elif p.kind is p.VAR_KEYWORD:
                text = "**" + text
            elif p.kind is p.KEYWORD_ONLY and not star:
                parts.append("*")
                star = True
            parts.append(f"{text}: {annotated(p.annotation) or OF_DEFAULTS.get(type(p.default), 'Any')}")
            if p.default is not p.empty:
                parts[-1] += " = ..."
        result = annotated(signature.return_annotation)
        if result is None:
            result = "Tensor" if (getattr(function, "__module__", None) or "").startswith("cresset.ops") else "Any"
        return [f"def {name}({', '.join(parts)}) -> {result}: ..."]

    def named_in(self, lines):
        """The named tuples that lines of operators mention."""
        return sorted(
            name for name in map(tuple_name, self.named) if any(line.endswith(f"-> {name}: ...") for line in lines)
        )

    def named_tuples(self):
        for names, types in sorted(self.named.items()):
            yield f"class {tuple_name(names)}(NamedTuple):"
            yield from (f"    {name}: {text}" for name, text in zip(names, types))
            yield ""


def tuple_name(names):
    return "_" + "_".join(names)


def annotated(note):
    """An annotation as text a stub of operators can hold, or None where there is none or it names what is not known
    there.
    """
    if note is inspect.Parameter.empty:
        return None
    text = (
        "None"
        if note is None
        else note
        if isinstance(note, str)
        else getattr(note, "__name__", "Any")
        if isinstance(note, type)
        else str(note)
    )
    if not set(re.findall(r"[A-Za-z_]\w*", text)) <= _KNOWN:
        return "Any"
    return re.sub(r"\b(int|float|bool|str)\b", r"_\1", re.sub(r"\btuple\b(?!\[)", "tuple[Any, ...]", text))
