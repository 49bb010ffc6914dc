"""Collectives with derivatives: what backward sends is what forward sent, the other way round."""

import cresset

from .. import collectives
from ..reductions import RedOpType
from ..world import get_group_rank, get_rank, get_world_size

SUM = RedOpType.SUM


def _root(group, rank):
    return rank if group is None else get_group_rank(group, rank)


class _AllReduce(cresset.autograd.Function):
    @staticmethod
    def forward(ctx, op, group, tensor):
        ctx.op, ctx.group = op, group
        tensor = tensor.clone(memory_format=cresset.contiguous_format)
        collectives.all_reduce(tensor, op, group)
        return tensor

    @staticmethod
    def backward(ctx, grad):
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grad)


class _AllGather(cresset.autograd.Function):
    @staticmethod
    def forward(ctx, group, tensor):
        ctx.group = group
        places = [
            cresset.empty_like(tensor, memory_format=cresset.contiguous_format) for _ in range(get_world_size(group))
        ]
        collectives.all_gather(places, tensor.contiguous(), group)
        return tuple(places)

    @staticmethod
    def backward(ctx, *grads):
        return None, _ReduceScatter.apply(SUM, ctx.group, *grads)


class _ReduceScatter(cresset.autograd.Function):
    @staticmethod
    def forward(ctx, op, group, *tensors):
        ctx.group = group
        place = cresset.empty_like(tensors[0], memory_format=cresset.contiguous_format)
        collectives.reduce_scatter(place, [t.contiguous() for t in tensors], op, group)
        return place

    @staticmethod
    def backward(ctx, grad):
        return None, None, *_AllGather.apply(ctx.group, grad)


class _Broadcast(cresset.autograd.Function):
    @staticmethod
    def forward(ctx, src, group, tensor):
        ctx.src, ctx.group = src, group
        tensor = tensor.clone(memory_format=cresset.contiguous_format)
        collectives.broadcast(tensor, src, group)
        return tensor

    @staticmethod
    def backward(ctx, grad):
        grad = _Reduce.apply(ctx.src, SUM, ctx.group, grad)
        return None, None, grad if get_rank(ctx.group) == _root(ctx.group, ctx.src) else cresset.zeros_like(grad)


class _Reduce(cresset.autograd.Function):
    @staticmethod
    def forward(ctx, dst, op, group, tensor):
        ctx.dst, ctx.group = dst, group
        tensor = tensor.clone(memory_format=cresset.contiguous_format)
        collectives.reduce(tensor, dst, op, group)
        return tensor

    @staticmethod
    def backward(ctx, grad):
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, grad)


class _Gather(cresset.autograd.Function):
    @staticmethod
    def forward(ctx, dst, group, tensor):
        ctx.dst, ctx.group = dst, group
        places = [
            cresset.zeros_like(tensor, memory_format=cresset.contiguous_format) for _ in range(get_world_size(group))
        ]
        mine = get_rank(group) == _root(group, dst)
        collectives.gather(tensor.contiguous(), places if mine else None, dst, group)
        return tuple(places)

    @staticmethod
    def backward(ctx, *grads):
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *grads)


class _Scatter(cresset.autograd.Function):
    @staticmethod
    def forward(ctx, src, group, *tensors):
        ctx.src, ctx.group = src, group
        place = cresset.empty_like(tensors[0], memory_format=cresset.contiguous_format)
        mine = get_rank(group) == _root(group, src)
        collectives.scatter(place, [t.contiguous() for t in tensors] if mine else None, src, group)
        return place

    @staticmethod
    def backward(ctx, grad):
        return None, None, *_Gather.apply(ctx.src, ctx.group, grad)


class _AllToAll(cresset.autograd.Function):
    @staticmethod
    def forward(ctx, group, shapes, *tensors):
        ctx.group, ctx.shapes = group, [t.shape for t in tensors]
        places = [cresset.empty(shape, dtype=tensors[0].dtype, device=tensors[0].device) for shape in shapes]
        collectives.all_to_all(places, [t.contiguous() for t in tensors], group)
        return tuple(places)

    @staticmethod
    def backward(ctx, *grads):
        return None, None, *_AllToAll.apply(ctx.group, ctx.shapes, *grads)


def all_reduce(tensor, op=SUM, group=None):
    """Reduce the tensors of all processes; each gets the result, as a new tensor."""
    return _AllReduce.apply(op, group, tensor)


def all_gather(tensor, group=None):
    """Collect the tensors of all processes, in each, as a tuple."""
    return _AllGather.apply(group, tensor)


def broadcast(tensor, src, group=None):
    """Give the tensor of one process to all, as a new tensor."""
    return _Broadcast.apply(src, group, tensor)


def reduce(tensor, dst, op=SUM, group=None):
    """Reduce the tensors of all processes in one, as a new tensor."""
    return _Reduce.apply(dst, op, group, tensor)


def gather(tensor, dst=0, group=None):
    """Collect the tensors of all processes in one, as a tuple; the others get zeros."""
    return _Gather.apply(dst, group, tensor)


def scatter(tensors, src=0, group=None):
    """Give each process its tensor of a list that one has. All give lists: the shapes are read from them."""
    return _Scatter.apply(src, group, *tensors)


def reduce_scatter(output, input_list, op=SUM, group=None):
    """Reduce lists over the processes; each gets the one of its rank, as a new tensor of the output's shape."""
    if any(tensor.shape != output.shape for tensor in input_list):
        raise ValueError(f"reduce_scatter: the inputs must have the output's shape {list(output.shape)}")
    return _ReduceScatter.apply(op, group, *input_list)


def all_to_all(output_tensor_list, input_tensor_list, group=None):
    """Send each process its tensor of a list; the tuple of what they send, in the shapes of the output list."""
    return _AllToAll.apply(group, [t.shape for t in output_tensor_list], *input_tensor_list)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None):
    """Send each process its rows; what they send, one after the other, as a new tensor."""
    size = get_world_size(group)
    given = input.split(list(input_split_sizes) if input_split_sizes else input.shape[0] // size)
    rows = list(output_split_sizes) if output_split_sizes else [output.shape[0] // size] * size
    return cresset.cat(_AllToAll.apply(group, [(n, *output.shape[1:]) for n in rows], *given))
