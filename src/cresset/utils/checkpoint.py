"""Checkpointing: keep the inputs of a part of the model instead of its intermediate values, and compute those again in
backward.

Note [Computing again]
Inside `checkpoint(f, *args)` every tensor that backward would save is replaced by a mark with its number. When backward
asks for the first of them, f runs again on the same inputs, with the same random numbers; what it saves, in the same
order, are the values. f may stop as soon as the last one is there. A backward gets each value once; for the next one f
runs again.
"""

import contextlib
import sys
import threading
import warnings
import weakref

import cresset
from cresset import _native
from cresset._native import Tensor
from cresset.autograd.function import Function
from cresset.autograd.graph import saved_tensors_hooks
from cresset.overrides import OperatorMode

from .selective_checkpoint import (
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
    ignored_operators,
    modes,
)

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "GraphExecGroup",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]


def __getattr__(name):
    if name == "SAC_IGNORED_OPS":
        return ignored_operators()
    if name in ("_CachingTorchDispatchMode", "_CachedTorchDispatchMode"):
        return next(mode for mode in modes() if mode.__name__ == name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class CheckpointError(RuntimeError):
    """Computing again did not do what was done the first time."""


def noop_context_fn():
    """Two contexts that do nothing: for the first computation and for the second."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(
    function,
    *args,
    use_reentrant=None,
    context_fn=noop_context_fn,
    determinism_check="default",
    debug=False,
    early_stop=True,
    **kwargs,
):
    """`function(*args, **kwargs)`, keeping only its inputs for backward, which computes the rest again.

    Args:
        use_reentrant: False, the better one: computes again when backward first needs something. True: an
            autograd.Function that runs a backward inside backward; then no keyword arguments, no autograd.grad, and an
            input must require a gradient.
        preserve_rng_state: draw the same random numbers again (the default).
        context_fn: gives two contexts, for the first computation and for the second.
        determinism_check: "default" compares shapes, dtypes and devices of what is saved; "none" does not.
        debug: an error tells the operators that ran the first time and again.
        early_stop: the second computation stops when the last value that is needed is there.

    >>> x = cresset.full((2,), 3.0, requires_grad=True)
    >>> y = checkpoint(lambda x: (x * x).sum(), x, use_reentrant=False)
    >>> y.backward()
    >>> x.grad
    tensor([6., 6.])
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. use_reentrant=False is "
            "recommended; "
            "without it, use_reentrant=True is taken.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in CHECKS:
        raise ValueError(f"determinism_check should be one of {list(CHECKS)}, but got {determinism_check}")
    debug = debug if Settings.debug is None else Settings.debug
    early_stop = early_stop if Settings.early_stop is None else Settings.early_stop
    if debug and context_fn is not noop_context_fn:
        raise ValueError("debug=True is incompatible with non-default context_fn")
    first, again = (OperatorLog(), OperatorLog()) if debug else context_fn()
    if not _native.is_grad_enabled():
        with first:
            return function(*args, **kwargs)
    part = Part(
        function, args, kwargs, Ambience(args) if preserve else None, again, CHECKS[determinism_check], early_stop
    )
    if debug:
        part.logs = first, again
    ended = False
    with saved_tensors_hooks(part.pack, part.unpack), first:
        result = function(*args, **kwargs)
        ended = True
    if not ended:
        raise RuntimeError(
            "torch.utils.checkpoint: the first context of context_fn suppressed an exception of the "
            "function, which has no result then"
        )
    part.is_whole = True
    return result


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """Run the functions one after another, all segments but the last checkpointed.

    >>> double = lambda x: x * 2
    >>> x = cresset.ones(1, requires_grad=True)
    >>> checkpoint_sequential([double, double, double], 2, x, use_reentrant=False).backward()
    >>> x.grad
    tensor([8.])
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. "
            "use_reentrant=False is recommended; without it, use_reentrant=True is taken.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(functions) // segments
    parts = [functions[k * size : (k + 1) * size] for k in range(segments - 1)] + [functions[(segments - 1) * size :]]

    def run(part):
        def run_part(input):
            for function in part:
                input = function(input)
            return input

        return run_part

    for part in parts[:-1]:
        input = checkpoint(run(part), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return run(parts[-1])(input)


# ---- settings for a block


class Settings:
    early_stop = None
    debug = None


@contextlib.contextmanager
def set_checkpoint_early_stop(enable):
    """In the block, whether a second computation may stop early, whatever the calls say."""
    before, Settings.early_stop = Settings.early_stop, enable
    try:
        yield
    finally:
        Settings.early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled):
    """In the block, whether errors tell the operators that ran, whatever the calls say."""
    before, Settings.debug = Settings.debug, enabled
    try:
        yield
    finally:
        Settings.debug = before


class DefaultDeviceType:
    """The kind of accelerator whose random numbers are preserved when no argument says."""

    device_type = "cuda"

    @staticmethod
    def set_device_type(device="cuda"):
        DefaultDeviceType.device_type = device

    @staticmethod
    def get_device_type():
        return DefaultDeviceType.device_type


# ---- use_reentrant=False; see Note [Computing again]


def description(tensor):
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


CHECKS = {"default": description, "none": lambda tensor: None}


class Enough(Exception):
    """Everything that is needed has been computed again."""


OUTSIDE = -1  # the number of the backward where there is none: someone reads what a node keeps


class GraphExecGroup:
    """Several backward calls that count as one: in the block, what a checkpoint computes again for one of them is there
    for the next. No two of them may need the same value.

    >>> x = cresset.ones(1, requires_grad=True)
    >>> y = checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False)
    >>> with GraphExecGroup():
    ...     y.backward()
    """

    groups = threading.local()

    def __enter__(self):
        if GraphExecGroup.current() is not None:
            raise RuntimeError("GraphExecGroup contexts cannot be nested")
        self.groups.current = self
        return self

    def __exit__(self, *_):
        self.groups.current = None

    @classmethod
    def current(cls):
        """The group of the block that this thread is in, if any."""
        return getattr(cls.groups, "current", None)


class Kept:
    """What stands for a saved tensor in the graph."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number):
        self.number = number


class Part:
    """One checkpointed call: what is needed to compute it again, and the values once that has happened."""

    logs = None

    def __init__(self, function, args, kwargs, ambience, context, describe, early_stop):
        self.function, self.kwargs, self.ambience, self.context = function, kwargs, ambience, context
        self.describe, self.early_stop = describe, early_stop
        self.described = []  # what was saved the first time
        self.kept = []  # and what stands for it, as long as the graph holds that
        self.is_whole = False  # the first computation is over
        self.values = weakref.WeakKeyDictionary()  # Kept -> run -> value, between the second computation and its use
        self.runs = set()  # those for which it was computed again
        # The inputs are saved by a node, so that an enclosing checkpoint replaces them too.
        places = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
        self.others = [None if isinstance(arg, Tensor) else arg for arg in args]
        self.places = places
        marker = cresset.empty((), requires_grad=True)
        self.inputs = KeepInputs.apply(marker, *(args[i] for i in places))

    def pack(self, tensor):
        kept = Kept(len(self.described))
        self.described.append(self.describe(tensor))
        self.kept.append(weakref.ref(kept))
        return kept

    def unpack(self, kept):
        run = GraphExecGroup.current() or _native.current_backward()
        if run not in self.runs or run == OUTSIDE:
            self.compute_again(run)
            self.runs.add(run)
        value = self.values.get(kept, {}).pop(run, None)
        if value is None:
            raise CheckpointError(self.unpacked_twice(run))
        return value

    def unpacked_twice(self, run):
        if isinstance(run, GraphExecGroup):
            return (
                "torch.utils.checkpoint: Performing two backward calls that overlap (that need the same saved tensors) "
                "inside of one GraphExecGroup is not possible: what was computed again is handed out once"
            )
        return (
            "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once in this "
            "backward. What is computed again is let go as soon as it is used: read `ctx.saved_tensors` once and keep "
            "the values in variables"
        )

    def arguments(self):
        args = list(self.others)
        for place, tensor in zip(self.places, self.inputs.grad_fn.saved_tensors, strict=True):
            args[place] = tensor
        return args

    def compute_again(self, run):
        found = []
        needed, was_whole = len(self.described), self.is_whole

        def pack(tensor):
            found.append(self.describe(tensor))
            if len(found) <= needed:
                if (kept := self.kept[len(found) - 1]()) is not None:
                    self.values.setdefault(kept, {})[run] = without_history(tensor, args)
            elif not self.early_stop and was_whole:
                raise CheckpointError(
                    (
                        "torch.utils.checkpoint: trying to save more tensors during recomputation than during the "
                        "original forward pass."
                    )
                    + self.traces()
                )
            if self.early_stop and len(found) == needed:
                raise Enough
            return without_history(tensor, args)

        args = self.arguments()
        with contextlib.ExitStack() as stack:
            if self.ambience is not None:
                stack.enter_context(self.ambience.restored())
            stack.enter_context(contextlib.suppress(Enough))
            stack.enter_context(self.context)
            stack.enter_context(cresset.enable_grad())
            stack.enter_context(saved_tensors_hooks(pack, lambda tensor: tensor))
            self.function(*args, **self.kwargs)
        self.compare(found if was_whole else found[:needed])

    def compare(self, found):
        if len(found) != len(self.described):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                "recomputation.\n"
                f"Number of tensors saved during forward: {len(self.described)}\n"
                f"Number of tensors saved during recomputation: {len(found)}." + self.traces()
            )
        different = [i for i, (a, b) in enumerate(zip(self.described, found, strict=True)) if a != b]
        if different:
            lines = "\n".join(
                f"tensor at position {i}:\nsaved metadata: {self.described[i]}\nrecomputed metadata: {found[i]}"
                for i in different
            )
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                "during the forward "
                f"pass.\n{lines}" + self.traces()
            )

    def traces(self):
        if self.logs is None:
            return "\nWith debug=True this message tells the operators that ran."
        first, again = self.logs
        told = "You are seeing this error because you passed `debug=True` to checkpoint, or set it for a block."
        return f"\n{told}\nOperators in forward:\n  {first}\nOperators in recomputation:\n  {again}"


def without_history(tensor, args):
    """What is kept of a tensor: an argument without a history is kept as it is, so that it stays the same object."""
    is_argument = not tensor.requires_grad and any(arg is tensor for arg in args)
    return tensor if is_argument else tensor.detach()


class KeepInputs(Function):
    """A node that does nothing but keep tensors, under the saved-tensor hooks of whoever is around."""

    @staticmethod
    def forward(ctx, _marker, *tensors):
        ctx.save_for_backward(*tensors)
        return cresset.empty(0)

    @staticmethod
    def backward(ctx, grad):
        raise AssertionError("checkpoint: nothing flows back here")


class OperatorLog(OperatorMode):
    """A context that writes down the operators that are called, with the shapes of their tensors."""

    def __init__(self):
        self.lines = []

    def __enter__(self):
        self.lines.clear()
        return super().__enter__()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        shapes = ", ".join(str(tuple(a.shape)) if isinstance(a, Tensor) else repr(a) for a in args)
        self.lines.append(f"{func.__name__}({shapes})")
        return func(*args, **(kwargs or {}))

    def __str__(self):
        return "\n  ".join(self.lines)


# ---- what surrounds a computation


class Ambience:
    """The random states and autocast settings at one time, to compute under again."""

    def __init__(self, args):
        self.cpu_state = cresset.get_rng_state()
        self.device_type = device_type_of(args)
        self.devices, self.states = get_device_states(*args)
        self.autocast = autocast_settings(self.device_type)

    @contextlib.contextmanager
    def restored(self):
        cpu_state, (_, states) = cresset.get_rng_state(), states_of(self.device_type, self.devices)
        with contextlib.ExitStack() as stack:
            for settings in self.autocast:
                stack.enter_context(cresset.amp.autocast(**settings))
            cresset.set_rng_state(self.cpu_state)
            set_device_states(self.devices, self.states, device_type=self.device_type)
            try:
                yield
            finally:
                cresset.set_rng_state(cpu_state)
                set_device_states(self.devices, states, device_type=self.device_type)


def autocast_settings(device_type):
    if "cresset.amp" not in sys.modules:
        return []
    return [
        {
            "device_type": kind,
            "enabled": cresset.is_autocast_enabled(kind),
            "dtype": cresset.get_autocast_dtype(kind),
            "cache_enabled": cresset.is_autocast_cache_enabled(),
        }
        for kind in dict.fromkeys(("cpu", device_type))
    ]


def tensors_in(value):
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)


def device_type_of(args):
    kinds = [t.device.type for t in tensors_in(args) if t.device.type not in ("cpu", "meta")]
    return kinds[0] if kinds else DefaultDeviceType.get_device_type()


def states_of(device_type, devices):
    return devices, [getattr(cresset, device_type).get_rng_state(device) for device in devices]


def get_device_states(*args):
    """The devices of the arguments, but for the CPU, and the states of their random numbers."""
    device_type = device_type_of(args)
    return states_of(device_type, sorted({t.get_device() for t in tensors_in(args) if t.device.type == device_type}))


def set_device_states(devices, states, *, device_type=None):
    """Give the devices back the states that get_device_states found."""
    for device, state in zip(devices, states, strict=True):
        getattr(cresset, device_type or DefaultDeviceType.get_device_type()).set_rng_state(state, device)


# ---- use_reentrant=True


def detach_variable(inputs):
    """The inputs as fresh leaves."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(t.detach().requires_grad_(t.requires_grad) if isinstance(t, Tensor) else t for t in inputs)


def check_backward_validity(inputs):
    """Warn when no input requires a gradient, since then none flows through the checkpoint."""
    if not any(t.requires_grad for t in inputs if isinstance(t, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


class CheckpointFunction(Function):
    """Forward without recording; backward computes again, recorded, and runs a backward of its own through that."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.ambience = Ambience(args) if preserve_rng_state else None
        ctx.places = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
        ctx.others = [None if isinstance(arg, Tensor) else arg for arg in args]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        return run_function(*args)

    @staticmethod
    def backward(ctx, *grads):
        if _native.backward_is_partial():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to "
                ".backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() "
                "without passing the "
                "`inputs` argument."
            )
        inputs = list(ctx.others)
        for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            inputs[place] = tensor
        inputs = detach_variable(tuple(inputs))
        with contextlib.nullcontext() if ctx.ambience is None else ctx.ambience.restored(), cresset.enable_grad():
            outputs = ctx.run_function(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [(o, g) for o, g in zip(outputs, grads, strict=True) if isinstance(o, Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        cresset.autograd.backward(*zip(*pairs, strict=True))
        return (None, None, *(t.grad if isinstance(t, Tensor) else None for t in inputs))
