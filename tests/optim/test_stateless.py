"""swap_in_optimizer_params_and_state: other parameters for a while."""

import copy

import pytest

import cresset
from cresset.optim import swap_in_optimizer_params_and_state


@pytest.fixture
def optimizer():
    weight = cresset.ones(1, requires_grad=True)
    optimizer = cresset.optim.SGD([weight], lr=0.5, momentum=0.5)
    weight.grad = cresset.ones(1)
    optimizer.step()  # the weight is 0.5, its momentum 1
    return optimizer


def test_a_step_changes_what_was_swapped_in_and_nothing_else(optimizer):
    (weight,), groups = optimizer.param_groups[0]["params"], copy.deepcopy(optimizer.state_dict()["param_groups"])
    groups[0]["lr"] = 2.0
    other, momentum = cresset.zeros(1, requires_grad=True), cresset.tensor([4.0])
    other.grad = cresset.ones(1)
    with swap_in_optimizer_params_and_state(
        optimizer, {"w": other}, {"state": {0: {"momentum_buffer": momentum}}, "param_groups": groups}
    ):
        assert optimizer.param_groups[0]["params"] == [other] and optimizer.param_groups[0]["lr"] == 2.0
        optimizer.step()
    assert momentum.item() == 3.0 and other.item() == -6.0  # 4 * 0.5 + 1, and lr 2
    assert weight.item() == 0.5 and optimizer.param_groups[0]["lr"] == 0.5
    assert optimizer.param_groups[0]["params"][0] is weight and optimizer.state[weight]["momentum_buffer"].item() == 1.0


def test_an_error_inside_gives_the_optimizer_back(optimizer):
    before = optimizer.param_groups[0]["params"]
    with (
        pytest.raises(KeyError),
        swap_in_optimizer_params_and_state(optimizer, {"w": cresset.ones(1)}, optimizer.state_dict()),
    ):
        raise KeyError("inside")
    assert optimizer.param_groups[0]["params"] is before


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda s: s.pop("param_groups"), "list of param-group dicts, got NoneType"),
        (lambda s: s["param_groups"].clear(), "different number of parameter groups"),
        (lambda s: s["param_groups"][0].pop("lr"), r"Keys only in live: \['lr'\]"),
        (lambda s: s["param_groups"][0]["params"].append(1), "different number of params"),
        (lambda s: s["state"].update({7: {}}), r"extra keys \[7\]"),
        (lambda s: s.update(state=[]), r"swapin_optim_state\['state'\] to be a dict .*, got list"),
        (lambda s: s["state"].update({0: 1.0}), "entries to be dictionaries; that of 0 is a float"),
        (lambda s: s["state"].update({cresset.tensor(0): {}}), "state keyed by packed parameter ids"),
        (lambda s: s["param_groups"][0].update(params=["w"]), "entries keyed by packed parameter ids"),
    ],
)
def test_a_state_that_does_not_fit_is_refused(optimizer, change, match):
    state = copy.deepcopy(optimizer.state_dict())
    change(state)
    with (
        pytest.raises(RuntimeError, match=match),
        swap_in_optimizer_params_and_state(optimizer, {"w": cresset.ones(1)}, state),
    ):
        pass


def test_too_few_tensors_and_a_fresh_optimizer_are_refused(optimizer):
    with (
        pytest.raises(RuntimeError, match="match optimizer.param_groups"),
        swap_in_optimizer_params_and_state(optimizer, {}, optimizer.state_dict()),
    ):
        pass
    fresh = cresset.optim.Adam([cresset.ones(1, requires_grad=True)])
    with (
        pytest.raises(RuntimeError, match="requires initialized"),
        swap_in_optimizer_params_and_state(fresh, {"w": cresset.ones(1)}, fresh.state_dict()),
    ):
        pass


def test_what_may_be_given_as_parameters_has_a_name():
    from collections.abc import Iterable
    from typing import get_args

    from cresset.optim.optimizer import ParamsT

    assert Iterable[cresset.Tensor] in get_args(ParamsT) and len(get_args(ParamsT)) == 3
