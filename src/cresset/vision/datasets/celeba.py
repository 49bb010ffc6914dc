"""CelebA: faces with attributes, from the published text files and the folder of pictures."""

import os

import cresset

from ..pictures import open_picture
from .vision import VisionDataset

PUBLISHED = "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html"
SPLITS = {"train": 0, "valid": 1, "test": 2, "all": None}
FILES = {
    "attr": "list_attr_celeba.txt",
    "identity": "identity_CelebA.txt",
    "bbox": "list_bbox_celeba.txt",
    "landmarks": "list_landmarks_align_celeba.txt",
}


def read_table(path, header):
    """(column names, file names, numbers). With `header`, a count and a line of names come before the rows."""
    with open(path) as file:
        lines = file.read().splitlines()
    names = lines[1].split() if header else []
    rows = [line.split() for line in lines[2 if header else 0 :] if line.strip()]
    return names, [row[0] for row in rows], cresset.tensor([[int(number) for number in row[1:]] for row in rows])


class CelebA(VisionDataset):
    """Faces in root/celeba/img_align_celeba, with what the text files in root/celeba say of them.

    Args:
        split: "train", "valid", "test" or "all".
        target_type: "attr" (40 of 0 or 1), "identity", "bbox" (x, y, width, height), "landmarks" (5 points), or a list
            of these.
        download: the files are given out by hand only, so this is an error unless they are there.
    """

    base_folder = "celeba"

    def __init__(self, root, split="train", target_type="attr", transform=None, target_transform=None, download=False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        if split not in SPLITS:
            raise ValueError(f"CelebA: split must be one of {sorted(SPLITS)}, got {split!r}")
        self.split = split
        self.target_type = [target_type] if isinstance(target_type, str) else list(target_type)
        for kind in self.target_type:
            if kind not in FILES:
                raise ValueError(f"CelebA: target_type must be made of {sorted(FILES)}, got {kind!r}")
        if not self.target_type and target_transform is not None:
            raise RuntimeError("CelebA: target_transform is given, but target_type is empty")
        folder = os.path.join(self.root, self.base_folder)
        for name in ("list_eval_partition.txt", *FILES.values(), "img_align_celeba"):
            if not os.path.exists(os.path.join(folder, name)):
                raise RuntimeError(
                    f"CelebA: Dataset not found: {os.path.join(folder, name)} is not there. It is given out at "
                    f"{PUBLISHED}; put it there, unpacked"
                )
        _, names, parts = read_table(os.path.join(folder, "list_eval_partition.txt"), header=False)
        chosen = [position for position, part in enumerate(parts[:, 0].tolist()) if SPLITS[split] in (None, part)]
        self.filename = [names[position] for position in chosen]
        rows = cresset.tensor(chosen, dtype=cresset.int64)
        tables = {
            kind: read_table(os.path.join(folder, file), header=kind != "identity") for kind, file in FILES.items()
        }
        for kind, (_, those, _numbers) in tables.items():
            if those != names:
                raise RuntimeError(f"CelebA: {FILES[kind]} does not list the same pictures as list_eval_partition.txt")
        self.attr_names = tables["attr"][0]
        self.attr = (tables["attr"][2][rows] + 1) // 2  # -1 and 1 in the file
        self.identity, self.bbox, self.landmarks_align = (
            tables[kind][2][rows] for kind in ("identity", "bbox", "landmarks")
        )

    def _target(self, kind, index):
        if kind == "identity":
            return self.identity[index, 0]
        return {"attr": self.attr, "bbox": self.bbox, "landmarks": self.landmarks_align}[kind][index]

    def __getitem__(self, index):
        path = os.path.join(self.root, self.base_folder, "img_align_celeba", self.filename[index])
        with open(path, "rb") as file:
            picture = open_picture(f"CelebA: {path}", file, os.fstat(file.fileno()).st_size)
        targets = tuple(self._target(kind, index) for kind in self.target_type)
        if not targets:
            return (picture if self.transform is None else self.transform(picture)), None
        return self.transformed(picture, targets[0] if len(targets) == 1 else targets)

    def __len__(self):
        return len(self.filename)

    def extra_repr(self):
        return f"Target type: {self.target_type}\nSplit: {self.split}"
