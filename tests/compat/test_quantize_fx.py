"""Models that graphs quantize have PyTorch's numbers, and the names of PyTorch's state dictionaries."""

import copy
import warnings

import pytest

import cresset

torch = pytest.importorskip("torch")


class _Models:
    """The same models in both libraries."""

    def __init__(self, library):
        nn, F = library.nn, library.nn.functional

        class Residual(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv, self.norm, self.relu = nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU()
                self.head = nn.Linear(3, 2)

            def forward(self, x):
                x = self.relu(self.norm(self.conv(x)) + x)
                return self.head(library.flatten(F.adaptive_avg_pool2d(x, 1), 1))

        class Functions(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight, self.bias = nn.Parameter(library.randn(4, 8)), nn.Parameter(library.randn(4))
                self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

            def forward(self, x):
                x = F.relu(F.linear(x, self.weight, self.bias))
                joined = library.cat([self.a(x), F.hardswish(self.b(x))], 1)
                return (joined * joined).view(x.shape[0], -1) + library.sigmoid(joined)

        self.residual = Residual, (2, 3, 6, 6)
        self.functions = Functions, (4, 8)
        self.layers = (
            (
                lambda: nn.Sequential(
                    nn.Conv1d(2, 4, 2),
                    nn.ReLU(),
                    nn.MaxPool1d(2),
                    nn.Flatten(),
                    nn.Linear(8, 4),
                    nn.LayerNorm(4),
                    nn.ELU(),
                )
            ),
            (3, 2, 5),
        )


def _run(library, name, way):
    quantization = library.ao.quantization
    graphs = __import__(f"{library.__name__}.ao.quantization.quantize_fx", fromlist=["prepare_fx"])
    make, shape = getattr(_Models(library), name)
    torch.manual_seed(0)
    cresset.manual_seed(0)
    model = make()
    data = [library.randn(*shape) for _ in range(3)]
    if way == "training":
        mapping = quantization.get_default_qat_qconfig_mapping("x86")
        made = graphs.prepare_qat_fx(model.train(), mapping, (data[0],))
        optimizer = library.optim.SGD(made.parameters(), lr=0.01)
        for x in data:
            optimizer.zero_grad()
            made(x).square().mean().backward()
            optimizer.step()
        made.eval()
    else:
        dynamic = quantization.QConfigMapping().set_global(quantization.default_dynamic_qconfig)
        mapping = dynamic if way == "dynamic" else quantization.get_default_qconfig_mapping("x86")
        made = graphs.prepare_fx(model.eval(), mapping, (data[0],))
        for x in data:
            made(x)
    reference = graphs.convert_to_reference_fx(copy.deepcopy(made))
    made = graphs.convert_fx(made)
    return made(data[0]).tolist(), reference(data[0]).tolist(), sorted(made.state_dict())


@pytest.mark.parametrize("way", ["static", "training", "dynamic"])
@pytest.mark.parametrize("name", ["residual", "functions", "layers"])
def test_numbers_and_names(name, way):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = _run(cresset, name, way), _run(torch, name, way)
    for mine, other in zip(ours[:2], theirs[:2], strict=True):
        cresset.testing.assert_close(cresset.tensor(mine), cresset.tensor(other), rtol=1e-5, atol=1e-5)
    assert ours[2] == theirs[2]
