"""`draw`: the graph of a model's layers as an SVG picture, with the shapes of the tensors on the edges.

The model runs once on shapes, with gradients recorded: which layer feeds which is read from the recorded graph, so that
    additions,
concatenations and other functions between layers are followed too.
"""

import html

import cresset

from .summary import check_model, record, shapes_text

BOX_WIDTH, BOX_HEIGHT, GAP_X, GAP_Y, MARGIN = 190, 44, 36, 46, 24

STYLE = """
.box{fill:#fff;stroke:#4a5a78;stroke-width:1.2}.input .box{fill:#eef3fb}.output .box{fill:#eefbf0}
.kind{font:600 13px system-ui,sans-serif;fill:#1c2430}.path{font:11px ui-monospace,monospace;fill:#67738a}
.edge{fill:none;stroke:#8a97ad;stroke-width:1.3}
.shape{font:10px ui-monospace,monospace;fill:#3c4a63;paint-order:stroke;stroke:#fff;stroke-width:4px}
"""


class Vertex:
    """A box: the input, one call of a layer, or the output."""

    def __init__(self, title, subtitle, role=""):
        self.title, self.subtitle, self.role = title, subtitle, role
        self.sources = []  # (vertex, shape text)
        self.level = self.column = 0


class Drawing:
    """An SVG picture; notebooks show it, `str` gives its text."""

    def __init__(self, svg):
        self.svg = svg

    def _repr_svg_(self):
        return self.svg

    def __str__(self):
        return self.svg

    def __repr__(self):
        return f"<Drawing, {len(self.svg)} bytes of SVG>"


def draw(model, *inputs, path=None):
    """Draw the layers of `model` and the tensors between them; `path` also writes the SVG there.

    >>> picture = cresset.draw(nn.Sequential(nn.Linear(4, 8), nn.ReLU()), cresset.zeros(2, 4))
    >>> "(2, 8)" in str(picture)
    True
    """
    check_model(model, "draw")
    if not inputs:
        raise TypeError("draw: give the model's inputs, or shapes as tuples, after the model")
    given = [t if isinstance(t, cresset.Tensor) else cresset.empty(tuple(t)) for t in inputs]
    vertices = trace(model, [t.detach().to("meta") for t in given])
    place(vertices)
    picture = Drawing(render(vertices, type(model).__name__))
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(picture.svg)
    return picture


def trace(model, inputs):
    """The vertices in the order of the calls, with their sources."""
    inputs = [t.requires_grad_() if t.is_floating_point() or t.is_complex() else t for t in inputs]
    start = Vertex("input", shapes_text(inputs), "input")
    vertices, made_by, kept = [start], {}, []
    for t in inputs:
        made_by[id(t)] = (start, t)

    def origins(tensors):
        """Which vertices the tensors come from, through any functions in between."""
        found = []
        for t in tensors:
            direct = made_by.get(id(t))
            sources = [direct] if direct else _walk(t.grad_fn, by_node, made_by)
            for source, shaped in sources or [(start, t)]:
                if (source, shapes_text([shaped])) not in found:
                    found.append((source, shapes_text([shaped])))
        return found

    by_node = {}

    def after(layer, given, outputs):
        kept.extend((*given, *outputs))
        if not layer.is_leaf:
            return
        vertex = Vertex(layer.kind, layer.path)
        vertex.sources = origins(given)
        vertices.append(vertex)
        for t in outputs:
            made_by[id(t)] = (vertex, t)
            if t.grad_fn is not None:
                by_node[t.grad_fn] = (vertex, t)
                kept.append(t.grad_fn)

    order = record(model, inputs, after=after)
    end = Vertex("output", shapes_text(order[0].outputs), "output")
    end.sources = origins(order[0].outputs)
    return [*vertices, end]


def _walk(node, by_node, made_by):
    """The known vertices nearest behind `node`; at the leaves of the graph these are the inputs."""
    found, seen, todo = [], set(), [node]
    while todo:
        at = todo.pop()
        if at is None or at in seen:
            continue
        seen.add(at)
        if at in by_node:
            found.append(by_node[at])
        elif id(getattr(at, "variable", None)) in made_by:
            found.append(made_by[id(at.variable)])
        else:
            todo.extend(following for following, _ in at.next_functions)
    return found


def place(vertices):
    """Rows by the longest way from the input; columns by order in the row."""
    rows = {}
    for vertex in vertices:
        vertex.level = 1 + max((source.level for source, _ in vertex.sources), default=-1)
        row = rows.setdefault(vertex.level, [])
        vertex.column = len(row)
        row.append(vertex)
    widest = max(len(row) for row in rows.values())
    for row in rows.values():
        for k, vertex in enumerate(row):
            vertex.column = k + (widest - len(row)) / 2


def render(vertices, title):
    def center(vertex):
        return MARGIN + vertex.column * (BOX_WIDTH + GAP_X) + BOX_WIDTH / 2

    def top(vertex):
        return MARGIN + vertex.level * (BOX_HEIGHT + GAP_Y)

    width = max(center(v) for v in vertices) + BOX_WIDTH / 2 + MARGIN
    skips = [(v, s) for v in vertices for s, _ in v.sources if v.level - s.level > 1]
    width += 130 if skips else 0
    height = max(top(v) for v in vertices) + BOX_HEIGHT + MARGIN
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 '
            f"{width:.0f} "
            f'{height:.0f}" role="img">'
        ),
        f"<title>{html.escape(title)}</title><style>{STYLE}</style>",
        (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto"><path d="M0 0L8 4L0 8z" fill="#8a97ad"/></marker></defs>'
        ),
    ]
    labeled = set()
    for vertex in vertices:
        for source, shape in vertex.sources:
            x0, y0, x1, y1 = center(source), top(source) + BOX_HEIGHT, center(vertex), top(vertex)
            if vertex.level - source.level > 1:  # goes round the boxes in between, on the right
                side = max(x0, x1) + BOX_WIDTH / 2 + 30
                path = (
                    f"M{x0 + BOX_WIDTH / 2:.1f} {y0 - BOX_HEIGHT / 2:.1f} C{side:.1f} {y0:.1f} {side:.1f} "
                    f"{y1:.1f} {x1 + BOX_WIDTH / 2:.1f} {y1 + BOX_HEIGHT / 2:.1f}"
                )
                at = (side - 14, (y0 + y1) / 2)
            else:
                middle = (y0 + y1) / 2
                path = f"M{x0:.1f} {y0:.1f} C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
                at = ((x0 + x1) / 2 + 6, middle + 3)
            parts.append(f'<path class="edge" d="{path}" marker-end="url(#tip)"/>')
            if (at, shape) not in labeled:
                labeled.add((at, shape))
                parts.append(f'<text class="shape" x="{at[0]:.1f}" y="{at[1]:.1f}">{html.escape(shape)}</text>')
    for vertex in vertices:
        x, y = center(vertex), top(vertex)
        parts.append(
            f'<g class="{vertex.role}"><rect class="box" x="{x - BOX_WIDTH / 2:.1f}" y="{y:.1f}" width="{BOX_WIDTH}" '
            f'height="{BOX_HEIGHT}" rx="7"/>'
            f'<text class="kind" x="{x:.1f}" y="{y + 19:.1f}" text-anchor="middle">{html.escape(vertex.title)}</text>'
            f'<text class="path" x="{x:.1f}" y="{y + 35:.1f}" '
            f'text-anchor="middle">{html.escape(_shortened(vertex.subtitle))}</text></g>'
        )
    return "\n".join([*parts, "</svg>"])


def _shortened(text, most=27):
    return text if len(text) <= most else "…" + text[1 - most :]
