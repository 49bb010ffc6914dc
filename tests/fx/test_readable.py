"""What print_readable says of a graph: values, places, notes, and the graphs inside."""

import pytest

import cresset
from cresset import fx, nn
from cresset.fx.experimental.proxy_tensor import make_fx


class Halves(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 2)

    def forward(self, x):
        a, b = self.l(x).split(1, 1)
        return a - b


@pytest.fixture
def traced():
    return make_fx(lambda x: (x.sin(), x.cos()))(cresset.ones(3))


def test_notes_that_are_asked_for_stand_above_the_calls(traced):
    first, second = (node for node in traced.graph.nodes if node.op == "call_function")
    first.meta["cost"], second.meta["cost"], second.meta["kind"] = 3, 5, "even"
    text = traced.print_readable(print_output=False, additional_meta=["kind", "cost", "absent"])
    comments = [line.strip() for line in text.splitlines() if line.strip().startswith("#")]
    assert [comment.partition(" #")[0] for comment in comments] == ["# cost: 3", "# kind: even, cost: 5"]


def test_annotations_are_told_and_long_ones_cut(traced):
    node = next(node for node in traced.graph.nodes if node.op == "call_function")
    node.meta["custom"] = {"stage": 1, "why": "w" * 50}
    text = traced.print_readable(print_output=False)
    assert "# Annotation: {'stage': 1, 'why': '" + "w" * 40 + "...'} " in text


def test_calls_of_one_line_have_one_comment(traced):
    text = traced.print_readable(print_output=False)
    assert text.count("# File: ") == 1
    assert f"# File: {__file__}:" in text and "code: return make_fx(lambda x: (x.sin(), x.cos()))" in text


def test_what_comes_from_nowhere_says_so():
    module = fx.symbolic_trace(lambda x: x + 1)
    assert module.print_readable(print_output=False) == (
        "class <lambda>(torch.nn.Module):\n    def forward(self, x):\n"
        "        # No stacktrace found for following nodes\n        add = x + 1;  x = None\n        return add\n"
    )


def test_graphs_inside_are_told_with_their_values(traced):
    graph = fx.Graph()
    graph.output(graph.call_module("inner", (graph.placeholder("x"),)))
    outer = fx.GraphModule({"inner": traced}, graph)
    text = outer.print_readable(print_output=False, expanded_def=True)
    assert "    def forward(\n        self,\n        x,\n    ):\n" in text
    assert '    class inner(torch.nn.Module):\n        def forward(self, x_1: "f32[3]"):\n' in text


def test_values_of_recorded_graphs_are_fake_tensors_where_the_real_ones_were():
    program = cresset.export.export(Halves(), (cresset.ones(5, 4).t().contiguous().t(),))
    known = {node.name: node.meta for node in program.graph.nodes}
    x, first = known["x"]["val"], known["getitem"]
    assert type(x).__name__ == "FakeTensor" and (x.device.type, x.stride()) == ("cpu", (1, 5))
    assert known["p_l_weight"]["val"].requires_grad and known["p_l_weight"]["tensor_meta"].requires_grad
    assert (first["tensor_meta"].stride, first["tensor_meta"].memory_format) == ((2, 1), None)
    assert [value.shape for value in known["split"]["val"]] == [(5, 1), (5, 1)]
    assert first["torch_fn"] == known["split"]["torch_fn"] == ("split_1", "builtin_function_or_method.split")


def test_places_are_stack_traces():
    program = cresset.export.export(Halves(), (cresset.ones(5, 4),))
    node = next(node for node in program.graph.nodes if node.name == "sub")
    file, code = node.meta["stack_trace"].split("\n")
    assert file.startswith(f'File "{__file__}", line ') and file.endswith(", in forward")
    assert code.strip() == "return a - b"


def test_decompositions_keep_where_nodes_come_from():
    program = cresset.export.export(Halves(), (cresset.ones(5, 4),))
    simpler = program.run_decompositions()
    before, after = ({node.name: node for node in p.graph.nodes} for p in (program, simpler))
    assert [node.name for node in simpler.graph.nodes if node.op == "placeholder"] == ["p_l_weight", "p_l_bias", "x"]
    for name in ("permute", "addmm"):
        for key in ("stack_trace", "nn_module_stack", "torch_fn"):
            assert after[name].meta[key] == before["linear"].meta[key]


def test_an_interpreter_runs_exported_programs_by_their_arguments():
    module = cresset.export.export(Halves(), (cresset.ones(5, 4),)).module()
    x = cresset.rand(5, 4)
    assert cresset.equal(fx.Interpreter(module).run(x), module(x))


def test_graphs_with_fake_tensors_come_back_from_bytes():
    from cresset.fx._graph_pickler import GraphPickler

    graph = cresset.export.export(Halves(), (cresset.ones(5, 4),)).graph
    mode = cresset._subclasses.FakeTensorMode()
    back = GraphPickler.loads(GraphPickler.dumps(graph), mode)
    values = [node.meta["val"] for node in back.nodes if node.name in ("p_l_weight", "getitem_1")]
    assert [(v.fake_mode is mode, tuple(v.shape), v.requires_grad) for v in values] == [
        (True, (2, 4), True), (True, (5, 1), False),
    ]  # fmt: skip
