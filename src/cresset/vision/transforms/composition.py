"""Transform, and transforms made of others: Compose, RandomApply, RandomChoice, RandomOrder, Lambda."""

import cresset
from cresset import nn


class Transform(nn.Module):
    """What changes an image. `choose` draws what is random for an image, `change` does it; both together are the
    call."""

    def choose(self, _img):
        return None

    def change(self, img, chosen):
        raise NotImplementedError(f"{type(self).__name__}: a transform must define change")

    def forward(self, img):
        return self.change(img, self.choose(img))

    def __repr__(self):
        return f"{type(self).__name__}({self.extra_repr()})"


def chance(p):
    """True with probability `p`. Draws one number, as torchvision does."""
    return cresset.rand(1).item() < p


def uniform(low, high):
    """A number from [low, high)."""
    return float(cresset.empty(1).uniform_(float(low), float(high)).item())


def whole(low, high):
    """An integer from [low, high)."""
    return int(cresset.randint(low, high, size=(1,)).item())


def check_probability(who, p):
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{who}: p is a probability, got {p}")


def _lines(name, parts):
    return f"{name}(\n" + "".join(f"    {part}\n" for part in parts) + ")"


class Compose:
    """One transform after the other.

    >>> t = cresset.vision.transforms
    >>> t.Compose([t.CenterCrop(2), t.Lambda(lambda x: 2 * x)])(cresset.ones(1, 4, 4))
    tensor([[[2., 2.],
             [2., 2.]]])
    """

    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, img):
        for transform in self.transforms:
            img = transform(img)
        return img

    def __repr__(self):
        return _lines(type(self).__name__, self.transforms)


class Lambda:
    """A function as a transform."""

    def __init__(self, lambd):
        if not callable(lambd):
            raise TypeError(f"Lambda: expected a function, got {type(lambd).__name__}")
        self.lambd = lambd

    def __call__(self, img):
        return self.lambd(img)

    def __repr__(self):
        return f"{type(self).__name__}()"


class RandomTransforms:
    """A list of transforms of which some are used."""

    def __init__(self, transforms):
        if not isinstance(transforms, (list, tuple, nn.ModuleList)):
            raise TypeError(f"{type(self).__name__}: expected a list of transforms, got {type(transforms).__name__}")
        self.transforms = transforms

    def __repr__(self):
        return _lines(type(self).__name__, self.transforms)


class RandomApply(nn.Module):
    """All of the transforms with probability `p`, otherwise none."""

    def __init__(self, transforms, p=0.5):
        super().__init__()
        self.transforms, self.p = transforms, p

    def forward(self, img):
        if self.p < cresset.rand(1).item():
            return img
        for transform in self.transforms:
            img = transform(img)
        return img

    def __repr__(self):
        return _lines(type(self).__name__, [f"p={self.p}", *self.transforms])


class RandomChoice(RandomTransforms):
    """One of the transforms, with the probabilities in proportion to `p`. Draws from cresset's generator."""

    def __init__(self, transforms, p=None):
        super().__init__(transforms)
        if p is not None and len(p) != len(transforms):
            raise ValueError(f"RandomChoice: {len(transforms)} transforms have {len(p)} probabilities")
        self.p = p

    def __call__(self, img):
        weights = cresset.tensor(self.p or [1.0] * len(self.transforms), dtype=cresset.float32)
        return self.transforms[int(cresset.multinomial(weights, 1).item())](img)

    def __repr__(self):
        return f"{super().__repr__()}(p={self.p})"


class RandomOrder(RandomTransforms):
    """All of the transforms in a random order. Draws from cresset's generator."""

    def __call__(self, img):
        for position in cresset.randperm(len(self.transforms)).tolist():
            img = self.transforms[position](img)
        return img
