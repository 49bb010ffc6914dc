"""Random operators: every process draws the numbers of the whole and keeps its part, so that they are those of one
process with the same seed.
"""

import hashlib

import cresset

from .. import collectives
from .dispatch import Way
from .placement_types import Shard
from .words import like


def _one_state(mesh, device):
    """(the state that all draw from, whether it is this process's own): that of the first one of the grid."""
    cuda = device.type == "cuda"
    mine = cresset.cuda.get_rng_state(device) if cuda else cresset.get_rng_state()
    number = int.from_bytes(hashlib.blake2b(mine.numpy().tobytes(), digest_size=7).digest(), "little")
    state, same = mine, True
    for i, n in enumerate(mesh.shape):
        if n == 1:
            continue
        every = cresset.empty(n, dtype=cresset.int64)
        collectives.all_gather_into_tensor(every, cresset.tensor([number]), mesh.get_group(i))
        if len(set(every.tolist())) > 1:
            same = False
            state = state.clone()
            collectives.broadcast(state, group=mesh.get_group(i), group_src=0)
            number = every[0].item()
    return state, same or not any(mesh.get_coordinate())


def drawing(mesh, device, draw):
    """draw() from the generator of the grid's first process."""
    state, own = _one_state(mesh, device)
    read = cresset.cuda.get_rng_state if device.type == "cuda" else cresset.get_rng_state
    put = cresset.cuda.set_rng_state if device.type == "cuda" else cresset.set_rng_state
    before = read()
    put(state)
    try:
        return draw()
    finally:
        if not own:
            put(before)


def part(whole, spec):
    """This process's part of a whole tensor."""
    shape, offset = spec.local_shape()
    for dim, (size, first) in enumerate(zip(shape, offset, strict=True)):
        if size != whole.shape[dim]:
            whole = whole.narrow(dim, first, size)
    return whole


def drawn(call, input, *args, **kwargs):
    """Numbers in the shape of a tensor, new or in place."""

    def run(func, plan, local_args, local_kwargs):
        spec, local = plan.ins[0], local_args[0]
        with cresset.no_grad():
            whole = cresset.empty(spec.shape, dtype=local.dtype, device=local.device)
            result = drawing(spec.mesh, local.device, lambda: func(whole, *local_args[1:], **local_kwargs))
            mine = part(result.detach(), spec).contiguous()
        if call.name.endswith("_"):
            return local.copy_(mine)
        return mine.requires_grad_(result.requires_grad)

    if len(call.tensors) > 1:
        return [], None
    if not call.name.endswith("_"):
        return like(call), run
    return [call.all(Shard(d)) for d in range(input.ndim)], run


def thinned(call, input, p, *args, **kwargs):
    """Dropout."""

    def run(func, plan, local_args, local_kwargs):
        spec, local = plan.ins[0], local_args[0]
        if call.name == "native_dropout" and local_args[2] is False:
            return func(*local_args, **local_kwargs)
        with cresset.no_grad():
            ones = cresset.ones(spec.shape, dtype=local.dtype, device=local.device)
            factors, kept = drawing(spec.mesh, local.device, lambda: func(ones, *local_args[1:], **local_kwargs))
            factors, kept = part(factors, spec).contiguous(), part(kept, spec).contiguous()
        return local * factors, kept

    return [Way((Shard(d),), (Shard(d), Shard(d))) for d in range(input.ndim)], run


def shared(call, *args, **kwargs):
    """Random operators whose numbers depend on the elements: on whole tensors, everywhere the same."""

    def run(func, plan, local_args, local_kwargs):
        spec = plan.ins[0]
        return drawing(spec.mesh, cresset.device(spec.mesh.device_type), lambda: func(*local_args, **local_kwargs))

    return [], run


RULES = {"drawn": drawn, "thinned": thinned, "shared": shared}
