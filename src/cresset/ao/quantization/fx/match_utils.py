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


def _chain(node, pattern, modules):
    """The nodes of a pattern in the order of calls that ends in `node`; None: it is not there."""
    found = []
    for place, kind in enumerate(reversed(pattern)):
        if not is_call(node, kind, modules) or (place and len(node.users) > 1):
            return None
        found.append(node)
        node = node.args[0] if node.args else None
    return tuple(reversed(found))


def _tree(node, pattern, modules, inner=False):
    """The nodes of a pattern (last call, patterns of its arguments ...), the last call last."""
    if pattern is MatchAllNode:
        return ()
    kind, *arguments = pattern if isinstance(pattern, tuple) else (pattern,)
    if not is_call(node, kind, modules) or (inner and len(node.users) > 1):
        return None
    found = []
    if arguments and len(arguments) != len(node.args):
        return None
    for value, part in zip(node.args, arguments, strict=False):
        below = _tree(value, part, modules, True)
        if below is None:
            return None
        found += [one for one in below if one not in found]
    return (*found, node)


def find(node, config, modules):
    """The nodes of a pattern that ends in `node`; None: it does not."""
    if config._pattern_complex_format is not None:
        return _tree(node, config._pattern_complex_format, modules)
    pattern = config.pattern if isinstance(config.pattern, tuple) else (config.pattern,)
    return _chain(node, pattern, modules)


def size_of(config):
    """How many calls a pattern has, at least."""
    shape = config.pattern if config._pattern_complex_format is None else config._pattern_complex_format
    return sum(map(_size, shape)) if isinstance(shape, tuple) else 1


def _size(part):
    return sum(map(_size, part)) if isinstance(part, tuple) else part is not MatchAllNode


def matches(graph, modules, configs):
    """The patterns in a graph, none of whose nodes is in two: from the end on, the longest first, of these the last."""
    ordered = [config for _, config in sorted(enumerate(configs), key=lambda p: (-size_of(p[1]), -p[0]))]
    taken, found = set(), []
    for node in reversed(graph.nodes):
        if node in taken:
            continue
        for config in ordered:
            nodes = find(node, config, modules)
            if nodes and not taken.intersection(nodes):
                taken.update(nodes)
                found.append(Match(nodes, config))
                break
    return found[::-1]
