"""Transforms between pictures, arrays and tensors, and of a tensor's numbers."""

from . import functional as F
from .composition import Transform


class ToTensor(Transform):
    """A picture or an array (height, width, channels) as a tensor (channels, height, width); bytes become numbers from
    0 to 1.
    """

    def change(self, img, _chosen):
        return F.to_tensor(img)


class PILToTensor(Transform):
    """A picture as a tensor (channels, height, width) of the picture's own numbers."""

    def change(self, img, _chosen):
        return F.pil_to_tensor(img)


class ToPILImage(Transform):
    """A tensor (channels, height, width), or an array (height, width, channels), as a picture of Pillow."""

    def __init__(self, mode=None):
        super().__init__()
        self.mode = mode

    def change(self, img, _chosen):
        return F.to_pil_image(img, self.mode)

    def extra_repr(self):
        return "" if self.mode is None else f"mode={self.mode}"


class ConvertImageDtype(Transform):
    """A tensor in another dtype, black staying black and white staying white."""

    def __init__(self, dtype):
        super().__init__()
        self.dtype = dtype

    def change(self, img, _chosen):
        return F.convert_image_dtype(img, self.dtype)


class Normalize(Transform):
    """(image - mean) / std, channel by channel.

    >>> cresset.vision.transforms.Normalize(mean=[0.5], std=[0.25])(cresset.ones(1, 1, 2))
    tensor([[[2., 2.]]])
    """

    def __init__(self, mean, std, inplace=False):
        super().__init__()
        self.mean, self.std, self.inplace = mean, std, inplace

    def change(self, img, _chosen):
        return F.normalize(img, self.mean, self.std, self.inplace)

    def extra_repr(self):
        return f"mean={self.mean}, std={self.std}"


class LinearTransformation(Transform):
    """(flattened image - mean_vector) @ transformation_matrix: whitening, for one."""

    def __init__(self, transformation_matrix, mean_vector):
        super().__init__()
        rows, columns = transformation_matrix.shape
        if rows != columns or mean_vector.shape[0] != rows:
            raise ValueError(
                "LinearTransformation: expected a square matrix and a vector as long, got shapes "
                f"{tuple(transformation_matrix.shape)} and {tuple(mean_vector.shape)}"
            )
        self.transformation_matrix, self.mean_vector = transformation_matrix, mean_vector

    def change(self, img, _chosen):
        numbers = img.shape[-3] * img.shape[-2] * img.shape[-1]
        if numbers != self.transformation_matrix.shape[0]:
            raise ValueError(
                f"LinearTransformation: the matrix is for {self.transformation_matrix.shape[0]} numbers, the image "
                f"has {numbers}"
            )
        return ((img.reshape(-1, numbers) - self.mean_vector) @ self.transformation_matrix).view(img.shape)

    def extra_repr(self):
        return f"transformation_matrix={self.transformation_matrix.tolist()}, mean_vector={self.mean_vector.tolist()}"
