"""Averages of a model's parameters over training, and the schedule that goes with them."""

import itertools
import math
from copy import deepcopy

import cresset

from ..nn import Module
from ..nn.norm import _BatchNorm
from .scheduler import LRScheduler, one_for_each_group

__all__ = [
    "AveragedModel", "update_bn", "SWALR", "get_ema_multi_avg_fn", "get_swa_multi_avg_fn", "get_ema_avg_fn",
    "get_swa_avg_fn",
]  # fmt: skip


def _check_decay(decay):
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_avg_fn(decay=0.999):
    """decay * average + (1 - decay) * new, of one parameter."""
    _check_decay(decay)

    @cresset.no_grad()
    def average(averaged, current, num_averaged):
        return decay * averaged + (1 - decay) * current

    return average


def get_swa_avg_fn():
    """The plain mean, of one parameter."""

    @cresset.no_grad()
    def average(averaged, current, num_averaged):
        return averaged + (current - averaged) / (num_averaged + 1)

    return average


def get_ema_multi_avg_fn(decay=0.999):
    """decay * average + (1 - decay) * new, of a list of parameters, in place."""
    _check_decay(decay)

    @cresset.no_grad()
    def average(averaged, current, num_averaged):
        if averaged[0].is_floating_point() or averaged[0].is_complex():
            cresset._foreach_lerp_(averaged, current, 1 - decay)
        else:
            for old, new in zip(averaged, current, strict=True):
                old.copy_(old * decay + new * (1 - decay))

    return average


def get_swa_multi_avg_fn():
    """The plain mean, of a list of parameters, in place."""

    @cresset.no_grad()
    def average(averaged, current, num_averaged):
        if averaged[0].is_floating_point() or averaged[0].is_complex():
            cresset._foreach_lerp_(averaged, current, 1 / (float(num_averaged) + 1))
        else:
            for old, new in zip(averaged, current, strict=True):
                old.add_((new - old) / (num_averaged + 1))

    return average


class AveragedModel(Module):
    """A copy of a model whose parameters are averages: call `update_parameters(model)` after training steps.

    Args:
        model: the model.
        device: where the averages are kept.
        avg_fn: function of (average, new, count) that gives the new average; the plain mean by default.
        multi_avg_fn: the same for lists of parameters, in place.
        use_buffers: average the buffers, too, instead of copying them.
    """

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", cresset.tensor(0, dtype=cresset.int64, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def update_parameters(self, model):
        """Take the parameters of `model` into the averages."""
        averaged, current = (
            [t.detach() for t in (itertools.chain(m.parameters(), m.buffers()) if self.use_buffers else m.parameters())]
            for m in (self.module, model)
        )
        if self.n_averaged == 0:
            for old, new in zip(averaged, current, strict=True):
                old.copy_(new)
        else:
            current = [new.to(old.device) for old, new in zip(averaged, current, strict=True)]
            if self.avg_fn is not None:
                for old, new in zip(averaged, current, strict=True):
                    old.copy_(self.avg_fn(old, new, self.n_averaged.to(old.device)))
            else:
                groups = {}
                for old, new in zip(averaged, current, strict=True):
                    lists = groups.setdefault((old.device, old.dtype), ([], []))
                    lists[0].append(old)
                    lists[1].append(new)
                for lists in groups.values():
                    (self.multi_avg_fn or get_swa_multi_avg_fn())(*lists, self.n_averaged)
        if not self.use_buffers:
            for old, new in zip(self.module.buffers(), model.buffers(), strict=True):
                old.detach().copy_(new.detach().to(old.device))
        self.n_averaged += 1


@cresset.no_grad()
def update_bn(loader, model, device=None):
    """Compute the running statistics of all BatchNorm layers anew, by running `model` over the data of `loader`."""
    momenta = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None
    for input in loader:
        if isinstance(input, (list, tuple)):
            input = input[0]
        model(input if device is None else input.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """The rate from where it is to `swa_lr` in `anneal_epochs` epochs, and then constant."""

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        for lr, group in zip(one_for_each_group(swa_lr, optimizer, "swa_lr"), optimizer.param_groups, strict=True):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must by one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _part(self, epoch):
        """How much of the way is done at `epoch`."""
        done = max(0, min(1, epoch / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * done)) / 2 if self._anneal_strategy == "cos" else done

    def get_lr(self):
        self._check_called_within_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._part(step - 1), self._part(step)
        rates = []
        for group in self.optimizer.param_groups:
            # Where the way started follows from where it was at the last step.
            start = group["swa_lr"] if before == 1 else (group["lr"] - before * group["swa_lr"]) / (1 - before)
            rates.append(group["swa_lr"] * now + start * (1 - now))
        return rates
