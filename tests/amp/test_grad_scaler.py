"""GradScaler: the scale, the steps that are skipped, and the state."""

import pickle
import warnings

import pytest

import cresset
from cresset import nn, optim
from cresset.amp import GradScaler


def make(**settings):
    parameter = nn.Parameter(cresset.tensor([2.0]))
    return parameter, optim.SGD([parameter], lr=0.1), GradScaler("cpu", **settings)


def test_scaling_and_unscaling_leave_the_step_as_it_was():
    parameter, optimizer, scaler = make(init_scale=1024.0)
    scaler.scale((3 * parameter).sum()).backward()
    assert parameter.grad.tolist() == [3072]
    scaler.unscale_(optimizer)
    assert parameter.grad.tolist() == [3]
    scaler.step(optimizer)
    scaler.update()
    assert parameter.item() == pytest.approx(1.7)


def test_the_scale_halves_at_an_overflow_and_doubles_after_good_steps():
    parameter, optimizer, scaler = make(init_scale=8.0, growth_interval=2)
    seen = []
    for factor in (1.0, 1.0, float("inf"), 1.0, 1.0):
        optimizer.zero_grad()
        scaler.scale((factor * parameter).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        seen.append(scaler.get_scale())
    assert seen == [8, 16, 8, 8, 16] and parameter.item() == pytest.approx(2.0 - 0.4)


def test_an_iterable_of_outputs_is_scaled():
    _, _, scaler = make(init_scale=4.0)
    a, (b,) = scaler.scale([cresset.tensor(1.0), (cresset.tensor(2.0),)])
    assert a.item() == 4 and b.item() == 8
    with pytest.raises(ValueError, match="iterable"):
        scaler.scale(3)


def test_misuse_is_an_error():
    parameter, optimizer, scaler = make()
    with pytest.raises(AssertionError, match="scale"):
        scaler.step(optimizer)
    scaler.scale(parameter.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="Closure"):
        scaler.step(optimizer, closure=lambda: 1)
    scaler.update()
    with pytest.raises(AssertionError, match="growth factor"):
        GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(AssertionError, match="backoff factor"):
        GradScaler("cpu", backoff_factor=1.0)


def test_gradients_in_float16_are_refused():
    parameter = nn.Parameter(cresset.ones(1, dtype=cresset.float16))
    optimizer, scaler = optim.SGD([parameter], lr=0.1), GradScaler("cpu", init_scale=2.0)
    scaler.scale(parameter.sum()).backward()
    with pytest.raises(ValueError, match="FP16"):
        scaler.unscale_(optimizer)


def test_the_state_goes_there_and_back():
    parameter, optimizer, scaler = make(init_scale=8.0)
    scaler.scale(parameter.sum()).backward()
    scaler.step(optimizer)
    scaler.update(32.0)
    assert scaler.state_dict() == {
        "scale": 32.0,
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": 2000,
        "_growth_tracker": 0,
    }
    other = GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 32 and pickle.loads(pickle.dumps(scaler)).get_scale() == 32
    with pytest.raises(RuntimeError, match="empty"):
        other.load_state_dict({})


def test_disabled_it_stands_aside():
    parameter, optimizer, scaler = make(enabled=False)
    loss = parameter.sum()
    assert (
        scaler.scale(loss) is loss
        and scaler.get_scale() == 1.0
        and scaler.state_dict() == {}
        and not scaler.is_enabled()
    )
    loss.backward()
    scaler.step(optimizer)
    scaler.update()
    assert parameter.item() == pytest.approx(1.9)


def test_the_old_names_say_that_they_are_old():
    from cresset.cpu import amp as cpu
    from cresset.cuda import amp as cuda

    for old in (cpu.GradScaler, cpu.autocast, cuda.GradScaler, cuda.autocast):
        with pytest.warns(FutureWarning, match="deprecated"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=UserWarning)
            old()


def test_gradients_are_divided_where_pytorchs_programs_do_it():
    parameter = nn.Parameter(cresset.ones(2))
    sgd, none = optim.SGD([parameter], lr=1.0), cresset.zeros(1)
    parameter.grad = cresset.tensor([4.0, 8.0])
    (found,) = GradScaler("cpu")._unscale_grads_(sgd, cresset.tensor(0.25), none, False).values()
    assert found == 0 and parameter.grad.tolist() == [1.0, 2.0]
    parameter.grad[0] = float("inf")
    (found,) = GradScaler("cpu")._unscale_grads_(sgd, cresset.tensor(1.0), none, False).values()
    assert found == 1 and none == 0


def test_sums_of_sparse_gradients_that_overflow_are_found():
    indices = cresset.tensor([[0, 0]])
    parameter = cresset.zeros(1, dtype=cresset.float16, requires_grad=True)
    parameter.grad = cresset.sparse_coo_tensor(indices, cresset.tensor([60000.0, 60000.0]).half(), (1,))
    optimizer = cresset.optim.SGD([parameter], lr=1.0)
    scaler = cresset.amp.GradScaler("cpu")
    found = scaler._unscale_grads_(optimizer, cresset.ones(1), cresset.zeros(1), True)
    assert found[cresset.device("cpu")].item() == 1.0


def test_an_optimizer_that_asks_for_the_scaler_gets_it():
    class Asking(cresset.optim.SGD):
        _step_supports_amp_scaling = True
        given = None

        def step(self, closure=None, *, grad_scaler=None):
            self.given = grad_scaler

    parameter = cresset.nn.Parameter(cresset.ones(1))
    optimizer, scaler = Asking([parameter], lr=0.1), cresset.amp.GradScaler("cpu")
    scaler.scale(parameter.sum()).backward()
    with pytest.warns(FutureWarning, match="stop passing itself"):
        scaler.step(optimizer)
    assert optimizer.given is scaler
