"""The text of an expression in C++ (and CUDA, which reads the same text).

A value used once is written where it is used; one used more often, and the two sides of a choice, get a name.
"""

import math

from .expression import COMPARISONS, is_complex, leaves

TYPE_NAMES = {"b8": "bool", "i64": "int64_t", "u64": "uint64_t", "f32": "float", "f64": "double", "c64": "complex64",
              "c128": "complex128", "number": "double"}  # fmt: skip

# Infix operators with their precedence in C++; a higher number binds tighter.
INFIX = {
    "mul": ("*", 9), "div": ("/", 9), "add": ("+", 8), "sub": ("-", 8),
    "lt": ("<", 6), "le": ("<=", 6), "gt": (">", 6), "ge": (">=", 6), "eq": ("==", 5), "ne": ("!=", 5),
    "and": ("&", 4), "xor": ("^", 3), "or": ("|", 2),
}  # fmt: skip
UNARY, CONDITIONAL, ATOM = 10, 1, 11
WRAPPING = ("add", "sub", "mul", "neg")  # functions for signed integers, whose overflow C++ leaves undefined


def print_literal(value, type):
    """A number as C++ text, with the digits that give back exactly this number."""
    if type == "b8":
        return "true" if value else "false"
    if type in ("i64", "u64"):
        return "INT64_MIN" if value == -(2**63) else f"{value}u" if type == "u64" else str(value)
    if is_complex(type):
        part = "f32" if type == "c64" else "f64"
        return f"{TYPE_NAMES[type]}({print_literal(value.real, part)}, {print_literal(value.imag, part)})"
    if math.isinf(value) or math.isnan(value):
        text = "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
        return text if type == "f32" else f"(double){text}"
    return repr(float(value)) + ("f" if type == "f32" else "")


def print_body(results, constant=frozenset(), functions=None):
    """Statements that compute `results`, a list of (target text, expression); variables keep their names.

    A primitive is printed as `math::name`, or as `functions` says. Gives two lists of lines: what depends only on the
    variables named in `constant` (it goes before the loop), and the rest.
    """
    if functions is None:
        functions = {}
    uses = {}

    def count(node):
        uses[id(node)] = uses.get(id(node), 0) + 1
        if uses[id(node)] == 1:
            for arg in node.args:
                count(arg)

    for _, node in results:
        count(node)

    before, lines, names = [], [], {}

    def is_constant(node):
        return bool(constant) and leaves(node) <= constant

    def name(node):
        """A statement that computes the node; later uses refer to it."""
        text, _ = write(node)
        names[id(node)] = f"t{len(names) + 1}"
        target = before if is_constant(node) else lines
        target.append(f"const {TYPE_NAMES[node.type]} {names[id(node)]} = {text};")
        return names[id(node)], ATOM

    def operand(node, precedence):
        text, own = refer(node)
        return f"({text})" if own < precedence else text

    def refer(node):
        if id(node) in names:
            return names[id(node)], ATOM
        if node.op not in ("literal", "variable") and (uses[id(node)] > 1 or is_constant(node)):
            return name(node)
        return write(node)

    def side(node):
        """A side of a choice, computed before it: both sides are always computed, so that the loop has no branch."""
        if node.op in ("literal", "variable") or id(node) in names:
            return operand(node, ATOM if node.op != "literal" else CONDITIONAL)
        return name(node)[0]

    def write(node):
        if node.op == "variable":
            return node.value, ATOM
        if node.op == "literal":
            text = print_literal(node.value, node.type)
            return text, UNARY if text.startswith("-") else ATOM
        if node.type == "i64" and node.op in WRAPPING:
            return f"math::{node.op}({', '.join(refer(arg)[0] for arg in node.args)})", ATOM
        if node.op in INFIX:
            symbol, precedence = INFIX[node.op]
            if node.op in ("and", "xor", "or"):  # C++ readers do not know the order of these by heart: be explicit
                left, right = (operand(arg, UNARY if arg.op != node.op else precedence) for arg in node.args)
            elif node.op in COMPARISONS:
                left, right = (operand(arg, 8) for arg in node.args)
            else:
                left, right = operand(node.args[0], precedence), operand(node.args[1], precedence + 1)
            return f"{left} {symbol} {right}", precedence
        if node.op == "neg":
            return f"-{operand(node.args[0], ATOM)}", UNARY
        if node.op == "not":
            return f"{'!' if node.type == 'b8' else '~'}{operand(node.args[0], ATOM)}", UNARY
        if node.op == "where":
            condition, a, b = node.args
            a, b = side(a), side(b)
            return f"{operand(condition, CONDITIONAL + 1)} ? {a} : {b}", CONDITIONAL
        if node.op == "cast":
            return f"static_cast<{TYPE_NAMES[node.type]}>({refer(node.args[0])[0]})", ATOM
        function = functions.get(node.op, f"math::{node.op}")
        return f"{function}({', '.join(refer(arg)[0] for arg in node.args)})", ATOM

    for target, node in results:
        text, _ = refer(node)
        lines.append(f"{target} = {text};")
    return before, lines
