"""The pipes that a pipe is made of, and what a loader applies to all of them: shares, seeds, whether to shuffle."""

import inspect
import warnings

import cresset

from .pipe import IterDataPipe, MapDataPipe
from .shares import SHARDING_PRIORITIES

__all__ = [
    "apply_random_seed", "apply_sharding", "apply_shuffle_seed", "apply_shuffle_settings", "get_all_graph_pipes",
    "traverse_dps",
]  # fmt: skip


def sources(pipe):
    """The pipes among the attributes of one, also in lists, tuples, sets and dictionaries; each once."""
    found, seen, waiting = {}, set(), [pipe.__dict__]
    while waiting:
        value = waiting.pop(0)
        if isinstance(value, (IterDataPipe, MapDataPipe)):
            found[id(value)] = value
        elif isinstance(value, (dict, list, tuple, set, frozenset)) and id(value) not in seen:
            seen.add(id(value))
            waiting[:0] = value.values() if isinstance(value, dict) else value
    return list(found.values())


def traverse_dps(datapipe):
    """What a pipe is made of, as nested dictionaries: {id(pipe): (pipe, the same of its sources)}."""
    return _traversed(datapipe, frozenset())


def _traversed(pipe, above):
    if not isinstance(pipe, (IterDataPipe, MapDataPipe)):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(pipe)} is found")
    if id(pipe) in above:  # a pipe that is made of itself
        return {}
    below = {}
    for source in sources(pipe):
        below.update(_traversed(source, above | {id(pipe)}))
    return {id(pipe): (pipe, below)}


def get_all_graph_pipes(graph):
    """The pipes in what traverse_dps gave, each once."""
    found = {}
    _gather(graph, found)
    return list(found.values())


def _gather(graph, found):
    for key, (pipe, below) in graph.items():
        if key not in found:
            found[key] = pipe
            _gather(below, found)


def _has(pipe, *names):
    return all(inspect.ismethod(getattr(pipe, name, None)) for name in names)


def apply_sharding(datapipe, num_of_instances, instance_id, sharding_group=SHARDING_PRIORITIES.DEFAULT):
    """Give each pipe that can be parted the share `instance_id` of `num_of_instances`."""
    _share(traverse_dps(datapipe), (num_of_instances, instance_id), sharding_group, None)
    return datapipe


def _share(graph, share, group, parted):
    for pipe, below in graph.values():
        now = parted
        if _has(pipe, "apply_sharding"):
            if parted is not None:
                raise RuntimeError(
                    "Sharding twice on a single pipeline is likely unintended and will cause data loss. Sharding "
                    f"already applied to {parted} while trying to apply to {pipe}"
                )
            takes_group = len(inspect.signature(pipe.apply_sharding).parameters) > 2
            pipe.apply_sharding(*share, **({"sharding_group": group} if takes_group else {}))
            now = pipe
        _share(below, share, group, now)


def apply_shuffle_settings(datapipe, shuffle=None):
    """Let the pipes that can shuffle do so, or not; None leaves them as they are. If none can, True adds one."""
    if shuffle is None:
        return datapipe
    shufflers = [p for p in get_all_graph_pipes(traverse_dps(datapipe)) if _has(p, "set_shuffle", "set_seed")]
    if shuffle and not shufflers:
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. Be aware "
            "that the default buffer size might not be sufficient for your task.",
            stacklevel=2,
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for pipe in shufflers:
        pipe.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe, rng):
    """Give each pipe that draws random numbers a seed from this generator."""
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if _has(pipe, "set_seed"):
            pipe.set_seed(int(cresset.empty((), dtype=cresset.int64).random_(generator=rng).item()))
    return datapipe


def apply_shuffle_seed(datapipe, rng):
    """The older name of `apply_random_seed`."""
    warnings.warn(
        "`apply_shuffle_seed` is deprecated since 1.12 and will be removed in the future releases. Please use "
        "`apply_random_seed` instead.",
        FutureWarning,
        stacklevel=2,
    )
    return apply_random_seed(datapipe, rng)
