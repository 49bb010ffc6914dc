"""Variable, PyTorch's older name for Tensor."""

import warnings

from cresset import _native
from cresset._native import Tensor


class ExecutionEngine:
    """What distributed training asks of the engine while it runs."""

    @staticmethod
    def queue_callback(callback):
        """Call `callback()` at the end of the backward that is running."""
        _native.after_backward(callback)


class VariableMeta(type):
    def __instancecheck__(cls, other):
        return isinstance(other, Tensor)


class Variable(metaclass=VariableMeta):
    """`Variable(tensor, requires_grad)` gives the tensor; every tensor is a Variable.

    >>> isinstance(cresset.ones(1), cresset.autograd.Variable)
    True
    """

    _execution_engine = ExecutionEngine()

    def __new__(cls, data, requires_grad=False, volatile=None):
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if volatile:
            warnings.warn(
                "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.", stacklevel=2
            )
        return data.detach().requires_grad_(requires_grad)
