"""fit: what a loop by hand would do, and the parts around it."""

import io
import math

import pytest

import cresset
from cresset import metrics, nn, train

F = nn.functional
X = cresset.tensor([[0.0], [1.0], [2.0], [3.0]])
Y = 3 * X - 1


def model_and_sgd(lr=0.05):
    cresset.manual_seed(0)
    model = nn.Linear(1, 1)
    return model, cresset.optim.SGD(model.parameters(), lr=lr)


def pairs(size=1):
    return [(X[k : k + size], Y[k : k + size]) for k in range(0, 4, size)]


def fit(model, optimizer, batches, **options):
    return train.fit(model, batches, F.mse_loss, optimizer, **{"progress": "none", **options})


def test_it_is_the_loop_one_would_write():
    model, optimizer = model_and_sgd()
    run = fit(model, optimizer, pairs(), epochs=3)
    other, by_hand = model_and_sgd()
    for _ in range(3):
        losses = []
        for x, y in pairs():
            by_hand.zero_grad()
            loss = F.mse_loss(other(x), y)
            loss.backward()
            by_hand.step()
            losses.append(loss.item())
    assert model.weight.item() == other.weight.item() and model.bias.item() == other.bias.item()
    assert run.history[-1]["loss"] == sum(losses) / 4
    assert (run.epoch, run.step, run.reason) == (3, 12, "finished") and model.training


def test_accumulated_batches_make_the_step_of_a_large_one():
    model, optimizer = model_and_sgd()
    run = fit(model, optimizer, pairs(1), accumulate=4)
    other, large = model_and_sgd()
    fit(other, large, pairs(4))
    assert run.step == 1
    assert model.weight.item() == pytest.approx(other.weight.item(), rel=1e-6)


@pytest.mark.parametrize("make", [list, iter], ids=["with a length", "without"])
def test_a_last_group_that_is_not_full_is_stepped(make):
    model, optimizer = model_and_sgd()
    assert fit(model, optimizer, make(pairs(1)), accumulate=3).step == 2


def test_the_rest_of_a_group_is_averaged_over_its_own_size():
    model, optimizer = model_and_sgd()
    fit(model, optimizer, pairs(1)[:1], accumulate=3)
    other, alone = model_and_sgd()
    fit(other, alone, pairs(1)[:1])
    assert model.weight.item() == other.weight.item()


def test_clipping_limits_the_step():
    model, optimizer = model_and_sgd(lr=1.0)
    before = cresset.cat([model.weight[0], model.bias]).detach().clone()
    run = fit(model, optimizer, [(X, Y + 100)], clip_norm=0.5)
    moved = (cresset.cat([model.weight[0], model.bias]) - before).norm().item()
    assert moved == pytest.approx(0.5, rel=1e-4) and run.grad_norm > 100
    model, optimizer = model_and_sgd(lr=1.0)
    before = model.bias.item()
    fit(model, optimizer, [(X, Y + 100)], clip_value=0.25)
    assert abs(model.bias.item() - before) == pytest.approx(0.25)


def test_validation_metrics_and_their_modes():
    modes = []

    class Watched(nn.Linear):
        def forward(self, x):
            modes.append((self.training, cresset.is_grad_enabled()))
            return super().forward(x)

    cresset.manual_seed(0)
    model = Watched(1, 1)
    run = fit(
        model,
        cresset.optim.SGD(model.parameters(), lr=0.0),
        [(X, Y)],
        validation=[(X, Y)],
        metrics={"mse": metrics.MeanSquaredError()},
        train_metrics=metrics.MeanSquaredError(),
    )
    assert modes == [(True, True), (False, False)]
    (epoch,) = run.history
    assert epoch["val_mse"] == pytest.approx(epoch["val_loss"]) == pytest.approx(epoch["meansquarederror"])
    assert train.evaluate(model, [(X, Y)], F.mse_loss)["loss"] == pytest.approx(epoch["loss"])


def test_a_step_function_of_ones_own():
    model, optimizer = model_and_sgd()

    def step(model, batch):
        guess = model(batch["x"])
        return {"loss": F.mse_loss(guess, batch["y"]), "prediction": guess, "target": batch["y"], "size": 7.0}

    run = train.fit(
        model,
        [{"x": X, "y": Y}],
        step=step,
        optimizer=optimizer,
        train_metrics={"mse": metrics.MeanSquaredError()},
        progress="none",
    )
    assert run.history[0]["size"] == 7 and run.history[0]["mse"] == pytest.approx(run.history[0]["loss"])


def test_schedules_by_step_by_epoch_and_by_plateau():
    for schedule, expected in (("step", 0.5**4), ("epoch", 0.5)):
        model, optimizer = model_and_sgd(1.0e-3)
        scheduler = cresset.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        fit(model, optimizer, pairs(), scheduler=scheduler, schedule=schedule)
        assert optimizer.param_groups[0]["lr"] == pytest.approx(expected * 1e-3)
    model, optimizer = model_and_sgd(1.0e-9)  # too small to gain anything
    scheduler = cresset.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=1, eps=0.0)
    run = fit(model, optimizer, pairs(), epochs=4, scheduler=scheduler)
    assert [epoch["lr"] for epoch in run.history] == pytest.approx([1e-9, 1e-9, 1e-9, 1e-10])


def test_early_stopping_keeps_the_best(tmp_path):
    values = iter([3.0, 1.0, 2.0, 2.0, 0.0])
    model, optimizer = model_and_sgd()

    def check(model, batch):
        if model.training:
            return F.mse_loss(model(X), Y)
        model.bias.fill_(0.0)
        value = next(values)
        model.bias += value
        return cresset.tensor(value)

    run = train.fit(
        model,
        [(X, Y)],
        step=check,
        optimizer=optimizer,
        epochs=9,
        validation=[(X, Y)],
        patience=2,
        folder=tmp_path,
        progress="none",
    )
    assert (run.epoch, run.best, run.best_epoch) == (4, 1.0, 2) and run.reason.startswith("early stopping: val_loss")
    run.load_best()
    assert model.bias.item() == 1.0
    assert [line["reason"] for line in train.read_records(tmp_path / "run.jsonl") if line["kind"] == "end"] == [
        run.reason
    ]


def test_amp_runs_in_low_precision():
    seen = []
    model, optimizer = model_and_sgd()

    def loss(guess, target):
        seen.append(guess.dtype)
        return F.mse_loss(guess.float(), target)

    train.fit(model, [(X, Y)], loss, optimizer, amp="bfloat16", progress="none")
    run = train.fit(model, [(X, Y)], loss, optimizer, amp=cresset.float16, clip_norm=1.0, progress="none")
    assert seen == [cresset.bfloat16, cresset.float16] and run.scaler is not None


def test_events_come_in_order():
    told = []

    class Listener:
        def __getattr__(self, name):
            if name.startswith("on_"):
                return lambda run: told.append(name)
            raise AttributeError(name)

    model, optimizer = model_and_sgd()
    fit(model, optimizer, pairs(2), callbacks=[Listener(), lambda run: told.append("plain")])
    assert told == ["on_start", "on_epoch_start", "on_step", "on_step", "on_epoch_end", "plain", "on_end"]


def test_a_seed_repeats_the_run():
    def weights(seed):
        model, optimizer = model_and_sgd()
        noisy = nn.Sequential(nn.Dropout(0.5), model)
        fit(noisy, optimizer, pairs(), seed=seed)
        return model.weight.item()

    assert weights(1) == weights(1) != weights(2)


def test_nan_is_refused_with_its_place(tmp_path):
    model, optimizer = model_and_sgd()
    batches = [(X, Y), (X * math.nan, Y)]
    with pytest.raises(FloatingPointError, match=r"NaN in epoch 1, batch 2 \(step 2\)"):
        fit(model, optimizer, batches, folder=tmp_path)
    assert train.read_records(tmp_path / "run.jsonl")[-1]["reason"].startswith("FloatingPointError")
    fit(model, optimizer, batches, allow_nan=True)


def test_nan_guard_around_fit_names_the_operation():
    from cresset.debug import NonFiniteError, nan_guard

    model = nn.Sequential(nn.Linear(1, 1), nn.Sigmoid())
    optimizer = cresset.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(NonFiniteError, match="log: made the first NaN"), nan_guard():
        train.fit(model, [(X, Y)], lambda guess, target: (guess - 2).log().mean(), optimizer, progress="none")


def test_an_interrupted_run_says_so_and_goes_on(tmp_path):
    def interrupt(run):
        if run.epoch == 2:
            raise KeyboardInterrupt

    model, optimizer = model_and_sgd()
    with pytest.raises(KeyboardInterrupt):
        fit(model, optimizer, pairs(), epochs=3, folder=tmp_path, callbacks=interrupt)
    assert train.read_records(tmp_path / "run.jsonl")[-1]["reason"] == "interrupted"
    model, optimizer = model_and_sgd()
    run = fit(model, optimizer, pairs(), epochs=3, folder=tmp_path, resume=True)
    other, by_itself = model_and_sgd()
    fit(other, by_itself, pairs(), epochs=3)
    assert model.weight.item() == other.weight.item() and run.step == 12
    kinds = [line["kind"] for line in train.read_records(tmp_path / "run.jsonl")]
    assert kinds.count("epoch") == 3 and kinds.count("end") == 1 and kinds.count("resume") == 1


def test_errors():
    model, optimizer = model_and_sgd()
    with pytest.raises(TypeError, match="either loss"):
        train.fit(model, pairs(), None, optimizer)
    with pytest.raises(TypeError, match="optimizer is missing"):
        train.fit(model, pairs(), F.mse_loss)
    with pytest.raises(TypeError, match="1 item"):
        fit(model, optimizer, [(X,)])
    with pytest.raises(ValueError, match=r"one number, got shape \(4, 1\)"):
        train.fit(model, [(X, Y)], lambda a, b: a - b, optimizer, progress="none")
    with pytest.raises(KeyError, match="monitor is 'val_f1', but an epoch has loss, lr"):
        fit(model, optimizer, pairs(), monitor="val_f1")
    with pytest.raises(ValueError, match="accumulate should be at least 1, got 0"):
        fit(model, optimizer, pairs(), accumulate=0)
    with pytest.raises(ValueError, match="metrics are of the validation"):
        fit(model, optimizer, pairs(), metrics=[metrics.MeanSquaredError()])


def test_a_folder_with_a_run_is_not_overwritten(tmp_path):
    model, optimizer = model_and_sgd()
    fit(model, optimizer, pairs(), folder=tmp_path)
    with pytest.raises(FileExistsError, match="resume=True continues it"):
        fit(model, optimizer, pairs(), folder=tmp_path)
    assert fit(model, optimizer, pairs(), folder=tmp_path, resume=True).step == 4  # it was finished


def test_progress_knows_terminal_and_file(monkeypatch):
    from cresset.train import progress

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    for stream, kind in ((Terminal(), progress.TerminalLine), (io.StringIO(), progress.LogLines)):
        made = progress.make_progress("auto", stream)
        assert type(made) is kind
        made.begin_epoch(1, 2, 10)
        made.show(5, {"loss": 0.12345})
        made.end_epoch({"loss": 0.1})
        text = stream.getvalue()
        assert ("\r" in text) == (kind is progress.TerminalLine)
        assert text.endswith("epoch 1/2  loss 0.1  0:00\n") and "0.1235" in text
    with pytest.raises(ValueError, match="got 'loud'"):
        progress.make_progress("loud")


def test_progress_in_a_notebook_updates_one_output(monkeypatch):
    import sys
    import types

    shown = []

    class Handle:
        def update(self, value):
            shown.append(value)

    def display(value, display_id):
        shown.append(value)
        return Handle()

    module = types.ModuleType("IPython")
    module.get_ipython = lambda: types.SimpleNamespace(kernel=1)
    module.display = types.ModuleType("IPython.display")
    module.display.display, module.display.HTML = display, str
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", module.display)
    model, optimizer = model_and_sgd()
    fit(model, optimizer, pairs(), progress="auto")
    assert shown[-1].count("epoch 1/1") == 1
