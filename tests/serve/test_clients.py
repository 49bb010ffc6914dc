"""Clients that others wrote: NVIDIA's for the Open Inference Protocol, and `requests` as TorchServe's users call it."""

import importlib.util

import pytest

from .conftest import running

np = pytest.importorskip("numpy")


@pytest.fixture(scope="module")
def client(store, code):
    import tritonclient.http

    models = [f"double={store / 'double.pt2'}", f"script={store / 'script.pt'}", f"texts={code}:Texts"]
    with running(*models, "--batch", "8", "--store", store) as server:
        client = tritonclient.http.InferenceServerClient(server.url.removeprefix("http://"), concurrency=4)
        yield client
        client.close()


@pytest.mark.skipif(
    importlib.util.find_spec("tritonclient") is None, reason="needs tritonclient[http], which is not installed"
)
class TestTritonClient:
    def test_health_and_metadata(self, client):
        assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("double", "1")
        assert not client.is_model_ready("none")
        assert client.get_server_metadata()["name"] == "cresset"
        about = client.get_model_metadata("double")
        assert about["inputs"] == [{"name": "input", "datatype": "FP32", "shape": [-1, 3]}]

    @pytest.mark.parametrize("binary_in", [True, False])
    @pytest.mark.parametrize("binary_out", [True, False])
    @pytest.mark.parametrize("compression", [None, "gzip", "deflate"])
    def test_infer(self, client, binary_in, binary_out, compression):
        import tritonclient.http as http

        values = np.arange(6, dtype=np.float32).reshape(2, 3)
        given = http.InferInput("input", [2, 3], "FP32")
        given.set_data_from_numpy(values, binary_data=binary_in)
        wanted = [http.InferRequestedOutput("output_0", binary_data=binary_out)]
        answer = client.infer(
            "double", [given], outputs=wanted, request_id="r1", request_compression_algorithm=compression
        )
        assert np.array_equal(answer.as_numpy("output_0"), 2 * values)
        assert answer.get_response()["id"] == "r1" and answer.get_response()["model_version"] == "1"

    @pytest.mark.parametrize(
        "dtype", "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64".split()
    )
    def test_every_datatype_goes_and_comes(self, client, dtype):
        import tritonclient.http as http
        from tritonclient.utils import np_to_triton_dtype

        values = np.array([[0, 1, 1]]).astype(dtype)
        given = http.InferInput("input", [1, 3], np_to_triton_dtype(values.dtype))
        given.set_data_from_numpy(values)
        answer = client.infer("script", [given], outputs=[http.InferRequestedOutput("output_0")]).as_numpy("output_0")
        doubled = values.astype("int64") * 2 if dtype == "bool" else values * 2
        assert answer.dtype == doubled.dtype and np.array_equal(answer, doubled)

    def test_strings(self, client):
        import tritonclient.http as http

        given = http.InferInput("words", [2], "BYTES")
        given.set_data_from_numpy(np.array([b"ab", "é".encode()], dtype=object))
        answer = client.infer("texts", [given])
        assert answer.as_numpy("upper").tolist() == [b"AB", "É".encode()]

    def test_many_at_once(self, client):
        import tritonclient.http as http

        asked = []
        for number in range(40):
            given = http.InferInput("input", [1, 3], "FP32")
            given.set_data_from_numpy(np.full((1, 3), number, dtype=np.float32))
            asked.append(client.async_infer("double", [given]))
        found = [request.get_result().as_numpy("output_0")[0, 0] for request in asked]
        assert found == [2 * number for number in range(40)]

    def test_errors_are_the_clients_exception_with_our_sentence(self, client):
        import tritonclient.http as http
        from tritonclient.utils import InferenceServerException

        given = http.InferInput("input", [1, 2], "FP32")
        given.set_data_from_numpy(np.zeros((1, 2), dtype=np.float32))
        with pytest.raises(InferenceServerException, match=r"should have shape \[-1, 3\]"):
            client.infer("double", [given])
        with pytest.raises(InferenceServerException, match="there is no model"):
            client.infer("none", [given])

    def test_the_model_repository(self, client):
        index = {entry["name"]: entry["state"] for entry in client.get_model_repository_index()}
        assert index["double"] == "READY" and index["single"] == "UNAVAILABLE"
        client.load_model("single")
        assert client.is_model_ready("single")
        client.unload_model("single")
        assert not client.is_model_ready("single")


@pytest.mark.skipif(importlib.util.find_spec("requests") is None, reason="needs requests, which is not installed")
def test_requests_as_torchserves_users_call_it(store, code):
    import requests

    with running("--store", store, f"letters={code}:Handler") as server, requests.Session() as session:
        url = server.url
        assert session.get(f"{url}/ping").json() == {"status": "Healthy"}
        assert session.post(f"{url}/predictions/letters", data=b"four").json()["letters"] == 4
        assert session.post(f"{url}/predictions/letters", files={"data": b"abc"}).json()["letters"] == 3
        parameters = {
            "url": "double.pt2",
            "model_name": "double",
            "initial_workers": 1,
            "synchronous": "true",
            "batch_size": 4,
        }
        assert "registered" in session.post(f"{url}/models", params=parameters).json()["status"]
        assert {m["modelName"] for m in session.get(f"{url}/models").json()["models"]} == {"letters", "double"}
        assert session.post(f"{url}/predictions/double/1", json=[1, 2, 3]).json() == [2.0, 4.0, 6.0]
        scaled = session.put(f"{url}/models/double", params={"min_worker": 2, "synchronous": "true"})
        assert scaled.status_code == 200 and len(session.get(f"{url}/models/double").json()[0]["workers"]) == 2
        assert session.put(f"{url}/models/double/1/set-default").status_code == 200
        assert "unregistered" in session.delete(f"{url}/models/double").json()["status"]
        assert 'ts_inference_requests_total{model_name="letters"' in session.get(f"{url}/metrics").text
