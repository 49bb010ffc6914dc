"""Metrics: small objects that are fed batch by batch with `update` and asked at the end with `compute`."""

from . import functional
from .averages import MeanMetric, MeanSquaredError, Perplexity
from .classification import AUROC, F1, Accuracy, ConfusionMatrix, F1Score, Precision, Recall
from .metric import Metric

__all__ = [
    "AUROC",
    "F1",
    "Accuracy",
    "ConfusionMatrix",
    "F1Score",
    "MeanMetric",
    "MeanSquaredError",
    "Metric",
    "Perplexity",
    "Precision",
    "Recall",
    "functional",
]
