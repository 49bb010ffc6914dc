"""DataParallel: each batch divided over the GPUs of this process. Without GPUs it calls the module itself."""

import itertools

import cresset

from ..module import Module
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import accelerators, gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Divide each batch over the GPUs, if there are some; else only call the module. One process for each GPU is
    faster.

    Args:
        module: the model, as `module` in the state_dict; its parameters are on the first of the devices.
        device_ids: which GPUs; all by default.
        output_device: where the results are brought together; the first of the devices by default.
        dim: the dimension of the batch.

    >>> nn.DataParallel(nn.Linear(2, 3))(cresset.zeros(4, 2)).shape
    torch.Size([4, 3])
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        if not cresset.accelerator.is_available():
            self.module, self.device_ids = module, []
            return
        devices = accelerators(range(cresset.accelerator.device_count()) if device_ids is None else device_ids)
        if not devices:
            raise RuntimeError("no available devices were found")
        self.dim, self.module = dim, module
        self.device_ids = [device.index or 0 for device in devices]
        self.output_device = accelerators([devices[0] if output_device is None else output_device])[0].index or 0
        self.src_device_obj = cresset.device(devices[0].type, self.device_ids[0])
        if len(devices) == 1:
            self.module.to(self.src_device_obj)

    def forward(self, *inputs, **kwargs):
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        _check_place(self.module, self.src_device_obj)
        inputs, kwargs = self.scatter(inputs, kwargs, self.device_ids)
        if not inputs:  # nothing to divide: one device computes
            inputs, kwargs = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*inputs[0], **kwargs[0])
        replicas = self.replicate(self.module, self.device_ids[: len(inputs)])
        return self.gather(self.parallel_apply(replicas, inputs, kwargs), self.output_device)

    def replicate(self, module, device_ids):
        """Copies of the module, one for each device."""
        return replicate(module, device_ids, not cresset.is_grad_enabled())

    def scatter(self, inputs, kwargs, device_ids):
        """The arguments, divided over the devices."""
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def parallel_apply(self, replicas, inputs, kwargs):
        """The results of the copies."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs, output_device):
        """The results of all copies on one device."""
        return gather(outputs, output_device, dim=self.dim)


def _check_place(module, device):
    for tensor in itertools.chain(module.parameters(), module.buffers()):
        if tensor.device != device:
            raise RuntimeError(
                f"module must have its parameters and buffers on device {device} (device_ids[0]) but found one of "
                "them on "
                f"device: {tensor.device}"
            )


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """Call `module` once, with the batch divided over the GPUs: DataParallel without the module around it.

    Args:
        inputs: a tuple of arguments, or the only one.
        module_kwargs: named arguments.
    """
    if not cresset.accelerator.is_available():
        raise RuntimeError(
            "data_parallel: device type could not be determined; there is no GPU. Call the module itself"
        )
    inputs = inputs if isinstance(inputs, tuple) else (inputs,) if inputs is not None else ()
    devices = accelerators(range(cresset.accelerator.device_count()) if device_ids is None else device_ids)
    target = devices[0] if output_device is None else output_device
    _check_place(module, cresset.device(devices[0].type, devices[0].index or 0))
    inputs, kwargs = scatter_kwargs(inputs, module_kwargs, devices, dim)
    if not inputs:
        inputs, kwargs = ((),), ({},)
    if len(devices) == 1:
        return module(*inputs[0], **kwargs[0])
    used = devices[: len(inputs)]
    outputs = parallel_apply(replicate(module, used), inputs, kwargs, used)
    return gather(outputs, target, dim)
