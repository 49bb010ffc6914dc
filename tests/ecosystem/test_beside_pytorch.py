"""The same training by the same packages on cresset and on PyTorch: the same losses. Run it with `-s` to see
the seconds.

PYTORCH names a Python that has PyTorch; the packages themselves are those of this environment.
"""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import cresset

FOLDER = Path(__file__).parent / "beside"
SOURCES = str(Path(cresset.__file__).parents[1])
PYTORCH = os.environ.get("PYTORCH")
# What PyTorch's environment has itself, and torchaudio: its library is compiled for PyTorch's CUDA build, and
# transformers would import it.
OWN = """torch- torchaudio cresset numpy pip setuptools sympy mpmath _distutils distutils __pycache__""".split()

pytestmark = pytest.mark.skipif(
    PYTORCH is None or "CRESSET_ECOSYSTEM" not in os.environ, reason="PYTORCH names no Python with PyTorch"
)


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """A folder with the packages of this environment, but for those in OWN."""
    folder = tmp_path_factory.mktemp("packages")
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        alone = path.name == "torch" or path.name.startswith(tuple(OWN))
        if not alone and path.suffix != ".pth":
            (folder / path.name).symlink_to(path)
    return folder


def run(python, path, script, *arguments):
    places = os.pathsep.join([str(FOLDER), str(path)])
    environment = {**os.environ, "PYTHONPATH": places, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "2"}
    command = [python, str(FOLDER / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, f"{python}: {done.stderr[-3000:]}"
    return done.stdout


def trained(python, name, path):
    return json.loads(run(python, path, "run.py", name).strip().splitlines()[-1])


@pytest.mark.parametrize("package", ["transformers", "lightning", "torchvision", "timm", "peft"])
def test_the_losses_are_pytorchs(package, packages):
    ours = trained(sys.executable, f"{package}_training", SOURCES)
    theirs = trained(PYTORCH, f"{package}_training", packages)
    ratio = theirs["seconds"] / ours["seconds"]
    print(f"{package}: last loss {ours['losses'][-1]:.6f} and {theirs['losses'][-1]:.6f}, {ratio:.2f} times as fast")
    assert ours["losses"] == pytest.approx(theirs["losses"], rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("writer", ["cresset", "PyTorch"])
def test_files_of_pretrained_models_go_both_ways(writer, packages, tmp_path):
    who = {"cresset": (sys.executable, SOURCES), "PyTorch": (PYTORCH, packages)}
    reader = "PyTorch" if writer == "cresset" else "cresset"
    run(*who[writer], "files.py", "write", str(tmp_path))
    run(*who[reader], "files.py", "read", str(tmp_path))
