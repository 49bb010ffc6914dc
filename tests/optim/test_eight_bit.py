"""Adam8bit and AdamW8bit: the step of Adam, with the two means rounded to bytes after each one."""

import copy
import math

import pytest

import cresset as torch
from cresset.optim.eight_bit import _values

BLOCK = 256


def rounded(mean, values):
    """The mean as a state of 8 bits holds it, and the bytes."""
    values = torch.tensor(values, dtype=torch.float64)
    padded = torch.nn.functional.pad(mean.flatten(), (0, -mean.numel() % BLOCK)).view(-1, BLOCK)
    largest = padded.abs().amax(1, keepdim=True)
    shares = (padded / largest.where(largest > 0, 1.0)).contiguous()
    codes = (shares.unsqueeze(-1) - values).abs().argmin(-1)
    if values[0] == 0:
        codes = codes.maximum((padded > 0).long())
    return (values[codes] * largest).flatten()[: mean.numel()].view_as(mean), codes.flatten()[: mean.numel()]


def gradients(count, steps, dtype=torch.float64):
    generator = torch.Generator().manual_seed(3)
    for _ in range(steps):
        yield (torch.randn(count, generator=generator, dtype=torch.float64) * torch.logspace(-4, 0, count)).to(dtype)


@pytest.mark.parametrize("name", ["Adam8bit", "AdamW8bit"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_steps_are_those_of_adam_with_rounded_means(name, dtype):
    count, lr, decay = 1000, 0.01, 0.1
    start = torch.randn(count, generator=torch.Generator().manual_seed(1)).to(dtype)
    param = torch.nn.Parameter(start.clone())
    optimizer = getattr(torch.optim, name)([param], lr=lr, weight_decay=decay, min_8bit_size=0)
    expected, m, v = start.double(), torch.zeros(count).double(), torch.zeros(count).double()
    for step, grad in enumerate(gradients(count, 6), 1):
        param.grad = grad.to(dtype)
        optimizer.step()
        g, before = grad.to(dtype).double(), expected
        if name == "Adam8bit":
            g = g + decay * before
        else:
            before = before * (1 - lr * decay)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        denominator = (v / (1 - 0.999**step)).sqrt() + 1e-8
        expected = (before - lr / (1 - 0.9**step) * m / denominator).to(dtype).double()
        torch.testing.assert_close(param.detach().double(), expected, rtol=2e-2, atol=2e-3)
        # From here on with the bytes that the optimizer has: a tie may fall to either side.
        state = {k: torch.as_tensor(x) for k, x in optimizer.state[param].items()}
        for mean, k in ((m, 1), (v, 2)):
            _, codes = rounded(mean, _values(k == 1))
            assert (codes - state[f"state{k}"].long()).abs().max() <= 1
        m, v = (
            state[f"qmap{k}"].double()[state[f"state{k}"].long()]
            * state[f"absmax{k}"].double().repeat_interleave(BLOCK)[:count]
            for k in (1, 2)
        )
        expected = param.detach().double()


def test_it_trains_as_adamw_does():
    def losses(make):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 64))
        x = torch.randn(256, 64)
        target = torch.tanh(x @ torch.randn(64, 64) / 8)
        optimizer, found = make(model.parameters()), []
        for _ in range(60):
            optimizer.zero_grad()
            loss = (model(x) - target).square().mean()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    full = losses(lambda params: torch.optim.AdamW(params, lr=3e-3))
    small = losses(lambda params: torch.optim.AdamW8bit(params, lr=3e-3, min_8bit_size=0))
    assert abs(small[-1] - full[-1]) < 0.1 * full[-1] and small[-1] < 0.2 * small[0]


@pytest.mark.parametrize("signed", [True, False])
def test_the_values_of_bytes(signed):
    """Those of dynamic quantization with seven powers of ten, as bitsandbytes lays them out."""
    values = _values(signed)
    assert len(set(values)) == 256 and values == sorted(values) and 0.0 in values and values[-1] == 1.0
    assert min(abs(v) for v in values if v) == pytest.approx(0.55e-6 if signed else 0.325e-6)
    assert (min(values) < 0) == signed


def test_memory():
    param = torch.nn.Parameter(torch.zeros(1 << 16))
    optimizer = torch.optim.AdamW8bit([param])
    param.grad = torch.ones(1 << 16)
    optimizer.step()
    held = sum(t.nbytes for t in optimizer.state[param].values() if isinstance(t, torch.Tensor))
    assert held <= 2.04 * param.numel() + 2048  # and the two tables


def test_small_parameters_have_the_state_of_adam():
    params = [torch.nn.Parameter(torch.ones(n)) for n in (4095, 4096)]
    params.append(torch.nn.Parameter(torch.ones(80, 64).t()))
    params.append(torch.nn.Parameter(torch.ones(5000, dtype=torch.float64)))
    optimizer = torch.optim.AdamW8bit(params, lr=0.1)
    plain = [torch.nn.Parameter(p.detach().clone()) for p in params]
    other = torch.optim.AdamW(plain, lr=0.1)
    for _ in range(2):
        for p, q in zip(params, plain):
            p.grad, q.grad = torch.full_like(p, 0.5), torch.full_like(q, 0.5)
        optimizer.step(), other.step()
    assert ["exp_avg" in optimizer.state[p] for p in params] == [True, False, True, True]
    for p, q in zip(params, plain):
        torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_state_is_saved_and_loaded(tmp_path, dtype):
    def made():
        params = [torch.nn.Parameter(torch.ones(n, dtype=dtype)) for n in (300, 5000)]
        return params, torch.optim.AdamW8bit(params, lr=0.1)

    params, optimizer = made()
    for p in params:
        p.grad = torch.linspace(-1, 1, p.numel()).to(dtype)
    optimizer.step()
    torch.save(optimizer.state_dict(), tmp_path / "state")
    others, loaded = made()
    for p, q in zip(params, others):
        q.data.copy_(p)
    loaded.load_state_dict(torch.load(tmp_path / "state"))
    copied = copy.deepcopy(optimizer.state[params[1]])
    for name, value in copied.items():
        found = loaded.state[others[1]][name]
        assert found == value if name == "step" else found.dtype == value.dtype and found.equal(value)
    for p, q in zip(params, others):
        q.grad = p.grad.clone()
    optimizer.step(), loaded.step()
    assert all(p.equal(q) for p, q in zip(params, others))


def test_zeros_and_infinities():
    param = torch.nn.Parameter(torch.ones(600))
    optimizer = torch.optim.Adam8bit([param], lr=0.1, min_8bit_size=0)
    param.grad = torch.zeros_like(param)
    optimizer.step()
    assert (param == 1).all() and not optimizer.state[param]["absmax1"].any()
    param.grad[0] = math.nan
    optimizer.step()
    assert param[0].isnan() and not param[256:].isnan().any()


def test_learning_rates_that_change_and_closures():
    param = torch.nn.Parameter(torch.ones(5000))
    optimizer = torch.optim.AdamW8bit([{"params": [param], "weight_decay": 0.0}], lr=torch.tensor(0.1))
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)

    def closure():
        optimizer.zero_grad()
        loss = param.sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 5000
    schedule.step()
    optimizer.step(closure)
    torch.testing.assert_close(param.detach(), torch.full((5000,), 0.85), rtol=1e-3, atol=1e-3)


def test_what_is_refused():
    param = torch.nn.Parameter(torch.ones(5000))
    with pytest.raises(ValueError, match="min_8bit_size must be at least 0"):
        torch.optim.AdamW8bit([param], min_8bit_size=-1)
    with pytest.raises(ValueError, match="Invalid"):
        torch.optim.AdamW8bit([param], lr=-1.0)
    optimizer = torch.optim.AdamW8bit([param])
    param.grad = torch.ones(5000).to_sparse()
    with pytest.raises(RuntimeError, match="sparse gradients"):
        optimizer.step()
    param.grad = torch.ones(5000)
    optimizer.step()
    optimizer.state[param]["absmax1"] = torch.zeros(3)
    with pytest.raises(RuntimeError, match="does not fit"):
        optimizer.step()
