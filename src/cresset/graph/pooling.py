"""Equal constants become one, at the beginning of the graph."""


def _key(node):
    value = node.attributes.get("value")
    kind = type(value)
    if kind not in (int, float, bool, str, type(None), complex) or "function" in node.attributes:
        return None
    return (str(node.output().type()), kind, repr(value))


def pool_constants(graph):
    """Move the graph's constants to its beginning, one for each value."""
    known, first = {}, []
    for node in list(graph.all_nodes()):
        if node.kind() != "prim::Constant":
            continue
        key = _key(node)
        if key is None:
            continue
        if key in known:
            node.output().replaceAllUsesWith(known[key])
            node.destroy()
        else:
            known[key] = node.output()
            node._leave()
            first.append(node)
    for node in reversed(first):
        graph.block().prependNode(node)
