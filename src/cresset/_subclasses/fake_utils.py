"""What goes from real tensors to fake ones, and which results share memory: a check of fake tensors asks both."""

import functools
import itertools
import warnings

from .. import _native
from .._library.operator import OpOverload as CustomOperator
from ..pytree import tree_leaves, tree_map_only
from ..utils._python_dispatch import TorchDispatchMode
from .fake_tensor import FakeTensorMode, MetadataMismatchError, UnsupportedFakeTensorException, difference

__all__ = [
    "CrossRefFakeMode", "MetadataMismatchError", "faked", "output_alias_each_other", "outputs_alias_inputs",
    "outputs_are_inputs",
]  # fmt: skip


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


_OF_VALUES = {"dynamic_output_shape", "data_dependent_output", "inplace_view"}
_MAKE_NOTHING = {"lift_fresh", "lift_fresh_copy", "set_"}


class CrossRefFakeMode(TorchDispatchMode):
    """While it is active, each operator also runs on fake tensors, and is an error where these come out otherwise.

    Args:
        ignore_op_fn: is given an operator, and says whether it is left out.
        check_strides: whether strides are compared.
        check_aliasing: whether it is compared which results are, or share the memory of, arguments and each other.
        only_check_ops_with_meta: leave out operators of one's own that have no shape rule; else they are an error.

    >>> with cresset._subclasses.CrossRefFakeMode():
    ...     y = cresset.ones(2, 3).t().sum(0)
    """

    def __init__(self, ignore_op_fn=None, *, check_strides=True, check_aliasing=True, only_check_ops_with_meta=True):
        super().__init__()
        self.ignore_op_fn = ignore_op_fn or (lambda op: False)
        self.check_strides, self.check_aliasing = check_strides, check_aliasing
        self.only_check_ops_with_meta = only_check_ops_with_meta

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        fake = self._on_fake_tensors(func, args, kwargs) if self._is_checked(func) else None
        real = func(*args, **kwargs)
        if fake is not None:
            self._compare(func, (args, kwargs), real, *fake)
        return real

    def _is_checked(self, func):
        of_values = any(tag.name in _OF_VALUES for tag in func.tags)
        if func._schema.op in _MAKE_NOTHING or of_values or self.ignore_op_fn(func):
            return False
        without_rule = isinstance(func, CustomOperator) and func._fake is None and not func._shapes_itself
        return not (self.only_check_ops_with_meta and without_rule and "meta" not in func._kernels)

    def _on_fake_tensors(self, func, args, kwargs):
        """The fake arguments, and what comes of them; None where an argument has no fake form."""
        try:
            with FakeTensorMode() as mode, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                given = tree_map_only(_native.Tensor, mode.from_tensor, (args, kwargs))
                return given, func(*given[0], **given[1])
        except UnsupportedFakeTensorException:
            return None

    def _compare(self, func, given, real, given_fake, fake):
        where = f"When comparing the output of {func} on FakeTensor and concrete Tensors, found"
        found, expected = (tree_leaves(fake), tree_leaves(real))
        if len(found) != len(expected):
            raise MetadataMismatchError(f"{where} {len(found)} fake results and {len(expected)} real ones")
        for what, ours, theirs in (
            ("a result in the memory of an argument", outputs_alias_inputs(fake, given_fake),
             outputs_alias_inputs(real, given)),
            ("a result that is an argument", outputs_are_inputs(fake, given_fake), outputs_are_inputs(real, given)),
            ("results that share their memory", output_alias_each_other(fake), output_alias_each_other(real)),
        ) if self.check_aliasing else ():  # fmt: skip
            if ours != theirs:
                raise MetadataMismatchError(f"{where} {what} for {'fake' if ours else 'concrete'} tensors alone")
        for index, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
            if isinstance(theirs, _native.Tensor):
                differs = difference(theirs, ours, self.check_strides)
                if differs is not None:
                    place = f" for output[{index}]" if len(found) > 1 else ""
                    raise MetadataMismatchError(f"{where} mismatched tensor metadata{place}: {differs}")
