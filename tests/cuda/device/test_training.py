"""A whole training step on CUDA: the CPU's losses, and nothing that is computed elsewhere."""

import cresset
from cresset import nn, optim
from cresset.nn import functional


def trained(device, steps=4, dropout=0.0, scaler=None, **settings):
    cresset.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 16), nn.GELU(), nn.Dropout(dropout), nn.LayerNorm(16), nn.Linear(16, 5))
    x, y = cresset.randn(8, 12), cresset.arange(8) % 5
    model, x, y = model.to(device), x.to(device), y.to(device)
    optimizer = optim.AdamW(model.parameters(), lr=0.01, **settings)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        with cresset.autocast("cuda", dtype=cresset.bfloat16, enabled=scaler is not None):
            loss = functional.cross_entropy(model(x), y)
        if scaler is None:
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        losses.append(loss.item())
    return losses


def test_losses_are_those_of_the_cpu(cuda):
    cresset.testing.assert_close(trained(cuda), trained("cpu"), rtol=1e-4, atol=1e-5)


def test_mixed_precision_learns_about_the_same(cuda):
    plain = trained(cuda)
    for settings in ({}, {"fused": True}):
        cresset.testing.assert_close(
            trained(cuda, scaler=cresset.amp.GradScaler("cuda"), **settings), plain, rtol=0.05, atol=0.02
        )


def test_a_seed_repeats_dropout(cuda):
    assert trained(cuda, dropout=0.5) == trained(cuda, dropout=0.5) != trained(cuda)
