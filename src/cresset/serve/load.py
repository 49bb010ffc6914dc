"""`cresset bench-serve`: drives load against a server and prints latency percentiles.

Requests are made once and sent over connections that stay open, by a client that does little else, so that what is
measured is the server. Each answer is compared with the one that the same request got when it was alone.
"""

import array
import asyncio
import collections
import gc
import json
import math
import random
import re
import time
import urllib.error
import urllib.parse
import urllib.request

LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)\r\n", re.IGNORECASE)


class LoadError(Exception):
    """The load cannot be driven: the server is not there, or the model does not say what it takes."""


class Connection(asyncio.Protocol):
    """One connection: a request at a time, its answer found by Content-Length."""

    def __init__(self, drive):
        self.drive, self.buffer, self.sent = drive, b"", None
        self.transport = None

    def connection_made(self, transport):
        self.transport = transport
        self.drive.lines.add(transport)
        self.drive.free.append(self)

    def connection_lost(self, _error):
        if self.sent is not None:
            self.sent = None
            self.drive.lost += 1
        self.drive.closed(self)

    def ask(self, number, due):
        self.sent = (number, due)
        self.transport.write(self.drive.requests[number])

    def data_received(self, data):
        if self.buffer:
            data = self.buffer + data
        end = data.find(b"\r\n\r\n")
        length = LENGTH.search(data, 0, end + 2) if end >= 0 else None
        if end >= 0 and (length is None or self.sent is None):
            self.transport.abort()
            return
        if length is None or len(data) < (stop := end + 4 + int(length[1])):
            self.buffer = data
            return
        self.buffer = data[stop:]
        (number, due), self.sent = self.sent, None
        self.drive.got(self, number, due, int(data[9:12]), data[end + 4 : stop])


class Drive:
    """Load on one server: closed (each connection asks again at once) or at a rate."""

    def __init__(self, address, requests, expected, connections):
        self.address, self.requests, self.expected, self.connections = address, requests, expected, connections
        self.free, self.open, self.lines = collections.deque(), 0, set()
        self.reset()

    def reset(self):
        self.latencies, self.statuses = array.array("d"), collections.Counter()  # half an hour is millions of them
        self.lost = self.wrong = self.asked = 0
        self.waiting = collections.deque()  # (number, due) for which no connection was free
        self.running = False

    async def connect(self):
        loop = asyncio.get_running_loop()
        for _ in range(self.connections - self.open):
            self.open += 1
            await loop.create_connection(lambda: Connection(self), *self.address)

    async def close(self):
        """Close the connections, and wait until they are."""
        for transport in list(self.lines):
            transport.abort()
        while self.lines:
            await asyncio.sleep(0)

    def closed(self, connection):
        self.open -= 1
        self.lines.discard(connection.transport)
        if connection in self.free:
            self.free.remove(connection)
        if self.running:
            task = asyncio.get_running_loop().create_task(self.connect())
            task.add_done_callback(lambda done: done.cancelled() or done.exception())

    def got(self, connection, number, due, status, body):
        now = time.perf_counter()
        self.latencies.append(now - due)
        self.statuses[status] += 1
        if status == 200 and self.expected and body != self.expected[number] and not same(body, self.expected[number]):
            self.wrong += 1
        if self.waiting:
            connection.ask(*self.waiting.popleft())
        elif self.rate is None and self.running:
            self.ask(connection, now)
        else:
            self.free.append(connection)

    def ask(self, connection, due):
        number = self.asked % len(self.requests)
        self.asked += 1
        if connection is None:
            self.waiting.append((number, due))
        else:
            connection.ask(number, due)

    async def run(self, seconds, rate=None):
        """Drive for so long; the seconds it took."""
        self.reset()
        self.rate, self.running = rate, True
        await self.connect()
        start = time.perf_counter()
        if rate is None:
            while self.free:
                self.ask(self.free.popleft(), time.perf_counter())
            await asyncio.sleep(seconds)
        else:
            while (passed := time.perf_counter() - start) < seconds:
                # Asked when due, answered or not: slow answers do not slow the asking. The clock starts when a request
                # is sent, or should be but for a free connection: this loop's own ticks are not the server's.
                while self.asked < passed * rate:
                    self.ask(self.free.popleft() if self.free else None, time.perf_counter())
                await asyncio.sleep(0.001)
        self.running = False
        took = time.perf_counter() - start
        end = time.perf_counter() + 60
        while len(self.latencies) + self.lost < self.asked and time.perf_counter() < end:
            await asyncio.sleep(0.01)
        self.lost = self.asked - len(self.latencies)
        return took


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


def percentile(ordered, percent):
    """The value below which so many of the sorted values lie.

    >>> percentile([1, 2, 3, 4], 50)
    2
    """
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


class Server:
    """The server under load, asked now and then with the standard library's client."""

    def __init__(self, url, token=None):
        parts = urllib.parse.urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme != "http" or not parts.hostname:
            raise LoadError(f"bench-serve: expected an address such as http://127.0.0.1:8080, got {url!r}")
        self.address = (parts.hostname, parts.port or 80)
        self.url = f"http://{parts.netloc}"
        self.headers = {"authorization": f"Bearer {token}"} if token else {}

    def get(self, path, body=None):
        request = urllib.request.Request(self.url + path, body, {"content-type": "application/json", **self.headers})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            with error:
                words = error.read(500).decode("utf-8", "replace")
            raise LoadError(f"bench-serve: {path} answered {error.code}: {words}") from None
        except OSError as error:
            raise LoadError(f"bench-serve: {self.url} cannot be reached: {error}") from None

    def memory(self, model):
        """MB of the front and of the model's workers."""
        front = next(
            (
                float(line.split()[1])
                for line in self.get("/metrics").decode().splitlines()
                if line.startswith("process_resident")
            ),
            0.0,
        )
        (described,) = json.loads(self.get(f"/models/{urllib.parse.quote(model)}"))
        return front / 2**20, sum(worker["memoryUsage"] for worker in described["workers"]) / 2**20

    def request(self, path, body):
        lines = [
            f"POST {path} HTTP/1.1",
            f"Host: {self.address[0]}:{self.address[1]}",
            "Content-Type: application/json",
        ]
        lines += [f"Content-Length: {len(body)}", *(f"{name}: {value}" for name, value in self.headers.items())]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def bodies_for(metadata, count, seed=0):
    """JSON requests with random values of the shapes a model says it takes (-1: 1)."""
    if not metadata["inputs"]:
        raise LoadError(
            f"bench-serve: {metadata['name']} does not say what it takes; give a request's body with --body FILE"
        )
    draw, found = random.Random(seed), []
    for _ in range(count):
        inputs = []
        for entry in metadata["inputs"]:
            shape = [1 if size == -1 else size for size in entry["shape"]]
            if entry["datatype"].startswith(("FP", "BF")):
                data = [round(draw.random(), 4) for _ in range(math.prod(shape))]
            else:
                data = [draw.randrange(2) for _ in range(math.prod(shape))]
            inputs.append({"name": entry["name"], "shape": shape, "datatype": entry["datatype"], "data": data})
        found.append(json.dumps({"inputs": inputs}).encode())
    return found


def describe(drive, took):
    """The numbers of a run."""
    ordered = sorted(drive.latencies) or [math.nan]
    return {
        "requests": drive.asked,
        "seconds": round(took, 2),
        "per_second": round(len(drive.latencies) / took, 1),
        "milliseconds": {name: round(percentile(ordered, p) * 1e3, 3) for name, p in
                         (("p50", 50), ("p90", 90), ("p99", 99), ("p99.9", 99.9), ("max", 100))},
        "statuses": dict(sorted(drive.statuses.items())),
        "lost": drive.lost,
        "wrong": drive.wrong,
    }  # fmt: skip


def show(title, found):
    times = "  ".join(f"{name} {value:.2f}" for name, value in found["milliseconds"].items())
    print(
        f"{title}: {found['per_second']:.0f} requests a second for {found['seconds']:.0f} s "
        f"({found['requests']} in all)"
    )
    print(f"  milliseconds: {times}")
    statuses = ", ".join(f"{count} x {status}" for status, count in found["statuses"].items())
    print(f"  answers: {statuses or 'none'}; {found['lost']} lost, {found['wrong']} wrong")


def run(options):
    """The command; its exit status is 1 if an answer was lost or wrong."""
    server = Server(options.url, options.token)
    path, bodies = f"/v2/models/{urllib.parse.quote(options.model)}/infer", None
    if options.path:
        path = options.path
    if options.body:
        with open(options.body, "rb") as file:
            bodies = [file.read()]
    else:
        metadata = json.loads(server.get(f"/v2/models/{urllib.parse.quote(options.model)}"))
        bodies = bodies_for(metadata, options.different)
    expected = [server.get(path, body) for body in bodies]
    drive = Drive(server.address, [server.request(path, body) for body in bodies], expected, options.connections)
    gc.collect()
    gc.freeze()  # pauses of this process would be taken for the server's
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(measure(options, server, drive))


def loop_factory():
    """uvloop's if it is there, which takes less of the processor from the server; else asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def measure(options, server, drive):
    found = {}
    alone = Drive(server.address, drive.requests, drive.expected, 1)
    found["one at a time"] = describe(alone, await alone.run(min(2.0, options.seconds)))
    await alone.close()
    rate = options.rate
    if rate is None or rate.endswith("%"):
        seconds = options.seconds if rate is None else min(5.0, options.seconds)
        found["as fast as it goes"] = describe(drive, await drive.run(seconds))
        peak = found["as fast as it goes"]["per_second"]
        rate = None if rate is None else peak * float(rate[:-1]) / 100
    if rate is not None:
        before = server.memory(options.model) if options.memory else None
        found["at the rate"] = describe(drive, await drive.run(options.seconds, float(rate)))
        if options.memory:
            after = server.memory(options.model)
            found["memory"] = {"front_mb": [round(before[0], 1), round(after[0], 1)],
                               "workers_mb": [round(before[1], 1), round(after[1], 1)]}  # fmt: skip
    await drive.close()
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        for title, numbers in found.items():
            if title == "memory":
                print(
                    "memory, MB: " + ", ".join(f"{k.removesuffix('_mb')} {a} -> {b}" for k, (a, b) in numbers.items())
                )
            else:
                show(title, numbers)
    runs = [numbers for title, numbers in found.items() if title != "memory"]
    return 1 if any(numbers["lost"] or numbers["wrong"] for numbers in runs) else 0
