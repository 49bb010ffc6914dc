"""export_memory_timeline: what memory was for, over time."""

import gzip
import json
import re

import pytest

import cresset
from cresset import nn
from cresset.profiler import profile
from cresset.profiler.memory_timeline import COLUMN, Category

KIB = 1024


def recorded(work, **options):
    with profile(record_shapes=True, profile_memory=True, with_stack=True, **options) as prof:
        work()
    return prof


def raw(prof, tmp_path):
    path = str(tmp_path / "m.raw.json.gz")
    prof.export_memory_timeline(path, "cpu")
    with gzip.open(path, "rt") as file:
        return json.load(file)


def categories(prof, tmp_path, size):
    """What the pieces of this size were for."""
    by_column = {number: category for category, number in COLUMN.items()}
    return [by_column[column] for _, action, count, column in raw(prof, tmp_path) if count == size and action in (1, 2)]


@pytest.fixture
def training():
    """One step of a layer whose pieces differ in size: the weight has 40 KiB, the input 16, the result 10."""
    layer = nn.Linear(256, 40, bias=False)
    optimizer = cresset.optim.Adam(layer.parameters())
    kept = {}

    def step():
        kept["x"] = cresset.ones(16, 256)
        hidden = layer(kept["x"]).exp()
        hidden.square().sum().backward()
        optimizer.step()

    return step, kept


def test_parameters_gradients_states_inputs_and_activations(training, tmp_path):
    prof = recorded(training[0])
    weights = categories(prof, tmp_path, 40 * KIB)
    assert weights.count(Category.PARAMETER) == 1
    assert weights.count(Category.GRADIENT) == 1
    assert weights.count(Category.OPTIMIZER_STATE) == 2
    assert categories(prof, tmp_path, 16 * KIB) == [Category.INPUT]
    results = categories(prof, tmp_path, 16 * 40 * 4)
    assert results.count(Category.ACTIVATION) == 3  # of linear, exp and square
    assert set(results) <= {Category.ACTIVATION, Category.TEMPORARY, Category.AUTOGRAD_DETAIL}


def test_what_lives_inside_one_operator_is_temporary(tmp_path):
    one, other = cresset.ones(32, 64), cresset.ones(32, 64)
    prof = recorded(lambda: nn.functional.cosine_similarity(one, other))
    found = categories(prof, tmp_path, 32 * 64 * 4)
    assert set(found) == {Category.TEMPORARY}, found


def test_what_nobody_saw_is_unknown(tmp_path):
    kept = []
    prof = recorded(lambda: kept.append(cresset.zeros(5 * KIB // 4)))
    assert categories(prof, tmp_path, 5 * KIB) == [None]


def test_parameters_are_known_without_a_backward_pass(tmp_path):
    kept = []
    prof = recorded(lambda: kept.append(nn.Linear(64, 32, bias=False)))
    assert Category.PARAMETER in categories(prof, tmp_path, 64 * 32 * 4)


def test_the_sums_follow_the_happenings(training, tmp_path):
    prof = recorded(training[0])
    path = str(tmp_path / "m.json")
    prof.export_memory_timeline(path, "cpu")
    with open(path) as file:
        times, sizes = json.load(file)
    assert times == sorted(times) and len(times) == len(sizes) > 3
    assert all(len(row) == 1 + len(COLUMN) and row[0] == 0 and min(row) >= 0 for row in sizes)
    happened = raw(prof, tmp_path)
    assert sum(sizes[-1]) == sum(size for _, _, size, _ in happened)
    assert {action for _, action, _, _ in happened} <= {1, 2, 4}
    assert [time for time, action, *_ in happened if action == 1] == [-1] * sum(a == 1 for _, a, *_ in happened)
    prof.export_memory_timeline(path + ".gz", "cpu")
    with gzip.open(path + ".gz", "rt") as file:
        assert json.load(file) == [times, sizes]


def test_the_page_needs_nothing_from_elsewhere(training, tmp_path):
    prof = recorded(training[0])
    prof.export_memory_timeline(str(tmp_path / "m.html"), "cpu")
    text = (tmp_path / "m.html").read_text()
    assert text.startswith("<!doctype html>") and "<svg" in text and "Memory by what it was for" in text
    assert not re.search(r"https?://|src=|@import|<link", text)
    for name in ("parameter", "optimizer state", "input", "activation", "gradient"):
        assert f"</i>{name}</span>" in text
    assert "test_memory_timeline.py:" in text and "reserved" not in text.partition("<svg")[0].partition("<body>")[2]


def test_another_device_has_nothing(training, tmp_path):
    prof = recorded(training[0])
    prof.export_memory_timeline(str(tmp_path / "m.json"), "cuda:3")
    assert json.loads((tmp_path / "m.json").read_text()) == [[], []]
    prof.export_memory_timeline(str(tmp_path / "m.html"), "cuda:3")
    assert "Nothing was held" in (tmp_path / "m.html").read_text()


def test_what_was_not_recorded_is_asked_for(tmp_path):
    with profile(record_shapes=True, profile_memory=True) as prof:
        pass
    with pytest.raises(ValueError, match="with_stack=True is required"):
        prof.export_memory_timeline(str(tmp_path / "m.json"), "cpu")


def test_two_recordings_at_once_see_their_own_time(tmp_path):
    kept = []
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as outer:
        kept.append(cresset.zeros(5 * KIB // 4))
        with profile(record_shapes=True, profile_memory=True, with_stack=True) as inner:
            kept.append(cresset.zeros(3 * KIB // 4))
    assert [action for _, action, size, _ in raw(outer, tmp_path) if size in (5 * KIB, 3 * KIB)] == [2, 2]
    assert [(action, size) for _, action, size, _ in raw(inner, tmp_path) if size == 3 * KIB] == [(2, 3 * KIB)]
    assert [action for _, action, size, _ in raw(inner, tmp_path) if size == 5 * KIB] == [1]  # it was there before


def test_the_programs_objects_are_not_asked(tmp_path):
    """Looking for modules calls nothing of the objects that come by."""

    class Shy:
        @property
        def __class__(self):
            raise AssertionError("asked for its class")

    kept = [Shy()]
    assert recorded(lambda: cresset.ones(2)).events() and kept
