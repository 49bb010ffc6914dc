"""`export`: a model and example inputs become an ONNX program."""

import contextlib
import inspect
import itertools
import warnings

import cresset

from ..pytree import tree_flatten, tree_leaves
from . import arguments, custom, operators
from .dimensions import RECORDINGS, Size, sizes_to_try
from .errors import OnnxExporterError, OnnxExporterWarning
from .free_dimensions import free_sizes
from .graph import Graph, dtype_name
from .merging import merge
from .program import IR_VERSIONS
from .recording import Recorder

DEFAULT_OPSET, LEAST_OPSET, LAST_OPSET = 18, min(IR_VERSIONS), max(IR_VERSIONS)


class Inputs:
    """The example arguments: which leaves are tensors, what they are called, and how to call the model with others."""

    def __init__(self, model, args, kwargs, names):
        self.args, self.kwargs = args, kwargs
        self.signature = _signature(model)
        self.bound = self._bind()
        leaves, self.spec = tree_flatten((args, kwargs))
        self.leaves = leaves
        self.places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, cresset.Tensor)]
        self.tensors = [leaves[k] for k in self.places]
        self.names = self._names(names)

    def _bind(self):
        """The arguments by the model's parameter names."""
        if self.signature is None:
            return {f"input_{k}": arg for k, arg in enumerate(self.args)} | self.kwargs
        bound = self.signature.bind(*self.args, **self.kwargs).arguments
        found = {}
        for name, value in bound.items():
            kind = self.signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                found.update({f"{name}_{k}": v for k, v in enumerate(value)})
            elif kind is inspect.Parameter.VAR_KEYWORD:
                found.update(value)
            else:
                found[name] = value
        return found

    def _names(self, given):
        natural = []
        for name, value in self.bound.items():
            count = sum(isinstance(leaf, cresset.Tensor) for leaf in tree_leaves(value))
            natural += [name] if isinstance(value, cresset.Tensor) else [f"{name}_{k}" for k in range(count)]
        given = list(given or [])
        if len(given) > len(self.tensors):
            raise ValueError(f"onnx.export: {len(given)} input_names for {len(self.tensors)} input tensors")
        names = given + natural[len(given) :]
        if len(set(names)) != len(names):
            raise ValueError(f"onnx.export: input names are not distinct: {names}")
        return names

    def with_tensors(self, tensors):
        """args and kwargs with other tensors."""
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, tensors, strict=True):
            leaves[place] = tensor
        return self.spec.unflatten(leaves)


def _signature(model):
    try:
        return inspect.signature(model.forward if isinstance(model, cresset.nn.Module) else model)
    except (TypeError, ValueError):
        return None


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


@contextlib.contextmanager
def _kept(model):
    """Random numbers and what layers count while they train are as before afterwards."""
    training = [m for m in model.modules() if m.training] if isinstance(model, cresset.nn.Module) else []
    buffers = [(buffer, buffer.detach().clone()) for module in training for buffer in module.buffers(recurse=False)]
    with cresset.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            for buffer, before in buffers:
                buffer.copy_(before)


def export_program(model, args, kwargs, *, input_names, output_names, opset_version, dynamic_axes, dynamic_shapes, training, exporting):
    """Record the model and write it as a graph."""
    opset = _opset(opset_version)
    inputs = Inputs(model, args, kwargs, input_names)
    free, output_axes = free_sizes(inputs, dynamic_axes, dynamic_shapes, output_names)
    with _mode(model, training), cresset.no_grad(), _kept(model), exporting():
        recorders, outputs, sizes, paths = _record(model, inputs, free, opset)

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
        (name, dtype_name(v.dtype), [free.get((name, axis), s) if isinstance(s, Size) else s for axis, s in enumerate(v.shape)])
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
        warnings.warn(f"onnx.export: opset {asked} is too old; the file has opset {LEAST_OPSET}", OnnxExporterWarning, stacklevel=4)
    return max(asked, LEAST_OPSET)


# ---- recording


def _record(model, inputs, free, opset):
    """Recorders of the model with several sizes, their outputs, the sizes by symbol, and the names of the outputs."""
    example = {}
    for (name, axis), symbol in free.items():
        size = inputs.tensors[inputs.names.index(name)].shape[axis]
        if example.setdefault(symbol, size) != size:
            raise ValueError(f"onnx.export: the free dimension {symbol!r} is {example[symbol]} in one input and {size} in {name!r}, dimension {axis}")
    plans = sizes_to_try(example, list(example)) if free else [{}]
    failure = None
    for sizes in plans:
        recorders, outputs, paths = [], [], None
        try:
            for k in range(RECORDINGS if free else 2):
                recorder, found, paths = _record_once(model, inputs, _resized(inputs, free, sizes, k), opset)
                recorders.append(recorder)
                outputs.append(found)
        except OnnxExporterError:
            raise
        except Exception as error:
            if not free or failure is None:
                failure = error
            if not free:
                raise
            continue
        return recorders, outputs, sizes, paths
    _record_once(model, inputs, inputs.tensors, opset)  # a model that cannot run at all says so itself
    tried = ", ".join(f"{symbol} = {sizes[k]}" for k in range(1) for symbol, sizes in plans[0].items())
    raise OnnxExporterError(
        f"onnx.export: the model runs with the example inputs but not when its free dimensions have other sizes (tried: {tried}, and others): {failure}. "
        "Leave those out of dynamic_axes that are fixed, or give an example with larger sizes"
    ) from failure


def _resized(inputs, free, sizes, k):
    """The example inputs, repeated or cut to the sizes of recording k. Numbers differ a little, so that what is no constant shows."""
    found = []
    for name, tensor in zip(inputs.names, inputs.tensors, strict=True):
        t = tensor.detach()
        for axis in range(t.ndim):
            symbol = free.get((name, axis))
            if symbol is not None:
                t = t.index_select(axis, cresset.arange(sizes[symbol][k], device=t.device) % t.shape[axis])
        t = t * (1 - k / 64) if t.is_floating_point() and k else t.clone()
        found.append(t)
    return found


def _record_once(model, inputs, tensors, opset):
    parameters = {}
    if isinstance(model, cresset.nn.Module):
        named = itertools.chain(model.named_parameters(remove_duplicate=False), model.named_buffers(remove_duplicate=False))
        for name, tensor in named:
            parameters.setdefault(id(tensor), name)
    recorder = Recorder(parameters, operators.names() | custom.registered(opset), operators.functions, opset)
    for tensor in tensors:
        recorder.add_input(tensor)
    args, kwargs = inputs.with_tensors(tensors)
    recorder.start()
    try:
        with recorder:
            result = model(*args, **kwargs)
        values, paths = [], []
        for path, tensor in _outputs(result):
            values.append(recorder.value_of(tensor))
            paths.append(path)
    finally:
        recorder.close()
    return recorder, values, paths


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
            raise OnnxExporterError(f"onnx.export: the model gives a {type(result).__name__}; tensors in tuples, lists and dicts can be exported")
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


