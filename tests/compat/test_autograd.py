"""The same small programs give the same gradients, the same graphs and the same errors in cresset and in PyTorch."""

import inspect
import sys
import warnings

import pytest

import cresset

torch = pytest.importorskip("torch")


def plain(value):
    """A result as Python values, to compare across libraries."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def close(a, b):
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    if isinstance(a, (float, complex)) and isinstance(b, (float, complex)):
        return a == b or abs(a - b) <= 1e-5 * max(1, abs(a), abs(b)) or (a != a and b != b)
    return type(a) is type(b) and a == b


def outcome(program, lib):
    """What a program returns, or the class of what it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return plain(program(lib))
    except Exception as error:
        return f"{type(error).__name__}"


def leaf(lib, values, **options):
    return lib.tensor(values, requires_grad=True, **options)


def names(node, depth=4):
    """The names of the nodes behind, as nested lists. Where a number was an operand, PyTorch may have no edge at all."""
    if depth == 0:
        return None
    return [node.name(), [names(behind, depth - 1) for behind, _ in node.next_functions if behind is not None]]


# ---------------------------------------------------------------- in place and views


class InPlace:
    def on_a_result(lib):
        x = leaf(lib, [1.0, 2.0])
        y = x * 3
        y.mul_(2)
        y += 1
        (y * y).sum().backward()
        return x.grad, y

    def on_a_view_of_a_result(lib):
        x = leaf(lib, [[1.0, 2.0], [3.0, 4.0]])
        y = x * 1
        y[0].mul_(5)
        (y * y).sum().backward()
        return x.grad, y

    def a_view_made_before_sees_the_change(lib):
        x = leaf(lib, [1.0, 2.0, 3.0])
        y = x * 1
        v = y[1:]
        y.mul_(2)
        (v * v).sum().backward()
        return x.grad, v

    def the_base_sees_a_change_of_its_view(lib):
        x = leaf(lib, [1.0, 2.0, 3.0])
        y = x * 1
        y[1:].pow_(3)
        y.sum().backward()
        return x.grad

    def a_view_of_a_view(lib):
        x = leaf(lib, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        y = x * 1
        y[1][1:].mul_(10)
        y.t()[0].add_(1)
        (y * y).sum().backward()
        return x.grad

    def two_views_that_overlap(lib):
        x = leaf(lib, [1.0, 2.0, 3.0, 4.0])
        y = x * 1
        a, b = y[:3], y[1:]
        a.mul_(2)
        b.mul_(3)
        (a.sum() + 2 * b.sum()).backward()
        return x.grad

    def setitem_with_a_number(lib):
        x = leaf(lib, [1.0, 2.0, 3.0])
        y = x * 2
        y[1] = 7.0
        (y * y).sum().backward()
        return x.grad, y

    def setitem_with_a_tensor(lib):
        x, w = leaf(lib, [1.0, 2.0, 3.0]), leaf(lib, [10.0, 20.0])
        y = x * 2
        y[1:] = w * w
        (y * y).sum().backward()
        return x.grad, w.grad

    def a_constant_becomes_part_of_the_graph(lib):
        buffer = lib.zeros(3)
        x = leaf(lib, [1.0, 2.0])
        buffer[1:] = x * 2
        (buffer * buffer).sum().backward()
        return x.grad, buffer.requires_grad

    def copy_into_a_view_of_a_constant(lib):
        buffer = lib.ones(2, 2)
        x = leaf(lib, [3.0, 4.0])
        buffer[:, 0].copy_(x)
        (buffer**2).sum().backward()
        return x.grad, buffer.requires_grad, buffer.is_leaf

    def relu_in_place(lib):
        x = leaf(lib, [-1.0, 2.0])
        y = (x * 2).relu_()
        y.sum().backward()
        return x.grad

    def a_chain_in_place(lib):
        x = leaf(lib, [0.5, 1.5])
        y = x.clone()
        y.sin_().mul_(x)
        y.sum().backward()
        return x.grad

    def a_chain_that_destroys_what_is_needed(lib):
        x = leaf(lib, [0.5, 1.5])
        y = x.clone()
        y.exp_().mul_(x)
        y.sum().backward()

    def with_another_operand(lib):
        x, w = leaf(lib, [1.0, 2.0]), leaf(lib, [3.0, 4.0])
        y = x.clone()
        y.mul_(w)
        y.add_(w, alpha=2)
        y.sum().backward()
        return x.grad, w.grad

    def zero_cuts_the_history(lib):
        x = leaf(lib, [1.0, 2.0])
        y = x * 2
        y.zero_()
        z = y + x
        z.sum().backward()
        return x.grad

    def detach_in_place(lib):
        x = leaf(lib, [1.0, 2.0])
        y = x * 2
        y.detach_()
        return y.requires_grad, y.is_leaf, y.grad_fn is None

    def detach_shares_memory_and_the_version(lib):
        x = leaf(lib, [1.0, 2.0])
        y = x * x
        d = y.detach()
        d.mul_(2)
        return y, y._version, d._version

    def a_detached_change_is_noticed(lib):
        x = leaf(lib, [1.0, 2.0])
        y = x.exp()
        y.detach().mul_(2)
        y.sum().backward()

    def a_change_through_data_is_not_noticed(lib):
        x = leaf(lib, [1.0, 2.0])
        y = x * 2
        z = y * y
        y.data.mul_(10)
        z.sum().backward()
        return x.grad

    def on_a_leaf(lib):
        leaf(lib, [1.0]).add_(1)

    def on_a_view_of_a_leaf(lib):
        leaf(lib, [1.0, 2.0])[0].add_(1)

    def on_a_leaf_without_recording(lib):
        x = leaf(lib, [1.0])
        with lib.no_grad():
            x.add_(1)
            x[0].mul_(2)
        (x * 3).backward()
        return x, x.grad, x.is_leaf

    def on_something_backward_needs(lib):
        x = leaf(lib, [1.0])
        y = x * 1
        z = y * y
        y.add_(1)
        z.backward()

    def on_something_backward_does_not_need(lib):
        x = leaf(lib, [1.0])
        y = x * 1
        z = y + y
        y.add_(1)
        z.backward()
        return x.grad

    def on_one_of_several_views(lib):
        x = leaf(lib, [1.0, 2.0]) * 1
        a, _ = x.unbind(0)
        a.add_(1)

    def on_one_of_several_views_of_a_constant(lib):
        x = lib.ones(2)
        a, _ = x.split(1)
        a.add_(1)
        return x

    def on_a_view_made_without_recording(lib):
        x = leaf(lib, [1.0, 2.0]) * 1
        with lib.no_grad():
            v = x[0]
        v.add_(1)

    def of_a_narrower_dtype(lib):
        leaf(lib, [1.0]).mul(1).add_(lib.ones(1, dtype=lib.complex64))

    def out_of_a_recorded_call(lib):
        lib.add(leaf(lib, [1.0]), 1, out=lib.empty(1))

    def swapped_rows(lib):
        x = leaf(lib, [[1.0, 2.0], [3.0, 4.0]])
        y = x * 1
        y[[0, 1]] = y[[1, 0]] * lib.tensor([[1.0], [10.0]])
        (y * lib.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
        return x.grad

    def masked_fill(lib):
        x = leaf(lib, [1.0, 2.0, 3.0])
        y = x * 2
        y.masked_fill_(y > 3, 0.0)
        y.sum().backward()
        return x.grad

    def a_transposed_view(lib):
        x = leaf(lib, [[1.0, 2.0], [3.0, 4.0]])
        y = x * 1
        y.t().mul_(lib.tensor([[1.0, 2.0], [3.0, 4.0]]))
        (y * y).sum().backward()
        return x.grad

    def second_derivative_through_it(lib):
        x = leaf(lib, [1.0, 2.0])
        y = x * 1
        y[0].pow_(3)
        (g,) = lib.autograd.grad((y * y).sum(), x, create_graph=True)
        return lib.autograd.grad(g.sum(), x)

    def the_grad_fn_of_a_view_is_renewed(lib):
        x = leaf(lib, [1.0, 2.0]) * 1
        v = x[0]
        before = v.grad_fn.name()
        x.mul_(2)
        return before, v.grad_fn.name(), x.grad_fn.name()

    def the_base_of_a_changed_view_has_copy_slices(lib):
        x = leaf(lib, [1.0, 2.0]) * 1
        x[0].mul_(2)
        return x.grad_fn.name()

    def a_view_of_an_unrecorded_base_that_becomes_recorded(lib):
        base = lib.zeros(2, 2)
        view = base[0]
        base.add_(leaf(lib, [1.0, 2.0]))
        return view.requires_grad, base.requires_grad

    def a_view_of_an_unrecorded_base_is_used(lib):
        base, x = lib.zeros(2, 2), leaf(lib, [1.0, 2.0])
        view = base[0]
        base.add_(x)
        y = view * view
        y.sum().backward()
        return x.grad, y.requires_grad


# ---------------------------------------------------------------- the graph


class Graph:
    def of_a_polynomial(lib):
        x = leaf(lib, 2.0)
        return names((x**2 + 3 * x + 1).grad_fn)

    def of_a_layer(lib):
        x, w, b = leaf(lib, [[1.0, 2.0]]), leaf(lib, [[1.0], [2.0]]), leaf(lib, [1.0])
        return names(lib.relu(x @ w + b).mean().grad_fn, 6)

    def of_shapes(lib):
        x = leaf(lib, [[1.0, 2.0], [3.0, 4.0]])
        ops = [
            x.t(),
            x.view(4),
            x.permute(1, 0),
            x[0],
            x[:, 1],
            x.unsqueeze(0),
            x.expand(2, 2, 2),
            x.clone(),
            x.transpose(0, 1),
        ]
        return [y.grad_fn.name() for y in ops]

    def of_pointwise(lib):
        x = leaf(lib, [0.5, 1.5])
        ops = [-x, x.exp(), x.log(), x.sin(), x.tanh(), x.sigmoid(), x.abs(), x.sqrt(), x - 1, x / 2, x**2]
        return [y.grad_fn.name() for y in ops]

    def of_reductions(lib):
        x = leaf(lib, [[1.0, 2.0], [3.0, 4.0]])
        ops = [x.sum(), x.sum(0), x.mean(), x.mean(0), x.max(), x.max(0).values, x.prod(), x.cumsum(0)]
        return [y.grad_fn.name() for y in ops]

    def of_a_leaf(lib):
        x = leaf(lib, 2.0)
        (node, index), (constant, _) = (x * lib.tensor(3.0)).grad_fn.next_functions
        return node.name(), index, constant is None, node.variable is x

    def identity(lib):
        x = leaf(lib, 2.0)
        y = x * 2
        return y.grad_fn is y.grad_fn, (y + 1).grad_fn.next_functions[0][0] is y.grad_fn

    def text(lib):
        y = leaf(lib, 2.0) * 2
        return repr(y), str(y.grad_fn).split(" object")[0], type(y.grad_fn).__name__

    def flags(lib):
        x = leaf(lib, [1.0, 2.0])
        y = x * 2
        return [
            (t.requires_grad, t.is_leaf, t.retains_grad, t.output_nr)
            for t in (x, y, y.detach(), (y > 0), y.max(0).indices, y.clone(), lib.ones(1), y[0], y.data)
        ]

    def output_numbers(lib):
        return [t.output_nr for t in (leaf(lib, [[1.0, 2.0]]) * 1).unbind(1)]

    def metadata(lib):
        y = leaf(lib, 2.0) * 2
        y.grad_fn.metadata["who"] = "me"
        return dict(y.grad_fn.metadata)

    def edges(lib):
        x = leaf(lib, [1.0, 2.0])
        y = x * 2
        edge = lib.autograd.graph.get_gradient_edge(y)
        leaf_edge = lib.autograd.graph.get_gradient_edge(x)
        return edge.node.name(), edge.output_nr, lib.autograd.grad((y * y).sum(), [edge, leaf_edge])

    def a_gradient_edge_as_root(lib):
        x = leaf(lib, [1.0, 2.0])
        edge = lib.autograd.graph.get_gradient_edge(x * 2)
        lib.autograd.backward([edge], [lib.ones(2)])
        return x.grad, lib.autograd.grad(lib.autograd.graph.get_gradient_edge(x * 3), x, lib.ones(2))

    def no_edge_of_a_constant(lib):
        lib.autograd.graph.get_gradient_edge(lib.ones(1))

    def saved_values(lib):
        x, w = leaf(lib, [1.0, 2.0]), leaf(lib, [3.0, 4.0])
        y = (x * w).grad_fn
        return y._saved_self, y._saved_other, x.exp().grad_fn._saved_result


# ---------------------------------------------------------------- backward and grad


class Backward:
    def twice_without_retaining(lib):
        y = (leaf(lib, 2.0) ** 2).exp()
        y.backward()
        y.backward()

    def twice_where_nothing_is_kept(lib):
        x = leaf(lib, 2.0)
        y = x + 1
        y.backward()
        y.backward()
        return x.grad

    def twice_with_retaining(lib):
        x = leaf(lib, 2.0)
        y = (x**2).exp()
        y.backward(retain_graph=True)
        y.backward()
        return x.grad

    def of_several_roots(lib):
        x = leaf(lib, [1.0, 2.0])
        y = x * x
        lib.autograd.backward([y.sum(), y], [None, lib.tensor([1.0, 10.0])])
        return x.grad

    def of_a_root_that_is_behind_another(lib):
        x = leaf(lib, [1.0, 2.0])
        y = x * x
        z = (y * y).sum()
        lib.autograd.backward([z, y], [None, lib.ones(2)])
        return x.grad

    def of_the_same_root_twice(lib):
        x = leaf(lib, 3.0)
        y = x * x
        lib.autograd.backward([y, y])
        return x.grad

    def of_a_leaf(lib):
        x = leaf(lib, 3.0)
        x.backward()
        x.backward(lib.tensor(5.0))
        return x.grad

    def only_for_inputs(lib):
        x, w = leaf(lib, 2.0), leaf(lib, 3.0)
        (x * w).backward(inputs=[x])
        return x.grad, w.grad

    def for_an_intermediate_input(lib):
        x = leaf(lib, 2.0)
        y = x * 3
        (y * y).backward(inputs=[y])
        return x.grad, y.grad

    def for_no_inputs(lib):
        leaf(lib, 2.0).backward(inputs=[])

    def of_a_constant(lib):
        lib.ones(()).backward()

    def of_a_vector_without_gradient(lib):
        (leaf(lib, [1.0, 2.0]) * 2).backward()

    def of_a_vector_of_one(lib):
        x = leaf(lib, [2.0])
        (x * 3).backward()
        return x.grad

    def with_a_gradient_of_the_wrong_shape(lib):
        (leaf(lib, [1.0, 2.0]) * 2).backward(lib.ones(3))

    def with_a_gradient_that_is_a_number(lib):
        (leaf(lib, [1.0, 2.0]) * 2).backward(3)

    def with_a_gradient_of_another_dtype(lib):
        x = leaf(lib, [1.0, 2.0])
        (x * 2).backward(lib.ones(2, dtype=lib.float64))
        return x.grad, str(x.grad.dtype)

    def of_a_complex_number(lib):
        leaf(lib, 1 + 2j).backward()

    def grad_of_complex(lib):
        z = leaf(lib, [1 + 2j, 3 - 1j])
        return [
            lib.autograd.grad(f(z), z)[0]
            for f in (
                lambda z: z.abs().sum(),
                lambda z: (z * z).real.sum(),
                lambda z: (z * z.conj()).real.sum(),
                lambda z: z.imag.sum(),
            )
        ]

    def grad_of_an_unused_input(lib):
        lib.autograd.grad(leaf(lib, 1.0) * 2, leaf(lib, 2.0))

    def grad_of_an_unused_input_allowed(lib):
        return lib.autograd.grad(leaf(lib, 1.0) * 2, leaf(lib, 2.0), allow_unused=True)

    def grad_of_an_unused_input_as_zeros(lib):
        return lib.autograd.grad(leaf(lib, 1.0) * 2, leaf(lib, [2.0, 3.0]), materialize_grads=True)

    def grad_that_may_not_be_unused_and_zeros(lib):
        x = leaf(lib, 1.0)
        lib.autograd.grad(x * 2, x, allow_unused=False, materialize_grads=True)

    def grad_of_a_constant_input(lib):
        lib.autograd.grad(leaf(lib, 1.0) * 2, lib.ones(1))

    def grad_of_no_inputs(lib):
        lib.autograd.grad(leaf(lib, 1.0) * 2, [])

    def grad_leaves_grad_alone(lib):
        x = leaf(lib, 1.0)
        g = lib.autograd.grad(x * 2, x)
        return g, x.grad

    def grad_of_the_output_itself(lib):
        x = leaf(lib, 3.0)
        y = x * 2
        return lib.autograd.grad(y, [y, x])

    def grad_of_the_same_input_twice(lib):
        x = leaf(lib, 3.0)
        return lib.autograd.grad(x * x, [x, x])

    def grad_of_an_intermediate(lib):
        x = leaf(lib, [1.0, 2.0])
        y = x * 2
        return lib.autograd.grad((y**2).sum(), y)

    def grad_by_name(lib):
        x, w = leaf(lib, 3.0), leaf(lib, 4.0)
        return lib.autograd.grad(x * w, {"x": x, "w": w})

    def grad_in_batches(lib):
        x = leaf(lib, [1.0, 2.0])
        return lib.autograd.grad(x * x, x, lib.eye(2), is_grads_batched=True)

    def third_derivative(lib):
        x = leaf(lib, 2.0)
        y = x**4 + lib.sin(x)
        for _ in range(3):
            (y,) = lib.autograd.grad(y, x, create_graph=True)
        return y

    def mixed_derivative(lib):
        x, w = leaf(lib, 2.0), leaf(lib, 3.0)
        (g,) = lib.autograd.grad((x * w).exp(), x, create_graph=True)
        return lib.autograd.grad(g, [x, w])

    def broadcast_and_reduced(lib):
        x, w, b = leaf(lib, [[1.0], [2.0]]), leaf(lib, [3.0, 4.0, 5.0]), leaf(lib, 2.0)
        ((x * w + b) ** 2).sum().backward()
        return x.grad, w.grad, b.grad

    def accumulation_keeps_the_tensor(lib):
        x = leaf(lib, [1.0, 2.0])
        x.sum().backward()
        first = x.grad
        (x * x).sum().backward()
        return first is x.grad, first

    def accumulation_with_a_graph(lib):
        x = leaf(lib, [1.0, 2.0])
        (x**2).sum().backward(create_graph=True)
        first = x.grad
        (x**3).sum().backward(create_graph=True)
        return first is x.grad, first, x.grad, x.grad.requires_grad

    def the_gradient_has_the_layout_of_its_tensor(lib):
        x = lib.ones(3, 2).t().requires_grad_()
        (x * lib.ones(2, 3)).sum().backward()
        return x.grad.stride()

    def gradients_do_not_share_memory(lib):
        x, y = leaf(lib, [1.0, 2.0]), leaf(lib, [3.0, 4.0])
        (x + y).sum().backward()
        x.grad.mul_(10)
        return y.grad

    def requires_grad_of_integers(lib):
        lib.tensor([1, 2], requires_grad=True)

    def requires_grad_of_a_result(lib):
        (leaf(lib, 1.0) * 2).requires_grad_(False)

    def assigned_gradient(lib):
        x = leaf(lib, [1.0, 2.0])
        x.grad = lib.tensor([5.0, 6.0])
        x.sum().backward()
        return x.grad

    def assigned_gradient_of_another_shape(lib):
        leaf(lib, [1.0, 2.0]).grad = lib.ones(3)

    def assigned_gradient_that_is_a_number(lib):
        leaf(lib, [1.0, 2.0]).grad = 3


# ---------------------------------------------------------------- hooks


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


# ---------------------------------------------------------------- modes


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


# ---------------------------------------------------------------- autograd.Function


def cube(lib):
    class Cube(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 3 * x**2

    return Cube


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


# ---------------------------------------------------------------- saved tensors


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


# ---------------------------------------------------------------- forward mode


class ForwardMode:
    def of_a_polynomial(lib):
        fw = lib.autograd.forward_ad
        with fw.dual_level():
            x = fw.make_dual(lib.tensor([1.0, 2.0]), lib.tensor([1.0, 10.0]))
            return list(fw.unpack_dual(x**3 + 2 * x))

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


# ---------------------------------------------------------------- functional and checkpoint


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


PROGRAMS = [
    pytest.param(program, id=f"{group.__name__}-{name}")
    for group in (InPlace, Graph, Backward, Hooks, Modes, Functions, SavedTensors, ForwardMode, Functional, Checkpoint)
    for name, program in vars(group).items()
    if inspect.isfunction(program)
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_same_program_gives_the_same(program):
    expected, got = outcome(program, torch), outcome(program, cresset)
    assert close(got, expected), f"\ncresset: {got}\nPyTorch: {expected}"


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
