"""split_const_subgraphs: what depends on a module's own attributes alone is computed once."""

import cresset
from cresset import fx, nn
from cresset.fx.experimental.const_fold import get_unique_attr_name_in_module, split_const_subgraphs


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(cresset.tensor([1.0, 2.0]))
        self.register_buffer("b", cresset.tensor([3.0, 4.0]))

    def forward(self, x, y):
        return x * (self.a + self.b) - y.relu() * (self.a * 2) + self.b


X, Y = cresset.tensor([5.0, -6.0]), cresset.tensor([7.0, -8.0])


def test_the_constants_are_computed_once_and_the_result_stays():
    folded = split_const_subgraphs(Scaled())
    names = [node.target for node in folded.graph.nodes if node.op == "get_attr"]
    assert names == ["_FX_CONST_FOLDED_ATTRS", "b"] and not folded.has_folding_been_run
    assert folded(X, Y).equal(Scaled()(X, Y)) and folded.has_folding_been_run
    assert [value.tolist() for value in folded._FX_CONST_FOLDED_ATTRS] == [[4.0, 6.0], [2.0, 4.0]]
    folded.b.fill_(0)  # what is folded does not follow; what is read at each run does
    assert folded(X, Y).equal(X * cresset.tensor([4.0, 6.0]) - Y.relu() * cresset.tensor([2.0, 4.0]))


def test_a_module_without_constants_is_as_it_was():
    folded = split_const_subgraphs(nn.Sequential(nn.ReLU()))
    assert folded.const_subgraph_module is None and folded(Y).tolist() == [7.0, 0.0]


def test_nodes_that_are_to_be_left_stay_with_what_needs_them():
    folded = split_const_subgraphs(Scaled(), skip_folding_node_fn=lambda node: node.name == "add")
    assert sum(node.name.startswith("add") for node in folded.graph.nodes) == 2
    assert folded(X, Y).equal(Scaled()(X, Y))


def test_layers_of_constants_are_folded_those_with_effects_are_not():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.layer = nn.Parameter(cresset.ones(2)), nn.Linear(2, 2)

        def forward(self, x):
            return x + self.layer(self.a)

    model = Model()
    assert split_const_subgraphs(model)(X).allclose(model(X))
    assert split_const_subgraphs(model).const_subgraph_module is not None
    model.layer._is_impure = True
    assert split_const_subgraphs(model).const_subgraph_module is None


def test_a_name_that_is_free_in_a_module():
    module = fx.symbolic_trace(Scaled())
    module.c_1 = 0
    module.c = 0
    assert get_unique_attr_name_in_module(module, "c") == "c_2"
    assert get_unique_attr_name_in_module(module, "1 d") == "_1_d"


def test_random_numbers_are_drawn_at_each_run():
    graph = fx.Graph()
    x = graph.placeholder("x")
    scaled = graph.call_function(cresset.mul, (graph.call_function(cresset.rand, (2,)), 2))
    graph.output(graph.call_function(cresset.add, (x, scaled)))
    folded = split_const_subgraphs(fx.GraphModule({}, graph))
    assert folded.const_subgraph_module is None and not folded(X).equal(folded(X))
