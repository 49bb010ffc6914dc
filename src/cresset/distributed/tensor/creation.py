"""Distributed tensors made from whole ones, from modules, and new."""

import cresset

from ...nn import Module, Parameter
from .. import collectives
from . import random
from ._dtensor_spec import DTensorSpec, TensorMeta, contiguous_strides, normalized
from .dtensor import DTensor, current_mesh
from .placement_types import Replicate
from .redistribution import moved


def distribute_tensor(tensor, device_mesh=None, placements=None, *, src_data_rank=0):
    """A whole tensor that every process has, as a distributed one. All processes of the grid call this.

    Args:
        tensor: a leaf; its gradients are those of the result.
        device_mesh: the grid; by default that of `with mesh:`.
        placements: one for each dimension of the grid; by default whole in every process.
        src_data_rank: the process, in the grid's groups, whose elements are taken; None: each takes its own, and
            nothing is sent.
    """
    mesh = device_mesh if device_mesh is not None else current_mesh()
    placements = [Replicate()] * mesh.ndim if placements is None else placements
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh:
            raise ValueError(
                f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} to a different device mesh {mesh}."
            )
        if tensor.placements != tuple(placements):
            raise ValueError(
                f"Cannot distribute a DTensor with placements {tensor.placements} to a different placements "
                f"{placements}. do you want to call `redistribute` instead?"
            )
        return tensor
    placements = normalized(placements, mesh, tensor.ndim, "distribute_tensor")
    local = tensor.detach()
    if mesh.device_type != local.device.type and local.device.type != "meta":
        local = local.to(mesh.device_type)
    if mesh.get_coordinate() is None:
        local = local.new_empty(0)
    elif local.device.type != "meta":
        if src_data_rank is not None and any(n > 1 for n in mesh.shape):
            local = local.clone(memory_format=cresset.contiguous_format)
            for i, n in enumerate(mesh.shape):
                if n > 1:
                    collectives.broadcast(local, group=mesh.get_group(i), group_src=src_data_rank)
        local = moved(local, tensor.shape, mesh, (Replicate(),) * mesh.ndim, placements)
    else:
        spec = DTensorSpec(mesh, placements, TensorMeta(tensor.shape, tensor.stride(), tensor.dtype))
        local = cresset.empty(spec.local_shape()[0], dtype=tensor.dtype, device="meta")
    if local is tensor or local.data_ptr() == tensor.data_ptr():
        local = local.detach()
    meta = TensorMeta(tensor.shape, tensor.stride(), tensor.dtype)
    return DTensor._of(local.requires_grad_(tensor.requires_grad), DTensorSpec(mesh, placements, meta))


def distribute_module(module, device_mesh=None, partition_fn=None, input_fn=None, output_fn=None):
    """A module with distributed parameters and buffers. All processes of the grid call this.

    Args:
        module: changed in place.
        device_mesh: the grid; by default that of `with mesh:`.
        partition_fn: fn(name, submodule, mesh) makes parameters of submodules distributed; the others are whole in
            every process.
        input_fn: fn(module, inputs, mesh) gives the inputs as the module wants them.
        output_fn: fn(module, outputs, mesh) gives the outputs as the program wants them.
    """
    mesh = device_mesh if device_mesh is not None else current_mesh()
    if not isinstance(module, Module):
        raise TypeError(f"distribute_module: expected a Module, got {type(module).__name__}")
    for name, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, part, mesh)
        replicate(part, mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda part, inputs: input_fn(part, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda part, inputs, outputs: output_fn(part, outputs, mesh))
    return module


def replicate(module, mesh):
    """Make the parameters and buffers of one module distributed, whole in every process, where they are not yet."""
    whole = [Replicate()] * mesh.ndim
    for name, parameter in list(module._parameters.items()):
        if parameter is not None and not isinstance(parameter, DTensor):
            made = Parameter(distribute_tensor(parameter.detach(), mesh, whole), parameter.requires_grad)
            module.register_parameter(name, made)
    for name, buffer in list(module._buffers.items()):
        if buffer is not None and not isinstance(buffer, DTensor):
            module._buffers[name] = distribute_tensor(buffer, mesh, whole)


def _size(size):
    return tuple(size[0]) if len(size) == 1 and isinstance(size[0], (list, tuple)) else tuple(size)


def _made(make, size, dtype, layout, requires_grad, mesh, placements, is_random=False):
    if layout is not None and layout != cresset.strided:
        raise AssertionError("layout value not supported!")
    mesh = mesh if mesh is not None else current_mesh()
    placements = normalized([Replicate()] * mesh.ndim if placements is None else placements, mesh, len(size), "DTensor")
    dtype = dtype or cresset.get_default_dtype()
    spec = DTensorSpec(mesh, placements, TensorMeta(size, contiguous_strides(size), dtype))
    if mesh.get_coordinate() is None:
        local = cresset.empty(0, dtype=dtype)
    elif is_random:
        device = cresset.device(mesh.device_type)
        whole = random.drawing(mesh, device, lambda: make(size, dtype=dtype, device=device))
        local = random.part(whole, spec).clone(memory_format=cresset.contiguous_format)
    else:
        local = make(spec.local_shape()[0], dtype=dtype, device=mesh.device_type)
    return DTensor._of(local.requires_grad_(requires_grad), spec)


def zeros(
    *size, requires_grad=False, dtype=None, layout=cresset.strided, device_mesh=None, placements=None
):  # fmt: skip
    """A distributed tensor of zeros; sizes and settings as in `cresset.zeros`, grid and placements as elsewhere."""
    return _made(cresset.zeros, _size(size), dtype, layout, requires_grad, device_mesh, placements)


def ones(*size, dtype=None, layout=cresset.strided, requires_grad=False, device_mesh=None, placements=None):
    """A distributed tensor of ones."""
    return _made(cresset.ones, _size(size), dtype, layout, requires_grad, device_mesh, placements)


def empty(*size, dtype=None, layout=cresset.strided, requires_grad=False, device_mesh=None, placements=None):
    """A distributed tensor whose elements are not set."""
    return _made(cresset.empty, _size(size), dtype, layout, requires_grad, device_mesh, placements)


def full(
    size, fill_value, *, dtype=None, layout=cresset.strided, requires_grad=False, device_mesh=None, placements=None
):
    """A distributed tensor of one value."""

    def make(shape, dtype, device):
        return cresset.full(shape, fill_value, dtype=dtype, device=device)

    return _made(make, _size((size,)), dtype, layout, requires_grad, device_mesh, placements)


def rand(*size, requires_grad=False, dtype=None, layout=cresset.strided, device_mesh=None, placements=None):
    """A distributed tensor of numbers from 0 to 1: those that one process with this seed draws."""
    return _made(cresset.rand, _size(size), dtype, layout, requires_grad, device_mesh, placements, True)


def randn(*size, requires_grad=False, dtype=None, layout=cresset.strided, device_mesh=None, placements=None):
    """A distributed tensor of normal numbers: those that one process with this seed draws."""
    return _made(cresset.randn, _size(size), dtype, layout, requires_grad, device_mesh, placements, True)
