"""Who is gone, as the holder of a store decides it."""

from cresset.distributed.store import wire
from cresset.distributed.store.server import LOOK, SILENCE, Server


class Clock:
    """A server with one member, and a clock that the test moves."""

    def __init__(self):
        self.time = 100.0
        self.server = Server(lambda: self.time, lambda peer: None)
        self.peer = self.server.connected("connection")
        self.server.received(self.peer, wire.pack([b"member", b"0", b"2", b"job", b"rank 0", b"host"]))

    def pass_(self, seconds, step=LOOK):
        for _ in range(round(seconds / step)):
            self.time += step
            self.server.look_at_the_clock()

    def gone(self):
        return self.server.lost.get(b"job", [])


def test_a_member_that_is_silent_for_three_seconds_is_gone():
    clock = Clock()
    clock.pass_(SILENCE - 1)
    assert not clock.gone()
    clock.pass_(1)
    assert clock.gone() == [(b"rank 0", b"on host gave no sign of life for 3 s")]


def test_nobody_is_gone_because_the_holder_itself_was_stopped():
    clock = Clock()
    clock.pass_(20, step=20)
    clock.pass_(SILENCE - 1)
    assert not clock.gone()
    clock.pass_(1)
    assert clock.gone()


def test_the_holder_looks_at_the_clock_while_there_are_members():
    assert Clock().server.patience() == LOOK
