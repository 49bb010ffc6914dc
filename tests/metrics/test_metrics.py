"""Metrics: values that can be counted by hand, batches that add up, bad input."""

import pytest

import cresset
from cresset import metrics

PREDS = cresset.tensor([0, 1, 2, 1, 0, 2])
TARGET = cresset.tensor([0, 1, 1, 1, 2, 2])
# class 0: 1 of 2 named right, all 1 found; class 1: 2 of 2, 2 of 3; class 2: 1 of 2, 1 of 2


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (metrics.Accuracy(), 4 / 6),
        (metrics.Accuracy(task="multiclass", num_classes=3, average="macro"), (1 + 2 / 3 + 1 / 2) / 3),
        (metrics.Precision(num_classes=3), (1 / 2 + 1 + 1 / 2) / 3),
        (metrics.Recall(num_classes=3), (1 + 2 / 3 + 1 / 2) / 3),
        (metrics.F1(num_classes=3), (2 / 3 + 4 / 5 + 1 / 2) / 3),
        (metrics.F1(num_classes=3, average="micro"), 4 / 6),
        (metrics.F1(num_classes=3, average="weighted"), (1 * 2 / 3 + 3 * 4 / 5 + 2 * 1 / 2) / 6),
    ],
    ids=repr,
)
def test_value_is_the_same_in_one_batch_or_several(metric, expected):
    metric.update(PREDS, TARGET)
    assert metric.compute().item() == pytest.approx(expected)
    metric.reset()
    for k in range(0, 6, 2):
        metric.update(PREDS[k : k + 2], TARGET[k : k + 2])
    assert metric.compute().item() == pytest.approx(expected)


def test_a_call_gives_the_batch_and_keeps_the_sum():
    accuracy = metrics.Accuracy()
    assert accuracy(cresset.tensor([1]), cresset.tensor([1])).item() == 1
    assert accuracy(cresset.tensor([1]), cresset.tensor([0])).item() == 0
    assert accuracy.compute().item() == 0.5


def test_top_k():
    accuracy = metrics.Accuracy(top_k=2)
    accuracy.update(cresset.tensor([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]), cresset.tensor([1, 0]))
    assert accuracy.compute().item() == 0.5


def test_binary_scores_are_cut_at_a_half():
    f1 = metrics.F1(task="binary")
    f1.update(cresset.tensor([0.9, 0.2, 0.6]), cresset.tensor([1, 1, 1]))
    assert f1.compute().item() == pytest.approx(0.8)


def test_area_of_several_classes():
    area = metrics.AUROC(num_classes=2)
    area.update(cresset.tensor([[0.9, 0.1], [0.6, 0.4], [0.65, 0.35], [0.2, 0.8]]), cresset.tensor([0, 0, 1, 1]))
    assert area.compute().item() == pytest.approx(0.75)


def test_equal_scores_count_half():
    area = metrics.AUROC()
    area.update(cresset.tensor([0.5, 0.5]), cresset.tensor([0, 1]))
    assert area.compute().item() == 0.5


def test_perplexity_of_equal_chances_is_their_number():
    perplexity = metrics.Perplexity(ignore_index=0)
    perplexity.update(cresset.zeros(2, 3, 7), cresset.tensor([[0, 1, 2], [3, 4, 0]]))
    assert perplexity.compute().item() == pytest.approx(7)
    assert perplexity.count == 4


def test_states_go_into_checkpoints():
    first, second = metrics.Accuracy(), metrics.Accuracy()
    first.update(PREDS, TARGET)
    second.load_state_dict(first.state_dict())
    assert second.compute() == first.compute()


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="num_classes"):
        metrics.F1()
    with pytest.raises(ValueError, match="class 5, but there are 3"):
        metrics.F1(num_classes=3).update(cresset.tensor([5]), cresset.tensor([0]))
    with pytest.raises(ValueError, match=r"\(4,\) do not fit targets of shape \(3,\)"):
        metrics.Accuracy().update(cresset.ones(4), cresset.ones(3))
    with pytest.raises(ValueError, match="average"):
        metrics.Recall(num_classes=2, average="median")


def test_the_task_of_an_area_is_that_of_its_scores():
    with pytest.raises(ValueError, match="task is 'binary' or 'multiclass'"):
        metrics.AUROC(task="other")
    with pytest.raises(ValueError, match="task='binary' does not fit"):
        metrics.AUROC(task="binary").update(cresset.rand(3, 2), cresset.tensor([0, 1, 1]))
    with pytest.raises(ValueError, match="num_classes=3 does not fit"):
        metrics.AUROC(task="multiclass", num_classes=3).update(cresset.rand(3, 2), cresset.tensor([0, 1, 1]))
