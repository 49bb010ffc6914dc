"""An optimizer that averages the models of the processes now and then."""

import warnings

from ...optim import Optimizer

__all__ = ["PostLocalSGDOptimizer"]


class PostLocalSGDOptimizer(Optimizer):
    """Step with an optimizer, then let an averager average the parameters.

    Args:
        optim: the optimizer.
        averager: a ModelAverager, which knows how often.
    """

    def __init__(self, optim, averager):
        self.optim, self.averager = optim, averager
        self.param_groups, self.defaults = optim.param_groups, optim.defaults
        self._make_hooks()

    @property
    def state(self):
        """The optimizer's."""
        return self.optim.state

    def __repr__(self):
        return repr(self.optim)

    def state_dict(self):
        """The optimizer's, with the averager's step count under "step"."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict):
        self.optim.load_state_dict(state_dict)
        self.param_groups = self.optim.param_groups
        if "step" in state_dict:
            self.averager.step = state_dict["step"]
        else:
            warnings.warn(
                "Loaded state dict does not contain a step counter for an averager. Setting step counter to 0.",
                stacklevel=2,
            )
            self.averager.step = 0

    def step(self, closure=None):
        loss = self.optim.step(closure)
        self.averager.average_parameters(params=self.param_groups)
        return loss

    def zero_grad(self, set_to_none=True):
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group):
        self.optim.add_param_group(param_group)
