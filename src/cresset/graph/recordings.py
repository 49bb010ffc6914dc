"""Recording a model on example inputs, as often as its free sizes need."""

import contextlib
import inspect
import itertools

import cresset

from ..pytree import tree_flatten, tree_leaves
from .sizes import RECORDINGS, sizes_to_try


class Inputs:
    """The example arguments: which leaves are tensors, what they are called, and how to call the model with others."""

    def __init__(self, front, model, args, kwargs, names=None):
        self.front, self.args, self.kwargs = front, args, kwargs
        self.signature = _signature(model)
        self.bound = self._bind()
        leaves, self.spec = tree_flatten((args, kwargs))
        self.leaves = leaves
        self.places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, cresset.Tensor)]
        self.tensors = [leaves[k] for k in self.places]
        self.names = self._names(names)

    def _bind(self):
        """The arguments by the model's parameter names."""
        if self.signature is None:
            return {f"input_{k}": arg for k, arg in enumerate(self.args)} | self.kwargs
        bound = self.signature.bind(*self.args, **self.kwargs).arguments
        found = {}
        for name, value in bound.items():
            kind = self.signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                found.update({f"{name}_{k}": v for k, v in enumerate(value)})
            elif kind is inspect.Parameter.VAR_KEYWORD:
                found.update(value)
            else:
                found[name] = value
        return found

    def _names(self, given):
        natural = []
        for name, value in self.bound.items():
            count = sum(isinstance(leaf, cresset.Tensor) for leaf in tree_leaves(value))
            natural += [name] if isinstance(value, cresset.Tensor) else [f"{name}_{k}" for k in range(count)]
        given = list(given or [])
        if len(given) > len(self.tensors):
            raise ValueError(f"{self.front.name}: {len(given)} input_names for {len(self.tensors)} input tensors")
        names = given + natural[len(given) :]
        if len(set(names)) != len(names):
            raise ValueError(f"{self.front.name}: input names are not distinct: {names}")
        return names

    def with_tensors(self, tensors):
        """args and kwargs with other tensors."""
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, tensors, strict=True):
            leaves[place] = tensor
        return self.spec.unflatten(leaves)


def _signature(model):
    try:
        return inspect.signature(model.forward if isinstance(model, cresset.nn.Module) else model)
    except (TypeError, ValueError):
        return None


@contextlib.contextmanager
def kept(model):
    """Random numbers and a model's buffers are as before afterwards."""
    modules = list(model.modules()) if isinstance(model, cresset.nn.Module) else []
    buffers = [(b, b.detach().clone(), b._version, m.training) for m in modules for b in m.buffers(recurse=False)]
    with cresset.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            with cresset.no_grad():
                for buffer, before, version, training in buffers:
                    if training or buffer._version != version:  # batch_norm does not count its writes
                        buffer.copy_(before)


class Free:
    """A free dimension: its size is factor * symbol + offset."""

    def __init__(self, symbol, factor=1, offset=0):
        self.symbol, self.factor, self.offset = symbol, factor, offset

    def size(self, sizes, k):
        return self.factor * sizes[self.symbol][k] + self.offset


def record(model, inputs, free, start, outputs_of, ranges=None):
    """Record a model with several sizes of its free dimensions; without any, twice.

    Args:
        inputs: the example `Inputs`.
        free: the free dimensions, {(input name, axis): Free}.
        start: makes a Recorder of the names of the model's parameters, {id: name}.
        outputs_of: the (path, tensor) pairs of what the model gives.
        ranges: the (least, most) size of symbols that have limits.

    Returns: the recorders, the output Values of each, the sizes by symbol, and the paths of the outputs.
    """
    front = inputs.front
    example = {}
    for (name, axis), dimension in free.items():
        size = (inputs.tensors[inputs.names.index(name)].shape[axis] - dimension.offset) // dimension.factor
        if example.setdefault(dimension.symbol, size) != size:
            raise ValueError(
                f"{front.name}: the free dimension {dimension.symbol!r} is {example[dimension.symbol]} in one input "
                f"and {size} in {name!r}, dimension {axis}"
            )
    plans = sizes_to_try(example, list(example)) if free else [{}]
    inside = [
        plan
        for plan in plans
        if all(low <= min(plan[s]) and max(plan[s]) <= high for s, (low, high) in (ranges or {}).items())
    ]
    plans = inside or plans
    failure = None
    for sizes in plans:
        recorders, outputs, paths = [], [], None
        try:
            for k in range(RECORDINGS if free else 2):
                recorder, found, paths = record_once(model, inputs, resized(inputs, free, sizes, k), start, outputs_of)
                recorders.append(recorder)
                outputs.append(found)
        except front.error:
            raise
        except Exception as error:
            if not free or failure is None:
                failure = error
            if not free:
                raise
            continue
        return recorders, outputs, sizes, paths
    record_once(model, inputs, inputs.tensors, start, outputs_of)  # a model that cannot run at all says so itself
    tried = ", ".join(f"{symbol} = {sizes[k]}" for k in range(1) for symbol, sizes in plans[0].items())
    raise front.error(
        f"{front.name}: the model runs with the example inputs but not when its free dimensions have other sizes "
        f"(tried: {tried}, and others): {failure}. "
        f"Leave those out of {front.free} that are fixed, or give an example with larger sizes"
    ) from failure


def resized(inputs, free, sizes, k):
    """The example inputs, repeated or cut to the sizes of recording k. Integers that never fall, which may be where
    pieces begin, go on with the last of them. Numbers differ a little, so that what is no constant shows.
    """
    found = []
    for name, tensor in zip(inputs.names, inputs.tensors, strict=True):
        t = tensor.detach()
        for axis in range(t.ndim):
            dimension = free.get((name, axis))
            if dimension is not None:
                places, length = cresset.arange(dimension.size(sizes, k), device=t.device), t.shape[axis]
                rises = not t.is_floating_point() and not t.is_complex() and bool((t.long().diff(dim=axis) >= 0).all())
                t = t.index_select(axis, places.clamp_max(length - 1) if rises else places % length)
        t = t * (1 - k / 64) if t.is_floating_point() and k else t.clone()
        found.append(t.requires_grad_(inputs.front.differentiates and tensor.requires_grad))
    return found


def parameter_names(model):
    """The name of each parameter and buffer, by id; of one that has several, the first."""
    names = {}
    if isinstance(model, cresset.nn.Module):
        named = itertools.chain(
            model.named_parameters(remove_duplicate=False), model.named_buffers(remove_duplicate=False)
        )
        for name, tensor in named:
            names.setdefault(id(tensor), name)
    return names


def record_once(model, inputs, tensors, start, outputs_of):
    """Record a model on these tensors: the recorder, the Values of the outputs and their paths."""
    recorder = start(parameter_names(model))
    for tensor in tensors:
        recorder.add_input(tensor)
    args, kwargs = inputs.with_tensors(tensors)
    recorder.start()
    try:
        with recorder:
            result = model(*args, **kwargs)
        values, paths = [], []
        for path, tensor in outputs_of(result):
            values.append(recorder.value_of(tensor))
            paths.append(path)
    finally:
        recorder.close()
    return recorder, values, paths
