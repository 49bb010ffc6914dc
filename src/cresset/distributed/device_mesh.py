"""torch.distributed.device_mesh: grids of processes; see sharding.py."""

from .sharding import DeviceMesh, init_device_mesh

__all__ = ["DeviceMesh", "init_device_mesh"]
