"""The CUDA devices: which there are, what they are, and which one is current."""

import functools

from .. import _native
from .absent import require

__all__ = [
    "can_device_access_peer", "current_device", "device", "device_count", "device_of", "get_arch_list",
    "get_device_capability", "get_device_name",
    "get_device_properties", "get_gencode_flags", "get_sync_debug_mode", "init", "ipc_collect", "is_available",
    "is_bf16_supported", "is_initialized",
    "is_tf32_supported", "set_device", "set_sync_debug_mode", "synchronize",
]  # fmt: skip


def is_available():
    """Whether there is a CUDA device that can be used.

    >>> cresset.cuda.is_available() == (cresset.cuda.device_count() > 0)
    True
    """
    return _native.cuda.device_count() > 0


def device_count():
    """How many CUDA devices there are: those that CUDA_VISIBLE_DEVICES names, or all."""
    return _native.cuda.device_count()


def is_initialized():
    """Whether the backend was used already."""
    return _native.cuda.is_started()


def is_bf16_supported(including_emulation=True):
    """Whether the current device computes in bfloat16."""
    return is_available() and (get_device_capability()[0] >= 8 or including_emulation)


def is_tf32_supported():
    """Whether the current device computes in TF32."""
    return is_available() and get_device_capability()[0] >= 8


def get_arch_list():
    """The architectures that kernels are compiled for: those of the devices at hand, since kernels are compiled when
    first used.
    """
    return sorted({"sm_{}{}".format(*get_device_capability(number)) for number in range(device_count())})


def get_gencode_flags():
    """The compiler flags for `get_arch_list`."""
    return " ".join(f"-gencode compute=compute_{arch[3:]},code={arch}" for arch in get_arch_list())


def device_index(device, optional=False):
    """The number of a CUDA device given as a number, a name or a device.

    Args:
        device: None is the current device.
        optional: None, and a device without a number, are -1 instead.
    """
    if isinstance(device, bool) or not isinstance(device, (int, str, _native.device, type(None))):
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got: {device}")
    if isinstance(device, int):
        return device
    if isinstance(device, str):
        device = _native.device(device)
    if device is not None and device.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {device}")
    index = None if device is None else device.index
    if index is not None:
        return index
    return -1 if optional else current_device()


def init():
    """Start the backend; usually the first use does."""
    require()
    _native.cuda.start(current_device())


def current_device():
    """The number of the current device."""
    require()
    return _native.cuda.current_device()


def set_device(device):
    """Make a device the current one. A negative number changes nothing."""
    index = device_index(device, optional=True)
    if index >= 0:
        require()
        _native.cuda.set_device(index)


def synchronize(device=None):
    """Wait for all work on a device, and raise what went wrong on it meanwhile (a bad index, say)."""
    require()
    _native.cuda.synchronize(device_index(device))


class _CudaDeviceProperties:
    """What a device is: name, memory, processors. Made by get_device_properties."""

    def __init__(self, facts):
        self.__dict__.update(facts)

    @property
    def gcnArchName(self):
        return self.name

    def __repr__(self):
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory // 2**20}MB, "
            f"multi_processor_count={self.multi_processor_count}, uuid={self.uuid}, pci_bus_id={self.pci_bus_id}, "
            f"pci_device_id={self.pci_device_id}, "
            f"pci_domain_id={self.pci_domain_id}, L2_cache_size={self.L2_cache_size // 2**20}MB)"
        )


@functools.cache
def _properties(index):
    return _CudaDeviceProperties(_native.cuda.properties(index))


def get_device_properties(device=None):
    """Name, memory and processors of a device."""
    require()
    return _properties(device_index(device))


def get_device_name(device=None):
    """The name of a device."""
    return get_device_properties(device).name


def get_device_capability(device=None):
    """The compute capability of a device, as (major, minor)."""
    facts = get_device_properties(device)
    return facts.major, facts.minor


def can_device_access_peer(device, peer_device):
    """Whether one device reads another's memory directly."""
    require()
    return _native.cuda.can_access_peer(device_index(device), device_index(peer_device))


def ipc_collect():
    """Free memory that other processes no longer use. Nothing is kept for them, so there is nothing to do."""
    require()


def get_sync_debug_mode():
    """What happens when an operation waits for the device: 0 nothing, 1 a warning, 2 an error."""
    require()
    return _native.cuda.wait_mode()


def set_sync_debug_mode(debug_mode):
    """Say what happens when an operation makes the host wait for the device: "default" (0, nothing), "warn" (1) or
    "error" (2).

    `item()`, `.cpu()`, printing, `if tensor:`, `nonzero`, copies of memory that is not pinned and `Stream.synchronize`
    wait; `torch.cuda.synchronize` says so by its name and is not reported. Operators that are computed on the CPU for
    want of a kernel wait too, and are.
    """
    require()
    if isinstance(debug_mode, str):
        modes = {"default": 0, "warn": 1, "error": 2}
        if debug_mode not in modes:
            raise RuntimeError(
                f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, got {debug_mode!r}"
            )
        debug_mode = modes[debug_mode]
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1 or 2, got {debug_mode!r}")
    _native.cuda.set_wait_mode(debug_mode)


class device:
    """Inside, a device is the current one. A negative number changes nothing.

    >>> with cresset.cuda.device(-1):
    ...     pass
    """

    def __init__(self, device):
        self.idx = device_index(device, optional=True)
        self.prev_idx = -1

    def __enter__(self):
        if self.idx >= 0:
            self.prev_idx = current_device()
            _native.cuda.set_device(self.idx)

    def __exit__(self, *_):
        if self.prev_idx >= 0:
            _native.cuda.set_device(self.prev_idx)
        return False


class device_of(device):
    """Inside, the device of a tensor or storage is the current one; anything else changes nothing."""

    def __init__(self, obj):
        super().__init__(obj.get_device() if obj.is_cuda else -1)
