"""InterpolationMode: how a pixel between pixels is read."""

from enum import Enum

from ..pictures import pillow

_NUMBERS_OF_PILLOW = {
    "nearest": 0,
    "lanczos": 1,
    "bilinear": 2,
    "bicubic": 3,
    "box": 4,
    "hamming": 5,
    "nearest-exact": 0,
}


class InterpolationMode(Enum):
    """How a pixel between pixels is read. Box, hamming and lanczos are Pillow's only.

    >>> cresset.vision.transforms.InterpolationMode("bilinear")
    <InterpolationMode.BILINEAR: 'bilinear'>
    """

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"

    @property
    def pillow(self):
        """Pillow's constant."""
        return pillow("InterpolationMode").Resampling(_NUMBERS_OF_PILLOW[self.value])


def as_mode(who, interpolation):
    """The mode that is meant: an InterpolationMode, or one of Pillow's numbers."""
    if isinstance(interpolation, InterpolationMode):
        return interpolation
    if isinstance(interpolation, int) and interpolation in range(6):
        name = next(name for name, number in _NUMBERS_OF_PILLOW.items() if number == interpolation)
        return InterpolationMode(name)
    raise TypeError(
        f"{who}: interpolation must be an InterpolationMode, or one of Pillow's numbers 0 to 5, got {interpolation!r}"
    )
