"""What a GradScaler does to gradients and to its scale, as functions: on CUDA one launch each, and the host does not
wait.
"""

import math

import cresset

from .. import _native
from .registry import function


@function
def _amp_foreach_non_finite_check_and_unscale_(self, found_inf, inv_scale):
    """Multiply each tensor by `inv_scale` in place; `found_inf` becomes 1 if an element was not finite.

    >>> grads, found = [cresset.tensor([2.0, 4.0])], cresset.tensor(0.0)
    >>> cresset._amp_foreach_non_finite_check_and_unscale_(grads, found, cresset.tensor(0.5))
    >>> grads, found
    ([tensor([1., 2.])], tensor(0.))
    """
    kinds = {}
    for tensor in self:
        kinds.setdefault((tensor.device, tensor.dtype), []).append(tensor)
    for tensors in kinds.values():
        if tensors[0].is_cuda and _native.unscale(tensors, inv_scale, found_inf) is None:
            continue
        for tensor in tensors:
            found_inf.copy_(cresset.maximum(found_inf, (~tensor.isfinite().all()).to(found_inf.dtype)))
            tensor.mul_(inv_scale)


@function
def _amp_update_scale_(self, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval):
    """The next scale, in place: smaller after an overflow, larger after `growth_interval` good steps in a row.

    >>> growth = cresset.tensor(0, dtype=cresset.int32)
    >>> cresset._amp_update_scale_(cresset.tensor(4.0), growth, cresset.tensor(1.0), 2.0, 0.5, 2000)
    tensor(2.)
    """
    if self.is_cuda:
        numbers = (scale_growth_factor, scale_backoff_factor, growth_interval)
        if _native.update_scale(self, growth_tracker, found_inf, *numbers) is None:
            return self
    if found_inf.item():
        self.mul_(scale_backoff_factor)
        growth_tracker.zero_()
    elif growth_tracker.item() + 1 == growth_interval:
        grown = (self * scale_growth_factor).item()
        if math.isfinite(grown):
            self.fill_(grown)
        growth_tracker.zero_()
    else:
        growth_tracker.add_(1)
    return self
