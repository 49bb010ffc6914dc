"""Learning-rate schedules, epoch by epoch."""

import copy
import math
import warnings

import pytest

import cresset
from cresset import nn, optim
from cresset.optim import lr_scheduler


def rates(make, steps, lr=1.0, feed=None):
    p = nn.Parameter(cresset.ones(1))
    optimizer = optim.SGD([p], lr=lr, momentum=0.9)
    schedule, seen = make(optimizer), []
    for step in range(steps):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step(feed[step]) if feed else schedule.step()
    return seen


@pytest.mark.parametrize(
    "make, expected",
    [
        (lambda o: lr_scheduler.StepLR(o, 2, 0.5), [1, 1, 0.5, 0.5, 0.25]),
        (lambda o: lr_scheduler.MultiStepLR(o, [1, 3], 0.1), [1, 0.1, 0.1, 0.01, 0.01]),
        (lambda o: lr_scheduler.ExponentialLR(o, 0.5), [1, 0.5, 0.25, 0.125]),
        (lambda o: lr_scheduler.ConstantLR(o, 0.5, 2), [0.5, 0.5, 1, 1]),
        (lambda o: lr_scheduler.LinearLR(o, 0.25, total_iters=3), [0.25, 0.5, 0.75, 1, 1]),
        (lambda o: lr_scheduler.PolynomialLR(o, 4), [1, 0.75, 0.5, 0.25, 0, 0]),
        (lambda o: lr_scheduler.LambdaLR(o, lambda epoch: 1 / (1 + epoch)), [1, 1 / 2, 1 / 3]),
        (lambda o: lr_scheduler.MultiplicativeLR(o, lambda epoch: 0.5), [1, 0.5, 0.25]),
        (lambda o: lr_scheduler.CosineAnnealingLR(o, 4), [(1 + math.cos(math.pi * t / 4)) / 2 for t in range(9)]),
        (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 2, 2), [1, 0.5, 1, 0.853553, 0.5, 0.146447, 1]),
        (lambda o: lr_scheduler.CyclicLR(o, 0.0, 1.0, 2), [0, 0.5, 1, 0.5, 0, 0.5]),
        (lambda o: lr_scheduler.ChainedScheduler([lr_scheduler.ConstantLR(o, 0.5, 2),
            lr_scheduler.ExponentialLR(o, 0.1)]),
         [0.5, 0.05, 0.01, 0.001]),
        (lambda o: lr_scheduler.SequentialLR(
            o, [lr_scheduler.ConstantLR(o, 0.1, 2), lr_scheduler.ExponentialLR(o, 0.5)], [2]), [0.1, 0.1, 1, 0.5]),
    ],
)  # fmt: skip
def test_rates(make, expected):
    assert rates(make, len(expected)) == pytest.approx(expected, abs=1e-6)


def test_one_cycle_rises_and_falls():
    seen = rates(lambda o: lr_scheduler.OneCycleLR(o, max_lr=1.0, total_steps=10), 10)
    assert seen[0] == pytest.approx(0.04) and max(seen) == pytest.approx(1.0) and seen[-1] == pytest.approx(4e-6)


def test_a_plateau_cuts_the_rate_after_patience():
    seen = rates(
        lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=1, factor=0.5), 6, feed=[3.0, 2.0, 2.0, 2.0, 1.0, 1.0]
    )
    assert seen == [1, 1, 1, 1, 0.5, 0.5]


def test_resuming():
    def fresh():
        optimizer = optim.SGD([nn.Parameter(cresset.ones(1))], lr=1.0)
        return optimizer, lr_scheduler.CosineAnnealingLR(optimizer, 10)

    optimizer, schedule = fresh()
    for _ in range(4):
        optimizer.step()
        schedule.step()
    other, resumed = fresh()
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    resumed.load_state_dict(copy.deepcopy(schedule.state_dict()))
    for o, s in ((optimizer, schedule), (other, resumed)):
        o.step()
        s.step()
    assert resumed.last_epoch == 5 and schedule.get_last_lr() == resumed.get_last_lr()


def test_a_schedule_before_its_optimizer_warns():
    schedule = lr_scheduler.StepLR(optim.SGD([nn.Parameter(cresset.ones(1))], lr=1.0), 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        schedule.step()
    assert any("optimizer.step" in str(w.message) for w in caught)


def test_rates_that_are_tensors_keep_their_identity():
    rate = cresset.tensor(1.0)
    optimizer = optim.SGD([nn.Parameter(cresset.ones(1))], lr=rate)
    schedule = lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] is rate and rate.item() == 0.5


def test_the_older_name_of_the_base_class_can_be_derived_from():
    class Halved(lr_scheduler._LRScheduler):
        def get_lr(self):
            return [base / 2 for base in self.base_lrs]

    assert rates(Halved, 2) == [0.5, 0.5] and issubclass(Halved, lr_scheduler.LRScheduler)
    assert not issubclass(lr_scheduler.StepLR, lr_scheduler._LRScheduler)  # as in PyTorch


def two_groups():
    return optim.SGD([{"params": [nn.Parameter(cresset.ones(1))]} for _ in range(2)], lr=0.1, momentum=0.5)


@pytest.mark.parametrize(
    "make, name",
    [
        (lambda o, v: lr_scheduler.CyclicLR(o, v, 1.0), "base_lr"),
        (lambda o, v: lr_scheduler.OneCycleLR(o, v, 10), "max_lr"),
        (lambda o, v: optim.swa_utils.SWALR(o, v), "swa_lr"),
    ],
)
def test_a_list_has_a_value_for_each_group(make, name):
    with pytest.raises(ValueError, match=f"{name} must have the same length as optimizer.param_groups. .* 3 values"):
        make(two_groups(), [1.0, 0.1, 0.01])


@pytest.mark.parametrize("factor", [0.95, [lambda epoch: 1, 0.8]])
def test_a_factor_that_is_no_function_is_refused(factor):
    with pytest.raises(TypeError, match="lr_lambda should be a function, but got float"):
        lr_scheduler.MultiplicativeLR(two_groups(), factor)


def test_what_happens_to_a_given_tensor_does_not_change_the_schedule():
    low, high, swa = cresset.tensor(0.25), cresset.tensor(0.75), cresset.tensor(0.5)
    cyclic, one = two_groups(), two_groups()
    lr_scheduler.CyclicLR(cyclic, 0.1, 0.2, base_momentum=low, max_momentum=high)
    lr_scheduler.OneCycleLR(one, 0.1, 10, base_momentum=low, max_momentum=high)
    averaged = two_groups()
    optim.swa_utils.SWALR(averaged, swa)
    for given in (low, high, swa):
        given.mul_(0)
    for optimizer in (cyclic, one):
        group = optimizer.param_groups[1]
        assert (group["base_momentum"].item(), group["max_momentum"].item()) == (0.25, 0.75)
    assert averaged.param_groups[0]["swa_lr"].item() == 0.5


def test_chained_schedules_can_be_one_of_several_in_a_row():
    optimizer = optim.SGD([nn.Parameter(cresset.ones(1))], lr=1.0)
    chained = lr_scheduler.ChainedScheduler(
        [lr_scheduler.StepLR(optimizer, 1, 0.5), lr_scheduler.ConstantLR(optimizer, 0.5, total_iters=9)]
    )
    following = lr_scheduler.ConstantLR(optimizer, 0.25, 9)
    with pytest.warns(UserWarning, match="before `optimizer.step"):  # as PyTorch does
        schedule = lr_scheduler.SequentialLR(optimizer, [chained, following], [2])
    seen = []
    for _ in range(4):
        seen += [optimizer.param_groups[0]["lr"]]
        optimizer.step()
        schedule.step()
    assert seen == [0.5, 0.25, 0.25, 0.25]  # half, halved once more; then a quarter of the start
