"""Pipes that look at one sample after the other: map, collate, filter, and an iterable as a pipe."""

import copy
import functools
import inspect
import warnings

from ..collate import default_collate
from .files import StreamWrapper
from .pipe import IterDataPipe, functional_datapipe, length

__all__ = ["CollatorIterDataPipe", "FilterIterDataPipe", "IterableWrapperIterDataPipe", "MapperIterDataPipe"]


class IterableWrapperIterDataPipe(IterDataPipe):
    """The elements of an iterable.

    Args:
        deepcopy: iterate over a copy, made anew for each iterator, so that what a pipe does to samples in place stays
            in its epoch.
    """

    def __init__(self, iterable, deepcopy=True):
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self):
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(source)
            except TypeError:
                warnings.warn(
                    "The input iterable can not be deepcopied, please be aware of in-place modification would affect "
                    "source data.",
                    stacklevel=2,
                )
        yield from source

    def __len__(self):
        return length(self, self.iterable)[0]


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """`fn` of each sample (functional name: ``map``).

    Args:
        input_col: the positions or keys of a sample that `fn` gets; None: the sample.
        output_col: where its result goes: a position or key, -1 for behind the others; None: in place of the first of
            `input_col`, and the others of them go.
    """

    def __init__(self, datapipe, fn, input_col=None, output_col=None):
        super().__init__()
        check_can_be_sent(fn)
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        check_takes(fn, input_col)
        self.datapipe, self.fn, self.input_col, self.output_col = datapipe, fn, input_col, output_col

    def _apply_fn(self, data):
        result = applied(self.fn, data, self.input_col)
        if self.input_col is None:
            return result
        sample = list(data) if isinstance(data, tuple) else data
        if self.output_col == -1:
            sample.append(result)
        elif self.output_col is not None:
            sample[self.output_col] = result
        elif isinstance(self.input_col, (list, tuple)):
            first, *others = self.input_col
            sample[first] = result
            for place in sorted(others, reverse=True):
                del sample[place]
        else:
            sample[self.input_col] = result
        return tuple(sample) if isinstance(data, tuple) else sample

    def __iter__(self):
        for sample in self.datapipe:
            yield self._apply_fn(sample)

    def __len__(self):
        return length(self, self.datapipe)[0]


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Tensors made of each batch, by `collate_fn` or `conversion`, which is another name for it; by default as a
    DataLoader makes them (functional name: ``collate``).
    """

    def __init__(self, datapipe, conversion=default_collate, collate_fn=None):
        if collate_fn is None and not callable(conversion):
            raise TypeError(
                f"collate: conversion must be a function, got {type(conversion).__name__}; a function for each column "
                "is for data frames, which are not taken here"
            )
        super().__init__(datapipe, conversion if collate_fn is None else collate_fn)


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """The samples for which `filter_fn` is True (functional name: ``filter``).

    Args:
        input_col: the positions or keys of a sample that `filter_fn` gets; None: the sample.
    """

    def __init__(self, datapipe, filter_fn, input_col=None):
        super().__init__()
        check_can_be_sent(filter_fn)
        check_takes(filter_fn, input_col)
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def __iter__(self):
        for sample in self.datapipe:
            wanted = applied(self.filter_fn, sample, self.input_col)
            if not isinstance(wanted, bool):
                raise ValueError(
                    f"Boolean output is required for `filter_fn` of FilterIterDataPipe, got {type(wanted)}"
                )
            if wanted:
                yield sample
            else:
                StreamWrapper.close_streams(sample)


def applied(fn, sample, columns):
    """`fn` of these columns of a sample, or of the sample."""
    if columns is None:
        return fn(sample)
    if isinstance(columns, (list, tuple)):
        return fn(*(sample[column] for column in columns))
    return fn(sample[columns])


def check_can_be_sent(fn):
    """Warn of functions that cannot be pickled, and so not be sent to a worker."""
    if not callable(fn):
        raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")
    fn = fn.func if isinstance(fn, functools.partial) else fn
    is_local = "<locals>" in getattr(fn, "__qualname__", type(fn).__qualname__)
    if is_local or getattr(fn, "__name__", "") == "<lambda>":
        warnings.warn(
            f"{'Local' if is_local else 'Lambda'} function is not supported by pickle, please use regular python "
            "function or functools.partial instead.",
            stacklevel=4,
        )


def check_takes(fn, columns):
    """Refuse a function that cannot be called with as many arguments as there are columns."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except ValueError:  # a builtin that does not say
        return
    count = len(columns) if isinstance(columns, (list, tuple)) else 1
    name = getattr(getattr(fn, "func", fn), "__name__", repr(fn))
    by_name = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if by_name:
        raise ValueError(
            f"The function {name} takes {len(by_name)} non-default keyword-only parameters, which is not allowed."
        )
    in_order = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    any_number = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    too_many = any(p.default is p.empty for p in in_order[count:])
    if too_many or (len(in_order) < count and not any_number):
        raise ValueError(f"The function {name} takes {len(in_order)} positional parameters, but {count} are required.")
