"""Placement rules of operators that show or repeat the same elements in another shape. All of them are linear."""

import cresset

from .dispatch import Way
from .placement_types import Partial, Shard
from .words import positive

PARTS = tuple(Partial(op) for op in ("sum", "avg", "max", "min", "product"))


def _mapped(call, pairs):
    """Ways from pairs (dimension of the operand, of the results), and parts of reductions as they are."""
    outs = len(call.results)
    ways = [Way((Shard(a),), (Shard(b),) * outs) for a, b in pairs]
    return ways + [Way((p,), (p,) * outs) for p in PARTS]


def _numbers(given):
    """Integers that are given one by one, or as one tuple."""
    if len(given) == 1 and isinstance(given[0], (list, tuple)):
        return [int(n) for n in given[0]]
    return [int(n) for n in given]


def transposed(call, input, dim0=0, dim1=1, **named):
    """transpose and t."""
    if input.ndim < 2:
        return _mapped(call, [(d, d) for d in range(input.ndim)])
    a, b = positive(dim0, input.ndim), positive(dim1, input.ndim)
    swap = {a: b, b: a}
    return _mapped(call, [(d, swap.get(d, d)) for d in range(input.ndim)])


def permuted(call, input, *dims, **named):
    """permute."""
    order = [positive(d, input.ndim) for d in (_numbers(dims) if dims else named["dims"])]
    return _mapped(call, [(d, order.index(d)) for d in range(input.ndim)])


def unsqueezed(call, input, dim):
    """unsqueeze."""
    dim = positive(dim, input.ndim + 1)
    return _mapped(call, [(d, d if d < dim else d + 1) for d in range(input.ndim)])


def squeezed(call, input, *dims, dim=None):
    """squeeze: a dimension of one element is not cut."""
    given = _numbers(dims) if dims else ([dim] if isinstance(dim, int) else dim)
    chosen = range(input.ndim) if given is None else [positive(d, input.ndim) for d in given]
    gone = {d for d in chosen if input.shape[d] == 1}
    left = [d for d in range(input.ndim) if d not in gone]
    return _mapped(call, [(d, to) for to, d in enumerate(left)])


def _to_part(func, plan, args, kwargs):
    """The operator with the shape of this process's part of the result."""
    return func(args[0], plan.outs[0].local_shape()[0])


def expanded(call, input, *size, **named):
    """expand: dimensions that grow are not cut."""
    shape = call.result.shape
    lead = len(shape) - input.ndim
    return _mapped(call, [(d, d + lead) for d in range(input.ndim) if input.shape[d] == shape[d + lead]]), _to_part


def repeated(call, input, *repeats, **named):
    """repeat: dimensions that are there once may be cut."""
    times = _numbers(repeats) if repeats else named["repeats"]
    lead = len(times) - input.ndim
    return _mapped(call, [(d, d + lead) for d in range(input.ndim) if times[d + lead] == 1])


def _groups(before, after):
    """Runs of dimensions of two shapes that have the same number of elements: [(places before, places after)]."""
    groups, i, j = [], 0, 0
    while i < len(before) or j < len(after):
        one, two = [], []
        a = b = 1
        while True:
            if a == b and (one or two) and a != 0:
                break
            if (a <= b and i < len(before)) or j >= len(after):
                if i >= len(before):
                    break
                a *= before[i]
                one.append(i)
                i += 1
            else:
                b *= after[j]
                two.append(j)
                j += 1
        while i < len(before) and before[i] == 1 and j >= len(after):
            one.append(i)
            i += 1
        while j < len(after) and after[j] == 1 and i >= len(before):
            two.append(j)
            j += 1
        groups.append((one, two))
    return groups


def reshaped(call, input, *size, **named):
    """view and reshape: a cut stays where the first dimension of a run becomes the first one of another, evenly."""
    if size and isinstance(size[0], cresset.dtype) or isinstance(named.get("dtype"), cresset.dtype):
        wide = call.result.dtype.itemsize == input.dtype.itemsize
        return [Way((Shard(d),), Shard(d)) for d in range(input.ndim - (not wide))]
    before, after = list(input.shape), list(call.result.shape)
    if 0 in before:
        return _mapped(call, []), _to_part
    pairs = []
    for one, two in _groups(before, after):
        ins, outs = [d for d in one if before[d] != 1], [d for d in two if after[d] != 1]
        if not ins or not outs:
            continue
        if len(ins) == len(outs) == 1:
            pairs.append((ins[0], outs[0]))
            continue
        cuts = 1
        for p, n in zip(input.placements, input.mesh.shape, strict=True):
            cuts *= n if p.is_shard(ins[0]) else 1
        if cuts > 1 and before[ins[0]] % cuts == 0 and after[outs[0]] % cuts == 0:
            pairs.append((ins[0], outs[0]))
    return _mapped(call, pairs), _to_part


def _without(dims, call, input):
    return _mapped(call, [(d, d) for d in range(input.ndim) if d not in dims])


def narrowed(call, input, dim=0, *rest, **named):
    """slice, narrow, split, chunk: cut in other dimensions."""
    if call.name in ("split", "split_with_sizes", "chunk", "unsafe_split", "unsafe_chunk", "unsafe_split_with_sizes"):
        dim = named.get("dim", rest[0] if rest else 0)
    dim = positive(dim, input.ndim)
    whole = call.name == "slice" and call.result.shape[dim] == input.shape[dim]
    return _without(() if whole else {dim}, call, input)


def selected(call, input, dim=0, *rest, **named):
    """select and unbind: cut in other dimensions."""
    dim = positive(dim, input.ndim)
    return _mapped(call, [(d, d if d < dim else d - 1) for d in range(input.ndim) if d != dim])


def turned(call, input, *dims, **named):
    """flip and roll: cut in dimensions that do not turn."""
    given = named.get("dims", dims[1] if call.name == "roll" and len(dims) > 1 else None)
    if call.name == "flip" and given is None:
        given = _numbers(dims)
    if not given and given != 0:
        return _mapped(call, [])
    return _without({positive(d, input.ndim) for d in ([given] if isinstance(given, int) else given)}, call, input)


def windowed(call, input, dimension, *rest, **named):
    """unfold: cut in other dimensions."""
    return _without({positive(dimension, input.ndim)}, call, input)


def diagonals(call, input, offset=0, dim1=0, dim2=1):
    """diagonal: cut in other dimensions."""
    gone = {positive(dim1, input.ndim), positive(dim2, input.ndim)}
    left = [d for d in range(input.ndim) if d not in gone]
    return _mapped(call, [(d, to) for to, d in enumerate(left)])


def paired(call, input):
    """view_as_real and view_as_complex: cut where the pair is not."""
    last = input.ndim - (call.name == "view_as_complex")
    return _mapped(call, [(d, d) for d in range(last)])


def triangle(call, input, *rest, **named):
    """tril and triu: cut in the leading dimensions."""
    return _mapped(call, [(d, d) for d in range(input.ndim - 2)])


RULES = {
    "transposed": transposed, "permuted": permuted, "unsqueezed": unsqueezed, "squeezed": squeezed,
    "expanded": expanded, "repeated": repeated, "reshaped": reshaped, "narrowed": narrowed, "selected_at": selected,
    "turned": turned, "windowed": windowed, "diagonals": diagonals, "paired": paired, "triangle": triangle,
}  # fmt: skip
