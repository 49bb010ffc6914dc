"""CIFAR-10 and CIFAR-100: small color pictures in Python 2's pickles, which are read as data and never run."""

import os
import pickle

import cresset
from cresset.serialization.bounds import Budget
from cresset.serialization.constructors import Constructors
from cresset.serialization.pickles import PickleReader

from ..pictures import from_bytes_tensor
from .download import fetch, is_whole, unpack
from .vision import VisionDataset


def _no_references(identity):
    raise pickle.UnpicklingError("a reference to something outside of the file")


def read_pickle(path):
    """The value in a pickle of plain data and NumPy arrays; anything else in it is an error."""
    with open(path, "rb") as file:
        data = file.read()
    budget = Budget(len(data))
    make = Constructors(budget, {}, False)
    return PickleReader(data, budget, make.name, make, _no_references, make.build, 0, "latin1").read()


class CIFAR10(VisionDataset):
    """Color pictures of 32 by 32 pixels in ten classes: 50000 to train with and 10000 to test.

    Args:
        root: the files lie in root/cifar-10-batches-py, as in the archive.
        train: the training part.
        download: fetch and unpack the archive if the files are not there.
    """

    base_folder = "cifar-10-batches-py"
    url = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
    filename = "cifar-10-python.tar.gz"
    tgz_md5 = "c58f30108f718f92721af3b95e74349a"
    train_list = [
        ["data_batch_1", "c99cafc152244af753f735de768cd75f"],
        ["data_batch_2", "d4bba439e000b95fd0a9bffe97cbabec"],
        ["data_batch_3", "54ebc095f3ab1f0389bbae665268c751"],
        ["data_batch_4", "634d18415352ddfa80567beed471001a"],
        ["data_batch_5", "482c414d41f54cd18b22e5b47cb7c3cb"],
    ]
    test_list = [["test_batch", "40351d587109b95175f43aff81a1287e"]]
    meta = {"filename": "batches.meta", "key": "label_names", "md5": "5ff9c542aee3614f3951f8cda6e48888"}

    def __init__(self, root, train=True, transform=None, target_transform=None, download=False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        if download:
            self.download()
        folder = os.path.join(self.root, self.base_folder)
        self._check(folder)
        import numpy

        parts, self.targets = [], []
        for name, _ in self.train_list if train else self.test_list:
            entry = read_pickle(os.path.join(folder, name))
            parts.append(entry["data"])
            self.targets.extend(entry["labels"] if "labels" in entry else entry["fine_labels"])
        self.data = numpy.ascontiguousarray(numpy.vstack(parts).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        self.classes = read_pickle(os.path.join(folder, self.meta["filename"]))[self.meta["key"]]
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}

    def _files(self):
        return [*self.train_list, *self.test_list, [self.meta["filename"], self.meta["md5"]]]

    def _check(self, folder):
        for name, md5 in self._files():
            path = os.path.join(folder, name)
            if not is_whole(path, md5):
                state = f"has another md5 than {md5}" if os.path.exists(path) else "is not there"
                raise RuntimeError(
                    f"{type(self).__name__}: Dataset not found or corrupted: {path} {state}. "
                    f"Use download=True, or unpack {self.filename} from {self.url} into {self.root}"
                )

    def download(self):
        """Fetch and unpack the archive, unless the files are there."""
        if all(is_whole(os.path.join(self.root, self.base_folder, name), md5) for name, md5 in self._files()):
            return
        unpack(fetch(type(self).__name__, [self.url], self.root, self.filename, self.tgz_md5), self.root)

    def __getitem__(self, index):
        picture = from_bytes_tensor(cresset.from_numpy(self.data[index]).permute(2, 0, 1), "RGB")
        return self.transformed(picture, self.targets[index])

    def __len__(self):
        return len(self.data)

    def extra_repr(self):
        return f"Split: {'Train' if self.train else 'Test'}"


class CIFAR100(CIFAR10):
    """CIFAR-10's form, with 100 classes."""

    base_folder = "cifar-100-python"
    url = "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"
    filename = "cifar-100-python.tar.gz"
    tgz_md5 = "eb9058c3a382ffc7106e4002c42a8d85"
    train_list = [["train", "16019d7e3df5f24257cddd939b257f8d"]]
    test_list = [["test", "f0ef6b0ae62326f3e7ffdfab6717acfc"]]
    meta = {"filename": "meta", "key": "fine_label_names", "md5": "7973b15100ade9c7d40fb424638fde48"}
