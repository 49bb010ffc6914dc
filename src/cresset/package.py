"""torch.package: models zipped together with the Python code of their classes. Not here, and why: to open such a file
is to run the code in it.

`import torch.package` works, so that programs that only may use it run; using it is an error that says what to do
instead.
"""

__all__ = ["EmptyMatchError", "PackageExporter", "PackageImporter", "PackagingError"]


class PackagingError(ValueError):
    """What PyTorch raises when a package cannot be written."""


class EmptyMatchError(Exception):
    """What PyTorch raises when a pattern matched no module."""


def _refusal(what):
    return NotImplementedError(
        f"{what}: torch.package files hold Python code that runs when they are opened, and cresset runs no code from "
        "files. "
        "Save the weights with torch.save(model.state_dict(), ...) beside the model's source, or the whole program "
        "with torch.jit.save or torch.onnx.export"
    )


class PackageExporter:
    """Refused: see the module."""

    def __init__(self, f, *args, **kwargs):
        raise _refusal(f"PackageExporter({f!r})")


class PackageImporter:
    """Refused: see the module."""

    def __init__(self, file_or_buffer, *args, **kwargs):
        raise _refusal(f"PackageImporter({file_or_buffer!r})")


def is_from_package(obj):
    """Whether an object's class came out of a package file: never.

    >>> cresset.package.is_from_package(nn.Linear(1, 1))
    False
    """
    return False
