"""PyTorch's place for what is applied to all pipes that a dataset is made of."""

from ...data.pipes import apply_random_seed, apply_sharding, apply_shuffle_settings  # noqa: F401
