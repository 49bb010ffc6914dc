"""FakeData: pictures of noise, the same for the same index."""

import cresset

from ..transforms.functional import to_pil_image
from .vision import VisionDataset


class FakeData(VisionDataset):
    """Pictures of noise with random labels, to try programs with.

    >>> picture, label = cresset.vision.datasets.FakeData(size=5, image_size=(3, 8, 8), num_classes=4)[0]
    >>> picture.size, 0 <= label < 4
    ((8, 8), True)
    """

    def __init__(
        self,
        size=1000,
        image_size=(3, 224, 224),
        num_classes=10,
        transform=None,
        target_transform=None,
        random_offset=0,
    ):
        super().__init__(None, transform=transform, target_transform=target_transform)
        self.size, self.num_classes, self.image_size, self.random_offset = size, num_classes, image_size, random_offset

    def __getitem__(self, index):
        if not 0 <= index < self.size:
            raise IndexError(f"FakeData: index {index} is out of range for {self.size} samples")
        with cresset.fork_rng(devices=[]):
            cresset.manual_seed(index + self.random_offset)
            image = cresset.randn(*self.image_size)
            target = int(cresset.randint(0, self.num_classes, size=(1,)))
        return self.transformed(to_pil_image(image), target)

    def __len__(self):
        return self.size
