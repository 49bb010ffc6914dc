"""A server in a process of its own, as users start it, and a client."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading

import pytest

import cresset
from cresset import nn

pytest.importorskip("starlette", reason="serving needs the extra: pip install 'cresset[serve]'")
pytest.importorskip("uvicorn", reason="serving needs the extra: pip install 'cresset[serve]'")
httpx = pytest.importorskip("httpx", reason="the tests of serving ask with httpx")

ROOT = os.path.dirname(os.path.dirname(cresset.__file__))


class Running:
    """A server that runs: a client, its log, its processes."""

    def __init__(self, arguments, **environment):
        command = [sys.executable, "-m", "cresset", "serve", "--port", "0", *map(str, arguments)]
        path = os.pathsep.join([ROOT, os.environ.get("PYTHONPATH", "")])
        variables = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **environment}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=variables)
        self.lines, self.url = [], None
        self.listening = threading.Event()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        if not self.listening.wait(60):
            self.process.kill()
            raise AssertionError("the server does not start:\n" + "".join(self.lines))
        assert self.url, "".join(self.lines)
        self.client = httpx.Client(base_url=self.url, timeout=30, trust_env=False)

    def read(self):
        with self.process.stderr:
            for line in self.process.stderr:
                self.lines.append(line)
                if '"event": "listening"' in line:
                    self.url = json.loads(line)["url"]
                    self.listening.set()
        self.listening.set()

    def events(self):
        return [json.loads(line) for line in self.lines if line.startswith("{")]

    def infer(self, model, data, datatype="FP32", path=None, **more):
        tensor = cresset.tensor(data)
        body = {"inputs": [{"name": "input", "shape": list(tensor.shape), "datatype": datatype, "data": data}], **more}
        return self.client.post(path or f"/v2/models/{model}/infer", json=body)

    def workers(self, model):
        return self.client.get(f"/models/{model}").json()[0]["workers"]

    def stop(self, number=signal.SIGTERM):
        self.client.close()
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(40)
        finally:
            self.process.kill()
            self.reader.join(10)


@contextlib.contextmanager
def running(*arguments, **environment):
    server = Running(arguments, **environment)
    try:
        yield server
    finally:
        server.stop()


class Double(nn.Module):
    def forward(self, input):
        return input * 2


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """A folder with an exported program and a TorchScript archive: both double what they are given."""
    folder = tmp_path_factory.mktemp("store")
    batch = cresset.export.Dim("batch")
    program = cresset.export.export(Double(), (cresset.ones(2, 3),), dynamic_shapes=({0: batch},))
    cresset.export.save(program, folder / "double.pt2")
    cresset.export.save(cresset.export.export(Double(), (cresset.ones(1, 3),)), folder / "single.pt2")
    cresset.jit.script(Double()).save(str(folder / "script.pt"))
    return folder


CODE = '''
import os, signal, time
import cresset
from cresset import nn


class Sum(nn.Module):
    def forward(self, input):
        return input.sum(1)


def summing():
    return Sum(), (cresset.zeros(1, 4),)


class Pair(nn.Module):
    def forward(self, a, b, factor=1):
        return (a + b) * factor


def pair():
    return Pair(), (cresset.zeros(1, 2), cresset.zeros(1, 2))


class Mean(nn.Module):
    """Gives one number for a whole batch: its rows cannot be told apart."""

    def forward(self, input):
        return input.mean()


def mean():
    return Mean()


class Slow(nn.Module):
    """Waits for as many milliseconds as the first number says."""

    def forward(self, input):
        time.sleep(input.max().item() / 1000)
        return input


def slow():
    return Slow(), (cresset.zeros(1, 1),)


class Deadly(nn.Module):
    """Ends its process when it is given 666; waits a little, so that others join the batch."""

    def forward(self, input):
        time.sleep(0.05)
        if (input == 666).any():
            os.kill(os.getpid(), signal.SIGKILL)
        return input + 1


def deadly():
    return Deadly(), (cresset.zeros(1, 1),)


class Large(nn.Module):
    """Makes a tensor of as many MB as it is told."""

    def forward(self, input):
        return cresset.zeros(int(input.max().item()) * 2**18).sum() + input


def large():
    return Large(), (cresset.zeros(1, 1),)


class Nan(nn.Module):
    def forward(self, input):
        return input / 0


def nan():
    return Nan(), (cresset.zeros(1, 2),)


class Handler:
    """Counts letters, as TorchServe's examples are written."""

    def initialize(self, context):
        self.context = context
        self.name = context.manifest["model"]["modelName"]

    def preprocess(self, data):
        rows = []
        for row in data:
            value = row.get("data") or row.get("body")
            rows.append(value.decode() if isinstance(value, (bytes, bytearray)) else value)
        return rows

    def inference(self, data):
        return [len(value) for value in data]

    def postprocess(self, data):
        self.context.metrics.add_counter("letters", sum(data))
        return [{"letters": count, "together": len(data), "model": self.name} for count in data]


class Whole:
    """A handler with a handle of its own: says back what it got, with a status and a type."""

    def handle(self, data, context):
        if any(row.get("body") == {"fail": True} for row in data):
            raise ValueError("asked to fail")
        for at, row in enumerate(data):
            context.set_response_content_type(at, "text/x-test")
            context.set_response_status(201, idx=at)
            context.set_response_header(at, "x-seen", context.get_request_header(at, "X-Custom") or "none")
        return [str(row["body"]) for row in data]


class Odd:
    """Says and counts what JSON and Unicode do not have."""

    def initialize(self, context):
        self.context = context

    def handle(self, data, context):
        context.metrics.add_counter("odd", float("nan"))
        context.metrics.add_counter("odd", 1)
        for at in range(len(data)):
            context.set_response_header(at, "x-half", "half \\ud800")
        return [{1: float("inf"), "large": 2**70, "word": "\u00e9"} for _ in data]


class Says:
    """Answers with the status and the headers it is told."""

    def handle(self, data, context):
        for at, row in enumerate(data):
            context.set_response_status(row["body"].get("status", 200), idx=at)
            for name, value in row["body"].get("headers", {}).items():
                context.set_response_header(at, name, value)
        return ["said"] * len(data)


class Texts:
    """Strings in, strings out, by the Open Inference Protocol."""

    def handle(self, data, context):
        return [{"upper": [word.decode().upper() for word in row["body"]["words"]]} for row in data]


def broken():
    raise RuntimeError("this factory always fails")
'''


@pytest.fixture(scope="session")
def code(tmp_path_factory):
    """A Python file with factories and handlers."""
    file = tmp_path_factory.mktemp("code") / "models.py"
    file.write_text(CODE)
    return file


@pytest.fixture(scope="session")
def server(store, code):
    """A server with models of every kind, for tests that only ask."""
    models = [
        "double=" + str(store / "double.pt2"),
        "script=" + str(store / "script.pt"),
        f"single={store / 'single.pt2'}",
    ]
    names = ("summing", "pair", "mean", "nan", "Handler", "Whole", "Odd", "Says", "Texts", "large")
    models += [f"{name}={code}:{name}" for name in names]
    with running(*models, "--batch", "8", "--max-request", "1", "--memory", "256") as server:
        yield server
