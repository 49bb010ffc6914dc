"""LRScheduler: what all schedules of learning rates have in common; lr_scheduler.py has the schedules."""

import warnings
import weakref
from functools import wraps

import cresset

from .optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available. Please open an issue if you are unable to "
    "replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose."
)


def check_optimizer(optimizer):
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def set_rate(group, lr):
    """A rate that is a tensor keeps its identity."""
    if isinstance(group["lr"], cresset.Tensor):
        group["lr"].fill_(float(lr))
    else:
        group["lr"] = lr


def copied(value):
    return value.clone() if isinstance(value, cresset.Tensor) else value


class LRScheduler:
    """The base of schedules: `get_lr` gives the rates for `last_epoch`.

    Args:
        optimizer: whose rates are set, group by group.
        last_epoch: how far the schedule was when it is resumed; -1 at the start.
    """

    _is_initial = False
    _get_lr_called_within_step = False

    def __init__(self, optimizer, last_epoch=-1):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", copied(group["lr"]))
        else:
            for number, group in enumerate(optimizer.param_groups):
                if "initial_lr" not in group:
                    raise KeyError(
                        f"param 'initial_lr' is not specified in param_groups[{number}] when resuming scheduler with "
                        "last_epoch >= 0.\nThis typically happens when:\n1. You're trying to resume training from a "
                        "checkpoint "
                        "but haven't properly loaded the optimizer state\n2. You're using last_epoch >= 0 for a fresh "
                        "training "
                        "run (not recommended)"
                    )
        self.base_lrs = [copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._count_steps_of(optimizer)
        self._initial_step()

    @staticmethod
    def _count_steps_of(optimizer):
        """Let the optimizer remember that it took a step, so that a schedule can warn if it comes first."""
        if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
            return
        reference, original = weakref.ref(optimizer), optimizer.step.__func__

        @wraps(original)
        def step(*args, **kwargs):
            optimizer = reference()
            optimizer._opt_called = True
            return original.__get__(optimizer, type(optimizer))(*args, **kwargs)

        step._wrapped_by_lr_sched = True
        optimizer.step = step

    def _initial_step(self):
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self):
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict):
        """Take over what `state_dict` gave."""
        self.__dict__.update(state_dict)

    def get_last_lr(self):
        """The rates set last, group by group."""
        return self._last_lr

    def get_lr(self):
        """The rates for `last_epoch`, group by group; each schedule writes its own."""
        raise NotImplementedError

    def step(self, epoch=None):
        """Go on to the next epoch and set its rates.

        Args:
            epoch: go to this one instead; deprecated.
        """
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
                warnings.warn(
                    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. "
                    "Please, make "
                    "sure to call `optimizer.step()` before `lr_scheduler.step()`. See more details at "
                    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate",
                    stacklevel=2,
                )
            elif not getattr(self.optimizer, "_opt_called", False):
                warnings.warn(
                    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, "
                    "you should call "
                    "them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this "
                    "will result "
                    "in PyTorch skipping the first value of the learning rate schedule. See more details at "
                    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate",
                    stacklevel=2,
                )
        self._step_count += 1
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                warnings.warn(EPOCH_DEPRECATION_WARNING, stacklevel=2)
                self.last_epoch = epoch
                values = self._get_closed_form_lr() if hasattr(self, "_get_closed_form_lr") else self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            set_rate(group, lr)
        self._last_lr = [copied(group["lr"]) for group in self.optimizer.param_groups]

    def _rates(self):
        """The rates now, group by group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def _check_called_within_step(self):
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.", stacklevel=3
            )


class _LRScheduler(LRScheduler):
    """PyTorch's older name of the base class, which other packages still derive from."""


def one_for_each_group(value, optimizer, name):
    """A value of its own for each group: what happens to a tensor that was given does not change it."""
    groups = len(optimizer.param_groups)
    if isinstance(value, (list, tuple)) and len(value) != groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
            f"param_groups has {groups}."
        )
    return [copied(one) for one in (value if isinstance(value, (list, tuple)) else [value] * groups)]
