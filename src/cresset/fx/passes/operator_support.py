"""Which nodes a backend can run: rules, and rules made of rules."""

import abc

from ..node import Node
from .shape_prop import TensorMetadata
from .tools_common import CALLABLE_NODE_OPS, get_node_target

__all__ = ["OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support"]


class OperatorSupportBase(abc.ABC):
    """A rule: a subclass says whether a node can be run."""

    @abc.abstractmethod
    def is_node_supported(self, submodules, node):
        """Whether `node` can be run; `submodules` has the graph's modules by name."""


class OperatorSupport(OperatorSupportBase):
    """A rule by a table from what is called ("torch.relu", as get_node_target says it) to the dtypes that are allowed:
    None for all, or a pair of those of the arguments by place and by name, in each of which None is for all.
    """

    def __init__(self, support_dict=None):
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules, node):
        """Whether the table has what the node calls, with these dtypes."""
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        allowed = self._support_dict[target]
        if allowed is None:
            return True
        by_place, by_name = allowed
        checks = [*zip(node.args, by_place), *((node.kwargs.get(name), dtypes) for name, dtypes in by_name.items())]
        return all(
            dtypes is None or not isinstance(value, Node) or _dtype_of(value) in dtypes for value, dtypes in checks
        )


def create_op_support(is_node_supported):
    """A rule of a function of (submodules, node)."""

    class FunctionalOperatorSupport(OperatorSupportBase):
        def is_node_supported(self, submodules, node):
            return is_node_supported(submodules, node)

    return FunctionalOperatorSupport()


def chain(*op_support):
    """A rule that holds where all of these do."""
    return create_op_support(lambda modules, node: all(one.is_node_supported(modules, node) for one in op_support))


def any_chain(*op_support):
    """A rule that holds where one of these does."""
    return create_op_support(lambda modules, node: any(one.is_node_supported(modules, node) for one in op_support))


class OpSupports:
    """Small rules to build with."""

    @classmethod
    def decline_if_input_dtype(cls, dtype):
        """No node that reads this dtype."""
        return create_op_support(lambda modules, node: all(_dtype_of(arg) != dtype for arg in node.all_input_nodes))

    @classmethod
    def decline_if_node_in_names(cls, disallow_set):
        """No node with one of these names."""
        return create_op_support(lambda modules, node: node.name not in disallow_set)


def _dtype_of(node):
    known = node.meta.get("tensor_meta")
    return known.dtype if isinstance(known, TensorMetadata) else node.meta["type"]
