"""Selective checkpointing: which results of a checkpointed part are kept, operator by operator. The names are those of
torch.utils.checkpoint.

Two dispatch modes do it. In the first computation the policy is asked about every call, and results that it keeps are
put aside; when the part is computed again, the calls that made them are not run, and the results are taken from there.
"""

import enum
import functools
from collections import defaultdict

import cresset
from cresset._native import Tensor
from cresset.ops.namespaces import OpOverload
from cresset.pytree import tree_map


class CheckpointPolicy(enum.Enum):
    """What becomes of an operator's results: kept, computed again, or kept on the CPU."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_KEPT = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
_ON_CPU = (CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD)
_NOT_COMPUTED = {"detach", "size", "stride", "dim", "numel", "storage_offset", "is_contiguous", "lift_fresh"}


class SelectiveCheckpointContext:
    """What a policy is told beside the operator and its arguments: the operator's results, and whether the part is
    being computed again (a policy is asked in the first computation only).
    """

    def __init__(self, *, is_recompute, op_output=None):
        self.is_recompute, self.op_output = is_recompute, op_output


class _Kept:
    """A value that was put aside, with its version."""

    def __init__(self, value, on_cpu):
        self.device = value.device if isinstance(value, Tensor) and on_cpu else None
        if isinstance(value, Tensor):
            value = value.detach().cpu() if on_cpu else value.detach()
            self.version = value._version
        self.val = value

    def get(self, allow_mutation):
        if not isinstance(self.val, Tensor):
            return self.val
        if self.val._version != self.version and not allow_mutation:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return self.val if self.device is None else self.val.to(self.device)


def _policy_of(answer):
    if isinstance(answer, bool):
        return CheckpointPolicy.MUST_SAVE if answer else CheckpointPolicy.PREFER_RECOMPUTE
    return answer


_RECOMPUTED = object()  # in the place of results that are not kept
_TAKEN = object()  # and of those that were


@functools.cache
def modes():
    from cresset.dispatch.modes import TorchDispatchMode  # upward: it is operators that are chosen among

    class _CachingTorchDispatchMode(TorchDispatchMode):
        """The first computation. `storage` has, for each call of each operator, its results or _RECOMPUTED."""

        def __init__(self, policy, storage):
            super().__init__()
            self.policy, self.storage = policy, storage

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if func._opname in _NOT_COMPUTED:
                return func(*args, **kwargs)
            result = func(*args, **kwargs)
            context = SelectiveCheckpointContext(is_recompute=False, op_output=result)
            policy = _policy_of(self.policy(context, func, *args, **kwargs))
            if policy in _KEPT or policy in _ON_CPU:
                self.storage[func].append(tree_map(lambda value: _Kept(value, policy in _ON_CPU), result))
            else:
                self.storage[func].append(_RECOMPUTED)
            return result

    class _CachedTorchDispatchMode(TorchDispatchMode):
        """The computation again: call by call what the policy said of the first one."""

        def __init__(self, storage, allow_mutation):
            super().__init__()
            self.storage, self.allow_mutation = storage, allow_mutation

        def __enter__(self):
            self.calls = defaultdict(int)
            return super().__enter__()

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if func._opname in _NOT_COMPUTED:
                return func(*args, **kwargs)
            if func not in self.storage:
                raise RuntimeError(
                    f"{func} encountered during backward, but not found in storage: the first computation did not "
                    "call it"
                )
            entries, call = self.storage[func], self.calls[func]
            self.calls[func] += 1
            if call >= len(entries):
                raise RuntimeError(
                    f"{func} invocation index {call} encountered during backward, but not found in storage: the first "
                    f"computation called it {len(entries)} times"
                )
            if entries[call] is _RECOMPUTED:
                return func(*args, **kwargs)
            if entries[call] is _TAKEN:
                raise RuntimeError(
                    "Trying to backward an extra time. You are only allowed to backward once on any region computed "
                    "under selective activation checkpoint."
                )
            result = tree_map(lambda kept: kept.get(self.allow_mutation), entries[call])
            entries[call] = _TAKEN
            return result

    return _CachingTorchDispatchMode, _CachedTorchDispatchMode


def create_selective_checkpoint_contexts(policy_fn_or_list, allow_cache_entry_mutation=False):
    """The two contexts that `checkpoint(context_fn=...)` wants, by which some operators' results are kept.

    Args:
        policy_fn_or_list: overloads whose results are kept, or `policy(ctx, op, *args, **kwargs)`, which gives a
            CheckpointPolicy (or True to keep).
        allow_cache_entry_mutation: take what was kept even if it was changed in place since.

    >>> import functools
    >>> from cresset.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> contexts = functools.partial(create_selective_checkpoint_contexts, [cresset.ops.aten.sin.default])
    >>> x = cresset.zeros(2, requires_grad=True)
    >>> y = checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False, context_fn=contexts)
    >>> y.sum().backward()
    >>> x.grad
    tensor([1., 1.])
    """
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, OpOverload):
                extra = (
                    f"Please update the OpOverloadPacket to a specific OpOverload. For example, if you have "
                    f"`torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`, got {op}."
                    if hasattr(op, "overloads")
                    else ""
                )
                raise ValueError(f"Expected op in `op_list` to be an OpOverload but got: {type(op)}. {extra}")
        chosen = set(policy_fn_or_list)

        def policy(ctx, op, *args, **kwargs):
            return CheckpointPolicy.MUST_SAVE if op in chosen else CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError(
            "create_selective_checkpoint_contexts: policy_fn_or_list must be either a function or a list of ops, got "
            f"{type(policy_fn_or_list).__name__}"
        )
    caching, cached = modes()
    storage = defaultdict(list)
    return caching(policy, storage), cached(storage, allow_cache_entry_mutation)


def ignored_operators():
    """The operators that no policy is asked about: they compute nothing."""
    found = set()
    for name in sorted(_NOT_COMPUTED):
        packet = getattr(cresset.ops.aten, name, None)
        found.update(getattr(packet, overload) for overload in (packet.overloads() if packet is not None else ()))
    return found
