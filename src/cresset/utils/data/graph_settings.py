"""PyTorch's place for what is applied to all pipes that a dataset is made of."""

from ...data.pipes.graph import (  # noqa: F401
    apply_random_seed,
    apply_sharding,
    apply_shuffle_seed,
    apply_shuffle_settings,
    get_all_graph_pipes,
)
