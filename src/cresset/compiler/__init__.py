"""torch.compile and torch.compiler. Code runs eagerly today: `compile` gives a callable with the same results, and what
is asked about compilation is answered truthfully (nothing is being compiled)."""

import contextlib
import functools
import threading
import warnings

from ..nn import Module
from .fullgraph import one_graph

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
BACKENDS = ("inductor", "eager", "aot_eager", "cudagraphs", "onnxrt", "openxla", "tvm")
STANCES = (
    "default",
    "force_eager",
    "eager_on_recompile",
    "fail_on_recompile",
    "eager_then_compile",
    "aot_eager_then_compile",
)


class OptimizedModule(Module):
    """What `compile` makes of a module: the module itself is `_orig_mod`, and its attributes can be reached and set
    here, too.

    >>> module = cresset.compile(cresset.nn.Linear(2, 1))
    >>> list(module.state_dict())
    ['_orig_mod.weight', '_orig_mod.bias']
    """

    def __init__(self, mod, fullgraph=False):
        super().__init__()
        if fullgraph:
            self.__dict__["forward"] = one_graph(self.forward)
        self._orig_mod = mod
        self.training = mod.training

    def forward(self, *args, **kwargs):
        return self._orig_mod(*args, **kwargs)

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
    model=None, *, fullgraph=False, dynamic=None, backend="inductor", mode=None, options=None, name=None,
    recompile_limit=None,
    isolate_recompiles=False, shapes_spec=None, disable=False,
):  # fmt: skip
    """Give a callable that computes what `model` (a module or a function) computes. Also a decorator, with or without
    arguments.

    Code runs eagerly today: nothing is traced and nothing is generated, so that results, errors and speed are those of
        the model itself.
    The arguments are PyTorch's and are checked; a backend that is a function of one's own is not called, which a
    warning says. With fullgraph=True a program whose way depends on the elements of tensors (`if x.sum() > 0`) raises
    `_dynamo.exc.Unsupported`.

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
    if isinstance(backend, str) and backend not in BACKENDS:
        raise RuntimeError(f"compile: Invalid backend: {backend!r}; the names are {', '.join(BACKENDS)}")
    if not isinstance(backend, str):
        if not callable(backend):
            raise RuntimeError(f"compile: backend should be a name or a function, got {type(backend).__name__}")
        warnings.warn(
            f"compile: the backend {getattr(backend, '__name__', backend)!r} is not called; code runs eagerly",
            stacklevel=2,
        )
    if model is None:
        return lambda model: compile(
            model, fullgraph=fullgraph, dynamic=dynamic, backend="eager", mode=mode, options=options, disable=disable
        )
    if not callable(model):
        raise RuntimeError(f"compile: A callable function is expected, but {type(model)} is provided.")
    if disable:
        return model
    if isinstance(model, OptimizedModule):
        return model
    if isinstance(model, Module):
        return OptimizedModule(model, fullgraph)
    if isinstance(model, type):
        raise RuntimeError(
            f"compile: expected a function or a module, got the class {model.__name__}; compile an object of it"
        )

    @functools.wraps(model)
    def compiled(*args, **kwargs):
        return model(*args, **kwargs)

    if fullgraph:
        compiled = one_graph(compiled)
    compiled._torchdynamo_orig_callable = model
    return compiled


_exports = threading.local()  # .depth: how many exports of this thread are under way


def is_compiling():
    """Whether this code is being traced by compile, which never is, or by export."""
    return is_exporting()


def is_dynamo_compiling():
    """Whether this code is being traced by compile: never."""
    return False


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
    """Forget compiled code: there is none."""


def disable(fn=None, recursive=True, *, reason=None):
    """Mark a function as not to be compiled; it is given back as it is."""
    return fn if fn is not None else lambda fn: fn


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


def cudagraph_mark_step_begin():
    """Say that a step begins, for graphs of CUDA calls: there are none."""


def list_backends(exclude_tags=("debug", "experimental")):
    """The backends that can be used. What there is, "eager", counts as one for debugging.

    >>> cresset.compiler.list_backends(exclude_tags=())
    ['eager']
    """
    return [] if exclude_tags and "debug" in exclude_tags else ["eager"]


class set_stance(contextlib.ContextDecorator):
    """Say how compiled functions behave; every stance runs the code eagerly. A statement, a context manager or a
    decorator.
    """

    def __init__(self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
        if stance not in STANCES:
            raise RuntimeError(
                f"set_stance: invalid torch.compile stance {stance!r}; the stances are {', '.join(STANCES)}"
            )
        if force_backend is not None and stance != "default":
            raise RuntimeError(
                f"set_stance: cannot specify force_backend together with the stance {stance!r}, only with 'default'"
            )

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return False
