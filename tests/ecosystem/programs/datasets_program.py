"""datasets: tables as tensors, mapped, batched by a loader, streamed, and saved."""

import tempfile

import torch
from datasets import Dataset, load_from_disk
from torch.utils.data import DataLoader

table = Dataset.from_dict({"x": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], "y": [0, 1, 0]})
rows = table.with_format("torch")
assert isinstance(rows[0]["x"], torch.Tensor) and rows[0]["x"].dtype == torch.float32
assert rows[:2]["x"].tolist() == [[1.0, 2.0], [3.0, 4.0]] and rows[0]["y"].dtype == torch.int64
assert rows.with_format("torch", dtype=torch.float64)[0]["x"].dtype == torch.float64
assert [batch["x"].shape[0] for batch in DataLoader(rows, batch_size=2)] == [2, 1]
assert [batch["y"].tolist() for batch in DataLoader(rows, batch_size=2, num_workers=2)] == [[0, 1], [0]]
doubled = rows.map(lambda row: {"z": row["x"].sum() * 2})
assert doubled["z"][:].tolist() == [6.0, 14.0, 22.0]
streamed = table.to_iterable_dataset(num_shards=1).with_format("torch")
assert isinstance(streamed, torch.utils.data.IterableDataset)
assert [batch["y"].tolist() for batch in DataLoader(streamed, batch_size=3)] == [[0, 1, 0]]
ragged = Dataset.from_dict({"ids": [[1], [2, 3]]}).with_format("torch")
assert [row.tolist() for row in ragged[:]["ids"]] == [[1], [2, 3]]
with tempfile.TemporaryDirectory() as folder:
    rows.save_to_disk(folder)
    assert load_from_disk(folder).with_format("torch")[2]["x"].tolist() == [5.0, 6.0]
