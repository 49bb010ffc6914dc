"""NAdam: Adam with Nesterov's momentum."""

from .by_formula import ByFormula, begin, one_number
from .optimizer import check_at_least_zero, check_betas, check_lr


class NAdam(ByFormula):
    """Adam that looks one step ahead, with a momentum that grows by a schedule.

    Args:
        betas: how much of the old means of g and g^2 is kept at each step.
        weight_decay: adds weight_decay * w to g; with `decoupled_weight_decay` shrinks w instead.
        momentum_decay: how fast the momentum approaches betas[0].
    """

    _formula = "nadam"

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
            "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize, "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        })  # fmt: skip

    def _settings(self, group):
        beta1, beta2 = group["betas"]
        return 0, {"beta1": beta1, "beta2": beta2}

    def _start(self, state, param, group):
        begin(state, param, "step")
        state.setdefault("mu_product", one_number(1))
        begin(state, param, "exp_avg", "exp_avg_sq")
