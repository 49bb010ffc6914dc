"""Placement rules that operators name by a word, `placement="reduced"`. A rule gets a Call and the arguments, in which
specs stand for tensors, and gives the Ways in which the operands can be cut.

One Way is about one dimension of the grid; "all whole" is always possible and is not listed. A rule may give a pair:
the Ways, and a function run(func, plan, args, kwargs) that calls the operator on the parts.
"""

import math

import cresset

from ...ops.registry import signature_parts
from ._dtensor_spec import DTensorSpec
from .dispatch import Way
from .placement_types import Partial, Replicate, Shard

WHOLE, SUM, AVG = Replicate(), Partial(), Partial("avg")

# Operators f with f(a) + f(b) = f(a + b), by the operands that may be parts of a sum, together.
LINEAR = {
    "add": "both", "sub": "both", "neg": "first", "mul": "either", "div": "first", "lerp": "none", "real_part": "first",
    "imaginary_part": "first",
}  # fmt: skip


def spec_like(value):
    """Whether an argument is a tensor."""
    return isinstance(value, DTensorSpec)


def positive(dim, ndim):
    """A dimension counted from the front."""
    return dim + ndim if dim < 0 else dim


def _dims(dim, ndim):
    """Dimensions as a set; all where None is given."""
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return set(range(ndim))
    return {positive(d, ndim) for d in (dim if isinstance(dim, (list, tuple)) else [dim])}


# ---- corresponding elements


def broadcast(call, shape):
    """Ways to cut operands that are broadcast to a shape."""
    ways = []
    for d in range(len(shape)):
        ins = []
        for spec in call.tensors:
            at = d - (len(shape) - spec.ndim)
            ins.append(Shard(at) if at >= 0 and spec.shape[at] == shape[d] else WHOLE)
        if any(p.is_shard() for p in ins):
            ways.append(Way(tuple(ins), Shard(d)))
    return ways


def pointwise(call, *args, **kwargs):
    """Operators on corresponding elements: cut alike; parts of a sum, where they are linear."""
    ways = broadcast(call, call.result.shape)
    kind = LINEAR.get(call.name.removesuffix("_"))
    tensors = call.tensors
    floating = all(t.dtype.is_floating_point or t.dtype.is_complex for t in tensors)
    if not floating or kwargs.get("rounding_mode"):
        return ways
    numbers = any(not spec_like(a) for a in args[:2])
    for part in (SUM, AVG):
        if kind == "both" and len(tensors) == 2:
            ways.append(call.all(part))
        elif kind == "both" and part == AVG and numbers:
            ways.append(call.all(part))  # a number added to each part is added to their mean
        elif (kind in ("first", "either") and len(tensors) == 1 and (spec_like(args[0]) or kind == "either")) or (
            kind == "first" and len(tensors) == 2 and call.name.startswith("div")
        ):
            ways.append(Way((part, *[WHOLE] * (len(tensors) - 1)), part))
        elif kind == "either" and len(tensors) == 2:
            ways += [Way((part, WHOLE), part), Way((WHOLE, part), part)]
    return ways


def same(call, *args, **kwargs):
    """Operators that keep shape and elements apart from their dtype."""
    target = call.result.dtype
    linear = target.is_floating_point or target.is_complex
    ways = [call.all(Shard(d)) for d in range(call.tensors[0].ndim)]
    if linear or target == call.tensors[0].dtype:
        ways += [call.all(part) for part in (SUM, AVG)]
        if target == call.tensors[0].dtype:
            ways += [call.all(Partial(op)) for op in ("max", "min", "product")]
    return ways


def like(call, *args, **kwargs):
    """New tensors with the shape of another: cut as it is."""
    ways = [call.all(Shard(d)) for d in range(call.tensors[0].ndim)]
    return [*ways, *[Way((Partial(op),), WHOLE) for op in ("sum", "avg", "max", "min", "product")]]


def filled(call, input, value=0, *_, **__):
    """An elementwise change to a constant, in place."""
    if not call.name.endswith("_"):
        return like(call)
    others = len(call.tensors) - 1
    ways = [Way((Shard(d), *[WHOLE] * others), Shard(d)) for d in range(call.tensors[0].ndim)]
    if value == 0 and not others:
        ways += [call.all(part) for part in (SUM, AVG)]
    return ways


def copied(call, input, source, *_, **__):
    """An elementwise change to another tensor: that one is placed as the one that changes."""
    return [*broadcast(call, input.shape), call.all(SUM), call.all(AVG)]


def new(call, input, size, *args, **kwargs):
    """New tensors of any shape on the processes of another: cut as it is where the shape is the same."""
    if tuple(call.result.shape) != tuple(input.shape):
        return [Way((p,), WHOLE) for p in [*map(Shard, range(input.ndim)), SUM, AVG]]

    def run(func, plan, local_args, local_kwargs):
        shape = plan.outs[0].local_shape()[0]
        return func(local_args[0], shape, *args[: len(args)], **local_kwargs)

    return like(call), run


# ---- reductions


def _reduced(spec, dims, keepdim):
    """Ways that cut dimensions which stay."""
    ways, left = [], 0
    for d in range(spec.ndim):
        if d not in dims:
            ways.append((d, d if keepdim else left))
            left += 1
    return ways


def _summing(part):
    def rule(call, input, dim=None, keepdim=False, *_, **__):
        dims = _dims(dim, input.ndim)
        ways = [Way((Shard(d),), Shard(to)) for d, to in _reduced(input, dims, keepdim)]
        number = input.dtype.is_floating_point or input.dtype.is_complex
        if part is None or (part.reduce_op in ("max", "min", "product") and (call.wants_gradient or not number)):
            return ways
        even = part == AVG or part.reduce_op in ("max", "min")
        ways += [Way((Shard(d),), part, even) for d in sorted(dims) if d < input.ndim]
        if part in (SUM, AVG):
            ways += [Way((SUM,), SUM), Way((AVG,), AVG)]
        else:
            ways.append(call.all(part))
        return ways

    return rule


summed, averaged, reduced = _summing(SUM), _summing(AVG), _summing(None)
largest, smallest, multiplied = _summing(Partial("max")), _summing(Partial("min")), _summing(Partial("product"))


def extreme(call, input, dim=None, *args, **kwargs):
    """max and min: of all elements, of two tensors, or along a dimension with its place."""
    if spec_like(dim):
        return broadcast(call, call.result.shape)
    if dim is None:
        return (largest if call.name == "max" else smallest)(call, input)
    return reduced(call, input, dim, *args, **kwargs)


def counted(call, input, dim=None, *_, **__):
    """Counts of elements."""
    ways = reduced(call, input, dim)
    return ways + [Way((Shard(d),), SUM) for d in sorted(_dims(dim, input.ndim))]


def spread(call, input, *args, **kwargs):
    """std and var, whose dimensions may be their second argument or a name."""
    dim = kwargs.get("dim", args[0] if args and not isinstance(args[0], bool) else None)
    return reduced(call, input, dim, kwargs.get("keepdim", False))


def norm(call, input, ord=2, dim=None, keepdim=False, *, dtype=None):
    """The norm of vectors: where their dimension is cut, powers are summed over the processes."""
    dims = _dims(dim, input.ndim)
    ways = [Way((Shard(d),), Shard(to)) for d, to in _reduced(input, dims, keepdim)]
    ways += [Way((Shard(d),), WHOLE) for d in sorted(dims)]

    def run(func, plan, args, kwargs):
        from .redistribution import redistributed

        spec, local = plan.ins[0], args[0]
        cut = tuple(SUM if p.is_shard() and p.dim in dims else WHOLE for p in spec.placements)
        if cut == (WHOLE,) * len(cut):
            return func(*args, **kwargs)
        if ord in (math.inf, -math.inf):
            op = Partial("max" if ord > 0 else "min")
            if local.numel():
                value = func(*args, **kwargs)
            else:
                value = local.new_full(plan.outs[0].local_shape()[0], 0.0 if ord > 0 else math.inf)
            return redistributed(value, value.shape, spec.mesh, tuple(op if p == SUM else WHOLE for p in cut),
                                 (WHOLE,) * len(cut))  # fmt: skip
        power = local.to(dtype).abs() if dtype is not None else local.abs()
        power = (power != 0).to(power.dtype) if ord == 0 else power**ord
        total = power.sum(sorted(dims), keepdim)
        total = redistributed(total, total.shape, spec.mesh, cut, (WHOLE,) * len(cut))
        return total if ord in (0, 1) else total ** (1 / ord)

    return ways, run


def along(call, input, *args, **kwargs):
    """Operators that work along `dim`: cut anywhere else."""
    name = next(n for n in ("dim", "dimension") if n in _parameters(call.name))
    place = _parameters(call.name).index(name) - 1
    dim = kwargs.get(name, args[place] if place < len(args) else _default(call.name, name))
    if dim is None:
        return []
    dim = positive(dim, max(input.ndim, 1))
    if len(call.tensors) > 1:
        return []
    keepdim = len(call.result.shape) == input.ndim
    return [Way((Shard(d),), Shard(to)) for d, to in _reduced(input, {dim}, keepdim)]


def _parameters(name):
    return [part.name for part in signature_parts(name)]


def _default(name, parameter):
    text = next(part.default for part in signature_parts(name) if part.name == parameter)
    return int(text) if text and text.lstrip("-").isdigit() else None


def leading(call, input, *args, **kwargs):
    """Operators on the last two dimensions: cut in the leading ones."""
    return [Way((Shard(d),), Shard(d)) for d in range(input.ndim - 2)]


def rows(call, input, *args, **kwargs):
    """Operators on images: cut along the batch and, where the others allow, the channels."""
    if len(call.tensors) > 1:
        return []
    spatial = int(call.name[-2]) if call.name[-1] == "d" else 2
    return [Way((Shard(d),), Shard(d), True) for d in range(input.ndim - spatial)]  # images, not none of them


# ---- products


def contraction(labels, result, linear=True):
    """Ways of a product, by the labels of dimensions as in einsum."""
    ways = []
    for label in dict.fromkeys("".join(labels) + result):
        ins = tuple(Shard(text.index(label)) if label in text else WHOLE for text in labels)
        if label in result:
            ways.append(Way(ins, Shard(result.index(label))))
        else:
            ways.append(Way(ins, SUM))
    if linear:
        for i in range(len(labels)):
            ways.append(Way(tuple(SUM if j == i else WHOLE for j in range(len(labels))), SUM))
    return ways


def _matmul_labels(a, b):
    batch = "ABCDEFGHIJ"[: max(a.ndim, b.ndim, 2) - 2]
    left = (batch[len(batch) - (a.ndim - 2) :] if a.ndim > 2 else "") + "mk"
    right = (batch[len(batch) - (b.ndim - 2) :] if b.ndim > 2 else "") + "kn"
    out = batch + "mn"
    if a.ndim == 1:
        left, out = "k", out.replace("m", "")
    if b.ndim == 1:
        right, out = "k", out.replace("n", "")
    return left, right, out


def _broadcast_ways(ways, specs, shape_of):
    """Ways with broadcast dimensions of size one left whole."""
    made = []
    for way in ways:
        ins = tuple(
            WHOLE if p.is_shard() and spec.shape[p.dim] == 1 and shape_of(way) != 1 else p
            for spec, p in zip(specs, way.ins, strict=True)
        )
        made.append(Way(ins, way.outs, way.even))
    return made


def product(call, *_, **__):
    """Products of matrices and vectors, in batches or not."""
    left, right, out = _matmul_labels(*call.tensors)
    ways = contraction((left, right), out)
    shape = call.result.shape
    return _broadcast_ways(ways, call.tensors, lambda way: shape[way.outs.dim] if way.outs.is_shard() else 1)


def added_product(call, *_, **__):
    """addmm and baddbmm: the added tensor is broadcast to the product; parts of a sum have a part of it each."""
    input, a, b = call.tensors
    left, right, out = _matmul_labels(a, b)
    text = out[len(out) - input.ndim :]
    ways = [w for w in contraction((text, left, right), out, False) if w.outs != SUM]
    shape = call.result.shape
    ways = _broadcast_ways(ways, call.tensors, lambda way: shape[way.outs.dim])
    contracted = Way((SUM, Shard(left.index("k")), Shard(right.index("k"))), SUM)
    return [*ways, contracted]


def linear(call, *_, **__):
    """x Wᵀ + b; parts of a sum have a part of b each."""
    last = call.tensors[0].ndim - 1
    batch = "ABCDEFGHIJ"[:last]
    labels = [batch + "k", "nk"]
    if len(call.tensors) == 2:
        return contraction(labels, batch + "n")
    ways = [way for way in contraction([*labels, "n"], batch + "n", False) if way.outs != SUM]
    return [*ways, Way((Shard(last), Shard(1), SUM), SUM)]


# ---- joining


def joined(call, tensors, dim=0, **__):
    """cat: cut in other dimensions than the joined one."""
    dim = positive(dim, max(t.ndim for t in tensors))
    ndim = max(t.ndim for t in tensors)
    if any(t.ndim != ndim for t in tensors):
        return []
    ways = [call.all(Shard(d)) for d in range(ndim) if d != dim]
    return [*ways, call.all(SUM), call.all(AVG)]


def stacked(call, tensors, dim=0, **__):
    """stack: cut in any dimension, which may be one further in the result."""
    dim = positive(dim, tensors[0].ndim + 1)
    ways = [Way((Shard(d),) * len(tensors), Shard(d if d < dim else d + 1)) for d in range(tensors[0].ndim)]
    return [*ways, call.all(SUM), call.all(AVG)]


# ---- layers


def normalized(call, input, shape, weight=None, bias=None, *_, **__):
    """Layer and RMS norms: cut in the leading dimensions; weights are whole."""
    lead = input.ndim - len(shape)
    others = len(call.tensors) - 1
    outs = len(call.results)
    ways = []
    for d in range(lead):
        ways.append(Way((Shard(d), *[WHOLE] * others), (Shard(d),) * outs))
    return ways


def grouped(call, input, *_, **__):
    """Group norm: samples do not meet. The operator is told how many there are."""

    def run(func, plan, args, kwargs):
        return func(*args[:3], args[0].shape[0], *args[4:], **kwargs)

    return [Way((Shard(0), *[WHOLE] * (len(call.tensors) - 1)), (Shard(0),) * len(call.results))], run


def batch_norm(call, input, weight=None, bias=None, running_mean=None, running_var=None, training=False, *_, **__):
    """With its own statistics a batch is whole; otherwise samples do not meet."""
    return [] if training else [Way((Shard(0), *[WHOLE] * (len(call.tensors) - 1)), (Shard(0), WHOLE, WHOLE))]


def convolved(call, input, weight, *_, **__):
    """A convolution: cut along the batch."""
    spatial = weight.ndim - 2
    if input.ndim != spatial + 2:
        return []
    return [Way((Shard(0), *[WHOLE] * (len(call.tensors) - 1)), Shard(0))]


def attended(call, query, key, value, mask=None, *_, **__):
    """Attention: samples and heads do not meet."""
    ways = []
    for d in range(query.ndim - 2):
        if not query.shape[d] == key.shape[d] == value.shape[d]:
            continue  # heads that share a key
        ins = []
        for i, spec in enumerate(call.tensors):
            at = d if i < 3 else d - (query.ndim - spec.ndim)
            ins.append(Shard(at) if at >= 0 and spec.shape[at] != 1 else WHOLE)
        outs = tuple(Shard(d) if len(r.shape) > d else WHOLE for r in call.results)
        ways.append(Way(tuple(ins), outs if len(outs) > 1 else outs[0]))
    return ways


def embedded(call, weight, indices, padding_idx=-1, *args, **__):
    """An embedding: cut along its features or the indices; cut along its rows, each process has those it knows."""
    ways = [Way((WHOLE, Shard(d)), Shard(d)) for d in range(indices.ndim)]
    ways.append(Way((Shard(1), WHOLE), Shard(indices.ndim)))
    ways.append(Way((Shard(0), WHOLE), SUM))

    def run(func, plan, local_args, local_kwargs):
        weight_spec = plan.ins[0]
        if not any(p.is_shard(0) for p in weight_spec.placements):
            return func(*local_args, **local_kwargs)
        shape, offset = weight_spec.local_shape()
        local, places = local_args[0], local_args[1] - offset[0]
        outside = (places < 0) | (places >= shape[0])
        padding = local_args[2] if len(local_args) > 2 else -1
        padding = padding - offset[0] if padding is not None and offset[0] <= padding < offset[0] + shape[0] else -1
        if not shape[0]:
            return local.new_zeros(*places.shape, local.shape[1]) + local.sum()
        found = func(local, places.masked_fill(outside, 0), padding, *local_args[3:], **local_kwargs)
        return found.masked_fill(outside.unsqueeze(-1), 0)

    return ways, run


# ---- places


def gathered(call, input, dim, index, *_, **__):
    """gather: cut where the dimension is not, if both are as long."""
    dim = positive(dim, input.ndim)
    ways = [Way((Shard(d), Shard(d)), Shard(d)) for d in range(input.ndim)
            if d != dim and input.shape[d] == index.shape[d]]  # fmt: skip
    return [*ways, Way((WHOLE, Shard(dim)), Shard(dim))]


def scattered(call, input, dim, index, source=None, *_, **__):
    """scatter and its variants: cut where the dimension is not."""
    dim, count = positive(dim, input.ndim), len(call.tensors)
    alike = [d for d in range(input.ndim) if d != dim and all(t.ndim > d and t.shape[d] == input.shape[d]
                                                              for t in call.tensors)]  # fmt: skip
    return [Way((Shard(d),) * count, Shard(d)) for d in alike]


def selected(call, input, dim, index, *rest, **__):
    """index_select, index_fill: cut in other dimensions."""
    dim = positive(dim, input.ndim)
    others = [WHOLE] * (len(call.tensors) - 1)
    return [Way((Shard(d), *others), Shard(d)) for d in range(input.ndim) if d != dim]


def added_at(call, input, dim, index, source, *_, **__):
    """index_add, index_copy: cut in other dimensions, the source, too."""
    dim = positive(dim, input.ndim)
    return [Way((Shard(d), WHOLE, Shard(d)), Shard(d)) for d in range(input.ndim) if d != dim]


def indexed(call, input, indices, *_, **__):
    """Reading at tensors of places: cut in dimensions that are not indexed, or cut the places."""
    used = [d for d, index in enumerate(indices) if index is not None]
    tensors = [index for index in indices if index is not None]
    if not used or used != list(range(used[0], used[0] + len(used))):
        return []
    if any(not spec_like(t) or t.dtype == cresset.bool for t in tensors):
        return []
    width = max(t.ndim for t in tensors)
    ways = []
    for d in range(input.ndim):
        if d not in used:
            to = d if d < used[0] else d - len(used) + width
            ways.append(Way((Shard(d), *[WHOLE] * len(tensors)), Shard(to)))
    if len({tuple(t.shape) for t in tensors}) == 1:
        for d in range(width):
            ways.append(Way((WHOLE, *[Shard(d)] * len(tensors)), Shard(used[0] + d)))
    return ways


RULES = {
    "pointwise": pointwise, "same": same, "like": like, "filled": filled, "copied": copied, "new": new,
    "summed": summed, "averaged": averaged, "reduced": reduced, "largest": largest, "smallest": smallest,
    "multiplied": multiplied, "extreme": extreme, "counted": counted, "spread": spread, "norm": norm,
    "along": along, "leading": leading, "rows": rows, "product": product, "added_product": added_product,
    "linear": linear, "joined": joined, "stacked": stacked, "normalized": normalized, "grouped": grouped,
    "batch_norm": batch_norm, "convolved": convolved, "attended": attended, "embedded": embedded,
    "gathered": gathered, "scattered": scattered, "selected": selected, "added_at": added_at, "indexed": indexed,
}  # fmt: skip
