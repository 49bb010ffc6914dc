"""Pictures: transforms, datasets, models, boxes and files. torchvision's names; pictures come from Pillow (the extra
`vision`).
"""

import importlib as _importlib

_MODULES = ("datasets", "io", "models", "ops", "transforms", "utils")
_BACKENDS = ("PIL",)

__version__ = "0.28.0"  # the torchvision whose names and behavior these are

__all__ = ["datasets", "get_image_backend", "io", "models", "ops", "set_image_backend", "transforms", "utils"]


def get_image_backend():
    """The library that reads pictures: always Pillow.

    >>> cresset.vision.get_image_backend()
    'PIL'
    """
    return "PIL"


def set_image_backend(backend):
    """Only Pillow can be chosen; the function is here for programs that say so."""
    if backend not in _BACKENDS:
        raise ValueError(f"set_image_backend: pictures are read by 'PIL', got {backend!r}")


def __getattr__(name):
    if name in _MODULES:
        return _importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_MODULES})
