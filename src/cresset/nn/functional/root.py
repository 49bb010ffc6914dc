"""What PyTorch offers as torch.<name> as well, there with the reduction as a number: 0 none, 1 mean, 2 sum.

Its default there is 0, unlike the one in nn.functional.
"""

from ...ops.autocast import apply, autocast
from ...ops.registry import let_others_answer
from . import grid as _grid
from . import likelihood as _likelihood
from . import margin as _margin
from .activation import prelu
from .ctc import ctc_loss as _ctc_loss
from .distance import cosine_similarity, pairwise_distance
from .linear import bilinear
from .padding import pad as _pad
from .patches import channel_shuffle, native_channel_shuffle, pixel_shuffle, pixel_unshuffle
from .reduction import reduce_loss


def _named(reduction):
    """The reduction with a number; those that stand for none give all losses. In words it is asked for in
    nn.functional.
    """
    if isinstance(reduction, bool) or not isinstance(reduction, int):
        raise TypeError(
            f"argument 'reduction' must be int, not {type(reduction).__name__}: 0 for none, 1 for mean, 2 for sum"
        )
    return {1: "mean", 2: "sum"}.get(reduction, "none")


@autocast("float32")
def binary_cross_entropy_with_logits(input, target, weight=None, pos_weight=None, reduction=0):
    """nn.functional.binary_cross_entropy_with_logits, of shapes that may broadcast."""
    loss = _likelihood.losses_of_logits(input, target, weight, pos_weight)
    return reduce_loss(loss, _named(reduction), "BinaryCrossEntropyWithLogitsBackward0")


@autocast("float32")
def kl_div(input, target, reduction=0, *, log_target=False):
    """nn.functional.kl_div."""
    loss = _likelihood.kl_div_of_each(input, target, log_target)
    return reduce_loss(loss, _named(reduction))


@autocast("float32")
def poisson_nll_loss(input, target, log_input, full, eps, reduction):
    """nn.functional.poisson_nll_loss."""
    return _likelihood.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_named(reduction))


@autocast("float32")
def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction=0):
    """nn.functional.cosine_embedding_loss."""
    return _margin.cosine_embedding_loss(input1, input2, target, margin, reduction=_named(reduction))


@autocast("float32")
def hinge_embedding_loss(input, target, margin=1.0, reduction=0):
    """nn.functional.hinge_embedding_loss."""
    return _margin.hinge_embedding_loss(input, target, margin, reduction=_named(reduction))


@autocast("float32")
def margin_ranking_loss(input1, input2, target, margin=0.0, reduction=0):
    """nn.functional.margin_ranking_loss."""
    loss = (-target * (input1 - input2) + float(margin)).clamp_min(0)
    return reduce_loss(loss, _named(reduction))


@autocast("float32")
def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, reduction=0):
    """nn.functional.triplet_margin_loss."""
    return _margin.triplet_of_any_margin(anchor, positive, negative, margin, p, eps, swap, _named(reduction))


@autocast(cpu="float32")
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=0, zero_infinity=False):
    """nn.functional.ctc_loss."""
    return _ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _named(reduction), zero_infinity)


def constant_pad_nd(input, pad, value=0):
    """nn.functional.pad with mode="constant"."""
    return _pad(input, pad, "constant", value)


@autocast(cpu="float32", cuda="promote")
def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    """nn.functional.grid_sample, with its modes as numbers."""
    modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    return _grid.grid_sample(input, grid, modes[interpolation_mode], paddings[padding_mode], align_corners)


def grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners):
    """`grid_sampler` of images."""
    return _sampled(4, input, grid, interpolation_mode, padding_mode, align_corners)


def grid_sampler_3d(input, grid, interpolation_mode, padding_mode, align_corners):
    """`grid_sampler` of volumes."""
    return _sampled(5, input, grid, interpolation_mode, padding_mode, align_corners)


def _sampled(dims, input, grid, *rest):
    _grid.check_places(input, grid)
    if input.dim() != dims:
        raise RuntimeError(f"grid_sampler_{dims - 2}d: expected a {dims}-d input, got shape {tuple(input.shape)}")
    return grid_sampler(input, grid, *rest)


def affine_grid_generator(theta, size, align_corners):
    """nn.functional.affine_grid."""
    return _grid.affine_grid(theta, size, align_corners)


functions = {
    f.__name__: f
    for f in (
        prelu, binary_cross_entropy_with_logits, kl_div, poisson_nll_loss,
        cosine_embedding_loss, hinge_embedding_loss, margin_ranking_loss, triplet_margin_loss, ctc_loss,
        constant_pad_nd,
        grid_sampler, grid_sampler_2d, grid_sampler_3d, affine_grid_generator, bilinear, cosine_similarity,
        pairwise_distance, channel_shuffle,
        native_channel_shuffle, pixel_shuffle, pixel_unshuffle,
    )
}  # fmt: skip
apply(functions)
let_others_answer(functions)
