"""Stochastic gradient descent."""

from .by_formula import ByFormula, begin
from .optimizer import check_at_least_zero, check_flags, check_lr, number


class SGD(ByFormula):
    """w -= lr * g, with momentum b = momentum * b + (1 - dampening) * g in place of g.

    Args:
        momentum, dampening: of the running gradient b, which starts as the first gradient.
        weight_decay: adds weight_decay * w to g.
        nesterov: use g + momentum * b in place of b.
        maximize: go up instead of down.

    >>> w = nn.Parameter(cresset.tensor([3.0]))
    >>> w.grad = cresset.tensor([2.0])
    >>> optim.SGD([w], lr=0.5).step()
    >>> w.item()
    2.0
    """

    _formula = "sgd"

    def __init__(
        self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False, foreach=None,
        differentiable=False, fused=None,
    ):  # fmt: skip
        check_lr(lr)
        check_flags(foreach, fused, differentiable)
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        check_at_least_zero(weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
            "maximize": maximize, "foreach": foreach, "differentiable": differentiable, "fused": fused,
        })  # fmt: skip

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("nesterov", False)
            group.setdefault("maximize", False)
            group.setdefault("foreach", None)
            group.setdefault("differentiable", False)
            group.setdefault("fused", False)

    def _settings(self, group):
        # The bits of the variant: has_momentum, nesterov.
        return (2 + bool(group["nesterov"]) if group["momentum"] else 0), {}

    def _start(self, state, param, group):
        begin(state, param, "momentum_buffer")

    def _check_sparse(self, group):
        if group["weight_decay"]:
            raise RuntimeError("SGD: weight_decay would make a sparse gradient dense; set it to 0")

    def _update_sparse(self, param, grad, group):
        grad = -grad if group["maximize"] else grad
        if group["momentum"]:
            state = self.state[param]
            running = state.get("momentum_buffer")
            running = grad if running is None else running * group["momentum"] + grad * (1 - group["dampening"])
            state["momentum_buffer"] = running
            grad = grad + running * group["momentum"] if group["nesterov"] else running
        param.add_(grad, alpha=-number(group["lr"]))

    def _calls(self, fresh=()):
        calls = super()._calls()
        if fresh and any(group["dampening"] for group in self.param_groups):  # the first gradient comes in whole
            calls = [
                (variant, numbers | extra, {**group, "params": params})
                for variant, numbers, group in calls
                for extra, params in (
                    ({"dampening": 0}, [p for p in group["params"] if id(p) in fresh]),
                    ({}, [p for p in group["params"] if id(p) not in fresh]),
                )
            ]
        return calls
