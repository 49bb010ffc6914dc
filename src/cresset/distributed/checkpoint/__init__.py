"""torch.distributed.checkpoint: state that several processes save together and any number of them loads.

The files are PyTorch's: a folder with `.metadata` and `*.distcp`. They are read as data only. What is written by whom
(planner.py) and where it goes (storage.py) may be decided by classes of one's own.
"""

from ...show import missing_names as _missing_names
from .api import CheckpointException
from .default_planner import DefaultLoadPlanner, DefaultSavePlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from .optimizer import load_sharded_optimizer_state_dict
from .planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem
from .quantized_hf_storage import QuantizedHuggingFaceStorageReader
from .state_dict_loader import load, load_state_dict
from .state_dict_saver import AsyncCheckpointerType, AsyncSaveResponse, async_save, save, save_state_dict
from .storage import StorageReader, StorageWriter

__all__ = [
    "AsyncCheckpointerType", "AsyncSaveResponse", "BytesStorageMetadata", "CheckpointException",
    "ChunkStorageMetadata", "DefaultLoadPlanner", "DefaultSavePlanner", "FileSystemReader", "FileSystemWriter",
    "HuggingFaceStorageReader", "HuggingFaceStorageWriter", "LoadPlan", "LoadPlanner", "Metadata", "MetadataIndex",
    "QuantizedHuggingFaceStorageReader", "ReadItem", "SavePlan", "SavePlanner", "StorageReader", "StorageWriter",
    "TensorProperties", "TensorStorageMetadata", "WriteItem", "async_save", "load",
    "load_sharded_optimizer_state_dict", "load_state_dict", "save", "save_state_dict",
]  # fmt: skip


_missing = _missing_names.of(__name__)


def __getattr__(name):
    if name in ("format_utils", "state_dict", "stateful"):  # imported when they are first asked for
        import importlib

        return importlib.import_module(f".{name}", __name__)
    return _missing(name)
