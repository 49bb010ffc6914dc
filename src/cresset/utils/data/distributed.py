"""PyTorch's place for the DistributedSampler."""

from ...data.samplers import DistributedSampler  # noqa: F401
