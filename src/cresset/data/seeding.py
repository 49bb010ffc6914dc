"""Random numbers while samples are fetched.

Note [Samples and workers]
An epoch has one seed. The sample at place k of the epoch is fetched with all generators (cresset's, Python's, NumPy's)
set from that seed and k, wherever it is fetched: so augmentations are the same for any number of workers and after
resuming, and fetching in this process leaves the generators of the training loop as they were.
"""

import functools
import random
import sys

import cresset

_MASK = (1 << 64) - 1


def sample_seed(epoch_seed, place):
    """A number of 63 bits that looks random in both arguments (the mixing function of splitmix64)."""
    z = (epoch_seed + (place + 1) * 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return (z ^ (z >> 31)) >> 1


def seed_all(seed):
    """Set every generator that a sample might draw from."""
    cresset.default_generator.manual_seed(seed)
    own = cresset.random.thread_safe_generator()
    if own is not None:
        own.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed & 0xFFFFFFFF)


class KeepGenerators:
    """While the block runs the generators may be set to anything; after it they are as they were."""

    def __enter__(self):
        self.ours, self.pythons, self.numpys = cresset.get_rng_state(), random.getstate(), None
        numpy = sys.modules.get("numpy")
        if numpy is not None:  # lends another engine for the while: to save and restore a state takes NumPy 0.1 ms
            self.numpys = numpy.random.get_bit_generator()
            numpy.random.set_bit_generator(_spare_engine(numpy))

    def __exit__(self, *_):
        cresset.set_rng_state(self.ours)
        random.setstate(self.pythons)
        if self.numpys is not None:
            sys.modules["numpy"].random.set_bit_generator(self.numpys)


@functools.cache
def _spare_engine(numpy):
    return numpy.random.MT19937(0)
