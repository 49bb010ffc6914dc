"""Checkpoints in other forms: safetensors files as Hugging Face lays them out, files of torch.save, and who copies."""

import json

import pytest

import cresset
from cresset import nn
from cresset.distributed import checkpoint
from cresset.distributed.checkpoint import default_planner, format_utils, staging
from cresset.distributed.fsdp import FullyShardedDataParallel, OptimStateKeyType
from cresset.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
from cresset.serialization import safetensors


def tensors():
    return {"a.weight": cresset.arange(6.0).view(2, 3), "a.bias": cresset.ones(2, dtype=cresset.bfloat16)}


def test_safetensors_checkpoints_come_back_and_have_an_index(tmp_path):
    writer = checkpoint.HuggingFaceStorageWriter(tmp_path, fqn_to_index_mapping={"a.weight": 1, "a.bias": 2})
    checkpoint.save(tensors(), storage_writer=writer)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert index["weight_map"]["a.bias"] == "model-00002-of-00002.safetensors" and index["metadata"]["total_size"] == 28
    assert safetensors.load_file(tmp_path / "model-00001-of-00002.safetensors")["a.weight"].equal(tensors()["a.weight"])
    found = {name: cresset.zeros_like(t) for name, t in tensors().items()}
    checkpoint.load(found, storage_reader=checkpoint.HuggingFaceStorageReader(tmp_path))
    assert all(found[name].equal(t) for name, t in tensors().items())


def test_only_tensors_go_into_safetensors(tmp_path):
    with pytest.raises(ValueError, match="step is no tensor; only tensors"):
        checkpoint.save({"step": 3}, storage_writer=checkpoint.HuggingFaceStorageWriter(tmp_path))


def test_parts_of_several_processes_are_brought_together(job):
    done = job(
        """
import os
from cresset.distributed import checkpoint
from cresset.distributed.device_mesh import init_device_mesh
from cresset.distributed.tensor import Shard, distribute_tensor
from cresset.serialization import safetensors
mesh = init_device_mesh("cpu", (2,))
whole = torch.arange(15.0).view(5, 3)
path = os.environ["FOLDER"] + "/saved"
writer = checkpoint.HuggingFaceStorageWriter(path, save_distributed=True, enable_consolidation=True)
checkpoint.save({"w": distribute_tensor(whole, mesh, [Shard(0)]), "b": torch.ones(2)}, storage_writer=writer)
found = safetensors.load_file(path + "/model-00001-of-00001.safetensors")
assert found["w"].equal(whole) and found["b"].equal(torch.ones(2))
for folder in (path, path + "/sharded"):  # cut another way than it was saved
    other = {"w": distribute_tensor(torch.zeros(5, 3), mesh, [Shard(1)]), "b": torch.zeros(2)}
    checkpoint.load(other, storage_reader=checkpoint.HuggingFaceStorageReader(folder))
    assert other["w"].full_tensor().equal(whole) and other["b"].equal(torch.ones(2))
"""
    )
    assert done.status == 0, done.err


def test_weights_in_blocks_are_multiplied_by_their_scales(tmp_path):
    weight, scale = (
        cresset.full((3, 5), 2, dtype=cresset.int8),
        cresset.tensor([[1.0, 10.0, 100.0], [3.0, 30.0, 300.0]]),
    )
    safetensors.save_file({"w": weight, "w_scale_inv": scale}, tmp_path / "model.safetensors")
    found = {"w": cresset.zeros(3, 5)}
    checkpoint.load(found, storage_reader=checkpoint.QuantizedHuggingFaceStorageReader(tmp_path, block_size=2))
    assert found["w"].tolist() == [[2, 2, 20, 20, 200]] * 2 + [[6, 6, 60, 60, 600]]
    with pytest.raises(ValueError, match="not those of blocks of 128"):
        checkpoint.load(found, storage_reader=checkpoint.QuantizedHuggingFaceStorageReader(tmp_path))


def test_between_a_folder_and_a_file(tmp_path):
    state = {"model": tensors(), "step": 3, "list": [{"lr": 0.1}, cresset.zeros(2)]}
    cresset.save(state, tmp_path / "file.pt")
    format_utils.torch_save_to_dcp(tmp_path / "file.pt", tmp_path / "folder")
    format_utils.dcp_to_torch_save(tmp_path / "folder", tmp_path / "again.pt")
    again = cresset.load(tmp_path / "again.pt", weights_only=True)
    assert again["step"] == 3 and again["list"][0] == {"lr": 0.1} and again["list"][1].equal(cresset.zeros(2))
    assert again["model"]["a.weight"].equal(state["model"]["a.weight"])
    some = {}
    planner = default_planner._EmptyStateDictLoadPlanner(keys=["model"])
    reader = checkpoint.FileSystemReader(tmp_path / "folder")
    format_utils._load_state_dict(some, reader, planner=planner, no_dist=True)
    assert set(some) == {"model"} and some["model"]["a.bias"].equal(state["model"]["a.bias"])


def test_entries_that_are_missing_may_be_allowed(tmp_path):
    checkpoint.save({"a": cresset.ones(2)}, checkpoint_id=tmp_path, planner=checkpoint.DefaultSavePlanner())
    found = {"a": cresset.zeros(2), "b": cresset.full((2,), 5.0)}
    with pytest.raises(RuntimeError, match="Missing key in checkpoint state_dict: b"):
        checkpoint.load(found, checkpoint_id=tmp_path, planner=checkpoint.DefaultLoadPlanner())
    checkpoint.load(found, checkpoint_id=tmp_path, planner=checkpoint.DefaultLoadPlanner(allow_partial_load=True))
    assert found["a"].tolist() == [1, 1] and found["b"].tolist() == [5, 5]


def test_optimizer_state_is_loaded_by_its_key(tmp_path):
    checkpoint.save(
        {"optim": {"state": {"a.weight": {"exp_avg": cresset.ones(2, 3), "step": 4}}}}, checkpoint_id=tmp_path
    )
    reader = checkpoint.FileSystemReader(tmp_path)
    found = checkpoint.load_sharded_optimizer_state_dict(tensors(), "optim", reader)
    kept = found["optim"]["state"]["a.weight"]
    assert kept["exp_avg"].equal(cresset.ones(2, 3)) and kept["step"] == 4
    with pytest.raises(KeyError, match="nothing under 'other'"):
        checkpoint.load_sharded_optimizer_state_dict(tensors(), "other", reader)


def test_a_stager_copies_before_or_beside(tmp_path):
    value = cresset.ones(3)
    stager = staging.DefaultStager(staging.StagingOptions(use_async_staging=False))
    future = checkpoint.async_save({"a": value}, checkpoint_id=tmp_path / "1", async_stager=stager)
    value.zero_()
    future.result()
    beside = staging.DefaultStager()
    response = checkpoint.async_save({"a": value}, checkpoint_id=tmp_path / "2", async_stager=beside)
    assert response.staging_completion.result()["a"].equal(cresset.zeros(3))
    response.upload_completion.result()
    beside.close()
    for folder, wanted in (("1", 1.0), ("2", 0.0)):
        found = {"a": cresset.full((3,), 7.0)}
        checkpoint.load(found, checkpoint_id=tmp_path / folder)
        assert found["a"].tolist() == [wanted] * 3
    process = checkpoint.AsyncCheckpointerType.PROCESS
    with pytest.raises(NotImplementedError, match="a process that saves"):
        checkpoint.async_save({"a": value}, checkpoint_id=tmp_path / "3", async_checkpointer_type=process)


def test_state_of_an_optimizer_is_keyed_by_names_or_numbers():
    model = nn.Linear(2, 1)
    optimizer = cresset.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(cresset.ones(1, 2)).sum().backward()
    optimizer.step()
    by_number = optimizer.state_dict()
    rekey = FullyShardedDataParallel.rekey_optim_state_dict
    by_name = rekey(by_number, OptimStateKeyType.PARAM_NAME, model, optim=optimizer)
    assert set(by_name["state"]) == {"weight", "bias"} and by_name["param_groups"][0]["params"] == ["weight", "bias"]
    again = rekey(by_name, OptimStateKeyType.PARAM_ID, model)
    assert set(again["state"]) == {0, 1} and again["param_groups"][0]["params"] == [0, 1]


def test_processes_skip_a_step_together(job):
    done = job(
        """
from cresset.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
dist.init_process_group("gloo")
rank = dist.get_rank()
w = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([w], lr=0.5)
scaler = ShardedGradScaler("cpu", init_scale=4.0)
scaler.scale((w * (float("inf") if rank == 1 else 1.0)).sum()).backward()
scaler.step(optimizer)
scaler.update()
assert w.tolist() == [1.0, 1.0] and scaler.get_scale() == 2.0, (w, scaler.get_scale())
optimizer.zero_grad()
scaler.scale(w.sum()).backward()
scaler.step(optimizer)
scaler.update()
assert w.tolist() == [0.5, 0.5] and scaler.get_scale() == 2.0
"""
    )
    assert done.status == 0, done.err


def test_a_scaler_alone_is_a_grad_scaler():
    w = nn.Parameter(cresset.ones(2))
    optimizer = cresset.optim.SGD([w], lr=0.5)
    scaler = ShardedGradScaler("cpu", init_scale=4.0)
    scaler.scale(w.sum()).backward()
    scaler.unscale_(optimizer)
    assert w.grad.tolist() == [1.0, 1.0]


def test_switches_without_a_meaning_here_stay_off():
    from cresset.distributed import config

    assert config.compile_on_one_rank is False
    with config.patch(use_torchcomms=False):
        assert config.use_torchcomms is False
    with pytest.raises(NotImplementedError, match=r"config\.use_torchcomms: can only be False"):
        config.use_torchcomms = True
