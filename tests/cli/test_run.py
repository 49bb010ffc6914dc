"""`cresset run script.py`: programs written for PyTorch find cresset wherever they look for torch."""

import os
import subprocess
import sys
import textwrap

import pytest

import cresset

ROOT = os.path.dirname(os.path.dirname(cresset.__file__))


def environment():
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([ROOT, os.environ.get("PYTHONPATH", "")]),
        "OMP_NUM_THREADS": "1",
    }


def run(*arguments, cwd=None):
    command = [sys.executable, "-m", "cresset", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment(), timeout=100)


@pytest.fixture
def program(tmp_path):
    """Runs a program, with these arguments, in `python -m cresset`."""

    def go(text, *arguments):
        (tmp_path / "program.py").write_text(textwrap.dedent(text))
        return run("program.py", *arguments, cwd=tmp_path)

    return go


def test_a_program_with_its_arguments(program):
    done = program(
        """
        import sys
        import torch
        import torch.nn.functional as F
        from torch import nn
        from torch.utils.data import DataLoader
        print(torch.__name__, sys.argv, __name__, F.relu(torch.tensor([-1.0, 2.0])), nn.Linear is torch.nn.Linear)
        """,
        "a", "--epochs", "3",
    )  # fmt: skip
    assert done.stdout == "torch ['program.py', 'a', '--epochs', '3'] __main__ tensor([0., 2.]) True\n", done.stderr


def test_what_asks_for_torch_gets_an_answer(program):
    done = program(
        """
        import importlib.metadata, importlib.util
        spec = importlib.util.find_spec("torch")
        print(spec.origin.endswith("__init__.py"), importlib.metadata.version("torch"), importlib.util.find_spec("torch.nothing"))
        import torch
        print(torch.__version__ >= (2, 0), importlib.metadata.metadata("torch")["Name"])
        try:
            import torch.nothing
        except ModuleNotFoundError as error:
            print(error)
        """  # noqa: E501
    )
    assert done.stdout.splitlines() == ["True 2.13.0+cresset None", "True torch", "No module named 'torch.nothing'"], (
        done.stderr
    )


def test_safetensors_torch_is_cressets(program):
    done = program(
        """
        import torch
        from safetensors import safe_open
        from safetensors.torch import load_file, save_file
        save_file({"a": torch.ones(2)}, "a.safetensors")
        with safe_open("a.safetensors", framework="pt") as file:
            print(load_file("a.safetensors"), file.get_tensor("a").sum(), type(file).__module__)
        """
    )
    assert done.stdout == "{'a': tensor([1., 1.])} tensor(2.) torch.serialization.safetensors\n", done.stderr


def test_processes_that_the_program_starts_find_cresset_too(program):
    done = program(
        """
        import multiprocessing, subprocess, sys
        import torch
        def name(queue):
            import torch
            queue.put(torch.__name__)
        if __name__ == "__main__":
            context = multiprocessing.get_context("spawn")
            queue = context.Queue()
            process = context.Process(target=name, args=(queue,))
            process.start()
            print(queue.get(timeout=60), flush=True)
            process.join()
            subprocess.run([sys.executable, "-c", "import torch.nn as nn; print(nn.__name__)"], check=True)
        """
    )
    assert done.stdout.split() == ["torch", "torch.nn"], done.stderr


def test_an_error_shows_the_programs_own_lines_only(program):
    done = program("import torch\ntorch.ones(2) + torch.ones(3)\n")
    assert (
        done.returncode == 1 and "program.py" in done.stderr and "line 2" in done.stderr and "runpy" not in done.stderr
    )


@pytest.mark.parametrize(
    "text, status", [("import sys; sys.exit(5)", 5), ("raise SystemExit", 0), ("raise KeyboardInterrupt", 130)]
)
def test_the_programs_exit_status_is_kept(program, text, status):
    assert program(text).returncode == status


def test_a_module_by_its_name(tmp_path):
    (tmp_path / "lesson.py").write_text("import sys, torch; print(torch.__name__, sys.argv[1:])")
    assert run("-m", "lesson", "x", cwd=tmp_path).stdout == "torch ['x']\n"
    assert "No module named" in run("-m", "nothing", cwd=tmp_path).stderr


def test_torchvision_is_cressets(program):
    pytest.importorskip("cresset.vision")
    done = program(
        "import torchvision; from torchvision import transforms; print(torchvision.__name__, transforms.__name__)"
    )
    assert done.stdout.split() == ["cresset.vision", "cresset.vision.transforms"], done.stderr
