"""Adafactor: for a matrix, the mean of g^2 is kept as a row and a column."""

import cresset

from .optimizer import ByParameter, check_at_least_zero, check_lr, count_step, number


class Adafactor(ByParameter):
    """Steps relative to the size of the parameter, with the mean of g^2 estimated from its row and column means.

    Args:
        beta2_decay: the power by which the running mean takes on less and less of the new g^2.
        eps: the smallest mean square (None: the dtype's machine epsilon) and the smallest size of a parameter.
        d: the largest root-mean-square of an update.
        weight_decay: shrinks w by lr * weight_decay.
    """

    def __init__(
        self,
        params,
        lr=1e-2,
        beta2_decay=-0.8,
        eps=(None, 1e-3),
        d=1.0,
        weight_decay=0.0,
        *,
        foreach=None,
        maximize=False,
    ):
        check_lr(lr)
        if beta2_decay > 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        check_at_least_zero(weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize,
        })  # fmt: skip

    def _update(self, param, grad, state, group):
        lr, (eps1, eps2), decay = number(group["lr"]), group["eps"], group["weight_decay"]
        if eps1 is None:
            eps1 = cresset.finfo(param.dtype).eps
        t = count_step(state)
        if t == 1:
            if grad.dim() > 1:
                rows, columns = list(grad.shape), list(grad.shape)
                rows[-1], columns[-2] = 1, 1
                state["row_var"], state["col_var"] = grad.new_zeros(rows), grad.new_zeros(columns)
            else:
                state["variance"] = cresset.zeros_like(grad, memory_format=cresset.preserve_format)
        taken = t ** group["beta2_decay"]
        size = max(eps2, param.norm(2).item() / param.numel() ** 0.5)
        rate = size * min(lr, 1 / t**0.5)
        if decay:
            param.mul_(1 - lr * decay)
        if grad.dim() > 1:
            rows, columns = state["row_var"], state["col_var"]
            rows.lerp_(grad.norm(dim=-1, keepdim=True).square_().div_(grad.size(-1)), taken)
            columns.lerp_(grad.norm(dim=-2, keepdim=True).square_().div_(grad.size(-2)), taken)
            estimate = rows @ columns
            estimate.div_(rows.mean(dim=-2, keepdim=True).clamp_(min=eps1))
        else:
            state["variance"].lerp_(grad * grad, taken)
            estimate = state["variance"].clone()
        update = estimate.clamp_(min=eps1 * eps1).rsqrt_().mul_(grad)
        too_large = max(1.0, update.norm(2).item() / (update.numel() ** 0.5 * group["d"]))
        param.add_(update, alpha=-rate / too_large)
