"""Rprop."""

import cresset

from .optimizer import ByParameter, check_lr, count_step, number


class Rprop(ByParameter):
    """Steps that look at the sign of the gradient only, and grow while it stays the same.

    Args:
        etas: factors for a step whose gradient changed its sign, and for one whose gradient kept it.
        step_sizes: the smallest and the largest step.
    """

    def __init__(
        self, params, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, capturable=False, foreach=None, maximize=False,
        differentiable=False,
    ):  # fmt: skip
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable,
        })  # fmt: skip

    def _update(self, param, grad, state, group):
        (shrink, grow), (smallest, largest) = group["etas"], group["step_sizes"]
        count_step(state)
        if "prev" not in state:
            state["prev"], state["step_size"] = cresset.zeros_like(param), cresset.full_like(grad, number(group["lr"]))
        last, size = state["prev"], state["step_size"]
        sign = grad.mul(last).sign()
        factor = cresset.where(sign > 0, grow, cresset.where(sign < 0, shrink, 1.0)).to(size.dtype)
        size.mul_(factor).clamp_(smallest, largest)
        grad = grad.masked_fill(sign < 0, 0)  # after a change of sign: no step, and a fresh start
        param.addcmul_(grad.sign(), size, value=-1)
        last.copy_(grad)
