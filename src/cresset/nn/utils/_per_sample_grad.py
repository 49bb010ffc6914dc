"""The gradients of each sample, from one backward."""

import functools

import cresset

from ...pytree import tree_leaves
from ._expanded_weights import ExpandedWeight

__all__ = ["call_for_per_sample_grads"]


def call_for_per_sample_grads(module, *, batch_size=None, loss_reduction="sum", batch_first=True):
    """The forward of a module; backward through its result gives each parameter the gradient of each sample, as
    `grad_sample`, the samples first, and no `grad`.

    Args:
        module: made of layers that treat samples one by one: linear and convolution layers, embeddings, and
            normalizations other than batch norms.
        batch_size: how many samples there are; by default what all tensors that it is called with have in common.
        loss_reduction: "sum" or "mean" over the samples; gradients of a mean are multiplied with their number.
        batch_first: whether samples are the first dimension, from which their number is taken, or the second.

    >>> from cresset.nn.utils._per_sample_grad import call_for_per_sample_grads
    >>> layer = cresset.nn.Linear(4, 3)
    >>> call_for_per_sample_grads(layer)(cresset.ones(5, 4)).sum().backward()
    >>> layer.weight.grad_sample.shape, layer.weight.grad
    (torch.Size([5, 3, 4]), None)
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")
    if not isinstance(module, cresset.nn.Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for name, parameter in module.named_parameters():
        if getattr(parameter, "grad_sample", None) is not None:
            raise RuntimeError(
                "Current Expanded Weights accumulates the gradients, which will be incorrect for multiple calls "
                f"without clearing gradients. Please clear out the grad_sample parameter of {name}"
            )

    @functools.wraps(module.forward)
    def forward(*args, **kwargs):
        from ...func import functional_call  # upward: the module with other parameters

        count = _batch_size(tree_leaves((args, kwargs)), 0 if batch_first else 1) if batch_size is None else batch_size
        parameters = {
            name: ExpandedWeight(parameter, count, loss_reduction) if parameter.requires_grad else parameter
            for name, parameter in module.named_parameters()
        }
        return functional_call(module, parameters, args, kwargs)

    return forward


def _batch_size(leaves, dim):
    sizes = [leaf.shape[dim] for leaf in leaves if isinstance(leaf, cresset.Tensor)]
    if not sizes:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs. They may not be pytree-able "
            "and so ExpandedWeights cannot compute the batch size from the inputs. Please specify it explicitly"
        )
    for size in sizes:
        if size != sizes[0]:
            raise RuntimeError(
                f"When computing batch size, found at least one input with batch size {sizes[0]} and one with batch "
                f"size {size}. Please specify it explicitly using the batch size kwarg in call_for_per_sample_grads"
            )
    return sizes[0]
