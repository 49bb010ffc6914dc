"""Join: training on processes that have different numbers of batches."""

import abc
import warnings
from dataclasses import dataclass

import cresset

from ...nn.parallel import DistributedDataParallel
from ..collectives import all_reduce
from ..world import get_rank

__all__ = ["Join", "JoinHook", "Joinable"]

MANY = 1000  # steps of others after which this process says that it waits


class JoinHook:
    """What a process does in the place of others' steps when it has no more batches, and at the end."""

    def main_hook(self):
        """Once for each step of the others."""

    def post_hook(self, is_last_joiner):
        """At the end.

        Args:
            is_last_joiner: whether this process was one of those that had the most batches.
        """


@dataclass
class _JoinConfig:
    """What a Join says to what it joins."""

    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config():
        """That of something outside of any Join."""
        return _JoinConfig(False, False, False)


class Joinable(abc.ABC):
    """What can be joined: it gives a hook, and names its device and group."""

    @abc.abstractmethod
    def __init__(self):
        super().__init__()
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @abc.abstractmethod
    def join_hook(self, **kwargs):
        """The hook for a Join with these arguments."""

    @property
    @abc.abstractmethod
    def join_device(self):
        """Where its collectives run."""

    @property
    @abc.abstractmethod
    def join_process_group(self):
        """The processes that take part."""


Joinable.register(DistributedDataParallel)  # a model stands below this floor


class ModelJoinHook(JoinHook):
    """A DistributedDataParallel without data takes part with zeros."""

    def __init__(self, model):
        self.model = model

    def main_hook(self):
        self.model._take_part_in_a_step()

    def post_hook(self, is_last_joiner):
        self.model._take_the_last_model(is_last_joiner)


class Join:
    """A context for loops that are longer in some processes than in others. Each process that leaves it early does what
    the hooks of the joined things say, once for every step of the others, until all have come.

    Args:
        joinables: things whose steps are made of collectives: models in several processes, optimizers over them. The
            first of them says in each step that its process goes on.
        enable: False for loops of one length: nothing is checked.
        throw_on_early_termination: raise an error in every process as soon as one is done.
        kwargs: for the hooks.
    """

    def __init__(self, joinables, enable=True, throw_on_early_termination=False, **kwargs):
        if len(joinables) == 0:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables, self._enable, self._throws = joinables, enable, throw_on_early_termination
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        groups = {joinable.join_process_group for joinable in joinables}
        if len(groups) > 1:
            raise ValueError("Using join context manager with multiple process groups")
        self._group, self._device = groups.pop(), joinables[0].join_device
        for number, joinable in enumerate(joinables):
            joinable._join_config = _JoinConfig(enable, throw_on_early_termination, number == 0)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        try:
            if self._enable and kind is None:
                self._wait_for_the_others()
        finally:
            for joinable in self._joinables:
                joinable._join_config = _JoinConfig.construct_disabled_join_config()

    def _wait_for_the_others(self):
        steps = 0
        while self._sum(cresset.zeros(1, device=self._device)):  # each process that goes on adds one
            if self._throws:
                self._sum(cresset.ones(1, device=self._device))
                raise RuntimeError(f"Rank {get_rank(self._group)} exhausted all inputs.")
            for hook in self._hooks:
                hook.main_hook()
            steps += 1
            if steps == MANY:
                warnings.warn(
                    f"Detected uneven input skew of greater than {MANY}: rank {get_rank(self._group)} has that many "
                    "batches less than some other process",
                    stacklevel=3,
                )
        for hook in self._hooks:
            hook.post_hook(is_last_joiner=steps == 0)

    def _sum(self, tensor):
        all_reduce(tensor, group=self._group)
        return int(tensor)

    @staticmethod
    def notify_join_context(joinable):
        """Say that this process goes on; what is joined calls this once in a step, before its collectives.

        Returns: a Work of the number of processes that go on, or None where nobody is asked.
        """
        config = getattr(joinable, "_join_config", None)
        if config is None:
            raise AssertionError(f"Check that the {type(joinable)} constructor calls the ``Joinable`` constructor")
        if not config.enable or not config.is_first_joinable:
            return None
        group, device = joinable.join_process_group, joinable.join_device
        work = all_reduce(cresset.ones(1, device=device), group=group, async_op=True)
        if config.throw_on_early_termination:
            over = cresset.zeros(1, device=device)
            all_reduce(over, group=group)
            if int(over):
                raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work
