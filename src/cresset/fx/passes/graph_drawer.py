"""Pictures of graphs, by way of pydot (and Graphviz for pixels)."""

import hashlib

from ..graph_module import GraphModule

__all__ = ["FxGraphDrawer"]

_COLORS = {
    "placeholder": "AliceBlue",
    "get_attr": "LemonChiffon",
    "call_function": "Honeydew",
    "call_method": "Honeydew",
    "call_module": "LavenderBlush1",
    "output": "PowderBlue",
}


class FxGraphDrawer:
    """Draws a GraphModule: `FxGraphDrawer(module, "name").get_dot_graph().write_svg("graph.svg")`."""

    def __init__(
        self,
        graph_module,
        name,
        ignore_getattr=False,
        ignore_parameters_and_buffers=False,
        skip_node_names_in_args=True,
        parse_stack_trace=False,
        dot_graph_shape=None,
        normalize_args=False,
    ):
        try:
            import pydot
        except ImportError:
            raise RuntimeError(
                "FXGraphDrawer requires the pydot package to be installed. Please install pydot through your favorite "
                "Python package manager."
            ) from None
        self._pydot, self._name, self._shape = pydot, name, dot_graph_shape or "record"
        self.ignore_getattr, self.ignore_parameters_and_buffers = ignore_getattr, ignore_parameters_and_buffers
        self.skip_node_names_in_args, self.parse_stack_trace, self.normalize_args = (
            skip_node_names_in_args,
            parse_stack_trace,
            normalize_args,
        )
        self._dot_graphs = {name: self._to_dot(graph_module, name)}
        for child_name, child in graph_module.named_modules():
            if child_name and isinstance(child, GraphModule):
                self._dot_graphs[f"{name}_{child_name}"] = self._to_dot(child, f"{name}_{child_name}")

    def get_dot_graph(self, submod_name=None):
        """The drawing of the module, or of the GraphModule inside it that has this name."""
        return self._dot_graphs[self._name if submod_name is None else submod_name]

    def get_main_dot_graph(self):
        return self._dot_graphs[self._name]

    def get_submod_dot_graph(self, submod_name):
        return self._dot_graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self):
        return self._dot_graphs

    def _label(self, module, node):
        parts = [f"name=%{node.name}", f"op_code={node.op}"]
        if node.op == "call_module":
            parts.append(f"{type(module.get_submodule(node.target)).__name__}")
        parts.append(f"target={node._pretty_print_target(node.target)}")
        args, kwargs = node.args, dict(node.kwargs)
        if (
            self.normalize_args
            and (normal := node.normalized_arguments(module, normalize_to_only_use_kwargs=True)) is not None
        ):
            args, kwargs = normal
        literal = [arg for arg in args if not self.skip_node_names_in_args or arg not in node._input_nodes]
        if literal and node.op not in ("output", "get_attr"):
            parts.append(f"args={literal}")
        if kwargs:
            parts.append(f"kwargs={kwargs}")
        meta = node.meta.get("tensor_meta")
        if hasattr(meta, "shape"):
            parts.append(f"dtype={meta.dtype}, shape={tuple(meta.shape)}")
        if self.parse_stack_trace and node.stack_trace:
            parts.append(f"file={node.stack_trace.strip().splitlines()[0].strip()}")
        parts.append(f"num_users={len(node.users)}")
        escaped = "|".join(
            part.replace("\\", "\\\\")
            .replace("{", r"\{")
            .replace("}", r"\}")
            .replace("<", r"\<")
            .replace(">", r"\>")
            .replace("|", r"\|")
            .replace('"', r"\"")
            for part in parts
        )
        return '"{' + escaped + r'\l}"'

    def _style(self, node):
        color = _COLORS.get(node.op, "DarkOliveGreen3")
        if node.op == "call_function":
            shade = int(
                hashlib.md5(node._pretty_print_target(node.target).encode(), usedforsecurity=False).hexdigest()[0], 16
            )
            color = [
                "CadetBlue1",
                "Coral",
                "DarkOliveGreen1",
                "DarkSeaGreen1",
                "GhostWhite",
                "Khaki1",
                "LavenderBlush1",
                "LightSkyBlue",
                "MistyRose1",
                "MistyRose2",
                "PaleTurquoise2",
                "PeachPuff1",
                "Salmon",
                "Thistle1",
                "Thistle3",
                "Wheat1",
            ][shade]
        return {"shape": self._shape, "fillcolor": color, "style": '"filled,rounded"', "fontcolor": "#000000"}

    def _to_dot(self, module, name):
        drawing = self._pydot.Dot(name, rankdir="TB")
        left_out = {node for node in module.graph.nodes if self.ignore_getattr and node.op == "get_attr"}
        for node in module.graph.nodes:
            if node not in left_out:
                drawing.add_node(self._pydot.Node(node.name, label=self._label(module, node), **self._style(node)))
                if node.op == "call_module" and not self.ignore_parameters_and_buffers:
                    self._add_tensors(drawing, module, node)
        for node in module.graph.nodes:
            for user in node.users:
                if node not in left_out and user not in left_out:
                    drawing.add_edge(self._pydot.Edge(node.name, user.name))
        return drawing

    def _add_tensors(self, drawing, module, node):
        inner = module.get_submodule(node.target)
        for kind, tensors in (("parameter", inner.named_parameters()), ("buffer", inner.named_buffers())):
            for name, tensor in tensors:
                key = f"{node.name}.{name}"
                drawing.add_node(
                    self._pydot.Node(
                        f'"{key}"', label=f'"{{{key}|op_code=get_{kind}|{tuple(tensor.shape)}}}"', shape=self._shape
                    )
                )
                drawing.add_edge(self._pydot.Edge(f'"{key}"', node.name))
