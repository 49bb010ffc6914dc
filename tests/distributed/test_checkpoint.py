"""Checkpoints: what is saved comes back, a kill leaves the old or the new one, strange files are refused."""

import os
import pathlib
import pickle

import pytest

import cresset
from cresset import nn
from cresset.distributed import checkpoint
from cresset.distributed.checkpoint import storage
from cresset.distributed.checkpoint.flattening import flatten


def state():
    return {
        "model": {"weight": cresset.arange(6.0).view(2, 3), "bias": cresset.ones(2, dtype=cresset.bfloat16)},
        "step": 3,
        "list": [{"lr": 0.1}, cresset.zeros(2, dtype=cresset.int64)],
        "names": ["a", "b"],
    }


def empty():
    return {
        "model": {"weight": cresset.zeros(2, 3), "bias": cresset.zeros(2, dtype=cresset.bfloat16)},
        "step": 0,
        "list": [{"lr": 0.0}, cresset.ones(2, dtype=cresset.int64)],
        "names": [],
    }


def same(a, b):
    return all(
        x.equal(y) if isinstance(x, cresset.Tensor) else x == y
        for x, y in zip(*(flatten(s)[0].values() for s in (a, b)), strict=True)
    )


def test_what_is_saved_comes_back_in_place(tmp_path):
    checkpoint.save(state(), checkpoint_id=tmp_path / "new")
    loaded = empty()
    weight = loaded["model"]["weight"]
    checkpoint.load(loaded, checkpoint_id=str(tmp_path / "new"))
    assert same(loaded, state()) and loaded["model"]["weight"] is weight


def test_modules_and_optimizers_are_asked_for_their_state(tmp_path):
    model = nn.Linear(3, 2)
    optimizer = cresset.optim.AdamW(model.parameters(), 0.01)
    model(cresset.ones(1, 3)).sum().backward()
    optimizer.step()
    checkpoint.save({"model": model, "optimizer": optimizer}, checkpoint_id=tmp_path)
    other = nn.Linear(3, 2)
    again = cresset.optim.AdamW(other.parameters(), 0.5)
    other(cresset.ones(1, 3)).sum().backward()
    again.step()
    checkpoint.load({"model": other, "optimizer": again}, checkpoint_id=tmp_path)
    assert other.weight.equal(model.weight) and again.param_groups[0]["lr"] == 0.01
    assert again.state[other.weight]["exp_avg"].equal(optimizer.state[model.weight]["exp_avg"])


def test_a_part_may_be_loaded(tmp_path):
    checkpoint.save(state(), checkpoint_id=tmp_path)
    some = {"model": {"weight": cresset.zeros(2, 3)}}
    checkpoint.load(some, checkpoint_id=tmp_path)
    assert some["model"]["weight"].equal(state()["model"]["weight"])


def test_saving_again_replaces_the_checkpoint_and_its_files(tmp_path):
    checkpoint.save(state(), checkpoint_id=tmp_path)
    changed = state() | {"step": 9}
    checkpoint.save(changed, checkpoint_id=tmp_path)
    loaded = empty()
    checkpoint.load(loaded, checkpoint_id=tmp_path)
    assert loaded["step"] == 9 and len(list(tmp_path.glob("*.distcp"))) == 1
    with pytest.raises(RuntimeError, match="overwrite is False"):
        checkpoint.save(state(), storage_writer=checkpoint.FileSystemWriter(tmp_path, overwrite=False))


@pytest.mark.parametrize("instant", ["write", "fsync", "replace"])
def test_a_failure_in_the_middle_keeps_the_old_checkpoint(tmp_path, monkeypatch, instant):
    checkpoint.save(state(), checkpoint_id=tmp_path)

    def fail(*_):
        raise OSError("the disk is full")

    if instant == "write":
        monkeypatch.setattr(cresset, "save", fail)
    else:
        monkeypatch.setattr(os, instant, fail)
    with pytest.raises(OSError, match="the disk is full"):
        checkpoint.save(state() | {"step": 99}, checkpoint_id=tmp_path)
    monkeypatch.undo()
    loaded = empty()
    checkpoint.load(loaded, checkpoint_id=tmp_path)
    assert same(loaded, state())
    checkpoint.save(state() | {"step": 4}, checkpoint_id=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_what_does_not_fit_is_named(tmp_path):
    checkpoint.save(state(), checkpoint_id=tmp_path)
    with pytest.raises(RuntimeError, match="Missing key in checkpoint state_dict: model.other"):
        checkpoint.load({"model": {"other": cresset.zeros(1)}}, checkpoint_id=tmp_path)
    with pytest.raises(
        ValueError, match=r"Size mismatch between saved \(2, 3\) and current: \(3, 2\) for model.weight"
    ):
        checkpoint.load({"model": {"weight": cresset.zeros(3, 2)}}, checkpoint_id=tmp_path)
    with pytest.raises(ValueError, match="step is a tensor, unlike"):
        checkpoint.load({"step": cresset.zeros(1)}, checkpoint_id=tmp_path)
    with pytest.raises(ValueError, match="two entries .* 'a.b'"):
        checkpoint.save({"a": {"b": 1}, "a.b": 2}, checkpoint_id=tmp_path)
    with pytest.raises(FileNotFoundError, match="no finished checkpoint"):
        checkpoint.load({}, checkpoint_id=tmp_path / "none")
    with pytest.raises(RuntimeError, match="checkpoint_id"):
        checkpoint.save({})
    with pytest.raises(TypeError, match="planner must be a SavePlanner, not object"):
        checkpoint.save({}, checkpoint_id=tmp_path, planner=object())
    with pytest.raises(TypeError, match="storage must be a StorageWriter, not FileSystemReader"):
        checkpoint.save({}, storage_writer=checkpoint.FileSystemReader(tmp_path))
    with pytest.raises(RuntimeError, match="Cannot detect which storage to use for 's3://bucket/step'"):
        checkpoint.save({}, checkpoint_id="s3://bucket/step")


class Runs:
    def __reduce__(self):
        return (os.system, ("touch was_run",))


def test_no_file_runs_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".metadata").write_bytes(pickle.dumps(Runs()))
    with pytest.raises(pickle.UnpicklingError, match="posix.system"):
        checkpoint.load({"a": 1}, checkpoint_id=tmp_path)
    assert not (tmp_path / "was_run").exists()


def test_a_checkpoint_names_files_of_its_own_folder_alone(tmp_path):
    checkpoint.save(state(), checkpoint_id=tmp_path / "new")
    metadata = checkpoint.FileSystemReader(tmp_path / "new").read_metadata()
    (tmp_path / "secret").write_bytes(b"x" * 5000)
    for info in metadata.storage_data.values():
        info.relative_path = "../secret"
    results = [storage.WriteResult(index, info.length, info) for index, info in metadata.storage_data.items()]
    checkpoint.FileSystemWriter(tmp_path / "new").finish(metadata, [results])
    with pytest.raises(RuntimeError, match="outside of its folder"):
        checkpoint.load(empty(), checkpoint_id=tmp_path / "new")


@pytest.mark.parametrize("keep", [0, 10, 200, 700])
def test_truncated_files_are_errors(tmp_path, keep):
    checkpoint.save(state(), checkpoint_id=tmp_path)
    for file in tmp_path.iterdir():
        data = file.read_bytes()
        file.write_bytes(data[: min(keep, len(data) - 1)])
        with pytest.raises((RuntimeError, pickle.UnpicklingError, EOFError, ValueError)):
            checkpoint.load(empty(), checkpoint_id=tmp_path)
        file.write_bytes(data)
    checkpoint.load(empty(), checkpoint_id=tmp_path)


def test_a_save_in_the_background_saves_what_was_there_when_it_began(tmp_path):
    saved = state()
    future = checkpoint.async_save(saved, checkpoint_id=tmp_path)
    saved["model"]["weight"].zero_()
    assert list(future.result().state_dict_metadata) and future.done()
    loaded = empty()
    checkpoint.load(loaded, checkpoint_id=tmp_path)
    assert same(loaded, state())
    (tmp_path / "file").write_text("")
    with pytest.raises((NotADirectoryError, FileExistsError)):
        checkpoint.async_save(saved, checkpoint_id=tmp_path / "file").result()


def test_processes_save_together_and_another_number_loads(job, tmp_path):
    program = """
import os
from cresset.distributed import checkpoint
from cresset.distributed.checkpoint import storage
from cresset.distributed.checkpoint.flattening import flatten
dist.init_process_group("gloo")
where = os.path.join(os.environ["FOLDER"], "check")
state = {"a": torch.arange(1000.0), "b": torch.ones(500), "own": {f"rank{dist.get_rank()}": torch.tensor([dist.get_rank()])}, "step": 5}
"""  # noqa: E501
    done = job(program + 'checkpoint.save(state, checkpoint_id=where)\nprint("saved")', processes=2)
    assert done.status == 0 and done.out.count("saved") == 2, done.err
    assert len(list(pathlib.Path(tmp_path, "check").glob("*.distcp"))) == 2
    load = """
state = {"a": torch.zeros(1000), "b": torch.zeros(500), "own": {"rank1": torch.tensor([7])}, "step": 0}
checkpoint.load(state, checkpoint_id=where)
assert state["a"].equal(torch.arange(1000.0)) and state["b"].sum() == 500 and state["own"]["rank1"].item() == 1 and state["step"] == 5
print("loaded")
"""  # noqa: E501
    done = job(program + load, processes=3)
    assert done.status == 0 and done.out.count("loaded") == 3, done.err


def test_saves_in_the_background_have_a_group_of_their_own_and_follow_each_other(job, tmp_path):
    done = job(
        """
import os
from cresset.distributed import checkpoint
from cresset.distributed.checkpoint import storage
from cresset.distributed.checkpoint.flattening import flatten
dist.init_process_group("gloo")
where = os.path.join(os.environ["FOLDER"], "step")
state = {"a": torch.zeros(300), f"rank{dist.get_rank()}": torch.tensor([dist.get_rank()])}
for step in range(4):
    state["a"] += 1
    checkpoint.async_save(state, checkpoint_id=f"{where}{step}")
    dist.all_reduce(torch.ones(1000))  # what the program exchanges meanwhile
dist.destroy_process_group()
for step in range(4):
    loaded = {"a": torch.zeros(300), "rank1": torch.tensor([7])}
    checkpoint.load(loaded, checkpoint_id=f"{where}{step}")
    assert loaded["a"].eq(step + 1).all() and loaded["rank1"].item() == 1
print("loaded")
""",
        processes=2,
    )
    assert done.status == 0 and done.out.count("loaded") == 2, done.err


def test_all_processes_fail_when_one_cannot_load(job):
    done = job("""
import os
from cresset.distributed import checkpoint
from cresset.distributed.checkpoint import storage
from cresset.distributed.checkpoint.flattening import flatten
dist.init_process_group("gloo")
where = os.path.join(os.environ["FOLDER"], "check")
checkpoint.save({"a": torch.ones(3)}, checkpoint_id=where)
try:
    checkpoint.load({"a" if dist.get_rank() else "b": torch.ones(3)}, checkpoint_id=where)
except checkpoint.CheckpointException as error:
    os.write(1, f"failed {sorted(error.failures)} {error}".replace(chr(10), " ").encode() + b"\\n")
""")
    lines = [line for line in done.out.splitlines() if line.startswith("failed [0]")]
    assert len(lines) == 2 and all("Missing key" in line for line in lines), (done.out, done.err)
