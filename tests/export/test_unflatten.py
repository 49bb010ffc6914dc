"""unflatten: the modules of an exported program, each with its part of the graph."""

import io

import pytest

import cresset
from cresset import nn
from cresset.export import Dim, export, load, save, unflatten


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.act = nn.Linear(4, 4), nn.ReLU()

    def forward(self, x, scale=None, *, more=None):
        y = self.act(self.fc(x))
        if scale is not None:
            y = y * scale
        if more is not None:
            y = y + more["a"]
        return {"y": y, "n": 3}, (y.sum(),)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.norm = Block(), Block(), nn.BatchNorm1d(4)
        self.head = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        self.register_buffer("shift", cresset.ones(4))

    def forward(self, x):
        a, (total,) = self.first(x, 2.0, more={"a": x})
        b, _ = self.second(a["y"])
        h = self.head(self.head(b["y"] + self.shift))
        return self.norm(h.view(x.shape[0], -1)), total


@pytest.fixture
def net():
    cresset.manual_seed(0)
    return Net().eval()


def exported(net, *preserved):
    batch = {"x": {0: Dim("batch")}}
    return export(net, (cresset.randn(5, 4),), dynamic_shapes=batch, preserve_module_call_signature=preserved)


@pytest.mark.parametrize("preserved", [(), ("first", "second", "head"), ("first.fc", "head.0")])
def test_the_modules_together_give_eagers_numbers(net, preserved):
    made, x = unflatten(exported(net, *preserved)), cresset.randn(7, 4)
    for got, want in zip(made(x), net(x), strict=True):
        assert cresset.equal(got, want)
    assert set(net.state_dict()) <= set(made.state_dict()) and made.first.fc.weight is net.first.fc.weight


def test_a_module_called_twice_with_the_same_graph_is_one(net):
    made = unflatten(exported(net))
    assert [name for name, _ in made.named_modules()] == [name for name, _ in net.named_modules()]
    assert [str(n.target) for n in made.graph.nodes if n.op == "call_module"] == [
        "first", "second", "head", "head", "norm",
    ]  # fmt: skip


def test_a_module_takes_what_its_graph_takes(net):
    made, x = unflatten(exported(net)), cresset.randn(3, 4)
    assert cresset.equal(made.head(x), net.head(x))
    with pytest.raises(TypeError, match="expected 1 inputs, got 2"):
        made.head(x, x)


def test_a_module_whose_signature_is_kept_is_called_as_the_original(net):
    made, x = unflatten(exported(net, "first", "head")), cresset.randn(3, 4)
    got, want = made.first(x, 2.0, more={"a": x}), net.first(x, 2.0, more={"a": x})
    assert cresset.equal(got[0]["y"], want[0]["y"]) and got[0]["n"] == 3 and cresset.equal(got[1][0], want[1][0])
    assert cresset.equal(made.head(x), net.head(x))
    with pytest.raises(ValueError, match="expected arguments of the structure"):
        made.first(x)


def test_a_module_whose_signature_is_kept_can_be_exchanged(net):
    class Other(nn.Module):
        def forward(self, x, scale, more):
            return {"y": x * scale, "n": 3}, (x.sum(),)

    made, x = unflatten(exported(net, "first")), cresset.randn(3, 4)
    made.first = Other()
    net.first = Other()
    for got, want in zip(made(x), net(x), strict=True):
        assert cresset.equal(got, want)


def test_signatures_and_modules_travel_in_a_file(net):
    program, file = exported(net, "first", "head"), io.BytesIO()
    save(program, file)
    made, x = unflatten(load(io.BytesIO(file.getvalue()))), cresset.randn(3, 4)
    assert cresset.equal(made.head(x), net.head(x)) and cresset.equal(made(x)[0], net(x)[0])
    (entry,) = [e for e in program.module_call_graph if e.fqn == "first"]
    assert [type(a).__name__ for a in entry.signature.inputs] == [
        "TensorArgument",
        "ConstantArgument",
        "TensorArgument",
    ]
    assert entry.signature.forward_arg_names == ["x", "scale", "more"]


def test_a_name_that_is_no_submodule_is_refused(net):
    with pytest.raises(ValueError, match=r"names \['third'\], which the module does not have"):
        exported(net, "third")


def test_new_values_of_buffers_are_kept():
    norm = nn.Sequential(nn.BatchNorm1d(4))
    program = export(norm, (cresset.randn(5, 4),)).run_decompositions()
    made, x = unflatten(program), cresset.randn(5, 4)
    made(x)
    norm(x)
    assert cresset.allclose(made.state_dict()["0.running_mean"], norm[0].running_mean)


def test_a_module_that_was_not_called_says_so():
    class Skips(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x):
            return self.a(x)

    made = unflatten(export(Skips(), (cresset.ones(1, 2),)))
    with pytest.raises(RuntimeError, match="was not called when the program was exported"):
        made.b(cresset.ones(1, 2))


class TestNamesOfOneThing:
    def test_a_parameter_with_two_names_is_one(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.bias, self.layer = nn.Parameter(cresset.ones(2)), nn.Linear(2, 2)
                self.layer.bias = self.bias

            def forward(self, x):
                return self.layer(x)

        model = Model()
        made = unflatten(cresset.export.export(model, (cresset.ones(1, 2),)))
        assert made.bias is made.layer.bias and list(made.state_dict()) == list(model.state_dict())

    def test_a_module_with_two_names_is_one(self):
        block = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        model = nn.Sequential(block, nn.Sigmoid(), block)
        x = cresset.ones(1, 2)
        made = unflatten(cresset.export.export(model, (x,)))
        assert made.get_submodule("0") is made.get_submodule("2") and cresset.equal(made(x), model(x))
        assert sorted(made.state_dict()) == sorted(model.state_dict())


def test_modules_know_their_class_and_their_graph(net):
    made, x = unflatten(exported(net)), cresset.randn(3, 4)
    assert made.type_name().endswith("." + type(net).__qualname__)
    assert made.head.type_name() == cresset.nn.modules.name_of(type(net.head))
    assert cresset.equal(made.head.graph_module(x), net.head(x))
    assert all(
        node.meta.get("val") is not None
        for module in (made, made.head)
        for node in module.graph.nodes
        if node.op in ("placeholder", "get_attr", "call_module")
    )


def test_what_a_kept_signature_no_longer_finds_is_none():
    class Inner(nn.Module):
        def forward(self, x, a, b):
            return x + a, b

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x, y):
            return self.inner(x, *y.topk(2))[0]

    program = cresset.export.export(
        Outer(), (cresset.ones(2), cresset.arange(5.0)), preserve_module_call_signature=("inner",)
    )
    program.graph.eliminate_dead_code()
    assert unflatten(program)(cresset.ones(2), cresset.arange(5.0)).tolist() == [5.0, 4.0]


def test_other_arguments_need_an_adapter():
    x = cresset.ones(2)
    program = cresset.export.export(nn.ReLU(), (x,))
    with pytest.raises(TypeError, match="no flat args adapter"):
        unflatten(program)(x, x)

    class First(cresset.export.FlatArgsAdapter):
        def adapt(self, target_spec, input_spec, input_args, metadata, obj):
            return input_args[:1]

    assert unflatten(program, First())(x, -x).tolist() == [1.0, 1.0]
