"""A module whose forward is a graph."""

import copy
import itertools
import linecache
import os

import cresset

from ..nn.module import Module
from .code import _PyTreeCodeGen, compiled
from .graph import Graph

__all__ = ["GraphModule", "reduce_graph_module"]

_numbers = itertools.count()


def _copy_attr(from_module, to_module, target):
    """Let one module have what another has at a dotted path, with modules on the way."""
    *parents, name = target.split(".")
    for part in parents:
        if not hasattr(from_module, part):
            return
        from_module = getattr(from_module, part)
        if not hasattr(to_module, part):
            to_module.add_module(part, Module())
        to_module = getattr(to_module, part)
    if not hasattr(from_module, name):
        return
    value = getattr(from_module, name)
    if isinstance(value, cresset.Tensor) and not isinstance(value, cresset.nn.Parameter):
        persistent = name not in getattr(from_module, "_non_persistent_buffers_set", ())
        to_module.register_buffer(name, value, persistent=persistent)
    else:
        setattr(to_module, name, value)


def _assign_attr(from_obj, to_module, target):
    """Put a value at a dotted path, with modules on the way."""
    *parents, name = target.split(".")
    for part in parents:
        if not hasattr(to_module, part):
            to_module.add_module(part, Module())
        to_module = getattr(to_module, part)
    if isinstance(from_obj, cresset.Tensor) and not isinstance(from_obj, cresset.nn.Parameter):
        to_module.register_buffer(name, from_obj)
    else:
        setattr(to_module, name, from_obj)


def _get_attr(model, attr_name):
    """What lies at a dotted path."""
    for part in attr_name.split("."):
        model = getattr(model, part)
    return model


_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"  # in `meta`: attributes that a copy takes over


class _CodeOnlyModule(Module):
    """A module with the attributes of another and no code: what a graph's module is built from again."""

    def __init__(self, body):
        super().__init__()
        self.__dict__ = body


class GraphModule(Module):
    """A module made of a graph and of what its nodes refer to. Change `graph`, then call `recompile()`.

    Args:
        root: a module that has the attributes and submodules that nodes name, or a dict of them by dotted path.
        graph: the steps.
        class_name: what the module's class is called.
    """

    def __new__(cls, *_, **__):
        # Each graph has a class of its own: forward belongs to the class. Copies have the plain name.
        for base in cls.__mro__:
            if base.__qualname__ != "GraphModuleImpl" and not base.__dict__.get("_is_made"):
                break
        kind = type("GraphModuleImpl", (base,), {"_is_made": True, "__module__": base.__module__})
        kind.__name__ = "GraphModule"
        return super().__new__(kind)

    def __init__(self, root, graph, class_name="GraphModule"):
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, Module):
            if hasattr(root, "training"):
                self.training = root.training
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module"):
                    _copy_attr(root, self, node.target)
        elif isinstance(root, dict):
            wanted = [node.target for node in graph.nodes if node.op in ("get_attr", "call_module")]
            for target in wanted:
                if target not in root:
                    raise RuntimeError(
                        f"Node target {target} is referenced by the graph but was not provided in ``root``!"
                    )
            for target in sorted(wanted, key=lambda target: target.count(".")):
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError("Unsupported type " + str(root) + " passed for root!")
        self.meta = {}
        self._tracer_cls = graph._tracer_cls
        self.graph = graph

    # ---- the graph and its code

    @property
    def graph(self):
        return self._graph

    @graph.setter
    def graph(self, graph):
        if not isinstance(graph, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(graph)}")
        self._graph = graph
        graph.owning_module = self
        if isinstance(graph._codegen, _PyTreeCodeGen):
            self._in_spec, self._out_spec = graph._codegen.pytree_info[1:]
        self.recompile()

    def recompile(self):
        """Make forward anew from the graph; needed after the graph was changed."""
        python_code = self._graph.python_code("self")
        self._code = python_code.src
        filename = f"<fx graph {next(_numbers)}>"
        linecache.cache[filename] = (len(self._code), None, self._code.splitlines(True), filename)
        inputs = [node for node in self._graph.nodes if node.op == "placeholder" and not node.target.startswith("*")]
        defaults = (
            ()
            if isinstance(self._graph._codegen, _PyTreeCodeGen)
            else tuple(node.args[0] for node in inputs if node.args)
        )
        function = compiled(python_code, defaults, None, filename)
        function.__annotations__ = {node.target: node.type for node in inputs if node.type is not None}
        type(self).forward = function
        return python_code

    @property
    def code(self):
        """The Python source of forward."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated! Please report a bug")
        return self._code

    def print_readable(
        self,
        print_output=True,
        include_stride=False,
        include_device=False,
        colored=False,
        *,
        fast_sympy_print=False,
        expanded_def=False,
        additional_meta=None,
    ):
        """The class with its code and those of the graph modules inside: what each value is, and where each line came
        from, if that was recorded.

        Args:
            include_stride, include_device: tell them, too, of each value.
            colored: for a terminal.
            expanded_def: each parameter on a line of its own.
            additional_meta: keys of `node.meta` that are told above each call: `["seq_nr"]`.
        """
        if fast_sympy_print:
            raise NotImplementedError(
                "print_readable: fast_sympy_print is about sizes as formulas of SymPy, which graphs here do not hold"
            )
        shown = {
            "include_stride": include_stride,
            "include_device": include_device,
            "colored": colored,
            "additional_meta": additional_meta,
        }
        text = _readable(self, self._get_name(), {**shown, "expanded_def": expanded_def}, shown)
        if print_output:
            print(text)
        return text

    def __str__(self):
        return "\n".join(
            [super().__str__(), self._code, "# To see more debug info, please use `graph_module.print_readable()`"]
        )

    # ---- submodules

    def add_submodule(self, target, m):
        """Put a module at a dotted path. Whether that could be done."""
        *parents, name = target.split(".")
        place = self
        for part in parents:
            if not hasattr(place, part):
                place.add_module(part, Module())
            place = getattr(place, part)
            if not isinstance(place, Module):
                return False
        place.add_module(name, m)
        return True

    def delete_submodule(self, target):
        """Take the module at a dotted path away. Whether there was one."""
        *parents, name = target.split(".")
        place = self
        for part in parents:
            place = getattr(place, part, None)
            if not isinstance(place, Module):
                return False
        if not isinstance(getattr(place, name, None), Module):
            return False
        delattr(place, name)
        return True

    def delete_all_unused_submodules(self):
        """Take all modules away that no node calls or reads."""
        used = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used.update(".".join(parts[:end]) for end in range(1, len(parts) + 1))
                if node.op == "call_module" and (module := self._found(node.target)) is not None:
                    used.update(f"{node.target}.{name}" for name, _ in module.named_modules() if name)
        for name in [name for name, _ in self.named_modules() if name]:
            if name not in used:
                self.delete_submodule(name)

    def _found(self, target):
        try:
            return self.get_submodule(target)
        except AttributeError:
            return None

    # ---- running

    def __call__(self, *args, **kwargs):
        try:
            return super().__call__(*args, **kwargs)
        except Exception as error:
            self._point_at(error)
            raise

    def _point_at(self, error):
        """Say which line of the generated code raised."""
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code is type(self).forward.__code__:
                line = self._code.splitlines()[trace.tb_lineno - 1].strip()
                note = f"in the graph of {type(self).__name__}: {line}"
                if note not in getattr(error, "__notes__", ()):
                    error.add_note(note)
                return
            trace = trace.tb_next

    # ---- copies and files

    def _state(self):
        state = self.__dict__.copy()
        state.pop("_code", None)
        return state

    def __deepcopy__(self, memo):
        made = GraphModule.__new__(type(self))
        memo[id(self)] = made
        Module.__init__(made)
        state = {name: value for name, value in self._state().items() if name != "_graph"}
        made.__dict__.update(copy.deepcopy(state, memo))
        made.graph = copy.deepcopy(self._graph, memo)
        return made

    def __copy__(self):
        made = GraphModule(self, self.graph)
        made.meta = self.meta
        return made

    def __reduce__(self):
        return reduce_graph_module, (self._state(),)

    def to_folder(self, folder, module_name="FxModule"):
        """Write the module as Python source beside its tensors: `from folder import FxModule`."""
        os.makedirs(folder, exist_ok=True)
        cresset.save(self.state_dict(), os.path.join(folder, "state_dict.pt"))
        lines = [
            "from __future__ import annotations",
            "",
            "import torch",
            "from torch.nn import *",
            "",
            f"class {module_name}(torch.nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
        ]
        for name, child in self.named_children():
            file = os.path.join(folder, f"{name}.pt")
            cresset.save(child, file)
            lines.append(f"        self.{name} = torch.load({file!r}, weights_only=False)  # {type(child).__name__}")
        for name, buffer in self._buffers.items():
            if buffer is not None:
                lines.append(
                    f"        self.register_buffer({name!r}, torch.empty({list(buffer.shape)}, "
                    f"dtype={str(buffer.dtype).replace('cresset', 'torch')}))"
                )
        for name, parameter in self._parameters.items():
            if parameter is not None:
                lines.append(
                    f"        self.{name} = torch.nn.Parameter(torch.empty({list(parameter.shape)}, "
                    f"dtype={str(parameter.dtype).replace('cresset', 'torch')}))"
                )
        lines.append(f"        self.load_state_dict(torch.load({os.path.join(folder, 'state_dict.pt')!r}))")
        lines += ["    " + line if line.strip() else "" for line in self.code.strip("\n").splitlines()]
        with open(os.path.join(folder, "module.py"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        with open(os.path.join(folder, "__init__.py"), "w", encoding="utf-8") as file:
            file.write("from .module import *\n")


def reduce_graph_module(state):
    """A pickled GraphModule again: its graph is data, and its code is made from it."""
    made = GraphModule.__new__(GraphModule)
    Module.__init__(made)
    graph = state.pop("_graph")
    made.__dict__.update(state)
    made.graph = graph
    return made


def _readable(module, name, shown, shown_inside):
    """A graph module and those that it holds as classes."""
    code = module.graph.python_code("self", verbose=True, **shown).src.lstrip("\n")
    inside = [
        _readable(child, child_name, shown_inside, shown_inside)
        for child_name, child in module.named_children()
        if isinstance(child, GraphModule)
    ]
    return _indented(f"class {name}(torch.nn.Module):\n{code}") + _indented("\n".join(["", *inside]))


def _indented(text):
    """All lines but the first further in; those without a word stay empty."""
    first, *others = text.split("\n")
    return "\n".join([first, *("    " + line if line.strip() else "" for line in others)])
