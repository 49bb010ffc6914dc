"""Summaries as objects: what is in an event file, as TensorBoard's Summary messages. They are of the package
tensorboard; SummaryWriter writes the same bytes without it.
"""

import functools

from . import encoding, tensors
from .encoding import scale_of as _calc_scale_factor  # noqa: F401  (PyTorch's name for it)
from .tensors import half_to_int, int_to_half

__all__ = ["half_to_int", "int_to_half"]


def _parsed(encoded):
    from tensorboard.compat.proto.summary_pb2 import Summary

    if isinstance(encoded, tuple):
        return tuple(Summary.FromString(part) for part in encoded)
    return Summary.FromString(encoded)


def _as_object(encode):
    @functools.wraps(encode)
    def summary(*args, **kwargs):
        return _parsed(encode(*args, **kwargs))

    summary.__module__ = __name__
    return summary


for _home, _names in (
    (encoding, "scalar histogram histogram_raw image image_boxes video audio text pr_curve pr_curve_raw hparams"),
    (tensors, "tensor_proto mesh custom_scalars"),
):
    for _name in _names.split():
        globals()[_name] = _as_object(getattr(_home, _name))
        __all__.append(_name)
