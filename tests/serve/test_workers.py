"""Batches, workers that die or hang, bounds of queue, time and memory, and the end of the server."""

import concurrent.futures
import contextlib
import json
import os
import signal
import threading
import time

import httpx
import pytest

from cresset.serve.drive import Drive

from .conftest import running

SIZES = 'cresset_serve_batch_size_count{model_name="deadly"'


def ask_together(server, model, values, path=None):
    """The answers to requests that are sent at the same time."""
    with concurrent.futures.ThreadPoolExecutor(len(values)) as pool:
        return list(pool.map(lambda value: server.infer(model, [[float(value)]], path=path), values))


@pytest.fixture(scope="module")
def working(code):
    models = [f"{name}={code}:{name}" for name in ("slow", "deadly", "Handler")]
    with running(*models, "--batch", "4", "--delay", "300", "--queue", "6", "--timeout", "30") as server:
        yield server


def test_requests_that_arrive_while_the_worker_computes_are_computed_together(working):
    answers = ask_together(working, "deadly", [1, 2, 3, 4, 5])
    assert [answer.json()["outputs"][0]["data"] for answer in answers] == [[2.0], [3.0], [4.0], [5.0], [6.0]]
    (batches,) = [line for line in working.client.get("/metrics").text.splitlines() if SIZES in line]
    assert int(batches.split()[-1]) < 5


@pytest.mark.alone
def test_a_request_that_nobody_joins_does_not_wait_for_the_delay(working):
    times = []
    for _ in range(5):
        start = time.perf_counter()
        assert working.client.post("/predictions/Handler", content=b"a").json()["together"] == 1
        times.append(time.perf_counter() - start)
    assert min(times) < 0.25


def test_a_worker_that_is_killed_under_load_loses_no_request(working):
    (worker,) = working.workers("slow")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask_together, working, "slow", [900, 901, 902, 903])
        time.sleep(0.6)
        os.kill(worker["pid"], signal.SIGKILL)
        answers = asked.result()
    assert [answer.status_code for answer in answers] == [200] * 4
    assert [answer.json()["outputs"][0]["data"] for answer in answers] == [[900.0], [901.0], [902.0], [903.0]]
    (new,) = working.workers("slow")
    assert new["pid"] != worker["pid"]
    text = working.client.get("/metrics").text
    assert 'cresset_serve_worker_restarts_total{model_name="slow",model_version="1"} 1' in text


def test_a_request_that_kills_workers_is_503_and_those_beside_it_are_answered(working):
    answers = ask_together(working, "deadly", [1, 666, 2, 3])
    assert [answer.status_code for answer in answers] == [200, 503, 200, 200]
    assert answers[1].headers["retry-after"] == "1" and "the worker ended" in answers[1].json()["error"]
    assert [answers[at].json()["outputs"][0]["data"] for at in (0, 2, 3)] == [[2.0], [3.0], [4.0]]


def test_more_requests_than_may_wait_are_429_with_retry_after(working):
    answers = ask_together(working, "slow", [300] * 20)
    statuses = [answer.status_code for answer in answers]
    assert set(statuses) == {200, 429} and 4 <= statuses.count(200) <= 16
    refused = answers[statuses.index(429)]
    assert int(refused.headers["retry-after"]) >= 1 and "requests wait for slow already" in refused.json()["error"]


def test_a_model_that_does_not_answer_in_time_is_504_and_its_worker_replaced(code):
    with running(f"slow={code}:slow", "--timeout", "1") as server:
        (before,) = server.workers("slow")
        answer = server.infer("slow", [[20_000.0]])
        assert answer.status_code == 504 and "did not answer within 1 s" in answer.json()["error"]
        end = time.monotonic() + 30
        while server.infer("slow", [[1.0]]).status_code != 200:
            assert time.monotonic() < end
        (after,) = server.workers("slow")
        assert after["pid"] != before["pid"]


def test_a_request_that_needs_too_much_memory_is_507_and_the_worker_lives(server):
    (before,) = server.workers("large")
    answer = server.infer("large", [[4000.0]])
    assert answer.status_code == 507 and "more memory than the 256 MB" in answer.json()["error"]
    assert server.infer("large", [[1.0]]).json()["outputs"][0]["data"] == [1.0]
    assert server.workers("large")[0]["pid"] == before["pid"]


COUNTING = """
import cresset


class Counting:
    def handle(self, data, context):
        return [{"threads": cresset.get_num_threads()} for _ in data]
"""


def test_the_threads_of_a_worker_become_fewer_when_there_are_more_workers(tmp_path):
    (tmp_path / "counting.py").write_text(COUNTING)
    with running(f"counting={tmp_path}/counting.py:Counting", OMP_NUM_THREADS="4") as server:
        assert server.client.post("/predictions/counting", content=b"").json() == {"threads": 4}
        assert server.client.put("/models/counting?min_worker=2&synchronous=true").status_code == 200
        for _ in range(4):
            assert server.client.post("/predictions/counting", content=b"").json() == {"threads": 2}


def test_a_model_whose_rows_cannot_be_told_apart_is_run_for_each_request(server):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda value: server.infer("mean", [[float(value)]]).json(), range(8)))
    assert [answer["outputs"][0]["data"] for answer in answers] == [[float(value)] for value in range(8)]


def test_a_program_exported_for_one_sample_is_not_batched(server):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda value: server.infer("single", [[float(value)] * 3]), range(8)))
    assert [answer.json()["outputs"][0]["data"] for answer in answers] == [[2.0 * v] * 3 for v in range(8)]
    assert server.client.get("/models/single").json()[0]["batchSize"] == 1


def test_the_server_answers_what_it_has_taken_and_ends_its_workers(code):
    with running(f"slow={code}:slow") as server:
        (worker,) = server.workers("slow")
        found = []
        thread = threading.Thread(target=lambda: found.append(server.infer("slow", [[800.0]])))
        thread.start()
        time.sleep(0.4)
        server.process.send_signal(signal.SIGTERM)
        thread.join()
        assert found[0].status_code == 200
        assert server.process.wait(20) == 0
        with pytest.raises(ProcessLookupError):
            os.kill(worker["pid"], 0)
        with pytest.raises(httpx.ConnectError):
            server.client.get("/v2/health/live")
    assert [event["event"] for event in server.events()][-2:] == ["stopping", "stopped"]


def test_a_server_that_is_told_to_stop_under_load_answers_what_is_on_its_way(store):
    with running(store / "double.pt2", "--batch", "4") as server:
        address = server.client.base_url.host, server.client.base_url.port
        body = json.dumps({"inputs": [{"name": "input", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}]})
        text = f"POST /v2/models/double/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        expected = server.client.post("/v2/models/double/infer", content=body).content
        with contextlib.closing(Drive(address, [text.encode()], [expected], 8)) as drive:
            stopping = threading.Thread(target=stop_after, args=(server.process, lambda: len(drive.latencies) > 50))
            stopping.start()
            drive.run(3)
            stopping.join()
        assert server.process.wait(20) == 0
    assert drive.lost == drive.wrong == 0 and set(drive.statuses) == {200}


def stop_after(process, happened):
    """Tell a process to stop once something has happened; not at a time, since the load may begin late."""
    end = time.monotonic() + 60
    while not happened() and time.monotonic() < end:
        time.sleep(0.01)
    assert happened()
    process.send_signal(signal.SIGTERM)


def test_workers_end_when_the_front_is_killed(code):
    with running(f"slow={code}:slow") as server:
        (worker,) = server.workers("slow")
        server.process.kill()
        server.process.wait(10)
        end = time.monotonic() + 20
        while is_running(worker["pid"]):
            assert time.monotonic() < end
            time.sleep(0.05)


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
