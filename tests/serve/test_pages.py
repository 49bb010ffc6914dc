"""What a browser sees: the status page, the API's page and its document."""

import re


def test_the_status_page_is_whole_and_needs_nothing_from_elsewhere(server):
    page = server.client.get("/")
    assert page.status_code == 200 and "text/html" in page.headers["content-type"]
    assert "script-src 'self'" in page.headers["content-security-policy"]
    script = server.client.get("/status.js").text
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page.text + script)
    assert "innerHTML" not in script


def test_the_status_has_the_latencies_of_each_model(server):
    server.infer("double", [[1.0, 2.0, 3.0]])
    status = server.client.get("/status.json").json()
    model = next(model for model in status["models"] if model["name"] == "double")
    assert sum(model["latency"]) == model["requests"] > 0
    assert len(model["latency"]) == len(status["bounds"]) + 1
    assert model["percentiles"]["50"] in status["bounds"] and model["workers"] == [1, 1]


def test_every_path_of_the_document_is_served(server):
    document = server.client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.")
    for path, operations in document["paths"].items():
        where = path.replace("{name}", "no-such-model").replace("{version}", "9")
        for method in operations:
            answer = server.client.request(method, where, json={} if method in ("post", "put") else None)
            assert answer.status_code != 405 and "there is nothing at" not in answer.text, (method, path, answer.text)


def test_the_api_page_shows_every_path(server):
    page = re.sub(r"<[^>]+>", "", server.client.get("/docs").text)
    assert all(path in page for path in server.client.get("/openapi.json").json()["paths"])
