"""The two kinds of pipes, streams and those with keys, and the classes that became methods of theirs."""

import functools
from typing import TypeVar

from ..datasets import Dataset, IterableDataset
from .single_iterator import one_at_a_time, with_count

__all__ = ["IterDataPipe", "MapDataPipe", "functional_datapipe"]

T_co = TypeVar("T_co", covariant=True)


class Chained:
    """What both kinds share: `functions`, each a way to go on from a pipe, found as its methods; hooks of pickling."""

    functions: dict
    reduce_ex_hook = getstate_hook = str_hook = repr_hook = None

    def __getattr__(self, name):
        function = type(self).functions.get(name)
        if function is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        method = functools.partial(function, self)
        return functools.update_wrapper(method, function, assigned=("__doc__",), updated=())

    def __dir__(self):
        return [*super().__dir__(), *self.functions]

    @classmethod
    def register_function(cls, function_name, function):
        """Make `function`, which takes a pipe first, a method of every pipe of this kind."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(cls, function_name, cls_to_register):
        """Make a class of pipes, whose first argument is a pipe, a method of every pipe of this kind."""
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")

        def made(source, *args, **kwargs):
            return cls_to_register(source, *args, **kwargs)

        cls.functions[function_name] = functools.update_wrapper(
            made, cls_to_register, assigned=("__doc__",), updated=()
        )

    # ---- pickling

    @classmethod
    def set_getstate_hook(cls, hook_fn):
        """What the state of a pipe becomes when it is pickled; None: what it is."""
        cls._set_hook("getstate_hook", hook_fn)

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn):
        """What a pipe is reduced to when it is pickled; a hook that raises NotImplementedError leaves it as usual."""
        cls._set_hook("reduce_ex_hook", hook_fn)

    @classmethod
    def _set_hook(cls, name, hook):
        kind = cls._kind()
        if hook is not None and getattr(kind, name) is not None:
            raise RuntimeError(f"Attempt to override existing {name}")
        setattr(kind, name, hook)

    @classmethod
    def _kind(cls):
        """IterDataPipe or MapDataPipe, which hold the hooks of all their subclasses."""
        return next(c for c in cls.__mro__ if "functions" in vars(c))

    def _state(self):
        """What is pickled of a pipe: its attributes, unless a class says otherwise."""
        return self.__dict__

    def __getstate__(self):
        hook = self._kind().getstate_hook
        return self._state() if hook is None else hook(self._state())

    def __reduce_ex__(self, protocol):
        hook = self._kind().reduce_ex_hook
        if hook is not None:
            try:
                return hook(self)
            except NotImplementedError:
                pass
        return super().__reduce_ex__(protocol)

    # ---- names

    def __repr__(self):
        return type(self).__qualname__ if self.repr_hook is None else self.repr_hook(self)

    def __str__(self):
        return type(self).__qualname__ if self.str_hook is None else self.str_hook(self)


class IterDataPipe(Chained, IterableDataset[T_co]):
    """A stream of samples, made from others that are its attributes.

    A subclass writes `__iter__`; `reset`, if it keeps something between samples, forgets that. A pipe has one iterator
    at a time: a new one resets it, and ends those before.

    >>> from cresset.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper(range(5)).map(abs).batch(2))
    [[0, 1], [2, 3], [4]]
    """

    functions = {}  # noqa: RUF012  # of all streams
    _valid_iterator_id = None
    _number_of_samples_yielded = 0

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        own = vars(cls)
        if "__iter__" in own:
            cls.__iter__ = one_at_a_time(own["__iter__"], is_its_own="__next__" in own)
            if "__next__" in own:
                cls.__next__ = with_count(own["__next__"])

    def __iter__(self):
        return self

    def reset(self):
        """Forget what was kept for the last iterator. It is called when a new one begins."""


class MapDataPipe(Chained, Dataset[T_co]):
    """A dataset with keys, made from others that are its attributes. A subclass writes `__getitem__` and `__len__`.

    >>> from cresset.utils.data.datapipes.map import SequenceWrapper
    >>> SequenceWrapper([1, -2, 3]).map(abs)[1]
    2
    """

    functions = {}  # noqa: RUF012  # of all pipes with keys


class functional_datapipe:
    """Makes a class of pipes a method of the others of its kind.

    >>> @cresset.utils.data.functional_datapipe("doubled")
    ... class Doubled(cresset.utils.data.IterDataPipe):
    ...     def __init__(self, source):
    ...         self.source = source
    ...
    ...     def __iter__(self):
    ...         for sample in self.source:
    ...             yield 2 * sample
    >>> list(cresset.utils.data.datapipes.iter.IterableWrapper([1, 2]).doubled())
    [2, 4]
    """

    def __init__(self, name):
        self.name = name

    def __call__(self, cls):
        made = getattr(getattr(cls, "__self__", cls), "cls", cls)  # what non_deterministic wraps
        if not (isinstance(made, type) and issubclass(made, (IterDataPipe, MapDataPipe))):
            raise TypeError("`functional_datapipe` can only decorate IterDataPipe")
        made._kind().register_datapipe_as_function(self.name, cls)
        return cls


def length(pipe, *sources):
    """The lengths of what `pipe` is made of; TypeError if one of them has none."""
    if not all(hasattr(type(source), "__len__") for source in sources):
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")
    return [len(source) for source in sources]
