"""The Open Inference Protocol: health, metadata, infer, with JSON and with bytes."""

import gzip
import json
import struct

import pytest


def test_health_and_server_metadata(server):
    assert server.client.get("/v2/health/live").status_code == 200
    assert server.client.get("/v2/health/ready").json() == {"ready": True}
    about = server.client.get("/v2").json()
    assert about["name"] == "cresset" and "binary_tensor_data" in about["extensions"]


def test_an_exported_program_says_what_it_takes_and_gives(server):
    assert server.client.get("/v2/models/double").json() == {
        "name": "double",
        "versions": ["1"],
        "platform": "cresset_export",
        "inputs": [{"name": "input", "datatype": "FP32", "shape": [-1, 3]}],
        "outputs": [{"name": "output_0", "datatype": "FP32", "shape": [-1, 3]}],
    }
    assert server.client.get("/v2/models/double/versions/1").json()["name"] == "double"
    assert server.client.get("/v2/models/double/ready").json() == {"name": "double", "ready": True}


def test_a_factory_with_an_example_says_what_it_takes_and_gives(server):
    about = server.client.get("/v2/models/summing").json()
    assert about["inputs"] == [{"name": "input", "datatype": "FP32", "shape": [-1, 4]}]
    assert about["outputs"] == [{"name": "output_0", "datatype": "FP32", "shape": [-1]}]


def test_unknown_models_and_versions_are_404(server):
    for path in ("/v2/models/none", "/v2/models/double/versions/9", "/v2/models/none/ready"):
        answer = server.client.get(path)
        assert answer.status_code == 404 and "there is no model" in answer.text or "no version" in answer.text
    assert server.infer("none", [[1.0]]).status_code == 404


def test_where_there_is_nothing_a_client_gets_json(server):
    for method, path, status in (("GET", "/v2/models/double/stats", 404), ("DELETE", "/v2", 405)):
        answer = server.client.request(method, path)
        words = f"there is nothing at {method} {path}; /docs tells what there is"
        assert answer.status_code == status and answer.json() == {"error": words}


def test_an_input_that_is_missing_is_named(server):
    given = {"name": "a", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}
    answer = server.client.post("/v2/models/pair/infer", json={"inputs": [given]})
    assert answer.status_code == 400 and answer.json() == {"error": "the inputs are a, b, factor, got a"}
    answer = server.client.post("/v2/models/pair/infer", json={"inputs": [{**given, "name": "b"}, given]})
    assert answer.json()["outputs"][0]["data"] == [2.0, 4.0]


@pytest.mark.parametrize("model", ["double", "script"])
def test_infer_with_json(server, model):
    answer = server.infer(model, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], id="seven")
    assert answer.json() == {
        "model_name": model,
        "model_version": "1",
        "id": "seven",
        "outputs": [
            {"name": "output_0", "datatype": "FP32", "shape": [2, 3], "data": [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]}
        ],
    }


def test_infer_with_bytes_both_ways(server):
    raw = struct.pack("<3f", 1.5, -2.0, 0.25)
    head = {
        "inputs": [
            {"name": "input", "shape": [1, 3], "datatype": "FP32", "parameters": {"binary_data_size": len(raw)}}
        ],
        "outputs": [{"name": "output_0", "parameters": {"binary_data": True}}],
    }
    text = json.dumps(head).encode()
    answer = server.client.post(
        "/v2/models/double/infer",
        content=text + raw,
        headers={"Inference-Header-Content-Length": str(len(text)), "Content-Type": "application/octet-stream"},
    )
    length = int(answer.headers["inference-header-content-length"])
    (output,) = json.loads(answer.content[:length])["outputs"]
    assert output["parameters"] == {"binary_data_size": 12} and "data" not in output
    assert struct.unpack("<3f", answer.content[length:]) == (3.0, -4.0, 0.5)


def test_a_compressed_request_is_read(server):
    body = json.dumps({"inputs": [{"name": "input", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}]}).encode()
    answer = server.client.post(
        "/v2/models/double/infer", content=gzip.compress(body), headers={"content-encoding": "gzip"}
    )
    assert answer.json()["outputs"][0]["data"] == [2.0, 4.0, 6.0]


def test_a_small_body_that_unpacks_to_a_large_one_is_413(server):
    bomb = gzip.compress(bytes(50_000_000))
    assert len(bomb) < 100_000
    answer = server.client.post("/v2/models/double/infer", content=bomb, headers={"content-encoding": "gzip"})
    assert answer.status_code == 413 and "unpacks to more than" in answer.text


def test_strings_go_to_a_handler_and_come_back(server):
    body = {"inputs": [{"name": "words", "shape": [2], "datatype": "BYTES", "data": ["ab", "é"]}]}
    (output,) = server.client.post("/v2/models/Texts/infer", json=body).json()["outputs"]
    assert output == {"name": "upper", "datatype": "BYTES", "shape": [2], "data": ["AB", "É"]}


def test_numbers_that_json_does_not_have_become_null(server):
    answer = server.infer("nan", [[1.0, 0.0]])
    assert json.loads(answer.content)["outputs"][0]["data"] == [None, None]


def tensor(**changes):
    entry = {"name": "input", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3], **changes}
    return {key: value for key, value in entry.items() if value is not None}


@pytest.mark.parametrize(
    "body, words",
    [
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[1]", "should be a JSON object"),
        (b"[" * 100_000, "nested too deeply"),
        ({}, "a list of inputs"),
        ({"inputs": []}, "a list of inputs"),
        ({"inputs": [3]}, "object with a name"),
        ({"inputs": [tensor(shape="x")]}, "shape should be a list of sizes"),
        ({"inputs": [tensor(shape=[-1, 3])]}, "shape should be a list of sizes"),
        ({"inputs": [tensor(shape=[2, 3])]}, "shape [2, 3] asks for 6 elements, data has 3"),
        ({"inputs": [tensor(shape=[10**11, 10**11])]}, "data has 3"),
        ({"inputs": [tensor(datatype="FP31")]}, "datatype should be one of"),
        ({"inputs": [tensor(datatype="INT32")]}, "should be FP32, got INT32"),
        ({"inputs": [tensor(datatype="INT32", data=[1.5, 2, 3])]}, "INT32 asks for whole numbers"),
        ({"inputs": [tensor(datatype="BYTES", data=["a", "b", "c"])]}, "takes numbers, not BYTES"),
        ({"inputs": [tensor(data=None)]}, "either data or the parameter binary_data_size"),
        ({"inputs": [tensor(data=["a", "b", "c"])]}, "not a list of FP32"),
        ({"inputs": [tensor(data=[[1, 2], [3]])]}, "not a list of FP32"),
        ({"inputs": [tensor(shape=[3], data=[1, 2, 3])]}, "should have shape [-1, 3] (-1: any size), got [3]"),
        ({"inputs": [tensor(name="other")]}, "the inputs are input, got other"),
        ({"inputs": [tensor(), tensor()]}, "there twice"),
        ({"inputs": [tensor()], "outputs": [{"name": "none"}]}, "there is no output 'none'"),
        ({"inputs": [tensor()], "parameters": 3}, "parameters should be an object"),
        ({"inputs": [tensor()], "id": 3}, "an id that is a string"),
        ({"inputs": [tensor(data=None, parameters={"binary_data_size": 12})]}, "but 0 bytes are left"),
    ],
)
def test_a_wrong_request_is_400_with_a_sentence(server, body, words):
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = server.client.post("/v2/models/double/infer", content=sent)
    assert answer.status_code == 400, answer.text
    assert words in answer.json()["error"]


def test_bytes_that_belong_to_no_input_are_refused(server):
    text = json.dumps({"inputs": [tensor()]}).encode()
    answer = server.client.post(
        "/v2/models/double/infer", content=text + b"left", headers={"Inference-Header-Content-Length": str(len(text))}
    )
    assert answer.status_code == 400 and "4 bytes behind the last input" in answer.text
    for wrong in ("-1", "x", "99999999", "9" * 40):
        answer = server.client.post(
            "/v2/models/double/infer", content=text, headers={"Inference-Header-Content-Length": wrong}
        )
        assert answer.status_code == 400, wrong
