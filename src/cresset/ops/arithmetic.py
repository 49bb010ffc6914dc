"""Further names and forms of pointwise operators: aliases, operators with a choice of formula, reflected arithmetic."""

import cresset
from cresset.tensors.tensor import refuse_gradient

from .. import _native
from .._native import name_node
from .registry import alias, as_it_was, function, functions, functions_in_place, methods, operator

operator(
    "floor_divide",
    """input / other rounded down: what Python's // gives.

It has no derivative, other than `div(rounding_mode="floor")`, whose is zero.

>>> cresset.floor_divide(cresset.tensor([7, -7]), 2)
tensor([ 3, -4])
""",
)


def _compare_in_place(name):
    compare, native = functions[name], methods[name + "_"]

    def in_place(input, other):
        if input.requires_grad and cresset.is_grad_enabled():
            return input.copy_(compare(input, other))  # what was there has no part in the answer: its gradient is zero
        return native(input, other)

    in_place.__name__ = in_place.__qualname__ = name + "_"
    in_place.__doc__ = f"In-place form of `{name}`."
    methods[name + "_"] = in_place


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _compare_in_place(_name)
for _name, _others in {
    "sub": ("subtract",), "mul": ("multiply",), "div": ("divide", "true_divide"), "abs": ("absolute",),
    "neg": ("negative",),
    "clamp": ("clip",), "ne": ("not_equal",), "lt": ("less",), "le": ("less_equal",), "gt": ("greater",),
    "ge": ("greater_equal",), "trunc": ("fix",),
    "acos": ("arccos",), "asin": ("arcsin",), "atan": ("arctan",), "atan2": ("arctan2",), "acosh": ("arccosh",),
    "asinh": ("arcsinh",), "atanh": ("arctanh",),
}.items():  # fmt: skip
    alias(_name, *_others)
for _table in (functions, methods):
    for _private in ("div_floor", "div_trunc", "div_floor_", "div_trunc_"):
        _table.pop(_private, None)


@function(method=True)
def positive(input):
    """The tensor itself; bool tensors are refused, as by the operator +.

    >>> cresset.positive(cresset.tensor([-1.0]))
    tensor([-1.])
    """
    if input.dtype == cresset.bool:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


@function(method=True, out=True)
def float_power(input, exponent):
    """input ** exponent, computed in float64 (or complex128).

    >>> cresset.float_power(cresset.tensor([2]), 3)
    tensor([8.], dtype=torch.float64)
    """
    complex_wanted = any(
        isinstance(v, complex) or (isinstance(v, cresset.Tensor) and v.is_complex()) for v in (input, exponent)
    )
    dtype = cresset.complex128 if complex_wanted else cresset.float64
    base, power = (v.to(dtype) if isinstance(v, cresset.Tensor) else v for v in (input, exponent))
    if not isinstance(base, cresset.Tensor) and not isinstance(power, cresset.Tensor):
        base = cresset.tensor(base, dtype=dtype)
    return base**power


@function(method="only")
def float_power_(input, exponent):
    """In-place form of `float_power`, for tensors of float64 or complex128.

    >>> cresset.tensor([2.0], dtype=cresset.float64).float_power_(3)
    tensor([8.], dtype=torch.float64)
    """
    result = float_power(as_it_was(input, exponent), exponent)
    if input.dtype != result.dtype:
        raise RuntimeError(
            f"float_power_: the base given to float_power_ has dtype {input.dtype} but the operation's result "
            f"requires dtype {result.dtype}"
        )
    return input.copy_(result)


_conj_physical = functions["conj_physical"]


@function(method=True)
def conj_physical(input, *, out=None):
    """The complex conjugate, written out; of a real tensor, itself.

    >>> cresset.conj_physical(cresset.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return input if out is None and not input.is_complex() else _conj_physical(input, out=out)


@function(method=True)
def conj(input):
    """The complex conjugate; of a real tensor, itself.

    >>> cresset.conj(cresset.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return name_node(cresset.conj_physical(input), "ConjBackward0") if input.is_complex() else input


@function(method=True)
def _neg_view(input):
    """The tensor negated, in memory of its own: as conjugation, negation is carried out at once.

    >>> cresset._neg_view(cresset.tensor([1.0, -2.0]))
    tensor([-1.,  2.])
    """
    return cresset.neg(input)


@function(method=True)
def resolve_conj(input):
    """The tensor itself: conjugation is always carried out here, never pending."""
    return input


@function(method=True)
def resolve_neg(input):
    """The tensor itself: negation is always carried out here, never pending."""
    return input


@function(method=True)
def rsub(input, other, alpha=1):
    """other - alpha * input."""
    node = "RsubBackward0" if isinstance(other, cresset.Tensor) else "RsubBackward1"
    return name_node(cresset.sub(other, input, alpha=alpha), node)


_nan_to_num, _nan_to_num_ = functions["nan_to_num"], methods["nan_to_num_"]


@function(method=True)
def nan_to_num(input, nan=None, posinf=None, neginf=None, *, out=None):
    """The elements with nan replaced by `nan` (0), and infinities by `posinf` and `neginf` (the largest number of that
    sign).

    >>> cresset.nan_to_num(cresset.tensor([1.0, float("nan")]))
    tensor([1., 0.])
    """
    return _nan_to_num(input, 0.0 if nan is None else nan, posinf, neginf, **({} if out is None else {"out": out}))


def nan_to_num_(input, nan=None, posinf=None, neginf=None):
    """`nan_to_num` in place."""
    return _nan_to_num_(input, 0.0 if nan is None else nan, posinf, neginf)


methods["nan_to_num_"] = functions["nan_to_num_"] = nan_to_num_

_where = functions["where"]


@function(method=False)
def where(condition, input=None, other=None, *, out=None):
    """Elements of `input` where `condition` holds, of `other` elsewhere; with the condition alone, the places where it
    holds.

    >>> cresset.where(cresset.tensor([True, False]), 1.0, 2.0)
    tensor([1., 2.])
    """
    if input is None and other is None:
        return cresset.nonzero(condition, as_tuple=True)
    return _where(condition, input, other) if out is None else _where(condition, input, other, out=out)


def _where_method(self, condition, other):
    """Elements of the tensor where `condition` holds, of `other` elsewhere."""
    return _where(condition, self, other)


methods["where"] = _where_method


functions.pop("gamma_density")  # a derivative's, and nobody else's
_trigamma, _polygamma = functions.pop("trigamma"), functions.pop("polygamma_elementwise")
for _name in ("trigamma", "polygamma_elementwise"):
    methods.pop(_name, None)
    methods.pop(f"{_name}_", None)


@function(out="cast")
def polygamma(n, input):
    """The n-th derivative of the digamma function.

    >>> cresset.polygamma(1, cresset.tensor([1.0]))
    tensor([1.6449])
    """
    if n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n. It is {n}")
    if n < 2:
        return _trigamma(input) if n else cresset.digamma(input)
    return _polygamma(input, n)


def _polygamma_method(self, n):
    """The n-th derivative of the digamma function."""
    return polygamma(n, self)


def _polygamma_in_place(self, n):
    """In-place form of `polygamma`."""
    result = polygamma(n, as_it_was(self))
    _native.check_cast("polygamma_", result.dtype, self.dtype)
    return self.copy_(result)


methods["polygamma"], methods["polygamma_"] = _polygamma_method, _polygamma_in_place


@function(method="only", autocast="lower")
def prelu(input, weight):
    """`input` where it is positive, `weight` times it elsewhere.

    >>> cresset.tensor([-2.0, 3.0]).prelu(cresset.tensor(0.5))
    tensor([-1.,  3.])
    """
    return cresset.prelu(input, weight)


@function(method="only", name="__rdiv__")
def _reversed_division(input, other):
    """other / input."""
    return input.reciprocal() * other


@function(method="only")
def map2_(input, x, y, callable):
    """Replace each element by callable(element, element of x, element of y).

    >>> cresset.tensor([1.0, 2.0]).map2_(cresset.ones(2), cresset.zeros(2), lambda a, b, c: a + b + c)
    tensor([2., 3.])
    """
    refuse_gradient("map2_", input, x, y)
    columns = (t.expand_as(input).reshape(-1).tolist() for t in (input, x, y))
    made = [callable(*elements) for elements in zip(*columns, strict=True)]
    return input.copy_(cresset.tensor(made, dtype=input.dtype).reshape(input.shape))


functions_in_place("arccos_", "arccosh_", "arcsin_", "arcsinh_", "arctan_", "arctanh_", "clip_", "fix_", "negative_")
