"""autograd.Function inside vmap: the user's own rule, one made from forward and backward, or leading dimensions.

As any operator's, a call is recorded at the level at which it is made if a tensor of that level wants it, and computed
from the batches below (Note [Levels] in batching.py).
"""

from collections import namedtuple
from functools import partial

import cresset
from cresset import _native
from cresset._native import Tensor, batch_of, detach_raw, level_of, sample_of
from cresset.autograd import forward_ad
from cresset.autograd.function import BatchFunction, Function
from cresset.pytree import tree_leaves, tree_map

from .batching import closed_from, expanded, frame_of, frames, opened

VmapInfo = namedtuple("VmapInfo", "batch_size randomness")


def apply(function, args, split):
    """What Function.apply does when an argument is a tensor of vmap."""
    tensors = [arg for arg in args if isinstance(arg, Tensor)]
    top = max(map(level_of, tensors))
    frame = frame_of(top, function.__name__)
    here = [arg for arg in tensors if level_of(arg) == top]
    recorded = _native.is_grad_enabled() and any(arg.requires_grad for arg in here)
    numbers = forward_ad.levels_of(here)
    values, dims = tree_map(partial(parted, level=top), list(args)), tree_map(partial(parted, level=top, at=1), args)
    if not (split or issubclass(function, BatchFunction)):
        raise RuntimeError(
            f"{function.__name__}: In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, "
            "jacrev, ...), it must override the "
            "setup_context staticmethod and take no ctx in forward"
        )
    seen = None
    if all(dim is None for dim in tree_leaves(dims)):
        result = tree_map(
            lambda value: sample_of(value, None, top) if isinstance(value, Tensor) else value, function.apply(*values)
        )
    elif issubclass(function, BatchFunction):
        result, seen = over_leading_dimensions(function, values, dims, frame)
    else:
        result = by_rule(function, values, dims, frame)
    if not (recorded or numbers):
        return result
    one = not isinstance(result, tuple)
    outputs = (result,) if one else result
    ctx = function._backward_cls()
    ctx.needs_input_grad = tuple(isinstance(arg, Tensor) and arg.requires_grad and level_of(arg) == top for arg in args)
    if split:
        function.setup_context(ctx, tuple(args), result)
    elif seen is None:
        with cresset.no_grad():  # every sample is the same: the context of the batch would do, but for its level
            outputs = function._run_forward(ctx, args, split)
            one, outputs = not isinstance(outputs, tuple), outputs if isinstance(outputs, tuple) else (outputs,)
    else:
        take_over(ctx, seen, args, outputs, top)
    constants = [arg if level_of(arg) == top else detach_raw(arg) for arg in tensors]
    outputs = function._attach(ctx, args, constants, outputs, recorded)
    for number in numbers:
        function._push_tangents(ctx, forward_ad.tangents_of(args, number), outputs, number, [None] * len(outputs))
    return outputs[0] if one else outputs


def parted(value, level, at=0):
    """What an argument is below the level: a batch (`at` 0) with the dimension of its samples (1), or as it is, and
    None.
    """
    return batch_of(value)[at] if level_of(value) == level else (value, None)[at]


def sampled(value, frame):
    """A result of the batch as a tensor of the level. One that has not the batch in front is a placeholder."""
    if not isinstance(value, Tensor):
        return value
    return sample_of(value, 0 if value.dim() and value.size(0) == frame.batch_size else None, frame.number)


def over_leading_dimensions(function, values, dims, frame):
    """The batch as the first of the leading dimensions that the Function takes. Also what the call below kept."""
    lead = next(v.dim() - (d is not None) for v, d in zip(values, dims, strict=True) if isinstance(v, Tensor)) - 2

    def aligned(value, dim):
        """Numbers broadcast with the leading dimensions of the first tensor; the others have the same leading
        dimensions.
        """
        if not isinstance(value, Tensor) or (dim is None and not value.dim()):
            return value
        return (
            expanded(value, dim, frame.batch_size) if value.dim() > 1 or dim is None else value.reshape(-1, *[1] * lead)
        )

    values = list(map(aligned, values, dims))
    kept = []
    result = function._applied(values, False, kept)
    outputs = result if isinstance(result, tuple) else (result,)
    samples = tuple(sampled(value, frame) for value in outputs)
    return samples if isinstance(result, tuple) else samples[0], (values, kept[0])


def take_over(ctx, seen, args, outputs, level):
    """Give a context what the one of the batch has: its arguments and results, and else what stands for the samples."""
    values, (below, raw, saved) = seen
    frame = frame_of(level, "autograd.Function")

    def risen(value):
        for own, item in (*zip(values, args, strict=True), *zip(raw, outputs, strict=True)):
            if value is own:
                return item
        return sampled(value, frame)

    for name in ("materialize_grads",):
        setattr(ctx, name, getattr(below, name))
    ctx.non_differentiable = tuple(map(risen, below.non_differentiable))
    for name, value in vars(below).items():
        if (
            name not in vars(ctx)
            and not name.startswith("_")
            and name not in ("to_save", "non_differentiable", "needs_input_grad")
        ):
            setattr(ctx, name, tree_map(risen, value))
    ctx.save_for_backward(*map(risen, saved))


def by_rule(function, values, dims, frame):
    """The result by the Function's own rule, or the one made from its other methods."""
    name, has_rule = function.__name__, function.vmap is not Function.vmap
    if function.generate_vmap_rule:
        if has_rule:
            raise RuntimeError(
                f"You tried to vmap over {name}, but it has both generate_vmap_rule=True and an overridden vmap "
                "staticmethod. Please set only one of them"
            )
        return generated(function, dims, frame, values)
    if not has_rule:
        raise RuntimeError(
            f"You tried to vmap over {name}, but it does not have vmap support. Please override and implement the "
            "vmap staticmethod or set generate_vmap_rule=True"
        )
    with closed_from(frame):
        result = function.vmap(VmapInfo(frame.batch_size, frame.randomness), dims, *values)
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure "
            f"compatible with the output. Got {type(result)}"
        )
    output, out_dims = result
    outputs = output if isinstance(output, tuple) else (output,)
    out_dims = out_dims if isinstance(out_dims, tuple) else (out_dims,) * len(outputs)

    def sample(value, dim):
        return sample_of(value, dim, frame.number) if isinstance(value, Tensor) else value

    samples = tuple(tree_map(sample, o, d) for o, d in zip(outputs, out_dims, strict=True))
    return samples if isinstance(output, tuple) else samples[0]


class Samples:
    """The context that the user's methods see in a generated rule: they keep tensors of samples, the real one keeps
    batches.
    """

    def __init__(self, ctx, frame):
        self.__dict__.update(_ctx=ctx, _frame=frame, _dims=(), _outputs=[])

    def _save(self, tensors):
        pairs = [batch_of(t) if t is not None and level_of(t) == self._frame.number else (t, None) for t in tensors]
        self.__dict__["_dims"] = [dim for _, dim in pairs]
        return [value for value, _ in pairs]

    def save_for_backward(self, *tensors):
        self._ctx.save_for_backward(*self._save(tensors))

    def save_for_forward(self, *tensors):
        self._ctx.save_for_forward(*self._save(tensors))

    def mark_non_differentiable(self, *tensors):
        self._ctx.mark_non_differentiable(
            *[value for value, sample in self._outputs if any(sample is t for t in tensors)]
        )

    def mark_dirty(self, *tensors):
        raise RuntimeError(
            "vmap: mark_dirty is not possible with generate_vmap_rule=True; override the vmap staticmethod instead"
        )

    def set_materialize_grads(self, value):
        self._ctx.set_materialize_grads(value)

    @property
    def needs_input_grad(self):
        return self._ctx.needs_input_grad

    @property
    def saved_tensors(self):
        saved = self._ctx.saved_tensors
        return tuple(
            t if dim is None and t is None else sample_of(t, dim, self._frame.number)
            for t, dim in zip(saved, self._dims, strict=True)
        )


def generated(function, dims, frame, values):
    """A Function of the batches made of the methods of a Function of samples, and its result on `values`."""
    reopened = frame
    out_dims = []

    class inside:
        """A block in the frame, as it was when the call was made."""

        def __enter__(self):
            self.blocks = []
            if len(frames()) >= reopened.number:
                self.blocks.append(closed_from(reopened))
            self.blocks.append(opened(reopened.batch_size, reopened.randomness))
            for block in self.blocks:
                block.__enter__()

        def __exit__(self, *details):
            for block in reversed(self.blocks):
                block.__exit__(*details)

    def sample(value, dim):
        return tree_map(lambda v, d: sample_of(v, d, reopened.number) if isinstance(v, Tensor) else v, value, dim)

    def split(value):
        return batch_of(value) if level_of(value) == reopened.number else (value, None)

    def forward(*batches):
        with inside():
            result = function.forward(*map(sample, batches, dims))
        pairs = [split(item) for item in (result if isinstance(result, tuple) else (result,))]
        out_dims[:] = [dim for _, dim in pairs]
        outputs = tuple(value for value, _ in pairs)
        return outputs if isinstance(result, tuple) else outputs[0]

    def setup_context(ctx, inputs, output):
        samples = Samples(ctx, reopened)
        ctx.samples = samples
        ctx.shapes = [value.shape if isinstance(value, Tensor) else None for value in inputs]
        with inside():
            outputs = output if isinstance(output, tuple) else (output,)
            pairs = [(value, sample(value, dim)) for value, dim in zip(outputs, out_dims, strict=True)]
            samples._outputs.extend(pairs)
            results = tuple(item for _, item in pairs)
            function.setup_context(
                samples, tuple(map(sample, inputs, dims)), results if isinstance(output, tuple) else results[0]
            )
            samples._outputs.clear()

    def backward(ctx, *grads):
        with inside():
            slopes = function._backward()(
                ctx.samples, *(None if g is None else sample(g, d) for g, d in zip(grads, out_dims, strict=True))
            )
            slopes = slopes if isinstance(slopes, tuple) else (slopes,)
            pairs = [(None, None) if slope is None else split(slope) for slope in slopes]
        return tuple(
            None if value is None else to_input(value, at, dim, shape)
            for (value, at), dim, shape in zip(
                pairs, (*dims, *[None] * len(pairs)), (*ctx.shapes, *[None] * len(pairs)), strict=False
            )
        )

    def to_input(value, at, dim, shape):
        """The gradient for an input with the batch at `dim`; without one, the sum over the samples."""
        if dim is None:
            return value * reopened.batch_size if at is None else value.sum(at)
        value = expanded(value, at, reopened.batch_size)
        if shape is not None and value.ndim >= len(shape):  # the gradient of a sample may be that of its broadcast
            sample_shape = [size for place, size in enumerate(shape) if place != dim % len(shape)]
            more = value.ndim - 1 - len(sample_shape)
            value = value.sum(tuple(range(1, more + 1))) if more else value
            ones = [k + 1 for k, size in enumerate(sample_shape) if size == 1 != value.shape[k + 1]]
            value = value.sum(ones, keepdim=True) if ones else value
        return value.movedim(0, dim)

    def jvp(ctx, *tangents):
        with inside():
            pushed = function.jvp(
                ctx.samples, *(sample(t, d) if t is not None else t for t, d in zip(tangents, dims, strict=True))
            )
            pairs = [
                split(t) if t is not None else (None, None)
                for t in (pushed if isinstance(pushed, tuple) else (pushed,))
            ]
        results = tuple(
            value if value is None or dim is None else expanded(value, at, reopened.batch_size).movedim(0, dim)
            for (value, at), dim in zip(pairs, out_dims, strict=True)
        )
        return results if isinstance(pushed, tuple) else results[0]

    methods = {"forward": forward, "setup_context": setup_context, "backward": backward, "generate_vmap_rule": True}
    if function.jvp is not Function.jvp:
        methods["jvp"] = jvp
    methods = {name: staticmethod(method) if callable(method) else method for name, method in methods.items()}
    with closed_from(frame):
        result = type("Vmapped" + function.__name__, (Function,), methods).apply(*values)
    samples = tuple(
        sample(o, d) for o, d in zip(result if isinstance(result, tuple) else (result,), out_dims, strict=True)
    )
    return samples if isinstance(result, tuple) else samples[0]
