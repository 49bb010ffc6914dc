"""torch.compile and torch.compiler: the names. What compiled code does is in regions.py, backends of one's own are in
capture.py."""

import contextlib
import functools
import threading

import cresset

from ..nn import Module
from . import backends, counting, regions
from .backends import get_default_backend, set_default_backend
from .explaining import explain
from .fullgraph import one_graph
from .stances import set_stance

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable",
    "explain", "get_default_backend", "is_compiling", "is_dynamo_compiling", "is_exporting", "list_backends",
    "load_cache_artifacts", "nested_compile_region", "reset", "save_cache_artifacts", "set_default_backend",
    "set_stance", "substitute_in_graph",
]  # fmt: skip

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


class OptimizedModule(Module):
    """What `compile` makes of a module: the module itself is `_orig_mod`, and its attributes can be reached and set
    here, too.

    >>> module = cresset.compile(cresset.nn.Linear(2, 1))
    >>> list(module.state_dict())
    ['_orig_mod.weight', '_orig_mod.bias']
    """

    def __init__(self, mod, make):
        super().__init__()
        self._orig_mod = mod
        self.training = mod.training
        self.__dict__["_make"], self.__dict__["_torchdynamo_orig_callable"] = make, mod.forward
        self.__dict__["forward"] = make(mod.__call__)

    def __reduce__(self):
        return OptimizedModule, (self._orig_mod, self._make)

    def __getattr__(self, name):
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name, value):
        if name == "_orig_mod" or "_orig_mod" not in self.__dict__.get("_modules", {}):
            return super().__setattr__(name, value)
        if name == "training":
            super().__setattr__(name, value)
        return setattr(self._orig_mod, name, value)

    def __delattr__(self, name):
        delattr(self._orig_mod, name)

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __len__(self):
        return len(self._orig_mod)

    def __iter__(self):
        return iter(self._orig_mod)

    def __getitem__(self, index):
        return self._orig_mod[index]


def compile(
    model=None, *, fullgraph=False, dynamic=None, backend=None, mode=None, options=None, name=None,
    recompile_limit=None,
    isolate_recompiles=False, shapes_spec=None, disable=False,
):  # fmt: skip
    """Give a callable that computes what `model` (a module or a function) computes, to the bit, with fewer passes over
    memory. Also a decorator, with or without arguments.

    Python runs as it is, at every call; pointwise operators on large tensors are computed late, and together: see
    docs/compile.md. There is nothing to wait for and nothing to compile again when sizes or numbers change.

    Args:
        fullgraph: a program whose way depends on the elements of tensors (`if x.sum() > 0`) raises
            `_dynamo.exc.Unsupported`, with the line.
        dynamic: for a backend of one's own: True lets what it made serve for all sizes.
        backend: a name, or a function of an fx GraphModule and a list of example inputs that gives a callable: its
            results are used. "eager" and "aot_eager" compute at once. None: that of `compiler.set_default_backend`.
        mode: one of PyTorch's names. "reduce-overhead" and "max-autotune" launch what repeats itself on a CUDA device
            as graphs; with "max-autotune" matrix products take the fastest plan there, also one with other bits.
        options: settings of PyTorch's code generator, of which there is none; not together with `mode`.
        recompile_limit: so many graphs go to a backend of one's own; `_dynamo.config.recompile_limit` where it is None.
        disable: give `model` back as it is.

    >>> @cresset.compile(fullgraph=True)
    ... def twice(x):
    ...     return 2 * x
    >>> twice(cresset.ones(2))
    tensor([2., 2.])
    """
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"compile: Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")
    backend = backends.find(backends.get_default_backend() if backend is None else backend)
    if model is None:
        return lambda model: compile(
            model, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options,
            recompile_limit=recompile_limit, disable=disable,
        )  # fmt: skip
    if not callable(model):
        raise AssertionError(f"compile: A callable function is expected, but {type(model)} is provided.")
    if disable or isinstance(model, OptimizedModule):
        return model
    make = functools.partial(
        _compiled, fullgraph=fullgraph, backend=backend, dynamic=dynamic, recompile_limit=recompile_limit, mode=mode
    )
    if isinstance(model, Module):
        return OptimizedModule(model, make)
    if isinstance(model, type):
        raise RuntimeError(
            f"compile: expected a function or a module, got the class {model.__name__}; compile an object of it"
        )
    compiled = make(model)
    compiled._torchdynamo_orig_callable = model
    return compiled


def _compiled(function, *, fullgraph, backend, dynamic, recompile_limit, mode):
    """A function as `compile` was asked for it."""
    compiled = backends.apply(backend, function, dynamic, recompile_limit, mode)
    return one_graph(compiled) if fullgraph else compiled


_exports = threading.local()  # .depth: how many exports of this thread are under way


def is_compiling():
    """Whether this code runs in a compiled region, or is being recorded by export."""
    return regions.computes_late() or is_exporting()


def is_dynamo_compiling():
    """Whether this code runs in a compiled region."""
    return regions.computes_late()


def is_exporting():
    """Whether this code is being recorded by torch.export."""
    return getattr(_exports, "depth", 0) > 0


@contextlib.contextmanager
def exporting():
    """Inside, `is_exporting` says so."""
    _exports.depth = getattr(_exports, "depth", 0) + 1
    try:
        yield
    finally:
        _exports.depth -= 1


def reset():
    """Forget what backends made of graphs, and the counts of `_dynamo.utils.counters`."""
    counting.reset()


def disable(fn=None, recursive=True, *, reason=None):
    """Give a function or module that computes at once, also when it is called in a compiled region.

    Args:
        fn: the function; without one, a decorator is given.
        recursive: False: only the function itself is not compiled; what it calls would be. Here nothing is compiled by
            itself, so that gives the function back as it is.
        reason: kept as `_torchdynamo_disable_msg`.
    """
    if fn is None:
        return lambda fn: disable(fn, recursive, reason=reason)
    if not recursive:
        return fn
    if isinstance(fn, Module):
        fn.forward = regions.now(fn.forward, reason)
        return fn
    return regions.now(fn, reason)


_disable_dynamo = disable  # the name that PyTorch's own files use


def allow_in_graph(fn):
    """Mark a function (or a list of them) as one operator of a graph; it is given back as it is."""
    functions = fn if isinstance(fn, (list, tuple)) else [fn]
    for one in functions:
        if not callable(one):
            raise AssertionError(f"allow_in_graph: expected a function, got {type(one).__name__}")
    return fn


def assume_constant_result(fn):
    """Mark a function whose result never changes; it is given back as it is, and called each time."""
    return fn


def nested_compile_region(fn=None, options=None, *, max_reuse_entries=8, reuse_hash_fn=None):
    """Mark a function to be compiled once and used often; it is given back as it is."""
    return fn if fn is not None else lambda fn: fn


def substitute_in_graph(
    original_fn, *, can_constant_fold_through=False, skip_signature_check=False, is_embedded_type=False
):
    """Mark a function as what a tracer should see in place of `original_fn`. Nothing is traced: the decorated function
    is given back.
    """
    return lambda traceable: traceable


def wrap_numpy(fn):
    """A function of tensors, from one of NumPy's arrays: it gets arrays in the same memory, and the arrays that it
    gives become tensors. Nothing of it is recorded for backward.

    >>> import numpy
    >>> cresset.compiler.wrap_numpy(lambda a, b: numpy.cumsum(a * b))(cresset.ones(3), cresset.ones(3))
    tensor([1., 2., 3.])
    """
    import numpy

    from ..pytree import tree_map_only

    @functools.wraps(fn)
    def of_tensors(*args, **kwargs):
        args, kwargs = tree_map_only(cresset.Tensor, cresset.Tensor.numpy, (args, kwargs))
        return tree_map_only(numpy.ndarray, cresset.from_numpy, fn(*args, **kwargs))

    return of_tensors


def cudagraph_mark_step_begin():
    """Say that a step begins. Graphs are compared with what a step launches, and so need not be told."""


def list_backends(exclude_tags=("debug", "experimental")):
    """The names of backends.

    >>> cresset.compiler.list_backends()
    ['cudagraphs', 'inductor']
    """
    return backends.names(exclude_tags)


def save_cache_artifacts():
    """What a later process could start with, as (bytes, information): None, as nothing has to be compiled."""
    return None


def load_cache_artifacts(serialized_artifacts):
    """Take up what `save_cache_artifacts` gave: nothing has to be compiled, so nothing is read and None is given."""
    if not isinstance(serialized_artifacts, bytes):
        raise TypeError(f"load_cache_artifacts: expected bytes, got {type(serialized_artifacts).__name__}")
    return None
