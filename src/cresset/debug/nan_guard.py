"""`nan_guard`: names the operation that made the first NaN or Inf, forward or backward, and the module it ran in."""

import math
import os
import sys

import cresset
from cresset import optim, overrides
from cresset.nn import hooks

# Their results hold no numbers yet.
UNFILLED = frozenset(
    {
        "empty",
        "empty_like",
        "empty_strided",
        "empty_permuted",
        "new_empty",
        "new_empty_strided",
        "resize_",
        "resize_as_",
        "set_",
    }
)


class NonFiniteError(FloatingPointError):
    """An operation made a NaN or an Inf.

    Attributes:
        operation: its name, as "log", or for backward as "LogBackward0".
        module: the path of the module in which it was called, as "encoder.layers.3"; "" outside of modules.
        phase: "forward", "backward" or "step" (of an optimizer).
        made: "NaN" or "Inf".
    """

    def __init__(self, message, operation, module, phase, made):
        super().__init__(message)
        self.operation, self.module, self.phase, self.made = operation, module, phase, made


def is_all_finite(tensor):
    """One pass that reads the tensor once: a sum is finite unless an element is not, or, rarely, the sum itself
    overflows.
    """
    if math.isfinite(tensor.sum().item()):
        return True
    return bool(tensor.isfinite().all())


def checkable(value):
    return (
        isinstance(value, cresset.Tensor)
        and value.layout == cresset.strided
        and value.is_floating_point()
        and not value.is_meta
        and value.numel() > 0
    )


def _floats(value):
    """The floating-point tensors and numbers in the arguments of a call."""
    if checkable(value) or isinstance(value, float):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [found for item in value for found in _floats(item)]
    return []


def _has(value, kind):
    """Whether a tensor or number has an element that is NaN, or is infinite."""
    if isinstance(value, float):
        return value != value if kind == "NaN" else math.isinf(value)
    return bool((value.isnan() if kind == "NaN" else value.isinf()).any())


def _describe(value):
    nans, infinite = int(value.isnan().sum()), int(value.isinf().sum())
    parts = [f"{count} {name}" for count, name in ((nans, "NaN"), (infinite, "Inf")) if count]
    return f"{' and '.join(parts)} of {value.numel()} elements, shape {tuple(value.shape)}"


def _range_text(value):
    if isinstance(value, float):
        return repr(value)
    finite = value.detach()[value.detach().isfinite()]
    if finite.numel() == 0:
        return f"{tuple(value.shape)} without a finite element"
    return f"{tuple(value.shape)} between {finite.min().item():.4g} and {finite.max().item():.4g}"


def _user_line():
    """The line of the user's that runs: the innermost outside of this package."""
    package = os.path.dirname(cresset.__file__)
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(package):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _path(modules):
    """The path of the innermost of nested modules, seen from the outermost."""
    if not modules:
        return ""
    root, inner = modules[0], modules[-1]
    return next((path for path, module in root.named_modules() if module is inner), "")


def _place(modules):
    if not modules:
        return ""
    path, kind = _path(modules), type(modules[-1]).__name__
    return f" in module '{path}' ({kind})" if path else f" in {kind}"


class nan_guard(overrides.OperatorMode):
    """A context in which the first operation that makes a NaN or Inf, forward or backward, raises NonFiniteError with
    its name, the path of its module, the line that called it and the range of its inputs.

    Inside, each call costs some microseconds more and each floating-point result is read once more: a large step hardly
    notices, one of many small tensors takes several times as long. Outside nothing is watched and nothing is slower. An
    Inf that was asked for (a mask filled with -inf) and what follows from it is not reported; a NaN that came in from
    outside (data, weights) is, by the first operation that reads it.

    Args:
        infinities: report Inf, too, not only NaN.
        backward: watch the backward of what is called inside, too. Call backward inside the context or outside.

    >>> try:
    ...     with cresset.debug.nan_guard():
    ...         nn.Sequential(nn.Identity(), nn.Softplus())(cresset.tensor([-1.0])).sub(1).log()
    ... except cresset.debug.NonFiniteError as error:
    ...     print(error.made, "by", error.operation)
    NaN by log
    """

    def __init__(self, *, infinities=True, backward=True):
        self.infinities, self.backward = infinities, backward
        self.modules, self.handles, self.in_backward, self.in_step = [], [], False, False

    def __enter__(self):
        self.modules = []
        self.handles = [
            hooks.register_module_forward_pre_hook(self._enter_module),
            hooks.register_module_forward_hook(self._leave_module, always_call=True),
            optim.optimizer.register_optimizer_step_pre_hook(self._begin_step),
            optim.optimizer.register_optimizer_step_post_hook(self._end_step),
        ]
        return super().__enter__()

    def __exit__(self, *reason):
        if self.in_step:  # an exception within the optimizer: nobody watches already
            self.in_step = False
        else:
            super().__exit__(*reason)
        for handle in self.handles:
            handle.remove()
        self.modules = []

    def _enter_module(self, module, inputs):
        self.modules.append(module)

    def _leave_module(self, module, inputs, output):
        while self.modules and self.modules.pop() is not module:
            pass

    # ---- the optimizer: its step runs unwatched, at its full speed; what it made of the parameters is looked at

    def _begin_step(self, optimizer, args, kwargs):
        if not self.in_step and not any(callable(value) for value in (*args, *kwargs.values())):  # a closure is watched
            self.in_step = True
            super().__exit__()

    def _end_step(self, optimizer, args, kwargs):
        if not self.in_step:
            return
        self.in_step = False
        super().__enter__()
        name = f"{type(optimizer).__name__}.step"
        with overrides._without_top_mode(), cresset.no_grad():
            for at, group in enumerate(optimizer.param_groups):
                for number, p in enumerate(group["params"]):
                    if checkable(p) and not is_all_finite(p):
                        kind = "NaN" if _has(p, "NaN") else "Inf"
                        if kind == "NaN" or self.infinities:
                            raise NonFiniteError(
                                (
                                    f"{name}: made a parameter {kind} (number {number} of group {at}): "
                                    f"{_describe(p)}; lr "
                                    f"is {group.get('lr')}"
                                ),
                                name,
                                "",
                                "step",
                                kind,
                            )

    # ---- forward

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if self.in_backward:  # derivatives are watched as a whole, by their nodes
            return result
        if isinstance(result, cresset.Tensor):
            self._look(func, result, args, kwargs)
        elif isinstance(result, (tuple, list)):
            for item in result:
                if isinstance(item, cresset.Tensor):
                    self._look(func, item, args, kwargs)
        return result

    def _look(self, func, result, args, kwargs):
        if not checkable(result):
            return
        value = result.detach()
        if not is_all_finite(value) and getattr(func, "__name__", "") not in UNFILLED:
            self._judge(func, result, value, args, kwargs)
        if self.backward and result.requires_grad and result.grad_fn is not None:
            self._watch(result.grad_fn)

    def _judge(self, func, result, value, args, kwargs):
        """Raise if the call made what is not finite, or if a NaN came in from outside."""
        name = getattr(func, "__name__", str(func))
        given = [item for item in _floats((args, kwargs)) if item is not result]
        given = [item.detach() if isinstance(item, cresset.Tensor) else item for item in given]
        with overrides.DisableTorchFunction():
            if _has(value, "NaN"):
                kind, came_in = "NaN", [item for item in given if _has(item, "NaN")]
            elif self.infinities:
                kind, came_in = "Inf", [item for item in given if _has(item, "Inf")]
                if came_in:
                    return
            else:
                return
            place, line = _place(self.modules), _user_line()
            if came_in:
                name_of = self._parameter_name(given, came_in[0])
                message = (
                    f"{name}: {name_of or 'an input'} holds NaN before the call{place}; it comes from outside "
                    f"the guard ({_describe(came_in[0]) if not isinstance(came_in[0], float) else 'a number'})"
                )
            else:
                inputs = "; inputs " + ", ".join(map(_range_text, given)) if given else ""
                message = f"{name}: made the first {kind}{place}: {_describe(value)}{inputs}"
        raise NonFiniteError(f"{message}; at {line}" if line else message, name, _path(self.modules), "forward", kind)

    def _parameter_name(self, given, bad):
        if not self.modules or isinstance(bad, float):
            return None
        pointer = bad.data_ptr()
        return next(
            (f"the parameter '{name}'" for name, p in self.modules[0].named_parameters() if p.data_ptr() == pointer),
            None,
        )

    # ---- backward

    def _watch(self, node):
        """Look at what the node's derivative gives, when it runs."""
        modules, line = tuple(self.modules), _user_line()

        def before(grads):
            self.in_backward = True

        def after(grad_inputs, grad_outputs):
            self.in_backward = False
            for grad in grad_inputs:
                if checkable(grad) and not is_all_finite(grad.detach()):
                    self._judge_backward(node.name(), modules, line, grad, grad_outputs)

        node.register_prehook(before)
        node.register_hook(after)

    def _judge_backward(self, name, modules, line, grad, grad_outputs):
        value = grad.detach()
        with overrides.DisableTorchFunction():
            kind = "NaN" if _has(value, "NaN") else "Inf"
            came_in = [item for item in grad_outputs if checkable(item) and not is_all_finite(item.detach())]
            if came_in and not (kind == "NaN" and not any(_has(item.detach(), "NaN") for item in came_in)):
                return  # an earlier derivative made it, and was reported, or was asked to
            if kind == "Inf" and not self.infinities:
                return
            given = "; gradients of its results " + ", ".join(
                _range_text(item.detach()) for item in grad_outputs if checkable(item)
            )
            message = f"{name}: made the first {kind} of backward{_place(modules)}: {_describe(value)}{given}"
        raise NonFiniteError(
            f"{message}; called at {line}" if line else message, name, _path(modules), "backward", kind
        )
