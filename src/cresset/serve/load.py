"""`cresset bench-serve`: drives load against a server and prints latency percentiles.

Requests are made once. Each answer is compared with the one that the same request got when it was alone.
"""

import contextlib
import functools
import json
import math
import os
import random
import sys
import urllib.error
import urllib.parse
import urllib.request

import cresset

from . import capacity
from .drive import PATIENCE, Drive, LoadError

STEP = 10.0  # seconds at most of each rate that is tried
LINES = 256  # connections at least where requests come by themselves: they are to wait in the server, not here
WARM = 0.5  # seconds at most of each run that do not count: caches, connections and the server's own measures settle


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
            reason = getattr(error, "reason", error)  # of urllib's own error, what the system said
            words = getattr(reason, "strerror", None) or reason
            raise LoadError(f"bench-serve: {self.url} cannot be reached: {words}") from None

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


def processor_seconds():
    """Seconds of this machine's processors since it started: (busy, stolen by the host of a virtual machine, idle)."""
    with open("/proc/stat") as file:
        user, nice, system, idle, waiting, interrupts, soft, stolen = map(int, file.readline().split()[1:9])
    ticks = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + interrupts + soft) / ticks, stolen / ticks, (idle + waiting) / ticks


def machine_during(drive, *arguments, **more):
    """Run; what all programs of this machine together took meanwhile, in cores. None where that cannot be told."""
    if not os.path.exists("/proc/stat"):
        drive.run(*arguments, **more)
        return None
    before = processor_seconds()
    drive.run(*arguments, **more)
    busy, stolen, idle = (after - start for start, after in zip(before, processor_seconds()))
    whole = max(busy + stolen + idle, 1e-9)
    cores = os.cpu_count()
    return {"cores": cores, "busy": round(cores * busy / whole, 2), "stolen": round(cores * stolen / whole, 3)}


def describe(drive):
    """The numbers of a run."""
    found = {
        "requests": drive.counted,
        "seconds": round(drive.took, 2),
        "per_second": round(len(drive.latencies) / drive.took, 1),
        "milliseconds": milliseconds(drive.latencies),
        "statuses": dict(sorted(drive.statuses.items())),
        "lost": drive.lost,
        "unsent": drive.unsent,
        "wrong": drive.wrong,
        "client": {"cores": round(drive.cores, 3), "late_ms": milliseconds(drive.late)},
        "machine": drive.machine,
    }
    return found


def milliseconds(seconds):
    """Percentiles of an array of times."""
    ordered = cresset.frombuffer(seconds, dtype=cresset.float32).sort().values if seconds else [math.nan]
    percents = (("p50", 50), ("p90", 90), ("p99", 99), ("p99.9", 99.9), ("max", 100))
    return {name: round(float(percentile(ordered, percent)) * 1e3, 3) for name, percent in percents}


def doubts(found):
    """Sentences about what a run's numbers do not say, or what in them is the client's and not the server's."""
    refused = sum(count for status, count in found["statuses"].items() if status >= 300)
    if refused:
        yield f"{refused} of {found['requests']} requests were refused; rate and latencies are those of the others"
    if found["unsent"]:
        yield (
            f"{found['unsent']} of the lost requests were never sent: no connection was free for them until "
            f"{PATIENCE:g} s after the end, as the server does not carry this rate or is gone"
        )
    cores, late, p99 = found["client"]["cores"], found["client"]["late_ms"]["p99"], found["milliseconds"]["p99"]
    if cores > 0.9:
        yield f"the client took {cores:.0%} of a core, all that one thread can: the server may be faster than this"
    machine = found["machine"]
    if machine and machine["busy"] > 0.95 * machine["cores"]:
        yield (
            f"all programs of this machine took {machine['busy']:g} of its {machine['cores']} cores: waiting for one "
            "is in the latencies"
        )
    if machine and machine["stolen"] > 0.005:
        yield (
            f"the host of this virtual machine took {machine['stolen']:g} cores away, for milliseconds at a time, and "
            "that is in the latencies"
        )
    if late > 0.2 and late > p99 / 4:
        yield f"the client sent 1 % of the requests more than {late:.2f} ms late, and that is in the latencies"


def show(title, found):
    times = "  ".join(f"{name} {value:.2f}" for name, value in found["milliseconds"].items())
    print(
        f"{title}: {found['per_second']:.0f} requests a second for {found['seconds']:.0f} s "
        f"({found['requests']} in all)"
    )
    print(f"  milliseconds: {times}")
    statuses = ", ".join(f"{count} x {status}" for status, count in found["statuses"].items())
    print(f"  answers: {statuses or 'none'}; {found['lost']} lost, {found['wrong']} wrong")
    late = found["client"]["late_ms"]
    print(
        f"  client: {found['client']['cores']:.0%} of a core; sent late by p50 {late['p50']:.2f}  p99 {late['p99']:.2f}"
    )
    if machine := found["machine"]:
        print(f"  this machine: {machine['busy']:g} of {machine['cores']} cores busy, {machine['stolen']:g} stolen")


def show_capacity(found):
    low, high = found["per_second"], found["not_carried"]
    print(f"capacity: {low:.0f} requests a second are carried, {high:.0f} are not")


def show_step(step):
    first, last = step["backlog"]
    refused = f" ({step['refused']} were refused)" if step["refused"] else ""
    print(
        f"  {step['per_second']:.0f} a second for {step['seconds']:g} s: {first:g} requests waited at first, {last:g} "
        f"at last: {'carried' if step['carried'] else 'not carried'}{refused}",
        flush=True,
    )


def show_memory(found):
    parts = (f"{name.removesuffix('_mb')} {a} -> {b}" for name, (a, b) in found.items())
    print("memory, MB: " + ", ".join(parts))


SHOWN = {"capacity": show_capacity, "memory": show_memory}


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
    requests = [server.request(path, body) for body in bodies]
    found, failed = {}, False
    for title, numbers in measure(options, server, requests, expected):
        found[title] = numbers
        if not options.json:
            SHOWN.get(title, functools.partial(show, title))(numbers)
            sys.stdout.flush()
        if title not in SHOWN:
            failed |= numbers["lost"] + numbers["wrong"] > 0
            for sentence in doubts(numbers):
                print(f"bench-serve: {title}: {sentence}", file=sys.stderr)
    if options.json:
        print(json.dumps(found, indent=2))
    return 1 if failed else 0


def measure(options, server, requests, expected):
    """(title, numbers) of each run, as they come."""

    def driven(connections, seconds, rate=None):
        lines = connections if rate is None else max(connections, LINES)
        with contextlib.closing(Drive(server.address, requests, expected, lines)) as drive:
            drive.machine = machine_during(
                drive, seconds, rate, warm=min(WARM, seconds / 4), even=options.arrivals == "even"
            )
            return drive

    yield "one at a time", describe(driven(1, min(2.0, options.seconds)))
    rates, peak, found = options.rate or [], None, None
    searching = options.capacity or any(rate.endswith("%") for rate in rates)
    if searching or not rates:
        full = describe(driven(options.connections, min(5.0, options.seconds) if searching else options.seconds))
        yield "as fast as it goes", full
        peak = full["per_second"]
    if searching:
        found = find_capacity(options, peak, driven)
        yield "capacity", found
    before = server.memory(options.model) if options.memory else None
    for rate in rates:
        a_second = found["per_second"] * float(rate[:-1]) / 100 if rate.endswith("%") else float(rate)
        yield f"at {rate}", describe(driven(options.connections, options.seconds, a_second))
    if options.memory:
        after = server.memory(options.model)
        yield "memory", {"front_mb": [round(before[0], 1), round(after[0], 1)],
                         "workers_mb": [round(before[1], 1), round(after[1], 1)]}  # fmt: skip


def find_capacity(options, peak, driven):
    """The capacity and the rates that were tried, from the rate of clients that wait for their answers."""
    steps = []

    def carries(rate):
        seconds = min(STEP, options.seconds)
        drive = driven(options.connections, seconds, rate)
        step = {
            "per_second": round(rate, 1),
            "seconds": seconds,
            "carried": capacity.carried(
                drive.backlog, rate, options.connections, drive.statuses, drive.lost + drive.wrong
            ),
            "backlog": capacity.thirds(drive.backlog),
            "refused": sum(count for status, count in drive.statuses.items() if status >= 300),
            "milliseconds": milliseconds(drive.latencies),
            "machine": drive.machine,
        }
        steps.append(step)
        if not options.json:
            show_step(step)
        return step["carried"]

    rate = capacity.search(carries, peak)
    not_carried = min(step["per_second"] for step in steps if not step["carried"] and step["per_second"] > rate)
    return {"per_second": round(rate, 1), "not_carried": not_carried, "steps": steps}
