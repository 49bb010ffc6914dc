"""What a checkpoint says of itself, and what its processes say to each other, as bytes: pickles of the classes of this
folder and of plain data, without tensors. Reading one runs nothing.
"""

import io
import pathlib
import pickle

from ...serialization.loading import Load
from ...serialization.saving import Pickler
from . import metadata, planner, storage


def _named(room, kinds):
    return {f"torch.distributed.checkpoint.{room}.{kind.__name__}": kind for kind in kinds}


# By PyTorch's names, which files have.
NAMED = {
    **_named("metadata", metadata.CLASSES),
    **_named("planner", planner.CLASSES),
    **_named("storage", storage.CLASSES),
    "pathlib.PosixPath": pathlib.PurePosixPath,
    "pathlib.PurePosixPath": pathlib.PurePosixPath,
}


def may_name(room, *kinds):
    """Let pickles name the classes with which a storage says where something lies."""
    NAMED.update(_named(room, kinds))


def write(value):
    """The bytes of a value."""
    text = io.BytesIO()
    Pickler(text, 4, lambda _: None).dump(value)
    return text.getvalue()


def read(data):
    """The value; a class that is not known by name is an UnpicklingError."""
    return _Reading(data).reader(data).read()


class _Reading(Load):
    named = NAMED

    def __init__(self, data):
        super().__init__({"restore": None, "encoding": "utf-8", "trusting": False}, len(data))

    def persistent(self, saved_id):
        raise pickle.UnpicklingError("a storage, which `.metadata` has none of")
