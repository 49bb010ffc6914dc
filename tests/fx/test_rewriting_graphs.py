"""Passes that give another graph: asserts recorded, calls written one way, products joined, notes at nodes."""

import operator
import typing

import pytest

import cresset
from cresset import fx, nn
from cresset._subclasses import FakeTensorMode
from cresset.fx import operator_schemas
from cresset.fx.annotate import annotate
from cresset.fx.experimental.merge_matmul import merge_matmul
from cresset.fx.experimental.normalize import NormalizeArgs, NormalizeOperators
from cresset.fx.experimental.rewriter import RewritingTracer
from cresset.fx.passes import graph_manipulation, param_fetch
from cresset.fx.passes.annotate_getitem_nodes import annotate_getitem_nodes
from cresset.fx.passes.fake_tensor_prop import FakeTensorProp
from cresset.fx.passes.infra import pass_manager as solving
from cresset.fx.passes.pass_manager import PassManager, inplace_wrapper, loop_pass, these_before_those_pass_constraint
from cresset.fx.passes.shape_prop import ShapeProp
from cresset.fx.tensor_type import Dyn, TensorType, is_consistent, is_more_precise

X = cresset.tensor([[1.0, -2.0], [3.0, 4.0]])


def rewritten(root):
    tracer = RewritingTracer()
    graph = tracer.trace(root)
    return fx.GraphModule(tracer.root, graph)


class TestRewriting:
    def test_an_assert_is_a_step_with_its_message(self):
        limit = 3

        def f(x, *, scale=2):
            assert x.sum() > limit, """too
  small"""
            return x * scale

        traced = rewritten(f)
        assert traced(X).equal(2 * X)
        with pytest.raises(AssertionError, match="too\n  small"):
            traced(-X)

    def test_the_forward_of_a_module_and_of_its_children(self):
        class Inner(nn.Module):
            def forward(self, x):
                assert x.numel() == 4
                return x + 1

        class Outer(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(2, 2)
                self.inner = Inner()

            def forward(self, x):
                assert x.dim() == 2
                return self.layer(x)

        outer = Outer()
        traced = rewritten(outer)
        assert sum(node.target is cresset._assert for node in traced.graph.nodes) == 1
        assert traced(X).equal(outer(X))

    def test_plain_tracing_refuses_the_assert(self):
        def f(x):
            assert x.sum() > 0
            return x

        with pytest.raises(fx.proxy.TraceError):
            fx.symbolic_trace(f)

    def test_an_annotated_name_gives_its_node_a_type(self):
        def f(x):
            y: TensorType((2, Dyn)) = x + 1
            return y

        nodes = list(rewritten(f).graph.nodes)
        assert nodes[1].type == TensorType((2, Dyn))


class TestNormalizing:
    def test_arguments_stand_by_name_with_their_defaults(self):
        model = nn.Sequential(nn.Linear(2, 2), nn.Flatten())
        normal = NormalizeArgs(fx.symbolic_trace(model)).transform()
        assert [list(node.kwargs) for node in normal.graph.nodes if node.op == "call_module"] == [["input"], ["input"]]
        assert normal(X).equal(model(X))

    def test_notes_and_types_of_nodes_stay(self):
        traced = fx.symbolic_trace(lambda x: cresset.add(x, 1))
        for node in traced.graph.nodes:
            node.meta["mine"], node.type = node.name, cresset.Tensor
        nodes = list(NormalizeArgs(traced).transform().graph.nodes)
        assert nodes[1].meta["mine"] == "add" and nodes[1].type is cresset.Tensor

    def test_functions_become_operators(self):
        traced = fx.symbolic_trace(lambda x, y: cresset.floor_divide(cresset.sub(x, y), cresset.div(y, 2)))
        normal = NormalizeOperators(traced).transform()
        targets = [node.target for node in normal.graph.nodes if node.op == "call_function"]
        assert targets == [operator.sub, operator.truediv, operator.floordiv]
        alpha = NormalizeOperators(fx.symbolic_trace(lambda x: cresset.add(x, 1, alpha=2))).transform()
        assert alpha(X).equal(X + 2)  # the operator has no alpha, so the function stays

    def test_an_operator_of_aten_by_name(self):
        for target in (cresset.ops.aten.add.Tensor, cresset.ops.aten.add):
            kinds = (cresset.Tensor, cresset.Tensor)
            found = operator_schemas.normalize_function(
                target, (X, X), {}, kinds, None, normalize_to_only_use_kwargs=True
            )
            assert found.kwargs["input"] is X and found.kwargs["other"] is X and found.kwargs["alpha"] == 1

    def test_types_of_arguments_against_those_of_signatures(self):
        hint, fits = operator_schemas.create_type_hint, operator_schemas.type_matches
        assert hint([int, bool]) == list[int] and hint((bool, int)) == tuple[int, ...] and hint([]) == list[typing.Any]
        assert hint([int, str]) == list[typing.Any] and hint(int) is int
        assert fits(list[int], int) and fits(list[int] | None, list[int]) and fits(int, cresset.dtype)
        assert fits(list[cresset.Tensor], hint((nn.Parameter, cresset.Tensor))) and fits(int | None, int)
        assert not fits(int, float) and not fits(list[cresset.Tensor], list[int])
        with pytest.warns(UserWarning, match="nested"):
            assert not fits(list[list[int]], list[int])


def test_products_with_one_second_factor_are_one():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(X)

        def forward(self, x, y):
            return cresset.matmul(x, self.weight) + 1, cresset.matmul(y, self.weight), cresset.matmul(x, y)

    model, y = Model(), cresset.ones(2, 2)
    merged = merge_matmul(model)
    assert sum(node.target is cresset.matmul for node in merged.graph.nodes) == 2
    assert all(a.allclose(b) for a, b in zip(merged(X, y), model(X, y), strict=True))
    chained = merge_matmul(fx.symbolic_trace(lambda x, w: cresset.matmul(cresset.matmul(x, w), w)))
    assert sum(node.target is cresset.matmul for node in chained.graph.nodes) == 2


class TestNotes:
    def test_bytes_of_nodes(self):
        traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3)))
        with pytest.raises(RuntimeError, match="shape propagation"):
            graph_manipulation.get_size_of_all_nodes(traced)
        graph_manipulation.get_size_of_all_nodes(traced, [X])
        _, layer, _ = traced.graph.nodes
        assert layer.size_bytes == (4 * 6, 4 * (6 + 9))

    def test_types_of_parts(self):
        graph = fx.Graph()
        pair = graph.placeholder("pair", type_expr=tuple[int, str])
        many = graph.placeholder("many", type_expr=list[float])
        a, b = (graph.call_function(operator.getitem, (node, 1)) for node in (pair, many))
        graph.output((a, b))
        annotate_getitem_nodes(graph)
        assert a.type is str and b.type is float

    def test_a_type_is_given_once(self):
        traced = fx.symbolic_trace(lambda x: annotate(x + 1, cresset.Tensor))
        assert [node.type for node in traced.graph.nodes][1] is cresset.Tensor
        with pytest.raises(RuntimeError, match="already had a type"):
            fx.symbolic_trace(lambda x: annotate(annotate(x, int), int))
        assert annotate(3, int) == 3

    def test_settings_of_layers_at_their_nodes(self):
        traced = fx.symbolic_trace(nn.Sequential(nn.Conv2d(1, 2, 3)))
        param_fetch.lift_lowering_attrs_to_nodes(traced)
        [node] = [node for node in traced.graph.nodes if node.op == "call_module"]
        assert node.attrs_for_lowering["name"] == "torch.nn.modules.conv.Conv2d"
        assert node.attrs_for_lowering["kernel_size"] == (3, 3)
        with pytest.raises(RuntimeError, match="module_fetch_book"):
            param_fetch.extract_attrs_for_lowering(nn.Tanh())

    def test_shapes_without_computing(self):
        traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 5), nn.ReLU()))
        FakeTensorProp(traced).propagate(X)
        assert [tuple(n.meta["val"].shape) for n in traced.graph.nodes if n.op == "call_module"] == [(2, 5), (2, 5)]
        mode = FakeTensorMode()
        with mode:
            given = cresset.empty(7, 2)
        ShapeProp(traced, fake_mode=mode).propagate(given)
        assert [tuple(n.meta["tensor_meta"].shape)[0] for n in traced.graph.nodes if n.op == "call_module"] == [7, 7]

    def test_an_error_says_at_which_node(self):
        with pytest.raises(RuntimeError, match="ShapeProp error for: node=%linear"):
            ShapeProp(fx.symbolic_trace(lambda x: nn.functional.linear(x, x))).propagate(cresset.ones(2, 3, 4))

    def test_a_transformer_keeps_where_nodes_came_from(self):
        tracer = fx.Tracer()
        tracer.record_stack_traces = True
        graph = tracer.trace(nn.Sequential(nn.ReLU()))
        module = fx.Transformer(fx.GraphModule(tracer.root, graph)).transform()
        assert [node.stack_trace is not None for node in module.graph.nodes if node.op == "call_module"] == [True]


class TestPassManagers:
    def test_rules_are_solved(self):
        done = []
        first = solving.pass_result_wrapper(lambda module: done.append("first"))
        second = solving.pass_result_wrapper(lambda module: done.append("second"))
        manager = solving.PassManager([second, first], [solving.this_before_that_pass_constraint(first, second)])
        with pytest.raises(RuntimeError, match="constraint violated"):
            manager.validate_constraints()
        assert manager(fx.symbolic_trace(lambda x: x)).modified and done == ["first", "second"]
        manager.add_constraint(solving.this_before_that_pass_constraint(second, first))
        with pytest.raises(RuntimeError, match="Circular dependency"):
            manager.solve_constraints()

    def test_passes_run_until_nothing_changes(self):
        left = [2]

        def shrink(module):
            left[0] -= 1
            return solving.PassResult(module, left[0] > 0)

        assert solving.PassManager([shrink], steps=10)(fx.symbolic_trace(lambda x: x)).modified
        assert left == [0]

    def test_an_error_names_the_pass(self):
        def broken(module):
            raise ValueError("no")

        with pytest.raises(Exception, match="running the 'broken' pass after the following passes"):
            solving.PassManager([broken])(fx.symbolic_trace(lambda x: x))
        with pytest.raises(TypeError, match="one variable"):
            solving.PassManager().add_checks(lambda a, b: None)

    def test_rules_are_checked(self):
        def double(x):
            return 2 * x

        def one_more(x):
            return x + 1

        manager = PassManager([loop_pass(double, 3), one_more])
        assert manager(1) == 9
        manager.add_constraint(these_before_those_pass_constraint(one_more, double))
        with pytest.raises(RuntimeError, match="constraint violated"):
            manager(1)
        manager.remove_pass(["one_more"])
        assert manager(1) == 8
        assert inplace_wrapper(lambda x: None)(5) == 5
        with pytest.raises(AssertionError, match="Exactly one"):
            loop_pass(double)


def test_types_of_tensors_by_their_sizes():
    one, some, none = TensorType((1, 2)), TensorType((1, Dyn)), TensorType((Dyn, Dyn))
    assert is_consistent(one, some) and is_consistent(some, TensorType((Dyn, 5))) and is_consistent(one, Dyn)
    assert not is_consistent(one, TensorType((3, Dyn))) and not is_consistent(one, TensorType((1, 2, 3)))
    assert is_more_precise(one, some) and is_more_precise(some, none) and not is_more_precise(none, some)
    assert repr(TensorType[1, Dyn]) == "TensorType[(1, Dyn)]" and one == TensorType([1, 2])
