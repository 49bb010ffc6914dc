"""grouped_mm, and attention among sequences of different lengths."""

import pytest

import cresset
import cresset.nn.functional as F
from cresset.nn.attention.varlen import AuxRequest, varlen_attn, varlen_attn_out


def ends(*values):
    return cresset.tensor(values, dtype=cresset.int32)


def test_each_of_the_four_forms_multiplies_group_by_group():
    rows, columns, many = (
        cresset.arange(12.0).view(4, 3),
        cresset.arange(12.0).view(3, 4),
        cresset.arange(18.0).view(2, 3, 3),
    )
    offs = ends(1, 4)
    assert cresset.equal(F.grouped_mm(many, many), many @ many)
    assert cresset.equal(F.grouped_mm(rows, many, offs=offs), cresset.cat([rows[:1] @ many[0], rows[1:] @ many[1]]))
    assert cresset.equal(
        F.grouped_mm(many, columns, offs=offs), cresset.cat([many[0] @ columns[:, :1], many[1] @ columns[:, 1:]], 1)
    )
    expected = cresset.stack([columns[:, :1] @ rows[:1], columns[:, 1:] @ rows[1:]])
    assert cresset.equal(F.grouped_mm(columns, rows, offs=offs), expected)


def test_rows_after_the_last_group_are_zero_and_gradients_flow():
    tokens = cresset.ones(3, 2, requires_grad=True)
    experts = cresset.ones(1, 2, 2, requires_grad=True)
    result = F.grouped_mm(tokens, experts, offs=ends(2))
    assert result.tolist() == [[2.0, 2.0], [2.0, 2.0], [0.0, 0.0]]
    result.sum().backward()
    assert tokens.grad.tolist() == [[2.0, 2.0], [2.0, 2.0], [0.0, 0.0]] and experts.grad.tolist() == [
        [[2.0, 2.0], [2.0, 2.0]]
    ]


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (lambda a, b: (a.double(), b.double(), ends(4)), "Float32, BFloat16 or Float16"),
        (lambda a, b: (a, b.half(), ends(4)), "same dtype"),
        (lambda a, b: (a, b, None), "Have to provide offsets"),
        (lambda a, b: (a, b, cresset.tensor([4])), "int32"),
        (lambda a, b: (a, b, ends(2, 4)), "batch sizes have to match"),
        (lambda a, b: (a[:, :1], b, ends(4)), "contraction dimension"),
        (lambda a, b: (a[0], b, ends(4)), "2 or 3d"),
    ],
)
def test_unsuited_matrices_are_refused(arguments, match):
    a, b, offs = arguments(cresset.ones(4, 2), cresset.ones(1, 2, 3))
    with pytest.raises(RuntimeError, match=match):
        F.grouped_mm(a, b, offs=offs)


def test_sequences_attend_to_themselves_only():
    cresset.manual_seed(0)
    q, k, v = (cresset.randn(7, 2, 4) for _ in range(3))
    starts = ends(0, 3, 7)
    result, lse = varlen_attn(q, k, v, starts, starts, 4, 4, return_aux=AuxRequest(lse=True), window_size=(-1, 0))
    for start, end in ((0, 3), (3, 7)):
        alone = F.scaled_dot_product_attention(*(t[start:end].transpose(0, 1) for t in (q, k, v)), is_causal=True)
        assert cresset.allclose(result[start:end].transpose(0, 1), alone, atol=1e-6)
    scores = (q[0] * k[0]).sum(-1) / 2  # the first query sees the first key only
    assert cresset.allclose(lse[:, 0], scores, atol=1e-6)
    out = cresset.empty(7, 2, 4)
    assert varlen_attn_out(out, q, k, v, starts, starts, 4, 4, window_size=(-1, 0)) is out and cresset.equal(
        out, result
    )


def test_pages_hold_what_a_sequence_would():
    cresset.manual_seed(0)
    q, k, v = (cresset.randn(6, 1, 4) for _ in range(3))
    starts = ends(0, 6)
    pages = lambda t: cresset.stack([t[4:6], t[0:2], t[2:4]])  # noqa: E731  the pages of two tokens, out of order
    table = cresset.tensor([[1, 2, 0]], dtype=cresset.int32)
    paged = varlen_attn(q, pages(k), pages(v), starts, None, 6, 6, seqused_k=ends(5), block_table=table)
    assert cresset.allclose(paged, varlen_attn(q, k[:5], v[:5], starts, ends(0, 5), 6, 5), atol=1e-6)
    with pytest.raises(ValueError, match="needs seqused_k"):
        varlen_attn(q, pages(k), pages(v), starts, None, 6, 6, block_table=table)


def test_matrices_of_8_bit_floats_are_multiplied_with_their_scales():
    whole, row = F.ScalingType.TensorWise, F.ScalingType.RowWise
    a = cresset.tensor([[1.0, 2.0], [3.0, 4.0]]).to(cresset.float8_e4m3fn)
    b = cresset.eye(2).to(cresset.float8_e4m3fn)
    two, three = cresset.tensor(2.0), cresset.tensor(3.0)
    product = F.scaled_mm(a, b, two, whole, three, whole, output_dtype=cresset.float32)
    assert product.tolist() == [[6.0, 12.0], [18.0, 24.0]]
    rows, columns = cresset.tensor([[1.0], [2.0]]), cresset.tensor([[1.0, 0.5]])
    product = F.scaled_mm(a, b, [rows], [row], [columns], [row], F.SwizzleType.NO_SWIZZLE, F.SwizzleType.NO_SWIZZLE)
    assert product.tolist() == [[1.0, 1.0], [6.0, 4.0]] and product.dtype == cresset.bfloat16
    with pytest.raises(ValueError, match="swizzle"):
        F.scaled_mm(a, b, two, whole, three, whole, F.SwizzleType.SWIZZLE_32_4_4)
    with pytest.raises(NotImplementedError, match="group by group"):
        F.scaled_grouped_mm(a, b, two, whole, three, whole)
