"""Metrics of classification, all but the area under the curve computed from one table: how often class i was taken for
class j.
"""

import cresset

from .metric import Metric


def _classes(preds, target):
    """Predicted classes: of logits or probabilities (N, C, ...) the largest, of scores in two classes those above a
    half.
    """
    if preds.dim() == target.dim() + 1:
        return preds.argmax(1)
    if preds.is_floating_point():
        if preds.numel() and (preds.min() < 0 or preds.max() > 1):
            preds = preds.sigmoid()
        return (preds > 0.5).long()
    return preds


class ConfusionMatrix(Metric):
    """How often a sample of class `row` was taken for class `column`.

    >>> matrix = cresset.metrics.ConfusionMatrix(num_classes=2)
    >>> matrix.update(cresset.tensor([1, 1, 0]), cresset.tensor([1, 0, 0]))
    >>> matrix.compute()
    tensor([[1, 1],
            [0, 1]])
    """

    sums: tuple[str, ...] = ("table",)

    def __init__(self, task=None, num_classes=None, *, ignore_index=None):
        num_classes = 2 if task == "binary" and num_classes is None else num_classes
        if isinstance(task, int):
            task, num_classes = None, task
        if task not in (None, "binary", "multiclass"):
            raise ValueError(f"{type(self).__name__}: task should be 'binary' or 'multiclass', got {task!r}")
        if not isinstance(num_classes, int) or num_classes < 2:
            raise ValueError(
                f"{type(self).__name__}: num_classes should be an integer of at least 2, got {num_classes!r}"
            )
        self.num_classes, self.ignore_index = num_classes, ignore_index
        super().__init__()

    def reset(self):
        self.table = cresset.zeros(self.num_classes, self.num_classes, dtype=cresset.int64)

    def update(self, preds, target):
        target = target.detach().cpu()
        found = _classes(preds.detach().cpu(), target)
        if found.shape != target.shape:
            raise ValueError(
                f"{type(self).__name__}: predictions of shape {tuple(preds.shape)} do not fit targets of shape "
                f"{tuple(target.shape)}"
            )
        found, target = found.reshape(-1).long(), target.reshape(-1).long()
        if self.ignore_index is not None:
            kept = target != self.ignore_index
            found, target = found[kept], target[kept]
        for name, classes in (("prediction", found), ("target", target)):
            if classes.numel() and not 0 <= int(classes.min()) <= int(classes.max()) < self.num_classes:
                raise ValueError(
                    f"{type(self).__name__}: a {name} of class "
                    f"{int(classes.max() if classes.max() >= self.num_classes else classes.min())}, but there are "
                    f"{self.num_classes} classes"
                )
        counts = cresset.bincount(target * self.num_classes + found, minlength=self.num_classes**2)
        self.table = self.table + counts.view(self.num_classes, self.num_classes)

    def compute(self):
        return self.table.clone()

    def __repr__(self):
        return f"{type(self).__name__}(num_classes={self.num_classes})"


class _OfTheTable(ConfusionMatrix):
    """A quotient for each class, averaged: 'micro' over samples, 'macro' over classes, 'weighted' by how many samples a
    class has.
    """

    default_average = "macro"

    def __init__(self, task=None, num_classes=None, average="", *, ignore_index=None):
        self.average = self.default_average if average == "" else average
        if task == "binary" and average == "":
            self.average = "binary"
        if self.average not in ("micro", "macro", "weighted", "binary", "none", None):
            raise ValueError(
                f"{type(self).__name__}: average should be 'micro', 'macro', 'weighted' or 'none', got {average!r}"
            )
        super().__init__(task, num_classes, ignore_index=ignore_index)

    def compute(self):
        table = self.table.double()
        right, found, there = table.diagonal(), table.sum(0), table.sum(1)
        if self.average == "micro":
            return self.quotient(right.sum(), found.sum(), there.sum()).float()
        each = self.quotient(right, found, there)
        if self.average == "binary":
            return each[1].float()
        if self.average in ("none", None):
            return each.float()
        seen = (found + there > 0).double()  # a class that nobody named and that does not occur says nothing
        weights = seen if self.average == "macro" else there
        return ((each * weights).sum() / weights.sum()).float() if weights.sum() > 0 else cresset.tensor(float("nan"))


def _divide(a, b):
    return cresset.where(b > 0, a / b.clamp_min(1), cresset.zeros_like(a / 1))


class Precision(_OfTheTable):
    """Of the samples that were called a class, the share that is of it.

    >>> precision = cresset.metrics.Precision(num_classes=2, average="none")
    >>> precision.update(cresset.tensor([1, 1, 0]), cresset.tensor([1, 0, 0]))
    >>> precision.compute()
    tensor([1.0000, 0.5000])
    """

    @staticmethod
    def quotient(right, found, _there):
        return _divide(right, found)


class Recall(_OfTheTable):
    """Of the samples of a class, the share that was called so."""

    @staticmethod
    def quotient(right, _found, there):
        return _divide(right, there)


class F1(_OfTheTable):
    """The harmonic mean of precision and recall.

    >>> f1 = cresset.metrics.F1(num_classes=2)
    >>> f1.update(cresset.tensor([1, 1, 0]), cresset.tensor([1, 0, 0]))
    >>> f1.compute()
    tensor(0.6667)
    """

    @staticmethod
    def quotient(right, found, there):
        return _divide(2 * right, found + there)


F1Score = F1


class Accuracy(_OfTheTable):
    """The share of samples that were called right; with `top_k` of those whose class is among the k likeliest.

    >>> accuracy = cresset.metrics.Accuracy()
    >>> accuracy.update(cresset.tensor([[0.1, 0.9], [0.8, 0.2]]), cresset.tensor([1, 1]))
    >>> accuracy.compute()
    tensor(0.5000)
    """

    default_average = "micro"
    sums = ("right", "count", "table")

    def __init__(self, task=None, num_classes=None, average="", *, top_k=1, ignore_index=None):
        self.top_k, self.counts_only = top_k, num_classes is None and task != "binary"
        average = "micro" if task == "binary" and average == "" else average
        super().__init__(task, 2 if self.counts_only else num_classes, average, ignore_index=ignore_index)

    def reset(self):
        self.right = self.count = 0
        super().reset()

    def update(self, preds, target):
        if not self.counts_only and self.top_k == 1 and self.average != "micro":
            return super().update(preds, target)
        target = target.detach().cpu()
        preds = preds.detach().cpu()
        if self.top_k > 1:
            hit = (preds.topk(self.top_k, 1).indices == target.unsqueeze(1)).any(1)
        else:
            found = _classes(preds, target)
            if found.shape != target.shape:
                raise ValueError(
                    f"Accuracy: predictions of shape {tuple(preds.shape)} do not fit targets of shape "
                    f"{tuple(target.shape)}"
                )
            hit = found == target
        kept = cresset.ones_like(hit) if self.ignore_index is None else target != self.ignore_index
        self.right += int((hit & kept).sum())
        self.count += int(kept.sum())

    quotient = staticmethod(Recall.quotient)

    def compute(self):
        if self.count:
            return cresset.tensor(self.right / self.count)
        return super().compute()

    def __repr__(self):
        return f"Accuracy(top_k={self.top_k})"


class AUROC(Metric):
    """The area under the curve of hits against false alarms: the chance that a positive sample scores above a negative
    one.

    >>> area = cresset.metrics.AUROC()
    >>> area.update(cresset.tensor([0.1, 0.4, 0.35, 0.8]), cresset.tensor([0, 0, 1, 1]))
    >>> area.compute()
    tensor(0.7500)
    """

    def __init__(self, task=None, num_classes=None, average="macro"):
        if task not in (None, "binary", "multiclass"):
            raise ValueError(f"AUROC: task is 'binary' or 'multiclass', got {task!r}")
        self.task, self.num_classes, self.average = task, num_classes, average
        super().__init__()

    sums = ("scores", "targets")

    def reset(self):
        self.scores, self.targets = [], []

    def update(self, preds, target):
        if preds.shape[0] != target.shape[0] or preds.dim() not in (1, 2):
            raise ValueError(
                f"AUROC: scores of shape {tuple(preds.shape)} do not fit targets of shape {tuple(target.shape)}; "
                "expected (N,) or (N, C) and (N,)"
            )
        if self.task is not None and self.task != ("binary" if preds.dim() == 1 else "multiclass"):
            raise ValueError(f"AUROC: task={self.task!r} does not fit scores of shape {tuple(preds.shape)}")
        if self.num_classes is not None and preds.dim() == 2 and preds.shape[1] != self.num_classes:
            raise ValueError(f"AUROC: num_classes={self.num_classes} does not fit scores of shape {tuple(preds.shape)}")
        self.scores = [*self.scores, preds.detach().cpu().double()]
        self.targets = [*self.targets, target.detach().cpu().long()]

    def compute(self):
        if not self.scores:
            return cresset.tensor(float("nan"))
        scores, targets = cresset.cat(self.scores), cresset.cat(self.targets)
        if scores.dim() == 1:
            return _area(scores, targets == 1).float()
        areas = cresset.stack([_area(scores[:, k], targets == k) for k in range(scores.shape[1])])
        if self.average in (None, "none"):
            return areas.float()
        present = areas.isfinite()
        weights = (
            present.double()
            if self.average == "macro"
            else cresset.bincount(targets, minlength=len(areas)).double() * present
        )
        return ((areas.nan_to_num() * weights).sum() / weights.sum()).float()


def _area(scores, positive):
    """By ranks; samples with equal scores share the mean of their ranks."""
    positives, negatives = int(positive.sum()), int((~positive).sum())
    if not positives or not negatives:
        return cresset.tensor(float("nan"), dtype=cresset.float64)
    _, group, sizes = scores.unique(return_inverse=True, return_counts=True)
    last = sizes.cumsum(0).double()
    ranks = (last - (sizes.double() - 1) / 2)[group]
    return (ranks[positive].sum() - positives * (positives + 1) / 2) / (positives * negatives)
