"""Forecast a noisy season with an LSTM: from the last days, the next ones, beside the forecast "as it was a period
ago".
"""

import argparse
import math

import cresset as torch
from cresset import nn
from cresset.utils.data import DataLoader, TensorDataset

PERIOD = 24


def make_series(length):
    """A daily wave, a slower one, a trend and noise."""
    t = torch.arange(float(length))
    daily = torch.sin(2 * math.pi * t / PERIOD) * (1 + 0.5 * torch.sin(2 * math.pi * t / (9.7 * PERIOD)))
    return daily + 0.3 * torch.sin(2 * math.pi * t / (3.3 * PERIOD)) + 0.0005 * t + 0.1 * torch.randn(length)


class Forecaster(nn.Module):
    """An LSTM reads the past; its last state tells the future, as a difference to the last value seen."""

    def __init__(self, hidden, horizon):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, num_layers=1, batch_first=True)
        self.head = nn.Linear(hidden, horizon)

    def forward(self, past):
        last = past[:, -1:]
        _, (state, _) = self.lstm((past - last).unsqueeze(-1))
        return last + self.head(state[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=int, default=3000)
    parser.add_argument("--past", type=int, default=2 * PERIOD)
    parser.add_argument("--horizon", type=int, default=PERIOD // 2)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=15)
    options = parser.parse_args()
    torch.manual_seed(0)

    series = make_series(options.length)
    windows = series.unfold(0, options.past + options.horizon, 1)
    split = int(0.8 * len(windows))
    gap = options.past + options.horizon  # windows that overlap the test part are left out, or it would be known before
    learn, test = windows[: split - gap], windows[split:]
    loader = DataLoader(TensorDataset(learn[:, : options.past], learn[:, options.past :]), batch_size=64, shuffle=True)
    past, future = test[:, : options.past], test[:, options.past :]
    naive = test[:, options.past - PERIOD : options.past - PERIOD + options.horizon]
    naive_error = (naive - future).square().mean().sqrt().item()

    model = Forecaster(options.hidden, options.horizon)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2, factor=0.3)
    for epoch in range(1, options.epochs + 1):
        model.train()
        total = 0.0
        for x, y in loader:
            loss = nn.functional.huber_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item() * len(x)
        schedule.step(total)
        model.eval()
        with torch.no_grad():
            error = (model(past) - future).square().mean().sqrt().item()
        print(f"epoch {epoch:2d}  loss {total / len(learn):.5f}  error on unseen days {error:.4f}", flush=True)
    print(f"\nRoot mean square error: LSTM {error:.4f}, as a period ago {naive_error:.4f} (the noise alone is 0.1)")


if __name__ == "__main__":
    main()
