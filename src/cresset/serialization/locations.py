"""Where a storage was when it was saved, and where it goes when it is loaded: tags such as "cpu" and "cuda:0", and
map_location.
"""

import cresset
from cresset.storage import TypedStorage, UntypedStorage

from .quoting import printable

__all__ = [
    "default_restore_location",
    "location_tag",
    "register_package",
    "restore_function",
    "validate_cuda_device",
    "validate_hpu_device",
]

_packages = []  # (priority, tagger, deserializer), lowest priority first


def register_package(priority, tagger, deserializer):
    """Teach save and load a further kind of device.

    Args:
        priority: packages are asked in ascending order; the CPU has 10, CUDA 20.
        tagger: from a storage to its tag, or None if it is not of this kind.
        deserializer: from (storage on the CPU, tag) to a storage on the device, or None.
    """
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda package: package[0])


def location_tag(storage):
    """The tag of the place where a storage is.

    >>> cresset.serialization.location_tag(cresset.ones(2).untyped_storage())
    'cpu'
    """
    if getattr(storage, "_fake_device", None) is not None:
        return str(storage._fake_device)
    for _, tagger, _ in _packages:
        tag = tagger(storage)
        if tag:
            return tag
    raise RuntimeError(f"don't know how to determine data location of {type(storage).__name__}")


def default_restore_location(storage, location):
    """The storage at the place with this tag."""
    for _, _, deserializer in _packages:
        result = deserializer(storage, location)
        if result is not None:
            return result
    raise RuntimeError(
        f"don't know how to restore data location of {type(storage).__name__} (tagged with "
        f"{printable(location, 100)}); give map_location='cpu'"
    )


def _cpu_tag(storage):
    return "cpu" if storage.device.type == "cpu" else None


def _cpu_deserialize(storage, location):
    return storage if location == "cpu" else None


def _cuda_tag(storage):
    return f"cuda:{storage.device.index or 0}" if storage.device.type == "cuda" else None


def _cuda_deserialize(storage, location):
    if not location.startswith("cuda"):
        return None
    device = validate_cuda_device(location)
    return UntypedStorage._of(storage._bytes.to(f"cuda:{device}"))


def _meta_tag(storage):
    return "meta" if storage.device.type == "meta" else None


def _meta_deserialize(storage, location):
    return UntypedStorage(storage.nbytes(), device="meta") if location == "meta" else None


register_package(10, _cpu_tag, _cpu_deserialize)
register_package(20, _cuda_tag, _cuda_deserialize)
register_package(22, _meta_tag, _meta_deserialize)


def validate_cuda_device(location):
    """The number of the CUDA device in a tag; an error if this machine does not have it."""
    import cresset.cuda

    if not cresset.cuda.is_available():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. "
            "If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to "
            "map your storages to the CPU."
        )
    number = cresset.device(location).index or 0
    if number >= cresset.cuda.device_count():
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {number} but torch.cuda.device_count() is "
            f"{cresset.cuda.device_count()}. "
            "Please use torch.load with map_location to map your storages to an existing device."
        )
    return number


def validate_hpu_device(location):
    """HPU devices are not supported: always an error."""
    raise RuntimeError(
        f"Attempting to deserialize object on an HPU device ({printable(location, 100)}), which is not supported; use "
        "map_location='cpu'"
    )


def restore_function(map_location):
    """What map_location means: a function of (storage on the CPU, tag) that gives the storage to use."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(storage, map_location.get(location, location))
    if isinstance(map_location, (str, bytes)):
        place = map_location.decode() if isinstance(map_location, bytes) else map_location
        return lambda storage, location: default_restore_location(storage, place)
    if isinstance(map_location, cresset.device):
        return lambda storage, location: default_restore_location(storage, str(map_location))
    if not callable(map_location):
        raise TypeError(
            f"load: map_location is a device, its name, a dictionary or a function, not {type(map_location).__name__}"
        )

    def restore(storage, location):
        chosen = map_location(storage, location)
        if chosen is None:
            return default_restore_location(storage, location)
        if isinstance(chosen, TypedStorage):
            return chosen._untyped_storage
        if not isinstance(chosen, UntypedStorage):
            raise TypeError(f"load: map_location returned {type(chosen).__name__}, not a storage or None")
        return chosen

    return restore
