"""Layers that keep less for backward: their inner values are computed again, or wait on the CPU."""

import abc
import enum
import functools

import cresset

from ....nn import Module
from ....utils.checkpoint import checkpoint

__all__ = [
    "ActivationWrapper",
    "CheckpointImpl",
    "CheckpointWrapper",
    "OffloadWrapper",
    "apply_activation_checkpointing",
    "checkpoint_wrapper",
    "offload_wrapper",
]

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = _CHECKPOINT_WRAPPED_MODULE + "."


class CheckpointImpl(enum.Enum):
    """The two ways of torch.utils.checkpoint."""

    REENTRANT = enum.auto()
    NO_REENTRANT = enum.auto()


class ActivationWrapper(Module, abc.ABC):
    """A layer around another one; names of parameters and state_dicts are those of the inner one."""

    def __init__(self, mod):
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(self._without_prefix)
        self.register_load_state_dict_pre_hook(self._with_prefix)

    @abc.abstractmethod
    def forward(self, *args, **kwargs):
        """Call the inner layer."""

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__(_CHECKPOINT_WRAPPED_MODULE), name)

    def __getitem__(self, key):
        return self._checkpoint_wrapped_module[key]

    def named_parameters(self, *args, **kwargs):
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), parameter

    @staticmethod
    def _without_prefix(module, state_dict, prefix, *_):
        for key in [key for key in state_dict if key.startswith(prefix + _CHECKPOINT_PREFIX)]:
            state_dict[prefix + key[len(prefix) + len(_CHECKPOINT_PREFIX) :]] = state_dict.pop(key)
        return state_dict

    @staticmethod
    def _with_prefix(module, state_dict, prefix, *_):
        for key in [key for key in state_dict if key.startswith(prefix)]:
            state_dict[prefix + _CHECKPOINT_PREFIX + key[len(prefix) :]] = state_dict.pop(key)


class OffloadWrapper(ActivationWrapper):
    """What the inner layer keeps for backward waits on the CPU."""

    def forward(self, *args, **kwargs):
        with cresset.autograd.graph.save_on_cpu(pin_memory=cresset.cuda.is_available()):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """What the inner layer would keep for backward is computed again.

    Args:
        checkpoint_impl: which way of torch.utils.checkpoint.
        checkpoint_fn: another function in its place, called with the layer, its arguments and `checkpoint_fn_kwargs`.
    """

    def __init__(self, mod, checkpoint_impl=CheckpointImpl.NO_REENTRANT, checkpoint_fn=None, **checkpoint_fn_kwargs):
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            reentrant = checkpoint_impl == CheckpointImpl.REENTRANT
            self.checkpoint_fn = functools.partial(checkpoint, use_reentrant=reentrant, **checkpoint_fn_kwargs)
        else:
            self.checkpoint_fn = functools.partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args, **kwargs):
        if self.checkpoint_impl == CheckpointImpl.REENTRANT and kwargs:  # that way takes positional arguments only
            names = list(kwargs)

            def call(*flat):
                named = dict(zip(names, flat[len(args) :], strict=True))
                return self._checkpoint_wrapped_module(*flat[: len(args)], **named)

            return self.checkpoint_fn(call, *args, *kwargs.values())
        return self.checkpoint_fn(self._checkpoint_wrapped_module, *args, **kwargs)


def offload_wrapper(module):
    """The layer, with what it keeps for backward on the CPU."""
    return OffloadWrapper(module)


def checkpoint_wrapper(module, checkpoint_impl=CheckpointImpl.NO_REENTRANT, checkpoint_fn=None, **checkpoint_fn_kwargs):
    """The layer, with its inner values computed again in backward.

    Args:
        checkpoint_impl: which way of torch.utils.checkpoint.
        checkpoint_fn: another function in its place.
        checkpoint_fn_kwargs: its named arguments.

    >>> wrapper = cresset.distributed.algorithms._checkpoint.checkpoint_wrapper
    >>> wrapper.checkpoint_wrapper(nn.Linear(2, 3)).out_features
    3
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model, checkpoint_wrapper_fn=checkpoint_wrapper, check_fn=lambda _: True, auto_wrap_policy=None
):
    """Put wrappers around layers inside of a model, in place; not around the model itself.

    Args:
        checkpoint_wrapper_fn: makes a wrapper of a layer.
        check_fn: whether a layer gets one.
        auto_wrap_policy: in its place, a policy of torch.distributed.fsdp.wrap.
    """
    if auto_wrap_policy is None:
        _wrap_children(model, lambda module: checkpoint_wrapper_fn(module) if check_fn(module) else module, {})
    elif hasattr(auto_wrap_policy, "_run_policy"):
        chosen = auto_wrap_policy._run_policy(model, ignored_modules=set(), root_kwargs={})
        _wrap_children(
            model, lambda m: checkpoint_wrapper_fn(m, **(chosen[m] or {})) if m in chosen and m is not model else m, {}
        )
    else:
        _wrap_by_policy(model, checkpoint_wrapper_fn, auto_wrap_policy, True)


def _wrap_children(module, wrapped, done):
    """Replace each layer below, the inner ones first; one that stands in two places becomes one wrapper."""
    for name, child in module.named_children():
        if id(child) not in done:
            _wrap_children(child, wrapped, done)
            done[id(child)] = wrapped(child)
        setattr(module, name, done[id(child)])


def _wrap_by_policy(module, wrapper, policy, is_root):
    """A policy is asked whether to look inside (recurse), then whether the rest is worth a wrapper.

    Returns: the layer or its wrapper, and how many elements are inside of wrappers.
    """
    total = sum(p.numel() for p in module.parameters())
    if not policy(module=module, recurse=True, nonwrapped_numel=total):
        return module, 0
    inside = 0
    for name, child in list(module.named_children()):
        replaced, count = _wrap_by_policy(child, wrapper, policy, False)
        setattr(module, name, replaced)
        inside += count
    if not is_root and policy(module=module, recurse=False, nonwrapped_numel=total - inside):
        return wrapper(module), total
    return module, inside
