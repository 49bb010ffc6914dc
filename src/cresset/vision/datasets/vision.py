"""VisionDataset: a folder, and what is done to each sample and label."""

import os

from cresset.data import Dataset


class VisionDataset(Dataset):
    """Samples of a folder.

    Args:
        root: the folder.
        transforms: called with (sample, label).
        transform: called with the sample.
        target_transform: called with the label. Either `transforms` or these two.
    """

    def __init__(self, root=None, transforms=None, transform=None, target_transform=None):
        self.root = os.path.expanduser(root) if isinstance(root, str) else root
        if transforms is not None and (transform is not None or target_transform is not None):
            raise ValueError(f"{type(self).__name__}: give either transforms, or transform and target_transform")
        self.transform, self.target_transform = transform, target_transform
        if transform is not None or target_transform is not None:
            transforms = StandardTransform(transform, target_transform)
        self.transforms = transforms

    def __getitem__(self, index):
        raise NotImplementedError(f"{type(self).__name__}: a dataset must define __getitem__")

    def __len__(self):
        raise NotImplementedError(f"{type(self).__name__}: a dataset must define __len__")

    def transformed(self, sample, target):
        """The pair that __getitem__ gives."""
        if self.transform is not None:
            sample = self.transform(sample)
        if self.target_transform is not None:
            target = self.target_transform(target)
        if self.transforms is not None and not isinstance(self.transforms, StandardTransform):
            sample, target = self.transforms(sample, target)
        return sample, target

    def extra_repr(self):
        return ""

    def __repr__(self):
        lines = [f"Number of datapoints: {len(self)}"]
        if self.root is not None:
            lines.append(f"Root location: {self.root}")
        lines += self.extra_repr().splitlines()
        if self.transforms is not None:
            lines.append(repr(self.transforms))
        return "\n".join([f"Dataset {type(self).__name__}", *("    " + line for line in lines)])


class StandardTransform:
    """A function for the sample and one for the label."""

    def __init__(self, transform=None, target_transform=None):
        self.transform, self.target_transform = transform, target_transform

    def __call__(self, sample, target):
        return (
            sample if self.transform is None else self.transform(sample),
            target if self.target_transform is None else self.target_transform(target),
        )

    def __repr__(self):
        body = [type(self).__name__]
        for head, transform in (("Transform: ", self.transform), ("Target transform: ", self.target_transform)):
            if transform is not None:
                first, *rest = repr(transform).splitlines()
                body += [head + first, *(" " * len(head) + line for line in rest)]
        return "\n".join(body)
