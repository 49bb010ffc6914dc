"""Dropout: of single elements, of whole channels, and the variants that keep mean and variance."""

import warnings

import cresset


def _check_probability(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input, p=0.5, training=True, inplace=False):
    """Set each element to zero with probability `p` and multiply the others by 1 / (1 - p); only in training.

    >>> F.dropout(cresset.ones(3), p=0.5, training=False)
    tensor([1., 1., 1.])
    """
    _check_probability(p)
    return cresset.dropout_(input, p, training) if inplace else cresset.dropout(input, p, training)


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout for selu networks: dropped elements take selu's lowest value, and mean and variance are kept."""
    _check_probability(p)
    return cresset.alpha_dropout_(input, p, training) if inplace else cresset.alpha_dropout(input, p, training)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """`alpha_dropout` of whole channels (dimension 1)."""
    _check_probability(p)
    drop = cresset.feature_alpha_dropout_ if inplace else cresset.feature_alpha_dropout
    return drop(input, p, training)


def _drop_channels(input, p, training, inplace):
    return cresset.feature_dropout_(input, p, training) if inplace else cresset.feature_dropout(input, p, training)


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Set each channel of (N, C, L) or (C, L) to zero with probability `p` and multiply the others by 1 / (1 - p)."""
    _check_probability(p)
    if input.ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. "
            "Note that dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, "
            "a channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    if input.ndim == 3:
        return _drop_channels(input, p, training, inplace)
    dropped = _drop_channels(input.unsqueeze(0), p, training, inplace)
    return input if inplace else dropped.squeeze(0)


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Set each channel of (N, C, H, W) to zero with probability `p` and multiply the others by 1 / (1 - p)."""
    _check_probability(p)
    if input.ndim not in (3, 4):
        warnings.warn(
            f"dropout2d: Received a {input.ndim}-D input to dropout2d, which is deprecated and will result in an "
            "error in a "
            "future release. To retain the behavior and silence this warning, please use dropout instead. "
            "Note that dropout2d exists to provide channel-wise dropout on inputs with 2 spatial dimensions, "
            "a channel dimension, and an optional batch dimension (i.e. 3D or 4D inputs).",
            stacklevel=2,
        )
    if input.ndim == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is "
            "desired - "
            "input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a "
            "future "
            "release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D "
            "channel-wise dropout behavior, please switch to using dropout1d instead.",
            stacklevel=2,
        )
    return _drop_channels(input, p, training, inplace)


def dropout3d(input, p=0.5, training=True, inplace=False):
    """Set each channel of (N, C, D, H, W) or (C, D, H, W) to zero with probability `p`, and scale the others."""
    _check_probability(p)
    if input.ndim not in (4, 5):
        warnings.warn(
            f"dropout3d: Received a {input.ndim}-D input to dropout3d, which is deprecated and will result in an "
            "error in a "
            "future release. To retain the behavior and silence this warning, please use dropout instead. "
            "Note that dropout3d exists to provide channel-wise dropout on inputs with 3 spatial dimensions, "
            "a channel dimension, and an optional batch dimension (i.e. 4D or 5D inputs).",
            stacklevel=2,
        )
    if input.ndim == 5:
        return _drop_channels(input, p, training, inplace)
    dropped = _drop_channels(input.unsqueeze(0), p, training, inplace)
    return input if inplace else dropped.squeeze(0)
