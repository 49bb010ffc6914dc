"""A graph as text, near TorchScript's:

graph(%x.1 : Tensor):
  %1 : int = prim::Constant[value=1]()
  %2 : Tensor = aten::add(%x.1, %1, %1) # model.py:7:11
  return (%2)
"""


def name(value):
    return f"%{value.debugName()}"


def typed(value):
    return f"{name(value)} : {value.type()}"


def attribute(value):
    """A value of an attribute, in short."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    if isinstance(value, bool):
        return str(int(value))
    if hasattr(value, "dtype") and hasattr(value, "dim"):
        return "<Tensor>" if value.dim() or value.numel() != 1 else f"{{{value.item()}}}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(attribute, value)) + "]"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return f"{int(value)}."
    return str(value)


def node_line(node, places=False):
    """A node without its blocks."""
    shown = [
        f"{key}={attribute(value)}" for key, value in node.attributes.items() if value is not None and key != "function"
    ]
    made = ", ".join(map(typed, node._outputs))
    call = f"{node._kind}{'[' + ', '.join(shown) + ']' if shown else ''}({', '.join(map(name, node._inputs))})"
    place = f" # {node.range}" if places and node.range is not None else ""
    return f"{made} = {call}{place}" if made else call + place


def node_text(node, indent=0, places=False):
    """A node with its blocks."""
    lines = ["  " * indent + node_line(node, places)]
    for number, block in enumerate(node._blocks):
        lines.append("  " * (indent + 1) + f"block{number}({', '.join(map(typed, block.inputs()))}):")
        lines += [node_text(inner, indent + 2, places).rstrip("\n") for inner in block._nodes]
        lines.append("  " * (indent + 2) + f"-> ({', '.join(map(name, block.outputs()))})")
    return "\n".join(lines) + "\n"


def graph_text(graph, places=True):
    inputs = ",\n      ".join(map(typed, graph.inputs()))
    nodes = "".join(node_text(node, 1, places) for node in graph.block()._nodes)
    return f"graph({inputs}):\n{nodes}  return ({', '.join(map(name, graph.outputs()))})\n"
