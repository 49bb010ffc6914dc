"""The files that TensorBoard's projector reads: vectors and labels as tables, pictures as one sheet."""

import json
import math
import os
from urllib.parse import quote

import cresset

from .encoding import as_tensor, png


def write(log_dir, matrix, metadata, label_img, global_step, tag, metadata_header):
    if matrix.dim() != 2:
        raise AssertionError(
            "add_embedding: mat should be 2D, where mat.size(0) is the number of data points, got shape "
            f"{tuple(matrix.shape)}"
        )
    place = f"{str(global_step).zfill(5)}/{quote(tag, safe='')}"
    folder = os.path.join(log_dir, place)
    os.makedirs(folder, exist_ok=True)
    lines = [
        "embeddings {",
        f"  tensor_name: {json.dumps(f'{tag}:{str(global_step).zfill(5)}')}",
        f"  tensor_path: {json.dumps(place + '/tensors.tsv')}",
    ]
    _table(os.path.join(folder, "tensors.tsv"), matrix.tolist())
    if metadata is not None:
        if len(metadata) != matrix.shape[0]:
            raise AssertionError(
                f"add_embedding: #labels should equal with #data points, got {len(metadata)} and {matrix.shape[0]}"
            )
        rows = [row if isinstance(row, (list, tuple)) else [row] for row in metadata]
        _table(os.path.join(folder, "metadata.tsv"), [metadata_header, *rows] if metadata_header else rows)
        lines.append(f"  metadata_path: {json.dumps(place + '/metadata.tsv')}")
    if label_img is not None:
        images = as_tensor(label_img)
        if images.shape[0] != matrix.shape[0]:
            raise AssertionError(
                f"add_embedding: #images should equal with #data points, got {images.shape[0]} and {matrix.shape[0]}"
            )
        with open(os.path.join(folder, "sprite.png"), "wb") as file:
            file.write(_sheet(images))
        size = images.shape[3], images.shape[2]
        lines += [
            "  sprite {",
            f"    image_path: {json.dumps(place + '/sprite.png')}",
            f"    single_image_dim: {size[0]}",
            f"    single_image_dim: {size[1]}",
            "  }",
        ]
    lines.append("}")
    with open(os.path.join(log_dir, "projector_config.pbtxt"), "a") as file:
        file.write("\n".join(lines) + "\n")


def _table(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines("\t".join(str(value) for value in row) + "\n" for row in rows)


def _sheet(images):
    """The pictures (count, colors, height, width) in a square of rows."""
    count, channels, height, width = images.shape
    side = math.ceil(math.sqrt(count))
    sheet = cresset.zeros(side * height, side * width, channels)
    for i in range(count):
        y, x = i // side * height, i % side * width
        sheet[y : y + height, x : x + width] = images[i].permute(1, 2, 0).to(cresset.float32)
    return png((sheet * (1 if images.dtype == cresset.uint8 else 255)).clamp(0, 255).to(cresset.uint8))
