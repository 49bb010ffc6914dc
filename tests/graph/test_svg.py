"""Pictures of graphs."""

import xml.etree.ElementTree as ElementTree

import cresset
from cresset import nn
from cresset.export import Dim, export
from cresset.graph.svg import Box, fx_svg, graph_svg, svg

NAMESPACE = "{http://www.w3.org/2000/svg}"


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))

    def forward(self, x):
        return x + self.body(x)


def texts(picture):
    return [element.text for element in ElementTree.fromstring(picture).iter(NAMESPACE + "text")]


def test_a_picture_of_an_exported_program_has_operators_shapes_and_modules(tmp_path):
    program = export(
        nn.Sequential(Residual(), nn.Linear(4, 2)), (cresset.ones(3, 4),), dynamic_shapes={"input": {0: Dim("batch")}}
    )
    picture = program.to_svg(tmp_path / "net.svg")
    assert (tmp_path / "net.svg").read_text() == picture == fx_svg(program.graph, "exported program")
    words = texts(picture)
    assert words.count("linear") == 3 and words.count("relu") == 1 and words.count("add") == 1
    assert "batch×4" in words and "batch×2" in words
    assert "0" in words and "0.body" in words  # frames


def test_a_picture_of_a_traced_graph_has_operators_and_shapes():
    traced = cresset.jit.trace(nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU()), cresset.ones(1, 1, 4, 4))
    words = texts(graph_svg(traced.graph))
    assert "conv2d" in words and "relu" in words and "1×2×2×2" in words and words[-1:] != []


def test_boxes_of_a_row_do_not_overlap_and_stand_below_what_they_read():
    top = Box("top", "top", "input")
    middle = [Box(k, f"operator {k}", "operator") for k in range(5)]
    bottom = Box("bottom", "bottom", "output")
    for box in middle:
        box.reads = [(top, "3×4")]
        bottom.reads.append((box, ""))
    svg([top, *middle, bottom])
    row = sorted(middle, key=lambda b: b.x)
    assert all(a.x + a.width < b.x for a, b in zip(row, row[1:], strict=False))
    assert top.y + top.height < min(b.y for b in middle) and max(b.y + b.height for b in middle) < bottom.y


def test_names_are_escaped():
    assert "&lt;script&gt;" in svg([Box("a", "<script>", "operator")]) and "<script>" not in svg(
        [Box("a", "<script>", "operator")]
    )
