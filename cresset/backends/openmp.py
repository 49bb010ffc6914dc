"""OpenMP, which runs the threads of this build."""

__all__ = ["is_available"]


def is_available():
    """Whether the build has OpenMP.

    >>> cresset.backends.openmp.is_available()
    True
    """
    return True
