"""Averaged stochastic gradient descent."""

import cresset

from .optimizer import ByParameter, check_at_least_zero, check_lr, count_step, number


class ASGD(ByParameter):
    """SGD with a falling rate, that also keeps the mean of the parameters, as `ax` in the state.

    Args:
        lambd: how strongly the weights shrink.
        alpha: the power by which the rate falls.
        t0: the step at which averaging starts.
        weight_decay: adds weight_decay * w to g.
    """

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

    def _update(self, param, grad, state, group):
        lr, lambd = number(group["lr"]), group["lambd"]
        dtype = cresset.get_default_dtype()
        if "ax" not in state:
            state["step"] = cresset.tensor(0.0, dtype=dtype)
            state["eta"], state["mu"] = cresset.tensor(lr, dtype=dtype), cresset.ones((), dtype=dtype)
            state["ax"] = cresset.zeros_like(param)
        t = count_step(state)
        eta, mu, average = state["eta"].item(), state["mu"].item(), state["ax"]
        if group["weight_decay"]:
            grad = grad.add(param, alpha=group["weight_decay"])
        param.mul_(1 - lambd * eta)
        param.add_(grad, alpha=-eta)
        if mu != 1:
            average.add_(param.sub(average).mul_(mu))
        else:
            average.copy_(param)
        state["eta"].fill_(lr / ((1 + lambd * lr * t) ** group["alpha"]))
        state["mu"].fill_(1 / max(1, t - group["t0"]))
