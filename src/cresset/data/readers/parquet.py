"""ParquetDataset: rows of Parquet files by number, a row group at a time, read with pyarrow."""

import bisect
import itertools
import operator
import os

from ..datasets import Dataset


def _pyarrow():
    try:
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "ParquetDataset: pyarrow is needed to read Parquet files. Install it with `pip install pyarrow`",
            name=error.name,
        ) from None
    return pyarrow


class ParquetDataset(Dataset):
    """Sample i is row i as a dictionary from column to Python value.

    Args:
        paths: a file, or several with the same columns, one after the other.
        columns: the names of the columns that are wanted; None for all. Others are not read.
        transform: a function of the row.

    A row group is read whole and kept until a row of another is asked for, so rows in order are quick and rows at
    random are not; shuffle row groups, or write small ones, to go through the data in random order.
    """

    def __init__(self, paths, columns=None, transform=None):
        self.paths = (
            [os.fspath(paths)] if isinstance(paths, (str, os.PathLike)) else [os.fspath(path) for path in paths]
        )
        if not self.paths:
            raise ValueError("ParquetDataset: no files were given")
        self.columns, self.transform = None if columns is None else list(columns), transform
        self.groups, counts = [], []  # (file, row group) and its number of rows
        self.files, self.kept = {}, (None, None)
        for path in self.paths:
            described = self.file(path).metadata
            names = self.file(path).schema_arrow.names
            if missing := [name for name in self.columns or () if name not in names]:
                raise ValueError(f"{path}: there is no column {missing[0]!r}; the columns are {', '.join(names)}")
            for group in range(described.num_row_groups):
                self.groups.append((path, group))
                counts.append(described.row_group(group).num_rows)
        self.ends = list(itertools.accumulate(counts))

    def file(self, path):
        """The opened file; each process opens its own."""
        key = (os.getpid(), path)
        if key not in self.files:
            pyarrow = _pyarrow()
            try:
                self.files[key] = pyarrow.parquet.ParquetFile(path)
            except pyarrow.ArrowInvalid as error:
                raise ValueError(f"{path}: not a Parquet file: {error}") from None
        return self.files[key]

    def __getstate__(self):
        return {**self.__dict__, "files": {}, "kept": (None, None)}

    def __len__(self):
        return self.ends[-1] if self.ends else 0

    def __getitem__(self, index):
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"ParquetDataset: index {index} is out of range; there are {len(self)} rows")
        index %= len(self)
        place = bisect.bisect_right(self.ends, index)
        if self.kept[0] != place:
            path, group = self.groups[place]
            self.kept = (place, self.file(path).read_row_group(group, columns=self.columns, use_threads=False))
        table, row = self.kept[1], index - (self.ends[place - 1] if place else 0)
        sample = {name: table.column(name)[row].as_py() for name in table.column_names}
        return sample if self.transform is None else self.transform(sample)
