"""torch.jit.trace: run a program once on example inputs, and keep what it calls.

The recorder is `cresset.graph`'s. What Python decides on the way (branches, loops, numbers taken out of tensors) is
kept as it was in that run; warnings say where.
"""

import contextlib
import dataclasses
import difflib
import functools
import inspect
import itertools
import sys
import warnings

import cresset

from ..graph.from_recording import Writer, type_of
from ..graph.function import Argument, Function, FunctionSchema
from ..graph.graph import Graph, Value
from ..graph.places import PACKAGE, Place
from ..graph.recording import RANDOM, Front
from ..graph.recordings import kept, parameter_names
from ..graph.traced_numbers import SizeRecorder, TracedFloat, TracedInt, told_sizes
from ..graph.types import BoolType, ClassType, NoneType, TensorType
from ..pytree import tree_leaves
from . import _state, emit_hooks, objects

CONTAINERS = (
    "Encountering a {} at the output of the tracer might cause the trace to be incorrect: it holds only while the "
    "structure does not depend on the inputs. "
    "Give a tuple (a NamedTuple for a dict), or pass strict=False to trace()"
)


class TracerWarning(Warning):
    """A recorded program may not be what the source says for other inputs."""

    @staticmethod
    def ignore_lib_warnings():
        """Ignore such warnings that come from the library's own code."""
        warnings.filterwarnings("ignore", category=TracerWarning, module="cresset.(?!jit)")


class TracingCheckError(Exception):
    """Recorded twice, a program was two different ones."""

    def __init__(self, graph_diff_error, tensor_compare_error, extra_msg=None):
        parts = [extra_msg] if extra_msg else []
        if graph_diff_error:
            parts.append("ERROR: Graphs differed across invocations!\n" + _indented(graph_diff_error))
        if tensor_compare_error:
            parts.append(
                "ERROR: Tensor-valued Constant nodes differed in value across invocations.\n"
                + _indented(tensor_compare_error)
            )
        self.message = "Tracing failed sanity checks!\n" + "\n".join(parts)
        super().__init__(self.message)


def _indented(text):
    return "\n".join("\t" + line for line in text.splitlines())


class TraceFront(Front):
    """Recordings for torch.jit.trace."""

    name = "jit.trace"

    def __init__(self):
        self.seen = set()

    def unsupported(self, operator, place):
        return self.error(
            f"jit.trace: the operator {operator} has no form that TorchScript has; {place}. Write it with other "
            "operators"
        )

    def froze(self, what, frame):
        """Warn, once a line, that a value became a constant."""
        message = (
            f"Converting {what} might cause the trace to be incorrect: a Python value is not recorded, so it is "
            "a constant in the trace, which might not generalize to other inputs"
        )
        self.warn(message, frame)

    def warn(self, message, frame):
        key = (message, frame.f_code.co_filename, frame.f_lineno)
        if key not in self.seen:
            self.seen.add(key)
            warnings.warn_explicit(message, TracerWarning, *key[1:], registry=None)


WORDS = {
    "the truth value of a tensor": "a tensor to a Python boolean",
    "the number in a tensor": "a tensor to a Python number",
    "the elements of a tensor as a list": "a tensor to a Python list",
}


class TraceRecorder(SizeRecorder):
    """Records for torch.jit.trace; what leaves the recording is told as a warning."""

    def __init__(self, front, parameters):
        super().__init__(front, parameters)
        self.input_values, self.scopes = {}, []

    def add_inputs(self, trees):
        for tensor in (leaf for leaf in tree_leaves(trees) if isinstance(leaf, cresset.Tensor)):
            self.input_values[id(tensor)] = self.add_input(tensor)

    # ---- names of scopes, which hooks of modules may give in place of the modules' paths

    def push_scope(self, name):
        self.scopes.append(name)

    def pop_scope(self):
        self.scopes.pop()

    def place(self):
        place = Place()
        if self.scopes:
            place.module = "/".join(self.scopes)
        return place

    def refuse_values(self, what, tensor):
        frame = sys._getframe(1)
        known = self.known.get(id(tensor))
        if known is None or not known.value.depends:
            return
        if what == "the address of a tensor":
            frame, names = _program_frame(frame)
            if "numpy" in names or "__array__" in names:
                self.front.froze("a tensor to a NumPy array", frame)
            elif names:
                self.refuse(names[-1])
            return
        frame, names = _program_frame(frame)
        if not names or names == ["tolist"]:
            self.front.froze(WORDS[what], frame)


def _program_frame(frame):
    """The innermost frame of the program, and the names of the package's functions that it called."""
    names = []
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    return frame, names


@contextlib.contextmanager
def _constants_told(front):
    """Inside, torch.tensor and torch.from_numpy tell that their result is a constant of the trace."""
    originals = {name: getattr(cresset, name) for name in ("tensor", "as_tensor", "from_numpy")}

    def telling(name, original):
        @functools.wraps(original)
        def told(*args, **kwargs):
            frame = sys._getframe(1)
            if _state.tracing() is not None and not frame.f_code.co_filename.startswith(PACKAGE):
                front.warn(
                    f"torch.{name} results are registered as constants in the trace. That is right where they are the "
                    "same every time this function is called; "
                    "in any other case the trace might be incorrect",
                    frame,
                )
            return original(*args, **kwargs)

        return told

    for name, original in originals.items():
        setattr(cresset, name, telling(name, original))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(cresset, name, original)


# ---- types of modules

_mangles = itertools.count()


def qualified_name(kind):
    """A name of its own for the class of a traced module or a function: `__torch__.package.___torch_mangle_3.Class`."""
    module = (getattr(kind, "__module__", None) or "unknown").replace("<", "_").replace(">", "_")
    return f"__torch__.{module}.___torch_mangle_{next(_mangles)}.{getattr(kind, '__name__', 'traced')}".replace(
        "<lambda>", "_lambda_"
    ).replace("<locals>.", "")


def module_type(module, made=None):
    """The ClassType of a module: its parameters, buffers and submodules."""
    made = {} if made is None else made
    if id(module) in made:
        return made[id(module)]
    if isinstance(module, objects.RecursiveScriptModule):
        return module._script_type
    kind = made[id(module)] = ClassType(qualified_name(type(module)), is_module=True, python_class=type(module))
    for name, parameter in module._parameters.items():
        kind.attributes[name] = NoneType() if parameter is None else TensorType()
        kind.parameters.add(name)
    for name, buffer in module._buffers.items():
        kind.attributes[name] = NoneType() if buffer is None else TensorType()
        kind.buffers.add(name)
    kind.attributes["training"] = BoolType()
    for name, child in module._modules.items():
        if child is not None:
            kind.attributes[name] = module_type(child, made)
    return kind


# ---- recording


def _copied(tree):
    """The example inputs, so that a program that writes to its inputs does not change the caller's."""
    if isinstance(tree, cresset.Tensor):
        return tree.detach().clone().requires_grad_(tree.requires_grad)
    if isinstance(tree, dict):
        return {key: _copied(item) for key, item in tree.items()}
    if isinstance(tree, (tuple, list)):
        items = [_copied(item) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    return tree


def _check_inputs(args, kwargs):
    for tree in (*args, *kwargs.values()):
        if type_of(tree) is None:
            kinds = ", ".join(
                "Tensor" if isinstance(a, cresset.Tensor) else type(a).__name__ for a in (*args, *kwargs.values())
            )
            raise RuntimeError(
                f"Type 'Tuple[{kinds}]' cannot be traced. Only Tensors and (possibly nested) Lists, Dicts, and Tuples "
                "of Tensors can be traced"
            )


def _check_result(tree, strict, frame, front):
    if isinstance(tree, cresset.Tensor):
        return
    if tree is None:
        raise RuntimeError(
            "The traced function didn't return any values! Side-effects are not captured in traces, so it would be a "
            "no-op."
        )
    if not isinstance(tree, (tuple, list, dict)):
        raise RuntimeError(
            "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions, "
            f"got {type(tree).__name__}"
        )
    if strict and isinstance(tree, dict):
        raise RuntimeError(CONTAINERS.format("dict"))
    if strict and isinstance(tree, list):
        front.warn(CONTAINERS.format("list"), frame)
    for item in tree.values() if isinstance(tree, dict) else tree:
        if item is None:
            raise RuntimeError(
                "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced "
                "functions, got None"
            )
        _check_result(item, strict, frame, front)
    if isinstance(tree, (list, dict)) and type_of(tree) is None:
        raise RuntimeError("jit.trace: the items of a list or dict that is given back have to be of one type")


def _sizes_as_tensors(tree):
    """What a program gives back, with its sizes as tensors: in PyTorch's traces they are ones all along."""
    if isinstance(tree, TracedInt):
        return cresset.scalar_tensor(tree, dtype=cresset.int64)
    if isinstance(tree, TracedFloat):
        return cresset.scalar_tensor(tree)
    if isinstance(tree, dict):
        return {key: _sizes_as_tensors(item) for key, item in tree.items()}
    if type(tree) in (list, tuple, cresset.Size):
        return (list if isinstance(tree, list) else tuple)(map(_sizes_as_tensors, tree))
    return tree


def _argument_names(function, args, kwargs):
    """The names of the inputs, from the program's parameters."""
    try:
        called = function.forward if isinstance(function, cresset.nn.Module) else function
        parameters = list(inspect.signature(called).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "argument")
    return [*names[: len(args)], *(f"{rest}_{k}" for k in range(len(names), len(args)))] + list(kwargs)


@dataclasses.dataclass
class _Run:
    """A graph, its inputs without `self`, what the program gave and the graph's value of that."""

    graph: Graph
    inputs: list
    result: object
    output: Value


def run(
    function, args, kwargs, *, frame, module=None, self_type=None, state=(), strict=True, quiet=False, writer=Writer
):
    """Run a program on inputs. `state`: tensors that are inputs of the graph, too; `writer`: what makes the graph."""
    front = TraceFront()
    _check_inputs(args, kwargs)
    args, kwargs = _copied(args), _copied(kwargs)
    recorder = TraceRecorder(front, {} if state else parameter_names(module))
    recorder.add_inputs((args, kwargs, state))
    before = _state.set_tracing(recorder)
    silence = warnings.catch_warnings() if quiet else contextlib.nullcontext()
    with silence, kept(module), told_sizes(), _constants_told(front):
        if quiet:
            warnings.simplefilter("ignore", TracerWarning)
        recorder.start()
        try:
            with recorder:
                result = _sizes_as_tensors(function(*args, **kwargs))
            _check_result(result, strict, frame, front)
            writer = writer(recorder, self_type)
            names = _argument_names(function, args, kwargs) + [""] * len(state)
            given = (*args, *kwargs.values(), *state)
            inputs = [writer.add_input(n, tree) for n, tree in zip(names, given, strict=True)]
            found = recorder.calls[:]
            leaves = [
                recorder.value_of(t) for t in tree_leaves(result)
            ]  # what was made on the way to them is recorded, too
            for call in [*found, *recorder.calls[len(found) :]]:
                writer.write(call)
            del leaves
            output = writer.result(result)
        finally:
            _state.set_tracing(before)
            recorder.close()
    writer.graph.registerOutput(output)
    writer.graph.eliminate_dead_code()
    return _Run(writer.graph, inputs, result, output)


def record(function, name, args, kwargs, *, self_type=None, **options):
    """Run a program on inputs: its Function. `options` are those of `run`."""
    found = run(function, args, kwargs, self_type=self_type, **options)
    arguments = [Argument("self", self_type)] if self_type is not None else []
    arguments += [Argument(v.debugName(), _without_sizes(v.type())) for v in found.inputs]
    schema = FunctionSchema(name.rpartition(".")[2], arguments, _without_sizes(found.output.type()))
    return Function(name, schema, found.graph, owner=self_type)


def _without_sizes(type):
    return TensorType() if isinstance(type, TensorType) else type


# ---- the interface


def _as_tuple(inputs):
    if isinstance(inputs, (cresset.Tensor, dict)):
        return (inputs,)
    return inputs if isinstance(inputs, tuple) else tuple(inputs)


def _warn_of_optimize(optimize):
    if optimize is not None:
        warnings.warn(
            "`optimize` is deprecated and has no effect. Use `with torch.jit.optimized_execution()` instead",
            FutureWarning,
            stacklevel=3,
        )


def trace(
    func, example_inputs=None, optimize=None, check_trace=True, check_inputs=None, check_tolerance=1e-5, strict=True,
    _force_outplace=False,
    _module_class=None, _compilation_unit=None, example_kwarg_inputs=None, _store_inputs=True,
):  # fmt: skip
    """Run a function or a module on example inputs and give what it computed as a ScriptFunction or ScriptModule, which
    runs without its source.

    Branches and loops are kept as they went in this run. Sizes of the inputs are followed where they are used in
    arithmetic. Parameters are shared with the module.

    Args:
        example_inputs: a tuple of tensors, or of tuples, lists and dicts of them; one tensor for one input.
        check_trace: record again, and compare graphs and results.
        check_inputs: further inputs to compare results on, a list of tuples.
        check_tolerance: how far results may be apart in the check.
        strict: False allows lists and dicts as results.
        example_kwarg_inputs: example inputs by name, in place of `example_inputs`.

    >>> traced = cresset.jit.trace(lambda x: 2 * x + 1, cresset.ones(2))
    >>> traced(cresset.zeros(3))
    tensor([1., 1., 1.])
    """
    if not _state._enabled:
        return func
    _warn_of_optimize(optimize)
    if isinstance(func, (objects.ScriptModule, objects.ScriptFunction)):
        warnings.warn(
            "The input to trace is already a ScriptModule, tracing it is a no-op. Returning the object as is.",
            stacklevel=2,
        )
        return func
    if (example_inputs is None) == (example_kwarg_inputs is None):
        raise RuntimeError("jit.trace: give one of example_inputs and example_kwarg_inputs")
    args, kwargs = (
        ((), dict(example_kwarg_inputs)) if example_kwarg_inputs is not None else (_as_tuple(example_inputs), {})
    )
    if isinstance(func, cresset.nn.Module):
        return _trace_module(func, {"forward": (args, kwargs)}, check_trace, check_inputs, check_tolerance, strict)
    owner = getattr(func, "__self__", None)
    if isinstance(owner, cresset.nn.Module):
        if func.__name__ == "forward":
            return _trace_module(owner, {"forward": (args, kwargs)}, check_trace, check_inputs, check_tolerance, strict)
        raise AttributeError(
            "trace doesn't support compiling individual module's functions.\nPlease use trace_module; it was given "
            f"{type(owner).__name__}.{func.__name__}"
        )
    if not callable(func):
        raise TypeError(f"jit.trace: expected a function or a module, got {type(func).__name__}")
    name = qualified_name(func)
    frame = sys._getframe(1)

    def once(args, kwargs, quiet=False):
        return record(func, name, args, kwargs, strict=strict, frame=frame, quiet=quiet)

    traced = objects.ScriptFunction(once(args, kwargs))
    emit_hooks.function_made(traced._function)
    if check_trace:
        _check(traced, func, once, _checks(check_inputs, args, kwargs), check_tolerance, None, frame)
    return traced


def trace_module(
    mod, inputs, optimize=None, check_trace=True, check_inputs=None, check_tolerance=1e-5, strict=True,
    _force_outplace=False,
    _module_class=None, _compilation_unit=None, example_inputs_is_kwarg=False, _store_inputs=True,
):  # fmt: skip
    """Trace several methods of a module: `inputs` has example inputs by the method's name.

    >>> net = nn.Linear(2, 1)
    >>> cresset.jit.trace_module(net, {"forward": cresset.ones(3, 2)})(cresset.ones(5, 2)).shape
    torch.Size([5, 1])
    """
    if not _state._enabled:
        return mod
    _warn_of_optimize(optimize)
    if not isinstance(mod, cresset.nn.Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    given = {}
    for method, example in inputs.items():
        given[method] = ((), dict(example)) if example_inputs_is_kwarg else (_as_tuple(example), {})
    return _trace_module(mod, given, check_trace, check_inputs, check_tolerance, strict)


def _trace_module(module, methods, check_trace, check_inputs, tolerance, strict):
    frame = sys._getframe(2)
    kind = module_type(module)
    runs = {}
    for method, (args, kwargs) in methods.items():
        function = module if method == "forward" else getattr(module, method)

        def once(args, kwargs, quiet=False, function=function, method=method):
            return record(
                function,
                f"{kind.qualified_name}.{method}",
                args,
                kwargs,
                module=module,
                self_type=kind,
                strict=strict,
                frame=frame,
                quiet=quiet,
            )

        kind.methods[method] = once(args, kwargs)
        runs[method] = once
    traced = objects.TopLevelTracedModule._from(kind, module)
    emit_hooks.module_made(traced)
    if check_trace:
        for position, (method, (args, kwargs)) in enumerate(methods.items()):
            given = (
                [example[method] for example in check_inputs or () if method in example]
                if isinstance(check_inputs, list) and check_inputs and isinstance(check_inputs[0], dict)
                else check_inputs
            )
            function = module if method == "forward" else getattr(module, method)
            run = traced if method == "forward" else getattr(traced, method)
            _check(
                run,
                function,
                runs[method],
                _checks(given if position == 0 or given is not check_inputs else None, args, kwargs),
                tolerance,
                module,
                frame,
                kind.methods[method],
            )
    return traced


# ---- checking


def _checks(check_inputs, args, kwargs):
    return [(args, kwargs), *((_as_tuple(example), {}) for example in check_inputs or ())]


def _check(traced, function, once, inputs, tolerance, module, frame, made=None):
    """Record again and compare; run on the inputs and compare."""
    front = TraceFront()
    graph = (made or traced._function).graph
    for args, kwargs in inputs:
        again = once(args, kwargs, quiet=True).graph
        difference = _difference(graph, again)
        if difference:
            raise TracingCheckError(difference, None)
        constants = _constants_differ(graph, again)
        if constants:
            raise TracingCheckError(None, constants)
        random = [node for node in graph.all_nodes() if node.schema is not None and _is_random(node)]
        if random:
            lines = "\n".join("\t" + repr(node).strip() for node in random[:20])
            front.warn(
                f"Trace had nondeterministic nodes. Did you forget call .eval() on your model? Nodes:\n{lines}\n"
                "This may cause errors in trace checking. To disable trace checking, pass check_trace=False to "
                "torch.jit.trace()",
                frame,
            )
        with kept(module), cresset.no_grad():
            expected = function(*_copied(args), **_copied(kwargs))
        with kept(module), cresset.no_grad():
            found = traced(*_copied(args), **_copied(kwargs))
        for number, (want, got) in enumerate(zip(tree_leaves(expected), tree_leaves(found), strict=True), 1):
            want = cresset.tensor(want) if isinstance(want, (int, float)) else want  # a size
            try:
                cresset.testing.assert_close(
                    got, want, rtol=tolerance, atol=tolerance, equal_nan=True, check_dtype=False
                )
            except AssertionError as error:
                front.warn(
                    (
                        f"Output nr {number}. of the traced function does not match the corresponding output of the "
                        f"Python function. Detailed error:\n{error}"
                    ),
                    frame,
                )


def _is_random(node):
    if node.kind() in ("aten::dropout", "aten::dropout_", "aten::alpha_dropout", "aten::feature_dropout"):
        return node.inputsAt(2).constant() is True and node.inputsAt(1).constant() != 0
    return node.schema.op in RANDOM or any(argument.type == "Generator?" for argument in node.schema.arguments)


def _difference(first, second):
    """How two graphs differ, as lines; empty if they are the same."""
    texts = [graph.str(False).splitlines() for graph in (first, second)]
    if texts[0] == texts[1]:
        return ""
    return "Graph diff:\n" + _indented("\n".join(difflib.ndiff(*texts)))


def _constants_differ(first, second):
    for a, b in zip(first.findAllNodes("prim::Constant"), second.findAllNodes("prim::Constant"), strict=True):
        x, y = a.attributes.get("value"), b.attributes.get("value")
        if isinstance(x, cresset.Tensor) and not (
            x.shape == y.shape and x.dtype == y.dtype and cresset.allclose(x.double(), y.double(), equal_nan=True)
        ):
            return f"Node:\n{_indented(repr(a).strip())}\nis {x} in the first recording and {y} in the second"
    return ""
