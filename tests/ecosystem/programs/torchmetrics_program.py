"""torchmetrics: over batches, the numbers that scikit-learn gives at once; text and regression."""

import numpy as np
import sklearn.metrics as reference
import torch
import torchmetrics
from torchmetrics import classification, regression, text

torch.manual_seed(0)
truth, scores = torch.randint(0, 3, (60,)), torch.randn(60, 3).softmax(-1)
guess = scores.argmax(1)
t, g, s = truth.numpy(), guess.numpy(), scores.numpy()


def batched(metric, *inputs):
    for start in range(0, 60, 20):
        metric.update(*(value[start : start + 20] for value in inputs))
    return np.asarray(metric.compute(), dtype=np.float64)


def same(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


same(batched(classification.MulticlassAccuracy(3, average="micro"), guess, truth), reference.accuracy_score(t, g))
same(batched(classification.MulticlassAccuracy(3), guess, truth), reference.balanced_accuracy_score(t, g))
for average in ("macro", "weighted", "none"):
    a = None if average == "none" else average
    same(
        batched(classification.MulticlassF1Score(3, average=average), guess, truth), reference.f1_score(t, g, average=a)
    )
    same(
        batched(classification.MulticlassPrecision(3, average=average), guess, truth),
        reference.precision_score(t, g, average=a),
    )
    same(
        batched(classification.MulticlassRecall(3, average=average), guess, truth),
        reference.recall_score(t, g, average=a),
    )
same(batched(classification.MulticlassConfusionMatrix(3), guess, truth), reference.confusion_matrix(t, g))
same(batched(classification.MulticlassCohenKappa(3), guess, truth), reference.cohen_kappa_score(t, g))
same(batched(classification.MulticlassMatthewsCorrCoef(3), guess, truth), reference.matthews_corrcoef(t, g))
same(batched(classification.MulticlassAUROC(3), scores, truth), reference.roc_auc_score(t, s, multi_class="ovr"))
binary, chance = (truth > 0).long(), scores[:, 1] + scores[:, 2]
b, c = binary.numpy(), chance.numpy()
same(batched(classification.BinaryAUROC(), chance, binary), reference.roc_auc_score(b, c))
same(batched(classification.BinaryAveragePrecision(), chance, binary), reference.average_precision_score(b, c))
same(batched(classification.BinaryJaccardIndex(), chance, binary), reference.jaccard_score(b, c > 0.5))
same(classification.BinaryROC()(chance, binary)[0], reference.roc_curve(b, c, drop_intermediate=False)[0])

wanted, found = torch.rand(60) + 0.5, torch.rand(60) + 0.5
w, f = wanted.numpy(), found.numpy()
same(batched(regression.MeanSquaredError(), found, wanted), reference.mean_squared_error(w, f))
same(batched(regression.MeanAbsoluteError(), found, wanted), reference.mean_absolute_error(w, f))
same(batched(regression.R2Score(), found, wanted), reference.r2_score(w, f))
same(batched(regression.ExplainedVariance(), found, wanted), reference.explained_variance_score(w, f))
same(batched(regression.MeanSquaredLogError(), found, wanted), reference.mean_squared_log_error(w, f))
same(batched(regression.MeanAbsolutePercentageError(), found, wanted), reference.mean_absolute_percentage_error(w, f))
same(batched(regression.PearsonCorrCoef(), found, wanted), np.corrcoef(w, f)[0, 1])

assert text.BLEUScore()(["the cat is here"], [["the cat is here"]]).item() == 1.0
assert abs(text.WordErrorRate()(["a b c d"], ["a x c d"]).item() - 0.25) < 1e-6
assert abs(text.CharErrorRate()(["abcd"], ["abxd"]).item() - 0.25) < 1e-6
assert abs(text.Perplexity()(torch.zeros(1, 4, 5), torch.zeros(1, 4, dtype=torch.int64)).item() - 5) < 1e-4
metrics = torchmetrics.MetricCollection([classification.MulticlassAccuracy(3), classification.MulticlassF1Score(3)])
metrics.update(guess, truth)
assert set(metrics.compute()) == {"MulticlassAccuracy", "MulticlassF1Score"}
mean = torchmetrics.MeanMetric()
mean.update(torch.tensor([1.0, 3.0]), weight=torch.tensor([3.0, 1.0]))
assert mean.compute().item() == 1.5
