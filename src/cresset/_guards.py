"""torch._guards: the mode of fake tensors that is on, or that values are of."""

from .pytree import tree_leaves


def active_fake_mode():
    """The innermost FakeTensorMode that is on, None if none is."""
    from ._subclasses.fake_tensor import FakeTensorMode
    from .dispatch import handling

    return next((mode for mode in reversed(handling.stack()) if isinstance(mode, FakeTensorMode)), None)


def detect_fake_mode(inputs=None):
    """The FakeTensorMode that is on, or that the fake tensors among the inputs are of; None without any.

    >>> cresset._guards.detect_fake_mode([cresset.ones(2)]) is None
    True
    """
    from ._subclasses.fake_tensor import FakeTensor

    active = active_fake_mode()
    modes = [active] if active is not None else []
    modes += [leaf.fake_mode for leaf in tree_leaves(inputs) if isinstance(leaf, FakeTensor)]
    if any(mode is not modes[0] for mode in modes):
        raise AssertionError("detect_fake_mode: the inputs are of several fake modes, or of another one than is on")
    return modes[0] if modes else None
