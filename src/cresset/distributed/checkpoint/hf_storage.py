"""torch.distributed.checkpoint.hf_storage: checkpoints as safetensors files, as Hugging Face lays them out. Each
process writes its parts (`save_distributed`), or one process whole tensors; any number of them reads either.
"""

import dataclasses
import json
import math
from dataclasses import dataclass
from fnmatch import fnmatch

import cresset

from ...serialization import safetensors
from ..surroundings import REAL
from . import pickles
from .filesystem import FileSystemReader, FileSystemWriter, done
from .metadata import ChunkStorageMetadata, Metadata, MetadataIndex, TensorProperties, TensorStorageMetadata
from .parts import narrow
from .planner import WriteItemType
from .storage import WriteResult

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]

INDEX = "model.safetensors.index.json"
SHARDING, VERSION = "DCP_SHARDING_INFO", "DCP_VERSION"


@dataclass
class _HFStorageInfo:
    """A tensor in a file."""

    relative_path: str
    name: str
    length: int
    offset: int = 0


@dataclass
class _HFStoragePlan:
    """Which of the processes a plan is of."""

    shard: int


pickles.may_name("hf_storage", _HFStorageInfo, _HFStoragePlan)


def file_name(number, most, shard=None):
    """The name of file `number` of `most`.

    >>> file_name(1, 2)
    'model-00001-of-00002.safetensors'
    """
    before = "" if shard is None else f"shard-{shard:05d}-"
    return f"{before}model-{number:05d}-of-{most:05d}.safetensors"


class HuggingFaceStorageWriter(FileSystemWriter):
    """Writes tensors into safetensors files.

    Args:
        path: the folder.
        fqn_to_index_mapping: in which file each entry goes, by numbers from 1; by default all in one.
        thread_count, thread_count_consolidation: how many threads PyTorch writes with.
        save_distributed: every process writes its parts; otherwise one process writes whole tensors.
        enable_consolidation: afterwards bring the parts together, in files of whole tensors; parts are in `sharded`.
    """

    def __init__(
        self, path, fqn_to_index_mapping=None, thread_count=1, save_distributed=False, enable_consolidation=False,
        thread_count_consolidation=1, _disk=REAL.disk,
    ):  # fmt: skip
        super().__init__(path, _disk=_disk)
        self.fqn_to_index_mapping, self.save_distributed = fqn_to_index_mapping, save_distributed
        self.enable_consolidation, self.whole = enable_consolidation, self.path
        if enable_consolidation:
            if not save_distributed:
                raise ValueError("HuggingFaceStorageWriter: enable_consolidation needs save_distributed=True")
            self.path = self.path / "sharded"

    def reset(self, checkpoint_id=None):
        """Another save begins, perhaps in another folder."""
        super().reset(checkpoint_id)
        if checkpoint_id is not None:
            self.whole = self.path
            self.path = self.path / "sharded" if self.enable_consolidation else self.path

    def set_up_storage_writer(self, is_coordinator, *args, **kwargs):
        """Make the folder."""
        self.disk.make_folder(self.path)

    def prepare_local_plan(self, plan):
        """The plan as it is, if it is one of tensors."""
        for item in plan.items:
            if item.type == WriteItemType.BYTE_IO:
                raise ValueError(f"HuggingFaceStorageWriter: {item.index.fqn} is no tensor; only tensors can be saved")
        return plan

    def prepare_global_plan(self, plans):
        """The files of each process have its number."""
        if any(plan.items for plan in plans[1:]) and not self.save_distributed:
            raise ValueError(
                "HuggingFaceStorageWriter: several processes have tensors to write; pass save_distributed=True, or "
                "save in one process with no_dist=True"
            )
        return [dataclasses.replace(plan, storage_data=_HFStoragePlan(number)) for number, plan in enumerate(plans, 1)]

    def _number(self, name):
        return 1 if self.fqn_to_index_mapping is None else self.fqn_to_index_mapping[name]

    def _most(self):
        return 1 if self.fqn_to_index_mapping is None else max(self.fqn_to_index_mapping.values())

    def _put(self, path, data):
        """Write a file in one step: the old one or the new one is there."""
        unfinished = path.with_name(path.name + ".tmp")
        with self.disk.create(unfinished) as file:
            file.write(data)
            self.disk.sync(file)
        self.disk.replace(unfinished, path)

    def write_data(self, plan, planner):
        """Write the items into their files, each of which is written in one step."""
        files, results = {}, []
        for item in plan.items:
            tensor = planner.resolve_data(item).detach().cpu().contiguous()
            number = self._number(item.index.fqn)
            name = file_name(number, self._most(), plan.storage_data.shard if self.save_distributed else None)
            files.setdefault(name, []).append((item.index.fqn, tensor, list(item.index.offset)))
            size = tensor.numel() * tensor.element_size()
            results.append(WriteResult(item.index, size, _HFStorageInfo(name, item.index.fqn, size)))
        for name, rows in files.items():
            offsets = json.dumps({key: {"saved_offsets": offset} for key, _, offset in rows})
            about = {SHARDING: offsets, VERSION: "1.0", "format": "pt"}
            # Tensors that share memory are written twice: a file of this kind has no other way.
            self._put(self.path / name, safetensors.save({key: t.clone() for key, t, _ in rows}, about))
        self.disk.sync_folder(self.path)
        return done(results)

    def finish(self, metadata, results):
        """Say which tensor is in which file."""
        metadata.storage_data = {one.index: one.storage_data for process in results for one in process}
        metadata.storage_meta = self.storage_meta()
        kept = {info.relative_path for info in metadata.storage_data.values()}
        if self.save_distributed:
            for name in self.disk.names(self.path):
                if fnmatch(name, "shard-*-model-*.safetensors") and name not in kept:
                    self.disk.remove(self.path / name)
            if self.enable_consolidation:
                self._consolidate(metadata)
            return
        total = sum(info.length for info in metadata.storage_data.values())
        where = {index.fqn: info.relative_path for index, info in metadata.storage_data.items()}
        self._put_index(total, where)

    def _put_index(self, total, where):
        text = json.dumps({"metadata": {"total_size": total}, "weight_map": where}, indent=2)
        self._put(self.whole / INDEX, text.encode())

    def _consolidate(self, metadata):
        """Bring the parts of each tensor together."""
        reader, files, where, total = HuggingFaceStorageReader(self.path, _disk=self.disk), {}, {}, 0
        for name, about in metadata.state_dict_metadata.items():
            files.setdefault(self._number(name), []).append((name, about))
        for number, rows in files.items():
            tensors = {}
            for name, about in rows:
                tensors[name] = cresset.empty(about.size, dtype=about.properties.dtype)
                for index, info in metadata.storage_data.items():
                    if index.fqn == name:
                        part = reader.read_tensor(info)
                        narrow(tensors[name], index.offset, part.shape).copy_(part)
                where[name] = file_name(number, self._most())
                total += tensors[name].numel() * tensors[name].element_size()
            self._put(self.whole / file_name(number, self._most()), safetensors.save(tensors, {"format": "pt"}))
        self._put_index(total, where)


class HuggingFaceStorageReader(FileSystemReader):
    """Reads tensors from safetensors files, of whole tensors or of parts.

    Args:
        path: the folder.
        thread_count: how many threads PyTorch reads with.
    """

    def __init__(self, path, thread_count=1, _disk=REAL.disk):
        super().__init__(path, _disk)

    def _files(self):
        names = sorted(name for name in self.disk.names(self.path) if name.endswith(".safetensors"))
        if not names:
            raise FileNotFoundError(f"load: {self.path} holds no safetensors files")
        for name in names:
            with safetensors.safe_open(self.path / name) as file:
                yield name, file

    def read_metadata(self, *args, **kwargs):
        """What the files say of their tensors."""
        pieces, dtypes, storage = {}, {}, {}
        for path, file in self._files():
            offsets = json.loads((file.metadata() or {}).get(SHARDING, "{}"))
            for name in file.keys():  # noqa: SIM118 - it is no dictionary
                tensor = file.get_tensor(name)
                offset = tuple(offsets.get(name, {}).get("saved_offsets", [0] * tensor.dim()))
                pieces.setdefault(name, []).append((offset, tuple(tensor.shape)))
                dtypes[name] = tensor.dtype
                length = math.prod(tensor.shape) * tensor.element_size()
                storage[MetadataIndex(name, cresset.Size(offset))] = _HFStorageInfo(path, name, length)
        described = {}
        for name, found in pieces.items():
            size = [max(o[d] + s[d] for o, s in found) for d in range(len(found[0][0]))]
            chunks = [ChunkStorageMetadata(cresset.Size(o), cresset.Size(s)) for o, s in sorted(found)]
            described[name] = TensorStorageMetadata(TensorProperties(dtypes[name]), cresset.Size(size), chunks)
        return Metadata(described, None, storage)

    def read_tensor(self, info):
        """A tensor of a file."""
        with safetensors.safe_open(self.path / info.relative_path) as file:
            return file.get_tensor(info.name)
