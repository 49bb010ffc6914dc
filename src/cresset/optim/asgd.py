"""Averaged stochastic gradient descent."""

from .by_formula import ByFormula, begin, one_number
from .optimizer import check_at_least_zero, check_lr, number


class ASGD(ByFormula):
    """SGD with a falling rate, that also keeps the mean of the parameters, as `ax` in the state.

    Args:
        lambd: how strongly the weights shrink.
        alpha: the power by which the rate falls.
        t0: the step at which averaging starts.
        weight_decay: adds weight_decay * w to g.
    """

    _formula = "asgd"

    def __init__(
        self, params, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0, foreach=None, maximize=False,
        differentiable=False, capturable=False,
    ):  # fmt: skip
        check_lr(lr)
        check_at_least_zero(weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        })  # fmt: skip

    def _start(self, state, param, group):
        begin(state, param, "step")
        state.setdefault("eta", one_number(number(group["lr"])))
        state.setdefault("mu", one_number(1))
        begin(state, param, "ax")
