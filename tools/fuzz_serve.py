"""Malformed requests against a server under watch: no crash, no hang, no memory growth.

    python tools/fuzz_serve.py COUNT SEED

starts `cresset serve` with an exported program and a handler, sends COUNT requests that are damaged in their bytes,
their JSON, their headers or their tensors, and checks that each is answered (or its connection closed) within ten
seconds, that no worker ended, and that memory stays. Exit status 1 if not.
"""

import contextlib
import copy
import json
import os
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

VALUES = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 0.5, 1e308, -0.0, "", "x", "input", "FP32",
    "INT8",
    "BYTES", "\ud800", "\x00", [], [[]], [[[]]], {}, {"a": 1}, [1, [2]], ["a"], [None], [1e999], "é" * 100, [0] * 1000,
]  # fmt: skip
PATHS = [
    "/v2/models/double/infer", "/v2/models/double/versions/1/infer", "/predictions/double", "/predictions/Echo",
    "/v2/models/Echo/infer", "/predictions/none", "/models/double/split", "/models?url=double.pt2",
    "/v2/repository/index",
    "/models/double?min_worker=x", "/v2", "/metrics", "/status.json", "/%00", "/..%2f..%2fetc/passwd", "/" + "a" * 5000,
    "*", "",
]  # fmt: skip


def question():
    return {
        "id": "1",
        "inputs": [{"name": "input", "shape": [1, 3], "datatype": "FP32", "data": [1.0, 2.0, 3.0]}],
        "outputs": [{"name": "output_0", "parameters": {"binary_data": False}}],
    }


def damaged(value, draw):
    """The JSON value with one place of it replaced, doubled or taken out."""
    places = []

    def walk(node):
        keys = node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        for key in keys:
            places.append((node, key))
            walk(node[key])

    walk(value)
    node, key = draw.choice(places)
    how = draw.randrange(4)
    if how == 0:
        del node[key]
    elif how == 1 and isinstance(node, list):
        node.insert(key, node[key])
    else:
        node[key] = copy.deepcopy(draw.choice(VALUES))
    return value


def malformed(draw):
    """(the bytes of a request that is wrong somewhere, most of the time; whether it is whole: the server need not
    wait)."""
    path, method = PATHS[0], "POST"
    value = question()
    headers = {"Host": "127.0.0.1", "Content-Type": "application/json", "Connection": "close"}
    for _ in range(draw.choice([0, 1, 1, 2, 5])):
        value = damaged(value, draw)
        if not value:
            break
    body = json.dumps(value).encode()
    kind = draw.randrange(8)
    if kind == 0:  # another path or method
        path, method = (
            draw.choice(PATHS),
            draw.choice(["POST", "GET", "PUT", "HEAD", "OPTIONS", "BREW", "P\x00ST", "PATCH"]),
        )
        if path.startswith("/models"):
            method = draw.choice(["GET", "POST", "HEAD"])  # nothing that changes what is served
    elif kind == 1:  # bytes behind the JSON
        size = draw.choice([0, 4, 12, 12, 13, 2**40, -1])
        value = question()
        value["inputs"][0] |= {"parameters": {"binary_data_size": size}}
        del value["inputs"][0]["data"]
        text = json.dumps(value).encode()
        body = text + struct.pack("<3f", 1, 2, 3)[: draw.choice([12, 12, 11, 0])]
        headers["Inference-Header-Content-Length"] = str(
            draw.choice([len(text), len(text), len(text) + 1, 0, -1, 10**30, "x"])
        )
    elif kind == 2:  # damaged bytes
        data = bytearray(body)
        for _ in range(draw.randrange(1, 8)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        body = bytes(data)
    elif kind == 3:  # deep or wide
        body = draw.choice(
            [b"[" * 20_000, b'{"a":' * 20_000, b"[[]," * 20_000, b"1" * 20_000, b'"' + b"\\u0000" * 5000 + b'"', b""]
        )
    elif kind == 4:  # another encoding
        headers["Content-Encoding"] = draw.choice(["gzip", "deflate", "br", "\xff"])
        headers["Content-Type"] = draw.choice(
            ["multipart/form-data", "multipart/form-data; boundary=x", "text/plain", "a" * 1000]
        )
        path = draw.choice(PATHS[:5])
    elif kind == 5:  # a form for the handler
        path = "/predictions/Echo"
        headers["Content-Type"] = "multipart/form-data; boundary=x"
        body = draw.choice(
            [b"--x\r\n\r\n\r\n--x--", b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\nb\r\n--x--", b"--x" * 1000]
        )
    length = draw.choice([len(body)] * 12 + [0, len(body) + 7, max(0, len(body) - 3), -1, 10**30, "x", ""])
    headers["Content-Length"] = str(length)
    if draw.random() < 0.05:
        headers["Transfer-Encoding"] = draw.choice(["chunked", "gzip", "chunked, chunked"])
    if draw.random() < 0.05:
        headers["X-" + "y" * draw.choice([10, 10_000, 70_000])] = "z"
    lines = [
        f"{method} {path} HTTP/{draw.choice(['1.1'] * 10 + ['1.0', '2.0', '9'])}",
        *(f"{k}: {v}" for k, v in headers.items()),
    ]
    raw = "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + body
    whole = not (isinstance(length, int) and length > len(body)) and "Transfer-Encoding" not in headers
    how = draw.randrange(20)
    if how == 0:
        return raw[: draw.randrange(len(raw))], False
    if how == 1:
        return draw.randbytes(draw.randrange(1, 300)), False
    if how == 2:
        return raw + raw[: draw.randrange(len(raw))], whole
    return raw, whole


def ask(address, raw, whole):
    """The status of the answer; None if the connection was closed without one. Raises TimeoutError if nothing
    happens."""
    with socket.create_connection(address, timeout=10) as line:
        try:
            line.sendall(raw)
            if not whole:
                with contextlib.suppress(OSError):  # it has answered and closed before the rest arrived
                    line.shutdown(socket.SHUT_WR)
            answer = b""
            while part := line.recv(65536):
                answer += part
        except ConnectionError:
            return None
    return int(answer[9:12]) if answer.startswith(b"HTTP/1.1 ") else None


class Stops:
    """Notices when this process itself stood still (stopped, or the machine asleep): then a silence is not
    the server's fault."""

    def __init__(self):
        self.last, self.longest = time.monotonic(), 0.0
        threading.Thread(target=self.beat, daemon=True).start()

    def beat(self):
        while True:
            now = time.monotonic()
            self.longest, self.last = max(self.longest, now - self.last), now
            time.sleep(0.1)

    def taken(self):
        """Whether there was one since the last time somebody asked."""
        time.sleep(0.3)
        stood, self.longest = self.longest > 3, 0.0
        return stood


HANDLER = """
class Echo:
    def handle(self, data, context):
        return [str(row)[:100] for row in data]
"""


def start(folder):
    """(process, url) of a server with a program and a handler."""
    import cresset
    from cresset import nn

    class Double(nn.Module):
        def forward(self, input):
            return input * 2

    batch = cresset.export.Dim("batch")
    program = cresset.export.export(Double(), (cresset.ones(2, 3),), dynamic_shapes=({0: batch},))
    cresset.export.save(program, os.path.join(folder, "double.pt2"))
    with open(os.path.join(folder, "echo.py"), "w") as file:
        file.write(HANDLER)
    models = [os.path.join(folder, "double.pt2"), os.path.join(folder, "echo.py:Echo")]
    command = [sys.executable, "-m", "cresset", "serve", *models, "--port", "0", "--batch", "8", "--max-request", "1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if '"event": "listening"' in line:
            return process, json.loads(line)["url"]
    raise SystemExit("fuzz_serve: the server did not start")


def state(url):
    """(MB of the front, MB of the workers, the workers' process ids)."""
    get = lambda path: urllib.request.urlopen(url + path, timeout=60).read()
    front = next(
        float(line.split()[1]) for line in get("/metrics").decode().splitlines() if line.startswith("process_resident")
    )
    workers = [worker for name in ("double", "Echo") for worker in json.loads(get(f"/models/{name}"))[0]["workers"]]
    return (
        front / 2**20,
        sum(worker["memoryUsage"] for worker in workers) / 2**20,
        [worker["pid"] for worker in workers],
    )


def main():
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    draw, seen, problems = random.Random(seed), {}, []
    with tempfile.TemporaryDirectory() as folder:
        process, url = start(folder)
        threading.Thread(target=lambda: [None for _ in process.stderr], daemon=True).start()  # the log, read and left
        host, port = url.removeprefix("http://").split(":")
        first, begun, stops = None, time.time(), Stops()
        for number in range(count):
            raw, whole = malformed(draw)
            try:
                status = ask((host, int(port)), raw, whole)
            except TimeoutError:
                if stops.taken():
                    print(f"request {number}: this process stood still; asking again", flush=True)
                    status = ask((host, int(port)), raw, whole)
                else:
                    problems.append(f"request {number} was not answered: {raw[:300]!r}")
                    break
            seen[status] = seen.get(status, 0) + 1
            if number == min(2000, count // 4):
                first = state(url)
            if number % 10_000 == 0 and number:
                print(f"{number} after {time.time() - begun:.0f} s: {state(url)} {seen}", flush=True)
        last = state(url)
        process.terminate()
        ended = process.wait(60)
    if first[2] != last[2]:
        problems.append(f"workers ended: {first[2]} became {last[2]}")
    if last[0] > first[0] + 20 or last[1] > first[1] + 40:
        problems.append(f"memory grew: {first[:2]} became {last[:2]} MB")
    if ended:
        problems.append(f"the server ended with status {ended}")
    if bad := {
        status: n for status, n in seen.items() if status is not None and status >= 500 and status not in (501, 505)
    }:
        problems.append(f"failures: {bad}")
    print(
        f"{count} requests in {time.time() - begun:.0f} s; answers by status: {seen}; memory {first[:2]} -> "
        f"{last[:2]} MB"
    )
    print("\n".join(problems) or "no crash, no hang, no growth")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
