"""The default stream of random numbers: seeds, states, and forks of it."""

import contextlib
import copyreg

from ._native import Generator, default_generator

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


def rebuild_generator(state):
    """The inverse of pickling a Generator."""
    generator = Generator()
    generator.set_state(state)
    return generator


copyreg.pickle(Generator, lambda generator: (rebuild_generator, (generator.get_state(),)))


def manual_seed(seed):
    """Start the default stream from `seed`, between -2**63 and 2**64 - 1; the same seed gives the same numbers.

    >>> _ = cresset.manual_seed(0)
    >>> cresset.initial_seed()
    0
    """
    return default_generator.manual_seed(int(seed))


def seed():
    """Start the default stream from the operating system's randomness, and return the seed."""
    return default_generator.seed()


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
    """Inside, draw as you like: afterwards the default stream continues as if nothing had been drawn.

    >>> _ = cresset.manual_seed(0)
    >>> with cresset.random.fork_rng():
    ...     drawn = cresset.rand(1)
    >>> bool(cresset.rand(1) == drawn)
    True
    """
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
