"""flex_attention on CUDA: the kernel with the program's functions gives what ordinary operators give on the CPU in
float64, forward and backward."""

import warnings

import pytest

import cresset as torch
from cresset.nn.attention import flex_kernel
from cresset.nn.attention.flex_attention import (
    AuxRequest,
    and_masks,
    create_block_mask,
    flex_attention,
    noop_mask,
    or_masks,
)

TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 3e-5}


def made(*shape, seed=0):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def causal(b, h, q, kv):
    return q >= kv


def agrees(query, key, value, dtype=torch.float32, score_mod=None, mask_mod=None, mask_sizes=(None, None), block=64,
           reads=(), **arguments):  # fmt: skip
    """The result, the logarithms and the gradients. `score_mod` and `mask_mod` are made from the tensors that they
    read, `reads`, which are on the device in question."""

    def computed(device, to):
        tensors = [t.detach().to(dtype).to(device=device, dtype=to).requires_grad_() for t in (query, key, value)]
        read = [t.to(device) for t in reads]
        mod, mask = (f(*read) if f and reads else f for f in (score_mod, mask_mod))
        blocks = None
        if mask is not None:
            sizes = (query.size(2), key.size(2))
            blocks = create_block_mask(mask, *mask_sizes, *sizes, device=device, BLOCK_SIZE=block)
        result, lse = flex_attention(*tensors, mod, blocks, return_lse=True, **arguments)
        weights = made(*result.shape, seed=9).to(dtype).to(device=device, dtype=to)
        of_lse = made(*lse.shape, seed=10).to(device=device, dtype=lse.dtype)
        seen = ~lse.isneginf()
        ((result * weights).sum() + (lse[seen] * of_lse[seen]).sum()).backward()
        grads = [torch.zeros_like(t) if t.grad is None else t.grad for t in tensors]  # of scores that are not read
        return [result.detach(), lse.detach(), *grads]

    expected, results = computed("cpu", torch.float64), computed("cuda", dtype)
    for name, found, wanted in zip(("result", "lse", "query", "key", "value"), results, expected):
        assert found.is_cuda and (name == "lse" or found.dtype == dtype), name
        torch.testing.assert_close(
            found.cpu().double(), wanted.double(), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * 2,
            msg=lambda text: f"{name}: {text}",
        )  # fmt: skip


def problem(queries=70, keys=133, width=16, heads=2, shared=2, batch=1, value_width=None):
    return (
        made(batch, heads, queries, width),
        made(batch, shared, keys, width, seed=1),
        made(batch, shared, keys, value_width or width, seed=2),
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_every_dtype(cuda, dtype):
    agrees(*problem(), dtype, lambda score, b, h, q, kv: score + 0.01 * (q - kv), causal)


@pytest.mark.parametrize("width, value_width", [(64, None), (128, None), (20, 12), (136, None), (8, 40)])
def test_every_width(cuda, width, value_width):
    agrees(*problem(66, 70, width, 1, 1, value_width=value_width), torch.bfloat16, mask_mod=causal)


def test_without_functions(cuda):
    agrees(*problem(), torch.float16)
    agrees(*problem(), torch.float32, scale=0.3)
    agrees(*problem(), torch.float32, scale=-0.3)


SCORES = {
    "a slope a head": lambda s, b, h, q, kv: s + torch.exp2(-((h + 1) * 8.0 / 2)) * (kv - q),
    "soft cap": lambda s, b, h, q, kv: 2 * torch.tanh(s / 2),
    "chosen": lambda s, b, h, q, kv: torch.where((q - kv).abs() <= 9, s, -float("inf")),
    "filled": lambda s, b, h, q, kv: s.masked_fill((q // 3) % 2 == kv % 2, float("-inf")),
    "squares": lambda s, b, h, q, kv: s * s - torch.rsub(s.sigmoid(), 1) + s.clamp(max=0.5) + s.relu(),
    "other dtypes": lambda s, b, h, q, kv: s.double() * 0.5 + (q > kv).float() + torch.minimum(q, kv).to(torch.int16),
    "not the score": lambda s, b, h, q, kv: (q - kv) * 0.01,
    "powers": lambda s, b, h, q, kv: s.abs() ** 1.5 + (1 + s**2).sqrt() / (b + 2) - torch.log1p((q - kv).abs()),
}


@pytest.mark.parametrize("name", SCORES)
def test_scores(cuda, name):
    agrees(*problem(40, 50), score_mod=SCORES[name])


def test_functions_read_tensors(cuda):
    documents = torch.arange(133) // 40
    agrees(*problem(133), mask_mod=lambda d: lambda b, h, q, kv: (d[q] == d[kv]) & (q >= kv), reads=(documents,))
    bias, slopes = made(2, 70, 133, seed=5).float(), made(3, seed=6).half()

    def biased(bias, slopes):
        return lambda s, b, h, q, kv: s + bias[h, q, kv] * slopes[-1] - slopes[h] * 2 + bias[h, q, q - 1]

    agrees(*problem(), score_mod=biased, reads=(bias, slopes))
    query, key, value, there = (t.float().cuda() for t in (*problem(), bias))
    results = [
        flex_attention(query, key, value, mod)
        for mod in (lambda s, b, h, q, kv: s + there[h, q, kv], lambda s, b, h, q, kv: s + there[h][q][kv])
    ]
    assert results[0].equal(results[1])
    one = torch.tensor(0.7)
    agrees(*problem(20, 20), score_mod=lambda one: lambda s, b, h, q, kv: s * one, reads=(one,))


MASKS = {
    "window": and_masks(causal, lambda b, h, q, kv: q - kv < 20),
    "prefix": or_masks(causal, lambda b, h, q, kv: kv < 30),
    "all": noop_mask,
    "none for some": lambda b, h, q, kv: (q < 10) & (kv > 80),
    "by head and sequence": lambda b, h, q, kv: q + 5 * h >= kv - b,
}


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("block", [64, (128, 64), (16, 48)])
def test_masks(cuda, name, block):
    sizes = (2, 2) if name == "by head and sequence" else (None, None)
    agrees(*problem(150, 133, batch=2), mask_mod=MASKS[name], block=block, mask_sizes=sizes)


def test_nobody_is_seen(cuda):
    query, key, value = (t.float().cuda().requires_grad_() for t in problem(40, 50))
    mask = create_block_mask(lambda b, h, q, kv: q < 0, None, None, 40, 50, "cuda", 64)
    result, lse = flex_attention(query, key, value, block_mask=mask, return_lse=True)
    result.sum().backward()
    assert not result.any() and lse.isneginf().all() and not query.grad.any() and not value.grad.any()


def test_masks_without_lists_of_whole_blocks(cuda):
    query, key, value = (t.float().cuda() for t in problem(150, 150))
    masks = [
        create_block_mask(causal, None, None, 150, 150, "cuda", 64, separate_full_blocks=apart) for apart in (0, 1)
    ]
    results = [flex_attention(query, key, value, block_mask=mask) for mask in masks]
    assert results[0].equal(results[1])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_heads_share_keys(cuda, dtype):
    agrees(*problem(70, 90, heads=6, shared=2, batch=2), dtype, SCORES["a slope a head"], causal, enable_gqa=True)


def test_a_batch_shares_keys(cuda):
    query, key, value = problem(40, 50)
    agrees(made(3, 2, 40, 16), key, value, score_mod=SCORES["soft cap"])


def test_tensors_lie_as_they_do(cuda):
    query, key, value = (made(2, 60, 3, 16, seed=k).transpose(1, 2) for k in range(3))
    agrees(query, key, value, torch.float16, mask_mod=causal)


def test_greatest_scores(cuda):
    query, key, value = (t.float() for t in problem(40, 50))
    blocks = [create_block_mask(MASKS["none for some"], None, None, 40, 50, d, 64) for d in ("cpu", "cuda")]
    wanted = flex_attention(query, key, value, None, blocks[0], return_aux=AuxRequest(True, True))[1]
    found = flex_attention(query.cuda(), key.cuda(), value.cuda(), None, blocks[1], return_aux=AuxRequest(True, True))[
        1
    ]
    torch.testing.assert_close(found.max_scores.cpu(), wanted.max_scores)
    torch.testing.assert_close(found.lse.cpu(), wanted.lse)


FACTOR = 1.0


def test_texts_are_kept_while_nothing_changes(cuda, monkeypatch):
    """Numbers of closures, globals and tensors that are computed anew are seen, whoever keeps a text."""
    query, key, value = (t.float().cuda() for t in problem(40, 50))

    def check(mod, factor):
        torch.testing.assert_close(flex_attention(query, key, value, mod), flex_attention(query * factor, key, value))

    flex_kernel._texts.clear()
    for factor in (1.0, 2.0, 2.0):
        check(lambda s, b, h, q, kv, factor=factor: s * factor, factor)
        check(lambda s, b, h, q, kv: s * factor, factor)  # noqa: B023
    for factor in (1.0, 3.0):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        check(lambda s, b, h, q, kv: s * FACTOR, factor)
    assert len(flex_kernel._texts) == 7  # six and the one without functions
    table = torch.ones(1, device="cuda")
    for factor in (1.0, 4.0):
        table.fill_(factor)
        check(lambda s, b, h, q, kv: s * table[0], factor)
        check(lambda s, b, h, q, kv: s * (table + 1)[b], factor + 1)
        check(lambda s, b, h, q, kv: s * table.item(), factor)
    assert len(flex_kernel._texts) == 7  # the last three are traced each time


def test_no_ordinary_operator_computes(cuda, monkeypatch):
    from cresset.nn.attention import flex_attention as module

    monkeypatch.setattr(module, "_attend_by_blocks", None)
    query, key, value = (t.float().cuda() for t in problem(40, 50))
    for function in SCORES.values():
        flex_attention(query, key, value, function)


OPTIONS = [
    {"BLOCK_M": 128, "BLOCK_N": 32}, {"BLOCK_M1": 32, "BLOCK_N2": 32, "num_warps": 8}, {"BLOCK_M": 128, "BLOCK_M1": 64},
    {"BLOCK_M": 128, "WARPGROUP": False},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype, width", [(torch.bfloat16, 64), (torch.float16, 128)])
def test_sizes_of_tiles(cuda, dtype, width, options):
    query, key, value = problem(150, 133, width, 1, 1)
    agrees(query, key, value, dtype, SCORES["soft cap"], causal, kernel_options=options)


def test_what_cannot_be_traced_is_said(cuda):
    query, key, value = (t.float().cuda() for t in problem(20, 20))
    table = made(20, seed=4).float().cuda().requires_grad_()
    with pytest.warns(UserWarning, match="not in one kernel: .*requires a gradient"):
        flex_attention(query, key, value, lambda s, b, h, q, kv: s + table[kv]).sum().backward()
    assert table.grad is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with torch.no_grad():
            flex_attention(query, key, value, lambda s, b, h, q, kv: s + table[kv])
    with pytest.warns(UserWarning, match="dtype torch.float64"):
        flex_attention(query.double(), key.double(), value.double())
    with pytest.warns(UserWarning, match="cumsum is no pointwise operator"):
        flex_attention(query, key, value, lambda s, b, h, q, kv: s + kv.cumsum(0))


def test_gradients_are_not_differentiated_again(cuda):
    query, key, value = (t.float().cuda().requires_grad_() for t in problem(20, 20))
    result = flex_attention(query, key, value, SCORES["soft cap"])
    (grad,) = torch.autograd.grad(result.square().sum(), query, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        grad.sum().backward()


def test_a_bad_index_is_reported(cuda):
    query, key, value = (t.float().cuda() for t in problem(20, 20))
    table = torch.zeros(10, device="cuda")
    flex_attention(query, key, value, lambda s, b, h, q, kv: s + table[kv])
    with pytest.raises(IndexError, match="flex_attention"):
        torch.cuda.synchronize()
