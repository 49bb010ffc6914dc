"""Adam, and AdamW, which keeps the weight decay apart from the gradient."""

import cresset

from .optimizer import ByParameter, check_at_least_zero, check_betas, check_lr, count_step, number


class Adam(ByParameter):
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

    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *, foreach=None, maximize=False,
        capturable=False, differentiable=False, fused=None, decoupled_weight_decay=False,
    ):  # fmt: skip
        check_lr(lr)
        check_at_least_zero(epsilon=eps)
        check_betas(betas)
        check_at_least_zero(weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad, "maximize": maximize,
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

    def _update(self, param, grad, state, group):
        lr, decay, (beta1, beta2) = (
            number(group["lr"]),
            group["weight_decay"],
            (number(beta) for beta in group["betas"]),
        )
        t = count_step(state)
        if t == 1 and "exp_avg" not in state:
            state["exp_avg"] = cresset.zeros_like(param, memory_format=cresset.preserve_format)
            state["exp_avg_sq"] = cresset.zeros_like(param, memory_format=cresset.preserve_format)
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = cresset.zeros_like(param, memory_format=cresset.preserve_format)
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        if decay:
            if group["decoupled_weight_decay"]:
                param.mul_(1 - lr * decay)
            else:
                grad = grad.add(param, alpha=decay)
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if group["amsgrad"]:
            largest = state["max_exp_avg_sq"]
            square = largest.copy_(cresset.maximum(largest, square))
        denominator = (square.sqrt() / (1 - beta2**t) ** 0.5).add_(group["eps"])
        param.addcdiv_(mean, denominator, value=-lr / (1 - beta1**t))


class AdamW(Adam):
    """Adam that shrinks the weights by lr * weight_decay, apart from the gradient."""

    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *, maximize=False, foreach=None,
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
