"""OpenMP, which cresset does without: its threads are a pool of its own, which a forked child starts anew."""

__all__ = ["is_available"]


def is_available():
    """Whether OpenMP runs the threads of this build: never. `cresset.set_num_threads` and OMP_NUM_THREADS count for
    cresset's own.

    >>> cresset.backends.openmp.is_available()
    False
    """
    return False
