"""Hooks for all modules at once, and the machinery that lets a module's hooks see gradients."""

import warnings
from collections import OrderedDict

import cresset

from ..autograd import Function
from ..autograd.hooks import RemovableHandle

# The hooks that apply to every module, by what they are called for.
FORWARD_PRE_HOOKS, FORWARD_HOOKS = OrderedDict(), OrderedDict()
FORWARD_HOOKS_WITH_KWARGS, FORWARD_HOOKS_ALWAYS_CALLED = OrderedDict(), OrderedDict()
BACKWARD_PRE_HOOKS, BACKWARD_HOOKS = OrderedDict(), OrderedDict()
BUFFER_REGISTRATION_HOOKS, MODULE_REGISTRATION_HOOKS, PARAMETER_REGISTRATION_HOOKS = (
    OrderedDict(),
    OrderedDict(),
    OrderedDict(),
)
_kind_of_backward_hooks = None  # True: full ones


def add_hook(hooks, hook, *extra, prepend=False, marks=()):
    """Keep `hook` among `hooks`, in front with `prepend`; the handle takes it away again, there and in `extra`."""
    handle = RemovableHandle(hooks, extra_dict=list(extra))
    hooks[handle.id] = hook
    for mark in marks:
        mark[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_module_buffer_registration_hook(hook):
    """Call hook(module, name, buffer) whenever any module registers a buffer; what it returns takes the buffer's
    place."""
    return add_hook(BUFFER_REGISTRATION_HOOKS, hook)


def register_module_module_registration_hook(hook):
    """Call hook(module, name, submodule) whenever any module registers a submodule."""
    return add_hook(MODULE_REGISTRATION_HOOKS, hook)


def register_module_parameter_registration_hook(hook):
    """Call hook(module, name, parameter) whenever any module registers a parameter."""
    return add_hook(PARAMETER_REGISTRATION_HOOKS, hook)


def register_module_forward_pre_hook(hook):
    """Call hook(module, args) before every module's forward; what it returns takes the arguments' place."""
    return add_hook(FORWARD_PRE_HOOKS, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Call hook(module, args, output) after every module's forward; what it returns takes the output's place."""
    extra = [FORWARD_HOOKS_WITH_KWARGS] * with_kwargs + [FORWARD_HOOKS_ALWAYS_CALLED] * always_call
    return add_hook(FORWARD_HOOKS, hook, *extra, marks=extra)


def _choose_kind(is_full):
    global _kind_of_backward_hooks
    if BACKWARD_HOOKS and _kind_of_backward_hooks is not is_full:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only "
            "one of them."
        )
    _kind_of_backward_hooks = is_full


def register_module_backward_hook(hook):
    """The older `register_module_full_backward_hook`, which sees the gradients of a module's last operation only."""
    _choose_kind(False)
    return add_hook(BACKWARD_HOOKS, hook)


def register_module_full_backward_pre_hook(hook):
    """Call hook(module, grad_output) before the backward of every module."""
    return add_hook(BACKWARD_PRE_HOOKS, hook)


def register_module_full_backward_hook(hook):
    """Call hook(module, grad_input, grad_output) when the gradients of every module's inputs are known."""
    _choose_kind(True)
    return add_hook(BACKWARD_HOOKS, hook)


def global_backward_hooks():
    """The full backward hooks for every module, and those of the older kind."""
    hooks = list(BACKWARD_HOOKS.values())
    return (hooks, []) if _kind_of_backward_hooks else ([], hooks)


class BackwardHookFunction(Function):
    """The identity, as a place in the graph where gradients can be seen."""

    @staticmethod
    def forward(ctx, *tensors):
        passed = tuple(t.view_as(t) for t in tensors)
        ctx.mark_non_differentiable(*[to for t, to in zip(tensors, passed, strict=True) if not t.requires_grad])
        return passed

    @staticmethod
    def backward(ctx, *grads):
        return grads


class BackwardHook:
    """Runs a module's full backward hooks for one call of it.

    The tensors among the inputs and among the outputs each go through a passage. The gradients that arrive at the
    outputs' passage are grad_output; those that leave the inputs' passage are grad_input.
    """

    def __init__(self, module, hooks, pre_hooks):
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.grad_outputs = None
        self.input_places = self.output_places = None
        self.number_of_inputs = self.number_of_outputs = 0

    def watch_inputs(self, args):
        args, self.input_places, self.number_of_inputs = self._watch(args, self._register_on_inputs)
        return args

    def watch_outputs(self, result):
        if isinstance(result, cresset.Tensor):
            outputs = (result,)
        elif isinstance(result, (tuple, list)):
            outputs = tuple(result)
        else:
            warnings.warn(
                (
                    "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but "
                    f"received {type(result)}"
                ),
                stacklevel=4,
            )
            return result
        outputs, self.output_places, self.number_of_outputs = self._watch(outputs, self._register_on_outputs)
        if isinstance(result, cresset.Tensor):
            return outputs[0]
        if hasattr(result, "_fields"):
            return type(result)(*outputs)
        return list(outputs) if isinstance(result, list) else outputs

    def _watch(self, values, register):
        places = [i for i, value in enumerate(values) if isinstance(value, cresset.Tensor)]
        tensors = [values[i] for i in places]
        if not (cresset.is_grad_enabled() and any(t.requires_grad for t in tensors)):
            return values, None, len(values)
        watched = BackwardHookFunction.apply(*tensors)
        register(next(t.grad_fn for t in watched if t.requires_grad))
        values = list(values)
        for i, tensor in zip(places, watched, strict=True):
            values[i] = tensor
        return tuple(values), places, len(values)

    @staticmethod
    def _spread(grads, places, number):
        full = [None] * number
        for place, grad in zip(places or [], grads, strict=bool(places)):
            full[place] = grad
        return tuple(full)

    def _register_on_outputs(self, node):
        def on_grad_outputs(grads):
            outputs = self._spread(grads, self.output_places, self.number_of_outputs)
            for hook in self.pre_hooks:
                replaced = hook(self.module, outputs)
                if replaced is None:
                    continue
                replaced = replaced if isinstance(replaced, tuple) else (replaced,)
                if len(replaced) != len(outputs):
                    raise RuntimeError(
                        f"Backward pre hook returned an invalid number of grad_output, got {len(replaced)}, "
                        f"but expected {len(outputs)}"
                    )
                outputs = replaced
            self.grad_outputs = outputs
            if self.input_places is None:  # no input has a gradient: there is nothing to wait for
                inputs = self._spread((), None, self.number_of_inputs)
                if self.hooks:
                    warnings.warn(
                        "Full backward hook is firing when gradients are computed with respect to module outputs since "
                        "no inputs require gradients.",
                        stacklevel=3,
                    )
                for hook in self.hooks:
                    replaced = hook(self.module, inputs, outputs)
                    all_none = isinstance(replaced, (tuple, list)) and all(g is None for g in replaced)
                    if not (replaced is None or all_none):
                        raise RuntimeError(
                            "Backward hook for Modules where no input requires gradient should always return None or "
                            "None for all gradients."
                        )
                self.grad_outputs = None
            return tuple(outputs[i] for i in self.output_places)

        node.register_prehook(on_grad_outputs)

    def _register_on_inputs(self, node):
        def on_grad_inputs(grad_inputs, _):
            if self.grad_outputs is None:  # the outputs' gradients were not asked for
                return None
            inputs = self._spread(grad_inputs, self.input_places, self.number_of_inputs)
            for hook in self.hooks:
                replaced = hook(self.module, inputs, self.grad_outputs)
                if replaced is None:
                    continue
                replaced = replaced if isinstance(replaced, tuple) else (replaced,)
                if len(replaced) != len(inputs):
                    raise RuntimeError(
                        f"Backward hook returned an invalid number of grad_input, got {len(replaced)}, but expected "
                        f"{len(inputs)}"
                    )
                inputs = replaced
            self.grad_outputs = None
            return tuple(inputs[i] for i in self.input_places)

        node.register_hook(on_grad_inputs)


def warn_of_older_hooks(args, result, node):
    """Hooks of the older kind see one operation only: say where that is not all of the module."""
    what = None
    outputs, inputs = ((t,) if isinstance(t, cresset.Tensor) else t for t in (result, args))
    if not (isinstance(outputs, tuple) and all(isinstance(t, cresset.Tensor) for t in outputs)):
        what = "on a Module that does not return a single Tensor or a tuple of Tensors"
    elif not (isinstance(inputs, tuple) and all(isinstance(t, cresset.Tensor) for t in inputs)):
        what = "on a Module that does not take as input a single Tensor or a tuple of Tensors"
    elif len({t.grad_fn for t in outputs if t.grad_fn is not None}) > 1:
        what = "when outputs are generated by different autograd Nodes"
    elif node is not None:
        behind = {next for next, _ in node.next_functions}
        if {cresset.autograd.graph.get_gradient_edge(t).node for t in inputs if t.requires_grad} != behind:
            what = "when the forward contains multiple autograd Nodes"
    if what is not None:
        warnings.warn(
            f"Using a non-full backward hook {what} is deprecated and will be removed in future versions. It sees some "
            "of the gradients only; please use register_full_backward_hook.",
            FutureWarning,
            stacklevel=5,
        )
