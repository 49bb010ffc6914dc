"""The processes that save or load together: they take the same steps, and all fail where one has failed."""

from .. import objects, world
from . import pickles
from .api import CheckpointException


class Alone:
    """One process."""

    rank, size = 0, 1

    def gather(self, value):
        """What each process gives, in each."""
        return [value]


class Together:
    """The processes of a group."""

    def __init__(self, group):
        self.group = group
        self.rank, self.size = group.rank(), group.size()

    def gather(self, value):
        """What each process gives, in each."""
        every = [None] * self.size
        objects.all_gather_object(every, pickles.write(value), self.group)
        return [pickles.read(one) for one in every]


def processes_of(process_group, no_dist):
    """Who takes part."""
    if no_dist or not world.is_initialized():
        return Alone()
    return Together(world.member_of(process_group, "checkpoint"))


def each(processes, what, step):
    """What a step gives in every process."""
    found = error = None
    try:
        found = step()
    except Exception as problem:
        error = problem
    rows = processes.gather((found, None if error is None else f"{type(error).__name__}: {error}"))
    failures = {rank: words for rank, (_, words) in enumerate(rows) if words is not None}
    if not failures:
        return [given for given, _ in rows]
    if processes.size == 1:
        raise error
    raise CheckpointException(what, failures) from error


def first(processes, what, step):
    """What a step gives in the first process, in all."""
    return each(processes, what, step if processes.rank == 0 else lambda: None)[0]
