"""`fit`: the training loop, with everything around a step that one would write by hand, and `evaluate`.

The loop adds some microseconds to a step. What takes longer (progress, records, checkpoints) happens now and then.
"""

import contextlib
import itertools
import os
import random
import sys
import time

import cresset
from cresset import nn
from cresset.show.summary import check_model

from .arguments import as_loss, as_metrics, as_optimizer, as_scheduler, check_epochs, check_loader
from .batches import Means, check_loss, metric_values, move, size_of, step_of, update_metrics
from .checkpoint import Checkpoint
from .progress import make_progress
from .records import Records

EVENTS = ("on_start", "on_epoch_start", "on_step", "on_epoch_end", "on_checkpoint", "on_end")


class Run:
    """A run of `fit`: what callbacks are given and what `fit` returns.

    Attributes:
        model, optimizer, scheduler, scaler: what is trained.
        epoch: epochs that are done; batch: batches of the running epoch that are done; step: optimizer steps that are
            done.
        loss: of the last batch.
        history: one dict an epoch: means, metrics, learning rate.
        best, best_epoch: the best value of the monitored number, and when it was.
        reason: why the run ended.
    """

    def __init__(self, model, optimizer, scheduler, scaler, folder):
        self.model, self.optimizer, self.scheduler, self.scaler, self.folder = (
            model,
            optimizer,
            scheduler,
            scaler,
            folder,
        )
        self.epoch = self.batch = self.step = self.waited = 0
        self.history, self.best, self.best_epoch = [], None, None
        self.loss = self.grad_norm = self.reason = None
        self.means = Means()

    def stop(self, reason="a callback asked for it"):
        """End the run after the running step."""
        self.reason = reason

    def path(self, name):
        return None if self.folder is None else os.path.join(self.folder, name)

    def load_best(self):
        """Give the model the weights of its best epoch; the run needs a folder."""
        if self.folder is None or not os.path.exists(self.path("best.pt")):
            raise RuntimeError(
                "Run.load_best: there is no best checkpoint; call fit with folder= and at least one epoch"
            )
        Checkpoint(self.path("best.pt"), model=self.model).load(only=["model"])

    def state(self):
        """What a checkpoint keeps beside the objects."""
        return {
            name: getattr(self, name) for name in ("epoch", "batch", "step", "waited", "history", "best", "best_epoch")
        } | {"means": self.means.state_dict()}

    def set_state(self, state):
        self.means.load_state_dict(state["means"])
        for name, value in state.items():
            if name != "means":
                setattr(self, name, value)

    @property
    def lr(self):
        return float(self.optimizer.param_groups[0]["lr"])

    def plot(self, *names):
        """The curves of the epochs so far: a picture in a notebook, drawn with letters by `print`, a page by `save`.

        Args:
            names: of numbers in `history`, training and validation together; all but the learning rate unless given.
        """
        from .plot import plot

        return plot(self, names)

    def _repr_html_(self):
        from html import escape

        head = f"<p><b>{escape(repr(self))}</b></p>"
        return head + self.plot()._repr_html_() if self.history else head

    def __repr__(self):
        best = "" if self.best is None else f", best {self.best:.4g} at epoch {self.best_epoch}"
        return f"Run({self.epoch} epochs, {self.step} steps{best}; {self.reason or 'running'})"


def seed_everything(seed):
    """The generators of cresset, of Python, of NumPy (if it is used) and of the GPUs start from `seed`."""
    cresset.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)
    if cresset.cuda.is_available():
        cresset.cuda.manual_seed_all(seed)


def _precision(amp, device):
    """(a region to compute in, a scaler or None) for amp=True, a dtype, or its name."""
    if not amp:
        return contextlib.nullcontext(), None
    if amp is True:
        dtype = cresset.bfloat16 if device.type == "cpu" else cresset.float16
    else:
        dtype = getattr(cresset, amp, None) if isinstance(amp, str) else amp
    if dtype not in (cresset.bfloat16, cresset.float16):
        raise ValueError(f"fit: amp should be True, 'bfloat16' or 'float16', got {amp!r}")
    scaler = cresset.amp.GradScaler(device.type) if dtype is cresset.float16 else None
    return cresset.amp.autocast(device.type, dtype=dtype), scaler


def _device_of(who, model, device):
    if device is not None:
        device = cresset.device(device)
        if device.type == "cuda" and not cresset.cuda.is_available():
            raise RuntimeError(
                f"{who}: device {str(device)!r}: there is no GPU that can be used; `cresset doctor` says why. Leave "
                "device away to compute where the model is"
            )
        model.to(device)
        return device
    first = next(itertools.chain(model.parameters(), model.buffers()), None)
    return cresset.device("cpu") if first is None else first.device


def _length(loader):
    try:
        return len(loader)
    except (TypeError, NotImplementedError):
        return None


class _Handlers:
    """The callbacks, sorted by event once, so that an event nobody waits for costs nothing."""

    def __init__(self, callbacks):
        self.callbacks = [callbacks] if callable(callbacks) or not hasattr(callbacks, "__iter__") else list(callbacks)
        for callback in self.callbacks:
            if not callable(callback) and not any(hasattr(callback, event) for event in EVENTS):
                raise TypeError(
                    f"fit: a callback should have one of {', '.join(EVENTS)} or be a function of the run, got "
                    f"{type(callback).__name__}"
                )
        for event in EVENTS:
            setattr(self, event, [found for callback in self.callbacks if (found := self._handler(callback, event))])

    @staticmethod
    def _handler(callback, event):
        plain = callable(callback) and not any(hasattr(callback, name) for name in EVENTS)
        return (callback if event == "on_epoch_end" else None) if plain else getattr(callback, event, None)

    def with_state(self):
        """Callbacks that have a state to keep, by name."""
        found = [
            callback
            for callback in self.callbacks
            if hasattr(callback, "state_dict") and hasattr(callback, "load_state_dict")
        ]
        return {f"callback {at} ({type(callback).__name__})": callback for at, callback in enumerate(found)}


def evaluate(model, loader, loss=None, *, step=None, metrics=None, device=None, amp=None):
    """Means of the loss and metrics over a loader, in eval mode and without gradients; the mode is put back afterwards.

    Takes what `fit` takes by the same names. Returns a dict.

    >>> batches = [(cresset.ones(4, 2), cresset.zeros(4, 2))]
    >>> cresset.train.evaluate(nn.Identity(), batches, nn.functional.mse_loss)
    {'loss': 1.0}
    """
    check_model(model, "evaluate")
    check_loader(loader, "loader")
    device = _device_of("evaluate", model, device)
    return _evaluate(
        model, loader, step_of(model, as_loss(loss), step), as_metrics(metrics), device, _precision(amp, device)[0]
    )


def _evaluate(model, loader, compute, metrics, device, region):
    was_training = {module: module.training for module in model.modules()}
    means = Means()
    for metric in metrics.values():
        metric.reset()
    try:
        model.eval()
        with cresset.no_grad():
            for batch in loader:
                batch = move(batch, device) if device.type != "cpu" else batch
                with region:
                    value, prediction, target, values = compute(batch)
                check_loss(value)
                size = size_of(batch)
                means.count += size
                means.add("loss", value.item() if device.type == "cpu" else value.detach(), size)
                for name, number in (values or {}).items():
                    means.add(name, number, size)
                if metrics:
                    update_metrics(metrics, prediction, target)
    finally:
        for module, training in was_training.items():
            module.training = training
    if not means.totals:
        raise ValueError("evaluate: the loader gave no batches")
    return {**means.compute(), **metric_values(metrics)}


def fit(
    model, loader, loss=None, optimizer=None, *, epochs=1, step=None, validation=None, metrics=None, train_metrics=None,
    scheduler=None, schedule="epoch",
    accumulate=1, clip_norm=None, clip_value=None, amp=None, monitor=None, mode="min", patience=None, min_delta=0.0,
    folder=None, save_every=None, resume=False,
    callbacks=(), seed=None, device=None, progress="auto", log_every=50, allow_nan=False,
):  # fmt: skip
    """Train `model` on `loader` for `epochs` epochs.

    Args:
        model: any Module.
        loader: gives batches: (inputs…, target), or anything `step` understands.
        loss: a function of (prediction, target); or a class or name of one, such as nn.CrossEntropyLoss or
            "cross_entropy".
        optimizer: of the model's parameters; or a class or name of cresset.optim, which is made with its defaults, or a
            function of parameters.
        epochs: how many in all, those before a resume included.
        step: a function of (model, batch), in place of `loss`. It returns the loss, or a dict with "loss", perhaps
            "prediction" and "target" (for metrics), and other numbers, which are averaged and recorded.
        validation: a loader that is run through in eval mode after each epoch; its numbers are named "val_…".
        metrics: of the validation: cresset.metrics by name, such as ["accuracy"] or {"top5": Accuracy(top_k=5)}.
            train_metrics: the same for the training batches.
        scheduler: a learning-rate schedule, or a function of the optimizer that makes one, stepped once per `schedule`,
            "epoch" or "step". ReduceLROnPlateau is given the monitored number.
        accumulate: batches whose gradients are averaged for one step of the optimizer.
        clip_norm, clip_value: limits of the gradient's norm, and of its elements.
        amp: mixed precision: True, "bfloat16" or "float16" (with a GradScaler).
        monitor: the number that decides which epoch is best; "val_loss" with a validation loader, else "loss". mode:
            "min" or "max".
        patience: stop after so many epochs in which it did not improve by more than `min_delta`.
        folder: for "run.jsonl" (the record), "last.pt" and "best.pt" (checkpoints). Without it nothing is written.
        save_every: write "last.pt" after so many optimizer steps, too, and not only after epochs.
        resume: go on from folder's "last.pt", if it is there, with the bits of a run that never stopped; see
            Checkpoint.
        callbacks: functions of the run, called after each epoch, or objects with some of on_start, on_epoch_start,
            on_step, on_epoch_end, on_checkpoint, on_end. run.stop() ends the run. Those with state_dict and
            load_state_dict are kept in checkpoints.
        seed: start all generators from it, before the first batch is drawn.
        device: where model and batches go; where the model is, unless given.
        progress: "auto", "terminal", "notebook", "log" or "none".
        log_every: steps between two lines of the record.
        allow_nan: go on when the loss is NaN, instead of an error that says where.

    Returns a Run: its `history` has a dict for each epoch.

    >>> x = cresset.linspace(0, 1, 8).reshape(8, 1)
    >>> model = nn.Linear(1, 1)
    >>> optimizer = cresset.optim.SGD(model.parameters(), lr=0.5)
    >>> run = cresset.train.fit(model, [(x, 2 * x)], nn.functional.mse_loss, optimizer, epochs=200, progress="none")
    >>> run.step, round(model.weight.item(), 1)
    (200, 2.0)
    """
    check_model(model, "fit")
    check_loader(loader, "loader")
    check_epochs(epochs)
    if validation is not None:
        check_loader(validation, "validation")
    loss = as_loss(loss)
    optimizer = as_optimizer(optimizer, model, loss)
    scheduler = as_scheduler(scheduler, optimizer)
    if schedule not in ("epoch", "step"):
        raise ValueError(f"fit: schedule should be 'epoch' or 'step', got {schedule!r}")
    if mode not in ("min", "max"):
        raise ValueError(f"fit: mode should be 'min' or 'max', got {mode!r}")
    for name, value in (
        ("accumulate", accumulate),
        ("log_every", log_every),
        ("save_every", save_every),
        ("patience", patience),
    ):
        if value is not None and value < 1:
            raise ValueError(f"fit: {name} should be at least 1, got {value}")
    if metrics and validation is None:
        raise ValueError(
            "fit: metrics are of the validation, which is not given; use train_metrics for the training batches"
        )
    device = _device_of("fit", model, device)
    region, scaler = _precision(amp, device)
    run = Run(model, optimizer, scheduler, scaler, None if folder is None else os.fspath(folder))
    trainer = _Trainer(
        run, loader, step_of(model, loss, step), device, region, as_metrics(train_metrics), _Handlers(callbacks)
    )
    trainer.accumulate, trainer.clip_norm, trainer.clip_value = accumulate, clip_norm, clip_value
    trainer.schedule, trainer.save_every, trainer.log_every, trainer.allow_nan = (
        schedule,
        save_every,
        log_every,
        allow_nan,
    )
    trainer.monitor = monitor or ("val_loss" if validation is not None else "loss")
    trainer.mode, trainer.patience, trainer.min_delta = mode, patience, min_delta
    metrics = as_metrics(metrics)
    if validation is not None:
        trainer.validate = lambda: _evaluate(model, validation, trainer.compute, metrics, device, region)
    trainer.begin(resume, seed, epochs, progress)
    try:
        trainer.run_epochs(epochs)
        run.reason = run.reason or "finished"
    except BaseException as error:
        run.reason = (
            "interrupted"
            if isinstance(error, KeyboardInterrupt)
            else f"{type(error).__name__}: {error}".splitlines()[0]
        )
        raise
    finally:
        trainer.end()
    return run


class _Trainer:
    """What `fit` does, in pieces. The objects that outlive it are in the Run."""

    validate = None

    def __init__(self, run, loader, compute, device, region, metrics, handlers):
        self.run, self.loader, self.compute, self.device, self.region = run, loader, compute, device, region
        self.metrics, self.handlers = metrics, handlers
        self.is_plateau = isinstance(run.scheduler, cresset.optim.lr_scheduler.ReduceLROnPlateau)
        self.parameters = [p for group in run.optimizer.param_groups for p in group["params"]]

    # ---- before and after

    def begin(self, resume, seed, epochs, progress):
        run = self.run
        self.checkpoint, after = None, None
        if run.folder is not None:
            has_state = hasattr(self.loader, "state_dict") and hasattr(self.loader, "load_state_dict")
            metrics = {
                f"metric {name}": metric for name, metric in self.metrics.items() if hasattr(metric, "state_dict")
            }
            self.kept = dict(
                model=run.model,
                optimizer=run.optimizer,
                scheduler=run.scheduler,
                scaler=run.scaler,
                loader=self.loader if has_state else None,
                **metrics,
                **self.handlers.with_state(),
            )
            self.checkpoint = Checkpoint(run.path("last.pt"), **self.kept)
            if self.checkpoint.exists():
                if not resume:
                    raise FileExistsError(
                        f"fit: {run.folder} holds a run already; resume=True continues it, another folder starts a "
                        "new one"
                    )
                run.set_state(self.checkpoint.load(map_location=self.device))
                after = (run.step, run.epoch)
        if after is None and seed is not None:
            seed_everything(seed)
        self.progress = make_progress(progress)
        self.records = Records(run.path("run.jsonl"), after=after)
        if after is None:
            self.records.write("start", model=type(run.model).__name__,
                parameters=sum(p.numel() for p in run.model.parameters()), optimizer=type(run.optimizer).__name__,
                epochs=epochs, batches=_length(self.loader), seed=seed, device=str(self.device),
                cresset=cresset.__version__, monitor=self.monitor, mode=self.mode)  # fmt: skip
        else:
            self.records.write("resume", epoch=run.epoch, step=run.step)
            self.progress.say(f"fit: goes on after epoch {run.epoch}, batch {run.batch} ({run.step} steps)")
        self.records.flush()
        self._tell(self.handlers.on_start)

    def end(self):
        self.progress.close()
        self._tell(self.handlers.on_end)
        self.records.write(
            "end",
            reason=self.run.reason,
            step=self.run.step,
            epoch=self.run.epoch,
            best=self.run.best,
            best_epoch=self.run.best_epoch,
        )
        self.records.close()

    def _tell(self, handlers):
        for handler in handlers:
            handler(self.run)

    def save(self):
        run = self.run
        if self.checkpoint is not None:
            self.records.write("checkpoint", step=run.step, epoch=run.epoch, file="last.pt")
            self.records.flush()
            self.checkpoint.save(**run.state())
            self._tell(self.handlers.on_checkpoint)

    # ---- epochs

    def run_epochs(self, epochs):
        run = self.run
        while run.epoch < epochs and run.reason is None:
            if self.patience is not None and run.waited >= self.patience:
                run.stop(f"early stopping: {self.monitor} has not improved for {run.waited} epochs")
                break
            self._tell(self.handlers.on_epoch_start)
            if not self.train_epoch(epochs):
                break
            values = self.finish_epoch()
            self.progress.end_epoch(values)
        if run.reason is not None:
            self.progress.say(f"fit: {run.reason}")

    def finish_epoch(self):
        """Validation, schedule, record, checkpoints; returns the numbers of the epoch."""
        run = self.run
        values = {**run.means.compute(), **metric_values(self.metrics)}
        if self.validate is not None:
            values.update((f"val_{name}", value) for name, value in self.validate().items())
        values["lr"] = run.lr
        run.epoch, run.batch, run.means = run.epoch + 1, 0, Means()
        run.history.append({"epoch": run.epoch, "step": run.step, **values})
        is_best = self._judge(values)
        if run.scheduler is not None and self.schedule == "epoch":
            run.scheduler.step(values[self.monitor]) if self.is_plateau else run.scheduler.step()
        self.records.write("epoch", epoch=run.epoch, step=run.step, **values)
        self._tell(self.handlers.on_epoch_end)
        if self.checkpoint is not None and is_best:
            Checkpoint(run.path("best.pt"), **self.kept).save(**run.state())
        self.save()
        return values

    def _judge(self, values):
        """Whether the epoch is the best one so far."""
        run = self.run
        if self.monitor not in values:
            raise KeyError(f"fit: monitor is {self.monitor!r}, but an epoch has {', '.join(values)}")
        value = values[self.monitor]
        gain = float("inf") if run.best is None else run.best - value if self.mode == "min" else value - run.best
        if value == value and gain > (self.min_delta if run.best is not None else 0):
            run.best, run.best_epoch, run.waited = value, run.epoch, 0
            return True
        run.waited += 1
        return False

    # ---- steps

    def _batches(self):
        """The batches of the running epoch that are left."""
        run = self.run
        iterator = iter(self.loader)
        if run.batch and not hasattr(self.loader, "load_state_dict"):
            for _ in range(run.batch):  # a loader without a state is read again up to the place
                next(iterator)
        return iterator

    def train_epoch(self, epochs):
        """Whether the epoch came to its end."""
        run, device, region, compute, accumulate = self.run, self.device, self.region, self.compute, self.accumulate
        on_cpu, metrics, means, scaler = device.type == "cpu", self.metrics, run.means, run.scaler
        length = _length(self.loader)
        whole_groups = None if length is None else length - length % accumulate
        on_step, progress, log_every, save_every = self.handlers.on_step, self.progress, self.log_every, self.save_every
        clock = time.perf_counter
        if run.batch == 0:
            for metric in metrics.values():
                metric.reset()
        run.model.train()
        run.optimizer.zero_grad()
        progress.begin_epoch(run.epoch + 1, epochs, length, run.batch)
        pending, logged_at, logged_count = 0, clock(), means.count
        total = means.totals.get("loss", 0.0)
        for batch in self._batches():
            if not on_cpu:
                batch = move(batch, device)
            with region:
                loss, prediction, target, values = compute(batch)
            check_loss(loss)
            size = size_of(batch)
            if on_cpu:
                run.loss = value = loss.item()
                if value != value and not self.allow_nan:
                    self._refuse_nan()
            else:
                run.loss = value = loss.detach()
            total += value * size
            means.totals["loss"] = total
            means.count += size
            if values:
                for name, number in values.items():
                    means.add(name, number.detach() if isinstance(number, cresset.Tensor) else number, size)
            if metrics:
                update_metrics(metrics, prediction, target)
            if accumulate > 1:
                loss = loss / (
                    accumulate if whole_groups is None or run.batch < whole_groups else length - whole_groups
                )
            (loss if scaler is None else scaler.scale(loss)).backward()
            run.batch += 1
            pending += 1
            if pending < accumulate and run.batch != length:
                continue
            pending = 0
            self._step()
            if run.step % log_every == 0:
                now = clock()
                self._log(means, (means.count - logged_count) / max(now - logged_at, 1e-9))
                logged_at, logged_count = now, means.count
            if on_step:
                self._tell(on_step)
            if save_every is not None and run.step % save_every == 0:
                self.save()
            if clock() >= progress.next_time:
                progress.show(run.batch, means.compute())
            if run.reason is not None:
                self.save()
                return False
        if run.batch == 0:
            again = " this time; a generator gives its batches only once" if run.epoch else ""
            raise ValueError(f"fit: the loader gave no batches{again}")
        if pending:  # a loader that did not tell its length ended within a group
            self._step()
        return True

    def _step(self):
        """Clip, step, schedule, forget the gradients."""
        run, scaler = self.run, self.run.scaler
        if self.clip_norm is not None or self.clip_value is not None:
            if scaler is not None:
                scaler.unscale_(run.optimizer)
            if self.clip_value is not None:
                nn.utils.clip_grad_value_(self.parameters, self.clip_value)
            if self.clip_norm is not None:
                run.grad_norm = nn.utils.clip_grad_norm_(self.parameters, self.clip_norm)
        was_taken = True
        if scaler is None:
            run.optimizer.step()
        else:
            before = scaler.get_scale()
            scaler.step(run.optimizer)
            scaler.update()
            was_taken = scaler.get_scale() >= before  # an overflow leaves the step out and halves the scale
        run.optimizer.zero_grad()
        run.step += 1
        if self.schedule == "step" and run.scheduler is not None and was_taken:
            run.scheduler.step(float(run.loss)) if self.is_plateau else run.scheduler.step()

    def _log(self, means, rate):
        run = self.run
        extra = {} if run.grad_norm is None else {"grad_norm": float(run.grad_norm)}
        loss = float(run.loss)
        if loss != loss and not self.allow_nan:
            self._refuse_nan()
        self.records.write(
            "step",
            step=run.step,
            epoch=run.epoch + 1,
            batch=run.batch,
            loss=loss,
            lr=run.lr,
            samples_per_second=round(rate, 1),
            **extra,
        )

    def _refuse_nan(self):
        run = self.run
        raise FloatingPointError(
            f"fit: the loss is NaN in epoch {run.epoch + 1}, batch {run.batch + 1} (step {run.step + 1}); "
            "run it within cresset.debug.nan_guard() to see which operation made it, or lower the learning rate"
        )
