"""Adadelta."""

import cresset

from .optimizer import ByParameter, check_at_least_zero, check_lr, count_step, number


class Adadelta(ByParameter):
    """w -= lr * d with d = g * sqrt(u + eps) / sqrt(v + eps), u and v the running means of d^2 and g^2.

    Args:
        rho: how much of the old u and v is kept at each step.
        weight_decay: adds weight_decay * w to g.
    """

    def __init__(
        self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach=None, *, capturable=False, maximize=False,
        differentiable=False,
    ):  # fmt: skip
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_at_least_zero(epsilon=eps, weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize, "capturable": capturable,
            "foreach": foreach, "differentiable": differentiable,
        })  # fmt: skip

    def _update(self, param, grad, state, group):
        rho, eps = group["rho"], group["eps"]
        count_step(state)
        if "square_avg" not in state:
            state["square_avg"], state["acc_delta"] = cresset.zeros_like(param), cresset.zeros_like(param)
        if group["weight_decay"]:
            grad = grad.add(param, alpha=group["weight_decay"])
        square, moved = state["square_avg"], state["acc_delta"]
        square.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        delta = moved.add(eps).sqrt_().div_(square.add(eps).sqrt_()).mul_(grad)
        moved.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        param.add_(delta, alpha=-number(group["lr"]))
