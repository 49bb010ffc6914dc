"""torch.distributed.tensor.experimental: plain tensors among distributed ones, and functions of parts."""

import contextlib
import functools

import cresset

from ...ops.registry import placement_rules
from . import dispatch
from .dtensor import DTensor

__all__ = ["implicit_replication", "local_map", "register_sharding"]


@contextlib.contextmanager
def implicit_replication():
    """Inside, a plain tensor among distributed ones counts as whole in every process."""
    before = dispatch._settings["implicit_replication"]
    dispatch._settings["implicit_replication"] = True
    try:
        yield
    finally:
        dispatch._settings["implicit_replication"] = before


def local_map(
    func=None, out_placements=None, in_placements=None, in_grad_placements=None, device_mesh=None, *,
    redistribute_inputs=False,
):  # fmt: skip
    """A function of distributed tensors from one of their parts.

    Args:
        func: the function of parts.
        out_placements: for each result its placements; None for what is no tensor.
        in_placements: for each argument the placements that it must have; None where any will do.
        in_grad_placements: for each argument how the gradients of its parts are placed.
        device_mesh: the grid; by default that of the arguments.
        redistribute_inputs: bring arguments to `in_placements`, where they are not.
    """
    if func is None:
        return functools.partial(
            local_map, out_placements=out_placements, in_placements=in_placements,
            in_grad_placements=in_grad_placements, device_mesh=device_mesh, redistribute_inputs=redistribute_inputs,
        )  # fmt: skip

    @functools.wraps(func)
    def on_parts(*args, **kwargs):
        mesh, given = device_mesh, []
        for i, value in enumerate(args):
            if isinstance(value, DTensor):
                mesh = mesh if mesh is not None else value.device_mesh
                wanted = in_placements[i] if in_placements is not None else None
                if wanted is not None and value.placements != tuple(wanted):
                    if not redistribute_inputs:
                        raise ValueError(
                            f"arg {value} in local_map has a mismatched placements: arg placements is "
                            f"{value.placements} but the input placements is {tuple(wanted)}! If redistribute_inputs "
                            "is wanted, set redistribute_inputs=True to local_map."
                        )
                    value = value.redistribute(mesh, wanted)
                grads = in_grad_placements[i] if in_grad_placements is not None else None
                value = value.to_local(grad_placements=grads)
            given.append(value)
        result = func(*given, **kwargs)
        if mesh is None:
            return result
        several = isinstance(result, (list, tuple))
        results = list(result) if several else [result]
        placements = out_placements if several or (out_placements and isinstance(out_placements[0], (list, tuple))) \
            else [out_placements]  # fmt: skip
        made = [
            DTensor.from_local(value, mesh, placement, run_check=False)
            if isinstance(value, cresset.Tensor) and placement is not None
            else value
            for value, placement in zip(results, placements, strict=True)
        ]
        return type(result)(made) if several else made[0]

    return on_parts


def register_sharding(op):
    """A decorator: how operators run on distributed tensors.

    Args:
        op: an operator, or a list of them.

    The function gets the operator's arguments, with shape and dtype in the place of tensors, and gives the ways to run
    along one dimension of the grid: pairs of lists, the placements of the results and those of the arguments, with None
    for arguments that are no tensors.

    >>> from cresset.distributed.tensor import Replicate, Shard
    >>> from cresset.distributed.tensor.experimental import register_sharding
    >>> @cresset.library.custom_op("sharding_example::twice", mutates_args=())
    ... def twice(x: cresset.Tensor) -> cresset.Tensor:
    ...     return 2 * x
    >>> @register_sharding(cresset.ops.sharding_example.twice.default)
    ... def ways(x):
    ...     return [([Replicate()], [Replicate()]), ([Shard(0)], [Shard(0)])]
    """

    def enter(ways):
        def rule(call, *args, **kwargs):
            return [
                dispatch.Way(tuple(p for p in ins if p is not None), outs[0] if len(outs) == 1 else tuple(outs))
                for outs, ins in ways(*args, **kwargs)
            ]

        for overload in op if isinstance(op, list) else [op]:
            placement_rules[overload._opname] = rule
        for known in (dispatch.PLANS, dispatch.QUICK):  # decided by the rule before
            known.clear()
        dispatch.rule_of.cache_clear()
        return ways

    return enter
