"""A pass over a graph as an object: what is true before, the change, what is true after."""

import abc
from typing import NamedTuple

from ....nn import Module

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """What a pass gives: the module, and whether it was changed."""

    graph_module: Module
    modified: bool


class PassBase(abc.ABC):
    """A pass: a subclass writes `call`, and if it likes `requires` and `ensures`, which raise when something is
    wrong.
    """

    def __call__(self, graph_module):
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module):
        """Change the module; a PassResult, or None."""

    def requires(self, graph_module):  # noqa: B027 - nothing to ask is an answer
        """Look at the module before the change."""

    def ensures(self, graph_module):  # noqa: B027
        """Look at the module after the change."""
