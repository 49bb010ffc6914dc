"""Random numbers on CUDA devices: each has a generator of its own. A seed is accepted without a device, so that
programs can set it always.
"""

from .. import _native
from .absent import require

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


def _generator(device):
    """The generator of a device given as a number, a name or a device."""
    require()
    index = device if isinstance(device, int) else _native.device(device).index
    if index is None or index == -1:
        index = _native.cuda.current_device()
    if not 0 <= index < _native.cuda.device_count():
        raise IndexError(f"there is no device cuda:{index}; there are {_native.cuda.device_count()}")
    return _native.cuda.default_generator(index)


def manual_seed(seed):
    """Start the current device's random numbers from a seed. Without a device nothing happens."""
    seed = int(seed)
    if _native.cuda.device_count():
        _generator("cuda").manual_seed(seed)


def manual_seed_all(seed):
    """Start all devices' random numbers from a seed; also those of devices that are used for the first time later."""
    _native.cuda.manual_seed_all(int(seed))


def seed():
    """Start the current device's random numbers from the operating system's randomness."""
    if _native.cuda.device_count():
        _generator("cuda").seed()


def seed_all():
    """Start all devices' random numbers from the operating system's randomness, with one seed."""
    if _native.cuda.device_count():
        _native.cuda.manual_seed_all(_native.cuda.default_generator(0).seed())


def initial_seed():
    """The seed from which the current device's numbers started."""
    return _generator("cuda").initial_seed()


def get_rng_state(device="cuda"):
    """The state of a device's random numbers: 16 bytes on the CPU, the seed and how many numbers were drawn."""
    return _generator(device).get_state()


def set_rng_state(new_state, device="cuda"):
    """Continue a device's random numbers from a state. Without a device nothing happens."""
    if _native.cuda.device_count():
        _generator(device).set_state(new_state)


def get_rng_state_all():
    """The states of all devices' random numbers."""
    return [get_rng_state(number) for number in range(_native.cuda.device_count())]


def set_rng_state_all(new_states):
    """Continue all devices' random numbers from states."""
    for number, state in enumerate(new_states):
        set_rng_state(state, number)
