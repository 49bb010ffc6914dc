"""Who is gone, as the holder of a store decides it, and how a member knows that it was stopped itself."""

import signal
import subprocess
import sys
import time

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


STOPPED = """
import socket, sys, threading, time
from cresset.distributed.liveness import HEARTBEAT
from cresset.distributed.store import wire
from cresset.distributed.surroundings import REAL

ours, theirs = socket.socketpair()
heartbeat = REAL.heartbeat(ours, wire.pack([b"alive"])[4:], HEARTBEAT)


def echo():
    while theirs.recv(4096):
        time.sleep(0.2)  # as from far away
        theirs.sendall(wire.pack([b""]))


threading.Thread(target=echo, daemon=True).start()
print("ready", flush=True)
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
longest = 0.0
while not ended.wait(0.001):
    longest = max(longest, heartbeat.silence())
print(longest)
"""


def test_a_member_that_was_stopped_itself_does_not_say_that_the_store_is_silent():
    with subprocess.Popen(
        [sys.executable, "-c", STOPPED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGSTOP)
            time.sleep(SILENCE + 1)
            process.send_signal(signal.SIGCONT)
            time.sleep(1)
            longest, _ = process.communicate(timeout=30)
        finally:
            process.kill()
    assert 0 < float(longest) < SILENCE
