"""What became of a program: its graphs, where they end and why, and what was computed together."""

import dataclasses

from ..graph.svg import Box, svg
from . import regions
from .capture import Capture


@dataclasses.dataclass
class ExplainOutput:
    """What `explain` found.

    Attributes:
        graphs: the graphs of the program as fx GraphModules.
        graph_count, graph_break_count, op_count: how many graphs, places where one ends before the program does, and
            calls of operators.
        break_reasons: why and where each graph ended.
        ops_per_graph: the functions and methods of each graph.
        groups: what was computed late, and together: dicts with the calls, the elements of each, the elements read and
            written, how many results were kept, and who asked.
        out_guards, compile_times: PyTorch's; there are no guards, and nothing is compiled.
    """

    graphs: list
    graph_count: int
    graph_break_count: int
    break_reasons: list
    op_count: int
    ops_per_graph: list
    groups: list
    out_guards: list = dataclasses.field(default_factory=list)
    compile_times: str = ""

    def __str__(self):
        lines = [
            f"Graph Count: {self.graph_count}",
            f"Graph Break Count: {self.graph_break_count}",
            f"Op Count: {self.op_count}",
            "Break Reasons:",
            *(f"  {number}: {reason}" for number, reason in enumerate(self.break_reasons, 1)),
            "Computed together:",
        ]
        for number, group in enumerate(self.groups, 1):
            lines.append(
                f"  {number}: {', '.join(group['calls'])}: {group['elements']} elements, reads {group['read']}, writes "
                f"{group['written']}, {len(group['calls']) - group['kept']} results never written; asked for by: "
                f"{group['reason']}"
            )
        return "\n".join(lines)

    def _repr_svg_(self):
        """The groups as a picture, for notebooks."""
        return groups_svg(self.groups)


def explain(f, *extra_args, **extra_kwargs):
    """Run a function or module compiled, and tell what became of it.

    >>> def double(x):
    ...     return x.sin() * 2
    >>> found = cresset.compiler.explain(double)(cresset.ones(3))
    >>> found.graph_count, found.graph_break_count, found.op_count
    (1, 0, 2)
    """

    def explained(*args, **kwargs):
        with Capture() as capture, regions.listening() as groups:
            result = regions.late(f)(*args, **kwargs)
            heard = groups()
        graphs = [module for module, _, _ in capture.finish(result)]
        names = [
            [node.target for node in module.graph.nodes if node.op in ("call_function", "call_method")]
            for module in graphs
        ]
        return ExplainOutput(
            graphs, len(graphs), max(len(graphs) - 1, 0), capture.breaks, sum(map(len, names)), names, heard
        )

    return explained(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else explained


def groups_svg(groups, title="computed together"):
    """A picture of groups, as `explain` gives them: a box a call, green where its result is written, a frame a
    group."""
    boxes = []
    for number, group in enumerate(groups):
        first, title = len(boxes), f"group {number + 1}: {group['elements']} elements"
        for place, call in enumerate(group["calls"]):
            box = Box((number, place), call, "output" if group["is_kept"][place] else "operator", module=title)
            box.reads = [(boxes[first + other], "") for other in group["reads"][place]]
            boxes.append(box)
    return svg(boxes, title)
