"""torchdata: pipelines of nodes and loaders that stop and resume within an epoch, with and without workers."""

import torch
from torch.utils.data import IterableDataset, TensorDataset
from torchdata import nodes
from torchdata.stateful_dataloader import StatefulDataLoader


class Counting(IterableDataset):
    def __iter__(self):
        return iter(range(12))


def ten_times(value):
    return torch.tensor(value * 10)


def chain():
    node = nodes.ParallelMapper(nodes.IterableWrapper(range(10)), ten_times, num_workers=2, method="thread")
    return nodes.Prefetcher(nodes.Batcher(node, batch_size=4, drop_last=False), 2)


if __name__ == "__main__":
    batches = [[0, 10, 20, 30], [40, 50, 60, 70], [80, 90]]
    loader = nodes.Loader(chain())
    assert [[v.item() for v in batch] for batch in loader] == batches
    half = nodes.Loader(chain())
    next(iter(half))
    state = half.state_dict()
    rest = nodes.Loader(chain())
    rest.load_state_dict(state)
    assert [[v.item() for v in batch] for batch in rest] == batches[1:]

    for workers in (0, 2):
        data = TensorDataset(torch.arange(12))
        torch.manual_seed(1)
        whole = [x.tolist() for (x,) in StatefulDataLoader(data, 2, shuffle=True, num_workers=workers)]
        torch.manual_seed(1)
        first = StatefulDataLoader(data, 2, shuffle=True, num_workers=workers)
        batches = iter(first)
        seen = [next(batches)[0].tolist() for _ in range(2)]
        second = StatefulDataLoader(data, 2, shuffle=True, num_workers=workers)
        second.load_state_dict(first.state_dict())
        assert seen + [x.tolist() for (x,) in second] == whole
    stream = StatefulDataLoader(Counting(), batch_size=4)
    next(iter(stream))
    again = StatefulDataLoader(Counting(), batch_size=4)
    again.load_state_dict(stream.state_dict())
    assert [batch.tolist() for batch in again] == [[4, 5, 6, 7], [8, 9, 10, 11]]
