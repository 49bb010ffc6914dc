"""DataParallel: one process, several GPUs. Without GPUs it calls the module itself."""

import cresset

from .module import Module


class DataParallel(Module):
    """Divide each batch over the GPUs, if there are several; else only call the module.

    Args:
        module: the model, as `module` in the state_dict.
        device_ids: which GPUs; all by default.

    >>> nn.DataParallel(nn.Linear(2, 3))(cresset.zeros(4, 2)).shape
    torch.Size([4, 3])
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.module, self.dim = module, dim
        self.device_ids = [] if device_ids is None else list(device_ids)
        if len(self.device_ids) > 1:
            raise NotImplementedError(
                "DataParallel: several GPUs in one process are not supported; use one process for each"
            )
        self.output_device = output_device

    def forward(self, *inputs, **kwargs):
        if self.device_ids:
            device = cresset.device("cuda", self.device_ids[0])
            inputs = tuple(x.to(device) if isinstance(x, cresset.Tensor) else x for x in inputs)
        return self.module(*inputs, **kwargs)
