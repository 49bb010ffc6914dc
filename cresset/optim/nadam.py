"""NAdam: Adam with Nesterov's momentum."""

import cresset

from .optimizer import ByParameter, check_at_least_zero, check_betas, check_lr, count_step, number


class NAdam(ByParameter):
    """Adam that looks one step ahead, with a momentum that grows by a schedule.

    Args:
        betas: how much of the old means of g and g^2 is kept at each step.
        weight_decay: adds weight_decay * w to g; with `decoupled_weight_decay` shrinks w instead.
        momentum_decay: how fast the momentum approaches betas[0].
    """

    def __init__(
        self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, momentum_decay=4e-3,
        decoupled_weight_decay=False, *, foreach=None, maximize=False, capturable=False, differentiable=False,
    ):  # fmt: skip
        check_lr(lr)
        check_at_least_zero(epsilon=eps)
        check_betas(betas)
        check_at_least_zero(weight_decay=weight_decay, momentum_decay=momentum_decay)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "differentiable": differentiable,
        })  # fmt: skip

    def _update(self, param, grad, state, group):
        lr, (beta1, beta2), decay = number(group["lr"]), group["betas"], group["weight_decay"]
        t = count_step(state)
        if "exp_avg" not in state:
            state["mu_product"] = cresset.ones((), dtype=cresset.get_default_dtype())
            state["exp_avg"], state["exp_avg_sq"] = cresset.zeros_like(param), cresset.zeros_like(param)
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        if decay:
            if group["decoupled_weight_decay"]:
                param.mul_(1 - lr * decay)
            else:
                grad = grad.add(param, alpha=decay)
        mu, next_mu = (beta1 * (1.0 - 0.5 * (0.96 ** (s * group["momentum_decay"]))) for s in (t, t + 1))
        state["mu_product"] *= mu
        product = state["mu_product"].item()
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        denominator = square.div(1 - beta2**t).sqrt().add_(group["eps"])
        param.addcdiv_(grad, denominator, value=-lr * (1.0 - mu) / (1.0 - product))
        param.addcdiv_(mean, denominator, value=-lr * next_mu / (1.0 - product * next_mu))
