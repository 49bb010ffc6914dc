"""Whole models whose layers keep a hook object of nn.utils, as files."""

import io
import warnings

import pytest

import cresset
from cresset import nn
from cresset.nn.utils import prune


def pruned(layer):
    prune.l1_unstructured(layer, "weight", 2)
    prune.random_unstructured(layer, "weight", 1)


@pytest.mark.parametrize("change", [nn.utils.weight_norm, nn.utils.spectral_norm, pruned])
def test_a_model_with_hooks_of_nn_utils_is_read_back(change):
    layer, file = nn.Linear(3, 2), io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # weight_norm has a successor
        change(layer)
    layer.eval()
    x = cresset.ones(1, 3)
    cresset.save(layer, file)
    file.seek(0)
    back = cresset.load(file, weights_only=False)
    assert back(x).tolist() == layer(x).tolist()
    assert prune.is_pruned(back) == (change is pruned)


def test_such_a_model_is_refused_as_weights():
    layer, file = nn.Linear(3, 2), io.BytesIO()
    pruned(layer)
    cresset.save(layer, file)
    file.seek(0)
    with pytest.raises(Exception, match="weights_only=False reads modules"):
        cresset.load(file)
