"""torch.distributed.tensor.device_mesh: the mesh, where programs of tensor parallelism look for it."""

from ..device_mesh import DeviceMesh, init_device_mesh

__all__ = ["DeviceMesh", "init_device_mesh"]
