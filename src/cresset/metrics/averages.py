"""Means over all elements of all batches."""

import cresset

from .metric import Metric


class MeanMetric(Metric):
    """The weighted mean of the values that were given.

    >>> mean = cresset.metrics.MeanMetric()
    >>> mean.update(cresset.tensor([1.0, 2.0]))
    >>> mean.update(6.0)
    >>> mean.compute()
    tensor(3.)
    """

    sums = ("total", "weight")

    def reset(self):
        self.total = self.weight = 0.0

    def update(self, value, weight=1.0):
        value = cresset.as_tensor(value, dtype=cresset.float64).detach()
        weight = cresset.as_tensor(weight, dtype=cresset.float64).broadcast_to(value.shape)
        self.total += (value * weight).sum().item()
        self.weight += weight.sum().item()

    def compute(self):
        return cresset.tensor(self.total / self.weight if self.weight else float("nan"))


class MeanSquaredError(Metric):
    """The mean of (prediction - target)²; its root with `squared=False`."""

    sums = ("total", "count")

    def __init__(self, squared=True):
        self.squared = squared
        super().__init__()

    def reset(self):
        self.total, self.count = 0.0, 0

    def update(self, preds, target):
        if preds.shape != target.shape:
            raise ValueError(
                f"MeanSquaredError: predictions of shape {tuple(preds.shape)} and targets of shape "
                f"{tuple(target.shape)}"
            )
        self.total += (preds.detach().double() - target.double()).square().sum().item()
        self.count += target.numel()

    def compute(self):
        mean = self.total / self.count if self.count else float("nan")
        return cresset.tensor(mean if self.squared else mean**0.5)


class Perplexity(Metric):
    """exp of the mean negative log-likelihood of the target tokens.

    >>> perplexity = cresset.metrics.Perplexity()
    >>> perplexity.update(cresset.zeros(1, 3, 4), cresset.tensor([[0, 1, 2]]))  # four equally likely tokens
    >>> perplexity.compute()
    tensor(4.)
    """

    sums = ("total", "count")

    def __init__(self, ignore_index=None):
        self.ignore_index = ignore_index
        super().__init__()

    def reset(self):
        self.total, self.count = 0.0, 0

    def update(self, preds, target):
        """`preds` are logits (..., vocabulary), `target` are tokens (...)."""
        if preds.shape[:-1] != target.shape:
            raise ValueError(
                f"Perplexity: logits of shape {tuple(preds.shape)} do not fit targets of shape {tuple(target.shape)}; "
                f"expected {(*target.shape, preds.shape[-1])}"
            )
        ignored = -100 if self.ignore_index is None else self.ignore_index
        flat = target.reshape(-1)
        loss = cresset.nn.functional.cross_entropy(
            preds.detach().reshape(-1, preds.shape[-1]).float(), flat, ignore_index=ignored, reduction="sum"
        )
        self.total += loss.item()
        self.count += int((flat != ignored).sum())

    def compute(self):
        return cresset.tensor(self.total / self.count if self.count else float("nan")).exp()
