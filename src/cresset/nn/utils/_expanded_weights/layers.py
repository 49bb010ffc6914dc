"""Functions of layers with expanded weights: each sample's gradient by vmap of the function's own derivative."""

import functools
import inspect

import cresset

from ....autograd import Function
from ....func import vjp, vmap
from ... import functional as F
from .expanded_weights_impl import ExpandedWeight, implements_per_sample_grads
from .expanded_weights_utils import (
    forward_helper,
    set_grad_sample_if_exists,
    standard_kwargs,
    unpack_expanded_weight_or_tensor,
)

# The functions of layers, each with the fewest dimensions of an input of several samples.
_BATCHED = {
    F.linear: 2, F.conv1d: 3, F.conv2d: 4, F.conv3d: 5, F.embedding: 2, F.layer_norm: 2, F.group_norm: 2,
    F.instance_norm: 2,
}  # fmt: skip


@functools.cache
def _signature(func):
    return inspect.signature(func if func is not F.linear else lambda input, weight, bias=None: None)


# Arguments that have a function write to others of its arguments.
_WRITE = {F.instance_norm: ("running_mean", "running_var"), F.embedding: ("max_norm",)}


class Layer:
    """What is called in the place of a layer's function."""

    @staticmethod
    def apply(kwarg_names, func, *values):
        args, kwargs = standard_kwargs(kwarg_names, values)
        arguments = _signature(func).bind(*args, **kwargs).arguments
        names, values = tuple(arguments), list(arguments.values())
        _check_dimensions(func, values)
        for value in values[1:]:
            unpack_expanded_weight_or_tensor(value)  # which refuses a parameter beside expanded ones
        places = [k for k, value in enumerate(values) if isinstance(value, cresset.Tensor)]
        given = (getattr(values[k], "orig_weight", values[k]) for k in places)
        return _PerSample.apply(func, names, values, places, *given)


def _check_dimensions(func, values):
    input = values[0]
    if not isinstance(input, cresset.Tensor) or isinstance(input, ExpandedWeight) or not input.dim():
        return  # which forward_helper refuses
    fewest = len(values[1]) + 1 if func is F.layer_norm else _BATCHED[func]
    if input.dim() < fewest:
        raise RuntimeError(
            f"Expanded Weights requires a batch dimension, but the input of {func.__name__} has the shape "
            f"{tuple(input.shape)}"
        )


class _PerSample(Function):
    """A function of a layer; backward gives its input's gradient as ever, and each weight those of all samples."""

    @staticmethod
    def forward(ctx, func, names, values, places, *given):
        ctx.func, ctx.names, ctx.values, ctx.places = func, names, values, places
        ctx.save_for_backward(*given)
        return forward_helper(func, [values[0]], dict(zip(names[1:], values[1:], strict=True)))

    @staticmethod
    def backward(ctx, slope):
        input, *others = ctx.saved_tensors
        weights = [k for k, place in enumerate(ctx.places) if isinstance(ctx.values[place], ExpandedWeight)]

        def layer(*tensors):
            arguments = dict(zip(ctx.names, ctx.values, strict=True))
            for place, tensor in zip(ctx.places, tensors, strict=True):
                arguments[ctx.names[place]] = tensor
            if arguments.get("use_input_stats", True):  # forward has written already
                arguments.update((name, None) for name in _WRITE.get(ctx.func, ()) if name in arguments)
            return ctx.func(arguments.pop(ctx.names[0]), **arguments)

        def of_sample(sample, slope):
            def by_weights(*chosen):
                tensors = [sample.unsqueeze(0), *others]
                for k, weight in zip(weights, chosen, strict=True):
                    tensors[k] = weight
                return layer(*tensors)

            return vjp(by_weights, *(others[k - 1] for k in weights))[1](slope.unsqueeze(0))

        gradients = [None] * (1 + len(others))
        if ctx.needs_input_grad[4]:
            (gradients[0],) = vjp(lambda x: layer(x, *others), input)[1](slope)
        for k, found in zip(weights, vmap(of_sample)(input, slope), strict=True):
            set_grad_sample_if_exists(ctx.values[ctx.places[k]], lambda _, found=found: found)
        return None, None, None, None, *gradients


for _function in _BATCHED:
    implements_per_sample_grads(_function)(Layer)
