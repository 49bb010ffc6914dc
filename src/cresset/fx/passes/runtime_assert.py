"""The conditions that a program demands of its symbols (`torch._check`), as nodes of its graph."""

import operator

import cresset

from ...tensors.symbolic import SymInt
from ..experimental.formulas import Formula

__all__ = ["insert_deferred_runtime_asserts"]


def insert_deferred_runtime_asserts(gm, shape_env, name, export=False):
    """Put a check of each condition in `shape_env.deferred_runtime_asserts` behind the node that gives the last of its
    symbols. Such nodes have a SymInt in `meta["val"]`.

    Args:
        gm: the graph module; call `recompile` afterwards.
        name: what the graph is called, in messages.
        export: True where inputs are checked when the program is called, so that symbols of inputs need no checks.
    """
    pending = list(dict.fromkeys(a for found in shape_env.deferred_runtime_asserts.values() for a in found))
    given = {}
    for node in list(gm.graph.nodes):
        value = node.meta.get("val", node.meta.get("example_value"))
        if not isinstance(value, SymInt):
            continue
        symbols = value.node._expr.symbols()
        if len(symbols) == 1 and value.node._expr == Formula.of(next(iter(symbols))):
            given.setdefault(next(iter(symbols)), node)
        from_input = node.op == "placeholder" and export
        for found in [a for a in pending if a.expr.symbols() <= set(given)]:
            pending.remove(found)
            if not from_input:
                _insert(gm.graph, node, found, given)
    if pending:
        raise AssertionError(f"{name}: no node gives the symbols of {[str(found.expr) for found in pending]}")


def _insert(graph, after, found, given):
    last = [after]

    def add(function, *args):
        with graph.inserting_after(last[0]):
            last[0] = graph.call_function(function, args)
        return last[0]

    def formula(expr):
        total = None
        for product, factor in expr.terms.items():
            part = factor
            for atom in product:
                if isinstance(atom, str):
                    operand = given[atom]
                else:
                    run = {"floordiv": operator.floordiv, "mod": operator.mod, "max": cresset.sym_max}
                    operand = add(run.get(atom[0], cresset.sym_min), formula(atom[1]), formula(atom[2]))
                part = operand if part == 1 and isinstance(part, int) else add(operator.mul, part, operand)
            total = part if total is None else add(operator.add, total, part)
        return 0 if total is None else total

    def condition(expr):
        if expr.kind in ("And", "Or"):
            run = operator.and_ if expr.kind == "And" else operator.or_
            return add(run, condition(expr.a), condition(expr.b))
        return add(getattr(operator, expr.kind), formula(expr.a), formula(expr.b))

    message = found.msg or f"Runtime assertion failed for expression {found.expr}"
    add(cresset.ops.aten._assert_scalar.default, condition(found.expr), message)
