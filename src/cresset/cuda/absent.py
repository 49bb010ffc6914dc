"""The one answer of everything that needs a CUDA device, where there is none."""

from .. import _native

NOT_COMPILED = "Torch not compiled with CUDA enabled"


def require():
    """Raise what PyTorch's CPU build raises, and say why there is no device."""
    if _native.cuda.device_count() == 0:
        problem = _native.cuda.problem() or "the NVIDIA driver has no device"
        raise AssertionError(f"{NOT_COMPILED}, or no device: {problem}")


def require_for(name):
    """The same for a class, which PyTorch's CPU build cannot make."""
    if _native.cuda.device_count() == 0:
        raise RuntimeError(
            f"torch.cuda.{name} requires CUDA support, and there is no CUDA device; Tried to instantiate dummy base "
            f"class {name}"
        )
