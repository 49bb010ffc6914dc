"""Graphs: adding, changing, checking and running nodes."""

import operator

import pytest

import cresset
import cresset.nn.functional as F
from cresset import fx, nn
from cresset.fx.passes.shape_prop import ShapeProp
from cresset.fx.passes.split_module import split_module


@pytest.fixture
def graph():
    g = fx.Graph()
    x = g.placeholder("x")
    g.output(g.call_method("relu", (g.call_function(cresset.add, (x, 1)),)))
    return g


def node(graph, name):
    return next(node for node in graph.nodes if node.name == name)


def run(graph, *args):
    return fx.GraphModule(nn.Module(), graph)(*args)


def test_a_graph_made_by_hand_runs(graph):
    assert run(graph, cresset.tensor([-3.0, 1.0])).tolist() == [0.0, 2.0]


def test_nodes_know_their_inputs_and_users(graph):
    add, relu = node(graph, "add"), node(graph, "relu")
    assert add.all_input_nodes == [node(graph, "x")] and list(add.users) == [relu]
    assert add.next is relu and relu.prev is add and add < relu and not relu < add
    relu.args = (node(graph, "x"),)
    assert not add.users and list(node(graph, "x").users) == [add, relu]


def test_nodes_go_where_they_are_inserted(graph):
    add = node(graph, "add")
    with graph.inserting_after(add):
        double = graph.call_function(cresset.mul, (add, 2))
    add.replace_all_uses_with(double, delete_user_cb=lambda user: user is not double)
    with graph.inserting_before():
        graph.call_function(cresset.manual_seed, (0,))
    graph.lint()
    assert [n.name for n in graph.nodes] == ["manual_seed", "x", "add", "mul", "relu", "output"] and len(
        graph.nodes
    ) == 6
    assert run(graph, cresset.tensor([1.0])).item() == 4


def test_inserting_several_after_one_node_reverses_nothing_else(graph):
    first, second = graph.find_nodes(op="call_function", target=cresset.add)[0], None
    with graph.inserting_after(first):
        second = graph.call_function(operator.neg, (first,))
    assert first.next is second and graph.output_node().prev.name == "relu"


def test_names_are_made_unique(graph):
    with graph.inserting_before(graph.output_node()):
        names = [graph.call_function(cresset.add, (node(graph, "x"), 1)).name for _ in range(2)]
        names += [
            graph.call_function(cresset.sum, (node(graph, "x"),)).name,
            graph.create_node("call_function", cresset.add, name="1 odd-name").name,
        ]
    assert names == ["add_1", "add_2", "sum_1", "_1_odd_name"]


def test_a_node_in_use_is_not_erased(graph):
    with pytest.raises(RuntimeError, match="still had 1 users"):
        graph.erase_node(node(graph, "add"))


def test_dead_code_goes_and_effects_stay(graph):
    x = node(graph, "x")
    with graph.inserting_before(graph.output_node()):
        graph.call_function(cresset.sin, (graph.call_function(cresset.cos, (x,)),))
        graph.call_method("add_", (x, 1))
        graph.call_function(cresset._assert, (True, "message"))
    assert graph.eliminate_dead_code() and not graph.eliminate_dead_code()
    assert [n.name for n in graph.nodes] == ["x", "add", "relu", "add_", "_assert", "output"]


def test_arguments_cannot_be_changed_behind_the_graphs_back():
    g = fx.Graph()
    cat = g.call_function(cresset.cat, ([g.placeholder("x")],), {"dim": 0})
    with pytest.raises(TypeError, match="does not support mutation"):
        cat.args[0].append(1)
    with pytest.raises(TypeError, match="does not support mutation"):
        cat.kwargs["dim"] = 1
    cat.update_kwarg("dim", 1)
    assert cat.kwargs == {"dim": 1}


def nonsense():
    used_before = fx.Graph()
    x = used_before.placeholder("x")
    neg = used_before.call_function(operator.neg, (x,))
    used_before.output(neg)
    neg.append(x)
    twice = fx.Graph()
    a = twice.placeholder("a")
    twice.placeholder("b").name = "a"
    twice.output(a)
    return {"used before": used_before, "redefined name": twice}


@pytest.mark.parametrize("text, graph", nonsense().items(), ids=str)
def test_lint_finds_nonsense(text, graph):
    with pytest.raises(RuntimeError, match=text):
        graph.lint()


def test_lint_finds_targets_that_are_not_there():
    module = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2)))
    node(module.graph, "_0").target = "1"
    with pytest.raises(RuntimeError, match="nonexistent attribute 1"):
        module.graph.lint()


def test_nodes_of_another_graph_are_refused(graph):
    other = fx.Graph()
    with pytest.raises(RuntimeError, match="does not belong to this Graph"):
        other.call_function(operator.neg, (node(graph, "x"),))


def test_code_transformers_see_every_line(graph):
    with graph.on_generate_code(lambda before: lambda body: ["print_count = 1\n", *body]):
        assert "    print_count = 1\n" in graph.python_code("self").src
    assert "print_count" not in graph.python_code("self").src


def test_an_interpreter_frees_values_after_their_last_use():
    alive = []

    class Watch(fx.Interpreter):
        def run_node(self, n):
            alive.append(len(self.env))
            return super().run_node(n)

    module = fx.symbolic_trace(lambda x: (((x + 1) * 2) - 3) / 4)
    assert Watch(module).run(cresset.ones(1)).item() == 0.25 and max(alive) == 1
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x"):
        fx.Interpreter(module).run()


def test_a_transformer_makes_a_new_module():
    class Swap(fx.Transformer):
        def call_function(self, target, args, kwargs):
            return (
                super().call_function(cresset.sigmoid, args, {})
                if target is F.relu
                else super().call_function(target, args, kwargs)
            )

    old = fx.symbolic_trace(lambda x: F.relu(x) + 1)
    new = Swap(old).transform()
    assert new(cresset.zeros(1)).item() == 1.5 and old(cresset.zeros(1)).item() == 1


def test_patterns_are_replaced_wherever_they_are():
    module = fx.symbolic_trace(lambda x, y: cresset.add(cresset.add(x, y).relu(), x).relu())
    matches = fx.replace_pattern(module, lambda a, b: cresset.add(a, b).relu(), lambda a, b: cresset.mul(a, b))
    assert len(matches) == 2 and module(cresset.full((1,), 3.0), cresset.full((1,), 2.0)).item() == 18
    # What is used elsewhere, too, must stay.
    module = fx.symbolic_trace(lambda x: cresset.neg(x).relu() + cresset.neg(x))
    assert fx.replace_pattern(module, lambda a: cresset.neg(a).relu(), lambda a: a)
    module = fx.symbolic_trace(lambda x: (lambda n: n.relu() + n)(cresset.neg(x)))
    assert not fx.replace_pattern(module, lambda a: cresset.neg(a).relu(), lambda a: a)


def test_a_pattern_of_several_results_is_found_by_the_last_of_them():
    def pattern(a, b):
        product = cresset.mul(a, b)
        return product, cresset.sub(product, a)

    def two_ends(a):
        return cresset.sin(a), cresset.cos(a)

    module = fx.symbolic_trace(lambda x, y: cresset.sub(cresset.mul(x, y), x) + y)
    assert len(fx.replace_pattern(module, pattern, lambda a, b: (a, cresset.add(a, b)))) == 1
    assert module(cresset.full((1,), 3.0), cresset.full((1,), 2.0)).item() == 7
    module = fx.symbolic_trace(lambda x: cresset.cos(x) * cresset.sin(x))
    assert len(fx.replace_pattern(module, two_ends, lambda a: (a, a + 1))) == 1
    assert module(cresset.full((1,), 3.0)).item() == 12


def test_dead_calls_stay_where_they_write_to_an_argument_or_draw():
    aten, graph = cresset.ops.aten, fx.Graph()
    x = graph.placeholder("x")
    targets = [aten.add.Tensor, aten.bernoulli.default, aten.add_.Tensor]
    calls = [graph.call_function(target, (x, 1)[: 1 if target is targets[1] else 2]) for target in targets]
    graph.output(x)
    assert [node.is_impure() for node in calls] == [False, True, True]
    assert not calls[1].is_impure(impure_random=False)
    graph.eliminate_dead_code()
    assert [node.target for node in graph.nodes if node.op == "call_function"] == targets[1:]


def test_shapes_are_noted():
    module = fx.symbolic_trace(nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten()))
    ShapeProp(module).propagate(cresset.zeros(2, 3, 5, 5))
    assert [tuple(n.meta["tensor_meta"].shape) for n in module.graph.nodes] == [
        (2, 3, 5, 5),
        (2, 8, 3, 3),
        (2, 72),
        (2, 72),
    ]


def test_a_split_module_computes_the_same():
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.Tanh())
    traced, names = fx.symbolic_trace(net), {}
    split = split_module(traced, net, lambda n: int(n.target) // 2, names)
    x = cresset.randn(3, 4)
    assert cresset.equal(split(x), net(x)) and [name for name, _ in split.named_children()] == ["submod_0", "submod_1"]
    assert names["submod_1.3"] == "3"


def test_parts_that_need_each_other_are_refused():
    traced = fx.symbolic_trace(lambda x: cresset.sin(cresset.cos(cresset.sin(x))))
    with pytest.raises(RuntimeError, match="cycle"):
        split_module(traced, traced, lambda n: n.target is cresset.cos)


def test_submodules_come_and_go():
    module = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2)))
    assert module.add_submodule("extra.inner", nn.ReLU()) and isinstance(module.extra.inner, nn.ReLU)
    module.delete_all_unused_submodules()
    assert not hasattr(module, "extra") and hasattr(module, "0")
    assert module.delete_submodule("0") and not module.delete_submodule("0")


def test_convolution_and_norm_are_fused_by_a_pass():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).eval()
    net[1].running_mean.uniform_()
    module, x = fx.symbolic_trace(net), cresset.randn(1, 3, 6, 6)
    expected = net(x)
    for n in list(module.graph.nodes):
        if n.op == "call_module" and isinstance(module.get_submodule(n.target), nn.BatchNorm2d):
            source = n.args[0]
            setattr(
                module,
                source.target,
                nn.utils.fusion.fuse_conv_bn_eval(module.get_submodule(source.target), module.get_submodule(n.target)),
            )
            n.replace_all_uses_with(source)
            module.graph.erase_node(n)
    module.delete_all_unused_submodules()
    module.recompile()
    assert cresset.allclose(module(x), expected, atol=1e-5) and len(list(module.children())) == 1


@pytest.mark.parametrize("name", ["a\n    print('run')\n    b", "a b", "import", ""])
def test_a_name_that_is_none_does_not_become_source(name):
    graph = fx.Graph()
    node = graph.placeholder("x")
    graph.output(node)
    node.name = name
    with pytest.raises(RuntimeError, match="is no name of Python's"):
        graph.python_code("self")


def test_a_keyword_argument_that_is_no_name_does_not_become_source():
    graph = fx.Graph()
    node = graph.call_function(cresset.add, (1, 2), {"alpha=print('run'), other": 1})
    graph.output(node)
    with pytest.raises(RuntimeError, match="is no name of Python's"):
        graph.python_code("self")


def test_marked_regions_are_compiled_and_the_rest_is_not():
    from cresset.fx.passes.regional_inductor import regional_inductor

    def f(x):
        y = x * 2
        z = (y + 1).relu()
        return z - x

    module = fx.symbolic_trace(f)
    assert regional_inductor(module) is module  # nothing is marked
    for node in module.graph.nodes:
        if node.op in ("call_function", "call_method") and node.name in ("add", "relu"):
            node.meta["custom"] = {"compile_with_inductor": "region"}
    x = cresset.tensor([-3.0, 2.0])
    made = regional_inductor(module, x)
    compiled = [name for name, child in made.named_children() if isinstance(child, cresset._dynamo.OptimizedModule)]
    assert len(list(made.children())) == 3 and len(compiled) == 1
    assert cresset.equal(made(x), f(x)) and made(x).tolist() == [3.0, 3.0]


def test_a_pass_as_an_object_checks_before_and_after():
    from cresset.fx.passes.infra.pass_base import PassBase, PassResult

    told = []

    class Rename(PassBase):
        def requires(self, graph_module):
            told.append("before")

        def call(self, graph_module):
            told.append("change")
            return PassResult(graph_module, True)

        def ensures(self, graph_module):
            told.append("after")

    module = cresset.fx.symbolic_trace(cresset.nn.ReLU())
    assert Rename()(module) == (module, True) and told == ["before", "change", "after"]


def test_writes_by_index_and_draws_of_random_numbers_are_no_dead_code():
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(operator.setitem, (x, 0, 5.0))
    graph.call_function(cresset.rand, (2,))
    graph.call_function(cresset.relu, (x,))
    graph.output(x)
    module = fx.GraphModule({}, graph)
    assert graph.eliminate_dead_code()
    module.recompile()
    assert [node.name for node in graph.nodes] == ["x", "setitem", "rand", "output"]
    assert module(cresset.zeros(2)).tolist() == [5.0, 0.0]


def test_a_generator_is_an_argument_of_the_code():
    graph, generator = fx.Graph(), cresset.Generator().manual_seed(3)
    graph.output(graph.call_function(cresset.rand, (2,), {"generator": generator}))
    module = fx.GraphModule({}, graph)
    assert "generator = _generator" in module.code
    assert module().equal(cresset.rand(2, generator=cresset.Generator().manual_seed(3)))


def test_columns_of_a_table_are_two_wider_than_their_titles(capsys):
    graph = fx.Graph()
    graph.output(graph.call_module("relu", (graph.placeholder("x"),)))
    graph.print_tabular()
    assert capsys.readouterr().out == (
        "opcode       name    target    args     kwargs\n"
        "-----------  ------  --------  -------  --------\n"
        "placeholder  x       x         ()       {}\n"
        "call_module  relu    relu      (x,)     {}\n"
        "output       output  output    (relu,)  {}\n"
    )
