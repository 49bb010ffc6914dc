"""autograd.Function: what forward and backward may say to each other, and the mistakes that are caught."""

import pytest

import cresset
from cresset.autograd import Function
from cresset.autograd.function import once_differentiable


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2


def scaled(**parts):
    """A Function that doubles, with some of its parts replaced."""
    default = {
        "forward": lambda ctx, x, *rest: x * 2,
        "backward": lambda ctx, grad: grad * 2,
    }
    return type("Double", (Function,), {name: staticmethod(f) for name, f in (default | parts).items()})


def leaf(*values):
    return cresset.tensor(values if len(values) > 1 else values[0], requires_grad=True)


def test_two_derivatives_of_a_cube():
    x = leaf(1.0, 2.0)
    (slope,) = cresset.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    (second,) = cresset.autograd.grad(slope.sum(), x)
    assert slope.tolist() == [3, 12] and second.tolist() == [6, 12]


def test_the_context_is_the_node():
    seen = []
    double = scaled(backward=lambda ctx, grad: (seen.append(ctx), grad * 2)[1])
    y = double.apply(leaf(1.0))
    y.backward()
    assert seen == [y.grad_fn] and y.grad_fn.name() == "DoubleBackward"


def test_a_method_written_as_a_context_attribute_survives():
    class Keep(Function):
        @staticmethod
        def forward(ctx, x, note):
            ctx.note = note
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            assert ctx.note == {"a": 1}
            return grad * 2, None

    x = leaf(1.0)
    Keep.apply(x, {"a": 1}).backward()
    assert x.grad.item() == 2


def test_saved_tensors_are_freed_after_backward():
    y = Cube.apply(leaf(2.0))
    node = y.grad_fn
    assert node.saved_tensors[0].item() == 2
    y.backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        _ = node.saved_tensors


def test_a_result_nobody_used_has_a_zero_gradient():
    seen = []
    two = scaled(forward=lambda ctx, x: (x * 2, x * 3), backward=lambda ctx, a, b: (seen.append(a.tolist()), b * 3)[1])
    x = leaf(1.0, 2.0)
    two.apply(x)[1].sum().backward()
    assert seen == [[0, 0]] and x.grad.tolist() == [3, 3]


def test_a_changed_input_is_marked_dirty():
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    x = leaf(1.0, 2.0)
    y = x * 1
    assert scaled(forward=forward).apply(y) is y
    (y * y).sum().backward()
    assert x.grad.tolist() == [8, 16]


def test_results_of_a_function_that_is_not_recorded_require_no_gradient():
    def changes(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    def records(ctx, x):
        with cresset.enable_grad():
            return x * 2

    for forward in (changes, lambda ctx, x: x, records):
        x = leaf(1.0, 2.0)
        with cresset.no_grad():
            y = scaled(forward=forward).apply(x)
        assert not y.requires_grad and y.is_leaf and x.requires_grad
        assert (y.data_ptr() == x.data_ptr()) == (forward is not records)


def test_a_retained_gradient_of_what_is_changed_is_forgotten():
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    y = leaf(1.0, 2.0) * 3
    y.retain_grad()
    y.sum().backward(retain_graph=True)
    assert y.grad.tolist() == [1, 1]
    scaled(forward=forward).apply(y)
    assert y.grad is None
    (y * 5).sum().backward()
    assert y.grad.tolist() == [5, 5]


def test_once_differentiable_refuses_the_second_time():
    @once_differentiable
    def backward(ctx, grad):
        return grad * 2

    x = leaf(1.0)
    (slope,) = cresset.autograd.grad(scaled(backward=backward).apply(x), x, leaf(1.0), create_graph=True)
    assert slope.item() == 2 and type(slope.grad_fn).__name__ == "Error"
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        slope.backward()


def test_once_differentiable_has_an_edge_for_each_result_of_backward():
    class Scaled(Function):
        @staticmethod
        def forward(ctx, x, factor, y):
            return x * factor * y

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            return grad * 2, None, grad * 3

    x, y = leaf(1.0), leaf(1.0)
    slopes = cresset.autograd.grad(Scaled.apply(x, 2, y), [x, y], leaf(1.0), create_graph=True)
    assert [slope.item() for slope in slopes] == [2, 3]
    edges = [node for node, _ in slopes[0].grad_fn.next_functions]
    assert len(edges) == 3 and edges[1] is None and edges[0] is not None


def test_forward_and_setup_context_apart():
    class Scale(Function):
        @staticmethod
        def forward(x, factor=2.0):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.factor = inputs[1]

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.factor, None

    x = leaf(1.0)
    Scale.apply(x).backward()
    Scale.apply(x, factor=5.0).backward()
    assert x.grad.item() == 7


def test_forward_mode_uses_jvp():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            return x * x

        @staticmethod
        def jvp(ctx, tangent):
            return 2 * ctx.saved_tensors[0] * tangent

    fw = cresset.autograd.forward_ad
    with fw.dual_level():
        y = Square.apply(fw.make_dual(cresset.tensor(3.0), cresset.tensor(10.0)))
        assert fw.unpack_dual(y).tangent.item() == 60


def test_forward_mode_without_jvp_asks_backward():
    fw = cresset.autograd.forward_ad
    x = leaf(1.0, 2.0)
    with fw.dual_level():
        y = Cube.apply(fw.make_dual(x, cresset.tensor([1.0, 10.0])))
        tangent = fw.unpack_dual(y).tangent
        assert tangent.tolist() == [3, 120]
        assert cresset.autograd.grad(tangent.sum(), x)[0].tolist() == [6, 120]


def test_forward_mode_over_backward_of_a_saved_result():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    assert cresset.autograd.gradgradcheck(
        Exp.apply, leaf(1.0, 2.0).detach().double().requires_grad_(), check_fwd_over_rev=True
    )


@pytest.mark.parametrize(
    "parts, error, phrase",
    [
        ({"backward": lambda ctx, g: (g, g)}, RuntimeError, r"incorrect number of gradients \(expected 1, got 2\)"),
        ({"backward": lambda ctx, g: ()}, RuntimeError, r"incorrect number of gradients \(expected 1, got 0\)"),
        ({"backward": lambda ctx, g: 3}, RuntimeError, "expected Variable or None"),
        ({"backward": lambda ctx, g: cresset.ones(3)}, RuntimeError, "invalid gradient at index 0 - got"),
        ({"backward": Function.backward}, NotImplementedError, "either the backward or vjp method"),
        ({"vjp": lambda ctx, g: g}, RuntimeError, "both 'backward' and 'vjp'"),
        ({"forward": Function.forward}, NotImplementedError, "You must implement the forward function"),
        ({"forward": lambda ctx, x: (ctx.save_for_backward(3), x * 2)[1]}, TypeError, "argument 0 is of type int"),
        ({"forward": lambda ctx, x: (ctx.mark_dirty(x), x * 2)[1]}, RuntimeError, "marked as dirty"),
    ],
)
def test_mistakes(parts, error, phrase):
    with pytest.raises(error, match=phrase):
        scaled(**parts).apply(leaf(1.0, 2.0)).sum().backward()


def test_a_gradient_for_a_number_is_a_mistake():
    wrong = scaled(backward=lambda ctx, grad: (grad, grad))
    with pytest.raises(RuntimeError, match="at position 2, but the corresponding forward input was not a Variable"):
        wrong.apply(leaf(1.0), 5).backward()


def test_a_function_is_not_instantiated():
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        cube = Cube()
    with pytest.raises(RuntimeError, match="Legacy autograd function"):
        cube(leaf(1.0))


class Scaled(Function):
    @staticmethod
    def forward(ctx, x, y, scale=1.0):
        ctx.save_for_backward(x, y)
        ctx.scale = scale
        return scale * x * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * ctx.scale * y, grad * ctx.scale * x, None


def test_arguments_of_forward_may_be_named():
    x, y = (cresset.tensor([value], requires_grad=True) for value in (2.0, 3.0))
    Scaled.apply(scale=5.0, y=y, x=x).backward()
    assert (x.grad.item(), y.grad.item()) == (15.0, 10.0)
    assert Scaled.apply(x, y=y).item() == 6.0


@pytest.mark.parametrize(
    ("kwargs", "error"),
    [
        ({"z": 1}, r"forward\(\) got an unexpected keyword argument 'z'"),
        ({"x": 1}, r"forward\(\) got multiple values for argument 'x'"),
        ({"scale": 1}, r"forward\(\) missing required argument: 'y' \(position 1\)"),
    ],
)
def test_a_named_argument_that_does_not_fit_is_refused(kwargs, error):
    with pytest.raises(TypeError, match=error):
        Scaled.apply(cresset.ones(1), **kwargs)


def test_a_backward_may_take_its_gradients_as_one_list():
    class Both(Function):
        boxed_grads_call = True

        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, grads):
            first, second = grads
            grads.clear()
            return first * 2 + second * 3

    x = cresset.ones(2, requires_grad=True)
    a, b = Both.apply(x)
    (a + b).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


def test_a_function_that_kept_nothing_runs_backward_again():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = cresset.ones(1, requires_grad=True)
    y = Double.apply(x)
    y.backward()
    y.backward()
    assert x.grad == 4


def test_what_a_function_has_kept_and_was_detached_in_place_is_given_to_backward():
    class Scaled(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * x

    leaf = cresset.tensor([1.0, 3.0], requires_grad=True)
    x = leaf * 1
    y = Scaled.apply(x)
    x.detach_()
    y.sum().backward()
    assert leaf.grad.tolist() == [1, 3]


def test_a_view_that_forward_makes_of_an_intermediate_cannot_be_marked_dirty():
    class Bad(Function):
        @staticmethod
        def forward(ctx, x):
            out = x.clone().view_as(x)
            ctx.mark_dirty(out)
            return out

    with pytest.raises(RuntimeError, match="received a tensor that was not an input"):
        Bad.apply(cresset.ones(1, requires_grad=True).clone())


def test_outputs_without_a_gradient_may_have_none_in_backward():
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            plain = x.clone()
            ctx.mark_non_differentiable(plain)
            ctx._materialize_non_diff_grads = False
            return x * 2, plain

        @staticmethod
        def backward(ctx, grad, other):
            seen.append(other)
            return grad * 2

    Two.apply(cresset.ones((), requires_grad=True))[0].backward()
    assert seen == [None]


def test_a_view_of_an_input_that_needs_no_gradient_cannot_be_changed_by_one_that_does():
    class View(Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

    view = View.apply(cresset.ones(2))
    with pytest.raises(RuntimeError, match="created inside a custom Function"):
        view += cresset.ones(2, requires_grad=True)


def test_jvp_must_change_the_tangent_of_what_forward_changes():
    class Doubled(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def jvp(ctx, tangent):
            return tangent

    with cresset.autograd.forward_ad.dual_level():
        dual = cresset.autograd.forward_ad.make_dual(cresset.ones(()), cresset.ones(()))
        with pytest.raises(RuntimeError, match="must modify the corresponding gradient inplace"):
            Doubled.apply(dual)


def test_what_has_neither_jvp_nor_backward_says_that_jvp_is_missing():
    class Plain(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

    with cresset.autograd.forward_ad.dual_level():
        dual = cresset.autograd.forward_ad.make_dual(cresset.ones(()), cresset.ones(()))
        with pytest.raises(NotImplementedError, match="must implement the jvp function"):
            Plain.apply(dual)


@pytest.mark.parametrize("save", ["save_for_backward", "save_for_forward"])
def test_an_input_that_is_returned_as_it_is_cannot_be_saved_by_setup_context(save):
    class Same(Function):
        @staticmethod
        def forward(x):
            return x

        @staticmethod
        def setup_context(ctx, inputs, output):
            getattr(ctx, save)(output)

        @staticmethod
        def backward(ctx, grad):
            return grad

    with pytest.raises(RuntimeError, match="An input that has been returned as-is"):
        Same.apply(cresset.ones(2, requires_grad=True))


def test_a_function_that_saves_what_it_changed_in_place_may_return_it():
    class Doubled(Function):
        @staticmethod
        def forward(x):
            return x.mul_(2)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_dirty(inputs[0])
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    x = cresset.ones(2, requires_grad=True)
    Doubled.apply(x.clone()).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


class Threefold(Function):
    """x * 3, with a context that has kept x."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 3, x * 5

    @staticmethod
    def backward(ctx, grad, unused):
        (x,) = ctx.saved_tensors
        assert grad.layout == unused.layout == x.layout and grad.shape == unused.shape == x.shape
        return grad * 3 + unused * 5


def test_a_dense_tensor_may_be_given_a_sparse_gradient():
    class Given(Function):
        @staticmethod
        def forward(ctx, x):
            return x.sum()

        @staticmethod
        def backward(ctx, grad):
            return cresset.eye(3).to_sparse() * grad

    x = cresset.ones(3, 3, requires_grad=True)
    Given.apply(x).backward()
    assert x.grad.is_sparse and x.grad.to_dense().equal(cresset.eye(3))
    (Given.apply(x) + x.sum()).backward()
    assert x.grad.to_dense().equal(2 * cresset.eye(3) + 1)


@pytest.mark.parametrize("make", [cresset.Tensor.to_sparse, cresset.Tensor.to_sparse_csr, "jagged"])
def test_a_function_of_a_tensor_that_is_made_of_others_has_its_gradient(make):
    if make == "jagged":
        x = cresset.nested.nested_tensor([cresset.ones(1, 2), cresset.ones(3, 2)], layout=cresset.jagged)
    else:
        x = make(cresset.eye(3))
    x.requires_grad_()
    y, other = Threefold.apply(x)  # the gradient of `other` is zeros of its kind
    assert y.requires_grad and other.requires_grad and y.layout == x.layout
    (y.values() if make == "jagged" else y.to_dense()).sum().backward()
    values = x.grad.coalesce().values() if x.layout == cresset.sparse_coo else x.grad.values()
    assert values.unique().tolist() == [3.0]
