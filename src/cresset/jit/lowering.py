"""A Graph becomes a native Program: blocks become jumps, values become registers that are freed after their last use.

The instructions are described in native/bindings/program.cpp. A value's register is free for another value as soon as
the last node that reads it has run; a value whose last reader is one branch of an `if` is released at the beginning of
the other.
"""

import weakref

from .. import _native
from . import steps

_FORMAT = _native.program_format()
I = _FORMAT["instructions"]  # noqa: E741 -- the table of instructions is written in every line
LAST_USE, OWN, NOTHING = _FORMAT["last_use"], _FORMAT["own"], _FORMAT["nothing"]
BINARY, UNARY, COMPARE = _FORMAT["binary"], _FORMAT["unary"], _FORMAT["compare"]


def program(function):
    """The Program of a compiled Function; made when first asked for, and kept in `function.plan`."""
    function.ensure_defined()
    if function.plan is None:
        if function.graph is None:
            raise RuntimeError(f"{function.qualified_name}: it has no graph that could run")
        function.plan = _Later(function)  # found by a function that calls itself
        try:
            function.plan = lower(function.graph, function.name, function.qualified_name)
        except BaseException:
            function.plan = None
            raise
    return function.plan


class _Later:
    """Stands for the program of a function that is being lowered."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *args):
        return self.function.plan(*args)


_last = None  # a weak reference


def last_lowered():
    """The graph that a program was made of last, or None."""
    return _last() if _last is not None else None


def lower(graph, name, qualified_name=None):
    """The Program of a graph. It takes the graph's inputs by position and gives its output; several outputs give a
    tuple.
    """
    global _last
    _last = weakref.ref(graph)
    return _Lowering(graph, name, qualified_name or name).result


class _Lowering:
    def __init__(self, graph, name, qualified_name):
        self.code, self.constants, self.places, self.ranges = [], [], [], []
        self.constant_numbers = {}
        self.registers = {}  # value -> register
        self.aliases = {}  # value -> the value whose register it shares
        self.free, self.count = [], 0
        self.reserved, self.pinned = (
            set(),
            set(),
        )  # registers that control flow around holds: not for reuse, not to be released
        self._find_aliases(graph.block())
        self.last_readers = {}  # value -> the node of its own block after which nobody reads it
        self.depths = {}
        self._find_last_readers(graph)
        for value in graph.inputs():
            self.registers[value] = self._new_register()
        for value in graph.inputs():
            self._release_if_unread(value)
        self.block_nodes(graph.block())
        outputs = graph.outputs()
        if len(outputs) == 1:
            self.emit("RETURN", self.read(outputs[0]))
        else:
            register = self._new_register()
            self.emit("TUPLE", register, len(outputs), *map(self.read, outputs))
            self.emit("RETURN", register)
        self.result = _native.Program(
            name=name,
            registers=max(self.count, 1),
            arguments=len(graph.inputs()),
            constants=self.constants,
            code=self.code,
            places=self.places,
        )
        self.result.ranges = self.ranges
        self.result.qualified_name = qualified_name

    # ---- who reads a value last

    def root(self, value):
        while value in self.aliases:
            value = self.aliases[value]
        return value

    def _find_aliases(self, block):
        for node in block.all_nodes():
            if node.kind() in steps.ALIASES:
                self.aliases[node.output()] = node.inputsAt(0)

    def _find_last_readers(self, graph):
        """For each value: the node, in the block that made it, that reads it last, itself or in a block inside. Later
        readers overwrite earlier ones.
        """

        def walk(block):
            for value in block.inputs():
                self.depths[value] = block
            for node in block.nodes():
                for output in node.outputs():
                    self.depths[output] = block
                for value in node.inputs():
                    note(value, node)
                for inner in node.blocks():
                    walk(inner)
                    for value in inner.outputs():
                        note(value, inner.returnNode())
            if block.owningNode() is None:
                for value in block.outputs():
                    note(value, block.returnNode())

        def note(value, reader):
            value = self.root(value)
            home = self.depths.get(value)
            chain = []
            while reader is not None:
                chain.append(reader)
                if reader.owningBlock() is home:
                    break
                reader = reader.owningBlock().owningNode()
            for one in chain:
                self.last_readers[value, one.owningBlock()] = one

        walk(graph.block())

    def _dies_at(self, value, node):
        """Whether nobody reads the value once `node` has run."""
        value = self.root(value)
        block = node.owningBlock()
        while True:
            if self.last_readers.get((value, block)) is not node:
                return False
            if block is self.depths.get(value):
                return True
            node = block.owningNode()
            if node is None or node.kind() == "prim::Loop":
                return False  # the next round reads it again; after the loop it is released
            block = node.owningBlock()

    # ---- registers and operands

    def _new_register(self):
        return self.free.pop() if self.free else self.temporary()

    def temporary(self):
        """A register that no value has or had."""
        self.count += 1
        return self.count - 1

    def _give_back(self, register):
        if register not in self.reserved:
            self.free.append(register)

    def _find_free(self):
        """After control flow: all registers are free but those of values and of what is around."""
        used = {*self.registers.values(), *self.reserved}
        self.free = [register for register in range(self.count) if register not in used]

    def constant(self, value):
        """The operand of a constant that the program holds."""
        key = (type(value), value) if isinstance(value, (int, str, bool, type(None))) else id(value)
        if key not in self.constant_numbers:
            self.constant_numbers[key] = len(self.constants)
            self.constants.append(value)
        return ~self.constant_numbers[key]

    def is_constant(self, value):
        return self.root(value).node().kind() in ("prim::Constant", "prim::Uninitialized")

    def constant_value(self, value):
        return steps.constant_of(self.root(value).node())

    def read(self, value):
        """The operand for a value, not marked as its last use."""
        value = self.root(value)
        return self.constant(self.constant_value(value)) if self.is_constant(value) else self.registers[value]

    def reads(self, node, values, keep=()):
        """The operands for what a node's instruction reads, marked where nobody reads the value later; `keep`: values
        that its blocks read.
        """
        operands, dying = [], {}
        for value in values:
            operand, root = self.read(value), self.root(value)
            if operand >= 0 and operand not in self.pinned and root not in keep and self._dies_at(value, node):
                dying[root] = operand
                operand |= LAST_USE
            operands.append(operand)
        for value, register in dying.items():
            del self.registers[value]
            self._give_back(register)
        return operands

    def own(self, value, operand):
        """The operand, marked if it is the last use of a value that an operator of the program made: a result may be
        written over it (Note [Temporaries that are written over] in native/bindings/program_arithmetic.h).
        """
        made_here = operand >= 0 and operand & LAST_USE and self.root(value).node().kind() in steps.GIVE_NEW_MEMORY
        return operand | OWN if made_here else operand

    def write(self, value):
        """A register for a new value."""
        self.registers[value] = self._new_register()
        return self.registers[value]

    def _release(self, value):
        register = self.registers.pop(value)
        if register not in self.pinned:
            self.emit("RELEASE", register)
            self._give_back(register)

    def _release_if_unread(self, value):
        if (value, self.depths.get(value)) not in self.last_readers and value in self.registers:
            self._release(value)

    # ---- code

    def emit(self, instruction, *operands):
        self.code += [I[instruction], *operands]

    def jump(self, instruction, *operands):
        """A jump whose target comes later: the index of its last operand."""
        self.emit(instruction, *operands, 0)
        return len(self.code) - 1

    def land(self, *jumps):
        """Let jumps lead here."""
        for index in jumps:
            self.code[index] = len(self.code)

    def call(self, to, function, operands, names=None):
        """Call a Python object; the last operands are keywords, where `names` are given."""
        keywords = self.constant(names) if names else NOTHING
        self.emit("CALL", to, self.constant(function), keywords, len(operands), *operands)

    def block_nodes(self, block):
        for node in block.nodes():
            self.node(node)

    def node(self, node):
        kind = node.kind()
        if kind in ("prim::Constant", "prim::Uninitialized") or kind in steps.ALIASES:
            return
        self.place(node)
        if kind == "prim::If":
            self._if(node)
        elif kind == "prim::Loop":
            self._loop(node)
        else:
            steps.lower_node(self, node)
        for output in node.outputs():
            self._release_if_unread(output)

    def place(self, node):
        """Errors from here on are this node's."""
        if node.range is not None:
            self.places.append((len(self.code), len(self.ranges)))
            self.ranges.append(node.range)

    # ---- control flow

    def _outer_values(self, block):
        """What a block reads of the values around it, in the order of first use."""
        inside, found = set(block.inputs()), {}
        for node in block.all_nodes():
            inside.update(node.outputs())
            for inner in node.blocks():
                inside.update(inner.inputs())
        for node in [*block.all_nodes(), block.returnNode()]:
            readers = node.inputs() + [value for inner in node.blocks() for value in inner.outputs()]
            for value in map(self.root, readers):
                if value not in inside and not self.is_constant(value):
                    found[value] = None
        return list(found)

    def _if(self, node):
        read_by = [self._outer_values(block) for block in node.blocks()]
        (condition,) = self.reads(node, node.inputs(), keep={*read_by[0], *read_by[1]})
        targets = [self._new_register() for _ in node.outputs()]
        reserved_around, self.reserved = self.reserved, self.reserved | set(targets)
        around, free_around = dict(self.registers), list(self.free)
        to_else, to_end = self.jump("JUMP_UNLESS", condition), None
        for number, block in enumerate(node.blocks()):
            if number == 1:
                to_end = self.jump("JUMP")
                self.land(to_else)
            self.registers, self.free = dict(around), list(free_around)
            for value in read_by[1 - number]:  # what the other branch would have released
                if value not in read_by[number] and self._dies_at(value, node) and value in self.registers:
                    self._release(value)
            self.block_nodes(block)
            self._move_all(targets, self.reads(block.returnNode(), block.outputs()))
        self.land(to_end)
        dead = {value for value in (*read_by[0], *read_by[1]) if self._dies_at(value, node)}
        self.registers = {value: register for value, register in around.items() if value not in dead}
        self.registers.update(zip(node.outputs(), targets, strict=True))
        self.reserved = reserved_around
        self._find_free()

    def _move_all(self, targets, sources):
        """Give the registers `targets` these operands, as if all at once."""
        plain = [source if source < 0 else source & ~LAST_USE for source in sources]
        moves = [(to, number) for number, to in enumerate(targets) if to != plain[number]]
        hazard = any(plain[number] in [to for to, _ in moves[:done]] for done, (_, number) in enumerate(moves))
        if hazard:
            temporaries = {number: self.temporary() for _, number in moves}
            for _, number in moves:
                self.emit("MOVE", temporaries[number], plain[number])
            for to, number in moves:
                self.emit("MOVE", to, temporaries[number] | LAST_USE)
            self.free += [r for r in temporaries.values() if r not in self.reserved]
            return
        for done, (to, number) in enumerate(moves):
            again = plain[number] in [plain[later] for _, later in moves[done + 1 :]] or plain[number] in targets
            self.emit("MOVE", to, plain[number] if again else sources[number])

    def _loop(self, node):
        most, begin, *carried = node.inputs()
        (block,) = node.blocks()
        round_value, *inside = block.inputs()
        go_on, *results = block.outputs()
        read_inside = self._outer_values(block)
        keep = {self.root(most), self.root(begin), *read_inside}
        # The carried values have registers of their own: those of the node's outputs.
        targets, counter, going_on = [self.temporary() for _ in inside], self.temporary(), self.temporary()
        self._move_all(targets, self.reads(node, carried, keep))
        self.emit("MOVE", counter, self.constant(0))
        reserved_around, pinned_around = self.reserved, self.pinned
        self.reserved, self.pinned = self.reserved | {*targets, counter, going_on}, self.pinned | {counter}
        ends = [] if self._is(begin, True) else [self.jump("JUMP_UNLESS", self.read(begin))]
        start = len(self.code)
        if not self._is(most, 2**63 - 1):
            ends.append(self.jump("JUMP_FROM", counter, self.read(most)))
        around, free_around = dict(self.registers), list(self.free)
        self.registers[round_value] = counter
        self.registers.update(zip(inside, targets, strict=True))
        for value in inside:
            self._release_if_unread(value)
        self.block_nodes(block)
        if not self._is(go_on, True):
            self.emit("MOVE", going_on, self.read(go_on))
        self._move_all(targets, [self.read(value) for value in results])
        for value in {self.root(value): None for value in (go_on, *results)}:  # the round is over
            register = self.registers.get(value, -1)
            if self.depths.get(value) is block and register not in self.reserved and register >= 0:
                self.emit("RELEASE", register)
        self.emit("COUNT", counter, counter)
        if not self._is(go_on, True):
            ends.append(self.jump("JUMP_UNLESS", going_on | LAST_USE))
        self.emit("JUMP_BACK", start)
        self.land(*ends)
        self.registers, self.free = around, free_around
        self.registers.update(zip(node.outputs(), targets, strict=True))
        self.reserved, self.pinned = reserved_around, pinned_around
        self._find_free()
        for value in keep:
            if value in self.registers and self._dies_at(value, node):
                self._release(value)

    def _is(self, value, wanted):
        return self.is_constant(value) and self.constant_value(value) == wanted
