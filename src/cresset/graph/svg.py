"""Pictures of graphs: operators as boxes from top to bottom, shapes on the lines between them, modules as frames around
what they call.

The layout is simple: an operator stands below all it reads, and beside others of its row in the order of what they
    read. Every picture is one SVG text without scripts.
"""

from xml.sax.saxutils import escape

ROW, GAP, PAD, LINE = 88, 30, 14, 17
COLORS = {
    "input": ("#e8f1fb", "#3572b0"),
    "parameter": ("#f3f0e6", "#9a8a55"),
    "operator": ("#ffffff", "#5b6470"),
    "output": ("#e7f5ec", "#2f8f5b"),
    "write": ("#fdeeee", "#b04a4a"),
}
STYLE = (
    "text{font-family:-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;font-size:13px;fill:#1f2933}"
    ".small{font-size:11px;fill:#66707c}.shape{font-size:10.5px;fill:#3d4753;font-family:ui-monospace,Menlo,Consolas,monospace}.frame{font-size:11px;fill:#8591a0;font-weight:600}"
)


class Box:
    """What is drawn: a title, a line below it, its kind, the module it belongs to, and the boxes it reads with what is
    written on the lines.
    """

    def __init__(self, key, title, kind, note="", module=""):
        self.key, self.title, self.kind, self.note, self.module = key, title, kind, note, module
        self.reads = []  # (Box, label)
        self.row = self.x = self.y = 0
        self.width = max(90, int(7.4 * max(len(title), 0.85 * len(note))) + 2 * PAD)
        self.height = 2 * LINE + 10 if note else LINE + 14


def svg(boxes, title=""):
    """The picture of boxes, each after those that it reads."""
    members = [box.module for box in boxes]
    for box in boxes:
        if members.count(box.module) > 1:  # a frame says where it is
            box.note, box.height = "", LINE + 14
    _place_rows(boxes)
    width, height = _place_columns(boxes)
    frames = _frames(boxes)
    lanes = []
    lines = [_line(box, other, label, k, boxes, lanes) for box in boxes for k, (other, label) in enumerate(box.reads)]
    left = min([0, *(f[0] - 8 for f in frames)])
    right = max(
        [
            width,
            *(
                lane + 6.4 * max((len(label) for b in boxes for _, label in b.reads), default=0) + 12
                for lane, _, _ in lanes
            ),
            *(f[2] + 8 for f in frames),
            *(lane + 24 for lane, _, _ in lanes),
        ]
    )
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left - 12:.0f} -30 {right - left + 24:.0f} '
            f'{height + 48:.0f}" width="{right - left + 24:.0f}" height="{height + 48:.0f}">'
        ),
        f"<style>{STYLE}</style>",
        (
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto"><path d="M0 0L8 4L0 8z" fill="#8a94a0"/></marker></defs>'
        ),
        f'<rect x="{left - 12:.0f}" y="-30" width="100%" height="100%" fill="#fbfcfd"/>',
    ]
    if title:
        parts.append(f"<title>{escape(title)}</title>")
    for x0, y0, x1, y1, name, depth in frames:
        fill = "#f1f4f8" if depth % 2 else "#f6f8fb"
        parts.append(
            f'<rect x="{x0:.0f}" y="{y0:.0f}" width="{x1 - x0:.0f}" height="{y1 - y0:.0f}" rx="10" fill="{fill}" '
            'stroke="#d5dce4"/>'
        )
        parts.append(f'<text class="frame" x="{x0 + 9:.0f}" y="{y0 + 14:.0f}">{escape(name)}</text>')
    parts += [line for line, _ in lines] + [_drawn(box) for box in boxes] + [label for _, label in lines]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _place_rows(boxes):
    for box in boxes:
        box.row = 1 + max((other.row for other, _ in box.reads), default=-1)
    for box in reversed(boxes):  # what is read far below stands near its reader
        users = [user.row for user in boxes if any(other is box for other, _ in user.reads)]
        if users and not box.reads:
            box.row = max(box.row, min(users) - 1)


def _place_columns(boxes):
    rows = {}
    for box in boxes:
        rows.setdefault(box.row, []).append(box)
    for row in sorted(rows):
        members = rows[row]
        x = 0.0
        for box in members:
            box.x = x
            x += box.width + GAP
    for _ in range(6):  # pull boxes under what they read and over what reads them
        for row in sorted(rows):
            _spread(rows[row], lambda b: [o.x + o.width / 2 for o, _ in b.reads])
        for row in sorted(rows, reverse=True):
            _spread(rows[row], lambda b: [u.x + u.width / 2 for u in boxes if any(o is b for o, _ in u.reads)])
    shift = min(box.x for box in boxes) if boxes else 0
    y = 0
    for row in sorted(rows):
        for box in rows[row]:
            box.x, box.y = box.x - shift, y
        y += ROW
    return max((box.x + box.width for box in boxes), default=0), y


def _spread(members, neighbors):
    """Move the boxes of a row to the middle of their neighbors, in order, without overlap."""
    wanted = {}
    for box in members:
        at = neighbors(box)
        wanted[box] = (sum(at) / len(at) if at else box.x + box.width / 2) - box.width / 2
    members.sort(key=lambda b: (wanted[b], b.x))
    edge = None
    for box in members:
        box.x = wanted[box] if edge is None else max(wanted[box], edge)
        edge = box.x + box.width + GAP
    over = sum(box.x - wanted[box] for box in members) / len(members)
    for box in members:
        box.x -= over


def _frames(boxes):
    """A rectangle around the boxes of each module, the outermost first. One that would hold a stranger is left out."""
    groups = {}
    for box in boxes:
        parts = box.module.split(".") if box.module else []
        for depth in range(1, len(parts) + 1):
            groups.setdefault(".".join(parts[:depth]), []).append(box)
    found = []
    for name in sorted(groups, key=lambda n: n.count(".")):
        members = groups[name]
        depth = name.count(".")
        inner = (
            max((n.count(".") for n, m in groups.items() if n.startswith(name + ".") and len(m) > 1), default=depth)
            - depth
        )
        margin = 12 + 10 * inner
        x0, x1 = min(b.x for b in members) - margin, max(b.x + b.width for b in members) + margin
        y0, y1 = min(b.y for b in members) - 20 - 16 * inner, max(b.y + b.height for b in members) + 8 + 5 * inner
        strangers = [
            b
            for b in boxes
            if b not in members and b.x < x1 and b.x + b.width > x0 and b.y < y1 and b.y + b.height > y0
        ]
        if 1 < len(members) < len(boxes) and not strangers:
            found.append((x0, y0, x1, y1, name, depth + 1))
    return found


def _line(box, other, label, k, boxes, lanes):
    x1, y1 = other.x + other.width / 2, other.y + other.height
    x2, y2 = box.x + box.width * (k + 1) / (len(box.reads) + 1), box.y
    middle = (y1 + y2) / 2
    between = [
        b for b in boxes if other.row < b.row < box.row and b.x < max(x1, x2) + 12 and b.x + b.width > min(x1, x2) - 12
    ]
    if between:  # around the boxes on the way, each such line in a lane of its own
        side = max(b.x + b.width for b in between) + 18
        crossed = [b for b in boxes if other.row < b.row < box.row]
        while True:
            hit = [b.x + b.width + 18 for b in crossed if b.x - 8 < side < b.x + b.width + 8]
            hit += [lane + 12 for lane, top, bottom in lanes if abs(side - lane) < 11 and top < y2 and bottom > y1]
            if not hit:
                break
            side = max(hit)
        lanes.append((side, y1, y2))
        x2 = max(x2, box.x + box.width * 0.75)
        path = (
            f"M{x1:.1f} {y1:.1f}C{x1:.1f} {y1 + 26:.1f} {side:.1f} {y1 + 8:.1f} {side:.1f} {y1 + 44:.1f}"
            f"L{side:.1f} {y2 - 44:.1f}C{side:.1f} {y2 - 8:.1f} {x2:.1f} {y2 - 26:.1f} {x2:.1f} {y2 - 1:.1f}"
        )
        x, y = side + 3.2 * len(label) + 9, middle
    else:
        path = f"M{x1:.1f} {y1:.1f}C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2 - 1:.1f}"
        x, y = (x1 + x2) / 2, middle
    drawn = f'<path d="{path}" fill="none" stroke="#a3adb8" marker-end="url(#arrow)"/>'
    if not label:
        return drawn, ""
    half = 3.2 * len(label) + 4
    back = (
        f'<rect x="{x - half:.1f}" y="{y - 7:.1f}" width="{2 * half:.1f}" height="14" rx="4" fill="#fbfcfd" '
        'fill-opacity="0.92"/>'
    )
    return drawn, f'{back}<text class="shape" x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{escape(label)}</text>'


def _drawn(box):
    fill, stroke = COLORS[box.kind]
    center = box.x + box.width / 2
    radius = box.height / 2 if box.kind in ("input", "output") else 6
    parts = [
        (
            f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
            f'rx="{radius:.1f}" '
            f'fill="{fill}" stroke="{stroke}"/>'
        )
    ]
    parts.append(
        f'<text x="{center:.1f}" y="{box.y + (LINE + 1 if box.note else box.height / 2 + 4.5):.1f}" '
        f'text-anchor="middle">{escape(box.title)}</text>'
    )
    if box.note:
        parts.append(
            f'<text class="small" x="{center:.1f}" y="{box.y + 2 * LINE + 1:.1f}" '
            f'text-anchor="middle">{escape(box.note)}</text>'
        )
    return "".join(parts)


# ---- what graphs say


def graph_svg(graph, title=""):
    """The picture of a Graph: constants and attributes are part of the boxes that read them."""
    boxes, made = [], {}
    for value in graph.inputs():
        if not (value.debugName() == "self" and getattr(value.type(), "is_module", False)):
            made[value] = Box(value, value.debugName(), "input")
            boxes.append(made[value])
    hidden = (
        "prim::Constant",
        "prim::GetAttr",
        "prim::ListConstruct",
        "prim::ListUnpack",
        "prim::TupleUnpack",
        "prim::TupleConstruct",
    )
    for node in graph.nodes():
        if node.kind() in hidden:
            inside = [made[v] for v in node.inputs() if v in made]
            if inside and node.kind() in hidden[2:]:
                for output in node.outputs():
                    made[output] = inside if len(inside) > 1 else inside[0]
            continue
        kind = "write" if node.schema is not None and any(a.is_written for a in node.schema.arguments) else "operator"
        box = Box(node, node.kind().partition("::")[2], kind, _path(node.scope), _path(node.scope))
        for value in node.inputs():
            for source in _flat(made.get(value)):
                box.reads.append((source, _shape(value.type())))
        boxes.append(box)
        made.update(dict.fromkeys(node.outputs(), box))
    for value in graph.outputs():
        box = Box(value, "output", "output")
        box.reads = [(source, _shape(value.type())) for source in _flat(made.get(value))]
        boxes.append(box)
    return svg(boxes, title)


def _flat(found):
    return [] if found is None else found if isinstance(found, list) else [found]


def _shape(type):
    sizes = type.sizes() if hasattr(type, "sizes") else None
    return "×".join(map(str, sizes)) if sizes else ""


def _path(module):
    """Where in the model: the path without the model's own class."""
    return module.partition(".")[2]


def fx_svg(graph, title=""):
    """The picture of an fx graph with the shapes that its nodes note."""
    boxes, made = [], {}
    for node in graph.nodes:
        sizes = node.meta.get("sizes")
        if (
            node.op == "placeholder"
            and node.name.partition("_")[0] in ("p", "b", "c")
            and "_" in node.name
            and sizes is not None
            or node.op == "get_attr"
        ):
            continue
        if "expression" in node.meta:  # a size
            continue
        if node.op in ("placeholder", "output"):
            box = Box(node, node.name, "input" if node.op == "placeholder" else "output")
        else:
            name = getattr(getattr(node.target, "_schema", None), "op", None) or getattr(
                node.target, "__name__", str(node.target)
            )
            written = name.endswith("_") and not name.endswith("__")
            module, *_ = next(reversed((node.meta.get("nn_module_stack") or {}).values()), ("",))
            box = Box(node, name, "write" if written else "operator", module, module)
        for source in node.all_input_nodes:
            if source in made:
                shape = source.meta.get("sizes")
                box.reads.append(
                    (made[source], "×".join(map(str, shape)) if shape else source.meta.get("expression", ""))
                )
        boxes.append(box)
        made[node] = box
    return svg(boxes, title)
