"""What the modules of devices answer where there is none of them: torch.xpu, torch.mps and torch.mtia are made of
this."""


def is_available():
    """Whether there is such a device.

    >>> cresset.xpu.is_available()
    False
    """
    return False


def device_count():
    """How many devices there are."""
    return 0


def is_initialized():
    """Whether the backend was used already."""
    return False


def manual_seed(seed):
    """Start the current device's random numbers from a seed. Without a device nothing happens."""
    int(seed)


def manual_seed_all(seed):
    """Start all devices' random numbers from a seed. Without a device nothing happens."""
    int(seed)


def memory_allocated(device=None):
    """Bytes that tensors use."""
    return 0


def max_memory_allocated(device=None):
    """The most bytes that tensors used at a time."""
    return 0


def memory_reserved(device=None):
    """Bytes that the allocator holds."""
    return 0


def max_memory_reserved(device=None):
    """The most bytes that the allocator held at a time."""
    return 0


def needs_device(error):
    """A maker of functions that raise what `error(name)` gives.

    >>> from cresset.devices.absent import needs_device
    >>> needs_device(lambda name: RuntimeError(f"{name}: no device"))("synchronize", "Wait.")()
    Traceback (most recent call last):
    RuntimeError: synchronize: no device
    """

    def make(name, doc):
        def function(*args, **kwargs):
            raise error(name)

        function.__name__ = function.__qualname__ = name
        function.__doc__ = doc
        return function

    return make
