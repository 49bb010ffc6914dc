"""Formulas of sizes as text: `2*batch + 1` for people, and the form with the names of SymPy's classes that files
have."""

import ast
import functools

_LONGEST = 2000  # characters of a formula: a syntax tree takes some hundred bytes for each
NAMES = {"Mul": "*", "Add": "+", "FloorDiv": "//", "Mod": "%", "PythonMod": "%"}


class Expression:
    """A formula: its text, its value for given sizes, and, where it is linear in one symbol, its parts."""

    def __init__(self, tree):
        self.tree = tree

    @functools.cached_property
    def text(self):
        return _text(self.tree)

    def value(self, sizes):
        return _value(self.tree, sizes)

    def symbols(self):
        return sorted(_symbols(self.tree))

    def linear(self):
        """(symbol, factor, offset) of factor * symbol + offset."""
        names = self.symbols()
        if len(names) != 1:
            raise RuntimeError(f"export.load: the size {self.text} depends on {len(names)} symbols")
        offset, at_one, at_two = (self.value({names[0]: n}) for n in (0, 1, 2))
        if at_two - at_one != at_one - offset:
            raise RuntimeError(f"export.load: the size {self.text} of an input is not linear")
        return names[0], at_one - offset, offset


@functools.lru_cache(maxsize=4096)
def expression_of(text):
    """The formula that a file has: "Add(Mul(Integer(2), Symbol('s0')), Integer(1))". It is parsed, not run."""
    if len(text) > _LONGEST:
        raise RuntimeError(f"export.load: a size is a formula of {len(text)} characters; {_LONGEST} are read")
    try:
        return Expression(_parsed(ast.parse(text, mode="eval").body))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise RuntimeError(f"export.load: a size is {text[:80]!r}, which is no formula: {error}") from None


def _parsed(node):
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return ("*", -1, _parsed(node.operand))
    if isinstance(node, ast.Name):
        return ("symbol", node.id)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError("an unknown form")
    name = node.func.id
    if name == "Symbol":
        return ("symbol", str(node.args[0].value))
    if name == "Integer":
        return _parsed(node.args[0])
    if name not in NAMES:
        raise ValueError(f"the function {name} is not known")
    return (NAMES[name], *map(_parsed, node.args))


def _value(tree, sizes):
    if isinstance(tree, int):
        return tree
    if tree[0] == "symbol":
        return sizes[tree[1]]
    first, *rest = (_value(part, sizes) for part in tree[1:])
    for other in rest:
        first = (
            first + other
            if tree[0] == "+"
            else first * other
            if tree[0] == "*"
            else first // other
            if tree[0] == "//"
            else first % other
        )
    return first


def _text(tree, inside=False):
    if isinstance(tree, int):
        return str(tree)
    if tree[0] == "symbol":
        return tree[1]
    sign = tree[0] if tree[0] in ("*", "//") else f" {tree[0]} "
    text = sign.join(_text(part, True) for part in tree[1:])
    return f"({text})" if inside and tree[0] != "*" else text


def _symbols(tree):
    if isinstance(tree, int):
        return set()
    return {tree[1]} if tree[0] == "symbol" else set().union(*map(_symbols, tree[1:]))


def value_of(size):
    """An example of a size of a file."""
    return size["as_int"] if "as_int" in size else (size["as_expr"].get("hint") or {}).get("as_int", 2)


def srepr(text, names):
    """`2*batch + 1` in the form of files, with other names of the symbols."""
    return _srepr(ast.parse(text, mode="eval").body, names)


def _srepr(node, names):
    if isinstance(node, ast.Constant):
        return f"Integer({node.value})"
    if isinstance(node, ast.Name):
        return f"Symbol('{names[node.id]}', positive=True, integer=True)"
    if isinstance(node, ast.UnaryOp):
        return f"Mul(Integer(-1), {_srepr(node.operand, names)})"
    left, right = _srepr(node.left, names), _srepr(node.right, names)
    if isinstance(node.op, ast.Sub):
        return f"Add({left}, Mul(Integer(-1), {right}))"
    kinds = {ast.Add: "Add", ast.Mult: "Mul", ast.FloorDiv: "FloorDiv", ast.Mod: "Mod"}
    return f"{kinds[type(node.op)]}({left}, {right})"
