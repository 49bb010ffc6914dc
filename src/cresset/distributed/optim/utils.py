"""Optimizers that are given gradients, in place of reading them from the parameters."""

import cresset

__all__ = ["as_functional_optim", "register_functional_optim"]


class _FunctionalOptimizer:
    """An optimizer of the usual kind, stepped with gradients that are given.

    Args:
        optimizer_class: what is stepped; further arguments are its own.
    """

    def __init__(self, optimizer_class, params, *args, _allow_empty_param_list=False, **kwargs):
        params = list(params)
        if not params and not _allow_empty_param_list:
            raise ValueError("optimizer got an empty parameter list")
        self._optimizer = optimizer_class([{"params": params}], *args, **kwargs)
        self.param_group, self.state = self._optimizer.param_groups[0], self._optimizer.state

    def step(self, gradients):
        """Step all parameters.

        Args:
            gradients: one for each, or None.
        """
        params = self.param_group["params"]
        if len(gradients) != len(params):
            raise ValueError(
                "the gradients passed in does not equal to the size of the parameters!"
                f"Params length: {len(params)}. Gradients length: {len(gradients)}"
            )
        self._step(params, gradients)

    def step_param(self, param, grad):
        """Step one parameter, which may be a new one."""
        if not any(param is known for known in self.param_group["params"]):
            self.param_group["params"].append(param)
        self._step([param], [grad])

    def _step(self, params, gradients):
        params, before = list(params), [p.grad for p in self.param_group["params"]]
        try:
            for p in self.param_group["params"]:
                p.grad = None
            for p, gradient in zip(params, gradients, strict=True):
                p.grad = gradient
            self._optimizer.step()
        finally:
            for p, gradient in zip(self.param_group["params"], before, strict=True):
                p.grad = gradient


def _functional(optimizer_class):
    class Functional(_FunctionalOptimizer):
        __doc__ = f"{optimizer_class.__name__}, stepped with gradients that are given."

        def __init__(self, params, *args, **kwargs):
            super().__init__(optimizer_class, params, *args, **kwargs)

    Functional.__name__ = Functional.__qualname__ = f"_Functional{optimizer_class.__name__}"
    return Functional


functional_optim_map = {
    kind: _functional(kind)
    for kind in (
        cresset.optim.Adagrad, cresset.optim.Adam, cresset.optim.AdamW, cresset.optim.SGD, cresset.optim.Adadelta,
        cresset.optim.RMSprop, cresset.optim.Rprop, cresset.optim.Adamax,
    )
}  # fmt: skip


def register_functional_optim(key, optim):
    """Add a class of optimizers that are given gradients, for as_functional_optim.

    Args:
        key: by what it is asked for: an optimizer's class, or a name.
        optim: called as optim([], *args, **kwargs, _allow_empty_param_list=True).
    """
    functional_optim_map.setdefault(key, optim)


def as_functional_optim(optim_cls, *args, **kwargs):
    """An optimizer like `optim_cls(params, *args, **kwargs)` without parameters, to be stepped with `step_param`."""
    if optim_cls not in functional_optim_map:
        raise ValueError(f"Optimizer {optim_cls} does not have a functional counterpart!")
    return functional_optim_map[optim_cls]([], *args, **kwargs, _allow_empty_param_list=True)
