"""`cresset bench-serve`: percentiles, lost and wrong answers."""

import json

from cresset import cli
from cresset.serve.load import Connection, bodies_for, percentile, same


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
    for title in ("one at a time", "as fast as it goes", "at the rate"):
        run = found[title]
        times = run["milliseconds"]
        assert 0 < times["p50"] <= times["p90"] <= times["p99"] <= times["max"]
        assert run["lost"] == run["wrong"] == 0 and run["statuses"] == {"200": run["requests"]}
    assert found["memory"]["front_mb"][0] > 0 and found["memory"]["workers_mb"][0] > 0


def test_it_says_what_is_missing(server, capsys):
    assert cli.main(["bench-serve", "none", "--url", server.url]) == 1
    assert "answered 404" in capsys.readouterr().err
    assert cli.main(["bench-serve", "Handler", "--url", server.url]) == 1
    assert "does not say what it takes" in capsys.readouterr().err
    assert cli.main(["bench-serve", "double", "--url", "http://127.0.0.1:9"]) == 1
    assert "cannot be reached" in capsys.readouterr().err


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


def test_an_answer_is_read_from_the_pieces_in_which_it_comes():
    class Drive:
        seen = []

        def got(self, connection, number, due, status, body):
            self.seen.append((number, due, status, body))

    text = b"HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nwait!"
    for size in (1, 7, len(text)):
        connection = Connection(Drive())
        connection.sent = (3, 0.5)
        for at in range(0, len(text), size):
            connection.data_received(text[at : at + size])
        assert connection.sent is None and Drive.seen.pop() == (3, 0.5, 429, b"wait!")
    assert not Drive.seen
