"""swap_in_optimizer_params_and_state: an optimizer that works, for a while, on other tensors with another state."""

import contextlib
from collections import defaultdict

import cresset

_WHO = "swap_in_optimizer_params_and_state"


@contextlib.contextmanager
def swap_in_optimizer_params_and_state(optimizer, swapin_parameters, swapin_optim_state):
    """Inside, the optimizer has these parameters and this state; afterwards it has its own again, unchanged.

    Args:
        optimizer: one that has made a step, so that its state is there.
        swapin_parameters: a dictionary of tensors, in the order of the optimizer's parameters.
        swapin_optim_state: what `state_dict` gives. Its tensors are changed in place by a step; nothing else of it is
            changed.

    >>> weight = cresset.ones(1, requires_grad=True)
    >>> optimizer = cresset.optim.SGD([weight], lr=0.5, momentum=0.9)
    >>> weight.sum().backward(); optimizer.step()
    >>> other = cresset.zeros(1, requires_grad=True)
    >>> other.grad = cresset.ones(1)
    >>> state = {"state": {}, "param_groups": optimizer.state_dict()["param_groups"]}
    >>> with cresset.optim.swap_in_optimizer_params_and_state(optimizer, {"weight": other}, state):
    ...     _ = optimizer.step()
    >>> other.item(), weight.item()
    (-0.5, 0.5)
    """
    groups = _checked_groups(optimizer, swapin_optim_state)
    tensors = list(swapin_parameters.values())
    if len(tensors) < sum(len(group["params"]) for group in groups):
        raise RuntimeError(
            f"{_WHO} requires the explicit parameter state to match optimizer.param_groups ordering: it has "
            f"{len(tensors)} tensors, "
            f"the optimizer {sum(len(group['params']) for group in groups)}"
        )
    before, states = [dict(group) for group in optimizer.param_groups], optimizer.state
    tensors, swapped = iter(tensors), defaultdict(dict)
    try:
        for own, other in zip(optimizer.param_groups, groups, strict=True):
            own.update({key: value for key, value in other.items() if key != "params"})
            own["params"] = [next(tensors) for _ in other["params"]]
            for number, tensor in zip(other["params"], own["params"], strict=True):
                # A copy of the dictionary: its tensors are shared, what a step adds to it stays here.
                swapped[tensor] = dict(swapin_optim_state["state"].get(number, {}))
        optimizer.state = swapped
        yield
    finally:
        for group, kept in zip(optimizer.param_groups, before, strict=True):
            group.clear()
            group.update(kept)
        optimizer.state = states


def _check_state(held):
    """Refuse what is no state by the numbers of parameters."""
    if not isinstance(held, dict):
        raise RuntimeError(
            f"{_WHO} requires swapin_optim_state['state'] to be a dict with an entry for each parameter, got "
            f"{type(held).__name__}."
        )
    if any(isinstance(key, cresset.Tensor) for key in held):
        raise RuntimeError(f"{_WHO} requires state keyed by packed parameter ids, not by tensors.")
    for key, entry in held.items():
        if isinstance(key, int) and not isinstance(entry, dict):
            raise RuntimeError(
                f"{_WHO} requires per-parameter optimizer state entries to be dictionaries; that of {key} is a "
                f"{type(entry).__name__}."
            )


def _checked_groups(optimizer, state):
    """The groups of the state, which fit the optimizer's."""
    if not optimizer.state:
        raise RuntimeError(f"{_WHO} requires initialized optimizer state. Make one step first.")
    _check_state(state.get("state"))
    groups = state.get("param_groups")
    if not isinstance(groups, list):
        raise RuntimeError(
            f"{_WHO} requires swapin_optim_state['param_groups'] to be a list of param-group dicts, got "
            f"{type(groups).__name__}."
        )
    own = optimizer.param_groups
    if len(groups) != len(own):
        raise RuntimeError(
            f"swapin_optim_state has a different number of parameter groups than the live optimizer: {len(groups)} "
            f"and {len(own)}."
        )
    for i, (mine, other) in enumerate(zip(own, groups, strict=True)):
        numbers = other.get("params") if isinstance(other, dict) else None
        if not isinstance(numbers, list) or not all(isinstance(number, int) for number in numbers):
            raise RuntimeError(
                f"{_WHO} requires param_groups[*]['params'] entries keyed by packed parameter ids, as state_dict() "
                f"gives them; group {i} is {other!r}."
            )
        if mine.keys() != other.keys():
            raise RuntimeError(
                f"{_WHO} requires optimizer.state_dict()-style param group keys to exactly match the live optimizer "
                f"group keys for group {i}. "
                f"Keys only in swap-in: {sorted(other.keys() - mine.keys())}. Keys only in live: "
                f"{sorted(mine.keys() - other.keys())}."
            )
        if len(mine["params"]) != len(other["params"]):
            raise RuntimeError(
                f"swapin_optim_state param group {i} has a different number of params than the live optimizer param "
                "group: "
                f"{len(other['params'])} and {len(mine['params'])}."
            )
    extra = sorted(set(state["state"]) - {number for group in groups for number in group["params"]}, key=str)
    if extra:
        raise RuntimeError(
            f"{_WHO} requires swapin_optim_state['state'] to be keyed only by packed parameter ids from "
            "param_groups[*]['params']; "
            f"got extra keys {extra}."
        )
    return groups
