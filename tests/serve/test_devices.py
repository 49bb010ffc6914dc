"""Workers that compute on GPUs: emulated ones, where there is none."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import cresset
from cresset import nn

from .conftest import running

sys.path.insert(0, str(Path(__file__).parents[1] / "cuda"))
from emulator import build  # noqa: E402

CODE = """
import cresset
from cresset import nn


def weighted():
    cresset.manual_seed(0)
    return nn.Linear(4, 2), (cresset.zeros(1, 4),)


class Large(nn.Module):
    def forward(self, input):
        return cresset.zeros(int(input.max().item()) * 2**18, device=input.device).sum() + input


def large():
    return Large(), (cresset.zeros(1, 1),)


class Places:
    def initialize(self, context):
        self.gpu = context.system_properties["gpu_id"]
        self.device = cresset.device("cpu" if self.gpu is None else f"cuda:{self.gpu}")

    def handle(self, data, context):
        return [{"gpu": self.gpu, "device": str(cresset.ones(1, device=self.device).device)} for _ in data]
"""


@pytest.fixture(scope="module")
def gpus(tmp_path_factory):
    """The environment of a server with two GPUs, and a folder with models."""
    if build.problem():
        pytest.skip(build.problem())
    folder = tmp_path_factory.mktemp("models")
    (folder / "models.py").write_text(CODE)
    environment = {"CRESSET_CUDA_LIBRARIES": str(build.build()), "CRESSET_EMULATOR_DEVICES": "2"}
    return folder, environment


class Offset(nn.Module):
    """Makes a tensor of its own, on the CPU as far as the program says."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(self, input):
        return self.linear(input) + cresset.ones(2)


def test_programs_of_every_kind_compute_on_the_gpu_and_answer_as_on_the_cpu(gpus):
    folder, environment = gpus
    cresset.manual_seed(0)
    model, rows = Offset(), [[1.0, 2.0, 3.0, 4.0], [0.0, -1.0, 0.5, 2.0]]
    batch = cresset.export.Dim("batch")
    program = cresset.export.export(model, (cresset.zeros(2, 4),), dynamic_shapes=({0: batch},))
    cresset.export.save(program, folder / "exported.pt2")
    cresset.jit.script(nn.Sequential(model.linear)).save(str(folder / "script.pt"))
    sources = [folder / "exported.pt2", folder / "script.pt", f"weighted={folder}/models.py:weighted"]
    with running(*sources, "--device", "cuda:1", "--batch", "2", **environment) as server:
        expected = model(cresset.tensor(rows)).flatten().tolist()
        answer = server.infer("exported", rows).json()
        assert answer.get("outputs"), answer
        assert answer["outputs"][0]["data"] == pytest.approx(expected, abs=1e-6)
        linear = model.linear(cresset.tensor(rows)).flatten().tolist()
        assert server.infer("script", rows).json()["outputs"][0]["data"] == pytest.approx(linear, abs=1e-6)
        cresset.manual_seed(0)
        linear = nn.Linear(4, 2)(cresset.tensor(rows)).flatten().tolist()
        assert server.infer("weighted", rows).json()["outputs"][0]["data"] == pytest.approx(linear, abs=1e-6)
        assert [worker["gpu"] for worker in server.workers("exported")] == [True]


def test_models_of_the_store_are_computed_where_the_server_computes(gpus, store):
    folder, environment = gpus
    with running("--store", store, "--device", "cuda", **environment) as server:
        assert server.client.post("/models?url=double.pt2").status_code == 200
        assert [worker["device"] for worker in server.workers("double")] == ["cuda:0"]
        assert server.infer("double", [[1.0, 2.0, 3.0]]).json()["outputs"][0]["data"] == [2.0, 4.0, 6.0]


def test_the_workers_of_a_model_are_divided_among_the_gpus_and_a_new_one_takes_the_place_of_the_dead(gpus):
    folder, environment = gpus
    with running(f"places={folder}/models.py:Places", "--device", "cuda", "--workers", "2", **environment) as server:
        first, second = server.workers("places")
        assert [first["device"], second["device"]] == ["cuda:0", "cuda:1"]
        answer = server.client.post("/predictions/places", content=b"x").json()
        assert answer["device"] == f"cuda:{answer['gpu']}"
        os.kill(first["pid"], signal.SIGKILL)
        wait_until(lambda: [worker["device"] for worker in server.workers("places")] == ["cuda:1", "cuda:0"])


def test_a_request_that_needs_more_memory_of_the_gpu_than_it_may_take_is_507(gpus):
    folder, environment = gpus
    with running(f"large={folder}/models.py:large", "--device", "cuda", "--memory", "100", **environment) as server:
        assert server.infer("large", [[1.0]]).json()["outputs"][0]["data"] == [1.0]
        refused = server.infer("large", [[200.0]])
        assert refused.status_code == 507 and "more memory than the 100 MB" in refused.json()["error"]
        assert server.infer("large", [[1.0]]).status_code == 200


def test_a_gpu_that_is_not_there_is_told_when_the_server_is_started(gpus):
    folder, environment = gpus
    for device, words in (("cuda:7", "there are 2 GPUs, cuda:0 to cuda:1"), ("gpu", "should be cpu, cuda or cuda:1")):
        command = [sys.executable, "-m", "cresset", "serve", "--port", "0", f"{folder}/models.py:large"]
        command += ["--device", device]
        done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60)
        assert done.returncode != 0 and words in done.stderr and "Traceback" not in done.stderr


def wait_until(happened):
    end = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.05)
