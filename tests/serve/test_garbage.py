"""The front collects garbage while nobody waits, and requests leave none."""

import asyncio
import contextlib
import gc
import os
import signal
import socket
import struct
import time

import pytest

from cresset.serve import garbage

from .conftest import ROOT, running
from .test_protocol import read_answer, request

TELLING = """
import gc, signal, sys

def tell(*_):
    sys.stderr.write(f"left {gc.collect()} {gc.isenabled()}\\n")
    sys.stderr.flush()

if "serve" in sys.orig_argv:
    signal.signal(signal.SIGUSR1, tell)
"""


def wait_for(lines, count):
    """The lines that tell what was left, once there are so many."""
    end = time.monotonic() + 20
    while len(found := [line for line in lines if line.startswith("left ")]) < count:
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


def test_requests_and_connections_leave_nothing_that_only_a_collection_finds(store, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(TELLING)
    path = os.pathsep.join([str(tmp_path), ROOT, os.environ.get("PYTHONPATH", "")])
    with running("double=" + str(store / "double.pt2"), PYTHONPATH=path) as server:
        address = server.client.base_url.host, server.client.base_url.port
        texts = [request("/v2/models/double/infer"), request("/v2/models/none/infer"), request("/predictions/double")]

        def ask(text, times, reset=False):
            with socket.create_connection(address, timeout=20) as line:
                for _ in range(times):
                    line.sendall(text)
                    read_answer(line)
                if reset:  # the end of the line is an error for the server
                    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

        for text in texts:  # caches, and what is made once
            ask(text, 2)
        time.sleep(0.3)
        server.process.send_signal(signal.SIGUSR1)
        wait_for(server.lines, 1)
        for text in texts:
            ask(text, 50)
            for at in range(20):
                ask(text, 2, reset=at % 2)
        time.sleep(0.3)  # until the server has seen the ends of the lines
        server.process.send_signal(signal.SIGUSR1)
        _, count, enabled = wait_for(server.lines, 2)[1].split()
    assert int(count) < 10 and enabled == "False"


class Registry:
    quiet = False

    def is_quiet(self, _seconds):
        return self.quiet


class Cyclic:
    def __init__(self):
        self.myself = self


@pytest.fixture
def noted():
    """The generations that are collected, and what notes them; afterwards the collector is as it was."""
    seen = []

    def note(phase, info):
        if phase == "start":
            seen.append(info["generation"])

    yield seen, note
    with contextlib.suppress(ValueError):
        gc.callbacks.remove(note)
    gc.unfreeze()
    gc.enable()


def collected_while(scene, noted, monkeypatch):
    """The collections of the time in which `scene(registry)` runs beside collect_while_quiet."""
    seen, note = noted
    monkeypatch.setattr(garbage, "LOOK", 0.005)

    async def play():
        registry = Registry()
        task = asyncio.get_running_loop().create_task(garbage.collect_while_quiet(registry))
        await asyncio.sleep(0)
        gc.callbacks.append(note)
        await scene(registry)
        task.cancel()

    asyncio.run(play())
    return list(seen)


def test_some_garbage_waits_until_nobody_asks(noted, monkeypatch):
    async def scene(registry):
        for _ in range(garbage.FEW + 1000):
            Cyclic()
        await asyncio.sleep(0.05)
        assert not noted[0]
        registry.quiet = True
        while not noted[0]:
            await asyncio.sleep(0.01)

    assert collected_while(scene, noted, monkeypatch)[0] == 2


def test_much_garbage_does_not_wait(noted, monkeypatch):
    async def scene(_registry):
        for _ in range(garbage.MANY + 1000):
            Cyclic()
        while not noted[0]:
            await asyncio.sleep(0.01)

    assert collected_while(scene, noted, monkeypatch)[0] == 2


def test_without_garbage_nothing_is_collected(noted, monkeypatch):
    async def scene(registry):
        registry.quiet = True
        await asyncio.sleep(0.05)

    assert collected_while(scene, noted, monkeypatch) == []
