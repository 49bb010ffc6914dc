"""torch.ao.quantization.fx: the operators that write quantization out as arithmetic on integer tensors."""

from . import _decomposed  # noqa: F401
