"""Graph, Block, Node and Value.

A Value is made once, by a Node or as the input of a Block. A Node has a kind (`aten::add`, `prim::If`), inputs,
outputs, attributes that are plain data, and blocks for control flow. The names of the methods are those that programs
use on PyTorch's graphs.

Control flow: `prim::If` takes a bool; its two blocks take nothing and give the node's outputs. `prim::Loop` takes (most
    rounds, whether to begin, carried values...); its block
takes (round, carried...) and gives (whether to go on, carried...).
"""

from ..ops.aten_table import tags_of
from ..ops.tags import Tag
from . import text
from .types import TensorType


class Use:
    """That a node takes a value as its input number `offset`."""

    __slots__ = ("offset", "user")

    def __init__(self, user, offset):
        self.user, self.offset = user, offset

    def __repr__(self):
        return f"Use(user={self.user}, offset={self.offset})"


class Value:
    """What a node makes or a block takes. Its name is unique in the graph; without one of its own it is a number."""

    __slots__ = ("_name", "_node", "_number", "_type", "_users")

    def __init__(self, node, number, type):
        self._node, self._number, self._type, self._name = node, number, type, None
        self._users = []  # the nodes that take it, once for each time they do

    def node(self):
        """The node that makes it; the Param node of its block for an input."""
        return self._node

    def type(self):
        return self._type

    def setType(self, type):
        self._type = type
        return self

    def unique(self):
        """Its number."""
        return self._number

    def debugName(self):
        return self._name if self._name is not None else str(self._number)

    def hasDebugName(self):
        return self._name is not None

    def setDebugName(self, name):
        """Call it so; where the name is taken, with a number behind."""
        self._name = self._node._graph._free_name(name, self) if name else None
        return self

    def offset(self):
        """Which of its node's outputs it is."""
        return self._node._outputs.index(self)

    def uses(self):
        """Every place that takes it."""
        seen, found = set(), []
        for user in self._users:
            if id(user) not in seen:
                seen.add(id(user))
                found += [Use(user, offset) for offset, value in enumerate(user._inputs) if value is self]
        return found

    def hasUses(self):
        return bool(self._users)

    def replaceAllUsesWith(self, other):
        for use in self.uses():
            use.user.replaceInput(use.offset, other)

    def isCompleteTensor(self):
        """Whether it is a tensor whose dtype and sizes are known."""
        return isinstance(self._type, TensorType) and None not in (self._type.dtype(), self._type.sizes())

    def requires_grad(self):
        return isinstance(self._type, TensorType) and bool(self._type.requires_grad())

    def constant(self):
        """The value of a constant; the node's `value`, or None."""
        return self._node.attributes.get("value")

    toIValue = constant  # PyTorch's name for it

    def is_constant(self):
        return self._node._kind == "prim::Constant"

    def __repr__(self):
        return f"{self.debugName()} defined in ({text.node_line(self._node)})"


class Node:
    """A call of an operator, or control flow.

    `schema` is the aten operator's schema that the call was resolved to (an `ops.namespaces.Schema`), None for prim
    nodes that have none. `attributes` holds plain data: `name` of GetAttr, SetAttr and CallMethod, `value` of Constant
    (numbers, text, lists, tensors, devices, None), `function` of a constant function.
    """

    __slots__ = (
        "_block",
        "_blocks",
        "_graph",
        "_inputs",
        "_kind",
        "_outputs",
        "attributes",
        "place",
        "range",
        "schema",
        "scope",
    )

    def __init__(self, graph, kind, schema=None):
        self._graph, self._kind, self._block, self.schema = graph, kind, None, schema
        self._inputs, self._outputs, self._blocks, self.attributes = [], [], [], {}
        self.range = None  # SourceRange
        self.scope = ""  # the module in which a recording met it, such as "encoder.layers.0"
        self.place = None  # the line of the program, as a recording knows it

    def kind(self):
        return self._kind

    def graph(self):
        return self._graph

    def owningBlock(self):
        return self._block

    def inputs(self):
        return list(self._inputs)

    def outputs(self):
        return list(self._outputs)

    def blocks(self):
        return list(self._blocks)

    def input(self, name=None):
        """The only input; with a name, the input that the schema calls so."""
        if name is not None:
            return self.inputsAt([argument.name for argument in self.schema.arguments].index(name))
        (only,) = self._inputs
        return only

    def output(self):
        (only,) = self._outputs
        return only

    def inputsAt(self, index):
        return self._inputs[index]

    def outputsAt(self, index):
        return self._outputs[index]

    def inputsSize(self):
        return len(self._inputs)

    def outputsSize(self):
        return len(self._outputs)

    def hasMultipleOutputs(self):
        return len(self._outputs) > 1

    def sourceRange(self):
        return self.range.highlight() if self.range is not None else ""

    def scopeName(self):
        return self.scope

    def isNondeterministic(self):
        """Whether it draws random numbers; dropout does in training."""
        if self.schema is None or Tag.nondeterministic_seeded not in tags_of(self.schema):
            return False
        train = next((v for v, a in zip(self._inputs, self.schema.arguments) if a.name == "train"), None)
        return self._kind not in ("aten::dropout", "aten::dropout_") or train is None or train.constant() is not False

    # ---- attributes

    def attributeNames(self):
        return list(self.attributes)

    def hasAttribute(self, name):
        return name in self.attributes

    def kindOf(self, name):
        """'i', 'f', 's', 't', 'c', 'ival' for a value, with an s behind for a list of them."""
        value = self.attributes[name]
        one, many = (value[0] if value else 0, "s") if isinstance(value, list) else (value, "")
        kinds = ((bool, "i"), (int, "i"), (float, "f"), (complex, "c"), (str, "s"))
        return (
            next((kind for type_, kind in kinds if isinstance(one, type_)), "t" if hasattr(one, "dtype") else "ival")
            + many
        )

    def _attribute(self, name):
        return self.attributes[name]

    i = f = s = t = c = ival = is_ = fs = ss = ts = _attribute

    def _set_attribute(self, name, value):
        self.attributes[name] = value
        return self

    i_ = f_ = s_ = t_ = c_ = ival_ = _set_attribute

    # ---- editing

    def addInput(self, value):
        self._inputs.append(value)
        value._users.append(self)
        return value

    def insertInput(self, index, value):
        self._inputs.insert(index, value)
        value._users.append(self)

    def replaceInput(self, index, value):
        self._inputs[index]._users.remove(self)
        self._inputs[index] = value
        value._users.append(self)

    def replaceInputWith(self, old, new):
        for index, value in enumerate(self._inputs):
            if value is old:
                self.replaceInput(index, new)

    def removeInput(self, index):
        self._inputs.pop(index)._users.remove(self)

    def removeAllInputs(self):
        while self._inputs:
            self.removeInput(len(self._inputs) - 1)

    def addOutput(self, type=None, name=None):
        value = self._graph._new_value(self, TensorType() if type is None else type)
        self._outputs.append(value)
        return value.setDebugName(name) if name else value

    def eraseOutput(self, index):
        if self._outputs[index].hasUses():
            raise RuntimeError(
                f"eraseOutput: %{self._outputs[index].debugName()} is still used, in {text.node_line(self)}"
            )
        self._outputs.pop(index)

    def addBlock(self):
        block = Block(self._graph, self)
        self._blocks.append(block)
        return block

    def insertBefore(self, other):
        """Put this new node into the other's block, before it."""
        other._block._insert(self, other._block._nodes.index(other))
        return self

    def insertAfter(self, other):
        other._block._insert(self, other._block._nodes.index(other) + 1)
        return self

    def moveBefore(self, other):
        self._leave()
        return self.insertBefore(other)

    def moveAfter(self, other):
        self._leave()
        return self.insertAfter(other)

    def replaceAllUsesWith(self, other):
        for mine, theirs in zip(self._outputs, other._outputs, strict=True):
            mine.replaceAllUsesWith(theirs)

    def destroy(self):
        """Take it out of the graph. Nothing may use its outputs."""
        for output in self._outputs:
            if output.hasUses():
                raise RuntimeError(f"destroy: %{output.debugName()} is still used, in {text.node_line(self)}")
        for block in self._blocks:
            block.clear()
        self.removeAllInputs()
        if self._block is not None:
            self._leave()

    def _leave(self):
        self._block._nodes.remove(self)
        self._block = None

    def findNode(self, kind, recurse=True):
        return next(iter(self.findAllNodes(kind, recurse)), None)

    def findAllNodes(self, kind, recurse=True):
        return [node for block in self._blocks for node in block.findAllNodes(kind, recurse)]

    def __repr__(self):
        return text.node_text(self)


class Block:
    """Nodes in order. Its inputs are the outputs of a Param node, its outputs the inputs of a Return node."""

    __slots__ = ("_graph", "_nodes", "_owner", "_param", "_return")

    def __init__(self, graph, owner):
        self._graph, self._owner, self._nodes = graph, owner, []
        self._param, self._return = Node(graph, "prim::Param"), Node(graph, "prim::Return")
        self._param._block = self._return._block = self

    def inputs(self):
        return list(self._param._outputs)

    def outputs(self):
        return list(self._return._inputs)

    def nodes(self):
        return list(self._nodes)

    def paramNode(self):
        return self._param

    def returnNode(self):
        return self._return

    def owningNode(self):
        """The node whose block this is; None for a graph's own."""
        return self._owner

    def addInputToBlock(self, type=None, name=None):
        return self._param.addOutput(type, name)

    def registerOutput(self, value):
        self._return.addInput(value)
        return len(self._return._inputs) - 1

    def appendNode(self, node):
        self._insert(node, len(self._nodes))
        return node

    def prependNode(self, node):
        self._insert(node, 0)
        return node

    def _insert(self, node, index):
        if node._block is not None:
            raise RuntimeError(f"insert: the node is in a block already, {text.node_line(node)}")
        node._block = self
        self._nodes.insert(index, node)

    def clear(self):
        """Take all out."""
        self._return.removeAllInputs()
        while self._nodes:
            self._nodes[-1].destroy()

    def all_nodes(self):
        """The nodes here and in the blocks inside, in order."""
        for node in list(self._nodes):
            yield node
            for block in node._blocks:
                yield from block.all_nodes()

    def findNode(self, kind, recurse=True):
        return next(iter(self.findAllNodes(kind, recurse)), None)

    def findAllNodes(self, kind, recurse=True):
        return [node for node in (self.all_nodes() if recurse else self._nodes) if node._kind == kind]


class Graph:
    """A program: one block, and names for its values."""

    def __init__(self):
        self._count, self._names = 0, {}
        self._block = Block(self, None)
        self._insert_block, self._insert_before = self._block, None
        self.place = None  # the SourceRange that new nodes get

    # ---- reading

    def block(self):
        return self._block

    def inputs(self):
        return self._block.inputs()

    def outputs(self):
        return self._block.outputs()

    def nodes(self):
        return self._block.nodes()

    def all_nodes(self):
        return self._block.all_nodes()

    def param_node(self):
        return self._block._param

    def return_node(self):
        return self._block._return

    def findNode(self, kind, recurse=True):
        return self._block.findNode(kind, recurse)

    def findAllNodes(self, kind, recurse=True):
        return self._block.findAllNodes(kind, recurse)

    def __str__(self):
        return text.graph_text(self)

    __repr__ = __str__

    def str(self, print_source_ranges=True):
        return text.graph_text(self, print_source_ranges)

    # ---- making

    def _new_value(self, node, type):
        self._count += 1
        return Value(node, self._count - 1, type)

    def _free_name(self, name, value):
        if self._names.get(name) is None and not name.isdigit():
            self._names[name] = value
            return name
        base, _, digits = name.rpartition(".")
        base = base if base and digits.isdigit() else name
        number = 1
        while f"{base}.{number}" in self._names:
            number += 1
        self._names[f"{base}.{number}"] = value
        return f"{base}.{number}"

    def addInput(self, name=None, type=None):
        return self._block.addInputToBlock(type, name)

    def eraseInput(self, index):
        self._block._param.eraseOutput(index)

    def registerOutput(self, value):
        return self._block.registerOutput(value)

    def eraseOutput(self, index):
        self._block._return.removeInput(index)

    def create(self, kind, inputs=(), outputs=1, schema=None):
        """A node that is in no block yet. `outputs`: how many, or their types."""
        node = Node(self, kind, schema)
        node.range = self.place
        for value in inputs:
            node.addInput(value)
        for type in [None] * outputs if isinstance(outputs, int) else outputs:
            node.addOutput(type)
        return node

    def insertNode(self, node):
        """Put the node where insertions go."""
        if self._insert_before is not None:
            return node.insertBefore(self._insert_before)
        return self._insert_block.appendNode(node)

    def insert(self, kind, inputs=(), outputs=1, schema=None, **attributes):
        """A new node where insertions go, with these attributes."""
        node = self.insertNode(self.create(kind, inputs, outputs, schema))
        node.attributes.update(attributes)
        return node

    def appendNode(self, node):
        return self._block.appendNode(node)

    def prependNode(self, node):
        return self._block.prependNode(node)

    def insertConstant(self, value, type):
        """A constant of this type where insertions go; its value."""
        return self.insert("prim::Constant", (), [type], value=value).output()

    def setInsertPoint(self, where):
        """Insertions go to the end of a block, or before a node."""
        if isinstance(where, Block):
            self._insert_block, self._insert_before = where, None
        else:
            self._insert_block, self._insert_before = where._block, where

    def insertPoint(self):
        return self._insert_before if self._insert_before is not None else self._insert_block

    # ---- whole graphs

    def copy(self):
        """The same graph, anew."""
        other = Graph()
        copy_block(self._block, other._block, {})
        return other

    def lint(self):
        """Raise RuntimeError if the graph is no graph: a value used before it is made, blocks that do not fit their
        node.
        """
        from .lint import lint

        lint(self)

    def eliminate_dead_code(self):
        """Take out what nothing uses and that writes nothing."""
        from .lint import eliminate_dead_code

        eliminate_dead_code(self._block)


def copy_block(source, target, values):
    """Copy the nodes of one block to the end of another. `values`: what stands for each value of the source; it is
    added to.
    """
    for value in source._param._outputs:
        if value not in values:
            values[value] = target.addInputToBlock(value._type, value._name)
    for node in source._nodes:
        target.appendNode(copy_node(node, target._graph, values))
    for value in source._return._inputs:
        target.registerOutput(values.get(value, value))


def copy_node(node, graph, values):
    """A copy of the node in another graph, in no block yet."""
    made = Node(graph, node._kind, node.schema)
    made.attributes, made.range, made.scope, made.place = dict(node.attributes), node.range, node.scope, node.place
    for value in node._inputs:
        made.addInput(values.get(value, value))
    for output in node._outputs:
        values[output] = made.addOutput(output._type, output._name)
    for block in node._blocks:
        copy_block(block, made.addBlock(), values)
    return made
