"""What every graph promises, and the removal of what nothing uses."""

from . import text
from .types import BoolType, IntType

# Kinds that do something besides making their outputs.
EFFECTS = {
    "prim::RaiseException", "prim::SetAttr", "prim::Print", "prim::CallMethod", "prim::CallFunction", "prim::PythonOp",
    "prim::Enter", "prim::Exit", "prim::fork", "aten::wait",
    "aten::warn", "aten::append", "aten::extend", "aten::insert", "aten::pop", "aten::popitem", "aten::clear",
    "aten::remove", "aten::reverse", "aten::update", "aten::setdefault",
    "aten::Delete", "aten::_set_item", "aten::manual_seed", "aten::backward", "aten::sort", "aten::set_grad_enabled",
    "prim::rpc_async", "aten::save",
}  # fmt: skip


def lint(graph):
    """Raise RuntimeError at the first thing that is wrong."""
    _lint_block(graph.block(), set(), set())


def _wrong(node, why):
    raise RuntimeError(f"lint: {why}; at {text.node_line(node, places=True)}")


def _lint_block(block, known, names):
    known = set(known)
    for value in block.inputs():
        _made(block._param, value, known, names)
    for node in block._nodes:
        if node._block is not block:
            _wrong(node, "the node does not know the block it is in")
        _inputs(node, known)
        for inner in node._blocks:
            _lint_block(inner, known, names)
        _control(node)
        for value in node._outputs:
            _made(node, value, known, names)
    _inputs(block._return, known)


def _inputs(node, known):
    for value in node._inputs:
        if value not in known:
            _wrong(node, f"%{value.debugName()} is used before it is made, or made in a block that this one cannot see")
        if node not in value._users:
            _wrong(node, f"%{value.debugName()} does not know that it is used")


def _made(node, value, known, names):
    if value._node is not node or value in known:
        _wrong(node, f"%{value.debugName()} is not this node's, or made twice")
    if value.debugName() in names:
        _wrong(node, f"two values are called %{value.debugName()}")
    if value._type is None:
        _wrong(node, f"%{value.debugName()} has no type")
    known.add(value)
    names.add(value.debugName())


def _control(node):
    if node._kind == "prim::If":
        if len(node._blocks) != 2 or len(node._inputs) != 1 or not isinstance(node._inputs[0]._type, BoolType):
            _wrong(node, "an If takes one bool and has two blocks")
        for block in node._blocks:
            if block.inputs() or len(block.outputs()) != len(node._outputs):
                _wrong(
                    node,
                    f"each block takes nothing and gives {len(node._outputs)} values, this one {len(block.outputs())}",
                )
            _carry(node, block.outputs(), node._outputs)
    elif node._kind == "prim::Loop":
        if len(node._blocks) != 1 or len(node._inputs) != len(node._outputs) + 2:
            _wrong(node, "a Loop takes a count, a bool and a value for each output, and has one block")
        (block,) = node._blocks
        if not isinstance(node._inputs[0]._type, IntType) or not isinstance(node._inputs[1]._type, BoolType):
            _wrong(node, "a Loop takes an int and a bool first")
        if len(block.inputs()) != len(node._outputs) + 1 or len(block.outputs()) != len(node._outputs) + 1:
            _wrong(node, "the block of a Loop takes the round and the carried values, and gives a bool and these")
        _carry(node, node._inputs[2:], block.inputs()[1:])
        _carry(node, block.outputs()[1:], node._outputs)


def _carry(node, given, taken):
    for value, into in zip(given, taken, strict=True):
        if not value._type.isSubtypeOf(into._type):
            _wrong(
                node,
                f"%{value.debugName()} of type {value._type} cannot become %{into.debugName()} of type {into._type}",
            )


def has_effect(node):
    """Whether a node does more than making its outputs."""
    name = node._kind.rpartition("::")[2]
    if node._kind in EFFECTS or (node._kind.startswith("aten::") and name.endswith("_") and not name.endswith("__")):
        return True
    if node.schema is not None and any(argument.is_written for argument in node.schema.arguments):
        return True
    return not node._kind.startswith(("aten::", "prim::")) or any(
        has_effect(inner) for block in node._blocks for inner in block._nodes
    )


def eliminate_dead_code(block):
    """Take out, from the last to the first, the nodes that nothing uses and that have no effect."""
    for node in reversed(block.nodes()):
        for inner in node._blocks:
            eliminate_dead_code(inner)
        if node._kind == "prim::If":
            _drop_outputs(node)
        if not has_effect(node) and not any(value._users for value in node._outputs):
            node.destroy()


def _drop_outputs(node):
    """Take out the outputs of an If that nothing uses."""
    for index in reversed(range(len(node._outputs))):
        if not node._outputs[index]._users:
            for block in node._blocks:
                block._return.removeInput(index)
            node.eraseOutput(index)
            for block in node._blocks:
                eliminate_dead_code(block)
