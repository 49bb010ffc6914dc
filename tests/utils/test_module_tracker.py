"""Which modules are running, in forward and in backward."""

import pytest

import cresset
from cresset.utils.module_tracker import ModuleTracker


class Noted(cresset.nn.Module):
    """Notes which modules run, in forward and where its gradient passes."""

    def __init__(self, notes):
        super().__init__()
        self.notes = notes

    def forward(self, x):
        self.notes.append((sorted(self.tracker.parents), self.tracker.is_bw))
        y = x * 2
        y.register_hook(lambda grad: self.notes.append((sorted(self.tracker.parents), self.tracker.is_bw)))
        return y * 3


def test_names_in_forward_and_in_backward():
    notes = []
    model = cresset.nn.Sequential(cresset.nn.Linear(2, 2), cresset.nn.Sequential(Noted(notes)))
    with ModuleTracker() as tracker:
        model[1][0].tracker = tracker
        result = model(cresset.ones(1, 2, requires_grad=True)).sum()
        assert tracker.parents == {"Global"}
        result.backward()
        assert tracker.parents == {"Global"} and not tracker.is_bw
    inside = ["Global", "Sequential", "Sequential.1", "Sequential.1.0"]
    assert notes == [(inside, False), (inside, True)]


def test_a_forward_that_fails_and_the_end_of_the_block_leave_nothing():
    class Fails(cresset.nn.Module):
        def forward(self, x):
            raise ValueError("no")

    with ModuleTracker() as tracker, pytest.raises(ValueError, match="no"):
        Fails()(cresset.ones(1))
    assert tracker.parents == {"Global"}
    seen = []
    layer = Noted(seen)
    layer.tracker = tracker
    layer(cresset.ones(1, requires_grad=True))
    assert seen == [(["Global"], False)]
