"""ByFormula: an optimizer whose step is one formula, run over all parameters in one pass."""

import cresset
from cresset import _native

from .optimizer import Optimizer, number


class ByFormula(Optimizer):
    """An optimizer with a formula in cresset/ops/pointwise/stepping.py.

    A subclass names it in `_formula`, and says in `_settings` which variant and which numbers a group asks for, and in
    `_start` what is kept for a parameter that takes its first step. The native loop looks up the numbers that
    `_settings` leaves out in the group, gradients in their parameters, and the rest in `state`. Where it cannot go
    (`differentiable`, tensors of subclasses or of other devices), the same formula is called with tensors.
    """

    _formula: str | None = None
    _about_sparse = ""  # what to do with a sparse gradient

    def _settings(self, group):
        """The number of the variant, and the numbers by name."""
        return 0, {}

    def _start(self, state, param, group):
        """Put into `state` what is not there yet."""

    def _calls(self, fresh=()):
        """(variant, numbers, group) for each group. `fresh` are the parameters that take their first step."""
        return [(*self._settings(group), group) for group in self.param_groups]

    def step(self, closure=None):
        """Change all parameters that have a gradient.

        Args:
            closure: computes the loss and the gradients anew, and returns the loss.
        """
        loss = None
        if closure is not None:
            with cresset.enable_grad():
                loss = closure()
        if self.defaults.get("differentiable"):
            self._step_by_operations()
            return loss
        scaling = (getattr(self, "grad_scale", None), getattr(self, "found_inf", None))  # set by a GradScaler
        if self._has_parts and self._step_of_parts(scaling):
            return loss
        missing = _native.update(type(self).__name__, self._formula, self._calls(), self.state, *scaling)
        if isinstance(missing, list):
            fresh = self._start_all(missing)
            missing = _native.update(type(self).__name__, self._formula, self._calls(fresh), self.state, *scaling)
        if missing is NotImplemented and self._unscale_by_operations(*scaling):
            self._step_by_operations()
        return loss

    def _step_of_parts(self, scaling):
        """The native step on this process's parts of distributed parameters: elements do not meet. Whether it was
        done.
        """
        params = [param for group in self.param_groups for param in group["params"]]
        wholes = {id(_part(param)): param for param in params}

        def update(fresh=()):
            calls = [
                (variant, numbers, {**group, "params": [_part(param) for param in group["params"]]})
                for variant, numbers, group in self._calls(fresh)
            ]
            state = {_part(p): {name: _part(value) for name, value in kept.items()} for p, kept in self.state.items()}
            return _native.update(type(self).__name__, self._formula, calls, state, *scaling)

        missing = update()
        if isinstance(missing, list):  # parameters without state yet
            missing = update(self._start_all([(index, wholes[id(part)]) for index, part in missing]))
        return missing is not NotImplemented

    @property
    def _step_supports_amp_scaling(self):
        """Whether a GradScaler may leave the division by its scale and the skipping of a step to the step itself."""
        return all(group.get("fused") and all(p.is_cuda for p in group["params"]) for group in self.param_groups)

    def _unscale_by_operations(self, scale, found):
        """Do what the native step does with what a GradScaler set. False: the step is skipped."""
        if found is not None and found.item():
            return False
        if scale is not None:
            with cresset.no_grad():
                for group in self.param_groups:
                    for param in group["params"]:
                        if param.grad is not None:
                            param.grad.div_(scale.to(param.device))
        return True

    def _start_all(self, missing):
        with cresset.no_grad():
            for index, param in missing:
                group = self.param_groups[index]
                self._start(self.state[param], param, group)
                if param.is_cuda and (group.get("fused") or group.get("capturable")):
                    self._count_on_device(self.state[param], param.device)
        return {id(param) for _, param in missing}

    def _count_on_device(self, state, device):
        """Keep step counts where the parameter is: a step then never waits for the host, nor the host for it."""
        for name in cresset.ops.formulas.update(self._formula).singles:
            if state.get(name) is not None:
                state[name] = state[name].to(device)

    def _step_by_operations(self):
        formula = cresset.ops.formulas.update(self._formula)
        for group in self.param_groups:
            if any(param.grad is not None and _is_sparse(param.grad) for param in group["params"]):
                self._check_sparse(group)
        record = bool(self.defaults.get("differentiable")) and cresset.is_grad_enabled()
        kept = [*formula.tensors[2:], *formula.singles]
        missing = []
        for index, (variant, _, group) in enumerate(self._calls()):
            for param in group["params"]:
                state = self.state.get(param, {})
                lacks = any(state.get(name) is None for name in kept if _is_used(formula, variant, name))
                if lacks and param.grad is not None and not _is_sparse(param.grad):
                    missing.append((index, param))
        fresh = self._start_all(missing)
        with cresset.set_grad_enabled(record):
            for variant, numbers, group in self._calls(fresh):
                flags = _flags(formula, variant)
                numbers = {name: numbers.get(name, group.get(name)) for name in formula.numbers}
                if not record:
                    numbers = {name: number(value) for name, value in numbers.items()}
                for param in group["params"]:
                    if param.grad is not None and _is_sparse(param.grad):
                        self._update_sparse(param, param.grad.coalesce(), group)
                    elif param.grad is not None:
                        self._update_one(formula, param, numbers, flags, group, record)

    def _update_one(self, formula, param, numbers, flags, group, record):
        state = self.state.get(param, {})
        tensors = {"param": param, "grad": param.grad}
        tensors |= {name: state[name] for name in formula.tensors[2:] if state.get(name) is not None}
        if param.is_complex():  # a complex number is two real ones
            tensors = {name: cresset.view_as_real(value) for name, value in tensors.items()}
        singles = {name: state[name] for name in formula.singles}
        read = {name: value.clone() for name, value in tensors.items()} if record else tensors  # backward may need it
        counts = singles
        if not group.get("capturable"):  # numbers, but for what has a gradient
            counts = {
                n: value.clone() if record and value.requires_grad else number(value) for n, value in singles.items()
            }
        for name, value in formula(**read, **counts, **numbers, **flags).items():
            target = singles.get(name) if name in singles else tensors.get(name)
            if target is not None and value is not read.get(name):
                if isinstance(value, cresset.Tensor):
                    target.copy_(value)
                else:
                    target.fill_(value)

    _update_sparse = None  # of those that take sparse gradients: (param, grad, group) changes a parameter

    def _check_sparse(self, group):
        """Refuse a group that has a sparse gradient, before anything changes."""
        if self._update_sparse is None:
            raise RuntimeError(f"{type(self).__name__} does not support sparse gradients{self._about_sparse}")


def _part(value):
    """Of a tensor that lies on several processes, what this one has of it."""
    return value._stepped() if hasattr(type(value), "_stepped") else value


def _is_sparse(grad):
    return grad.layout != cresset.strided


def _flags(formula, variant):
    """The flags of a variant by name: the last one is its lowest bit."""
    return {name: bool(variant >> place & 1) for place, name in enumerate(reversed(formula.flags))}


def _is_used(formula, variant, name):
    """Whether a variant reads or writes `name`."""
    chosen = next(v for v in formula.variants() if v.number == variant)
    return name in chosen.tensors or name in chosen.singles


def begin(state, param, *names):
    """Start what is kept at zero: `step` is a count, the others have the parameter's shape."""
    for name in names:
        if state.get(name) is None:
            if name == "step":
                state[name] = one_number(0.0)
            else:
                state[name] = cresset.zeros_like(param, memory_format=cresset.preserve_format)


def one_number(value):
    """A tensor of one element, as step counts are."""
    double = cresset.get_default_dtype() == cresset.float64
    return cresset.tensor(float(value), dtype=cresset.float64 if double else cresset.float32)
