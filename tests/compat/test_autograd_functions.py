"""The same small programs give the same in cresset and in PyTorch: autograd.Function."""

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).with_name("autograd")))

from autograd_programs import assert_same, cube, leaf, plain, programs  # noqa: E402


class Functions:
    def cube(lib):
        x = leaf(lib, [1.0, 2.0])
        y = cube(lib).apply(x)
        y.sum().backward()
        return x.grad, y.grad_fn.name(), type(y.grad_fn).__name__

    def cube_twice(lib):
        x = leaf(lib, [1.0, 2.0])
        (g,) = lib.autograd.grad(cube(lib).apply(x).sum(), x, create_graph=True)
        return g, lib.autograd.grad(g.sum(), x)

    def backward_twice(lib):
        y = cube(lib).apply(leaf(lib, 2.0))
        y.backward()
        y.backward()

    def saved_output(lib):
        class Exp(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                y = x.exp()
                ctx.save_for_backward(y, None)
                return y

            @staticmethod
            def backward(ctx, grad):
                y, nothing = ctx.saved_tensors
                assert nothing is None
                return grad * y

        x = leaf(lib, [1.0, 2.0])
        (g,) = lib.autograd.grad(Exp.apply(x).sum(), x, create_graph=True)
        return g, lib.autograd.grad(g.sum(), x)

    def several_arguments_and_results(lib):
        class Both(lib.autograd.Function):
            @staticmethod
            def forward(ctx, a, scale, b):
                ctx.scale = scale
                ctx.needs = ctx.needs_input_grad
                return a * scale, b * scale, "text"

            @staticmethod
            def backward(ctx, ga, gb, gtext):
                assert gtext is None and ctx.needs == (True, False, True)
                return ga * ctx.scale, None, gb * ctx.scale

        a, b = leaf(lib, [1.0]), leaf(lib, [2.0])
        x, y, text = Both.apply(a, 3.0, b)
        (x + 2 * y).backward()
        return a.grad, b.grad, text, [n is None for n, _ in x.grad_fn.next_functions]

    def unused_result(lib):
        class Two(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2, x * 3

            @staticmethod
            def backward(ctx, a, b):
                return a * 2 + b * 3

        x = leaf(lib, [1.0, 2.0])
        Two.apply(x)[1].sum().backward()
        return x.grad

    def unused_result_not_materialized(lib):
        class Two(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.set_materialize_grads(False)
                return x * 2, x * 3

            @staticmethod
            def backward(ctx, a, b):
                assert a is None
                return b * 3

        x = leaf(lib, [1.0, 2.0])
        Two.apply(x)[1].sum().backward()
        return x.grad

    def setup_context(lib):
        class Scale(lib.autograd.Function):
            @staticmethod
            def forward(x, factor=2.0):
                return x * factor

            @staticmethod
            def setup_context(ctx, inputs, output):
                _, ctx.factor = inputs

            @staticmethod
            def backward(ctx, grad):
                return grad * ctx.factor, None

        x = leaf(lib, [1.0])
        Scale.apply(x, 5.0).backward()
        Scale.apply(x, factor=7.0).backward()
        return x.grad

    def in_place(lib):
        class Double(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x.mul_(2)

            @staticmethod
            def backward(ctx, grad):
                return grad * 2

        x = leaf(lib, [1.0, 2.0])
        y = x * 1
        z = Double.apply(y)
        (z * z).sum().backward()
        return z is y, x.grad, y.grad_fn.name()

    def in_place_on_a_leaf(lib):
        class Double(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x.mul_(2)

            @staticmethod
            def backward(ctx, grad):
                return grad * 2

        Double.apply(leaf(lib, [1.0]))

    def in_place_on_a_view(lib):
        class Double(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x.mul_(2)

            @staticmethod
            def backward(ctx, grad):
                return grad * 2

        x = leaf(lib, [1.0, 2.0])
        y = x * 1
        Double.apply(y[0])
        (y * y).sum().backward()
        return x.grad

    def dirty_and_not_returned(lib):
        class Double(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x.mul_(2).clone()

        Double.apply(leaf(lib, [1.0]) * 1)

    def not_differentiable_result(lib):
        class Sort(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                values, order = x.sort()
                ranks = order.float()
                ctx.mark_non_differentiable(order, ranks)
                ctx.save_for_backward(order)
                return values, order, ranks

            @staticmethod
            def backward(ctx, grad, order_grad, ranks_grad):
                (order,) = ctx.saved_tensors
                return lib.zeros_like(grad).index_add(0, order, grad)

        x = leaf(lib, [3.0, 1.0, 2.0])
        values, order, ranks = Sort.apply(x)
        (values * lib.tensor([1.0, 2.0, 3.0])).sum().backward()
        return x.grad, values.requires_grad, order.requires_grad, ranks.requires_grad

    def returning_its_input(lib):
        class Identity(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x

            @staticmethod
            def backward(ctx, grad):
                return grad * 10

        x = leaf(lib, [1.0])
        y = Identity.apply(x)
        y.backward()
        return y is x, y.is_leaf, x.grad, x.is_leaf

    def a_gradient_reversal(lib):
        class Reverse(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x, weight):
                ctx.weight = weight
                return x.view_as(x)

            @staticmethod
            def backward(ctx, grad):
                return grad.neg() * ctx.weight, None

        x = leaf(lib, [1.0, 2.0])
        Reverse.apply(x * 2, 0.5).sum().backward()
        return x.grad

    def straight_through(lib):
        class Round(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.round()

            @staticmethod
            def backward(ctx, grad):
                return grad

        x = leaf(lib, [1.4, 2.6])
        (Round.apply(x) * lib.tensor([1.0, 10.0])).sum().backward()
        return x.grad

    def once_differentiable(lib):
        class Once(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            @lib.autograd.function.once_differentiable
            def backward(ctx, grad):
                return 2 * ctx.saved_tensors[0] * grad

        x = leaf(lib, [3.0])
        (g,) = lib.autograd.grad(Once.apply(x), x, create_graph=False)
        y = Once.apply(x)
        lead = leaf(lib, [1.0])
        (h,) = lib.autograd.grad(y, x, lead, create_graph=True)
        return g, h, h.requires_grad

    def once_differentiable_differentiated_twice(lib):
        class Once(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            @lib.autograd.function.once_differentiable
            def backward(ctx, grad):
                return 2 * grad

        x = leaf(lib, [3.0])
        (g,) = lib.autograd.grad(Once.apply(x), x, leaf(lib, [1.0]), create_graph=True)
        g.backward()

    def too_few_gradients(lib):
        class Bad(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                return x * y

            @staticmethod
            def backward(ctx, grad):
                return grad

        Bad.apply(leaf(lib, 1.0), leaf(lib, 2.0)).backward()

    def too_many_gradients(lib):
        class Bad(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return grad, grad

        Bad.apply(leaf(lib, 1.0)).backward()

    def too_many_that_are_none(lib):
        class Fine(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return grad, None, None

        x = leaf(lib, 1.0)
        Fine.apply(x).backward()
        return x.grad

    def a_gradient_for_something_that_is_no_tensor(lib):
        class Bad(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                return x * y

            @staticmethod
            def backward(ctx, grad):
                return grad, grad

        Bad.apply(leaf(lib, 1.0), 2.0).backward()

    def a_gradient_of_the_wrong_shape(lib):
        class Bad(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return lib.ones(3)

        Bad.apply(leaf(lib, [1.0, 2.0])).sum().backward()

    def a_gradient_that_is_broadcast(lib):
        class Wide(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * lib.ones(3, 2)

            @staticmethod
            def backward(ctx, grad):
                return grad

        x = leaf(lib, [1.0, 2.0])
        Wide.apply(x).sum().backward()
        return x.grad

    def no_gradient_at_all(lib):
        class Nothing(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return None

        x = leaf(lib, 1.0)
        (Nothing.apply(x) + x).backward()
        return x.grad

    def an_instance_is_not_called(lib):
        cube(lib)()(leaf(lib, 1.0))

    def forward_that_is_missing(lib):
        class Empty(lib.autograd.Function):
            pass

        Empty.apply(leaf(lib, 1.0))

    def backward_that_is_missing(lib):
        class Half(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

        Half.apply(leaf(lib, 1.0)).backward()

    def without_gradients(lib):
        y = cube(lib).apply(lib.tensor([2.0]))
        with lib.no_grad():
            z = cube(lib).apply(leaf(lib, [2.0]))
        return y, y.requires_grad, z.requires_grad

    def saving_something_that_is_no_tensor(lib):
        class Bad(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(3)
                return x * 2

        Bad.apply(leaf(lib, 1.0))

    def saved_and_then_changed(lib):
        x = leaf(lib, [1.0, 2.0])
        y = x * 1
        z = cube(lib).apply(y)
        y.mul_(2)
        z.sum().backward()

    def hooks_on_its_node(lib):
        x, seen = leaf(lib, [1.0, 2.0]), []
        y = cube(lib).apply(x)
        y.grad_fn.register_hook(lambda into, out: seen.append(plain(into)))
        y.sum().backward()
        return seen

    def vjp_instead_of_backward(lib):
        class Square(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def vjp(ctx, grad):
                return 2 * ctx.saved_tensors[0] * grad

        x = leaf(lib, 3.0)
        Square.apply(x).backward()
        return x.grad

    def lists_as_arguments(lib):
        class Total(lib.autograd.Function):
            @staticmethod
            def forward(ctx, many, x):
                ctx.count = len(many)
                return x * ctx.count

            @staticmethod
            def backward(ctx, grad):
                return None, grad * ctx.count

        x = leaf(lib, 3.0)
        Total.apply([1, 2, 3], x).backward()
        return x.grad

    def a_backward_inside_backward(lib):
        class Nested(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x.detach() ** 3

            @staticmethod
            def backward(ctx, grad):
                with lib.enable_grad():
                    x = ctx.saved_tensors[0].detach().requires_grad_()
                    (x**3).backward(grad)
                return x.grad

        x = leaf(lib, [1.0, 2.0])
        Nested.apply(x).backward(lib.ones(2))
        return x.grad


@pytest.mark.parametrize("program", programs(Functions))
def test_the_same_program_gives_the_same(program):
    assert_same(program)
