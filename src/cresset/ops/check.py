"""Checks that raise, as functions: `_check` and its variants, `_assert`, and all-or-any of a tensor."""

import warnings

import cresset

from .registry import function


def only_strided(who, layout):
    """Refuse a layout other than torch.strided."""
    if layout not in (None, cresset.strided):
        raise RuntimeError(f"{who}: not implemented for sparse types, got layout={layout}; it is for torch.strided")


@function
def _assert(condition, message):
    """assert condition, message; a tracer that gives the condition writes the call down."""
    if (
        type(condition) is not bool
        and hasattr(type(condition), "__torch_function__")
        and not isinstance(condition, cresset.Tensor)
    ):
        from ..overrides import handle_torch_function

        handle_torch_function(_assert, (condition,), condition, message)
        return
    if not condition:
        raise AssertionError(message)


@function
def _check_with(error_type, cond, message=None):
    """Raise error_type(message()) unless `cond`, a bool or SymBool, is true."""
    if hasattr(cond, "__sym_demand__"):
        cond = cond.__sym_demand__()
    if not isinstance(cond, bool):
        hint = "; for a tensor of conditions there is _check_tensor_all" if isinstance(cond, cresset.Tensor) else ""
        raise TypeError(f"_check: cond must be a bool, got a {type(cond).__name__}{hint}")
    if cond:
        return
    if not issubclass(error_type, Exception) or issubclass(error_type, Warning):
        raise AssertionError(f"_check: error_type must be an Exception and no Warning, got {error_type}")
    if message is not None and not callable(message):
        raise TypeError("_check: message must be a function that returns the words")
    raise error_type("_check: Expected cond to be True, but got False" if message is None else str(message()))


def _offer_check(name, error_type):
    def check(cond, message=None):
        _check_with(error_type, cond, message)

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Raise {error_type.__name__}(message()) unless `cond` is true."
    function(check)


for _name, _error in {
    "_check": RuntimeError, "_check_index": IndexError, "_check_value": ValueError, "_check_type": TypeError,
    "_check_not_implemented": NotImplementedError,
}.items():  # fmt: skip
    _offer_check(_name, _error)


@function
def _check_is_size(i, message=None, *, max=None):
    """Raise RuntimeError unless 0 <= i (<= max)."""
    warnings.warn("_check_is_size is deprecated; use _check(i >= 0)", FutureWarning, stacklevel=2)
    cresset._check(i >= 0, message)
    if max is not None:
        cresset._check(i <= max, message)


@function
def _check_tensor_all_with(error_type, cond, message=None):
    """Raise error_type(message()) unless all elements of the boolean tensor are true."""
    if not isinstance(cond, cresset.Tensor):
        raise TypeError(f"_check_tensor_all: cond must be a tensor, got a {type(cond).__name__}")
    if cond.dtype != cresset.bool:
        raise TypeError(f"_check_tensor_all: cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


@function
def _check_tensor_all(cond, message=None):
    """Raise RuntimeError(message()) unless all elements of the boolean tensor are true."""
    _check_tensor_all_with(RuntimeError, cond, message)


@function
def _assert_async(input, assert_msg=None):
    """Raise RuntimeError unless the tensor's one element is true. (Devices may tell it later; the CPU does at once.)"""
    if input.numel() != 1:
        count = "more than one value" if input.numel() else "no values"
        raise RuntimeError(f"Boolean value of Tensor with {count} is ambiguous: _assert_async needs one")
    if not bool(input):
        zero = "Expected Tensor with single nonzero value, but got zero: _assert_async"
        raise RuntimeError(zero if assert_msg is None else assert_msg)


@function
def _assert_scalar(input, assert_msg):
    """Raise RuntimeError(assert_msg) unless the number is true."""
    if not input:
        raise RuntimeError(assert_msg)


@function
def _assert_tensor_metadata(a, size=None, stride=None, dtype=None, *, device=None, layout=None):
    """Raise RuntimeError unless the tensor has these facts; those that are None are not asked."""
    found = {"size": tuple(a.shape), "dtype": a.dtype, "device": a.device, "layout": a.layout}
    if stride is not None:
        found["stride"] = a.stride()
    asked = {
        "size": None if size is None else tuple(size),
        "stride": None if stride is None else tuple(stride),
        "dtype": dtype,
        "device": None if device is None else cresset.device(device),
        "layout": layout,
    }
    for name, wanted in asked.items():
        if wanted is not None and wanted != found[name]:
            raise RuntimeError(f"Tensor {name} mismatch! Expected: {wanted}, Got: {found[name]}")


@function
def sym_constrain_range(size, *, min=None, max=None):
    """Raise RuntimeError unless min <= size <= max; an end that is None is as far as an int64 reaches."""
    low, high = -(1 << 63) if min is None else min, (1 << 63) - 1 if max is None else max
    if high < low:
        raise RuntimeError(f"Max must be greater than or equal to min. Got min={low} max={high}")
    if not low <= size <= high:
        raise RuntimeError(f"Invalid value range for {size} between [{low}, {high}].")


@function
def sym_constrain_range_for_size(size, *, min=None, max=None):
    """The same for a number that is a size of a tensor: from 0 on; its largest value is above 2."""
    if max is not None and max <= 2:
        raise RuntimeError(f"Max value to constrain_range_for_size must be greater than 2. got: {max}")
    sym_constrain_range(size, min=0 if min is None else min, max=max)


@function(method=True)
def _is_all_true(input):
    """Whether all elements of a boolean tensor are true, as a 0-d tensor."""
    return input.all()


@function(method=True)
def _is_any_true(input):
    """Whether any element of a boolean tensor is true, as a 0-d tensor."""
    return input.any()


@function
def _shape_as_tensor(input):
    """The shape as a tensor of int64."""
    return cresset.tensor(tuple(input.shape), dtype=cresset.int64)
