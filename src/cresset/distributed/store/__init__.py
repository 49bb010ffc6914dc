"""Stores: small tables of keys and bytes that all processes of a job share. Processes meet through them."""

from .base import Store
from .file import FileStore
from .hash import HashStore
from .prefix import PrefixStore
from .tcp import TCPStore

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]

for _name in __all__:
    globals()[_name].__module__ = "torch.distributed"
