"""Counting elements in bins."""

import pytest

import cresset


def test_histograms_count_every_element_once():
    x = cresset.tensor([0.0, 0.5, 1.0, 1.0, 3.0])
    assert x.histc(3).tolist() == [2.0, 2.0, 1.0]
    assert x.histc(2, min=0, max=1).tolist() == [1.0, 3.0]
    count, edges = x.histogram(cresset.tensor([0.0, 1.0, 3.0]))
    assert count.tolist() == [2.0, 3.0] and edges.tolist() == [0.0, 1.0, 3.0]
    density, edges = x.histogram(4, density=True)
    assert (density * edges.diff()).sum().item() == pytest.approx(1.0)


def test_histogramdd_of_points():
    points = cresset.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    count, edges = cresset.histogramdd(points, [2, 2], weight=cresset.tensor([1.0, 2.0, 4.0]))
    assert count.tolist() == [[1.0, 2.0], [0.0, 4.0]]
    assert [edge.tolist() for edge in edges] == [[0.0, 0.5, 1.0]] * 2


def test_bincount_sums_weights():
    x = cresset.tensor([0, 2, 2])
    assert x.bincount(cresset.tensor([1.0, 2.0, 4.0]), minlength=4).tolist() == [1.0, 0.0, 6.0, 0.0]


def test_bincount_and_histc():
    x = cresset.tensor([0, 2, 2])
    assert x.bincount().tolist() == [1, 0, 2]
    assert x.bincount(cresset.tensor([0.5, 1.0, 2.0]), minlength=4).tolist() == [0.5, 0.0, 3.0, 0.0]
    assert cresset.tensor([0.0, 1.0, 2.0, 9.0]).histc(2, min=0, max=2).tolist() == [1.0, 2.0]
