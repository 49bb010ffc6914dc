"""torch._library.simple_registry: what is registered for an operator, found by its name."""

from typing import NamedTuple

from .utils import lookup_op


class Kernel(NamedTuple):
    """A function, and where it stands."""

    func: object
    source: str


class FakeImpl(NamedTuple):
    """The shape rule of an operator; `kernel` is None where there is none."""

    kernel: object

    @property
    def kernels(self):
        """The rule in a list, as PyTorch has it, or none."""
        return [] if self.kernel is None else [self.kernel]


class SimpleOperatorEntry:
    """What is registered for an operator."""

    def __init__(self, qualname):
        self.qualname = qualname

    @property
    def fake_impl(self):
        """The shape rule."""
        op = lookup_op(self.qualname)
        function = getattr(op, "_fake", None)
        return FakeImpl(None if function is None else Kernel(function, op._fake_source))


class SimpleLibraryRegistry:
    """All operators, by name."""

    def find(self, qualname):
        """What is registered for the operator of a name."""
        return SimpleOperatorEntry(qualname)


singleton = SimpleLibraryRegistry()
