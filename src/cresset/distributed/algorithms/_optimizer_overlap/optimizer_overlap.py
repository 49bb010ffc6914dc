"""Optimizers that step each bucket of a DistributedDataParallel when its gradients are averaged."""

import abc
import inspect

from ....optim import Optimizer
from ...optim.utils import as_functional_optim
from ..ddp_comm_hooks.default_hooks import allreduce_hook
from ..ddp_comm_hooks.optimizer_overlap_hooks import _hook_then_optimizer, _OptimizerHookState

_registered_overlapped_optims: dict[type, type] = {}


def register_overlapped(optim_cls):
    """A decorator: the class overlaps optimizers of `optim_cls`."""

    def register(overlapped):
        _registered_overlapped_optims[optim_cls] = overlapped
        return overlapped

    return register


class OverlappedOptimizer(abc.ABC):
    """What makes an optimizer step while backward runs."""

    def __init__(self, optim_cls):
        self.optim_cls = optim_cls

    @abc.abstractmethod
    def register_ddp(self, ddp):
        """Register with a DistributedDataParallel."""


@register_overlapped(Optimizer)
class _OverlappedStandardOptimizer(OverlappedOptimizer):
    """Any optimizer that as_functional_optim knows."""

    def __init__(self, optim_cls, params, *optim_args, **optim_kwargs):
        super().__init__(optim_cls)
        self._opt_hook_state = _OptimizerHookState(as_functional_optim(optim_cls, *optim_args, **optim_kwargs), params)

    def register_ddp(self, ddp):
        ddp.register_comm_hook(None, _hook_then_optimizer(allreduce_hook, self._opt_hook_state))


def _as_overlapped_optim(optim_cls, params, *args, **kwargs):
    """An optimizer of `optim_cls(params, *args, **kwargs)` that steps while backward runs."""
    for kind in inspect.getmro(optim_cls):
        if kind in _registered_overlapped_optims:
            return _registered_overlapped_optims[kind](optim_cls, params, *args, **kwargs)
    raise ValueError(f"_as_overlapped_optim: nothing is registered for {optim_cls}")
