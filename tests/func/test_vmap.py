"""vmap: every sample of a batch at once, with the shapes and the errors of one."""

import warnings

import pytest

import cresset
from cresset.func import vmap

X = cresset.arange(6.0).reshape(3, 2)


def test_a_function_of_a_sample_becomes_one_of_a_batch():
    assert vmap(cresset.dot)(X, cresset.ones(3, 2)).tolist() == [1.0, 5.0, 9.0]


class Watching(cresset.Tensor):
    """A subclass that sees the calls it is in."""

    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs)


def test_samples_of_a_subclass_are_plain_tensors_and_so_are_results():
    batch = X.as_subclass(Watching)
    Watching.calls.clear()
    seen = []
    assert type(vmap(lambda x: seen.append(type(x)) or x * 2)(batch)) is cresset.Tensor
    assert seen == [cresset.Tensor]
    assert "mul" not in Watching.calls
    assert type(vmap(lambda x: x[0])(batch)) is cresset.Tensor
    assert type(vmap(lambda x: x, out_dims=-1)(batch)) is cresset.Tensor
    assert vmap(lambda x: x)(batch) is batch  # given back as it is


def test_inside_shapes_are_those_of_a_sample():
    seen = []

    def look(x):
        seen.append((x.shape, x.dim(), x.numel(), len(x), isinstance(x, cresset.Tensor), type(x) is cresset.Tensor))
        return x

    vmap(look)(X)
    assert seen == [((2,), 1, 2, 2, True, True)]


def test_every_operation_runs_once_for_all_samples():
    calls = []

    def count(x):
        calls.append(1)
        return x.sin()

    vmap(count)(cresset.ones(100, 3))
    assert len(calls) == 1


def test_in_dims_and_out_dims_name_the_dimension_of_the_batch():
    assert vmap(lambda x: x.sum(), in_dims=1)(X).tolist() == [6.0, 9.0]
    assert vmap(lambda x: x, in_dims=-1, out_dims=-1)(X).tolist() == X.tolist()
    assert vmap(lambda x, y: x + y, in_dims=(0, None))(X, cresset.tensor([10.0, 20.0])).tolist() == [
        [10, 21],
        [12, 23],
        [14, 25],
    ]
    assert vmap(lambda x: x, out_dims=1)(X).shape == (2, 3)


def test_arguments_and_results_may_be_nested():
    def both(pair, table):
        return {"sum": pair[0] + table["a"], "rest": [pair[1]]}

    result = vmap(both, in_dims=((0, None), {"a": 1}))((X, cresset.tensor(5.0)), {"a": X.t()})
    assert result["sum"].tolist() == (2 * X).tolist()
    assert result["rest"][0].tolist() == [5.0, 5.0, 5.0]


def test_levels_nest():
    outer = vmap(lambda x: vmap(lambda y: (x * y).sum())(X))(X)
    assert outer.tolist() == (X @ X.t()).tolist()


def test_chunks_give_the_same():
    assert vmap(lambda x: x.cumsum(0), chunk_size=2)(X).tolist() == X.cumsum(1).tolist()


def test_writes_in_place_reach_the_batch():
    batch = X.clone()
    vmap(lambda x: x.add_(1))(batch)
    assert batch.tolist() == (X + 1).tolist()

    def first_to_ten(x):
        x = x.clone()
        x[0] = 10.0
        return x

    assert vmap(first_to_ten)(X).tolist() == [[10, 1], [10, 3], [10, 5]]


def test_a_tensor_from_outside_cannot_hold_all_samples():
    with pytest.raises(RuntimeError, match="inplace operation is not possible"):
        vmap(lambda x: cresset.zeros(2).copy_(x))(X)


def test_indices_may_differ_from_sample_to_sample():
    which = cresset.tensor([1, 0, 1])
    assert vmap(lambda x, i: x[i])(X, which).tolist() == [1.0, 2.0, 5.0]
    assert vmap(lambda i: X[i])(which).tolist() == X[which].tolist()

    def put(x, i):
        x = x.clone()
        x[i] = -1.0
        return x

    assert vmap(put)(X, which).tolist() == [[0, -1], [-1, 3], [4, -1]]


def test_einsum_and_where_batch():
    assert vmap(lambda x: cresset.einsum("i,i->", x, x))(X).tolist() == [1.0, 13.0, 41.0]
    assert vmap(lambda x: cresset.where(x > 2, x, 0))(X).tolist() == [[0, 0], [0, 3], [4, 5]]


@pytest.mark.parametrize(
    ("program", "phrase"),
    [
        (lambda x: x if x.sum() > 0 else -x, "data-dependent control flow"),
        (lambda x: x[0].item(), r"calling \.item\(\) on a Tensor"),
        (lambda x: x.tolist(), "doesn't have storage"),
        (lambda x: x.nonzero(), "dynamic shape"),
        (lambda x: x[x > 1], "dynamic shape"),
        (lambda x: x + cresset.rand(2), "randomness error mode"),
    ],
)
def test_what_samples_cannot_do_together_raises(program, phrase):
    with pytest.raises(RuntimeError, match=phrase):
        vmap(program)(X)


@pytest.mark.parametrize(
    ("call", "phrase"),
    [
        (lambda: vmap(lambda x: x)(3), "non-Tensor arguments"),
        (lambda: vmap(lambda x: x, in_dims=(0, 0))(X), "not compatible with the structure"),
        (lambda: vmap(lambda x: x, in_dims=2)(X), "dimensionality 2"),
        (lambda: vmap(lambda x, y: x)(X, cresset.ones(4)), r"got sizes \[3, 4\]"),
        (lambda: vmap(lambda x: 3)(X), "must only return Tensors"),
        (lambda: vmap(lambda x: x)(), "got no inputs"),
        (lambda: vmap(lambda x: x, chunk_size=0), "greater than 0"),
    ],
)
def test_wrong_arguments_raise(call, phrase):
    with pytest.raises(ValueError, match=phrase):
        call()


def test_randomness_is_the_same_or_different():
    same = vmap(lambda x: x * 0 + cresset.rand(2), randomness="same")(X)
    assert same[0].tolist() == same[1].tolist()
    different = vmap(lambda x: x * 0 + cresset.rand(2), randomness="different")(X)
    assert different[0].tolist() != different[1].tolist()
    dropped = vmap(lambda x: cresset.nn.functional.dropout(x, 0.5), randomness="same")(cresset.ones(4, 64))
    assert dropped[0].tolist() == dropped[3].tolist()


def test_an_operator_without_a_rule_runs_sample_by_sample_and_says_so_once():
    from cresset.func import batching

    batching.WITHOUT_RULE_WARNED.discard("histc")
    with pytest.warns(UserWarning, match="performance drop.*histc"):
        result = vmap(lambda x: cresset.histc(x, 2, 0, 6))(X)
    assert result.tolist() == [[2, 0], [1, 1], [0, 2]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vmap(lambda x: cresset.histc(x, 2, 0, 6))(X)


def test_a_sample_of_one_number_is_weak_in_promotion():
    doubles = cresset.ones(3, dtype=cresset.float64)
    assert vmap(lambda d, x: d * x)(doubles, X).dtype == cresset.float32
    assert vmap(lambda d, x: d * x[0])(doubles, X).dtype == cresset.float64


def test_a_tensor_that_left_vmap_raises():
    kept = []
    vmap(lambda x: kept.append(x) or x)(X)
    with pytest.raises(RuntimeError, match="vmap that is over"):
        kept[0] + 1


def test_printing_shows_the_batch():
    shown = []
    vmap(lambda x: shown.append(repr(x)) or x)(cresset.zeros(2, 1))
    assert shown == ["BatchedTensor(lvl=1, bdim=0, value=\n    tensor([[0.],\n            [0.]])\n)"]


LAYERS = {
    "conv": lambda x, w: cresset.nn.functional.conv2d(x, w, padding=1),
    "conv_transpose": lambda x, w: cresset.nn.functional.conv_transpose2d(x, w.transpose(0, 1)),
    "pool": lambda x, w: cresset.nn.functional.max_pool2d(x, 2) + w.sum(),
    "group_norm": lambda x, w: cresset.nn.functional.group_norm(x, 2) * w.mean(),
    "batch_norm": lambda x, w: cresset.nn.functional.batch_norm(x, None, None, w[:4, 0, 0, 0], training=True),
    "layer_norm": lambda x, w: cresset.nn.functional.layer_norm(x, (5,), w.flatten()[:5]),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0)])
def test_layers_agree_with_a_loop(name, dims):
    generator = cresset.Generator().manual_seed(0)
    x, w = cresset.randn(3, 2, 4, 5, 5, generator=generator), cresset.randn(3, 6, 4, 3, 3, generator=generator)
    args = [a if dim == 0 else a[0] for a, dim in zip((x, w), dims, strict=True)]
    batched = vmap(LAYERS[name], dims)(*args)
    looped = cresset.stack(
        [LAYERS[name](*(a[i] if dim == 0 else a for a, dim in zip(args, dims, strict=True))) for i in range(3)]
    )
    assert cresset.allclose(batched, looped, rtol=1e-4, atol=1e-5)


def test_arguments_by_name_are_the_same_for_every_sample():
    assert vmap(lambda x, y: x + y)(cresset.zeros(3), y=cresset.tensor([1.0, 2.0])).tolist() == [[1.0, 2.0]] * 3
    assert vmap(lambda x, y: x + y, chunk_size=2)(cresset.zeros(3), y=cresset.ones(2)).shape == (3, 2)


def test_packages_may_put_their_own_steps_in_the_place_of_ours(monkeypatch):
    import cresset._functorch.vmap as steps

    def doubled(dims, leaves, level, spec):
        return [2 * sample for sample in made(dims, leaves, level, spec)]

    made = steps._create_batched_inputs
    monkeypatch.setattr(steps, "_create_batched_inputs", doubled)
    assert vmap(cresset.sum)(X).tolist() == [2.0, 10.0, 18.0]


def test_what_a_tensor_is_inside_of_vmap_can_be_asked():
    from cresset._C import _functorch

    def look(x):
        assert _functorch.is_batchedtensor(x) and _functorch.maybe_get_level(x) == 1
        assert _functorch.maybe_get_bdim(x) == 0 and _functorch.get_unwrapped(x) is not x
        return x

    vmap(look)(X)
    assert not _functorch.is_batchedtensor(X) and _functorch.maybe_get_level(X) == _functorch.maybe_get_bdim(X) == -1
    with pytest.raises(RuntimeError, match="not one of vmap"):
        _functorch.get_unwrapped(X)


@pytest.mark.parametrize("transform", [vmap, cresset.func.grad, cresset.func.jacfwd])
def test_whether_a_transform_is_running_can_be_asked(transform):
    from cresset._C import _are_functorch_transforms_active

    seen = []
    transform(lambda x: seen.append(_are_functorch_transforms_active()) or x.sum())(cresset.ones(2))
    assert seen == [True] and not _are_functorch_transforms_active()


def test_chunks_of_the_same_randomness_draw_the_same_numbers():
    drawn = vmap(lambda x: x * 0 + cresset.rand(2), randomness="same", chunk_size=1)(X)
    assert (drawn == drawn[0]).all()


@pytest.mark.parametrize(
    "product, shapes",
    [(cresset.mm, [(3, 2, 2, 2), (3, 2)]), (cresset.mv, [(3, 2, 2), (3, 2, 2)]), (cresset.bmm, [(3, 2, 2), (3, 2, 2)])],
)
def test_a_product_of_matrices_takes_matrices_inside_vmap_too(product, shapes):
    with pytest.raises(RuntimeError, match="Shape mismatch"):
        vmap(product)(*map(cresset.ones, shapes))


def test_a_message_inside_vmap_says_what_to_do_instead():
    with pytest.raises(RuntimeError, match="out-of-place operators instead of scatter_add_"):
        vmap(lambda src: cresset.zeros(5).scatter_add_(0, cresset.tensor([0, 1]), src))(X)
    with pytest.raises(RuntimeError, match="called random operation while in randomness error mode.*rand"):
        vmap(lambda x: x + cresset.rand(2))(X)
    with pytest.raises(ValueError, match="at least one Tensor"):
        vmap(lambda x: cresset.ones(3), (None,))(1)


def test_samples_of_no_dimensions_are_no_pairs_of_real_and_imaginary_part():
    with pytest.raises(RuntimeError, match="must have one or more dimensions"):
        vmap(cresset.view_as_complex)(cresset.ones(2))
    assert vmap(cresset.view_as_complex)(cresset.ones(3, 2)).tolist() == [1 + 1j] * 3


def test_a_number_is_no_batch():
    with pytest.raises(RuntimeError, match="a 0-d tensor has no batch dimension"):
        cresset._native.sample_of(cresset.tensor(1.0), 0, 1)


def test_anomaly_detection_looks_at_all_samples():
    gradient = vmap(cresset.func.grad(lambda x: x.sqrt()))
    with cresset.autograd.set_detect_anomaly(True):
        assert gradient(cresset.tensor([1.0, 4.0])).tolist() == [0.5, 0.25]
        with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="returned nan values in its 0th output"):
            gradient(cresset.tensor([1.0, -1.0]))


def test_the_loop_over_samples_can_be_switched_off():
    from cresset._C import _functorch

    assert _functorch._is_vmap_fallback_enabled()
    _functorch._set_vmap_fallback_enabled(False)
    try:
        with pytest.raises(RuntimeError, match="Batching rule not implemented for histc"):
            vmap(lambda x: cresset.histc(x, 2, 0, 6))(X)
    finally:
        _functorch._set_vmap_fallback_enabled(True)


def test_a_batch_of_one_sample_has_no_say_in_the_order_of_the_result():
    x, y = cresset.ones(2, 1).mT, cresset.ones(2, 2)  # the stride of the batch is one
    assert x.stride() == (1, 1)
    assert vmap(lambda x, y: x * y, in_dims=(0, None))(x, y).stride() == (4, 2, 1)
    assert vmap(lambda x, y: x * y, in_dims=(0, None))(x, y.mT).stride()[1:] == (1, 2)


def test_the_memory_of_a_sample_is_not_exchanged():
    def exchanged(x):
        x.data = cresset.ones(2)
        return x * 2

    with pytest.raises(RuntimeError, match="mutating directly with `.data` under vmap"):
        vmap(exchanged)(X)
