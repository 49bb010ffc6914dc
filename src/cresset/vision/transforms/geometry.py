"""Transforms of where the pixels are: sizes, crops, borders, flips, turns."""

import math
import numbers

import cresset

from . import functional as F
from .composition import Transform, chance, check_probability, uniform, whole
from .interpolation import InterpolationMode, as_mode

BILINEAR, NEAREST = InterpolationMode.BILINEAR, InterpolationMode.NEAREST


def pair(who, size):
    """(height, width)."""
    if isinstance(size, numbers.Number):
        return int(size), int(size)
    if len(size) == 1:
        return size[0], size[0]
    if len(size) != 2:
        raise ValueError(f"{who}: size is one number or (height, width), got {size}")
    return tuple(size)


def symmetric_range(who, name, value, lengths=(2,)):
    """A list of numbers; one positive number x stands for [-x, x]."""
    if isinstance(value, numbers.Number):
        if value < 0:
            raise ValueError(f"{who}: if {name} is a single number, it must be positive, got {value}")
        return [-float(value), float(value)]
    if not isinstance(value, (list, tuple)):
        raise TypeError(
            f"{who}: {name} should be a sequence of length {' or '.join(map(str, lengths))}, got {type(value).__name__}"
        )
    if len(value) not in lengths:
        raise ValueError(f"{who}: {name} should be a sequence of length {' or '.join(map(str, lengths))}, got {value}")
    return [float(number) for number in value]


class Resize(Transform):
    """An image at another size; see functional.resize.

    >>> cresset.vision.transforms.Resize(2)(cresset.ones(1, 4, 6)).shape
    torch.Size([1, 2, 3])
    """

    def __init__(self, size, interpolation=BILINEAR, max_size=None, antialias=True):
        super().__init__()
        if not isinstance(size, (int, list, tuple)):
            raise TypeError(f"Resize: size must be an integer or (height, width), got {type(size).__name__}")
        if not isinstance(size, int) and len(size) not in (1, 2):
            raise ValueError(f"Resize: size is one number or (height, width), got {size}")
        self.size, self.max_size = size, max_size
        self.interpolation, self.antialias = as_mode("Resize", interpolation), antialias

    def change(self, img, _chosen):
        return F.resize(img, self.size, self.interpolation, self.max_size, self.antialias)

    def extra_repr(self):
        return (
            f"size={self.size}, interpolation={self.interpolation.value}, max_size={self.max_size}, "
            f"antialias={self.antialias}"
        )


class CenterCrop(Transform):
    """The middle of an image; zeros around it if it is smaller than that."""

    def __init__(self, size):
        super().__init__()
        self.size = pair("CenterCrop", size)

    def change(self, img, _chosen):
        return F.center_crop(img, self.size)

    def extra_repr(self):
        return f"size={self.size}"


class Pad(Transform):
    """An image with a border; see functional.pad."""

    def __init__(self, padding, fill=0, padding_mode="constant"):
        super().__init__()
        if not isinstance(padding, (numbers.Number, tuple, list)):
            raise TypeError(f"Pad: padding must be a number or a list of them, got {type(padding).__name__}")
        if not isinstance(fill, (numbers.Number, str, tuple, list)):
            raise TypeError(f"Pad: fill must be a number or a list of them, got {type(fill).__name__}")
        if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
            raise ValueError(f"Pad: padding_mode must be constant, edge, reflect or symmetric, got {padding_mode!r}")
        if not isinstance(padding, numbers.Number) and len(padding) not in (1, 2, 4):
            raise ValueError(f"Pad: padding has 1, 2 or 4 numbers, got {len(padding)}")
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def change(self, img, _chosen):
        return F.pad(img, self.padding, self.fill, self.padding_mode)

    def extra_repr(self):
        return f"padding={self.padding}, fill={self.fill}, padding_mode={self.padding_mode}"


class RandomCrop(Transform):
    """A part of an image, anywhere in it.

    Args:
        size: (height, width), or one number for both.
        padding, fill, padding_mode: a border that the image gets first; see functional.pad.
        pad_if_needed: add a border to an image that is too small, instead of an error.
    """

    def __init__(self, size, padding=None, pad_if_needed=False, fill=0, padding_mode="constant"):
        super().__init__()
        self.size = pair("RandomCrop", size)
        self.padding, self.pad_if_needed, self.fill, self.padding_mode = padding, pad_if_needed, fill, padding_mode

    @staticmethod
    def get_params(img, output_size):
        """(top, left, height, width) of a crop."""
        _, have_height, have_width = F.get_dimensions(img)
        height, width = output_size
        if have_height < height or have_width < width:
            raise ValueError(
                f"Required crop size {(height, width)} is larger than input image size {(have_height, have_width)}"
            )
        if (width, height) == (have_width, have_height):
            return 0, 0, have_height, have_width
        top = whole(0, have_height - height + 1)
        return top, whole(0, have_width - width + 1), height, width

    def with_border(self, img):
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        _, height, width = F.get_dimensions(img)
        if self.pad_if_needed and width < self.size[1]:
            img = F.pad(img, [self.size[1] - width, 0], self.fill, self.padding_mode)
        if self.pad_if_needed and height < self.size[0]:
            img = F.pad(img, [0, self.size[0] - height], self.fill, self.padding_mode)
        return img

    def choose(self, img):
        return self.get_params(self.with_border(img), self.size)

    def change(self, img, chosen):
        return F.crop(self.with_border(img), *chosen)

    def forward(self, img):
        img = self.with_border(img)
        return F.crop(img, *self.get_params(img, self.size))

    def extra_repr(self):
        return f"size={self.size}, padding={self.padding}"


class RandomResizedCrop(Transform):
    """A part of an image of random size and shape, resized to `size`.

    Args:
        scale: the least and largest share of the area.
        ratio: the least and largest width over height.
    """

    def __init__(self, size, scale=(0.08, 1.0), ratio=(3.0 / 4.0, 4.0 / 3.0), interpolation=BILINEAR, antialias=True):
        super().__init__()
        self.size = pair("RandomResizedCrop", size)
        for name, value in (("scale", scale), ("ratio", ratio)):
            if not isinstance(value, (list, tuple)):
                raise TypeError(f"RandomResizedCrop: {name} must be two numbers, got {type(value).__name__}")
        if scale[0] > scale[1] or ratio[0] > ratio[1]:
            import warnings

            warnings.warn("Scale and ratio should be of kind (min, max)", stacklevel=2)
        self.scale, self.ratio = scale, ratio
        self.interpolation, self.antialias = as_mode("RandomResizedCrop", interpolation), antialias

    @staticmethod
    def get_params(img, scale, ratio):
        """(top, left, height, width) of a crop."""
        _, have_height, have_width = F.get_dimensions(img)
        area = have_height * have_width
        log_ratio = cresset.log(cresset.tensor(ratio)).tolist()
        for _ in range(10):
            target = area * uniform(scale[0], scale[1])
            aspect = cresset.exp(cresset.empty(1).uniform_(log_ratio[0], log_ratio[1])).item()
            width, height = round(math.sqrt(target * aspect)), round(math.sqrt(target / aspect))
            if 0 < width <= have_width and 0 < height <= have_height:
                top = whole(0, have_height - height + 1)
                return top, whole(0, have_width - width + 1), height, width
        # None of ten fitted: the middle, as near to the wanted shapes as it goes.
        shape = have_width / have_height
        width, height = have_width, have_height
        if shape < min(ratio):
            height = round(width / min(ratio))
        elif shape > max(ratio):
            width = round(height * max(ratio))
        return (have_height - height) // 2, (have_width - width) // 2, height, width

    def choose(self, img):
        return self.get_params(img, self.scale, self.ratio)

    def change(self, img, chosen):
        return F.resized_crop(img, *chosen, self.size, self.interpolation, antialias=self.antialias)

    def extra_repr(self):
        scale, ratio = (tuple(round(number, 4) for number in value) for value in (self.scale, self.ratio))
        return (
            f"size={self.size}, scale={scale}, ratio={ratio}, interpolation={self.interpolation.value}, "
            f"antialias={self.antialias}"
        )


class FiveCrop(Transform):
    """The four corners and the middle of an image, as a tuple."""

    def __init__(self, size):
        super().__init__()
        self.size = pair("FiveCrop", size)

    def change(self, img, _chosen):
        return F.five_crop(img, self.size)

    def extra_repr(self):
        return f"size={self.size}"


class TenCrop(Transform):
    """FiveCrop of an image and of its mirror image."""

    def __init__(self, size, vertical_flip=False):
        super().__init__()
        self.size, self.vertical_flip = pair("TenCrop", size), vertical_flip

    def change(self, img, _chosen):
        return F.ten_crop(img, self.size, self.vertical_flip)

    def extra_repr(self):
        return f"size={self.size}, vertical_flip={self.vertical_flip}"


class Sometimes(Transform):
    """What is done with probability `p`."""

    def __init__(self, p=0.5):
        super().__init__()
        check_probability(type(self).__name__, p)
        self.p = p

    def choose(self, _img):
        return chance(self.p)

    def change(self, img, chosen):
        return self.act(img) if chosen else img

    def extra_repr(self):
        return f"p={self.p}"


class RandomHorizontalFlip(Sometimes):
    """The mirror image, with probability `p`.

    >>> cresset.vision.transforms.RandomHorizontalFlip(p=1.0)(cresset.tensor([[[1, 2, 3]]]))
    tensor([[[3, 2, 1]]])
    """

    def act(self, img):
        return F.hflip(img)


class RandomVerticalFlip(Sometimes):
    """The image upside down, with probability `p`."""

    def act(self, img):
        return F.vflip(img)


class RandomRotation(Transform):
    """An image turned by an angle of `degrees`: (least, largest), or one number d for (-d, d)."""

    def __init__(self, degrees, interpolation=NEAREST, expand=False, center=None, fill=0):
        super().__init__()
        self.degrees = symmetric_range("RandomRotation", "degrees", degrees)
        if center is not None and (not isinstance(center, (list, tuple)) or len(center) != 2):
            raise ValueError(f"RandomRotation: center must be (x, y), got {center}")
        self.interpolation = self.resample = as_mode("RandomRotation", interpolation)
        self.expand, self.center = expand, center
        self.fill = 0 if fill is None else fill

    @staticmethod
    def get_params(degrees):
        """The angle."""
        return uniform(degrees[0], degrees[1])

    def choose(self, _img):
        return self.get_params(self.degrees)

    def change(self, img, chosen):
        fill = self.fill if F.pictures.is_picture(img) else per_channel(self.fill, img)
        return F.rotate(img, chosen, self.interpolation, self.expand, self.center, fill)

    def extra_repr(self):
        center = "" if self.center is None else f", center={self.center}"
        end = "" if self.fill is None else f", fill={self.fill}"
        return f"degrees={self.degrees}, interpolation={self.interpolation.value}, expand={self.expand}{center}{end}"


def per_channel(fill, img):
    """A number as one for each channel."""
    if isinstance(fill, numbers.Number):
        return [float(fill)] * F.get_dimensions(img)[0]
    return [float(value) for value in fill]


class RandomAffine(Transform):
    """An image turned, moved, scaled and sheared at random about its middle.

    Args:
        degrees: of the angle: (least, largest), or one number d for (-d, d).
        translate: the largest shares of width and height that it moves by.
        scale: the least and largest factor.
        shear: degrees along x: one number or two; along x and y: four.
    """

    def __init__(self, degrees, translate=None, scale=None, shear=None, interpolation=NEAREST, fill=0, center=None):
        super().__init__()
        self.degrees = symmetric_range("RandomAffine", "degrees", degrees)
        if translate is not None:
            if not isinstance(translate, (list, tuple)) or len(translate) != 2:
                raise TypeError(f"RandomAffine: translate should be a sequence of length 2, got {translate}")
            if not all(0.0 <= share <= 1.0 for share in translate):
                raise ValueError(f"RandomAffine: translation values should be between 0 and 1, got {translate}")
        if scale is not None:
            if not isinstance(scale, (list, tuple)) or len(scale) != 2:
                raise TypeError(f"RandomAffine: scale should be a sequence of length 2, got {scale}")
            if not all(factor > 0 for factor in scale):
                raise ValueError(f"RandomAffine: scale values should be positive, got {scale}")
        self.translate, self.scale = translate, scale
        self.shear = shear if shear is None else symmetric_range("RandomAffine", "shear", shear, (2, 4))
        self.interpolation = self.resample = as_mode("RandomAffine", interpolation)
        self.fill, self.center = (0 if fill is None else fill), center

    @staticmethod
    def get_params(degrees, translate, scale_ranges, shears, img_size):
        """(angle, (right, down), scale, (shear x, shear y)) for an image of `img_size` (width, height)."""
        angle = uniform(degrees[0], degrees[1])
        move = (0, 0)
        if translate is not None:
            most = [float(share * length) for share, length in zip(translate, img_size)]
            move = tuple(round(uniform(-length, length)) for length in most)
        scale = 1.0 if scale_ranges is None else uniform(scale_ranges[0], scale_ranges[1])
        shear_x = shear_y = 0.0
        if shears is not None:
            shear_x = uniform(shears[0], shears[1])
            if len(shears) == 4:
                shear_y = uniform(shears[2], shears[3])
        return angle, move, scale, (shear_x, shear_y)

    def choose(self, img):
        return self.get_params(self.degrees, self.translate, self.scale, self.shear, F.get_image_size(img))

    def change(self, img, chosen):
        fill = self.fill if F.pictures.is_picture(img) else per_channel(self.fill, img)
        return F.affine(img, *chosen, interpolation=self.interpolation, fill=fill, center=self.center)

    def extra_repr(self):
        text = f"degrees={self.degrees}"
        text += "" if self.translate is None else f", translate={self.translate}"
        text += "" if self.scale is None else f", scale={self.scale}"
        text += "" if self.shear is None else f", shear={self.shear}"
        text += "" if self.interpolation == NEAREST else f", interpolation={self.interpolation.value}"
        text += "" if self.fill == 0 else f", fill={self.fill}"
        return text + ("" if self.center is None else f", center={self.center}")


class RandomPerspective(Transform):
    """An image seen from elsewhere, with probability `p`; each corner moves by up to `distortion_scale` of half a
    side."""

    def __init__(self, distortion_scale=0.5, p=0.5, interpolation=BILINEAR, fill=0):
        super().__init__()
        check_probability("RandomPerspective", p)
        self.p, self.distortion_scale, self.fill = p, distortion_scale, (0 if fill is None else fill)
        self.interpolation = as_mode("RandomPerspective", interpolation)

    @staticmethod
    def get_params(width, height, distortion_scale):
        """(the four corners, where they go), each [x, y]."""
        across, down = int(distortion_scale * (width // 2)) + 1, int(distortion_scale * (height // 2)) + 1
        upper_left = [whole(0, across), whole(0, down)]
        upper_right = [whole(width - across, width), whole(0, down)]
        lower_right = [whole(width - across, width), whole(height - down, height)]
        lower_left = [whole(0, across), whole(height - down, height)]
        corners = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
        return corners, [upper_left, upper_right, lower_right, lower_left]

    def choose(self, img):
        _, height, width = F.get_dimensions(img)
        return self.get_params(width, height, self.distortion_scale) if chance(self.p) else None

    def change(self, img, chosen):
        if chosen is None:
            return img
        fill = self.fill if F.pictures.is_picture(img) else per_channel(self.fill, img)
        return F.perspective(img, *chosen, self.interpolation, fill)

    def extra_repr(self):
        return f"p={self.p}"
