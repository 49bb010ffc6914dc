"""A group of pointwise calls as C++: one function, whose values stay in registers.

A group comes as a text with a line a call (Tiles::describe in native/dispatch/tiles.cpp):

    keep add -1 f32 m0f32 v2f32 n0f32

says that the result is written to memory, the operator, which gradient it is (-1: none), the type it is computed in,
and its operands: memory 0, the value of line 2, number 0, each with its type. See Note [Printed groups].
"""

import collections
import dataclasses
import re

from ..ops import formulas
from ..ops.pointwise.expression import LOOK, Expression, variable
from ..ops.pointwise.loops import CHEAP, MAX_INPUTS, OPERATIONS, QUICK_NODES, Loop, is_heavy, nodes, variables
from ..ops.pointwise.printing import TYPE_NAMES, print_body

STRIP = 512  # elements: what one loop leaves for the next stays in the first-level cache
STORED = TYPE_NAMES | {"b8": "uint8_t"}  # a byte compared with 0 vectorizes, a bool does not


@dataclasses.dataclass
class Call:
    """One line: a loop, and where its operands are."""

    kept: bool
    loop: Loop
    operands: list  # (kind, index, type)


@dataclasses.dataclass
class Piece:
    """What one statement of the text computes: a call, or a function inside of one."""

    name: str
    expression: Expression
    values: dict  # of its variables: the text, or the name of another piece
    place: str | None = None  # the pointer that it is kept at

    @property
    def is_heavy(self):
        return is_heavy(self.expression)


def group_source(key):
    """The C++ text of a group; None where one of its loops is more than a formula."""
    calls = [_call(text) for text in key.splitlines()]
    if not all(_is_plain(call.loop) for call in calls):
        return None
    return "\n".join([
        '#pragma GCC optimize("no-thread-jumps")',
        '#include "base/vector_math.h"', '#include "dispatch/pointwise_loop.h"', "",
        "namespace cresset::pointwise::own {", "",
        *map(_function, _pieces(calls)),
        'extern "C" __attribute__((visibility("default"))) void cresset_group(char* const* pointers,',
        "    const ScalarAttribute* scalars, int64_t count) {",
        *_body(calls), "}", "", "}", "",
    ])  # fmt: skip


def _call(text):
    kept, name, which, compute, *operands = text.split()
    loop = Loop(formulas.definition(name), compute, None if which == "-1" else int(which))
    parsed = [re.fullmatch(r"([mnv])(\d+)(f32|f64|b8)", operand).groups() for operand in operands]
    return Call(kept == "keep", loop, [(kind, int(index), type) for kind, index, type in parsed])


def _is_plain(loop):
    """Whether the loop computes every element by the one formula: no other one for ranges of them, no C library."""
    found = list(nodes(loop.expression))
    if loop.compute == "b8":
        return all(node.op in OPERATIONS for node in found)
    return (
        loop.at_every_level
        and not loop.in_lanes
        and not any(node.op == "where" and node.value == LOOK for node in found)
        and not any((node.op, node.type) in QUICK_NODES for node in found)
    )


def _pieces(calls):
    """The calls, cut so that each piece has at most one function that is more than arithmetic. A function that several
    calls take of the same numbers is a piece of its own, once.
    """
    values = [_values(number, call) for number, call in enumerate(calls)]
    functions = collections.Counter(
        function for call, own in zip(calls, values, strict=True) for function in _functions(call, own)
    )
    shared = {}  # by a function that several calls take: the name of its piece
    for number, (call, own) in enumerate(zip(calls, values, strict=True)):
        yield from _cut(number, call, own, functions, shared)


def _values(number, call):
    """What the variables of a call stand for."""
    values = {}
    for (name, _), (kind, index, type) in zip(call.loop.reads, call.operands, strict=True):
        values[name] = f"{kind}{index}" + ("[i]" + " != 0" * (type == "b8")) * (kind == "m")
    return values | {attribute.name: f"s{number}_{attribute.name}" for attribute in call.loop.attributes}


def _functions(call, values):
    """The functions that a call takes, of what its variables stand for."""
    return {_of_values(node, values) for node in nodes(call.loop.expression) if node.op not in CHEAP}


def _of_values(node, values):
    if node.op == "variable":
        return variable(values[node.value], node.type)
    return Expression(node.op, tuple(_of_values(arg, values) for arg in node.args), node.type, node.value)


def _cut(number, call, values, functions, shared):
    pieces, new, all_values = [], {}, dict(values)

    def cut(node):
        if node not in new:
            made = Expression(node.op, tuple(map(cut, node.args)), node.type, node.value)
            if node.op not in CHEAP and node is not call.loop.expression:
                function = _of_values(node, values)
                name = shared.get(function)
                if name is None:
                    name = f"v{number}_{len(pieces)}"
                    pieces.append(Piece(name, made, dict(all_values)))
                    if functions[function] > 1:
                        shared[function] = name
                all_values[name] = name
                made = variable(name, node.type)
            new[node] = made
        return new[node]

    whole = cut(call.loop.expression)
    if call.loop.expression.op not in CHEAP:
        shared.setdefault(_of_values(call.loop.expression, values), f"v{number}")
    if pieces and not is_heavy(whole) and pieces[-1].name not in shared.values():
        last = pieces.pop()  # the last function stays with what is made of it
        whole = _put_back(whole, last)
    return [*pieces, Piece(f"v{number}", whole, all_values, f"r{number}" if call.kept else None)]


def _put_back(node, piece, known=None):
    known = {} if known is None else known
    if node.op == "variable":
        return piece.expression if node.value == piece.name else node
    if node not in known:
        known[node] = Expression(
            node.op, tuple(_put_back(arg, piece, known) for arg in node.args), node.type, node.value
        )
    return known[node]


def _function(piece):
    """A piece as a function of the variables of its expression."""
    types = {node.value: node.type for node in nodes(piece.expression) if node.op == "variable"}
    result = TYPE_NAMES[piece.expression.type]
    _, body = print_body([(f"const {result} result", piece.expression)])
    parameters = ", ".join(f"{TYPE_NAMES[type]} {name}" for name, type in sorted(types.items()))
    return "\n".join([
        f"static inline __attribute__((always_inline)) {result} f_{piece.name}({parameters}) {{",
        *(f"  {line}" for line in body), "  return result;", "}", "",
    ])  # fmt: skip


def _body(calls):
    operands = [operand for call in calls for operand in call.operands]
    memories = dict(sorted({(index, type) for kind, index, type in operands if kind == "m"}))
    numbers = dict(sorted({(index, type) for kind, index, type in operands if kind == "n"}))
    kept = [number for number, call in enumerate(calls) if call.kept]
    text = []
    for index, type in numbers.items():
        place = len(kept) + len(memories) + index
        text.append(
            f"  const {TYPE_NAMES[type]} n{index} = *reinterpret_cast<const {STORED[type]}*>(pointers[{place}]);"
        )
    for number, call in enumerate(calls):
        for index, attribute in enumerate(call.loop.attributes):
            if attribute.name in variables(call.loop.expression):
                type = TYPE_NAMES[attribute.type_in(call.loop.compute)]
                place = MAX_INPUTS * number + index
                text.append(f"  const {type} s{number}_{attribute.name} = attribute<{type}>(scalars[{place}]);")
    pieces = {piece.name: piece for piece in _pieces(calls)}
    loops = _loops(pieces.values())
    crossing = {
        name for loop in loops for piece in loop for name in _read(piece)
        if name in pieces and pieces[name] not in loop and not pieces[name].place
    }  # fmt: skip
    text += [f"  alignas(64) {STORED[pieces[name].expression.type]} w{name}[{STRIP}];" for name in sorted(crossing)]
    text += [
        f"  for (int64_t at = 0; at < count; at += {STRIP}) {{",
        f"    const int64_t n = count - at < {STRIP} ? count - at : {STRIP};",
    ]
    for place, number in enumerate(kept):
        type = STORED[calls[number].loop.result_type]
        text.append(f"    auto* r{number} = reinterpret_cast<{type}*>(pointers[{place}]) + at;")
    for index, type in memories.items():
        place = len(kept) + index
        text.append(f"    auto* m{index} = reinterpret_cast<const {STORED[type]}*>(pointers[{place}]) + at;")
    for loop in loops:
        text += ["#pragma GCC ivdep", "    for (int64_t i = 0; i < n; ++i) {"]
        text += [f"      {line}" for piece in loop for line in _statements(piece, pieces, loop, crossing)]
        text.append("    }")
    return [*text, "  }"]


def _read(piece):
    """What the variables of a piece stand for."""
    return [piece.values[name] for name in sorted(variables(piece.expression))]


def _loops(pieces):
    """Pieces, cut so that each loop has one that is more than arithmetic: two want more registers than there are."""
    loops, heavy = [[]], False
    for piece in pieces:
        if piece.is_heavy and heavy:
            loops.append([])
        heavy |= piece.is_heavy
        loops[-1].append(piece)
    return loops


def _statements(piece, pieces, loop, crossing):
    def argument(value):
        other = pieces.get(value)
        if other is None or other in loop:
            return value
        return f"{other.place or 'w' + value}[i]" + " != 0" * (other.expression.type == "b8")

    type = TYPE_NAMES[piece.expression.type]
    yield f"const {type} {piece.name} = f_{piece.name}({', '.join(map(argument, _read(piece)))});"
    if piece.place:
        yield f"{piece.place}[i] = {piece.name};"
    if piece.name in crossing:
        yield f"w{piece.name}[i] = {piece.name};"
