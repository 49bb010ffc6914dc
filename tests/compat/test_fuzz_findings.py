"""What random calls (fuzz/calls.py) once found, each as one small program that gives the same in both."""

import warnings

import numpy as np
import pytest

import cresset

torch = pytest.importorskip("torch")

FINDINGS = {
    "the losses of the root namespace do not reduce by default": lambda t: t.kl_div(t.ones(2, 3), t.ones(2, 3)),
    "margin_ranking_loss broadcasts there": lambda t: t.margin_ranking_loss(t.ones(1, 4), t.zeros(1), -t.ones(1)),
    "inner of a number promotes": lambda t: t.inner(t.tensor(2.0, dtype=t.float16), t.tensor(3.0)),
    "an index may be a tensor of one element": lambda t: t.arange(5).select(0, t.tensor([2])),
    "a vector with nan is not shrunk": lambda t: t.tensor([[float("nan"), 1.0], [3.0, 4.0]]).renorm(2, 0, 1.0),
    "dropout3d takes four or fewer dimensions as unbatched": lambda t: seeded(t, lambda: t.nn.functional.dropout3d(t.ones(40, 2))),
    "a product of truth values": lambda t: t.tensor([-0.5, 0.5]).prod(dtype=t.bool),
    "view_copy takes what reshape takes": lambda t: t.view_copy(t.arange(6).reshape(2, 3).t(), (2, 3)),
    "channel_shuffle of nothing": lambda t: t.channel_shuffle(t.ones(0, 4, 2), 2),
    "native_dropout looks at p in training only": lambda t: t.native_dropout(t.ones(3), 2.0, False)[0],
    "a loss promotes as if both had one shape": lambda t: t.nn.functional.mse_loss(t.tensor(1.0), t.ones(3, dtype=t.bfloat16)),
    "the next half is not the next float": lambda t: t.nextafter(t.tensor([1.0, float("inf"), 0.0], dtype=t.bfloat16), t.tensor([2.0, 0.0, -1.0], dtype=t.bfloat16)).float(),
    "a hash of one number": lambda t: t.hash_tensor(t.tensor(2.5), 0).to(t.int64),
    "one size for a transform along one dimension": lambda t: t.fft.rfftn(t.ones(3, 4), 2, 0).real,
    "truth values are searched": lambda t: t.bucketize(True, t.tensor([0.0, 1.0])),
    "antialias keeps pixel centres with align_corners": lambda t: t.nn.functional.interpolate(
        t.arange(12.0).reshape(1, 1, 3, 4), scale_factor=2.0, mode="bicubic", align_corners=True, antialias=True
    ),
}


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
    np.testing.assert_allclose(ours.tolist(), theirs.tolist(), rtol=1e-5, atol=1e-5)
