"""The graph as an object: nodes, edges, what is kept for backward."""

import pytest

import cresset
from cresset.autograd import graph


def leaf(*values):
    return cresset.tensor(values if len(values) > 1 else values[0], requires_grad=True)


def test_nodes_are_named_after_their_operators():
    x = leaf(2.0)
    y = x**2 + 3 * x
    assert y.grad_fn.name() == "AddBackward0"
    assert [node.name() for node, _ in y.grad_fn.next_functions] == ["PowBackward0", "MulBackward0"]
    assert type(y.grad_fn).__name__ == "AddBackward0" and isinstance(y.grad_fn, graph.Node)


def test_a_node_is_one_object():
    y = leaf(2.0) * 2
    assert y.grad_fn is y.grad_fn and (y + 1).grad_fn.next_functions[0][0] is y.grad_fn


def test_the_node_of_a_leaf_knows_it():
    x = leaf(2.0)
    ((node, index),) = x.exp().grad_fn.next_functions
    assert node.variable is x and index == 0 and type(node).__name__ == "AccumulateGrad"


def test_notes_on_a_node_stay():
    y = leaf(2.0) * 2
    y.grad_fn.metadata["note"] = 1
    assert y.grad_fn.metadata == {"note": 1}


def test_an_edge_stands_for_its_tensor():
    x = leaf(1.0, 2.0)
    y = x * 2
    edge = graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn and edge.output_nr == 0
    (g,) = cresset.autograd.grad((y * y).sum(), edge)
    assert g.tolist() == [4, 8]
    cresset.autograd.backward(edge, cresset.ones(2))
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="does not require gradients"):
        graph.get_gradient_edge(cresset.ones(1))


def test_what_is_saved_goes_through_the_hooks():
    x = leaf(1.0, 2.0)
    with graph.saved_tensors_hooks(lambda t: t.tolist(), cresset.tensor):
        y = x * x
    y.sum().backward()
    assert x.grad.tolist() == [2, 4]


def test_a_packed_tensor_keeps_its_history():
    x = leaf(1.0, 2.0)
    with graph.saved_tensors_hooks(lambda t: t.tolist(), cresset.tensor):
        h = x * x
        y = (h * h).sum()
    (slope,) = cresset.autograd.grad(y, x, create_graph=True)
    (second,) = cresset.autograd.grad(slope.sum(), x)
    assert slope.tolist() == [4, 32] and second.tolist() == [12, 48]


def test_the_innermost_hooks_count():
    x, seen = leaf(1.0), []
    with graph.saved_tensors_hooks(lambda t: seen.append("outer"), lambda t: t):
        with graph.saved_tensors_hooks(lambda t: seen.append("inner"), lambda t: t):
            x.exp()
        x.exp()
    x.exp()
    assert seen == ["inner", "outer"]


def test_hooks_can_be_forbidden():
    hooks = graph.saved_tensors_hooks(lambda t: t, lambda t: t)
    with graph.disable_saved_tensors_hooks("not in here"), pytest.raises(RuntimeError, match="not in here"), hooks:
        pass
    with hooks:
        pass


def test_saved_on_the_cpu():
    x = leaf(1.0, 2.0)
    with graph.save_on_cpu(pin_memory=True):
        y = (x * x).sum()
    y.backward()
    assert x.grad.tolist() == [2, 4]


def test_mutation_allowed_in_a_block():
    x = leaf(1.0, 2.0)
    with graph.allow_mutation_on_saved_tensors():
        y = x * 1
        z = (y * y).sum()
        y.zero_()
        z.backward()
    assert x.grad.tolist() == [2, 4]
    again = graph.allow_mutation_on_saved_tensors()
    with graph.allow_mutation_on_saved_tensors(), pytest.raises(RuntimeError, match="cannot be nested"), again:
        pass


def test_a_change_autograd_did_not_see_can_be_told():
    y = leaf(1.0).exp()
    version = y._version
    graph.increment_version([y])
    assert y._version == version + 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    with pytest.raises(TypeError, match="expected a Tensor"):
        graph.increment_version(3)


def test_a_saved_tensor_takes_hooks_late():
    x = leaf(1.0, 2.0)
    y = x * x
    raw = y.grad_fn._raw_saved_self
    assert isinstance(raw, cresset.autograd.SavedTensor) and raw.data is x and raw.unpack_hook is None
    raw.register_hooks(lambda t: (t * 2).tolist(), lambda kept: cresset.tensor(kept))
    assert raw.data == [2.0, 4.0] and y.grad_fn._saved_self.tolist() == [2.0, 4.0]
    with pytest.raises(RuntimeError, match="already been set"):
        raw.register_hooks(lambda t: t, lambda t: t)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 6.0]  # x + 2 x
    with pytest.raises(RuntimeError, match="after it has been freed"):
        y.grad_fn._raw_saved_other.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="forbidden"):
        cresset.autograd.SavedTensor()


def test_a_saved_result_gets_its_history_back():
    y = leaf(1.0).exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t)
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn


def test_a_pack_hook_must_not_change_what_it_gets():
    y = leaf(1.0, 2.0) + 0
    z = y * y
    with pytest.raises(RuntimeError, match="modifying its input in place"):
        z.grad_fn._raw_saved_self.register_hooks(lambda t: t.mul_(2), lambda t: t)
    hooks = graph.saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t)
    with pytest.raises(RuntimeError, match="modifying its input in place"), hooks:
        y * y


def test_a_context_outlives_the_result():
    class Double(cresset.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = leaf(3.0)
    y = Double.apply(x)
    node = y.grad_fn
    raw = node._raw_saved_tensors
    del y
    assert node.next_functions[0][0].variable is x and node.metadata == {} and node.name() == "DoubleBackward"
    assert node.saved_tensors == (x, None) and node.apply(leaf(1.0)) == 2
    with pytest.raises(RuntimeError, match="None is forbidden"):
        raw[1].register_hooks(lambda t: t, lambda t: t)


def test_a_node_is_called_with_gradients():
    x = leaf(3.0)
    y = x**2
    assert y.grad_fn(cresset.tensor(2.0)) == 12
    with pytest.raises(TypeError, match="expected 1 arguments, got 2 instead"):
        y.grad_fn(x, x)


def test_a_node_tells_what_gradients_it_takes():
    var, _ = cresset.var_mean(cresset.ones(3, 2, requires_grad=True), dim=0)
    first, second = var.grad_fn._input_metadata
    assert first.shape == second.shape == (2,) and first.dtype == cresset.float32


def test_a_node_with_a_later_number_runs_first():
    x = leaf(1.0)
    a, b = x * 2, x * 3
    order = []
    a.register_hook(lambda grad: order.append("a"))
    b.register_hook(lambda grad: order.append("b"))
    a.grad_fn._set_sequence_nr(b.grad_fn._sequence_nr() + 1)
    (a + b).backward()
    assert order == ["a", "b"]


def test_a_function_runs_also_without_a_gradient():
    seen = []

    class Look(cresset.autograd.Function):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            seen.append(grad)
            return grad, None

    for materialize in (True, False):
        x = leaf(1.0)
        cresset._C._functions.UndefinedGrad()(Look.apply(x, materialize)).backward()
    assert seen[0] == 0 and seen[1] is None


def test_an_error_can_wait_for_backward():
    y = cresset._C._functions.DelayedError("not yet", 1)(leaf(1.0))
    with pytest.raises(RuntimeError, match="not yet"):
        y.backward()


def test_versions_can_be_kept():
    x = cresset.ones(2)
    with cresset.autograd._unsafe_preserve_version_counter(x):
        x.add_(1)
    assert x._version == 0
    cresset._C._autograd._unsafe_set_version_counter((x,), (3,))
    assert x._version == 3
    with pytest.raises(RuntimeError, match="Cannot set"):
        cresset._C._autograd._unsafe_set_version_counter((x,), (-1,))


def test_disabled_hooks_are_known():
    assert cresset._C._autograd._saved_tensors_hooks_is_enabled()
    with graph.disable_saved_tensors_hooks("not here"):
        assert not cresset._C._autograd._saved_tensors_hooks_is_enabled()
        assert cresset._C._autograd._saved_tensors_hooks_get_disabled_error_message() == "not here"


def test_a_tensor_that_was_detached_in_place_is_not_used():
    a = leaf(1.0).clone()
    b, c = a.sin(), a.exp()
    a.detach_()
    with pytest.raises(RuntimeError, match="has been detached in-place"):
        b.backward()
    c.backward()  # it kept its result


def test_errors_name_the_operation_that_made_a_tensor():
    a = cresset.ones(3, requires_grad=True)
    b = a + 1
    c = b * b
    with cresset.no_grad():
        b += 1
    with pytest.raises(RuntimeError, match=r"which is output 0 of Add, that MulBackward0 needs"):
        c.sum().backward()
    first, second = (a * 1).unbind()[:2]
    with pytest.raises(RuntimeError, match="Output 1 of Unbind is a view and is being modified inplace"):
        second.add_(1)


def test_a_saved_tensor_is_copied_when_it_is_changed_and_once():
    with graph.allow_mutation_on_saved_tensors() as context:
        a = leaf(1.0, 2.0).clone()
        b, c = a**2, a**2
        assert len(context.tid_to_weakhandle) == 1 and not context.cloned
        a.sin_()
        assert len(context.cloned) == 1
        (b + c).sum().backward()
        assert not context.cloned
    assert not context.tid_to_weakhandle


def test_the_gradient_of_an_edge_of_one_element_is_one():
    x = leaf(3.0)
    edge = graph.get_gradient_edge(x**2)
    cresset.autograd.backward(edge)
    assert x.grad == 6
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        cresset.autograd.backward(graph.get_gradient_edge(leaf(1.0, 2.0) * 2))


def test_an_edge_and_its_gradient_have_one_shape():
    class Same(cresset.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad

    y = Same.apply(leaf(1.0, 2.0))
    assert y.grad_fn._input_metadata[0].shape == (2,)
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        cresset.autograd.backward(graph.get_gradient_edge(y), cresset.ones(3))


@pytest.mark.parametrize("number", [-1, 2, 10**9])
def test_an_edge_names_a_result_that_is_there(number):
    x = leaf(1.0, 2.0)
    edge = graph.GradientEdge((x * 2).grad_fn, number)
    with pytest.raises(IndexError):
        cresset.autograd.backward(edge, cresset.ones(2))
    with pytest.raises(IndexError, match=f"no result {number}"):
        cresset.autograd.grad((x * 2).sum(), edge)


def test_a_budget_for_what_a_region_keeps():
    """All of it, or an error that says what to do instead."""
    who = "torch.autograd.graph.region_activation_memory_budget"

    @cresset.compile
    def run(x, budget):
        with graph.region_activation_memory_budget(budget):
            return (x.exp() * x).sum()

    x = leaf(1.0, 2.0)
    run(x, 1.0).backward()
    assert x.grad.allclose(x.exp() * (1 + x))
    with pytest.raises(NotImplementedError, match="a budget of 0.5 is not supported.*torch.utils.checkpoint"):
        run(x, 0.5)
    with pytest.raises(ValueError, match=r"must be in \[0, 1\], got 1.5"):
        run(x, 1.5)
    with pytest.raises(TypeError, match="expects a float, got bool"):
        run(x, True)
    with pytest.raises(RuntimeError, match=f"^{who} can only be used inside a torch.compile region"):
        graph.region_activation_memory_budget(1.0)
