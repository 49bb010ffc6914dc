"""Classes of one's own as containers of inputs and outputs."""

import dataclasses

from ..pytree import register_dataclass as _register

__all__ = ["register_dataclass"]


def register_dataclass(cls, *, serialized_type_name=None):
    """Let objects of a dataclass be inputs and outputs of exported programs: their fields are taken apart.

    Args:
        serialized_type_name: the name that files have for the class.

    >>> import dataclasses
    >>> @dataclasses.dataclass
    ... class Point:
    ...     x: cresset.Tensor
    ...     y: cresset.Tensor
    >>> cresset.export.register_dataclass(Point)
    """
    if not dataclasses.is_dataclass(cls):
        raise AssertionError(f"Only dataclasses can be registered with this function: {cls}")
    _register(cls, serialized_type_name=serialized_type_name)
