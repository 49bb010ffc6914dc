"""The mean of parameters over the processes."""

import cresset

from ...collectives import all_reduce
from ...world import is_outside, member_of

__all__ = ["average_parameters", "average_parameters_or_parameter_groups", "get_params_to_average"]


@cresset.no_grad()
def average_parameters(params, process_group):
    """Make parameters the mean of those of the group, in one exchange for a dtype.

    Args:
        params: the same in every process of the group.
        process_group: None is all.
    """
    if is_outside(process_group):
        return
    group = member_of(process_group, "average_parameters")
    by_kind = {}
    for p in params:
        by_kind.setdefault((p.dtype, p.device), []).append(p)
    for same in by_kind.values():
        flat = cresset.cat([p.data.reshape(-1) for p in same]).div_(group.size())
        all_reduce(flat, group=group)
        for p, part in zip(same, flat.split([p.numel() for p in same]), strict=True):
            p.data.copy_(part.view(p.shape))


def get_params_to_average(params):
    """Those parameters that have a gradient.

    Args:
        params: parameters, or groups of an optimizer.
    """
    found = []
    for one in params:
        if isinstance(one, cresset.nn.Parameter):
            found += [one] if one.grad is not None else []
        elif isinstance(one, dict):
            found += [p for p in one["params"] if p.grad is not None]
        else:
            raise NotImplementedError(f"Parameter input of type {type(one)} is not supported")
    return found


def average_parameters_or_parameter_groups(params, process_group):
    """The mean of those parameters that have a gradient.

    Args:
        params: parameters, or groups of an optimizer.
    """
    average_parameters(iter(get_params_to_average(params)), process_group)
