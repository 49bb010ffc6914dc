"""A flame graph as one SVG file: a box for each function, as wide as the time spent in it, under the one that called
it. It needs no scripts; the pointer over a box tells its time."""

import html
import os

from . import stacks as stack_lines

WIDTH, ROW, MARGIN, TOP, BOTTOM = 1200, 18, 10, 46, 34
LEAST = 0.4  # of a pixel: narrower boxes are left out, and said so
MOST_ROWS = 200  # deeper calls belong to the last box
LETTER = 6.3  # the width of one, about
KINDS = ("program", "library", "python", "operator")
LEGEND = {
    "program": "your lines",
    "library": "other packages",
    "python": "Python inside cresset",
    "operator": "operators",
}


class Box:
    """A function and what it called; `time` is in nanoseconds and includes that."""

    def __init__(self, name, kind):
        self.name, self.kind, self.time, self.inside = name, kind, 0, {}

    def child(self, name, kind):
        if (name, kind) not in self.inside:
            self.inside[name, kind] = Box(name, kind)
        return self.inside[name, kind]

    def depth(self):
        return 1 + max((box.depth() for box in self.inside.values()), default=0)


def kind_of(file):
    return "library" if stack_lines.is_library(file) else "program"


def tree(samples):
    """The boxes of (frames, operator, nanoseconds): frames are (file, line, function), innermost first; operator is
    None for Python's own time. Lines inside cresset are left out: the operator is what they end in.
    """
    root = Box("all", "program")
    for frames, operator, time in samples:
        box = root
        box.time += time
        inside = False
        for file, line, function in reversed(frames[-MOST_ROWS:]):
            inside = stack_lines.is_ours(file)
            if not inside and not file.startswith("<frozen"):
                box = box.child(f"{function} {os.path.basename(file)}:{line}", kind_of(file))
                box.time += time
        if operator is not None:
            box = box.child(operator, "operator")
            box.time += time
        elif inside and box is not root:
            box = box.child("Python inside cresset", "python")
            box.time += time
    return root


def time_text(nanoseconds):
    for unit, length in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= length:
            return f"{nanoseconds / length:.3g} {unit}"
    return f"{nanoseconds:.0f} ns"


def draw(root, title, unit=time_text):
    """The picture as text."""
    width = WIDTH - 2 * MARGIN
    height = TOP + ROW * root.depth() + BOTTOM
    scale = width / max(root.time, 1)
    boxes, left_out = [], 0

    def put(box, x, row):
        nonlocal left_out
        wide = box.time * scale
        if wide < LEAST:
            left_out += 1
            return
        y = TOP + ROW * row
        letters = int((wide - 6) / LETTER)
        text = "" if letters < 3 else box.name if len(box.name) <= letters else box.name[: letters - 2] + ".."
        told = f"{box.name}: {unit(box.time)}, {100 * box.time / max(root.time, 1):.1f} %"
        boxes.append(
            f'<g class="{box.kind}"><title>{html.escape(told)}</title><rect x="{x:.1f}" y="{y}" '
            f'width="{max(wide - 0.4, 0.3):.1f}" height="{ROW - 1}" rx="1.5"/>'
            + (f'<text x="{x + 3:.1f}" y="{y + 13}">{html.escape(text)}</text>' if text else "")
            + "</g>"
        )
        for inner in sorted(box.inside.values(), key=lambda inner: -inner.time):
            put(inner, x, row + 1)
            x += inner.time * scale

    put(root, MARGIN, 0)
    legend = "".join(
        f'<g class="{kind}"><rect x="{MARGIN + 170 * at}" y="{height - 22}" width="12" height="12" rx="2"/></g>'
        f'<text class="plain" x="{MARGIN + 18 + 170 * at}" y="{height - 12}">{LEGEND[kind]}</text>'
        for at, kind in enumerate(KINDS)
    )
    note = f"{left_out} box{'es' * (left_out > 1)} too narrow to draw" if left_out else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{html.escape(title, quote=True)}"><style>{STYLE}</style>'
        f'<rect class="paper" width="100%" height="100%"/><text class="title" x="{MARGIN}" y="26">'
        f'{html.escape(title)}</text><text class="soft" x="{WIDTH - MARGIN}" y="26" text-anchor="end">{note}</text>'
        f"{''.join(boxes)}{legend}</svg>\n"
    )


STYLE = """
text{font:11px ui-monospace,Menlo,Consolas,monospace;fill:#1b1b1a;pointer-events:none}
.title{font:600 16px system-ui,sans-serif}.plain,.soft{font:12px system-ui,sans-serif}.soft{fill:#62625e}
.paper{fill:#fcfcfb}
.program rect{fill:#f3b26b}.library rect{fill:#d9d5c8}.python rect{fill:#a9c7e8}.operator rect{fill:#8fcf9f}
g:hover>rect{stroke:#1b1b1a;stroke-width:1}
@media(prefers-color-scheme:dark){text{fill:#ecebe7}.soft{fill:#a09f99}.paper{fill:#161615}
.program rect{fill:#8a5420}.library rect{fill:#4a4842}.python rect{fill:#2d557f}.operator rect{fill:#2c6b40}
g:hover>rect{stroke:#ecebe7}}
"""


def write(path, samples, title, unit=time_text):
    """Write the picture of these samples (see `tree`)."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(draw(tree(samples), title, unit))
