"""The same small programs give the same in cresset and in PyTorch: forward mode, autograd.functional and
checkpoints."""

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).with_name("autograd")))

from autograd_programs import assert_same, leaf, programs  # noqa: E402


class ForwardMode:
    def of_a_polynomial(lib):
        fw = lib.autograd.forward_ad
        with fw.dual_level():
            x = fw.make_dual(lib.tensor([1.0, 2.0]), lib.tensor([1.0, 10.0]))
            return list(fw.unpack_dual(x**3 + 2 * x))

    def of_random_draws(lib):
        fw = lib.autograd.forward_ad
        with fw.dual_level():
            x = fw.make_dual(lib.tensor([1.0, 0.0]), lib.tensor([1.0, 10.0]))
            drawn = [lib.bernoulli(x), lib.poisson(x), lib.normal(x, 1.0)]
            return [fw.unpack_dual(r).tangent for r in drawn]

    def of_a_product(lib):
        fw = lib.autograd.forward_ad
        a, b = lib.tensor([[1.0, 2.0], [3.0, 4.0]]), lib.tensor([[5.0, 6.0], [7.0, 8.0]])
        with fw.dual_level():
            x, y = fw.make_dual(a, b), fw.make_dual(b, a)
            return [
                fw.unpack_dual(r).tangent
                for r in (x @ y, x * y, x.sum(0), x.t(), (x / y).mean(), lib.cat([x, y]), x.max(0).values)
            ]

    def of_views_and_changes(lib):
        fw = lib.autograd.forward_ad
        with fw.dual_level():
            x = fw.make_dual(lib.tensor([1.0, 2.0, 3.0]), lib.tensor([1.0, 10.0, 100.0])) * 1
            x[1:].mul_(5)
            x.exp_()
            buffer = lib.zeros(4)
            buffer[:3] = x
            return fw.unpack_dual(x).tangent, fw.unpack_dual(buffer).tangent

    def of_views_of_all_kinds(lib):
        fw = lib.autograd.forward_ad
        result = []
        with fw.dual_level():
            p, t = lib.tensor([1.0, 2.0, 3.0]), lib.tensor([1.0, 10.0, 100.0])
            x = fw.make_dual(p, t)
            x[1:].mul_(5)
            copy = x.clone()
            copy.zero_()
            buffer, other = lib.zeros(3), lib.zeros(3)
            view, head, tail = buffer[1:], other[:2], other[1:]
            buffer.add_(x)
            tail.add_(x[1:])
            result += [fw.unpack_dual(y).tangent for y in (x, copy, buffer, view, other, head, tail)]
            changed = x * 1
            part = changed[1:]
            changed.mul_(2)
            strided = changed.as_strided((2,), (2,), 0)
            result += [fw.unpack_dual(y).tangent for y in (part, strided, part.as_strided((1,), (1,), 2))]
        return result

    def of_constants(lib):
        fw = lib.autograd.forward_ad
        with fw.dual_level():
            x = fw.make_dual(lib.tensor([1.0]), lib.tensor([1.0]))
            return [fw.unpack_dual(t).tangent is None for t in (lib.ones(1) * 2, x.detach(), x > 0, x * 2)]

    def over_reverse(lib):
        fw = lib.autograd.forward_ad
        with fw.dual_level():
            x = fw.make_dual(leaf(lib, [1.0, 2.0]), lib.tensor([1.0, 10.0]))
            (g,) = lib.autograd.grad((x**3).sum(), x, create_graph=True)
            return fw.unpack_dual(g).tangent

    def under_reverse(lib):
        fw = lib.autograd.forward_ad
        p = leaf(lib, [1.0, 2.0])
        with fw.dual_level():
            x = fw.make_dual(p, lib.tensor([1.0, 10.0]))
            tangent = fw.unpack_dual(lib.sin(x) * x).tangent
            tangent.sum().backward()
        return p.grad

    def of_a_function(lib):
        fw = lib.autograd.forward_ad

        class Square(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.x = x
                return x * x

            @staticmethod
            def jvp(ctx, t):
                return 2 * ctx.x * t

        with fw.dual_level():
            return fw.unpack_dual(Square.apply(fw.make_dual(lib.tensor(3.0), lib.tensor(10.0)))).tangent

    def outside_a_level(lib):
        lib.autograd.forward_ad.make_dual(lib.ones(1), lib.ones(1))

    def after_the_level(lib):
        fw = lib.autograd.forward_ad
        with fw.dual_level():
            x = fw.make_dual(lib.ones(1), lib.ones(1))
        return fw.unpack_dual(x).tangent, fw.unpack_dual(x * 2).tangent

    def of_integers(lib):
        fw = lib.autograd.forward_ad
        with fw.dual_level():
            fw.make_dual(lib.tensor([1]), lib.ones(1))

    def of_another_shape(lib):
        fw = lib.autograd.forward_ad
        with fw.dual_level():
            fw.make_dual(lib.ones(2), lib.ones(3))

    def levels_do_not_nest(lib):
        fw = lib.autograd.forward_ad
        with fw.dual_level(), fw.dual_level():
            pass

    def without_recording(lib):
        fw = lib.autograd.forward_ad
        with fw.dual_level(), lib.no_grad():
            x = fw.make_dual(lib.tensor([3.0]), lib.tensor([1.0]))
            return fw.unpack_dual(x.cumsum(0) * x).tangent


class Functional:
    def jacobian(lib):
        F = lib.autograd.functional
        x, y = lib.tensor([1.0, 2.0]), lib.tensor([[3.0, 4.0], [5.0, 6.0]])
        return [
            F.jacobian(lambda x: x**2, x),
            F.jacobian(lambda x: (x.sum(), x * 3), x),
            F.jacobian(lambda x, y: y @ x, (x, y)),
            F.jacobian(lambda x, y: (y @ x, x), (x, y), vectorize=True),
            F.jacobian(lambda x: (x.sum(), x**3), x, vectorize=True, strategy="forward-mode"),
        ]

    def hessian(lib):
        F = lib.autograd.functional
        x, y = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0])
        return [
            F.hessian(lambda x: (x**3).sum(), x),
            F.hessian(lambda x, y: (x**2 * y).sum(), (x, y)),
            F.hessian(lambda x: (x**3).sum(), x, vectorize=True, outer_jacobian_strategy="forward-mode"),
        ]

    def products(lib):
        F = lib.autograd.functional
        x, v = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 5.0])
        return [
            F.vjp(lambda x: x**3, x, v),
            F.jvp(lambda x: x**3, x, v),
            F.vhp(lambda x: (x**3).prod(), x, v),
            F.hvp(lambda x: (x**3).prod(), x, v),
        ]

    def differentiable_results(lib):
        F = lib.autograd.functional
        x = leaf(lib, [1.0, 2.0])
        j = F.jacobian(lambda x: x**3, x, create_graph=True)
        return j.requires_grad, lib.autograd.grad(j.sum(), x)

    def strict_without_dependence(lib):
        lib.autograd.functional.jacobian(lambda x: lib.ones(2), lib.ones(2), strict=True)

    def of_a_list(lib):
        lib.autograd.functional.jacobian(lambda x: x, [lib.ones(2)])

    def of_several_numbers(lib):
        lib.autograd.functional.hessian(lambda x: x, lib.ones(2))


class Checkpoint:
    def gradients(lib):
        from importlib import import_module

        checkpoint = import_module(lib.__name__ + ".utils.checkpoint").checkpoint
        result = []
        for reentrant in (True, False):
            x, w = leaf(lib, [[1.0, 2.0]]), leaf(lib, [[1.0, 2.0], [3.0, 4.0]])
            y = checkpoint(lambda x, w: lib.tanh(x @ w) * x, x, w, use_reentrant=reentrant)
            (y * y).sum().backward()
            result += [y, x.grad, w.grad]
        return result

    def nested(lib):
        from importlib import import_module

        checkpoint = import_module(lib.__name__ + ".utils.checkpoint").checkpoint
        x = leaf(lib, [0.5, 1.5])
        calls = []

        def inner(x):
            calls.append("inner")
            return x.sin() * x

        def outer(x):
            calls.append("outer")
            return checkpoint(inner, x.exp(), use_reentrant=False) * x

        checkpoint(outer, x, use_reentrant=False).sum().backward()
        return x.grad, calls

    def twice(lib):
        from importlib import import_module

        checkpoint = import_module(lib.__name__ + ".utils.checkpoint").checkpoint
        x = leaf(lib, [0.5, 1.5])
        (g,) = lib.autograd.grad(
            checkpoint(lambda x: (x.sin() * x).exp(), x, use_reentrant=False).sum(), x, create_graph=True
        )
        return g, lib.autograd.grad(g.sum(), x)

    def reentrant_in_grad(lib):
        from importlib import import_module

        checkpoint = import_module(lib.__name__ + ".utils.checkpoint").checkpoint
        x = leaf(lib, [0.5])
        lib.autograd.grad(checkpoint(lib.exp, x, use_reentrant=True), x)

    def something_else_the_second_time(lib):
        from importlib import import_module

        checkpoint = import_module(lib.__name__ + ".utils.checkpoint").checkpoint
        x, calls = leaf(lib, [0.5]), []

        def fickle(x):
            calls.append(1)
            return x.exp() * x if len(calls) == 1 else x.exp()

        checkpoint(fickle, x, use_reentrant=False).backward()


@pytest.mark.parametrize("program", programs(ForwardMode, Functional, Checkpoint))
def test_the_same_program_gives_the_same(program):
    assert_same(program)
