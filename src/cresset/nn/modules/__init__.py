"""PyTorch's names for the places of its layers: nn.modules.conv, nn.modules.batchnorm, ... Here a layer's file is
nn/<family>.py.
"""

import sys
import types

from .. import (
    activation,
    containers,
    conv,
    dropout,
    embedding,
    hooks,
    lazy,
    linear,
    loss,
    module,
    multihead,
    norm,
    padding,
    pooling,
    reshaping,
    rnn,
    sizes,
    state,
    transformer,
)
from ..module import Module
from ..state import consume_prefix_in_state_dict_if_present

# PyTorch's place -> the files here. All their classes have their home there, unless LAYERS says otherwise.
_FILES = {
    "activation": (activation, multihead), "container": (containers,), "conv": (conv,), "dropout": (dropout,),
    "lazy": (lazy,), "linear": (linear,),
    "loss": (loss,), "module": (hooks, module, state), "padding": (padding,), "pooling": (pooling,), "rnn": (rnn,),
    "sparse": (embedding,),
    "transformer": (transformer,), "utils": (sizes,), "adaptive": (loss,), "batchnorm": (norm,),
    "instancenorm": (norm,), "normalization": (norm,),
    "channelshuffle": (reshaping,), "distance": (reshaping,), "flatten": (reshaping,), "fold": (reshaping,),
    "pixelshuffle": (reshaping,),
    "upsampling": (reshaping,),
}  # fmt: skip
_LAYERS = {
    "adaptive": "AdaptiveLogSoftmaxWithLoss",
    "batchnorm": ("_NormBase _BatchNorm BatchNorm1d BatchNorm2d BatchNorm3d LazyBatchNorm1d LazyBatchNorm2d "
                 "LazyBatchNorm3d SyncBatchNorm"),
    "instancenorm": ("_InstanceNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d LazyInstanceNorm2d "
                    "LazyInstanceNorm3d"),
    "normalization": "CrossMapLRN2d GroupNorm LayerNorm LocalResponseNorm RMSNorm",
    "channelshuffle": "ChannelShuffle", "distance": "CosineSimilarity PairwiseDistance", "flatten": "Flatten Unflatten",
    "fold": "Fold Unfold",
    "pixelshuffle": "PixelShuffle PixelUnshuffle", "upsampling": "Upsample UpsamplingBilinear2d UpsamplingNearest2d",
}  # fmt: skip
_homes = {name: place for place, names in _LAYERS.items() for name in names.split()}
_homes_of_files = {file.__name__: place for place, files in reversed(_FILES.items()) for file in files}


def home_of(module, name):
    """PyTorch's place of the class `name` of the file `module`, as in "torch.nn.modules.conv"; None for what is no
    layer's file.

    >>> cresset.nn.modules.home_of("cresset.nn.norm", "LayerNorm")
    'torch.nn.modules.normalization'
    """
    place = _homes_of_files.get(module)
    return None if place is None else f"torch.nn.modules.{_homes.get(name, place)}"


def name_of(kind):
    """The dotted name of a class of modules, with PyTorch's place for a layer.

    >>> cresset.nn.modules.name_of(nn.LayerNorm)
    'torch.nn.modules.normalization.LayerNorm'
    """
    home = home_of(kind.__module__, kind.__name__) or kind.__module__.replace("cresset.", "torch.", 1)
    return f"{home}.{kind.__qualname__}"


_made = {}
for _name, _sources in _FILES.items():
    _place = _made[_name] = types.ModuleType(f"{__name__}.{_name}", f"What PyTorch has in nn.modules.{_name}.")
    vars(_place)["__file__"] = _sources[0].__file__
    for _source in _sources:
        _place.__dict__.update({key: value for key, value in vars(_source).items() if not key.startswith("__")})
    sys.modules[_place.__name__] = _place
    # The layers themselves are here as well; a file and a layer never have the same name.
    globals().update({k: v for k, v in vars(_place).items() if isinstance(v, type) and issubclass(v, Module)})

vars(_made["module"])["_EXTRA_STATE_KEY_SUFFIX"] = state.EXTRA_STATE
vars(_made["module"])["_addindent"] = module._indented
for _name in (
    "FORWARD_PRE_HOOKS", "FORWARD_HOOKS", "FORWARD_HOOKS_WITH_KWARGS", "FORWARD_HOOKS_ALWAYS_CALLED",
    "BACKWARD_PRE_HOOKS", "BACKWARD_HOOKS",
    "BUFFER_REGISTRATION_HOOKS", "MODULE_REGISTRATION_HOOKS", "PARAMETER_REGISTRATION_HOOKS",
):  # fmt: skip
    vars(_made["module"])["_global_" + _name.lower()] = getattr(hooks, _name)
vars(_made["transformer"])["_get_activation_fn"] = transformer._activation
vars(_made["utils"])["consume_prefix_in_state_dict_if_present"] = consume_prefix_in_state_dict_if_present
globals().update(_made)
