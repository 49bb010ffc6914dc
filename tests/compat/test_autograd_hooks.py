"""The same small programs give the same in cresset and in PyTorch: hooks, modes and saved tensors."""

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).with_name("autograd")))

from autograd_programs import assert_same, cube, leaf, plain, programs  # noqa: E402


class Hooks:
    def on_a_leaf(lib):
        x, seen = leaf(lib, [1.0, 2.0]), []
        x.register_hook(lambda g: seen.append(plain(g)))
        x.register_hook(lambda g: g * 2)
        x.register_hook(lambda g: seen.append(plain(g)))
        (x * 3).sum().backward()
        return seen, x.grad

    def on_a_result(lib):
        x, seen = leaf(lib, [1.0, 2.0]), []
        y = x * 3
        y.register_hook(lambda g: seen.append(plain(g)))
        y.register_hook(lambda g: g * 2)
        (y * y).sum().backward()
        return seen, x.grad

    def where_no_gradient_comes(lib):
        class Ended(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return None

        x, seen = leaf(lib, [1.0, 2.0]), []
        x.register_hook(lambda g: seen.append(("leaf", g)))
        x.register_post_accumulate_grad_hook(lambda leaf: seen.append(("after", leaf.grad)))
        y = x * x
        for node in (y.grad_fn, y.grad_fn.next_functions[0][0]):
            node.register_prehook(lambda gs: seen.append(("before", gs)))
            node.register_hook(lambda out, gs: seen.append(("node", out, gs)))
        Ended.apply(y).sum().backward()
        seen.append(x.grad)
        try:
            y.sum().backward()
        except RuntimeError as error:
            seen.append("a second time" in str(error))
        return seen

    def that_makes_a_gradient_of_none(lib):
        class Ended(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return None

        x = leaf(lib, [1.0, 2.0])
        y = x * x
        y.grad_fn.register_prehook(lambda gs: (lib.ones(2),))
        Ended.apply(y).sum().backward()

    def removed(lib):
        x = leaf(lib, [1.0])
        handle = x.register_hook(lambda g: g * 10)
        handle.remove()
        with x.register_hook(lambda g: g * 100):
            (x * 1).backward()
        (x * 1).backward()
        return x.grad

    def on_a_leaf_in_grad(lib):
        x = leaf(lib, [1.0])
        x.register_hook(lambda g: g * 10)
        return lib.autograd.grad(x * 3, x)

    def sees_the_sum_of_all_paths(lib):
        x, seen = leaf(lib, [1.0]), []
        y = x * 2
        y.register_hook(lambda g: seen.append(plain(g)))
        (y * 3 + y * 4).backward()
        return seen

    def before_and_after_an_inplace_change(lib):
        x, seen = leaf(lib, [1.0, 2.0]), []
        y = x * 1
        y.register_hook(lambda g: seen.append(("old", plain(g))))
        y.mul_(3)
        y.register_hook(lambda g: seen.append(("new", plain(g))))
        y.sum().backward()
        return seen

    def that_changes_the_shape(lib):
        x = leaf(lib, [1.0, 2.0])
        x.register_hook(lambda g: g.sum())
        x.sum().backward()

    def that_returns_nonsense(lib):
        x = leaf(lib, [1.0, 2.0])
        x.register_hook(lambda g: 3)
        x.sum().backward()

    def that_raises(lib):
        x = leaf(lib, [1.0, 2.0])

        def hook(g):
            raise KeyError("mine")

        x.register_hook(hook)
        x.sum().backward()

    def on_a_constant(lib):
        lib.ones(1).register_hook(print)

    def with_retained_gradients(lib):
        x = leaf(lib, [1.0, 2.0])
        y = x * 2
        y.retain_grad()
        y.register_hook(lambda g: g * 10)
        (y * y).sum().backward()
        return y.grad, x.grad

    def retained_twice(lib):
        x = leaf(lib, [1.0])
        y = x * 2
        y.retain_grad()
        y.retain_grad()
        (y * y).backward(retain_graph=True)
        (y * y).backward()
        return y.grad, y.retains_grad

    def retained_and_changed_in_place(lib):
        x = leaf(lib, [1.0, 2.0])
        y = x * 2
        y.retain_grad()
        y.mul_(3)
        (y * y).sum().backward()
        return y.grad, x.grad

    def retained_of_a_constant(lib):
        lib.ones(1).retain_grad()

    def after_accumulation(lib):
        x, seen = leaf(lib, [1.0]), []
        x.register_post_accumulate_grad_hook(lambda t: seen.append((plain(t.grad), t is x)))
        (x * 3).backward()
        (x * 4).backward()
        return seen

    def after_accumulation_of_a_result(lib):
        (leaf(lib, [1.0]) * 2).register_post_accumulate_grad_hook(print)

    def of_a_node(lib):
        x, seen = leaf(lib, [1.0, 2.0]), []
        y = x * 3
        y.grad_fn.register_hook(lambda into, out: seen.append((plain(into), plain(out))))
        y.grad_fn.register_prehook(lambda out: (out[0] * 10,))
        y.sum().backward()
        return seen, x.grad

    def of_a_node_replacing_the_gradient(lib):
        x = leaf(lib, [1.0, 2.0])
        y = x * 3
        handle = y.grad_fn.register_hook(lambda into, out: (into[0] * 2, into[1]))
        y.sum().backward(retain_graph=True)
        handle.remove()
        y.sum().backward()
        return x.grad

    def on_several(lib):
        a, b, seen = leaf(lib, [1.0]), leaf(lib, [2.0]), []
        lib.autograd.graph.register_multi_grad_hook([a, b], lambda grads: seen.append(plain(list(grads))))
        handle = lib.autograd.graph.register_multi_grad_hook([a, b], lambda grad: seen.append("any"), mode="any")
        (2 * a + 3 * b).backward()
        (5 * a).backward()
        handle.remove()
        (a + b).backward()
        return sorted(map(str, seen))

    def the_order_of_hooks_and_gradients(lib):
        x, seen = leaf(lib, [1.0]), []
        y = x.exp()
        z = y * 2
        for name, t in (("x", x), ("y", y), ("z", z)):
            t.register_hook(lambda g, name=name: seen.append(name))
        z.backward()
        return seen

    def handles(lib):
        x = leaf(lib, [1.0])
        handle = x.register_hook(lambda g: g)
        return len(x._backward_hooks), handle.id in x._backward_hooks, handle.remove(), len(x._backward_hooks)


class Modes:
    def no_grad(lib):
        x = leaf(lib, [1.0])
        with lib.no_grad():
            inner = x * 2
            with lib.enable_grad():
                deep = x * 3
            with lib.set_grad_enabled(True):
                deeper = x * 3
        return inner.requires_grad, deep.requires_grad, deeper.requires_grad, lib.is_grad_enabled()

    def decorators(lib):
        x = leaf(lib, [1.0])

        @lib.no_grad()
        def a():
            return x * 2

        @lib.no_grad
        def b():
            return x * 2

        @lib.inference_mode()
        def c():
            return x * 2

        @lib.inference_mode
        def d():
            return x * 2

        @lib.set_grad_enabled(False)
        def e():
            return x * 2

        return (
            [f().requires_grad for f in (a, b, c, d, e)],
            [f().is_inference() for f in (a, b, c, d, e)],
            lib.is_grad_enabled(),
        )

    def generators(lib):
        seen = []

        @lib.no_grad()
        def steps():
            seen.append(lib.is_grad_enabled())
            got = yield 1
            seen.append((got, lib.is_grad_enabled()))
            try:
                yield 2
            except ValueError:
                seen.append(lib.is_grad_enabled())
            yield 3

        generator = steps()
        values = [next(generator)]
        seen.append(lib.is_grad_enabled())
        values += [generator.send("hello"), generator.throw(ValueError())]
        generator.close()
        return values, seen

    def inference(lib):
        x = leaf(lib, [1.0])
        with lib.inference_mode():
            y = x * 2
            inside = lib.is_inference_mode_enabled(), lib.is_grad_enabled()
            with lib.inference_mode(False):
                z = x * 2
        return inside, y.is_inference(), y.requires_grad, z.is_inference(), z.requires_grad, x.is_inference()

    def inference_tensors_in_a_graph(lib):
        with lib.inference_mode():
            y = lib.ones(1)
        leaf(lib, [1.0]) * y

    def inference_tensors_changed_later(lib):
        with lib.inference_mode():
            y = lib.ones(1)
        y.add_(1)

    def inference_tensors_changed_without_recording(lib):
        with lib.inference_mode():
            y = lib.ones(1)
        with lib.no_grad():
            y.add_(1)

    def inference_clone_is_ordinary(lib):
        with lib.inference_mode():
            y = lib.ones(1)
        z = y.clone()
        return z.is_inference(), (leaf(lib, [2.0]) * z).requires_grad

    def inference_version(lib):
        with lib.inference_mode():
            y = lib.ones(1)
        return y._version

    def requires_grad_in_inference(lib):
        with lib.inference_mode():
            y = lib.ones(1)
        y.requires_grad_()

    def restored_after_an_error(lib):
        try:
            with lib.no_grad():
                raise KeyError
        except KeyError:
            return lib.is_grad_enabled()

    def anomaly(lib):
        x = leaf(lib, [0.0])
        with lib.autograd.set_detect_anomaly(True):
            ((x * 0).sqrt() * 0).backward()

    def anomaly_without_nan(lib):
        x = leaf(lib, [0.0])
        with lib.autograd.set_detect_anomaly(True, check_nan=False):
            ((x * 0).sqrt() * 0).backward()
        return x.grad, lib.is_anomaly_enabled()


class SavedTensors:
    def packed_as_lists(lib):
        x = leaf(lib, [1.0, 2.0])
        with lib.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), lambda kept: lib.tensor(kept)):
            y = (x.exp() * x).sum()
        y.backward()
        return x.grad

    def differentiated_twice(lib):
        x = leaf(lib, [1.0, 2.0])
        with lib.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), lambda kept: lib.tensor(kept)):
            y = (x.exp() * x * x).sum()
            (g,) = lib.autograd.grad(y, x, create_graph=True)
        return lib.autograd.grad(g.sum(), x)

    def intermediate_differentiated_twice(lib):
        x = leaf(lib, [1.0, 2.0])
        with lib.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), lambda kept: lib.tensor(kept)):
            h = x * x
            y = (h * h).sum()
        (g,) = lib.autograd.grad(y, x, create_graph=True)
        return lib.autograd.grad(g.sum(), x)

    def the_hook_sees_the_tensor_itself(lib):
        x, seen = leaf(lib, [1.0, 2.0]), []

        def pack(t):
            seen.append((t is x, t.requires_grad, lib.is_grad_enabled()))
            return t

        with lib.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            x * x
        return seen

    def nested(lib):
        x, seen = leaf(lib, [1.0, 2.0]), []
        hooks = lib.autograd.graph.saved_tensors_hooks

        def pack(name):
            return lambda t: (seen.append(name), t)[1]

        with hooks(pack("outer"), lambda t: t):
            x.exp()
            with hooks(pack("inner"), lambda t: t):
                x.exp()
            x.exp()
        x.exp()
        return seen

    def an_unpack_hook_that_returns_nonsense(lib):
        with lib.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
            y = leaf(lib, 2.0).exp()
        y.backward()

    def a_pack_hook_that_raises(lib):
        def pack(t):
            raise KeyError("mine")

        with lib.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            leaf(lib, 2.0).exp()

    def disabled(lib):
        hooks = lib.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
        with lib.autograd.graph.disable_saved_tensors_hooks("no"), hooks:
            pass

    def on_the_cpu(lib):
        x = leaf(lib, [1.0, 2.0])
        with lib.autograd.graph.save_on_cpu():
            y = (x.exp() * x).sum()
        y.backward()
        return x.grad

    def of_a_function(lib):
        x, seen = leaf(lib, [1.0, 2.0]), []
        with lib.autograd.graph.saved_tensors_hooks(
            lambda t: (seen.append("pack"), t)[1], lambda t: (seen.append("unpack"), t)[1]
        ):
            y = cube(lib).apply(x)
        (g,) = lib.autograd.grad(y.sum(), x, create_graph=True)
        return g, lib.autograd.grad(g.sum(), x), seen.count("pack"), seen.count("unpack")

    def mutation_allowed(lib):
        x = leaf(lib, [1.0, 2.0])
        with lib.autograd.graph.allow_mutation_on_saved_tensors():
            y = x * 1
            z = y * y
            y.mul_(5)
            z.sum().backward()
        return x.grad

    def mutation_allowed_and_backward_later(lib):
        x = leaf(lib, [1.0, 2.0])
        with lib.autograd.graph.allow_mutation_on_saved_tensors():
            y = x * 1
            z = y * y
            y.mul_(5)
        z.sum().backward()

    def a_bumped_version(lib):
        x = leaf(lib, [1.0, 2.0])
        y = x.exp()
        lib.autograd.graph.increment_version(y)
        y.sum().backward()


@pytest.mark.parametrize("program", programs(Hooks, Modes, SavedTensors))
def test_the_same_program_gives_the_same(program):
    assert_same(program)
