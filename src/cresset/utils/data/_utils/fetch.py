"""PyTorch's place for fetching."""

from ....data.fetching import IterableFetcher as _IterableDatasetFetcher  # noqa: F401
from ....data.fetching import MapFetcher as _MapDatasetFetcher  # noqa: F401
