"""Recorded calls as an fx graph: one node a call, sizes that are free as nodes of arithmetic on the sizes of inputs."""

import operator

import cresset

from .._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from ..dispatch.handling import without_modes
from ..graph.aten_calls import default_of
from ..graph.recording import About, Value
from ..graph.sizes import Fraction, Size, shifted, solve
from .graph import Graph
from .passes.shape_prop import _extract_tensor_metadata

_TAKEN_OVER = ("stack_trace", "nn_module_stack", "torch_fn", "source_fn_stack", "custom", "from_node")


class Symbols:
    """What sizes are, as texts: `batch`, `2*batch + 1`.

    Args:
        sizes: the recorded sizes of each symbol.
        error: makes an exception of a message.
    """

    def __init__(self, sizes, error):
        self.dimensions = [(tuple(samples), symbol) for symbol, samples in sizes.items()]
        self.error = error

    def formula(self, size):
        """The Formula of the symbols that a size is; None if none was found."""
        return solve(size, [d for d in self.dimensions if d[0] == size.samples]) or solve(
            size, self.dimensions, rounding=True
        )

    def text(self, size):
        """A size as text, a plain one as its number."""
        if not isinstance(size, Size):
            return str(size)
        found = self.formula(size)
        return "?" if found is None else formula_text(found)


def formula_text(formula):
    """`2*batch + 1`."""
    words = "*".join(([str(formula.factor)] if formula.factor != 1 else []) + list(formula.dimensions))
    if formula.before:
        words += f" {'+' if formula.before > 0 else '-'} {abs(formula.before)}"
    if formula.divisor != 1:
        words = (
            f"({words})//{formula.divisor}" if formula.before or formula.factor != 1 else f"{words}//{formula.divisor}"
        )
    if formula.modulus:
        words = f"({words}) % {formula.modulus}"
    return words + (f" {'+' if formula.after > 0 else '-'} {abs(formula.after)}" if formula.after else "")


class Writer:
    """Writes recorded calls into an fx Graph.

    Args:
        front: for messages.
        sizes: the recorded sizes of each symbol.
    """

    def __init__(self, front, sizes):
        self.front, self.graph, self.fake_mode = front, Graph(), FakeTensorMode()
        self.symbols = Symbols(sizes, front.error)
        self.nodes = {}  # Value -> Node
        self.seen = {}  # recorded sizes of a dimension -> (Node, axis)
        self.size_nodes = {}  # recorded sizes -> the Node that computes them
        self.shapes = {}  # Node -> Value, for what it gives
        self.symbol_places = {}  # symbol -> (Node, axis) of an input that has it
        self.counts = {}  # the name of an operator -> how many calls of it there are so far
        self.frames = None  # id of a call's place -> {name: (path, class)} of the calls of modules around it, if known
        self.call = None

    # ---- nodes

    def placeholder(self, name, value=None, tensor=None):
        node = self.graph.create_node("placeholder", name, (), {}, name)
        node.name = node.target = name  # a name that Python has for something of its own (`input`) is as good
        if value is not None:
            self.nodes[value] = node
            self.describe(node, value, requires_grad=tensor is not None and tensor.requires_grad)
        elif tensor is not None:
            self.note(node, About(tensor), tuple(tensor.shape), tensor.dtype, tensor.requires_grad)
            node.meta["sizes"] = list(tensor.shape)
        return node

    def note(self, node, about, shape, dtype, requires_grad=False):
        """Note what a node gives: a fake tensor, and what is known of the real one beside its sizes."""
        fake = fake_of(self.fake_mode, about, shape, dtype, requires_grad)
        node.meta["val"] = fake
        if about.strides is not None:
            known = _extract_tensor_metadata(fake)
            node.meta["tensor_meta"] = known._replace(requires_grad=about.requires_grad)

    def describe(self, node, value, requires_grad=False):
        """Note what a node gives: its sizes as texts, and a fake tensor."""
        self.shapes[node] = value
        sizes = [self.symbols.text(size) if isinstance(size, Size) else size for size in value.shape]
        example = tuple(size.samples[0] if isinstance(size, Size) else size for size in value.shape)
        self.note(node, value.about, example, value.dtype, requires_grad)
        node.meta["sizes"] = sizes
        for axis, size in enumerate(value.shape):
            if isinstance(size, Size):
                self.seen.setdefault(size.samples, (node, axis))

    def write(self, call):
        """Add the nodes of a call."""
        self.call = call
        schema = call.operator
        target = target_of(schema)
        args, kwargs = self.arguments(schema, call.args)
        node = self.add(target, args, kwargs, schema.op)
        if len(call.results) == 1 and schema.returns[0].type != "Tensor[]":
            self.give(node, call.results[0])
            return
        for k, value in enumerate(call.results):
            self.give(self.add(operator.getitem, (node, k), {}, "getitem"), value)
        node.meta["val"] = [self.nodes[value].meta["val"] for value in call.results]

    def give(self, node, value):
        self.nodes[value] = node
        self.describe(node, value)

    def add(self, target, args, kwargs, name):
        node = self.graph.create_node("call_function", target, args, kwargs, name)
        call = self.call
        if call is not None:
            place = call.place
            node.meta["stack_trace"] = place.stack_trace
            if self.frames is not None:
                node.meta["nn_module_stack"] = dict(self.frames.get(id(place), ()))
                if target is operator.getitem:
                    node.meta["torch_fn"] = args[0].meta["torch_fn"]
                else:
                    number = self.counts[name] = self.counts.get(name, 0) + 1
                    node.meta["torch_fn"] = (f"{name}_{number}", f"builtin_function_or_method.{name}")
            elif place.module:
                node.meta["nn_module_stack"] = {place.module: (place.module, place.module)}
            if place.meta is not None:
                node.meta.update((key, place.meta[key]) for key in _TAKEN_OVER if key in place.meta)
        return node

    def arguments(self, schema, values):
        """args and kwargs of a node: defaults at the end are left out, as PyTorch's graphs have it."""
        written = [self.argument(value) for value in values]
        declared = schema.arguments
        count = len([a for a in declared if not a.keyword_only])
        while count and declared[count - 1].has_default and _is_default(values[count - 1], declared[count - 1]):
            count -= 1
        kwargs = {
            a.name: written[k]
            for k, a in enumerate(declared)
            if a.keyword_only and not (a.has_default and _is_default(values[k], a))
        }
        return tuple(written[:count]), kwargs

    def argument(self, value):
        if isinstance(value, Value):
            return self.node(value)
        if isinstance(value, (Size, Fraction)):
            return self.number(value)
        if isinstance(value, (list, tuple)):
            return [self.argument(item) for item in value]
        return value

    def node(self, value):
        if value not in self.nodes:
            raise AssertionError(f"{self.front.name}: {self.call.name} takes a tensor that nothing made")
        return self.nodes[value]

    # ---- sizes

    def number(self, value):
        """A node that computes a size."""
        if isinstance(value, Fraction):
            return self.fraction(value)
        if not isinstance(value, Size):
            return value
        if value.samples not in self.size_nodes:
            self.size_nodes[value.samples] = self.compute(value)
        return self.size_nodes[value.samples]

    def compute(self, size):
        formula = self.symbols.formula(size)
        if formula is not None:
            node = self._product(formula.dimensions)
            text = "*".join(formula.dimensions)
        else:
            formula = shifted(size, self.seen.items())
            if formula is None:
                raise self._no_formula(size, f". Leave one of them out of {self.front.free}")
            node = self._size_of(*formula.dimensions[0])
            text = node.meta["expression"]
        steps = (
            (operator.mul, "*", formula.factor, 1), (operator.add, " + ", formula.before, 0),
            (operator.floordiv, "//", formula.divisor, 1),
            (operator.mod, " % ", formula.modulus, 0), (operator.add, " + ", formula.after, 0),
        )  # fmt: skip
        for function, sign, number, neutral in steps:
            if number != neutral:
                node = self.add(function, (node, number), {}, function.__name__.strip("_"))
                text = (
                    f"{number}*{text}"
                    if sign == "*"
                    else f"({text}){sign}{number}"
                    if sign in ("//", " % ")
                    else f"{text}{sign}{number}"
                )
                node.meta["expression"] = text
        node.meta["expression"] = self.symbols.text(size) if self.symbols.formula(size) is not None else text
        return node

    def _product(self, names):
        """The node of a product of symbols."""
        first, *rest = names
        product, text = self.symbol(first), first
        for name in rest:
            product, text = self.add(operator.mul, (product, self.symbol(name)), {}, "mul"), f"{text}*{name}"
            product.meta["expression"] = text
        return product

    def symbol(self, name):
        """The node of a symbol: the size of an input's dimension, or computed from it."""
        samples = next(samples for samples, symbol in self.symbols.dimensions if symbol == name)
        if samples not in self.size_nodes:
            node, axis, factor, offset = self.symbol_places[name]
            size = self._size_of(node, axis)
            if offset:
                size = self.add(operator.sub, (size, offset), {}, "sub")
                size.meta["expression"] = f"{factor}*{name}"
            if factor != 1:
                size = self.add(operator.floordiv, (size, factor), {}, "floordiv")
            size.meta["expression"] = name
            self.size_nodes[samples] = size
        return self.size_nodes[samples]

    def _size_of(self, node, axis):
        size = self.add(cresset.ops.aten.sym_size.int, (node, axis), {}, "sym_size_int")
        value = self.shapes[node].shape[axis]
        size.meta["expression"] = self.symbols.text(value)
        return size

    def _no_formula(self, value, fix):
        """The error about a number that was another one in each recording."""
        first, *others = map(str, value.samples)
        place = f"{self.call.name}, {self.call.place}"
        if len(others) == 1:  # no dimension is free
            return self.front.error(
                f"{self.front.name}: a number was {first}, and {others[0]} when the model ran once more on inputs of "
                f"the same sizes, whose elements differ a little; {place}. Make it an input of the model, or compute "
                "it outside if it comes from id(), a clock or a draw of Python's"
            )
        return self.front.error(
            f"{self.front.name}: a number that is {', '.join((first, *others))} for four choices of sizes is no "
            f"formula of the free dimensions that can be found; {place}{fix}"
        )

    def fraction(self, value):
        found = value.solve([samples for samples, _ in self.symbols.dimensions])
        if found is None:
            raise self._no_formula(value, "")
        above, below, power = (self.number(v) if isinstance(v, Size) else v for v in found)
        node = above if below == 1 else self.add(operator.truediv, (above, below), {}, "truediv")
        return node if power == 1 else self.add(operator.pow, (node, power), {}, "pow")


def target_of(schema):
    """The operator's object: torch.ops.aten.add.Tensor."""
    space = getattr(cresset.ops, schema.namespace)
    return getattr(getattr(space, schema.op), schema.overload_name or "default")


def _is_default(value, argument):
    if isinstance(value, (Value, Size, Fraction)):
        return False
    default = default_of(argument)
    if isinstance(value, (list, tuple)) or isinstance(default, list):
        items = default if isinstance(default, list) else [default] * len(value or ())
        return isinstance(value, (list, tuple)) and list(value) == list(items)
    return (
        type(value) is type(default)
        and value == default
        or (
            isinstance(value, (int, float))
            and isinstance(default, (int, float))
            and not isinstance(value, bool)
            and value == default
        )
    )


def fake_of(mode, about, shape, dtype, requires_grad=False):
    """A fake tensor of what is known of a real one."""
    with without_modes(), cresset.no_grad():
        if about.strides is None:
            held = cresset.empty(shape, dtype=dtype, device="meta")
        else:
            held = cresset.empty_strided(shape, about.strides, dtype=dtype, device="meta")
    fake = FakeTensor(mode, held, about.device)
    return fake.requires_grad_() if requires_grad else fake
