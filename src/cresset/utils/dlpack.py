"""DLPack, the exchange of tensors with other libraries without a copy."""

from ..tensors.exchange import DLDeviceType
from ..tensors.from_data import from_dlpack, to_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]
