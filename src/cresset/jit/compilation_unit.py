"""torch.jit.CompilationUnit: functions from text."""

import ast
import builtins
import sys
import textwrap

import cresset

from ..graph.function import Function
from ..graph.source import Source
from .compiling import sugar
from .compiling.annotating import Lookup
from .compiling.archive import _NAMES
from .compiling.functions import Definition, compile_into
from .objects import ScriptFunction
from .scripting import unit


class _TextNames(Lookup):
    """What names mean in a text: its own functions, then what a frame of the program sees, then torch itself."""

    def __init__(self, functions, *tables):
        super().__init__(*tables, vars(builtins), {"torch": cresset}, _NAMES)
        self.functions = functions

    def meaning(self, name):
        return sugar.Compiled(self.functions[name]) if name in self.functions else None


class _Asked:
    """The names that a function finds: it gives None for others."""

    def __init__(self, find):
        self.find = find

    def __contains__(self, name):
        return self.find(name) is not None

    def __getitem__(self, name):
        return self.find(name)


def _parsed(text):
    try:
        return ast.parse(text, type_comments=True)
    except SyntaxError:
        return ast.parse(text)  # a comment that only looks like one of a type


class CompilationUnit:
    """Functions compiled from text. Names in it are the text's own functions, and what the program sees that makes the
    unit.

    >>> unit = torch.jit.CompilationUnit("def twice(x: Tensor) -> Tensor:\\n    return x + x")
    >>> unit.twice(torch.ones(1))
    tensor([2.])
    """

    def __init__(self, lang=None, _frames_up=0):
        self._functions, self._scripted = {}, {}
        if lang is not None:
            self.define(lang, _frames_up=_frames_up + 1)

    def define(self, lang, rcb=None, _frames_up=0):
        """Add the functions of a text.

        Args:
            rcb: what a name of the program means, as a function that gives None for names it does not know; without
                one, what the caller sees.
        """
        if rcb is None:
            frame = sys._getframe(_frames_up + 1)
            tables = (dict(frame.f_locals), frame.f_globals)
        else:
            tables = (_Asked(rcb),)
        lang = textwrap.dedent(lang)
        source = Source(lang)
        try:
            tree = _parsed(lang)
        except SyntaxError as problem:
            raise RuntimeError(f"CompilationUnit: the text cannot be read: {problem}") from None
        names = _TextNames(self._functions, *tables)
        added = {}
        for one in tree.body:
            if not isinstance(one, ast.FunctionDef):
                raise RuntimeError(f"CompilationUnit: a text holds functions, not a {type(one).__name__}")
            definition = Definition(one, source, names)
            added[one.name] = Function(
                f"__torch__.{one.name}",
                compile=lambda function, definition=definition: compile_into(unit, function, definition),
            )
        self._functions.update(added)
        for function in added.values():
            unit.defined(function)

    def __getattr__(self, name):
        if name.startswith("__") or name not in self.__dict__["_functions"]:
            raise AttributeError(f"'CompilationUnit' has no attribute '{name}'")
        if name not in self._scripted:
            self._scripted[name] = ScriptFunction(self._functions[name])
        return self._scripted[name]

    def find_function(self, name):
        """The function of this name, or None."""
        return getattr(self, name) if name in self._functions else None

    def get_functions(self):
        """All of them."""
        return [getattr(self, name) for name in self._functions]
