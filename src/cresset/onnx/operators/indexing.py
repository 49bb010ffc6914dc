"""Picking and placing elements: x[...], x[...] = y, gather, scatter and their kin."""

import cresset

from ...graph.recording import Value
from ...graph.sizes import Size
from . import exports, rules

END = 2**63 - 1


@exports("__getitem__")
def getitem(g, input, index):
    """Slices first, then single places, then new dimensions, then tensors."""
    x, entries = _basic(g, input, index)
    return _by_tensors(g, x, entries) if any(entries) else x


def _entries(g, index, rank):
    index = list(index) if isinstance(index, tuple) else [index]
    index = [_listed(g, i) for i in index]
    used = sum(_width(i) for i in index)
    if Ellipsis not in [i for i in index if i is Ellipsis]:
        index.append(Ellipsis)
    at = next(k for k, i in enumerate(index) if i is Ellipsis)
    return index[:at] + [slice(None)] * (rank - used) + index[at + 1 :]


def _listed(g, entry):
    """A list in an index is a tensor."""
    if not isinstance(entry, list):
        return entry
    if any(isinstance(i, (Size, Value)) for i in entry):
        raise g.unsupported("a list of sizes or tensors in an index")
    value = Value(-1, cresset.tensor(entry), False)
    g.name(value)
    return value


def _width(entry):
    """How many dimensions an entry of an index takes."""
    if entry is None or entry is Ellipsis or isinstance(entry, bool):
        return 0
    return len(entry.shape) if isinstance(entry, Value) and entry.dtype is cresset.bool else 1


def _basic(g, input, index):
    """Apply what is no tensor. Gives the name, and for each dimension the tensor that indexes it, or None.

    A mask covers several dimensions: it stands at the first, and an empty tuple at the others.
    """
    entries = _entries(g, index, len(input.shape))
    x, starts, ends, axes, steps, singles = g.name(input), [], [], [], [], []
    dim, new, by_tensor = 0, [], []
    for entry in entries:
        if entry is None:
            new.append(len(by_tensor))
            by_tensor.append(None)
        elif isinstance(entry, bool):
            raise g.unsupported("an index that is True or False")
        elif isinstance(entry, slice):
            size = input.shape[dim]
            start, end, step = (
                entry.start or 0,
                END if entry.stop is None else entry.stop,
                1 if entry.step is None else entry.step,
            )
            if any(isinstance(bound, Value) for bound in (start, end, step)):
                raise g.unsupported("a slice whose bounds are tensors")
            end = END if end == size else end
            if (start, end, step) != (0, END, 1):
                starts.append(start), ends.append(end), axes.append(dim), steps.append(step)
            by_tensor.append(None)
            dim += 1
        elif isinstance(entry, (int, Size)):
            singles.append((dim, entry))
            dim += 1
        else:
            width = _width(entry)
            by_tensor += [(entry,), *[()] * (width - 1)]
            dim += width
    if axes:
        x = g.op("Slice", x, g.sizes(starts), g.sizes(ends), g.ints(axes), g.ints(steps))
    for axis, place in reversed(singles):
        x = g.op("Gather", x, g.number(place, cresset.int64), axis=axis)
    return g.unsqueeze(x, new), by_tensor


def _sliced(size, start, end, step):
    """The size of a slice, for each recording."""
    parts = [v.samples if isinstance(v, Size) else None for v in (size, start, end, step)]
    count = next((len(p) for p in parts if p), 1)
    numbers = [p or (v,) * count for p, v in zip(parts, (size, start, end, step), strict=True)]
    return Size.of(len(range(n)[slice(a, b, s)]) for n, a, b, s in zip(*numbers, strict=True))


def _by_tensors(g, x, entries):
    used = [k for k, e in enumerate(entries) if e]
    if len(used) == 1 and entries[used[0]][0].dtype is not cresset.bool:
        index = entries[used[0]][0]
        return g.op("Gather", x, g.places(index), axis=used[0])
    dims = [k for k, e in enumerate(entries) if e is not None]
    rest = [k for k in range(len(entries)) if k not in dims]
    adjacent = dims == list(range(dims[0], dims[-1] + 1))
    x = g.transpose(x, [*dims, *rest])
    columns, rank = [], 0
    masks = [e[0] for e in (entries[k] for k in used) if e[0].dtype is cresset.bool]
    if masks:
        if len(used) > 1:
            raise g.unsupported("a mask beside another tensor in an index")
        places = g.op("Transpose", g.op("NonZero", masks[0]), perm=[1, 0])  # (count, dimensions)
        found, rank = g.op("GatherND", x, places), 1
    else:
        tensors = [entries[k][0] for k in used]
        rank = max(len(t.shape) for t in tensors)
        whole = None
        for t in tensors:
            whole = g.name(t) if whole is None else g.op("Add", whole, g.cast(t, t.dtype, tensors[0].dtype))
        common = g.op("Shape", whole)
        for t in tensors:
            columns.append(g.unsqueeze(g.op("Expand", g.places(t), common), [rank]))
        found = g.op("GatherND", x, g.op("Concat", *columns, axis=rank))
    if adjacent and dims[0] > 0:  # the new dimensions take the place of the indexed ones
        before = [d for d in rest if d < dims[0]]
        total = rank + len(rest)
        order = [rank + k for k in range(len(before))] + list(range(rank)) + list(range(rank + len(before), total))
        found = g.transpose(found, order)
    return found


@exports("index")
def index(g, input, indices):
    entries = tuple(slice(None) if i is None else i for i in indices)
    return getitem(g, input, entries)


@exports("__setitem__")
def setitem(g, input, index, value):
    """A mask becomes Where; slices and single places cut the tensor in three and join it again; whole numbers become
    ScatterND.
    """
    entries = _entries(g, index, len(input.shape))
    if isinstance(value, Value):
        value_name, value_shape = g.cast(value, value.dtype, input.dtype), value.shape
        ones = next((k for k, s in enumerate(value_shape) if s != 1), len(value_shape))
        value_name, value_shape = g.squeeze(value_name, list(range(ones))), value_shape[ones:]
    else:
        value_name, value_shape = g.number(value, input.dtype), ()
    tensors = [e for e in entries if isinstance(e, Value)]
    if (
        len(tensors) == 1
        and tensors[0].dtype is cresset.bool
        and entries[0] is tensors[0]
        and not any(isinstance(s, Size) or s != 1 for s in value_shape)
    ):
        missing = len(input.shape) - len(tensors[0].shape)
        if all(isinstance(e, slice) and e == slice(None) for e in entries[1:]):
            mask = g.unsqueeze(tensors[0], [len(tensors[0].shape) + k for k in range(missing)])
            return g.op("Where", mask, value_name, input)
    if tensors:
        if (
            entries[0] is not tensors[0]
            or any(not isinstance(e, Value) for e in entries[: len(tensors)])
            or any(e != slice(None) for e in entries[len(tensors) :])
        ):
            raise g.unsupported("assignment through tensors that do not index the first dimensions")
        if any(t.dtype is cresset.bool for t in tensors):
            raise g.unsupported("assignment of several values through a mask; use torch.where")
        return rules["index_put"](g, input, tensors, (value_name, value_shape), False)
    return _assign(g, g.name(input), list(input.shape), entries, 0, value_name)


def _assign(g, x, shape, entries, dim, value):
    """x with `value` in the place that the entries from `dim` on name; value has no dimension for single places."""
    while entries and isinstance(entries[0], slice) and entries[0] == slice(None):
        entries, dim = entries[1:], dim + 1
    if not entries:
        return g.op("Expand", value, g.sizes(shape)) if shape else value
    entry, rest = entries[0], entries[1:]
    if entry is None:
        raise g.unsupported("assignment through an index with None")
    size = shape[dim]
    if isinstance(entry, slice):
        step = 1 if entry.step is None else entry.step
        if step != 1:
            raise g.unsupported("assignment to a slice with a step")
        start, end = entry.start or 0, END if entry.stop is None else entry.stop
        inner_size = _sliced(size, start, end, 1)
        inner = g.slice(x, dim, start, end)
        inner = _assign(g, inner, [*shape[:dim], inner_size, *shape[dim + 1 :]], rest, dim + 1, value)
    else:
        start, end = entry, entry + 1 if not (isinstance(entry, int) and entry == -1) else END
        inner = g.op("Gather", x, g.number(entry, cresset.int64), axis=dim)
        inner = g.unsqueeze(_assign(g, inner, [*shape[:dim], *shape[dim + 1 :]], rest, dim, value), [dim])
    parts = []
    if not (isinstance(start, int) and start == 0):
        parts.append(g.slice(x, dim, 0, start))
    parts.append(inner)
    if not (isinstance(end, int) and end == END) and end != size:
        parts.append(g.slice(x, dim, end, END))
    return parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=dim)


@exports("__place__")
def place(g, input, places, part):
    """`part` at the places that it has among all elements of the input."""
    flat = g.op("ScatterElements", g.reshape(input, [-1]), g.reshape(places, [-1]), g.reshape(part, [-1]), axis=0)
    return g.reshape(flat, input.shape)
