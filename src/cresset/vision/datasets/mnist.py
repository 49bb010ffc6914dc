"""MNIST and its likes: handwritten digits, clothes and characters in idx files, plain or compressed."""

import gzip
import os
import struct

import cresset

from ..pictures import from_bytes_tensor
from .download import fetch, is_whole
from .vision import VisionDataset

_DTYPES = {
    8: cresset.uint8,
    9: cresset.int8,
    11: cresset.int16,
    12: cresset.int32,
    13: cresset.float32,
    14: cresset.float64,
}


def read_idx(path):
    """The tensor in an idx file: two zero bytes, the kind of number, the number of dimensions, sizes, numbers, all
    big-endian.
    """
    with (gzip.open if str(path).endswith(".gz") else open)(path, "rb") as file:
        data = file.read()
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _DTYPES:
        raise ValueError(f"read_idx: {path} is not an idx file; it starts with {data[:4].hex()}")
    dtype, dimensions = _DTYPES[data[2]], data[3]
    start = 4 + 4 * dimensions
    if len(data) < start:
        raise ValueError(f"read_idx: {path} ends inside its sizes")
    shape = struct.unpack_from(f">{dimensions}I", data, 4)
    count = 1
    for size in shape:
        count *= size
    if len(data) - start != count * dtype.itemsize:
        raise ValueError(
            f"read_idx: {path} should have {count * dtype.itemsize} bytes for shape {shape}, it has {len(data) - start}"
        )
    if count == 0:
        return cresset.empty(shape, dtype=dtype)
    numbers = cresset.frombuffer(bytearray(data[start:]), dtype=cresset.uint8)
    if dtype.itemsize > 1:
        numbers = numbers.view(-1, dtype.itemsize).flip(1).contiguous().view(-1)
    return numbers.view(dtype).view(shape)


class MNIST(VisionDataset):
    """Handwritten digits, 28 by 28 pixels: 60000 to train with and 10000 to test.

    Args:
        root: the files lie in root/MNIST/raw, as published or unpacked.
        train: the training part.
        download: fetch the files that are not there.
    """

    mirrors = ["https://ossci-datasets.s3.amazonaws.com/mnist/"]
    resources = [
        ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        ("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
        ("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
        ("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
    ]
    classes = ["0 - zero", "1 - one", "2 - two", "3 - three", "4 - four", "5 - five", "6 - six", "7 - seven",
        "8 - eight", "9 - nine"]  # fmt: skip

    def __init__(self, root, train=True, transform=None, target_transform=None, download=False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        if download:
            self.download()
        images, labels = self.resources[:2] if train else self.resources[2:]
        self.data, self.targets = read_idx(self._find(images)), read_idx(self._find(labels)).to(cresset.int64)
        if self.data.ndim != 3 or self.targets.ndim != 1 or len(self.data) != len(self.targets):
            raise ValueError(
                f"{type(self).__name__}: the files do not belong together; images {tuple(self.data.shape)}, labels "
                f"{tuple(self.targets.shape)}"
            )

    @property
    def raw_folder(self):
        return os.path.join(self.root, type(self).__name__, "raw")

    @property
    def class_to_idx(self):
        return {name: number for number, name in enumerate(self.classes)}

    def _find(self, resource):
        """The file, unpacked or as published."""
        name, md5 = resource
        packed = os.path.join(self.raw_folder, name)
        plain = packed.removesuffix(".gz")
        if os.path.isfile(plain):
            return plain
        if is_whole(packed, md5):
            return packed
        state = f"{packed} has another md5 than {md5}, it is damaged" if os.path.isfile(packed) else "Dataset not found"
        raise RuntimeError(
            f"{type(self).__name__}: {state}. Use download=True, or put {name} from {self.mirrors[0]} into "
            f"{self.raw_folder}"
        )

    def download(self):
        """Fetch the files that are not there."""
        for name, md5 in self.resources:
            if not os.path.isfile(os.path.join(self.raw_folder, name.removesuffix(".gz"))):
                fetch(type(self).__name__, [mirror + name for mirror in self.mirrors], self.raw_folder, name, md5)

    def __getitem__(self, index):
        picture = from_bytes_tensor(self.data[index][None], "L")
        return self.transformed(picture, int(self.targets[index]))

    def __len__(self):
        return len(self.data)

    def extra_repr(self):
        return f"Split: {'Train' if self.train else 'Test'}"


class FashionMNIST(MNIST):
    """Clothes, in the form of MNIST."""

    mirrors = ["http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"]
    resources = [
        ("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        ("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
        ("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
        ("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
    ]
    classes = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]


class KMNIST(MNIST):
    """Old Japanese characters, in the form of MNIST."""

    mirrors = ["http://codh.rois.ac.jp/kmnist/dataset/kmnist/"]
    resources = [
        ("train-images-idx3-ubyte.gz", "bdb82020997e1d708af4cf47b453dcf7"),
        ("train-labels-idx1-ubyte.gz", "e144d726b3acfaa3e44228e80efcd344"),
        ("t10k-images-idx3-ubyte.gz", "5c965bf0a639b31b8f53240b1b52f4d7"),
        ("t10k-labels-idx1-ubyte.gz", "7320c461ea6c1c855c0b718fb2a4b134"),
    ]
    classes = ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]
