"""Adamax."""

from .by_formula import ByFormula, begin
from .optimizer import check_at_least_zero, check_betas, check_lr


class Adamax(ByFormula):
    """Adam with a falling maximum of |g| in place of the root of the mean of g^2.

    Args:
        betas: how much of the old mean and of the old maximum is kept at each step.
        weight_decay: adds weight_decay * w to g.
    """

    _formula = "adamax"

    def __init__(
        self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, foreach=None, *, maximize=False,
        differentiable=False, capturable=False,
    ):  # fmt: skip
        check_lr(lr)
        check_at_least_zero(epsilon=eps)
        check_betas(betas)
        check_at_least_zero(weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable,
        })  # fmt: skip

    def _settings(self, group):
        beta1, beta2 = group["betas"]
        return 0, {"beta1": beta1, "beta2": beta2}

    def _start(self, state, param, group):
        begin(state, param, "step", "exp_avg", "exp_inf")
