"""An averager with small groups that average often, and larger ones that average seldom."""

from collections import OrderedDict

from ...world import default_group, get_world_size, new_subgroups
from . import averagers, utils

__all__ = ["HierarchicalModelAverager"]


class HierarchicalModelAverager(averagers.ModelAverager):
    """Average in groups of several sizes, each every so many steps; where several are due, in the largest.

    Args:
        period_group_size_dict: an ordered dictionary from steps to the size of the groups, small ones first; the last
            one is the group of all.
        warmup_steps: steps before the first.
        process_group: the processes; None is all.
    """

    def __init__(self, period_group_size_dict=None, warmup_steps=0, process_group=None):
        super().__init__(process_group)
        if not period_group_size_dict:
            raise ValueError("Arg ``period_group_size_dict`` must not be empty.")
        self._periods = list(period_group_size_dict)
        if self._periods[0] <= 0:
            raise ValueError("The minimum period in arg ``period_group_size_dict`` must be a positive value.")
        sizes, world = list(period_group_size_dict.values()), get_world_size(self.process_group)
        if sizes[-1] != world:
            raise ValueError(
                f"The last value in arg ``period_process_group_dict`` {sizes[-1]} must be equal to the size of arg "
                f"``process_group`` {world}."
            )
        if any(a >= b for a, b in zip(self._periods, self._periods[1:])) or any(
            a >= b for a, b in zip(sizes, sizes[1:])
        ):
            raise ValueError(f"HierarchicalModelAverager: periods and sizes must grow: {dict(period_group_size_dict)}")
        self.period_process_group_dict = OrderedDict()
        for period, size in period_group_size_dict.items():
            if size == world:
                self.period_process_group_dict[period] = self.process_group or default_group("averager")
            else:
                self.period_process_group_dict[period], _ = new_subgroups(group_size=size, group=self.process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        self.warmup_steps = warmup_steps

    def _find_process_group(self):
        """The largest group that is due, or None."""
        for period in reversed(self._periods):
            if self.step % period == 0:
                return self.period_process_group_dict[period]
        return None

    def average_parameters(self, params):
        if self.step >= self.warmup_steps and (group := self._find_process_group()) is not None:
            utils.average_parameters_or_parameter_groups(params, group)
        self.step += 1
