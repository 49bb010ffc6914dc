"""Pipes: datasets that are chained, each made from others by a function (`pipe.map(f).shuffle().batch(8)`).

| file | pipes |
|---|---|
| pipe | the two classes that all derive from, and how a class becomes a method of them |
| single_iterator | why an older iterator of a pipe ends when a newer one begins |
| each | map, collate, filter; an iterable as a pipe |
| order | sample, shuffle |
| groups | batch, unbatch, groupby |
| branches | fork, demux |
| joins | concat, mux, zip |
| shares | sharding_filter: a part for each worker |
| files | list_files, open_files, read_from_stream |
| keyed | pipes with keys: map, batch, concat, zip, shuffle |
| graph | the pipes that a pipe is made of, and what is applied to all of them |
| loading | what a DataLoader does to a pipe |
| wrapper | a pipe that stands for another |
"""

from . import branches, each, files, groups, joins, keyed, order, shares  # noqa: F401
from .determinism import guaranteed_datapipes_determinism, non_deterministic
from .graph import (
    apply_random_seed,
    apply_sharding,
    apply_shuffle_seed,
    apply_shuffle_settings,
    get_all_graph_pipes,
    traverse_dps,
)
from .groups import DataChunk
from .pipe import IterDataPipe, MapDataPipe, functional_datapipe

__all__ = [
    "DataChunk", "IterDataPipe", "MapDataPipe", "apply_random_seed", "apply_sharding", "apply_shuffle_seed",
    "apply_shuffle_settings", "functional_datapipe", "get_all_graph_pipes", "guaranteed_datapipes_determinism",
    "non_deterministic", "traverse_dps",
]  # fmt: skip
