"""The same seed visits a dataset in the same order as in PyTorch, and batches look the same."""

import numpy as np
import pytest

import cresset
import cresset.utils.data as ours

torch = pytest.importorskip("torch")
theirs = pytest.importorskip("torch.utils.data")


def stream(d, n):
    return d.datapipes.iter.IterableWrapper(range(n))


STAYING = {"num_workers": 1, "persistent_workers": True}

ORDERS = {
    "random": lambda t, d: list(d.RandomSampler(range(50))),
    "random with replacement": lambda t, d: list(d.RandomSampler(range(50), replacement=True, num_samples=70)),
    "random, more than there are": lambda t, d: list(d.RandomSampler(range(10), num_samples=25)),
    "random with a generator": lambda t, d: list(d.RandomSampler(range(9), generator=t.Generator().manual_seed(5))),
    "subset": lambda t, d: list(d.SubsetRandomSampler([3, 1, 4, 1, 5])),
    "weighted": lambda t, d: list(d.WeightedRandomSampler([0.1, 0.7, 0.2], 30)),
    "weighted without replacement": lambda t, d: list(d.WeightedRandomSampler([0.1, 0.7, 0.2], 2, replacement=False)),
    "distributed": lambda t, d: list(d.DistributedSampler(range(11), num_replicas=3, rank=1, seed=4)),
    "random_split": lambda t, d: [list(part.indices) for part in d.random_split(range(11), [0.5, 0.3, 0.2])],
    "a shuffled loader": lambda t, d: [b.tolist() for b in d.DataLoader(range(20), batch_size=3, shuffle=True)],
    "two epochs": lambda t, d: [[b.tolist() for b in loader] for loader in [d.DataLoader(range(9), 2, True)] * 2],
    "epochs of workers that stay": lambda t, d: [
        [[b.tolist() for b in loader] for loader in [d.DataLoader(range(9), 2, True, **workers)] * 3]
        for workers in (STAYING, {**STAYING, "generator": t.Generator().manual_seed(3)})
    ],
    "a loader, then the global generator": lambda t, d: [
        len(list(d.DataLoader(range(9), 2, True))),
        t.rand(2).tolist(),
    ],
    "a shuffled pipe": lambda t, d: list(stream(d, 30).shuffle(buffer_size=7).batch(4)),
    "a shuffled pipe with keys": lambda t, d: list(d.datapipes.map.SequenceWrapper(range(9)).shuffle()),
    "epochs of pipes in workers that stay, then the global generator": lambda t, d: [
        [list(map(int, loader)) for loader in [d.DataLoader(stream(d, 9).shuffle(), None, **STAYING)] * 3],
        t.rand(2).tolist(),
    ],
    "two epochs of pipes": lambda t, d: [
        list(loader) for loader in [d.DataLoader(stream(d, 9).shuffle().zip(stream(d, 9).shuffle()), None)] * 2
    ],
    "a pipe in workers, then the global generator": lambda t, d: [
        sorted(map(int, d.DataLoader(stream(d, 9).shuffle().sharding_filter(), None, num_workers=2))),
        t.rand(2).tolist(),
    ],
    "a loader with a generator": lambda t, d: [
        b.tolist() for b in d.DataLoader(range(20), 3, shuffle=True, generator=t.Generator().manual_seed(1))
    ],
}


@pytest.mark.parametrize("order", ORDERS)
def test_orders_are_pytorchs(order):
    torch.manual_seed(17)
    cresset.manual_seed(17)
    assert ORDERS[order](cresset, ours) == ORDERS[order](torch, theirs)


@pytest.mark.parametrize(
    "batch",
    [
        [1, 2], [1.5, 2.5], ["a", "b"], [(1, 2.0), (3, 4.0)], [[1, 2], [3, 4]], [{"a": 1}, {"a": 2}],
        [np.float32(1), np.float32(2)], [np.ones(2), np.zeros(2)], [True, False], [b"x", b"y"],
        [np.int64(3), np.int64(4)], [{"a": (np.ones(1), "s")}, {"a": (np.ones(1), "t")}],
    ],
    ids=str,
)  # fmt: skip
def test_batches_are_pytorchs(batch):
    def plain(value):
        if hasattr(value, "tolist"):
            return str(value.dtype), tuple(value.shape), value.tolist()
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value).__name__, [plain(item) for item in value]
        return value

    assert plain(ours.default_collate(batch)) == plain(theirs.default_collate(batch))
    assert plain(ours.default_convert(batch)) == plain(theirs.default_convert(batch))
