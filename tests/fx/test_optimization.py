"""Models made lighter for evaluation: fused normalizations, no dropout."""

import pytest

import cresset
from cresset import nn
from cresset.fx import symbolic_trace
from cresset.fx.experimental.optimization import fuse, remove_dropout


def warmed(model, x):
    """With statistics that are not those of a new layer."""
    model.train()
    model(x)
    return model.eval()


@pytest.mark.parametrize(
    ("layer", "norm", "shape"),
    [
        (nn.Conv1d(2, 3, 3), nn.BatchNorm1d(3), (2, 2, 5)),
        (nn.Conv2d(2, 3, 3, bias=False), nn.BatchNorm2d(3), (2, 2, 5, 5)),
        (nn.Conv3d(2, 3, 2), nn.BatchNorm3d(3, affine=False), (2, 2, 3, 3, 3)),
        (nn.Linear(4, 3), nn.BatchNorm1d(3), (5, 4)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_normalization_is_computed_inside_of_the_layer_before(layer, norm, shape):
    x = cresset.randn(shape)
    model = warmed(nn.Sequential(layer, norm, nn.ReLU()), x)
    fused = fuse(model)
    assert [node.target for node in fused.graph.nodes if node.op == "call_module"] == ["0", "2"]
    cresset.testing.assert_close(fused(x), model(x))
    assert isinstance(model[1], nn.modules.batchnorm._BatchNorm)


def test_a_layer_that_somebody_else_reads_is_left_alone():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1)

        def forward(self, x):
            y = self.conv(x)
            return self.norm(y) + y

    model = Both().eval()
    assert "norm" in fuse(model).code


def test_in_place_the_models_own_layers_change_and_a_graph_is_not_traced_again():
    model = warmed(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), cresset.randn(4, 2))
    graph = symbolic_trace(model)
    before = model[0].weight.detach().clone()
    assert "1" not in dict(fuse(graph, inplace=True, no_trace=True).named_modules())
    assert cresset.equal(before, model[0].weight)
    with pytest.raises(TypeError, match="GraphModule"):
        fuse(model, no_trace=True)


def test_dropout_leaves_the_graph():
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(), nn.ReLU(), nn.Dropout2d())
    light = remove_dropout(model)
    assert [node.target for node in light.graph.nodes if node.op == "call_module"] == ["0", "2"]
