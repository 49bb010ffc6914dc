"""PyTorch's names for the places of its layers: nn.modules.conv, nn.modules.batchnorm, ... Here a layer's file is nn/<family>.py."""

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
    transformer,
)
from ..module import Module, consume_prefix_in_state_dict_if_present

_PLACES = {
    "activation": (activation, multihead), "adaptive": (loss,), "batchnorm": (norm,), "channelshuffle": (reshaping,),
    "container": (containers,), "conv": (conv,), "distance": (reshaping,), "dropout": (dropout,), "flatten": (reshaping,),
    "fold": (reshaping,), "instancenorm": (norm,), "lazy": (lazy,), "linear": (linear,), "loss": (loss,), "module": (hooks, module),
    "normalization": (norm,), "padding": (padding,), "pixelshuffle": (reshaping,), "pooling": (pooling,), "rnn": (rnn,),
    "sparse": (embedding,), "transformer": (transformer,), "upsampling": (reshaping,), "utils": (sizes,),
}  # fmt: skip

_made = {}
for _name, _sources in _PLACES.items():
    _place = _made[_name] = types.ModuleType(f"{__name__}.{_name}", f"What PyTorch has in nn.modules.{_name}.")
    for _source in _sources:
        _place.__dict__.update({key: value for key, value in vars(_source).items() if not key.startswith("__")})
    sys.modules[_place.__name__] = _place
    # The layers themselves are here as well; a file and a layer never have the same name.
    globals().update({k: v for k, v in vars(_place).items() if isinstance(v, type) and issubclass(v, Module)})

_made["utils"].consume_prefix_in_state_dict_if_present = consume_prefix_in_state_dict_if_present
globals().update(_made)
