"""The same small programs give the same in cresset and in PyTorch: the graph, backward and grad."""

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).with_name("autograd")))

from autograd_programs import assert_same, leaf, names, programs  # noqa: E402


class Graph:
    def of_a_polynomial(lib):
        x = leaf(lib, 2.0)
        return names((x**2 + 3 * x + 1).grad_fn)

    def of_a_layer(lib):
        x, w, b = leaf(lib, [[1.0, 2.0]]), leaf(lib, [[1.0], [2.0]]), leaf(lib, [1.0])
        return names(lib.relu(x @ w + b).mean().grad_fn, 6)

    def operands_that_have_no_gradient(lib):
        """Indices, masks, numbers that PyTorch has an operator of its own for: no node lists them."""
        x, y, f = leaf(lib, [1.0, 2.0]), lib.tensor([3.0, 4.0]), lib.nn.functional
        index, mask, one = lib.tensor([1, 0]), lib.tensor([True, False]), lib.tensor(0.5)
        images, rows = leaf(lib, [[[[1.0, 2.0], [3.0, 4.0]]]]), leaf(lib, [[1.0, 2.0], [3.0, 4.0]])
        results = [
            x[index], x[mask], x.index_select(0, index), x.gather(0, index), x.take(index), x.masked_select(mask),
            x.scatter(0, index, y), x.scatter(0, index, 2.0), x.scatter_add(0, index, y),
            x.scatter_reduce(0, index, y, "prod"), x.index_add(0, index, y), x.index_copy(0, index, y),
            x.index_fill(0, index, 2.0), x.index_fill(0, index, one), x.index_reduce(0, index, y, "amax"),
            x.index_put((index,), y), x.put(index, y), x.masked_fill(mask, 2.0), x.masked_fill(mask, one),
            x.masked_scatter(mask, y), lib.where(mask, x, y), lib.where(mask, 2.0, x), lib.fill(x, 2.0),
            lib.fill(x, one), f.embedding(index, rows), f.nll_loss(rows, index, lib.ones(2)),
            f.cross_entropy(rows, index, reduction="none"), f.multi_margin_loss(rows, index),
            f.max_unpool2d(images, lib.tensor([[[[0, 3], [5, 6]]]]), 2), f.fractional_max_pool2d(images, 2, (1, 1)),
            f.batch_norm(rows, lib.zeros(2), lib.ones(2)), lib.take_along_dim(rows, index[None], 0),
            lib.repeat_interleave(x, index), x + 1, x * 2, 1 - x, x**2, 2**x, x.clamp(0, 1), x.clamp_min(1),
            x.clamp(min=one), x.fmod(2), x.fmod(one), x.remainder(2), lib.remainder(2.0, lib.ones(2)) + x,
            lib.copysign(x, 2.0), lib.lerp(x, y, 0.5), lib.lerp(x, y, one), lib.xlogy(2.0, x), lib.xlogy(x, 2.0),
            f.triplet_margin_loss(rows, rows + 1, rows * 2),
        ]  # fmt: skip
        return [[node is None for node, _ in result.grad_fn.next_functions] for result in results]

    def operands_of_changes_in_place(lib):
        index, mask, one = lib.tensor([0]), lib.tensor([True, False]), lib.tensor([7.0])
        results = []
        for change in (
            lambda x: x.masked_fill_(mask, 2.0),
            lambda x: x[:1].masked_fill_(mask[:1], 2.0),
            lambda x: x.index_add_(0, index, one),
            lambda x: x[:1].index_add_(0, index, one),
            lambda x: x.fill_(2.0),
            lambda x: x[1:].fill_(one[0]),
            lambda x: x.copy_(one),
            lambda x: x.__setitem__(index, one),
            lambda x: x.__setitem__(0, one[0]),
        ):
            x = leaf(lib, [1.0, 2.0]) * 1
            change(x)
            node = x.grad_fn
            results.append([node.name(), [behind and behind.name() for behind, _ in node.next_functions]])
        return results

    def gradients_that_a_hook_of_a_node_is_given(lib):
        class Product(lib.autograd.Function):
            def forward(ctx, x, number, y):
                return x * number + y

            def backward(ctx, grad):
                return grad * 2, None, grad * 3

        x, index, said = leaf(lib, [1.0, 2.0]), lib.tensor([1, 0]), []
        rows = x.expand(2, 2)
        for result in (
            rows.max(0).values,
            rows.median(1).values,
            rows.sort(1).values,
            rows.topk(1).values,
            rows.kthvalue(1).values,
            rows.cummax(0).values,
            lib.nn.functional.max_pool2d(rows[None], 2),
            lib.nn.functional.layer_norm(x, (2,)),
            lib.nn.functional.nll_loss(rows, index),
            lib.frexp(x).mantissa,
            rows.split(1)[1],
            lib.var_mean(rows, 0)[1],
            x.index_add(0, index, lib.ones(2)),
            x.masked_fill(index == 0, 2.0),
            2**x,
            x.clamp(0, 1),
            lib.where(index == 0, x, 0.0),
            Product.apply(x, 2, lib.ones(2)),
        ):
            result.grad_fn.register_hook(lambda inputs, outputs: said.append((inputs, outputs)))
            result.grad_fn.register_hook(lambda inputs, outputs: tuple(g if g is None else g * 2 for g in inputs))
            result.sum().backward()
        return said, x.grad

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

    def of_losses_and_rarer_functions(lib):
        x, y, f, special = leaf(lib, [0.25, 0.75]), lib.tensor([0.5, 0.5]), lib.nn.functional, lib.special
        each = [f.mse_loss, f.smooth_l1_loss, f.huber_loss, f.binary_cross_entropy, f.soft_margin_loss]
        losses = [loss(x, y, reduction="none") for loss in [*each, f.binary_cross_entropy_with_logits]]
        ops = [special.entr, special.i0e, special.i1, special.ndtri, special.log_ndtr, special.erfcx, lib.log1p]
        others = [x.clamp(0, 1), x.clamp(min=0), f.relu6(x), f.selu(x), f.logsigmoid(x), f.prelu(x, x[:1])]
        return [y.grad_fn.name() for y in [*losses, *(op(x) for op in ops), *others, special.xlog1py(x, x)]]

    def of_pointwise(lib):
        x = leaf(lib, [0.5, 1.5])
        ops = [-x, x.exp(), x.log(), x.sin(), x.tanh(), x.sigmoid(), x.abs(), x.sqrt(), x - 1, x / 2, x**2]
        return [y.grad_fn.name() for y in ops]

    def of_overloads_with_numbers_and_tensors(lib):
        x, y, special = leaf(lib, [0.5, 1.5]), lib.tensor([2.0, 3.0]), lib.special
        both = [lib.fmod, lib.remainder, lib.pow, lib.copysign, lib.xlogy, lib.clamp_min, lib.clamp_max, lib.clamp]
        ops = [op(x, other) for op in [*both, special.xlog1py, special.zeta] for other in (y, 2.0)]
        of_numbers = [op(2.0, x) for op in (lib.pow, lib.xlogy, special.xlog1py, special.zeta)]
        modes = [lib.div(x, other, rounding_mode=mode) for other in (y, 2) for mode in (None, "floor", "trunc")]
        in_place = [(x * 1).pow_(y), (x * 1).div_(y, rounding_mode="floor"), (x * 1).fmod_(2)]
        others = [1 - x, 2 / x, x % 2, x % y, x.lerp(y, 0.5), x.lerp(y, y), x.clamp(max=y), lib.float_power(x, y)]
        rarer = [lib.nn.functional.gelu(x, approximate="tanh"), special.ndtr(x)]
        sorts = [x.sort().values, x.sort(stable=True).values, x.sort(stable=False).values]
        return [y.grad_fn.name() for y in [*ops, *of_numbers, *modes, *in_place, *others, *rarer, *sorts]]

    def of_products(lib):
        shapes = [(2,), (2, 2), (3, 2, 2)]
        weight, bias = leaf(lib, [[1.0, 2.0]] * 3), leaf(lib, [1.0] * 3)
        tensors = [lib.ones(shape).requires_grad_() for shape in shapes]
        products = [a @ b for a in tensors for b in tensors]
        layers = [lib.nn.functional.linear(x, weight, b) for x in tensors for b in (None, bias)]
        layers.append(lib.nn.functional.linear(tensors[2].transpose(0, 1), weight, bias))
        return [(y.grad_fn.name(), type(y.grad_fn).__name__) for y in products + layers]

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

    def a_gradient_that_is_constant_in_pieces_has_a_history(lib):
        F, found = lib.nn.functional, []
        weight = lib.tensor([0.25])
        functions = [
            F.relu,
            F.relu6,
            F.leaky_relu,
            F.hardtanh,
            F.hardshrink,
            F.softshrink,
            F.rrelu,
            lambda x: F.threshold(x, 0.1, 5.0),
            lambda x: F.prelu(x, weight),
            lambda x: F.relu_(x * 1),
            lambda x: F.hardtanh_(x * 1),
            lambda x: F.threshold_(x * 1, 0.1, 5.0),
            lambda x: F.nll_loss(x.view(2, 3), lib.tensor([0, 1])),
            lambda x: F.nll_loss(x.view(2, 3), lib.tensor([0, 1]), reduction="none"),
            lambda x: F.max_pool1d(x[None], 2),
            lambda x: F.adaptive_max_pool1d(x[None], 2),
            lambda x: F.avg_pool1d(x[None], 2),
            lambda x: F.adaptive_avg_pool1d(x[None], 2),
        ]
        for function in functions:
            for wanted in (False, True):
                lib.manual_seed(0)
                x = leaf(lib, [0.3, -0.7, 1.2, 2.0, -4.0, 7.0])
                y = function(x)
                grad = lib.full_like(y, 1.5).requires_grad_(wanted)
                first = lib.autograd.grad(y, x, grad, create_graph=True)[0]
                inputs = [x, grad] if wanted else [x]
                second = lib.autograd.grad(first.sum(), inputs, create_graph=True)
                found += [first.requires_grad, second[0].requires_grad, *[g.detach() for g in second]]
        return found

    def a_gradient_that_is_constant_everywhere_has_none(lib):
        found = []
        functions = [
            lambda x: x.max(0).values,
            lambda x: x.sort().values,
            lambda x: x.topk(2).values,
            lambda x: x.cummax(0).values,
            lambda x: x.kthvalue(2).values,
            lambda x: lib.nn.functional.dropout(x, 0.5),
            lambda x: x.sign(),
            lambda x: x.round(),
            lambda x: x**0,
            lambda x: x.clamp(-1, 1),
            lambda x: lib.nn.functional.adaptive_avg_pool1d(x[None], 1),
            lambda x: lib.nn.functional.adaptive_avg_pool2d(x.view(1, 2, 2), 1),
        ]
        for function in functions:
            x = leaf(lib, [0.3, -0.7, 1.2, 2.0])
            found.append(lib.autograd.grad(function(x).sum(), x, create_graph=True)[0].requires_grad)
        x, grad = leaf(lib, [0.3, -0.7]), leaf(lib, [1.0, 2.0])
        found.append(lib.autograd.grad(x.floor(), x, grad, create_graph=True)[0].requires_grad)
        second = lib.autograd.grad(lib.autograd.grad(x.abs(), x, grad, create_graph=True)[0].sum(), [x, grad])
        return found, [g + 0 for g in second]

    def second_gradients_at_the_kinks(lib):
        F, found = lib.nn.functional, []
        for function in (F.elu, F.selu, F.celu, lambda x: F.elu(x, 2.0)):
            x = leaf(lib, [0.0, -1.0, 1.0])
            first = lib.autograd.grad(function(x).sum(), x, create_graph=True)[0]
            found += [first.detach(), lib.autograd.grad(first.sum(), x)[0]]
        for function in (lib.atan2, lib.copysign):
            x, y, grad = leaf(lib, [0.0, 3.0]), lib.tensor([0.0, -4.0]), leaf(lib, [1.0, 2.0])
            first = lib.autograd.grad(function(x, y), x, grad, create_graph=True)[0]
            found += [first.detach(), lib.autograd.grad(first.sum(), grad)[0]]
        x, y = lib.tensor([7.5, -7.5]), leaf(lib, [2.0, 2.0])
        first = lib.autograd.grad(lib.fmod(x, y).sum(), y, create_graph=True)[0]
        return found, first.detach(), lib.autograd.grad(first.sum(), y)[0]

    def slopes_at_nan(lib):
        F, found = lib.nn.functional, []
        for function in (
            F.elu,
            F.selu,
            F.celu,
            F.relu,
            F.relu6,
            F.hardtanh,
            F.hardswish,
            F.hardsigmoid,
            F.hardshrink,
            F.softshrink,
            F.leaky_relu,
        ):
            x = leaf(lib, [float("nan"), 1.0])
            found.append(lib.autograd.grad(function(x).sum(), x)[0])
        return found

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


@pytest.mark.parametrize("program", programs(Graph, Backward))
def test_the_same_program_gives_the_same(program):
    assert_same(program)
