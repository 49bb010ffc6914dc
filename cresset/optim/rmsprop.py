"""RMSprop."""

import cresset

from .optimizer import ByParameter, check_at_least_zero, check_lr, count_step, number


class RMSprop(ByParameter):
    """w -= lr * g / (sqrt(v) + eps), with v the running mean of g^2.

    Args:
        alpha: how much of the old v is kept at each step.
        momentum: of a running step, in place of the step itself.
        centered: use the variance of g instead of the mean of g^2.
        weight_decay: adds weight_decay * w to g.
    """

    def __init__(
        self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False, capturable=False, foreach=None,
        maximize=False, differentiable=False,
    ):  # fmt: skip
        check_lr(lr)
        check_at_least_zero(epsilon=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered, "weight_decay": weight_decay,
            "capturable": capturable, "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
        })  # fmt: skip

    def _update(self, param, grad, state, group):
        lr, alpha, momentum, decay = number(group["lr"]), group["alpha"], group["momentum"], group["weight_decay"]
        count_step(state)
        if "square_avg" not in state:
            state["square_avg"] = cresset.zeros_like(param)
            if momentum > 0:
                state["momentum_buffer"] = cresset.zeros_like(param)
            if group["centered"]:
                state["grad_avg"] = cresset.zeros_like(param)
        square = state["square_avg"]
        if decay:
            grad = grad.add(param, alpha=decay)
        square.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"]
            mean.lerp_(grad, 1 - alpha)
            root = square.addcmul(mean, mean, value=-1).sqrt_()
        else:
            root = square.sqrt()
        root.add_(group["eps"])
        if momentum > 0:
            buffer = state["momentum_buffer"]
            buffer.mul_(momentum).addcdiv_(grad, root)
            param.add_(buffer, alpha=-lr)
        else:
            param.addcdiv_(grad, root, value=-lr)
