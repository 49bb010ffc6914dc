"""Join: training on processes that have different numbers of batches. In a group of one there is nobody to wait for."""

import abc

from .. import get_world_size, is_initialized

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a process does in the place of others' steps when it has no more batches, and at the end."""

    def main_hook(self):
        """Once for each step of the others."""

    def post_hook(self, is_last_joiner):
        """At the end."""


class Joinable(abc.ABC):
    """What can be joined: it gives a hook, and names its device and group."""

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


class Join:
    """A context for loops that are longer in some processes than in others.

    In a process that runs alone, or with enable=False, the loop simply runs, and the hooks' `post_hook` is called at
    the end. Between several processes it is refused: give each the same number of batches (`DistributedSampler` does).
    """

    def __init__(self, joinables, enable=True, throw_on_early_termination=False, **kwargs):
        if len(joinables) == 0:
            raise ValueError("The join context manager requires at least one joinable")
        processes = get_world_size() if is_initialized() else 1
        if enable and processes > 1:
            raise NotImplementedError(
                f"Join: loops of different lengths between {processes} processes are not supported; give each the "
                "same number of batches, as DistributedSampler does"
            )
        if throw_on_early_termination and not enable:
            raise ValueError("Join: throw_on_early_termination has no meaning with enable=False")
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables] if enable else []

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            for hook in self._hooks:
                hook.post_hook(is_last_joiner=True)

    @staticmethod
    def notify_join_context(joinable):
        """Say that a process goes on: nobody waits for it."""
