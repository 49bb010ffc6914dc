"""RMSprop."""

from .by_formula import ByFormula, begin
from .optimizer import check_at_least_zero, check_lr


class RMSprop(ByFormula):
    """w -= lr * g / (sqrt(v) + eps), with v the running mean of g^2.

    Args:
        alpha: how much of the old v is kept at each step.
        momentum: of a running step, in place of the step itself.
        centered: use the variance of g instead of the mean of g^2.
        weight_decay: adds weight_decay * w to g.
    """

    _formula = "rmsprop"

    def __init__(
        self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False, capturable=False,
        foreach=None,
        maximize=False, differentiable=False,
    ):  # fmt: skip
        check_lr(lr)
        check_at_least_zero(epsilon=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable, "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
        })  # fmt: skip

    def _settings(self, group):
        # The bits of the variant: centered, has_momentum.
        return 2 * bool(group["centered"]) + (group["momentum"] > 0), {}

    def _start(self, state, param, group):
        begin(state, param, "step", "square_avg")
        if group["momentum"] > 0:
            begin(state, param, "momentum_buffer")
        if group["centered"]:
            begin(state, param, "grad_avg")
