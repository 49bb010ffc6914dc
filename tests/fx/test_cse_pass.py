"""CSEPass: calls that are equal are made once."""

import cresset
from cresset.fx import symbolic_trace
from cresset.fx.experimental.proxy_tensor import make_fx
from cresset.fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops

X = cresset.tensor([[1.0, 2.0], [3.0, 4.0]])


def fewer(function, find=None):
    """How many nodes go; the rest computes the same."""
    graph = make_fx(function)(X)
    result = (find or CSEPass(get_CSE_banned_ops()))(graph)
    gone = len(graph.graph.nodes) - len(result.graph_module.graph.nodes)
    assert result.modified == (gone > 0)
    assert not CSEPass(get_CSE_banned_ops())(result.graph_module).modified
    result.graph_module.graph.lint()
    return gone, result.graph_module


def test_equal_calls_and_what_is_made_of_them_are_made_once():
    gone, module = fewer(lambda x: (x.sin() + 1).cos() + (x.sin() + 1).cos())
    assert gone == 3 and module(X).equal(2 * (X.sin() + 1).cos())


def test_other_arguments_are_other_calls():
    assert fewer(lambda x: x.sum(0) + x.sum(1))[0] == 0
    assert fewer(lambda x: x.sum(0, keepdim=True) * x.sum(0))[0] == 0
    assert fewer(lambda x: (x + 1) * (x + 1.0))[0] == 0  # an integer is another number
    assert fewer(lambda x: cresset.cat([x, x]) + cresset.cat([x, x]))[0] == 1


def test_random_numbers_and_writes_stay():
    assert fewer(lambda x: cresset.rand_like(x) + cresset.rand_like(x))[0] == 0
    banned = CSEPass({cresset.ops.aten.sin})
    graph = make_fx(lambda x: x.sin() + x.sin() + x.cos() * x.cos())(X)
    assert len(graph.graph.nodes) - len(banned(graph).graph_module.graph.nodes) == 1


def test_modules_and_methods_of_traced_programs():
    def program(x):
        return x.relu() + x.relu() + cresset.relu(x)

    graph = symbolic_trace(program)
    result = CSEPass()(graph)
    assert len(graph.graph.nodes) - len(result.graph_module.graph.nodes) == 1
    assert result.graph_module(X).equal(program(X))
