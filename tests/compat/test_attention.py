"""Attention beside PyTorch: values, gradients, layouts and errors over the argument space."""

import itertools

import numpy as np
import pytest

import cresset

torch = pytest.importorskip("torch")

TOLERANCE = {"float32": 2e-5, "float64": 1e-12, "bfloat16": 2e-2, "float16": 4e-3}


def both(array, dtype, grad=False):
    ours = cresset.tensor(array).to(getattr(cresset, dtype))
    theirs = torch.tensor(array).to(getattr(torch, dtype))
    return (ours.requires_grad_(), theirs.requires_grad_()) if grad else (ours, theirs)


def as_array(tensor):
    return np.asarray(tensor.detach().double().tolist())


def near(ours, theirs, dtype):
    assert tuple(ours.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(as_array(ours), as_array(theirs), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def compare(shapes, dtype, mask=None, **options):
    """Attention and its gradients on both; `mask` is an array or None."""
    rng = np.random.default_rng(7)
    arrays = [rng.standard_normal(shape) for shape in shapes]
    ours, theirs = zip(*(both(a, dtype, grad=True) for a in arrays), strict=True)
    our_mask = their_mask = None
    if mask is not None:
        our_mask, their_mask = both(mask, "bool" if mask.dtype == bool else dtype)
    out = cresset.nn.functional.scaled_dot_product_attention(*ours, attn_mask=our_mask, **options)
    expected = torch.nn.functional.scaled_dot_product_attention(*theirs, attn_mask=their_mask, **options)
    near(out, expected, dtype)
    weights = rng.standard_normal(tuple(out.shape))
    out.backward(both(weights, dtype)[0])
    expected.backward(both(weights, dtype)[1])
    for a, b in zip(ours, theirs, strict=True):
        near(a.grad, b.grad, dtype)
    return out, expected


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    "queries, keys, width, value_width",
    [
        (5, 7, 8, 8),
        (64, 64, 32, 32),
        (1, 300, 16, 16),
        (3, 65, 5, 9),
        (130, 257, 20, 20),
        (70, 30, 64, 64),
        (250, 500, 3, 3),
    ],
)
@pytest.mark.parametrize("causal", [False, True])
def test_values_and_gradients(dtype, queries, keys, width, value_width, causal):
    compare([(2, 3, queries, width), (2, 3, keys, width), (2, 3, keys, value_width)], dtype, is_causal=causal)


@pytest.mark.parametrize(
    "shape", [(70, 90), (1, 90), (70, 1), (3, 70, 90), (2, 1, 70, 90), (2, 3, 70, 90), (2, 1, 1, 90)]
)
@pytest.mark.parametrize("kind", ["bool", "numbers"])
def test_masks_of_any_shape(shape, kind):
    rng = np.random.default_rng(1)
    mask = rng.random(shape) < 0.7 if kind == "bool" else rng.standard_normal(shape)
    for dtype in ("float32", "float64", "bfloat16"):
        compare([(2, 3, 70, 16), (2, 3, 90, 16), (2, 3, 90, 16)], dtype, mask)


def test_rows_that_see_nobody_are_zero_and_have_no_gradient():
    mask = np.ones((6, 8), dtype=bool)
    mask[2] = mask[5] = False
    out, _ = compare([(1, 2, 6, 4), (1, 2, 8, 4), (1, 2, 8, 4)], "float32", mask)
    assert out[:, :, 2].abs().max() == 0
    numbers = np.where(mask, 0.5, -np.inf)
    compare([(1, 2, 6, 4), (1, 2, 8, 4), (1, 2, 8, 4)], "float32", numbers)


@pytest.mark.parametrize("scale", [-1.5, 3.0])
def test_scale(scale):
    compare([(2, 2, 9, 4), (2, 2, 21, 4), (2, 2, 21, 4)], "float64", scale=scale)
    with torch.nn.attention.sdpa_kernel(
        torch.nn.attention.SDPBackend.MATH
    ):  # the other one hides keys before it scales
        compare([(2, 2, 21, 4), (2, 2, 21, 4), (2, 2, 21, 4)], "float64", scale=scale, is_causal=True)


@pytest.mark.parametrize("causal", [False, True])
def test_heads_of_queries_share_keys(causal):
    for dtype in ("float32", "bfloat16"):
        compare([(2, 6, 66, 8), (2, 2, 80, 8), (2, 2, 80, 8)], dtype, enable_gqa=True, is_causal=causal)
    compare([(6, 5, 8), (3, 7, 8), (3, 7, 8)], "float32", enable_gqa=True)


@pytest.mark.parametrize(
    "shapes",
    [[(5, 4), (7, 4), (7, 4)], [(3, 5, 4), (3, 7, 4), (3, 7, 4)], [(2, 2, 2, 5, 4), (2, 2, 2, 7, 4), (2, 2, 2, 7, 4)]],
)
def test_any_number_of_batch_dimensions(shapes):
    compare(shapes, "float64")


def test_batches_broadcast():
    compare([(2, 3, 5, 4), (1, 3, 7, 4), (2, 1, 7, 4)], "float64")
    compare([(3, 5, 4), (2, 3, 7, 4), (7, 4)], "float64")


def test_strides_of_any_kind():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, 17, 3, 4, 8))

    def run(library):
        t = library.tensor(x, requires_grad=True)
        q, k, v = (t[:, :, i].transpose(1, 2) for i in range(3))
        out = library.nn.functional.scaled_dot_product_attention(q, k.flip(-1), v.mT.contiguous().mT, is_causal=True)
        out.sum().backward()
        return out, t.grad

    for a, b in zip(run(cresset), run(torch), strict=True):
        near(a, b, "float64")


@pytest.mark.parametrize("shapes", [(0, 5, 7), (2, 0, 7), (2, 5, 0)])
def test_empty_sizes(shapes):
    batch, queries, keys = shapes
    compare([(batch, 2, queries, 4), (batch, 2, keys, 4), (batch, 2, keys, 4)], "float32")


def test_the_result_lies_as_in_pytorch():
    for shape, transposed in itertools.product([(2, 3, 5, 8), (3, 5, 8), (1, 1, 5, 8)], [False, True]):
        ours, theirs = cresset.zeros(shape), torch.zeros(shape)
        if transposed:
            ours, theirs = (t.transpose(-2, -3).contiguous().transpose(-2, -3) for t in (ours, theirs))
        a = cresset.nn.functional.scaled_dot_product_attention(ours, ours, ours)
        b = torch.nn.functional.scaled_dot_product_attention(theirs, theirs, theirs)
        assert a.stride() == b.stride()


def test_nan_and_infinite_scores_stay():
    q = np.zeros((1, 1, 3, 2))
    q[0, 0, 1] = np.nan
    q[0, 0, 2, 0] = np.inf
    k = np.ones((1, 1, 20, 2))

    def run(library):
        return library.nn.functional.scaled_dot_product_attention(*(library.tensor(t) for t in (q, k, k)))

    assert run(cresset).isnan().tolist() == run(torch).isnan().tolist()


def test_errors_are_of_the_same_class():
    cases = [
        [(2, 3, 5, 4), (2, 3, 7, 5), (2, 3, 7, 4)],
        [(5, 4), (7, 4), (8, 4)],
        [(2, 3, 5, 4), (3, 3, 7, 4), (3, 3, 7, 4)],
        [(4,), (4,), (4,)],
    ]
    for library, shapes in itertools.product((cresset, torch), cases):
        with pytest.raises(RuntimeError):
            library.nn.functional.scaled_dot_product_attention(*(library.zeros(s) for s in shapes))
    for library in (cresset, torch):
        q = library.zeros(1, 2, 3, 4)
        with pytest.raises(RuntimeError, match="attn_mask"):
            library.nn.functional.scaled_dot_product_attention(q, q, q, library.ones(3, 3, dtype=library.int64))
        with pytest.raises(RuntimeError):
            library.nn.functional.scaled_dot_product_attention(q, q, q, library.ones(4, 5))


def test_second_derivatives():
    rng = np.random.default_rng(5)
    arrays = [rng.standard_normal((1, 2, 4, 3)) for _ in range(3)]

    def run(library):
        q, k, v = (library.tensor(a, requires_grad=True) for a in arrays)
        out = library.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        (g,) = library.autograd.grad((out**2).sum(), q, create_graph=True)
        return library.autograd.grad((g**2).sum(), (q, k, v))

    for a, b in zip(run(cresset), run_with_math(run), strict=True):
        near(a, b, "float64")


def run_with_math(run):
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return run(torch)


@pytest.mark.parametrize("lengths", [None, (3, 2)])
@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_the_operator_of_scripted_layers_takes_nested_tensors_and_gives_weights_when_asked(lengths, need_weights):
    generator = np.random.default_rng(0)
    arrays = [generator.normal(size=size).astype("float32") for size in ((12, 4), (12,), (4, 4), (4,))]
    samples = [generator.normal(size=(length, 4)).astype("float32") for length in lengths or (3, 3)]

    def run(library):
        parts = [library.tensor(sample) for sample in samples]
        x = library.stack(parts) if lengths is None else library.nested.nested_tensor(parts)
        out, weights = library._native_multi_head_attention(
            x, x, x, 4, 2, *map(library.tensor, arrays), None, need_weights
        )
        return list(out.unbind()), weights

    (ours, our_weights), (theirs, their_weights) = run(cresset), run(torch)
    for a, b in zip(ours, theirs, strict=True):
        near(a, b, "float32")
    assert (our_weights is None) == (their_weights is None) == (not need_weights)
    if need_weights and lengths is None:
        near(our_weights, their_weights, "float32")
