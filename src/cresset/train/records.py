"""The record of a run: one local file, one JSON object a line.

The kinds of line: "start" (what is run, and where), "step" (every so many steps: loss, learning rate, samples a
    second), "epoch"
(means and metrics), "checkpoint", "resume" and "end". Numbers that are not finite are written as the strings "nan",
"inf", "-inf". The file may come from somebody else: what is read has the types below, and takes no more memory than any
other file may.
"""

import json
import math
import os
import time

from cresset.serialization.bounds import json_cost, promised
from cresset.serialization.quoting import printable
from cresset.serialization.saving import replaced_when_whole

# By kind of line: what it must have, and what it may have, or None; whole numbers from 0 on, and texts.
NEEDED = {"epoch": ("epoch",), "step": ("step",), "checkpoint": ("step",), "end": ("reason",)}
WHOLE = {"start": ("parameters", "epochs", "seed"), "end": ("best_epoch",)}
TEXTS = {"start": ("model", "optimizer", "device", "monitor"), "end": ("reason",)}


def plain(value):
    """What JSON can hold: numbers of one-element tensors, lists of larger ones."""
    if isinstance(value, bool) or value is None or isinstance(value, (int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else "nan" if value != value else "inf" if value > 0 else "-inf"
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return str(value)


def number(value):
    """The inverse for one number; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):  # whole numbers have no limit, others do
        return None


class Records:
    """Appends to the file `path`; with None it writes nothing."""

    def __init__(self, path, *, after=None):
        """`after`: a resumed run's (steps, epochs) done; lines beyond them were written by a process that died, and are
        dropped.
        """
        self.path, self.file = path, None
        if path is None:
            return
        folder = os.path.dirname(os.fspath(path))
        if folder:
            os.makedirs(folder, exist_ok=True)
        if after is None:
            self.file = open(path, "w", encoding="utf-8")  # noqa: SIM115 - closed by close()
            return
        kept = [line for line in read_records(path) if _is_before(line, *after)] if os.path.exists(path) else []
        with replaced_when_whole(path) as file:
            file.writelines(json.dumps(line).encode() + b"\n" for line in kept)
        self.file = open(path, "a", encoding="utf-8")  # noqa: SIM115 - closed by close()

    def write(self, kind, **values):
        if self.file is not None:
            self.file.write(json.dumps({"kind": kind, "time": round(time.time(), 3), **plain(values)}) + "\n")

    def flush(self):
        if self.file is not None:
            self.file.flush()

    def close(self):
        if self.file is not None:
            self.file.close()
            self.file = None


def _is_before(line, steps, epochs):
    if line["kind"] == "epoch":
        return line["epoch"] <= epochs
    if line["kind"] in ("step", "checkpoint"):
        return line["step"] <= steps
    return line["kind"] != "end"


def read_records(path):
    """The lines of a run's file as dicts. A last line that was cut off by a dying process is left out.

    >>> records = cresset.train.records.Records("run.jsonl")
    >>> records.write("epoch", epoch=1, loss=0.5)
    >>> records.close()
    >>> cresset.train.read_records("run.jsonl")[0]["loss"]
    0.5
    """
    with open(path, "rb") as file:
        data = file.read()
    if json_cost(data) > promised(len(data)):
        raise ValueError(
            f"read_records: {os.fspath(path)} has values that take much more memory than the file's {len(data)} bytes"
        )
    lines, found = data.split(b"\n"), []
    for at, text in enumerate(lines):
        if not text.strip():
            continue
        try:
            line = json.loads(text.decode("utf-8", "replace"))
            check(line)
        except (ValueError, RecursionError) as error:
            if at == len(lines) - 1:  # whole lines end with a line break
                break
            raise ValueError(
                f"read_records: line {at + 1} of {os.fspath(path)} is not a record of a run ({error})"
            ) from error
        found.append(line)
    return found


def check(line):
    """Refuse what is not a record: its values go into pages and sums."""
    if not isinstance(line, dict) or not isinstance(line.get("kind"), str):
        raise ValueError("no object with a kind")
    kind = line["kind"]
    for name in NEEDED.get(kind, ()):
        if name not in line:
            raise ValueError(f"a line of the kind {kind} has no {name}")
    for name in ("step", "epoch", *WHOLE.get(kind, ())):
        value = line.get(name)
        if name in line and not (
            type(value) is int and abs(value) < 2**63 or value is None and name in WHOLE.get(kind, ())
        ):
            raise ValueError(f"{name} should be a whole number below 2**63, got {_said(value)}")
    for name in TEXTS.get(kind, ()):
        if not isinstance(line.get(name), (str, type(None))):
            raise ValueError(f"{name} should be text, got {_said(line[name])}")


def _said(value):
    if isinstance(value, (str, float, bool, type(None))):
        return printable(repr(value), 60)
    return f"a value of type {type(value).__name__}"
