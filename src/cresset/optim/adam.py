"""Adam, and AdamW, which keeps the weight decay apart from the gradient."""

import cresset

from .by_formula import ByFormula, begin
from .optimizer import check_at_least_zero, check_betas, check_flags, check_lr


class Adam(ByFormula):
    """w -= lr * m / (sqrt(v) + eps), with m and v the running means of g and g^2, corrected for their start at zero.

    Args:
        betas: how much of the old m and v is kept at each step.
        weight_decay: adds weight_decay * w to g; with `decoupled_weight_decay` shrinks w by lr * weight_decay instead.
        amsgrad: use the largest v so far.
        maximize: go up instead of down.

    >>> w = nn.Parameter(cresset.tensor([1.0]))
    >>> w.grad = cresset.tensor([5.0])
    >>> optim.Adam([w], lr=0.5).step()  # the first step is lr long, whatever the gradient
    >>> round(w.item(), 5)
    0.5
    """

    _formula = "adam"
    _about_sparse = ", please consider SparseAdam instead"

    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *, foreach=None,
        maximize=False,
        capturable=False, differentiable=False, fused=None, decoupled_weight_decay=False,
    ):  # fmt: skip
        check_lr(lr, foreach, capturable)
        check_flags(foreach, fused, differentiable)
        check_at_least_zero(epsilon=eps)
        check_betas(betas)
        check_at_least_zero(weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach, "capturable": capturable, "differentiable": differentiable, "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        })  # fmt: skip

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("amsgrad", False)
            group.setdefault("maximize", False)
            group.setdefault("foreach", None)
            group.setdefault("capturable", False)
            group.setdefault("differentiable", False)
            group.setdefault("decoupled_weight_decay", False)
            group.setdefault("fused", None)
            for param in group["params"]:
                kept = self.state.get(param, {})
                if kept and not isinstance(kept["step"], cresset.Tensor):
                    kept["step"] = cresset.tensor(float(kept["step"]))

    def _settings(self, group):
        beta1, beta2 = group["betas"]
        return int(bool(group["amsgrad"])), {"beta1": beta1, "beta2": beta2}

    def _start(self, state, param, group):
        begin(state, param, "step", "exp_avg", "exp_avg_sq")
        if group["amsgrad"]:
            begin(state, param, "max_exp_avg_sq")


class AdamW(Adam):
    """Adam that shrinks the weights by lr * weight_decay, apart from the gradient."""

    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *, maximize=False,
        foreach=None,
        capturable=False, differentiable=False, fused=None,
    ):  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable, fused=fused, decoupled_weight_decay=True,
        )  # fmt: skip

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
