"""symbolic_trace: what a program does to proxies becomes a graph that computes the same."""

import copy
import math
import pickle
import typing

import pytest

import cresset
import cresset.nn.functional as F
from cresset import fx, nn


@fx.wrap
def twice_if_long(x):
    return x * 2 if len(x) > 2 else x


fx.wrap("len")


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.inner, self.drop = nn.LayerNorm(width), nn.Linear(width, width), nn.Dropout(0.5)
        self.gain = nn.Parameter(cresset.full((width,), 0.5))
        self.register_buffer("shift", cresset.ones(width))

    def forward(self, x):
        return x + self.gain * self.drop(F.gelu(self.inner(self.norm(x)))) + self.shift


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(4), Block(4)])
        self.head = nn.Sequential(nn.Linear(4, 3), nn.ReLU())

    def forward(self, x, scale=2.0):
        for block in self.blocks:
            x = block(x)
        return {"out": self.head(x) * scale, "sizes": (x.shape[0], x.size(-1))}


def targets(module):
    return [node.target if isinstance(node.target, str) else node.target.__name__ for node in module.graph.nodes]


def test_a_traced_module_computes_the_same_with_gradients():
    net, x = Net().eval(), cresset.randn(5, 4, requires_grad=True)
    traced = fx.symbolic_trace(net)
    expected, found = net(x), traced(x)
    assert cresset.equal(found["out"], expected["out"]) and found["sizes"] == expected["sizes"]
    (a,) = cresset.autograd.grad(expected["out"].sum(), x)
    (b,) = cresset.autograd.grad(found["out"].sum(), x)
    assert cresset.equal(a, b)
    assert cresset.equal(traced(x, scale=1.0)["out"] * 2, expected["out"])
    assert {*traced.state_dict()} == {*net.state_dict()}


def test_parameters_are_shared_not_copied():
    net = Net()
    traced = fx.symbolic_trace(net)
    assert traced.get_parameter("blocks.0.gain") is net.blocks[0].gain
    assert dict(traced.named_buffers())["blocks.1.shift"] is net.blocks[1].shift


def test_layers_are_leaves_and_containers_are_entered():
    calls = [node.target for node in fx.symbolic_trace(Net()).graph.nodes if node.op == "call_module"]
    assert calls[-2:] == ["head.0", "head.1"] and calls[0] == "blocks.0.norm" and "blocks.0" not in calls


def test_a_tracer_decides_what_is_a_leaf():
    class Whole(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return isinstance(m, Block) or super().is_leaf_module(m, module_qualified_name)

    graph = Whole().trace(Net())
    assert [node.target for node in graph.nodes if node.op == "call_module"][:2] == ["blocks.0", "blocks.1"]


@pytest.mark.parametrize(
    "program, error, text",
    [
        (lambda x: x if x.sum() > 0 else -x, fx.TraceError, "control flow"),
        (lambda x: list(x), fx.TraceError, "cannot be iterated"),
        (lambda x: x.sum() and x, fx.TraceError, "control flow"),
        (lambda x: int(x), TypeError, "Proxy"),
        (lambda x: range(x.shape[0]), TypeError, "Attribute|Proxy"),
    ],
    ids=["branch", "loop", "and", "number", "range"],
)
def test_what_needs_a_value_is_refused(program, error, text):
    with pytest.raises(error, match=text):
        fx.symbolic_trace(program)


def test_an_error_while_tracing_leaves_modules_as_they_were():
    class Fails(nn.Module):
        def forward(self, x):
            raise KeyError("inside")

    before = nn.Module.__call__, nn.Module.__getattr__, F.relu, math.sqrt
    with pytest.raises(KeyError):
        fx.symbolic_trace(Fails())
    assert (nn.Module.__call__, nn.Module.__getattr__, F.relu, math.sqrt) == before
    assert not fx._symbolic_trace.is_fx_tracing()
    assert nn.Linear(2, 3)(cresset.ones(2)).shape == (3,)


def test_unpacking_is_recorded():
    def halves(x):
        a, b = x.chunk(2)
        return b, a

    a, b = fx.symbolic_trace(halves)(cresset.arange(4))
    assert (a.tolist(), b.tolist()) == ([2, 3], [0, 1])


def test_wrapped_functions_are_called_when_the_graph_runs():
    traced = fx.symbolic_trace(lambda x: twice_if_long(x) + len(x) + math.floor(x.shape[0] / 2))
    assert traced(cresset.ones(4)).tolist() == [8.0] * 4
    assert traced(cresset.ones(2)).tolist() == [4.0] * 2
    assert targets(traced).count("floor") == 1


def test_sizes_go_into_operators_that_make_tensors():
    traced = fx.symbolic_trace(
        lambda x: cresset.arange(x.shape[0]) + cresset.zeros(x.shape[0]) + cresset.full((x.shape[0],), 2)
    )
    assert traced(cresset.ones(3)).tolist() == [2.0, 3.0, 4.0]


def test_concrete_arguments_decide_branches_and_are_checked():
    def branch(x, double, other=None):
        return x * 2 if double and other is None else x

    traced = fx.symbolic_trace(branch, concrete_args={"double": True, "other": None})
    assert traced(cresset.ones(1), True).item() == 2
    with pytest.raises(AssertionError, match="double has been specialized"):
        traced(cresset.ones(1), False)
    with pytest.raises(AssertionError, match="other has been specialized"):
        traced(cresset.ones(1), True, 1)


def test_trees_of_inputs_and_outputs():
    traced = fx.symbolic_trace(lambda d: {"sum": d["a"] + d["b"][0]}, concrete_args={"d": {"a": fx.PH, "b": [fx.PH]}})
    assert traced({"a": cresset.ones(1), "b": [cresset.ones(1)]})["sum"].item() == 2
    with pytest.raises(ValueError, match="structure"):
        traced({"a": cresset.ones(1), "b": [cresset.ones(1), cresset.ones(1)]})


def test_stars_and_defaults():
    def starred(x, y=3, *rest, key=1, **others):
        return x + y + key, rest, others

    traced = fx.symbolic_trace(starred)
    out, rest, others = traced(cresset.ones(1), 4, 5, 6, 7, more=8)
    assert out.item() == 1 + 4 + 5 and rest == (6, 7) and others == {"more": 8}


def test_constants_become_attributes_once():
    constant = cresset.arange(3)
    traced = fx.symbolic_trace(lambda x: x * constant + constant)
    assert [node.target for node in traced.graph.nodes if node.op == "get_attr"] == ["_tensor_constant0"] * 2
    assert traced(cresset.ones(3)).tolist() == [0.0, 2.0, 4.0]


@pytest.mark.parametrize("how", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["deepcopy", "pickle"])
def test_a_copy_is_a_module_of_its_own(how):
    traced, x = fx.symbolic_trace(Net().eval()), cresset.randn(2, 4)
    other = how(traced)
    assert (type(traced).__name__, type(other).__name__) == ("Net", "GraphModule")
    assert cresset.equal(other(x)["out"], traced(x)["out"]) and other.code == traced.code
    with cresset.no_grad():
        other.get_parameter("head.0.bias").fill_(50)
    assert not cresset.equal(other(x)["out"], traced(x)["out"])
    other.graph.erase_node(other.graph.output_node())
    other.graph.output(None)
    other.recompile()
    assert other(x) is None and traced(x) is not None


def test_an_error_in_a_graph_names_its_line():
    traced = fx.symbolic_trace(lambda x, y: cresset.relu(x) + y)
    with pytest.raises(RuntimeError) as caught:
        traced(cresset.ones(2), cresset.ones(3))
    assert any("add = relu + y" in note for note in caught.value.__notes__)


def test_stack_traces_and_module_stacks_are_kept():
    class Recording(fx.Tracer):
        record_stack_traces = True

    graph = Recording().trace(Net())
    gelu = next(node for node in graph.nodes if "gelu" in node.name)
    assert "self.drop(F.gelu" in gelu.stack_trace
    assert list(gelu.meta["nn_module_stack"].values())[-1] == ("blocks.0", Block)


def test_a_folder_can_be_imported(tmp_path):
    traced, x = fx.symbolic_trace(nn.Sequential(nn.Linear(3, 2), nn.Tanh())), cresset.randn(1, 3)
    traced.to_folder(tmp_path / "net", "Net")
    text = (tmp_path / "net" / "module.py").read_text()
    assert "class Net(torch.nn.Module):" in text and "def forward(self, input):" in text
    assert {file.name for file in (tmp_path / "net").iterdir()} >= {"state_dict.pt", "module.py", "__init__.py"}
    state = cresset.load(tmp_path / "net" / "state_dict.pt")
    assert cresset.equal(state["0.weight"], traced.state_dict()["0.weight"]) and traced(x).shape == (1, 2)


def test_an_assertion_is_written_down_and_holds():
    def f(x):
        cresset._assert(x.shape[0] == 3, "three rows")
        return x + 1

    traced = fx.symbolic_trace(f)
    traced.graph.eliminate_dead_code()
    traced.recompile()
    assert traced(cresset.ones(3)).tolist() == [2.0, 2.0, 2.0]
    for run in (f, traced, cresset.jit.script(f)):
        with pytest.raises((AssertionError, cresset.jit.Error), match="three rows"):
            run(cresset.ones(2))


@pytest.mark.parametrize(
    ("annotation", "code", "type"),
    [
        (typing.List[str], "typing_List[str]", "List[str]"),  # noqa: UP006
        (dict[str, cresset.Tensor], "dict[str,torch.Tensor]", "Dict[str, Tensor]"),
        (typing.Tuple[int, typing.List[int]], "typing_Tuple[int,typing_List[int]]", "Tuple[int, List[int]]"),  # noqa: UP006
        (int | None, "int|NoneType", "Optional[int]"),
    ],
)
def test_annotations_are_written_with_names_that_the_compiler_of_scripts_finds(annotation, code, type):
    class Given(nn.Module):
        def forward(self, x):
            return x

    Given.forward.__annotations__ = {"x": annotation, "return": annotation}
    traced = fx.symbolic_trace(Given())
    assert f"def forward(self, x : {code}) -> {code}:" in traced.code
    assert f"x: {type}) -> {type}:" in cresset.jit.script(traced).code


def test_what_people_read_has_no_blanks_at_the_ends_of_lines():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = fx.symbolic_trace(nn.Sequential(nn.ReLU()))

    graph = fx.Graph()
    graph.output(graph.call_module("inner", (graph.placeholder("x"),)))
    text = fx.GraphModule(Outer(), graph).print_readable(print_output=False)
    assert "class inner(torch.nn.Module):" in text
    assert all(line == line.rstrip() for line in text.split("\n"))


def test_an_operator_of_a_library_is_recorded_as_it_was_called():
    with cresset.library._scoped_library("traced_ops", "DEF") as lib:
        lib.define("twice(Tensor x) -> Tensor")
        lib.impl("twice", lambda x: x * 2, "CPU")
        twice = cresset.ops.traced_ops.twice
        traced = fx.symbolic_trace(lambda x: twice(x) + twice.default(x))
        targets = [node.target for node in traced.graph.nodes if node.op == "call_function"]
        assert targets[:2] == [twice, twice.default]
        assert traced(cresset.ones(2)).tolist() == [4.0, 4.0]


def test_operators_of_torch_ops_are_targets_themselves():
    def program(a, b):
        return cresset.ops.aten.cat.default([cresset.ops.aten.add.Tensor(a, b), cresset.ops.aten.relu(a)])

    traced = fx.symbolic_trace(program)
    targets = [node.target for node in traced.graph.nodes if node.op == "call_function"]
    assert targets == [cresset.ops.aten.add.Tensor, cresset.ops.aten.relu, cresset.ops.aten.cat.default]
    assert traced(cresset.ones(1), cresset.ones(1)).tolist() == [2.0, 1.0]
