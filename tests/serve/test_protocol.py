"""Requests that are all there go a short way; they are answered as those that come in pieces."""

import gzip
import json
import re
import socket
import time
import types

import pytest

from cresset.serve.protocol import FrontProtocol, JoiningTransport

from .conftest import running

QUESTION = b'{"inputs":[{"name":"input","shape":[1,3],"datatype":"FP32","data":[1,2,3]}]}'


def request(path, body=QUESTION, method="POST", version="1.1", host="127.0.0.1", **headers):
    lines = [f"{method} {path} HTTP/{version}", f"Host: {host}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def says(**told):
    return request("/predictions/Says", json.dumps(told).encode(), Content_Type="application/json")


REQUESTS = {
    "infer": (200, request("/v2/models/double/infer")),
    "infer, a version": (200, request("/v2/models/double/versions/1/infer")),
    "a query": (200, request("/v2/models/double/infer?a=1")),
    "escaped": (200, request("/v2/models/%64ouble/infer")),
    "predict": (200, request("/predictions/double", b"[1,2,3]")),
    "predict with a query": (200, request("/predictions/double?a=1", b"[1,2,3]")),
    "gzip": (200, request("/v2/models/double/infer", gzip.compress(QUESTION, mtime=0), Content_Encoding="gzip")),
    "HTTP/1.0": (200, request("/v2/models/double/infer", version="1.0")),
    "the last": (200, request("/v2/models/double/infer", Connection="close")),
    "no model": (404, request("/v2/models/none/infer")),
    "no version": (404, request("/v2/models/double/versions/9/infer")),
    "no JSON": (400, request("/v2/models/double/infer", b"{")),
    "another encoding": (415, request("/v2/models/double/infer", Content_Encoding="br")),
    "a wrong length": (400, request("/v2/models/double/infer", Inference_Header_Content_Length="x")),
    "GET": (405, request("/v2/models/double/infer", b"", "GET")),
    "another host": (403, request("/v2/models/double/infer", host="evil.example")),
    "another site": (403, request("/v2/models/double/infer", Origin="http://evil.example")),
    "a handler's status": (201, says(status=201, headers={"X-Seen": "yes"})),
    "an unknown status": (299, says(status=299)),
    "no status": (500, says(status=1000)),
    "two lines in a header": (500, says(headers={"X-Seen": "yes\r\nX-More: no"})),
    "no name of a header": (500, says(headers={"X Seen": "yes"})),
    "a length of its own": (500, says(headers={"Content-Length": "1"})),
}


@pytest.fixture
def line(server):
    with socket.create_connection((server.client.base_url.host, server.client.base_url.port), timeout=20) as line:
        yield line


def read_answer(line, body=True):
    """(status, headers without the date, body) of the next answer."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += line.recv(1)
    head = data.decode("latin-1").split("\r\n")
    headers = sorted(line.lower() for line in head[1:-2] if not line.startswith("date"))
    (length,) = re.findall(r"content-length: (\d+)", data.decode("latin-1"))
    found = b""
    while body and len(found) < int(length):
        found += line.recv(int(length) - len(found))
    return int(head[0].split()[1]), headers, found


def in_pieces(line, text):
    for part in (text[: len(text) - 3], text[len(text) - 3 :]):
        line.sendall(part)
        time.sleep(0.05)


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_in_pieces_is_answered_as_one_that_is_all_there(name, server):
    status, text = REQUESTS[name]
    address = server.client.base_url.host, server.client.base_url.port
    with socket.create_connection(address, timeout=20) as one, socket.create_connection(address, timeout=20) as other:
        one.sendall(text)
        in_pieces(other, text)
        answer = read_answer(one)
        assert answer[0] == status and answer == read_answer(other)
        closes = "connection: close" in answer[1]
        assert closes == (name in ("HTTP/1.0", "the last", "another host", "another site"))
        for line in (one, other):
            if closes:
                assert line.recv(1) == b""
            else:
                line.sendall(REQUESTS["infer"][1])
                assert read_answer(line)[0] == 200


def test_a_head_that_was_seen_before_is_read_no_other_way(line):
    """Of the same bytes, what belongs to the head and what to the body is the same each time."""
    for _ in range(3):
        for name in ("infer", "predict", "gzip", "no model", "no JSON", "a handler's status"):
            line.sendall(REQUESTS[name][1])
            assert read_answer(line)[0] == REQUESTS[name][0]
    blank = request("/predictions/double", b"\r\n\r\n[1,2,3]")
    for text in (blank, blank, b"\r\n\r\n" + blank, b"\r\n\r\n" + blank, b"\r\n" + blank, blank):
        line.sendall(text)
        assert read_answer(line)[0] == 200
    infer = REQUESTS["infer"][1]
    line.sendall(infer * 2)
    line.sendall(infer[:-3])
    time.sleep(0.05)
    line.sendall(infer[-3:] + infer[:10])
    time.sleep(0.05)
    line.sendall(infer[10:])
    assert [read_answer(line)[0] for _ in range(4)] == [200] * 4


def test_a_head_that_was_seen_before_asks_the_version_of_now(store):
    with running(f"m={store / 'double.pt2'}", f"m@2={store / 'double.pt2'}") as server:
        versions = []
        for version in ("1", "2", "1"):
            assert server.client.put(f"/models/m/{version}/set-default").status_code == 200
            versions += [server.infer("m", [[1.0, 2.0, 3.0]]).json()["model_version"] for _ in range(2)]
        assert versions == ["1", "1", "2", "2", "1", "1"]
        assert server.client.delete("/models/m/2").status_code == 200
        path = "/v2/models/m/versions/2/infer"
        assert [server.infer("m", [[1.0, 2.0, 3.0]], path=path).status_code for _ in range(2)] == [404, 404]


@pytest.mark.parametrize("asked", [1, 3])
def test_a_connection_without_requests_is_closed_after_a_while(line, asked):
    for _ in range(asked):
        time.sleep(0.2)
        line.sendall(REQUESTS["infer"][1])
        assert read_answer(line)[0] == 200
    start = time.monotonic()
    assert line.recv(1) == b"" and 4.5 < time.monotonic() - start < 7


@pytest.mark.parametrize("came", [b"", QUESTION])
def test_a_connection_is_not_closed_upon_a_request_that_came_in_time(came):
    """The loop comes to its clock before it has read what has come: on a busy machine it does."""
    here, there = socket.socketpair()
    with here, there:
        there.sendall(came)
        for asks in ("timeout_keep_alive_handler", "close_if_idle"):
            told = []
            protocol = object.__new__(FrontProtocol)
            protocol.transport = types.SimpleNamespace(
                get_extra_info={"socket": here}.get, close=lambda told=told: told.append("closed"),
                is_closing=lambda: False,
            )  # fmt: skip
            protocol.loop = types.SimpleNamespace(time=lambda: 6.0)
            protocol.cycle, protocol.quiet_since, protocol.timeout_keep_alive = None, 0.0, 5
            protocol.watch = lambda seconds, told=told: told.append("looked again")
            getattr(protocol, asks)()
            assert told == ([] if came and asks == "close_if_idle" else ["looked again"] if came else ["closed"])


def test_requests_behind_each_other_are_answered_in_their_order(line):
    names = ["infer", "predict", "no model", "infer", "GET", "infer"]
    line.sendall(b"".join(REQUESTS[name][1] for name in names))
    assert [read_answer(line)[0] for _ in names] == [REQUESTS[name][0] for name in names]


def test_an_answer_without_a_body_leaves_the_connection_in_order(line):
    line.sendall(request("/predictions/Says", b'{"status": 204}', Content_Type="application/json"))
    status, _, body = read_answer(line)
    assert (status, body) == (204, b"")
    line.sendall(request("/predictions/Handler", b"", "HEAD"))
    assert read_answer(line, body=False)[0] == 200
    line.sendall(REQUESTS["infer"][1])
    assert read_answer(line)[0] == 200


def test_a_client_that_is_gone_before_its_answer_does_no_harm(server, line):
    for _ in range(5):
        line.sendall(REQUESTS["infer"][1])
    line.close()
    assert server.infer("double", [[1.0, 2.0, 3.0]]).status_code == 200


def test_a_request_that_ends_early_is_not_computed(server):
    def computed():
        text = server.client.get("/metrics").text
        (count,) = re.findall(r"cresset_serve_requests_total\{model_name=\"double\".*status=\"200\"\} (\d+)", text)
        return int(count)

    assert server.infer("double", [[1.0, 2.0, 3.0]]).status_code == 200
    before = computed()
    with socket.create_connection((server.client.base_url.host, server.client.base_url.port)) as line:
        line.sendall(REQUESTS["infer"][1][:-3])
        time.sleep(0.1)
    assert server.infer("double", [[1.0, 2.0, 3.0]]).status_code == 200
    assert computed() == before + 1


class Written:
    """A transport that keeps what is written."""

    def __init__(self):
        self.parts, self.closed = [], False

    def write(self, data):
        self.parts.append(data)

    def writelines(self, parts):
        self.parts.append(b"".join(parts))

    def is_closing(self):
        return self.closed

    def close(self):
        self.closed = True


def test_the_head_of_an_answer_goes_with_its_body():
    under = Written()
    transport = JoiningTransport(under)
    transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    transport.write(b"HTTP/1.1 200 OK\r\n\r\n")
    transport.write(b"body")
    transport.write(b"more")
    assert under.parts == [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\nbody", b"more"]
    transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")
    transport.flush()
    transport.write(b"HTTP/1.1 304 Not Modified\r\n\r\n")
    transport.close()
    assert (
        under.parts[3:] == [b"HTTP/1.1 204 No Content\r\n\r\n", b"HTTP/1.1 304 Not Modified\r\n\r\n"] and under.closed
    )
