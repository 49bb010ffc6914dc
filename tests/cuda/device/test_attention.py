"""Attention on CUDA: what the CPU gives, forward and backward, on tensor cores and without."""

import pytest

import cresset
from cresset.nn.functional import scaled_dot_product_attention

TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-12}


def made(*shape, dtype, seed=0):
    generator = cresset.Generator().manual_seed(seed)
    return cresset.randn(shape, dtype=cresset.float64, generator=generator).to(getattr(cresset, dtype))


def agrees(query, key, value, mask=None, dtype="float32", arranged=lambda t: t, **arguments):
    """Output and gradients on CUDA are those of the CPU, which computes with the same numbers in float64."""

    def computed(device, to):
        tensors = [t.detach().to(device=device, dtype=to).requires_grad_() for t in (query, key, value)]
        there = mask if mask is None else mask.to(device)
        if there is not None and there.dtype.is_floating_point and device == "cpu":
            there = there.to(to)
        output = scaled_dot_product_attention(*map(arranged, tensors), there, **arguments)
        output.backward(made(*output.shape, dtype=dtype, seed=9).to(device=device, dtype=to))
        assert output.device.type == device
        return [output.detach()] + [t.grad for t in tensors]

    expected = computed("cpu", cresset.float64)
    results = computed("cuda", query.dtype)
    tolerance = TOLERANCE[dtype]
    for name, result, wanted in zip(
        ("output", "query's gradient", "key's gradient", "value's gradient"), results, expected
    ):
        assert result.dtype == query.dtype
        error = (result.cpu().double() - wanted).abs().max().item()
        assert error <= tolerance * max(wanted.abs().max().item(), 1), f"{name}: {error}"


@pytest.mark.parametrize(
    "dtype, width, causal",
    [
        ("float32", 16, True),
        ("float64", 40, False),
        ("float16", 64, False),
        ("bfloat16", 64, True),
        ("bfloat16", 20, True),
    ],
)
def test_every_dtype(dtype, width, causal):
    agrees(*(made(1, 2, 9, width, dtype=dtype, seed=i) for i in range(3)), is_causal=causal, dtype=dtype)


@pytest.mark.parametrize(
    "width, queries, keys, causal",
    [(64, 70, 133, False), (64, 133, 70, True), (32, 1, 65, False), (128, 67, 66, True), (72, 130, 20, True)],
)
def test_several_tiles(width, queries, keys, causal):
    q, k, v = (
        made(1, 1, queries, width, dtype="float16"),
        made(1, 1, keys, width, dtype="float16", seed=1),
        made(1, 1, keys, width, dtype="float16", seed=2),
    )
    agrees(q, k, v, is_causal=causal, dtype="float16")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "width, heads, shared, queries, keys",
    [
        (128, 2, 2, 1, 300),
        (64, 4, 1, 1, 64),
        (64, 1, 1, 1, 1153),
        (16, 6, 2, 3, 257),
        (72, 2, 2, 8, 129),
        (8, 1, 1, 2, 40),
    ],
)
def test_few_queries_split_their_keys(dtype, width, heads, shared, queries, keys):
    q = made(2, heads, queries, width, dtype=dtype)
    k, v = (made(2, shared, keys, width, dtype=dtype, seed=i) for i in (1, 2))
    agrees(q, k, v, dtype=dtype, enable_gqa=True)
    agrees(q, k, v, dtype=dtype, enable_gqa=True, is_causal=True)
    agrees(q, k, v, made(keys, dtype="float32", seed=5).view(1, keys) > 0, dtype=dtype, enable_gqa=True)
    agrees(q, k, v, made(2, 1, queries, keys, dtype=dtype, seed=6), dtype=dtype, enable_gqa=True, scale=0.2)


def test_few_queries_do_not_depend_on_their_neighbors():
    """A row has the same bits alone, in a batch, and with other queries of its head."""
    q, k, v = (made(3, 4, n, 64, dtype="bfloat16", seed=n).cuda() for n in (4, 200, 201))
    k, v = k[:, :2, :200], v[:, :2, :200]
    together = scaled_dot_product_attention(q, k, v, enable_gqa=True)
    alone = scaled_dot_product_attention(q[1:2, :, 2:3], k[1:2], v[1:2], enable_gqa=True)
    assert cresset.equal(together[1:2, :, 2:3], alone)


def test_few_queries_that_see_nobody_or_one_part():
    """Parts of the keys that are hidden add nothing; a query that sees nobody gets zeros."""
    q, k, v = (made(1, 1, n, 32, dtype="float16", seed=n).cuda() for n in (2, 300, 301))
    v = v[:, :, :300]
    mask = cresset.zeros(2, 300, dtype=cresset.bool, device="cuda")
    mask[0, 130:140] = True
    output = scaled_dot_product_attention(q, k, v, mask)
    assert cresset.equal(output[0, 0, 1], cresset.zeros_like(output[0, 0, 1]))
    seen = scaled_dot_product_attention(q[:, :, :1].double(), k[:, :, 130:140].double(), v[:, :, 130:140].double())
    assert (output[:, :, :1].double() - seen).abs().max() < 2e-3


def test_several_tiles_without_tensor_cores():
    agrees(
        made(2, 33, 5, dtype="float32"),
        made(2, 70, 5, dtype="float32", seed=1),
        made(2, 70, 9, dtype="float32", seed=2),
        is_causal=True,
    )


def test_many_heads_have_blocks_of_more_queries():
    heads = cresset.cuda.get_device_properties().multi_processor_count
    q, k, v = (made(heads, 5, 32, dtype="float16", seed=i) for i in range(3))
    expected = scaled_dot_product_attention(q.double(), k.double(), v.double())
    result = scaled_dot_product_attention(q.cuda(), k.cuda(), v.cuda())
    assert (result.cpu().double() - expected).abs().max() < 4e-3


@pytest.mark.parametrize("dtype, width", [("float32", 12), ("bfloat16", 32)])
def test_heads_of_queries_share_keys(dtype, width):
    agrees(
        made(2, 6, 10, width, dtype=dtype), made(2, 2, 11, width, dtype=dtype, seed=1),
        made(2, 2, 11, width, dtype=dtype, seed=2),
        dtype=dtype, enable_gqa=True, is_causal=True, scale=0.3,
    )  # fmt: skip


@pytest.mark.parametrize("dtype, width", [("float32", 12), ("float16", 32)])
@pytest.mark.parametrize("shape, kind", [((10, 11), "numbers"), ((2, 1, 10, 11), "bool"), ((1, 11), "bool")])
def test_masks(dtype, width, shape, kind):
    q, k, v = (
        made(2, 3, 10, width, dtype=dtype),
        made(2, 3, 11, width, dtype=dtype, seed=1),
        made(2, 3, 11, width, dtype=dtype, seed=2),
    )
    mask = made(*shape, dtype=dtype, seed=5)
    if kind == "bool":
        mask = mask > -0.5
    agrees(q, k, v, mask, dtype=dtype)


@pytest.mark.parametrize("dtype, width", [("float32", 12), ("float16", 32)])
def test_a_query_that_sees_nobody_gets_zeros(dtype, width):
    q = made(1, 1, 3, width, dtype=dtype).cuda().requires_grad_()
    mask = cresset.tensor([[True, False, True], [False, False, False], [True, True, True]]).cuda()
    output = scaled_dot_product_attention(q, q, q, mask)
    assert output[0, 0, 1].tolist() == [0.0] * width
    output.backward(cresset.ones_like(output))
    assert q.grad.isfinite().all()


@pytest.mark.parametrize("dtype, width", [("float32", 12), ("bfloat16", 32)])
def test_heads_that_lie_side_by_side(dtype, width):
    """(batch, time, heads, width), as linear layers give them."""
    tensors = [made(2, 9, 3, width, dtype=dtype, seed=i) for i in range(3)]
    agrees(*tensors, dtype=dtype, is_causal=True, arranged=lambda t: t.transpose(1, 2))
    output = scaled_dot_product_attention(*(t.cuda().transpose(1, 2) for t in tensors))
    assert output.transpose(1, 2).is_contiguous()


@pytest.mark.parametrize("dtype, width", [("float32", 12), ("float16", 32)])
def test_tensors_that_have_to_be_copied(dtype, width):
    agrees(
        *(made(3, width, 7, dtype=dtype, seed=i) for i in range(3)), dtype=dtype, arranged=lambda t: t.transpose(1, 2)
    )
    agrees(*(made(7, width, dtype=dtype, seed=i) for i in range(3)), dtype=dtype)
    agrees(
        made(2, 2, 3, 7, width, dtype=dtype),
        *(made(2, 1, 3, 7, width, dtype=dtype, seed=i) for i in (1, 2)),
        dtype=dtype,
    )


def test_nothing_to_do():
    q = cresset.zeros(0, 2, 3, 64, dtype=cresset.float16, device="cuda")
    assert scaled_dot_product_attention(q, q, q).shape == (0, 2, 3, 64)
    q = cresset.ones(1, 2, 3, 64, dtype=cresset.float16, device="cuda")
    nothing = cresset.zeros(1, 2, 0, 64, dtype=cresset.float16, device="cuda")
    assert scaled_dot_product_attention(q, nothing, nothing).cpu().tolist() == cresset.zeros(1, 2, 3, 64).tolist()


def test_the_result_does_not_change_from_run_to_run():
    q, k, v = (made(1, 2, 40, 64, dtype="bfloat16", seed=i).cuda().requires_grad_() for i in range(3))

    def gradients():
        output = scaled_dot_product_attention(q, k, v, is_causal=True)
        return cresset.autograd.grad(output, (q, k, v), cresset.ones_like(output))

    for first, second in zip(gradients(), gradients()):
        assert cresset.equal(first.cpu(), second.cpu())


@pytest.fixture
def for_cudnn():
    """Problems of every size go to cuDNN."""
    before = cresset._native.cuda.set_cudnn_attention_from(1)
    yield
    cresset._native.cuda.set_cudnn_attention_from(before)


@pytest.mark.parametrize(
    "dtype, queries, keys, width, causal",
    [
        ("bfloat16", 65, 65, 64, True),
        ("float16", 40, 70, 32, False),
        ("float16", 70, 40, 128, True),
        ("bfloat16", 1, 33, 64, False),
    ],
)
def test_by_cudnn(for_cudnn, dtype, queries, keys, width, causal):
    q, k, v = (made(2, 2, n, width, dtype=dtype, seed=i) for i, n in enumerate((queries, keys, keys)))
    agrees(q, k, v, is_causal=causal, dtype=dtype)


@pytest.mark.parametrize(
    "dtype, shape", [("bfloat16", (24, 24)), ("float16", (2, 1, 24, 24)), ("float16", (1, 2, 24, 24))]
)
def test_masks_of_numbers_and_of_bools_by_cudnn(for_cudnn, dtype, shape):
    q, k, v = (made(2, 2, 24, 32, dtype=dtype, seed=i) for i in range(3))
    numbers = made(*shape, dtype=dtype, seed=5)
    agrees(q, k, v, mask=numbers, dtype=dtype)
    agrees(q, k, v, mask=numbers > 0, dtype=dtype)


def test_queries_that_see_nobody_by_cudnn(for_cudnn):
    q, k, v = (made(1, 2, 24, 32, dtype="bfloat16", seed=i) for i in range(3))
    sees = cresset.ones(24, 24, dtype=cresset.bool)
    sees[7] = sees[20] = False
    agrees(q, k, v, mask=sees, dtype="bfloat16")
    there = scaled_dot_product_attention(q.cuda(), k.cuda(), v.cuda(), attn_mask=sees.cuda())
    assert not there[:, :, 7].any() and there.isfinite().all()


def test_heads_that_share_a_key_by_cudnn(for_cudnn):
    q, k, v = (made(2, heads, 40, 64, dtype="float16", seed=i) for i, heads in enumerate((4, 2, 2)))
    agrees(q, k, v, is_causal=True, enable_gqa=True, dtype="float16")


def test_rows_that_are_not_contiguous_by_cudnn(for_cudnn):
    tensors = (made(2, 33, 3, 64, dtype="bfloat16", seed=i) for i in range(3))
    agrees(*tensors, dtype="bfloat16", is_causal=True, scale=0.3, arranged=lambda t: t.transpose(1, 2))


def test_cudnn_for_one_of_the_passes_only(for_cudnn):
    """What either way keeps of the forward pass serves the other's backward pass."""
    q, k, v = (made(1, 2, 50, 64, dtype="float16", seed=i).cuda().requires_grad_() for i in range(3))
    found = []
    for forward, backward in ((True, True), (True, False), (False, True), (False, False)):
        cresset.backends.cuda.enable_cudnn_sdp(forward)
        output = scaled_dot_product_attention(q, k, v, is_causal=True)
        cresset.backends.cuda.enable_cudnn_sdp(backward)
        found.append(cresset.autograd.grad(output.float().square().sum(), (q, k, v)))
    for gradients in found[1:]:
        for gradient, expected in zip(gradients, found[0]):
            assert (gradient - expected).abs().max().item() <= 8e-3 * expected.abs().max().item()


def test_deterministic_algorithms_give_the_same_bits(for_cudnn):
    cresset.use_deterministic_algorithms(True)
    try:
        q = made(1, 2, 130, 64, dtype="bfloat16").cuda().requires_grad_()
        first, second = (
            cresset.autograd.grad(scaled_dot_product_attention(q, q, q, is_causal=True).float().square().sum(), q)[0]
            for _ in range(2)
        )
        assert first.equal(second)
    finally:
        cresset.use_deterministic_algorithms(False)


class TestForms:
    """sdpa_kernel and the switches choose among the forms that the device has."""

    def halves(self):
        return made(2, 4, 64, 64, dtype="float16").cuda()

    def attend(self, x, *forms, **how):
        with cresset.nn.attention.sdpa_kernel([getattr(cresset.nn.attention.SDPBackend, form) for form in forms]):
            return scaled_dot_product_attention(x, x, x, **how)

    def test_each_form_that_can_gives_the_same(self):
        x = self.halves()
        expected = self.attend(x, "MATH").float()
        forms = [
            "FLASH_ATTENTION",
            "EFFICIENT_ATTENTION",
            *(["CUDNN_ATTENTION"] if cresset.backends.cudnn.is_available() else []),
        ]
        for form in forms:
            assert (self.attend(x, form).float() - expected).abs().max().item() < 5e-3, form

    def test_a_form_that_cannot_is_refused(self):
        x = self.halves()
        for tensor, form, how in (
            (x.float(), "FLASH_ATTENTION", {}), (x.float(), "CUDNN_ATTENTION", {}),
            (x, "FLASH_ATTENTION", {"dropout_p": 0.5}),
            (x, "EFFICIENT_ATTENTION", {"dropout_p": 0.5}),
            (x, "FLASH_ATTENTION", {"attn_mask": cresset.ones(64, 64, dtype=cresset.bool, device="cuda")}),
        ):  # fmt: skip
            with pytest.raises(RuntimeError, match="No available kernel"):
                self.attend(tensor, form, **how)

    def test_single_precision_is_computed_by_the_efficient_form(self):
        x = self.halves().float()
        assert (self.attend(x, "EFFICIENT_ATTENTION") - self.attend(x, "MATH")).abs().max().item() < 2e-5

    def test_the_bound_for_cudnn_comes_back(self):
        before = cresset._native.cuda.set_cudnn_attention_from(12345)
        try:
            self.attend(self.halves(), "MATH", "CUDNN_ATTENTION")
            assert cresset._native.cuda.set_cudnn_attention_from(12345) == 12345
        finally:
            cresset._native.cuda.set_cudnn_attention_from(before)
