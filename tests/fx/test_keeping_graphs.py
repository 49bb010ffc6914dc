"""Graph modules that write their source late, take one list, or become bytes."""

import pytest

import cresset
from cresset import fx, nn
from cresset.fx._graph_pickler import GraphPickler, Options
from cresset.fx._lazy_graph_module import (
    _force_skip_lazy_graph_module,
    _LazyGraphModule,
    _make_graph_module,
    _use_lazy_graph_module,
)
from cresset.fx.experimental.proxy_tensor import make_fx
from cresset.fx.graph import _BoxedCodeGen


def net():
    cresset.manual_seed(0)
    return fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))


def test_a_lazy_module_writes_its_source_when_it_is_first_needed():
    first = net()
    with _use_lazy_graph_module(True):
        module = _make_graph_module(first, first.graph)
    assert isinstance(module, _LazyGraphModule) and module._needs_recompile()
    x = cresset.ones(1, 2)
    assert cresset.equal(module(x), first(x)) and not module._needs_recompile()
    module.recompile()
    assert module._needs_recompile() and module.code == first.code and not module._needs_recompile()
    with _use_lazy_graph_module(True), _force_skip_lazy_graph_module():
        assert not isinstance(_make_graph_module(first, first.graph), _LazyGraphModule)


def test_boxed_code_takes_a_list_and_empties_it():
    module = make_fx(lambda x, y: (x + 1) * y)(cresset.ones(2), cresset.ones(2))
    module.graph.set_codegen(_BoxedCodeGen())
    module.recompile()
    given = [cresset.ones(2), cresset.full((2,), 3.0)]
    assert module(given).tolist() == [6.0, 6.0] and given == []


def test_a_graph_module_comes_back_from_bytes():
    first = net()
    again = GraphPickler.loads(GraphPickler.dumps(first), None)
    x = cresset.randn(4, 2)
    assert again.code == first.code and cresset.equal(again(x), first(x))


def test_operators_arguments_and_containers_come_back_from_bytes():
    def f(x, pair):
        a, b = pair
        return {"r": cresset.stack([x[..., 1:], a]).sum(0).to(cresset.float64), "s": b}

    args = (cresset.ones(2, 3), (cresset.ones(2, 2), cresset.zeros(1)))
    first = make_fx(f)(*args)
    module, text = GraphPickler.loads(GraphPickler.dumps([first, "x"]))
    assert text == "x" and module(*args)["r"].tolist() == [[2.0, 2.0], [2.0, 2.0]]
    kept = [node.meta.get("val") is not None for node in module.graph.nodes if node.op == "call_function"]
    assert all(kept)


def test_what_may_not_be_written_is_refused():
    traced = fx.symbolic_trace(lambda x: helper(x))
    with pytest.raises(RuntimeError, match="may not be written"):
        GraphPickler.dumps(traced)
    with pytest.raises(RuntimeError, match="cannot be found by its name"):
        GraphPickler.dumps(traced, Options(ops_filter=None))
    node = next(iter(traced.graph.nodes))
    with pytest.raises(AssertionError, match="outside of its graph"):
        GraphPickler.dumps([node])
    assert GraphPickler.loads(GraphPickler.dumps([1, node], Options(ignore_raw_node=True))) == [1, None]


@fx.wrap
def helper(x):
    return x + 1
