"""Pointwise operators that a program defines itself with `@pointwise`.

When one is first called with tensors, its loops are printed as C++ and compiled with the compiler of the system ($CXX,
or g++), and become a native operator like those of the package. Without a compiler, or with CRESSET_COMPILER=none, the
formula is evaluated by ordinary operations.
"""

import ctypes
import functools
import inspect
import itertools
import re
import subprocess
import threading
import warnings

from ... import _native
from .. import formulas
from ..registry import _store
from . import system_compiler
from .definition import Pointwise, definitions, set_tensor_operator
from .expression import Expression
from .loops import MAX_INPUTS, loops_of, table_row

PROMOTIONS = {"same": 0, "float": 1, "bool": 2, "real": 3}  # enum Promotion
# Parameters become variables of the C++ text: these words are taken there.
RESERVED = frozenset(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
    concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete
    do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
    requires return short signed sizeof static static_assert static_cast struct switch template this thread_local throw
    true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
    count grad i int64_t large math out output pointers result scalars uint8_t uint64_t INFINITY NAN""".split()  # noqa: SIM905
)

_methods = set()  # the names that operators of the program have added to Tensor
_numbers = itertools.count()
_compiling = threading.Lock()


class OwnPointwise(Pointwise):
    """A pointwise operator of the running program. `in_place` is its form that writes into its first argument."""

    _public_names = {}  # callers use the names as they are written

    def __init__(self, formula, *options):
        self._native = None
        super().__init__(formula, *options)
        self.__name__, self.__qualname__, self.__module__ = self.name, formula.__qualname__, formula.__module__
        self.__doc__ = self.doc
        if self.method:
            self._become_method()

    def _enter(self):
        _check_words(self)
        if not self.inputs or max(len(self.inputs), len(self.attributes)) > MAX_INPUTS:
            raise ValueError(
                f"{self.name}: a pointwise operator has 1 to {MAX_INPUTS} inputs and at most {MAX_INPUTS} attributes, "
                f"this one has {len(self.inputs)} and {len(self.attributes)}"
            )
        self.key = f"{self.name}#{next(_numbers)}"
        formulas.own[self.key] = self

    def _become_method(self):
        forms = {self.name: self} | ({self.name + "_": self.in_place} if self.inplace else {})
        for name in forms:
            if hasattr(_native.Tensor, name) and name not in _methods:
                raise ValueError(
                    f"{self.name}: Tensor has an attribute {name!r}; choose another name, or say method=False"
                )
        for name, form in forms.items():
            _methods.add(name)
            setattr(_native.Tensor, name, _method(form, name, self.doc))

    @property
    def __signature__(self):
        parameter, empty = inspect.Parameter, inspect.Parameter.empty
        inputs = [
            parameter(name, parameter.POSITIONAL_OR_KEYWORD, default=None if kind in "lh" else empty)
            for name, kind in zip(self.inputs, self.kinds, strict=True)
        ]
        attributes = [
            parameter(
                a.name, parameter.KEYWORD_ONLY if a.keyword_only else parameter.POSITIONAL_OR_KEYWORD, default=a.default
            )
            for a in self.attributes
        ]
        return inspect.Signature([*inputs, *attributes, parameter("out", parameter.KEYWORD_ONLY, default=None)])

    def on(self, types):
        self._check_uncalled()
        return super().on(types)

    def derivative(self, function):
        self._check_uncalled()
        super().derivative(function)

    def gradient(self, function):
        self._check_uncalled()
        super().gradient(function)

    def _check_uncalled(self):
        if self._native is not None:
            raise RuntimeError(
                f"{self.name}: it was called with tensors already; say all about it before the first call"
            )

    def __call__(self, *args, **kwargs):
        values = (*args, *kwargs.values())
        if not any(isinstance(value, _native.Tensor) for value in values):
            return super().__call__(*args, **kwargs)
        if any(isinstance(value, Expression) for value in values):
            raise TypeError(f"{self.name}: got expressions and tensors in one call")
        return self._operators()[0](*args, **kwargs)

    def in_place(self, *args, **kwargs):
        """The operator, with its result written into its first argument."""
        return self._operators()[1](*args, **kwargs)

    @property
    def is_compiled(self):
        """Whether calls with tensors run compiled loops."""
        return isinstance(self._operators()[0], _native.Operator)

    def _operators(self):
        if self._native is None:
            with _compiling:
                if self._native is None:
                    set_tensor_operator(formulas.operators.__getitem__)
                    self._native = _compile(self) or (
                        functools.partial(_by_operations, self),
                        functools.partial(_in_place_by_operations, self),
                    )
        return self._native


def _method(form, name, doc):
    def method(self, *args, **kwargs):
        return form(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = doc
    return method


def _check_words(operator):
    for name in (operator.name, operator.name + "_"):
        if name in definitions or name in formulas.operators:
            raise ValueError(f"{operator.name}: cresset has an operator {name!r}; choose another name")
    for name in (*operator.inputs, *(attribute.name for attribute in operator.attributes)):
        if name in RESERVED or not name.isascii() or name.endswith("_") or re.fullmatch(r"t\d+", name):
            raise ValueError(
                f"{operator.name}: {name!r} cannot be the name of a parameter: C++ or the loop's text uses it"
            )
    if not operator.name.isascii():
        raise ValueError(f"{operator.name}: the name of an operator is made of ASCII letters, digits and _")


# ---- with a compiler


def _compile(operator):
    """(the native operator, its in-place form), or None without a compiler."""
    compiler = system_compiler.find()
    if compiler is None:
        return None
    try:
        library = system_compiler.load(source_of(operator), compiler)
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout or "").strip()[-2000:]
        warnings.warn(
            f"{operator.name}: {compiler} failed, so ordinary operations compute it. It said:\n{said}", stacklevel=4
        )
        return None
    _libraries.append(library)
    places = {name: 1 << place for place, name in enumerate(operator.inputs)} | {"output": 0x80}
    return _native.add_pointwise(
        operator.key, operator.signature, operator.doc, operator.kinds, len(operator.attributes),
        PROMOTIONS[operator.result], True,
        operator.differentiable, [sum(places[name] for name in names) for names in operator.uses()],
        operator.has_gradient(),
        operator.missing_attributes(), ctypes.addressof(ctypes.c_char.in_dll(library, "cresset_loops")),
    )  # fmt: skip


_libraries = []  # operators hold addresses in them, and live as long as the process


def source_of(operator):
    """The C++ text of an operator's loops, with their table."""
    loops = loops_of(operator)
    includes = ["base/vector_math.h", "base/complex_arithmetic.h", "base/integer_math.h", "base/polynomials.h"]
    includes += ["dispatch/pointwise.h", "dispatch/pointwise_loop.h"]
    if not all(loop.at_every_level for loop in loops.values()):
        includes += ["base/complex_math.h", "base/special_math.h"]
    return "\n".join([
        '#pragma GCC optimize("no-thread-jumps")', *(f'#include "{name}"' for name in includes), "",
        "namespace cresset::pointwise::own {", "", *(loop.text() for loop in loops.values()), "}", "",
        'extern "C" __attribute__((visibility("default"))) const cresset::PointwiseLoops cresset_loops = {',
        f"     {table_row(loops, len(operator.inputs), lambda loop: f'cresset::pointwise::own::{loop.name}')}}};", "",
    ])  # fmt: skip


# ---- without one


def _by_operations(operator, *args, out=None, **kwargs):
    """The formula called with tensors, in the type that the loop would compute in."""
    bound = operator.__signature__.bind(*args, **kwargs)
    bound.apply_defaults()
    values = bound.arguments
    values.pop("out")
    inputs = [values[name] for name in operator.inputs]
    attributes = [_attribute(attribute, values[attribute.name]) for attribute in operator.attributes]
    result = _function().apply(operator, attributes, *inputs)
    return result if out is None else _store(operator.name, out, result, True)


def _in_place_by_operations(operator, input, *args, **kwargs):
    result = _by_operations(operator, input.clone(), *args, **kwargs)  # backward may read what is about to change
    if result.shape != input.shape:
        raise RuntimeError(
            f"{operator.name}_: output with shape {list(input.shape)} doesn't match the broadcast shape "
            f"{list(result.shape)}"
        )
    _native.check_cast(f"{operator.name}_", result.dtype, input.dtype)
    return input.copy_(result)


def _attribute(attribute, value):
    if value is None:
        return attribute.missing_number
    return {"int": int, "bool": bool}.get(attribute.kind, lambda v: v)(value)


def _promote(values):
    """The common dtype of tensors and numbers; a tensor with dimensions outranks one without, which outranks a
    number."""

    def both(a, b):
        if not isinstance(a, _native.Tensor) and not isinstance(b, _native.Tensor):
            return a + b
        dtype = _native.result_type(a, b)
        flat = all(not isinstance(v, _native.Tensor) or v.dim() == 0 for v in (a, b))
        return formulas.operators["empty"](() if flat else (0,), dtype=dtype)

    result = functools.reduce(both, values)
    return result.dtype if isinstance(result, _native.Tensor) else _native.result_type(result, result)


def _types(operator, inputs):
    """The dtypes of the promoted inputs, of the computation and of the result, and the name of the second."""
    common = _promote([v for v, kind in zip(inputs, operator.kinds, strict=True) if kind != "b" and v is not None])
    integral = not (common.is_floating_point or common.is_complex)
    if common is _native.bool and operator.kinds[0] == "n":
        common = _native.int64
    if integral and (operator.result == "float" or (operator.result == "real" and "i64" not in operator.types)):
        common, integral = _native.get_default_dtype(), False
    if common is _native.bool:
        compute, name = common, "b8"
    elif integral:
        compute, name = _native.int64, "i64"
    else:
        compute, name = {
            "torch.float64": (_native.float64, "f64"), "torch.complex128": (_native.complex128, "c128"),
        }.get(str(common)) or ((_native.complex64, "c64") if common.is_complex else (_native.float32,
            "f32"))  # fmt: skip
    if name not in operator._formulas:
        raise NotImplementedError(f"{operator.name}: \"{operator.name}_cpu\" not implemented for '{str(common)[6:]}'")
    if operator.result == "bool":
        result = _native.bool
    else:
        result = common.to_real() if operator.result == "real" and common.is_complex else common
    return compute, result, name


@functools.cache
def _function():
    from ...autograd import Function

    class ByOperations(Function):
        """The formula forward, the declared derivative backward: what the compiled operator does."""

        @staticmethod
        def forward(ctx, operator, attributes, *inputs):
            compute, dtype, name = _types(operator, inputs)
            tensors = [v for v in inputs if isinstance(v, _native.Tensor)]
            shape = functools.reduce(_broadcast, (t.shape for t in tensors))
            typed = _typed(operator, inputs, compute)
            values = dict(zip(operator.inputs, typed, strict=True))
            values.update((a.name, v) for a, v in zip(operator.attributes, attributes, strict=True))
            formula = operator._formulas[name]
            result = formula(**{word: values[word] for word in inspect.signature(formula).parameters})
            if not isinstance(result, _native.Tensor):
                result = tensors[0].new_full(shape, result, dtype=dtype)
            result = result.to(dtype).expand(shape)
            result = (
                result.clone()
                if result.shape != shape or any(result is t for t in (*tensors, *typed))
                else result.contiguous()
            )
            ctx.operator, ctx.attributes, ctx.compute = operator, attributes, compute
            ctx.numbers = [None if isinstance(v, _native.Tensor) else v for v in inputs]
            ctx.is_tensor = [isinstance(v, _native.Tensor) for v in inputs]
            ctx.save_for_backward(*tensors, result)
            if not operator.differentiable:
                ctx.mark_non_differentiable(result)
            return result

        @staticmethod
        def backward(ctx, grad):
            *tensors, output = ctx.saved_tensors
            left = iter(tensors)
            inputs = [next(left) if given else number for given, number in zip(ctx.is_tensor, ctx.numbers, strict=True)]
            operator, real = ctx.operator, ctx.operator.result in ("real", "bool")
            typed = _typed(operator, inputs, ctx.compute)
            if not real:
                grad, output = grad.to(ctx.compute), output.to(ctx.compute)
            gradients = operator.gradients(grad, typed, ctx.attributes, output)
            return (None, None, *(
                g.to(v.dtype).expand(grad.shape).sum_to_size(v.shape)
                if given and g is not None and v.dtype.is_floating_point | v.dtype.is_complex
                else None
                for g, v, given in zip(gradients, inputs, ctx.is_tensor, strict=True)
            ))  # fmt: skip

    return ByOperations


def _typed(operator, inputs, compute):
    missing = {"l": float("-inf"), "h": float("inf")}
    return [
        missing[kind]
        if value is None
        else value.to(_native.bool if kind == "b" else compute)
        if isinstance(value, _native.Tensor)
        else value
        for value, kind in zip(inputs, operator.kinds, strict=True)
    ]


def _broadcast(a, b):
    from ... import broadcast_shapes

    return broadcast_shapes(a, b)
