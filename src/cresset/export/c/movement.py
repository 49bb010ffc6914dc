"""Operators that move elements: views, joining, looking up."""

import cresset

from .arrays import Array
from .text import literal, loops, merged, place, strides_of


def view(writer, node, given):
    """A view: a part that lies in one piece is the same array, others are copied."""
    source = writer.array(next(v for v in given.values() if v is node.args[0]))
    plan = cresset.empty(source.shape, device="meta")
    arguments = [plan if a is node.args[0] else a for a in node.args]
    made = node.target(*arguments, **node.kwargs)
    views = [made] if isinstance(made, cresset.Tensor) else list(made)
    found = []
    for part in views:
        if part.is_contiguous():
            found.append(Array(part.shape, source.dtype).part_of(source, part.storage_offset()))
        else:
            found.append(copied(writer, source, part.shape, part.stride(), part.storage_offset()))
    writer.arrays[node] = found[0] if isinstance(made, cresset.Tensor) else found


def copied(writer, source, shape, strides, offset=0):
    """A new array of the elements at these places."""
    made = writer.new(shape, source.dtype)
    shape, (steps, own) = merged(shape, list(strides), strides_of(shape))
    names = [f"i{k}" for k in range(len(shape))]
    text = loops(shape, f"{made.name}[{place(own, names)}] = {source.name}[{place(steps, names, offset)}];")
    return writer.step(text, made, [source])


def cat(writer, tensors, dim=0):
    arrays = [writer.array(t) for t in tensors]
    arrays = [a for a in arrays if a.count]
    made = writer.new()
    dim %= len(made.shape)
    outer, after = 1, 1
    for size in made.shape[:dim]:
        outer *= size
    for size in made.shape[dim + 1 :]:
        after *= size
    row, start, lines = made.shape[dim] * after, 0, []
    for array in arrays:
        width = array.shape[dim] * after
        lines.append(
            f"memcpy({made.name} + i * {row} + {start}, {array.name} + i * {width}, sizeof({made.ctype}) * {width});"
        )
        start += width
    return writer.step(loops([outer], "\n".join(lines), ["i"]), made, arrays)


def stack(writer, tensors, dim=0):
    arrays = [writer.array(t) for t in tensors]
    dim %= len(arrays[0].shape) + 1
    return cat(writer, [Array((*a.shape[:dim], 1, *a.shape[dim:]), a.dtype).part_of(a, 0) for a in arrays], dim)


def embedding(writer, weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    table, index = writer.array(weight), writer.array(indices)
    made, width = writer.new(), table.shape[1]
    body = (
        f"memcpy({made.name} + i * {width}, {table.name} + {index.name}[i] * {width}, sizeof({made.ctype}) * {width});"
    )
    return writer.step(loops([index.count], body, ["i"]), made, [table, index])


def index_select(writer, self, dim, index):
    source, index = writer.array(self), writer.array(index)
    made = writer.new()
    dim %= len(source.shape)
    names = [f"i{k}" for k in range(len(made.shape))]
    steps = strides_of(source.shape)
    chosen = [f"{index.name}[{name}]" if k == dim else name for k, name in enumerate(names)]
    text = loops(
        made.shape, f"{made.name}[{place(strides_of(made.shape), names)}] = {source.name}[{place(steps, chosen)}];"
    )
    return writer.step(text, made, [source, index])


def constant_pad(writer, self, pad, value=0):
    source, made = writer.array(self), writer.new()
    before = [0] * len(source.shape)
    for k in range(len(pad) // 2):
        before[len(source.shape) - 1 - k] = pad[2 * k]
    if any(p < 0 for p in pad):
        raise writer.unsupported("padding by less than nothing")
    fill = f"for (long i = 0; i < {made.count}; ++i) {made.name}[i] = {literal(value or 0, made.dtype)};\n"
    names, steps = [f"i{k}" for k in range(len(source.shape))], strides_of(made.shape)
    offset = sum(b * s for b, s in zip(before, steps, strict=True))
    body = f"{made.name}[{place(steps, names, offset)}] = {source.name}[{place(strides_of(source.shape), names)}];"
    return writer.step(fill + loops(source.shape, body), made, [source])


def pad(writer, self, pad, mode="constant", value=None):
    if mode != "constant":
        raise writer.unsupported(f"padding with mode={mode!r}")
    return constant_pad(writer, self, pad, value)


EMITTERS = {
    "cat": cat,
    "stack": stack,
    "embedding": embedding,
    "index_select": index_select,
    "constant_pad_nd": constant_pad,
    "pad": pad,
}
