"""Losses."""

import math
from typing import Optional

import cresset as torch
from cresset import Tensor, nn
from cresset.nn import functional as F

aten = torch.ops.aten


def number(reduction: str) -> int:
    if reduction == "none":
        return 0
    if reduction == "mean":
        return 1
    if reduction == "sum":
        return 2
    raise ValueError(f"{reduction} is not a valid value for reduction")


def reduced(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    return loss


def older(size_average: Optional[bool], reduce: Optional[bool], reduction: str) -> str:
    """The reduction that the two older flags meant."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is not None and not reduce:
        return "none"
    if size_average is not None and not size_average:
        return "sum"
    return "mean"


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    weight: Optional[Tensor] = None,
) -> Tensor:
    reduction = older(size_average, reduce, reduction)
    if weight is not None:
        return _weighted(aten.l1_loss(input, target, 0), weight, reduction)
    return aten.l1_loss(input, target, number(reduction))


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    weight: Optional[Tensor] = None,
) -> Tensor:
    reduction = older(size_average, reduce, reduction)
    if weight is not None:
        return _weighted(aten.mse_loss(input, target, 0), weight, reduction)
    return aten.mse_loss(input, target, number(reduction))


def _weighted(loss: Tensor, weight: Tensor, reduction: str) -> Tensor:
    loss = loss * weight
    if reduction == "mean":
        return loss.sum() / weight.sum()
    return reduced(loss, reduction)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Optional[Tensor] = None
) -> Tensor:
    if weight is not None:
        return _weighted(aten.huber_loss(input, target, 0, delta), weight, reduction)
    return aten.huber_loss(input, target, number(reduction), delta)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    reduction = older(size_average, reduce, reduction)
    if beta == 0.0:
        return aten.l1_loss(input, target, number(reduction))
    return aten.smooth_l1_loss(input, target, number(reduction), beta)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    return aten.soft_margin_loss(input, target, number(older(size_average, reduce, reduction)))


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    ignore_index: int = -100,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    return aten.cross_entropy_loss(
        input, target, weight, number(older(size_average, reduce, reduction)), ignore_index, label_smoothing
    )


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    ignore_index: int = -100,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    return aten.nll_loss_nd(input, target, weight, number(older(size_average, reduce, reduction)), ignore_index)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Optional[bool] = None,
    eps: float = 1e-8,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    return aten.poisson_nll_loss(input, target, log_input, full, eps, number(older(size_average, reduce, reduction)))


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif not (input.size()[:-1] == var.size()[:-1] and var.size(-1) == 1):
            raise ValueError("var is of incorrect size")
    if bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    var = var.clone()
    with torch.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (torch.log(var) + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    reduction = older(size_average, reduce, reduction)
    if reduction == "batchmean":
        total = aten.kl_div(input, target, 2, log_target=log_target)
        return total / input.size(0) if input.dim() != 0 else total
    return aten.kl_div(input, target, number(reduction), log_target=log_target)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is "
            "deprecated. Please ensure they have the same size."
        )
    return aten.binary_cross_entropy(input, target, weight, number(older(size_average, reduce, reduction)))


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    pos_weight: Optional[Tensor] = None,
) -> Tensor:
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    return aten.binary_cross_entropy_with_logits(
        input, target, weight, pos_weight, number(older(size_average, reduce, reduction))
    )


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    return aten.margin_ranking_loss(input1, input2, target, margin, number(older(size_average, reduce, reduction)))


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    return aten.hinge_embedding_loss(input, target, margin, number(older(size_average, reduce, reduction)))


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    return aten.multilabel_margin_loss(input, target, number(older(size_average, reduce, reduction)))


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    loss = -(target * aten.log_sigmoid(input) + (1 - target) * aten.log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    loss = loss.mean(dim=-1)
    return reduced(loss, older(size_average, reduce, reduction))


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    return aten.cosine_embedding_loss(input1, input2, target, margin, number(older(size_average, reduce, reduction)))


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    if p != 1 and p != 2:
        raise ValueError("only p == 1 and p == 2 supported")
    return aten.multi_margin_loss(input, target, p, margin, weight, number(older(size_average, reduce, reduction)))


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    return aten.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, number(older(size_average, reduce, reduction))
    )


def triplet_margin_with_distance_forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    near = self.distance_function(anchor, positive)
    far = self.distance_function(anchor, negative)
    if self.swap:
        far = torch.minimum(far, self.distance_function(positive, negative))
    return reduced(torch.clamp_min(near - far + self.margin, 0), self.reduction)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    return aten.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, number(reduction), zero_infinity)


STANDS_FOR = {
    "methods": {(nn.TripletMarginWithDistanceLoss, "forward"): triplet_margin_with_distance_forward},
    F: {
        function.__name__: function
        for function in (
            l1_loss, mse_loss, huber_loss, smooth_l1_loss, soft_margin_loss, cross_entropy, nll_loss, poisson_nll_loss,
            gaussian_nll_loss, kl_div, binary_cross_entropy,
            binary_cross_entropy_with_logits, margin_ranking_loss, hinge_embedding_loss, multilabel_margin_loss,
            multilabel_soft_margin_loss, cosine_embedding_loss, multi_margin_loss,
            triplet_margin_loss, ctc_loss,
        )
    }
}  # fmt: skip
