"""Pruning, flex_attention, affine grids and nn.grad beside PyTorch's."""

import importlib
import warnings

import numpy as np
import pytest

import cresset

torch = pytest.importorskip("torch")


def pruned(t):
    prune = importlib.import_module(t.__name__ + ".nn.utils.prune")
    t.manual_seed(0)
    model = t.nn.Sequential(t.nn.Conv2d(3, 4, 3), t.nn.Linear(4, 5))
    prune.l1_unstructured(model[1], "weight", 0.3)
    prune.random_unstructured(model[1], "weight", 2)
    prune.ln_structured(model[0], "weight", 1, 2, 0)
    prune.random_structured(model[0], "weight", 1, 1)
    prune.custom_from_mask(model[1], "bias", t.tensor([1, 0, 1, 0, 1]))
    state = [model[1].weight.tolist(), model[0].weight.tolist(), list(model.state_dict())]
    prune.remove(model[0], "weight")
    return [*state, [name for name, _ in model.named_parameters()], prune.is_pruned(model)]


def test_pruning_gives_pytorchs_numbers():
    assert pruned(cresset) == pruned(torch)


def causal(b, h, q, kv):
    return q >= kv


def slanted(score, b, h, q, kv):
    return score + (q - kv) * 0.1 + h


@pytest.mark.parametrize("score_mod", [None, slanted])
@pytest.mark.parametrize("mask_mod", [None, causal])
def test_flex_attention(score_mod, mask_mod):
    arrays = [np.random.default_rng(k).standard_normal((2, 3, 150, 16), dtype=np.float32) for k in range(3)]

    def run(t):
        flex = importlib.import_module(t.__name__ + ".nn.attention.flex_attention")
        mask = flex.create_block_mask(mask_mod, None, None, 150, 150, device="cpu", BLOCK_SIZE=64) if mask_mod else None
        result = flex.flex_attention(*(t.tensor(a) for a in arrays), score_mod=score_mod, block_mask=mask)
        blocks = (
            [getattr(mask, n).tolist() for n in ("kv_num_blocks", "kv_indices", "full_kv_indices", "q_indices")]
            if mask
            else []
        )
        return blocks, result.numpy()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (our_blocks, ours), (their_blocks, theirs) = run(cresset), run(torch)
    assert our_blocks == their_blocks
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def near(b, h, q, kv):
    return (q >= kv) & (q - kv < 300)


@pytest.mark.parametrize(
    "sizes", [(None, None, 128, 128), (2, 1, 2048, 2048), (2, 3, 300, 300), (1, 1, 4000, 300), (None, None, 8192, 512)]
)
def test_a_block_mask_is_drawn(sizes):
    ours, theirs = (
        importlib.import_module(t.__name__ + ".nn.attention.flex_attention").create_block_mask(near, *sizes, "cpu")
        for t in (cresset, torch)
    )
    assert str(ours) == str(theirs) and repr(ours) == repr(theirs)
    for options in ({"limit": 1}, {"grid_size": (2, 3)}, {"grid_size": 5}, {"grid_size": -1}):
        assert ours.to_string(**options) == theirs.to_string(**options)


@pytest.mark.parametrize("align", [False, True])
def test_the_grid_of_the_identity_has_pytorchs_bits(align):
    """Every place lies between pixels: half a unit aside, grid_sample's gradient is that of other ones."""
    for count in range(2, 130):
        ours, theirs = (
            t.nn.functional.affine_grid(t.eye(2, 3)[None], (1, 1, count, 3), align_corners=align).tolist()
            for t in (cresset, torch)
        )
        assert ours == theirs, count


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_gradients_of_convolutions(rank):
    rng = np.random.default_rng(rank)
    x, w = (
        rng.standard_normal((2, 4, *[7] * rank), dtype=np.float32),
        rng.standard_normal((6, 2, *[3] * rank), dtype=np.float32),
    )
    out = rng.standard_normal((2, 6, *[3] * rank), dtype=np.float32)
    options = {"stride": 2, "padding": 0, "groups": 2}

    def run(t):
        grad = importlib.import_module(t.__name__ + ".nn.grad")
        a = getattr(grad, f"conv{rank}d_input")(x.shape, t.tensor(w), t.tensor(out), **options)
        b = getattr(grad, f"conv{rank}d_weight")(t.tensor(x), w.shape, t.tensor(out), **options)
        return a.numpy(), b.numpy()

    for a, b in zip(run(cresset), run(torch), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
