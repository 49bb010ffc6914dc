"""TorchServe's side: predictions, handlers, the management API, metrics."""

import asyncio

import pytest

from cresset.serve.batches import as_refusal
from cresset.serve.problems import Refused
from cresset.serve.registry import Registry
from cresset.serve.settings import ModelSettings, ServerSettings

from .conftest import running


def test_predictions_of_a_program_take_one_sample(server):
    assert server.client.post("/predictions/double", json=[1, 2, 3]).json() == [2.0, 4.0, 6.0]
    assert server.client.post("/predictions/double/1", json={"input": [1, 2, 3]}).json() == [2.0, 4.0, 6.0]
    assert server.client.post("/predictions/summing", json=[1, 2, 3, 4]).json() == 10.0


def test_a_handler_gets_bytes_json_and_forms(server):
    post = server.client.post
    assert post("/predictions/Handler", content=b"four").json()["letters"] == 4
    assert post("/predictions/Handler", json=["a", "b"]).json() == {"letters": 2, "together": 1, "model": "Handler"}
    assert post("/predictions/Handler", files={"data": b"threethree"}).json()["letters"] == 10


def test_a_handler_with_its_own_handle_sets_status_type_and_headers(server):
    answer = server.client.post("/predictions/Whole", json={"a": 1}, headers={"X-Custom": "here"})
    assert (answer.status_code, answer.headers["content-type"], answer.headers["x-seen"]) == (
        201,
        "text/x-test",
        "here",
    )
    assert answer.text == "{'a': 1}"


def test_a_handler_that_raises_is_500_with_its_sentence_and_goes_on(server):
    answer = server.client.post("/predictions/Whole", json={"fail": True})
    assert answer.status_code == 500
    assert answer.json() == {
        "code": 500,
        "type": "InternalServerException",
        "message": "the handler failed: ValueError: asked to fail",
    }
    assert server.client.post("/predictions/Whole", json={}).status_code == 201


def test_a_handler_may_say_what_json_and_unicode_do_not_have(server):
    for _ in range(2):
        answer = server.client.post("/predictions/Odd", content=b"")
        assert answer.json() == {"1": None, "large": 2**70, "word": "\u00e9"}
        assert answer.headers["x-half"] == "half ?"
    text = server.client.get("/metrics").text
    assert 'cresset_serve_handler_total{model_name="Odd",model_version="1",name="odd"} 2' in text


def test_other_methods_and_a_slash_at_the_end(server):
    assert server.client.post("/predictions/double/", json=[1, 2, 3]).json() == [2.0, 4.0, 6.0]
    assert server.client.post("/predictions/double/1/", json=[1, 2, 3]).json() == [2.0, 4.0, 6.0]
    refused = server.client.delete("/predictions/double")
    assert refused.status_code == 405 and refused.headers["allow"] == "POST, GET, HEAD, PUT"
    refused = server.client.get("/v2/models/double/infer")
    assert refused.status_code == 405 and refused.headers["allow"] == "POST"
    assert refused.json() == {"error": "GET is not a way to ask"}


def test_ping_and_errors_have_torchserves_form(server):
    assert server.client.get("/ping").json() == {"status": "Healthy"}
    missing = server.client.post("/predictions/none", content=b"x")
    assert missing.status_code == 404 and missing.json()["type"] == "ModelNotFoundException"


def test_metrics_count_requests_under_torchserves_names_and_ours(server):
    def count():
        lines = server.client.get("/metrics").text.splitlines()
        return next(
            int(line.split()[-1])
            for line in lines
            if line.startswith('ts_inference_requests_total{model_name="script"')
        )

    before = count()
    server.infer("script", [[1.0]])
    assert count() == before + 1
    server.client.post("/predictions/Handler", content=b"four")
    text = server.client.get("/metrics").text
    assert 'cresset_serve_handler_total{model_name="Handler",model_version="1",name="letters"}' in text
    assert 'cresset_serve_requests_total{model_name="script",model_version="1",status="200"}' in text
    assert 'cresset_serve_request_seconds_bucket{model_name="script",model_version="1",le="+Inf"}' in text


@pytest.fixture(scope="module")
def managed(store):
    with running("--store", store) as server:
        yield server


def test_models_are_loaded_scaled_described_and_unloaded_at_run_time(managed):
    client = managed.client
    assert client.get("/models").json() == {"models": []}
    answer = client.post("/models?url=double.pt2&model_name=d&batch_size=4&max_batch_delay=2&initial_workers=1")
    assert answer.json() == {"status": 'Model "d" Version: 1 registered with 1 initial workers'}
    (about,) = client.get("/models/d").json()
    assert (about["batchSize"], about["maxBatchDelay"], about["modelVersion"]) == (4, 2, "1")
    assert [worker["status"] for worker in about["workers"]] == ["READY"]
    assert managed.infer("d", [[1.0, 2.0, 3.0]]).status_code == 200

    assert client.put("/models/d?min_worker=2&synchronous=true").json() == {
        "status": "Workers scaled to 2 for model: d"
    }
    assert len(managed.workers("d")) == 2
    assert client.put("/models/d?min_worker=1&synchronous=true").status_code == 200
    assert managed.infer("d", [[1.0, 2.0, 3.0]]).status_code == 200

    assert client.delete("/models/d").json() == {"status": 'Model "d" unregistered'}
    assert managed.infer("d", [[1.0, 2.0, 3.0]]).status_code == 404


def test_versions_side_by_side_default_and_split(managed):
    client = managed.client
    for version in ("1", "2"):
        assert client.post(f"/models?url=double.pt2&model_name=ab&version={version}").status_code == 200
    assert client.post("/models?url=double.pt2&model_name=ab&version=2").status_code == 409
    data = [[1.0, 2.0, 3.0]]
    assert managed.infer("ab", data).json()["model_version"] == "1"
    assert managed.infer("ab", data, path="/v2/models/ab/versions/2/infer").json()["model_version"] == "2"

    assert client.put("/models/ab/split", json={"1": 3, "2": 1}).json()["weights"] == {"1": 3, "2": 1}
    seen = [managed.infer("ab", data).json()["model_version"] for _ in range(20)]
    assert (seen.count("1"), seen.count("2")) == (15, 5)
    assert client.put("/models/ab/split", json={"3": 1}).status_code == 404
    assert client.put("/models/ab/split", json={"1": -1}).status_code == 400
    assert client.put("/models/ab/split", json={"1": 0}).status_code == 400
    assert client.put("/models/ab/split", json={}).json()["weights"] == {}

    assert client.put("/models/ab/2/set-default").status_code == 200
    assert managed.infer("ab", data).json()["model_version"] == "2"
    assert client.delete("/models/ab/2").status_code == 403  # the default, while there is another
    assert client.delete("/models/ab/1").status_code == 200
    assert [entry["modelVersion"] for entry in client.get("/models/ab/all").json()] == ["2"]
    assert client.delete("/models/ab").status_code == 200


@pytest.mark.parametrize(
    "query, status, words",
    [
        ("", 400, "url is missing"),
        ("url=none.pt2", 404, "is not a model file in the store"),
        ("url=../double.pt2", 404, "is not a model file in the store"),
        ("url=/etc/passwd", 404, "is not a model file in the store"),
        ("url=http://example.com/double.pt2", 404, "is not a model file in the store"),
        ("url=models.py:Handler", 404, "is not a model file in the store"),
        ("url=double.pt2&model_name=a/b", 400, "letters, digits"),
        ("url=double.pt2&batch_size=x", 400, "batch_size should be a whole number"),
    ],
)
def test_only_data_files_of_the_store_can_be_loaded(managed, query, status, words):
    answer = managed.client.post(f"/models?{query}")
    assert answer.status_code == status and words in answer.json()["message"]


def test_a_version_that_is_being_loaded_is_not_said_to_be_there(store):
    registry = Registry(ServerSettings())
    registry.busy.add(("m", "1"))
    with pytest.raises(Refused, match="version 1 of m is being loaded"):
        asyncio.run(registry.load(ModelSettings("m", str(store / "double.pt2"))))


def test_what_a_script_refuses_is_named_once():
    error = RuntimeError("lines of the script\nRuntimeError: linear: wrong")
    assert as_refusal(error, 1).message == "the model refused the inputs: RuntimeError: linear: wrong"
    assert as_refusal(KeyError("a"), 1).message == "the model refused the inputs: KeyError: 'a'"


def test_a_damaged_file_is_refused_and_the_server_goes_on(managed, store):
    (store / "damaged.pt2").write_bytes((store / "double.pt2").read_bytes()[:200])
    try:
        answer = managed.client.post("/models?url=damaged.pt2")
        assert answer.status_code == 400 and "cannot be loaded" in answer.json()["message"]
        assert "damaged" not in managed.client.get("/models").text
    finally:
        (store / "damaged.pt2").unlink()


def test_the_model_repository_of_the_open_inference_protocol(managed):
    post = managed.client.post
    assert {"name": "script", "version": "1", "state": "UNAVAILABLE", "reason": "unloaded"} in post(
        "/v2/repository/index"
    ).json()
    assert post("/v2/repository/models/script/load").status_code == 200
    assert {"name": "script", "version": "1", "state": "READY", "reason": ""} in post("/v2/repository/index").json()
    assert post("/v2/repository/models/script/unload").status_code == 200
    assert managed.client.get("/v2/models/script/ready").status_code == 404
