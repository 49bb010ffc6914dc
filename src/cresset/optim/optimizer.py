"""Optimizer: groups of parameters with their settings, the state kept for each, and saving it all."""

import functools
import itertools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, TypeAlias

import cresset

from ..autograd.hooks import RemovableHandle
from ..nn.parameter import forget_gradients
from ..utils import _foreach_utils

# What may be given as `params`, for annotations.
ParamsT: TypeAlias = Iterable[cresset.Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, cresset.Tensor]]
StateDict: TypeAlias = dict[str, Any]

_global_pre_hooks, _global_post_hooks = OrderedDict(), OrderedDict()


class _RequiredParameter:
    """Stands for a setting without default."""

    def __repr__(self):
        return "<required parameter>"


required = _RequiredParameter()


def _register(hooks, hook, prepend=False):
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook):
    """Call hook(optimizer, args, kwargs) before every step of every optimizer."""
    return _register(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook):
    """Call hook(optimizer, args, kwargs) after every step of every optimizer."""
    return _register(_global_post_hooks, hook)


def _with_hooks(step):
    """`step`, surrounded by the hooks of the optimizer and of all optimizers; a profiler sees its name."""

    @functools.wraps(step)
    def hooked(self, *args, **kwargs):
        if not cresset._native.is_profiling():
            return run(self, *args, **kwargs)
        with cresset.profiler.record_function(f"Optimizer.step#{type(self).__name__}.step"):
            return run(self, *args, **kwargs)

    def run(self, *args, **kwargs):
        # A subclass that never calls Optimizer.__init__ has no hooks of its own.
        before, after = (
            self.__dict__.get("_optimizer_step_pre_hooks", {}),
            self.__dict__.get("_optimizer_step_post_hooks", {}),
        )
        if not (before or after or _global_pre_hooks or _global_post_hooks):
            return step(self, *args, **kwargs)
        for hook in (*_global_pre_hooks.values(), *before.values()):
            replaced = hook(self, args, kwargs)
            if replaced is not None:
                if not (isinstance(replaced, tuple) and len(replaced) == 2):
                    raise RuntimeError(
                        f"{hook} must return None or a tuple of (new_args, new_kwargs), but got {replaced}."
                    )
                args, kwargs = replaced
        result = step(self, *args, **kwargs)
        for hook in (*after.values(), *_global_post_hooks.values()):
            hook(self, args, kwargs)
        return result

    hooked.hooked = True
    return hooked


class Optimizer:
    """The base of all optimizers.

    Args:
        params: parameters; or dictionaries with the parameters of a group under "params" and its own settings;
            or pairs of name and parameter.
        defaults: the settings of groups that do not say otherwise.
    """

    OptimizerPreHook: TypeAlias = Callable[
        [Any, tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any]] | None
    ]
    OptimizerPostHook: TypeAlias = Callable[[Any, tuple[Any, ...], dict[str, Any]], None]

    _has_parts = False  # whether some parameters lie on several processes

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        step = cls.__dict__.get("step")
        if step is not None and not getattr(step, "hooked", False):
            cls.step = _with_hooks(step)

    def _patch_step_function(self):
        """Let hooks and profiler see a `step` that the class was given later; the others do from the start."""
        if not getattr(type(self).step, "hooked", False):
            type(self).step = _with_hooks(type(self).step)

    def __init__(self, params, defaults):
        self.defaults = defaults
        self._make_hooks()
        if isinstance(params, cresset.Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + params.type()
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _make_hooks(self):
        for kind in (
            "step_pre",
            "step_post",
            "state_dict_pre",
            "state_dict_post",
            "load_state_dict_pre",
            "load_state_dict_post",
        ):
            self.__dict__.setdefault(f"_optimizer_{kind}_hooks", OrderedDict())

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._make_hooks()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self):
        text = type(self).__name__ + " ("
        for number, group in enumerate(self.param_groups):
            text += f"\nParameter Group {number}\n"
            text += "".join(f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")
        return text + ")"

    # ------------------------------------------------------------------ groups

    def add_param_group(self, param_group):
        """Add a group: a dictionary with its parameters under "params" and its own settings."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, cresset.Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in "
                "sets will "
                "change between runs. Please use a list instead."
            )
        params = list(params)
        if params and all(isinstance(p, tuple) for p in params):
            param_group["param_names"] = [name for name, _ in params]
            params = [p for _, p in params]
        param_group["params"] = params
        for p in params:
            if not isinstance(p, cresset.Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is " + type(p).__name__)
            if not self.defaults.get("differentiable", None) and not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        if len(params) != len({id(p) for p in params}):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        self._has_parts = self._has_parts or any(hasattr(type(p), "_stepped") for p in params)
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if any(id(p) in known for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        if self.param_groups and ("param_names" in param_group) != ("param_names" in self.param_groups[0]):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group with names to the "
                "optimizer "
                "that has groups without, or the other way round"
            )
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none=True):
        """Forget the gradients of all parameters, or set them to zero."""
        for group in self.param_groups:
            forget_gradients(group["params"], set_to_none)

    def step(self, closure=None):
        """Change the parameters once; each optimizer writes its own.

        Args:
            closure: computes the loss and the gradients anew, and returns the loss.
        """
        raise NotImplementedError

    # ------------------------------------------------------------------ hooks

    def register_step_pre_hook(self, hook):
        """Call hook(optimizer, args, kwargs) before each step; it may return new (args, kwargs)."""
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook):
        """Call hook(optimizer, args, kwargs) after each step."""
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """Call hook(optimizer) before state_dict is made."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """Call hook(optimizer, state_dict) after state_dict is made; it may return another."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """Call hook(optimizer, state_dict) before load_state_dict; it may return another."""
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """Call hook(optimizer) after load_state_dict."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # ------------------------------------------------------------------ state

    def state_dict(self):
        """The state of each parameter and the settings of each group; parameters are named by their number."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers, groups = {}, []
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {numbers[id(k)] if isinstance(k, cresset.Tensor) else k: v for k, v in self.state.items()}
        result = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            replaced = hook(self, result)
            result = result if replaced is None else replaced
        return result

    def load_state_dict(self, state_dict):
        """Take over a state that `state_dict` gave, for parameters in the same groups and order."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            replaced = hook(self, state_dict)
            state_dict = state_dict if replaced is None else replaced
        groups, saved = self.param_groups, deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(g["params"]) != len(s["params"]) for g, s in zip(groups, saved, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        by_number = {
            number: (p, group)
            for group, old in zip(groups, saved, strict=True)
            for p, number in zip(group["params"], old["params"], strict=True)
        }
        state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in by_number:
                p, group = by_number[key]
                state[p] = _moved(value, p, group)
            else:
                state[key] = value
        for group, old in zip(groups, saved, strict=True):
            old["params"] = group["params"]
            if "param_names" in group and "param_names" not in old:
                old["param_names"] = group["param_names"]
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    @staticmethod
    def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices=False):
        """`torch.utils._foreach_utils._group_tensors_by_device_and_dtype`, for optimizers of one's own."""
        return _foreach_utils._group_tensors_by_device_and_dtype(tensorlistlist, with_indices)


def _get_capturable_supported_devices(supports_xla=True):
    """The devices whose steps PyTorch can record in graphs of the device."""
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def _default_to_fused_or_foreach(params, differentiable, use_fused=False):
    """(fused, foreach) for an optimizer of one's own that was told neither: whether one loop over all parameters pays,
    which it does on a GPU.
    """
    if differentiable:
        return False, False
    on_device = bool(params) and all(
        p is None or (type(p) in (cresset.Tensor, cresset.nn.Parameter) and p.device.type == "cuda") for p in params
    )
    fused = use_fused and on_device and all(p is None or p.is_floating_point() for p in params)
    return fused, on_device and not fused


def _use_grad_for_differentiable(function):
    """Decorator of a `step` of one's own: it is recorded only for an optimizer with differentiable=True."""

    @functools.wraps(function)
    def step(self, *args, **kwargs):
        with cresset.set_grad_enabled(bool(self.defaults["differentiable"])):
            return function(self, *args, **kwargs)

    return step


def _moved(value, param, group, key=None):
    """A value of the saved state, on the device and in the dtype of its parameter; the step count stays as it is."""
    if isinstance(value, cresset.Tensor):
        if key == "step":
            if group.get("capturable") or group.get("fused"):
                return value.to(dtype=cresset.float32, device=param.device)
            return value.clone()
        return value.to(dtype=param.dtype if param.is_floating_point() else None, device=param.device, copy=True)
    if isinstance(value, dict):
        return {k: _moved(v, param, group, k) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_moved(v, param, group) for v in value)
    return value


class ByParameter(Optimizer):
    """An optimizer that changes each parameter by itself: a subclass writes `_update(param, grad, state, group)`."""

    _complex_as_pairs = True  # treat a complex number as two real ones

    def step(self, closure=None):
        """Change all parameters that have a gradient.

        Args:
            closure: computes the loss and the gradients anew, and returns the loss.
        """
        loss = None
        if closure is not None:
            with cresset.enable_grad():
                loss = closure()
        with cresset.set_grad_enabled(bool(self.defaults.get("differentiable", False)) and cresset.is_grad_enabled()):
            for group in self.param_groups:
                for param in group["params"]:
                    grad = param.grad
                    if grad is not None:
                        self._update_one(param, grad, group)
        return loss

    def _update_one(self, param, grad, group):
        state = self.state.get(param)
        if state is None:
            state = {}
        if grad.layout != cresset.strided:
            raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")
        if group.get("maximize"):
            grad = -grad
        if self._complex_as_pairs and cresset.is_complex(param):
            pairs = _Pairs(state)
            self._update(cresset.view_as_real(param), cresset.view_as_real(grad), pairs, group)
            pairs.store()
        else:
            self._update(param, grad, state, group)
        if state:
            self.state[param] = state

    def _update(self, param, grad, state, group):
        raise NotImplementedError


class _Pairs(dict):
    """A complex parameter's state as the algorithm sees it: pairs of real numbers, in the same memory."""

    def __init__(self, state):
        self.state = state
        super().__init__(
            {
                k: cresset.view_as_real(v) if isinstance(v, cresset.Tensor) and v.is_complex() else v
                for k, v in state.items()
            }
        )

    def store(self):
        for key, value in self.items():
            known = self.state.get(key)
            shared = isinstance(known, cresset.Tensor) and known.is_complex()
            if not shared:
                paired = isinstance(value, cresset.Tensor) and value.dim() and value.size(-1) == 2
                self.state[key] = cresset.view_as_complex(value) if paired else value


def number(value):
    """A setting that may be a tensor of one element, as a Python number."""
    return value.item() if isinstance(value, cresset.Tensor) else value


def check_at_least_zero(**settings):
    """Refuse negative settings."""
    for name, value in settings.items():
        if not number(value) >= 0.0:
            raise ValueError(f"Invalid {name} value: {value}")


def check_lr(lr, foreach=None, capturable=False):
    """Refuse a negative learning rate, or a tensor of several."""
    if isinstance(lr, cresset.Tensor):
        if foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        if lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
    if not number(lr) >= 0.0:
        raise ValueError(f"Invalid learning rate: {lr}")


def check_flags(foreach, fused, differentiable):
    """Refuse wishes that exclude each other. Apart from that they change nothing: every step is one native pass."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def check_betas(betas):
    """Refuse decay rates outside of [0, 1)."""
    for index, beta in enumerate(betas):
        if not 0.0 <= number(beta) < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {beta}")


def count_step(state):
    """Add one to the step count, which is a tensor as in PyTorch, and give it as a number."""
    step = state.get("step")
    if step is None:
        step = state["step"] = cresset.tensor(0.0, dtype=cresset.get_default_dtype())
    step += 1
    return step.item()


def chain_parameters(groups):
    """All parameters of all groups."""
    return itertools.chain.from_iterable(group["params"] for group in groups)
