"""Text: Python's methods, under TorchScript's names."""

import re


def to_text(value):
    """How a program's `str`, `format` and `print` show a value: text inside lists has no quotes, floats have all their
    digits.
    """
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, tuple):
        inside = ", ".join(map(to_text, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, list):
        return f"[{', '.join(map(to_text, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{to_text(key)}: {to_text(item)}" for key, item in value.items()) + "}"
    return str(value)


def float_text(value):
    """17 digits, and a dot behind a whole number: what C++ prints, and what source reads back exactly."""
    text = f"{value:.17g}"
    return f"{text}." if re.fullmatch(r"-?\d+", text) else text


def formatted(pattern, *values):
    """`str.format` with plain fields."""
    parts = pattern.split("{}")
    if len(parts) - 1 != len(values):
        few = "few" if len(parts) - 1 > len(values) else "many"
        raise RuntimeError(f"Too {few} arguments for format string: {pattern}")
    return parts[0] + "".join(to_text(value) + part for value, part in zip(values, parts[1:], strict=True))


# What TorchScript calls the kinds of values.
_KINDS = {str: "String", list: "GenericList", dict: "GenericDict", tuple: "Tuple", type(None): "None", float: "Double"}


def percent_format(pattern, values):
    """The `%` of text; several values are a tuple. Fields have neither width nor precision."""
    given = iter(values if isinstance(values, tuple) else (values,))
    text, *fields = pattern.split("%")
    at = 0
    while at < len(fields):
        field, at = fields[at], at + 1
        if not field:
            if at == len(fields):
                raise RuntimeError(f"Incomplete format specifier in {pattern!r}")
            text, at = f"{text}%{fields[at]}", at + 1
            continue
        value = next(given, given)
        if value is given:
            raise RuntimeError(f"Too few arguments for format string: {pattern!r}")
        text += _field(field[0], value) + field[1:]
    if next(given, given) is not given:
        raise RuntimeError(f"Too many arguments for format string: {pattern!r}")
    return text


def _field(specifier, value):
    """One value in a format string."""
    if specifier == "s":
        return to_text(value)
    if specifier not in "dieEfFc":
        raise RuntimeError(f"The specifier %{specifier} is not supported in TorchScript format strings")
    if specifier == "c":
        if isinstance(value, int) or (isinstance(value, str) and len(value) == 1):
            return f"{value:c}" if isinstance(value, int) else value
        wanted = "an int or char"
    elif isinstance(value, (int, float)):
        return str(int(value)) if specifier in "di" else f"{value:{specifier}}"
    else:
        wanted = "a number"
    kind = _KINDS.get(type(value), type(value).__name__)
    raise RuntimeError(f"%{specifier} requires {wanted} for formatting, but got {kind}")


def show(*values):
    """`print`."""
    print(*map(to_text, values))


def _slice(text, start=None, end=None, step=1):
    return text[slice(start, end, step)]


def _bounded(name):
    """find and its relatives, whose end of -1 means the end."""

    def method(text, part, start=0, end=-1):
        return getattr(text, name)(part, start, len(text) if end == -1 else end)

    return method


def _method(name):
    def method(text, *arguments):
        return getattr(text, name)(*arguments)

    return method


def _split(text, separator=None, most=-1):
    return text.split(separator, most)


def _index(text, index):
    if not -len(text) <= index < len(text):
        raise RuntimeError("string index out of range")
    return text[index]


def warn(message, stacklevel=2):
    """`warnings.warn` of a program."""
    import warnings

    warnings.warn(message, UserWarning, stacklevel=stacklevel)


builtins = {
    **{f"aten::{name}": _method(name) for name in ("capitalize", "center", "expandtabs", "isalnum", "isalpha",
        "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric", "isprintable", "isspace", "istitle", "isupper",
        "ljust", "lower", "lstrip", "partition", "replace", "rjust", "rpartition", "rstrip", "splitlines", "strip",
        "swapcase", "title", "upper", "zfill", "encode", "casefold")},
    **{f"aten::{name}": _bounded(name) for name in ("count", "endswith", "find", "index", "rfind", "rindex")},
    "aten::startswith": _bounded("startswith"), "aten::join": lambda text, items: text.join(items),
    "aten::split": _split, "aten::rsplit": lambda text, separator=" ", most=-1: text.rsplit(separator, most),
    "aten::format": formatted, "aten::percentFormat": percent_format, "aten::str": to_text, "prim::Print": show,
    "prim::StringIndex": _index, "aten::__getitem__": _index,
    "aten::slice": _slice, "aten::warn": warn,
}  # fmt: skip
