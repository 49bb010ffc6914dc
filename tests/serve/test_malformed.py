"""Some hundreds of malformed requests: each is answered or its connection closed, and the server goes on as before."""

import importlib.util
import random
from pathlib import Path

SPEC = importlib.util.spec_from_file_location(
    "fuzz_serve", Path(__file__).resolve().parents[2] / "tools" / "fuzz_serve.py"
)
fuzz_serve = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(fuzz_serve)


def test_malformed_requests_are_refused_and_nothing_else_happens(server):
    before = [server.workers(name)[0]["pid"] for name in ("double", "Handler")]
    host, port = server.url.removeprefix("http://").split(":")
    draw, statuses = random.Random(3), set()
    for _ in range(300):
        raw, whole = fuzz_serve.malformed(draw)
        statuses.add(fuzz_serve.ask((host, int(port)), raw.replace(b"/Echo", b"/Handler"), whole))
    assert {200, 400, 404, 405} <= statuses
    assert server.infer("double", [[1.0, 2.0, 3.0]]).json()["outputs"][0]["data"] == [2.0, 4.0, 6.0]
    assert [server.workers(name)[0]["pid"] for name in ("double", "Handler")] == before
