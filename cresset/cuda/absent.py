"""The one answer of everything that needs a CUDA device, as long as there is no backend."""

NOT_COMPILED = "Torch not compiled with CUDA enabled"


def require():
    """Raise what PyTorch's CPU build raises."""
    raise AssertionError(NOT_COMPILED)


class Absent:
    """A class that can be named and subclassed, but not made."""

    def __new__(cls, *args, **kwargs):
        raise RuntimeError(f"torch.cuda.{cls.__name__} requires CUDA support, which this build does not have")
