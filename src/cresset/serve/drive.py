"""The client of `cresset bench-serve`: it sends requests that are bytes already, over connections that stay open, and
notes when each was answered.

Note [What the client costs]
Client and server often share a machine, and then what the client takes is missing to the server. So there is one thread
and one loop without callbacks: a wake-up sends all that is due and reads all that has come, of an answer only status
and length are looked at, and an answer is compared number by number only if its bytes were never seen before. Where
requests come faster than a wake-up is worth, it naps, and is late by so much at most (NAP). That is 8 to 30 µs a
request, most of it the kernel's. What the client took, and how late it was, is part of the result.

Note [A connection that was idle]
Servers close connections that nobody used for some seconds (cresset's after 5). A client that stood still meanwhile,
on a busy machine, has not seen it, and what it sends on such a connection is lost. So one that was idle for a second
is looked at before it is used.
"""

import array
import collections
import contextlib
import gc
import itertools
import json
import math
import random
import re
import select
import selectors
import socket
import time

LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)\r\n", re.IGNORECASE)
CLOSING = re.compile(rb"\r\nconnection:\s*close\r\n", re.IGNORECASE)
NAP = 1e-4  # seconds between two wake-ups at least
IDLE = 1.0  # seconds after which a connection may be closed
PATIENCE = 60.0  # seconds for answers after the end of a run
SAMPLES = 300  # of the backlog, in a run at a rate
MAX_KNOWN = 256  # forms of one answer that are remembered: sums in another order end in other digits


class LoadError(Exception):
    """The load cannot be driven: the server is not there, or it or the model does not say what has to be known."""


class Connection:
    """One connection: a request at a time, its answer found by Content-Length."""

    __slots__ = ("due", "needed", "number", "pending", "since", "socket", "unsent")

    def __init__(self, line=None):
        self.socket, self.number, self.due, self.unsent = line, None, 0.0, b""
        self.since = math.inf  # when it was answered last
        self.pending, self.needed = bytearray(), 0

    def feed(self, data):
        """(status, body, whether the server closes the connection) once the answer is complete, before that None."""
        if self.pending:
            self.pending += data
            if len(self.pending) < self.needed:
                return None
            data = bytes(self.pending)
        end = data.find(b"\r\n\r\n")
        stop = 0
        if end >= 0:
            length = LENGTH.search(data, 0, end + 2)
            if length is None:
                raise LoadError("bench-serve: an answer has no Content-Length; where it ends cannot be told")
            stop = end + 4 + int(length[1])
        if end < 0 or len(data) < stop:
            self.pending, self.needed = bytearray(data), stop
            return None
        if self.pending:
            self.pending = bytearray()
        return int(data[9:12]), data[end + 4 : stop], CLOSING.search(data, 0, end + 2) is not None


class Drive:
    """Load on one server: closed (a connection asks again once it is answered) or open (each request at its time)."""

    def __init__(self, address, requests, expected, connections):
        self.address, self.requests, self.connections = address, requests, connections
        self.expected, self.known = expected, [{body} for body in expected]
        self.selector = selectors.DefaultSelector()
        self.buffer = memoryview(bytearray(1 << 18))  # kept: memory of this size would come from the kernel each time
        self.free, self.open = [], set()
        self.refused_until = 0.0
        self.machine = None  # what all programs of this machine took during the run, where somebody looked
        self.reset()

    def reset(self):
        # Seconds; half an hour is millions of them. Late: from when a request should have been sent to when it was.
        self.latencies, self.late = array.array("f"), array.array("f")
        self.statuses = collections.Counter()
        self.lost = self.wrong = self.asked = self.counted = 0
        self.unsent = 0  # of the lost ones, those for which no connection was free until the end
        self.waiting = collections.deque()  # (number, due) for which no connection was free
        self.backlog = []  # requests that were due and not answered, at equal distances of time
        self.since, self.took, self.cores = math.inf, 0.0, 0.0

    # ---- connections

    def connect(self):
        """A new connection, or None if the server does not take it."""
        if time.perf_counter() < self.refused_until:
            return None
        try:
            line = socket.create_connection(self.address, timeout=10)
        except OSError:
            self.refused_until = time.perf_counter() + 0.05
            return None
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line.setblocking(False)
        connection = Connection(line)
        self.selector.register(line, selectors.EVENT_READ, connection)
        self.open.add(connection)
        return connection

    def disconnect(self, connection):
        if connection.number is not None:
            self.lost += 1
        elif connection in self.free:
            self.free.remove(connection)
        self.selector.unregister(connection.socket)
        connection.socket.close()
        self.open.discard(connection)

    def close(self):
        for connection in list(self.open):
            connection.number = None
            self.disconnect(connection)
        self.selector.close()

    # ---- requests

    def ask(self, due):
        """Send the next request, or let it wait for a connection."""
        number = self.asked % len(self.requests)
        self.asked += 1
        if due >= self.since:
            self.counted += 1
            self.late.append(time.perf_counter() - due)
        if (connection := self.take()) or len(self.open) < self.connections and (connection := self.connect()):
            self.send(connection, number, due)
        else:
            self.waiting.append((number, due))

    def take(self):
        """A free connection that is open still (Note [A connection that was idle]), or None."""
        while self.free:
            connection = self.free.pop()
            if time.perf_counter() - connection.since < IDLE:
                return connection
            with contextlib.suppress(BlockingIOError, OSError):
                connection.socket.recv(1)  # the end of the line, or what nobody asked for
                self.disconnect(connection)
                continue
            return connection
        return None

    def send(self, connection, number, due):
        connection.number, connection.due = number, due
        request = self.requests[number]
        try:
            sent = connection.socket.send(request)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.disconnect(connection)
            return
        if sent < len(request):
            connection.unsent = memoryview(request)[sent:]
            self.selector.modify(connection.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, connection)

    def send_rest(self, connection):
        with contextlib.suppress(BlockingIOError):
            connection.unsent = connection.unsent[connection.socket.send(connection.unsent) :]
        if not connection.unsent:
            self.selector.modify(connection.socket, selectors.EVENT_READ, connection)

    def listen(self, seconds):
        """Read what comes until something has come or the time is over."""
        # The selector's own wait would end up to a millisecond late; its file can be waited for to the microsecond.
        if not select.select([self.selector.fileno()], [], [], max(0.0, seconds))[0]:
            return
        for key, events in self.selector.select(0):
            connection = key.data
            try:
                if events & selectors.EVENT_WRITE:
                    self.send_rest(connection)
                if events & selectors.EVENT_READ:
                    self.receive(connection)
            except BlockingIOError:
                pass
            except OSError:
                self.disconnect(connection)

    def receive(self, connection):
        data = bytes(self.buffer[: connection.socket.recv_into(self.buffer)])
        now = time.perf_counter()
        if not data or connection.number is None:  # the end of the line, or an answer that nobody asked for
            self.disconnect(connection)
            return
        answer = connection.feed(data)
        if answer is None:
            return
        status, body, closing = answer
        number, due, connection.number = connection.number, connection.due, None
        connection.since = now
        if due >= self.since:
            self.statuses[status] += 1
            if status < 300:  # a refusal is quick, and no answer
                self.latencies.append(now - due)
        if status == 200 and body not in self.known[number]:
            self.compare(number, body)
        if closing or connection.unsent:
            self.disconnect(connection)
        elif self.waiting:
            self.send(connection, *self.waiting.popleft())
        else:
            self.free.append(connection)

    def compare(self, number, body):
        if not same(body, self.expected[number]):
            self.wrong += 1
        elif len(self.known[number]) < MAX_KNOWN:
            self.known[number].add(body)

    # ---- runs

    def run(self, seconds, rate=None, warm=0.0, even=True):
        """Drive for so long, after `warm` seconds that do not count: closed, or at `rate` requests a second, at equal
        distances or at random.
        """
        self.reset()
        while len(self.open) < self.connections and (connection := self.connect()):
            self.free.append(connection)
        gc.collect()
        gc.disable()  # pauses of this process would be taken for the server's; it makes no cycles
        try:
            if rate is None:
                self.run_closed(seconds, warm)
            else:
                draw = random.Random(0)
                gaps = itertools.repeat(1 / rate) if even else iter(lambda: draw.expovariate(rate), None)
                self.run_open(seconds, warm, gaps)
            self.finish()
        finally:
            gc.enable()

    def begin(self, seconds, warm):
        """When the run ends; the clocks start `warm` seconds from now."""
        self.since = time.perf_counter() + warm
        return self.since + seconds

    def run_closed(self, seconds, warm):
        end, cpu = self.begin(seconds, warm), None
        while (now := time.perf_counter()) < end:
            if cpu is None and now >= self.since:
                cpu = time.process_time()
            while self.free:
                self.ask(now)
                now = time.perf_counter()
            if len(self.open) < self.connections and (connection := self.connect()):
                self.free.append(connection)
                continue
            self.listen(min(end - now, 0.05))
        self.note(end - seconds, cpu)

    def run_open(self, seconds, warm, gaps):
        end, cpu = self.begin(seconds, warm), None
        due, sample = self.since - warm, self.since
        while (now := time.perf_counter()) < end:
            if now >= sample:
                cpu = time.process_time() if cpu is None else cpu
                self.backlog.append(len(self.waiting) + len(self.open) - len(self.free))
                sample += seconds / SAMPLES
            # Asked when due, answered or not: slow answers do not slow the asking. And the clock starts when it is
            # due: what this loop sends late is part of the latency, and is told.
            while due <= now:
                self.ask(due)
                due += next(gaps)
            if (rest := now + NAP - time.perf_counter()) > 0:  # Note [What the client costs]
                time.sleep(rest)
            self.listen(min(due, end) - time.perf_counter())
        while due < end - 1e-6:  # what was due while this process had no core
            self.ask(due)
            due += next(gaps)
        self.note(end - seconds, cpu)

    def note(self, start, cpu):
        self.took = time.perf_counter() - start
        self.cores = (time.process_time() - cpu) / self.took if cpu is not None else 0.0

    def finish(self):
        """Wait for the answers that are still to come."""
        end = time.perf_counter() + PATIENCE
        while (self.waiting or len(self.free) < len(self.open)) and self.open and time.perf_counter() < end:
            while self.waiting and (connection := self.take()):
                self.send(connection, *self.waiting.popleft())
            self.listen(0.05)
        for connection in [connection for connection in self.open if connection.number is not None]:
            self.disconnect(connection)
        self.unsent = len(self.waiting)
        self.lost += self.unsent


def same(body, expected):
    """Whether two answers say the same, up to the rounding of sums in another order."""
    try:
        one, other = numbers_in(json.loads(body)), numbers_in(json.loads(expected))
    except ValueError:
        return False
    return len(one) == len(other) and all(
        a == b or (isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-5))
        for a, b in zip(one, other)
    )


def numbers_in(value):
    """Everything in a JSON value, one behind the other."""
    if isinstance(value, dict):
        return [found for key in sorted(value) for found in (key, *numbers_in(value[key]))]
    return [found for item in value for found in numbers_in(item)] if isinstance(value, list) else [value]
