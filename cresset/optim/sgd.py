"""Stochastic gradient descent."""

from .optimizer import ByParameter, check_at_least_zero, check_lr, number


class SGD(ByParameter):
    """w -= lr * g, with momentum b = momentum * b + (1 - dampening) * g in place of g.

    Args:
        momentum, dampening: of the running gradient b, which starts as the first gradient.
        weight_decay: adds weight_decay * w to g.
        nesterov: use g + momentum * b in place of b.
        maximize: go up instead of down.

    >>> w = nn.Parameter(cresset.tensor([3.0]))
    >>> w.grad = cresset.tensor([2.0])
    >>> optim.SGD([w], lr=0.5).step()
    >>> w.item()
    2.0
    """

    def __init__(
        self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False, foreach=None,
        differentiable=False, fused=None,
    ):  # fmt: skip
        check_lr(lr)
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        check_at_least_zero(weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
            "maximize": maximize, "foreach": foreach, "differentiable": differentiable, "fused": fused,
        })  # fmt: skip

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("nesterov", False)
            group.setdefault("maximize", False)
            group.setdefault("foreach", None)
            group.setdefault("differentiable", False)
            group.setdefault("fused", False)

    def _update(self, param, grad, state, group):
        momentum, decay = group["momentum"], group["weight_decay"]
        if decay:
            grad = grad.add(param, alpha=decay)
        if momentum:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = grad.clone().detach()
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
        param.add_(grad, alpha=-number(group["lr"]))
