"""Finding patterns in graphs, grouping their nodes, and making modules of the groups."""

import operator

import pytest

import cresset
from cresset import fx, nn
from cresset.fx import subgraph_rewriter
from cresset.fx.experimental.proxy_tensor import make_fx
from cresset.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from cresset.fx.passes.operator_support import OperatorSupport, OpSupports, any_chain, chain, create_op_support
from cresset.fx.passes.shape_prop import ShapeProp
from cresset.fx.passes.split_module import split_module, split_module_simple
from cresset.fx.passes.split_utils import split_by_tags
from cresset.fx.passes.tools_common import get_node_target, legalize_graph, stable_topological_sort
from cresset.fx.passes.utils import compare_graphs
from cresset.fx.passes.utils.fuser_utils import fuse_by_partitions, topo_sort, validate_partition
from cresset.fx.passes.utils.matcher_utils import SubgraphMatcher
from cresset.fx.passes.utils.matcher_with_name_node_map_utils import SubgraphMatcherWithNameNodeMap
from cresset.fx.passes.utils.source_matcher_utils import check_subgraphs_connected, get_source_partitions

X = cresset.tensor([[1.0, -2.0], [3.0, 4.0]])


def nodes_of(traced):
    return {node.name: node for node in traced.graph.nodes}


class TestMatcher:
    def matches(self, pattern, function, **options):
        matcher = SubgraphMatcher(fx.symbolic_trace(pattern).graph, **options)
        return matcher.match(fx.symbolic_trace(function).graph)

    def test_every_occurrence_is_found_with_its_inputs(self):
        found = self.matches(lambda x: cresset.relu(x) + 1, lambda x: (cresset.relu(x) + 1) * (cresset.relu(x * 2) + 1))
        ends = [(match.placeholder_nodes[0].name, match.returning_nodes[0].name) for match in found]
        assert ends == [("x", "add"), ("mul", "add_1")]

    def test_what_is_read_from_outside_is_no_occurrence(self):
        def outside(x):
            y = cresset.relu(x)
            return y + 1, y

        assert not self.matches(lambda x: cresset.relu(x) + 1, outside)

    def test_literals_count_unless_they_are_to_be_ignored(self):
        assert not self.matches(lambda x: x + 1, lambda x: x + 2)
        assert self.matches(lambda x: x + 1, lambda x: x + 2, ignore_literals=True)

    def test_one_input_stands_for_one_value(self):
        assert not self.matches(lambda x: x * x, lambda a, b: a * b)
        assert len(self.matches(lambda x, y: x * y, lambda a, b: a * b)) == 1

    def test_overlapping_occurrences_count_once_unless_asked_for(self):
        def four(x):
            return cresset.relu(cresset.relu(cresset.relu(x)))

        assert len(self.matches(lambda x: cresset.relu(cresset.relu(x)), four)) == 1
        both = self.matches(lambda x: cresset.relu(cresset.relu(x)), four, remove_overlapping_matches=False)
        assert len(both) == 2

    def test_several_ends_have_to_agree(self):
        def pattern(x):
            y = cresset.relu(x)
            return y + 1, y * 2

        def one(x):
            a, b = cresset.relu(x), cresset.relu(x + 5)
            return a + 1, b * 2, b + 1

        [match] = self.matches(pattern, one)
        assert [node.name for node in match.returning_nodes] == ["add_2", "mul"]

    def test_defaults_that_are_written_out_are_the_same_call(self):
        pattern = make_fx(lambda x: cresset.ops.aten.add.Tensor(x, x))(X)
        graph = make_fx(lambda x: cresset.ops.aten.add.Tensor(x, x, alpha=1))(X)
        assert SubgraphMatcher(pattern.graph).match(graph.graph)

    def test_nodes_by_name(self):
        def pattern(x):
            low = cresset.relu(x)
            return low + 1, {"low": low}

        graph = fx.symbolic_trace(lambda x: cresset.relu(x - 1) + 1).graph
        [match] = SubgraphMatcherWithNameNodeMap(fx.symbolic_trace(pattern)).match(graph)
        assert match.name_node_map["low"].name == "relu"
        exported = cresset.export.export(nn.ReLU(), (X,)).module()
        with pytest.raises(AssertionError, match="ends in a dict"):
            SubgraphMatcherWithNameNodeMap(exported)

    def test_an_empty_pattern_and_one_with_dead_code_are_refused(self):
        with pytest.raises(ValueError, match="empty pattern"):
            SubgraphMatcher(fx.Graph())
        dead = fx.Graph()
        x = dead.placeholder("x")
        dead.call_function(cresset.relu, (x,))
        dead.output(x)
        with pytest.raises(AssertionError, match="dead code"):
            SubgraphMatcher(dead)

    def test_graphs_are_compared_whatever_names_they_have(self):
        a, b, c = (fx.symbolic_trace(f).graph for f in (lambda x: x + 1, lambda y: y + 1, lambda y: y - 1))
        assert compare_graphs(a, b) and not compare_graphs(a, c)


class TestPartitioner:
    def groups(self, function, **options):
        able = create_op_support(lambda modules, node: node.op == "call_function" and node.target is operator.add)
        partitioner = CapabilityBasedPartitioner(fx.symbolic_trace(function), able, **options)
        return sorted(sorted(node.name for node in group.nodes) for group in partitioner.propose_partitions())

    def test_nodes_are_joined_unless_that_makes_a_circle(self):
        def split(a, b):
            low = a + b
            return (low + low.relu()) + low

        assert self.groups(split, allows_single_node_partition=True) == [["add"], ["add_1", "add_2"]]

    def test_groups_of_one_node_count_if_asked_for(self):
        def two(a):
            return ((a + 1).relu() + 2).relu()

        assert self.groups(two) == []
        assert self.groups(two, allows_single_node_partition=True) == [["add"], ["add_1"]]

    def test_branches_are_joined_unless_only_readers_may_be(self):
        def branches(a, b):
            return (a + 1) + 2, (b + 3) + 4

        assert self.groups(branches) == [["add", "add_1", "add_2", "add_3"]]
        assert self.groups(branches, skip_horizontal_fusion=True) == [["add", "add_1"], ["add_2", "add_3"]]

    def test_parts_of_a_tuple_go_with_the_tuple(self):
        able = create_op_support(lambda modules, node: node.op == "call_function" and node.target is not cresset.relu)
        traced = make_fx(lambda x: cresset.relu(x.max(0)[0]))(X)
        names = {"max_1", "getitem", "max"}
        groups = CapabilityBasedPartitioner(traced, able, allows_single_node_partition=True).propose_partitions()
        assert all(len(names & {node.name for node in group.nodes}) != 1 for group in groups)

    def test_the_fused_module_computes_the_same(self):
        def split(a, b):
            low = a + b
            return (low + low.relu()) + low

        able = create_op_support(lambda modules, node: node.op == "call_function")
        fused = CapabilityBasedPartitioner(fx.symbolic_trace(split), able, True).partition_and_fuse("part_")
        assert [node.target for node in fused.graph.nodes if node.op == "call_module"] == ["part_1", "part_0"]
        assert fused(X, 2 * X).equal(split(X, 2 * X))

    def test_nodes_without_work_at_the_edges_can_be_let_go(self):
        able = create_op_support(lambda modules, node: node.op == "call_function")
        traced = fx.symbolic_trace(lambda x: operator.add(operator.neg(x), 1))
        partitioner = CapabilityBasedPartitioner(traced, able, True, non_compute_ops=["_operator.neg"])
        groups = partitioner.propose_partitions()
        partitioner.remove_bookend_non_compute_ops(groups)
        assert [[node.name for node in group.nodes] for group in groups] == [["add"]]


class TestOperatorSupport:
    def test_the_table_says_what_is_called_and_with_which_dtypes(self):
        traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
        ShapeProp(traced).propagate(X)
        modules = dict(traced.named_modules())
        linear, relu = (node for node in traced.graph.nodes if node.op == "call_module")
        assert get_node_target(modules, linear) == "torch.nn.modules.linear.Linear"
        floats = (([cresset.float32],), {})
        rule = OperatorSupport({"torch.nn.modules.linear.Linear": floats})
        assert rule.is_node_supported(modules, linear) and not rule.is_node_supported(modules, relu)
        halves = OperatorSupport({"torch.nn.modules.linear.Linear": (([cresset.float16],), {})})
        assert not halves.is_node_supported(modules, linear)
        assert any_chain(halves, rule).is_node_supported(modules, linear)
        assert not chain(halves, rule).is_node_supported(modules, linear)
        assert not OpSupports.decline_if_input_dtype(cresset.float32).is_node_supported(modules, linear)
        assert not OpSupports.decline_if_node_in_names({linear.name}).is_node_supported(modules, linear)


class TestGroups:
    def test_a_way_out_and_back_is_no_group(self):
        nodes = nodes_of(fx.symbolic_trace(lambda x: cresset.relu(x + 1) * (x + 1)))
        assert validate_partition([nodes["add"], nodes["relu"]])
        assert not validate_partition([nodes["add"], nodes["mul"]])
        assert topo_sort([nodes["mul"], nodes["relu"], nodes["add"]]) == [nodes["add"], nodes["relu"], nodes["mul"]]

    def test_a_group_becomes_a_module_that_is_called(self):
        model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
        traced = fx.symbolic_trace(model)
        nodes = [node for node in traced.graph.nodes if node.op == "call_module"]
        fused = fuse_by_partitions(traced, [dict.fromkeys(nodes[:2])])
        assert [node.target for node in fused.graph.nodes] == ["input", "fused_0", "2", "output"]
        assert fused(X).equal(model(X)) and fused.fused_0.get_submodule("0") is model[0]

    def test_nodes_in_disorder_are_brought_into_order(self):
        traced = fx.symbolic_trace(lambda x: cresset.relu(x + 1) * 2)
        for sort in (legalize_graph, stable_topological_sort):
            nodes = nodes_of(traced)
            nodes["mul"].append(nodes["add"])
            with pytest.raises(RuntimeError, match="before it has been defined"):
                traced.graph.lint()
            sort(traced).graph.lint()
            assert [node.name for node in traced.graph.nodes] == ["x", "add", "relu", "mul", "output"]


class TestSplitting:
    def test_by_tags(self):
        model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
        traced = fx.symbolic_trace(model)
        for node in traced.graph.nodes:
            node.tag = "head" if node.target == "2" else "body"
        split, places = split_by_tags(traced, ["body", "head"], return_fqn_mapping=True)
        assert split(X).equal(model(X)) and places == {"0": "body.0", "1": "body.1", "2": "head.2"}
        assert [name for name, _ in split.named_parameters()][1:3] == ["body.0.bias", "head.2.weight"]
        with pytest.raises(AssertionError, match="order must be"):
            split_by_tags(traced, ["head", "body"])

    def test_an_exported_program_keeps_its_arguments_when_it_is_split(self):
        class Model(nn.Module):
            def forward(self, x, *, pair):
                return {"sum": x + pair[0], "product": x * pair[1]}

        exported = cresset.export.export(Model(), (X,), {"pair": (X, X)}).module()
        for node in exported.graph.nodes:
            node.tag = "all"
        split = split_by_tags(exported, ["all"])
        assert split(X, pair=(X, X))["product"].equal(X * X)

    def test_by_a_table_of_nodes(self):
        traced = fx.symbolic_trace(lambda x: (x.relu() + 1, x - 2))
        nodes = nodes_of(traced)
        split = split_module_simple(traced, {nodes["relu"]: 0, nodes["add"]: 1, nodes["sub"]: 1}, partition_affix="p")
        assert [name for name, _ in split.named_children()] == ["submod_p_0", "submod_p_1"]
        assert [value.tolist() for value in split(X)] == [value.tolist() for value in traced(X)]

    def test_parts_that_give_one_value_give_a_tuple_if_asked_for(self):
        traced = fx.symbolic_trace(lambda x: x.relu() + 1)
        split = split_module(traced, None, lambda node: 0, tuple_return=True)
        assert isinstance(split.submod_0(X), tuple) and split(X).equal(X.relu() + 1)
        assert split.meta["partition_names"] == {"submod_0"}


def test_nodes_by_the_layer_they_came_from():
    exported = cresset.export.export(nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)), (X,))
    found = get_source_partitions(exported.graph, [nn.Linear, nn.ReLU])
    assert {kind.__name__: len(parts) for kind, parts in found.items()} == {"Linear": 2, "ReLU": 1}
    [relu], [first, last] = found[nn.ReLU], found[nn.Linear]
    assert check_subgraphs_connected(first, relu) and not check_subgraphs_connected(last, relu)
    assert [node.name for node in relu.input_nodes] == [node.name for node in first.output_nodes]
    none = get_source_partitions(exported.graph, [nn.Linear], filter_fn=lambda node: False)
    assert none == {nn.Linear: []}


def relu(x):
    return cresset.relu(x)


def neg(x):
    return cresset.neg(x)


def abs_(x):
    return cresset.abs(x)


class TestReplacing:
    def test_matches_and_filters_are_those_of_the_matcher(self):
        traced, seen = fx.symbolic_trace(lambda x: cresset.relu(x + 1) + cresset.relu(x)), []

        def first_alone(match, graph, pattern):
            seen.append(match.returning_nodes)
            return len(seen) == 1

        found = subgraph_rewriter.replace_pattern_with_filters(traced, relu, neg, [first_alone])
        assert len(found) == 1 and len(seen) == 2 and traced(X).equal(-(X + 1) + X.relu())

    def test_a_pattern_beside_itself_is_replaced_each_time(self):
        traced = fx.symbolic_trace(lambda x: cresset.relu(cresset.relu(x)))
        assert len(fx.replace_pattern(traced, relu, neg)) == 2 and traced(X).equal(X)

    def test_a_node_can_be_found_by_its_name(self):
        traced = fx.symbolic_trace(lambda x: cresset.relu(x + 1))
        replace = subgraph_rewriter.replace_pattern_with_filters
        assert len(replace(traced, neg, abs_, node_name_match="relu")) == 1
        assert traced(X).equal((X + 1).abs())

    def test_modules_that_are_no_longer_called_go(self):
        class Other(nn.Module):
            def __init__(self):
                super().__init__()
                self.tanh = nn.Tanh()

            def forward(self, x):
                return self.tanh(x)

        class Sigmoid(nn.Module):
            def __init__(self):
                super().__init__()
                self.sigmoid = nn.Sigmoid()

            def forward(self, x):
                return self.sigmoid(x)

        traced = fx.symbolic_trace(Sigmoid())
        fx.replace_pattern(traced, Sigmoid(), Other())
        assert [name for name, _ in traced.named_children()] == ["tanh"] and traced(X).equal(X.tanh())

    def test_what_does_not_fit_is_refused(self):
        traced = fx.symbolic_trace(relu)
        with pytest.raises(AssertionError, match="1 inputs, the replacement 2"):
            fx.replace_pattern(traced, relu, lambda x, y: x)
        with pytest.raises(AssertionError, match="1 values, the replacement 2"):
            fx.replace_pattern(traced, relu, lambda x: (x, x))
        with pytest.raises(AssertionError, match="replacement callback"):
            subgraph_rewriter.replace_pattern_with_filters(traced, relu)

    def test_a_default_that_stands_for_a_list_is_the_list(self):
        pool = cresset.ops.aten.max_pool2d_with_indices.default
        assert [argument.default_value for argument in pool._schema.arguments[3:5]] == [[0, 0], [1, 1]]
        traced = fx.symbolic_trace(lambda x: pool(x, [2, 2], stride=[2, 2]))
        assert fx.replace_pattern(traced, lambda x, k, s: pool(x, k, s, padding=[0, 0]), lambda x, k, s: x)
