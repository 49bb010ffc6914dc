"""Intel's MKL, which cresset does not use: its products of matrices are its own."""

__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "is_available", "verbose"]

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available():
    """Whether the build has MKL."""
    return False


class verbose:
    """Inside, MKL would print what it does; there is none here."""

    def __init__(self, enable):
        self.enable = enable

    def __enter__(self):
        if self.enable == VERBOSE_ON:
            raise RuntimeError("mkl.verbose: this build has no MKL to print what it does")
        return self

    def __exit__(self, *_):
        return False
