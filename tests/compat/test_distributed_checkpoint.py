"""Checkpoints of torch.distributed.checkpoint, both ways."""

import importlib
import warnings

import pytest

import cresset

torch = pytest.importorskip("torch")


def state(lib):
    return {
        "model": {"weight": lib.arange(6.0).view(2, 3), "half": lib.ones(4, dtype=lib.bfloat16)},
        "step": 3,
        "list": [{"lr": 0.1}, lib.arange(3)],
        "plain": [1, 2],
    }


def empty(lib):
    return {
        "model": {"weight": lib.zeros(2, 3), "half": lib.zeros(4, dtype=lib.bfloat16)},
        "step": 0,
        "list": [{"lr": 0.0}, lib.zeros(3, dtype=lib.int64)],
        "plain": [],
    }


def plain(value):
    if hasattr(value, "tolist"):
        return value.float().tolist()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list) else value


def check(save, load, where):
    writer, reader = (importlib.import_module(f"{lib.__name__}.distributed.checkpoint") for lib in (save, load))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's, about one process
        writer.save(state(save), checkpoint_id=where)
        loaded = empty(load)
        reader.load(loaded, checkpoint_id=where)
    assert plain(loaded) == plain(state(load))


def test_what_pytorch_saves_loads_here(tmp_path):
    check(torch, cresset, str(tmp_path / "new"))


def test_what_we_save_loads_in_pytorch(tmp_path):
    check(cresset, torch, str(tmp_path / "new"))
