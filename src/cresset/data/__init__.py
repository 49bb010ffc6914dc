"""Datasets, samplers, collation and the DataLoader; seen as `cresset.utils.data`."""

from .collate import default_collate, default_convert
from .datasets import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .loader import DataLoader
from .pipes import (
    DataChunk,
    IterDataPipe,
    MapDataPipe,
    functional_datapipe,
    guaranteed_datapipes_determinism,
    non_deterministic,
)
from .readers import ArrayDataset, CsvDataset, JsonLinesDataset, ParquetDataset, TarDataset, TextLinesDataset
from .samplers import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from .workers import get_worker_info

__all__ = [
    "ArrayDataset",
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "CsvDataset",
    "DataChunk",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterDataPipe",
    "IterableDataset",
    "JsonLinesDataset",
    "MapDataPipe",
    "ParquetDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TarDataset",
    "TensorDataset",
    "TextLinesDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "functional_datapipe",
    "get_worker_info",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
    "random_split",
]
