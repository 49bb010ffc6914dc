"""assert_close: do two tensors, numbers, or containers of them agree, within the tolerance of their dtype?"""

import cmath
import contextlib
import math
import numbers
import warnings
from collections.abc import Mapping, Sequence

import cresset

from ..sparse import SparseTensor
from ..tensors.quantized import QuantizedTensor

__all__ = ["assert_allclose", "assert_close", "default_tolerances"]

_TOLERANCES = {  # dtype: (rtol, atol); exact for all others
    cresset.float16: (1e-3, 1e-5),
    cresset.bfloat16: (1.6e-2, 1e-5),
    cresset.float32: (1.3e-6, 1e-5),
    cresset.float64: (1e-7, 1e-7),
    cresset.complex32: (1e-3, 1e-5),
    cresset.complex64: (1.3e-6, 1e-5),
    cresset.complex128: (1e-7, 1e-7),
    **dict.fromkeys(
        (cresset.quint8, cresset.quint4x2, cresset.quint2x4, cresset.qint8, cresset.qint32), (1.3e-6, 1e-5)
    ),
}
_OLD_TOLERANCES = {cresset.float16: (1e-3, 1e-3), cresset.float32: (1e-4, 1e-5), cresset.float64: (1e-5, 1e-8)}
_COMPRESSED = {  # layout: its name, and its two lists of places
    cresset.sparse_csr: ("CSR", "crow_indices", "col_indices"),
    cresset.sparse_csc: ("CSC", "ccol_indices", "row_indices"),
    cresset.sparse_bsr: ("BSR", "crow_indices", "col_indices"),
    cresset.sparse_bsc: ("BSC", "ccol_indices", "row_indices"),
}
_OF_PYTHON = {int: cresset.int64, float: cresset.float64, complex: cresset.complex128}


def default_tolerances(*inputs):
    """(rtol, atol) for tensors or dtypes: the loosest of theirs.

    >>> cresset.testing.comparison.default_tolerances(cresset.float32, cresset.float64)
    (1.3e-06, 1e-05)
    """
    dtypes = [input if isinstance(input, cresset.dtype) else input.dtype for input in inputs]
    rtols, atols = zip(*(_TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes), strict=True)
    return max(rtols), max(atols)


def assert_close(
    actual,
    expected,
    *,
    allow_subclasses=True,
    rtol=None,
    atol=None,
    equal_nan=False,
    check_device=True,
    check_dtype=True,
    check_layout=True,
    check_stride=False,
    msg=None,
):
    """Raise AssertionError unless |actual - expected| <= atol + rtol |expected| everywhere.

    Tensors, NumPy arrays and numbers are compared, and mappings and sequences of them item by item.

    Args:
        allow_subclasses: compare different types when one is a subclass of the other.
        rtol, atol: both or none; None: what fits the dtype (float32: 1.3e-6 and 1e-5; exact for integers).
        equal_nan: nan equals nan.
        check_device, check_dtype, check_layout, check_stride: whether these have to be the same, too.
        msg: what the error says instead, or a function that makes it from what it would say.

    >>> cresset.testing.assert_close(cresset.tensor([1.0, 2.0]), cresset.tensor([1.0, 2.5]))
    Traceback (most recent call last):
    AssertionError: Tensor-likes are not close!
    <BLANKLINE>
    Mismatched elements: 1 / 2 (50.0%)
    Greatest absolute difference: 0.5 at index (1,) (up to 1e-05 allowed)
    Greatest relative difference: 0.20000000298023224 at index (1,) (up to 1.3e-06 allowed)
    """
    __tracebackhide__ = True
    comparison = _Comparison(
        rtol, atol, equal_nan, allow_subclasses, check_device, check_dtype, check_layout, check_stride
    )
    # The whole structure first: `msg` is for values that differ.
    for compare, one, other, place in list(comparison.pairs(actual, expected, ())):
        try:
            compare(one, other)
        except AssertionError as error:
            text = _with_place(str(error), place)
            raise AssertionError(msg if isinstance(msg, str) else msg(text) if callable(msg) else text) from None


def _with_place(text, place):
    return text + (f"\n\nThe failure occurred for item {''.join(f'[{key!r}]' for key in place)}" if place else "")


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg=""):
    """The old form of assert_close: dtypes, devices and Python types need not be the same.

    >>> cresset.testing.assert_allclose(cresset.tensor([1.0]), cresset.tensor([1.0], dtype=cresset.float64))
    """
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. "
        "Please use `torch.testing.assert_close()` instead.",
        FutureWarning,
        stacklevel=2,
    )
    actual = actual if isinstance(actual, cresset.Tensor) else cresset.tensor(actual)
    expected = expected if isinstance(expected, cresset.Tensor) else cresset.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        old = [_OLD_TOLERANCES.get(tensor.dtype, (0.0, 0.0)) for tensor in (actual, expected)]
        rtol, atol = map(max, zip(*old, strict=True))
    assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True, check_dtype=False,
        check_stride=False, msg=msg or None,
    )  # fmt: skip


class _Comparison:
    """The options of one call, and the comparison of two values by what they are."""

    def __init__(self, rtol, atol, equal_nan, allow_subclasses, check_device, check_dtype, check_layout, check_stride):
        self.rtol, self.atol, self.equal_nan, self.allow_subclasses = rtol, atol, equal_nan, allow_subclasses
        self.check_device, self.check_dtype = check_device, check_dtype
        self.check_layout, self.check_stride = check_layout, check_stride

    def pairs(self, actual, expected, place):
        """(how to compare them, one, other, place) for each pair of items that are not containers."""
        if isinstance(actual, Mapping) and isinstance(expected, Mapping):
            yield from self.pairs_of_mappings(actual, expected, place)
        elif _is_sequence(actual) and _is_sequence(expected):
            if len(actual) != len(expected):
                text = f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
                raise AssertionError(_with_place(text, place))
            for index in range(len(actual)):
                yield from self.pairs(actual[index], expected[index], (*place, index))
        elif actual is None or expected is None:
            yield self.compare_none, actual, expected, place
        elif _is_boolean(actual) and _is_boolean(expected):
            yield self.compare_booleans, bool(actual), bool(expected), place
        elif _is_number(actual) and _is_number(expected):
            self.check_tolerances()
            yield self.compare_numbers, _plain_number(actual), _plain_number(expected), place
        elif self.are_related(actual, expected):
            one, other = _as_tensor(actual, expected), _as_tensor(expected, actual)
            self.check_tolerances()
            yield self.compare_tensors, one, other, place
        else:
            raise _cannot(actual, expected)

    def pairs_of_mappings(self, actual, expected, place):
        missing, additional = expected.keys() - actual.keys(), actual.keys() - expected.keys()
        if missing or additional:
            text = (
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {sorted(missing, key=str)}\n"
                f"Additional keys in the actual mapping: {sorted(additional, key=str)}"
            )
            raise AssertionError(_with_place(text, place))
        keys = list(expected)
        with contextlib.suppress(TypeError):  # keys of different types keep their order
            keys.sort()
        for key in keys:
            yield from self.pairs(actual[key], expected[key], (*place, key))

    def check_tolerances(self):
        if (self.rtol is None) != (self.atol is None):
            raise ValueError(
                "assert_close: 'rtol' and 'atol' must be either both specified or both omitted, "
                f"but got no {'rtol' if self.rtol is None else 'atol'}"
            )
        if self.rtol is not None and (self.rtol < 0 or self.atol < 0):
            raise RuntimeError(f"assert_close: 'rtol' and 'atol' must not be negative, got {self.rtol} and {self.atol}")

    def are_related(self, actual, expected):
        one, other = _type_of(actual), _type_of(expected)
        if not self.allow_subclasses and one is not other:
            return False
        return issubclass(one, other) or issubclass(other, one)

    # ------------------------------------------------------------ numbers

    def compare_none(self, actual, expected):
        if actual is not expected:
            raise AssertionError(f"None mismatch: {actual} is not {expected}")

    def compare_booleans(self, actual, expected):
        if actual is not expected:
            raise AssertionError(f"Booleans mismatch: {actual} is not {expected}")

    def compare_numbers(self, actual, expected):
        if self.check_dtype and type(actual) is not type(expected):
            raise AssertionError(f"The (d)types do not match: {type(actual)} != {type(expected)}.")
        rtol, atol = self.rtol, self.atol
        if rtol is None:
            rtol, atol = default_tolerances(_OF_PYTHON[type(actual)], _OF_PYTHON[type(expected)])
        if not self.are_numbers_close(actual, expected, rtol, atol):
            raise AssertionError(_numbers_differ(actual, expected, rtol, atol))

    def are_numbers_close(self, actual, expected, rtol, atol):
        if actual == expected or (self.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
            return True
        difference = abs(actual - expected)
        return math.isfinite(difference) and difference <= atol + rtol * abs(expected)

    # ------------------------------------------------------------ tensors

    def compare_tensors(self, actual, expected):
        self.compare_attributes(actual, expected)
        if actual.device.type == "meta" or expected.device.type == "meta":
            return  # there are no values to compare
        if actual.device != expected.device:
            actual, expected = actual.cpu(), expected.cpu()
        rtol, atol = self.rtol, self.atol
        if rtol is None:
            rtol, atol = default_tolerances(actual, expected)
        actual, expected = actual.detach(), expected.detach()
        if actual.layout != expected.layout:
            actual, expected = (one if one.layout == cresset.strided else one.to_dense() for one in (actual, expected))
        if actual.is_quantized:
            self.compare_values(actual.dequantize(), expected.dequantize(), rtol, atol, "Quantized tensor-likes")
        elif actual.layout == cresset.sparse_coo:
            self.compare_coo(actual, expected, rtol, atol)
        elif actual.layout in _COMPRESSED:
            self.compare_compressed(actual, expected, rtol, atol)
        else:
            self.compare_values(actual, expected, rtol, atol)

    def compare_coo(self, actual, expected, rtol, atol):
        if actual.is_coalesced() != expected.is_coalesced():
            actual, expected = actual.coalesce(), expected.coalesce()
        _expect_same_number("sparse dimensions", "COO", actual.sparse_dim(), expected.sparse_dim())
        _expect_same_number("specified values", "COO", actual._nnz(), expected._nnz())
        self.compare_values(actual._indices(), expected._indices(), 0, 0, "Sparse COO indices")
        self.compare_values(actual._values(), expected._values(), rtol, atol, "Sparse COO values")

    def compare_compressed(self, actual, expected, rtol, atol):
        kind, *indices = _COMPRESSED[actual.layout]
        _expect_same_number("specified values", kind, actual._nnz(), expected._nnz())
        for name in indices:
            places = getattr(actual, name)(), getattr(expected, name)()
            self.compare_values(*places, 0, 0, f"Sparse {kind} {name}")
        self.compare_values(actual.values(), expected.values(), rtol, atol, f"Sparse {kind} values")

    def compare_values(self, actual, expected, rtol, atol, who="Tensor-likes"):
        if actual.dtype != expected.dtype:
            common = cresset.promote_types(actual.dtype, expected.dtype)
            actual, expected = actual.to(common), expected.to(common)
        actual, expected = actual.resolve_conj(), expected.resolve_conj()
        is_small = actual.dtype.is_floating_point and actual.dtype.itemsize == 1
        if is_small:
            if rtol or atol:
                raise AssertionError(
                    f"Rtol={rtol} and atol={atol} are not supported for the bitwise comparison of {actual.dtype}. "
                    "Please use rtol=0.0 and atol=0.0."
                )
            actual, expected = actual.float(), expected.float()
        matches = cresset.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=self.equal_nan)
        if matches.all():
            return
        if actual.dim() == 0:
            raise AssertionError(_numbers_differ(actual.item(), expected.item(), rtol, atol))
        if is_small:
            raise AssertionError(_small_floats_differ(matches, who))
        raise AssertionError(_tensors_differ(actual, expected, matches, rtol, atol, who))

    def compare_attributes(self, actual, expected):
        def expect_same(name, ours, theirs):
            if ours != theirs:
                raise AssertionError(f"The values for attribute '{name}' do not match: {ours} != {theirs}.")

        expect_same("shape", actual.shape, expected.shape)
        expect_same("is_quantized", actual.is_quantized, expected.is_quantized)
        if actual.is_quantized:
            expect_same("qscheme()", actual.qscheme(), expected.qscheme())
        if self.check_layout:
            expect_same("layout", actual.layout, expected.layout)
        if self.check_stride and actual.layout == expected.layout == cresset.strided:
            expect_same("stride()", actual.stride(), expected.stride())
        if self.check_device:
            expect_same("device", actual.device, expected.device)
        if self.check_dtype:
            expect_same("dtype", actual.dtype, expected.dtype)


# ---------------------------------------------------------------- what a value is


def _is_sequence(value):
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_boolean(value):
    return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool") and type(value).__module__ == "numpy"


def _is_number(value):
    return isinstance(value, numbers.Number) and not isinstance(value, bool) and not _is_boolean(value)


def _plain_number(value):
    """NumPy's scalars as Python's."""
    return value.item() if type(value).__module__ == "numpy" else value


def _type_of(value):
    """The type as users know it: a tensor of another layout is a Tensor to them."""
    return cresset.Tensor if isinstance(value, (SparseTensor, QuantizedTensor)) else type(value)


def _cannot(actual, expected):
    return TypeError(f"assert_close: cannot compare inputs of type {type(actual)} and {type(expected)}")


def _as_tensor(value, other):
    if isinstance(value, cresset.Tensor):
        return value
    try:
        return cresset.as_tensor(value)
    except Exception:
        raise _cannot(value, other) from None


# ---------------------------------------------------------------- how it is told


def _allowed(tolerance, exact):
    return "" if exact else f" (up to {tolerance} allowed)"


def _numbers_differ(actual, expected, rtol, atol):
    exact = rtol == 0 and atol == 0
    difference = abs(actual - expected)
    relative = math.inf if expected == 0 else difference / abs(expected)
    return (
        f"Scalars are not {'equal' if exact else 'close'}!\n\n"
        f"Expected {expected} but got {actual}.\n"
        f"Absolute difference: {difference}{_allowed(atol, exact)}\n"
        f"Relative difference: {relative}{_allowed(rtol, exact)}"
    )


def _expect_same_number(what, kind, ours, theirs):
    if ours != theirs:
        raise AssertionError(f"The number of {what} in sparse {kind} tensors does not match: {ours} != {theirs}")


def _index_of(place, shape):
    return tuple(int(i) for i in cresset.unravel_index(cresset.tensor(place), shape))


def _small_floats_differ(matches, who):
    wrong, total = matches.numel() - int(matches.sum()), matches.numel()
    first = int((~matches).flatten().int().argmax())
    return (
        f"{who} are not equal!\n\n"
        f"Mismatched elements: {wrong} / {total} ({wrong / total:.1%})\n"
        f"The first mismatched element is at index {_index_of(first, matches.shape)}."
    )


def _tensors_differ(actual, expected, matches, rtol, atol, who):
    exact = rtol == 0 and atol == 0
    total = matches.numel()
    wrong = total - int(matches.sum())
    if not (actual.dtype.is_floating_point or actual.dtype.is_complex):
        actual, expected = actual.to(cresset.int64), expected.to(cresset.int64)
    difference = (actual - expected).abs().masked_fill(matches, 0)
    relative = (difference / expected.abs()).masked_fill(matches, 0)

    def greatest(name, values, tolerance):
        flat = values.flatten()
        place = int(flat.argmax())
        index = _index_of(place, values.shape)
        return f"Greatest {name} difference: {flat[place].item()} at index {index}{_allowed(tolerance, exact)}"

    return (
        f"{who} are not {'equal' if exact else 'close'}!\n\n"
        f"Mismatched elements: {wrong} / {total} ({wrong / total:.1%})\n"
        f"{greatest('absolute', difference, atol)}\n"
        f"{greatest('relative', relative, rtol)}"
    )
