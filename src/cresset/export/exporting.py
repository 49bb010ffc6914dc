"""`export`: a module and example inputs become an ExportedProgram."""

import inspect

import cresset

from .._dynamo.exc import UserError
from ..compiler import exporting
from ..fx.recorded import Writer
from ..graph.aten_recording import AtenRecorder
from ..graph.merging import merge
from ..graph.recording import Front
from ..graph.recordings import Inputs, kept, record, record_once, resized
from ..graph.sizes import Fraction, Size
from ..pytree import keystr, tree_flatten, tree_flatten_with_path
from . import dynamic_shapes as shapes
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)
from .module_calls import ModuleCalls, arguments
from .program import ExportedProgram, InputCheck, ModuleCallEntry, ModuleCallSignature, Range


class ExportFront(Front):
    """Recordings for torch.export."""

    name, error = "export", UserError

    def __init__(self, calls=None):
        self.calls = calls

    def unsupported(self, operator, place):
        return UserError(
            f"export: the operator {operator} has no form in aten here; {place}. Write it with other operators"
        )

    def start(self, parameters):
        recorder = AtenRecorder(self, parameters)
        if self.calls is not None:
            self.calls.follow(recorder)
        return recorder


def export(mod, args, kwargs=None, *, dynamic_shapes=None, strict=False, preserve_module_call_signature=()):
    """Record a module on example inputs as an ExportedProgram: a graph of aten operators with its parameters, that runs
    without the module's source.

    The module runs several times, with other sizes of the dimensions that are free. Sizes that depend on them become
    formulas of them; everything else is as it was in these runs.

    Args:
        mod: a module.
        args, kwargs: example inputs.
        dynamic_shapes: the free dimensions, in the structure of the arguments: {"x": {0: Dim("batch")}, "y": None}, or
            a tuple in their order.
        strict: False, or True, which is the same here: Python runs, and is not read.
        preserve_module_call_signature: names of submodules whose arguments and results keep their structure, so that
            `unflatten` gives them back as they were called.

    >>> batch = cresset.export.Dim("batch")
    >>> program = cresset.export.export(nn.Linear(3, 2), (cresset.ones(4, 3),), dynamic_shapes={"input": {0: batch}})
    >>> program.module()(cresset.ones(9, 3)).shape
    torch.Size([9, 2])
    """
    if hasattr(mod, "_script_type"):
        raise ValueError(
            "Exporting a ScriptModule is not supported. Maybe try converting your ScriptModule to an ExportedProgram "
            "from the module that it was made of"
        )
    if not isinstance(mod, cresset.nn.Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise UserError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    kwargs = dict(kwargs or {})
    _check_names(mod, preserve_module_call_signature)
    module_calls = ModuleCalls(mod, preserve_module_call_signature)
    front = ExportFront(module_calls)
    inputs = Inputs(front, mod, args, kwargs)
    inputs.names = _input_names(inputs)
    if isinstance(dynamic_shapes, (shapes.ShapesCollection, shapes.AdditionalInputs)):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    free, ranges = shapes.read(inputs, dynamic_shapes)
    with kept(mod), exporting(), module_calls:
        recorders, outputs, sizes, results, free = _record(mod, inputs, free, ranges, front)
    ranges = {symbol: limits for symbol, limits in ranges.items() if symbol in sizes}

    def describe(k):
        return ", ".join(f"{symbol} is {samples[k]}" for symbol, samples in sizes.items()) or "recorded once more"

    calls, merged = merge(recorders, outputs, describe)
    return make_program(mod, inputs, front, recorders[0], calls, merged, results, sizes, free, ranges, module_calls)


def _input_names(inputs):
    """The names of the input tensors: `x`, `ys_0`, `ys_1_key`."""
    names = []
    for name, value in inputs.bound.items():
        for path, leaf in tree_flatten_with_path(value)[0]:
            if isinstance(leaf, cresset.Tensor):
                names.append(_input_name(name, path))
    return names


def _input_name(name, path):
    words = [name] + [str(getattr(key, "idx", getattr(key, "key", getattr(key, "name", key)))) for key in path]
    return "".join(c if c.isalnum() or c == "_" else "_" for c in "_".join(words)).lower()


def _record(mod, inputs, free, ranges, front):
    """Record; dimensions that may be free or not are fixed where the module does not run otherwise."""
    try:
        return (*_record_with(mod, inputs, free, ranges, front), free)
    except (UserError, ValueError):
        automatic = {place for place, dimension in free.items() if isinstance(dimension, shapes.AutoFree)}
        if not automatic:
            raise
    fixed = {place: dimension for place, dimension in free.items() if place not in automatic}
    for place in automatic:
        trial = {**fixed, place: free[place]}
        try:
            _record_with(mod, inputs, trial, ranges, front)
            fixed = trial
        except (UserError, ValueError):
            continue
    return (*_record_with(mod, inputs, fixed, ranges, front), fixed)


def _record_with(mod, inputs, free, ranges, front):
    results = []

    def outputs_of(result):
        leaves, spec = tree_flatten(result)
        _check_results(leaves)
        results.append((leaves, spec))
        return [((str(k),), leaf) for k, leaf in enumerate(leaves) if isinstance(leaf, cresset.Tensor)]

    limits = {symbol: limit for symbol, limit in ranges.items() if any(d.symbol == symbol for d in free.values())}
    try:
        recorders, outputs, sizes, _ = record(mod, inputs, free, front.start, outputs_of, limits)
    except UserError as error:
        if "other sizes" in str(error):
            raise UserError(f"Constraints violated! {error}") from error
        raise
    results = results[-len(recorders) :]
    if len({str(spec) for _, spec in results}) > 1:
        raise UserError("export: the structure of the result depends on the sizes of the free dimensions")
    merge_check(recorders, outputs, sizes)
    _check_ends(mod, inputs, free, limits, front, recorders[0])
    return recorders, outputs, sizes, results


_LARGEST_END = 1 << 20  # elements of the inputs; a recording with more would be too slow for a check


def _check_ends(mod, inputs, free, limits, front, recorder):
    """Fail if the model takes another way where a free dimension is as small or as large as it may be: `if x.shape[0] >
    4` is the same in the recordings, which lie close together.
    """
    example = {
        dimension.symbol: (inputs.tensors[inputs.names.index(name)].shape[axis] - dimension.offset) // dimension.factor
        for (name, axis), dimension in free.items()
    }
    for symbol, (low, high) in limits.items():
        for end in {max(low, 2), high} - {example[symbol]}:
            largest = max((t.numel() for t in inputs.tensors), default=0) * end // max(example[symbol], 1)
            if largest > _LARGEST_END:
                continue
            tensors = resized(inputs, free, {**{s: [size] for s, size in example.items()}, symbol: [end]}, 0)
            try:
                other, _, _ = record_once(mod, inputs, tensors, front.start, lambda result: [])
            except Exception:  # noqa: S112 -- what does not run there says so itself when it is called
                continue
            if [call.name for call in other.calls] != [call.name for call in recorder.calls]:
                raise UserError(
                    f"Constraints violated ({symbol})! export: the model runs other operators when {symbol!r} is {end} "
                    f"than when it is {example[symbol]}: it asks for the size. Give {symbol!r} a range within which "
                    "it takes one way"
                )


def merge_check(recorders, outputs, sizes):
    """Fail now if the recordings are not one program, while dimensions may still be fixed."""
    counts = {tuple(call.name for call in recorder.calls) for recorder in recorders}
    if len(counts) > 1:
        merge(recorders, outputs, lambda k: ", ".join(f"{symbol} is {samples[k]}" for symbol, samples in sizes.items()))


def _check_results(leaves):
    for leaf in leaves:
        if not (leaf is None or isinstance(leaf, (cresset.Tensor, bool, int, float, str))):
            raise UserError(
                f"export: the module gives a {type(leaf).__name__}, which is no tensor, number, text or None, nor a "
                "container of them (register_dataclass makes one of a class)"
            )


# ---- the program


def make_program(
    mod, inputs, front, recorder, calls, outputs, results, sizes, free, ranges, module_calls=None, constants=(),
    mutated=()
):  # fmt: skip
    """The ExportedProgram of a recording.

    Args:
        module_calls: the calls of modules that were seen; None if nobody watched.
        constants: names of buffers of `mod` that are constants of the program.
        mutated: (kind, the name of a buffer or the Value of an input, new Value) of what the program writes to.
    """
    writer = Writer(front, sizes)
    specs, state, kept_constants = [], {}, {}
    by_number = {value.parameter: value for value in recorder.values if value.parameter is not None}
    taken = set()

    def name_of(prefix, target):
        name = f"{prefix}_{target.replace('.', '_')}"
        while name in taken:
            name += "_1"
        taken.add(name)
        return name

    names = {
        id(t): n
        for n, t in reversed(
            [*mod.named_parameters(remove_duplicate=False), *mod.named_buffers(remove_duplicate=False)]
        )
    }
    for target, parameter in mod.named_parameters():
        node = writer.placeholder(name_of("p", target), by_number.get(names[id(parameter)]), parameter)
        specs.append(InputSpec(InputKind.PARAMETER, TensorArgument(node.name), target))
    for target, parameter in mod.named_parameters(remove_duplicate=False):
        state[target] = parameter
    non_persistent = _non_persistent(mod)
    for target, buffer in mod.named_buffers():
        constant = target in constants
        node = writer.placeholder(name_of("c" if constant else "b", target), by_number.get(names[id(buffer)]), buffer)
        kind, persistent = (
            (InputKind.CONSTANT_TENSOR, None) if constant else (InputKind.BUFFER, target not in non_persistent)
        )
        specs.append(InputSpec(kind, TensorArgument(node.name), target, persistent))
    for target, buffer in mod.named_buffers(remove_duplicate=False):
        (kept_constants if target in non_persistent else state)[target] = buffer
    attributes = _tensor_attributes(mod)
    for value in recorder.values:
        if value.data is not None and value.parameter is None and value not in writer.nodes:
            target = (
                attributes.get(id(value.data))
                or f"lifted_tensor_{len([t for t in kept_constants if t.startswith('lifted_tensor')])}"
            )
            node = writer.placeholder(name_of("c", target), value)
            kept_constants[target] = value.data.detach()
            specs.append(InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), target))
    checks = _user_inputs(writer, inputs, recorder, specs, free, sizes)
    if module_calls is not None:
        writer.frames = module_calls.frames(recorder)
    for call in calls:
        writer.write(call)
    writer.call = None
    out_spec, output_specs = _user_outputs(writer, outputs, results, mutated)
    entries = _module_entries(mod, recorder, module_calls, writer)
    promised = {arg.name for entry in entries if entry.signature for arg in entry.signature.outputs}
    writer.graph.eliminate_dead_code(lambda node: node.name in promised or _is_impure(node))
    forward_names = list(inputs.bound)
    entry = ModuleCallSignature([], [], inputs.spec, out_spec, forward_names)
    program = ExportedProgram(
        root=mod,
        graph=writer.graph,
        graph_signature=ExportGraphSignature(specs, output_specs),
        state_dict=state,
        range_constraints={symbol: Range(max(low, 0), high) for symbol, (low, high) in ranges.items()},
        module_call_graph=[ModuleCallEntry("", entry), *entries],
        example_inputs=(inputs.args, inputs.kwargs),
        constants=kept_constants,
        checks=checks,
    )
    return program


def _is_impure(node):
    if node.op in ("placeholder", "output"):
        return True
    schema = getattr(node.target, "_schema", None)
    return schema is not None and any(argument.is_written for argument in schema.arguments)


def _non_persistent(mod):
    found = set()
    for prefix, module in mod.named_modules(remove_duplicate=False):
        found.update(f"{prefix}.{name}" if prefix else name for name in module._non_persistent_buffers_set)
    return found


def _tensor_attributes(mod):
    """The names of tensors that modules hold as plain attributes, by id."""
    found = {}
    for prefix, module in mod.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, cresset.Tensor):
                found.setdefault(id(value), f"{prefix}.{name}" if prefix else name)
    return found


def _user_inputs(writer, inputs, recorder, specs, free, sizes):
    """Placeholders for what the user gives, and what is checked of them in a call."""
    checks, values = [], iter(recorder.inputs)
    for (path, leaf), name in zip(_paths(inputs), _leaf_names(inputs), strict=True):
        if not isinstance(leaf, cresset.Tensor):
            node = writer.placeholder(name)
            node.meta["val"] = leaf
            specs.append(InputSpec(InputKind.USER_INPUT, ConstantArgument(node.name, leaf), None))
            checks.append(InputCheck(path, name, None, None, leaf))
            continue
        value = next(values)
        node = writer.placeholder(name, value)
        specs.append(InputSpec(InputKind.USER_INPUT, TensorArgument(node.name), None))
        shape = []
        for axis, size in enumerate(value.shape):
            dimension = free.get((name, axis))
            shape.append(size if dimension is None else dimension)
            if dimension is not None:
                known = writer.symbol_places.get(dimension.symbol)
                if known is None or (known[2:] != (1, 0) and (dimension.factor, dimension.offset) == (1, 0)):
                    writer.symbol_places[dimension.symbol] = (node, axis, dimension.factor, dimension.offset)
        checks.append(InputCheck(path, name, leaf.dtype, shape, None))
    return checks


def _paths(inputs):
    """(how the program writes it, leaf) for every leaf of the arguments."""
    found = []
    for name, value in inputs.bound.items():
        found += [(name + keystr(path), leaf) for path, leaf in tree_flatten_with_path(value)[0]]
    return found


def _leaf_names(inputs):
    return [
        _input_name(name, path) for name, value in inputs.bound.items() for path, _ in tree_flatten_with_path(value)[0]
    ]


def _user_outputs(writer, outputs, results, mutated=()):
    """The output node, the structure of the result, and what the outputs are."""
    tensors = iter(outputs)
    given = [writer.node(value) for *_, value in mutated]
    specs = [
        OutputSpec(
            kind,
            TensorArgument(writer.node(value).name),
            target if isinstance(target, str) else writer.node(target).name,
        )
        for kind, target, value in mutated
    ]
    for group in zip(*(leaves for leaves, _ in results), strict=True):
        first = group[0]
        if isinstance(first, cresset.Tensor):
            node = writer.node(next(tensors))
            given.append(node)
            specs.append(OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(node.name), None))
        elif type(first) in (int, float) and any(v != first for v in group):
            number = Size.of(group) if type(first) is int else Fraction.of(group)
            node = writer.number(number)
            given.append(node)
            specs.append(
                OutputSpec(
                    OutputKind.USER_OUTPUT,
                    (SymIntArgument if type(first) is int else SymFloatArgument)(node.name),
                    None,
                )
            )
        elif any(type(v) is not type(first) or v != first for v in group):
            raise UserError(
                f"export: a result is {first!r} in one recording and {next(v for v in group if v != first)!r} in "
                "another"
            )
        else:
            given.append(first)
            specs.append(OutputSpec(OutputKind.USER_OUTPUT, ConstantArgument("", first), None))
    writer.graph.output(tuple(given))
    return results[0][1], specs


def _check_names(mod, preserved):
    names = {name for name, _ in mod.named_modules()}
    unknown = [name for name in preserved if name not in names]
    if unknown:
        raise ValueError(f"export: preserve_module_call_signature names {unknown}, which the module does not have")


def _module_entries(mod, recorder, module_calls, writer):
    """What the program says of submodules: their names, and the signatures that are kept."""
    kept = {call.path: call for call in (module_calls.of(recorder) if module_calls is not None else ()) if call.given}
    found = []
    for name, module in mod.named_modules():
        if not name:
            continue
        call, signature = kept.get(name), None
        if call is not None and call.result is not None:
            (given, in_spec), (result, out_spec) = call.given, call.result
            names = list(inspect.signature(module.forward).parameters)
            signature = ModuleCallSignature(
                arguments(given, writer), arguments(result, writer), in_spec, out_spec, names
            )
        found.append(ModuleCallEntry(name, signature))
    return found
