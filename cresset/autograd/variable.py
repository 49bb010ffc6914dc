"""Variable, PyTorch's older name for Tensor."""

from cresset._native import Tensor


class VariableMeta(type):
    def __instancecheck__(cls, other):
        return isinstance(other, Tensor)


class Variable(metaclass=VariableMeta):
    """`Variable(tensor, requires_grad)` gives the tensor; every tensor is a Variable.

    >>> isinstance(cresset.ones(1), cresset.autograd.Variable)
    True
    """

    def __new__(cls, data, requires_grad=False, volatile=None):
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)
