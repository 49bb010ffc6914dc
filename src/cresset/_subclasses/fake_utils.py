"""What goes from real tensors to fake ones, and which results share memory: a check of fake tensors asks both."""

import functools
import itertools

from .. import _native
from ..pytree import tree_leaves

__all__ = ["faked", "output_alias_each_other", "outputs_alias_inputs", "outputs_are_inputs"]


def _storages(tree):
    """The memory of each tensor in a tree that has some of its own, in order; of a fake one, what stands for it."""
    tensors = (leaf for leaf in tree_leaves(tree) if isinstance(leaf, _native.Tensor))
    return [t.untyped_storage()._cdata for t in tensors if t.layout == _native.strided]


def outputs_alias_inputs(outputs, inputs):
    """Whether a tensor of `outputs` has the memory of one of `inputs`.

    >>> x = cresset.ones(2)
    >>> cresset._subclasses.fake_utils.outputs_alias_inputs(x[0], [x])
    True
    """
    return not set(_storages(inputs)).isdisjoint(_storages(outputs))


def outputs_are_inputs(outputs, inputs):
    """Whether a tensor of `outputs` is one of `inputs`."""
    given = {id(leaf) for leaf in tree_leaves(inputs) if isinstance(leaf, _native.Tensor)}
    return any(id(leaf) in given for leaf in tree_leaves(outputs))


def output_alias_each_other(outputs):
    """Whether two tensors of `outputs` share their memory."""
    found = _storages(outputs)
    return len(set(found)) < len(found)


def faked(value, mode):
    """What a graph reads, in a fake mode: a tensor's fake form; of a module, what it does with fake parameters."""
    if isinstance(value, _native.Tensor):
        return mode.from_tensor(value, static_shapes=True)
    if not hasattr(value, "named_parameters"):
        return value
    from ..func import functional_call

    held = {
        name: mode.from_tensor(tensor, static_shapes=True)
        for name, tensor in itertools.chain(value.named_parameters(), value.named_buffers())
    }
    return functools.partial(_called, functional_call, value, held) if held else value


def _called(functional_call, module, held, *args, **kwargs):
    return functional_call(module, held, args, kwargs)
