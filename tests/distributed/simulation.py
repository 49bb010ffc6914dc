"""A world in one process, for tests: its own clock, network, machines, processes and disks, all driven by one seed.

The code that runs in it is the real one (stores, liveness, groups), which takes its surroundings as an argument. A
process is a greenlet: it runs until it waits for something, and then the next event happens. So thousands of processes
fit in one thread, seconds cost nothing, and the same seed gives the same story.
"""

import errno
import gc
import hashlib
import io
import itertools
import math
import os
import random
from collections import deque
from functools import partial
from heapq import heappop, heappush

from greenlet import getcurrent, greenlet

from cresset.distributed.store import wire
from cresset.distributed.store.server import Server
from cresset.distributed.surroundings import Surroundings


class Killed(BaseException):
    """The process was killed: nothing of it runs any more."""


class World:
    """The clock, what will happen, and who is there."""

    def __init__(self, seed):
        self.random, self.time, self.numbers = random.Random(seed), 0.0, itertools.count()
        self.events, self.soon = [], deque()  # (when, number, f): a heap, and what happens at this instant
        self.hub = getcurrent()  # where events happen
        self.story, self.processes, self.listeners = hashlib.sha256(), [], {}
        self.cut_off, self.held = set(), []  # hosts that the network does not reach, and what is on its way there
        self.latency = (0.00005, 0.0003)
        self.ports, self.disk = itertools.count(40000), Disk(self)

    def tell(self, *what):
        """Add to the story of this world; two runs with one seed have the same."""
        self.story.update(repr((round(self.time, 9), *what)).encode())

    def at(self, seconds, f):
        """Let f() happen, so many seconds from now."""
        if seconds == 0.0:
            self.soon.append((self.time, next(self.numbers), f))
        else:
            heappush(self.events, (self.time + seconds, next(self.numbers), f))

    def run(self, until):
        """Let things happen until nothing more does, or the clock shows `until`."""
        events, soon = self.events, self.soon
        collects = gc.isenabled()
        gc.disable()  # it would walk over all processes again and again
        try:
            while True:
                if soon and (not events or soon[0] < events[0]):
                    soon.popleft()[2]()
                elif events and events[0][0] <= until:
                    self.time, _, f = heappop(events)
                    f()
                else:
                    break
        finally:
            if collects:
                gc.enable()
        self.time = max(self.time, until) if not events else until

    def process(self, host, name, main):
        """A process that runs main(surroundings)."""
        process = Process(self, host, name, main)
        self.processes.append(process)
        self.at(0.0, process.begin)
        return process

    def is_cut(self, one, other):
        """Whether nothing passes between two hosts."""
        return one != other and (one in self.cut_off or other in self.cut_off)

    def heal(self):
        """The network reaches all hosts again: what was on its way is sent again."""
        self.cut_off, held, self.held = set(), self.held, []
        for arrive in held:
            self.at(0.2, arrive)

    def delay(self):
        least, most = self.latency
        return least + (most - least) * self.random.random()

    def close(self):
        """End all processes."""
        for process in self.processes:
            process.kill()
            process.unwind()
        self.events.clear()
        self.soon.clear()


class Process:
    """A process of a World: alive, stopped, or ended with `status`, `error`."""

    def __init__(self, world, host, name, main):
        self.world, self.host, self.name = world, host, name
        self.alive, self.stopped, self.status, self.error = True, False, None, None
        self.connections, self.listening, self.waiters, self.exits = set(), [], [], []
        self.greenlet, self.token, self.woken, self.over = greenlet(self.body, world.hub), 0, False, False
        self.waking, self.late = -1, []  # what waits while it is stopped
        self.deadline, self.timer = None, math.inf  # of this wait; when something looks at it
        self.around, self.main = Around(world, self), main

    def body(self):
        try:
            self.main(self.around)
            self.status = 0
        except Killed:
            pass
        except BaseException as error:
            self.status, self.error = 1, error
            try:
                for f in reversed(self.exits):
                    f()
            except Killed:
                pass
        self.over = True
        if self.alive:
            self.ended(self.status)

    def begin(self):
        if self.alive:
            self.greenlet.switch()

    def resume(self, woken):
        self.token, self.woken, self.deadline = self.token + 1, woken, None
        self.greenlet.switch()

    def go_on(self):
        """It was stopped, and is no more."""
        self.stopped, late, self.late = False, self.late, []
        for f in late:
            self.world.at(0.0, f)

    def wait(self, seconds):
        """Wait until somebody calls wake, or so many seconds; whether it was woken."""
        if not self.alive:
            raise Killed
        if seconds is not None:
            self.deadline = self.world.time + max(0.0, seconds)
            self.set_timer()
        self.world.hub.switch()
        return self.woken

    def set_timer(self):
        """Look at the clock at the deadline of this wait. A timer that rings earlier, of a wait that was shorter than
        it might have been, sets this one when it does: most waits are, and need none of their own."""
        if self.deadline < self.timer:
            self.timer = self.deadline
            heappush(self.world.events, (self.timer, next(self.world.numbers), self.ring))

    def ring(self):
        """A timer has come to its end."""
        now = self.world.time
        if now >= self.timer:
            self.timer = math.inf
        if self.deadline is None or not self.alive:
            return
        if self.stopped:
            self.late.append(self.ring)
        elif self.deadline <= now:
            self.resume(False)
        else:
            self.set_timer()

    def wake(self):
        if self.waking != self.token:
            self.waking = self.token
            self.world.at(0.0, self.awake)

    def awake(self):
        if self.waking != self.token or not self.alive:
            return
        if self.stopped:
            self.late.append(self.awake)
        else:
            self.resume(True)

    def ended(self, status):
        """The system takes back what it had: connections are closed."""
        self.alive, self.status = False, status
        self.world.tell("end", self.name, status)
        for connection in list(self.connections):
            connection.close()
        for listening in self.listening:
            listening.close()
        for waiter in self.waiters:
            waiter.wake()

    def kill(self):
        if self.alive:
            self.ended(-9)

    def unwind(self):
        """Let its code come to its end."""
        if self.greenlet and not self.over:
            self.greenlet.throw(Killed)


class Connection:
    """One end of a connection of a process to a listening one: what a socket offers."""

    def __init__(self, process, listening):
        self.process, self.listening, self.world = process, listening, process.world
        self.inbox, self.timeout, self.is_open, self.ended = bytearray(), None, True, False
        self.heard_at, self.is_read = self.world.time, True
        self.last_there = self.last_here = 0.0  # when the last that was sent arrives: all arrives in order
        process.connections.add(self)

    def _send_there(self, f):
        """Let f() happen at the listening end."""
        world = self.world
        self.last_there = when = max(self.last_there, world.time + world.delay())
        heappush(world.events, (when, next(world.numbers), partial(self._arrive, f)))

    def _send_here(self, f):
        """Let f() happen at this end."""
        world = self.world
        self.last_here = when = max(self.last_here, world.time + world.delay())
        heappush(world.events, (when, next(world.numbers), partial(self._arrive, f)))

    def _arrive(self, f):
        """While the network is cut, nothing does."""
        if self.world.cut_off and self.world.is_cut(self.process.host, self.listening.host):
            self.world.held.append(partial(self._arrive, f))
        else:
            f()

    def sendall(self, data):
        self.process.around.check()
        if self.ended or not self.is_open:
            raise BrokenPipeError("the other side has closed")
        self._send_there(partial(self.listening.received, self, bytes(data)))

    def deliver(self, data):
        """From the listening side: bytes, or b"" for its end."""
        self._send_here(partial(self._receive, data))

    def _receive(self, data):
        if self.process.alive:
            self.inbox += data
            self.ended |= not data
            self.heard_at = self.world.time
            if self.is_read:
                self.process.wake()

    def recv(self, size):
        deadline = None if self.timeout is None else self.world.time + self.timeout
        while not self.inbox and not self.ended:
            left = None if deadline is None else deadline - self.world.time
            if left is not None and left <= 0:
                raise TimeoutError("timed out")
            self.process.wait(left)
        data = bytes(self.inbox[:size])
        del self.inbox[:size]
        return data

    def settimeout(self, seconds):
        self.timeout = seconds

    def close(self):
        if self.is_open:
            self.is_open = False
            self.process.connections.discard(self)
            self._send_there(partial(self.listening.lost, self))


class Listening:
    """The real Server behind simulated connections."""

    def __init__(self, process, host, port):
        self.process, self.host, self.port, self.world = process, host, port, process.world
        self.server, self.is_open, self.tick = Server(lambda: self.world.time, self.flush), True, 0
        process.listening.append(self)
        self.world.listeners[(host, port)] = self

    def is_alive(self):
        return self.is_open

    def close(self):
        if self.is_open:
            self.is_open = False
            self.world.listeners.pop((self.host, self.port), None)
            for connection in list(self.server.peers):
                connection.deliver(b"")

    def accept(self, connection):
        self.server.connected(connection)

    def received(self, connection, data):
        if self.process.stopped:
            self.process.late.append(partial(self.received, connection, data))
            return
        peer = self.server.peers.get(connection)
        if self.is_open and peer is not None:
            self.world.story.update(b"%.9f %b " % (self.world.time, connection.process.name.encode()) + data)
            self.server.received(peer, data)
            if peer.left:
                self.server.drop(peer)
                connection.deliver(b"")
            self.plan()

    def lost(self, connection):
        peer = self.server.peers.get(connection)
        if self.is_open and peer is not None:
            self.server.drop(peer)
            self.plan()

    def flush(self, peer):
        data = bytes(peer.to_send)
        peer.to_send.clear()
        if data and peer.connection in self.server.peers:
            peer.connection.deliver(data)

    def plan(self):
        """Look at the clock when something has to happen by itself."""
        patience = self.server.patience()
        if patience is None:
            return
        when = self.world.time + patience
        if self.tick <= self.world.time or when < self.tick:
            self.tick = when
            self.world.at(patience, self.look)

    def look(self):
        if self.is_open and not self.process.stopped and self.world.time >= self.tick:
            self.server.look_at_the_clock()
            self.tick = 0
            self.plan()


class Disk:
    """A disk that all processes of a World see, with room for so many bytes; None: no end."""

    def __init__(self, world):
        self.world, self.files, self.room = world, {}, None

    def used(self):
        return sum(map(len, self.files.values()))

    def make_folder(self, path):
        pass

    def names(self, path):
        return [os.path.basename(file) for file in self.files if os.path.dirname(file) == str(path)]

    def exists(self, path):
        return str(path) in self.files

    def create(self, path, exclusive=False):
        if exclusive and str(path) in self.files:
            raise FileExistsError(f"{path} is there")
        self.files[str(path)] = b""
        return File(self, str(path))

    def sync(self, file):
        file.flush()
        self.world.tell("sync", file.path, len(self.files[file.path]))

    def sync_folder(self, path):
        pass

    def replace(self, old, new):
        self.files[str(new)] = self.files.pop(str(old))

    def remove(self, path):
        del self.files[str(path)]

    def read(self, path, start=0, size=-1):
        if str(path) not in self.files:
            raise FileNotFoundError(f"{path} is not there")
        return self.files[str(path)][start : None if size < 0 else start + size]


class File(io.BytesIO):
    """A file that is being written; the disk has what was flushed, as far as there is room."""

    def __init__(self, disk, path):
        super().__init__()
        self.disk, self.path = disk, path

    def write(self, data):
        before = len(self.getvalue())
        room = self.disk.room
        if room is not None and self.disk.used() - len(self.disk.files[self.path]) + before + len(data) > room:
            raise OSError(errno.ENOSPC, "No space left on device", self.path)
        return super().write(data)

    def flush(self):
        self.disk.files[self.path] = self.getvalue()

    def close(self):
        if not self.closed:
            self.flush()
        super().close()


class Heartbeat:
    """As native/distributed/heartbeat.h, in simulated time."""

    def __init__(self, connection, before, seconds):
        self.connection, self.before, self.seconds, self.noted = connection, before, seconds, None
        self.process, self.received, self.message = connection.process, bytearray(), None
        self.world, connection.is_read = self.process.world, False  # nobody waits for what comes back
        self.world.at(seconds, self.beat)

    def beat(self):
        if self.process.alive and self.connection.is_open and not self.connection.ended:
            if not self.process.stopped:
                if self.message is None:
                    text = self.text().encode()
                    body = self.before + wire.LENGTH.pack(len(text)) + text
                    self.message = wire.LENGTH.pack(len(body)) + body
                self.connection.sendall(self.message)
            self.world.at(self.seconds, self.beat)

    def note(self, *words):
        self.noted, self.message = words, None

    def text(self):
        if self.noted is None:
            return ""
        number, name, shape, more, file, line = self.noted
        of = f"[{', '.join(map(str, shape))}] of " if shape is not None else ""
        return f"call {number}, {name}({of}{more}), at {file}:{line}"

    def heard(self):
        if not self.connection.inbox:
            return b""
        self.received += self.connection.inbox
        self.connection.inbox.clear()
        kept = b""
        while len(self.received) >= 4:
            (size,) = wire.LENGTH.unpack_from(self.received)
            if len(self.received) < 4 + size:
                break
            kept += self.received[: 4 + size] if size > 4 else b""
            del self.received[: 4 + size]
        return kept

    def silence(self):
        return -1.0 if self.connection.ended else self.world.time - self.connection.heard_at


class Around(Surroundings):
    """The surroundings of a simulated process."""

    def __init__(self, world, process):
        self.world, self.process_itself, self.servers, self.disk = world, process, {}, world.disk

    def check(self):
        if not self.process_itself.alive:
            raise Killed

    def now(self):
        self.check()
        return self.world.time

    def sleep(self, seconds):
        until = self.world.time + seconds
        while self.world.time < until:
            self.process_itself.wait(until - self.world.time)

    def hostname(self):
        return self.process_itself.host

    def unique(self):
        return f"{self.world.random.getrandbits(128):032x}"

    def connect(self, host, port, timeout):
        self.check()
        self.sleep(self.world.delay())
        far = self.world.is_cut(host, self.process_itself.host)
        listening = self.world.listeners.get((host, port))
        if far or listening is None:
            self.sleep(timeout if far else 0.0)
            raise ConnectionRefusedError(f"nobody at {host}:{port}")
        connection = Connection(self.process_itself, listening)
        listening.accept(connection)
        return connection

    def listen(self, host, port, descriptor=None):
        if host != self.process_itself.host:
            raise OSError(f"{host} is not this machine")
        if port and (host, port) in self.world.listeners:
            raise OSError("address in use")
        return Listening(self.process_itself, host, port or next(self.world.ports))

    def heartbeat(self, connection, before, seconds):
        return Heartbeat(connection, before, seconds)

    def at_exit(self, f):
        self.process_itself.exits.append(f)

    def not_at_exit(self, f):
        self.process_itself.exits = [g for g in self.process_itself.exits if g != f]

    def last_error(self):
        return self.process_itself.error

    def clean_up(self):
        pass

    def make_folder(self, prefix):
        return prefix

    def remove_folder(self, path):
        pass
