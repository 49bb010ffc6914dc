"""Adagrad."""

import cresset

from .by_formula import ByFormula, begin
from .optimizer import check_at_least_zero, check_flags, check_lr, number


class Adagrad(ByFormula):
    """w -= lr * g / (sqrt(s) + eps), with s the sum of all g^2.

    Args:
        lr_decay: the rate falls as lr / (1 + steps * lr_decay).
        weight_decay: adds weight_decay * w to g.
        initial_accumulator_value: where s starts.
    """

    _formula = "adagrad"

    def __init__(
        self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, foreach=None, *,
        maximize=False, differentiable=False, fused=None,
    ):  # fmt: skip
        check_lr(lr)
        check_flags(foreach, fused, differentiable)
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
                self._start(self.state[param], param, group)

    def share_memory(self):
        """Move the sums to memory that processes share."""
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["sum"].share_memory_()

    def _start(self, state, param, group):
        begin(state, param, "step")
        if state.get("sum") is None:
            start = group["initial_accumulator_value"]
            start = complex(start, start) if param.is_complex() else start
            state["sum"] = cresset.full_like(param, start, memory_format=cresset.preserve_format)

    def _check_sparse(self, group):
        if group["weight_decay"]:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")

    def _update_sparse(self, param, grad, group):
        state = self.state[param]
        state["step"] += 1
        rate = number(group["lr"]) / (1 + (state["step"].item() - 1) * number(group["lr_decay"]))
        grad = -grad if group["maximize"] else grad
        state["sum"].add_(grad * grad)
        spread = state["sum"].sparse_mask(grad)._values().sqrt_().add_(group["eps"])
        param.add_(grad._with(grad.values() / spread), alpha=-rate)
