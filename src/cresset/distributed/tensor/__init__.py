"""torch.distributed.tensor: tensors whose parts lie on the processes of a grid."""

from ...show import missing_names as _missing_names
from ..device_mesh import DeviceMesh, init_device_mesh
from .creation import distribute_module, distribute_tensor, empty, full, ones, rand, randn, zeros
from .dtensor import DTensor
from .placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor",
    "empty", "full", "init_device_mesh", "ones", "rand", "randn", "zeros",
]  # fmt: skip

_missing = _missing_names.of(__name__)


def __getattr__(name):
    if name in ("parallel", "experimental"):  # imported when they are first asked for
        import importlib

        return importlib.import_module(f".{name}", __name__)
    return _missing(name)
