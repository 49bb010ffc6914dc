"""torchvision.transforms.v2, where it is simple: the same transforms for whole samples, such as (image, label) or a
dictionary.

Every picture in a sample, and the first plain tensor if there is no picture, is changed, all with the same random
choice; the rest stays. Boxes, masks and video have no types of their own here.
"""

from cresset import Tensor, nn, pytree

from ... import pictures
from .. import color, composition, conversion, geometry
from ..interpolation import InterpolationMode
from . import functional

__all__ = [
    "Compose",
    "Identity",
    "InterpolationMode",
    "Lambda",
    "RandomApply",
    "RandomChoice",
    "RandomOrder",
    "ToDtype",
    "ToImage",
    "ToPureTensor",
    "functional",
]


def _sample(inputs):
    return inputs if len(inputs) > 1 else inputs[0]


class _OfSamples:
    """Gives a transform of images the calls of v2."""

    def forward(self, *inputs):
        leaves, structure = pytree.tree_flatten(_sample(inputs))
        shown = [i for i, leaf in enumerate(leaves) if pictures.is_picture(leaf)]
        if not shown:
            shown = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor) or pictures.is_array(leaf)][:1]
        if not shown:
            raise TypeError(f"{type(self).__name__}: expected a picture, a tensor or an array in the sample, got none")
        chosen = self.choose(leaves[shown[0]])
        for position in shown:
            leaves[position] = self.change(leaves[position], chosen)
        return pytree.tree_unflatten(leaves, structure)


class Compose(nn.Module):
    """One transform after the other, for whole samples.

    >>> v2 = cresset.vision.transforms.v2
    >>> steps = v2.Compose([v2.CenterCrop(2), v2.ToDtype(cresset.float32, scale=True)])
    >>> image, label = steps(cresset.full((1, 4, 4), 255, dtype=cresset.uint8), 7)
    >>> image.shape, image.max(), label
    (torch.Size([1, 2, 2]), tensor(1.), 7)
    """

    def __init__(self, transforms):
        super().__init__()
        if not isinstance(transforms, (list, tuple)) or not transforms:
            raise TypeError("Compose: expected a list of transforms that is not empty")
        self.transforms = list(transforms)

    def forward(self, *inputs):
        for transform in self.transforms:
            outputs = transform(*inputs)
            inputs = outputs if len(inputs) > 1 else (outputs,)
        return outputs

    def extra_repr(self):
        return "\n".join(repr(transform) for transform in self.transforms)


class RandomApply(Compose):
    """All of the transforms with probability `p`, otherwise none."""

    def __init__(self, transforms, p=0.5):
        super().__init__(transforms)
        composition.check_probability("RandomApply", p)
        self.p = p

    def forward(self, *inputs):
        return super().forward(*inputs) if composition.chance(self.p) else _sample(inputs)


class RandomChoice(Compose):
    """One of the transforms, with the probabilities `p`."""

    def __init__(self, transforms, p=None):
        super().__init__(transforms)
        if p is not None and len(p) != len(transforms):
            raise ValueError(f"RandomChoice: {len(transforms)} transforms have {len(p)} probabilities")
        self.chooser = composition.RandomChoice([lambda _, i=i: i for i in range(len(transforms))], p)

    def forward(self, *inputs):
        return self.transforms[self.chooser(None)](*inputs)


class RandomOrder(Compose):
    """All of the transforms in a random order."""

    def forward(self, *inputs):
        order = composition.RandomOrder([lambda done, i=i: [*done, i] for i in range(len(self.transforms))])([])
        for position in order:
            outputs = self.transforms[position](*inputs)
            inputs = outputs if len(inputs) > 1 else (outputs,)
        return outputs


class Identity(_OfSamples, composition.Transform):
    """The sample as it is."""

    def forward(self, *inputs):
        return _sample(inputs)


class ToPureTensor(Identity):
    """The sample as it is: tensors are plain here already."""


class ToImage(_OfSamples, composition.Transform):
    """A picture or an array as a tensor (channels, height, width) of its own numbers."""

    def change(self, img, _chosen):
        return functional.to_image(img)


class ToDtype(_OfSamples, composition.Transform):
    """A tensor in another dtype; with `scale`, black stays black and white stays white. Pictures stay as they are."""

    def __init__(self, dtype, scale=False):
        super().__init__()
        self.dtype, self.scale = dtype, scale

    def change(self, img, _chosen):
        return functional.to_dtype(img, self.dtype, self.scale)

    def extra_repr(self):
        return f"scale={self.scale}"


class Lambda(_OfSamples, composition.Transform):
    """A function of an image as a transform."""

    def __init__(self, lambd):
        super().__init__()
        if not callable(lambd):
            raise TypeError(f"Lambda: expected a function, got {type(lambd).__name__}")
        self.lambd = lambd

    def change(self, img, _chosen):
        return self.lambd(img)


def _with_samples():
    for module in (geometry, color, conversion):
        for name, kind in list(vars(module).items()):
            public = (
                isinstance(kind, type)
                and issubclass(kind, composition.Transform)
                and kind.__module__ == module.__name__
            )
            if public and name != "Sometimes":
                globals()[name] = type(name, (_OfSamples, kind), {"__doc__": kind.__doc__, "__module__": __name__})
                __all__.append(name)


_with_samples()
