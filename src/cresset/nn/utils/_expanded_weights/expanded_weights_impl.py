"""A parameter whose gradient is kept sample by sample.

Layers compute with an ExpandedWeight as with the parameter itself. Backward then runs the layer's derivative for each
sample, all at once by vmap, and puts the gradients into `grad_sample` of the parameter, the samples first. Only
functions that treat samples one by one can do that: those in HANDLED_FUNCTIONS, which layers.py fills.
"""

import cresset

from ....overrides import DisableTorchFunction

HANDLED_FUNCTIONS = {}  # function -> what is called in its place: apply(names of the last values, function, *values)


def implements_per_sample_grads(torch_function):
    """Decorates the `autograd.Function` that stands for a function where an ExpandedWeight is among its arguments.

    Its `apply` gets the names of the keyword arguments, the function, and the values, those of keywords last.
    """

    def register(autograd_function):
        HANDLED_FUNCTIONS[torch_function] = autograd_function
        return autograd_function

    return register


class ExpandedWeight(cresset.Tensor):
    """A parameter in the place of which layers record what backward needs for each sample's gradient.

    Args:
        orig_weight: the parameter, which gets `grad_sample`.
        batch_size: how many samples there are.
        loss_reduction: "sum" or "mean" over the samples; gradients of a mean are multiplied with their number.
    """

    handled_functions = HANDLED_FUNCTIONS

    def __new__(cls, orig_weight, batch_size, loss_reduction):
        if not isinstance(orig_weight, cresset.Tensor):
            raise RuntimeError(f"Can only make Expanded Weights of Tensors, got {type(orig_weight).__name__}")
        if not orig_weight.requires_grad:
            raise RuntimeError("Can only build ExpandedWeights objects of tensors that require_grad")
        return cresset.Tensor._make_subclass(cls, orig_weight, True)

    def __init__(self, orig_weight, batch_size, loss_reduction):
        self.orig_weight, self.batch_size, self.loss_reduction = orig_weight, batch_size, loss_reduction

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in HANDLED_FUNCTIONS:
            return HANDLED_FUNCTIONS[func].apply(tuple(kwargs), func, *args, *kwargs.values())
        if getattr(func, "__name__", "") == "__get__":  # what a tensor is: its shape, its dtype
            with DisableTorchFunction():
                return func(*args, **kwargs)
        raise RuntimeError(f"Expanded Weights encountered but cannot handle function {func.__name__}")
