"""Marks for what export should see as one."""

__all__ = ["mark_subclass_constructor_exportable_experimental"]


def mark_subclass_constructor_exportable_experimental(constructor_subclass):
    """Decorator of the `__init__` of a tensor subclass. Export records the operators on its parts, with or without the
    mark; anything but an `__init__` is refused.
    """
    if getattr(constructor_subclass, "__name__", None) != "__init__":
        raise RuntimeError(
            "mark_subclass_constructor_exportable_experimental can only be applied on subclass tensor.__init__, not on "
            f"{getattr(constructor_subclass, '__name__', constructor_subclass)!r}"
        )
    return constructor_subclass
