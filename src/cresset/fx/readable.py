"""What a graph's source says to readers: the dtype and shape of each value, and where in the program a call stands."""

import re

_SHORT = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "b8", "complex32": "c32", "complex64": "c64",
    "complex128": "c128",
}  # fmt: skip
_FRAME = re.compile(r'File "(.+)", line (\d+), in (.+)$')
_LONGEST_ANNOTATION = 40


class Readable:
    """What verbose code says beside the names.

    Args:
        stride, device: whether they are told of each value, too.
        colored: for a terminal.
        additional_meta: keys of `node.meta` that are told above each call.
    """

    def __init__(self, stride=False, device=False, colored=False, additional_meta=None):
        self.stride, self.device, self.colored = stride, device, colored
        self.additional_meta = additional_meta or ()
        self.said = None

    def paint(self, text, number):
        return f"\x1b[{number}m{text}\x1b[0m" if self.colored else text

    def value(self, node):
        """`"f32[batch, 4]"` of what a node gives, where that is known; else nothing."""
        known = node.meta.get("val", node.meta.get("tensor_meta"))
        if not hasattr(known, "shape") or not hasattr(known, "dtype"):
            return f'"Sym({node.meta["expression"]})"' if "expression" in node.meta else ""
        name = str(known.dtype).rpartition(".")[2]
        text = f"{_SHORT.get(name, name)}[{', '.join(map(str, node.meta.get('sizes', known.shape)))}]"
        if self.stride:
            text += str(list(known.stride() if callable(known.stride) else known.stride))
        if self.device and hasattr(known, "device"):
            text += str(known.device)
        return self.paint(f'"{text}"', 34)

    def above(self, node):
        """The comment above a call, where it is another one than above the call before; else None."""
        if node.op in ("placeholder", "output"):
            return None
        asked = [f"{key}: {node.meta[key]}" for key in self.additional_meta if key in node.meta]
        text = (f"# {', '.join(asked)} " if asked else "") + "#"
        if annotation := node.meta.get("custom"):
            text += f" Annotation: { {key: _shortened(value) for key, value in annotation.items()} }"
        recompute, region = node.meta.get("recompute"), node.meta.get("ac_graph_id")
        if region is not None:
            text += f" ac_graph_id: {region}" + (f" - {recompute.name}" if recompute is not None else "")
        elif recompute is not None:
            text += f" recompute: {recompute.name}"
        text = " ".join(f"{text} {_place(node.stack_trace)}".splitlines())
        text = f"\n{self.paint(text, 2)}\n"
        if text == self.said:
            return None
        self.said = text
        return text


def _shortened(value):
    text = str(value)
    return value if len(text) <= _LONGEST_ANNOTATION else text[:_LONGEST_ANNOTATION] + "..."


def _place(stack_trace):
    """The innermost line of the program in a stack trace, and its code."""
    lines = (stack_trace or "").strip().split("\n")
    for index in range(len(lines) - 2, -1, -1):
        frame = _FRAME.match(lines[index].strip())
        if frame:
            return f"File: {frame[1]}:{frame[2]} in {frame[3]}, code: {lines[index + 1].strip()}"
    return "No stacktrace found for following nodes"
