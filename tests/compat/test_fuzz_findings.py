"""What random calls (fuzz/calls.py) once found, each as one small program that gives the same in both."""

import warnings

import numpy as np
import pytest

import cresset

torch = pytest.importorskip("torch")

FINDINGS = {
    "the frequencies of less than nothing": lambda t: t.fft.rfftfreq(-1),
    "the norm of a single number does not overflow": lambda t: t.nn.functional.normalize(t.tensor([[1e30], [-2.0]])),
    "a quotient of halves is a half before it is cut": lambda t: t.div(
        t.arange(-99, 99).to(t.bfloat16), t.full((198,), 0.4004, dtype=t.bfloat16), rounding_mode="trunc"
    ).float(),
    "the losses of the root namespace do not reduce by default": lambda t: t.kl_div(t.ones(2, 3), t.ones(2, 3)),
    "margin_ranking_loss broadcasts there": lambda t: t.margin_ranking_loss(t.ones(1, 4), t.zeros(1), -t.ones(1)),
    "inner of a number promotes": lambda t: t.inner(t.tensor(2.0, dtype=t.float16), t.tensor(3.0)),
    "an index may be a tensor of one element": lambda t: t.arange(5).select(0, t.tensor([2])),
    "a vector with nan is not shrunk": lambda t: t.tensor([[float("nan"), 1.0], [3.0, 4.0]]).renorm(2, 0, 1.0),
    "dropout3d takes four or fewer dimensions as unbatched": lambda t: seeded(
        t, lambda: t.nn.functional.dropout3d(t.ones(40, 2))
    ),
    "a product of truth values": lambda t: t.tensor([-0.5, 0.5]).prod(dtype=t.bool),
    "view_copy takes what reshape takes": lambda t: t.view_copy(t.arange(6).reshape(2, 3).t(), (2, 3)),
    "channel_shuffle of nothing": lambda t: t.channel_shuffle(t.ones(0, 4, 2), 2),
    "native_dropout looks at p in training only": lambda t: t.native_dropout(t.ones(3), 2.0, False)[0],
    "a loss promotes as if both had one shape": lambda t: t.nn.functional.mse_loss(
        t.tensor(1.0), t.ones(3, dtype=t.bfloat16)
    ),
    "the next half is not the next float": lambda t: t.nextafter(
        t.tensor([1.0, float("inf"), 0.0], dtype=t.bfloat16), t.tensor([2.0, 0.0, -1.0], dtype=t.bfloat16)
    ).float(),
    "a hash of one number": lambda t: t.hash_tensor(t.tensor(2.5), 0).to(t.int64),
    "one size for a transform along one dimension": lambda t: t.fft.rfftn(t.ones(3, 4), 2, 0).real,
    "truth values are searched": lambda t: t.bucketize(True, t.tensor([0.0, 1.0])),
    "antialias keeps pixel centers with align_corners": lambda t: t.nn.functional.interpolate(
        t.arange(12.0).reshape(1, 1, 3, 4), scale_factor=2.0, mode="bicubic", align_corners=True, antialias=True
    ),
    "a number that an integer dtype cannot hold wraps before it divides": lambda t: (
        t.tensor([1, 5, 4], dtype=t.uint8) // -4
    ),
    "a wider number of no dimension wraps too": lambda t: (
        t.tensor([1, 5, 100], dtype=t.int8) % t.tensor(300, dtype=t.int16)
    ),
    "shifts take what is left of a number": lambda t: t.tensor([3, 5], dtype=t.int8) << 257,
    "maximum takes what is left of a number": lambda t: t.maximum(t.tensor([1, 5], dtype=t.uint8), t.tensor(-4)),
    "one truth value can be had of a space": lambda t: t.logspace(2, 1, 1, dtype=t.bool),
    "the only number of a space is not rounded before it is a power": lambda t: t.logspace(0.5, 1, 1, dtype=t.int64),
    "no channels under an adaptive maximum": lambda t: t.nn.functional.adaptive_max_pool3d(t.ones(0, 4, 3, 3), 3),
    "no channels under an adaptive mean": lambda t: t.nn.functional.adaptive_avg_pool2d(t.ones(2, 0, 3, 3), 3),
    "a size may be a tensor of no dimension": lambda t: t.nn.functional.adaptive_avg_pool1d(t.ones(2, 6), t.tensor(3)),
    "a window may be a tensor of no dimension": lambda t: t.nn.functional.max_pool2d(t.ones(1, 4, 4), t.tensor(2)),
    "a step may be a tensor of no dimension": lambda t: t.conv2d(
        t.ones(1, 4, 4), t.ones(1, 1, 2, 2), None, t.tensor(2)
    ),
    "a fraction may be given as a huge integer": lambda t: t.nn.functional.layer_norm(
        t.ones(2, 3), [3], None, None, 1 << 70
    ),
    "a step beyond the input leads nowhere": lambda t: t.conv1d(t.ones(1, 3, 3), t.ones(2, 3, 3), None, (1 << 63) - 1),
    "what is false in Python does not average": lambda t: t.nn.functional.smooth_l1_loss(t.ones(2), t.zeros(2), ""),
    "a margin may be a truth value": lambda t: t.nn.functional.multi_margin_loss(
        t.tensor([[1.0, 2.0]]), t.tensor([0]), margin=True
    ),
    "dynamic quantization to half precision": lambda t: t.quantize_per_tensor_dynamic(
        t.tensor([0.1, 2.0]), t.float16, True
    ),
    "tensorsolve of nothing": lambda t: t.linalg.tensorsolve(t.ones(0, 2, 2), t.ones(0, 1), [-1, 0]),
    "a reduction of another number is none": lambda t: t.cosine_embedding_loss(
        t.ones(2, 3), t.ones(2, 3), t.ones(2), 0.0, 7
    ),
    "attention with one key, whatever its score": lambda t: t.nn.functional.scaled_dot_product_attention(
        t.tensor([[[1.2, 0.7], [-1.7, 0.3]]]), t.tensor([[[1e30, 1.0]]]), t.tensor([[[1.0, 2.25]]])
    ),
    "the pseudo-inverse of an infinity comes back": lambda t: t.linalg.pinv(
        t.tensor([[2.0, -0.1, 2.1, -4.3], [0.5, -0.3, 0.6, -1.3], [-float("inf"), 0.0, 3.8, 0.2], [3.8, 1.0, 0.3, 3.4]])
    ),
    "a number divided by a tensor is rounded": lambda t: t.div(7, t.tensor([4, -3, 2]), rounding_mode="floor"),
    "and so by its other name": lambda t: t.divide(7.5, t.tensor([4, -3, 2]), rounding_mode="trunc"),
    "two numbers": lambda t: t.div(-7, 2, rounding_mode="floor"),
    "a number that wraps before it is divided": lambda t: t.div(
        300, t.tensor([3], dtype=t.int8), rounding_mode="floor"
    ),
    "a logit for many targets": lambda t: t.binary_cross_entropy_with_logits(
        t.tensor([0.5]), t.tensor([[0.0, 1.0]]).t()
    ),
    "a bound as a huge integer": lambda t: t.isclose(t.tensor([1.0, 2.0]), t.tensor([1.5, float("nan")]), 0, 1 << 70),
    "the factor in front of what it multiplies": lambda t: t.sub(7, 2, t.tensor([4, -3, 2])),
    "no dilation of nothing": lambda t: t.conv2d(t.ones(0, 3, 5, 5), t.ones(2, 3, 2, 2), dilation=0),
    "two numbers need no name for alpha": lambda t: t.sub(t.tensor([1.0, 2.0]), 2, 3),
    "three numbers": lambda t: t.add(1, 2, 3.5),
    "nor do they in subtract, where alpha is the last": lambda t: t.subtract(t.tensor([1]), 2.5, 3),
    "rsub, too": lambda t: t.rsub(t.tensor([1.0, 2.0]), 2, 3),
    "nothing has no spread, whatever the correction": lambda t: t.stack(t.var_mean(t.ones(0, 2), 0, correction=-1)),
    "the loss of Huber has the dtype of the input": lambda t: t.nn.functional.huber_loss(
        t.ones(3), t.zeros(4, 3, dtype=t.float64)
    ),
    "a grid of no dimension": lambda t: t.histogramdd(t.ones(4, 0), 2)[0],
    "places with more dimensions than the values": lambda t: t.cumulative_trapezoid(
        t.tensor([[1.0, 2.0]]), t.arange(12.0).reshape(2, 3, 2) ** 2
    ),
    "one place for several values": lambda t: t.trapezoid(t.tensor([1.0, 2.0]), t.tensor([[1.0, 3.0]])),
    "each number is made whole before the sum": lambda t: t.nansum(t.tensor([1.75, 1.75, -0.5]), dtype=t.int64),
    "dropout of integers, when nothing is dropped": lambda t: t.native_dropout(t.tensor([1, 2]), 0.5, False)[0],
    "the mask of nothing": lambda t: t.native_dropout(t.ones(0, dtype=t.bfloat16), 0.5, True)[1].float(),
    "a truth value as a factor": lambda t: t.zeros(3, dtype=t.int64).index_add(
        0, t.tensor([1]), t.tensor([2]), alpha=True
    ),
    "a margin below zero": lambda t: t.triplet_margin_loss(t.ones(2, 3), t.zeros(2, 3), t.ones(2, 3), -1.0),
    "a half is a truth value": lambda t: t.tensor([[0.25, -0.25], [0.0, 0.0]]).sum(1, dtype=t.bool),
    "the norm of infinite order is the largest": lambda t: t.nn.functional.lp_pool2d(
        -t.arange(8.0).reshape(1, 2, 2, 2), float("inf"), 2
    ),
    "and of the negative one the least": lambda t: t.nn.functional.lp_pool1d(
        -t.arange(8.0).reshape(1, 2, 4), -float("inf"), 2
    ),
    "the factors of a singular matrix": lambda t: t.lu(t.ones(2, 2))[0],
    "one mean of nothing": lambda t: t.nn.functional.adaptive_avg_pool2d(t.ones(2, 4, 0), 1),
    "all is dropped, and infinity times zero is nan": lambda t: t.dropout_(t.tensor([float("inf"), 1.0]), 1.0, True),
    "one number is a size": lambda t: t.sparse_coo_tensor(3).to_dense(),
    "an expanded dimension stays in its place": lambda t: t.tensor(t.ones(1, 4).expand(3, 4).dim_order()),
    "a number among halves is a half": lambda t: compared_with_a_tenth(t.arange(0.0, 2.0, 0.1).to(t.bfloat16), t),
    "halves divided by a number": lambda t: with_a_number(t.arange(1, 99).to(t.bfloat16), t),
    "integers among halves": lambda t: t.arange(250, 270) - t.ones(20, dtype=t.bfloat16),
    "all is dropped, of truth values, too": lambda t: t.dropout_(t.tensor([True, False]), 1.0, True),
    "points without coordinates": lambda t: t.pdist(t.ones(3, 0), float("inf")),
    "a size in a tensor": lambda t: t.sparse_coo_tensor(t.tensor(3)).to_dense(),
    "the factor of nothing": lambda t: t.cholesky(t.ones(0)),
    "a power in a tensor": lambda t: t.linalg.matrix_power(t.tensor([[1, 1], [0, 1]]), t.tensor(5, dtype=t.int8)),
    "an integral of halves": lambda t: t.trapezoid(
        t.tensor([[-1.7109375, -0.58984375, 0.0703125, 2.890625]], dtype=t.bfloat16)
    ),
    "a product that does not count": lambda t: t.addmm(
        t.ones(1, 1), t.tensor([[float("inf")]]), t.zeros(1, 1), alpha=0, beta=2
    ),
    "the next half towards an integer": lambda t: t.nextafter(
        t.tensor([float("inf"), 1.0], dtype=t.float16), t.tensor([5])
    ),
    "a margin is a fraction": lambda t: t.nn.functional.margin_ranking_loss(
        t.tensor([1, 5]), t.tensor([3, 3]), t.tensor([1, 1])
    ),
    "a window's shape as a huge integer": lambda t: t.kaiser_window(3, True, 1 << 70).isnan(),
    "two vectors have one dimension": lambda t: t.linalg.vecdot(t.tensor([1.0, 2.0]), t.tensor([3.0, 4.0]), dim=5),
    "a weight does not promote a loss": lambda t: t.nn.functional.binary_cross_entropy_with_logits(
        t.tensor([0.5]).to(t.bfloat16), t.tensor([1.0]).to(t.bfloat16), t.tensor([2.0])
    ),
    "nor does a target": lambda t: t.nn.functional.soft_margin_loss(t.tensor([0.0]).to(t.bfloat16), t.tensor([1.0])),
    "the classes are the input's": lambda t: t.nn.functional.multilabel_soft_margin_loss(
        t.tensor([0.5]), t.tensor([[1.0, 0.0, 1.0]])
    ),
    "a dimension in a tensor": lambda t: t.movedim(t.ones(2, 3), t.tensor(0), 1),
    "a length in a tensor": lambda t: t.fft.hfftn(t.ones(2, 4), t.tensor(3)),
    "one pair, whatever the stride": lambda t: t.view_as_real(
        t.view_as_complex(t.arange(4.0).as_strided((1, 2), (1, 1)))
    ),
    "two scales of elu": lambda t: t.nn.functional.elu_(t.tensor([-1.0, 2.0]), 2, 7, 3),
    "no gradient, said with None": lambda t: t.bartlett_window(5, requires_grad=None),
    "nan is zero unless it is said otherwise": lambda t: t.nan_to_num(t.tensor([float("nan"), 1.0]), None, posinf=2.0),
    "frequencies of nothing": lambda t: t.fft.rfftfreq(0),
    "counts of halves": lambda t: t.histogram(t.ones(3, dtype=t.bfloat16), t.tensor([0.0, 2.0, 3.0], dtype=t.bfloat16))[
        0
    ],
    "what is constant becomes zero": lambda t: t.nn.functional.instance_norm(t.ones(3, 2, 3), eps=0.0),
    "one variance for integers": lambda t: t.nn.functional.gaussian_nll_loss(
        t.tensor([1, 2]), t.tensor([1, 3]), 0.5, True, reduction="none"
    ),
    "a huge integer as a fraction": lambda t: t.tensor([1 << 70, 1], dtype=t.float32),
    "the longest row, as a huge integer": lambda t: t.nn.functional.embedding(
        t.tensor([1]), t.arange(6.0).reshape(2, 3), None, 1 << 70
    ),
    "a margin as a huge integer": lambda t: t.nn.functional.triplet_margin_loss(
        t.ones(1, 2), t.ones(1, 2), t.zeros(1, 2), 1 << 70
    ),
    "no gradient of new zeros, said with None": lambda t: t.ones(2).new_zeros([2], requires_grad=None),
    "one report a matrix": lambda t: t.linalg.solve_ex(t.ones(2, 1, 1), t.ones(2, 1, 2, 1), left=False)[1],
    "a norm of huge order": lambda t: t.pairwise_distance(t.ones(1, 2), t.zeros(1, 2), 1 << 70),
    "the length of a window in a tensor": lambda t: t.kaiser_window(t.tensor(3)),
    "a margin of cosines may be a truth value": lambda t: t.cosine_embedding_loss(
        t.ones(1, 2), t.ones(1, 2), -t.ones(1), True
    ),
}


def compared_with_a_tenth(x, t):
    return t.stack([x == 0.1, x >= t.tensor(0.1), x % 0.1 == 0])


def with_a_number(x, t):
    return t.stack(
        [x / 0.1461, x * 0.1461, 0.1461 * x, x + 0.1461, x**0.1461, t.remainder(x, 0.1461), t.mul(0.1461, x)]
    )


def seeded(library, run):
    library.manual_seed(3)
    return run()


@pytest.mark.parametrize("finding", FINDINGS)
def test_finding_stays_mended(finding):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = FINDINGS[finding](torch), FINDINGS[finding](cresset)
    assert str(ours.dtype) == str(theirs.dtype)
    assert tuple(ours.shape) == tuple(theirs.shape)
    if ours.dtype == cresset.bfloat16:
        assert ours.tolist() == theirs.tolist()
    np.testing.assert_allclose(ours.tolist(), theirs.tolist(), rtol=1e-5, atol=1e-5)


def test_a_size_that_overflows_is_refused():
    with pytest.raises(RuntimeError, match="does not fit in 64 bits"):
        cresset.conv_transpose1d(cresset.ones(1, 3, 3), cresset.ones(3, 2, 3), None, (1 << 63) - 1, 0, 1)
