"""Graphs: making, editing, printing, and what lint refuses."""

import pytest

from cresset.graph import BoolType, Graph, IntType, TensorType


@pytest.fixture
def graph():
    """x -> x + 1, the constant first."""
    graph = Graph()
    x = graph.addInput("x", TensorType())
    one = graph.insertConstant(1, IntType())
    graph.registerOutput(graph.insert("aten::add", [x, one, one]).output())
    return graph


def test_a_graph_prints_as_torchscript_does(graph):
    assert str(graph) == (
        "graph(%x : Tensor):\n  %1 : int = prim::Constant[value=1]()\n  %2 : Tensor = aten::add(%x, %1, %1)\n  return "
        "(%2)\n"
    )


def test_a_value_knows_each_place_that_uses_it(graph):
    one = graph.findNode("prim::Constant").output()
    assert [use.offset for use in one.uses()] == [1, 2]
    graph.addInput("n", IntType())
    one.replaceAllUsesWith(graph.inputs()[1])
    assert not one.hasUses() and [v.debugName() for v in graph.findNode("aten::add").inputs()] == ["x", "n", "n"]


def test_a_name_that_is_taken_gets_a_number(graph):
    assert [graph.addInput("x", TensorType()).debugName() for _ in range(2)] == ["x.1", "x.2"]


def test_a_copy_is_the_same_text_and_other_nodes(graph):
    other = graph.copy()
    assert str(other) == str(graph)
    other.findNode("aten::add").attributes["note"] = "mine"
    assert str(other) != str(graph)


def test_what_is_used_cannot_be_destroyed(graph):
    with pytest.raises(RuntimeError, match="%1 is still used"):
        graph.findNode("prim::Constant").destroy()


def test_dead_code_goes_and_writes_stay(graph):
    x = graph.inputs()[0]
    graph.insert("aten::exp", [x])
    graph.insert("aten::relu_", [x])
    graph.eliminate_dead_code()
    assert [node.kind() for node in graph.nodes()] == ["prim::Constant", "aten::add", "aten::relu_"]


class TestLint:
    def test_a_good_graph_passes(self, graph):
        graph.lint()

    def test_use_before_making_is_refused(self, graph):
        add = graph.findNode("aten::add")
        add.moveBefore(graph.findNode("prim::Constant"))
        with pytest.raises(RuntimeError, match="%1 is used before it is made"):
            graph.lint()

    def test_a_value_of_an_inner_block_is_not_seen_outside(self, graph):
        condition = graph.insertConstant(True, BoolType())
        branch = graph.insert("prim::If", [condition], 0)
        for _ in range(2):
            graph.setInsertPoint(branch.addBlock())
            inner = graph.insert("aten::exp", [graph.inputs()[0]]).output()
        graph.lint()
        graph.registerOutput(inner)
        with pytest.raises(RuntimeError, match="cannot see"):
            graph.lint()

    def test_an_if_needs_a_bool(self, graph):
        branch = graph.insert("prim::If", [graph.inputs()[0]], 0)
        branch.addBlock()
        branch.addBlock()
        with pytest.raises(RuntimeError, match="takes one bool"):
            graph.lint()

    def test_a_loop_carries_a_value_of_one_type(self, graph):
        count = graph.insertConstant(3, IntType())
        loop = graph.insert("prim::Loop", [count, graph.insertConstant(True, BoolType()), count], [IntType()])
        block = loop.addBlock()
        block.addInputToBlock(IntType(), "i")
        block.addInputToBlock(IntType(), "carried")
        graph.setInsertPoint(block)
        block.registerOutput(graph.insertConstant(True, BoolType()))
        block.registerOutput(graph.inputs()[0])
        with pytest.raises(RuntimeError, match="of type Tensor cannot become"):
            graph.lint()
