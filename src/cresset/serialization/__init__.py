"""PyTorch's torch.serialization: save and load, and what surrounds them. No file that is loaded runs code (see
constructors.py).
"""

# ruff: noqa: F401  (the names are here to be imported)

import os as _os
import tempfile as _tempfile
import typing as _typing

from cresset import device as _device
from cresset.storage import TypedStorage, UntypedStorage

from .loading import get_unsafe_globals_in_checkpoint, load
from .locations import (
    default_restore_location,
    location_tag,
    register_package,
    validate_cuda_device,
    validate_hpu_device,
)
from .names import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from .options import (
    LoadEndianness,
    _serialization_tls,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from .records import _is_zipfile, _open_file_like, _open_zipfile_reader, _open_zipfile_writer
from .saving import DEFAULT_PROTOCOL, MAGIC_NUMBER, PROTOCOL_VERSION, _get_layout, save

mkdtemp = _tempfile.mkdtemp
StorageType = type
FILE_LIKE = FileLike = str | _os.PathLike | _typing.IO[bytes]
MAP_LOCATION = _typing.Callable | _device | str | dict | None


class SourceChangeWarning(Warning):
    """The source of a module's class is not what it was when the module was saved."""


def normalize_storage_type(storage_type):
    """The class of storages in the main namespace: cresset.FloatStorage for cuda.FloatStorage.

    >>> cresset.serialization.normalize_storage_type(cresset.FloatStorage) is cresset.FloatStorage
    True
    """
    import cresset

    return storage_type if storage_type in (TypedStorage, UntypedStorage) else getattr(cresset, storage_type.__name__)


def storage_to_tensor_type(storage):
    """The class of tensors that goes with a typed storage.

    >>> cresset.serialization.storage_to_tensor_type(cresset.FloatStorage(1)) is cresset.FloatTensor
    True
    """
    import cresset

    return getattr(cresset, storage._pickle_storage_type().replace("Storage", "Tensor"))


def check_module_version_greater_or_equal(module, req_version_tuple, error_if_malformed=True):
    """Whether a module's __version__ is at least the one given."""
    try:
        version = tuple(
            kind(part) for kind, part in zip(map(type, req_version_tuple), module.__version__.split("."), strict=False)
        )
    except Exception as error:
        message = (
            f"'{module.__name__}' module version string is malformed '{module.__version__}' and cannot be "
            f"compared with tuple {req_version_tuple}"
        )
        if error_if_malformed:
            raise RuntimeError(message) from error
        import warnings

        warnings.warn(message + ", but continuing assuming that requirement is met", stacklevel=2)
        return True
    return version >= tuple(req_version_tuple)
