"""Every optimizer and schedule beside PyTorch's, step by step, with its state."""

import copy

import pytest

import cresset

torch = pytest.importorskip("torch")

OPTIMIZERS = [
    "SGD(p, lr=0.1)", "SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1)",
    "SGD(p, lr=0.1, momentum=0.9, dampening=0.3, maximize=True)",
    "Adam(p)", "Adam(p, lr=0.1, amsgrad=True, weight_decay=0.1)",
    "Adam(p, lr=lib.tensor(0.1), betas=(0.8, 0.9), eps=1e-3, maximize=True)",
    "AdamW(p, lr=0.1)", "AdamW(p, lr=0.1, amsgrad=True)", "RMSprop(p)",
    "RMSprop(p, lr=0.1, centered=True, momentum=0.5, weight_decay=0.1)",
    "Adagrad(p, lr=0.1, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.5)",
    "Adadelta(p, lr=0.5, weight_decay=0.1)",
    "Adamax(p, lr=0.1, weight_decay=0.1)", "NAdam(p, lr=0.1)",
    "NAdam(p, lr=0.1, weight_decay=0.1, decoupled_weight_decay=True)",
    "RAdam(p, lr=0.1)", "RAdam(p, lr=0.1, weight_decay=0.1, decoupled_weight_decay=True)",
    "ASGD(p, lr=0.1, t0=3, weight_decay=0.1)",
    "Rprop(p, lr=0.1)", "LBFGS(p, lr=0.5)", "LBFGS(p, line_search_fn='strong_wolfe', history_size=3, max_iter=6)",
    "Adafactor(p)",
    "Adafactor(p, lr=0.1, weight_decay=0.1, d=2.0)", "Muon(p, lr=0.1)",
    "Muon(p, lr=0.1, adjust_lr_fn='match_rms_adamw', nesterov=False)",
]  # fmt: skip

SCHEDULES = [
    "L.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (e + 1)])", "L.MultiplicativeLR(o, lambda e: 0.9)",
    "L.StepLR(o, 3, 0.5)",
    "L.MultiStepLR(o, [2, 5, 5], 0.5)", "L.ConstantLR(o, 0.5, 4)", "L.LinearLR(o, 0.25, 0.9, 6)",
    "L.ExponentialLR(o, 0.9)",
    "L.CosineAnnealingLR(o, 5, 0.01)", "L.PolynomialLR(o, 7, 2.0)", "L.CosineAnnealingWarmRestarts(o, 3, 2, 0.01)",
    "L.CyclicLR(o, 0.01, 0.5, 3, 4)", "L.CyclicLR(o, [0.01, 0.02], 0.5, 3, mode='triangular2')",
    "L.CyclicLR(o, 0.01, 0.5, 3, mode='exp_range', gamma=0.9, cycle_momentum=False)", "L.OneCycleLR(o, 1.0, 15)",
    "L.OneCycleLR(o, [1.0, 0.5], epochs=5, steps_per_epoch=4, anneal_strategy='linear', three_phase=True)",
    "L.SequentialLR(o, [L.LinearLR(o, 0.5, 1.0, 2), L.CosineAnnealingLR(o, 4)], [2])",
    "L.SequentialLR(o, [L.ConstantLR(o, 0.1, 2), L.ExponentialLR(o, 0.9), L.StepLR(o, 2)], [2, 6])",
    "L.ChainedScheduler([L.ConstantLR(o, 0.1, 3), L.ExponentialLR(o, 0.9)])", "O.swa_utils.SWALR(o, 0.05, 4)",
    "O.swa_utils.SWALR(o, [0.05, 0.1], 3, 'linear')",
]  # fmt: skip


def start(lib, spec):
    """The same parameters, in double precision, in either library."""
    values = [
        torch.randn(3, 4, generator=torch.Generator().manual_seed(1)),
        torch.linspace(-1, 2, 4),
        torch.tensor(0.5),
    ]
    values = values[:1] if "Muon" in spec else values
    return [lib.nn.Parameter(lib.tensor(v.tolist(), dtype=lib.float64)) for v in values]


def run(lib, spec):
    p = start(lib, spec)
    optimizer = eval("O." + spec, {"O": lib.optim, "lib": lib, "p": p})

    def closure():
        optimizer.zero_grad()
        loss = sum(((q - 1) ** 2).sum() + q.sin().sum() for q in p)
        loss.backward()
        return loss

    seen = []
    for step in range(8):
        loss = optimizer.step(closure)
        seen.append([loss.item(), *[q.tolist() for q in p]])
        if step == 4:
            optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    return seen, optimizer


def flat(value):
    return [x for v in value for x in flat(v)] if isinstance(value, (list, tuple)) else [value]


@pytest.mark.parametrize("spec", OPTIMIZERS)
def test_optimizer_is_pytorchs(spec):
    (mine, a), (theirs, b) = run(cresset, spec), run(torch, spec)
    tolerance = 1e-2 if "Muon" in spec else 1e-7  # Muon works in bfloat16, NAdam keeps its product in single precision
    assert flat(mine) == pytest.approx(flat(theirs), rel=tolerance, abs=tolerance)
    assert repr(a) == repr(b)
    sa, sb = a.state_dict(), b.state_dict()
    assert [list(group) for group in sa["param_groups"]] == [list(group) for group in sb["param_groups"]]
    assert {k: set(v) for k, v in sa["state"].items()} == {k: set(v) for k, v in sb["state"].items()}


@pytest.mark.parametrize("spec", SCHEDULES)
@pytest.mark.filterwarnings("ignore")
def test_schedule_is_pytorchs(spec):
    histories = []
    for lib in (cresset, torch):
        parameters = [lib.nn.Parameter(lib.ones(2)) for _ in range(2)]
        o = lib.optim.SGD([{"params": parameters[:1], "lr": 0.3}, {"params": parameters[1:]}], lr=0.1, momentum=0.9)
        schedule = eval(spec, {"L": lib.optim.lr_scheduler, "O": lib.optim, "o": o})
        history = []
        for step in range(14):
            history += [group[key] for group in o.param_groups for key in ("lr", "momentum")] + list(
                schedule.get_last_lr()
            )
            o.step()
            schedule.step()
            if step == 6:
                schedule.load_state_dict(copy.deepcopy(schedule.state_dict()))
        histories.append((history, set(schedule.state_dict())))
    (mine, my_keys), (theirs, their_keys) = histories
    assert mine == pytest.approx(theirs, rel=1e-9, abs=1e-12) and my_keys == their_keys


def test_states_go_both_ways():
    x, y = [[0.5, -1.0], [2.0, 1.0]], [[1.0], [0.0]]
    for first, second in ((cresset, torch), (torch, cresset)):
        optimizers, losses = [], []
        for lib in (first, second):
            layer = lib.nn.Linear(2, 1)
            with lib.no_grad():
                layer.weight.fill_(0.5)
                layer.bias.zero_()
            optimizers.append((lib, layer, lib.optim.Adam(layer.parameters(), lr=0.1)))

        def train(lib, layer, optimizer, steps):
            for _ in range(steps):
                optimizer.zero_grad()
                loss = lib.nn.functional.mse_loss(layer(lib.tensor(x)), lib.tensor(y))
                loss.backward()
                optimizer.step()
            return loss.item()

        (a, layer_a, opt_a), (b, layer_b, opt_b) = optimizers
        train(a, layer_a, opt_a, 3)

        def moved(value, lib=b, other=a):
            if isinstance(value, other.Tensor):
                return lib.tensor(value.tolist())
            return {k: moved(v) for k, v in value.items()} if isinstance(value, dict) else value

        layer_b.load_state_dict({k: moved(v) for k, v in layer_a.state_dict().items()})
        state = opt_a.state_dict()
        opt_b.load_state_dict({"state": moved(state["state"]), "param_groups": state["param_groups"]})
        losses = [train(*entry, 3) for entry in optimizers]
        assert losses[0] == pytest.approx(losses[1], rel=1e-5)
