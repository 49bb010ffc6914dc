"""Adamax."""

import cresset

from .optimizer import ByParameter, check_at_least_zero, check_betas, check_lr, count_step, number


class Adamax(ByParameter):
    """Adam with a falling maximum of |g| in place of the root of the mean of g^2.

    Args:
        betas: how much of the old mean and of the old maximum is kept at each step.
        weight_decay: adds weight_decay * w to g.
    """

    def __init__(
        self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, foreach=None, *, maximize=False,
        differentiable=False, capturable=False,
    ):  # fmt: skip
        check_lr(lr)
        check_at_least_zero(epsilon=eps)
        check_betas(betas)
        check_at_least_zero(weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable,
        })  # fmt: skip

    def _update(self, param, grad, state, group):
        beta1, beta2 = group["betas"]
        t = count_step(state)
        if "exp_avg" not in state:
            state["exp_avg"], state["exp_inf"] = cresset.zeros_like(param), cresset.zeros_like(param)
        mean, largest = state["exp_avg"], state["exp_inf"]
        if group["weight_decay"]:
            grad = grad.add(param, alpha=group["weight_decay"])
        mean.lerp_(grad, 1 - beta1)
        largest.copy_(cresset.maximum(largest.mul(beta2), grad.abs().add_(group["eps"])))
        param.addcdiv_(mean, largest, value=-number(group["lr"]) / (1 - beta1**t))
