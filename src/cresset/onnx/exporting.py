"""`export`: a model and example inputs become an ONNX program."""

import contextlib
import functools
import warnings

import cresset

from ..graph.free_dimensions import free_sizes
from ..graph.merging import merge
from ..graph.recording import Front, Recorder
from ..graph.recordings import Free, Inputs, kept, record
from ..graph.sizes import Size
from ..pytree import tree_leaves
from . import arguments, custom, operators
from .errors import OnnxExporterError, OnnxExporterWarning, UnsupportedOperatorError
from .graph import Graph, dtype_name
from .program import IR_VERSIONS

DEFAULT_OPSET, LEAST_OPSET, LAST_OPSET = 18, min(IR_VERSIONS), max(IR_VERSIONS)


class OnnxFront(Front):
    """Recordings for ONNX."""

    name, error, free = "onnx.export", OnnxExporterError, "dynamic_axes"

    def __init__(self, opset):
        self.opset = opset

    def unsupported(self, operator, place):
        fix = (
            "Say how it is written with register_custom_op_symbolic"
            if "::" in operator
            else "Write it with other operators, or leave it out of the model"
        )
        return UnsupportedOperatorError(
            operator, self.opset, None, f"onnx.export: the operator {operator} has no ONNX form here; {place}. {fix}"
        )

    def start(self, parameters):
        functions = {name: functools.partial(accepts, self.opset) for name, accepts in operators.functions.items()}
        return Recorder(self, parameters, operators.names() | custom.registered(self.opset), functions)


@contextlib.contextmanager
def _mode(model, training):
    """The model in the mode of the export, and back as it was."""
    if not isinstance(model, cresset.nn.Module) or training == "PRESERVE":
        yield
        return
    before = [(module, module.training) for module in model.modules()]
    model.train(training == "TRAINING")
    try:
        yield
    finally:
        for module, was in before:
            module.training = was


def export_program(
    model, args, kwargs, *, input_names, output_names, opset_version, dynamic_axes, dynamic_shapes, training, exporting
):
    """Record the model and write it as a graph."""
    opset = _opset(opset_version)
    front = OnnxFront(opset)
    inputs = Inputs(front, model, args, kwargs, input_names)
    free, output_axes = free_sizes(inputs, dynamic_axes, dynamic_shapes, output_names)
    with _mode(model, training), cresset.no_grad(), kept(model), exporting():
        named = {place: Free(symbol) for place, symbol in free.items()}
        recorders, outputs, sizes, paths = record(model, inputs, named, front.start, _outputs)

    def describe(k):
        return ", ".join(f"{symbol} is {samples[k]}" for symbol, samples in sizes.items()) or "recorded once more"

    calls, outputs = merge(recorders, outputs, describe)
    first = recorders[0]
    for value, name in zip(first.inputs, inputs.names, strict=True):
        value.name = name
    names = _output_names(output_names, outputs, inputs.names, paths)
    graph = Graph(opset, first.inputs, reserved=names)
    for call in calls:
        _write(graph, call)
    graph.call = None
    _name_outputs(graph, outputs, names)
    graph.remove_unused(names)
    symbols = {samples: symbol for symbol, samples in reversed(sizes.items())}
    described_inputs = [
        (
            name,
            dtype_name(v.dtype),
            [free.get((name, axis), s) if isinstance(s, Size) else s for axis, s in enumerate(v.shape)],
        )
        for name, v in zip(inputs.names, first.inputs, strict=True)
    ]
    described_outputs = []
    for name, value in zip(names, outputs, strict=True):
        shape = []
        for axis, size in enumerate(value.shape):
            known = symbols.get(size.samples) if isinstance(size, Size) else None
            given = output_axes.get((name, axis))
            shape.append(size if isinstance(size, int) and given is None else known or given or f"{name}_dim_{axis}")
        described_outputs.append((name, dtype_name(value.dtype), shape))
    return graph, described_inputs, described_outputs, inputs


def _opset(asked):
    if asked is None:
        return DEFAULT_OPSET
    if not isinstance(asked, int) or asked < 1 or asked > LAST_OPSET:
        raise ValueError(f"onnx.export: opset_version has to be from {LEAST_OPSET} to {LAST_OPSET}, got {asked}")
    if asked < LEAST_OPSET:
        warnings.warn(
            f"onnx.export: opset {asked} is too old; the file has opset {LEAST_OPSET}",
            OnnxExporterWarning,
            stacklevel=4,
        )
    return max(asked, LEAST_OPSET)


def _outputs(result, path=()):
    """The tensors of a result with their names: keys of dicts and fields of objects, numbers of sequences."""
    if isinstance(result, cresset.Tensor):
        return [(path, result)]
    if isinstance(result, dict) or hasattr(result, "items") and callable(result.items):
        pairs = [(str(key), item) for key, item in result.items()]
    elif isinstance(result, (tuple, list)):
        pairs = list(zip(getattr(result, "_fields", map(str, range(len(result)))), result, strict=True))
    elif hasattr(result, "__dataclass_fields__"):
        pairs = [(name, getattr(result, name)) for name in result.__dataclass_fields__]
    elif result is None or isinstance(result, (bool, int, float, str)):
        return []  # not a tensor: not in the file
    else:
        pairs = list(enumerate(tree_leaves(result)))
        if len(pairs) == 1 and pairs[0][1] is result:
            raise OnnxExporterError(
                f"onnx.export: the model gives a {type(result).__name__}; tensors in tuples, lists and dicts can be "
                "exported"
            )
    return [found for name, item in pairs for found in _outputs(item, (*path, str(name)))]


# ---- writing


def _write(graph, call):
    graph.call = call
    rule = operators.rules.get(call.name)
    own = custom.symbolic_for(call.name, graph.opset)
    if own is not None:
        return _give(graph, call, own(custom.SymbolicGraph(graph), *call.args, **call.kwargs))
    if rule is None and call.name not in operators.definitions:
        raise graph.unsupported("it depends on a free dimension, and has no ONNX form here")
    if call.operator is None or not hasattr(call.operator, "signatures"):
        result = rule(graph, *call.args, **call.kwargs)
    else:
        bound = arguments.bind(call.operator, call.args, call.kwargs)
        if bound is None:
            raise graph.unsupported("its arguments are of a form that is not written")
        if rule is None:
            result = operators.pointwise.formula(graph, call.name, bound)
        else:
            result = rule(graph, **{name: bound[name] for name in arguments.wanted(rule) if name in bound})
    return _give(graph, call, result)


def _give(graph, call, result):
    """The results of a call have these names."""
    results = list(result) if isinstance(result, (list, tuple)) else [result]
    for value, found in zip(call.results, results, strict=True):
        if found is not None:
            value.name = graph.name(found)
            graph.see_sizes(value)


def _output_names(given, outputs, taken, paths):
    if not outputs:
        raise OnnxExporterError("onnx.export: the model gives no tensor")
    given = list(given or [])
    if len(given) > len(outputs):
        raise ValueError(f"onnx.export: {len(given)} output_names for {len(outputs)} output tensors")
    names = list(given)
    for path in paths[len(given) :]:
        words = [p for p in path if not p.isdigit()]
        stem = "_".join(words) or "output"
        name = stem if len(outputs) == 1 or words else f"output_{len(names)}"
        while name in names or name in taken:
            name += "_"
        names.append(name)
    if len(set(names)) != len(names) or set(names) & set(taken):
        raise ValueError(f"onnx.export: names of inputs and outputs are not distinct: {list(taken)}, {names}")
    return names


def _name_outputs(graph, outputs, names):
    """Give the outputs their names; one that is an input, a constant or an output twice gets a node of its own."""
    made = {o for node in graph.nodes for o in node.outputs}
    renamed = {}
    for value, name in zip(outputs, names, strict=True):
        old = graph.name(value)
        if old in made and old not in renamed:
            graph.rename(old, name)
            renamed[old] = name
        else:
            graph.op("Identity", renamed.get(old, old))
            graph.nodes[-1].outputs = [name]
