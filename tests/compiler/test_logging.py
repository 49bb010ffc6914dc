"""torch._logging: which messages are shown, and what torch.compile tells."""

import json
import logging
import subprocess
import sys

import pytest

import cresset
from cresset import _logging


@pytest.fixture(autouse=True)
def nothing_is_asked_for_afterwards(monkeypatch):
    monkeypatch.delenv("TORCH_LOGS", raising=False)
    yield
    _logging.set_logs()


class Heard(logging.Handler):
    """Keeps the texts that a logger, or one below it, gives."""

    def __init__(self, name):
        super().__init__()
        self.texts, self.logger = [], logging.getLogger(name)

    def emit(self, record):
        self.texts.append(record.getMessage())

    def __enter__(self):
        self.logger.addHandler(self)
        return self

    def __exit__(self, *exception):
        self.logger.removeHandler(self)


def as_it_is(module, inputs):
    return module.forward


def test_a_second_graph_of_a_function_is_a_recompile_with_its_reason():
    @cresset.compile(backend=as_it_is)
    def twice(x):
        return x * 2

    _logging.set_logs(recompiles=True)
    with Heard("torch._dynamo.guards") as heard:
        twice(cresset.ones(2))
        assert heard.texts == []
        twice(cresset.ones(3))
        twice(cresset.ones(3))
    (text,) = heard.texts
    assert "Recompiling function" in text and "(3,)" in text and "(2,)" in text


def test_the_verbose_form_names_every_graph_that_was_made_before():
    twice = cresset.compile(lambda x: x * 2, backend=as_it_is)
    _logging.set_logs(recompiles_verbose=True)
    with Heard("torch._dynamo.guards") as heard:
        for size in (2, 3, 4):
            twice(cresset.ones(size))
    assert [text.count("\n- ") for text in heard.texts] == [1, 2]


def test_graphs_and_their_ends_are_told():
    @cresset.compile(backend=as_it_is)
    def broken(x):
        y = x * 2
        if y.sum() > 0:
            y = y + 1
        return y.sin()

    _logging.set_logs(graph_code=True, graph_sizes=True, graph_breaks=True)
    with Heard("torch._dynamo") as heard:
        broken(cresset.ones(2))
    assert any("def forward" in text for text in heard.texts)
    assert any("0: (2,)" in text for text in heard.texts)
    assert any(text.startswith("Graph break: ") and "test_logging.py" in text for text in heard.texts)


def test_what_a_region_computed_is_told_only_while_it_is_asked_for():
    compiled = cresset.compile(lambda x: (x * 2 + 1).sin())
    x = cresset.ones(100_000)
    with Heard("torch._inductor.scheduler") as heard:
        compiled(x)
        assert heard.texts == []
        _logging.set_logs(fusion=True, schedule=True)
        compiled(x)
        schedule, fusion = heard.texts
        assert "1 groups of 3 pointwise calls" in schedule and "results are never written" in fusion
        _logging.set_logs()
        compiled(x)
        assert len(heard.texts) == 2


def test_a_level_of_a_part_shows_its_kinds_but_those_that_are_off_by_default():
    _logging.set_logs(dynamo=logging.DEBUG)
    shown = _logging.getArtifactLogger("torch._dynamo.here", "graph_code")
    hidden = _logging.getArtifactLogger("torch._dynamo.here", "recompiles_verbose")
    with Heard("torch._dynamo") as heard:
        shown.debug("code")
        hidden.debug("verbose")
    assert heard.texts == ["code"]


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"nonsense": True}, TypeError, "nonsense"),
        ({"graph_code": 10}, ValueError, "Expected bool"),
        ({"dynamo": 15}, ValueError, "Unrecognized log level"),
        ({"modules": {"no.such.module": logging.INFO}}, ValueError, "Unrecognized log or artifact name"),
    ],
)
def test_a_wrong_setting_says_what_is_wrong(settings, error, text):
    with pytest.raises(error, match=text):
        _logging.set_logs(**settings)


def test_a_kind_that_was_not_registered_has_no_logger():
    with pytest.raises(ValueError, match="not registered"):
        _logging.getArtifactLogger("torch.here", "of_this_test")
    from cresset._logging._internal import register_artifact

    register_artifact("of_this_test", "of this test", log_format="%(message)s")
    assert _logging.getArtifactLogger("torch.here", "of_this_test").name == "torch.here.__of_this_test"


def run(code, **environment):
    import os

    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True
    )


def test_torch_logs_shows_on_the_standard_error_behind_a_prefix():
    code = (
        "import cresset\n"
        "f = cresset.compile(lambda x: x * 2, backend=lambda module, inputs: module.forward)\n"
        "f(cresset.ones(2))\n"
    )
    done = run(code, TORCH_LOGS="graph_code")
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stderr.splitlines() if "def forward" in line)
    assert line.startswith("V") and "] [__graph_code] " in line
    assert run(code).stderr == ""


def test_torch_logs_with_a_wrong_name_stops_the_import():
    done = run("import cresset", TORCH_LOGS="nonsense")
    assert done.returncode == 1 and "Invalid log settings" in done.stderr and "graph_breaks" in done.stderr
    assert "graph_breaks" in run("import cresset", TORCH_LOGS="help").stderr


def test_a_trace_file_has_records_with_payloads(tmp_path, monkeypatch):
    called = []
    _logging.trace_structured("step", lambda: called.append(1))
    assert called == []  # no folder, no record
    monkeypatch.setenv("TORCH_TRACE", str(tmp_path))
    _logging.trace_structured("step", lambda: {"number": 3}, payload_fn=lambda: "one\ntwo")
    (file,) = tmp_path.iterdir()
    first, *payload = file.read_text().splitlines()
    assert json.loads(first[first.index("{") :])["step"] == {"number": 3} and "test_logging.py" in first
    assert payload == ["\tone", "\ttwo"]


def test_a_warning_is_said_once(caplog):
    logger = logging.getLogger("of.this.test")
    _logging.warning_once(logger, "only once")
    _logging.warning_once(logger, "only once")
    assert [record.message for record in caplog.records] == ["only once"]
