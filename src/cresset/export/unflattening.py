"""unflatten: an exported program as modules again, one for each module that it was exported from, each with its own
part of the graph.

A node knows the calls of modules around it (`nn_module_stack`). The nodes of one call become the graph of a module:
what it takes from outside are its inputs, what others take of it are its outputs, its parameters are its own. Where the
call's signature was kept, inputs and outputs have the structure of the original call.
"""

import dataclasses
import operator

import cresset

from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.immutable_collections import immutable_dict, immutable_list
from ..fx.interpreter import Interpreter
from ..fx.node import Node, map_arg
from ..pytree import tree_flatten, tree_leaves, tree_unflatten
from .graph_signature import ConstantArgument, InputKind, OutputKind
from .module_calls import ROOT
from .program import ExportedProgram, Flatten, GuardError, Unflatten, place_tensor

__all__ = ["FlatArgsAdapter", "InterpreterModule", "UnflattenedModule", "unflatten"]


class FlatArgsAdapter:
    """Says how inputs of another structure become those that a program takes; a subclass defines `adapt`."""

    def adapt(self, target_spec, input_spec, input_args, metadata=None, obj=None):
        """The leaves for `target_spec` of inputs with the structure `input_spec`."""
        raise NotImplementedError("FlatArgsAdapter.adapt: define it in a subclass")


class InterpreterModule(cresset.nn.Module):
    """A module of the tree: parameters, buffers and submodules by their names, and the part of the graph that it ran.

    Called, it takes what the graph's inputs say, and the arguments of the original module where their signature was
    kept.
    """

    graph: Graph | None = None
    signature = None  # of the original call, where it was kept
    extra = 0  # inputs beyond those of the signature
    kind = None  # the class of the original module, as text

    @property
    def graph_module(self):
        """A GraphModule of the part of the graph, with this module's parameters and submodules."""
        return GraphModule(self, self.graph)

    def type_name(self):
        """The class of the original module, as text; None if it was not called."""
        return self.kind

    def forward(self, *args, **kwargs):
        if self.graph is None:
            raise RuntimeError("unflatten: this module was not called when the program was exported")
        if self.signature is None:
            if kwargs:
                raise TypeError(
                    f"unflatten: keyword arguments {sorted(kwargs)}, and the module takes its inputs in order"
                )
            return self.run(args)
        beyond = kwargs.pop("_beyond", ())
        if len(beyond) != self.extra:
            raise RuntimeError(
                f"unflatten: the module uses {self.extra} values of the modules around it that are no "
                "arguments; it runs as a part of the whole only"
            )
        leaves, spec = tree_flatten(_plain((tuple(args), kwargs)))
        if spec != self.signature.in_spec:
            raise ValueError(f"unflatten: expected arguments of the structure {self.signature.in_spec}, got {spec}")
        given = [
            leaf
            for leaf, said in zip(leaves, self.signature.inputs, strict=True)
            if not isinstance(said, ConstantArgument)
        ]
        results = iter(self.run([*given, *beyond]))
        parts = [said.value if isinstance(said, ConstantArgument) else next(results) for said in self.signature.outputs]
        return tree_unflatten(parts, self.signature.out_spec)

    def run(self, inputs):
        """What the graph gives for its inputs in order."""
        wanted = len([node for node in self.graph.nodes if node.op == "placeholder"])
        if len(inputs) != wanted:
            raise TypeError(f"unflatten: expected {wanted} inputs, got {len(inputs)}")
        return Interpreter(self, graph=self.graph).run(*inputs)


class UnflattenedModule(InterpreterModule):
    """The root of the tree."""

    def __init__(self, export_module, flat_args_adapter=None):
        super().__init__()
        whole = export_module.module_call_graph[0].signature
        for entry in export_module.module_call_graph[1:]:
            module_at(self, entry.fqn)
        for spec in export_module.graph_signature.input_specs:
            if spec.target is not None:
                place_tensor(
                    self, spec.target, export_module.tensor_of(spec), spec.kind, spec.persistent, InterpreterModule
                )
        self.graph_signature, self.range_constraints = export_module.graph_signature, export_module.range_constraints
        self._flatten_inputs = Flatten(whole.in_spec, export_module._checks, export_module.range_constraints)
        self._unflatten_outputs = Unflatten(whole.out_spec)
        self.flat_args_adapter = flat_args_adapter
        _Builder(export_module, self).build()
        _share(export_module, self)

    def forward(self, *args, **kwargs):
        leaves, spec = tree_flatten((args, kwargs))
        wanted = self._flatten_inputs.in_spec
        if spec != wanted:
            if self.flat_args_adapter is None:
                raise TypeError(
                    "There is no flat args adapter specified. Are you sure you are calling this with the right "
                    f"arguments? Expected the structure {wanted}, got {spec}"
                )
            args, kwargs = tree_unflatten(
                self.flat_args_adapter.adapt(
                    target_spec=wanted, input_spec=spec, input_args=leaves, metadata={}, obj=(args, kwargs)
                ),
                wanted,
            )
        try:
            inputs = self._flatten_inputs(args, kwargs)
        except GuardError as error:
            raise RuntimeError(str(error)) from error  # PyTorch's class for a tree of modules
        return self._unflatten_outputs(self.run(inputs))


def module_at(root, path):
    """The module at a dotted path, made where there is none."""
    for part in path.split("."):
        if part not in root._modules:
            root.add_module(part, InterpreterModule())
        root = root._modules[part]
    return root


class _Builder:
    """Gives each module of the tree its part of the program's graph."""

    def __init__(self, program, root):
        self.program, self.root = program, root
        self.kinds = {}  # key of a call of a module -> its class, as text
        for node in program.graph.nodes:
            self.kinds.update({key: kind for key, (_, kind) in (node.meta.get("nn_module_stack") or {}).items()})
        self.owned = {}  # placeholder of a parameter, buffer or constant -> its path
        self.specs = {}
        inputs = [node for node in program.graph.nodes if node.op == "placeholder"]
        for spec, node in zip(program.graph_signature.input_specs, inputs, strict=True):
            if spec.kind is not InputKind.USER_INPUT:
                self.owned[node], self.specs[node] = spec.target, spec
        self.inputs = [node for node in inputs if node not in self.owned]
        self.by_name = {node.name: node for node in program.graph.nodes}
        self.signatures = {
            entry.fqn: self._existing(entry.signature) for entry in program.module_call_graph[1:] if entry.signature
        }

    def _existing(self, signature):
        """A signature in which None stands for values that the graph no longer computes."""
        inputs, outputs = (
            [said if isinstance(said, ConstantArgument) or said.name in self.by_name else ConstantArgument("", None)
             for said in side]
            for side in (signature.inputs, signature.outputs)
        )  # fmt: skip
        return dataclasses.replace(signature, inputs=inputs, outputs=outputs)

    def build(self):
        graph, values = Graph(), {}
        for node in self.inputs:
            values[node] = graph.node_copy(node)
        calls = [node for node in self.program.graph.nodes if node.op not in ("placeholder", "output")]
        self.root.kind = self.kinds.get(ROOT)
        part = _Part(self, graph, values, "", self.root)
        part.fill(calls, 0)
        self._give_outputs(part)
        self.root.graph = graph

    def _give_outputs(self, part):
        """The outputs; new values of buffers and inputs are written back."""
        users, kept, graph = {node.name: node for node in self.inputs}, [], part.graph
        given = self.program.graph.output_node().args[0]
        for spec, value in zip(self.program.graph_signature.output_specs, given, strict=True):
            value = part.value(value) if isinstance(value, Node) else value
            if spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION):
                value = graph.call_function(cresset.ops.aten.detach.default, (value,))
                graph.call_function(cresset.ops.aten.copy_.default, (graph.get_attr(spec.target), value))
            elif spec.kind is OutputKind.USER_INPUT_MUTATION:
                graph.call_function(cresset.ops.aten.copy_.default, (part.values[users[spec.target]], value))
            else:
                kept.append(value)
        graph.output(tuple(kept))


class _Part:
    """The graph of one call of a module, while it is made.

    Args:
        values: node of the program -> node of this graph.
        path: of the module; "" for the root.
        module: gets the graph.
    """

    def __init__(self, builder, graph, values, path, module):
        self.builder, self.graph, self.values, self.path, self.module = builder, graph, values, path, module
        self.taken = []  # nodes of the program that come from outside
        self.made = {}  # path of a module inside -> the text of the graph of its first call

    def value(self, node):
        """The node of this graph for one of the program: computed here, a tensor of the module's own, or an input."""
        if node in self.values:
            return self.values[node]
        target = self.builder.owned.get(node)
        prefix = f"{self.path}." if self.path else ""
        if target is not None and target.startswith(prefix):
            name = target[len(prefix) :]
            spec = self.builder.specs[node]
            if not _has(self.module, name):
                tensor = self.builder.program.tensor_of(spec)
                place_tensor(self.module, name, tensor, spec.kind, spec.persistent, InterpreterModule)
            with self.graph.inserting_before(_first(self.graph)):
                self.values[node] = self.graph.get_attr(name)
        else:
            self.taken.append(node)
            with self.graph.inserting_before(_first(self.graph)):
                self.values[node] = self.graph.placeholder(node.name)
        self.values[node].meta = dict(node.meta)
        return self.values[node]

    def fill(self, nodes, depth):
        """Write the nodes; those of one call of a module deeper inside become one call."""
        at = 0
        while at < len(nodes):
            stack = _calls(nodes[at])
            if len(stack) <= depth:
                self.values[nodes[at]] = self.graph.node_copy(nodes[at], self.value)
                at += 1
                continue
            end = at
            while end < len(nodes) and _calls(nodes[end])[depth : depth + 1] == [stack[depth]]:
                end += 1
            self.call(stack[depth], nodes[at:end], depth)
            at = end

    def call(self, name, nodes, depth):
        """Make the module of a call, and write the call."""
        path, _, number = name.partition("@")
        inside, place = set(nodes), self._relative(path)
        first = module_at(self.module, place)
        is_first = first.graph is None
        signature = self.builder.signatures.get(path) if not number and is_first else None
        child = _Part(self.builder, Graph(), {}, path, first if is_first else InterpreterModule())
        child.module.kind = self.builder.kinds.get(f"{ROOT}{name}")
        promised = []
        for said in signature.inputs if signature is not None else ():
            if not isinstance(said, ConstantArgument):
                node = self.builder.by_name[said.name]
                promised.append(node)
                child.values[node] = child.graph.placeholder(node.name)
        child.fill(nodes, depth + 1)
        if signature is not None:
            outputs = [self.builder.by_name[s.name] for s in signature.outputs if not isinstance(s, ConstantArgument)]
            outputs += [node for node in nodes if _leaves(node, inside) and node not in outputs]
        else:
            outputs = [node for node in nodes if _leaves(node, inside)]
        results = tuple(child.value(node) for node in outputs)
        child.graph.output(results[0] if signature is None and len(results) == 1 else results)
        _order_inputs(child, promised)
        promised_outputs = (
            len([s for s in signature.outputs if not isinstance(s, ConstantArgument)]) if signature else 0
        )
        if signature is not None and len(outputs) == promised_outputs:
            child.module.graph, child.module.signature, child.module.extra = child.graph, signature, len(child.taken)
            self.made[place] = None  # a later call, whose arguments are not kept, is a module of its own
            self._write_signed(place, signature, child, outputs)
        else:
            target = self._shared(place, child)
            called = self.graph.call_module(target, tuple(self.value(node) for node in [*promised, *child.taken]))
            self._take_outputs(called, outputs)

    def _shared(self, place, child):
        """Where the module of a call is: a later call with the same graph is one of the first's."""
        child.module.graph = child.graph
        number = {node: k for k, node in enumerate(child.graph.nodes)}
        text = [
            (node.op, "" if node.op == "placeholder" else str(node.target))
            + tuple(map(str, map_arg((node.args, node.kwargs), lambda n: f"%{number[n]}")))
            for node in child.graph.nodes
        ]
        if self.made.setdefault(place, text) == text:
            return place
        later = 1
        while _has(self.module, f"{place}@{later}"):
            later += 1
        *parents, name = place.split(".")
        owner = module_at(self.module, ".".join(parents)) if parents else self.module
        owner.add_module(f"{name}@{later}", child.module)
        return f"{place}@{later}"

    def _relative(self, path):
        """A path of the tree as this module's own graph writes it."""
        prefix = f"{self.path}." if self.path else ""
        return path[len(prefix) :] if path.startswith(prefix) else path

    def _write_signed(self, place, signature, child, outputs):
        leaves = [
            said.value if isinstance(said, ConstantArgument) else self.value(self.builder.by_name[said.name])
            for said in signature.inputs
        ]
        args, kwargs = tree_unflatten(leaves, signature.in_spec)
        if child.taken:
            kwargs = {**kwargs, "_beyond": tuple(self.value(node) for node in child.taken)}
        called = self.graph.call_module(place, tuple(args), kwargs)
        flat = self.graph.call_function(tree_leaves, (called,))
        at = [k for k, said in enumerate(signature.outputs) if not isinstance(said, ConstantArgument)]
        for number, node in zip(at, outputs, strict=True):
            self.values[node] = self.graph.call_function(operator.getitem, (flat, number))

    def _take_outputs(self, called, outputs):
        known = tuple(node.meta.get("val") for node in outputs)
        if not isinstance(self._output_of(called), tuple):
            [node] = outputs
            self.values[node], called.meta = called, dict(node.meta)
            return
        called.meta["val"] = known
        for number, node in enumerate(outputs):
            self.values[node] = self.graph.call_function(operator.getitem, (called, number))
            self.values[node].meta = dict(node.meta)

    def _output_of(self, called):
        return module_at(self.module, called.target).graph.output_node().args[0]


def _share(program, root):
    """Let names that were of one parameter, or of one module, be of one again."""
    state, first = program.state_dict, {}
    for name, tensor in state.items():
        first.setdefault(id(tensor), name)
    trees = {}  # path of a module -> {name inside: where its tensor is first}
    for name, tensor in state.items():
        parts = name.split(".")
        for end in range(1, len(parts)):
            trees.setdefault(".".join(parts[:end]), {})[".".join(parts[end:])] = first[id(tensor)]
    for path, tree in sorted(trees.items(), key=lambda item: item[0].count(".")):
        original = next((name.removesuffix(f".{inside}") for inside, name in tree.items()), "")
        same = all(name == f"{original}.{inside}" for inside, name in tree.items())
        if same and original != path and _has(root, original) and trees.get(original, {}).keys() == tree.keys():
            *parents, last = path.split(".")
            owner = module_at(root, ".".join(parents)) if parents else root
            owner._modules[last] = module_at(root, original)
    for name, tensor in state.items():
        *parents, last = name.split(".")
        owner, original = (module_at(root, ".".join(parents)) if parents else root), first[id(tensor)]
        if original != name and _has(root, original):
            kind = owner._parameters if isinstance(tensor, cresset.nn.Parameter) else owner._buffers
            kind[last] = _attribute(root, original)


def _attribute(root, path):
    for part in path.split("."):
        root = getattr(root, part)
    return root


def _plain(value):
    """Containers as Python's own: those that a graph holds cannot be changed, and are of other classes."""
    if isinstance(value, immutable_list):
        return [_plain(item) for item in value]
    if isinstance(value, immutable_dict):
        return {key: _plain(item) for key, item in value.items()}
    if type(value) is tuple:
        return tuple(map(_plain, value))
    return {key: _plain(item) for key, item in value.items()} if type(value) is dict else value


def _calls(node):
    """The names of the calls of modules around a node, the outermost first, without the root."""
    return [name for key in node.meta.get("nn_module_stack") or {} if (name := key.removeprefix(ROOT))]


def _leaves(node, inside):
    """Whether something outside of the nodes takes what this one gives."""
    return any(user not in inside for user in node.users)


def _first(graph):
    return next(iter(graph.nodes), None)


def _has(module, path):
    for part in path.split("."):
        if not hasattr(module, part):
            return False
        module = getattr(module, part)
    return True


def _order_inputs(part, promised):
    """Put the inputs before everything else, in the order in which they are given."""
    graph = part.graph
    made = [part.values[node] for node in [*promised, *part.taken]]
    anchor = _first(graph)
    for node in made:
        if node is anchor:
            anchor = anchor.next
    for node in made:
        anchor.prepend(node)


def unflatten(module, flat_args_adapter=None):
    """The modules of an exported program: a tree with their names, parameters and buffers. The root runs the program by
    calling them, and each can be called alone.

    Args:
        module: an ExportedProgram.
        flat_args_adapter: how inputs of another structure become the program's.

    >>> model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    >>> net = cresset.export.unflatten(cresset.export.export(model, (cresset.ones(1, 3),)))
    >>> [name for name, _ in net.named_parameters()], net(cresset.ones(1, 3)).shape
    (['0.weight', '0.bias'], torch.Size([1, 2]))
    """
    if not isinstance(module, ExportedProgram):
        raise TypeError(f"unflatten: expected an ExportedProgram, got {type(module).__name__}")
    return UnflattenedModule(module, flat_args_adapter)
