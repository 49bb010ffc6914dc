"""ImageNet of 2012: a thousand classes in folders named by their WordNet ids."""

import os

import cresset

from .folder import ImageFolder

META_FILE = "meta.bin"
PUBLISHED = "https://image-net.org/download-images"
ARCHIVES = {
    "train": "ILSVRC2012_img_train.tar",
    "val": "ILSVRC2012_img_val.tar",
    "devkit": "ILSVRC2012_devkit_t12.tar.gz",
}


class ImageNet(ImageFolder):
    """Pictures in root/train/<id>/ or root/val/<id>/, and root/meta.bin with the classes' names, the form torchvision
    unpacks the archives to.

    Args:
        split: "train" or "val".
    """

    def __init__(self, root, split="train", **kwargs):
        if split not in ("train", "val"):
            raise ValueError(f"ImageNet: split must be 'train' or 'val', got {split!r}")
        self.split, folder = split, os.path.expanduser(root)
        self.imagenet_root = folder
        for path, archive in (
            (os.path.join(folder, META_FILE), ARCHIVES["devkit"]),
            (os.path.join(folder, split), ARCHIVES[split]),
        ):
            if not os.path.exists(path):
                raise RuntimeError(
                    f"ImageNet: {path} is not there. It is made of {archive}, which is given out to registered users "
                    f"at {PUBLISHED}; cresset does not unpack it"
                )
        wnid_to_classes = cresset.load(os.path.join(folder, META_FILE), weights_only=True)[0]
        super().__init__(os.path.join(folder, split), **kwargs)
        self.root = folder
        self.wnids, self.wnid_to_idx = self.classes, self.class_to_idx
        self.classes = [wnid_to_classes[wnid] for wnid in self.wnids]
        self.class_to_idx = {name: number for number, names in enumerate(self.classes) for name in names}

    @property
    def split_folder(self):
        return os.path.join(self.imagenet_root, self.split)

    def extra_repr(self):
        return f"Split: {self.split}"
