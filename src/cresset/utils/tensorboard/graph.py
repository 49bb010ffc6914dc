"""A model's computation as TensorBoard's graph: the operators of one forward pass, grouped by the modules that call
them.
"""

import cresset

from ...overrides import OperatorMode
from ..protobuf import integer, message


class _Recorder(OperatorMode):
    """Notes every call: its name in the module's scope, its inputs, its results."""

    def __init__(self, names):
        super().__init__()
        self.names = names  # of the tensors that have one, by identity
        self.alive, self.scope, self.nodes, self.used = [], [], [], {}

    def unique(self, name):
        path = "/".join([*self.scope, name])
        self.used[path] = self.used.get(path, 0) + 1
        return path if self.used[path] == 1 else f"{path}_{self.used[path] - 1}"

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        name = getattr(function, "__name__", None) or str(function)
        results = [t for t in cresset.utils._pytree.tree_leaves(result) if isinstance(t, cresset.Tensor)]
        if results and not name.startswith("__get"):
            inputs = [
                self.names[id(t)] for t in cresset.utils._pytree.tree_leaves((args, kwargs)) if id(t) in self.names
            ]
            node = self.unique(name.strip("_"))
            self.nodes.append((node, f"aten::{name}", inputs, tuple(results[0].shape)))
            for tensor in results:
                self.names[id(tensor)] = node
                self.alive.append(tensor)  # so that no later tensor gets the same identity
        return result


def graph_def(model, inputs):
    """The bytes of TensorFlow's GraphDef of `model(*inputs)`."""
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    root, names, nodes = type(model).__name__, {}, []
    for i, tensor in enumerate(t for t in cresset.utils._pytree.tree_leaves(inputs) if isinstance(t, cresset.Tensor)):
        names[id(tensor)] = f"input/input.{i + 1}"
        nodes.append((names[id(tensor)], "IO Node", [], tuple(tensor.shape)))
    for name, parameter in [*model.named_parameters(), *model.named_buffers()]:
        names[id(parameter)] = f"{root}/" + name.replace(".", "/")
        nodes.append((names[id(parameter)], "Parameter", [], tuple(parameter.shape)))
    recorder, handles = _Recorder(names), []

    def enter(title):
        return lambda module, args: recorder.scope.append(title)

    def leave(module, args, output):
        recorder.scope.pop()

    for name, module in model.named_modules():
        title = f"{type(module).__name__}[{name.rpartition('.')[2]}]" if name else root
        handles += [module.register_forward_pre_hook(enter(title)), module.register_forward_hook(leave)]
    try:
        with cresset.no_grad(), recorder:
            output = model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    nodes += recorder.nodes
    for i, tensor in enumerate(t for t in cresset.utils._pytree.tree_leaves(output) if isinstance(t, cresset.Tensor)):
        nodes.append(
            (
                f"output/output.{i + 1}",
                "IO Node",
                [names[id(tensor)]] if id(tensor) in names else [],
                tuple(tensor.shape),
            )
        )
    return b"".join(_node(*node) for node in nodes) + message(4, integer(1, 22))


def _node(name, kind, inputs, sizes):
    shape = message(7, *(message(2, integer(1, size)) for size in sizes))
    shapes = message(5, message(1, "_output_shapes"), message(2, message(1, shape)))
    return message(1, message(1, name), message(2, kind), *(message(3, one) for one in inputs), shapes)
