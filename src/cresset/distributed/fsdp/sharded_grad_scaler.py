"""torch.distributed.fsdp.sharded_grad_scaler: a GradScaler for gradients that are cut over processes."""

import cresset

from ...amp.grad_scaler import GradScaler
from .. import collectives, world
from ..reductions import RedOpType
from ..tensor.dtensor import DTensor

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """A GradScaler whose processes skip a step together: an overflow in one of them is one of all.

    Args:
        device: "cuda" or "cpu".
        init_scale, backoff_factor, growth_factor, growth_interval, enabled: as in GradScaler.
        process_group: who decides together; by default all processes.
    """

    def __init__(
        self, device="cuda", init_scale=2.0**16, backoff_factor=0.5, growth_factor=2.0, growth_interval=2000,
        enabled=True, process_group=None,
    ):  # fmt: skip
        super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled)
        self.process_group = process_group

    def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16=True):
        """As in GradScaler, on the parts of gradients that lie here; then the processes compare. Gradients in float16
        are allowed: with mixed precision, parts of them are.
        """
        by_device, found = {self._scale.device: []}, {}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                grad = parameter.grad
                if grad is not None:
                    part = grad._local_tensor if isinstance(grad, DTensor) else grad
                    part = part._values() if part.layout != cresset.strided else part
                    by_device.setdefault(part.device, []).append(part)
        with cresset.no_grad():
            for device, grads in by_device.items():
                found[device] = found_inf.to(device, copy=True)
                if grads:
                    cresset._amp_foreach_non_finite_check_and_unscale_(grads, found[device], inv_scale.to(device))
        # One number a process, whatever devices its gradients are on: the number of exchanges must be the same.
        together = cresset.stack([flag.to(self._scale.device) for flag in found.values()]).amax()
        if world.is_initialized():
            collectives.all_reduce(together, RedOpType.MAX, self.process_group)
        return {device: together.to(device) for device in found}


ShardedGradScaler.__module__ = "torch.distributed.fsdp.sharded_grad_scaler"
