"""`cresset inspect FILE`: names, shapes, dtypes and sizes of the tensors in a file. Descriptions are read, data is not,
and no code runs.
"""

import io
import json
import math
import os
import re

import cresset
from cresset.data.readers.arrays import MAX_HEADER, read_numpy_header
from cresset.serialization.archive import ZIP_MAGIC, ArchiveReader, FileSource
from cresset.serialization.quoting import printable

from . import CommandError

LISTED = 100_000  # tensors, and values beside them; what a file names more often than that is counted only
NAME, TEXT = 300, 100  # characters that are shown of a name and of a value
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


def of_numpy_header(file, name, size):
    """The entry of an array in NumPy's format, from its header; `size` is how many bytes there are."""
    shape, described, _ = read_numpy_header(file, repr(name))
    match = re.fullmatch(r"[<>|=]?([a-zA-Z?])(\d{0,9})", described)
    if match is None or match[1] == "O":
        return entry(name, shape, described, 0)
    kinds = {"f": "float", "i": "int", "u": "uint", "c": "complex", "b": "bool", "?": "bool", "U": "text", "S": "bytes"}
    width = int(match[2] or 1) * (4 if match[1] == "U" else 1)
    kind = kinds.get(match[1], match[1])
    dtype = (
        "bool"
        if kind == "bool"
        else kind + (str(8 * width) if kind in ("float", "int", "uint", "complex") else match[2])
    )
    if math.prod(shape) * width > size - file.tell():
        raise ValueError(
            f"{name!r}: the array is said to have {math.prod(shape) * width} bytes, {max(size - file.tell(), 0)} are "
            "there"
        )
    return entry(name, shape, dtype, math.prod(shape) * width)


def of_npz(archive):
    found = []
    for name, record in archive.records.items():
        size = record.size if record.unpacked is None else record.unpacked
        found.append(
            of_numpy_header(io.BytesIO(archive.beginning(name, MAX_HEADER + 16)), name.removesuffix(".npy"), size)
        )
    return found, {}


def of_npy(path):
    with open(path, "rb") as file:
        return [of_numpy_header(file, os.path.basename(path), os.path.getsize(path))], {}


def of_checkpoint(path, mapped):
    """The tensors in what `save` wrote, however deep they lie; the data stays in the file."""
    try:
        loaded = cresset.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except Exception as error:
        raise CommandError(f"inspect: {path}: {error}") from None
    return walk(loaded)


def of_program(path):
    """The parameters and buffers of a TorchScript archive; its class and methods beside them."""
    try:
        module = cresset.jit.load(path, map_location="cpu")
    except Exception as error:
        raise CommandError(f"inspect: {path}: {printable(str(error), 1000)}") from None
    tensors = [*module.named_parameters(), *module.named_buffers()]
    found = [entry(name, value.shape, value.dtype, value.numel() * value.element_size()) for name, value in tensors]
    program = module._script_type
    methods = {f"method {name}": str(function.schema) for name, function in program.methods.items()}
    return found, {"class": program.qualified_name, **methods}


def of_exported(path):
    """The parameters, buffers and constants of a program that `export.save` wrote; its inputs and outputs beside
    them."""
    try:
        program = cresset.export.load(path)
    except Exception as error:
        raise CommandError(f"inspect: {path}: {printable(str(error), 1000)}") from None
    found, others = walk({**program.state_dict, **program.constants})
    signature = program.graph_signature
    return found, {
        **others,
        "inputs": ", ".join(map(str, signature.user_inputs)),
        "outputs": ", ".join(map(str, signature.user_outputs)),
    }


def word(key):
    """A key of a dictionary in the name of what lies under it."""
    if isinstance(key, str):
        return key if len(key) <= NAME else key[:NAME] + "..."
    if isinstance(key, (bool, float, type(None))) or (isinstance(key, int) and key.bit_length() <= 256):
        return str(key)
    if isinstance(key, tuple) and len(key) <= 4 and not any(isinstance(part, tuple) for part in key):
        return f"({', '.join(map(word, key))})"
    return f"<{type(key).__name__}>"


def walk(value):
    """(the tensors in `value`, the plain values beside them). A container is looked into where it is met first: files
    can name one often, also in itself.
    """
    found, others, places = [], {}, {}
    inside = [iter([("", value)])]  # of the containers that are being looked into, the innermost last
    while inside:
        name, value = next(inside[-1], (None, None))
        if name is None:
            inside.pop()
            continue
        if isinstance(value, cresset.Tensor):
            if len(found) < LISTED:
                found.append(
                    entry(name or "(the tensor)", value.shape, value.dtype, value.numel() * value.element_size())
                )
            continue
        if isinstance(value, (dict, list, tuple)):
            if id(value) not in places:
                places[id(value)] = name
                inside.append(named_items(name, value))
                continue
            value = f"<the {type(value).__name__} at {places[id(value)] or 'the top'}>"
        elif not isinstance(value, (int, float, str, bool, type(None))) or (
            isinstance(value, int) and value.bit_length() > 256
        ):
            value = f"<{type(value).__name__}>"
        if len(others) < LISTED:
            others[name or "(the value)"] = value
    return found, others


def named_items(name, container):
    """(name, value) of each item. A long name gets no longer, so that all names together grow no faster than the
    file."""
    for key, item in container.items() if isinstance(container, dict) else enumerate(container):
        yield (f"{name}.{word(key)}" if name else word(key)) if len(name) <= NAME else name, item


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
            if start[:4] == ZIP_MAGIC:
                file.seek(0)
                archive = ArchiveReader(FileSource(file, path), flat=True)
                if archive.records and all(name.endswith(".npy") for name in archive.records):
                    return of_npz(archive)
                if any(name.partition("/")[2] == "constants.pkl" for name in archive.records):
                    return of_program(path)
                if any(name.partition("/")[2] == "archive_format" for name in archive.records):
                    return of_exported(path)
                return of_checkpoint(path, mapped=True)
        except (ValueError, RuntimeError) as error:
            raise CommandError(f"inspect: {path}: {error}") from None
    if start[:1] == b"\x80":  # the format before archives, which cannot be mapped
        return of_checkpoint(path, mapped=False)
    raise CommandError(f"inspect: {path}: this is none of .pt, .pt2, .safetensors, .npz and .npy")


def run(options):
    found, others = read(options.file)
    if options.json:
        print(json.dumps({"file": options.file, "tensors": found, "others": others}, indent=2, default=str))
        return 0
    total = sum(item["bytes"] for item in found)
    elements = sum(math.prod(item["shape"]) for item in found)
    rows = [
        (
            printable(item["name"], NAME),
            "x".join(map(str, item["shape"])) or "scalar",
            printable(item["dtype"], TEXT),
            size_text(item["bytes"]),
        )
        for item in found
    ]
    if rows:
        titles = ("name", "shape", "dtype", "size")
        widths = [max(len(row[i]) for row in [titles, *rows]) for i in range(4)]
        for row in [titles, *rows]:
            print(f"{row[0]:{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:{widths[2]}}  {row[3]:>{widths[3]}}")
        print()
    for name, value in list(others.items())[:20]:
        print(f"{printable(name, NAME)} = {printable(str(value), TEXT)}")
    if len(others) > 20:
        print(f"... and {len(others) - 20} more values (--json lists them)")
    if LISTED in (len(found), len(others)):
        print(f"the file has more than the {LISTED:,} that are listed")
    print(
        f"{len(found)} tensor{'s' * (len(found) != 1)}, {elements:,} elements, {size_text(total)} of data in a file of "
        f"{size_text(os.path.getsize(options.file))}"
    )
    return 0


def save_weights(model, path):
    """Write a model's weights; the ending of `path` decides the format."""
    if path.endswith(".safetensors"):
        cresset.safetensors.save_model(model, path)
    else:
        cresset.save(model.state_dict(), path)
    print(f"saved the weights to {path}")
