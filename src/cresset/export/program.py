"""ExportedProgram: a graph with its parameters, what its inputs are, and which sizes are free."""

import copy
import dataclasses

import cresset

from ..fx._lazy_graph_module import _LazyGraphModule
from ..fx._symbolic_trace import _PytreeInfo
from ..fx.code import CodeGen
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..graph.recordings import Free
from ..graph.svg import fx_svg
from ..pytree import tree_flatten, tree_unflatten
from .dynamic_shapes import MOST
from .graph_signature import InputKind, OutputKind


@dataclasses.dataclass
class Range:
    """The sizes that a symbol may have."""

    lower: int
    upper: int

    def __repr__(self):
        return f"VR[{self.lower}, {'int_oo' if self.upper == MOST else self.upper}]"


@dataclasses.dataclass
class ModuleCallSignature:
    """How a module was called: the structures of its inputs and outputs."""

    inputs: list
    outputs: list
    in_spec: object
    out_spec: object
    forward_arg_names: list | None = None


@dataclasses.dataclass
class ModuleCallEntry:
    """A submodule; its signature is kept where it was asked for."""

    fqn: str
    signature: ModuleCallSignature | None = None


@dataclasses.dataclass
class CallSpec:
    """The structures of a program's inputs and outputs."""

    in_spec: object
    out_spec: object


@dataclasses.dataclass
class InputCheck:
    """What an input has to be. `shape` has a number or a `Free` for each dimension; without a dtype, it is a
    constant."""

    path: str
    name: str
    dtype: object
    shape: list | None
    value: object = None


class GuardError(AssertionError):
    """An input that the program was not exported for."""


class Flatten:
    """Takes arguments apart into the inputs of a graph, and checks them."""

    def __init__(self, in_spec, checks, ranges):
        self.in_spec, self.checks, self.ranges = in_spec, checks, ranges

    def __call__(self, args, kwargs):
        leaves, spec = tree_flatten((tuple(args), kwargs))
        if spec != self.in_spec:
            raise ValueError(
                f"Trying to flatten user inputs with exported input tree spec: \n{self.in_spec}\nbut actually got "
                f"inputs with tree spec of: \n{spec}.\n"
                "Please check that the inputs have the same number and type of args and kwargs as the ones you used "
                "when tracing."
            )
        self.check(leaves)
        return leaves

    def check(self, leaves):
        """Refuse an input that is not of the exported sizes, by its name and dimension."""
        sizes = {}  # symbol -> (size, where it was seen)
        for check, leaf in zip(self.checks, leaves, strict=True):
            if check.shape is None:
                if type(leaf) is not type(check.value) or leaf != check.value:
                    raise GuardError(
                        f"export: {check.path} is {leaf!r}, but the program was exported with {check.value!r} (Guard "
                        f"failed: {check.path} == {check.value!r})"
                    )
                continue
            if not isinstance(leaf, cresset.Tensor):
                raise GuardError(f"export: {check.path} should be a tensor, got {type(leaf).__name__}")
            if leaf.dim() != len(check.shape):
                raise GuardError(
                    f"export: {check.path} has {leaf.dim()} dimensions, but the program was exported with "
                    f"{len(check.shape)} (Guard failed: {check.path}.dim() == {len(check.shape)})"
                )
            if leaf.dtype != check.dtype:
                raise GuardError(
                    f"export: {check.path} has dtype {leaf.dtype}, but the program was exported with {check.dtype}"
                )
            for axis, (size, expected) in enumerate(zip(leaf.shape, check.shape, strict=True)):
                self.check_size(
                    f"{check.path}.size()[{axis}]",
                    f"{check.path} has size {size} in dimension {axis}",
                    size,
                    expected,
                    sizes,
                )

    def check_size(self, guard, has, size, expected, sizes):
        if not isinstance(expected, Free):
            if size != expected:
                raise GuardError(
                    f"export: {has}, but the program was exported with {expected} there (Guard failed: {guard} == "
                    f"{expected}). Make it free with dynamic_shapes"
                )
            return
        symbol, rest = expected.symbol, size - expected.offset
        if rest % expected.factor:
            raise GuardError(
                f"export: {has}, which is no "
                f"{expected.factor}*{symbol}{f' + {expected.offset}' * bool(expected.offset)} (Guard failed: {guard})"
            )
        root = rest // expected.factor
        known = sizes.setdefault(symbol, (root, guard))
        if known[0] != root:
            raise GuardError(
                f"export: {has}, so that {symbol} is {root}, but {known[1]} says that it is {known[0]} (Guard failed: "
                f"{guard} == {known[1]})"
            )
        limits = self.ranges.get(symbol)
        if limits is not None and root < limits.lower:
            raise GuardError(
                f"export: {has}, so that {symbol} is {root}, less than the least, {limits.lower} (Guard failed: "
                f"{guard} >= {limits.lower})"
            )
        if limits is not None and root > limits.upper:
            raise GuardError(
                f"export: {has}, so that {symbol} is {root}, more than the most, {limits.upper} (Guard failed: "
                f"{guard} <= {limits.upper})"
            )


class _ArgumentCodeGen(CodeGen):
    """Code that takes arguments by the names of the module's parameters and gives the result in the module's
    structure."""

    def __init__(self, names, flatten, unflatten):
        super().__init__()
        count = flatten.in_spec.children_specs[0].num_children
        self.given, self.named = names[:count], names[count:]
        self.flatten, self.unflatten = flatten, unflatten

    @property
    def pytree_info(self):
        """The names of the arguments, their structure and that of the result."""
        return _PytreeInfo([*self.given, *self.named], self.flatten.in_spec, self.unflatten.out_spec)

    @pytree_info.setter
    def pytree_info(self, info):
        self.unflatten = Unflatten(info.out_spec)

    def process_inputs(self, *args):
        given = len(self.given)
        return self.flatten(args[:given], dict(zip(self.named, args[given:], strict=False)))

    def process_outputs(self, outputs):
        return self.unflatten(outputs)

    def additional_globals(self):
        return [("_flatten", self.flatten), ("_unflatten", self.unflatten)]

    def gen_fn_def(self, free_vars, maybe_return_annotation):
        leaves = [name.partition(":")[0].strip() for name in free_vars if name != "self"]
        first = super().gen_fn_def([*self.given, *self.named], maybe_return_annotation)
        kwargs = ", ".join(f"{name!r}: {name}" for name in self.named)
        taken = f"_flatten(({''.join(name + ', ' for name in self.given)}), {{{kwargs}}})"
        return f"{first}\n    {', '.join(leaves)}, = {taken}" if leaves else f"{first}\n    {taken}"

    def generate_output(self, output_args):
        return f"return _unflatten({output_args!r})"


class Unflatten:
    """Puts outputs into the structure that the module gave."""

    def __init__(self, out_spec):
        self.out_spec = out_spec

    def __call__(self, leaves):
        return tree_unflatten(leaves, self.out_spec)


class ExportedProgram:
    """A recorded module: `graph` of aten operators, whose inputs are the parameters, the buffers and what the user
    gives.

    `module()` gives a module that runs it. The graph is a `torch.fx` graph, and `graph_signature` says what its inputs
    and outputs are.
    """

    def __init__(
        self,
        root,
        graph,
        graph_signature,
        state_dict,
        range_constraints,
        module_call_graph,
        example_inputs=None,
        constants=None,
        *,
        verifiers=None,
        checks=None,
    ):
        graph._codegen = CodeGen()
        # Its source is seldom run, and compiling it takes more memory than all its nodes: it is written when asked for.
        self._graph_module = _LazyGraphModule({} if root is None else root, graph)
        self._graph_signature, self._state_dict = graph_signature, dict(state_dict)
        self._range_constraints, self._module_call_graph = range_constraints, module_call_graph
        self._example_inputs, self._constants = example_inputs, dict(constants or {})
        self._checks = checks or []
        self._verifiers = verifiers or []

    @property
    def graph_module(self):
        return self._graph_module

    @property
    def graph(self):
        return self._graph_module.graph

    @property
    def graph_signature(self):
        return self._graph_signature

    @property
    def state_dict(self):
        return self._state_dict

    @property
    def constants(self):
        """Tensors that are neither parameters nor saved buffers, by name."""
        return self._constants

    @property
    def tensor_constants(self):
        return self._constants

    @property
    def range_constraints(self):
        return self._range_constraints

    @property
    def module_call_graph(self):
        return self._module_call_graph

    @property
    def example_inputs(self):
        """The inputs it was exported with: (args, kwargs)."""
        return self._example_inputs

    @example_inputs.setter
    def example_inputs(self, value):
        args, kwargs = value
        found = tree_flatten((tuple(args), dict(kwargs)))[1]
        if found != self.call_spec.in_spec:
            raise ValueError(
                f"Example inputs have another structure than the program's: {found} instead of {self.call_spec.in_spec}"
            )
        self._example_inputs = (tuple(args), dict(kwargs))

    @property
    def call_spec(self):
        signature = self._module_call_graph[0].signature
        return CallSpec(signature.in_spec, signature.out_spec)

    @property
    def verifier(self):
        return self._verifiers[0] if self._verifiers else None

    @property
    def verifiers(self):
        return self._verifiers

    @property
    def dialect(self):
        return "TRAINING" if not getattr(self, "_decomposed", False) else "ATEN"

    # ---- state

    def parameters(self):
        """The parameters, in the graph's order."""
        for _, parameter in self.named_parameters():
            yield parameter

    def named_parameters(self):
        for name in self.graph_signature.parameters:
            yield name, self.state_dict[name]

    def buffers(self):
        for _, buffer in self.named_buffers():
            yield buffer

    def named_buffers(self):
        absent = set(self.graph_signature.non_persistent_buffers)
        for name in self.graph_signature.buffers:
            yield name, self.constants[name] if name in absent else self.state_dict[name]

    def tensor_of(self, spec):
        """The tensor behind an input that the user does not give."""
        return self.state_dict[spec.target] if spec.target in self.state_dict else self.constants[spec.target]

    # ---- running

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead."
        )

    def module(self, check_guards=True):
        """A module that runs the program. It shares the parameters; inputs that the program was not exported for are
        refused.

        Args:
            check_guards: whether sizes are checked.
        """
        signature = self.module_call_graph[0].signature
        graph, values, users, attributes = Graph(), {}, {}, {}
        inputs = list(
            zip(self.graph_signature.input_specs, (n for n in self.graph.nodes if n.op == "placeholder"), strict=True)
        )
        for spec, node in inputs:
            if spec.kind is InputKind.USER_INPUT:
                users[node.name] = values[node] = graph.node_copy(node)
        root = cresset.nn.Module()
        for spec, node in inputs:
            if spec.kind is not InputKind.USER_INPUT:
                place_tensor(root, spec.target, self.tensor_of(spec), spec.kind, spec.persistent)
                attributes[spec.target] = values[node] = graph.create_node(
                    "get_attr", spec.target, (), {}, node.name.partition("_")[2]
                )
                values[node].meta = dict(node.meta)
        for node in self.graph.nodes:
            if node.op == "output":
                self._write_back(
                    graph, [values.get(v, v) if isinstance(v, Node) else v for v in node.args[0]], attributes, users
                )
            elif node.op != "placeholder":
                values[node] = graph.node_copy(node, lambda n: values[n])
        for attribute in attributes.values():
            if not attribute.users:
                graph.erase_node(attribute)
        flatten = (Flatten if check_guards else _OnlyFlatten)(signature.in_spec, self._checks, self.range_constraints)
        graph._codegen = _ArgumentCodeGen(signature.forward_arg_names, flatten, Unflatten(signature.out_spec))
        module = GraphModule(root, graph)
        for name, child in root._modules.items():
            module.add_module(name, child)
        for spec, _ in inputs:
            if spec.kind is not InputKind.USER_INPUT:
                place_tensor(module, spec.target, self.tensor_of(spec), spec.kind, spec.persistent)
        module._in_spec, module._out_spec = signature.in_spec, signature.out_spec
        module.train = module.eval = _no_mode
        return module

    def _write_back(self, graph, given, attributes, users):
        """The output; those that are new values of buffers or inputs are copied into them."""
        kept = []
        for spec, value in zip(self.graph_signature.output_specs, given, strict=True):
            if spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION):
                value = graph.call_function(cresset.ops.aten.detach.default, (value,))  # state has no history
                graph.call_function(cresset.ops.aten.copy_.default, (attributes[spec.target], value))
            elif spec.kind is OutputKind.USER_INPUT_MUTATION:
                graph.call_function(cresset.ops.aten.copy_.default, (users[spec.target], value))
            else:
                kept.append(value)
        graph.output(tuple(kept))

    def run_decompositions(self, decomp_table=None, decompose_custom_triton_ops=False):
        """The program in simpler operators, without writes: new values of buffers are outputs.

        Args:
            decomp_table: {operator: function} of decompositions of one's own; None takes the usual ones.
        """
        from .decomposing import decomposed

        if decompose_custom_triton_ops:
            raise NotImplementedError("run_decompositions: there are no operators of Triton to decompose")
        return decomposed(self, decomp_table)

    def validate(self):
        """Check that graph and signature agree; raises if they do not."""
        self.graph.lint()
        names = [node.name for node in self.graph.nodes if node.op == "placeholder"]
        expected = [spec.arg.name for spec in self.graph_signature.input_specs]
        if names != expected:
            raise AssertionError(f"ExportedProgram: the graph has the inputs {names}, its signature says {expected}")
        given = self.graph.output_node().args[0]
        if len(given) != len(self.graph_signature.output_specs):
            raise AssertionError(
                f"ExportedProgram: the graph has {len(given)} outputs, its signature says "
                f"{len(self.graph_signature.output_specs)}"
            )
        for spec in self.graph_signature.input_specs:
            if (
                spec.kind is not InputKind.USER_INPUT
                and spec.target not in self.state_dict
                and spec.target not in self.constants
            ):
                raise AssertionError(f"ExportedProgram: {spec.target} is neither in state_dict nor in constants")

    def __deepcopy__(self, memo):
        return self._with(
            copy.deepcopy(self.graph, memo),
            copy.deepcopy(self.graph_signature, memo),
            copy.deepcopy(self._state_dict, memo),
            copy.deepcopy(self._constants, memo),
        )

    def _with(self, graph, signature, state=None, constants=None):
        made = ExportedProgram(
            None, graph, signature, self._state_dict if state is None else state, dict(self._range_constraints),
            list(self._module_call_graph), self._example_inputs,
            self._constants if constants is None else constants, verifiers=self._verifiers, checks=self._checks,
        )  # fmt: skip
        return made

    # ---- reading

    def __str__(self):
        code = self.graph_module.print_readable(print_output=False).replace("\n", "\n    ")
        signature = str(self.graph_signature).replace("\n", "\n    ")
        return (
            f"ExportedProgram:\n    {code}\nGraph signature: {signature}\nRange constraints: {self.range_constraints}\n"
        )

    def to_svg(self, path=None):
        """A picture of the graph as SVG text; with a path it is written there, too."""
        text = fx_svg(self.graph, "exported program")
        if path is not None:
            with open(path, "w") as file:
                file.write(text)
        return text


class _OnlyFlatten(Flatten):
    def check(self, leaves):
        pass


def _no_mode(mode=True):
    raise NotImplementedError(
        "Calling train() or eval() is not supported for exported models: dropout and batch normalization are as they "
        "were when it was exported"
    )


def place_tensor(root, target, tensor, kind, persistent, make=cresset.nn.Module):
    """Put a tensor at a dotted path of a module."""
    *parents, name = target.split(".")
    for part in parents:
        if part not in root._modules:
            root.add_module(part, make())
        root = root._modules[part]
    if kind is InputKind.PARAMETER:
        root.register_parameter(name, tensor)
    elif kind is InputKind.BUFFER:
        root.register_buffer(name, tensor, persistent=bool(persistent))
    else:
        root.register_buffer(name, tensor, persistent=False)
