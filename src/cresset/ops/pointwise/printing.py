"""The text of an expression in C++ (and CUDA, which reads the same text, but for choices).

A value used once is written where it is used; one used more often, and the two sides of a choice, get a name. Where a
side is much work, CUDA computes the one that is chosen.
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


def print_body(results, constant=frozenset(), functions=None, branches=None, fused=(), type_names=TYPE_NAMES):
    """Statements that compute `results`, a list of (target text, expression); variables keep their names.

    A primitive is printed as `math::name`, or as `functions` says, a type as `type_names` does. With `branches`, the
    names of variables that are the same for all elements, a choice between sides of which one is work is an if: much
    work, where the choice is each element's own. Products of the types in `fused` are added without being rounded
    first. Gives two lists of lines: what depends only on the variables named in `constant` (it goes before the loop),
    and the rest.
    """
    if functions is None:
        functions = {}
    uses, parents = {}, {}

    def count(node):
        uses[id(node)] = uses.get(id(node), 0) + 1
        if uses[id(node)] == 1:
            for arg in node.args:
                parents.setdefault(id(arg), set()).add(id(node))
                count(arg)

    for _, node in results:
        count(node)

    before, lines, names = [], [], {}

    def is_constant(node):
        return bool(constant) and leaves(node) <= constant

    def name(node):
        """A statement that computes the node; later uses refer to it."""
        return name_text(node, write(node)[0]), ATOM

    def name_text(node, text):
        names[id(node)] = f"t{len(names) + 1}"
        target = before if is_constant(node) else lines
        target.append(f"const {type_names[node.type]} {names[id(node)]} = {text};")
        return names[id(node)]

    def operand(node, precedence):
        text, own = refer(node)
        return f"({text})" if own < precedence else text

    def refer(node):
        if id(node) in names:
            return names[id(node)], ATOM
        if branches is not None and node.op == "where" and not is_constant(node) and is_work(node):
            return branch(node)
        if node.op not in ("literal", "variable") and (uses[id(node)] > 1 or is_constant(node)):
            return name(node)
        return write(node)

    def side(node):
        """A side of a choice, computed before it: both sides are always computed, so that the loop has no branch."""
        if node.op in ("literal", "variable") or id(node) in names:
            return operand(node, ATOM if node.op != "literal" else CONDITIONAL)
        text = refer(node)[0] if branches is not None else None
        return names[id(node)] if id(node) in names else name_text(node, text) if text else name(node)[0]

    def is_work(choice):
        enough = SOME_WORK if leaves(choice.args[0]) <= branches else MUCH_WORK
        return any(_work(_only_for(part, choice, parents, uses)) >= enough for part in choice.args[1:])

    def branch(node):
        """A choice as an if: what only one side needs is computed in it, what others need too before it."""
        nonlocal lines
        condition, *sides = node.args
        own = [_only_for(part, node, parents, uses) for part in sides]
        for part, alone in zip(sides, own, strict=True):
            for inner in [part] if id(part) not in alone else alone.values():
                for needed in inner.args if id(inner) in alone else [inner]:
                    if id(needed) not in alone and needed.op not in ("literal", "variable"):
                        refer(needed)
        chosen, result, outer = refer(condition)[0], f"t{len(names) + 1}", lines
        names[id(node)] = result
        outer.append(f"{type_names[node.type]} {result};")
        for opening, part in ((f"if ({chosen}) {{", sides[0]), ("} else {", sides[1])):
            outer.append(opening)
            lines = []
            text, _ = refer(part)
            outer.extend(f"  {line}" for line in [*lines, f"{result} = {text};"])
        outer.append("}")
        lines = outer
        return result, ATOM

    def write(node):
        if node.op == "variable":
            return node.value, ATOM
        if node.op == "literal":
            text = print_literal(node.value, node.type)
            return text, UNARY if text.startswith("-") else ATOM
        if node.type == "i64" and node.op in WRAPPING:
            function = functions.get(node.op, f"math::{node.op}")
            return f"{function}({', '.join(refer(arg)[0] for arg in node.args)})", ATOM
        if node.op in ("add", "sub") and node.type in fused:
            for product, other, turned in ((node.args[0], node.args[1], False), (node.args[1], node.args[0], True)):
                if product.op == "mul" and uses[id(product)] == 1 and not is_constant(product):
                    x, y, z = (refer(part)[0] for part in (*product.args, other))
                    minus = node.op == "sub"
                    x, z = f"-({x})" if minus and turned else x, f"-({z})" if minus and not turned else z
                    return f"::fma({x}, {y}, {z})", ATOM
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
            return f"static_cast<{type_names[node.type]}>({refer(node.args[0])[0]})", ATOM
        function = functions.get(node.op, f"math::{node.op}")
        return f"{function}({', '.join(refer(arg)[0] for arg in node.args)})", ATOM

    for target, node in results:
        text, _ = refer(node)
        lines.append(f"{target} = {text};")
    return before, lines


# What a choice's side has to cost to be worth a branch, in multiplications of single precision, and what things cost.
MUCH_WORK, SOME_WORK, DOUBLE, DIVISION, FUNCTION, LOOP = 40, 8, 2, 8, 15, 40
LOOPS = {
    "zeta", "polygamma", "igamma", "igammac", "chebyshev_t", "chebyshev_u", "chebyshev_v", "chebyshev_w", "hermite_h",
    "hermite_he", "laguerre_l", "legendre_p",
}  # fmt: skip
CHEAP = {*INFIX, "neg", "not", "where", "cast", "literal", "variable", "abs", "copysign", "floor", "ceil", "rint"}


def _only_for(side, choice, parents, uses):
    """The nodes, by id, that are computed for this side of a choice and for nothing else."""
    if uses[id(side)] > 1 or parents[id(side)] != {id(choice)}:
        return {}
    found, order, stack = {}, [], [side]
    while stack:
        node = stack.pop()
        if id(node) not in found and node.op not in ("literal", "variable"):
            found[id(node)] = node
            order.append(node)
            stack.extend(node.args)
    changed = True
    while changed:
        changed = False
        for node in order:
            if id(node) in found and node is not side and not parents[id(node)] <= found.keys():
                del found[id(node)]
                changed = True
    return found


def _work(nodes):
    """About what these nodes cost."""
    total = 0
    for node in nodes.values():
        cost = 1 if node.op in CHEAP else LOOP if node.op in LOOPS else FUNCTION
        cost = DIVISION if node.op == "div" else cost
        total += cost * (DOUBLE if node.type in ("f64", "c128") else 1)
    return total
