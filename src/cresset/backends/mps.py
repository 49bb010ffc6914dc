"""Apple's Metal, which this build does not have."""

__all__ = ["get_core_count", "get_name", "is_available", "is_built", "is_macos13_or_newer", "is_macos_or_newer"]


def is_built():
    """Whether the build has the backend."""
    return False


def is_available():
    """Whether there is such a device.

    >>> cresset.backends.mps.is_available()
    False
    """
    return False


def _absent(*_args):
    raise RuntimeError("backends.mps: this build has no MPS backend")


def is_macos_or_newer(major, minor):
    """Whether the system is at least this macOS."""
    import platform

    found = platform.mac_ver()[0]
    return bool(found) and tuple(int(part) for part in found.split(".")[:2]) >= (major, minor)


def is_macos13_or_newer(minor=0):
    """Whether the system is at least macOS 13."""
    return is_macos_or_newer(13, minor)


def get_name():
    """The name of the device."""
    _absent()


def get_core_count():
    """The number of its cores."""
    _absent()
