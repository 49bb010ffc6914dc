"""torch._custom_op: operators of one's own as PyTorch made them before torch.library.custom_op."""

from . import impl  # noqa: F401  programs reach it as torch._custom_op.impl
