"""The graph as an object: its nodes and edges, hooks on what backward keeps, and hooks on several gradients at once."""

import contextlib
import threading
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Iterable

import cresset
from cresset import _native
from cresset._native import Node, Tensor

from .hooks import RemovableHandle

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "region_activation_memory_budget",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


# ---- edges and versions


class GradientEdge(namedtuple("GradientEdge", "node output_nr ownership_token", defaults=(None,))):
    """Where a gradient flows: a node and the number of its result. It can stand for the tensor in `backward` and
    `grad`.

    `ownership_token` is what keeps the node alive.
    """

    __slots__ = ()


def get_gradient_edge(tensor):
    """The edge along which the gradient of a tensor flows.

    >>> x = cresset.ones(2, requires_grad=True)
    >>> get_gradient_edge(x * 2).node.name()
    'MulBackward0'
    """
    node, number = _native.gradient_edge(tensor)
    return GradientEdge(node, number, tensor)


def increment_version(tensor):
    """Say that a tensor (or each of several) was changed by something autograd does not see."""
    for t in [tensor] if isinstance(tensor, Tensor) else tensor if isinstance(tensor, Iterable) else [tensor]:
        if not isinstance(t, Tensor):
            raise TypeError(f"increment_version: expected a Tensor, got {type(t).__name__}")
        _native.bump_version(t)


# ---- hooks of nodes


def set_warn_on_accumulate_grad_stream_mismatch(enabled):
    """Whether to warn when a gradient is added on another stream than its leaf's. Backward runs in the caller's stream,
    so it never is.
    """
    if not isinstance(enabled, bool):
        raise TypeError(f"set_warn_on_accumulate_grad_stream_mismatch: expected a bool, got {type(enabled).__name__}")


def register_hook(node, fn):
    """Call `fn(grad_inputs, grad_outputs)` after the node's backward; what it returns, unless None, replaces
    grad_inputs.
    """
    return add_hook(node, fn, before=False)


def register_prehook(node, fn):
    """Call `fn(grad_outputs)` before the node's backward; what it returns, unless None, replaces grad_outputs."""
    return add_hook(node, fn, before=True)


def add_hook(node, fn, before):
    hooks = node._hook_dict(before)
    if hooks is None:
        hooks = OrderedDict()
        node._add_hook_dict(hooks, before)
    handle = RemovableHandle(hooks)
    hooks[handle.id] = fn
    return handle


def register_hook_dict(node, tensor):
    """Let the hooks of a tensor (`tensor._backward_hooks`) see the node's first gradient."""
    hooks = tensor._backward_hooks

    def before(grads):
        grad = grads[0]
        for hook in list(hooks.values()):
            if (changed := hook(grad)) is not None:
                grad = changed
        return (grad, *grads[1:])

    add_hook(node, before, before=True)


Node.register_hook = register_hook
Node.register_prehook = register_prehook
Node._register_hook_dict = register_hook_dict


class GradientInfo(namedtuple("GradientInfo", "shape dtype device")):
    """What is known of a gradient that a node takes."""

    __slots__ = ()
    is_nested_tensor = is_cpp_nested_tensor = False


Node._input_metadata = property(
    lambda node: tuple(GradientInfo(*result) for result in node._results()),
    doc="Of each gradient that comes in: its shape, dtype and device.",
)


# ---- what backward keeps


def saved_value(node, name):
    """`grad_fn._saved_self`, `_saved_other`, `_saved_dim`, ...: what the node of an operator keeps, by PyTorch's
    names; `_raw_saved_self`: a tensor as it is kept, which takes hooks."""
    for prefix, look in (("_saved_", "_saved"), ("_raw_saved_", "_raw_saved")):
        if name.startswith(prefix):
            wanted, kept = name.removeprefix(prefix), getattr(node, look)()
            for key in (wanted, "input") if wanted == "self" else (wanted,):
                if key in kept:
                    return kept[key]
    raise AttributeError(f"{type(node).__name__!r} object has no attribute {name!r}")


Node.__getattr__ = saved_value


class saved_tensors_hooks:
    """In the block, each tensor that backward needs goes through `pack_hook` when saved and `unpack_hook` when needed.

    >>> x = cresset.full((2,), 3.0, requires_grad=True)
    >>> with saved_tensors_hooks(lambda t: t.tolist(), lambda kept: cresset.tensor(kept)):
    ...     y = x * x
    >>> y.sum().backward()
    >>> x.grad
    tensor([6., 6.])
    """

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self):
        _native.push_saved_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *_):
        _native.pop_saved_hooks()


class save_on_cpu(saved_tensors_hooks):
    """In the block, what backward needs is kept in the CPU's memory and brought back to its device when needed.

    >>> x = cresset.full((2,), 3.0, requires_grad=True)
    >>> with save_on_cpu():
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([6., 6.])
    """

    def __init__(self, pin_memory=False, device_type="cuda"):
        can_pin = getattr(cresset, device_type, cresset.cuda).is_available()

        def pack(tensor):
            if not pin_memory:
                return tensor.device, tensor.cpu()
            pinned = cresset.empty(
                tensor.size(),
                dtype=tensor.dtype,
                layout=tensor.layout,
                device="cpu",
                pin_memory=can_pin and tensor.layout is cresset.strided,
            )
            return tensor.device, pinned.copy_(tensor)

        def unpack(packed):
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message):
    """In the block, saved_tensors_hooks raises a RuntimeError with this message.

    >>> with disable_saved_tensors_hooks("not here"):
    ...     with saved_tensors_hooks(lambda t: t, lambda t: t):
    ...         pass
    Traceback (most recent call last):
    RuntimeError: not here
    """
    before = _native.disable_saved_hooks(error_message)
    try:
        yield
    finally:
        _native.disable_saved_hooks(before)


class MutationContext:
    """What was saved in one allow_mutation_on_saved_tensors block: by memory, version and geometry, a copy each, which
    shares its memory with the tensor until that is changed.
    """

    def __init__(self):
        self.tid_to_weakhandle = weakref.WeakValueDictionary()

    @property
    def cloned(self):
        """Those that have memory of their own, since their tensors, which are still there, were changed."""
        return {key: kept.tensor for key, kept in self.tid_to_weakhandle.items() if kept.is_apart()}

    def kept(self, tensor):
        if type(tensor).__torch_dispatch__ is not Tensor.__torch_dispatch__ or tensor.layout is not cresset.strided:
            key, copy = id(tensor), Tensor.clone
        else:
            place = _native.storage_address(tensor), tensor._version, tensor.storage_offset()
            key, copy = (*place, tensor.shape, tensor.stride(), tensor.dtype), Tensor._lazy_clone
        kept = self.tid_to_weakhandle.get(key)
        if kept is None or isinstance(key, int):
            kept = self.tid_to_weakhandle[key] = KeptCopy(copy(tensor), tensor)
        return kept

    def clear(self):
        for kept in list(self.tid_to_weakhandle.values()):
            kept.tensor = None
        self.tid_to_weakhandle.clear()


class KeptCopy:
    """A saved tensor as it was."""

    def __init__(self, copy, tensor):
        self.tensor, self.of = copy, weakref.ref(tensor)

    def is_apart(self):
        tensor = self.of()
        if self.tensor is None or tensor is None or tensor.layout is not cresset.strided:
            return False
        return _native.address_for_readers(tensor) != _native.address_for_readers(self.tensor)


@contextlib.contextmanager
def allow_mutation_on_saved_tensors():
    """In the block, tensors that backward needs may be changed in place: backward uses what they were. It must run in
    the block too.

    A saved tensor is copied when it is changed.

    >>> x = cresset.full((2,), 3.0, requires_grad=True)
    >>> with allow_mutation_on_saved_tensors():
    ...     y = x * 1
    ...     z = y * y
    ...     y.zero_()
    ...     z.sum().backward()
    tensor([0., 0.], grad_fn=<ZeroBackward0>)
    >>> x.grad
    tensor([6., 6.])
    """
    context = MutationContext()

    def unpack(kept):
        if kept.tensor is None:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was "
                "originally recorded."
            )
        return kept.tensor

    if getattr(mutation, "allowed", False):
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    mutation.allowed = True
    try:
        with saved_tensors_hooks(context.kept, unpack):
            yield context
    finally:
        mutation.allowed = False
        context.clear()


mutation = threading.local()


# ---- several gradients at once


class MultiGradHandle(RemovableHandle):
    """Takes the hooks of all tensors out again."""

    def __init__(self, handles):
        self.handles = tuple(handles)

    def remove(self):
        for handle in self.handles:
            handle.remove()

    def __getstate__(self):
        return self.handles

    def __setstate__(self, state):
        self.handles = state


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Call `fn` in backward when the gradients of several tensors are there.

    Args:
        mode: "all": `fn(grads)`, once in each backward that reaches any of them, when the last of those it reaches is
            computed; grads has None for the others. "any": `fn(grad)` with the first.

    >>> a, b = cresset.ones(1, requires_grad=True), cresset.ones(1, requires_grad=True)
    >>> _ = register_multi_grad_hook([a, b], lambda grads: print(grads))
    >>> (2 * a + 3 * b).backward()
    [tensor([2.]), tensor([3.])]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    edges = [get_gradient_edge(t) for t in tensors]
    thread = threading.local()  # a backward runs in one thread; several may run at once

    def hook_for(place):
        def hook(grad):
            run = _native.current_backward()
            if getattr(thread, "run", None) != run:
                thread.run, thread.seen, thread.grads = run, 0, [None] * len(tensors)
                thread.expected = sum(_native.will_run(edge.node) for edge in edges)
            thread.seen += 1
            thread.grads[place] = grad
            if mode == "all" and thread.seen == thread.expected:
                grads, thread.run = thread.grads, None
                fn(grads)
            elif mode == "any" and thread.seen == 1:
                fn(grad)

        return hook

    return MultiGradHandle(t.register_hook(hook_for(place)) for place, t in enumerate(tensors))


# ---- what a compiled region keeps


def region_activation_memory_budget(budget):
    """Within a compiled region: keep at most this part of the activations for backward, and compute the others again.

    Args:
        budget: 1.0 keeps what backward reads, as without it. Less is not supported: `torch.utils.checkpoint` computes
            again what is in it.

    >>> @cresset.compile
    ... def double(x):
    ...     with region_activation_memory_budget(1.0):
    ...         return 2 * x
    >>> double(cresset.ones(2))
    tensor([2., 2.])
    """
    who = "torch.autograd.graph.region_activation_memory_budget"
    if isinstance(budget, bool) or not isinstance(budget, (int, float)):
        raise TypeError(f"{who}: expects a float, got {type(budget).__name__}")
    if not 0.0 <= budget <= 1.0:
        raise ValueError(f"{who}: must be in [0, 1], got {budget}")
    from ..compiler import is_compiling  # upward: is there a region?

    if not is_compiling():
        raise RuntimeError(f"{who} can only be used inside a torch.compile region; it has no effect in eager mode.")
    if budget < 1:
        raise NotImplementedError(
            f"{who}: a budget of {budget} is not supported: all that backward reads is kept. torch.utils.checkpoint "
            "computes it again"
        )
    return contextlib.nullcontext()
