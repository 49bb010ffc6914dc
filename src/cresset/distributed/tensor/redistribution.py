"""How the parts of a tensor move when its placements change, and what that is backward.

Note [Gradients of distributed tensors]
Autograd sees the local parts. The gradient of a part has a placement that follows from the part's own: cut where it is
cut, whole where it is whole, and whole where it is a part of a sum (each part of a sum counts in full). Every call
keeps this true: where a whole operand meets others that are not, its gradient is a sum of what the processes have, and
is reduced (`summed_backward`). A change of placements, backward, is the change between the gradients' placements. Parts
of a mean count 1/n, which is put in where the mean is made of them (`Moved.backward`).
"""

import math

import cresset

from .. import collectives
from ..reductions import RedOpType
from ._dtensor_spec import cut_order, part_of
from .placement_types import Partial, Replicate, Shard

REDUCTIONS = {
    "sum": RedOpType.SUM,
    "avg": RedOpType.AVG,
    "max": RedOpType.MAX,
    "min": RedOpType.MIN,
    "product": RedOpType.PRODUCT,
}
WHOLE = Replicate()


def dual(placements):
    """The placements of the gradient of a tensor."""
    return tuple(WHOLE if p.is_partial() else p for p in placements)


def _reduction(placement):
    if placement.reduce_op not in REDUCTIONS:
        raise ValueError(f"redistribute: there is no reduction {placement.reduce_op!r}; there are {list(REDUCTIONS)}")
    return REDUCTIONS[placement.reduce_op]


def _chunks(length, n):
    return [Shard.local_shard_size_and_offset(length, n, r)[0] for r in range(n)]


def _padded(local, dim, length):
    if local.shape[dim] == length:
        return local.contiguous()
    made = local.new_zeros(*local.shape[:dim], length, *local.shape[dim + 1 :])
    made.narrow(dim, 0, local.shape[dim]).copy_(local)
    return made


def gathered(local, dim, length, group, n):
    """All parts of a dimension, put together."""
    chunk = -(-length // n)
    part = _padded(local, dim, chunk)
    if not part.numel():
        return local.new_empty(*local.shape[:dim], length, *local.shape[dim + 1 :])
    flat = part.new_empty(n, *part.shape)
    collectives.all_gather_into_tensor(flat, part, group)
    made = flat.movedim(0, dim).reshape(*local.shape[:dim], n * chunk, *local.shape[dim + 1 :])
    return made if n * chunk == length else made.narrow(dim, 0, length).contiguous()


def scattered(local, dim, op, group, n, place):
    """The reduction over the processes, of which this one gets its part of a dimension."""
    length = local.shape[dim]
    chunk = -(-length // n)
    whole = _padded(local, dim, n * chunk)
    flat = whole.unflatten(dim, (n, chunk)).movedim(dim, 0).contiguous()
    made = flat.new_empty(flat.shape[1:])
    if flat.data_ptr() == local.data_ptr():
        flat = flat.clone()
    if made.numel():
        collectives.reduce_scatter_tensor(made, flat, op, group)
    size, _ = Shard.local_shard_size_and_offset(length, n, place)
    return made if size == chunk else made.narrow(dim, 0, size).contiguous()


def _cut(local, dim, n, place):
    size, first = Shard.local_shard_size_and_offset(local.shape[dim], n, place)
    return local.narrow(dim, first, size).clone(memory_format=cresset.contiguous_format)


def _exchanged(local, source, target, length, group, n):
    """Cut along `source`, whole along `target` -> the other way round. `length` is that of the whole `source`."""
    given = [part.contiguous() for part in local.split(_chunks(local.shape[target], n), target)]
    mine = given[group.rank()].shape[target]
    shapes = []
    for size in _chunks(length, n):
        shape = list(local.shape)
        shape[source], shape[target] = size, mine
        shapes.append(shape)
    places = [local.new_empty(shape) for shape in shapes]
    collectives.all_to_all(places, given, group)
    return cresset.cat(places, source)


def _step(local, before, after, length, group, n, place):
    """One dimension of the grid changes. `length` is the size, along the dimension that `before` cuts, without the
    cut."""
    if before.is_shard():
        if after.is_shard():
            return _exchanged(local, before.dim, after.dim, length, group, n)
        whole = gathered(local, before.dim, length, group, n)
        return whole if after.is_replicate() else _step(whole, WHOLE, after, None, group, n, place)
    if before.is_partial():
        op = _reduction(before)
        if after.is_shard():
            return scattered(local, after.dim, op, group, n, place)
        whole = local.clone(memory_format=cresset.contiguous_format)
        collectives.all_reduce(whole, op, group)
        return whole if after.is_replicate() else _step(whole, WHOLE, after, None, group, n, place)
    if after.is_shard():
        return _cut(local, after.dim, n, place)
    return local / n if after.reduce_op == "sum" else local.clone()


def _dims(placements, i):
    return {placements[i].dim} if placements[i].is_shard() else set()


def moved(local, shape, mesh, source, target):
    """The part of a tensor when its placements change from `source` to `target`, without a derivative."""
    place = mesh.get_coordinate()
    if place is None:
        return local
    changes = {i for i in range(mesh.ndim) if source[i] != target[i]}
    if not changes:
        return local
    before, after = cut_order(source), cut_order(target)
    grown = True
    while grown:  # what was cut later is put together earlier, and cut again
        grown = False
        for order, placements in ((before, source), (after, target)):
            for at, i in enumerate(order):
                later = [j for j in order[at + 1 :] if placements[j].dim == placements[i].dim]
                if i in changes and not changes.issuperset(later):
                    changes.update(later)
                    grown = True
    now = list(source)

    def length(i):
        """The size of the dimension that is cut at `i`, without this cut."""
        dim = now[i].dim
        without = [WHOLE if j == i else p for j, p in enumerate(now)]
        return part_of(shape, mesh, without)[0][dim]

    def step(i, to):
        nonlocal local
        if now[i] != to:
            n = mesh.shape[i]
            if n > 1:
                size = length(i) if now[i].is_shard() else None
                local = _step(local, now[i], to, size, mesh.get_group(i), n, place[i])
            now[i] = to

    def alone(i):
        """Whether this change meets no other cut of its dimensions, so that it can be made in one step."""
        touched = _dims(source, i) | _dims(target, i)
        others = [j for j in range(mesh.ndim) if j != i]
        return not any(touched & (_dims(source, j) | _dims(target, j) | _dims(now, j)) for j in others)

    for i in sorted(changes, key=lambda i: before.index(i) if i in before else -1, reverse=True):
        if alone(i):
            step(i, target[i])
        elif now[i].is_shard():
            step(i, WHOLE)
    for i in sorted(changes, key=lambda i: after.index(i) if i in after else len(after)):
        step(i, target[i])
    return local


def _share(source, target, mesh):
    """What a gradient is multiplied by when parts of a mean become the mean."""
    pairs = zip(source, target, mesh.shape, strict=True)
    return math.prod(1 / n for p, q, n in pairs if p.is_partial("avg") and not q.is_partial("avg"))


class Moved(cresset.autograd.Function):
    """`moved` with its derivative: the gradient moves between the placements of the gradients."""

    @staticmethod
    def forward(ctx, local, shape, mesh, source, target, back):
        ctx.facts = shape, mesh, source, target, back
        result = moved(local, shape, mesh, source, target)
        return local.view_as(local) if result is local else result

    @staticmethod
    def backward(ctx, grad):
        shape, mesh, source, target, back = ctx.facts
        start = dual(target) if back is None else back
        result = Moved.apply(grad, shape, mesh, start, dual(source), None)
        share = _share(source, target, mesh)
        return result if share == 1 else result * share, None, None, None, None, None


def redistributed(local, shape, mesh, source, target):
    """The part of a tensor when its placements change, with a derivative where one is wanted."""
    if source == target:
        return local
    for p, q in zip(source, target, strict=True):
        if p.is_partial() and p.reduce_op not in ("sum", "avg") and p != q and _wants_gradient(local):
            raise RuntimeError(f"redistribute: the derivative of parts of a {p.reduce_op!r} is not known")
    if _wants_gradient(local):
        return Moved.apply(local, tuple(shape), mesh, source, target, None)
    return moved(local, shape, mesh, source, target)


def _wants_gradient(local):
    return local.requires_grad and cresset.is_grad_enabled()


class _Summed(cresset.autograd.Function):
    """The same tensor; its gradient is the sum of those of the processes along dimensions of the grid."""

    @staticmethod
    def forward(ctx, local, mesh, dims):
        ctx.mesh, ctx.dims = mesh, dims
        return local.view_as(local)

    @staticmethod
    def backward(ctx, grad):
        before = tuple(Partial() if i in ctx.dims else WHOLE for i in range(ctx.mesh.ndim))
        after = (WHOLE,) * ctx.mesh.ndim
        return Moved.apply(grad, grad.shape, ctx.mesh, before, after, None), None, None


def summed_backward(tensor, local, mesh, dims):
    """A whole operand that meets others which are not, along `dims` of the grid. Operands that are results are shared:
    what several calls give back is reduced at once.
    """
    dims = tuple(i for i in dims if mesh.shape[i] > 1)
    if not dims or not _wants_gradient(local):
        return local
    if tensor is None or local.grad_fn is None:
        return _Summed.apply(local, mesh, dims)
    shared = tensor.__dict__.get("_shared_backward")
    if shared is None or shared[0] is not local or shared[1] != local._version or shared[2] != dims:
        shared = tensor.__dict__["_shared_backward"] = (local, local._version, dims, _Summed.apply(local, mesh, dims))
    return shared[3]
