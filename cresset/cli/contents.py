"""`cresset inspect FILE`: names, shapes, dtypes and sizes of the tensors in a file. Descriptions are read, data is not, and no code runs."""

import json
import math
import os
import re
import zipfile

import cresset
from cresset.data.readers.arrays import read_numpy_header

from . import CommandError

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size_text(count):
    """A number of bytes as people read it."""
    power = min(len(UNITS) - 1, int(math.log(count, 1024))) if count else 0
    return f"{count} B" if power == 0 else f"{count / 1024**power:.1f} {UNITS[power]}"


def entry(name, shape, dtype, size):
    return {"name": name, "shape": list(shape), "dtype": str(dtype).removeprefix("torch."), "bytes": size}


def of_safetensors(path):
    """(entries, what else the file says)."""
    with cresset.safetensors.safe_open(path) as file:
        found = [entry(name, e.shape, e.dtype, e.end - e.start) for name, e in file.entries.items()]
        return found, file.metadata() or {}


def of_numpy_header(file, name):
    """The entry of an array in NumPy's format, from its header."""
    try:
        shape, described, _ = read_numpy_header(file, name)
    except ValueError as error:
        raise CommandError(f"inspect: {error}") from None
    match = re.fullmatch(r"[<>|=]?([a-zA-Z?])(\d*)", described) if isinstance(described, str) else None
    if match is None or match[1] == "O":
        return entry(name, shape, described, 0)
    kinds = {"f": "float", "i": "int", "u": "uint", "c": "complex", "b": "bool", "?": "bool", "U": "text", "S": "bytes"}
    width = int(match[2] or 1) * (4 if match[1] == "U" else 1)
    kind = kinds.get(match[1], match[1])
    dtype = "bool" if kind == "bool" else kind + (str(8 * width) if kind in ("float", "int", "uint", "complex") else match[2])
    return entry(name, shape, dtype, math.prod(shape) * width)


def of_npz(path):
    with zipfile.ZipFile(path) as archive:
        found = []
        for name in archive.namelist():
            with archive.open(name) as file:
                found.append(of_numpy_header(file, name.removesuffix(".npy")))
        return found, {}


def of_npy(path):
    with open(path, "rb") as file:
        return [of_numpy_header(file, os.path.basename(path))], {}


def of_checkpoint(path, mapped):
    """The tensors in what `save` wrote, however deep they lie; the data stays in the file."""
    try:
        loaded = cresset.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except Exception as error:
        raise CommandError(f"inspect: {path}: {error}") from None
    found, others = [], {}
    walk(loaded, "", found, others, set())
    return found, others


def walk(value, name, found, others, seen):
    """Collect the tensors in `value`, and the plain values beside them."""
    if isinstance(value, cresset.Tensor):
        found.append(entry(name or "(the tensor)", value.shape, value.dtype, value.numel() * value.element_size()))
    elif isinstance(value, (dict, list, tuple)) and id(value) not in seen:
        seen = seen | {id(value)}  # a list that contains itself is looked at once
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            walk(item, f"{name}.{key}" if name else str(key), found, others, seen)
    elif isinstance(value, (int, float, str, bool, type(None))):
        others[name or "(the value)"] = value
    else:
        others[name or "(the value)"] = f"<{type(value).__name__}>"


def read(path):
    """(entries, other values by name) of a file; the first bytes tell the format, not the name."""
    if os.path.isdir(path):
        raise CommandError(f"inspect: {path} is a folder; name a file in it")
    with open(path, "rb") as file:
        start = file.read(16)
    if not start:
        raise CommandError(f"inspect: {path} is empty")
    try:
        if start[:6] == b"\x93NUMPY":
            return of_npy(path)
        if start[8:9] == b"{":
            return of_safetensors(path)
        if start[:4] == b"PK\x03\x04":
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
            if names and all(name.endswith(".npy") for name in names):
                return of_npz(path)
            return of_checkpoint(path, mapped=True)
    except (cresset.safetensors.SafetensorError, zipfile.BadZipFile) as error:
        raise CommandError(f"inspect: {path}: {error}") from None
    if start[:1] == b"\x80":  # the format before archives, which cannot be mapped
        return of_checkpoint(path, mapped=False)
    raise CommandError(f"inspect: {path}: this is none of .pt, .safetensors, .npz and .npy")


def run(options):
    found, others = read(options.file)
    if options.json:
        print(json.dumps({"file": options.file, "tensors": found, "others": others}, indent=2, default=str))
        return 0
    total = sum(item["bytes"] for item in found)
    elements = sum(math.prod(item["shape"]) for item in found)
    rows = [(item["name"], "x".join(map(str, item["shape"])) or "scalar", item["dtype"], size_text(item["bytes"])) for item in found]
    if rows:
        titles = ("name", "shape", "dtype", "size")
        widths = [max(len(row[i]) for row in [titles, *rows]) for i in range(4)]
        for row in [titles, *rows]:
            print(f"{row[0]:{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:{widths[2]}}  {row[3]:>{widths[3]}}")
        print()
    for name, value in list(others.items())[:20]:
        print(f"{name} = {str(value)[:100]}")
    if len(others) > 20:
        print(f"... and {len(others) - 20} more values (--json lists them)")
    print(f"{len(found)} tensors, {elements:,} elements, {size_text(total)} of data in a file of {size_text(os.path.getsize(options.file))}")
    return 0


def save_weights(model, path):
    """Write a model's weights; the ending of `path` decides the format."""
    if path.endswith(".safetensors"):
        cresset.safetensors.save_model(model, path)
    else:
        cresset.save(model.state_dict(), path)
    print(f"saved the weights to {path}")
