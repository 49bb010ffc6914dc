"""torchao: weights of 8 bits and fewer and of 8-bit floats, saved and loaded; training with imitation; optimizers with
states of 8 and 4 bits; masks of zeros.
"""

import copy
import io

import torch
from torch import nn
from torchao.optim import Adam8bit, AdamW4bit
from torchao.quantization import (
    Float8WeightOnlyConfig,
    Int8DynamicActivationInt8WeightConfig,
    Int8DynamicActivationIntxWeightConfig,
    Int8WeightOnlyConfig,
    IntxWeightOnlyConfig,
    PerAxis,
    PerGroup,
    quantize_,
)
from torchao.quantization.qat import QATConfig
from torchao.sparsity import WandaSparsifier, apply_fake_sparsity


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32))


def saved_and_loaded(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file)


def train(layers, optimizer, steps=6):
    losses = []
    for _ in range(steps):
        loss = nn.functional.mse_loss(layers(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0], losses


if __name__ == "__main__":
    torch.manual_seed(1)
    x, target = torch.randn(8, 64), torch.randn(8, 32)
    expected = model()(x)
    dynamic_four_bits = Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerGroup(32))
    for config, kind, tolerance in (
        (Int8WeightOnlyConfig(), "Int8Tensor", 0.02),
        (Int8DynamicActivationInt8WeightConfig(), "Int8Tensor", 0.05),
        (Float8WeightOnlyConfig(), "Float8Tensor", 0.1),
        (IntxWeightOnlyConfig(weight_dtype=torch.int7, granularity=PerAxis(0)), "IntxUnpackedToInt8Tensor", 0.05),
        (IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)), "IntxUnpackedToInt8Tensor", 0.3),
        (dynamic_four_bits, "IntxUnpackedToInt8Tensor", 0.3),
    ):
        quantized = model().eval()
        quantize_(quantized, config)
        assert type(quantized[0].weight).__name__ == kind
        y = quantized(x)
        assert (y - expected).abs().max() < tolerance, (config, (y - expected).abs().max())
        again = model().eval()
        again.load_state_dict(saved_and_loaded(quantized.state_dict()), assign=True)
        assert type(again[0].weight).__name__ == kind
        for other in (again, copy.deepcopy(quantized), torch.compile(quantized)):
            torch.testing.assert_close(other(x), y)

    trained = model()
    quantize_(trained, QATConfig(dynamic_four_bits, step="prepare"))
    train(trained, torch.optim.SGD(trained.parameters(), lr=0.1))
    quantize_(trained, QATConfig(dynamic_four_bits, step="convert"))
    assert type(trained[0].weight).__name__ == "IntxUnpackedToInt8Tensor"

    for optimizer in (Adam8bit, AdamW4bit):
        layers = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 32))
        used = optimizer(layers.parameters(), lr=1e-3)
        train(layers, used)
        other = optimizer(layers.parameters(), lr=1e-3)
        other.load_state_dict(saved_and_loaded(used.state_dict()))
        train(layers, other)

    sparse = model()
    apply_fake_sparsity(sparse)
    assert (sparse[0].weight == 0).float().mean() == 0.5
    pruned, sparsifier = model(), WandaSparsifier(sparsity_level=0.5)
    sparsifier.prepare(pruned, [{"tensor_fqn": "0.weight"}])
    pruned(x)
    sparsifier.step()
    sparsifier.squash_mask()
    assert (pruned[0].weight == 0).float().mean() == 0.5
