"""Metrics of one batch as functions; each is its class, updated once."""

from .averages import MeanSquaredError, Perplexity
from .classification import AUROC, F1, Accuracy, ConfusionMatrix, Precision, Recall

__all__ = [
    "accuracy",
    "auroc",
    "confusion_matrix",
    "f1_score",
    "mean_squared_error",
    "perplexity",
    "precision",
    "recall",
]


def _once(metric, preds, target):
    metric.update(preds, target)
    return metric.compute()


def accuracy(preds, target, task=None, num_classes=None, average="", *, top_k=1, ignore_index=None):
    """The share of samples that were called right; see Accuracy.

    >>> cresset.metrics.functional.accuracy(cresset.tensor([0, 1, 1, 0]), cresset.tensor([0, 1, 0, 0]))
    tensor(0.7500)
    """
    return _once(Accuracy(task, num_classes, average, top_k=top_k, ignore_index=ignore_index), preds, target)


def precision(preds, target, task=None, num_classes=None, average="", *, ignore_index=None):
    """Of the samples that were called a class, the share that is of it; see Precision.

    >>> cresset.metrics.functional.precision(cresset.tensor([1, 1, 0]), cresset.tensor([1, 0, 0]), task="binary")
    tensor(0.5000)
    """
    return _once(Precision(task, num_classes, average, ignore_index=ignore_index), preds, target)


def recall(preds, target, task=None, num_classes=None, average="", *, ignore_index=None):
    """Of the samples of a class, the share that was called so; see Recall.

    >>> cresset.metrics.functional.recall(cresset.tensor([1, 1, 0]), cresset.tensor([1, 0, 0]), task="binary")
    tensor(1.)
    """
    return _once(Recall(task, num_classes, average, ignore_index=ignore_index), preds, target)


def f1_score(preds, target, task=None, num_classes=None, average="", *, ignore_index=None):
    """The harmonic mean of precision and recall; see F1.

    >>> cresset.metrics.functional.f1_score(cresset.tensor([1, 1, 0]), cresset.tensor([1, 0, 0]), task="binary")
    tensor(0.6667)
    """
    return _once(F1(task, num_classes, average, ignore_index=ignore_index), preds, target)


def confusion_matrix(preds, target, task=None, num_classes=None, *, ignore_index=None):
    """How often a sample of class `row` was taken for class `column`; see ConfusionMatrix.

    >>> cresset.metrics.functional.confusion_matrix(cresset.tensor([1, 1, 0]), cresset.tensor([1, 0, 0]), num_classes=2)
    tensor([[1, 1],
            [0, 1]])
    """
    return _once(ConfusionMatrix(task, num_classes, ignore_index=ignore_index), preds, target)


def auroc(preds, target, task=None, num_classes=None, average="macro"):
    """The area under the curve of hits against false alarms; see AUROC.

    >>> cresset.metrics.functional.auroc(cresset.tensor([0.1, 0.4, 0.35, 0.8]), cresset.tensor([0, 0, 1, 1]))
    tensor(0.7500)
    """
    return _once(AUROC(task, num_classes, average), preds, target)


def mean_squared_error(preds, target, squared=True):
    """The mean of (prediction - target)²; its root with `squared=False`.

    >>> cresset.metrics.functional.mean_squared_error(cresset.tensor([1.0, 3.0]), cresset.tensor([0.0, 0.0]))
    tensor(5.)
    """
    return _once(MeanSquaredError(squared), preds, target)


def perplexity(preds, target, ignore_index=None):
    """exp of the mean negative log-likelihood of the target tokens; see Perplexity.

    >>> cresset.metrics.functional.perplexity(cresset.zeros(1, 3, 4), cresset.tensor([[0, 1, 2]]))
    tensor(4.)
    """
    return _once(Perplexity(ignore_index), preds, target)
