"""torch.utils._contextlib: `with` blocks that are decorators too, as packages derive theirs from."""

from ..autograd.grad_mode import ModeContext as _DecoratorContextManager  # noqa: F401
from ..autograd.grad_mode import PlainModeContext as _NoParamDecoratorContextManager  # noqa: F401
from ..autograd.grad_mode import run_inside


def context_decorator(ctx, func):
    """`func`, each call of it inside a `with` block.

    Args:
        ctx: what makes the block at each call: a class, a function, or one block that can be entered again and again.
    """
    if hasattr(ctx, "__enter__") and not isinstance(ctx, type):
        if callable(ctx):
            raise AssertionError(f"context_decorator: {ctx!r} is a block and can be called, too; which is meant?")
        return run_inside(lambda: ctx, func)
    return run_inside(ctx, func)
