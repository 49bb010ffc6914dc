"""Arm's KleidiAI, which this build does not have."""

__all__ = ["is_available"]


def is_available():
    """Whether the library is here."""
    return False
