"""Rprop."""

import cresset

from .by_formula import ByFormula, begin
from .optimizer import check_lr, number


class Rprop(ByFormula):
    """Steps that look at the sign of the gradient only, and grow while it stays the same.

    Args:
        etas: factors for a step whose gradient changed its sign, and for one whose gradient kept it.
        step_sizes: the smallest and the largest step.
    """

    _formula = "rprop"

    def __init__(
        self, params, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, capturable=False, foreach=None,
        maximize=False,
        differentiable=False,
    ):  # fmt: skip
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable,
        })  # fmt: skip

    def _settings(self, group):
        (etaminus, etaplus), (smallest, largest) = group["etas"], group["step_sizes"]
        return 0, {"etaminus": etaminus, "etaplus": etaplus, "smallest": smallest, "largest": largest}

    def _start(self, state, param, group):
        begin(state, param, "step", "prev")
        if state.get("step_size") is None:
            lr = number(group["lr"])
            state["step_size"] = cresset.full_like(param.grad, complex(lr, lr) if param.is_complex() else lr)
