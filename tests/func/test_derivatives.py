"""Derivatives as functions, alone and inside one another."""

import pytest

import cresset
import cresset.nn.functional as F
from cresset.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)

X = cresset.tensor([1.0, 2.0, 3.0])


def cubes(x):
    return (x**3).sum()


def test_grad_by_one_or_several_arguments():
    assert grad(cubes)(X).tolist() == [3.0, 12.0, 27.0]
    first, second = grad(lambda a, b: (a * b).sum(), argnums=(0, 1))(X, 2 * X)
    assert (first.tolist(), second.tolist()) == ([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    assert grad(lambda t: (t["a"] * t["b"][0]).sum())({"a": X, "b": [X]})["a"].tolist() == X.tolist()


def test_values_and_aux_come_along():
    assert [item.tolist() for item in grad_and_value(cubes)(X)] == [[3.0, 12.0, 27.0], 36.0]
    slope, aux = grad(lambda x: (cubes(x), {"double": 2 * x}), has_aux=True)(X)
    assert (slope.tolist(), aux["double"].tolist()) == ([3.0, 12.0, 27.0], [2.0, 4.0, 6.0])
    slope, (value, aux) = grad_and_value(lambda x: (cubes(x), x + 1), has_aux=True)(X)
    assert (value.tolist(), aux.tolist(), aux.requires_grad) == (36.0, [2.0, 3.0, 4.0], False)


def test_results_have_no_history_unless_somebody_outside_wants_it():
    assert not grad(cubes)(X).requires_grad
    assert not jacrev(cresset.sin)(X).requires_grad
    w = cresset.tensor(2.0, requires_grad=True)
    slope = grad(lambda x: cubes(x) * w)(X)
    slope.sum().backward()
    assert w.grad.item() == 42.0


def test_an_argument_that_does_not_matter_has_zeros():
    assert grad(lambda x, y: x.sum(), argnums=1)(X, X).tolist() == [0.0, 0.0, 0.0]


def test_vmap_of_grad_is_a_gradient_for_each_sample():
    weight = cresset.tensor([1.0, -1.0])
    samples = cresset.tensor([[1.0, 2.0], [3.0, 4.0]])
    each = vmap(grad(lambda w, x: ((w * x).sum()) ** 2), (None, 0))(weight, samples)
    assert each.tolist() == [[-2.0, -4.0], [-6.0, -8.0]]
    total = grad(lambda w: vmap(lambda x: ((w * x).sum()) ** 2)(samples).sum())(weight)
    assert total.tolist() == each.sum(0).tolist()


def test_grad_around_vmap_of_grad():
    weight = cresset.tensor(2.0)
    result = grad(lambda w: vmap(grad(lambda x: w * x**2))(X).sum())(weight)
    assert result.item() == 12.0  # d/dw of 2 w (1 + 2 + 3)


def test_nested_grads_do_not_mix():
    assert grad(lambda x: x * grad(lambda y: x * y)(cresset.tensor(3.0)))(cresset.tensor(2.0)).item() == 4.0
    assert grad(grad(grad(lambda x: x**4)))(cresset.tensor(2.0)).item() == 48.0


def test_no_grad_outside_does_not_stop_grad_and_inside_it_does():
    with cresset.no_grad():
        assert grad(cubes)(X).tolist() == [3.0, 12.0, 27.0]

    def detached(x):
        with cresset.no_grad():
            shift = x**2
        return (x - shift).sum()

    assert grad(detached)(X).tolist() == [1.0, 1.0, 1.0]


def test_vjp_and_jvp_are_transposed():
    def f(x):
        return cresset.stack([x[0] * x[1], x[1] * x[2]])

    output, pull = vjp(f, X)
    assert output.tolist() == [2.0, 6.0]
    assert pull(cresset.tensor([1.0, 10.0]))[0].tolist() == [2.0, 31.0, 20.0]
    assert jvp(f, (X,), (cresset.tensor([1.0, 0.0, 1.0]),))[1].tolist() == [2.0, 2.0]


def test_forward_levels_nest():
    push = lambda f: lambda x: jvp(f, (x,), (cresset.ones_like(x),))[1]  # noqa: E731
    assert push(push(lambda x: x**3))(X).tolist() == [6.0, 12.0, 18.0]
    assert push(push(push(lambda x: x**3)))(X).tolist() == [6.0, 6.0, 6.0]
    mixed = jvp(lambda x: x * jvp(lambda y: x * y, (X,), (cresset.ones(3),))[1], (X,), (cresset.ones(3),))[1]
    assert mixed.tolist() == (2 * X).tolist()


SECOND = {
    "forward over reverse": lambda f: jacfwd(jacrev(f)),
    "reverse over forward": lambda f: jacrev(jacfwd(f)),
    "reverse over reverse": lambda f: jacrev(jacrev(f)),
    "forward over forward": lambda f: jacfwd(jacfwd(f)),
    "hessian": hessian,
}


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_agree(name):
    expected = [[0.0, 3.0, 2.0], [3.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
    assert cresset.allclose(SECOND[name](lambda x: x.prod())(X), cresset.tensor(expected))
    each = vmap(SECOND[name](lambda x: x.exp().sum()))(cresset.zeros(2, 3))
    assert each.tolist() == [cresset.eye(3).tolist()] * 2


def test_jacobians_have_the_structure_of_results_and_arguments():
    def f(a, b):
        return {"p": a * b, "q": a.sum()}

    for jacobian in (jacrev, jacfwd):
        result = jacobian(f, argnums=(0, 1))(X, 2 * X)
        assert result["p"][0].tolist() == cresset.diag(2 * X).tolist()
        assert result["q"][1].tolist() == [0.0, 0.0, 0.0]
    assert (
        jacrev(cresset.sin, chunk_size=2)(X).tolist()
        == jacrev(cresset.sin)(X).tolist()
        == jacrev(cresset.sin, chunk_size=1)(X).tolist()
    )


def test_the_jacobian_of_a_number_by_a_number_is_a_number():
    x = cresset.tensor(2.0)
    assert jacfwd(lambda x: x * x)(x).item() == jacrev(lambda x: x * x)(x).item() == 4.0
    assert jacfwd(lambda x: x**3, argnums=(0,))(x)[0].shape == ()


def test_linearize_runs_the_function_once():
    calls = []

    def f(x):
        calls.append(1)
        return x**2

    output, push = linearize(f, X)
    assert output.tolist() == [1.0, 4.0, 9.0]
    assert push(cresset.ones(3)).tolist() == [2.0, 4.0, 6.0]
    assert push(X).tolist() == [2.0, 8.0, 18.0]
    assert len(calls) == 1


def test_what_linearize_gives_depends_on_the_point():
    x = cresset.tensor([1.0, 2.0], requires_grad=True)
    slopes = linearize(lambda x: x**3, x)[1](cresset.ones(2))  # 3 x²
    (second,) = cresset.autograd.grad(slopes.sum(), x)
    assert second.tolist() == [6.0, 12.0]


def test_columns_of_a_jacobian_lie_as_the_argument_does():
    x = cresset.arange(6.0).reshape(2, 3).t()
    assert jacfwd(lambda x: x * 2)(x).stride() == (1, 3, 12, 6)
    assert jacfwd(lambda x: x.t().sin())(x).stride() == (3, 1, 12, 6)


class Tagged(cresset.Tensor):
    """A subclass without rules of its own."""


def test_forward_mode_gives_plain_tensors():
    x = X.clone().as_subclass(Tagged)
    seen = []
    output, tangent = jvp(lambda x: seen.append(type(x)) or x * 2, (x,), (x,))
    assert seen == [type(output)] == [type(tangent)] == [cresset.Tensor]
    assert tangent.tolist() == [2.0, 4.0, 6.0]


@pytest.mark.parametrize("requires_grad", [False, True])
def test_reverse_mode_gives_plain_tensors(requires_grad):
    x = X.clone().as_subclass(Tagged).requires_grad_(requires_grad)
    seen = []
    output, pull = vjp(lambda x: seen.append(type(x)) or x.exp(), x)
    (slope,) = pull(cresset.ones_like(x))
    assert seen == [type(output)] == [type(slope)] == [cresset.Tensor]
    assert slope.requires_grad is requires_grad


def test_an_argument_of_a_class_that_is_given_back_is_itself():
    x = X.clone().as_subclass(Tagged)
    assert vjp(lambda x: (x * 2, x), x)[0][1] is x


@pytest.mark.parametrize(
    ("call", "kind", "phrase"),
    [
        (lambda: grad(lambda x: x)(X), RuntimeError, "scalar Tensor"),
        (lambda: grad(lambda x: 3)(X), RuntimeError, "to return a Tensor"),
        (lambda: grad(cubes, argnums=2)(X), RuntimeError, "argnum=2"),
        (lambda: grad(cubes)(3), ValueError, "must be Tensor"),
        (lambda: vjp(lambda x: x, X)[1](cresset.ones(2)), RuntimeError, "Mismatch in shape"),
        (lambda: jvp(cubes, X, X), RuntimeError, "primals to be a tuple"),
        (lambda: jvp(cubes, (X,), (X, X)), RuntimeError, "same python structure"),
        (lambda: jacrev(cubes, chunk_size=0), ValueError, "chunk_size"),
        (lambda: linearize(cubes, X)[1](X.double()), RuntimeError, "primal's dtype torch.float32, got torch.float64"),
        (lambda: jacrev(cubes)(X * 1j), RuntimeError, "jacrev: Expected all inputs to be real .* idx: 0"),
        (lambda: jacrev(lambda x: (x, x * 1j))(X), RuntimeError, "jacrev: Expected all outputs to be real .* idx: 1"),
        (lambda: jacfwd(cubes)(X, X * 1j), RuntimeError, "jacfwd: Expected all inputs to be real .* idx: 1"),
        (lambda: jacfwd(lambda x: x * 1j)(X), RuntimeError, "jacfwd: Expected all outputs to be real .* idx: 0"),
        (lambda: hessian(cubes)(X * 1j), RuntimeError, "Expected all inputs to be real"),
    ],
)
def test_wrong_arguments_raise(call, kind, phrase):
    with pytest.raises(kind, match=phrase):
        call()


def test_modules_are_functions_of_their_parameters():
    layers = [cresset.nn.Linear(2, 1) for _ in range(3)]
    parameters, buffers = stack_module_state(layers)
    inputs = cresset.tensor([[1.0, 2.0]])
    outputs = vmap(lambda p, b: functional_call(layers[0], (p, b), inputs))(parameters, buffers)
    assert cresset.allclose(outputs, cresset.stack([layer(inputs) for layer in layers]))
    each = vmap(grad(lambda p, x: functional_call(layers[0], p, x).sum()), (None, 0))(
        dict(layers[0].named_parameters()), cresset.eye(2)
    )
    assert each["weight"].tolist() == [[[1.0, 0.0]], [[0.0, 1.0]]]


class Square(cresset.autograd.Function):
    """x², with a backward that is twice too large, to see that it is used."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx, grad):
        return grad * 4 * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx, tangent):
        return tangent * 8


class Product(cresset.autograd.Function):
    """x y, with gradients in the shape of the product, which broadcast inputs have not."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return Product.apply(grad, y), Product.apply(grad, x)


@pytest.mark.parametrize("dims, shapes", [
    ((0, 0), [(2, 4), (2, 3, 4)]), ((None, 0), [(1, 4), (2, 3, 4)]), ((1, None), [(3, 2, 1), (3, 4)]),
])  # fmt: skip
def test_a_generated_rule_sums_over_what_was_broadcast_inside_of_a_sample(dims, shapes):
    x, y = (cresset.randn(shape) for shape in shapes)

    def total(product):
        return lambda x, y: vmap(product, dims)(x, y).square().sum()

    found = grad(total(Product.apply), (0, 1))(x, y)
    expected = grad(total(cresset.mul), (0, 1))(x, y)
    assert [g.shape for g in found] == [x.shape, y.shape]
    assert all(cresset.allclose(g, e, atol=1e-5) for g, e in zip(found, expected, strict=True))


class Doubled(Square):
    generate_vmap_rule = False

    @staticmethod
    def vmap(info, in_dims, x):
        assert (info.batch_size, in_dims) == (3, (0,))
        return Square.apply(x) + 1, 0


class TestFunctionInTransforms:
    def test_its_backward_is_used_on_either_side_of_vmap(self):
        assert vmap(Square.apply)(X).tolist() == [1.0, 4.0, 9.0]
        assert grad(lambda x: Square.apply(x).sum())(X).tolist() == [4.0, 8.0, 12.0]
        assert vmap(grad(Square.apply))(X).tolist() == [4.0, 8.0, 12.0]
        assert grad(lambda x: vmap(Square.apply)(x).sum())(X).tolist() == [4.0, 8.0, 12.0]
        assert vmap(vmap(grad(Square.apply)))(X.reshape(3, 1)).tolist() == [[4.0], [8.0], [12.0]]
        assert vmap(grad(grad(Square.apply)))(X).tolist() == [4.0, 4.0, 4.0]

    def test_its_rule_is_used(self):
        assert vmap(Doubled.apply)(X).tolist() == [2.0, 5.0, 10.0]

    def test_its_jvp_is_used(self):
        assert jvp(Square.apply, (X,), (cresset.ones(3),))[1].tolist() == [8.0, 8.0, 8.0]

    def test_without_a_rule_it_raises(self):
        class Plain(Square):
            generate_vmap_rule = False

        with pytest.raises(RuntimeError, match="does not have vmap support"):
            vmap(Plain.apply)(X)


def test_matrices_have_derivatives_inside_vmap():
    matrices = cresset.stack([cresset.eye(2) * 2, cresset.tensor([[3.0, 1.0], [1.0, 2.0]])])
    assert vmap(cresset.linalg.det)(matrices).tolist() == pytest.approx([4.0, 5.0])
    each = vmap(grad(cresset.linalg.det))(matrices)
    assert cresset.allclose(each, cresset.tensor([[[2.0, 0.0], [0.0, 2.0]], [[2.0, -1.0], [-1.0, 3.0]]]))
    total = grad(lambda m: vmap(cresset.linalg.det)(m).sum())(matrices)
    assert cresset.allclose(total, each)
    again = grad(lambda m: vmap(grad(cresset.linalg.det))(m).square().sum())(matrices)
    looped = grad(lambda m: sum(grad(cresset.linalg.det)(x).square().sum() for x in m))(matrices)
    assert cresset.allclose(again, looped, atol=1e-4)


@pytest.mark.parametrize(
    ("pattern", "lengths", "shape"),
    [
        ("a b c -> c a b", {}, (4, 2, 3)),
        ("a b c -> (a b) c", {}, (6, 4)),
        ("a b (h w) -> a h b w", {"h": 2}, (2, 2, 3, 2)),
        ("... c -> c ...", {}, (4, 2, 3)),
        ("a b c -> a 1 (c b)", {}, (2, 1, 12)),
    ],
)
def test_rearrange_takes_dimensions_apart_and_puts_them_together(pattern, lengths, shape):
    from cresset.func import rearrange

    x = cresset.arange(24).reshape(2, 3, 4)
    assert rearrange(x, pattern, **lengths).shape == shape
    assert rearrange(x, "a b c -> c (b a)")[1].tolist() == x[:, :, 1].t().reshape(-1).tolist()
    with pytest.raises(ValueError, match="does not fit"):
        rearrange(x, "a b (h w) -> a b h w", h=3)


def test_a_forward_derivative_of_a_backward_pass_runs_nodes_of_its_own():
    def summed(x):
        return (x * x).sum()

    slope = lambda x: jvp(lambda y: jvp(summed, (y,), (cresset.ones(3),))[1], (x,), (X,))[1]  # noqa: E731
    assert slope(X).item() == 12.0  # d/dx of 2 (x1 + x2 + x3), along (1, 2, 3)


@pytest.mark.parametrize("aux", [1, "text", None, [1.5], {"a": 2}], ids=str)
def test_what_comes_along_is_made_of_tensors(aux):
    x = cresset.ones(2)

    def f(x):
        return x.sum(), aux

    for run in (
        lambda: grad(f, has_aux=True)(x),
        lambda: vjp(f, x, has_aux=True),
        lambda: jvp(f, (x,), (x,), has_aux=True),
        lambda: jacrev(f, has_aux=True)(x),
        lambda: jacfwd(f, has_aux=True)(x),
    ):
        with pytest.raises(RuntimeError, match="Expected tensors, got unsupported type"):
            run()


@pytest.mark.parametrize("output", [(), {}, None], ids=str)
def test_a_function_without_a_result_is_refused(output):
    x = cresset.ones(2)
    for run in (
        lambda: vjp(lambda x: output, x),
        lambda: jvp(lambda x: output, (x,), (x,)),
        lambda: jacrev(lambda x: output)(x),
        lambda: jacfwd(lambda x: output)(x),
    ):
        with pytest.raises(RuntimeError, match="Expected f to be a function that has non-empty output"):
            run()


CHOOSING = {
    "relu": cresset.relu,
    "relu_": lambda x: (x * 1).relu_(),
    "clamp": lambda x: x.clamp(min=0),
    "hardtanh": lambda x: F.hardtanh(x, 0, 1),
    "threshold": lambda x: F.threshold(x, 0.0, 0.0),
    "maximum": lambda x: cresset.maximum(x, cresset.zeros(3)),
    "hardshrink": lambda x: F.hardshrink(x, 0.5),
    "softshrink": lambda x: F.softshrink(x, 0.5),
}


@pytest.mark.parametrize("name", CHOOSING)
def test_where_a_derivative_is_zero_an_infinite_gradient_is_zero(name):
    def function(x):  # the derivative of sqrt is infinite at 0
        return CHOOSING[name](x).abs().sqrt().sum()

    x = cresset.tensor([-0.25, -1.0, 2.0])
    given = x.clone().requires_grad_()
    (expected,) = cresset.autograd.grad(function(given), given)
    assert expected[0] == 0 and not expected.isnan().any()
    again = x.clone().requires_grad_()
    (recorded,) = cresset.autograd.grad(function(again), again, create_graph=True)
    for found in (recorded.detach(), grad(function)(x), jacrev(function)(x), vmap(grad(function))(x[None])[0]):
        cresset.testing.assert_close(found, expected)


def test_gradients_of_pooling_dropout_and_a_single_sample_are_batched():
    cresset.manual_seed(0)
    mask = cresset.tensor([True, False, True, True])
    cases = [
        (lambda x: F.max_pool1d(x[None, None], 2)[0, 0], cresset.randn(4)),
        (lambda x: F.max_pool2d(x[None], 2), cresset.randn(4, 4)),
        (lambda x: cresset.native_dropout_backward(x, mask, 2.0), cresset.randn(4)),
        (lambda x: F.cross_entropy(x, cresset.tensor(1)), cresset.randn(4)),
        (lambda x: F.nll_loss(x, cresset.tensor(1), reduction="none"), cresset.randn(4)),
    ]
    for function, x in cases:
        x.requires_grad_()
        result = function(x)
        grads = cresset.randn(3, *result.shape)
        expected = [cresset.autograd.grad(result, x, g, retain_graph=True)[0] for g in grads]
        (found,) = cresset.autograd.grad(result, x, grads, retain_graph=True, is_grads_batched=True)
        cresset.testing.assert_close(found, cresset.stack(expected))


def test_a_sample_that_becomes_a_view_of_itself_is_one_of_fewer_dimensions():
    def loss(weight, x, target):
        x = x.mm(weight)
        return (x.squeeze_(0) - target).sum()

    weight, x, target = cresset.arange(4.0).view(2, 2), cresset.arange(4.0).view(2, 1, 2), cresset.zeros(2, 2)
    found = vmap(lambda x, t: grad(loss)(weight, x, t))(x, target)
    assert found.tolist() == [grad(loss)(weight, x[i], target[i]).tolist() for i in range(2)]


def test_a_view_has_the_tangent_that_its_base_got_later():
    def f(x, y):
        x = x.clone()
        view = x[0]
        x.copy_(y)
        return view, x

    x = cresset.arange(12.0).view(2, 2, 3)
    y, t = (x + 1).mT.contiguous().mT, x + 10
    _, (view, whole) = vmap(lambda x, y, t: jvp(lambda y: f(x, y), (y,), (t,)), in_dims=1)(x, y, t)
    assert whole.tolist() == t.transpose(0, 1).tolist() and view.tolist() == t[0].tolist()


def test_jvp_in_inference_mode_has_a_tangent():
    with cresset.inference_mode():
        x = cresset.tensor([3.0])
        assert jvp(lambda x: x**2, (x,), (cresset.ones(1),))[1].tolist() == [6.0]


def test_a_gradient_of_a_gradient_in_inference_mode():
    with cresset.inference_mode():
        x = cresset.tensor([3.0])
        assert jacrev(grad(lambda x: (x**3).sum()))(x).tolist() == [[18.0]]


@pytest.mark.parametrize("mode", [cresset.inference_mode, cresset.no_grad])
def test_a_tangent_of_a_gradient_where_nothing_is_recorded(mode):
    with mode():
        x = cresset.full((1,), 3.0)
        assert jvp(grad(lambda x: (x**3).sum()), (x,), (cresset.ones(1),))[1].tolist() == [18.0]
        assert hessian(lambda x: (x**3).sum())(x).tolist() == [[18.0]]


def test_what_inference_mode_made_has_derivatives_also_outside_of_it():
    with cresset.inference_mode():
        x, factor = cresset.arange(6.0).view(2, 3), cresset.full((3,), 2.0)
    twice = [[0.0, 4.0, 8.0], [12.0, 16.0, 20.0]]

    def f(x):
        return (x.view(3, 1).transpose(0, 1) * factor * x).sum()

    assert vmap(grad(f))(x).tolist() == twice
    assert grad(lambda x: vmap(f)(x).sum())(x).tolist() == twice
    assert grad(lambda x: (x.clone().mul_(factor) * x).sum())(x).tolist() == twice
    assert vmap(hessian(f))(x)[0].tolist() == [[4.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 4.0]]
    assert jvp(lambda x: x * factor, (cresset.ones(3),), (cresset.ones(3),))[1].tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
        cresset.ones(3, requires_grad=True) * factor


def test_what_vjp_gives_under_no_grad_can_be_pulled_and_differentiated_outside():
    x = cresset.tensor(3.0, requires_grad=True)
    with cresset.no_grad():
        output, pull = vjp(lambda x: x**2, x)
    (slope,) = pull(cresset.tensor(1.0))
    assert not output.requires_grad and slope.item() == 6.0
    assert cresset.autograd.grad(slope, x)[0].item() == 2.0


def test_jvp_carries_its_tangents_whatever_holds_outside():
    with cresset.autograd.forward_ad._set_fwd_grad_enabled(False):
        x = cresset.tensor([3.0])
        assert jvp(lambda x: x**2, (x,), (cresset.ones(1),))[1].tolist() == [6.0]


class Widened(cresset.autograd.Function):
    @staticmethod
    def forward(x, y):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, None

    @staticmethod
    def jvp(ctx, tangent, _):
        return tangent * 2

    @staticmethod
    def vmap(info, in_dims, x, y):
        return Widened.apply(x, y), in_dims[0]


def test_a_function_with_a_rule_of_its_own_pushes_tangents_inside_vmap():
    push = vmap(lambda x: jvp(lambda x: Widened.apply(x, None), (x,), (cresset.tensor(3.0),)))
    values, tangents = push(cresset.tensor([1.0, 2.0]))
    assert values.tolist() == [2.0, 4.0] and tangents.tolist() == [6.0, 6.0]


def test_a_rule_for_vmap_sees_lists_of_batches_with_their_dimensions():
    seen = []

    class Pairs(Widened):
        @staticmethod
        def vmap(info, in_dims, x, y):
            seen.append(in_dims)
            return (x, [each + 1 for each in y]), in_dims

    x = cresset.tensor([1.0, 2.0])
    one, (first, second) = vmap(Pairs.apply)(x, [x, 10 * x])
    assert seen == [(0, [0, 0])]
    assert one.tolist() == [1.0, 2.0] and first.tolist() == [2.0, 3.0] and second.tolist() == [11.0, 21.0]


def test_tensors_that_a_function_takes_by_keyword_only_are_refused_inside_vmap():
    class Shifted(Widened):
        @staticmethod
        def forward(x, *, by):
            return x + by

    x = cresset.ones(2)
    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):
        vmap(Shifted.apply)(x, by=x)
    with pytest.raises(TypeError, match="unexpected keyword argument 'by'"):
        Shifted.apply(x, by=x)


def test_hooks_that_pack_what_is_saved_are_refused_for_gradients_but_not_for_tangents():
    """What is packed has no tangents: the hessian came out as zeros."""

    def packed(x):
        with cresset.autograd.graph.save_on_cpu():
            return x.sin().sum()

    x = cresset.ones(2)
    for transform in (grad, jacrev, hessian, lambda f: lambda x: vjp(f, x)):
        with pytest.raises(RuntimeError, match="saved tensor hooks"):
            transform(packed)(x)
    with cresset.autograd.graph.save_on_cpu(), pytest.raises(RuntimeError, match="saved tensor hooks"):
        grad(lambda x: x.sin().sum())(x)
    assert jvp(packed, (x,), (x,))[1].item() == pytest.approx(2 * x.cos()[0].item())


def test_an_ellipsis_in_parentheses_is_one_dimension():
    from cresset.func import rearrange

    x = cresset.arange(24).reshape(2, 3, 4)
    assert rearrange(x, "... -> (...)").tolist() == list(range(24))
    assert rearrange(x, "a ... -> (...) a").shape == (12, 2)
    for pattern in ("(...) -> (...)", "a b (...) -> a ... b"):
        with pytest.raises(ValueError, match="an ellipsis in parentheses on the left"):
            rearrange(x, pattern)


def test_the_gradient_of_a_sparse_or_nested_tensor_is_of_its_kind():
    sparse = cresset.tensor([[0.0, 3.0], [4.0, 0.0]]).to_sparse()
    slope = cresset.func.grad(lambda x: (x.coalesce().values() ** 2).sum())(sparse)
    assert slope.layout == cresset.sparse_coo and slope.to_dense().tolist() == [[0.0, 6.0], [8.0, 0.0]]
    nested = cresset.nested.nested_tensor([cresset.ones(1, 2), cresset.ones(3, 2)], layout=cresset.jagged)
    slope, value = cresset.func.grad_and_value(lambda x: (x * x).values().sum())(nested)
    assert slope.layout == cresset.jagged and slope.values().unique().tolist() == [2.0] and value.item() == 8.0
    doubled, pull = cresset.func.vjp(lambda x: x * 2, nested)
    assert doubled.values().unique().tolist() == [2.0] and not doubled.requires_grad
    assert pull(doubled)[0].values().unique().tolist() == [4.0]
    unused = cresset.func.grad(lambda x: cresset.ones(()))(nested)
    assert unused.layout == cresset.jagged and not unused.values().any()


@pytest.mark.parametrize("requires_grad", [True, False])
def test_what_linearize_gives_has_no_class_of_its_own(requires_grad):
    class Tagged(cresset.Tensor):
        pass

    x = cresset.ones(2, requires_grad=requires_grad).as_subclass(Tagged)
    output, push = linearize(lambda x: x * x, x)
    assert type(output) is cresset.Tensor and type(push(cresset.ones_like(x))) is cresset.Tensor
    assert push(cresset.ones(2)).tolist() == [2.0, 2.0]
