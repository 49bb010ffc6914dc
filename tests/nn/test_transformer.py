"""Stacks of encoder layers: what becomes of padding in inference."""

import pytest

import cresset
from cresset import nn

PADDED = cresset.tensor([[False, False, True], [False, False, False]])


def encoder(norm=None, enable_nested_tensor=True, **settings):
    layer = nn.TransformerEncoderLayer(4, 2, 8, **{"batch_first": True, **settings})
    return nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=enable_nested_tensor).eval()


@cresset.no_grad()
def test_padding_at_the_end_comes_out_as_zeros():
    x = cresset.randn(2, 3, 4)
    model = encoder()
    assert model.use_nested_tensor
    y = model(x, src_key_padding_mask=PADDED)
    assert y[0, 2].tolist() == [0.0] * 4 and bool((y[~PADDED] != 0).any(-1).all())
    assert cresset.allclose(y[0, :2], model(x[:1, :2])[0], atol=1e-6)
    normed = encoder(nn.LayerNorm(4))
    normed.norm.bias.fill_(7.0)
    assert normed(x, src_key_padding_mask=PADDED)[0, 2].tolist() == [7.0] * 4  # the last norm sees the zeros


@pytest.mark.parametrize(
    "settings", [{"enable_nested_tensor": False}, {"norm_first": True}, {"activation": cresset.tanh}], ids=str
)
@cresset.no_grad()
def test_padding_is_computed_where_pytorch_does_not_skip_it(settings):
    model = encoder(**settings)
    assert not model.use_nested_tensor
    assert bool(model(cresset.randn(2, 3, 4), src_key_padding_mask=PADDED)[0, 2].any())


def test_padding_is_computed_with_gradients_masks_and_at_the_beginning():
    model, x = encoder(), cresset.randn(2, 3, 4)
    assert bool(model(x, src_key_padding_mask=PADDED)[0, 2].any())
    with cresset.no_grad():
        assert bool(model(x, cresset.zeros(3, 3, dtype=cresset.bool), PADDED)[0, 2].any())
        assert bool(model(x, src_key_padding_mask=PADDED.flip(1))[0, 0].any())
        model.train()
        assert bool(model(x, src_key_padding_mask=PADDED)[0, 2].any())
