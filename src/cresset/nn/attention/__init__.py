"""Choosing how scaled_dot_product_attention is computed."""

import contextlib
import enum

from ...ops.attention_choice import only_forms

__all__ = ["SDPBackend", "sdpa_kernel", "WARN_FOR_UNFUSED_KERNELS"]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.Enum):
    """The ways PyTorch knows. They have numbers and, as there, are none."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __int__(self):
        return self.value

    __index__ = __int__


_FORMS = {
    SDPBackend.MATH: "math", SDPBackend.FLASH_ATTENTION: "flash", SDPBackend.EFFICIENT_ATTENTION: "mem_efficient",
    SDPBackend.CUDNN_ATTENTION: "cudnn",
    SDPBackend.OVERRIDEABLE: "overrideable",
}  # fmt: skip


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    """Allow only the given ways inside the block; an attention that none of them can compute is an error.

    Args:
        backends: one SDPBackend, or a list of them. On the CPU there are MATH and FLASH_ATTENTION.
        set_priority: try them in this order.

    >>> with nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH):
    ...     F.scaled_dot_product_attention(*[cresset.zeros(1, 2, 4)] * 3).shape
    torch.Size([1, 2, 4])
    """
    if not isinstance(backends, (SDPBackend, list)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    backends = [backends] if isinstance(backends, SDPBackend) else backends
    for backend in backends:
        if not isinstance(backend, SDPBackend):
            raise AssertionError(
                f"Backend must be an instance of SDPBackend or a list of SDPBackend instances, got {backend!r}"
            )
    with only_forms([_FORMS[backend] for backend in backends if backend in _FORMS], set_priority):
        yield {}


def current_flash_attention_impl():
    """The name of an implementation of flash attention that was activated: None, as there is one and it is built in."""
    return None


def list_flash_attention_impls():
    """The implementations that could be activated: none besides the one that is built in."""
    return []


def activate_flash_attention_impl(impl):
    """Choose an implementation by name; only the one that is built in exists, so every name is refused."""
    raise ValueError(
        f"activate_flash_attention_impl: there is no implementation {impl!r}; the built-in one is always used"
    )


def restore_flash_attention_impl(_raise_warn=True):
    """Go back to the built-in implementation, which is in use anyway."""


def __getattr__(name):
    if name in ("bias", "flex_attention", "varlen"):
        import importlib

        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
