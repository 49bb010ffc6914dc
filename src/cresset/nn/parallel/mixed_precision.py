"""Mixed precision of DistributedDataParallel: forward computes with parameters of another dtype, the parameters
themselves keep theirs."""

import dataclasses
from typing import Any

import cresset

from ... import pytree
from ..utils.stateless import _functional_call


@dataclasses.dataclass
class _MixedPrecision:
    """Which dtypes are used; None keeps the model's own. Only floating-point tensors change.

    Args:
        param_dtype: of parameters and inputs while forward and backward compute.
        reduce_dtype: of gradients while they travel; `param_dtype` if None.
        buffer_dtype: of buffers.
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None

    def cast_buffers(self, buffers):
        """Give buffers their dtype, in place."""
        for buffer in buffers:
            if self.buffer_dtype is not None and buffer.is_floating_point():
                buffer.data = buffer.data.to(self.buffer_dtype)

    def call(self, module, ignored, inputs, kwargs):
        """The module's result with parameters (but the ignored, by name) and inputs of `param_dtype`: gradients come
        back in their own."""
        if self.param_dtype is None:
            return module(*inputs, **kwargs)
        named = [(name, p) for name, p in module.named_parameters() if name not in ignored and p.is_floating_point()]
        cast = {name: p.to(self.param_dtype) for name, p in named}
        inputs, kwargs = pytree.tree_map(self._cast, (inputs, kwargs))
        return _functional_call(module, cast, inputs, kwargs)

    def _cast(self, value):
        floating = isinstance(value, cresset.Tensor) and value.is_floating_point()
        return value.to(self.param_dtype) if floating else value

    @property
    def travelling(self):
        """The dtype in which gradients travel; None is their own."""
        return self.reduce_dtype or self.param_dtype

    def cast_gradients(self, flat):
        """Gradients in the dtype in which they travel."""
        return flat if self.travelling is None else flat.to(self.travelling)
