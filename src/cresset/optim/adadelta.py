"""Adadelta."""

from .by_formula import ByFormula, begin
from .optimizer import check_at_least_zero, check_lr


class Adadelta(ByFormula):
    """w -= lr * d with d = g * sqrt(u + eps) / sqrt(v + eps), u and v the running means of d^2 and g^2.

    Args:
        rho: how much of the old u and v is kept at each step.
        weight_decay: adds weight_decay * w to g.
    """

    _formula = "adadelta"

    def __init__(
        self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach=None, *, capturable=False, maximize=False,
        differentiable=False,
    ):  # fmt: skip
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_at_least_zero(epsilon=eps, weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach, "differentiable": differentiable,
        })  # fmt: skip

    def _start(self, state, param, group):
        begin(state, param, "step", "square_avg", "acc_delta")
