"""Muon: momentum whose matrix is made orthogonal before each step."""

import cresset

from .optimizer import ByParameter, check_lr, number


def _orthogonalized(matrix, coefficients, steps, eps):
    """Roughly the nearest orthogonal matrix, by a few steps of Newton and Schulz in bfloat16."""
    a, b, c = coefficients
    x = matrix.to(cresset.bfloat16)
    wide = x.size(0) <= x.size(1)
    x = x if wide else x.T
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = cresset.addmm(x, cresset.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x if wide else x.T


class Muon(ByParameter):
    """w -= lr * r * o, where o is the momentum made orthogonal; for matrices only.

    Args:
        weight_decay: shrinks w by lr * weight_decay.
        momentum, nesterov: of the running gradient.
        ns_coefficients, ns_steps, eps: of the iteration that makes it orthogonal.
        adjust_lr_fn: how r follows from the shape (A, B): "original" (sqrt(max(1, A / B)), the default) or
            "match_rms_adamw" (0.2 sqrt(max(A, B))).
    """

    _complex_as_pairs = False

    def __init__(
        self, params, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True, ns_coefficients=(3.4445, -4.775, 2.0315),
        eps=1e-7,
        ns_steps=5, adjust_lr_fn=None,
    ):  # fmt: skip
        check_lr(lr)
        if not momentum >= 0.0:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn is not None and adjust_lr_fn not in ("original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(params, {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn,
        })  # fmt: skip
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {param.size()}"
                    )

    def _update(self, param, grad, state, group):
        if cresset.is_complex(param):
            raise RuntimeError("Muon does not support complex parameters")
        lr, momentum = number(group["lr"]), group["momentum"]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = cresset.zeros_like(grad, memory_format=cresset.preserve_format)
        buffer = state["momentum_buffer"]
        buffer.lerp_(grad, 1 - momentum)
        update = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
        update = _orthogonalized(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rows, columns = param.shape
        ratio = (
            0.2 * max(rows, columns) ** 0.5
            if group["adjust_lr_fn"] == "match_rms_adamw"
            else max(1, rows / columns) ** 0.5
        )
        param.mul_(1 - lr * group["weight_decay"])
        param.add_(update.to(param.dtype), alpha=-lr * ratio)
