"""Transforms of what the pixels are: colors, blur, erasing."""

import math
import numbers

import cresset
from cresset import Tensor

from . import functional as F
from .composition import Transform, chance, check_probability, uniform, whole
from .geometry import Sometimes


class Grayscale(Transform):
    """An image in gray, as one channel or as three equal ones."""

    def __init__(self, num_output_channels=1):
        super().__init__()
        self.num_output_channels = num_output_channels

    def change(self, img, _chosen):
        return F.rgb_to_grayscale(img, self.num_output_channels)

    def extra_repr(self):
        return f"num_output_channels={self.num_output_channels}"


class RandomGrayscale(Sometimes):
    """An image in gray with probability `p`; the number of channels stays."""

    def __init__(self, p=0.1):
        super().__init__(p)

    def act(self, img):
        return F.rgb_to_grayscale(img, F.get_dimensions(img)[0])


class ColorJitter(Transform):
    """Brightness, contrast, saturation and hue changed at random, in a random order.

    Args:
        brightness, contrast, saturation: the factor's (least, largest), or one number x for (1 - x, 1 + x), not below
            zero.
        hue: (least, largest) turn of the circle of hues, or one number x for (-x, x); at most half a turn.
    """

    def __init__(self, brightness=0, contrast=0, saturation=0, hue=0):
        super().__init__()
        self.brightness = self._range("brightness", brightness)
        self.contrast = self._range("contrast", contrast)
        self.saturation = self._range("saturation", saturation)
        self.hue = self._range("hue", hue, 0, (-0.5, 0.5))

    @staticmethod
    def _range(name, value, middle=1, bounds=(0, math.inf)):
        if isinstance(value, numbers.Number):
            if value < 0:
                raise ValueError(f"ColorJitter: if {name} is a single number, it must be non negative, got {value}")
            value = [middle - float(value), middle + float(value)]
            if name != "hue":
                value[0] = max(value[0], 0.0)
        elif not isinstance(value, (tuple, list)) or len(value) != 2:
            raise TypeError(f"ColorJitter: {name} should be a single number or a list/tuple with length 2, got {value}")
        if not bounds[0] <= value[0] <= value[1] <= bounds[1]:
            raise ValueError(f"ColorJitter: {name} values should be between {bounds[0]} and {bounds[1]}, got {value}")
        return None if value[0] == value[1] == middle else (float(value[0]), float(value[1]))

    @staticmethod
    def get_params(brightness, contrast, saturation, hue):
        """(order, brightness, contrast, saturation, hue); None for what does not change."""
        order = cresset.randperm(4)
        return (order, *(None if ends is None else uniform(*ends) for ends in (brightness, contrast, saturation, hue)))

    def choose(self, _img):
        return self.get_params(self.brightness, self.contrast, self.saturation, self.hue)

    def change(self, img, chosen):
        order, *factors = chosen
        changes = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue)
        for position in order.tolist():
            if factors[position] is not None:
                img = changes[position](img, factors[position])
        return img

    def extra_repr(self):
        return f"brightness={self.brightness}, contrast={self.contrast}, saturation={self.saturation}, hue={self.hue}"


class GaussianBlur(Transform):
    """An image blurred with a bell whose width is drawn from `sigma`."""

    def __init__(self, kernel_size, sigma=(0.1, 2.0)):
        super().__init__()
        sizes = (kernel_size, kernel_size) if isinstance(kernel_size, int) else tuple(kernel_size)
        if len(sizes) != 2 or any(size <= 0 or size % 2 == 0 for size in sizes):
            raise ValueError(f"GaussianBlur: kernel_size must be odd and positive numbers, got {kernel_size}")
        if isinstance(sigma, numbers.Number):
            sigma = (float(sigma), float(sigma))
        elif not isinstance(sigma, (tuple, list)) or len(sigma) not in (1, 2):
            raise TypeError(f"GaussianBlur: sigma must be one or two numbers, got {sigma}")
        sigma = tuple(sigma) * 2 if len(sigma) == 1 else sigma
        if not 0.0 < sigma[0] <= sigma[1]:
            raise ValueError(f"GaussianBlur: sigma values should be positive and of the form (min, max), got {sigma}")
        self.kernel_size, self.sigma = sizes, sigma

    @staticmethod
    def get_params(sigma_min, sigma_max):
        """The width of the bell."""
        return uniform(sigma_min, sigma_max)

    def choose(self, _img):
        return self.get_params(self.sigma[0], self.sigma[1])

    def change(self, img, chosen):
        return F.gaussian_blur(img, self.kernel_size, [chosen, chosen])

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, sigma={self.sigma}"


class RandomErasing(Transform):
    """A tensor in which a random rectangle is replaced, with probability `p`.

    Args:
        scale: the least and largest share of the area.
        ratio: the least and largest height over width.
        value: a number, one for each channel, or "random" for normal noise.
    """

    def __init__(self, p=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=0, inplace=False):
        super().__init__()
        if not isinstance(value, (numbers.Number, str, tuple, list)):
            raise TypeError(f"RandomErasing: value must be a number, one for each channel, or 'random', got {value!r}")
        if isinstance(value, str) and value != "random":
            raise ValueError(f"RandomErasing: if value is a string, it is 'random', got {value!r}")
        for name, ends in (("scale", scale), ("ratio", ratio)):
            if not isinstance(ends, (tuple, list)):
                raise TypeError(f"RandomErasing: {name} must be two numbers, got {type(ends).__name__}")
        if scale[0] < 0 or scale[1] > 1:
            raise ValueError(f"RandomErasing: scale should be between 0 and 1, got {scale}")
        check_probability("RandomErasing", p)
        self.p, self.scale, self.ratio, self.value, self.inplace = p, scale, ratio, value, inplace

    @staticmethod
    def get_params(img, scale, ratio, value=None):
        """(top, left, height, width, what to write there). If ten rectangles do not fit, the whole image as it is."""
        channels, have_height, have_width = F.get_dimensions(img)
        log_ratio = cresset.log(cresset.tensor(ratio)).tolist()
        for _ in range(10):
            area = have_height * have_width * uniform(scale[0], scale[1])
            aspect = cresset.exp(cresset.empty(1).uniform_(log_ratio[0], log_ratio[1])).item()
            height, width = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if not (height < have_height and width < have_width):
                continue
            if value is None:
                written = cresset.empty([channels, height, width], dtype=cresset.float32).normal_()
            else:
                written = cresset.tensor(value)[:, None, None]
            top = whole(0, have_height - height + 1)
            return top, whole(0, have_width - width + 1), height, width, written
        return 0, 0, have_height, have_width, img

    def choose(self, img):
        if not chance(self.p):
            return None
        value = (
            [float(self.value)]
            if isinstance(self.value, numbers.Number)
            else None
            if self.value == "random"
            else list(self.value)
        )
        if value is not None and len(value) not in (1, F.get_dimensions(img)[0]):
            raise ValueError(
                f"RandomErasing: value has {len(value)} numbers, the image {F.get_dimensions(img)[0]} channels"
            )
        return self.get_params(img, self.scale, self.ratio, value)

    def change(self, img, chosen):
        if not isinstance(img, Tensor):
            raise TypeError(f"RandomErasing: expected a tensor, got {type(img).__name__}")
        return img if chosen is None else F.erase(img, *chosen, self.inplace)

    def extra_repr(self):
        return f"p={self.p}, scale={self.scale}, ratio={self.ratio}, value={self.value}, inplace={self.inplace}"


class RandomInvert(Sometimes):
    """White minus the image, with probability `p`."""

    def act(self, img):
        return F.invert(img)


class RandomPosterize(Sometimes):
    """The image with the highest `bits` bits of each number, with probability `p`."""

    def __init__(self, bits, p=0.5):
        super().__init__(p)
        self.bits = bits

    def act(self, img):
        return F.posterize(img, self.bits)

    def extra_repr(self):
        return f"bits={self.bits},p={self.p}"


class RandomSolarize(Sometimes):
    """The image with all numbers from `threshold` on inverted, with probability `p`."""

    def __init__(self, threshold, p=0.5):
        super().__init__(p)
        self.threshold = threshold

    def act(self, img):
        return F.solarize(img, self.threshold)

    def extra_repr(self):
        return f"threshold={self.threshold},p={self.p}"


class RandomAdjustSharpness(Sometimes):
    """The image sharper or blurred, with probability `p`; see functional.adjust_sharpness."""

    def __init__(self, sharpness_factor, p=0.5):
        super().__init__(p)
        self.sharpness_factor = sharpness_factor

    def act(self, img):
        return F.adjust_sharpness(img, self.sharpness_factor)

    def extra_repr(self):
        return f"sharpness_factor={self.sharpness_factor},p={self.p}"


class RandomAutocontrast(Sometimes):
    """The image with each channel stretched from black to white, with probability `p`."""

    def act(self, img):
        return F.autocontrast(img)


class RandomEqualize(Sometimes):
    """The image with each channel's levels made equally frequent, with probability `p`."""

    def act(self, img):
        return F.equalize(img)
