"""Checkpoints of torch.distributed.checkpoint, both ways."""

import importlib
import io
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


def own_parts(lib):
    """A planner and a storage of one's own, as programs for PyTorch have them; what they were asked, and what came of
    it."""
    checkpoint = importlib.import_module(f"{lib.__name__}.distributed.checkpoint")
    plans = importlib.import_module(f"{lib.__name__}.distributed.checkpoint.planner")
    storage = importlib.import_module(f"{lib.__name__}.distributed.checkpoint.storage")
    asked, kept = [], {}

    def done(value=None):
        future = lib.futures.Future()
        future.set_result(value)
        return future

    class Writer(checkpoint.StorageWriter):
        def reset(self, checkpoint_id=None):
            asked.append(f"reset {checkpoint_id}")

        def set_up_storage_writer(self, is_coordinator, *args, **kwargs):
            asked.append(f"set up {is_coordinator}")

        def prepare_local_plan(self, plan):
            asked.append(f"local {sorted((item.index.fqn, item.type.name) for item in plan.items)}")
            return plan

        def prepare_global_plan(self, all_plans):
            asked.append(f"global {len(all_plans)}")
            return all_plans

        def write_data(self, plan, planner):
            results = []
            for item in plan.items:
                data = planner.resolve_data(item)
                kept[item.index] = data if isinstance(data, lib.Tensor) else io.BytesIO(data.getvalue())
                results.append(storage.WriteResult(item.index, 1, item.index.fqn))
            return done(results)

        def finish(self, metadata, results):
            metadata.storage_data = {row.index: row.storage_data for rows in results for row in rows}
            kept["metadata"] = metadata

        @classmethod
        def validate_checkpoint_id(cls, checkpoint_id):
            return True

    class Reader(checkpoint.StorageReader):
        def reset(self, checkpoint_id=None):
            asked.append(f"reset {checkpoint_id}")

        def read_metadata(self, *args, **kwargs):
            return kept["metadata"]

        def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
            asked.append(f"set up {sorted(index.fqn for index in metadata.storage_data)}")

        def prepare_local_plan(self, plan):
            return plan

        def prepare_global_plan(self, all_plans):
            return all_plans

        def read_data(self, plan, planner):
            for item in plan.items:
                asked.append(f"read {item.storage_index.fqn} {tuple(item.lengths)} {tuple(item.dest_offsets)}")
                found = kept[item.storage_index]
                if item.type == plans.LoadItemType.BYTE_IO:
                    planner.load_bytes(item, found)
                else:
                    place = planner.resolve_tensor(item)
                    place.copy_(found)
                    planner.commit_tensor(item, place)
            return done()

        @classmethod
        def validate_checkpoint_id(cls, checkpoint_id):
            return True

    class Doubled(checkpoint.DefaultSavePlanner):
        def transform_object(self, write_item, object):
            found = super().transform_object(write_item, object)
            return found * 2 if isinstance(found, lib.Tensor) else found

    class Counted(checkpoint.DefaultLoadPlanner):
        def commit_tensor(self, read_item, tensor):
            asked.append(f"commit {read_item.dest_index.fqn} {tuple(tensor.shape)}")

    saved = checkpoint.save(state(lib), checkpoint_id="here", storage_writer=Writer(), planner=Doubled())
    asked.append(sorted(saved.state_dict_metadata))
    asked.append(sorted((name, tuple(path)) for name, path in saved.planner_data.items()))
    loaded = empty(lib)
    checkpoint.load(loaded, storage_reader=Reader(), planner=Counted())
    return sorted(map(str, asked)), plain(loaded)


def test_planners_and_storages_of_ones_own_are_asked_alike():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = own_parts(cresset), own_parts(torch)
    assert ours == theirs
