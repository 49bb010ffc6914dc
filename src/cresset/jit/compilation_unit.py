"""torch.jit.CompilationUnit: functions from text. Names in it are operators, Python's types, and the text's own
functions; nothing of the program around it.
"""

import ast
import textwrap

from ..graph.function import Function
from ..graph.source import Source
from .compiling import sugar
from .compiling.archive import ArchiveCompiler, Names
from .compiling.functions import Definition, compile_into
from .objects import ScriptFunction


class _TextNames(Names):
    def __init__(self, functions):
        super().__init__()
        self.functions = functions

    def meaning(self, name):
        return sugar.Compiled(self.functions[name]) if name in self.functions else super().meaning(name)


class CompilationUnit:
    """Functions compiled from text.

    >>> unit = torch.jit.CompilationUnit("def twice(x: Tensor) -> Tensor:\\n    return x + x")
    >>> unit.twice(torch.ones(1))
    tensor([2.])
    """

    def __init__(self, lang=None):
        self._functions, self._scripted = {}, {}
        if lang is not None:
            self.define(lang)

    def define(self, lang):
        """Add the functions of a text."""
        lang = textwrap.dedent(lang)
        source = Source(lang)
        try:
            tree = ast.parse(lang)
        except SyntaxError as problem:
            raise RuntimeError(f"CompilationUnit: the text cannot be read: {problem}") from None
        unit, names = ArchiveCompiler(lambda package: None), _TextNames(self._functions)
        added = {}
        for one in tree.body:
            if not isinstance(one, ast.FunctionDef):
                raise RuntimeError(f"CompilationUnit: a text holds functions, not a {type(one).__name__}")
            definition = Definition(one, source, names)
            added[one.name] = Function(
                f"__torch__.{one.name}",
                compile=lambda function, definition=definition: compile_into(unit, function, definition, loose=True),
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
