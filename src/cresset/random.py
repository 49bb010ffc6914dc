"""The default stream of random numbers: seeds, states, and forks of it."""

import contextlib
import copyreg
import threading

from . import _native
from ._native import Generator, default_generator

__all__ = [
    "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state",
    "thread_safe_generator",
]  # fmt: skip

_of_thread = threading.local()  # .generator: of a thread that fetches samples for a DataLoader


def rebuild_generator(state, device="cpu"):
    """The inverse of pickling a Generator."""
    generator = Generator(device)
    generator.set_state(state)
    return generator


copyreg.pickle(Generator, lambda generator: (rebuild_generator, (generator.get_state(), str(generator.device))))


def manual_seed(seed):
    """Start the default streams of all devices from `seed`, between -2**63 and 2**64 - 1; the same seed gives the same
    numbers.

    >>> _ = cresset.manual_seed(0)
    >>> cresset.initial_seed()
    0
    """
    seed = int(seed)
    default_generator.manual_seed(seed)
    _native.cuda.manual_seed_all(seed)
    return default_generator


def seed():
    """Start the default streams of all devices from the operating system's randomness, and return the seed."""
    drawn = default_generator.seed()
    _native.cuda.manual_seed_all(drawn)
    return drawn


def initial_seed():
    """The seed from which the default stream started."""
    return default_generator.initial_seed()


def get_rng_state():
    """The state of the default stream: a tensor of bytes that PyTorch's set_rng_state takes as well.

    >>> cresset.get_rng_state().shape
    torch.Size([5056])
    """
    return default_generator.get_state()


def set_rng_state(new_state):
    """Continue the default stream from a state that get_rng_state (also PyTorch's) gave."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type="cuda"):
    """Inside, draw as you like: afterwards the default streams continue as if nothing had been drawn.

    Args:
        devices: the CUDA devices whose streams are kept too; all if it is None.
        enabled: False changes nothing.

    >>> _ = cresset.manual_seed(0)
    >>> with cresset.random.fork_rng():
    ...     drawn = cresset.rand(1)
    >>> bool(cresset.rand(1) == drawn)
    True
    """
    if not enabled:
        yield
        return
    generators = [default_generator]
    if device_type == "cuda":
        numbers = range(_native.cuda.device_count()) if devices is None else map(_number, devices)
        generators += [_native.cuda.default_generator(number) for number in numbers]
    states = [generator.get_state() for generator in generators]
    try:
        yield
    finally:
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)


def _number(device):
    """The number of a CUDA device given as a number, a name or a device."""
    number = device if isinstance(device, int) else _native.device(device).index
    return _native.cuda.current_device() if number is None else number


def thread_safe_generator():
    """In a thread that fetches samples for a DataLoader: its own Generator, which starts anew with each sample; None
    elsewhere, where the default stream is one's own.

    >>> cresset.randint(0, 10, (5,), generator=cresset.random.thread_safe_generator()).shape
    torch.Size([5])
    """
    return getattr(_of_thread, "generator", None)


def begin_thread_generator():
    """Give this thread a Generator for `thread_safe_generator`."""
    _of_thread.generator = Generator()
