"""Parameters, buffers and submodules by their dotted paths."""

import pytest

import cresset
from cresset import nn
from cresset.nn.utils._named_member_accessor import NamedMemberAccessor, swap_tensor


def model():
    return nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1))


def test_tensors_are_read_put_and_taken_away_by_path():
    module = model()
    accessor = NamedMemberAccessor(module)
    accessor.set_tensors_dict({"0.bias": cresset.zeros(1), "1.running_mean": cresset.ones(1)})
    assert accessor.get_tensors(["0.bias", "1.running_mean"]) == [cresset.zeros(1), cresset.ones(1)]
    assert module[0].bias.tolist() == [0.0] and "bias" in module[0]._parameters
    accessor.del_tensor("0.bias")
    assert "bias" not in module[0]._parameters
    with pytest.raises(AttributeError, match="Linear has no attribute `bias`"):
        accessor.del_tensor("0.bias")


def test_a_swap_gives_what_was_there_and_undoes_itself_where_something_is_missing():
    module = model()
    weight, accessor = module[0].weight, NamedMemberAccessor(module)
    assert accessor.swap_tensor("0.weight", cresset.ones(1, 2)) is weight
    before, missing = accessor.swap_tensors_dict({"0.weight": weight})
    assert missing == [] and module[0].weight is weight and before["0.weight"].tolist() == [[1.0, 1.0]]
    with pytest.raises(RuntimeError, match="Missing key"):
        accessor.swap_tensors_dict({"0.weight": cresset.ones(1, 2), "0.other": cresset.ones(1)})
    assert module[0].weight is weight and not hasattr(module[0], "other")
    with pytest.raises(AttributeError, match="no attribute `other`"):
        swap_tensor(module[0], "other", cresset.ones(1))
    with pytest.raises(KeyError, match="contain"):
        swap_tensor(module, "0.weight", weight)


def test_submodules_change_places_and_names_are_compared():
    module = model()
    accessor, old = NamedMemberAccessor(module), module[0]
    assert accessor.get_submodule("0") is old and accessor.swap_submodule("0", nn.Linear(2, 3)) is old
    assert accessor.get_tensor("0.weight").shape == (3, 2)
    missing, unexpected = accessor.check_keys(["0.weight", "more"])
    assert "0.bias" in missing and unexpected == ["more"]
    assert dict(accessor.named_tensors()).keys() == module.state_dict().keys()
