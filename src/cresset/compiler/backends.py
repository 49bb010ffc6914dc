"""The backends of `compile`, by name, and functions of one's own."""

import functools

from . import regions, stances
from .capture import Backed
from .fullgraph import TorchDynamoException

# Computes late; PyTorch's name of its code generator means: make it fast.
LATE = ("inductor", "cudagraphs")
# Computes at once. PyTorch uses them to look for errors, and calls them "debug".
EAGER = ("eager", "aot_eager", "aot_eager_decomp_partition", "aot_eager_default_partitioner")
# The modes that launch what repeats itself as graphs.
REPLAYED = ("reduce-overhead", "max-autotune")
TUNED = ("max-autotune", "max-autotune-no-cudagraphs")
_own = {}  # name -> (function, tags)
_default = ["inductor"]  # what `compile` takes where no backend is named


class InvalidBackend(TorchDynamoException):
    """A name that no backend has."""


def register(compiler_fn=None, name=None, tags=()):
    """Give a backend of one's own a name. Also a decorator.

    >>> @cresset._dynamo.register_backend(name="as_it_is")
    ... def backend(graph, example_inputs):
    ...     return graph.forward
    >>> cresset.compile(lambda x: x + 1, backend="as_it_is")(cresset.ones(1))
    tensor([2.])
    """
    if compiler_fn is None:
        return functools.partial(register, name=name, tags=tags)
    if not callable(compiler_fn):
        raise AssertionError(f"register_backend: expected a function, got {type(compiler_fn).__name__}")
    name = name or compiler_fn.__name__
    if name in (*LATE, *EAGER, *_own):
        raise AssertionError(f"register_backend: there is a backend {name!r} already")
    _own[name] = (compiler_fn, tuple(tags))
    return compiler_fn


def names(exclude_tags=("debug", "experimental")):
    """The names of backends without those that have one of the tags."""
    excluded = set(exclude_tags or ())
    tags = {**dict.fromkeys(LATE, ()), **dict.fromkeys(EAGER, ("debug",)), **{n: t for n, (_, t) in _own.items()}}
    return sorted(name for name, its in tags.items() if not excluded.intersection(its))


def find(backend):
    """A backend as `apply` takes it: a name of LATE or EAGER, or a function."""
    if isinstance(backend, str):
        if backend in (*LATE, *EAGER):
            return backend
        if backend in _own:
            return _own[backend][0]
        raise InvalidBackend(f"compile: Invalid backend: {backend!r}; the names are {', '.join(names(()))}")
    if not callable(backend):
        raise RuntimeError(f"compile: backend should be a name or a function, got {type(backend).__name__}")
    return backend


def set_default_backend(backend):
    """Say which backend `compile` takes where none is named: a name, a function of one's own, or None for "inductor".

    >>> cresset.compiler.set_default_backend("eager")
    >>> cresset.compiler.get_default_backend()
    'eager'
    >>> cresset.compiler.set_default_backend(None)
    """
    if not (backend is None or isinstance(backend, str) or callable(backend)):
        raise TypeError(f"backend must be a string or callable, got {type(backend)}")
    _default[0] = "inductor" if backend is None else backend


def get_default_backend():
    """The backend that `compile` takes where none is named.

    >>> cresset.compiler.get_default_backend()
    'inductor'
    """
    return _default[0]


def apply(backend, function, dynamic=None, recompile_limit=None, mode=None):
    """`function` as the backend computes it, in the stance that is in force."""
    made = _made(backend, function, dynamic, recompile_limit, mode)
    forced = {}  # what set_stance(force_backend=...) asked for

    def in_stance(stance, args, kwargs):
        if stance.stance == "force_eager":
            return function(*args, **kwargs)
        wanted = stance.force_backend
        if wanted is None:
            return made(*args, **kwargs)
        if wanted not in forced:
            forced[wanted] = _made(find(wanted), function, dynamic, recompile_limit, mode)
        return forced[wanted](*args, **kwargs)

    if _is_plain_region(backend, mode):
        return regions.late(function, in_stance)

    @functools.wraps(function)
    def compiled(*args, **kwargs):
        stance = stances.current()
        return made(*args, **kwargs) if stance is None else in_stance(stance, args, kwargs)

    return compiled


def _is_plain_region(backend, mode):
    return backend == "inductor" and mode not in TUNED and mode not in REPLAYED


def _made(backend, function, dynamic, recompile_limit, mode):
    if backend in LATE:
        regions.measure_products()
        compiled = regions.late(function)
        if mode in TUNED:
            compiled = regions.tuned(compiled)
        return regions.replayed(compiled) if backend == "cudagraphs" or mode in REPLAYED else compiled
    return function if backend in EAGER else Backed(function, backend, dynamic, recompile_limit)
