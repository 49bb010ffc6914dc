"""Optimizers that step a parameter as soon as its gradient is there."""

__all__: list[str] = []


def _apply_optimizer_in_backward(optimizer_class, params, optimizer_kwargs, register_hook=True):
    """Let each parameter have an optimizer of its own that steps while backward runs; its gradient is gone after that.
    In a DistributedDataParallel made later it steps when the gradient is averaged.

    Args:
        register_hook: step when the gradient is there; without, somebody else does.
    """
    for parameter in params:
        if not hasattr(parameter, "_in_backward_optimizers"):
            parameter._in_backward_optimizers, parameter._optimizer_hook_handles = [], []
            parameter._optimizer_classes, parameter._optimizer_kwargs = [], []
        parameter._in_backward_optimizers.append(optimizer_class([parameter], **optimizer_kwargs))
        parameter._optimizer_classes.append(optimizer_class)
        parameter._optimizer_kwargs.append(optimizer_kwargs)
        if register_hook and not parameter._optimizer_hook_handles:
            parameter._optimizer_hook_handles.append(parameter.register_post_accumulate_grad_hook(_step))


def _step(parameter):
    for optimizer in parameter._in_backward_optimizers:
        optimizer.step()
    parameter.grad = None


def _get_in_backward_optimizers(module):
    """The optimizers of a model's parameters that step while backward runs."""
    return [one for parameter in module.parameters() for one in getattr(parameter, "_in_backward_optimizers", [])]
