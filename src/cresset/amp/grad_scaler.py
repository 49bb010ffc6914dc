"""GradScaler: multiply the loss so that small gradients survive float16, divide them again before the step, and skip
steps that overflowed.
"""

import enum
import inspect
import warnings
from collections import defaultdict

import cresset

__all__ = ["GradScaler", "OptState"]


class OptState(enum.Enum):
    """How far an optimizer has come since the last `update`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state():
    """Of an optimizer that has done nothing yet."""
    return {"stage": OptState.READY, "found_inf_per_device": {}}


def _any(found):
    """Whether one of these numbers is not zero, as a number on their device."""
    return found[0] if len(found) == 1 else cresset.stack(found).amax()


class GradScaler:
    """Scales the loss, and finds the scale as it goes: half of it after an overflow, twice after many good steps.

    Args:
        device: "cuda" or "cpu". Without a GPU, a scaler for "cuda" disables itself.
        init_scale: the first scale.
        growth_factor: what the scale is multiplied by after `growth_interval` good steps in a row.
        backoff_factor: what it is multiplied by after an overflow.
        enabled: False makes everything pass through.

    >>> parameter = nn.Parameter(cresset.tensor([2.0]))
    >>> optimizer = optim.SGD([parameter], lr=0.1)
    >>> scaler = cresset.amp.GradScaler("cpu")
    >>> scaler.scale((3 * parameter).sum()).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> parameter
    Parameter containing:
    tensor([1.7000], requires_grad=True)
    """

    def __init__(
        self,
        device="cuda",
        init_scale=2.0**16,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda" and not cresset.cuda.is_available():
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
            self._enabled = False
        if self._enabled:
            if growth_factor <= 1.0:
                raise AssertionError(f"The growth factor must be > 1.0, got {growth_factor}.")
            if backoff_factor >= 1.0:
                raise AssertionError(f"The backoff factor must be < 1.0, got {backoff_factor}.")
            self._init_scale, self._scale = init_scale, None
            self._growth_factor, self._backoff_factor, self._growth_interval = (
                growth_factor,
                backoff_factor,
                growth_interval,
            )
            self._init_growth_tracker, self._growth_tracker = 0, None
            self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _lazy_init_scale_growth_tracker(self, device):
        self._scale = cresset.full((), self._init_scale, dtype=cresset.float32, device=device)
        self._growth_tracker = cresset.full((), self._init_growth_tracker, dtype=cresset.int32, device=device)

    def _check_scale_growth_tracker(self, who):
        if self._scale is None:
            raise AssertionError(
                f"{who}: the scaler was not used yet. This may indicate your script did not use scaler.scale(loss or "
                "outputs) earlier in the iteration."
            )

    # ---- the four steps of an iteration

    def scale(self, outputs):
        """A tensor, or a list or tuple of them, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, cresset.Tensor):
            if self._scale is None:
                self._lazy_init_scale_growth_tracker(outputs.device)
            return outputs * self._scale.to(device=outputs.device)
        if not hasattr(outputs, "__iter__"):
            raise ValueError("outputs must be a Tensor or an iterable of Tensors")
        scaled = [self.scale(output) for output in outputs]
        return (
            type(outputs)(scaled) if isinstance(outputs, (list, tuple)) and not hasattr(outputs, "_fields") else scaled
        )

    def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16):
        """Multiply the gradients by `inv_scale` in place. By device, a copy of `found_inf` (a zero) that becomes 1 if
        one of them is not finite.
        """
        by_device, found = {}, {}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                grad = parameter.grad
                if grad is None:
                    continue
                if not allow_fp16 and grad.dtype == cresset.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                if grad.layout != cresset.strided and grad.dtype == cresset.float16:
                    grad = parameter.grad = grad.coalesce()  # a sum may overflow where its terms do not
                by_device.setdefault(grad.device, []).append(grad._values() if grad.layout != cresset.strided else grad)
        with cresset.no_grad():
            for device, grads in by_device.items():
                found[device] = found_inf.to(device, copy=True)
                cresset._amp_foreach_non_finite_check_and_unscale_(grads, found[device], inv_scale.to(device))
        return found

    def unscale_(self, optimizer):
        """Divide the gradients of an optimizer by the scale now, for clipping; otherwise `step` does it."""
        if not self._enabled:
            return
        self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = self._scale.double().reciprocal().float()
        none = cresset.zeros((), dtype=cresset.float32, device=self._scale.device)
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, none, False)
        state["stage"] = OptState.UNSCALED

    def _maybe_opt_step(self, optimizer, state, *args, **kwargs):
        if any(found.item() for found in state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def step(self, optimizer, *args, **kwargs):
        """optimizer.step() with gradients divided by the scale, unless one of them is infinite or NaN. Arguments go to
        the optimizer's step.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            if "grad_scaler" in inspect.signature(optimizer.step).parameters:
                warnings.warn(
                    "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the "
                    "near future GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed "
                    "optimizer and let the optimizer use them directly.",
                    FutureWarning,
                    stacklevel=2,
                )
                state["stage"] = OptState.STEPPED
                return optimizer.step(*args, **kwargs, grad_scaler=self)
            return self._step_on_device(optimizer, state, *args, **kwargs)
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _step_on_device(self, optimizer, state, *args, **kwargs):
        """The step of an optimizer that divides by the scale and skips an overflow itself, so that the host does not
        wait.
        """
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        unscaled = state["stage"] is OptState.UNSCALED
        found = [value.to(self._scale.device, non_blocking=True) for value in state["found_inf_per_device"].values()]
        optimizer.grad_scale = None if unscaled else self._scale
        optimizer.found_inf = _any(found)
        try:
            result = optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale=None):
        """Find the scale of the next iteration, or set it to `new_scale`, a number or a tensor."""
        if not self._enabled:
            return
        self._check_scale_growth_tracker("update")
        if new_scale is not None:
            if isinstance(new_scale, cresset.Tensor):
                if new_scale.numel() != 1 or new_scale.requires_grad or new_scale.dtype != cresset.float32:
                    raise AssertionError(
                        "new_scale should be a float or a 1-element torch.FloatTensor with requires_grad=False."
                    )
                self._scale.copy_(new_scale.reshape(()))
            else:
                self._scale.fill_(new_scale)
        else:
            found = [f for state in self._per_optimizer_states.values() for f in state["found_inf_per_device"].values()]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            together = _any([f.to(self._scale.device, non_blocking=True) for f in found])
            cresset._amp_update_scale_(
                self._scale,
                self._growth_tracker,
                together,
                self._growth_factor,
                self._backoff_factor,
                self._growth_interval,
            )
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    # ---- settings and state

    def _get_scale_async(self):
        return self._scale

    def get_scale(self):
        """The scale, as a number; 1 when disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self):
        """What the scale is multiplied by when it grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        """Change what the scale is multiplied by when it grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        """What the scale is multiplied by after an overflow."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        """Change what the scale is multiplied by after an overflow."""
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        """After how many good steps in a row the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        """Change after how many good steps in a row the scale grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self):
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker.item()

    def is_enabled(self):
        """Whether it scales."""
        return self._enabled

    def state_dict(self):
        """What a checkpoint needs; empty when disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict):
        """Continue from a state_dict."""
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self):
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                    "scaler.update()."
                )
            state["_init_scale"], state["_init_growth_tracker"] = self.get_scale(), self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)

    def _check_inf_per_device(self, optimizer):
        """Look for infinities in the gradients of an optimizer without changing them."""
        self._check_scale_growth_tracker("_check_inf_per_device")
        one = cresset.full((), 1.0, dtype=cresset.float32, device=self._scale.device)
        none = cresset.zeros((), dtype=cresset.float32, device=one.device)
        found = self._unscale_grads_(optimizer, one, none, True)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    def _found_inf_per_device(self, optimizer):
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
