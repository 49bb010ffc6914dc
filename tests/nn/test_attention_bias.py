"""Causal masks that are known by two lengths (nn.attention.bias)."""

import pytest

import cresset as torch
from cresset.nn import functional as F
from cresset.nn.attention.bias import CausalBias, CausalVariant, causal_lower_right, causal_upper_left


def test_the_corner_decides_where_the_diagonal_starts():
    assert causal_upper_left(2, 3)._materialize().int().tolist() == [[1, 0, 0], [1, 1, 0]]
    assert causal_lower_right(2, 3)._materialize().int().tolist() == [[1, 1, 0], [1, 1, 1]]
    assert "True, False" in repr(causal_upper_left(2, 3))


@pytest.mark.parametrize("make", [causal_upper_left, causal_lower_right])
@pytest.mark.parametrize("queries", [3, 5])
def test_attention_with_it_is_attention_with_the_mask(make, queries):
    torch.manual_seed(0)
    query, key, value = torch.randn(1, 2, queries, 4), torch.randn(1, 2, 5, 4), torch.randn(1, 2, 5, 4)
    bias = make(queries, 5)
    expected = F.scaled_dot_product_attention(query, key, value, bias._materialize())
    assert torch.allclose(F.scaled_dot_product_attention(query, key, value, bias), expected, atol=1e-6)


def test_what_does_not_go_together_is_refused():
    x = torch.randn(1, 1, 2, 4)
    with pytest.raises(ValueError, match="should not be used with causal=True"):
        F.scaled_dot_product_attention(x, x, x, causal_upper_left(2, 2), is_causal=True)
    with pytest.raises(AssertionError, match="only supports 2D"):
        causal_lower_right(2)
    with pytest.raises(AssertionError, match="must be a CausalVariant"):
        CausalBias("upper", 2, 2)
    with pytest.warns(UserWarning, match="will produce NaNs"):
        CausalBias(CausalVariant.LOWER_RIGHT, 3, 2)


def test_ways_to_attend_have_numbers_and_are_none():
    ways = torch.nn.attention.SDPBackend
    assert int(ways.FLASH_ATTENTION) == 1 and [10, 20][ways.FLASH_ATTENTION] == 20
    assert ways.MATH != 0 and not isinstance(ways.MATH, int) and repr(ways.MATH) == "<SDPBackend.MATH: 0>"
    with torch.nn.attention.sdpa_kernel([ways.MATH]):
        assert F.scaled_dot_product_attention(*[torch.ones(1, 2, 4)] * 3).shape == (1, 2, 4)
