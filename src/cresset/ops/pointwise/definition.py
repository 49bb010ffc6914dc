"""The decorator `@pointwise`: a formula, its derivative, and what follows from both.

    @pointwise(types="float complex", examples=[(0.0, 0.5)])
    def sigmoid(x):
        '''1 / (1 + exp(-x)), elementwise.'''
        return 1 / (1 + exp(-x))

    @sigmoid.derivative
    def _(output):
        return output * (1 - output)

Parameters. Without a default: a tensor input (`x` and `y` are what callers know as `input` and `other`); annotated
`bool`: a bool input; annotated `Lowest` or `Highest`: an input that may be None and then is the least or greatest value
of the type; `Divisor`: one that must not be 0 among whole numbers; `Number`: one that counts bool as a whole number.
With a default, or annotated `int`, `float`, `Scalar`, `Optional` or `Flag`: a scalar attribute. It has the type of the
computation; but `int` and `Flag` ones are i64 and b8 always, `float` and `Optional` ones are real, and so are those
annotated `Lowest` or `Highest`, where None stands for the least or greatest finite number of the input's dtype.
`.single` adds a formula in single precision for devices on which doubles are dear (`in_single_precision`).
Derivatives ask for what they use by name: any input or attribute, `output` for the result, and in `.gradient` also
`grad`. What a derivative does not read is not kept for backward. `.derivative(flat=...)`: the one by the first input is
constant in pieces, and a recorded gradient says so.
"""

import contextlib
import functools
import inspect
import math
import struct
import sys
import threading

from . import primitives
from .choice import Choice, as_tensor, choosing, is_chosen
from .expression import (
    NUMBER,
    REAL_OF,
    TYPES,
    Expression,
    cast,
    is_complex,
    is_integral,
    leaves,
    promote,
    scale,
    variable,
)
from .primitives import conjugate, convert, evaluate

TYPE_GROUPS = {
    "bool": ("b8",), "integer": ("i64", "u64"), "float": ("f32", "f64"), "complex": ("c64", "c128"),
    "real": ("i64", "u64", "f32", "f64"),
    "number": ("i64", "u64", "f32", "f64", "c64", "c128"),
    "any": TYPES,
}  # fmt: skip

definitions = {}  # name -> Pointwise, in the order of definition


class Scalar:
    """Annotation: an attribute in the type of the computation."""


class Flag:
    """Annotation: an attribute that is True or False."""


class Lowest:
    """Annotation: a tensor input or attribute that may be missing, and is then the lowest value."""


class Highest:
    """Annotation: a tensor input or attribute that may be missing, and is then the highest value."""


class Divisor:
    """Annotation: a tensor input that must not be zero where whole numbers are computed."""


class Number:
    """Annotation: a tensor input that is a number: bool counts as int64."""


class Optional:
    """Annotation: a real attribute that may be None, which the formula sees as nan."""


class Missing:
    """Stands for a tensor that was not kept; whatever is computed from it is missing too."""

    def _same(self, *_):
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = (
        _same
    )
    __neg__ = __invert__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _same
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _same
    __hash__ = object.__hash__


MISSING = Missing()

KINDS = {bool: "b", Lowest: "l", Highest: "h", Divisor: "d", Number: "n"}  # the letters of PointwiseDefinition.inputs

_tensor_operator = None


class _Singly(threading.local):
    active = False


_singly = _Singly()


@contextlib.contextmanager
def in_single_precision():
    """Inside, the formulas of f32 are those that `Pointwise.single` added, where there is one."""
    before, _singly.active = _singly.active, True
    try:
        yield
    finally:
        _singly.active = before


def set_tensor_operator(lookup):
    """Say how a Pointwise that is called with tensors finds its operator: `lookup(name)` gives a callable."""
    global _tensor_operator
    _tensor_operator = primitives.tensor_operator = lookup


def conj(value):
    """The complex conjugate of an expression, a number or a tensor; a real value is its own."""
    if isinstance(value, Expression):
        return conjugate(value)
    if isinstance(value, Choice):
        return Choice(value.where, value.condition, conj(value.a), conj(value.b))
    if isinstance(value, (bool, int, float, Missing)):
        return value
    if isinstance(value, complex):
        return value.conjugate()
    return value.conj() if value.is_complex() else value


def is_real(value):
    """Whether an expression, a number or a tensor is not complex."""
    if isinstance(value, Expression):
        return not is_complex(value.type)
    if isinstance(value, (bool, int, float, complex, Missing)):
        return not isinstance(value, complex)
    return not value.is_complex()


def parse_types(text):
    return tuple(type for type in TYPES if any(type in TYPE_GROUPS[group] for group in text.split()))


class Attribute:
    """A scalar parameter: its name, its default (inspect's `empty` if it must be given) and its kind."""

    def __init__(self, parameter):
        self.name, self.default, self.keyword_only = (
            parameter.name,
            parameter.default,
            parameter.kind is parameter.KEYWORD_ONLY,
        )
        kinds = {int: "int", float: "float", Flag: "bool", Optional: "float?", Lowest: "float?", Highest: "float?"}
        self.kind = kinds.get(parameter.annotation, "Scalar")
        # What None stands for: an infinity means the largest finite number of the dtype.
        self.missing = {Lowest: -math.inf, Highest: math.inf}.get(parameter.annotation, math.nan)

    def type_in(self, compute):
        if self.kind in ("int", "bool"):
            return "i64" if self.kind == "int" else "b8"
        if self.kind == "Scalar":
            return compute
        return "f64" if is_integral(compute) else REAL_OF.get(compute, compute)

    @property
    def missing_number(self):
        return math.copysign(sys.float_info.max, self.missing) if math.isinf(self.missing) else self.missing

    @property
    def required(self):
        return self.default is inspect.Parameter.empty


class Pointwise:
    """An elementwise operator given by a formula. Call it with expressions, numbers or tensors."""

    _public_names = {"x": "input", "y": "other"}
    autocast = onnx = None

    def __init__(
        self, formula, types, result, method, inplace, examples, node, requires="", exact="", refuses_bool=None
    ):
        self.name = formula.__name__
        self.family = formula.__module__.rpartition(".")[2]
        self.doc = inspect.cleandoc(formula.__doc__ or "")
        self.types = parse_types(types)
        self.result = result or ("same" if any(map(is_integral, self.types)) else "float")
        self.method, self.examples, self.node = method, examples, node
        self.inplace = method if inplace is None else inplace
        self.requires = [word.strip() for word in requires.split(",")] if requires else []
        self.exact, self.refuses_bool = exact.split(), refuses_bool
        self.inputs, self.attributes, self.kinds = [], [], ""
        for parameter in inspect.signature(formula).parameters.values():
            if parameter.default is not parameter.empty or parameter.annotation in (int, float, Scalar, Flag, Optional):
                self.attributes.append(Attribute(parameter))
            else:
                self.inputs.append(parameter.name)
                self.kinds += KINDS.get(parameter.annotation, "T")
        self._formulas = dict.fromkeys(self.types, formula)
        self._single = self._gradient = self.flat = None
        self._enter()

    def _enter(self):
        definitions[self.name] = self

    def __repr__(self):
        return f"<pointwise {self.signature}>"

    def __str__(self):
        return self.name

    # What a family file says beside the formula.

    def on(self, types):
        """Decorator: another formula for some of the types. Its parameters are found by name."""

        def add(formula):
            self._formulas.update(dict.fromkeys(parse_types(types), formula))
            self.types = tuple(type for type in TYPES if type in self._formulas)

        return add

    def single(self, formula):
        """Decorator: a formula of f32 in the arithmetic of single precision, a few units in the last place off.

        The formula itself, which may compute in double precision and round once, stays that of the CPU.
        """
        self._single = formula

    def _formula(self, compute):
        return self._single if compute == "f32" and self._single and _singly.active else self._formulas[compute]

    def derivative(self, function=None, *, flat=None):
        """Decorator: the derivative by each tensor input (one value, or a tuple with None where there is none).

        flat="input" or "output": the derivative by the first input does not change with it. A gradient that is itself
        recorded has a history all the same, of slope zero, and this says what that leads to. Without it such a gradient
        is a constant. (PyTorch has either, by function.)
        """
        if function is None:
            return functools.partial(self.derivative, flat=flat)
        self.flat = flat

        def gradient(grad, values):
            before, choosing.active = choosing.active, not isinstance(grad, Expression)
            try:
                locals_ = _as_tuple(_call(function, values))
            finally:
                choosing.active = before
            return tuple(None if local is None else _multiply(grad, local) for local in locals_)

        self._gradient = gradient

    def gradient(self, function):
        """Decorator: the gradient by each tensor input, given `grad`: where a derivative times `grad` would not do."""
        self._gradient = lambda grad, values: _as_tuple(_call(function, {**values, "grad": grad}))

    # The three ways to call.

    def __call__(self, *args, **attributes):
        if any(isinstance(arg, Missing) for arg in args):
            return MISSING
        values = list(args) + list(attributes.values())
        if any(isinstance(value, Expression) for value in values):
            return self.expression(self._bind(args, attributes))
        if all(value is None or isinstance(value, (bool, int, float, complex)) for value in values):
            return self.number(self._bind(args, attributes))
        if self.kinds[0] == "b" and isinstance(args[0], bool):  # the condition is known: no tensor has to choose
            return args[1] if args[0] else args[2]
        if self.name == "where" and choosing.active and is_chosen(*args[1:]):
            return Choice(_tensor_operator("where"), *args)
        args = [as_tensor(arg) for arg in args]
        if _tensor_operator is None:
            raise TypeError(
                f"{self.name}: expected expressions or numbers, got {[type(value).__name__ for value in values]}"
            )
        return _tensor_operator(self.name)(*args, **attributes)

    def expression(self, values):
        """The formula with expressions for its parameters."""
        compute = None
        for name, kind in zip(self.inputs, self.kinds, strict=True):
            if kind != "b":
                compute = promote(compute, getattr(values[name], "type", None))
        if compute is None:  # only the condition is symbolic: where(c, 1, 0)
            return self._formulas["f64"](*values.values())
        if compute not in self._formulas and compute != NUMBER:
            if self.result != "float" or not is_integral(compute):
                raise TypeError(f"{self.name}: not defined on {compute}")
            compute = "f64"
        typed = {
            name: cast(values[name], compute) if kind != "b" else values[name]
            for name, kind in zip(self.inputs, self.kinds, strict=True)
        }
        for attribute in self.attributes:
            typed[attribute.name] = values[attribute.name]
        return _call(self._formula("f64" if compute == NUMBER else compute), typed)

    def number(self, values):
        """The formula's value for Python numbers."""
        compute = "b8"
        for name, kind in zip(self.inputs, self.kinds, strict=True):
            value = values[name]
            if kind != "b" and not isinstance(value, bool):
                compute = promote(
                    compute, "i64" if isinstance(value, int) else "c128" if isinstance(value, complex) else "f64"
                )
        if compute not in self._formulas and is_integral(compute):
            compute = "f64"
        types = self.variables(compute)
        return evaluate(
            self.forward(compute), {name: convert(value, types[name].type) for name, value in values.items()}
        )

    def gradients(self, grad, inputs, attributes=(), output=None):
        """The gradient by each tensor input, from tensors, numbers or expressions; None where there is none.

        `inputs` and `output` that were not kept are None; a gradient that would need them comes back as None too.
        """
        values = dict(zip(self.inputs, (MISSING if value is None else value for value in inputs), strict=True))
        for attribute, value in zip(self.attributes, attributes, strict=False):
            values[attribute.name] = attribute.missing_number if value is None else value
        values["output"] = MISSING if output is None else output
        gradients = self._gradient(grad, values)
        if not isinstance(grad, (Expression, int, float, complex)):
            gradients = (_of_number(grad, g) if isinstance(g, (int, float)) else g for g in gradients)
        return tuple(None if isinstance(g, Missing) else g for g in gradients)

    # What the code printers read.

    @property
    def differentiable(self):
        return self._gradient is not None

    def result_type(self, compute):
        return "b8" if self.result == "bool" else REAL_OF.get(compute, compute) if self.result == "real" else compute

    def variables(self, compute):
        """The parameters as symbolic values of a computation in `compute`."""
        values = {
            name: variable(name, "b8" if kind == "b" else compute)
            for name, kind in zip(self.inputs, self.kinds, strict=True)
        }
        for attribute in self.attributes:
            values[attribute.name] = variable(attribute.name, attribute.type_in(compute))
        return values

    def forward(self, compute):
        """The formula as an expression of `variables(compute)`."""
        return cast(_call(self._formula(compute), self.variables(compute)), self.result_type(compute))

    def backward(self, compute):
        """The gradients as expressions, one an input, None where there is none; reads `grad` and maybe `output`."""
        grad, output = (variable(name, self.result_type(compute)) for name in ("grad", "output"))
        gradients = self._gradient(grad, {**self.variables(compute), "output": output})
        assert len(gradients) == len(self.inputs), (
            f"{self.name}: {len(gradients)} gradients for {len(self.inputs)} inputs"
        )
        return tuple(None if g is None else cast(g, compute) for g in gradients)

    @property
    def backward_types(self):
        return tuple(type for type in self.types if self.differentiable and not is_integral(type))

    def uses(self):
        """For each input, the names of the inputs (and `output`) that its gradient reads, in any compute type."""
        used = [set() for _ in self.inputs]
        for compute in self.backward_types:
            for names, gradient in zip(used, self.backward(compute), strict=True):
                if gradient is not None:
                    names.update(leaves(gradient) & {*self.inputs, "output"})
        return [[name for name in (*self.inputs, "output") if name in names] for names in used]

    def missing_attributes(self):
        return [attribute.missing for attribute in self.attributes]

    def has_gradient(self):
        if not self.backward_types:
            return [False] * len(self.inputs)
        return [gradient is not None for gradient in self.backward(self.backward_types[0])]

    @property
    def signature(self):
        """As callers see it: "add(Tensor input, Tensor other, *, Scalar alpha=1) -> Tensor"."""
        names = [self._public_names.get(name, name) for name in self.inputs]
        parts = [
            f"Tensor? {name}=None" if kind in "lh" else f"Tensor {name}"
            for name, kind in zip(names, self.kinds, strict=True)
        ]
        for attribute in self.attributes:
            if attribute.keyword_only and "*" not in parts:
                parts.append("*")
            default = "" if attribute.required else f"={attribute.default}"
            parts.append(f"{attribute.kind} {attribute.name}{default}")
        return f"{self.name}({', '.join(parts)}) -> Tensor"

    @property
    def documentation(self):
        """The formula's docstring, with what callers know the inputs as and an example that can be run."""
        parts = [self.doc]
        renamed = [f"{name} is `{self._public_names[name]}`" for name in self.inputs if name in self._public_names]
        if renamed:
            parts.append(f"Here {' and '.join(renamed)}.")
        for *args, expected in self.examples:
            if all(v is None or _is_short(v) for v in (*args, expected)):
                inputs = [f"cresset.tensor({v})" for v in args[: len(self.inputs)]]
                inputs += [
                    f"{attribute.name}={v}" if attribute.keyword_only else repr(v)
                    for attribute, v in zip(self.attributes, args[len(self.inputs) :], strict=False)
                ]
                parts.append(f">>> cresset.{self.name}({', '.join(inputs)}).item()\n{expected}")
                break
        return "\n\n".join(parts)

    def _bind(self, args, attributes):
        names = self.inputs + [attribute.name for attribute in self.attributes]
        values = {attribute.name: attribute.default for attribute in self.attributes}
        values.update(zip(names, args, strict=False))
        values.update(attributes)
        missing = dict(
            zip(self.inputs, ({"l": -math.inf, "h": math.inf}.get(kind) for kind in self.kinds), strict=True)
        )
        missing.update((attribute.name, attribute.missing_number) for attribute in self.attributes)
        return {name: missing[name] if values.get(name) is None else values[name] for name in names}


def pointwise(
    formula=None,
    /,
    *,
    types="float",
    result=None,
    method=None,
    inplace=None,
    examples=(),
    node=None,
    requires="",
    exact="",
    refuses_bool=None,
    autocast=None,
    onnx=None,
):
    """Make an elementwise operator of a formula.

    In this package, the build compiles it. Anywhere else, it is compiled when it is first called with tensors.

    Args:
        types: the kinds of number it is defined on, of bool, integer, float, complex, real, number, any.
        result: "same" dtype as the promoted inputs, "float" (integers become the default dtype), "bool", or "real"
            (complex gives its real dtype). By default "same" if there is an integer formula, else "float".
        method, inplace: has the forms Tensor.name and Tensor.name_ (in place: as method unless said). In this package
            there is a method unless said; elsewhere only if said, and the form in place is `name.in_place` as well.
        examples: tuples of arguments with the expected result last: documentation and test.
        node: what autograd calls it, if not after the operator's name. Where PyTorch counts its overloads, a dict has
            the name of a call by the inputs that are numbers: {"": "FmodBackward1", "y": "FmodBackward0"}.
        requires: what a call must be like beside that, in the words of `Requirement` in native/dispatch/pointwise.h,
            with commas between them. This and what follows is for operators of this package only.
        exact: names of inputs that keep their precision when they are numbers among tensors of half precision; any
            other number is rounded to the tensors' precision first. "out": an out= of another dtype is refused, but
            for a real one of a real result of complex numbers; "out_of_one": where no other input is a tensor.
        refuses_bool: what to say when an input is bool.
        autocast: what autocast does to it on CUDA; see ops/autocast.py.
        onnx: ONNX's operator for it, of one tensor of floats; without one it is exported by its formula.
    """

    def define(formula):
        if formula.__module__.startswith(__package__ + "."):
            made = Pointwise(
                formula, types, result, method is not False, inplace, examples, node, requires, exact, refuses_bool
            )
            made.autocast, made.onnx = autocast, onnx
            return made
        if requires or exact or refuses_bool is not None or autocast is not None or onnx is not None:
            raise TypeError(
                f"{formula.__name__}: requires, exact, refuses_bool, autocast and onnx are for the operators of the "
                "package"
            )
        from .compilation import OwnPointwise

        return OwnPointwise(formula, types, result, bool(method), inplace, examples, node)

    return define if formula is None else define(formula)


def _is_short(value):
    """Whether single precision has exactly this number."""
    if isinstance(value, complex):
        return _is_short(value.real) and _is_short(value.imag)
    return math.isfinite(value) and struct.unpack("f", struct.pack("f", value))[0] == value


def _as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


def _call(function, values):
    return function(**{name: values[name] for name in inspect.signature(function).parameters})


def _of_number(grad, number):
    """A gradient that the formula gives as a number, as a tensor like `grad`; 0 depends on nothing."""
    return grad * number if number else _tensor_operator("zeros_like")(grad)


def _multiply(grad, local):
    if isinstance(local, Missing):
        return MISSING
    local = conj(local)
    if type(local) in (bool, int) and local == 0:
        return scale(grad, local) if isinstance(grad, Expression) else 0
    if isinstance(local, Choice):
        return local.scaled(grad)
    return scale(grad, local) if isinstance(grad, Expression) else grad * local
