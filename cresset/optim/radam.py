"""RAdam: Adam whose first steps are rectified."""

import cresset

from .optimizer import ByParameter, check_at_least_zero, check_betas, check_lr, count_step, number


class RAdam(ByParameter):
    """Adam that trusts the mean of g^2 only as far as its variance allows, and not at all in the first steps.

    Args:
        betas: how much of the old means of g and g^2 is kept at each step.
        weight_decay: adds weight_decay * w to g; with `decoupled_weight_decay` shrinks w instead.
    """

    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, decoupled_weight_decay=False, *, foreach=None,
        maximize=False, capturable=False, differentiable=False,
    ):  # fmt: skip
        check_lr(lr)
        check_at_least_zero(epsilon=eps)
        check_betas(betas)
        check_at_least_zero(weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "decoupled_weight_decay": decoupled_weight_decay, "differentiable": differentiable,
        })  # fmt: skip

    def _update(self, param, grad, state, group):
        lr, (beta1, beta2), decay = number(group["lr"]), group["betas"], group["weight_decay"]
        t = count_step(state)
        if "exp_avg" not in state:
            state["exp_avg"], state["exp_avg_sq"] = cresset.zeros_like(param), cresset.zeros_like(param)
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        if decay:
            if group["decoupled_weight_decay"]:
                param.mul_(1 - lr * decay)
            else:
                grad = grad.add(param, alpha=decay)
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        correction = 1 - beta2**t
        corrected = mean / (1 - beta1**t)
        # rho is the length of the mean over g^2; below 5 its variance is not defined.
        limit = 2 / (1 - beta2) - 1
        rho = limit - 2 * t * beta2**t / correction
        if rho > 5.0:
            rectified = ((rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho)) ** 0.5
            root = square.sqrt().add_(group["eps"])
            param.add_(corrected * (lr * rectified * correction**0.5) / root, alpha=-1.0)
        else:
            param.add_(corrected, alpha=-lr)
