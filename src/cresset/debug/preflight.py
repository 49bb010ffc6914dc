"""`preflight`: a model checked on shapes alone, before data and time are spent on it."""

import contextlib
import inspect
import re

import cresset
from cresset import nn
from cresset.show.summary import Layer, bytes_text, check_model, count_text, shapes_text, tensors_of


class ModuleCost(Layer):
    """A module that was called, what it keeps for backward, and how much memory is in use at most while it runs
    forward.
    """

    saved_bytes = 0
    kept_so_far = 0  # by all modules up to its end
    peak_bytes = 0


class Preflight:
    """What `preflight` found: prints as a table with a list of problems; the numbers are attributes, sizes in bytes.

    Attributes:
        problems: sentences; empty if the model can be trained as it is. ok: whether it is empty.
        total_params, trainable_params, parameter_bytes, gradient_bytes, activation_bytes, peak_bytes, multiply_adds.
        optimizer_bytes: of the optimizer's state after a step; None where a step on shapes cannot tell (LBFGS needs a
            closure).
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
        """Parameters and the optimizer's state, and the most of what comes and goes: forward, what is kept and what
        flows; backward, module by module from the last, what is still kept, the gradients of its results and inputs,
        and those of parameters so far."""
        most, gradients = max((module.peak_bytes for module in self.modules), default=0), 0
        for module in reversed([module for module in self.modules if module.is_leaf and module.outputs]):
            gradients += sum(p.numel() * p.dtype.itemsize for p in module.module.parameters() if p.requires_grad)
            flowing = sum(t.numel() * t.dtype.itemsize for t in (*module.inputs, *module.outputs) if t.requires_grad)
            most = max(most, module.kept_so_far + flowing + gradients)
        return (
            self.parameter_bytes + (self.optimizer_bytes or 0) + max(most, self.activation_bytes, self.gradient_bytes)
        )

    def __str__(self):
        rows = [("module", "output shape", "parameters", "kept for backward", "in use at most", "multiply-adds")]
        for module in self.modules:
            label = "  " * module.depth + (f"{module.name}: {module.kind}" if module.depth else module.kind)
            rows.append(
                (
                    label,
                    shapes_text(module.outputs),
                    count_text(module.parameters),
                    bytes_text(module.saved_bytes),
                    bytes_text(module.peak_bytes),
                    count_text(module.multiply_adds),
                )
            )
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        table = [
            "  ".join(
                cell.ljust(w) if k < 2 else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        rule = "─" * (sum(widths) + 2 * (len(widths) - 1))
        totals = [
            (
                f"parameters     {self.total_params:,} ({self.trainable_params:,} trainable), "
                f"{bytes_text(self.parameter_bytes)}"
            ),
            (
                f"peak memory    {bytes_text(self.peak_bytes)}: parameters {bytes_text(self.parameter_bytes)}, "
                "gradients "
                f"{bytes_text(self.gradient_bytes)}, optimizer "
                f"{'unknown' if self.optimizer_bytes is None else bytes_text(self.optimizer_bytes)}, kept for backward "
                f"{bytes_text(self.activation_bytes)}"
            ),
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

    No data is read and no memory is used for tensors, so a model that is far too large can be checked as well. The
    model, its weights, the optimizer and the generators are left as they are.

    Args:
        model: any Module.
        batch: an input, or a tuple of inputs; with `loss` the last item is the target. Shapes and dtypes are taken from
            it.
        optimizer: to find parameters that nobody updates, and for the memory of its state.
        loss: a function of (prediction, target). Without it the loss is taken to depend on all outputs.

    Returns a Preflight: `print` it, or read its attributes.

    >>> found = cresset.debug.preflight(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(9, 2)), cresset.ones(32, 4))
    >>> found.ok, found.problems[0][:40]
    (False, "module '2' (Linear): cannot take (32, 8)")
    """
    check_model(model, "preflight")
    if optimizer is not None and (inspect.isclass(optimizer) or not hasattr(optimizer, "param_groups")):
        given = f"the class {optimizer.__name__}" if inspect.isclass(optimizer) else type(optimizer).__name__
        raise TypeError(
            f"preflight: optimizer should be one of cresset.optim, made with model.parameters(), got {given}"
        )
    found = Preflight(model)
    inputs = tuple(batch) if isinstance(batch, (list, tuple)) else (batch,)
    inputs, target = (inputs[:-1], inputs[-1]) if loss is not None and len(inputs) > 1 else (inputs, None)
    state = {
        name: t.detach().to("meta").requires_grad_(t.requires_grad)
        for name, t in (*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False))
    }
    _share(model, state)
    watch = _Watch(model, state)
    generator_state = cresset.get_rng_state()
    was_training = {module: module.training for module in model.modules()}
    try:
        with watch, cresset.enable_grad(), cresset.device("meta"):
            model.train()
            outputs = nn.utils.stateless._functional_call(model, state, _to_meta(inputs))
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
        layer.peak_bytes = max(
            layer.peak_bytes,
            self.saved_bytes + sum(size for storage, size in there.items() if storage not in self.known),
        )
        for above in self.running:
            above.peak_bytes = max(above.peak_bytes, layer.peak_bytes)

    def explain(self, error):
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        if not self.running:
            return f"the loss or what follows the model: {type(error).__name__}: {text}"
        layer = self.running[-1]
        where = f"module '{layer.path}' ({layer.kind})" if layer.path else layer.kind
        if re.search(r"\bmeta\b", text):  # no fault of the model: it looks at numbers, or holds a tensor by itself
            return (
                f"{where}: cannot be followed on shapes alone, which preflight has; what comes after this was not "
                f"looked at: {text}"
            )
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
    found.without_gradient = [
        name for name, p in model.named_parameters() if p.requires_grad and id(state[name]) not in reached
    ]
    if found.without_gradient:
        found.problems.append(
            f"{_names(found.without_gradient)} would get no gradient: the {'loss' if has_loss else 'output'} does not "
            f"depend on {_them(found.without_gradient)}"
        )


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
        found.problems.append(
            f"the optimizer does not have {_names(forgotten)}, which {'need' if len(forgotten) > 1 else 'needs'} a "
            "gradient"
        )
    if strangers := sum(id(p) not in own for p in held):
        found.problems.append(
            f"the optimizer has {strangers} parameter{'s' if strangers > 1 else ''} that "
            f"{'are' if strangers > 1 else 'is'} not the model's; make it after the model got its final parameters"
        )
    found.optimizer_bytes = _optimizer_bytes(optimizer)


def _optimizer_bytes(optimizer):
    """The size of the state after a step: of the state that is there, or of one step on the meta device; None if that
    cannot tell.
    """
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
        except (
            TypeError,
            ValueError,
            RuntimeError,
            NotImplementedError,
        ):  # one that needs a closure, or arguments of its own
            return None
        state = trial.state
    return sum(t.numel() * t.dtype.itemsize for values in state.values() for t in tensors_of(values))


def _defaults(optimizer):
    accepted = inspect.signature(type(optimizer).__init__).parameters
    return {key: value for key, value in optimizer.defaults.items() if key in accepted}
