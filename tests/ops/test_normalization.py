"""Normalization over layers, groups, batches."""

import pytest

import cresset
import cresset.nn.functional as F
from cresset.autograd import forward_ad, gradcheck, gradgradcheck

NAN, INF = float("nan"), float("inf")


def test_layer_norm_of_known_values():
    x = cresset.tensor([[1.0, 3.0], [0.0, 4.0]])
    assert cresset.layer_norm(x, (2,), eps=0.0).tolist() == [[-1.0, 1.0], [-1.0, 1.0]]
    weight, bias = cresset.tensor([2.0, 3.0]), cresset.tensor([0.0, 1.0])
    assert cresset.layer_norm(x, (2,), weight, bias, 0.0).tolist() == [[-2.0, 4.0], [-2.0, 4.0]]
    out, mean, rstd = cresset.native_layer_norm(x, (2,), None, None, 0.0)
    assert mean.tolist() == [[2.0], [2.0]] and rstd.tolist() == [[1.0], [0.5]]


def test_rms_norm_of_known_values():
    assert cresset.rms_norm(cresset.tensor([3.0, 4.0, 0.0, 0.0]), (4,)).tolist() == pytest.approx([1.2, 1.6, 0, 0])


def test_a_row_whose_squares_overflow_is_nan_not_zero():
    row = cresset.tensor([1e23, 1.0, 3e11])
    assert cresset.nn.functional.layer_norm(row, (3,)).isnan().all()
    assert cresset.nn.functional.group_norm(row[None, None], 1).isnan().all()
    assert cresset.nn.functional.layer_norm(row.double(), (3,))[0] == pytest.approx(2**0.5)


def test_native_group_norm_refuses_sizes_that_are_not_the_inputs():
    with pytest.raises(RuntimeError, match="8 samples, 2 channels and 3 places are not the 12 elements"):
        cresset.native_group_norm(cresset.ones(2, 2, 3), None, None, 8, 2, 3, 1, 1e-5)


def test_group_norm_of_known_values():
    x = cresset.tensor([[1.0, 3.0, 5.0, 9.0]])
    assert cresset.group_norm(x, 2, eps=0.0).tolist() == [[-1.0, 1.0, -1.0, 1.0]]
    assert cresset.group_norm(x, 2, cresset.tensor([1.0, 2.0, 3.0, 4.0]), None, 0.0).tolist() == [
        [-1.0, 2.0, -3.0, 4.0]
    ]


def test_group_norm_of_numbers_close_together_keeps_their_difference():
    x = cresset.tensor([[2.2113032, 2.1790452, 2.2113032, 2.1790452]])
    weight, bias = cresset.tensor([1.0, 1.0, 4.0, 4.0]), cresset.tensor([0.0, 0.0, 0.5, 0.5])
    for shape, parameters in (((1, 4), ()), ((1, 2, 2), ()), ((1, 4), (weight, bias))):
        exact = cresset.group_norm(x.reshape(shape).double(), 2, *(p.double() for p in parameters))
        got = cresset.group_norm(x.reshape(shape), 2, *parameters)
        assert got.flatten().tolist() == pytest.approx(exact.flatten().tolist(), rel=1e-6)


@pytest.mark.parametrize("dtype", [cresset.float64, cresset.float32, cresset.float16])
def test_equal_numbers_are_their_mean_and_nothing_is_left_of_them(dtype):
    for value in (0.1, 1.7, -9.3, 1e-4):
        for n in (3, 7, 21, 100, 5000):
            row = cresset.full((1, 1, n), value, dtype=dtype)
            assert not F.layer_norm(row, (n,)).any() and not F.group_norm(row, 1).any()
            assert cresset.native_layer_norm(row, (n,), None, None, 1e-5)[1] == row[0, 0, 0]
    tiny = cresset.full((3,), 1e-200, dtype=cresset.float64)
    assert not F.layer_norm(tiny, (3,), eps=1e-300).any()


def test_batch_norm_learns_running_statistics_and_uses_them_in_evaluation():
    x, mean, var = cresset.tensor([[1.0], [3.0]]), cresset.zeros(1), cresset.ones(1)
    out = cresset.batch_norm(x, None, None, mean, var, True, 0.5, 0.0, False)
    assert out.tolist() == [[-1.0], [1.0]] and mean.tolist() == [1.0] and var.tolist() == [1.5]
    out = cresset.batch_norm(x, None, None, cresset.tensor([1.0]), cresset.tensor([4.0]), False, 0.5, 0.0, False)
    assert out.tolist() == [[0.0], [1.0]]


def test_two_forward_passes_in_training_can_both_go_backward():
    x, mean, var = cresset.randn(4, 2, 3, requires_grad=True), cresset.zeros(2), cresset.ones(2)
    first = cresset.batch_norm(x, None, None, mean, var, True, 0.1, 1e-5, False)
    second = cresset.batch_norm(x * 2, None, None, mean, var, True, 0.1, 1e-5, False)
    (first * second).sum().backward()
    assert x.grad.isfinite().all()


def test_batch_norm_keeps_channels_last():
    x = cresset.randn(2, 3, 4, 5)
    last = x.contiguous(memory_format=cresset.channels_last)
    plain, kept = (cresset.batch_norm(t, None, None, None, None, True, 0.1, 1e-5, False) for t in (x, last))
    assert kept.stride() == last.stride()
    assert (plain - kept).abs().max().item() < 1e-6


def test_only_the_normalized_tensor_has_a_gradient():
    x = cresset.randn(2, 3, requires_grad=True)
    out, mean, rstd = cresset.native_layer_norm(x, (3,), None, None, 1e-5)
    assert out.requires_grad and not mean.requires_grad and not rstd.requires_grad
    assert "NativeLayerNormBackward0" in repr(out.grad_fn)


@pytest.mark.parametrize("used", [(0,), (1,), (2,), (1, 2), (0, 2), (0, 1, 2)], ids=str)
def test_gradients_flow_through_the_statistics_of_groups(used):
    x, weight, bias = (cresset.arange(n, dtype=cresset.float64).mul(7).cos().requires_grad_() for n in (36, 6, 6))

    scale, shift = weight.detach(), bias.detach()

    def statistics(x, weight=scale, bias=shift):
        results = cresset.native_group_norm(x.reshape(2, 6, 3), weight, bias, 2, 6, 3, 3, 1e-5)
        return [results[which] for which in used]

    inputs = (x, weight, bias) if 0 in used else (x,)
    assert gradcheck(statistics, inputs) and gradgradcheck(statistics, inputs)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda x: cresset.layer_norm(x, (4,)),
            r"Given normalized_shape=\[4\], expected input with shape \[\*, 4\], but got input of size\[2, 3\]",
        ),
        (lambda x: cresset.layer_norm(x, ()), "at least 1-dimensional"),
        (
            lambda x: cresset.layer_norm(x, (3,), cresset.ones(2)),
            "Expected weight to be of same shape as normalized_shape",
        ),
        (lambda x: cresset.group_norm(x, 2), "divisible by num_groups"),
        (
            lambda x: cresset.batch_norm(x, cresset.ones(4), None, None, None, True, 0.1, 1e-5, False),
            "weight should contain 3 elements not 4",
        ),
        (
            lambda x: cresset.batch_norm(x, None, None, None, None, False, 0.1, 1e-5, False),
            "running_mean must be defined in evaluation mode",
        ),
    ],
)
def test_errors_name_what_is_wrong(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(cresset.ones(2, 3))


FUNCTIONS = {
    "softmax": lambda x, w, b: x.softmax(1),
    "log_softmax": lambda x, w, b: x.log_softmax(2),
    "layer_norm": lambda x, w, b: cresset.layer_norm(x, (4,), w, b),
    "layer_norm over two": lambda x, w, b: cresset.layer_norm(x, (4, 4)),
    "rms_norm": lambda x, w, b: cresset.rms_norm(x, (4,), w, 1e-3),
    "group_norm": lambda x, w, b: cresset.group_norm(x, 2, w, b),
    "batch_norm": lambda x, w, b: cresset.batch_norm(x, w, b, None, None, True, 0.1, 1e-5, False),
    "batch_norm in evaluation": lambda x, w, b: cresset.batch_norm(
        x, w, b, cresset.full_like(w, 0.3).detach(), cresset.full_like(w, 2.0).detach(), False, 0.1, 1e-5, False
    ),
    "instance_norm": lambda x, w, b: cresset.instance_norm(x, w, b, None, None, True, 0.1, 1e-5, False),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_agree_with_finite_differences(name):
    x = (cresset.arange(32, dtype=cresset.float64).reshape(2, 4, 4) * 7 % 31 / 9 - 1.5).requires_grad_()
    w = cresset.tensor([0.5, -1.0, 2.0, 1.5], dtype=cresset.float64, requires_grad=True)
    b = cresset.tensor([0.1, 0.2, -0.3, 0.4], dtype=cresset.float64, requires_grad=True)
    assert gradcheck(FUNCTIONS[name], (x, w, b))
    assert gradgradcheck(FUNCTIONS[name], (x, w, b))


@pytest.mark.parametrize("normalize", [
    lambda x, w: cresset.nn.functional.layer_norm(x, (4,), w),
    lambda x, w: cresset.nn.functional.group_norm(x, 2, w),
    lambda x, w: cresset.nn.functional.batch_norm(x, w, w),
    lambda x, w: cresset.nn.functional.batch_norm(x, None, None, w, training=True),
], ids=["layer", "group", "batch", "training"])  # fmt: skip
def test_parameters_have_the_dtype_of_the_input_or_float32_beside_halves(normalize):
    for input, weight in (
        ("float64", "float32"),
        ("float32", "float64"),
        ("float16", "bfloat16"),
        ("bfloat16", "float64"),
    ):
        with pytest.raises(RuntimeError, match="mixed dtype"):
            normalize(
                cresset.ones(2, 4, dtype=getattr(cresset, input)), cresset.ones(4, dtype=getattr(cresset, weight))
            )
    assert normalize(cresset.ones(2, 4, dtype=cresset.float16), cresset.ones(4)).dtype == cresset.float16


def test_the_parameters_of_a_normalization_have_one_dtype():
    halves = cresset.ones(2, 4, dtype=cresset.float16)
    with pytest.raises(RuntimeError, match="mixed dtype"):
        cresset.nn.functional.layer_norm(halves, (4,), cresset.ones(4), cresset.ones(4, dtype=cresset.float16))


@pytest.mark.parametrize(
    "norm, shape",
    [
        (lambda x, w: F.layer_norm(x, (3,)), (2, 2)),
        (lambda x, w: F.layer_norm(x, (3,)), (9, 3)),
        (lambda x, w: F.rms_norm(x, (3,)), (9, 3)),
        (lambda x, w: F.batch_norm(x, None, None, w, training=True), (2, 70)),
    ],
)
def test_a_derivative_refuses_an_input_that_got_another_size(norm, shape):
    x, w = cresset.rand(2, 3, requires_grad=True), cresset.ones(3)
    y = norm(x, w)
    with cresset.no_grad():
        x.set_(cresset.rand(shape).untyped_storage(), 0, shape)
    with pytest.raises(RuntimeError, match="the (input|gradient) has shape|of the backward has shape"):
        y.backward(cresset.ones(2, 3))


def test_a_derivative_refuses_the_gradient_of_a_result_that_got_another_size():
    x = cresset.rand(2, 3, requires_grad=True)
    y = F.layer_norm(x, (3,))
    with cresset.no_grad(), pytest.warns(UserWarning, match="resized"):
        cresset.index_select(x, 1, cresset.tensor([0, 1]), out=y)
    with pytest.raises(RuntimeError, match=r"invalid gradient at index \d - got \[2, 2\]"):
        y.backward(cresset.ones(2, 2))


def test_the_backward_of_group_norm_is_one_operator_where_only_its_result_is_used():
    """The mean and the deviation are results, too: gradients of 0 for them were computed through and through."""
    x, weight, bias = (t.requires_grad_() for t in (cresset.randn(2, 4, 3), cresset.ones(4), cresset.zeros(4)))
    result = cresset.group_norm(x, 2, weight, bias)
    with cresset.profiler.profile() as seen:
        result.backward(cresset.ones_like(result))
    names = {event.key for event in seen.key_averages()}
    assert "aten::_group_norm_backward" in names and not names & {"aten::rsqrt", "aten::mean", "aten::sub"}


@pytest.mark.parametrize("norm", ["instance_norm", "batch_norm", "group_norm"])
def test_an_incoming_gradient_in_another_order_gives_what_one_in_order_gives(norm):
    x = cresset.arange(72.0, dtype=cresset.float64).remainder(7).reshape(2, 4, 3, 3).requires_grad_()
    weight = cresset.arange(4.0, dtype=cresset.float64).requires_grad_()
    upstream = cresset.arange(72.0, dtype=cresset.float64).remainder(5).reshape(3, 3, 2, 4)
    call = {
        "instance_norm": lambda: F.instance_norm(x, weight=weight),
        "batch_norm": lambda: F.batch_norm(x, None, None, weight, training=True),
        "group_norm": lambda: F.group_norm(x, 2, weight),
    }[norm]
    permuted = cresset.autograd.grad((call().permute(2, 3, 0, 1) * upstream).sum(), (x, weight))
    in_order = cresset.autograd.grad(call(), (x, weight), upstream.permute(2, 3, 0, 1).contiguous())
    for one, other in zip(permuted, in_order, strict=True):
        cresset.testing.assert_close(one, other)


def test_running_statistics_are_updated_by_those_of_a_batch():
    mean, var = cresset.zeros(1), cresset.ones(1)
    found = cresset.batch_norm_update_stats(cresset.tensor([[1.0], [3.0]]), mean, var, 0.5)
    assert [part.tolist() for part in found] == [[2.0], [1.0]]
    assert mean.tolist() == [1.0] and var.tolist() == [1.5]
    with pytest.raises(RuntimeError, match=r"at least one element, but got input_sizes = \[0, 1\]"):
        cresset.batch_norm_update_stats(cresset.ones(0, 1), mean, var, 0.5)


def test_the_statistics_that_batch_norm_is_given_have_no_gradient():
    x, mean, var = cresset.randn(3, 2), cresset.zeros(2, requires_grad=True), cresset.ones(2)
    for training in (False, True):
        with pytest.raises(RuntimeError, match="not differentiable with respect to argument 'running_mean'"):
            cresset.nn.functional.batch_norm(x, mean, var, training=training)
    with cresset.no_grad():
        assert cresset.nn.functional.batch_norm(x, mean, var, eps=0.0).equal(x)


def test_the_statistics_that_batch_norm_is_given_have_no_tangents_where_the_input_has_one():
    x, mean, var = cresset.randn(3, 2), cresset.zeros(2), cresset.ones(2)
    with forward_ad.dual_level():
        moving = forward_ad.make_dual(mean, cresset.ones(2))
        assert forward_ad.unpack_dual(cresset.nn.functional.batch_norm(x, moving, var)).tangent is None
        both = forward_ad.make_dual(x, cresset.ones(3, 2)), moving, var
        with pytest.raises(RuntimeError, match="not differentiable wrt running_mean and running_var"):
            cresset.nn.functional.batch_norm(*both)


@pytest.mark.parametrize("dtype", [cresset.float16, cresset.bfloat16])
@pytest.mark.parametrize("parameters", [cresset.float32, None])
def test_instance_norm_of_half_precision_keeps_its_statistics_in_float32(dtype, parameters):
    mean, var = cresset.zeros(2), cresset.ones(2)
    weight = None if parameters is None else cresset.ones(2, dtype=parameters, requires_grad=True)
    x = cresset.tensor([[[1.0, 3.0], [2.0, 6.0]]], dtype=dtype, requires_grad=True)
    y = F.instance_norm(x, mean, var, weight, use_input_stats=True, momentum=0.5, eps=0.0)
    assert y.dtype == dtype and y.tolist() == [[[-1.0, 1.0], [-1.0, 1.0]]]
    assert mean.tolist() == [1.0, 2.0] and mean.dtype == cresset.float32
    y.square().sum().backward()
    assert x.grad.dtype == dtype
    assert weight is None or weight.grad.tolist() == [4.0, 4.0]


HALVES_NORMALIZED = {
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "rms_norm": lambda x: F.rms_norm(x, x.shape[-1:]),
    "softmax": lambda x: F.softmax(x, -1),
    "log_softmax": lambda x: F.log_softmax(x, -1),
    "group_norm": lambda x: F.group_norm(x.unflatten(0, (2, 36)), 4),
    "group_norm of large groups": lambda x: F.group_norm(x.reshape(1, 2, -1), 1),
    "batch_norm": lambda x: F.batch_norm(
        x.unflatten(0, (9, 8)), cresset.zeros(8), cresset.ones(8), cresset.arange(8.0), cresset.ones(8), True
    ),
    "batch_norm, channels innermost": lambda x: F.batch_norm(
        x.reshape(2, 36, 50, 6).contiguous(memory_format=cresset.channels_last),
        cresset.zeros(36), cresset.ones(36), cresset.ones(36), cresset.ones(36), True,
    ),
    "batch_norm in evaluation": lambda x: F.batch_norm(
        x.unflatten(0, (9, 8)), cresset.ones(8), cresset.full((8,), 2.0), cresset.arange(8.0), cresset.ones(8)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HALVES_NORMALIZED)
def test_halves_are_normalized_in_float(name):
    """More rows than are converted at once: each has the bits of the float's result, rounded."""
    cresset.manual_seed(0)
    x, normalize = cresset.randn(72, 300, dtype=cresset.bfloat16), HALVES_NORMALIZED[name]
    assert cresset.equal(normalize(x), normalize(x.float()).bfloat16())


@pytest.mark.parametrize("points", [8, 100, 700])
def test_batch_norm_has_the_same_bits_in_either_order_of_memory(points):
    """Blocks of a channel are summed alone, several together, or channels side by side."""
    cresset.manual_seed(0)
    x = cresset.randn(7, 5, points, points // 8)
    results = []
    for t in (x, x.contiguous(memory_format=cresset.channels_last)):
        t = t.detach().requires_grad_()
        y = F.batch_norm(t, None, None, cresset.arange(5.0), None, True)
        y.backward(x.cos())
        results.append((y.detach(), t.grad))
    assert cresset.equal(results[0][0], results[1][0]) and cresset.equal(results[0][1], results[1][1])


def test_rms_norm_of_too_few_dimensions_is_a_value_error():
    with pytest.raises(ValueError, match="Input tensor must have at least 2 dimensions, but got 1"):
        cresset.rms_norm(cresset.ones(4), (2, 4))
