"""torch._foreach_*: one operation on every tensor of a list, made from the tables below.

An in-place form changes the tensors and gives back the list they came in, any other form a tuple. The second operand is
a list as long as the first, of tensors or of numbers, or one number for all; where PyTorch has it, also one tensor
without dimensions. All of that is checked before the first tensor changes.
"""

import itertools
import math

import cresset

from .. import _native
from .registry import function, functions, methods

# Operations on one tensor, with an in-place form.
UNARY = (
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac", "lgamma",
    "log",
    "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan",
    "tanh",
    "trunc",
)  # fmt: skip

# Operations on two: (the operation when the other operand is a number, its name among the arguments, whether one tensor
# for all will do, whether the other operand can be scaled by alpha).
BINARY = {
    "add": ("add", "other", True, True),
    "sub": ("sub", "other", False, True),
    "mul": ("mul", "other", True, False),
    "div": ("div", "other", True, False),
    "pow": ("pow", "exponent", False, False),
    "clamp_min": ("clamp_min", "other", False, False),
    "clamp_max": ("clamp_max", "other", False, False),
    "maximum": ("clamp_min", "other", False, False),
    "minimum": ("clamp_max", "other", False, False),
}

# Operations on three, the last two scaled by `value`.
SCALED = ("addcmul", "addcdiv")


def _at_once(name, in_place, tensors, *others, attributes=()):
    """The operation on all tensors in one launch, where that can be done; otherwise None."""
    if not tensors[0].is_cuda:
        return None
    done = _native.foreach(name, in_place, (tensors, *others), attributes)
    return None if done is NotImplemented else _given(in_place, tensors, done)


def _given(in_place, tensors, results):
    """What a call gives: the tensors themselves, in the list they came in, where they were changed."""
    return tensors if in_place else tuple(results)


def _offer(name, definition, doc):
    name = "_foreach_" + name
    definition.__name__ = definition.__qualname__ = name
    definition.__doc__ = doc
    return function(definition, name=name)


def _check(who, tensors, argument="self", position=1):
    """Refuse what is not a list of tensors, or is an empty one."""
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(
            f"_foreach_{who}(): argument '{argument}' (position {position}) must be tuple of Tensors, not "
            f"{type(tensors).__name__}"
        )
    if not tensors:
        raise RuntimeError(f"_foreach_{who}: Tensor list must have at least one tensor.")
    for index, tensor in enumerate(tensors):
        if not isinstance(tensor, cresset.Tensor):
            raise TypeError(
                f"_foreach_{who}: expected Tensor as element {index} in argument {position - 1}, but got "
                f"{type(tensor).__name__}"
            )
    if who.endswith("_") and argument == "self":
        for tensor in tensors:  # before the first one is written to
            if not _native.level_of(tensor):
                _native.check_change("_foreach_" + who, tensor)


def _check_length(who, tensors, others, kind="tensors"):
    if len(tensors) == len(others):
        return
    if kind == "tensors":
        raise RuntimeError(
            f"_foreach_{who}: Tensor lists must have the same number of tensors, got {len(tensors)} and {len(others)}"
        )
    raise RuntimeError(
        f"_foreach_{who}: Tensor list must have same number of elements as scalar list. They have {len(tensors)} and "
        f"{len(others)}"
    )


def _spread(who, tensors, other, one_tensor):
    """The other operand of each tensor, and whether these are tensors."""
    if isinstance(other, (list, tuple)):
        holds_tensors = bool(other) and isinstance(other[0], cresset.Tensor)
        if holds_tensors:
            _check(who, other, "other", 2)
        _check_length(who, tensors, other, "tensors" if holds_tensors else "numbers")
        return other, holds_tensors
    if isinstance(other, cresset.Tensor):
        if not one_tensor:
            raise TypeError(f"_foreach_{who}(): argument 'other' (position 2) must be tuple of Tensors, not Tensor")
        if other.dim() != 0:
            raise RuntimeError(
                f"_foreach_{who}: scalar tensor expected to be 0 dim but it has {other.dim()} dimensions and "
                f"{other.numel()} elements."
            )
        return itertools.repeat(other, len(tensors)), True
    if other is None:
        raise TypeError(f"_foreach_{who}() missing 1 required positional argument: the other operand")
    return itertools.repeat(other, len(tensors)), False


def _unary(name):
    operation, in_place = functions[name], methods[name + "_"]

    def each(self):
        _check(name, self)
        done = _at_once(name, False, self)
        return tuple([operation(tensor) for tensor in self]) if done is None else done

    def change_each(self):
        _check(name + "_", self)
        done = _at_once(name, True, self)
        return _given(True, self, [in_place(tensor) for tensor in self]) if done is None else done

    _offer(name, each, f"`{name}` of each tensor.")
    _offer(name + "_", change_each, f"`{name}` of each tensor, in place.")


def _binary(name, with_number, argument, one_tensor, scales):
    def both(who, in_place):
        table, end = (methods, "_") if in_place else (functions, "")
        # maximum has no in-place form of its own: that of a tensor of bounds does the same.
        of_tensors = table.get(name + end) or table[with_number + end]
        of_number = table[with_number + end]

        def each(self, other=None, *, alpha=1, scalar=None, scalars=None, exponent=None):
            other = next((v for v in (other, exponent, scalar, scalars) if v is not None), None)
            if name == "pow" and not in_place and not isinstance(self, (list, tuple)):
                _check(who, other, argument, 2)
                return tuple([cresset.pow(self, tensor) for tensor in other])
            _check(who, self)
            others, are_tensors = _spread(who, self, other, one_tensor)
            operation = of_tensors if are_tensors else of_number
            if scales or alpha == 1:
                done = _at_once(name, in_place, self, other, attributes=(alpha,) if scales else ())
                if done is not None:
                    return done
            if scales and alpha != 1:
                return _given(in_place, self, [operation(t, o, alpha=alpha) for t, o in zip(self, others, strict=True)])
            if alpha != 1:
                raise TypeError(f"_foreach_{who}() got an unexpected keyword argument 'alpha'")
            return _given(in_place, self, [operation(t, o) for t, o in zip(self, others, strict=True)])

        return each

    _offer(name, both(name, False), f"`{name}` of each tensor and its `{argument}`.")
    _offer(name + "_", both(name + "_", True), f"`{name}` of each tensor and its `{argument}`, in place.")


def _packed_numbers(who, self, numbers):
    """The elements of a tensor that holds a number for each tensor of a list."""
    if numbers.device.type != "cpu":
        raise RuntimeError(f"_foreach_{who}: Expected scalars to be on CPU, got {numbers.device.type} instead.")
    if not numbers.is_contiguous():
        raise RuntimeError(f"_foreach_{who}: Expected scalars to be contiguous.")
    if numbers.dim() != 1:
        raise RuntimeError(
            f"_foreach_{who}: Expected packed scalar Tensor to be of dimension 1. Got {numbers.dim()} instead."
        )
    if len(numbers) != len(self):
        raise RuntimeError(
            f"_foreach_{who}: Expected length of scalars to match input of length {len(self)} but got "
            f"{numbers.numel()} instead."
        )
    return numbers.tolist()


def _scaled(name):
    def both(who, in_place):
        operation = methods[name + "_"] if in_place else functions[name]

        def each(self, tensor1, tensor2, value=1, *, scalars=None):
            value = value if scalars is None else scalars
            _check(who, self)
            for position, (argument, others) in enumerate((("tensor1", tensor1), ("tensor2", tensor2)), 2):
                _check(who, others, argument, position)
                _check_length(who, self, others)
            if isinstance(value, cresset.Tensor):
                value = _packed_numbers(who, self, value)
            if isinstance(value, (list, tuple)):
                _check_length(who, self, value, "numbers")
            else:
                value = itertools.repeat(value, len(self))
            value = list(value)
            done = _at_once(name, in_place, self, tensor1, tensor2, attributes=(value,))
            if done is not None:
                return done
            results = [operation(t, a, b, value=v) for t, a, b, v in zip(self, tensor1, tensor2, value, strict=True)]
            return _given(in_place, self, results)

        return each

    _offer(name, both(name, False), f"`{name}` of each tensor, with its own tensor1, tensor2 and value.")
    _offer(name + "_", both(name + "_", True), f"`{name}` of each tensor, in place.")


def _lerp(who, operation, in_place):
    def each(self, tensors1, weight=None, *, weights=None):
        weight = weights if weight is None else weight
        _check(who, self)
        _check(who, tensors1, "tensors1", 2)
        _check_length(who, self, tensors1)
        if isinstance(weight, cresset.Tensor):
            raise TypeError(f"_foreach_{who}(): argument 'weights' (position 3) must be tuple of Tensors, not Tensor")
        done = _at_once("lerp", in_place, self, tensors1, weight)
        if done is not None:
            return done
        weight, _ = _spread(who, self, weight, False)
        return _given(in_place, self, [operation(t, end, w) for t, end, w in zip(self, tensors1, weight, strict=True)])

    return each


for _name in UNARY:
    _unary(_name)
for _name, _row in BINARY.items():
    _binary(_name, *_row)
for _name in SCALED:
    _scaled(_name)
_offer("lerp", _lerp("lerp", functions["lerp"], False), "`lerp` from each tensor to its `tensors1`.")
_offer("lerp_", _lerp("lerp_", methods["lerp_"], True), "`lerp` from each tensor to its `tensors1`, in place.")


@function
def _foreach_zero_(self):
    """Set each tensor to zero."""
    _check("zero_", self)
    if not self[0].is_cuda or _native.foreach_copy(self, None) is NotImplemented:
        for tensor in self:
            tensor.zero_()
    return self


@function
def _foreach_copy_(self, src, non_blocking=False):
    """Copy each of `src` into its tensor."""
    _check("copy_", self)
    _check("copy_", src, "src", 2)
    _check_length("copy_", self, src)
    if not self[0].is_cuda or _native.foreach_copy(self, src) is NotImplemented:
        for tensor, source in zip(self, src, strict=True):
            tensor.copy_(source, non_blocking)
    return self


@function
def _foreach_clone(self, *, memory_format=None):
    """A copy of each tensor."""
    _check("clone", self)
    return tuple([tensor.clone(memory_format=memory_format) for tensor in self])


def _norms(tensors, ord):
    """The norms of CUDA tensors of one dtype and device as one tensor; None where they have to be taken one by one."""
    if not tensors[0].is_cuda or isinstance(ord, str):
        return None
    norms = _native.foreach_norms(tensors, float(ord))
    return None if norms is NotImplemented else norms


@function
def _foreach_norm(self, ord=2, dtype=None):
    """The norm of all elements of each tensor."""
    _check("norm", self)
    if ord == math.inf and any(tensor.numel() == 0 for tensor in self):
        raise RuntimeError(
            "_foreach_norm cannot compute the infinity norm on an empty tensor because the operation does not have an "
            "identity"
        )
    norms = _norms(self, ord) if dtype is None else None
    if norms is not None:
        return norms.unbind()
    return tuple([cresset.linalg.vector_norm(tensor, ord, dtype=dtype) for tensor in self])


@function
def _foreach_powsum(self, ord=2, dtype=None):
    """The sum of |x| ** ord over each tensor."""
    _check("powsum", self)
    return tuple([tensor.abs().pow(ord).sum(dtype=dtype) for tensor in self])


@function
def _foreach_max(self):
    """The largest element of each tensor."""
    _check("max", self)
    for tensor in self:
        if tensor.numel() == 0:
            raise RuntimeError(
                "_foreach_max cannot compute the maximum of an empty tensor; max over zero elements is undefined."
            )
    return tuple([tensor.max() for tensor in self])


@function
def _foreach_mm(self, mat2):
    """The product of each matrix and its `mat2`."""
    _check("mm", self)
    _check("mm", mat2, "mat2", 2)
    _check_length("mm", self, mat2)
    return tuple([cresset.mm(a, b) for a, b in zip(self, mat2, strict=True)])
