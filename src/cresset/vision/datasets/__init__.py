"""torchvision.datasets: readers of published collections of pictures, in the files they are published in."""

from .celeba import CelebA
from .cifar import CIFAR10, CIFAR100
from .fakedata import FakeData
from .folder import DatasetFolder, ImageFolder
from .imagenet import ImageNet
from .mnist import KMNIST, MNIST, FashionMNIST
from .vision import VisionDataset

__all__ = [
    "CIFAR10", "CIFAR100", "CelebA", "DatasetFolder", "FakeData", "FashionMNIST", "ImageFolder", "ImageNet", "KMNIST",
    "MNIST", "VisionDataset",
]  # fmt: skip
