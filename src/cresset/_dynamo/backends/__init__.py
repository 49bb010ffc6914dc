"""Where PyTorch keeps backends: their table, and what helps to write one."""

from .registry import list_backends, lookup_backend, register_backend

__all__ = ["list_backends", "lookup_backend", "register_backend"]
