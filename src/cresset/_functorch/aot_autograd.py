"""Differentiation ahead of time: a function's forward and backward as two graphs, each for a compiler of one's own.

A function is recorded together with its derivative when it is first called with tensors of these sizes and dtypes; the
joint graph is partitioned, and each part is given to its compiler. What the function does beside computing (printing,
attributes) happens in that first call alone, as in PyTorch.
"""

import functools

import cresset

from ..autograd import Function
from ..fx import GraphModule
from ..fx.experimental.proxy_tensor import make_fx
from ..nn.utils.stateless import _functional_call
from ..pytree import tree_flatten, tree_unflatten
from .partitioners import default_partition

__all__ = [
    "aot_function", "aot_module", "aot_module_simplified", "make_boxed_compiler", "make_boxed_func",
]  # fmt: skip


def make_boxed_func(f):
    """`f`, called with a list of its arguments: who calls it need not hold them meanwhile."""

    @functools.wraps(f)
    def boxed(arguments):
        return f(*arguments)

    boxed._boxed_call = True
    return boxed


def make_boxed_compiler(compiler):
    """A compiler whose results take a list of arguments."""

    @functools.wraps(compiler)
    def boxed(graph, example_inputs):
        return make_boxed_func(compiler(graph, example_inputs))

    return boxed


def aot_function(
    fn, fw_compiler, bw_compiler=None, partition_fn=default_partition, decompositions=None, num_params_buffers=0,
    keep_inference_input_mutations=False, inference_compiler=None, *, dynamic=False, enable_log=True,
    disable_functionalization=False, _disable_torch_fn_metadata_mode=False,
):  # fmt: skip
    """`fn`, computed by what compilers make of the graphs of its forward and its backward.

    Args:
        fn: a function of tensors, in lists and dicts as it likes.
        fw_compiler: given the forward graph, a GraphModule, and example inputs, gives a function.
        bw_compiler: the same for the backward graph; `fw_compiler` by default.
        partition_fn: takes the joint graph apart.
        decompositions: {operator: function} of operators to write with others.
        num_params_buffers: how many of the first arguments are parameters and buffers; nothing depends on it here.
        inference_compiler: for calls that need no gradient; `fw_compiler` by default.
        dynamic: whether the graphs shall serve for other sizes, too. Here each choice of sizes has graphs of its own,
            made when it is first met.
        keep_inference_input_mutations, enable_log, disable_functionalization: nothing depends on them here; writes to
            inputs stay writes in the graphs.

    >>> from functorch.compile import aot_function, nop
    >>> squared = aot_function(lambda x: x * x, fw_compiler=nop)
    >>> x = cresset.tensor(3.0, requires_grad=True)
    >>> squared(x).backward()
    >>> x.grad
    tensor(6.)
    """
    compilers = _Compilers(fw_compiler, bw_compiler, inference_compiler, partition_fn, decompositions)
    made = {}

    @functools.wraps(fn)
    def compiled(*args, **kwargs):
        leaves, spec = tree_flatten((args, kwargs))
        key = (str(spec), cresset.is_grad_enabled(), *map(_kind_of, leaves))
        if key not in made:
            made[key] = _compile(fn, leaves, spec, compilers)
        return made[key]([leaf for leaf in leaves if isinstance(leaf, cresset.Tensor)])

    return compiled


def aot_module(mod, *args, **kwargs):
    """A module that computes what `mod` does by `aot_function`, with its parameters and buffers.

    Args:
        mod: the module.
        args, kwargs: as `aot_function` takes them.
    """
    cresset._assert(isinstance(mod, cresset.nn.Module), "aot_module: expected a module")
    function = aot_function(functools.partial(_functional, mod), *args, **kwargs)

    class AOTModule(cresset.nn.Module):
        def __init__(self):
            super().__init__()
            self.orig_module = mod

        def forward(self, *args, **kwargs):
            return function(_state(mod), *args, **kwargs)

    return AOTModule()


def aot_module_simplified(
    mod, args, fw_compiler, bw_compiler=None, partition_fn=default_partition, decompositions=None,
    keep_inference_input_mutations=False, inference_compiler=None, **ignored,
):  # fmt: skip
    """The forward of a graph module, as a backend of `compile` gives it back: see `aot_function`.

    Args:
        mod: the graph module.
        args: example inputs.
    """
    if ignored:
        raise TypeError(f"aot_module_simplified: unexpected arguments {sorted(ignored)}")
    function = aot_function(
        functools.partial(_functional, mod), fw_compiler, bw_compiler, partition_fn, decompositions,
        inference_compiler=inference_compiler,
    )  # fmt: skip

    def forward(*inputs):
        return function(_state(mod), *inputs)

    return forward


def _state(mod):
    return {**dict(mod.named_parameters()), **dict(mod.named_buffers())}


def _functional(mod, state, *args, **kwargs):
    return _functional_call(mod, state, args, kwargs)


class _Compilers:
    """What is made of graphs, and by whom."""

    def __init__(self, forward, backward, inference, partition, decompositions):
        self.forward, self.backward, self.inference = forward, backward or forward, inference or forward
        self.partition, self.decompositions = partition, decompositions


def _kind_of(leaf):
    """What a recording depends on: of a tensor all but its elements."""
    if not isinstance(leaf, cresset.Tensor):
        return (type(leaf), leaf)
    return (leaf.shape, leaf.stride(), leaf.dtype, leaf.device, leaf.requires_grad)


def _compile(fn, leaves, spec, compilers):
    """A function of the tensors among these arguments."""
    places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, cresset.Tensor)]
    tensors = [leaves[k].detach().clone().requires_grad_(leaves[k].requires_grad) for k in places]
    structure = []

    def flat(*inputs):
        given = list(leaves)
        for k, tensor in zip(places, inputs, strict=True):
            given[k] = tensor
        args, kwargs = tree_unflatten(given, spec)
        found, result_spec = tree_flatten(fn(*args, **kwargs))
        structure[:] = [result_spec]
        return found

    differentiated = cresset.is_grad_enabled() and any(t.requires_grad for t in tensors)
    if not differentiated:
        graph = _recorded(lambda *inputs: tuple(flat(*inputs)), tensors, len(tensors), compilers)
        run = _called(compilers.inference(graph, tensors))
        return lambda given: tree_unflatten(list(run(given)), structure[0])
    with cresset.random.fork_rng(devices=[]):
        results = flat(*tensors)
    slopes = [k for k, r in enumerate(results) if isinstance(r, cresset.Tensor) and r.requires_grad]
    if not slopes:  # nothing that is given back has a gradient
        with cresset.no_grad():
            return _compile(fn, [t.detach() if isinstance(t, cresset.Tensor) else t for t in leaves], spec, compilers)
    return _Differentiated(flat, tensors, results, slopes, structure, compilers)


def _recorded(function, inputs, primals, compilers):
    """The graph of a function; its first inputs are called primals, the others tangents."""
    with cresset.random.fork_rng(devices=[]):  # what is drawn while recording is drawn again by the graph
        graph = make_fx(function, compilers.decompositions)(*inputs)
    for k, node in enumerate([n for n in graph.graph.nodes if n.op == "placeholder"]):
        name = f"primals_{k + 1}" if k < primals else f"tangents_{k - primals + 1}"
        node._rename(name)
        node.target = name
    graph.graph.eliminate_dead_code()
    return GraphModule(graph, graph.graph)


def _called(compiled):
    """A compiler's result as a function of a list."""
    return compiled if getattr(compiled, "_boxed_call", False) else lambda arguments: compiled(*arguments)


class _Late:
    """A graph that is compiled when it is first run, for what it is given then."""

    def __init__(self, compiler, graph):
        self.compiler, self.graph, self.made = compiler, graph, None

    def __call__(self, given):
        if self.made is None:
            self.made = _called(self.compiler(self.graph, given))
        return self.made(given)


class _Differentiated:
    """Forward and backward as their compilers made them, as one node of autograd."""

    def __init__(self, flat, tensors, results, slopes, structure, compilers):
        sought = [k for k, tensor in enumerate(tensors) if tensor.requires_grad]
        tangents = [cresset.zeros_like(results[k]) for k in slopes]

        def joint(*inputs):
            primals, given = inputs[: len(tensors)], inputs[len(tensors) :]
            found = flat(*primals)
            gradients = cresset.autograd.grad(
                [found[k] for k in slopes], [primals[k] for k in sought], list(given), allow_unused=True
            )
            by_place = dict(zip(sought, gradients, strict=True))
            return (*found, *(by_place.get(k) for k in range(len(tensors))))

        graph = _recorded(joint, [*tensors, *tangents], len(tensors), compilers)
        forward, backward = compilers.partition(graph, [*tensors, *tangents], num_fwd_outputs=len(results))
        self.node = _node(
            _called(compilers.forward(forward, tensors)), _Late(compilers.backward, backward), len(results), slopes
        )
        self.structure = structure

    def __call__(self, given):
        results = self.node.apply(*given)
        return tree_unflatten(list(results), self.structure[0])


def _node(forward_of, backward_of, count, slopes):
    class CompiledFunction(Function):
        @staticmethod
        def forward(ctx, *inputs):
            given = list(forward_of(list(inputs)))
            results = given[:count]
            ctx.save_for_backward(*given[count:])
            ctx.mark_non_differentiable(
                *(r for k, r in enumerate(results) if k not in slopes and isinstance(r, cresset.Tensor))
            )
            return tuple(results)

        @staticmethod
        def backward(ctx, *gradients):
            with cresset.no_grad():
                found = backward_of([*ctx.saved_tensors, *(gradients[k].contiguous() for k in slopes)])
            if not cresset.is_grad_enabled():
                return tuple(found)
            return _Once.apply(cresset.empty(0, requires_grad=True), *found)

    return CompiledFunction


class _Once(Function):
    """Gradients whose own derivative nobody knows: of a compiled backward there is no graph."""

    @staticmethod
    def forward(ctx, anchor, *gradients):
        return tuple(None if gradient is None else gradient.view_as(gradient) for gradient in gradients)

    @staticmethod
    def backward(ctx, *_):
        raise RuntimeError(
            "torch.compile with aot_autograd does not currently support double backward: what was compiled is the "
            "first derivative alone. Differentiate inside of the compiled function"
        )
