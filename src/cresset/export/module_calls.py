"""Which calls of modules a recording went through: where each began and ended, and, of those whose signature is kept,
what went in and came out.
"""

import cresset

from ..graph.recording import Value
from ..nn.modules import name_of
from ..pytree import tree_flatten
from .graph_signature import ConstantArgument, SymIntArgument, TensorArgument


class ModuleCall:
    """One call of a module: its path, the how many-th call of it, the recorded calls from `begin` to `end`."""

    def __init__(self, path, number, python_class, around, begin):
        self.path, self.number, self.python_class, self.around, self.begin = path, number, python_class, around, begin
        self.end, self.given, self.result = begin, None, None

    @property
    def name(self):
        """`block.fc`, and `block.fc@1` of the second call."""
        return self.path if self.number == 0 else f"{self.path}@{self.number}"

    def stack(self, root):
        """{key: (path, class)} of this call and those around it, the outermost, that of the `root` module, first."""
        found = self.around.stack(root) if self.around is not None else dict(root)
        found[f"{ROOT}{self.name}"] = (self.path, name_of(self.python_class))
        return found


ROOT = "L__self__"  # the key of the whole module's call; those of others begin with it


class ModuleCalls:
    """Watches the modules of `mod` while it is recorded.

    Args:
        preserved: the paths of modules whose arguments and results are kept.
    """

    def __init__(self, mod, preserved):
        self.mod, self.preserved, self.recorder = mod, set(preserved), None
        self.by_recorder = {}  # id of a recorder -> (the recorder, its ModuleCalls in order)
        self.hooks, self.stack = [], []

    def follow(self, recorder):
        """The recorder that comes next."""
        self.recorder = recorder
        self.stack = []
        self.by_recorder[id(recorder)] = (recorder, [])

    def __enter__(self):
        for path, module in self.mod.named_modules():
            if path:
                self.hooks += [
                    module.register_forward_pre_hook(self._begin(path), with_kwargs=True, prepend=True),
                    module.register_forward_hook(self._end, with_kwargs=True),
                ]
        return self

    def __exit__(self, *exception):
        for hook in self.hooks:
            hook.remove()

    def _begin(self, path):
        def begin(module, args, kwargs):
            _, calls = self.by_recorder[id(self.recorder)]
            number = sum(call.path == path for call in calls)
            around = self.stack[-1] if self.stack else None
            call = ModuleCall(path, number, type(module), around, len(self.recorder.calls))
            if path in self.preserved and number == 0:
                call.given = self._values((tuple(args), dict(kwargs)))
            calls.append(call)
            self.stack.append(call)

        return begin

    def _end(self, module, args, kwargs, result):
        call = self.stack.pop()
        call.end = len(self.recorder.calls)
        if call.given is not None:
            call.result = self._values(result)

    def _values(self, tree):
        """The leaves, with Values in the places of tensors, and the structure."""
        leaves, spec = tree_flatten(tree)
        return [self.recorder.value_of(x) if isinstance(x, cresset.Tensor) else x for x in leaves], spec

    def of(self, recorder):
        """The calls of modules in one recording."""
        return self.by_recorder[id(recorder)][1]

    def frames(self, recorder):
        """{id of the place of a recorded call: {key: (path, class)} of the module calls around it}."""
        root = {ROOT: ("", name_of(type(self.mod)))}
        found = {id(recorded.place): root for recorded in recorder.calls}
        for call in self.of(recorder):  # in order of their beginnings: inner ones come later
            stack = call.stack(root)
            for recorded in recorder.calls[call.begin : call.end]:
                found[id(recorded.place)] = stack
        return found


def arguments(leaves, writer):
    """What a signature says of inputs or outputs."""
    found = []
    for leaf in leaves:
        if not isinstance(leaf, Value):
            found.append(ConstantArgument("", leaf))
            continue
        node = writer.nodes.get(leaf)
        if node is None:
            found.append(ConstantArgument("", None))
        else:
            found.append((SymIntArgument if "expression" in node.meta else TensorArgument)(node.name))
    return found
