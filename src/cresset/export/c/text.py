"""Types, numbers and loops as C."""

import math

import cresset

CTYPES = {
    cresset.float32: "float", cresset.float64: "double", cresset.int64: "int64_t", cresset.int32: "int32_t",
    cresset.int16: "int16_t", cresset.int8: "int8_t",
    cresset.uint8: "uint8_t", cresset.bool: "uint8_t",
}  # fmt: skip


def ctype(dtype):
    """The type of an element."""
    if dtype not in CTYPES:
        raise NotImplementedError(f"to_c: tensors of {dtype} are not written; convert the module to float32")
    return CTYPES[dtype]


def literal(value, dtype):
    """A number of this dtype."""
    if dtype in (cresset.float32, cresset.float64):
        value = float(value)
        if math.isnan(value):
            return "NAN"
        if math.isinf(value):
            return "INFINITY" if value > 0 else "-INFINITY"
        if dtype == cresset.float32:
            return f"{value:.9g}" + ("f" if any(c in f"{value:.9g}" for c in ".e") else ".0f")
        return repr(value)
    if dtype == cresset.bool:
        return str(int(bool(value)))
    if dtype == cresset.int64:
        return f"INT64_C({int(value)})" if int(value) != -(2**63) else "INT64_MIN"
    return str(int(value))


def f(name, dtype):
    """The function of math.h for this dtype: expf or exp."""
    return name + "f" if dtype == cresset.float32 else name


def strides_of(shape):
    """The steps in row order."""
    found, step = [], 1
    for size in reversed(shape):
        found.append(step)
        step *= size
    return found[::-1]


def broadcast_strides(shape, onto):
    """The steps of an array of `shape` that is read as if it had the shape `onto`."""
    own = strides_of(shape)
    missing = len(onto) - len(shape)
    return [0] * missing + [
        0 if size == 1 and wanted != 1 else step for size, wanted, step in zip(shape, onto[missing:], own, strict=True)
    ]


def place(strides, names, offset=0):
    """The index of an element: i0 * 12 + i1 + 5."""
    terms = [name if step == 1 else f"{name} * {step}" for name, step in zip(names, strides, strict=True) if step]
    return " + ".join([*terms, *([str(offset)] if offset or not terms else [])])


def loops(shape, body, names=None):
    """Loops over all places of a shape around some lines."""
    names = names or [f"i{k}" for k in range(len(shape))]
    heads = [
        f"for (long {name} = 0; {name} < {size}; ++{name}) {{" for name, size in zip(names, shape, strict=True)
    ] or ["{"]
    lines, depth = ["    " * k + head for k, head in enumerate(heads)], len(heads)
    lines += ["    " * depth + line for line in body.splitlines()]
    while depth:
        depth -= 1
        lines.append("    " * depth + "}")
    return "\n".join(lines)


def merged(shape, *strides):
    """The same loops with as few of them as possible: neighbors that all arrays walk in one are one."""
    shape, strides = list(shape), [list(s) for s in strides]
    k = 0
    while k + 1 < len(shape):
        if all(s[k] == s[k + 1] * shape[k + 1] for s in strides) or shape[k] == 1 or shape[k + 1] == 1:
            keep = k + 1 if shape[k + 1] != 1 else k
            for s in strides:
                s[k : k + 2] = [s[keep]]
            shape[k : k + 2] = [shape[k] * shape[k + 1]]
        else:
            k += 1
    return shape, strides
