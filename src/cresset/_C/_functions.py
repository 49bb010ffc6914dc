"""torch._C._functions: nodes of the graph that programs name by their class, and two to try graphs with."""

from .. import _native
from ..autograd.function import Function
from ..autograd.gradcheck import Unused

AccumulateGrad = _native.node_class("AccumulateGrad")


class _Failing(Function):
    @staticmethod
    def forward(ctx, message, *tensors):
        ctx.message = message
        return tuple(tensor.clone() for tensor in tensors)

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError(ctx.message)


class UndefinedGrad:
    """The identity, whose gradient is None."""

    def __call__(self, tensor):
        return Unused.apply(tensor)


class DelayedError:
    """The identity of `num_inputs` tensors, whose backward raises a RuntimeError with this message."""

    def __init__(self, msg, num_inputs):
        self.msg, self.num_inputs = msg, num_inputs

    def __call__(self, *tensors):
        if len(tensors) != self.num_inputs:
            raise RuntimeError(f"DelayedError: made for {self.num_inputs} tensors, got {len(tensors)}")
        results = _Failing.apply(self.msg, *tensors)
        return results[0] if len(results) == 1 else results
