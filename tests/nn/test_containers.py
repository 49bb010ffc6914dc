"""Sequential, ModuleList, ModuleDict, ParameterList and ParameterDict behave like the sequences and dictionaries they
are.
"""

from collections import OrderedDict

import pytest

import cresset
from cresset import nn


def test_sequential_runs_in_order_and_slices():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    x = cresset.randn(4, 2)
    assert cresset.equal(model(x), model[2](model[:2](x)))
    assert len(model) == 3 and isinstance(model[-2], nn.ReLU) and list(model)[1] is model[1]
    with pytest.raises(IndexError):
        model[3]


def test_sequential_with_names():
    model = nn.Sequential(OrderedDict(first=nn.Linear(2, 2), act=nn.ReLU()))
    assert list(model.state_dict()) == ["first.weight", "first.bias"] and model.act is model[1]


def test_sequential_grows_and_shrinks():
    model = nn.Sequential(nn.Identity())
    model.append(nn.ReLU()).insert(0, nn.Tanh()).extend([nn.Sigmoid()])
    assert [type(m).__name__ for m in model] == ["Tanh", "Identity", "ReLU", "Sigmoid"]
    del model[1]
    assert list(model._modules) == ["0", "1", "2"] and isinstance(model.pop(-1), nn.Sigmoid)
    model[0] = nn.ELU()
    assert isinstance(model[0], nn.ELU) and len(model + model) == 4 and len(model * 3) == 6


def test_module_list_registers_what_it_holds():
    layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    assert len(list(layers.parameters())) == 6 and isinstance(layers[:2], nn.ModuleList) and layers[:2][1] is layers[1]
    layers += [nn.ReLU()]
    layers.insert(1, nn.Tanh())
    assert [type(m).__name__ for m in layers] == ["Linear", "Tanh", "Linear", "Linear", "ReLU"]
    del layers[0:2]
    assert list(layers._modules) == ["0", "1", "2"] and isinstance(layers.pop(-1), nn.ReLU)


def test_module_list_folds_equal_lines():
    text = repr(nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()]))
    assert text == "ModuleList(\n  (0-1): 2 x ReLU()\n  (2): Tanh()\n)"


def test_module_dict():
    heads = nn.ModuleDict({"a": nn.Linear(2, 1)})
    heads.update([["b", nn.ReLU()]])
    assert list(heads) == ["a", "b"] and "b" in heads and heads.pop("b") is not None and list(heads.keys()) == ["a"]
    with pytest.raises(TypeError):
        heads.update(3)


def test_parameter_list_turns_tensors_into_parameters():
    values = nn.ParameterList([cresset.ones(2), nn.Parameter(cresset.zeros(1)), "note"])
    assert [name for name, _ in values.named_parameters()] == ["0", "1"] and values[2] == "note"
    values.append(cresset.ones(3))
    values[0] = cresset.zeros(2)
    assert len(values) == 4 and isinstance(values[0], nn.Parameter) and values[-1].shape == (3,)
    with pytest.raises(RuntimeError, match="should not be called"):
        values()


def test_parameter_dict():
    values = nn.ParameterDict({"scale": cresset.ones(1)})
    values["shift"] = cresset.zeros(1)
    assert list(values) == ["scale", "shift"] and values.get("none") is None
    assert list((values | {"third": cresset.ones(1)}).keys()) == ["scale", "shift", "third"]
    assert values.pop("scale").requires_grad and len(values) == 1
