"""Copies of a module on several devices, whose gradients add up in the module itself."""

import cresset

from ..parameter import Parameter
from .scatter_gather import accelerators

__all__ = ["replicate"]


def replicate(network, devices, detach=False):
    """Make a copy of a module for each device. Parameters of the copies are results of the module's own: gradients
    reach those.

    Args:
        detach: whether the copies stand alone, with parameters of their own.

    >>> nn.parallel.replicate(nn.Sequential(nn.ReLU()), [0, 1])[1]
    Sequential(
      (0): ReLU()
    )
    """
    devices = accelerators(devices)
    tensors = list(dict.fromkeys([*network.parameters(), *network.buffers()]))
    if devices and any(tensor.device.type == "cpu" for tensor in tensors):
        raise AssertionError("Broadcast function not implemented for CPU tensors")
    return [_replica(network, device, detach) for device in devices]


def _replica(network, device, detach):
    modules = list(network.modules())
    copies = {id(module): module._replicate_for_data_parallel() for module in modules}
    moved = {}  # a tensor that stands in two places does so in the copy, too

    def on_device(tensor, recorded):
        if id(tensor) not in moved:
            moved[id(tensor)] = tensor.to(device) if recorded and not detach else tensor.detach().to(device)
        return moved[id(tensor)]

    for module in modules:
        copy = copies[id(module)]
        copy._former_parameters = {}
        for name, child in module._modules.items():
            copy._modules[name] = None if child is None else copies[id(child)]
        for name, parameter in module._parameters.items():
            if parameter is None:
                copy._parameters[name] = None
            elif detach:
                copy._parameters[name] = Parameter(on_device(parameter, False), parameter.requires_grad)
            else:  # no leaf any more, so an attribute and no parameter
                copy._former_parameters[name] = on_device(parameter, True)
                object.__setattr__(copy, name, copy._former_parameters[name])
        for name, buffer in module._buffers.items():
            with cresset.no_grad():
                copy._buffers[name] = None if buffer is None else on_device(buffer, buffer.requires_grad and not detach)
    return copies[id(network)]
