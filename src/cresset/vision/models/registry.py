"""Builders of models by name, and the weights published for them."""

import fnmatch
import hashlib
import os
from enum import Enum

import cresset
from cresset import hub

from ..transforms import InterpolationMode
from ..transforms import functional as F
from .published import BASE, PUBLISHED

BUILDERS = {}
_MEAN, _STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


class ImageClassification(cresset.nn.Module):
    """What a picture goes through before a model with published weights sees it: resize, crop, scale, normalize."""

    def __init__(
        self,
        *,
        crop_size,
        resize_size=256,
        mean=tuple(_MEAN),
        std=tuple(_STD),
        interpolation=InterpolationMode.BILINEAR,
        antialias=True,
    ):
        super().__init__()
        self.crop_size, self.resize_size = [crop_size], [resize_size]
        self.mean, self.std, self.interpolation, self.antialias = list(mean), list(std), interpolation, antialias

    def forward(self, img):
        img = F.center_crop(
            F.resize(img, self.resize_size, self.interpolation, antialias=self.antialias), self.crop_size
        )
        img = img if isinstance(img, cresset.Tensor) else F.pil_to_tensor(img)
        return F.normalize(F.convert_image_dtype(img, cresset.float), self.mean, self.std)


class WeightsEnum(Enum):
    """The weights published for one model."""

    @classmethod
    def verify(cls, obj):
        """One of these weights, by itself or by its name; None stays None."""
        if obj is None or isinstance(obj, cls):
            return obj
        if isinstance(obj, str):
            name = obj.removeprefix(cls.__name__ + ".")
            if name not in cls.__members__:
                raise KeyError(f"{cls.__name__}: there are the weights {', '.join(cls.__members__)}, got {obj!r}")
            return cls[name]
        raise TypeError(f"Invalid Weight class provided; expected {cls.__name__} but received {type(obj).__name__}.")

    @property
    def url(self):
        return BASE + self.value[0]

    def transforms(self):
        """What a picture goes through before the model."""
        _, crop_size, resize_size, interpolation = self.value
        return ImageClassification(
            crop_size=crop_size, resize_size=resize_size, interpolation=InterpolationMode(interpolation)
        )

    def get_state_dict(self, progress=True, check_hash=True):
        """The weights, from the folder of checkpoints, or fetched into it."""
        return cresset.load(checkpoint(self.url, check_hash, progress), map_location="cpu", weights_only=True)

    def __repr__(self):
        return f"{type(self).__name__}.{self.name}"


def checkpoint_folder():
    """Where hub keeps weights: $TORCH_HOME/hub/checkpoints, in ~/.cache/torch unless the environment says otherwise."""
    return os.path.join(hub.get_dir(), "checkpoints")


def checkpoint(url, check_hash=True, progress=False):
    """The path of a published file. Its name ends in the first digits of its SHA-256, which are compared."""
    from ..datasets.download import fetch

    name = url.rsplit("/", 1)[-1]
    path = fetch("weights", [url], checkpoint_folder(), name, progress=progress)
    wanted = os.path.splitext(name)[0].rsplit("-", 1)[-1]
    if check_hash:
        digest = hashlib.sha256()
        with open(path, "rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
        if not digest.hexdigest().startswith(wanted):
            raise RuntimeError(
                f"weights: the SHA-256 of {path} starts with {digest.hexdigest()[: len(wanted)]}, the name says "
                f"{wanted}; the file is damaged, remove it"
            )
    return path


def weights_class(name):
    """The class of the weights of one builder: an enumeration."""
    title, members, default = PUBLISHED[name]
    # A repeated value makes an alias, so DEFAULT is the default's other name.
    return WeightsEnum(title, {**members, "DEFAULT": members[default]}, module=__name__)


WEIGHTS = {name: weights_class(name) for name in PUBLISHED}


def register_model(name=None):
    """Make a builder known to get_model and list_models under `name`, or its own."""

    def keep(builder):
        key = name or builder.__name__
        if key in BUILDERS:
            raise ValueError(f"register_model: there is a builder {key!r} already")
        BUILDERS[key] = builder
        return builder

    return keep


def build(name, make, weights, progress=True, **kwargs):
    """make(**kwargs), with the weights loaded if there are any."""
    weights = WEIGHTS[name].verify(weights)
    if weights is None:
        return make(**kwargs)
    if kwargs.setdefault("num_classes", 1000) != 1000:
        raise ValueError(
            f"{name}: The parameter 'num_classes' expected value 1000 for {weights} but got {kwargs['num_classes']} "
            "instead; swap the head after loading"
        )
    state = weights.get_state_dict(progress)
    with cresset.device("meta"):
        model = make(**kwargs)
    model.to_empty(device="cpu").load_state_dict(state)
    return model


def get_model_builder(name):
    """The function that builds the model called `name`."""
    if name.lower() not in BUILDERS:
        import difflib

        near = difflib.get_close_matches(name.lower(), BUILDERS, 1)
        raise ValueError(
            f"Unknown model {name}" + (f"; did you mean {near[0]}?" if near else "; list_models() names them")
        )
    return BUILDERS[name.lower()]


def get_model(name, **config):
    """The model called `name`.

    >>> model = cresset.vision.models.get_model("squeezenet1_1", num_classes=2)
    >>> sum(p.numel() for p in model.parameters())
    723522
    """
    return get_model_builder(name)(**config)


def get_model_weights(name):
    """The weights published for a model, or for the builder of one."""
    key = name if isinstance(name, str) else name.__name__
    get_model_builder(key)
    if key.lower() not in WEIGHTS:
        raise ValueError(f"get_model_weights: no weights are published for {key}")
    return WEIGHTS[key.lower()]


def get_weight(name):
    """The weights called "ResNet50_Weights.IMAGENET1K_V1".

    >>> cresset.vision.models.get_weight("ResNet18_Weights.DEFAULT")
    ResNet18_Weights.IMAGENET1K_V1
    """
    title, _, member = name.partition(".")
    for kind in WEIGHTS.values():
        if kind.__name__ == title and member in kind.__members__:
            return kind[member]
    raise ValueError(f"get_weight: there are no weights {name!r}")


def list_models(module=None, include=None, exclude=None):
    """The names of all models that get_model builds, in order.

    Args:
        include, exclude: patterns such as "resnet*", one or several.

    >>> cresset.vision.models.list_models(include="squeezenet*")
    ['squeezenet1_0', 'squeezenet1_1']
    """
    as_list = lambda patterns: [patterns] if isinstance(patterns, str) else list(patterns or [])
    names = [
        name for name, builder in BUILDERS.items() if module is None or builder.__module__.startswith(module.__name__)
    ]
    if include:
        names = [name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in as_list(include))]
    return sorted(name for name in names if not any(fnmatch.fnmatch(name, pattern) for pattern in as_list(exclude)))
