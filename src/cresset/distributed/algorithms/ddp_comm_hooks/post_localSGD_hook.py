"""Local SGD: after some steps, gradients are averaged only among neighbors; a model averager does the rest."""

from ....futures import Future
from ...world import new_subgroups
from .default_hooks import averaged

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """What post_localSGD_hook knows.

    Args:
        process_group: for the first steps; None is that of all.
        subgroup: the neighbors; None: the processes of this machine.
        start_localSGD_iter: how many steps come before.
        post_local_gradient_allreduce: average among neighbors after that; or not at all.
    """

    __slots__ = ["iter", "post_local_gradient_allreduce", "process_group", "start_localSGD_iter", "subgroup"]

    def __init__(self, process_group, subgroup, start_localSGD_iter, post_local_gradient_allreduce=True):
        self.process_group, self.subgroup, self.start_localSGD_iter = process_group, subgroup, start_localSGD_iter
        self.post_local_gradient_allreduce, self.iter = post_local_gradient_allreduce, 0

    def maybe_increase_iter(self, bucket):
        """Count steps by their last bucket."""
        if bucket.is_last():
            self.iter += 1


def post_localSGD_hook(state, bucket):
    """The average over the group in the first steps, over the neighbors in later ones."""
    flat = bucket.buffer()
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return averaged(flat, state.process_group)
    if not state.post_local_gradient_allreduce:
        future = Future()
        future.set_result(flat)
        return future
    if state.subgroup is None:
        state.subgroup, _ = new_subgroups()
    return averaged(flat, state.subgroup)
