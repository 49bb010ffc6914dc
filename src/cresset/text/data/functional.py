"""torchtext.data.functional: streams as datasets."""

from cresset.data import Dataset

__all__ = ["to_map_style_dataset"]


class _Kept(Dataset):
    def __init__(self, samples):
        self.samples = list(samples)

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


def to_map_style_dataset(iter_data):
    """The samples of a stream as a dataset with numbers: all of them are read at once."""
    return _Kept(iter_data)
