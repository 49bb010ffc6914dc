"""Flame graphs: boxes as wide as their time, in one SVG file."""

import re
import xml.etree.ElementTree

import cresset
from cresset.profiler import flame, profile

MINE = ("/home/me/train.py", 10, "step")


def boxes(picture):
    """(title, left, width, top) of each box of the picture."""
    root = xml.etree.ElementTree.fromstring(picture)
    space = "{http://www.w3.org/2000/svg}"
    found = []
    for group in root.iter(f"{space}g"):
        title, box = group.find(f"{space}title"), group.find(f"{space}rect")
        if title is not None:
            found.append((title.text, float(box.get("x")), float(box.get("width")), float(box.get("y"))))
    return found


def test_a_box_is_as_wide_as_its_time_and_lies_under_its_caller():
    root = flame.tree([([MINE], "aten::mm", 750), ([MINE], "aten::exp", 250)])
    found = {
        title.split(":")[0] if "aten" not in title else title.split(": ")[0]: rest
        for title, *rest in boxes(flame.draw(root, "t"))
    }
    whole, line, mm, exp = found["all"], found["step train.py"], found["aten::mm"], found["aten::exp"]
    assert abs(mm[1] / whole[1] - 0.75) < 0.01 and abs(exp[1] / whole[1] - 0.25) < 0.01
    assert whole[2] < line[2] < mm[2] == exp[2]
    assert mm[0] == line[0] and abs(exp[0] - (mm[0] + mm[1])) < 1.0


def test_lines_inside_cresset_are_left_out():
    inside = (cresset.nn.__file__, 3, "forward")
    root = flame.tree([([inside, MINE], "aten::mm", 10), ([inside, MINE], None, 5), ([MINE], None, 1)])
    (line,) = root.inside.values()
    assert line.name == "step train.py:10" and line.time == 16
    assert {box.name: box.time for box in line.inside.values()} == {"aten::mm": 10, "Python inside cresset": 5}


def test_titles_tell_the_time_and_are_escaped():
    picture = flame.draw(flame.tree([([("a<b>.py", 1, "<lambda>")], "x&y", 2_000_000)]), "A & B")
    told = [title for title, *_ in boxes(picture)]
    assert "x&y: 2 ms, 100.0 %" in told and "<lambda> a<b>.py:1: 2 ms, 100.0 %" in told
    assert "<script" not in picture and not re.search(r"https?://(?!www\.w3\.org/2000/svg)", picture)


def test_narrow_boxes_are_left_out_and_said_so():
    picture = flame.draw(flame.tree([([MINE], "wide", 10**6), ([MINE], "narrow", 1)]), "t")
    assert "narrow" not in [title for title, *_ in boxes(picture)] and "1 box too narrow to draw" in picture


def test_deep_calls_end_somewhere():
    frames = [("/home/me/deep.py", 1, f"f{number}") for number in range(900)]
    assert flame.tree([(frames, "aten::mm", 5)]).depth() < flame.MOST_ROWS + 5


def test_nothing_can_be_drawn():
    assert boxes(flame.draw(flame.tree([]), "nothing")) == []


def test_a_recording_draws_its_operators(tmp_path):
    with profile(with_stack=True) as prof:
        for _ in range(3):
            cresset.ones(200, 200) @ cresset.ones(200, 200)
    prof.export_flame_graph(str(tmp_path / "flame.svg"))
    told = [title for title, *_ in boxes((tmp_path / "flame.svg").read_text())]
    assert any(title.startswith("aten::matmul: ") for title in told)
    assert any("test_a_recording_draws_its_operators test_flame.py:" in title for title in told)
