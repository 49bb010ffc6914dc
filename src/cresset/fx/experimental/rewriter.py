"""Tracing where the source of a function is changed first: what a trace cannot hold becomes a call that it can.

`assert` becomes torch._assert, and `y: Kind = f(x)` becomes `y = annotate(f(x), Kind)`, with the `annotate` that the
function's module has.
"""

import ast
import copy
import functools
import inspect
import types

from ...nn.module import Module
from .._symbolic_trace import Tracer

__all__ = ["AST_Rewriter", "RewritingTracer"]


class AST_Rewriter(ast.NodeTransformer):  # noqa: N801  PyTorch's name
    """Changes the source of a function. A `visit_…` method of a subclass says what becomes of a kind of node."""

    def rewrite(self, fn):
        """The function that the changed source defines, with the same globals, defaults and closure."""
        function = inspect.unwrap(fn)
        function = getattr(function, "__func__", function)
        definition = _definition(inspect.getsource(function))
        definition.decorator_list = []  # they have done their work on the function that is there
        tree = ast.fix_missing_locations(self.visit(ast.Module([definition], [])))
        free = function.__code__.co_freevars
        code = compile(_inside_of(tree, free), inspect.getfile(function), "exec", dont_inherit=True)
        body = _code_of(code, definition.name, free)
        made = types.FunctionType(
            body, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        functools.update_wrapper(made, function)
        del made.__wrapped__  # it would lead to the source before the change
        made.__kwdefaults__ = copy.copy(function.__kwdefaults__)
        return made

    def visit_Assert(self, node):  # noqa: N802
        """`assert test, message` as a call."""
        call = ast.parse("__import__('cresset')._assert()", mode="eval").body  # the module may call us anything
        call.args = [node.test, node.msg or ast.Constant(value="")]
        return ast.copy_location(ast.Expr(value=call), node)

    def visit_AnnAssign(self, node):  # noqa: N802
        """`name: Kind = value` as `name = annotate(value, Kind)`."""
        if node.value is None:
            return node
        call = ast.Call(func=ast.Name(id="annotate", ctx=ast.Load()), args=[node.value, node.annotation], keywords=[])
        return ast.copy_location(ast.Assign(targets=[node.target], value=call), node)


def _definition(source):
    """The definition that a piece of source has, whether it is indented or not; text in it may be on other columns."""
    return ast.parse(f"if True:\n{source}").body[0].body[0] if source[0].isspace() else ast.parse(source).body[0]


def _inside_of(tree, free):
    """The definition inside of a function that has the free names, so that they are compiled as such."""
    if not free:
        return tree
    shell = ast.parse(f"def _shell({', '.join(free)}): pass")
    shell.body[0].body = tree.body
    return ast.fix_missing_locations(shell)


def _code_of(code, name, free):
    """The code of the function called `name`; its free names in the order of `free`, as its closure has them."""
    pending = [code]
    while pending:
        part = pending.pop()
        if part.co_name == name and part is not code:
            if part.co_freevars != free:
                raise RuntimeError(f"AST_Rewriter: {name} has other free names when rewritten: {part.co_freevars}")
            return part
        pending += [inner for inner in part.co_consts if isinstance(inner, types.CodeType)]
    raise RuntimeError(f"AST_Rewriter: the source of {name} does not define it")


class RewritingTracer(Tracer):
    """A Tracer of the rewritten function, or of the module with its forward (and those of its children) rewritten.

    Plain tracing cannot look into `assert x.sum() > 0` (TraceError); here it is a call of torch._assert.
    """

    def trace(self, root, concrete_args=None):
        """The graph, in which asserts are nodes."""
        return super().trace(_rewrite(root), concrete_args)


def _rewrite(fn):
    return _rewritten_module(fn) if isinstance(fn, Module) else AST_Rewriter().rewrite(fn)


def _rewritten_module(module):
    """A module with the same attributes whose forward is rewritten, as are those of modules kept as attributes."""

    class RewrittenModule(Module):
        def __init__(self, original):
            super().__init__()
            for name, value in vars(original).items():
                self.__dict__[name] = copy.copy(_rewritten_module(value) if isinstance(value, Module) else value)

    RewrittenModule.forward = AST_Rewriter().rewrite(module.forward)
    return RewrittenModule(module)
