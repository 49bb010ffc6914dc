"""make_graphed_callables: functions and modules whose forward and backward are CUDA graphs, replayed inside of an
autograd Function.
"""

import cresset

from .. import _native, pytree
from ..autograd.function import Function
from .absent import require
from .devices import synchronize
from .graphs import CUDAGraph, graph, graph_pool_handle
from .streams import Stream, current_stream, stream


def _is_module(value):
    from .. import nn  # upward: modules and functions are graphed alike

    return isinstance(value, nn.Module)


def _check(callables, sample_args):
    if cresset.is_autocast_enabled("cuda") and cresset.is_autocast_cache_enabled():
        raise RuntimeError(
            "make_graphed_callables does not support the autocast caching. Please set `cache_enabled=False`."
        )
    if len(callables) != len(sample_args):
        raise ValueError(
            f"make_graphed_callables: there are {len(callables)} callables and sample_args for {len(sample_args)}"
        )
    for number, (function, args) in enumerate(zip(callables, sample_args, strict=True)):
        if _is_module(function):
            if function._backward_hooks or function._forward_hooks or function._forward_pre_hooks:
                raise RuntimeError(
                    "Modules must not have hooks registered at the time they are passed. However, registering hooks "
                    "on modules after passing them through make_graphed_callables is allowed."
                )
            if any(buffer.requires_grad for buffer in function.buffers()):
                raise RuntimeError(
                    "In any :class:`~torch.nn.Module` passed to :func:`~make_graphed_callables`, only parameters may "
                    "be trainable. All buffers must have ``requires_grad=False``."
                )
        if not all(isinstance(value, _native.Tensor) and value.is_cuda for value in pytree.tree_leaves(args)):
            raise TypeError(
                f"make_graphed_callables: sample_args of callable {number} must be tensors on 'cuda', and nothing else"
            )


class _Recorded:
    """The graphs of one callable, and the tensors they read and write."""

    def __init__(self, function, args):
        self.function, self.args = function, args
        self.parameters = tuple(function.parameters()) if _is_module(function) else ()
        self.inputs = (*pytree.tree_leaves(args), *self.parameters)
        self.wanted = [place for place, tensor in enumerate(self.inputs) if tensor.requires_grad]
        self.forward_graph, self.backward_graph = CUDAGraph(), CUDAGraph()

    def run(self):
        """The results, flat."""
        results = self.function(*self.args)
        leaves, self.form = pytree.tree_flatten(results)
        return tuple(leaves)

    def gradients(self, outputs, output_grads, allow_unused):
        """The gradients of the inputs, one for each: None where it is not wanted."""
        found = cresset.autograd.grad(
            outputs=[output for output in outputs if output.requires_grad],
            inputs=[self.inputs[place] for place in self.wanted],
            grad_outputs=[grad for grad in output_grads if grad is not None],
            only_inputs=True,
            allow_unused=allow_unused,
        )
        grads = [None] * len(self.inputs)
        for place, grad in zip(self.wanted, found, strict=True):
            grads[place] = grad
        return tuple(grads)

    def differentiable(self, outputs):
        return bool(self.wanted) and any(output.requires_grad for output in outputs)

    def warm_up(self, allow_unused):
        outputs = self.run()
        if self.differentiable(outputs):
            self.gradients(
                outputs,
                [cresset.empty_like(output) if output.requires_grad else None for output in outputs],
                allow_unused,
            )

    def record_forward(self, pool):
        with graph(self.forward_graph, pool=pool):
            self.outputs = self.run()

    def record_backward(self, pool, allow_unused):
        self.output_grads = tuple(
            cresset.empty_like(output) if output.requires_grad else None for output in self.outputs
        )
        self.input_grads = (None,) * len(self.inputs)
        if self.differentiable(self.outputs):
            with graph(self.backward_graph, pool=pool):
                self.input_grads = self.gradients(self.outputs, self.output_grads, allow_unused)


def _replayed(recorded):
    """A function that copies its arguments to where the graphs expect them, and replays."""

    class Graphed(Function):
        @staticmethod
        def forward(ctx, *inputs):
            for static, given in zip(
                recorded.inputs[: len(recorded.inputs) - len(recorded.parameters)], inputs, strict=False
            ):
                if static.data_ptr() != given.data_ptr():
                    static.detach().copy_(given)
            recorded.forward_graph.replay()
            results = tuple(output.detach() for output in recorded.outputs)
            ctx.mark_non_differentiable(
                *(result for result, output in zip(results, recorded.outputs, strict=True) if not output.requires_grad)
            )
            return results

        @staticmethod
        @cresset.autograd.function.once_differentiable
        def backward(ctx, *grads):
            for static, grad in zip(recorded.output_grads, grads, strict=True):
                if static is not None and grad is not None and static.data_ptr() != grad.data_ptr():
                    static.copy_(grad)
            recorded.backward_graph.replay()
            return tuple(None if grad is None else grad.detach() for grad in recorded.input_grads)

    form = pytree.tree_structure(recorded.args)

    def call(*args):
        leaves, given = pytree.tree_flatten(args)
        if given != form:
            raise TypeError("make_graphed_callables: the arguments do not have the form of sample_args")
        for number, (leaf, static) in enumerate(zip(leaves, recorded.inputs, strict=False)):
            if leaf.shape != static.shape or leaf.dtype != static.dtype:
                raise ValueError(
                    f"make_graphed_callables: argument {number} was recorded as {static.dtype} of shape "
                    f"{tuple(static.shape)}, got {leaf.dtype} of shape {tuple(leaf.shape)}"
                )
        return pytree.tree_unflatten(list(Graphed.apply(*leaves, *recorded.parameters)), recorded.form)

    return call


def make_graphed_callables(callables, sample_args, num_warmup_iters=3, allow_unused_input=False, pool=None):
    """Functions or modules whose forward and backward are recorded once and then replayed: one launch for all of their
    work.

    Args:
        callables: a function or module, or a tuple of them in the order in which they will be called.
        sample_args: a tuple of tensors on 'cuda' for each callable, with the shapes, dtypes and requires_grad of the
            real arguments.
        num_warmup_iters: calls before recording; kernels are compiled in them.
        allow_unused_input: whether an input may have no influence on the results.
        pool: memory to share with other graphs, from graph_pool_handle.

    Returns the callables' replacements. A module is given back itself, with a forward that replays while it is in the
    mode (train or eval) it was recorded in. Results and gradients lie in memory of the graphs: the next call overwrites
    them.
    """
    require()
    single = not isinstance(callables, tuple)
    if single:
        callables, sample_args = (callables,), (sample_args,)
    _check(callables, sample_args)
    recorded = [_Recorded(function, args) for function, args in zip(callables, sample_args, strict=True)]

    synchronize()
    side = Stream()
    side.wait_stream(current_stream())
    with stream(side):
        for one in recorded:
            for _ in range(num_warmup_iters):
                one.warm_up(allow_unused_input)
    current_stream().wait_stream(side)
    synchronize()

    # One pool for all: forwards in order and backwards in reverse, as they will be replayed.
    shared = graph_pool_handle() if pool is None else pool
    for one in recorded:
        one.record_forward(shared)
    for one in reversed(recorded):
        one.record_backward(shared, allow_unused_input)

    made = tuple(_replacing(one) for one in recorded)
    return made[0] if single else made


def _replacing(recorded):
    function, call = recorded.function, _replayed(recorded)
    if not _is_module(function):
        return call
    mode, plain = function.training, function.forward

    def forward(*args):
        return call(*args) if function.training == mode else plain(*args)

    function.forward = forward
    return function
