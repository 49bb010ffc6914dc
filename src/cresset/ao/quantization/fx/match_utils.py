"""Where in a graph the patterns of a backend are."""

from typing import Any, NamedTuple

from cresset.fx import Node
from cresset.nn.utils.parametrize import type_before_parametrizations

__all__ = ["MatchAllNode"]


class MatchAllNode:
    """In a pattern: any value."""


class Match(NamedTuple):
    """A pattern that was found: its nodes in the order of their calls, and what the backend says of it."""

    nodes: tuple
    config: Any


def kind_of(node, modules):
    """What a node calls: the type of a module, a function, or a method's name."""
    if node.op == "call_module":
        return type_before_parametrizations(modules[node.target])
    return node.target


def is_call(node, kind, modules):
    """Whether a node calls this kind; a type also stands for the name of an attribute that is read."""
    if not isinstance(node, Node) or node.op not in ("call_module", "call_function", "call_method"):
        return False
    if isinstance(kind, str) and node.op == "call_function":
        return node.target is getattr and len(node.args) > 1 and node.args[1] == kind
    return kind_of(node, modules) == kind and (node.op == "call_module") == isinstance(kind, type)


def _found(node, pattern, modules, inner=False):
    """The nodes of a pattern (last call, patterns of its arguments ...), the last call last; None: it is not there."""
    if pattern is MatchAllNode:
        return ()
    kind, *arguments = pattern if isinstance(pattern, tuple) else (pattern,)
    if not is_call(node, kind, modules) or (inner and len(node.users) > 1):
        return None
    if arguments and len(arguments) != len(node.args):
        return None
    found = []
    for value, part in zip(node.args, arguments, strict=False):
        below = _found(value, part, modules, True)
        if below is None:
            return None
        found += [one for one in below if one not in found]
    return (*found, node)


def _size(part):
    """How many calls a pattern has, at least."""
    return sum(map(_size, part)) if isinstance(part, tuple) else part is not MatchAllNode


def matches(graph, modules, configs):
    """The patterns in a graph, none of whose nodes is in two: from the end on, the longest first, of these the last."""
    placed = sorted(enumerate(configs), key=lambda pair: (-_size(pair[1].nested_pattern), -pair[0]))
    ordered = [config for _, config in placed]
    taken, found = set(), []
    for node in reversed(graph.nodes):
        if node in taken:
            continue
        for config in ordered:
            nodes = _found(node, config.nested_pattern, modules)
            if nodes and not taken.intersection(nodes):
                taken.update(nodes)
                found.append(Match(nodes, config))
                break
    return found[::-1]
