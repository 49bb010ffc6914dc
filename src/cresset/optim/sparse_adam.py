"""Adam for sparse gradients."""

import cresset

from .optimizer import Optimizer, check_betas, check_lr, number


class SparseAdam(Optimizer):
    """Adam that changes only the rows (elements) that a sparse gradient has, and their moments.

    Args:
        betas: how much of the old moments is kept at each step.
        maximize: go up instead of down.

    >>> table = nn.Embedding(4, 2, sparse=True)
    >>> optimizer = optim.SparseAdam(table.parameters(), lr=0.1)
    >>> table(cresset.tensor([1])).sum().backward()
    >>> optimizer.step()
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        check_lr(lr)
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        for group in self.param_groups:
            for place, param in enumerate(group["params"]):
                if param.layout != cresset.strided:
                    raise ValueError(f"Sparse params at indices [{place}]: SparseAdam requires dense parameter tensors")

    def step(self, closure=None):
        """Change all parameters that have a gradient.

        Args:
            closure: computes the loss and the gradients anew, and returns the loss.
        """
        loss = None
        if closure is not None:
            with cresset.enable_grad():
                loss = closure()
        with cresset.no_grad():
            for group in self.param_groups:
                for param in group["params"]:
                    if param.grad is not None:
                        self._update(param, param.grad, group)
        return loss

    def _update(self, param, grad, group):
        if grad.layout != cresset.sparse_coo:
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        state = self.state[param]
        if not state:
            state["step"] = 0
            state["exp_avg"], state["exp_avg_sq"] = cresset.zeros_like(param), cresset.zeros_like(param)
        state["step"] += 1
        grad = grad.coalesce()
        if grad._nnz() == 0:
            return
        places, values = tuple(grad.indices().unbind(0)), grad.values()
        values = -values if group["maximize"] else values
        (beta1, beta2), step = group["betas"], state["step"]
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        new_mean = mean[places].lerp_(values, 1 - beta1)
        new_square = square[places].lerp_(values * values, 1 - beta2)
        mean[places], square[places] = new_mean, new_square
        size = number(group["lr"]) * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        param.index_put_(places, new_mean.div_(new_square.sqrt_().add_(group["eps"])).mul_(-size), accumulate=True)
