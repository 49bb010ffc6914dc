"""The graph that rules write into: nodes, constants, and sizes as tensors.

What a rule gives and gets are names of tensors (texts), recorded Values, or None for an input that is left out.
"""

import cresset

from ..graph.recording import Value
from ..graph.sizes import Fraction, Size, shifted, solve
from . import messages
from .errors import OnnxExporterError

SEEN_AS = {
    "bfloat16": cresset.int16,
    "float8_e4m3fn": cresset.uint8,
    "float8_e5m2": cresset.uint8,
    "float8_e4m3fnuz": cresset.uint8,
    "float8_e5m2fnuz": cresset.uint8,
}


# Nodes whose later results need not be computed.
OPTIONAL_RESULTS = {"MaxPool", "Dropout", "LSTM", "GRU", "RNN"}


def dtype_name(dtype):
    return str(dtype).removeprefix("torch.")


def data_type(dtype):
    """The number that ONNX has for a dtype."""
    found = messages.DATA_TYPES.get(dtype_name(dtype))
    if found is None:
        raise OnnxExporterError(f"onnx.export: ONNX has no tensors of {dtype_name(dtype)}")
    return found


def raw_bytes(tensor):
    """The elements as they lie in an ONNX file."""
    tensor = tensor.detach().cpu().contiguous()
    name = dtype_name(tensor.dtype)
    if tensor.numel() == 0:
        return b""
    return bytes(memoryview((tensor.view(SEEN_AS[name]) if name in SEEN_AS else tensor).view(-1)))


class Node:
    """A node of the graph."""

    __slots__ = ("attributes", "domain", "inputs", "kind", "name", "outputs")

    def __init__(self, kind, domain, inputs, outputs, attributes, name):
        self.kind, self.domain, self.inputs, self.outputs, self.attributes, self.name = (
            kind,
            domain,
            inputs,
            outputs,
            attributes,
            name,
        )


class Graph:
    """Collects nodes and constants.

    Args:
        opset: the version of ONNX's operators.
        inputs: the input Values, which have names.
        reserved: names that are taken.
    """

    def __init__(self, opset, inputs, reserved=()):
        self.opset, self.inputs = opset, inputs
        self.nodes, self.initializers, self.opsets = [], {}, {"": opset}
        self.taken = {"", *reserved, *(v.name for v in inputs)}
        self.call = None  # the one that is being written
        self.known = {}  # what was written once: constants, sizes
        self.by_size = {}  # samples -> where a dimension of that size can be read
        self.input_sizes = []
        for value in inputs:
            self.see_sizes(value)
            for axis, size in enumerate(value.shape):
                if isinstance(size, Size) and size.samples not in [s for s, _ in self.input_sizes]:
                    self.input_sizes.append((size.samples, (value, axis)))

    def see_sizes(self, value):
        for axis, size in enumerate(value.shape):
            if isinstance(size, Size):
                self.by_size.setdefault(size.samples, (value, axis))

    # ---- nodes

    def op(self, kind, *inputs, outputs=1, domain="", **attributes):
        """Add a node; its output's name, or a list of them."""
        call = self.call
        names = [self.unique(f"{call.name.strip('_')}" if call else kind.lower()) for _ in range(outputs)]
        inputs = [self.name(i) for i in inputs]
        while inputs and not inputs[-1]:
            inputs.pop()
        attributes = {key: value for key, value in attributes.items() if value is not None}
        module = call.place.module.replace(".", "/") if call else ""
        self.nodes.append(Node(kind, domain, inputs, names, attributes, f"{module}/{kind}_{len(self.nodes)}"))
        return names[0] if outputs == 1 else names

    def unique(self, stem):
        name, k = stem, 0
        while name in self.taken:
            k += 1
            name = f"{stem}_{k}"
        self.taken.add(name)
        return name

    def name(self, value):
        """The name of a tensor; constants and sizes get one when they are first used."""
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        if value.name is None:
            if isinstance(value.parameter, list):
                known = self.sizes(value.parameter)
                value.name = self.cast(
                    known if value.shape else self.op("Squeeze", known, self.ints([0])), cresset.int64, value.dtype
                )
            elif value.data is not None:
                value.name = self.initializer(value.data, value.parameter)
            else:
                user = f"{self.call.name} uses" if self.call else "the model gives"
                raise OnnxExporterError(
                    f"onnx.export: {user} a result of an operator that ONNX does not compute; "
                    f"{self.call.place if self.call else ''}"
                )
        return value.name

    def is_size(self, value):
        """Whether a number is a size that differs between calls."""
        return isinstance(value, Size)

    def initializer(self, tensor, name=None):
        """A constant with the elements of a tensor. Small ones that are equal are one."""
        key = ("tensor", id(tensor))
        if name is None and tensor.numel() <= 64:
            key = (tensor.dtype, tuple(tensor.shape), raw_bytes(tensor))
        if key not in self.known:
            data_type(tensor.dtype)
            stored = self.unique(name or "constant")
            self.initializers[stored] = tensor
            self.known[key] = stored
        return self.known[key]

    # ---- numbers and sizes as tensors

    def ints(self, numbers):
        """A constant: whole numbers in one dimension."""
        return self.initializer(cresset.tensor(list(numbers), dtype=cresset.int64))

    def number(self, value, dtype):
        """A 0-d tensor of a Python number, a Size, a Fraction, or a Value of one element."""
        if isinstance(value, Value):
            return self.cast(value, value.dtype, dtype)
        if isinstance(value, str):
            return value
        if isinstance(value, Size):
            return self.cast(self.op("Squeeze", self.size(value), self.ints([0])), cresset.int64, dtype)
        if isinstance(value, Fraction):
            found = value.solve([*(s for s, _ in self.input_sizes), *self.by_size])
            if found is None:
                raise self.no_formula(value)
            above, below, power = found
            quotient = (
                self.number(above, dtype)
                if below == 1
                else self.op("Div", self.number(above, dtype), self.number(below, dtype))
            )
            return quotient if power == 1 else self.op("Pow", quotient, self.number(power, dtype))
        if not dtype.is_floating_point and isinstance(value, float) and value not in (float("inf"), float("-inf")):
            value = int(value)
        if not dtype.is_floating_point and value in (float("inf"), float("-inf")):
            value = cresset.iinfo(dtype).max if value > 0 else cresset.iinfo(dtype).min
        return self.initializer(cresset.tensor(value, dtype=dtype))

    def sizes(self, sizes):
        """A 1-d int64 tensor of sizes, some of which may be free."""
        sizes = list(sizes)
        if all(isinstance(s, int) for s in sizes):
            return self.ints(sizes)
        parts, run = [], []
        for size in [*sizes, None]:
            if isinstance(size, int):
                run.append(size)
                continue
            if run:
                parts.append(self.ints(run))
                run = []
            if size is not None:
                parts.append(self.size(size))
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0)

    def size(self, size):
        """A 1-d int64 tensor of one size, computed from dimensions that are known at run time."""
        if isinstance(size, int):
            return self.ints([size])
        if size.samples not in self.known:
            self.known[size.samples] = self.compute(self.formula(size))
        return self.known[size.samples]

    def formula(self, size):
        own = []
        if self.call is not None:
            for value in self.call_values():
                own += [(s.samples, (value, axis)) for axis, s in enumerate(value.shape) if isinstance(s, Size)]
        exact = [d for d in (*self.input_sizes, *own) if d[0] == size.samples]
        found = (
            solve(size, exact)
            or solve(size, self.input_sizes)
            or solve(size, own[:8])
            or shifted(size, self.by_size.items())
            or solve(size, [*self.input_sizes, *own[:8]], rounding=True)
        )
        if not found:
            raise self.no_formula(size)
        return found

    def no_formula(self, size):
        return OnnxExporterError(
            f"onnx.export: a number that is {', '.join(map(str, size.samples))} for four choices of sizes is no "
            "formula of the free dimensions that can be "
            f"found; {self.call.name}, {self.call.place}. Leave one of them out of dynamic_axes"
        )

    def call_values(self):
        from ..graph.recording import leaves

        return [v for v in leaves((self.call.args, self.call.kwargs)) if isinstance(v, Value) and v.name is not None]

    def compute(self, formula):
        product = None
        for value, axis in formula.dimensions:
            dimension = self.op("Gather", self.shape_of(value), self.ints([axis]), axis=0)
            product = dimension if product is None else self.op("Mul", product, dimension)
        if formula.factor != 1:
            product = self.op("Mul", product, self.ints([formula.factor]))
        if formula.before:
            product = self.op("Add", product, self.ints([formula.before]))
        if formula.divisor != 1:
            product = self.op("Div", product, self.ints([formula.divisor]))
        if formula.modulus:
            product = self.op("Mod", product, self.ints([formula.modulus]))
        return self.op("Add", product, self.ints([formula.after])) if formula.after else product

    def shape_of(self, value):
        key = ("shape", value.name)
        if key not in self.known:
            self.known[key] = self.op("Shape", value)
        return self.known[key]

    # ---- small operations that many rules need

    def cast(self, x, given, wanted):
        """x of dtype `given` in `wanted`."""
        return x if given == wanted else self.op("Cast", x, to=data_type(wanted))

    def reshape(self, x, shape, before=None):
        """x in a shape that may have one -1; `before` is the shape it has, if that is known."""
        shape = list(shape)
        for k, size in enumerate(shape):
            if before is not None and isinstance(size, Size) and k < len(before) and before[k] == size:
                shape[k] = 0  # as it was
        free = [k for k, size in enumerate(shape) if isinstance(size, Size)]
        if (
            len(free) == 1
            and -1 not in [s for s in shape if isinstance(s, int)]
            and not (before is not None and 0 in [s for s in before if isinstance(s, int)])
        ):
            shape[free[0]] = -1
        return self.op("Reshape", x, self.sizes(shape))

    def unsqueeze(self, x, axes):
        return self.op("Unsqueeze", x, self.ints(axes)) if axes else x

    def squeeze(self, x, axes):
        return self.op("Squeeze", x, self.ints(axes)) if axes else x

    def transpose(self, x, order):
        return x if list(order) == sorted(order) else self.op("Transpose", x, perm=list(order))

    def slice(self, x, axis, start, end, step=1):
        """x[start:end:step] along one axis; bounds may be free sizes."""
        return self.op("Slice", x, self.sizes([start]), self.sizes([end]), self.ints([axis]), self.ints([step]))

    def axes(self, input, dim):
        """The reduced dimensions, all of them if none is named; empty for a 0-d tensor."""
        rank = len(input.shape)
        if dim is None or dim == () or dim == []:
            return list(range(rank))
        return [d % rank for d in ([dim] if isinstance(dim, int) else dim)] if rank else []

    def reduced(self, kind, input, dim, keepdim):
        """A reduction over the dimensions that an operator names, in the dtype of its result."""
        dtype, axes = self.result.dtype, self.axes(input, dim)
        x = self.cast(input, input.dtype, dtype)
        if not axes:
            return x
        if dtype is cresset.bool:
            return self.cast(self.reduce(kind, self.cast(x, dtype, cresset.int32), axes, keepdim), cresset.int32, dtype)
        return self.reduce(kind, x, axes, keepdim)

    def moments(self, input, axes, correction, keepdim):
        """The variance (the sum of squares divided by the count less `correction`), the mean along axes, and how far
        each element is from it.
        """
        center = self.reduce("ReduceMean", input, axes)
        apart = self.op("Sub", input, center)
        squares = self.op("Mul", apart, apart)
        if correction == 0:
            variance = self.reduce("ReduceMean", squares, axes, keepdim)
        else:
            count = 1
            for axis in axes:
                count = input.shape[axis] * count
            total = self.reduce("ReduceSum", squares, axes, keepdim)
            left = count - correction
            variance = self.op("Div", total, self.number(left if isinstance(count, Size) else float(left), input.dtype))
        return variance, center if keepdim else self.squeeze(center, axes), apart

    def places(self, index):
        """Indices in a dtype that ONNX takes."""
        return (
            self.cast(index, index.dtype, cresset.int64)
            if index.dtype not in (cresset.int64, cresset.int32)
            else self.name(index)
        )

    def filled(self, value):
        """The result, all of one value."""
        dtype, shape = self.result.dtype, self.result.shape
        return self.op("Expand", self.number(value, dtype), self.sizes(shape)) if shape else self.number(value, dtype)

    def of_two(self, kind, input, other):
        """The larger ("Max") or smaller ("Min") of two; of bools, whether any or both hold."""
        dtype = self.result.dtype
        if dtype is cresset.bool:
            kind = "Or" if kind == "Max" else "And"
        return self.op(kind, self.number(input, dtype), self.number(other, dtype))

    def choose(self, condition, a, b):
        """Where on bools, which runtimes do not have."""
        return self.op("Or", self.op("And", condition, a), self.op("And", self.op("Not", condition), b))

    def reduce(self, kind, x, axes, keepdims=True):
        """A reduction along axes, whose list is an attribute or an input by opset."""
        if kind == "ReduceSum" or self.opset >= 18:
            return self.op(kind, x, self.ints(axes) if axes else None, keepdims=int(keepdims))
        return self.op(kind, x, axes=list(axes) if axes else None, keepdims=int(keepdims))

    @property
    def result(self):
        """The first result of the call that is being written: its shape and dtype."""
        return self.call.results[0]

    def unsupported(self, why):
        """The exception for a case that has no ONNX form."""
        from .errors import UnsupportedOperatorError

        name = self.call.name
        return UnsupportedOperatorError(name, self.opset, None, f"onnx.export: {name}: {why}; {self.call.place}")

    # ---- finishing

    def rename(self, old, new):
        for node in self.nodes:
            node.inputs = [new if i == old else i for i in node.inputs]
            node.outputs = [new if o == old else o for o in node.outputs]

    def remove_unused(self, outputs):
        """Drop the nodes and constants that no output needs."""
        needed, kept = set(outputs), []
        for node in reversed(self.nodes):
            if needed.intersection(node.outputs):
                while node.kind in OPTIONAL_RESULTS and node.outputs[-1] not in needed:
                    node.outputs.pop()
                needed.update(node.inputs)
                kept.append(node)
        self.nodes = kept[::-1]
        self.initializers = {name: t for name, t in self.initializers.items() if name in needed}
        domains = {node.domain for node in self.nodes} | {""}
        self.opsets = {domain: version for domain, version in self.opsets.items() if domain in domains}
