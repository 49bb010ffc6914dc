"""backward and grad: what they compute, what they add up, what they refuse."""

from collections import OrderedDict

import pytest

import cresset
from cresset import autograd


def leaf(*values):
    return cresset.tensor(values if len(values) > 1 else values[0], requires_grad=True)


def test_backward_of_a_polynomial():
    x = leaf(2.0)
    (x**2 + 3 * x + 1).backward()
    assert x.grad.item() == 7


def test_backward_twice_adds_up_in_grad():
    x = leaf(1.0, 1.0)
    (2 * x).sum().backward()
    (3 * x).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


def test_grad_returns_and_leaves_grad_alone():
    x = leaf(3.0)
    assert autograd.grad(x * x, x)[0].item() == 6 and x.grad is None


def test_three_derivatives_of_a_cube():
    x = leaf(3.0)
    y, slopes = x**3, []
    for _ in range(3):
        (y,) = autograd.grad(y, x, create_graph=True)
        slopes.append(y.item())
    assert slopes == [27, 18, 6]


def test_inputs_limits_who_gets_a_gradient():
    x, w = leaf(2.0), leaf(3.0)
    y = x * w
    (y * y).backward(inputs=[x, y])
    assert x.grad.item() == 36 and w.grad is None and y.grad.item() == 12


def test_a_dict_of_inputs_gives_a_dict():
    x, w = leaf(2.0), leaf(3.0)
    found = autograd.grad(x * w, {"x": x, "w": w})
    assert found == {"x": 3, "w": 2}


def test_batched_gradients_are_those_of_the_entries():
    x = leaf(1.0, 2.0)
    (rows,) = autograd.grad(x * x, x, cresset.eye(2), is_grads_batched=True)
    assert rows.tolist() == [[2, 0], [0, 4]]


def test_an_unused_input_gives_zeros_when_asked():
    x, w = leaf(2.0), leaf(3.0, 4.0)
    assert autograd.grad(x * 2, [x, w], allow_unused=True)[1] is None
    zeros = autograd.grad(x * 2, [x, w], materialize_grads=True)[1]
    assert zeros.tolist() == [0, 0]


@pytest.mark.parametrize(
    "run, error, phrase",
    [
        (lambda x: (x * 2).backward(), RuntimeError, "grad can be implicitly created only for scalar outputs"),
        (
            lambda x: cresset.ones(()).backward(),
            RuntimeError,
            "element 0 of tensors does not require grad and does not have a grad_fn",
        ),
        (lambda x: (x * 2).backward(cresset.ones(3)), RuntimeError, "Mismatch in shape: grad_output\\[0\\]"),
        (lambda x: (x * 2).backward(1.0), TypeError, "'float' object is not iterable"),
        (
            lambda x: autograd.backward([x.sum()], [1.0]),
            TypeError,
            "gradients can be either Tensors or None, but got float",
        ),
        (lambda x: autograd.backward([x.sum()], [None, None]), RuntimeError, "got 1 tensors and 2 gradients"),
        (lambda x: x.sum().backward(inputs=[]), RuntimeError, "cannot be empty"),
        (lambda x: autograd.grad(x.sum(), []), RuntimeError, "cannot be empty"),
        (lambda x: autograd.grad(x.sum(), cresset.ones(1)), RuntimeError, "does not require grad"),
        (lambda x: autograd.grad(x.sum(), leaf(1.0)), RuntimeError, "appears to not have been used in the graph"),
        (lambda x: autograd.grad(x.sum(), "x"), TypeError, "expected"),
    ],
)
def test_what_is_refused(run, error, phrase):
    with pytest.raises(error, match=phrase):
        run(leaf(1.0, 2.0))


def test_the_second_backward_says_how_to_get_it():
    y = leaf(2.0).exp()
    y.backward()
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        y.backward()


def test_an_error_after_a_change_names_both_lines():
    x = leaf(1.0, 2.0)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as caught:
        y.sum().backward()
    assert "y = x.exp()" in str(caught.value) and "y.add_(1)" in str(caught.value)


def test_backward_with_a_graph_warns_once_of_the_cycle():
    autograd.engine.warned_of_cycle = False
    x = leaf(2.0)
    with pytest.warns(UserWarning, match="reference cycle"):
        (x**2).backward(create_graph=True)
    (x**2).backward(create_graph=True)
    assert x.grad.requires_grad
    x.grad = None


def test_grad_variables_is_the_old_name():
    x = leaf(2.0)
    with pytest.warns(FutureWarning, match="grad_variables"):
        autograd.backward(x * 2, grad_variables=cresset.tensor(5.0))
    assert x.grad.item() == 10


def test_variable_is_a_tensor():
    v = autograd.Variable(cresset.ones(2), requires_grad=True)
    assert isinstance(v, autograd.Variable) and isinstance(v, cresset.Tensor) and v.requires_grad
    with pytest.raises(TypeError, match="Variable data has to be a tensor"):
        autograd.Variable([1.0])


def without_derivative():
    halves = cresset.tensor([0.5, 1.5])
    return {
        "floor_divide: input": lambda x: x // 2,
        "floor_divide: other": lambda x: 3 // x,
        "heaviside: input": lambda x: cresset.heaviside(x, halves),
        "heaviside: values": lambda x: cresset.heaviside(halves, x),
        "igamma: input": lambda x: cresset.igamma(x, halves),
        "igammac: input": lambda x: cresset.igammac(x, halves),
        "zeta: input": lambda x: cresset.special.zeta(x, halves),
        "_unique2": cresset.unique,
        "unique_dim": lambda x: cresset.unique(x, dim=0),
        "unique_consecutive": cresset.unique_consecutive,
        "bincount": lambda x: cresset.bincount(cresset.tensor([0, 1]), x),
        "histogram": lambda x: cresset.histogram(x, 3)[0],
    }


@pytest.mark.parametrize("name", without_derivative())
def test_what_has_no_derivative_says_so_in_backward(name):
    x = cresset.tensor([1.5, 2.5], requires_grad=True)
    result = without_derivative()[name](x)
    with pytest.raises(NotImplementedError, match=f"the derivative for '{name}' is not implemented"):
        result.sum().backward()
    with pytest.raises(NotImplementedError, match="is not implemented"):
        cresset.autograd.grad(without_derivative()[name](x).sum(), x, create_graph=True)
    assert x.grad is None


def test_only_the_derivative_that_is_asked_for_has_to_be_there():
    x, y = cresset.tensor([1.5], requires_grad=True), cresset.tensor([0.5], requires_grad=True)
    (by_y,) = cresset.autograd.grad(cresset.igamma(x, y).sum(), y)
    assert abs(by_y.item() - 0.4839414490) < 1e-6  # sqrt(y) exp(-y) / gamma(1.5)


def test_division_that_rounds_has_zero_for_a_derivative_when_it_is_asked_for_by_name():
    x = cresset.tensor([1.5, 2.5], requires_grad=True)
    cresset.div(x, 2, rounding_mode="floor").sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("dtype", [cresset.float16, cresset.bfloat16, cresset.float32])
def test_a_quotient_that_is_cut_has_a_gradient_of_zero_also_where_the_quotient_has_none(dtype):
    x = cresset.tensor([0.0, 1.0, 7.0], dtype=dtype, requires_grad=True)
    y = cresset.tensor([0.0, 0.0, -2.0], dtype=dtype, requires_grad=True)
    quotient = cresset.div(x, y, rounding_mode="trunc")
    assert str(quotient.tolist()) == "[nan, inf, -3.0]"
    assert quotient._version == 0
    quotient.sum().backward()
    assert x.grad.tolist() == y.grad.tolist() == [0.0, 0.0, 0.0]
    x.grad = y.grad = None
    written = x.clone().div_(y, rounding_mode="trunc")
    assert str(written.tolist()) == "[nan, inf, -3.0]"
    assert written._version == 1
    written.sum().backward()
    assert x.grad.tolist() == y.grad.tolist() == [0.0, 0.0, 0.0]
    x.grad = y.grad = None
    cresset.vmap(lambda a, b: cresset.div(a, b, rounding_mode="trunc"))(x, y).sum().backward()
    assert x.grad.tolist() == y.grad.tolist() == [0.0, 0.0, 0.0]


def test_a_quotient_of_halves_is_rounded_before_it_is_cut_also_where_it_is_recorded():
    x = cresset.tensor([2.99], dtype=cresset.bfloat16)  # 2.984375
    y = cresset.tensor([0.996], dtype=cresset.bfloat16)  # 0.99609375: the quotient, 2.996, is 3 as a half
    assert cresset.div(x, y, rounding_mode="trunc").tolist() == [3.0]
    assert cresset.div(x.requires_grad_(), y, rounding_mode="trunc").tolist() == [3.0]


def test_the_number_of_elements_that_are_not_zero_has_no_gradient():
    x = cresset.tensor([1.5, 0.0], requires_grad=True)
    cresset.linalg.vector_norm(x, 0).backward()
    assert x.grad is None
    cresset.cdist(x.view(2, 1), cresset.ones(1, 1), p=0).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("dtype", [cresset.float16, cresset.bfloat16, cresset.float32])
def test_the_next_number_moves_as_the_number_does(dtype):
    x = cresset.tensor([1.0, -2.0, 65504.0], dtype=dtype, requires_grad=True)
    towards = cresset.tensor([2.0, -3.0, float("inf")], dtype=dtype, requires_grad=True)
    result = cresset.nextafter(x, towards)
    assert (result.detach() == cresset.nextafter(x.detach(), towards.detach())).all()
    result.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0] and towards.grad.tolist() == [0.0, 0.0, 0.0]


def test_the_input_that_was_not_used_is_named():
    x, y = leaf(1.0), leaf(2.0)
    with pytest.raises(RuntimeError, match="differentiated Tensor at index 1 appears to not have been used"):
        autograd.grad(x * 2, (x, y))


def test_batched_gradients_have_the_outputs_shape_behind_the_batch():
    x = cresset.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="If `is_grads_batched=True`, we interpret the first"):
        autograd.grad(x * 2, x, cresset.ones(3), is_grads_batched=True)
    with pytest.raises(IndexError, match="has none"):
        autograd.grad(x * 2, x, cresset.ones(()), is_grads_batched=True)


def test_inputs_by_name_are_a_dict():
    x = leaf(1.0)
    with pytest.raises(TypeError, match="must be a dict, not OrderedDict"):
        autograd.grad(x * 2, OrderedDict(x=x))
    assert autograd.grad(x * 2, {"x": x})["x"].item() == 2.0


def test_whether_several_threads_were_allowed_can_be_asked():
    with autograd.set_multithreading_enabled(False):
        assert not autograd.is_multithreading_enabled()
    assert autograd.is_multithreading_enabled()


@pytest.mark.parametrize("name", ["relu", "relu6", "leaky_relu", "hardtanh", "hardsigmoid", "hardshrink", "softshrink"])
def test_the_recorded_gradient_of_a_piecewise_linear_function_has_a_gradient_of_zero(name):
    x = cresset.tensor([0.3, -0.7, 2.0], requires_grad=True)
    grad = cresset.ones(3, requires_grad=True)
    first = cresset.autograd.grad(getattr(cresset.nn.functional, name)(x), x, grad, create_graph=True)[0]
    by_input, by_grad = cresset.autograd.grad(first.sum(), [x, grad])
    assert by_input.tolist() == [0.0, 0.0, 0.0]
    assert cresset.equal(by_grad, first)


def test_a_result_of_relu6_may_be_written_over():
    x = cresset.tensor([-1.0, 3.0, 7.0], requires_grad=True)
    cresset.nn.functional.relu6(x).add_(x).sum().backward()
    assert x.grad.tolist() == [1.0, 2.0, 1.0]
    x.grad = None
    cresset.nn.functional.relu6(x * 1, inplace=True).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 0.0]


def test_a_recorded_gradient_of_slope_zero_inside_vmap():
    def slope(x):
        return cresset.func.grad(lambda x: cresset.relu(x) ** 2)(x)

    x = cresset.tensor([-1.0, 2.0, 3.0])
    assert cresset.func.vmap(cresset.func.grad(slope))(x).tolist() == [0.0, 2.0, 2.0]
    assert cresset.func.hessian(lambda x: cresset.relu(x).sum())(x).tolist() == [[0.0] * 3] * 3
    assert cresset.func.jacfwd(cresset.func.jacrev(lambda x: cresset.relu(x) ** 2))(x)[1][1].tolist() == [0.0, 2.0, 0.0]


def test_a_recorded_gradient_that_goes_to_places_requires_none():
    x = cresset.tensor([3.0, 1.0], requires_grad=True)
    for made in (x.max(0).values, x.sort().values, cresset.nn.functional.dropout(x, 0.5)):
        assert not cresset.autograd.grad(made.sum(), x, create_graph=True)[0].requires_grad


def test_backward_asks_the_classes_of_the_tensors_it_starts_from():
    asked = []

    class Watched(cresset.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    x = cresset.ones(2, requires_grad=True)
    cresset.autograd.backward((x * 3).as_subclass(Watched), cresset.ones(2))
    assert cresset.autograd.backward in asked and x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("function", [cresset.exp, cresset.sum, lambda x: x.view(1, 2), lambda x: x[0]])
def test_derivatives_do_not_ask_the_class_of_a_gradient(function, create_graph):
    asked = []

    class Watched(cresset.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    x = cresset.ones(2, requires_grad=True)
    y = function(x)
    given = cresset.ones(y.shape).as_subclass(Watched)
    with cresset._C.DisableTorchFunctionSubclass():
        (grad,) = cresset.autograd.grad(y, x, given, create_graph=create_graph)
    cresset.autograd.backward(y.clone() if create_graph else function(x), given, create_graph=create_graph)
    assert type(grad) is type(x.grad) is cresset.Tensor
    assert {func.__name__ for func in asked} <= {"__get__", "is_complex"}  # whether it fits, and nothing else


@pytest.mark.parametrize("part, expected", [("real_part", 1), ("imaginary_part", 1j)])
def test_the_gradient_of_a_part_of_a_complex_number_is_complex(part, expected):
    """No formula of its own reads the number: the gradient, which is real, does not tell the dtype."""
    z = cresset.tensor([3 + 4j], requires_grad=True)
    cresset._native.operators()[part](z).backward()
    assert z.grad.tolist() == [expected]


def test_a_third_derivative_that_is_not_recorded():
    z = cresset.tensor([3 + 4j], dtype=cresset.complex128, requires_grad=True)
    (first,) = cresset.autograd.grad((z.abs() ** 3).sum(), z, create_graph=True)  # 3 |z| z
    (second,) = cresset.autograd.grad(first.abs().sum(), z, create_graph=True)  # of 3 |z|²: 6 z
    second.abs().sum().backward()  # of 6 |z|: 6 z / |z|
    assert z.grad.item() == pytest.approx(6 * (3 + 4j) / 5)
