"""Sparsifiers: masks on weights, from `prepare` to `squash_mask`."""

import copy

import pytest

import cresset
from cresset import nn
from cresset.ao.pruning import BaseSparsifier, FakeSparsity, get_arg_info_from_tensor_fqn, module_to_fqn


class Smallest(BaseSparsifier):
    """Zeros in the place of the smallest weights."""

    def update_mask(self, module, tensor_name, share, **settings):
        parametrization = getattr(module.parametrizations, tensor_name)
        count = int(share * parametrization.original.numel())
        flat = parametrization[0].mask.view(-1)
        flat.fill_(1)
        flat[parametrization.original.abs().view(-1).argsort()[:count]] = 0


def prepared(config=({"tensor_fqn": "0.weight"},)):
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    sparsifier = Smallest({"share": 0.5})
    sparsifier.prepare(model, config and list(config))
    return model, sparsifier


def test_a_step_masks_weights_and_squashing_keeps_the_zeros():
    model, sparsifier = prepared()
    assert isinstance(model[0].parametrizations.weight[0], FakeSparsity)
    sparsifier.step()
    assert int((model[0].weight == 0).sum()) == 8
    sparsifier.squash_mask(params_to_keep=("share",), params_to_keep_per_layer={"0": ("tensor_fqn",)})
    assert int((model[0].weight == 0).sum()) == 8
    assert type(model[0]) is nn.Linear
    assert model[0].sparse_params == {"share": 0.5, "tensor_fqn": "0.weight"}


def test_without_a_configuration_all_linear_layers_are_masked():
    _, sparsifier = prepared(config=None)
    assert [group["tensor_fqn"] for group in sparsifier.groups] == ["0.weight", "2.weight"]


def test_masks_wait_while_they_are_not_to_change():
    model, sparsifier = prepared()
    sparsifier.enable_mask_update = False
    sparsifier.step()
    assert bool((model[0].weight != 0).all())


def test_the_state_holds_masks_and_not_modules():
    model, sparsifier = prepared()
    sparsifier.step()
    state = copy.deepcopy(sparsifier.state_dict())
    assert state["groups"] == [{"share": 0.5, "tensor_fqn": "0.weight"}]
    other_model, other = prepared()
    other.load_state_dict(state)
    assert other_model[0].parametrizations.weight[0].mask.equal(model[0].parametrizations.weight[0].mask)
    assert other.groups[0]["module"] is other_model[0]
    assert not any("mask" in name for name in model.state_dict())


def test_configurations_that_contradict_themselves_are_refused():
    with pytest.raises(AssertionError, match="tensor_fqn"):
        prepared([{"share": 1.0}])
    with pytest.raises(AssertionError, match="list of dicts"):
        prepared(["0.weight"])
    with pytest.raises(AssertionError, match="tensor_fqn says 'weight'"):
        prepared([{"tensor_fqn": "0.weight", "tensor_name": "bias"}])


def test_convert_puts_other_layers_where_masks_are():
    class Packed(nn.Module):
        @classmethod
        def from_dense(cls, dense):
            made = cls()
            made.zeros = int((dense.weight == 0).sum())
            return made

    model, sparsifier = prepared()
    sparsifier.step()
    converted = sparsifier.convert(model, {nn.Linear: Packed})
    assert converted[0].zeros == 8
    assert type(converted[2]) is nn.Linear
    assert isinstance(model[0].parametrizations.weight[0], FakeSparsity)
    with pytest.raises(NotImplementedError, match="mapping"):
        sparsifier.convert(model)


def test_names_are_taken_apart():
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 1)))
    found = get_arg_info_from_tensor_fqn(model, "0.0.weight")
    assert found == {
        "module_fqn": "0.0", "module": model[0][0], "tensor_name": "weight", "tensor_fqn": "0.0.weight",
    }  # fmt: skip
    assert module_to_fqn(model, model) == ""
    assert module_to_fqn(model, model[0][0]) == "0.0"
    assert module_to_fqn(model, nn.ReLU()) is None


def test_it_is_shown_with_its_groups():
    _, sparsifier = prepared()
    assert repr(Smallest()) == "Smallest ()"
    assert "\tGroup 0\n" in repr(sparsifier)
    assert "tensor_fqn: 0.weight" in repr(sparsifier)


def test_a_mask_must_have_the_shape_of_its_weight():
    with pytest.raises(AssertionError, match="shape"):
        FakeSparsity(cresset.ones(2))(cresset.ones(3))
