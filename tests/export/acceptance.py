"""What programs do with torch.fx and torch.export, as small checks that hold of any implementation: each is given the
library.

`test_acceptance.py` runs them here; `tests/compat/test_acceptance.py` runs the same on PyTorch, so that no check asks
for more than PyTorch does.
"""

import copy
import importlib
import io
import operator
import pickle

import pytest

CHECKS = {}


def check(function):
    CHECKS[function.__name__] = function
    return function


def part(torch, name):
    return importlib.import_module(f"{torch.__name__}.{name}")


def block(torch):
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.norm = torch.nn.Linear(4, 4), torch.nn.LayerNorm(4)
            self.register_buffer("scale", torch.full((4,), 2.0))

        def forward(self, x, shift=0.5):
            return torch.relu(self.norm(self.fc(x)) * self.scale) + shift

    torch.manual_seed(0)
    return Block().eval()


def same(torch, a, b):
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def kinds(graph):
    return [node.op for node in graph.nodes]


# ---------------------------------------------------------------- torch.fx


@check
def a_traced_module_gives_the_modules_numbers(torch):
    module, x = block(torch), torch.randn(3, 4)
    traced = torch.fx.symbolic_trace(module)
    same(torch, traced(x), module(x))
    same(torch, traced(x, 2.0), module(x, 2.0))
    assert list(traced.state_dict()) == list(module.state_dict())


@check
def the_graph_has_inputs_calls_attributes_and_an_output(torch):
    graph = torch.fx.symbolic_trace(block(torch)).graph
    assert kinds(graph) == [
        "placeholder", "placeholder", "call_module", "call_module", "get_attr", "call_function", "call_function",
        "call_function", "output",
    ]  # fmt: skip
    assert [n.target for n in graph.nodes if n.op == "call_module"] == ["fc", "norm"]
    assert [n.target for n in graph.nodes if n.op == "call_function"] == [operator.mul, torch.relu, operator.add]


@check
def an_operator_is_exchanged_and_the_code_follows(torch):
    traced = torch.fx.symbolic_trace(lambda x, y: torch.add(x, y))
    for node in traced.graph.nodes:
        if node.target is torch.add:
            node.target = torch.mul
    traced.graph.lint()
    traced.recompile()
    assert "torch.mul" in traced.code
    same(torch, traced(torch.tensor(3.0), torch.tensor(4.0)), torch.tensor(12.0))


@check
def nodes_are_put_in_and_taken_out(torch):
    traced = torch.fx.symbolic_trace(lambda x: x + 1)
    (add,) = [n for n in traced.graph.nodes if n.op == "call_function"]
    with traced.graph.inserting_after(add):
        new = traced.graph.call_method("neg", (add,))
    add.replace_all_uses_with(new)
    new.args = (add,)
    traced.recompile()
    same(torch, traced(torch.tensor(2.0)), torch.tensor(-3.0))
    with pytest.raises(RuntimeError):
        traced.graph.erase_node(add)
    new.replace_all_uses_with(add)
    traced.graph.erase_node(new)
    traced.recompile()
    same(torch, traced(torch.tensor(2.0)), torch.tensor(3.0))


@check
def dead_code_leaves(torch):
    def f(x):
        unused = x * 2  # noqa: F841
        return x + 1

    traced = torch.fx.symbolic_trace(f)
    assert traced.graph.eliminate_dead_code()
    assert kinds(traced.graph) == ["placeholder", "call_function", "output"]


@check
def a_pattern_is_replaced(torch):
    traced = torch.fx.symbolic_trace(lambda x, w: torch.sum(torch.stack([x, w])) + 1)
    found = torch.fx.replace_pattern(
        traced, lambda a, b: torch.sum(torch.stack([a, b])), lambda a, b: torch.max(torch.stack([a, b]))
    )
    assert len(found) == 1
    same(torch, traced(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 0.0])), torch.tensor(4.0))


@check
def an_interpreter_sees_every_node(torch):
    seen = []

    class Seen(torch.fx.Interpreter):
        def run_node(self, n):
            seen.append(n.op)
            return super().run_node(n)

    module, x = block(torch), torch.randn(2, 4)
    traced = torch.fx.symbolic_trace(module)
    same(torch, Seen(traced).run(x), module(x))
    assert seen == kinds(traced.graph)


@check
def a_transformer_makes_another_graph(torch):
    class Negative(torch.fx.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(torch.sub if target is torch.add else target, args, kwargs)

    made = Negative(torch.fx.symbolic_trace(lambda x: torch.add(x, 1))).transform()
    same(torch, made(torch.tensor(5.0)), torch.tensor(4.0))


@check
def a_branch_on_a_value_is_refused(torch):
    def f(x):
        return x if x.sum() > 0 else -x

    with pytest.raises(torch.fx.proxy.TraceError):
        torch.fx.symbolic_trace(f)


@check
def a_branch_on_a_concrete_argument_is_taken(torch):
    def f(x, flag):
        return x + 1 if flag else x - 1

    traced = torch.fx.symbolic_trace(f, concrete_args={"flag": True})
    same(torch, traced(torch.tensor(1.0), True), torch.tensor(2.0))


@check
def leaves_of_a_tracer_are_calls(torch):
    class All(torch.fx.Tracer):
        def is_leaf_module(self, m, path):
            return False

    graph = All().trace(block(torch))
    assert "call_module" not in kinds(graph)


@check
def a_graph_made_by_hand_runs(torch):
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(torch.sin, (graph.call_function(operator.mul, (x, 2)),)))
    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    same(torch, module(torch.tensor(0.5)), torch.sin(torch.tensor(1.0)))


@check
def a_graph_edited_into_nonsense_is_found_by_lint(torch):
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.sin, (x,))
    graph.output(y)
    x.prepend(y)
    with pytest.raises(RuntimeError):
        graph.lint()


@check
def graph_modules_are_copied_and_pickled(torch):
    module, x = block(torch), torch.randn(2, 4)
    traced = torch.fx.symbolic_trace(module.fc)
    for other in (copy.deepcopy(traced), pickle.loads(pickle.dumps(traced))):
        same(torch, other(x), traced(x))
    assert copy.deepcopy(traced).weight is not traced.weight


@check
def shapes_are_found(torch):
    shape_prop = part(torch, "fx.passes.shape_prop")
    traced = torch.fx.symbolic_trace(block(torch))
    shape_prop.ShapeProp(traced).propagate(torch.randn(5, 4))
    assert all(tuple(n.meta["tensor_meta"].shape) == (5, 4) for n in traced.graph.nodes if n.op == "call_module")


@check
def make_fx_gives_aten_operators(torch):
    make_fx = part(torch, "fx.experimental.proxy_tensor").make_fx
    graph = make_fx(lambda x: torch.sin(x) + 1)(torch.ones(2))
    assert [str(n.target) for n in graph.graph.nodes if n.op == "call_function"] == [
        "aten.sin.default",
        "aten.add.Tensor",
    ]


# ---------------------------------------------------------------- torch.export


def exported(torch, **settings):
    export = part(torch, "export")
    module, x = block(torch), torch.randn(5, 4)
    return module, export.export(module, (x,), **settings)


@check
def an_exported_program_gives_the_modules_numbers(torch):
    module, program = exported(torch)
    x = torch.randn(5, 4)
    same(torch, program.module()(x), module(x))
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        program(x)


@check
def its_signature_names_parameters_and_buffers(torch):
    _, program = exported(torch)
    signature = program.graph_signature
    assert list(signature.parameters) == ["fc.weight", "fc.bias", "norm.weight", "norm.bias"]
    assert list(signature.buffers) == ["scale"] and list(signature.user_inputs)[:1] == ["x"]
    assert [n.name for n in program.graph.nodes if n.op == "placeholder"] == [
        "p_fc_weight", "p_fc_bias", "p_norm_weight", "p_norm_bias", "b_scale", "x",
    ]  # fmt: skip
    assert set(program.state_dict) == {"fc.weight", "fc.bias", "norm.weight", "norm.bias", "scale"}


@check
def its_graph_has_aten_operators_alone(torch):
    _, program = exported(torch)
    targets = [str(n.target) for n in program.graph.nodes if n.op == "call_function"]
    assert targets == ["aten.linear.default", "aten.layer_norm.default", "aten.mul.Tensor", "aten.relu.default",
        "aten.add.Tensor"]  # fmt: skip


@check
def a_free_dimension_takes_other_sizes(torch):
    batch = part(torch, "export").Dim("batch", min=2, max=64)
    module, program = exported(torch, dynamic_shapes={"x": {0: batch}})
    x = torch.randn(17, 4)
    same(torch, program.module()(x), module(x))


@check
def a_size_outside_of_a_dim_is_refused(torch):
    batch = part(torch, "export").Dim("batch", min=2, max=8)
    _, program = exported(torch, dynamic_shapes={"x": {0: batch}})
    with pytest.raises((AssertionError, RuntimeError)):
        program.module()(torch.randn(9, 4))


@check
def a_fixed_dimension_takes_no_other_size(torch):
    _, program = exported(torch)
    with pytest.raises((AssertionError, RuntimeError)):
        program.module()(torch.randn(6, 4))


@check
def nested_inputs_and_outputs_keep_their_structure(torch):
    class Nested(torch.nn.Module):
        def forward(self, xs, named):
            return {"sum": xs[0] + xs[1], "pair": (named["a"] * 2, xs[0])}

    args = ([torch.ones(2), torch.ones(2)], {"a": torch.full((2,), 3.0)})
    result = part(torch, "export").export(Nested(), args).module()(*args)
    assert list(result) == ["sum", "pair"] and result["pair"][0].tolist() == [6.0, 6.0]


@check
def a_program_comes_back_from_a_file(torch):
    export = part(torch, "export")
    module, program = exported(torch, dynamic_shapes={"x": {0: export.Dim("batch")}})
    file = io.BytesIO()
    export.save(program, file)
    file.seek(0)
    x = torch.randn(9, 4)
    same(torch, export.load(file).module()(x), module(x))


@check
def gradients_flow_into_the_parameters(torch):
    module, program = exported(torch)
    program.module()(torch.ones(5, 4)).sum().backward()
    assert all(p.grad is not None for p in module.parameters())


@check
def decompositions_leave_no_linear(torch):
    module, program = exported(torch)
    simpler = program.run_decompositions()
    assert "aten.linear.default" not in [str(n.target) for n in simpler.graph.nodes]
    x = torch.randn(5, 4)
    same(torch, simpler.module()(x), module(x))


@check
def modules_come_back_by_their_names(torch):
    export = part(torch, "export")
    module, program = exported(torch, preserve_module_call_signature=("fc",))
    tree, x = export.unflatten(program), torch.randn(5, 4)
    same(torch, tree(x), module(x))
    same(torch, tree.fc(x), module.fc(x))
    assert sorted(tree.state_dict()) == sorted(module.state_dict())


@check
def a_branch_on_a_tensors_value_is_refused(torch):
    class Branch(torch.nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with pytest.raises(Exception, match="(?i)data-dependent|depends|branch|element|guard"):
        part(torch, "export").export(Branch(), (torch.ones(2),))
