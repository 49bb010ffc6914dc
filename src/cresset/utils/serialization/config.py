"""The settings of `torch.save` and `torch.load`, as attributes of `save` and `load`; cresset/serialization reads them.

>>> cresset.utils.serialization.config.save.storage_alignment
64
"""

from ...serialization.options import load, save

__all__ = ["load", "save"]
