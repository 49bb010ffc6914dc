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
