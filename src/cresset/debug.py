"""Tools to find what is wrong with a model: `nan_guard` names the operation that made the first NaN or Inf, `preflight` checks a
model on shapes alone, before data and time are spent on it."""

import contextlib
import math
import sys

import cresset
from cresset import nn, optim, overrides
from cresset.inspection import Layer, bytes_text, count_text, shapes_text, tensors_of
from cresset.nn import hooks

__all__ = ["NonFiniteError", "Preflight", "nan_guard", "preflight"]


# --- nan_guard ---------------------------------------------------------------------------------------------------------

# Their results hold no numbers yet.
UNFILLED = frozenset({"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize_", "resize_as_", "set_"})


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
    """One pass that reads the tensor once: a sum is finite unless an element is not, or, rarely, the sum itself overflows."""
    if math.isfinite(tensor.sum().item()):
        return True
    return bool(tensor.isfinite().all())


def checkable(value):
    return isinstance(value, cresset.Tensor) and value.layout == cresset.strided and value.is_floating_point() and not value.is_meta and value.numel() > 0


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
    package = __file__.rpartition("debug.py")[0]
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


class nan_guard(overrides.TorchFunctionMode):
    """A context in which the first operation that makes a NaN or Inf, forward or backward, raises NonFiniteError with its name, the
    path of its module, the line that called it and the range of its inputs.

    Inside, each call costs some microseconds more and each floating-point result is read once more: a large step hardly notices, one
    of many small tensors takes several times as long. Outside nothing is watched and nothing is slower. An Inf that was asked for (a mask filled with -inf) and what
    follows from it is not reported; a NaN that came in from outside (data, weights) is, by the first operation that reads it.

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
                            raise NonFiniteError(f"{name}: made a parameter {kind} (number {number} of group {at}): {_describe(p)}; lr is {group.get('lr')}", name, "", "step", kind)

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
        with overrides.DisableTorchFunctionSubclass():
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
                message = f"{name}: {name_of or 'an input'} holds NaN before the call{place}; it comes from outside the guard ({_describe(came_in[0]) if not isinstance(came_in[0], float) else 'a number'})"
            else:
                inputs = "; inputs " + ", ".join(map(_range_text, given)) if given else ""
                message = f"{name}: made the first {kind}{place}: {_describe(value)}{inputs}"
        raise NonFiniteError(f"{message}; at {line}" if line else message, name, _path(self.modules), "forward", kind)

    def _parameter_name(self, given, bad):
        if not self.modules or isinstance(bad, float):
            return None
        pointer = bad.data_ptr()
        return next((f"the parameter '{name}'" for name, p in self.modules[0].named_parameters() if p.data_ptr() == pointer), None)

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
        with overrides.DisableTorchFunctionSubclass():
            kind = "NaN" if _has(value, "NaN") else "Inf"
            came_in = [item for item in grad_outputs if checkable(item) and not is_all_finite(item.detach())]
            if came_in and not (kind == "NaN" and not any(_has(item.detach(), "NaN") for item in came_in)):
                return  # an earlier derivative made it, and was reported, or was asked to
            if kind == "Inf" and not self.infinities:
                return
            given = "; gradients of its results " + ", ".join(_range_text(item.detach()) for item in grad_outputs if checkable(item))
            message = f"{name}: made the first {kind} of backward{_place(modules)}: {_describe(value)}{given}"
        raise NonFiniteError(f"{message}; called at {line}" if line else message, name, _path(modules), "backward", kind)


# --- preflight ---------------------------------------------------------------------------------------------------------


class ModuleCost(Layer):
    """A module that was called, what it keeps for backward, and how much memory is in use at most while it runs forward."""

    saved_bytes = 0
    kept_so_far = 0  # by all modules up to its end
    peak_bytes = 0


class Preflight:
    """What `preflight` found: prints as a table with a list of problems; the numbers are attributes, sizes in bytes.

    Attributes:
        problems: sentences; empty if the model can be trained as it is. ok: whether it is empty.
        total_params, trainable_params, parameter_bytes, gradient_bytes, activation_bytes, peak_bytes, multiply_adds.
        optimizer_bytes: of the optimizer's state after a step; None where a step on shapes cannot tell (LBFGS needs a closure).
        modules: in the order of their calls, each with path, kind, outputs, saved_bytes, peak_bytes, multiply_adds.
        without_gradient: names of trainable parameters that the loss does not depend on; None if it was not looked for.
        outputs: shapes of what the model returns.
    """

    def __init__(self, model):
        self.problems, self.modules, self.outputs = [], [], []
        self.without_gradient = None
        parameters = list(model.parameters())
        self.total_params = sum(p.numel() for p in parameters)
        self.trainable_params = sum(p.numel() for p in parameters if p.requires_grad)
        self.parameter_bytes = sum(t.numel() * t.dtype.itemsize for t in (*parameters, *model.buffers()))
        self.gradient_bytes = sum(p.numel() * p.dtype.itemsize for p in parameters if p.requires_grad)
        self.optimizer_bytes = self.activation_bytes = self.multiply_adds = 0

    @property
    def ok(self):
        return not self.problems

    @property
    def peak_bytes(self):
        """Parameters and the optimizer's state, and the most of what comes and goes: forward, what is kept and what flows; backward,
        module by module from the last, what is still kept, the gradients of its results and inputs, and those of parameters so far."""
        most, gradients = max((module.peak_bytes for module in self.modules), default=0), 0
        for module in reversed([module for module in self.modules if module.is_leaf and module.outputs]):
            gradients += sum(p.numel() * p.dtype.itemsize for p in module.module.parameters() if p.requires_grad)
            flowing = sum(t.numel() * t.dtype.itemsize for t in (*module.inputs, *module.outputs) if t.requires_grad)
            most = max(most, module.kept_so_far + flowing + gradients)
        return self.parameter_bytes + (self.optimizer_bytes or 0) + max(most, self.activation_bytes, self.gradient_bytes)

    def __str__(self):
        rows = [("module", "output shape", "parameters", "kept for backward", "in use at most", "multiply-adds")]
        for module in self.modules:
            label = "  " * module.depth + (f"{module.name}: {module.kind}" if module.depth else module.kind)
            rows.append((label, shapes_text(module.outputs), count_text(module.parameters), bytes_text(module.saved_bytes), bytes_text(module.peak_bytes), count_text(module.multiply_adds)))
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        table = ["  ".join(cell.ljust(w) if k < 2 else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths, strict=True))).rstrip() for row in rows]
        rule = "─" * (sum(widths) + 2 * (len(widths) - 1))
        totals = [
            f"parameters     {self.total_params:,} ({self.trainable_params:,} trainable), {bytes_text(self.parameter_bytes)}",
            f"peak memory    {bytes_text(self.peak_bytes)}: parameters {bytes_text(self.parameter_bytes)}, gradients {bytes_text(self.gradient_bytes)}, optimizer {'unknown' if self.optimizer_bytes is None else bytes_text(self.optimizer_bytes)}, kept for backward {bytes_text(self.activation_bytes)}",
            f"multiply-adds  {count_text(self.multiply_adds)} forward",
        ]
        found = [f"problem: {problem}" for problem in self.problems] or ["no problems found"]
        return "\n".join([table[0], rule, *table[1:], rule, *totals, *found])

    __repr__ = __str__


def _to_meta(value):
    if isinstance(value, cresset.Tensor):
        return value.detach().to("meta").requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        return {key: _to_meta(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        made = [_to_meta(item) for item in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    return value


def preflight(model, batch, optimizer=None, *, loss=None):
    """Run the model once on shapes alone, in training mode, and report what training would meet.

    No data is read and no memory is used for tensors, so a model that is far too large can be checked as well. The model, its
    weights, the optimizer and the generators are left as they are.

    Args:
        model: any Module.
        batch: an input, or a tuple of inputs; with `loss` the last item is the target. Shapes and dtypes are taken from it.
        optimizer: to find parameters that nobody updates, and for the memory of its state.
        loss: a function of (prediction, target). Without it the loss is taken to depend on all outputs.

    Returns a Preflight: `print` it, or read its attributes.

    >>> found = cresset.debug.preflight(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(9, 2)), cresset.ones(32, 4))
    >>> found.ok, found.problems[0][:40]
    (False, "module '2' (Linear): cannot take (32, 8)")
    """
    found = Preflight(model)
    inputs = tuple(batch) if isinstance(batch, (list, tuple)) else (batch,)
    inputs, target = (inputs[:-1], inputs[-1]) if loss is not None and len(inputs) > 1 else (inputs, None)
    state = {name: t.detach().to("meta").requires_grad_(t.requires_grad) for name, t in (*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False))}
    _share(model, state)
    watch = _Watch(model, state)
    generator_state = cresset.get_rng_state()
    was_training = {module: module.training for module in model.modules()}
    try:
        with watch, cresset.enable_grad():
            model.train()
            outputs = nn.utils.stateless.functional_call(model, state, _to_meta(inputs))
            result = outputs if loss is None else loss(outputs, _to_meta(target))
        found.outputs = tensors_of(outputs)
    except Exception as error:  # noqa: BLE001 - whatever the model raises is what the report is about
        found.problems.append(watch.explain(error))
        result = None
    finally:
        cresset.set_rng_state(generator_state)
        for module, training in was_training.items():
            module.training = training
    found.modules = watch.order
    found.activation_bytes = watch.saved_bytes
    found.multiply_adds = sum(module.multiply_adds or 0 for module in found.modules if module.outputs)
    if result is not None:
        _check_gradients(found, model, state, tensors_of(result), loss is not None)
    if optimizer is not None:
        _check_optimizer(found, model, optimizer)
    return found


def _share(model, state):
    """Parameters that are one in the model are one on the meta device."""
    first = {}
    for name, tensor in (*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)):
        state[name] = first.setdefault(id(tensor), state[name])


class _Watch:
    """Sees the calls of modules and what they keep for backward."""

    def __init__(self, model, state):
        self.layers = {module: ModuleCost(path, module) for path, module in model.named_modules()}
        self.order, self.running = [], []
        self.known = {t.untyped_storage()._cdata for t in state.values()}
        self.saved_bytes, self.kept = 0, []
        self.failed = None

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        for module in self.layers:
            self.stack.callback(module.register_forward_pre_hook(self._begin, with_kwargs=True, prepend=True).remove)
            self.stack.callback(module.register_forward_hook(self._end, with_kwargs=True).remove)
        self.stack.enter_context(cresset.autograd.graph.saved_tensors_hooks(self._keep, lambda tensor: tensor))

    def __exit__(self, *reason):
        self.stack.close()

    def _keep(self, tensor):
        storage = tensor.untyped_storage()
        if storage._cdata not in self.known:
            self.known.add(storage._cdata)
            self.kept.append(storage)  # as long as it lives its address is its own
            size = storage.nbytes()
            self.saved_bytes += size
            for layer in self.running:
                layer.saved_bytes += size
        return tensor

    def _begin(self, module, inputs, keywords):
        layer = self.layers[module]
        if layer not in self.order:
            self.order.append(layer)
            if self.running:
                layer.parent, layer.depth = self.running[-1], self.running[-1].depth + 1
                self.running[-1].is_leaf = False
        layer.inputs = tensors_of((inputs, keywords))
        self.running.append(layer)

    def _end(self, module, inputs, keywords, result):
        layer = self.running.pop()
        layer.outputs, layer.kept_so_far = tensors_of(result), self.saved_bytes
        # What is kept so far, what came in, and what goes out, each storage once.
        there = {t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in (*layer.inputs, *layer.outputs)}
        layer.peak_bytes = max(layer.peak_bytes, self.saved_bytes + sum(size for storage, size in there.items() if storage not in self.known))
        for above in self.running:
            above.peak_bytes = max(above.peak_bytes, layer.peak_bytes)

    def explain(self, error):
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        if not self.running:
            return f"the loss or what follows the model: {type(error).__name__}: {text}"
        layer = self.running[-1]
        where = f"module '{layer.path}' ({layer.kind})" if layer.path else layer.kind
        return f"{where}: cannot take {shapes_text(layer.inputs) or 'its input'}: {text}"


def _check_gradients(found, model, state, results, has_loss):
    """Which parameters the results depend on, read from the graph that forward recorded."""
    if has_loss and (len(results) != 1 or results[0].numel() != 1):
        found.problems.append(f"the loss should be one number, got {shapes_text(results)}; take its mean() or sum()")
    starts = [t for t in results if t.requires_grad]
    if not starts and found.trainable_params:
        found.problems.append("nothing the model returns depends on a parameter that is trained")
    reached, seen, waiting = {id(t) for t in starts}, set(), [t.grad_fn for t in starts if t.grad_fn is not None]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if variable is not None:
            reached.add(id(variable))
        waiting.extend(next_node for next_node, _ in node.next_functions if next_node is not None)
    found.without_gradient = [name for name, p in model.named_parameters() if p.requires_grad and id(state[name]) not in reached]
    if found.without_gradient:
        found.problems.append(f"{_names(found.without_gradient)} would get no gradient: the {'loss' if has_loss else 'output'} does not depend on {_them(found.without_gradient)}")


def _names(names):
    shown = ", ".join(f"'{name}'" for name in names[:5])
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"parameter{'s' if len(names) > 1 else ''} {shown}{more}"


def _them(names):
    return "them" if len(names) > 1 else "it"


def _check_optimizer(found, model, optimizer):
    held = [p for group in optimizer.param_groups for p in group["params"]]
    held_ids, own = {id(p) for p in held}, {id(p) for p in model.parameters()}
    forgotten = [name for name, p in model.named_parameters() if p.requires_grad and id(p) not in held_ids]
    if forgotten:
        found.problems.append(f"the optimizer does not have {_names(forgotten)}, which {'need' if len(forgotten) > 1 else 'needs'} a gradient")
    if strangers := sum(id(p) not in own for p in held):
        found.problems.append(f"the optimizer has {strangers} parameter{'s' if strangers > 1 else ''} that {'are' if strangers > 1 else 'is'} not the model's; make it after the model got its final parameters")
    found.optimizer_bytes = _optimizer_bytes(optimizer)


def _optimizer_bytes(optimizer):
    """The size of the state after a step: of the state that is there, or of one step on the meta device; None if that cannot tell."""
    state = optimizer.state
    if not state:
        groups = []
        for group in optimizer.param_groups:
            shapes = [p.detach().to("meta").requires_grad_() for p in group["params"] if p.requires_grad]
            for p in shapes:
                p.grad = cresset.empty_like(p)
            groups.append({**{key: value for key, value in group.items() if key != "params"}, "params": shapes})
        try:
            trial = type(optimizer)([group for group in groups if group["params"]], **_defaults(optimizer))
            trial.step()
        except (TypeError, ValueError, RuntimeError, NotImplementedError):  # one that needs a closure, or arguments of its own
            return None
        state = trial.state
    return sum(t.numel() * t.dtype.itemsize for values in state.values() for t in tensors_of(values))


def _defaults(optimizer):
    import inspect

    accepted = inspect.signature(type(optimizer).__init__).parameters
    return {key: value for key, value in optimizer.defaults.items() if key in accepted}
