"""Hooks that step an optimizer for each bucket as soon as its gradients are averaged."""

import functools

import cresset

__all__: list[str] = []


class _OptimizerHookState:
    """An optimizer with `step_param(parameter, gradient)`, and the parameters that it steps; all if None."""

    __slots__ = ["functional_optimizer", "params_to_optimize"]

    def __init__(self, functional_optim, params=None):
        if not hasattr(functional_optim, "step_param"):
            raise ValueError(f"Class {type(functional_optim)} must implement method step_param.")
        self.functional_optimizer = functional_optim
        self.params_to_optimize = None if params is None else set(params)


def _hook_then_optimizer(hook, optimizer_state):
    """A hook that does what another one does, then steps the bucket's parameters."""

    @functools.wraps(hook)
    def exchange_and_step(hook_state, bucket):
        def step(done):
            value = done.value()
            bucket.buffer().copy_(value[0] if isinstance(value, (list, tuple)) else value)
            with cresset.no_grad():
                for gradient, parameter in zip(bucket.gradients(), bucket.parameters(), strict=True):
                    if optimizer_state.params_to_optimize is None or parameter in optimizer_state.params_to_optimize:
                        optimizer_state.functional_optimizer.step_param(parameter, gradient)
            return bucket.buffer()

        return hook(hook_state, bucket).then(step)

    return exchange_and_step
