"""Small models learn: layers, losses and optimizers together."""

import pytest

import cresset
import cresset.nn.functional as F
from cresset import nn, optim


def test_a_small_network_learns_a_rule():
    cresset.manual_seed(0)
    x = cresset.randn(200, 4)
    y = (x.sum(1) > 0).long()
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = optim.Adam(model.parameters(), lr=0.02)
    for _ in range(100):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    assert (model(x).argmax(1) == y).float().mean() > 0.97


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_a_recurrent_network_learns_to_remember_the_first_element(kind):
    cresset.manual_seed(0)
    x = cresset.randn(6, 64, 1)
    layer, head = kind(1, 16), nn.Linear(16, 1)
    optimizer = optim.Adam([*layer.parameters(), *head.parameters()], lr=0.02)
    for _ in range(150):
        optimizer.zero_grad()
        loss = F.mse_loss(head(layer(x)[0][-1]), x[0])
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1


def test_a_transformer_layer_trains_all_its_parameters():
    cresset.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    x = cresset.randn(4, 5, 8)
    optimizer = optim.AdamW(layer.parameters(), lr=0.01)
    first = None
    for _ in range(30):
        optimizer.zero_grad()
        loss = F.mse_loss(layer(x), x.flip(1))
        first = loss.item() if first is None else first
        loss.backward()
        assert all(p.grad is not None for p in layer.parameters())
        optimizer.step()
    assert loss.item() < 0.7 * first


def test_clipping_limits_the_norm_of_all_gradients_together():
    layer = nn.Linear(4, 4)
    (layer(cresset.ones(1, 4)) * 100).sum().backward()
    before = nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
    after = nn.utils.get_total_norm([p.grad for p in layer.parameters()])
    assert before.item() == pytest.approx(100 * (4 * 4 + 4) ** 0.5, rel=1e-4) and after.item() == pytest.approx(
        1, rel=1e-4
    )
    nn.utils.clip_grad_value_(layer.parameters(), 0.01)
    assert max(p.grad.abs().max().item() for p in layer.parameters()) <= 0.01


def test_parameters_go_to_a_vector_and_back():
    layer = nn.Linear(2, 2)
    vector = nn.utils.parameters_to_vector(layer.parameters())
    nn.utils.vector_to_parameters(cresset.arange(6.0), layer.parameters())
    assert vector.shape == (6,) and layer.weight.tolist() == [[0, 1], [2, 3]] and layer.bias.tolist() == [4, 5]
