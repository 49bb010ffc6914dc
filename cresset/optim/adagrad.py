"""Adagrad."""

import cresset

from .optimizer import ByParameter, check_at_least_zero, check_lr, count_step, number


class Adagrad(ByParameter):
    """w -= lr * g / (sqrt(s) + eps), with s the sum of all g^2.

    Args:
        lr_decay: the rate falls as lr / (1 + steps * lr_decay).
        weight_decay: adds weight_decay * w to g.
        initial_accumulator_value: where s starts.
    """

    def __init__(
        self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, foreach=None, *,
        maximize=False, differentiable=False, fused=None,
    ):  # fmt: skip
        check_lr(lr)
        check_at_least_zero(
            lr_decay=lr_decay, weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value, epsilon=eps,
        )  # fmt: skip
        super().__init__(params, {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "fused": fused,
        })  # fmt: skip
        for group in self.param_groups:
            for param in group["params"]:
                state = self.state[param]
                start = (
                    complex(initial_accumulator_value, initial_accumulator_value)
                    if param.is_complex()
                    else initial_accumulator_value
                )
                state["step"] = cresset.tensor(0.0, dtype=cresset.get_default_dtype())
                state["sum"] = cresset.full_like(param, start, memory_format=cresset.preserve_format)

    def share_memory(self):
        """Move the sums to memory that processes share."""
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["sum"].share_memory_()

    def _update(self, param, grad, state, group):
        t = count_step(state)
        if group["weight_decay"]:
            grad = grad.add(param, alpha=group["weight_decay"])
        rate = number(group["lr"]) / (1 + (t - 1) * group["lr_decay"])
        total = state["sum"]
        total.addcmul_(grad, grad, value=1)
        param.addcdiv_(grad, total.sqrt().add_(group["eps"]), value=-rate)
