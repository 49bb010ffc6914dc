"""Random numbers on CUDA devices. A seed is accepted without one, so that programs can set it always."""

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


def manual_seed(seed):
    """Start the current device's random numbers from a seed. Without a device nothing happens."""
    int(seed)


def manual_seed_all(seed):
    """Start all devices' random numbers from a seed. Without a device nothing happens."""
    int(seed)


def seed():
    """Start the current device's random numbers from the operating system's randomness."""


def seed_all():
    """Start all devices' random numbers from the operating system's randomness."""


def initial_seed():
    """The seed from which the current device's numbers started."""
    require()


def get_rng_state(device="cuda"):
    """The state of a device's random numbers."""
    require()


def set_rng_state(new_state, device="cuda"):
    """Continue a device's random numbers from a state. Without a device nothing happens."""


def get_rng_state_all():
    """The states of all devices' random numbers."""
    return []


def set_rng_state_all(new_states):
    """Continue all devices' random numbers from states."""
    for number, state in enumerate(new_states):
        set_rng_state(state, number)
