"""run_decompositions: a program in simpler operators, without writes."""

import functools

import cresset

from ..fx.interpreter import Interpreter
from ..fx.traceback import preserve_node_meta
from ..graph.functional_recording import FunctionalRecorder
from ..graph.merging import merge
from ..graph.recordings import Free, Inputs, kept, record
from ..pytree import tree_flatten
from .graph_signature import InputKind, OutputKind
from .program import ModuleCallEntry


def _linear(input, weight, bias=None):
    if input.dim() == 2 and bias is not None:
        return cresset.addmm(bias, input, weight.permute(1, 0))
    product = input @ weight.permute(1, 0)
    return product if bias is None else product + bias


def _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    if not training and running_mean is not None:
        return cresset.native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)[0]
    dims, shape = [0, *range(2, input.dim())], [1, -1] + [1] * (input.dim() - 2)
    mean, var = input.mean(dims), input.var(dims, correction=0)
    if running_mean is not None:
        count = input.numel() // input.shape[1]
        running_mean.copy_(running_mean * (1 - momentum) + mean * momentum)
        running_var.copy_(running_var * (1 - momentum) + var * (momentum * count / max(count - 1, 1)))
    found = (input - mean.view(shape)) * (var + eps).rsqrt().view(shape)
    found = found if weight is None else found * weight.view(shape)
    return found if bias is None else found + bias.view(shape)


def _conv(dims):
    def conv(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        return cresset.convolution(input, weight, bias, stride, padding, dilation, False, [0] * dims, groups)

    return conv


def default_table():
    """The operators that are written with simpler ones if no table is given, {"aten::name.overload": function}."""
    return {
        "aten::linear.default": _linear,
        "aten::batch_norm.default": _batch_norm,
        "aten::conv1d.default": _conv(1),
        "aten::conv2d.default": _conv(2),
        "aten::conv3d.default": _conv(3),
        "aten::flatten.using_ints": lambda x, start, end: x.reshape(
            [*x.shape[:start], -1, *x.shape[end % x.dim() + 1 :]]
        ),
        "aten::layer_norm.default": lambda x, shape, weight=None, bias=None, eps=1e-5, cudnn_enable=False: (
            cresset.native_layer_norm(x, shape, weight, bias, eps)[0]
        ),
        "aten::silu.default": lambda x: x * x.sigmoid(),
        "aten::transpose.int": lambda x, a, b: x.permute(_swapped(x.dim(), a, b)),
        "aten::t.default": lambda x: x.permute(list(range(x.dim()))[::-1]),
    }


def _swapped(rank, a, b):
    order = list(range(rank))
    order[a], order[b] = order[b], order[a]
    return order


class CustomDecompTable(dict):
    """The operators that `run_decompositions` writes with simpler ones, {torch.ops.aten.name.overload: function}: take
    some out, put others in, and hand it over.

    >>> table = cresset.export.default_decompositions()
    >>> table.pop(cresset.ops.aten.linear.default) is not None
    True
    """

    def copy(self):
        return CustomDecompTable(self)

    def materialize(self):
        """The same as a plain dict."""
        return dict(self)


def default_decompositions():
    """The table that `run_decompositions` takes if it is given none."""
    found = CustomDecompTable()
    for name, function in default_table().items():
        operator, _, overload = name.removeprefix("aten::").partition(".")
        found[getattr(getattr(cresset.ops.aten, operator), overload)] = function
    return found


def decomposed(program, table=None):
    """The program recorded again: operators of the table are entered, writes are new values, and new values of buffers
    are outputs.
    """
    from .exporting import ExportFront, make_program

    if program.example_inputs is None:
        raise RuntimeError("run_decompositions: the program has no example inputs; set example_inputs to some")
    chosen = default_table() if table is None else {_key(op): function for op, function in table.items()}
    front = ExportFront()
    module = program.module(check_guards=False)
    args, kwargs = program.example_inputs
    inputs = Inputs(front, module, args, kwargs)
    module.forward = functools.partial(_node_by_node, module)
    inputs.names = [check.name for check in program._checks if check.shape is not None]
    free = {
        (check.name, axis): size
        for check in program._checks
        for axis, size in enumerate(check.shape or ())
        if isinstance(size, Free)
    }
    ranges = {symbol: (limits.lower, limits.upper) for symbol, limits in program.range_constraints.items()}
    buffers = [
        (spec.target, program.tensor_of(spec))
        for spec in program.graph_signature.input_specs
        if spec.kind is InputKind.BUFFER
    ]
    results, started = [], []

    def start(names):
        started.append(FunctionalRecorder(front, names, decompositions=chosen))
        return started[-1]

    def outputs_of(result):
        leaves, spec = tree_flatten(result)
        results.append((leaves, spec))
        tensors = [leaf for leaf in leaves if isinstance(leaf, cresset.Tensor)]
        state = [*(buffer for _, buffer in buffers), *started[-1].input_tensors]
        return [((str(k),), t) for k, t in enumerate([*tensors, *state])]

    with cresset.no_grad(), kept(module):
        recorders, outputs, sizes, _ = record(
            module,
            inputs,
            free,
            start,
            outputs_of,
            ranges,
        )
    vars(module).pop("forward")
    first = recorders[0]
    calls, merged = merge(
        recorders, outputs, lambda k: ", ".join(f"{s} is {n[k]}" for s, n in sizes.items()) or "recorded once more"
    )
    ends = len(merged) - len(buffers) - len(first.inputs), len(merged) - len(first.inputs)
    given, of_buffers, of_inputs = merged[: ends[0]], merged[ends[0] : ends[1]], merged[ends[1] :]
    mutated = [
        (OutputKind.BUFFER_MUTATION, name, value)
        for (name, _), value in zip(buffers, of_buffers, strict=True)
        if value.parameter is None
    ]
    mutated += [
        (OutputKind.USER_INPUT_MUTATION, before, value)
        for before, value in zip(first.inputs, of_inputs, strict=True)
        if value is not before
    ]
    made = make_program(
        module,
        inputs,
        front,
        first,
        calls,
        given,
        results[-len(recorders) :],
        sizes,
        free,
        ranges,
        None,
        constants=set(program.constants),
        mutated=mutated,
    )
    whole, *parts = program._module_call_graph
    made._module_call_graph, made._example_inputs, made._checks = (
        [whole, *(ModuleCallEntry(part.fqn) for part in parts)],  # the values that signatures name are gone
        program._example_inputs,
        program._checks,
    )
    made._decomposed = True
    return made


def _node_by_node(module, *args, **kwargs):
    """What the module gives; what is recorded meanwhile takes over where its node came from."""
    codegen = module.graph._codegen
    with preserve_node_meta():
        leaves = Interpreter(module).run(*codegen.flatten(args, kwargs), enable_io_processing=False)
    return codegen.unflatten(leaves)


def _key(op):
    return op.name() if op._schema.overload_name else f"{op.name()}.default"
