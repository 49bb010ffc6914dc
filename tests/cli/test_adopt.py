"""`cresset adopt`: an environment in which `import torch` finds cresset, under PyTorch's names."""

import configparser
import importlib.util
import os
import subprocess
import textwrap
import venv
import zipfile
from pathlib import Path

import pytest

import cresset
from cresset.cli import main
from cresset.standing_in import adoption, wheel_files

SOURCES = Path(cresset.__file__).parents[1]
CHECKOUT = Path(__file__).parents[2]


class Environment:
    """A fresh environment that finds this cresset, and nothing else of what is installed here."""

    def __init__(self, folder):
        venv.create(folder, with_pip=False)
        self.python = folder / "bin" / "python"
        self.packages = Path(self.run("import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip())
        (self.packages / "cresset.pth").write_text(f"{SOURCES}\n")

    def call(self, *arguments):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return subprocess.run(
            [str(self.python), *arguments],
            capture_output=True,
            text=True,
            env={**kept, "OMP_NUM_THREADS": "1"},
            timeout=100,
        )

    def run(self, program):
        return self.call("-c", textwrap.dedent(program))


@pytest.fixture(scope="module")
def adopted(tmp_path_factory):
    environment = Environment(tmp_path_factory.mktemp("adopted"))
    done = environment.call("-m", "cresset", "adopt")
    assert (
        done.returncode == 0
        and "`import torch` finds cresset now" in done.stdout
        and "pip.conf holds pip to it" in done.stdout
    ), done.stderr
    return environment


def test_it_is_torch_by_every_name(adopted):
    done = adopted.run(
        """
        import sys, pickle, inspect
        import torch
        import torch.nn.functional as F
        from torch.utils.data import DataLoader
        x = torch.ones(2)
        assert torch.__name__ == "torch" and torch.torch is torch and sys.modules["torch"] is torch
        assert repr(type(x)) == "<class 'torch.Tensor'>" and torch.nn.__name__ == "torch.nn" and F.__name__ == "torch.nn.functional"
        assert repr(torch.nn.Linear) == "<class 'torch.nn.modules.linear.Linear'>" and torch.optim.AdamW.__module__ == "torch.optim.adamw"
        assert DataLoader.__module__ == "torch.utils.data.dataloader" and torch.nn.Module.__module__ == "torch.nn.modules.module"
        assert torch.nn.Parameter.__module__ == "torch.nn.parameter" and sys.modules["torch.nn"] is torch.nn
        assert inspect.getfile(torch.nn.Linear).endswith("linear.py") and "class Linear" in inspect.getsource(torch.nn.Linear)
        import torch.nn.modules.linear
        assert torch.nn.modules.linear.Linear is torch.nn.Linear
        assert b"torch.nn.modules.linear" in pickle.dumps(torch.nn.Linear) and pickle.loads(pickle.dumps(torch.nn.Linear)) is torch.nn.Linear
        import cresset
        assert cresset is torch
        import functorch, functorch.experimental
        assert functorch.vmap.__name__ == "vmap" and functorch.experimental.chunk_vmap is torch.func.chunk_vmap
        print("done")
        """  # noqa: E501
    )
    assert done.stdout == "done\n", done.stderr


def test_every_layer_can_be_found_where_it_says_it_is(adopted):
    done = adopted.run(
        """
        import importlib, torch
        spaces = [torch.nn, torch.optim, torch.optim.lr_scheduler, torch.utils.data, torch.distributions, torch.fx, torch.profiler, torch.cuda]
        wrong = []
        for space in spaces:
            for name in dir(space):
                kind = getattr(space, name)
                if isinstance(kind, type) and kind.__module__.partition(".")[0] in ("torch", "cresset"):
                    found = importlib.import_module(kind.__module__)
                    for part in kind.__qualname__.split("."):
                        found = getattr(found, part, None)
                    if found is not kind or kind.__module__.startswith("cresset"):
                        wrong.append((kind.__module__, kind.__qualname__))
        print(wrong)
        """  # noqa: E501
    )
    assert done.stdout == "[]\n", done.stderr


def test_pip_and_metadata_see_the_requirement_met(adopted):
    done = adopted.run(
        """
        import importlib.metadata, importlib.util
        print(importlib.metadata.version("torch"), importlib.util.find_spec("torch").name, importlib.metadata.requires("torch"))
        import torch
        print(torch.__version__, [d.version for d in importlib.metadata.distributions(name="torch")])
        """  # noqa: E501
    )
    assert done.stdout.splitlines() == ["2.13.0+cresset torch ['cresset']", "2.13.0+cresset ['2.13.0+cresset']"], (
        done.stderr
    )


def test_modules_run_by_their_name_and_processes_find_it(adopted, tmp_path):
    done = adopted.call("-m", "torch.utils.collect_env")
    assert done.returncode == 0 and "cresset" in done.stdout
    program = tmp_path / "spawns.py"
    program.write_text(
        textwrap.dedent(
            """
            import torch
            from torch import multiprocessing
            class Mine(torch.nn.Module):
                def forward(self, x): return 2 * x
            def work(rank, module, queue): queue.put((torch.__name__, type(module).__name__, module(torch.ones(1)).item()))
            if __name__ == "__main__":
                queue = multiprocessing.get_context("spawn").SimpleQueue()
                multiprocessing.spawn(work, args=(Mine(), queue))
                print(queue.get())
            """  # noqa: E501
        )
    )
    done = adopted.call(str(program))
    assert done.stdout == "('torch', 'Mine', 2.0)\n", done.stderr


def test_importing_a_submodule_first_and_circular_imports(adopted, tmp_path):
    done = adopted.run(
        "from torch.nn.modules.conv import Conv2d; from torch.nn import functional, Module; import torch; "
        "print(Conv2d is torch.nn.Conv2d)"
    )
    assert done.stdout == "True\n", done.stderr
    done = adopted.run("import cresset.nn; import torch; print(torch.nn is cresset.nn, torch.nn.Linear.__module__)")
    assert done.stdout == "True torch.nn.modules.linear\n", done.stderr


def test_whole_modules_are_saved_under_pytorchs_names_and_load_again(adopted, tmp_path):
    done = adopted.run(
        f"""
        import torch
        from torch import nn
        model = nn.Sequential(nn.TransformerEncoderLayer(4, 2), nn.Conv2d(1, 1, 1), nn.LSTM(2, 2), nn.BatchNorm1d(2), nn.GELU())
        torch.save(model, {str(tmp_path / "model.pt")!r})
        print([type(part).__module__ for part in torch.load({str(tmp_path / "model.pt")!r}, weights_only=False)])
        """  # noqa: E501
    )
    assert done.stdout.strip() == str(
        [f"torch.nn.modules.{place}" for place in ("transformer", "conv", "rnn", "batchnorm", "activation")]
    ), done.stderr
    with zipfile.ZipFile(tmp_path / "model.pt") as archive:
        data = next(archive.read(name) for name in archive.namelist() if name.endswith("data.pkl"))
    assert b"cresset" not in data and b"torch.nn.modules.transformer" in data


def test_layers_are_scripted_under_pytorchs_names(adopted):
    done = adopted.run(
        """
        import torch
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.GELU()).eval()
        print(torch.jit.freeze(torch.jit.script(model))(torch.ones(1, 3, 5, 5)).shape)
        """
    )
    assert done.stdout == "torch.Size([1, 4, 3, 3])\n", done.stderr


def test_a_missing_name_says_that_it_is_not_in_cresset(adopted):
    done = adopted.run("import torch; torch.nn.qqqqqq")
    assert (
        "AttributeError: module 'torch.nn' has no attribute 'qqqqqq': it is not in cresset; docs/compatibility.md"
        in done.stderr
    )


def test_adopting_twice_and_undoing(tmp_path):
    environment = Environment(tmp_path)
    (tmp_path / "bin" / "torchrun").write_text("the command that an installed cresset brings")
    before = sorted(tmp_path.rglob("*"))
    assert environment.call("-m", "cresset", "adopt").returncode == 0
    again = environment.call("-m", "cresset", "adopt")
    assert again.returncode == 1 and "has torch 2.13.0+cresset, which is cresset, already" in again.stderr
    environment.run("import torch")  # may leave a __pycache__
    undone = environment.call("-m", "cresset", "adopt", "--undo")
    assert undone.returncode == 0 and "removed torch 2.13.0+cresset" in undone.stdout
    assert sorted(tmp_path.rglob("*")) == before and "No module named 'torch'" in environment.run("import torch").stderr
    assert "there is no torch in this environment" in environment.call("-m", "cresset", "adopt", "--undo").stderr


def test_pip_is_held_to_it_unless_the_environment_has_settings_of_its_own(tmp_path):
    environment = Environment(tmp_path)
    assert environment.call("-m", "cresset", "adopt").returncode == 0
    settings = configparser.ConfigParser()
    settings.read(tmp_path / "pip.conf")
    assert Path(settings["install"]["constraint"]).read_text() == "torch==2.13.0+cresset\n"
    environment.call("-m", "cresset", "adopt", "--undo")
    (tmp_path / "pip.conf").write_text("[global]\ntimeout = 10\n")
    done = environment.call("-m", "cresset", "adopt")
    assert "pip.conf is yours and stays; add `constraint = " in done.stdout and done.returncode == 0
    environment.call("-m", "cresset", "adopt", "--undo")
    assert (tmp_path / "pip.conf").read_text() == "[global]\ntimeout = 10\n"


def test_pytorch_is_neither_replaced_nor_removed(tmp_path):
    environment = Environment(tmp_path)
    (environment.packages / "torch").mkdir()
    (environment.packages / "torch" / "__init__.py").write_text("theirs = True\n")
    (environment.packages / "torch-2.13.0.dist-info").mkdir()
    (environment.packages / "torch-2.13.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n"
    )
    for arguments, said in (
        ((), "PyTorch 2.13.0 is installed in"),
        (("--undo",), "is PyTorch 2.13.0, not cresset; it stays"),
    ):
        done = environment.call("-m", "cresset", "adopt", *arguments)
        assert done.returncode == 1 and said in done.stderr
    assert environment.run("import torch; print(torch.theirs)").stdout == "True\n"


def test_pytorch_installed_over_it_is_an_error_that_says_so(tmp_path):
    environment = Environment(tmp_path)
    environment.call("-m", "cresset", "adopt")
    (environment.packages / "torch" / "lib").mkdir()
    done = environment.run("import torch")
    assert "files of another torch lie in" in done.stderr and "pip uninstall torch" in done.stderr


def test_without_cresset_the_error_says_what_to_do(tmp_path):
    environment = Environment(tmp_path)
    environment.call("-m", "cresset", "adopt")
    (environment.packages / "cresset.pth").unlink()
    assert "was given over to cresset, which cannot be imported" in environment.run("import torch").stderr


def test_a_folder_that_cannot_be_written_is_left_as_it_was(tmp_path, monkeypatch, capsys):
    (tmp_path / "torch-2.13.0+cresset.dist-info").write_text("a file where the folder must go")
    monkeypatch.setattr(adoption, "site_packages", lambda: str(tmp_path))
    monkeypatch.setattr(adoption, "installed", lambda: None)
    assert main(["adopt"]) == 1
    assert "nothing was changed" in capsys.readouterr().err and [p.name for p in tmp_path.iterdir()] == [
        "torch-2.13.0+cresset.dist-info"
    ]


def test_the_wheel_for_pip_has_the_files_that_adopt_writes(tmp_path):
    spec = importlib.util.spec_from_file_location("backend", CHECKOUT / "packaging" / "torch" / "backend.py")
    backend = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(backend)
    name = backend.build_wheel(str(tmp_path))
    assert name == f"torch-{wheel_files.VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(tmp_path / name) as wheel:
        assert set(wheel.namelist()) == {
            *wheel_files.contents(),
            f"{wheel_files.INFO}/RECORD",
        }
