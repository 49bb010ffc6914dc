"""torch.distributed.checkpoint.default_planner: plans that take nested state apart and write what all have once."""

import dataclasses
import io
from collections import ChainMap, defaultdict

import cresset

from .flattening import flatten, grow, put
from .metadata import BytesStorageMetadata, Metadata, TensorStorageMetadata
from .parts import narrow
from .planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner, WriteItemType
from .planner_helpers import _create_read_items, _create_write_items
from .utils import find_state_dict_object

__all__ = [
    "DefaultLoadPlanner", "DefaultSavePlanner", "create_default_global_load_plan", "create_default_global_save_plan",
    "create_default_local_load_plan", "create_default_local_save_plan",
]  # fmt: skip


class DefaultSavePlanner(SavePlanner):
    """What is saved: the entries of nested state by their paths, each once.

    A class of one's own changes one step: `transform_object` what is written of an entry, `create_global_plan` who
    writes what.

    Args:
        flatten_state_dict: whether containers are taken apart; what is in one is saved as a whole otherwise.
        flatten_sharded_tensors: PyTorch's, about a kind of tensors that is not here.
        dedup_replicated_tensors: PyTorch's; without an effect there either.
        dedup_save_to_lowest_rank: what all processes have is written by the first of them; otherwise they divide it.
        enable_plan_caching: PyTorch's way to plan less often; a plan is made for each save here.
    """

    def __init__(
        self, flatten_state_dict=True, flatten_sharded_tensors=True, dedup_replicated_tensors=None,
        dedup_save_to_lowest_rank=False, enable_plan_caching=False,
    ):  # fmt: skip
        self.flatten_state_dict, self.dedup_save_to_lowest_rank = flatten_state_dict, dedup_save_to_lowest_rank
        self.mappings = {}

    def set_up_planner(self, state_dict, storage_meta=None, is_coordinator=False):
        """Take the state apart."""
        self.is_coordinator = is_coordinator
        self.state_dict, self.mappings = flatten(state_dict) if self.flatten_state_dict else (state_dict, {})

    def create_local_plan(self):
        """What this process would write."""
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        if self.flatten_state_dict:
            plan = dataclasses.replace(plan, planner_data=self.mappings)
        self.plan = plan
        return plan

    def create_global_plan(self, all_plans):
        """Who writes what, and what the checkpoint says of itself."""
        plans, metadata = create_default_global_save_plan(self._dedup_save_plans(all_plans))
        if self.flatten_state_dict:
            paths = ChainMap(*(plan.planner_data for plan in all_plans))
            metadata = dataclasses.replace(
                metadata, planner_data={name: tuple(paths[name]) for name in metadata.state_dict_metadata}
            )
        self.global_plan, self.metadata = plans, metadata
        return plans, metadata

    def _dedup_save_plans(self, all_plans):
        """Each item in one plan: what all have is divided by size, the largest first, or left to the first that has
        it.
        """
        holders = defaultdict(list)
        for rank, plan in enumerate(all_plans):
            for item in plan.items:
                holders[item.index].append((rank, item))
        owners, load = {}, [0] * len(all_plans)

        def bytes_of(index):
            return max(item.tensor_storage_size() or 0 for _, item in holders[index])

        for index in sorted(holders, key=lambda index: (-bytes_of(index), index.fqn, index.offset or ())):
            ranks = [rank for rank, _ in holders[index]]
            divides = len(ranks) > 1 and bytes_of(index) and not self.dedup_save_to_lowest_rank
            owners[index] = min(ranks, key=lambda rank: (load[rank], rank)) if divides else ranks[0]
            load[owners[index]] += bytes_of(index)
        return [
            dataclasses.replace(plan, items=[item for item in plan.items if owners[item.index] == rank])
            for rank, plan in enumerate(all_plans)
        ]

    def finish_plan(self, new_plan):
        """The plan as it is."""
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item):
        """What is behind an item."""
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index):
        """The entry of the state, of a distributed tensor the part here."""
        return find_state_dict_object(self.state_dict, index)

    def transform_object(self, write_item, object):
        """An entry as it is written: tensors as they are, other things as torch.save writes them."""
        if write_item.type == WriteItemType.BYTE_IO:
            file = io.BytesIO()
            cresset.save(object, file)
            return file
        return object


class DefaultLoadPlanner(LoadPlanner):
    """What is loaded: the entries of the state_dict that is given.

    A class of one's own changes one step: `lookup_tensor` where elements go, `transform_tensor` in which form.

    Args:
        flatten_state_dict: whether containers are taken apart, as when it was saved.
        flatten_sharded_tensors: PyTorch's, about a kind of tensors that is not here.
        allow_partial_load: entries that the checkpoint lacks stay as they are; an error otherwise.
    """

    def __init__(self, flatten_state_dict=True, flatten_sharded_tensors=True, allow_partial_load=False):
        self.flatten_state_dict, self.allow_partial_load = flatten_state_dict, allow_partial_load
        self.original_state_dict, self.mappings = {}, {}

    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        """Take the state apart."""
        self.original_state_dict, self.metadata, self.is_coordinator = state_dict, metadata, is_coordinator
        self.state_dict, self.mappings = flatten(state_dict) if self.flatten_state_dict else (state_dict, {})

    def create_local_plan(self):
        """What this process reads."""
        return create_default_local_load_plan(self.state_dict, self.metadata, not self.allow_partial_load)

    def create_global_plan(self, global_plan):
        """The plans as they are."""
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, new_plan):
        """The plan as it is."""
        return new_plan

    def load_bytes(self, read_item, value):
        """Read what torch.save has written, as data alone, and put it into the state."""
        name = read_item.dest_index.fqn
        loaded = cresset.load(value, weights_only=True)
        if self.flatten_state_dict:
            put(self.original_state_dict, self.mappings[name], loaded)
        else:
            self.state_dict[name] = loaded

    def resolve_tensor(self, read_item):
        """The elements here that an item is read into."""
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item, tensor):
        """Nothing is left to do: the elements are in their place."""

    def lookup_tensor(self, index):
        """The entry of the state, of a distributed tensor the part here."""
        return find_state_dict_object(self.state_dict, index)

    def transform_tensor(self, read_item, tensor):
        """The elements of a tensor that an item is read into."""
        return narrow(tensor, read_item.dest_offsets, read_item.lengths)


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Loads into an empty state_dict all that the checkpoint has.

    Args:
        keys: only entries whose name begins with one of these.
    """

    def __init__(self, keys=None, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.keys = keys

    def takes(self, path):
        """Whether an entry is loaded."""
        if self.keys is None:
            return True
        name = ".".join(map(str, path))
        return any(name == key or name.startswith(key + ".") for key in self.keys)

    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        """Make room for what is loaded."""
        if state_dict:
            raise ValueError("load: this planner fills an empty state_dict")
        state_dict.update(room_for(metadata, self.takes))
        super().set_up_planner(state_dict, metadata, is_coordinator)


def room_for(metadata, takes):
    """Nested state with room for the entries of a checkpoint whose path is taken."""
    made: dict = {}
    for name, described in metadata.state_dict_metadata.items():
        path = tuple((metadata.planner_data or {}).get(name, (name,)))
        if takes(path):
            is_tensor = isinstance(described, TensorStorageMetadata)
            value = cresset.empty(described.size, dtype=described.properties.dtype) if is_tensor else None
            grow(made, path, value)
    return made


def create_default_local_save_plan(state_dict, is_coordinator):
    """What a process would write of one level of names: its parts of distributed tensors, all of the others.

    Args:
        state_dict: entries by their names.
        is_coordinator: whether this is the first process; all plan alike.
    """
    return SavePlan([item for name, value in state_dict.items() for item in _create_write_items(name, value)])


def create_default_global_save_plan(all_plans, rewrite_index_hints=True):
    """The plans, and what they make a checkpoint say of itself.

    Args:
        all_plans: in which each item is once.
        rewrite_index_hints: count the parts of each tensor; the numbers of the plans stay otherwise.
    """
    described, new_plans = {}, []
    for plan in all_plans:
        items = []
        for item in plan.items:
            name, data = item.index.fqn, item.tensor_data
            if item.type != WriteItemType.SHARD and name in described:
                raise ValueError(f"save: {name} is in two plans")
            if item.type == WriteItemType.BYTE_IO:
                described[name] = BytesStorageMetadata()
                items.append(item)
                continue
            if data is None:
                raise ValueError(f"save: the item of {name} does not say which part of a tensor it is (tensor_data)")
            tensor = described.setdefault(name, TensorStorageMetadata(data.properties, data.size, []))
            if rewrite_index_hints:
                item = dataclasses.replace(item, index=dataclasses.replace(item.index, index=len(tensor.chunks)))
            tensor.chunks.append(data.chunk)
            items.append(item)
        new_plans.append(dataclasses.replace(plan, items=items))
    return new_plans, Metadata(described)


def create_default_local_load_plan(state_dict, metadata, strict=True):
    """What a process reads for one level of names.

    Args:
        state_dict: entries by their names.
        metadata: of the checkpoint.
        strict: refuse entries that the checkpoint lacks; they are left alone otherwise.
    """
    known = metadata.state_dict_metadata
    missing = [name for name in state_dict if name not in known]
    if missing and strict:
        raise RuntimeError(f"Missing key in checkpoint state_dict: {', '.join(missing)}.")
    items = []
    for name, value in state_dict.items():
        if name in missing:
            continue
        about = known[name]
        if (
            isinstance(value, cresset.Tensor)
            and isinstance(about, TensorStorageMetadata)
            and tuple(about.size) != tuple(value.shape)
        ):
            raise ValueError(
                f"Size mismatch between saved {tuple(about.size)} and current: {tuple(value.shape)} for {name}"
            )
        items += _create_read_items(name, about, value)
    return LoadPlan(items)


def create_default_global_load_plan(all_plans):
    """The plans as they are: each process reads for itself.

    Args:
        all_plans: of each process.
    """
    return all_plans
