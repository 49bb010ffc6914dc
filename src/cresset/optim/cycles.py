"""Schedules that go up and down: CyclicLR and OneCycleLR."""

import math
import types

from .scheduler import LRScheduler, check_optimizer, one_for_each_group, set_rate


class CyclicLR(LRScheduler):
    """The rate up and down between `base_lr` and `max_lr`; step after each batch.

    Args:
        step_size_up, step_size_down: batches in the rising and in the falling half of a cycle.
        mode: "triangular"; "triangular2", whose height halves each cycle; "exp_range", which falls by gamma^batch.
        scale_fn, scale_mode: a function of one's own for the height, of the "cycle" or of the "iterations".
        cycle_momentum: let the momentum go the other way, between `max_momentum` and `base_momentum`.
    """

    def __init__(
        self, optimizer, base_lr, max_lr, step_size_up=2000, step_size_down=None, mode="triangular", gamma=1.0,
        scale_fn=None,
        scale_mode="cycle", cycle_momentum=True, base_momentum=0.8, max_momentum=0.9, last_epoch=-1,
    ):  # fmt: skip
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = one_for_each_group(base_lr, optimizer, "base_lr")
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_rate(group, lr)
        self.max_lrs = one_for_each_group(max_lr, optimizer, "max_lr")
        up, down = float(step_size_up), float(step_size_up if step_size_down is None else step_size_down)
        self.total_size, self.step_ratio = up + down, up / (up + down)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma = mode, gamma
        self._scale_fn_custom, self.scale_mode = scale_fn, scale_mode
        self._scale_fn_ref = None
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
                raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
            self.use_beta1 = "betas" in optimizer.defaults
            self.base_momentums = one_for_each_group(base_momentum, optimizer, "base_momentum")
            self.max_momentums = one_for_each_group(max_momentum, optimizer, "max_momentum")
            if last_epoch == -1:
                for low, high, group in zip(
                    self.base_momentums, self.max_momentums, optimizer.param_groups, strict=True
                ):
                    self._set_momentum(group, high)
                    group["max_momentum"], group["base_momentum"] = high, low
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _set_momentum(self, group, value):
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value

    def scale_fn(self, x):
        """How high the triangle is, as a function of the cycle or of the batch."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / (2.0 ** (x - 1)) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self):
        self._check_called_within_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for low, high, group in zip(
                self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=True
            ):
                self._set_momentum(group, high - (high - low) * height * scale)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self):
        state = super().state_dict()
        state.pop("_scale_fn_ref", None)
        custom = state.pop("_scale_fn_custom")
        plain = custom is None or isinstance(custom, types.FunctionType)
        return {**state, "_scale_fn_custom": None if plain else custom.__dict__.copy()}

    def load_state_dict(self, state_dict):
        attributes = state_dict.get("_scale_fn_custom")
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "_scale_fn_custom"})
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)


def _cosine(start, end, part):
    return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)


def _line(start, end, part):
    return (end - start) * part + start


class OneCycleLR(LRScheduler):
    """The rate up to `max_lr` and down again, once; step after each batch.

    Args:
        total_steps: batches in all; or `epochs` times `steps_per_epoch`.
        pct_start: the part of them in which the rate rises.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: let the momentum go the other way.
        div_factor: the rate starts at max_lr / div_factor.
        final_div_factor: and ends at that divided by final_div_factor.
        three_phase: come down to the start before the last fall.
    """

    def __init__(
        self, optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start=0.3,
        anneal_strategy="cos",
        cycle_momentum=True, base_momentum=0.85, max_momentum=0.95, div_factor=25.0, final_div_factor=1e4,
        three_phase=False,
        last_epoch=-1,
    ):  # fmt: skip
        check_optimizer(optimizer)
        self.optimizer = optimizer
        if total_steps is not None:
            if total_steps <= 0 or not isinstance(total_steps, int):
                raise ValueError(f"Expected positive integer total_steps, but got {total_steps}")
            self.total_steps = total_steps
        elif epochs is not None and steps_per_epoch is not None:
            if not isinstance(epochs, int) or epochs <= 0:
                raise ValueError(f"Expected positive integer epochs, but got {epochs}")
            if not isinstance(steps_per_epoch, int) or steps_per_epoch <= 0:
                raise ValueError(f"Expected positive integer steps_per_epoch, but got {steps_per_epoch}")
            self.total_steps = epochs * steps_per_epoch
        else:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        rise, last = float(pct_start * self.total_steps) - 1, self.total_steps - 1
        start, top = ("initial_lr", "max_momentum"), ("max_lr", "base_momentum")
        end = ("min_lr", "max_momentum")
        if three_phase:
            self._schedule_phases = [
                _phase(rise, start, top), _phase(float(2 * pct_start * self.total_steps) - 2, top, start),
                _phase(last, start, end),
            ]  # fmt: skip
        else:
            self._schedule_phases = [_phase(rise, start, top), _phase(last, top, end)]

        if last_epoch == -1:
            for highest, group in zip(
                one_for_each_group(max_lr, optimizer, "max_lr"), optimizer.param_groups, strict=True
            ):
                group["initial_lr"] = highest / div_factor
                group["max_lr"] = highest
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
                raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
            self.use_beta1 = "betas" in optimizer.defaults
            if last_epoch == -1:
                lows = one_for_each_group(base_momentum, optimizer, "base_momentum")
                highs = one_for_each_group(max_momentum, optimizer, "max_momentum")
                for low, high, group in zip(lows, highs, optimizer.param_groups, strict=True):
                    self._set_momentum(group, high)
                    group["max_momentum"], group["base_momentum"] = high, low
        super().__init__(optimizer, last_epoch)

    _set_momentum = CyclicLR._set_momentum

    def get_lr(self):
        self._check_called_within_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The total number of steps is {self.total_steps}. This may happen if "
                "the scheduler is called after training is complete."
            )
        between = _cosine if self._anneal_func_type == "cos" else _line
        rates = []
        for group in self.optimizer.param_groups:
            begin = 0.0
            for number, phase in enumerate(self._schedule_phases):
                if step <= phase["end_step"] or number == len(self._schedule_phases) - 1:
                    part = (step - begin) / (phase["end_step"] - begin)
                    rates.append(between(group[phase["start_lr"]], group[phase["end_lr"]], part))
                    if self.cycle_momentum:
                        momentum = between(group[phase["start_momentum"]], group[phase["end_momentum"]], part)
                        self._set_momentum(group, momentum)
                    break
                begin = phase["end_step"]
        return rates


def _phase(end_step, start, end):
    return {
        "end_step": end_step, "start_lr": start[0], "end_lr": end[0], "start_momentum": start[1],
        "end_momentum": end[1],
    }  # fmt: skip
