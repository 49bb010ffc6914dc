"""Which modules are running: by their names, in forward and in backward."""

import logging
import weakref

from .. import _native
from ..autograd.graph import register_multi_grad_hook
from ..autograd.variable import Variable
from ..nn.hooks import register_module_forward_hook, register_module_forward_pre_hook
from ..pytree import tree_leaves

__all__ = ["ModuleTracker"]

logger = logging.getLogger("torch.utils.module_tracker")


class ModuleTracker:
    """A context in which `parents` is the set of the names of the modules that are running, and "Global".

    A name is that of the outermost module's class, then the path from there: "Sequential.0". In backward a module is
    running from the gradients of its outputs to those of its inputs, and `is_bw` is True.

    >>> from cresset.utils.module_tracker import ModuleTracker
    >>> class Noted(cresset.nn.Module):
    ...     def forward(self, x):
    ...         print(sorted(tracker.parents))
    ...         return x
    >>> model = cresset.nn.Sequential(Noted())
    >>> with ModuleTracker() as tracker:
    ...     _ = model(cresset.ones(1))
    ['Global', 'Sequential', 'Sequential.0']
    """

    def __init__(self):
        self.parents = {"Global"}
        self._names = weakref.WeakKeyDictionary()
        self._handles, self._will_forget = [], False

    @property
    def is_bw(self):
        """Whether backward is running in this thread."""
        return _native.current_backward() != -1

    def __enter__(self):
        self._handles = [
            register_module_forward_pre_hook(self._begins),
            register_module_forward_hook(self._ends, always_call=True),
        ]
        return self

    def __exit__(self, *_):
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self.parents = {"Global"}

    def _name_of(self, module):
        if module not in self._names:
            root = type(module).__name__
            for path, inner in module.named_modules():
                self._names[inner] = f"{root}.{path}" if path else root
        return self._names[module]

    def _begins(self, module, args):
        name = self._name_of(module)
        self._enter(name)
        self._at_gradients(args, lambda grads: self._leave(name))

    def _ends(self, module, args, output):
        name = self._name_of(module)
        self._leave(name)
        self._at_gradients(output, lambda grads: self._enter(name))

    def _at_gradients(self, values, function):
        tensors = [leaf for leaf in tree_leaves(values) if isinstance(leaf, _native.Tensor) and leaf.requires_grad]
        if tensors and _native.is_grad_enabled():
            self._handles.append(register_multi_grad_hook(tensors, function))

    def _enter(self, name):
        if self.is_bw and not self._will_forget:
            Variable._execution_engine.queue_callback(self._forget)
            self._will_forget = True
        if name in self.parents:
            logger.info("%s is entered while it is running: a module that calls itself, or a graph in two parts", name)
        self.parents.add(name)

    def _leave(self, name):
        if name not in self.parents:
            logger.info("%s is left and was not running: a graph in two parts", name)
        self.parents.discard(name)

    def _forget(self):
        """What is still running at the end of backward has no inputs with gradients."""
        self.parents, self._will_forget = {"Global"}, False
