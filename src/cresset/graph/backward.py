"""Derivatives in a recording: what backward computes is recorded as the operators that it calls.

Function modes see what a program calls. Backward is called once and calls operators itself: it adds gradients up, sums
what was broadcast and copies what was written to. A dispatch mode sees these calls, below autograd, where an operator
that has a formula is already written as others.
"""

from ..utils._python_dispatch import TorchDispatchMode


class BackwardMode(TorchDispatchMode):
    """Hands the calls of a backward to a recorder."""

    def __init__(self, recorder):
        super().__init__()
        self.recorder = recorder

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return self.recorder.exactly(func, args, kwargs or {})


def record_grad(recorder, grad, args, kwargs):
    """`autograd.grad`, recorded. Its own recording for a further derivative is made in any case: only so are formulas
    made of operators.
    """
    with BackwardMode(recorder):
        found = grad(*args, **{**kwargs, "create_graph": True, "retain_graph": True})
    if kwargs.get("create_graph"):
        return found
    return tuple(None if gradient is None else recorder.without_history(gradient) for gradient in found)
