"""Exported programs in simpler operators, and as modules again."""

import pytest

import cresset
from cresset import nn
from cresset.export import Dim, export, unflatten


def targets(program):
    return [str(node.target) for node in program.graph.nodes if node.op == "call_function"]


class Writes(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", cresset.zeros(()))
        self.plain = cresset.tensor([2.0, 3.0])

    def forward(self, x):
        self.n.add_(1)
        y = x.clone()
        y[0] = 5.0
        y.mul_(2)
        rows = y[1:].t()
        rows.add_(1)
        y.view(-1)[0:1].zero_()
        return y * self.plain + self.n, rows


def test_writes_become_values_and_new_values_of_buffers_are_outputs():
    module = Writes()
    program = export(module, (cresset.zeros(3, 2),), dynamic_shapes={"x": {0: Dim("b", min=2)}}).run_decompositions()
    assert not any(target.split(".")[1].endswith("_") for target in targets(program))
    (name,) = program.graph_signature.buffers_to_mutate
    assert program.graph_signature.buffers_to_mutate[name] == "n" and program.graph_signature.user_outputs[0] != name
    assert module.n.item() == 0
    x = cresset.randn(4, 2)
    got = program.module()(x)
    assert module.n.item() == 1
    module.n.zero_()
    assert all(cresset.allclose(a, b) for a, b in zip(got, module(x), strict=True))


def test_layers_are_decomposed_and_give_the_same_numbers():
    cresset.manual_seed(0)
    module, x = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.LayerNorm(3)), cresset.randn(5, 4)
    program = export(module, (x,)).run_decompositions()
    assert targets(program)[:2] == ["aten.permute.default", "aten.addmm.default"] and program.dialect == "ATEN"
    assert sorted(program.graph_signature.buffers_to_mutate.values()) == [
        "1.num_batches_tracked",
        "1.running_mean",
        "1.running_var",
    ]
    got = program.module()(x)
    mean, var = module[1].running_mean.clone(), module[1].running_var.clone()
    module[1].reset_running_stats()
    assert cresset.allclose(got, module(x), atol=1e-5)
    assert cresset.allclose(mean, module[1].running_mean, atol=1e-6) and cresset.allclose(
        var, module[1].running_var, atol=1e-5
    )
    got.sum().backward()
    assert not module[1].running_mean.requires_grad


def test_a_table_of_ones_own_decides_what_is_entered():
    program = export(nn.Sequential(nn.Linear(2, 2), nn.SiLU()), (cresset.ones(1, 2),))
    table = {cresset.ops.aten.silu.default: lambda x: x * x.sigmoid()}
    assert targets(program.run_decompositions(table)) == [
        "aten.linear.default",
        "aten.sigmoid.default",
        "aten.mul.Tensor",
    ]
    assert targets(program) == ["aten.linear.default", "aten.silu.default"]


def test_unflatten_gives_the_modules_back():
    module = nn.Sequential(nn.Linear(3, 2), nn.Sequential(nn.ReLU(), nn.Linear(2, 1)))
    net = unflatten(export(module, (cresset.ones(4, 3),)))
    assert list(net.state_dict()) == list(module.state_dict())
    assert [name for name, _ in net.named_modules()] == ["", "0", "1", "1.0", "1.1"]
    x = cresset.randn(4, 3)
    assert cresset.equal(net(x), module(x))
    with pytest.raises(RuntimeError, match="has size 5 in dimension 0"):
        net(cresset.ones(5, 3))
    with pytest.raises(TypeError, match="expected an ExportedProgram"):
        unflatten(module)


def test_the_usual_table_can_be_changed():
    module = nn.Sequential(nn.Linear(3, 2), nn.SiLU())
    program = export(module, (cresset.ones(4, 3),))
    table = cresset.export.default_decompositions()
    del table[cresset.ops.aten.linear.default]
    simpler = program.run_decompositions(table)
    names = [str(node.target) for node in simpler.graph.nodes if node.op == "call_function"]
    assert names == ["aten.linear.default", "aten.sigmoid.default", "aten.mul.Tensor"]
    assert type(table.materialize()) is dict and table.copy() == table
