"""Optimizers that step while backward runs."""

from .optimizer_overlap import _as_overlapped_optim  # noqa: F401
