"""`cresset bench-serve`: percentiles, lost and wrong answers."""

import contextlib
import itertools
import json
import socket
import threading
import time
import types

import pytest

from cresset import cli
from cresset.serve import drive as load_driver
from cresset.serve import load
from cresset.serve.capacity import carried, search
from cresset.serve.drive import Connection, Drive, LoadError, same
from cresset.serve.load import bodies_for, describe, doubts, percentile


def test_it_drives_load_and_prints_percentiles(server, capsys):
    arguments = [
        "bench-serve",
        "double",
        "--url",
        server.url,
        "--seconds",
        "0.5",
        "--connections",
        "4",
        "--rate",
        "80%",
    ]
    assert cli.main([*arguments, "--memory", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    for title in ("one at a time", "as fast as it goes", "at 80%"):
        run = found[title]
        times = run["milliseconds"]
        assert 0 < times["p50"] <= times["p90"] <= times["p99"] <= times["max"]
        assert run["lost"] == run["wrong"] == 0 and run["statuses"] == {"200": run["requests"]}
        assert 0 < run["client"]["cores"] < 1.1 and run["client"]["late_ms"]["p99"] >= 0
    steps = found["capacity"]["steps"]
    assert {step["per_second"] for step in steps} >= {found["capacity"]["per_second"], found["capacity"]["not_carried"]}
    assert abs(found["at 80%"]["per_second"] / found["capacity"]["per_second"] - 0.8) < 0.05
    assert found["memory"]["front_mb"][0] > 0 and found["memory"]["workers_mb"][0] > 0


def test_it_says_what_is_missing(server, capsys):
    assert cli.main(["bench-serve", "none", "--url", server.url]) == 1
    assert "answered 404" in capsys.readouterr().err
    assert cli.main(["bench-serve", "Handler", "--url", server.url]) == 1
    assert "does not say what it takes" in capsys.readouterr().err
    assert cli.main(["bench-serve", "double", "--url", "http://127.0.0.1:9"]) == 1
    assert "cannot be reached: Connection refused" in capsys.readouterr().err
    for seconds in ("0", "-1", "nan", "long"):
        with pytest.raises(SystemExit):
            cli.main(["bench-serve", "double", "--seconds", seconds])
        assert "expected seconds above zero" in capsys.readouterr().err


def test_an_answer_with_other_numbers_is_wrong():
    answer = b'{"outputs":[{"data":[1.0,2.0]}]}'
    assert same(answer, b'{"outputs": [{"data": [1.000001, 2.0]}]}')
    assert not same(answer, b'{"outputs":[{"data":[1.1,2.0]}]}')
    assert not same(answer, b'{"outputs":[{"data":[1.0]}]}') and not same(b"x", answer)


def test_percentiles_of_a_few_values():
    assert [percentile([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], p) for p in (50, 90, 99, 100)] == [5, 9, 10, 10]


def test_requests_are_made_from_what_a_model_says():
    metadata = {"name": "m", "inputs": [{"name": "x", "datatype": "INT64", "shape": [-1, 2]}]}
    (body,) = bodies_for(metadata, 1)
    (entry,) = json.loads(body)["inputs"]
    assert entry["shape"] == [1, 2] and len(entry["data"]) == 2


ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b"


def test_an_answer_is_read_from_the_pieces_in_which_it_comes():
    text = b"HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nwait!"
    for size in (1, 7, len(text)):
        connection = Connection()
        *before, last = [connection.feed(text[at : at + size]) for at in range(0, len(text), size)]
        assert set(before) <= {None} and last == (429, b"wait!", False)
        assert connection.feed(text) == last
    assert Connection().feed(text.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))[2]
    with pytest.raises(LoadError, match="no Content-Length"):
        Connection().feed(b"HTTP/1.1 200 OK\r\n\r\n")


@contextlib.contextmanager
def answering(answer):
    """The address of a server of one connection after the other: answer(number) is what request `number` gets."""
    numbers = itertools.count()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    line, _ = listening.accept()
                    with line:
                        while line.recv(1 << 16) and (text := answer(next(numbers))):
                            line.sendall(text)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def driven(answer, seconds, rate=None, warm=0.0, even=True):
    with answering(answer) as address, contextlib.closing(Drive(address, [b"ask"], [b"yes"], 1)) as drive:
        drive.run(seconds, rate, warm, even)
        return drive


def test_requests_that_are_due_while_the_server_stands_still_count_from_when_they_were_due():
    def answer(number):
        time.sleep(0.5 if number == 10 else 0)
        return ANSWER % (3, b"yes")

    drive = driven(answer, 0.4, rate=100)
    waited = [seconds for seconds in drive.latencies if seconds > 0.25]
    assert len(drive.latencies) == drive.asked == 40 and drive.lost == drive.wrong == 0
    assert 20 <= len(waited) <= 30  # not only the tenth, all that were due in the first quarter second behind it


def test_what_is_asked_while_warming_up_does_not_count():
    drive = driven(lambda number: ANSWER % (3, b"yes"), 0.3, rate=100, warm=0.3)
    assert drive.asked == 60 and drive.counted == len(drive.latencies) == drive.statuses[200] <= 31


def test_requests_at_random_are_as_many_on_average():
    drive = driven(lambda number: ANSWER % (3, b"yes"), 0.5, rate=400, even=False)
    assert 150 < drive.asked == len(drive.latencies) < 250 and drive.asked != 200


def test_a_request_whose_connection_is_closed_is_lost_and_the_next_goes_on_another():
    drive = driven(lambda number: None if number in (3, 7) else ANSWER % (3, b"yes"), 0.3, rate=100)
    assert drive.lost == 2 and len(drive.latencies) == drive.asked - 2 == 28


def test_a_connection_that_was_closed_while_it_was_idle_loses_no_request(monkeypatch):
    """The client stands still for longer than the server keeps connections: it has not seen that they are closed."""
    monkeypatch.setattr(load_driver, "IDLE", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve_once_a_line():
            for _ in range(2):
                line, _ = listening.accept()
                with line:
                    line.recv(100)
                    line.sendall(ANSWER % (3, b"yes"))

        thread = threading.Thread(target=serve_once_a_line, daemon=True)
        thread.start()
        with contextlib.closing(Drive(listening.getsockname(), [b"ask"], [b"yes"], 1)) as drive:
            drive.since = 0.0
            drive.ask(time.perf_counter())
            while not drive.free:
                drive.listen(1.0)
            time.sleep(0.3)
            drive.ask(time.perf_counter())
            drive.finish()
            assert drive.lost == 0 and drive.statuses[200] == 2
        thread.join(10)


def test_answers_that_say_something_else_are_wrong():
    drive = driven(lambda number: ANSWER % ((3, b"yes") if number % 2 else (2, b"no")), 0.1)
    assert drive.wrong > 0 and abs(2 * drive.wrong - drive.asked) <= 1


def test_a_request_larger_than_the_socket_takes_is_sent_in_parts():
    size, seen = 20 << 20, []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            line, _ = listening.accept()
            with line:
                while sum(seen) < size and (data := line.recv(1 << 20)):
                    seen.append(len(data))
                line.sendall(ANSWER % (3, b"yes"))
                line.recv(1)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        drive = Drive(listening.getsockname(), [bytes(size)], [b"yes"], 1)
        drive.run(0.05, rate=19)
        drive.close()
        thread.join(10)
    assert sum(seen) == size and drive.lost == 0 and len(drive.latencies) == 1


def test_it_says_when_the_client_was_the_bottleneck():
    def found(cores, late, p99):
        client = {"cores": cores, "late_ms": {"p99": late}}
        run = {"requests": 9, "statuses": {200: 9}, "unsent": 0, "milliseconds": {"p99": p99}}
        return {**run, "client": client, "machine": None}

    assert not list(doubts(found(0.3, 0.1, 0.3))) and not list(doubts(found(0.3, 1.0, 20.0)))
    assert "took 97% of a core" in next(doubts(found(0.97, 0.0, 1.0)))
    assert "more than 1.50 ms late" in next(doubts(found(0.3, 1.5, 2.0)))
    (refused,) = doubts({**found(0.3, 0.1, 0.3), "statuses": {200: 5, 429: 4}})
    assert refused.startswith("4 of 9 requests were refused")


def test_requests_that_were_never_sent_are_told_apart_from_those_without_an_answer(monkeypatch):
    monkeypatch.setattr(load_driver, "PATIENCE", 0.2)

    def answer(number):
        time.sleep(0.05)
        return ANSWER % (3, b"yes")

    drive = driven(answer, 0.2, rate=200)
    assert drive.unsent == drive.lost - 1 > 20  # and one was sent
    (words,) = (words for words in doubts(describe(drive)) if "never sent" in words)
    assert words.startswith(f"{drive.unsent} of the lost requests were never sent")


def test_it_says_when_the_machine_was_the_bottleneck(server, capsys):
    calm = {"unsent": 0, "requests": 9, "statuses": {200: 9}, "milliseconds": {"p99": 0.3}}
    calm["client"] = {"cores": 0.3, "late_ms": {"p99": 0.1}}
    assert not list(doubts({**calm, "machine": {"cores": 2, "busy": 1.5, "stolen": 0.002}}))
    (busy,) = doubts({**calm, "machine": {"cores": 2, "busy": 1.98, "stolen": 0.0}})
    assert "took 1.98 of its 2 cores" in busy
    (stolen,) = doubts({**calm, "machine": {"cores": 2, "busy": 1.5, "stolen": 0.03}})
    assert "took 0.03 cores away" in stolen
    assert cli.main(["bench-serve", "double", "--url", server.url, "--seconds", "0.3", "--rate", "50", "--json"]) == 0
    machine = json.loads(capsys.readouterr().out)["at 50"]["machine"]
    assert machine is None or 0 <= machine["busy"] <= machine["cores"]


def test_a_refusal_is_no_answer():
    refusal = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n"
    drive = driven(lambda number: refusal if number % 2 else ANSWER % (3, b"yes"), 0.3, rate=100)
    assert drive.statuses == {200: 15, 429: 15} and len(drive.latencies) == 15 and drive.lost == 0


def test_a_rate_is_carried_if_the_backlog_does_not_grow():
    def answer(number):
        time.sleep(0.01)
        return ANSWER % (3, b"yes")

    slow, fast = driven(answer, 0.6, rate=50), driven(answer, 0.6, rate=150)
    assert carried(slow.backlog, 50, 1, slow.statuses, slow.lost)
    assert not carried(fast.backlog, 150, 1, fast.statuses, fast.lost) and fast.backlog[-1] > 20
    assert len(fast.latencies) == fast.asked == 90  # what waited at the end is answered, too, and counts


def test_a_pause_is_no_growth_and_a_refusal_is_not_carried():
    calm, pause = [2] * 300, [2] * 250 + list(range(2, 42)) + [2] * 10
    assert carried(pause, 1000, 32, {200: 5}, 0)
    assert not carried(calm, 1000, 32, {200: 5, 429: 1}, 0) and not carried(calm, 1000, 32, {200: 5}, 1)


def test_a_backlog_that_stands_is_not_carried():
    assert not carried([1900] * 100 + [1100] * 200, 19000, 32, {200: 5}, 0)


@pytest.mark.parametrize("start", [10, 995, 1000, 70000])
def test_the_search_ends_close_below_the_capacity_wherever_it_begins(start):
    assert 950 <= search(lambda rate: rate <= 1000, start) <= 1000


def test_a_server_that_carries_nothing_is_said_to():
    with pytest.raises(LoadError, match="does not carry 1 request a second"):
        search(lambda rate: False, 100)


def test_requests_that_come_by_themselves_wait_in_the_server_and_not_for_a_connection(server):
    path = "/v2/models/double/infer"
    target = load.Server(server.url)
    bodies = load.bodies_for(json.loads(target.get("/v2/models/double")), 1)
    options = types.SimpleNamespace(
        seconds=0.2, arrivals="even", rate=["50"], capacity=False, connections=2, memory=False, json=True
    )
    opened = []

    class Noted(load.Drive):
        def __init__(self, address, requests, expected, connections):
            opened.append(connections)
            super().__init__(address, requests, expected, connections)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(load, "Drive", Noted)
        requests = [target.request(path, body) for body in bodies]
        found = dict(load.measure(options, target, requests, [target.get(path, body) for body in bodies]))
    assert opened == [1, load.LINES]
    assert found["at 50"]["lost"] == found["at 50"]["wrong"] == 0
