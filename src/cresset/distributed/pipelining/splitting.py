"""A model cut into stages: it is recorded once (torch.fx), and what crosses a cut becomes results and inputs of stages.

A value that a later stage needs goes through those between. What crosses and is no tensor (a size, say) is taken from
an example microbatch, as a constant."""

import copy
import enum
import inspect
from dataclasses import dataclass
from typing import Any

import cresset

from ... import fx
from ...nn import Module
from ...pytree import tree_map
from .stage import build_stage

__all__ = ["Pipe", "SplitPoint", "pipe_split", "pipeline"]


class SplitPoint(enum.Enum):
    """Where a model is cut: before or after a layer."""

    BEGINNING = 1
    END = 2


class _Recording:
    tracer: Any = None


def pipe_split():
    """Cut the model here: for calls inside of `forward`. Without `pipeline` it does nothing."""
    if _Recording.tracer is not None:
        _Recording.tracer.create_proxy("call_function", pipe_split, (), {})


class _Tracer(fx.Tracer):
    """Enters only what must be cut: layers around a cut, or, where `forward` says pipe_split itself, all that are not
    torch.nn's."""

    def __init__(self, split_spec):
        super().__init__()
        self.split_spec = split_spec

    def is_leaf_module(self, m, module_qualified_name):
        if not self.split_spec:
            return super().is_leaf_module(m, module_qualified_name)
        return not any(name.startswith(module_qualified_name + ".") for name in self.split_spec)


@dataclass
class PipeInfo:
    """What stages know of the whole."""

    graph: Any
    num_stages: int
    has_loss_and_backward: bool = False


class Pipe(Module):
    """A model in stages.

    Args:
        stage_modules: them, in order.
        graph: the recorded model.
    """

    def __init__(self, stage_modules, graph):
        super().__init__()
        self.split_gm = Module()
        for index, module in enumerate(stage_modules):
            self.split_gm.add_module(f"submod_{index}", module)
        self.num_stages, self.graph = len(stage_modules), graph

    def forward(self, *args, **kwargs):
        """All stages one after the other, in this process."""
        values = self.get_stage_module(0)(*args, **kwargs)
        for index in range(1, self.num_stages):
            values = self.get_stage_module(index)(*values)
        return values

    def get_stage_module(self, stage_idx):
        """A stage as a module; its parameters have the model's names."""
        if not 0 <= stage_idx < self.num_stages:
            raise ValueError(f"Invalid stage index {stage_idx}!")
        return getattr(self.split_gm, f"submod_{stage_idx}")

    def build_stage(self, stage_index, device, group=None):
        """A stage for a schedule; its module moves to the device."""
        return build_stage(self.get_stage_module(stage_index).to(device), stage_index, self.info(), device, group)

    def info(self):
        """What stages know of the whole."""
        return PipeInfo(self.graph, self.num_stages)

    def print_readable(self):
        """Print the code of the stages."""
        for index in range(self.num_stages):
            self.get_stage_module(index).print_readable()


def pipeline(module, mb_args, mb_kwargs=None, split_spec=None, split_policy=None):
    """Cut a model into stages.

    Args:
        module: the model.
        mb_args, mb_kwargs: an example of a microbatch.
        split_spec: where: names of layers, and a SplitPoint each. Without, `forward` calls pipe_split.
        split_policy: in its place, a function that changes a recorded GraphModule, for example by calls of pipe_split.

    >>> from cresset.distributed import pipelining
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    >>> pipe = pipelining.pipeline(model, (cresset.zeros(1, 2),), split_spec={"2": pipelining.SplitPoint.BEGINNING})
    >>> list(pipe.get_stage_module(1).state_dict())
    ['2.weight', '2.bias']
    """
    if split_spec is not None and split_policy is not None:
        raise ValueError("Cannot specify both `split_spec` and `split_policy`. Please use only one of them.")
    mb_kwargs, split_spec = mb_kwargs or {}, split_spec or {}
    known = dict(module.named_modules())
    for name, where in split_spec.items():
        if name not in known:
            raise AttributeError(f"Specified split point {name!r} is not a layer of {type(module).__name__}")
        if not isinstance(where, SplitPoint):
            raise ValueError(f"pipeline: split_spec[{name!r}] must be a SplitPoint, not {where!r}")
    graph = _recorded(module, mb_args, mb_kwargs, split_spec)
    if split_policy is not None:
        graph = split_policy(fx.GraphModule(module, graph)).graph
    number = _stage_of(graph, split_spec)
    return Pipe(_stages(module, graph, number, _example(module, graph, mb_args, mb_kwargs)), graph)


def _recorded(module, args, kwargs, split_spec):
    signature = inspect.signature(module.forward)
    given = set(signature.bind(*args, **kwargs).arguments)
    absent = {
        name: parameter.default
        for name, parameter in signature.parameters.items()
        if name not in given and parameter.default is not inspect.Parameter.empty
    }
    tracer = _Tracer(split_spec)
    _Recording.tracer = tracer
    try:
        graph = tracer.trace(module, concrete_args=absent or None)
    finally:
        _Recording.tracer = None
    for node in [n for n in graph.nodes if n.op == "placeholder" and n.target not in given]:
        _forget(graph, node)  # what was not given is a constant; all that is left of it are checks that it is
    return graph


def _forget(graph, node):
    for user in list(node.users):
        _forget(graph, user)
    graph.erase_node(node)


def _stage_of(graph, split_spec):
    """The stage of each node: a cut begins the next one."""
    number, stage, calls = {}, 0, []
    for node in graph.nodes:
        where = split_spec.get(node.target) if node.op == "call_module" else None
        if where is SplitPoint.BEGINNING and calls:
            stage, calls = stage + 1, []
        number[node] = stage
        if node.op == "call_function" and node.target is pipe_split:
            stage, calls = stage + 1, []
        elif node.op not in ("placeholder", "output", "get_attr"):
            calls.append(node)
        if where is SplitPoint.END:
            stage, calls = stage + 1, []
    last = max(number.values())
    if last == stage and not calls and last > 0:  # a cut after the last layer cuts nothing off
        last -= 1
    return {node: min(index, last) if node.op != "output" else last for node, index in number.items()}


class _Values(fx.Interpreter):
    """Notes what each node gives."""

    def __init__(self, module, graph):
        super().__init__(module, garbage_collect_values=False, graph=graph)

    def call_function(self, target, args, kwargs):
        return None if target is pipe_split else super().call_function(target, args, kwargs)


def _example(module, graph, args, kwargs):
    """What each node gives for the example, without data: on the meta device."""
    bare = copy.deepcopy(module).to("meta")
    to_meta = lambda v: v.to("meta") if isinstance(v, cresset.Tensor) else v  # noqa: E731
    bound = inspect.signature(module.forward).bind(*args, **kwargs).arguments
    names = [n.target for n in graph.nodes if n.op == "placeholder"]
    values = _Values(bare, graph)
    with cresset.no_grad():
        values.run(*(tree_map(to_meta, bound[name]) for name in names), enable_io_processing=False)
    return values.env


def _stages(module, graph, number, example):
    count = max(number.values()) + 1
    is_tensor = {node: isinstance(value, cresset.Tensor) for node, value in example.items()}
    needed = {}  # node -> the last stage that reads it
    for node in graph.nodes:
        for used in node.all_input_nodes:
            needed[used] = max(needed.get(used, 0), number[node])
    whole = list(graph.nodes)
    stages = []
    for index in range(count):
        made, values = fx.Graph(), {}
        for node in whole:
            enters = number[node] < index <= needed.get(node, -1) and node.op not in ("get_attr", "output")
            if enters and is_tensor.get(node):
                values[node] = made.placeholder(node.name)
        for node in whole:
            reads = node.op == "get_attr" and any(number[user] == index for user in node.users)
            if reads and number[node] < index:
                values[node] = made.node_copy(node)  # a parameter is the same in every stage that reads it

        def known(used, values=values):
            return values[used] if used in values else example[used]

        for node in whole:
            if number[node] != index or node.target is pipe_split:
                continue
            if node.op == "output":
                made.output(fx.map_arg(node.args[0], known))
            else:
                values[node] = made.node_copy(node, known)
        if index < count - 1:
            leaves = [
                values[node]
                for node in whole
                if number[node] <= index < needed.get(node, -1) and node.op != "get_attr" and is_tensor.get(node)
            ]
            made.output(tuple(leaves))
        stages.append(fx.GraphModule(module, made))
    return stages
