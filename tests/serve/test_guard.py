"""Who may ask: tokens, foreign names and pages, and the sizes of requests."""

import socket

import pytest

from cresset.serve.settings import ModelSettings, ServerSettings, SettingsError, parse_model, read_config

from .conftest import running


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.com"])
def test_an_address_that_others_can_reach_needs_a_token(host):
    with pytest.raises(SettingsError, match="needs a token"):
        ServerSettings(host=host)
    assert ServerSettings(host=host, token="a long secret").token == "a long secret"


@pytest.mark.parametrize("token", ["short", "with\nnewline", "ünicode-token"])
def test_a_token_that_a_header_cannot_carry_is_refused(token):
    with pytest.raises(SettingsError, match="printable ASCII"):
        ServerSettings(token=token)


def test_with_a_token_only_health_can_be_asked_without_it(store):
    with running(store / "double.pt2", "--host", "0.0.0.0", CRESSET_SERVE_TOKEN="correct horse") as server:
        get = server.client.get
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        server.client.base_url = url
        assert get("/v2/health/live").status_code == 200 and get("/ping").status_code == 200
        for headers in (
            {},
            {"authorization": "Bearer wrong"},
            {"authorization": "Basic !!"},
            {"authorization": "correct horse"},
        ):
            refused = get("/v2/models/double", headers=headers)
            assert refused.status_code == 401 and "Basic" in refused.headers["www-authenticate"]
        assert server.infer("double", [[1.0, 2.0, 3.0]]).status_code == 401
        assert get("/v2/models/double", headers={"authorization": "Bearer correct horse"}).status_code == 200
        assert get("/", auth=("anybody", "correct horse")).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "127.0.0.1.evil.example"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
    ],
    ids=str,
)
def test_pages_of_other_sites_cannot_reach_a_local_server(server, headers):
    assert server.client.get("/models", headers=headers).status_code == 403
    assert server.client.post("/predictions/double", json=[1, 2, 3], headers=headers).status_code == 403


def test_the_servers_own_page_can_ask(server):
    assert (
        server.client.get("/status.json", headers={"sec-fetch-site": "same-origin", "origin": server.url}).status_code
        == 200
    )


def test_a_body_that_is_too_large_is_413_before_it_is_read(server):
    answer = server.client.post("/v2/models/double/infer", content=bytes(2_000_000))
    assert answer.status_code == 413 and "at most 1048576 are read" in answer.json()["error"]


def test_a_body_without_a_length_is_413_once_it_is_too_large(server):
    answer = server.client.post("/v2/models/double/infer", content=(bytes(100_000) for _ in range(20)))
    assert answer.status_code == 413 and "more than 1048576 bytes" in answer.json()["error"]


def test_a_taken_port_is_said_in_one_line(store, capsys):
    from cresset import cli

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert cli.main(["serve", str(store / "double.pt2"), "--port", str(taken.getsockname()[1])]) == 1
    assert "cannot listen on 127.0.0.1" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, words",
    [
        ([], "no model is given"),
        (["none.pt2"], "none cannot be loaded: there is no file 'none.pt2'"),
        (["none.py:Name"], "Name cannot be loaded: there is no file 'none.py'"),
        (["a b=x.pt2"], "letters, digits"),
        (["a=x.pt2", "a=y.pt2"], "version 1 of a is given twice"),
        (["x.pt2", "--host", "0.0.0.0"], "needs a token"),
        ([__file__], f"is Python code; name its class or function, as in {__file__}:NAME"),
        (["x.pt2", "--threads", "100000"], "threads of x should be a whole number from 0 to 1000, got 100000"),
        (["x.pt2", "--store", "not a folder"], "is not a folder"),
    ],
)
def test_a_wrong_setting_is_said_in_one_line(arguments, words, capfd, monkeypatch):
    from cresset import cli

    monkeypatch.delenv("CRESSET_SERVE_TOKEN", raising=False)
    assert cli.main(["serve", *arguments, "--port", "0"]) == 1
    shown = capfd.readouterr().err.strip().splitlines()
    (line,) = shown
    assert words in line and line.startswith("cresset: ")


def test_a_file_that_is_no_archive_is_not_called_damaged(tmp_path, capfd):
    from cresset import cli

    (tmp_path / "m.onnx").write_bytes(b"\x08\x07\x12\x03abc")
    assert cli.main(["serve", str(tmp_path / "m.onnx"), "--port", "0"]) == 1
    assert "is neither a program from torch.export.save nor a TorchScript archive" in capfd.readouterr().err


def test_a_factory_that_fails_is_said_with_its_reason(code, capfd):
    from cresset import cli

    assert cli.main(["serve", f"{code}:broken", "--port", "0"]) == 1
    assert "broken cannot be loaded: RuntimeError: this factory always fails" in capfd.readouterr().err


def test_a_model_is_named_by_its_file_or_its_class():
    assert parse_model("models/digits.pt2").name == "digits"
    assert parse_model("models.py:Handler").name == "Handler"
    named = parse_model("d@7=models/x.pt2", {"batch": 3})
    assert (named.name, named.version, named.source, named.batch) == ("d", "7", "models/x.pt2", 3)


def test_a_configuration_names_what_it_does_not_know(tmp_path):
    file = tmp_path / "serve.toml"
    file.write_text('[server]\nport = 1\n[[model]]\nname = "a"\nsource = "a.pt2"\nbatch = 4\n[split.a]\n1 = 1\n')
    assert read_config(file) == ({"port": 1}, [{"name": "a", "source": "a.pt2", "batch": 4}], {"a": {"1": 1}})
    for text, words in (
        ("[server]\nprot = 1", "unknown settings ['prot']"),
        ("[[model]]\nname = 'a'", "needs name and source"),
        ("[other]", "may have"),
        ("[", "is not TOML"),
    ):
        file.write_text(text)
        with pytest.raises(SettingsError) as error:
            read_config(file)
        assert words in str(error.value)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"batch": 0}, "batch of m should be a whole number from 1 to 1000000, got 0"),
        ({"delay": -1}, "delay of m should be at least 0, got -1"),
        ({"inputs": [{"name": "x"}]}, "should have name, datatype and shape"),
        ({"inputs": [{"name": "x", "datatype": "FP32", "shape": [-2]}]}, "should have name, datatype and shape"),
        ({"name": "a/b"}, "letters, digits"),
    ],
)
def test_a_models_setting_that_cannot_be_is_refused(change, words):
    with pytest.raises(SettingsError) as error:
        ModelSettings(**{"name": "m", "source": "m.pt2", **change})
    assert words in str(error.value)


def test_an_archive_that_does_not_say_what_it_takes_is_told_by_the_configuration(store, tmp_path):
    file = tmp_path / "serve.toml"
    file.write_text(
        f"""
        [[model]]
        name = "told"
        source = "{store / "script.pt"}"
        inputs = [{{name = "input", datatype = "FP32", shape = [-1, 3]}}]
        [[model]]
        name = "told"
        version = "2"
        source = "{store / "double.pt2"}"
        [split.told]
        1 = 1
        2 = 1
        """
    )
    with running("--config", file) as server:
        assert server.client.post("/predictions/told/1", json=[1, 2, 3]).json() == [2.0, 4.0, 6.0]
        answer = server.infer("told", [[1.0]], path="/v2/models/told/versions/1/infer")
        assert answer.status_code == 400 and "should have shape [-1, 3]" in answer.json()["error"]
        seen = [server.infer("told", [[1.0, 2.0, 3.0]]).json()["model_version"] for _ in range(4)]
        assert sorted(seen) == ["1", "1", "2", "2"]


@pytest.mark.parametrize("start", [b"", b"GET / HT", b"GET /ping HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HT"])
def test_a_connection_whose_request_does_not_arrive_is_closed(start, impatient):
    with socket.create_connection(("127.0.0.1", int(impatient.url.rpartition(":")[2])), timeout=20) as line:
        line.sendall(start)
        answer = b""
        while part := line.recv(4096):
            answer += part
    assert answer.count(b"Healthy") == start.count(b"/ping")
    assert impatient.client.post("/predictions/double", json=[1, 2, 3]).json() == [2.0, 4.0, 6.0]


@pytest.fixture(scope="module")
def impatient(store, tmp_path_factory):
    file = tmp_path_factory.mktemp("config") / "serve.toml"
    file.write_text("[server]\nhead_timeout = 0.5\n")
    with running(store / "double.pt2", "--config", file) as server:
        yield server
