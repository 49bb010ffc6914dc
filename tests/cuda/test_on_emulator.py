"""Runs tests/cuda/device on the emulated GPU, in processes of their own: CUDA is looked for once in a process. Two
files run at a time. So do the tests marked `kernels` of topics whose kernels stand with their launches.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from emulator import build

import cresset

PATIENCE = 600  # seconds for a file, beside others on a slow machine
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOPICS = [path.stem for path in (ROOT / "native" / "cuda").glob("*.cpp") if 'R"cuda(' in path.read_text("utf-8")]
COMMANDS = {path.name: [str(path)] for path in sorted((HERE / "device").glob("test_*.py"))}
COMMANDS |= {
    f"ops/{topic}": [str(ROOT / f"tests/ops/test_{topic}.py"), "--device", "cuda", "-m", "kernels"]
    for topic in sorted(TOPICS)
}

pytestmark = [
    pytest.mark.skipif(cresset.cuda.is_available(), reason="there is a real device: tests/cuda/device runs on it"),
    pytest.mark.timeout(PATIENCE + 60),  # each test is a whole file in a process of its own
]


@pytest.fixture(scope="module")
def runs(request, tmp_path_factory):
    """The runs of the files that were chosen, by name: futures."""
    if problem := build.problem():
        pytest.skip(problem)
    environment = dict(
        os.environ, CRESSET_CUDA_LIBRARIES=str(build.build()), CRESSET_EMULATOR_PROTECT="1", OMP_NUM_THREADS="1"
    )
    environment["CRESSET_CACHE"] = str(tmp_path_factory.mktemp("kernels"))

    def run(file):
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *COMMANDS[file]]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)

    chosen = [
        item.callspec.params["file"]
        for item in request.session.items
        if item.path == Path(__file__) and hasattr(item, "callspec")
    ]
    with ThreadPoolExecutor(2) as pool:
        yield {file: pool.submit(run, file) for file in chosen}
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("file", COMMANDS)
def test_device_tests_pass_on_the_emulator(file, runs):
    done = runs[file].result()
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
