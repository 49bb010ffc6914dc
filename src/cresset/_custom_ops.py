"""torch._custom_ops: the older names of what torch.library has."""

from .library import get_ctx, impl_abstract

__all__ = ["get_ctx", "impl_abstract"]
