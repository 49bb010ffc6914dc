"""Numbers that remember where they come from, while jit.trace records: the sizes of tensors, and what is computed from
them.

Inside of a trace `x.shape` and `x.size()` give TracedInts. They are ints in every respect; sums, products and quotients
of them are recorded, so that `x.view(x.size(0), -1)` follows the size of a later input. A comparison gives a plain
bool: a branch on it is frozen, of which a warning tells.
"""

import operator
import sys
import threading

import cresset

from ..ops import aten_table
from .aten_recording import AtenRecorder
from .places import PACKAGE, Place
from .recording import Call, Value

_this_thread = threading.local()  # .recorder: whom the sizes of tensors are told


class NumberValue(Value):
    """A number of the recording: `kind` is int or float."""

    __slots__ = ("kind",)

    def __init__(self, number, kind):
        self.number, self.kind, self.depends = number, kind, True
        self.shape = self.dtype = self.data = self.parameter = self.name = None


class TracedInt(int):
    """A size that is recorded."""

    def __new__(cls, number, recorder, value):
        made = super().__new__(cls, number)
        made.recorder, made.value = recorder, value
        return made

    def __reduce__(self):
        return int, (int(self),)


class TracedFloat(float):
    """A quotient of sizes that is recorded."""

    def __new__(cls, number, recorder, value):
        made = super().__new__(cls, number)
        made.recorder, made.value = recorder, value
        return made


_ARITHMETIC = {"add": "add", "sub": "sub", "mul": "mul", "floordiv": "floordiv", "mod": "remainder", "truediv": "div"}


def _arithmetic(name, aten):
    run = getattr(operator, name)

    def compute(a, b):
        traced = a if isinstance(a, (TracedInt, TracedFloat)) else b
        recorder = traced.recorder
        if (
            type(a) is bool
            or type(b) is bool
            or not isinstance(a, (int, float))
            or not isinstance(b, (int, float))
            or not recorder.is_open
        ):
            return run(_plain(a), _plain(b))
        number = run(_plain(a), _plain(b))
        if name == "truediv" and type(_plain(a)) is not type(_plain(b)):
            return number
        kinds = tuple("int" if isinstance(n, int) else "float" for n in (a, b))
        overload = {
            ("int", "int"): "int",
            ("float", "float"): "float",
            ("int", "float"): "int_float",
            ("float", "int"): "float_int",
        }[kinds]
        return recorder.compute(f"aten::{aten}.{overload}", (a, b), number)

    def forward(self, other):
        return compute(self, other) if isinstance(other, (int, float)) else NotImplemented

    def backward(self, other):
        return compute(other, self) if isinstance(other, (int, float)) else NotImplemented

    return forward, backward


def _plain(number):
    return int(number) if isinstance(number, int) else float(number)


for _name, _aten in _ARITHMETIC.items():
    for _class in (TracedInt, TracedFloat):
        _forward, _backward = _arithmetic(_name, _aten)
        setattr(_class, f"__{_name}__", _forward)
        setattr(_class, f"__r{_name}__", _backward)


def _negative(self):
    return self.recorder.compute("aten::neg.int", (self,), -int(self)) if self.recorder.is_open else -int(self)


TracedInt.__neg__ = _negative  # type: ignore[method-assign]


def _comparison(name):
    run = getattr(operator, name)

    def compare(self, other):
        if not isinstance(other, (int, float)):
            return NotImplemented
        self.recorder.froze(sys._getframe(1))
        return run(_plain(self), _plain(other) if isinstance(other, (TracedInt, TracedFloat)) else other)

    return compare


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    for _class in (TracedInt, TracedFloat):
        setattr(_class, f"__{_name}__", _comparison(_name))
for _class, _kind in ((TracedInt, int), (TracedFloat, float)):
    setattr(_class, "__hash__", _kind.__hash__)  # noqa: B010


class SizeRecorder(AtenRecorder):
    """Records aten operators and the sizes that they are given."""

    is_open = True

    def __init__(self, front, parameters):
        super().__init__(front, parameters, scalars=True)
        self.sizes, self.listeners = {}, []

    def __enter__(self):
        self.listeners.append(getattr(_this_thread, "recorder", None))
        _this_thread.recorder = self
        return super().__enter__()

    def __exit__(self, *exception):
        _this_thread.recorder = self.listeners.pop()
        return super().__exit__(*exception)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        before, _this_thread.recorder = (
            getattr(_this_thread, "recorder", None),
            None,
        )  # the recorder's own questions are not the program's
        try:
            return super().__torch_function__(func, types, args, kwargs)
        finally:
            _this_thread.recorder = before

    def close(self):
        super().close()
        self.is_open = False

    def froze(self, frame):
        """A program compared a size: what it does with the answer is in the recording as it was."""
        if self.is_open and not frame.f_code.co_filename.startswith(PACKAGE):
            self.front.froze("a tensor to a Python boolean", frame)

    def reference(self, leaf):
        return leaf.value if isinstance(leaf, (TracedInt, TracedFloat)) else super().reference(leaf)

    def compute(self, qualified, args, number):
        """Record a computation on numbers, and give its result."""
        schema = aten_table.find(qualified)
        value = NumberValue(len(self.values), type(number))
        self.values.append(value)
        self.calls.append(Call(schema.op, schema, tuple(map(self.reference, args)), {}, (value,), Place()))
        return (TracedInt if isinstance(number, int) else TracedFloat)(number, self, value)

    def with_numbers(self, args, kwargs):
        """(args, kwargs) with what 0-d tensors hold, as numbers that remember it; None if there are no such tensors."""
        found = []

        def number(leaf):
            if not isinstance(leaf, cresset.Tensor) or _shape.__get__(leaf) or leaf.dtype is cresset.bool:
                return leaf
            if leaf.is_complex():
                return leaf
            found.append(leaf)
            kind = "Float" if leaf.is_floating_point() else "Int"
            return self.compute(f"aten::{kind}.Tensor", (leaf,), leaf.item())

        given = tuple(map(number, args)), {name: number(value) for name, value in kwargs.items()}
        return given if found else None

    def size_of(self, tensor, dim):
        known = self.known.get(id(tensor))
        sizes = _shape.__get__(tensor)
        if known is None or not known.value.depends:
            return sizes[dim]
        key = (known.value.number, dim % len(sizes) if sizes else dim)
        if key not in self.sizes:
            before, _this_thread.recorder = _this_thread.recorder, None
            try:
                self.sizes[key] = self.compute("aten::size.int", (tensor, key[1]), sizes[dim])
            finally:
                _this_thread.recorder = before
        return self.sizes[key]

    def shape_of(self, tensor):
        return cresset.Size() + tuple(self.size_of(tensor, dim) for dim in range(len(_shape.__get__(tensor))))


# ---- Tensor.shape and Tensor.size, while a trace goes on

_shape, _size, _numel = (
    cresset.Tensor.__dict__["shape"],
    cresset.Tensor.__dict__["size"],
    cresset.Tensor.__dict__["numel"],
)
_lock, _count = threading.Lock(), 0


def _told_shape(self):
    recorder = getattr(_this_thread, "recorder", None)
    return recorder.shape_of(self) if recorder is not None else _shape.__get__(self)


def _told_size(self, dim=None):
    recorder = getattr(_this_thread, "recorder", None)
    if recorder is None or isinstance(dim, str):
        return _size(self) if dim is None else _size(self, dim)
    if dim is None:
        return recorder.shape_of(self)
    _size(self, dim)  # a dimension that is not there is refused
    return recorder.size_of(self, dim)


def _told_numel(self):
    recorder = getattr(_this_thread, "recorder", None)
    known = recorder.known.get(id(self)) if recorder is not None else None
    if known is None or not known.value.depends:
        return _numel(self)
    return recorder.compute("aten::numel", (self,), _numel(self))


class told_sizes:
    """Inside, tensors tell the recorder of their thread when they are asked for sizes."""

    def __enter__(self):
        global _count
        with _lock:
            _count += 1
            if _count == 1:
                cresset.Tensor.shape, cresset.Tensor.size, cresset.Tensor.numel = (
                    property(_told_shape),
                    _told_size,
                    _told_numel,
                )

    def __exit__(self, *exception):
        global _count
        with _lock:
            _count -= 1
            if _count == 0:
                cresset.Tensor.shape, cresset.Tensor.size, cresset.Tensor.numel = _shape, _size, _numel
