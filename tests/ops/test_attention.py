"""Attention in blocks: weights of rows that can be worked out, gradients, memory, and threads."""

import math
import os
import subprocess
import sys

import pytest

import cresset
from cresset.autograd import gradcheck, gradgradcheck
from cresset.nn.functional import scaled_dot_product_attention as attention


def by_hand(query, key, value, mask=None, causal=False, scale=None):
    """The definition, with the whole matrix of weights."""
    scores = query @ key.mT * (1 / math.sqrt(query.size(-1)) if scale is None else scale)
    if causal:
        scores = scores.masked_fill(cresset.ones(scores.shape[-2:], dtype=cresset.bool).triu(1), -math.inf)
    if mask is not None:
        scores = scores + mask
    return scores.softmax(-1) @ value


def drawn(*shape, **options):
    return cresset.randn(*shape, dtype=cresset.float64, **options)


def test_equal_scores_average_the_values():
    q, v = cresset.zeros(1, 3, 8), cresset.tensor([[[1.0], [3.0], [8.0]]])
    assert attention(q, q, v).flatten().tolist() == [4.0, 4.0, 4.0]
    assert attention(q, q, v, is_causal=True).flatten().tolist() == [1.0, 2.0, 4.0]


def test_a_mask_of_bools_says_who_is_seen():
    q, v = cresset.zeros(1, 2, 4), cresset.tensor([[[1.0], [3.0]]])
    mask = cresset.tensor([[True, False], [False, False]])
    assert attention(q, q, v, mask).flatten().tolist() == [1.0, 0.0]


def test_a_mask_of_numbers_is_added():
    q, v = cresset.zeros(1, 1, 4), cresset.tensor([[[0.0], [4.0]]])
    mask = cresset.tensor([[0.0, math.log(3.0)]])
    assert attention(q, cresset.zeros(1, 2, 4), v, mask).item() == pytest.approx(3.0)


@pytest.mark.parametrize(
    "queries, keys, width", [(1, 1, 1), (64, 240, 16), (65, 241, 17), (129, 481, 7), (4, 500, 24), (300, 5, 3)]
)
@pytest.mark.parametrize("causal", [False, True])
def test_blocks_of_every_size_follow_the_definition(queries, keys, width, causal):
    cresset.manual_seed(0)
    q, k, v = drawn(2, queries, width), drawn(2, keys, width), drawn(2, keys, width + 2)
    expected = by_hand(q, k, v, causal=causal)
    assert (attention(q, k, v, is_causal=causal) - expected).abs().max() < 1e-12
    assert (attention(q.float(), k.float(), v.float(), is_causal=causal) - expected).abs().max() < 1e-5
    wide = attention(q.bfloat16(), k.bfloat16(), v.bfloat16(), is_causal=causal)
    assert wide.dtype is cresset.bfloat16
    assert (wide - by_hand(*(t.bfloat16().double() for t in (q, k, v)), causal=causal)).abs().max() < 0.03


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"is_causal": True},
        {"attn_mask": "bool"},
        {"attn_mask": "numbers"},
        {"scale": 0.3},
        {"enable_gqa": True},
        {"enable_gqa": True, "is_causal": True},
    ],
)
def test_gradients(options):
    cresset.manual_seed(1)
    options = dict(options)
    if "attn_mask" in options:
        mask = drawn(5, 6)
        options["attn_mask"] = mask > -0.5 if options["attn_mask"] == "bool" else mask
    shared = 2 if options.get("enable_gqa") else 4
    inputs = [drawn(2, h, n, 3, requires_grad=True) for h, n in ((4, 5), (shared, 6), (shared, 6))]

    def run(q, k, v):
        return attention(q, k, v, **options)

    assert gradcheck(run, inputs)
    assert gradgradcheck(run, inputs)


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_over_several_blocks(causal):
    cresset.manual_seed(2)
    inputs = [drawn(2, n, 5, requires_grad=True) for n in (150, 500, 500)]
    weights = drawn(2, 150, 5)
    ours = cresset.autograd.grad((attention(*inputs, is_causal=causal) * weights).sum(), inputs)
    expected = cresset.autograd.grad((by_hand(*inputs, causal=causal) * weights).sum(), inputs)
    for a, b in zip(ours, expected, strict=True):
        assert (a - b).abs().max() < 1e-12


@pytest.mark.parametrize("queries", [3, 4, 5, 70])
def test_the_weights_of_backward_add_up_to_one(queries):
    # With the gradient 1 for one query at a time, the gradient of the values is that query's weights. Scores are large,
    # so that a weight that is rounded in another way than forward rounded it would be far off.
    cresset.manual_seed(0)
    query, key, value = (cresset.empty(2, n, 8).uniform_(-9, 9) for n in (queries, 6, 6))
    value = value[..., :1].expand(2, 6, queries).contiguous().requires_grad_()
    attention(query, key, value).backward(cresset.eye(queries).expand(2, queries, queries).contiguous())
    assert (value.grad.double().sum(1) - 1).abs().max() < 3e-7


@pytest.mark.parametrize("width", [7, 8, 64, 100])
@pytest.mark.parametrize("queries", [1, 3, 9, 70])
def test_who_sees_one_key_does_not_depend_on_the_score(queries, width):
    cresset.manual_seed(0)
    query = cresset.empty(3, queries, 8).uniform_(-9, 9).requires_grad_()
    key, value = cresset.empty(3, 1, 8).uniform_(-9, 9).requires_grad_(), cresset.empty(3, 1, width).uniform_(-9, 9)
    attention(query, key, value).square().sum().backward()
    assert query.grad.count_nonzero() == 0 and key.grad.count_nonzero() == 0


def test_a_mask_that_learns_gets_its_gradient():
    q = drawn(1, 3, 2)
    mask = drawn(3, 3, requires_grad=True)
    assert gradcheck(lambda m: attention(q, q, q, m), (mask,))


def test_dropout_zeroes_weights_and_scales_the_rest():
    cresset.manual_seed(0)
    q, v = cresset.zeros(1, 1000, 4), cresset.eye(1000)
    weights = attention(q, q[:, :1000], v.unsqueeze(0), dropout_p=0.25) * 1000
    assert sorted({round(w, 4) for w in weights.flatten()[:1000].tolist()}) == [0.0, 1.3333]


def test_in_meta_there_are_only_shapes():
    q = cresset.empty(2, 4, 5, 8, device="meta")
    assert attention(q, q, q).shape == (2, 4, 5, 8)


SCRIPT = """
import cresset, resource, sys
cresset.set_num_threads(int(sys.argv[1]))
cresset.manual_seed(0)
for heads, queries, keys in ((1, 333, 700), (3, 130, 300)):
    q, k, v = (cresset.randn(1, heads, n, 32, requires_grad=True) for n in (queries, keys, keys))
    for causal in (False, True):
        out = cresset.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        grads = cresset.autograd.grad((out * out).sum(), (q, k, v))
        for t in (out, *grads):
            print(t.view(cresset.int32).sum().item(), t.double().sum().item())
"""


def run_alone(script, *arguments):
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True, env=environment
    ).stdout


def test_the_bits_do_not_depend_on_the_number_of_threads():
    assert run_alone(SCRIPT, "1") == run_alone(SCRIPT, "2")


MEMORY = """
import cresset, resource
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
q = cresset.randn(1, 1, 4096, 64, requires_grad=True)
small = q[:, :, :64]
cresset.nn.functional.scaled_dot_product_attention(small, small, small).sum().backward()
before = peak()
cresset.nn.functional.scaled_dot_product_attention(q, q, q).sum().backward()
print(peak() - before)
"""


def test_memory_does_not_grow_with_the_square_of_the_length():
    assert int(run_alone(MEMORY)) < 4096 * 4096 * 4 // 4


def test_one_key_has_all_the_weight_whatever_its_score():
    query, value = cresset.tensor([[1.2, 0.7], [-1.7, 0.3]]), cresset.tensor([[1.0, 2.25]])
    for size in (1e3, 1e9, 1e20, 1e30):
        key = cresset.tensor([[size, 1.0]])
        got = cresset.nn.functional.scaled_dot_product_attention(query[None], key[None], value[None])
        assert (got - value).abs().max() < 1e-6, size
