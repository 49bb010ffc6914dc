"""DatasetFolder and ImageFolder: each subfolder is a class."""

import os

from ..pictures import open_picture
from .vision import VisionDataset

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def has_file_allowed_extension(filename, extensions):
    """Whether the name ends in one of `extensions`, in any case."""
    return filename.lower().endswith(extensions if isinstance(extensions, str) else tuple(extensions))


def is_image_file(filename):
    """Whether the name is a picture's."""
    return has_file_allowed_extension(filename, IMG_EXTENSIONS)


def pil_loader(path):
    """The picture in a file, in RGB."""
    with open(path, "rb") as file:
        return open_picture(f"ImageFolder: {path}", file, os.fstat(file.fileno()).st_size).convert("RGB")


default_loader = pil_loader


def find_classes(directory):
    """(names of the subfolders in order, name -> number)."""
    with os.scandir(directory) as entries:
        classes = sorted(entry.name for entry in entries if entry.is_dir())
    if not classes:
        raise FileNotFoundError(f"ImageFolder: Couldn't find any class folder in {directory}.")
    return classes, {name: number for number, name in enumerate(classes)}


def make_dataset(directory, class_to_idx=None, extensions=None, is_valid_file=None, allow_empty=False):
    """A list of (path, number of the class), in order of the names."""
    if class_to_idx is None:
        _, class_to_idx = find_classes(directory)
    if (extensions is None) == (is_valid_file is None):
        raise ValueError("make_dataset: give either extensions or is_valid_file")
    valid = is_valid_file or (lambda path: has_file_allowed_extension(path, extensions))
    found, empty = [], []
    for name in sorted(class_to_idx):
        here = []
        for folder, _, files in sorted(os.walk(os.path.join(os.path.expanduser(directory), name), followlinks=True)):
            paths = (os.path.join(folder, file) for file in sorted(files))
            here += [(path, class_to_idx[name]) for path in paths if valid(path)]
        if not here:
            empty.append(name)
        found += here
    if empty and not allow_empty:
        allowed = (
            f" Supported extensions are: {', '.join([extensions] if isinstance(extensions, str) else extensions)}"
            if extensions
            else ""
        )
        raise FileNotFoundError(f"make_dataset: Found no valid file for the classes {', '.join(empty)}.{allowed}")
    return found


class DatasetFolder(VisionDataset):
    """Files in subfolders that are the classes: root/cat/123.ext.

    Args:
        loader: called with a path, gives the sample.
        extensions: of the files, or is_valid_file: a function of a path.
        allow_empty: let a class have no file.
    """

    def __init__(
        self,
        root,
        loader,
        extensions=None,
        transform=None,
        target_transform=None,
        is_valid_file=None,
        allow_empty=False,
    ):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.classes, self.class_to_idx = self.find_classes(self.root)
        self.samples = self.make_dataset(self.root, self.class_to_idx, extensions, is_valid_file, allow_empty)
        self.targets = [target for _, target in self.samples]
        self.loader, self.extensions = loader, extensions

    make_dataset = staticmethod(make_dataset)

    def find_classes(self, directory):
        return find_classes(directory)

    def __getitem__(self, index):
        path, target = self.samples[index]
        return self.transformed(self.loader(path), target)

    def __len__(self):
        return len(self.samples)


class ImageFolder(DatasetFolder):
    """Pictures in subfolders that are the classes: root/cat/123.png."""

    def __init__(
        self, root, transform=None, target_transform=None, loader=default_loader, is_valid_file=None, allow_empty=False
    ):
        extensions = IMG_EXTENSIONS if is_valid_file is None else None
        super().__init__(root, loader, extensions, transform, target_transform, is_valid_file, allow_empty)
        self.imgs = self.samples
