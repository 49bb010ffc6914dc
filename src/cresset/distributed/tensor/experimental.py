"""torch.distributed.tensor.experimental: plain tensors among distributed ones, and functions of parts."""

import contextlib
import functools

import cresset

from . import dispatch
from .dtensor import DTensor

__all__ = ["implicit_replication", "local_map"]


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
