"""Functions of layers without their state: `import cresset.nn.functional as F`. Each topic has its file."""

# ruff: noqa: F401  (the names are here to be imported)

from ...ops import autocast as _autocast
from ...ops import registry as _registry
from ...ops.convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_tbc,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from ...ops.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from ...show import missing_names as _missing_names
from .. import _reduction as _Reduction
from .activation import (
    celu,
    celu_,
    elu,
    elu_,
    gelu,
    glu,
    gumbel_softmax,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    hardtanh_,
    leaky_relu,
    leaky_relu_,
    log_softmax,
    logsigmoid,
    mish,
    prelu,
    relu,
    relu6,
    relu_,
    rrelu,
    rrelu_,
    selu,
    selu_,
    sigmoid,
    silu,
    softmax,
    softmin,
    softplus,
    softshrink,
    softsign,
    tanh,
    tanhshrink,
    threshold,
    threshold_,
)
from .attention import _canonical_mask, _none_or_dtype, multi_head_attention_forward, scaled_dot_product_attention
from .ctc import ctc_loss
from .distance import cosine_similarity, pairwise_distance, pdist
from .dropout import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout
from .embedding import embedding, embedding_bag, one_hot
from .grid import GRID_SAMPLE_INTERPOLATION_MODES, GRID_SAMPLE_PADDING_MODES, affine_grid, grid_sample
from .grouped import grouped_mm
from .likelihood import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    gaussian_nll_loss,
    kl_div,
    linear_cross_entropy,
    nll_loss,
    poisson_nll_loss,
)
from .linear import bilinear, linear
from .margin import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from .normalization import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    local_response_norm,
    normalize,
    rms_norm,
)
from .padding import pad
from .patches import channel_shuffle, fold, native_channel_shuffle, pixel_shuffle, pixel_unshuffle, unfold
from .regression import huber_loss, l1_loss, mse_loss, smooth_l1_loss
from .resampling import interpolate, upsample, upsample_bilinear, upsample_nearest
from .scaled import ScalingType, SwizzleType, scaled_grouped_mm, scaled_mm

# What PyTorch keeps elsewhere, and only offers here.
_HOMES = {
    **dict.fromkeys(
        """adaptive_avg_pool1d avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d
        conv_transpose2d conv_transpose3d cosine_similarity hardshrink native_channel_shuffle pairwise_distance pdist
        pixel_shuffle pixel_unshuffle prelu relu_ rrelu_ selu_ threshold_""".split(),
        "torch",
    ),
    **dict.fromkeys(
        """avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ logsigmoid one_hot scaled_dot_product_attention
        softplus softshrink""".split(),
        "torch._C._nn",
    ),
}

_autocast.apply(globals())
_registry.let_others_answer(globals(), "torch.nn.functional", homes=_HOMES)
_missing = _missing_names.of(__name__)


def __getattr__(name):
    if name == "grad":  # PyTorch's module holds that of the gradients of convolutions, too
        from .. import grad

        return grad
    return _missing(name)
