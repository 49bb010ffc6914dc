"""make_fx: a function as a graph of the aten operators that it calls on example inputs."""

import copy
import functools

import cresset

from ... import _C
from ..._subclasses.fake_tensor import unset_fake_temporarily
from ...graph.aten_recording import AtenRecorder
from ...graph.functional_recording import FunctionalRecorder
from ...graph.merging import merge
from ...graph.recording import Call, Front
from ...graph.recordings import Free, Inputs, kept, record
from ...ops import aten_table
from ...pytree import tree_flatten
from .._symbolic_trace import _annotation, _PytreeInfo
from ..code import _PyTreeCodeGen
from ..graph_module import GraphModule
from ..node import has_side_effect
from ..recorded import Writer
from . import composites

__all__ = ["get_proxy_mode", "make_fx", "maybe_disable_fake_tensor_mode"]

MODES = ("real", "fake", "symbolic")


class MakeFxError(RuntimeError):
    """A function that cannot be recorded."""


class MakeFxFront(Front):
    """Recordings for make_fx."""

    name, error, free, differentiates = "make_fx", MakeFxError, "tracing_mode='symbolic'", True

    def __init__(self, decompositions, enters_composites, removes=None):
        self.decompositions, self.enters_composites = decompositions, enters_composites
        self.removes = removes  # what `functionalize` was asked to leave out
        self.tells_grad_mode = not enters_composites  # graphs with layers as they are may be differentiated

    def unsupported(self, operator, place):
        return MakeFxError(f"make_fx: the operator {operator} has no form in aten here; {place}")

    def start(self, parameters):
        recorder = (AtenRecorder if self.removes is None else FunctionalRecorder)(self, parameters)
        written = composites.table(recorder) if self.enters_composites else {}
        recorder.decompositions = {**written, **self.decompositions}
        return recorder


def make_fx(
    f, decomposition_table=None, tracing_mode="real", _allow_non_fake_inputs=False, *, pre_dispatch=False,
    record_module_stack=False, _allow_fake_constant=False,
    _error_on_data_dependent_ops=True, record_stack_traces=False, proxy_module_inputs=False,
    _disable_torch_fn_metadata_mode=False,
):  # fmt: skip
    """A function that records `f` on the arguments it is called with, and gives a GraphModule of aten operators.

    Args:
        f: a function or a module. Its tensors that are no arguments become attributes of the graph module.
        decomposition_table: {torch.ops.aten.name.overload: function} of operators to write with others.
        pre_dispatch: leave operators that are made of others as they are (`linear`), and say what is not recorded for
            backward; otherwise most of them are written with those, as PyTorch does (`t` and `addmm`).
        tracing_mode: "real" and "fake" record the sizes as they are; "symbolic" lets all sizes of the inputs be free
            where that is possible.

    >>> graph = cresset.fx.experimental.proxy_tensor.make_fx(lambda x: x.sin() + 1)(cresset.ones(2))
    >>> [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]
    ['aten.sin.default', 'aten.add.Tensor']
    """
    if tracing_mode not in MODES:
        raise AssertionError(f"Unexpected tracing type: {tracing_mode!r}; tracing_mode is one of {MODES}")
    table = {
        op.name() if op._schema.overload_name else f"{op.name()}.default": function
        for op, function in (decomposition_table or {}).items()
    }

    @functools.wraps(f if not isinstance(f, cresset.nn.Module) else f.forward)
    def wrapped(*args):
        return _made(f, args, MakeFxFront(table, not pre_dispatch, getattr(f, "_removes", None)), tracing_mode)

    return wrapped


def _made(f, args, front, mode):
    inputs = Inputs(front, f, args, {})
    inputs.names = [f"arg{k}_1" if inputs.signature is None else name for k, name in enumerate(_names(inputs))]
    free = {}
    if mode == "symbolic":
        for name, tensor in zip(inputs.names, inputs.tensors, strict=True):
            free.update(
                {
                    (name, axis): Free(f"s{len(free)}_{axis}_{name}")
                    for axis, size in enumerate(tensor.shape)
                    if size > 1
                }
            )
    module = f if isinstance(f, cresset.nn.Module) else None
    with kept(module):
        found = _record(f, inputs, free, front)
    recorders, outputs, sizes, results = found
    calls, merged = merge(
        recorders, outputs, lambda k: ", ".join(f"{s} is {n[k]}" for s, n in sizes.items()) or "recorded once more"
    )
    if front.removes is not None:
        calls, merged = _with_writes_at_the_end(calls, merged, recorders[0].inputs)
    if front.removes == "mutations_and_views":
        calls = list(map(_without_view, calls))
    return _graph_module(inputs, front, recorders[0], calls, merged, results, sizes, free, f)


def _with_writes_at_the_end(calls, values, inputs):
    """The calls, with a copy to each input that was written to, and the values of the outputs alone: behind them are
    those that the inputs have at the end.
    """
    given, after = values[: len(values) - len(inputs)], values[len(values) - len(inputs) :]
    schema = aten_table.find("aten::copy_")
    writes = [
        Call("copy_", schema, (before, value, False), {}, (copy.copy(value),), calls[-1].place)
        for before, value in zip(inputs, after, strict=True)
        if value is not before
    ]
    return [*calls, *writes], given


def _without_view(call):
    """The call that gives a copy where this one gives a view, if there is one."""
    schema = call.operator
    if not schema.returns or schema.returns[0].alias_info is None or schema.is_mutable:
        return call
    try:
        copying = aten_table.find(f"{schema.name}_copy.{schema.overload_name or 'default'}")
    except KeyError:
        return call
    return Call(copying.op, copying, call.args, call.kwargs, call.results, call.place)


def _names(inputs):
    return [f"{name}_1" for name in inputs.names]


def _record(f, inputs, free, front):
    """Record; of sizes that cannot all be free, those that can be alone are."""
    results, started = [], []

    def outputs_of(result):
        leaves, spec = tree_flatten(result)
        results.append((leaves, spec))
        tensors = [leaf for leaf in leaves if isinstance(leaf, cresset.Tensor)]
        state = [] if front.removes is None else started[-1].input_tensors
        return [((str(k),), leaf) for k, leaf in enumerate([*tensors, *state])]

    def start(parameters):
        started.append(front.start(parameters))
        return started[-1]

    def attempt(chosen):
        results.clear()
        recorders, outputs, sizes, _ = record(f, inputs, chosen, start, outputs_of)
        return recorders, outputs, sizes, results[-len(recorders) :]

    try:
        return attempt(free)
    except (MakeFxError, ValueError):
        if not free:
            raise
    kept_free = {}
    for place, dimension in free.items():
        try:
            attempt({**kept_free, place: dimension})
        except (MakeFxError, ValueError):
            continue
        kept_free[place] = dimension
    for place in set(free) - set(kept_free):
        del free[place]
    return attempt(kept_free)


def _graph_module(inputs, front, recorder, calls, outputs, results, sizes, free, f):
    writer = Writer(front, sizes)
    values = iter(recorder.inputs)
    number = 0
    for leaf in inputs.leaves:
        if isinstance(leaf, cresset.Tensor):
            name, value = inputs.names[number], next(values)
            node = writer.placeholder(name, value)
            for axis in range(len(value.shape)):
                dimension = free.get((name, axis))
                if dimension is not None:
                    writer.symbol_places.setdefault(dimension.symbol, (node, axis, 1, 0))
            number += 1
        else:
            writer.placeholder(f"arg_{len(writer.graph.nodes)}").meta["val"] = leaf
    attributes = {}
    for value in recorder.values:
        if value.data is not None and value not in writer.nodes:
            name = (
                value.parameter
                if value.parameter is not None
                else f"_tensor_constant{len([n for n in attributes if n.startswith('_tensor_constant')])}"
            )
            attributes[name] = value.data
            node = writer.graph.create_node("get_attr", name, (), {}, name.replace(".", "_"))
            writer.nodes[value] = node
            writer.describe(node, value)
    _write_calls(writer, calls, front.tells_grad_mode)
    tensors = iter(outputs)
    leaves, spec = results[0]
    given = [writer.node(next(tensors)) if isinstance(leaf, cresset.Tensor) else leaf for leaf in leaves]
    function = f.forward if isinstance(f, cresset.nn.Module) else f
    writer.graph.output(spec.unflatten(given), _annotation(function, "return"))
    if len(inputs.leaves) != len(inputs.args) or any(
        leaf is not arg for leaf, arg in zip(inputs.leaves, inputs.args, strict=True)
    ):
        writer.graph._codegen = _PyTreeCodeGen(
            _PytreeInfo(["self", *list(inputs.bound)[: len(inputs.args)]], tree_flatten(inputs.args)[1], None)
        )
    return GraphModule(attributes, writer.graph, class_name=getattr(f, "__name__", type(f).__name__))


has_side_effect(_C._set_grad_enabled)


def _write_calls(writer, calls, tells_grad_mode):
    """The calls; where asked for, with calls that say which of them are not recorded for backward."""
    records = before = cresset.is_grad_enabled()
    for call in calls:
        if tells_grad_mode and call.place.records != records:
            records = call.place.records
            writer.add(_C._set_grad_enabled, (records,), {}, "_set_grad_enabled")
        writer.write(call)
    if records != before:
        writer.add(_C._set_grad_enabled, (before,), {}, "_set_grad_enabled")


def get_proxy_mode():
    """The mode that records proxies in this thread: None, as recordings are made by `cresset.graph`."""
    return None


def maybe_disable_fake_tensor_mode():
    """A context in which no mode of fake tensors is active."""
    return unset_fake_temporarily()
