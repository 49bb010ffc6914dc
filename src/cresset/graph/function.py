"""A function of a program: its signature, with types, and its graph."""

import json
import re

from .types import AnyType, TupleType


class Argument:
    """A parameter of a function. `has_default` says whether `default_value` is one (None may be one); a single value
    stands for a list of `broadcast`.
    """

    __slots__ = ("broadcast", "default_value", "has_default", "kwarg_only", "name", "type")

    def __init__(self, name, type, default_value=None, has_default=False, kwarg_only=False, broadcast=None):
        self.name, self.type, self.default_value = name, type, default_value
        self.has_default, self.kwarg_only, self.broadcast = has_default, kwarg_only, broadcast

    def has_default_value(self):
        return self.has_default

    def __str__(self):
        return f"{_type(self.type)} {self.name}" + (f"={_default(self.default_value)}" if self.has_default else "")


def _type(type):
    """A type as signatures print it: as graphs do, but for what is still being computed, Future(int)."""
    text = str(type)
    while (found := re.search(r"\b(?:Future|Await)\[", text)) is not None:
        depth, end = 1, found.end()
        while depth:
            depth += {"[": 1, "]": -1}.get(text[end], 0)
            end += 1
        text = f"{text[: found.end() - 1]}({text[found.end() : end - 1]}){text[end:]}"
    return text


def _default(value):
    """A default as signatures print it: 2. for 2.0, with all digits of a number, and text in double quotes."""
    if isinstance(value, float):
        text = f"{value:.17g}"
        return f"{text}." if text.lstrip("-").isdigit() else text
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (list, tuple)):
        inside = ", ".join(map(_default, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return repr(value)


class FunctionSchema:
    """A function's parameters (the first is `self` for a method) and the type of its result."""

    __slots__ = ("arguments", "name", "overload_name", "returns")

    def __init__(self, name, arguments, returns, overload_name=""):
        self.name, self.arguments, self.returns, self.overload_name = name, list(arguments), returns, overload_name

    def __str__(self):
        parts, star = [], False
        for argument in self.arguments:
            if argument.kwarg_only and not star:
                parts.append("*")
                star = True
            parts.append(str(argument))
        returns = f"({_type(self.returns)})" if isinstance(self.returns, TupleType) else _type(self.returns)
        return f"{self.name}({', '.join(parts)}) -> {returns}"

    __repr__ = __str__


class Function:
    """A compiled function or method.

    Args:
        qualified_name: `__torch__.package.name`; of a method `__torch__.package.Class.name`.
        schema: parameters and result; None as long as it is being compiled without a declared result.
        graph: None for a method of an interface and for one that Python runs.
        owner: the ClassType of a method.
        python: the Python function behind a call that leaves the graph (`@torch.jit.ignore`), else None.
    """

    __slots__ = (
        "__weakref__",
        "_compile",
        "docstring",
        "graph",
        "original",
        "owner",
        "plan",
        "python",
        "qualified_name",
        "schema",
    )

    def __init__(self, qualified_name, schema=None, graph=None, owner=None, python=None, compile=None, original=None):
        self.qualified_name, self.schema, self.graph, self.owner, self.python = (
            qualified_name,
            schema,
            graph,
            owner,
            python,
        )
        self._compile = compile  # fills in schema and graph, when they are first needed
        self.original = original  # the Python function it was compiled from
        self.docstring = None
        self.plan = None  # what the interpreter made of the graph

    @property
    def name(self):
        return self.qualified_name.rpartition(".")[2]

    def ensure_defined(self):
        """Compile it, if that was put off."""
        if self._compile is not None:
            compile, self._compile = self._compile, None
            try:
                compile(self)
            except BaseException:
                self._compile = compile
                raise
            from . import inline  # which asks this module

            if inline.everywhere and self.graph is not None:
                inline.inline_calls(self)
        return self

    @property
    def result_type(self):
        return self.schema.returns if self.schema is not None else AnyType()

    def __repr__(self):
        return f"<Function {self.qualified_name}>"
