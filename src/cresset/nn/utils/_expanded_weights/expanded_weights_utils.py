"""What rules for expanded weights are made of: checked arguments, and the place for each sample's gradient."""

import cresset

from .expanded_weights_impl import ExpandedWeight

__all__ = [
    "forward_helper", "maybe_scale_by_batch_size", "set_grad_sample_if_exists", "standard_kwargs",
    "sum_over_all_but_batch_and_last_n", "unpack_expanded_weight_or_tensor",
]  # fmt: skip


def standard_kwargs(kwarg_names, expanded_args):
    """The values of a call, those of keywords last, as positions and {name: value}."""
    count = len(expanded_args) - len(kwarg_names)
    return expanded_args[:count], dict(zip(kwarg_names, expanded_args[count:], strict=True))


def forward_helper(func, expanded_args, expanded_kwargs):
    """`func` of these arguments, with the parameters themselves; the first is the input, its samples first."""
    _check(func, expanded_args[0], [*expanded_args, *expanded_kwargs.values()])
    args = [getattr(arg, "orig_weight", arg) for arg in expanded_args]
    return func(*args, **{name: getattr(arg, "orig_weight", arg) for name, arg in expanded_kwargs.items()})


def _check(func, input, values):
    who = f"in function {func.__name__}"
    if isinstance(input, ExpandedWeight):
        raise RuntimeError(
            "Expanded Weights do not support inputs that are also ExpandedWeights. "
            f"Input must be a Tensor, got {type(input).__name__} {who}"
        )
    if not isinstance(input, cresset.Tensor):
        raise RuntimeError(
            "Expanded Weights requires a Tensor as the first input to get the batch dimension, "
            f"got {type(input).__name__} {who}"
        )
    if input.dim() == 0:
        raise RuntimeError(f"Expanded Weights requires a batch dimension but got an input of size 0 {who}")
    if input.shape[0] == 0:
        raise RuntimeError(
            f"0 is not a valid batch size for Expanded Weights but got an input of shape {tuple(input.shape)} {who}"
        )
    weights = [value for value in values if isinstance(value, ExpandedWeight)]
    for weight in weights:
        if weight.batch_size != input.shape[0]:
            raise RuntimeError(
                "Expected ExpandedWeights to have batch size matching input but got "
                f"input batch size of {input.shape[0]} with ExpandedWeight of batch size {weight.batch_size}"
            )
        if weight.loss_reduction != weights[0].loss_reduction:
            raise RuntimeError(
                "Expected ExpandedWeights to all have the same loss_reduction argument but got one "
                f"with {weights[0].loss_reduction} and one with {weight.loss_reduction}"
            )


def maybe_scale_by_batch_size(grad_sample, expanded_weight):
    """The gradients of samples of a mean as those of the samples alone."""
    return grad_sample * expanded_weight.batch_size if expanded_weight.loss_reduction == "mean" else grad_sample


def set_grad_sample_if_exists(maybe_expanded_weight, per_sample_grad_fn):
    """Add `per_sample_grad_fn(parameter)` to `grad_sample` of the parameter behind an ExpandedWeight."""
    parameter = unpack_expanded_weight_or_tensor(maybe_expanded_weight)
    if isinstance(maybe_expanded_weight, ExpandedWeight):
        found = maybe_scale_by_batch_size(per_sample_grad_fn(parameter), maybe_expanded_weight)
        before = getattr(parameter, "grad_sample", None)
        parameter.grad_sample = found if before is None else before + found


def unpack_expanded_weight_or_tensor(maybe_expanded_weight, func=lambda x: x):
    """`func` of the parameter behind an ExpandedWeight, or of a tensor without gradient; None of what is no tensor."""
    if isinstance(maybe_expanded_weight, ExpandedWeight):
        return func(maybe_expanded_weight.orig_weight)
    if not isinstance(maybe_expanded_weight, cresset.Tensor):
        return None
    if maybe_expanded_weight.requires_grad:
        raise RuntimeError(
            "ExpandedWeights currently does not support a mixture of ExpandedWeight parameters and normal Parameters"
        )
    return func(maybe_expanded_weight)


def sum_over_all_but_batch_and_last_n(tensor, n_dims):
    """The sum over the dimensions between the first and the last `n_dims`.

    >>> from cresset.nn.utils._expanded_weights.expanded_weights_utils import sum_over_all_but_batch_and_last_n
    >>> sum_over_all_but_batch_and_last_n(cresset.ones(1, 2, 3, 4, 5), n_dims=2).shape
    torch.Size([1, 4, 5])
    """
    between = list(range(1, tensor.dim() - n_dims))
    return tensor.sum(between) if between else tensor
