"""torchvision.transforms: what changes images before a network sees them. Random ones draw from cresset's generator."""

# ruff: noqa: F401  (the names are here to be imported)

from . import functional
from .color import (
    ColorJitter,
    GaussianBlur,
    Grayscale,
    RandomAdjustSharpness,
    RandomAutocontrast,
    RandomEqualize,
    RandomErasing,
    RandomGrayscale,
    RandomInvert,
    RandomPosterize,
    RandomSolarize,
)
from .composition import Compose, Lambda, RandomApply, RandomChoice, RandomOrder
from .conversion import ConvertImageDtype, LinearTransformation, Normalize, PILToTensor, ToPILImage, ToTensor
from .geometry import (
    CenterCrop,
    FiveCrop,
    Pad,
    RandomAffine,
    RandomCrop,
    RandomHorizontalFlip,
    RandomPerspective,
    RandomResizedCrop,
    RandomRotation,
    RandomVerticalFlip,
    Resize,
    TenCrop,
)
from .interpolation import InterpolationMode

__all__ = [
    "CenterCrop", "ColorJitter", "Compose", "ConvertImageDtype", "FiveCrop", "GaussianBlur", "Grayscale",
    "InterpolationMode", "Lambda",
    "LinearTransformation", "Normalize", "PILToTensor", "Pad", "RandomAdjustSharpness", "RandomAffine", "RandomApply",
    "RandomAutocontrast", "RandomChoice",
    "RandomCrop", "RandomEqualize", "RandomErasing", "RandomGrayscale", "RandomHorizontalFlip", "RandomInvert",
    "RandomOrder", "RandomPerspective",
    "RandomPosterize", "RandomResizedCrop", "RandomRotation", "RandomSolarize", "RandomVerticalFlip", "Resize",
    "TenCrop", "ToPILImage", "ToTensor",
]  # fmt: skip


def __getattr__(name):
    if name == "v2":
        import importlib

        return importlib.import_module(".v2", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
