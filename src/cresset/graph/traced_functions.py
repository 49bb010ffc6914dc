"""The functions of flex_attention, `score_mod` and `mask_mod`, as CUDA text that computes one element.

A function is called once, on tensors of one element without memory, and what it calls is noted: formulas of pointwise
operators, elements of tensors that it has from outside, conversions and constants. Everything else is `NotTraced`, with
the reason. The derivative by the score comes out of the formulas' own derivatives, from the last step to the first.
"""

import functools
import math
import types

import cresset

from .. import _native
from ..cuda.printing import formula_source
from ..ops import aten_table, formulas
from ..ops.pointwise.loops import Loop
from .aten_recording import AtenRecorder, positional
from .recording import Front, leaves, map_tree

_CONSTANTS = {
    "ones": 1, "zeros": 0, "new_ones": 1, "new_zeros": 0, "ones_like": 1, "zeros_like": 0, "full": "fill_value",
    "new_full": "fill_value", "full_like": "fill_value", "scalar_tensor": "s",
}  # fmt: skip
_CASTS = {"to", "_to_copy", "type_as"}
_SAME = {"clone", "detach", "contiguous", "alias", "view_as", "expand", "view", "reshape", "squeeze"}
# What comes to the same in 32 bits, where operands and result have no more.
_IN_32_BITS = {
    "add", "sub", "mul", "neg", "abs", "lt", "le", "gt", "ge", "eq", "ne", "maximum", "minimum", "where", "clamp",
    "clamp_min", "clamp_max", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "square", "sign",
}  # fmt: skip
_NARROW = (cresset.bool, cresset.uint8, cresset.int8, cresset.int16, cresset.int32)
_MOST_WORDS = 96  # as in native/cuda/attention.h
_TAGS = {
    cresset.bool: "b8", cresset.uint8: "u8", cresset.int8: "i8", cresset.int16: "i16", cresset.int32: "i32",
    cresset.int64: "i64", cresset.float16: "f16", cresset.bfloat16: "bf16", cresset.float32: "f32",
    cresset.float64: "f64",
}  # fmt: skip


class NotTraced(RuntimeError):
    """Why a function is no text."""


class _Front(Front):
    name, error = "flex_attention", NotTraced


class Given:
    """An argument of the function."""

    def __init__(self, text, dtype):
        self.text, self.dtype, self.depends = text, dtype, text == "score"


class Constant:
    """A number; `dtype` None: one of Python's."""

    depends = False

    def __init__(self, number, dtype=None):
        self.number, self.dtype = number, dtype


class Element:
    """An element of a tensor from outside, or, while `rank` is above 0, a part of it. `indices`: numbers and values,
    one for each of the first dimensions."""

    depends = False

    def __init__(self, tensor, indices):
        self.tensor, self.indices, self.dtype = tensor, indices, tensor.dtype
        self.rank = tensor.dim() - len(indices)


class Cast:
    """A value in another dtype."""

    def __init__(self, value, dtype):
        self.value, self.dtype, self.depends = value, dtype, value.depends


class Formula:
    """A pointwise operator of values; `attributes` are its numbers."""

    def __init__(self, operator, compute, values, attributes, dtype):
        self.operator, self.compute, self.values, self.attributes, self.dtype = (
            operator,
            compute,
            values,
            attributes,
            dtype,
        )
        self.depends = any(value.depends for value in values)


class _Recorder(AtenRecorder):
    """Notes what is computed of the arguments; what is computed of other tensors alone is simply computed."""

    def __init__(self):
        super().__init__(_Front(), {})
        self.nodes = {}  # id of a tensor -> its value
        self.computes = False  # something of tensors from outside, which may change
        self.tensors = []  # these tensors, so that their ids stay theirs

    def note(self, tensor, node):
        self.nodes[id(tensor)] = node
        self.tensors.append(tensor)
        return tensor

    def record(self, name, schema, arguments, run):
        given = dict(zip((a.name for a in schema.arguments), arguments, strict=True))
        on_meta = given.get("device") == cresset.device("meta")
        if not on_meta and not any(id(leaf) in self.nodes for leaf in leaves(tuple(arguments))):
            self.computes = True
            return run()
        if any(a.is_written for a in schema.arguments):
            raise NotTraced(f"{schema.op} writes in place")
        if schema.op == "index" and id(given["self"]) not in self.nodes:
            self.outside(given["self"])
        args, named = positional(schema, [map_tree(a, self.without_memory) for a in arguments])
        result = aten_table.function(schema.op)(*args, **named)
        if not isinstance(result, cresset.Tensor):
            raise NotTraced(f"{schema.op} gives no tensor")
        node = self.node_of(schema, given, result)
        if result.dim() != getattr(node, "rank", 0):
            raise NotTraced(f"{schema.op} gives {result.dim()} dimensions")
        return self.note(result, node)

    def outside(self, tensor):
        """A tensor from outside as a value."""
        if tensor.requires_grad and cresset.is_grad_enabled():
            raise NotTraced("a tensor that it has from outside requires a gradient")
        if tensor.dtype not in _TAGS or tensor.layout != cresset.strided or tensor.device.type == "meta":
            raise NotTraced(f"a tensor that it has from outside is of dtype {tensor.dtype} on {tensor.device}")
        if id(tensor) not in self.nodes:
            self.note(tensor, Element(tensor, ()))
        return self.nodes[id(tensor)]

    def without_memory(self, leaf):
        if isinstance(leaf, cresset.Tensor) and leaf.device.type != "meta":
            return cresset.empty(leaf.shape, dtype=leaf.dtype, device="meta")
        return leaf

    def value(self, leaf):
        if isinstance(leaf, cresset.Tensor):
            node = self.nodes[id(leaf)] if id(leaf) in self.nodes else self.outside(leaf)
            if getattr(node, "rank", 0):
                raise NotTraced(f"it computes with a tensor of {node.rank} dimensions")
            return node
        return Constant(leaf)

    def node_of(self, schema, given, result):
        op, names = schema.op, list(given)
        if op in _CONSTANTS:
            number = given[_CONSTANTS[op]] if isinstance(_CONSTANTS[op], str) else _CONSTANTS[op]
            return Constant(number, result.dtype)
        if op in ("index", "select"):
            return self.element(op, given)
        first = self.value(given[names[0]])
        if op in _CASTS:
            return Cast(first, result.dtype)
        if op in _SAME:
            return first
        if op == "masked_fill":
            return self.formula("where", [self.value(given["mask"]), self.value(given["value"]), first], {}, result)
        if op in ("div", "divide") and given.get("rounding_mode"):
            op = f"div_{given['rounding_mode']}"
        operator = formulas.definition(op)
        if op == "rsub":
            operator = formulas.definition("sub")
        if operator is None:
            raise NotTraced(f"{op} is no pointwise operator")
        values = [given[name] for name in names[: len(operator.inputs)]]
        if op == "rsub":
            values.reverse()
        rest = {name: given[name] for name in names[len(operator.inputs) :]}
        attributes = {}
        for attribute in operator.attributes:
            if attribute.name not in rest and not attribute.required:
                attributes[attribute.name] = attribute.default
            elif not rest:
                raise NotTraced(f"{op} has arguments that are not known")
            else:
                attributes[attribute.name] = rest.pop(attribute.name if attribute.name in rest else next(iter(rest)))
        if any(isinstance(item, str) and item not in ("none", "") for item in rest.values()):
            raise NotTraced(f"{op} has the arguments {rest}")
        return self.formula(op if op != "rsub" else "sub", [self.bounded(v, k) for v, k in zip(values, operator.kinds)],
                            attributes, result)  # fmt: skip

    def bounded(self, value, kind):
        if value is None:
            return Constant(math.inf if kind == "h" else -math.inf)
        return self.value(value)

    def formula(self, name, values, attributes, result):
        operator = formulas.definition(name)
        return Formula(operator, _compute_of(operator, values), values, attributes, result.dtype)

    def element(self, op, given):
        part = self.nodes[id(given["self"])]
        if not isinstance(part, Element):
            raise NotTraced("it indexes what it computes")
        if op == "select":
            if given["dim"] % max(part.rank, 1):
                raise NotTraced("it selects from a later dimension")
            found = [given["index"]]
        else:
            if any(index is None or index.dtype == cresset.bool or index.dim() for index in given["indices"]):
                raise NotTraced("it indexes by other things than numbers")
            found = [self.value(index) for index in given["indices"]]
        return Element(part.tensor, (*part.indices, *found))


def _compute_of(operator, values):
    """The type in which eager's kernel computes."""
    computed = [v for v, kind in zip(values, operator.kinds, strict=True) if kind != "b"]
    dtypes = [v.dtype for v in computed if v.dtype is not None]
    numbers = [v.number for v in computed if v.dtype is None]
    if any(d == cresset.float64 for d in dtypes):
        wanted = "f64"
    elif any(d.is_floating_point for d in dtypes) or any(
        isinstance(n, float) and math.isfinite(n) or isinstance(n, float) and not dtypes for n in numbers
    ):
        wanted = "f32"
    elif any(d != cresset.bool for d in dtypes) or any(type(n) is int for n in numbers):
        wanted = "i64"
    else:
        wanted = "b8"
    for compute in {"b8": ("b8", "i64", "f32"), "i64": ("i64", "f32")}.get(wanted, (wanted,)):
        if compute in operator.types:
            return compute
    raise NotTraced(f"{operator.name} is not defined on {wanted}")


class Traced:
    """A function as a value of its arguments, and the tensors that it reads."""

    def __init__(self, function, names):
        recorder = _Recorder()
        arguments = [
            recorder.note(
                cresset.empty((), dtype=cresset.float32 if name == "score" else cresset.int32, device="meta"),
                Given(name, cresset.float32 if name == "score" else cresset.int32),
            )
            for name in names
        ]
        asked = []
        watcher = _native.watch_values(lambda what, tensor: asked.append(what))
        try:
            with recorder, cresset.enable_grad() if cresset.is_grad_enabled() else cresset.no_grad():
                result = function(*arguments)
        except NotTraced:
            raise
        except Exception as problem:
            raise NotTraced(f"on single elements it raises {type(problem).__name__}: {problem}") from problem
        finally:
            _native.watch_values(watcher)
        if not isinstance(result, cresset.Tensor) or result.dim():
            raise NotTraced("on single elements it gives no tensor of one element")
        self.result = recorder.value(result)
        self.is_constant = not recorder.computes and not asked  # while `signature` of the function stays as it is


_PLAIN = (int, float, bool, str, type(None), cresset.dtype, cresset.device)
_FIXED = (cresset.Tensor, types.BuiltinFunctionType, types.CodeType, _native.Operator, type(cresset.where))
_NAMED = (types.ModuleType, type)  # where they are not the program's own, whose attributes may change


def signature(function):
    """What the text of a function depends on, and the objects that it names by their ids, which have to be kept; None
    where that is not known."""
    found, kept = [], []
    return (tuple(found), kept) if _sign(function, found, kept, 0) else None


def _sign(value, found, kept, depth):
    if isinstance(value, _PLAIN):
        found += (type(value), repr(value) if isinstance(value, float) else value)  # nan is not equal to itself
        return True
    named = isinstance(value, _NAMED) and getattr(value, "__module__", value.__name__).split(".")[0]
    if isinstance(value, _FIXED) or named in ("cresset", "math", "builtins"):
        kept.append(value)
        found.append(id(value))
        if isinstance(value, cresset.Tensor):
            found += (value.shape, value.stride(), value.requires_grad)
        return True
    if depth > 8:
        return False
    if isinstance(value, (tuple, list)):
        inner = value
    elif isinstance(value, functools.partial):
        inner = (value.func, value.args, *value.keywords, *value.keywords.values())
    elif isinstance(value, types.FunctionType):
        inner = [value.__code__, value.__defaults__, *(value.__kwdefaults__ or {}).values()]
        if not value.__module__.startswith("cresset."):
            read = {name for code in _codes(value.__code__) for name in code.co_names}
            inner += [value.__globals__[name] for name in sorted(read & value.__globals__.keys())]
        try:
            inner += [cell.cell_contents for cell in value.__closure__ or ()]
        except ValueError:  # a cell that is empty yet
            return False
    else:
        return False
    found += (type(value), len(inner))
    return all(_sign(item, found, kept, depth + 1) for item in inner)


def _codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


class Writer:
    """Text of traced functions, which share the tensors that they read and the formulas that they call.

    Args:
        extents: how far arguments reach, by name. As indices of dimensions that are as large they are not checked.
    """

    def __init__(self, extents):
        self.extents = extents
        self.tensors, self.words, self.namespaces = [], [], {}

    # ---- functions

    def function(self, traced, name, result):
        """`RESULT name(words, score, b, h, q, kv)`."""
        lines, names = [], {}
        value = self.value(traced.result, lines, names)
        return self.whole(name, result, [*lines, f"return convert<{result}>({value});"])

    def gradient(self, traced, name):
        """The derivative by the score."""
        lines, names = [], {}
        self.value(traced.result, lines, names)
        adjoints, order = {id(traced.result): "1.0f"}, []
        _in_order(traced.result, order, set())
        total = []
        for node in reversed(order):
            grad = adjoints.get(id(node))
            if grad is None or not node.depends:
                continue
            if isinstance(node, Given):
                total.append(grad)
            elif isinstance(node, Cast):
                if node.dtype.is_floating_point and node.value.dtype.is_floating_point:
                    self.add(adjoints, node.value, f"convert<{_type_of(node.value.dtype)}>({grad})", lines)
            elif node.dtype.is_floating_point:
                self.chain(node, grad, adjoints, lines, names)
        return self.whole(name, "float", [*lines, f"return {' + '.join(total) if total else '0.0f'};"])

    def chain(self, node, grad, adjoints, lines, names):
        has = node.operator.has_gradient() if node.operator.differentiable else [False] * len(node.values)
        for index, value in enumerate(node.values):
            if not value.depends or not value.dtype.is_floating_point:
                continue
            if not has[index]:
                raise NotTraced(f"{node.operator.name} has no derivative")
            loop = _loop(node.operator, node.compute, index)
            given = dict(zip(node.operator.inputs, node.values, strict=True))
            arguments = [
                grad if name == "grad" else names[id(node)] if name == "output"
                else self.argument(given[name], lines, names)
                for name, _ in loop.reads
            ]  # fmt: skip
            call = self.call(node, index, arguments, False)
            self.add(adjoints, value, f"convert<{_type_of(value.dtype)}>({call})", lines)

    def add(self, adjoints, node, text, lines):
        name = f"d{len(lines)}"
        before = adjoints.get(id(node))
        lines.append(f"const {_type_of(node.dtype)} {name} = {f'{before} + ' if before else ''}{text};")
        adjoints[id(node)] = name

    def whole(self, name, result, lines):
        return "\n".join([
            f"CRESSET_INLINE {result} {name}(const FlexWords& words, float score, int b, int h, int q, int kv) {{",
            *(f"  {line}" for line in lines), "}", "",
        ])  # fmt: skip

    # ---- values

    def value(self, node, lines, names):
        """The name of a value; the lines that compute it are added where they are not there yet."""
        if id(node) in names:
            return names[id(node)]
        if isinstance(node, Given):
            text = node.text
        elif isinstance(node, Constant):
            text = _literal(node.number, node.dtype)
        else:
            type = _type_of(node.dtype)
            if isinstance(node, Cast):
                made = f"convert<{type}>({self.value(node.value, lines, names)})"
            elif isinstance(node, Element):
                made = self.load(node, lines, names)
            else:
                arguments = [self.argument(v, lines, names) for v in node.values]
                narrow = node.compute == "i64" and node.operator.name in _IN_32_BITS and _is_narrow(node)
                made = f"convert<{type}>({self.call(node, -1, arguments, narrow)})"
            text = f"v{len(lines)}"
            lines.append(f"const {type} {text} = {made};")
        names[id(node)] = text
        return text

    def argument(self, node, lines, names):
        return f"as_argument({self.value(node, lines, names)})"

    def load(self, node, lines, names):
        """An element: bad indices are reported, and 0 used instead. The tensor has its words: address, sizes, steps."""
        number = next((k for k, t in enumerate(self.tensors) if t is node.tensor), None)
        if number is None:
            number = len(self.tensors)
            self.tensors.append(node.tensor)
            self.words.append(sum(1 + 2 * t.dim() for t in self.tensors[:-1]))
            if self.words[-1] + 1 + 2 * node.tensor.dim() > _MOST_WORDS:
                raise NotTraced("it reads too many tensors")
        first, rank, type = self.words[number], node.tensor.dim(), _type_of(node.dtype)
        places = []
        for d, index in enumerate(node.indices):
            text, step = self.index(index, lines, names), first + 1 + rank + d
            fits = isinstance(index, Given) and self.extents.get(index.text, math.inf) <= node.tensor.size(d)
            unchecked, checked = f"int64_t{{{text}}} * words.words[{step}]", f"{text}, {first + 1 + d}, {step}"
            places.append(unchecked if fits else f"element_of(words, {checked})")
        return f"load_once(reinterpret_cast<const {type}*>(words.words[{first}]) + {' + '.join(places) or '0'})"

    def index(self, index, lines, names):
        return str(index) if isinstance(index, int) else self.value(index, lines, names)

    def call(self, node, which, arguments, narrow):
        attributes = ", ".join(_attribute(a, node.attributes[a.name]) for a in node.operator.attributes)
        name = f"formula_{node.operator.name}_{which if which >= 0 else 'forward'}_{node.compute}{'_32' * narrow}"
        if name not in self.namespaces:
            self.namespaces[name] = _formula(node.operator.name, which, node.compute, narrow)
        numbers = f"Attributes<{max(len(node.operator.attributes), 1)}>{{{{{attributes}}}}}.all"
        return f"{name}::formula({', '.join([*arguments, numbers])})"

    # ---- the whole

    def beginning(self):
        """Includes and formulas, which stand before the functions."""
        includes, bodies = ['#include "attention_flex_words.cuh"'], []
        for name, text in self.namespaces.items():
            lines = text.splitlines()
            includes += [line for line in lines if line.startswith("#include") and line not in includes]
            bodies += [f"namespace {name} {{", *(line for line in lines if not line.startswith("#include")), "}"]
        return "\n".join([*includes, *bodies, ""])


@functools.lru_cache(1000)
def _formula(name, which, compute, narrow):
    text = formula_source(name, which, compute)
    return text.replace("int64_t", "int32_t").replace("math::abs(", "abs_of_int(") if narrow else text


@functools.lru_cache(1000)
def _loop(operator, compute, which):
    return Loop(operator, compute, which)


def _in_order(node, order, seen):
    """The value behind those that it is made of."""
    if id(node) in seen:
        return
    seen.add(id(node))
    for value in [node.value] if isinstance(node, Cast) else node.values if isinstance(node, Formula) else ():
        _in_order(value, order, seen)
    order.append(node)


def _is_narrow(node):
    return node.dtype in _NARROW and all(
        v.dtype in _NARROW if v.dtype is not None else type(v.number) in (bool, int) and abs(v.number) < 1 << 30
        for v in node.values
    )


def _type_of(dtype):
    return f"dtype_{_TAGS[dtype]}"


def _attribute(attribute, number):
    """What `Attribute` of math.cuh is made of."""
    real = float(attribute.missing_number if number is None else number)
    whole = 0 if number is None or not math.isfinite(number) else int(number)
    return f"{{{_literal(real, cresset.float64)}, 0.0, {whole}}}"


def _literal(number, dtype):
    if isinstance(number, bool) or dtype == cresset.bool:
        return "true" if number else "false"
    if isinstance(number, int) and (dtype is None or not dtype.is_floating_point):
        return str(number) if abs(number) < 1 << 31 else f"{number}ll"
    number = float(number)
    if math.isnan(number):
        return "NAN"
    text = ("-" if number < 0 else "") + "INFINITY" if math.isinf(number) else f"{number!r}"
    return f"convert<{_type_of(dtype)}>({text})" if dtype is not None else text
