"""A group of pointwise calls as C++: one function, whose values stay in registers.

A group comes as a text with a line a call (Tiles::describe in native/dispatch/tiles.cpp):

    keep add -1 f32 m0f32 v2f32 n0f32

says that the result is written to memory, the operator, which gradient it is (-1: none), the type it is computed in,
and its operands: memory 0, the value of line 2, number 0, each with its type. See Note [Printed groups].
"""

import dataclasses
import re

from ..ops import formulas
from ..ops.pointwise.expression import LOOK
from ..ops.pointwise.loops import OPERATIONS, QUICK_NODES, Loop, nodes, variables
from ..ops.pointwise.printing import TYPE_NAMES, print_body

CHEAP = OPERATIONS | {"abs", "sqrt", "floor", "ceil", "trunc", "rint", "copysign", "signbit"}
STRIP = 512  # elements: what one loop leaves for the next stays in the first-level cache
STORED = TYPE_NAMES | {"b8": "uint8_t"}  # a byte compared with 0 vectorizes, a bool does not


@dataclasses.dataclass
class Line:
    """One call."""

    kept: bool
    loop: Loop
    operands: list  # (kind, index, type)

    @property
    def is_heavy(self):
        return any(node.op not in CHEAP for node in nodes(self.loop.expression))


def group_source(key):
    """The C++ text of a group; None where one of its loops is more than a formula."""
    lines = [_line(text) for text in key.splitlines()]
    if not all(_is_plain(line.loop) for line in lines):
        return None
    return "\n".join([
        '#pragma GCC optimize("no-thread-jumps")',
        '#include "base/vector_math.h"', '#include "dispatch/pointwise_loop.h"', "",
        "namespace cresset::pointwise::own {", "",
        *(_function(number, line.loop) for number, line in enumerate(lines)),
        'extern "C" __attribute__((visibility("default"))) void cresset_group(char* const* pointers,',
        "    const ScalarAttribute* scalars, int64_t count) {",
        *_body(lines), "}", "", "}", "",
    ])  # fmt: skip


def _line(text):
    kept, name, which, compute, *operands = text.split()
    loop = Loop(formulas.definition(name), compute, None if which == "-1" else int(which))
    parsed = [re.fullmatch(r"([mnv])(\d+)(f32|f64|b8)", operand).groups() for operand in operands]
    return Line(kept == "keep", loop, [(kind, int(index), type) for kind, index, type in parsed])


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


def _function(number, loop):
    """The formula as a function of one element and the attributes."""
    used = variables(loop.expression)
    parameters = [f"{TYPE_NAMES[type]} {name}" for name, type in loop.reads]
    parameters += [f"{TYPE_NAMES[a.type_in(loop.compute)]} {a.name}" for a in loop.attributes if a.name in used]
    result = TYPE_NAMES[loop.result_type]
    before, body = print_body([(f"const {result} result", loop.expression)], functions=loop.functions)
    return "\n".join([
        f"static inline __attribute__((always_inline)) {result} f{number}({', '.join(parameters)}) {{",
        *(f"  {line}" for line in (*before, *body)), "  return result;", "}", "",
    ])  # fmt: skip


def _body(lines):
    kept = [number for number, line in enumerate(lines) if line.kept]
    operands = [operand for line in lines for operand in line.operands]
    memories = dict(sorted({(index, type) for kind, index, type in operands if kind == "m"}))
    numbers = dict(sorted({(index, type) for kind, index, type in operands if kind == "n"}))
    text = []
    for index, type in numbers.items():
        name = TYPE_NAMES[type]
        place = len(kept) + len(memories) + index
        text.append(f"  const {name} n{index} = *reinterpret_cast<const {STORED[type]}*>(pointers[{place}]);")
    for number, line in enumerate(lines):
        for index, attribute in enumerate(line.loop.attributes):
            if attribute.name in variables(line.loop.expression):
                name = TYPE_NAMES[attribute.type_in(line.loop.compute)]
                text.append(
                    f"  const {name} s{number}_{attribute.name} = attribute<{name}>(scalars[{4 * number + index}]);"
                )
    loops = _loops(lines)
    crossing = {
        index for k, loop in enumerate(loops) for number in loop for kind, index, _ in lines[number].operands
        if kind == "v" and index not in loop and not lines[index].kept
    }  # fmt: skip
    text += [f"  alignas(64) {STORED[_type(lines[index])]} w{index}[{STRIP}];" for index in sorted(crossing)]
    text += [
        f"  for (int64_t at = 0; at < count; at += {STRIP}) {{",
        f"    const int64_t n = count - at < {STRIP} ? count - at : {STRIP};",
    ]
    for place, number in enumerate(kept):
        text.append(f"    auto* r{number} = reinterpret_cast<{STORED[_type(lines[number])]}*>(pointers[{place}]) + at;")
    for index, type in memories.items():
        place = len(kept) + index
        text.append(f"    auto* m{index} = reinterpret_cast<const {STORED[type]}*>(pointers[{place}]) + at;")
    for loop in loops:
        text += ["#pragma GCC ivdep", "    for (int64_t i = 0; i < n; ++i) {"]
        text += [f"      {statement}" for number in loop for statement in _statements(lines, number, loop, crossing)]
        text.append("    }")
    return [*text, "  }"]


def _loops(lines):
    """The calls, cut so that each loop has one that is more than arithmetic: two of them want more registers than
    there are."""
    loops, heavy = [[]], False
    for number, line in enumerate(lines):
        if line.is_heavy and heavy:
            loops.append([])
        heavy |= line.is_heavy
        loops[-1].append(number)
    return loops


def _statements(lines, number, loop, crossing):
    line = lines[number]

    def operand(kind, index, type):
        is_bool = " != 0" * (type == "b8")
        if kind == "n":
            return f"n{index}"
        if kind == "m":
            return f"m{index}[i]{is_bool}"
        if index in loop:
            return f"v{index}"
        return f"{'r' if lines[index].kept else 'w'}{index}[i]{is_bool}"

    used = variables(line.loop.expression)
    arguments = [operand(*given) for given in line.operands]
    arguments += [f"s{number}_{a.name}" for a in line.loop.attributes if a.name in used]
    yield f"const {TYPE_NAMES[_type(line)]} v{number} = f{number}({', '.join(arguments)});"
    if line.kept:
        yield f"r{number}[i] = v{number};"
    if number in crossing:
        yield f"w{number}[i] = v{number};"


def _type(line):
    return line.loop.result_type
