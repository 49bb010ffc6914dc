"""One worker as the front sees it: process, line, and its batches, one that it computes and perhaps the next."""

import asyncio
import collections
import dataclasses
import itertools
import os
import signal
import socket
import subprocess
import sys
import time

import cresset

from . import frames
from .metrics import resident


class Worker(asyncio.Protocol):
    """Starts a process; tells its pool when it is ready, has answered, or has ended."""

    last_number = 0

    def __init__(self, pool):
        Worker.last_number += 1
        self.pool, self.number = pool, Worker.last_number
        taken = {worker.place for worker in pool.workers}
        self.place = next(place for place in itertools.count() if place not in taken)  # among the workers of the pool
        self.process = self.transport = self.device = None
        self.reader = frames.Reader()
        self.batches = collections.deque()
        self.begun = self.deadline = 0.0  # of the first
        self.started, self.retiring, self.is_ready = time.time(), False, False
        self.ready = asyncio.get_running_loop().create_future()  # metadata, or the reason why not

    async def start(self, threads):
        settings = self.pool.settings
        here, there = socket.socketpair()
        package_root = os.path.dirname(os.path.dirname(cresset.__file__))
        path = os.pathsep.join(filter(None, [package_root, os.environ.get("PYTHONPATH")]))
        with there:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "cresset.serve.worker", str(there.fileno())],
                pass_fds=[there.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": str(threads)},
            )
        here.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.create_unix_connection(lambda: self, sock=here)
        start = {"settings": dataclasses.asdict(settings), "place": self.place, "threads": threads}
        self.transport.write(frames.pack(start))

    @property
    def pid(self):
        return self.process.pid

    def connection_made(self, transport):
        self.transport = transport

    def send(self, jobs, now):
        if not self.batches:
            self.begun, self.deadline = now, now + self.pool.settings.timeout
        self.batches.append(jobs)
        requests = [[*job.description, len(job.body)] for job in jobs]
        header = {"id": self.number, "threads": self.pool.threads.of_each(self.pool.wanted), "requests": requests}
        self.transport.write(frames.pack(header, [job.body for job in jobs]))

    def data_received(self, data):
        for header, body in self.reader.feed(data):
            if "answers" in header:
                self.deadline = asyncio.get_running_loop().time() + self.pool.settings.timeout
                self.pool.answered(self, header, body)
            elif "ready" in header:
                self.is_ready, self.device = True, header["device"]
                if not self.ready.done():
                    self.ready.set_result(header["ready"])
                self.pool.became_idle(self)
            elif not self.ready.done():
                self.ready.set_exception(RuntimeError(header["failed"]))
                self.ready.exception()  # asked for or not, it is no news to the event loop

    def connection_lost(self, _error):
        if not self.ready.done():
            self.ready.set_exception(RuntimeError("the worker ended before its model was loaded"))
            self.ready.exception()
        self.is_ready = False
        self.pool.ended(self)

    def retire(self):
        """End the process once it has nothing to do: at the end of its line."""
        self.retiring = True
        if not self.batches and self.transport is not None:
            self.transport.close()

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)

    def memory(self):
        return resident(self.pid)

    async def reap(self):
        """Wait for the process; end it if it does not leave."""
        if self.process is None:
            return
        for _ in range(100):
            if self.process.poll() is not None:
                return
            await asyncio.sleep(0.02)
        self.kill()
        await asyncio.get_running_loop().run_in_executor(None, self.process.wait)
