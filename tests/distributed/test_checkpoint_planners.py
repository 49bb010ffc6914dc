"""Planners and storages of one's own: what is saved, by whom, and where it goes."""

import dataclasses
import io

import pytest

import cresset
from cresset.distributed import checkpoint
from cresset.distributed.checkpoint import (
    DefaultLoadPlanner,
    DefaultSavePlanner,
    SavePlan,
    StorageReader,
    StorageWriter,
    default_planner,
    metadata,
    planner,
    planner_helpers,
    storage,
    utils,
)
from cresset.futures import Future


def done(value=None):
    future = Future()
    future.set_result(value)
    return future


class Memory(StorageWriter):
    """Keeps a checkpoint in a dictionary."""

    def __init__(self, places):
        self.places, self.said = places, []

    def reset(self, checkpoint_id=None):
        self.checkpoint_id = checkpoint_id
        self.said.append(("reset", checkpoint_id))

    def set_up_storage_writer(self, is_coordinator, *args, **kwargs):
        self.said.append(("set up", is_coordinator))

    def prepare_local_plan(self, plan):
        return dataclasses.replace(plan, storage_data="local")

    def prepare_global_plan(self, plans):
        assert [plan.storage_data for plan in plans] == ["local"] * len(plans)
        return [dataclasses.replace(plan, storage_data=number) for number, plan in enumerate(plans)]

    def write_data(self, plan, planner):
        results = []
        for item in plan.items:
            data = planner.resolve_data(item)
            key = f"{plan.storage_data}/{item.index.fqn}"
            is_bytes = item.type == checkpoint.planner.WriteItemType.BYTE_IO
            self.places[key] = data.getvalue() if is_bytes else data.clone()
            results.append(storage.WriteResult(item.index, 1, key))
        return done(results)

    def finish(self, metadata, results):
        metadata.storage_data = {one.index: one.storage_data for process in results for one in process}
        self.places["metadata"] = metadata

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        return True


class Remembering(StorageReader):
    def __init__(self, places):
        self.places = places

    def reset(self, checkpoint_id=None):
        self.checkpoint_id = checkpoint_id

    def read_metadata(self, *args, **kwargs):
        return self.places["metadata"]

    def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
        self.where = metadata.storage_data

    def prepare_local_plan(self, plan):
        return plan

    def prepare_global_plan(self, plans):
        return plans

    def read_data(self, plan, planner):
        for item in plan.items:
            found = self.places[self.where[item.storage_index]]
            if item.type == checkpoint.planner.LoadItemType.BYTE_IO:
                planner.load_bytes(item, io.BytesIO(found))
                continue
            for dim, (start, length) in enumerate(zip(item.storage_offsets, item.lengths, strict=True)):
                found = found.narrow(dim, start, length)
            place = planner.resolve_tensor(item)
            place.copy_(found)
            planner.commit_tensor(item, place)
        return done()

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        return True


def test_a_storage_of_ones_own_is_asked_step_by_step():
    places = {}
    writer = Memory(places)
    state = {"w": cresset.arange(4.0), "inner": {"step": 3, "scalar": cresset.tensor(2.5)}}
    saved = checkpoint.save(state, checkpoint_id="here", storage_writer=writer)
    assert writer.said == [("reset", "here"), ("set up", True)]
    assert set(places) == {"0/w", "0/inner.step", "0/inner.scalar", "metadata"} and places["metadata"] is saved
    found = {"w": cresset.zeros(4), "inner": {"step": 0, "scalar": cresset.zeros(())}}
    checkpoint.load(found, storage_reader=Remembering(places))
    assert found["w"].tolist() == [0, 1, 2, 3] and found["inner"]["step"] == 3 and found["inner"]["scalar"] == 2.5


class Halves(DefaultSavePlanner):
    """Writes floats in half precision, as the plan says."""

    def create_local_plan(self):
        plan, items = super().create_local_plan(), []
        for item in plan.items:
            if item.tensor_data is not None:
                about = dataclasses.replace(item.tensor_data.properties, dtype=cresset.bfloat16)
                item = dataclasses.replace(item, tensor_data=dataclasses.replace(item.tensor_data, properties=about))
            items.append(item)
        return dataclasses.replace(plan, items=items)

    def transform_object(self, write_item, object):
        found = super().transform_object(write_item, object)
        return found.bfloat16() if isinstance(found, cresset.Tensor) else found


def test_a_planner_changes_what_is_written(tmp_path):
    saved = checkpoint.save({"w": cresset.tensor([1.0, 2.5])}, checkpoint_id=tmp_path, planner=Halves())
    assert saved.state_dict_metadata["w"].properties.dtype == cresset.bfloat16
    found = {"w": cresset.zeros(2, dtype=cresset.bfloat16)}
    checkpoint.load(found, checkpoint_id=tmp_path)
    assert found["w"].tolist() == [1.0, 2.5]


class Renamed(DefaultLoadPlanner):
    """Reads entries that were saved with `old.` before their names."""

    def create_local_plan(self):
        known = {name.removeprefix("old."): about for name, about in self.metadata.state_dict_metadata.items()}
        plan = default_planner.create_default_local_load_plan(self.state_dict, metadata.Metadata(known))
        for item in plan.items:
            assert isinstance(item, checkpoint.ReadItem)
        return checkpoint.LoadPlan(
            [
                dataclasses.replace(
                    item, storage_index=dataclasses.replace(item.storage_index, fqn=f"old.{item.storage_index.fqn}")
                )
                for item in plan.items
            ]
        )


def test_a_planner_changes_what_is_read(tmp_path):
    checkpoint.save({"old": {"w": cresset.arange(3), "n": 4}}, checkpoint_id=tmp_path)
    found = {"w": cresset.zeros(3, dtype=cresset.int64), "n": 0}
    checkpoint.load(found, checkpoint_id=tmp_path, planner=Renamed())
    assert found["w"].tolist() == [0, 1, 2] and found["n"] == 4


class Watching(DefaultLoadPlanner):
    def __init__(self):
        super().__init__()
        self.read = []

    def transform_tensor(self, read_item, tensor):
        return super().transform_tensor(read_item, tensor.flip(0).clone() if self.backward(read_item) else tensor)

    def backward(self, read_item):
        return read_item.dest_index.fqn == "flipped"

    def commit_tensor(self, read_item, tensor):
        self.read.append(read_item.dest_index.fqn)
        if self.backward(read_item):
            self.state_dict["flipped"].copy_(tensor.flip(0))


def test_a_planner_is_told_when_elements_are_there(tmp_path):
    checkpoint.save({"flipped": cresset.arange(3.0), "plain": cresset.ones(1)}, checkpoint_id=tmp_path)
    found, watching = {"flipped": cresset.zeros(3), "plain": cresset.zeros(1)}, Watching()
    checkpoint.load(found, checkpoint_id=tmp_path, planner=watching)
    assert watching.read == ["flipped", "plain"] and found["flipped"].tolist() == [2, 1, 0]


def test_containers_may_be_saved_as_they_are(tmp_path):
    state = {"w": cresset.ones(2), "inner": {"a": cresset.arange(2), "b": 1}}
    checkpoint.save(state, checkpoint_id=tmp_path, planner=DefaultSavePlanner(flatten_state_dict=False))
    found = {"w": cresset.zeros(2), "inner": None}
    checkpoint.load(found, checkpoint_id=tmp_path, planner=DefaultLoadPlanner(flatten_state_dict=False))
    assert found["w"].tolist() == [1, 1] and found["inner"]["a"].tolist() == [0, 1] and found["inner"]["b"] == 1


def test_a_writer_goes_to_another_folder_when_it_is_told(tmp_path):
    writer, reader = checkpoint.FileSystemWriter(tmp_path / "1"), checkpoint.FileSystemReader(tmp_path / "1")
    first = writer.save_id
    for step in (1, 2):
        checkpoint.save({"step": step}, checkpoint_id=tmp_path / str(step), storage_writer=writer)
    assert writer.checkpoint_id == tmp_path / "2" and writer.save_id != first
    found = {"step": 0}
    checkpoint.load(found, checkpoint_id=tmp_path / "2", storage_reader=reader)
    assert found == {"step": 2}


def test_a_part_of_a_large_tensor_is_written_alone(tmp_path):
    checkpoint.save({"w": cresset.zeros(100_000)[:3]}, checkpoint_id=tmp_path)
    (file,) = tmp_path.glob("*.distcp")
    assert file.stat().st_size < 5000


class Refusing(DefaultSavePlanner):
    def create_global_plan(self, all_plans):
        plans, about = super().create_global_plan(all_plans)
        return [*plans, SavePlan(plans[0].items)], about

    def resolve_data(self, write_item):
        raise RuntimeError(f"nothing behind {write_item.index.fqn}")


def test_what_a_planner_refuses_leaves_no_checkpoint(tmp_path):
    with pytest.raises(RuntimeError, match="nothing behind w"):
        checkpoint.save({"w": cresset.ones(1)}, checkpoint_id=tmp_path, planner=Refusing())
    assert not (tmp_path / ".metadata").exists()


def test_a_plan_says_where_the_parts_of_a_tensor_meet():
    piece, size = metadata.ChunkStorageMetadata, cresset.Size
    pieces = [piece(size([start]), size([length])) for start, length in ((0, 3), (3, 5))]
    saved = metadata.TensorStorageMetadata(metadata.TensorProperties(cresset.float32), size([8]), pieces)
    here = piece(size([2]), size([4]))
    items = planner_helpers.create_read_items_for_chunk_list("w", saved, [here])
    assert [(i.storage_index.index, i.storage_offsets, i.dest_offsets, i.lengths) for i in items] == [
        (0, (2,), (0,), (1,)), (1, (0,), (1,), (3,)),
    ]  # fmt: skip
    item = planner.WriteItem(
        metadata.MetadataIndex("w"), planner.WriteItemType.TENSOR,
        tensor_data=planner.TensorWriteData(here, saved.properties, saved.size),
    )  # fmt: skip
    assert item.tensor_storage_size() == 32
    assert planner.WriteItem(metadata.MetadataIndex("n"), planner.WriteItemType.BYTE_IO).tensor_storage_size() is None


def test_what_is_behind_an_index_is_found_or_named():
    state = {"w": cresset.ones(2), "n": 1}
    index = metadata.MetadataIndex
    assert utils.find_state_dict_object(state, index("w", cresset.Size([0]))) is state["w"]
    with pytest.raises(ValueError, match="Could not find FQN: 'v'"):
        utils.find_state_dict_object(state, index("v"))
    with pytest.raises(ValueError, match="'n' is not a Tensor, yet it has an offset"):
        utils.find_state_dict_object(state, index("n", cresset.Size([0])))
    with pytest.raises(ValueError, match=r"the part of w at \(0,\), not that at \(1,\)"):
        utils.find_state_dict_object(state, index("w", cresset.Size([1])))


def test_plans_that_name_an_entry_twice_are_refused():
    plans = [default_planner.create_default_local_save_plan({"w": cresset.ones(1)}, True) for _ in range(2)]
    with pytest.raises(ValueError, match="w is in two plans"):
        default_planner.create_default_global_save_plan(plans)


def test_the_first_process_decides_for_all_and_data_of_its_own_travels(job, tmp_path):
    done = job(
        """
import dataclasses, os
from cresset.distributed import checkpoint
dist.init_process_group("gloo")
where = os.path.join(os.environ["FOLDER"], "check")

class Last(checkpoint.DefaultSavePlanner):  # the last process writes what all have
    def create_local_plan(self):
        assert self.is_coordinator == (dist.get_rank() == 0)
        return super().create_local_plan()
    def create_global_plan(self, all_plans):
        assert dist.get_rank() == 0
        own = [dataclasses.replace(plan, items=[]) for plan in all_plans[:-1]]
        plans, about = checkpoint.default_planner.create_default_global_save_plan([*own, all_plans[-1]])
        plans = [dataclasses.replace(plan, planner_data={"told": number}) for number, plan in enumerate(plans)]
        return plans, dataclasses.replace(about, planner_data=dict(all_plans[0].planner_data))
    def finish_plan(self, new_plan):
        assert new_plan.planner_data == {"told": dist.get_rank()}
        return super().finish_plan(new_plan)

saved = checkpoint.save({"a": torch.arange(10.0), "n": {"step": 5}}, checkpoint_id=where, planner=Last())
assert {info.relative_path for info in saved.storage_data.values()} == {"__1_0.distcp"}
state = {"a": torch.zeros(10), "n": {"step": 0}}
checkpoint.load(state, checkpoint_id=where)
assert state["a"].equal(torch.arange(10.0)) and state["n"]["step"] == 5

class Wrong(checkpoint.DefaultSavePlanner):
    def create_global_plan(self, all_plans):
        raise ValueError("not like this")
try:
    checkpoint.save({"a": torch.zeros(1)}, checkpoint_id=where, planner=Wrong())
except checkpoint.CheckpointException as error:
    assert sorted(error.failures) == [0] and "not like this" in str(error), error
    print("refused")
""",
        processes=2,
    )
    assert done.status == 0 and done.out.count("refused") == 2, done.err
