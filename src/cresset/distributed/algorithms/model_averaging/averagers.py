"""Averagers, which know how often models are averaged."""

import abc
import warnings

from ...world import member_of
from . import utils

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager(abc.ABC):
    """What averages the parameters of several processes.

    Args:
        process_group: the processes; None is all.
    """

    def __init__(self, process_group=None):
        self.process_group = member_of(process_group, type(self).__name__)
        self.step = 0

    @abc.abstractmethod
    def average_parameters(self, params):
        """Called after each step; averages when it is time."""


class PeriodicModelAverager(ModelAverager):
    """Average every `period` steps.

    Args:
        period: how many steps; 1 averages each time.
        warmup_steps: steps before the first.
    """

    def __init__(self, period, warmup_steps=0, process_group=None):
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            warnings.warn(
                "When period is 1, no need to use model averaging because the communication cost of all-reducing "
                "parameters will be no less than the cost of all-reducing gradients by DistributedDataParallel in the "
                "backward pass. Therefore, only DistributedDataParallel should be used for this case.",
                stacklevel=2,
            )
        self.period, self.warmup_steps = period, warmup_steps

    def average_parameters(self, params):
        if self.step >= self.warmup_steps and (self.step - self.warmup_steps) % self.period == 0:
            utils.average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
