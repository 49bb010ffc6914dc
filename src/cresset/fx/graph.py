"""A graph: a list of nodes in the order in which they run, and the ways to change it."""

import builtins
import copy
import keyword
import operator
import re
import warnings

import cresset

from .code import CodeGen, PythonCode, _BoxedCodeGen, _PyTreeCodeGen  # noqa: F401  (found here in PyTorch)
from .node import Node, _public_name, map_aggregate, map_arg

__all__ = ["CodeGen", "Graph", "PythonCode"]

_BUILTIN_NAMES = {*dir(builtins), *keyword.kwlist, "inf", "nan", "NoneType", "torch", "device", "fx_pytree", "pytree"}
_ILLEGAL = re.compile(r"[^0-9a-zA-Z_]+")
_SUFFIX = re.compile(r"(.*)_(\d+)$")


def _snake_case(text):
    """A name in lower case with underscores: BatchNorm2d becomes batch_norm2d."""
    if text.islower():
        return text
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", text).lower() if not text.isupper() else text.lower()


class _Namespace:
    """Names that are in use, and the next free one of a kind: add, add_1, add_2."""

    def __init__(self):
        self._owner = {}  # name -> the object it belongs to
        self._names = {}  # object -> its name
        self._last = {}  # stem -> the last number given

    def create_name(self, candidate, obj):
        """A free name like `candidate`, noted as that of `obj`."""
        if obj is not None and obj in self._names:
            return self._names[obj]
        candidate = _ILLEGAL.sub("_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = "_" + candidate
        match = _SUFFIX.match(candidate)
        stem, number = (match[1], int(match[2])) if match else (candidate, None)
        while candidate in self._owner or candidate in _BUILTIN_NAMES and not self._is_the_thing(candidate, obj):
            number = self._last.get(stem, 0) + 1 if number is None or stem in self._last else number + 1
            self._last[stem] = number
            candidate = f"{stem}_{number}"
        if number is not None:
            self._last[stem] = max(number, self._last.get(stem, 0))
        self._owner[candidate] = obj
        if obj is not None:
            self._names[obj] = candidate
        return candidate

    @staticmethod
    def _is_the_thing(name, obj):
        return obj is not None and getattr(builtins, name, None) is obj

    def associate_name_with_obj(self, name, obj):
        self._names.setdefault(obj, name)

    def _rename_object(self, obj, name):
        self._names[obj] = name
        self._owner[name] = obj


class _node_list:
    """The nodes in order; looping over it while nodes are put in or taken out is safe."""

    def __init__(self, graph, direction="_next"):
        self.graph, self.direction = graph, direction

    def __len__(self):
        return self.graph._len

    def __iter__(self):
        node = getattr(self.graph._root, self.direction)
        while node is not self.graph._root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self):
        return iter(_node_list(self.graph, "_prev" if self.direction == "_next" else "_next"))


class _InsertPoint:
    def __init__(self, graph, place):
        self.graph, self.before = graph, graph._insert
        graph._insert = place

    def __enter__(self):
        return None

    def __exit__(self, *_):
        self.graph._insert = self.before


class Graph:
    """The steps of a function or module. Build it with `placeholder`, `call_function`, …, `output`, or by tracing.

    >>> graph = cresset.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> _ = graph.output(graph.call_function(cresset.relu, (x,)))
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
        return relu
    """

    def __init__(self, owning_module=None, tracer_cls=None, tracer_extras=None):
        self._root = Node(self, "", "root", "", (), {})
        self._insert = self._root.prepend
        self._len = 0
        self._graph_namespace = _Namespace()
        self._owning_module = owning_module
        self._owners = 0
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()

    @property
    def owning_module(self):
        return self._owning_module

    @owning_module.setter
    def owning_module(self, module):
        self._owning_module = module

    # ---- reading

    @property
    def nodes(self):
        """The nodes, in the order in which they run."""
        return _node_list(self)

    def find_nodes(self, *, op, target=None, sort=True):
        """The nodes that do `op`, those with `target` if it is given."""
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    def output_node(self):
        """The node that says what comes out."""
        node = next(iter(reversed(self.nodes)))
        if node.op != "output":
            raise AssertionError(f"Graph: the last node should be the output, it is {node.op}")
        return node

    # ---- adding

    def create_node(self, op, target, args=None, kwargs=None, name=None, type_expr=None):
        """Put a node in at the insertion point. The other methods that make nodes come here."""
        args = () if args is None else args
        kwargs = {} if kwargs is None else kwargs
        if not isinstance(args, tuple):
            raise AssertionError("args must be a tuple")
        if not isinstance(kwargs, dict):
            raise AssertionError("kwargs must be a dict")
        name = self._graph_namespace.create_name(name if name is not None else self._target_to_str(target), None)
        node = Node(self, name, op, target, args, kwargs, type_expr)
        for used in node._input_nodes:
            if used.graph is not self:
                raise RuntimeError(
                    f"Argument '{used}' of Node '{name}' does not belong to this Graph, but was used as an argument! "
                    "If you are copying nodes from another graph, make sure to use ``arg_transform`` on node_copy() "
                    "to remap values"
                )
        self._graph_namespace.associate_name_with_obj(name, node)
        self._insert(node)
        self._len += 1
        return node

    def _target_to_str(self, target):
        if callable(target):
            name = target.__name__
        else:
            name = target
            if name.startswith("__") and name.endswith("__"):
                name = name[2:-2]
        return _snake_case(name)

    def placeholder(self, name, type_expr=None, default_value=...):
        """An input."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name, type_expr=None):
        """A parameter, buffer or other attribute of the module, by its dotted name."""
        module = self.owning_module
        if module is not None and not _has_attribute(module, qualified_name):
            warnings.warn(
                (
                    "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! "
                    f"{qualified_name} is not a submodule, parameter or buffer of it; call add_submodule, or add the "
                    "attribute"
                ),
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_function(self, the_function, args=None, kwargs=None, type_expr=None, name=None):
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def call_method(self, method_name, args=None, kwargs=None, type_expr=None):
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(self, module_name, args=None, kwargs=None, type_expr=None):
        module = self.owning_module
        if module is not None and not _has_attribute(module, module_name):
            warnings.warn(
                (
                    "Attempted to insert a call_module Node with no underlying reference in the owning GraphModule! "
                    "Call "
                    f"GraphModule.add_submodule to add {module_name}"
                ),
                stacklevel=2,
            )
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def output(self, result, type_expr=None):
        """What comes out: a node, or containers of nodes."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node, arg_transform=lambda x: x):
        """A copy here of a node of another graph; `arg_transform` says which node here stands for one there."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        name = node.name
        copied = self.create_node(node.op, node.target, args, dict(kwargs), name, node.type)
        copied.meta = dict(node.meta)
        return copied

    def graph_copy(self, g, val_map, return_output_node=False):
        """Copy all nodes of `g` but its output here. `val_map` says what stands for nodes of g, and is filled. Returns
        what g's output is here.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    # ---- where new nodes go, and taking nodes out

    def inserting_before(self, n=None):
        """`with graph.inserting_before(n):` new nodes go before `n`; before all others if it is None."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n=None):
        """`with graph.inserting_after(n):` new nodes go after `n`, the later ones after the earlier; at the end if it
        is None.
        """
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, n.append)

    def erase_node(self, to_erase):
        """Take a node out that nobody uses."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._update_args_kwargs((), {})

    def eliminate_dead_code(self, is_impure_node=None):
        """Take out nodes without users and without effects. Returns whether there were any."""
        self.lint()
        impure = is_impure_node or (lambda node: node.is_impure())
        changed = False
        for node in reversed(self.nodes):
            if not node.users and not impure(node):
                self.erase_node(node)
                changed = True
        return changed

    # ---- checking

    def lint(self):
        """Raise RuntimeError where the graph is no program: a value used before it is made, a name twice, a target that
        is not there.
        """
        seen, names = set(), {}
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for used in node._input_nodes:
                if used.graph is not self:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' does not belong to this Graph, but was used as an "
                        "argument!"
                    )
                if used not in seen:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' was used before it has been defined! Please check that "
                        f"Nodes in the graph are topologically ordered\n{self}"
                    )
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen.add(node)
            names[node.name] = node
            if node.op == "call_function" and not callable(node.target):
                raise ValueError(
                    f"Node {node} target {node.target} has type {type(node.target)} but a Callable is expected"
                )
            if node.op != "call_function" and not isinstance(node.target, str):
                raise ValueError(f"Node {node} target {node.target} has type {type(node.target)} but a str is expected")
        module = self.owning_module
        if module is None:
            return
        for node in self.nodes:
            if node.op in ("get_attr", "call_module"):
                place, path = module, []
                for part in node.target.split("."):
                    path.append(part)
                    if not hasattr(place, part):
                        raise RuntimeError(
                            f"Node {node} target {node.target} references nonexistent attribute {part} of "
                            f"{'.'.join(path[:-1])}"
                        )
                    place = getattr(place, part)
                if node.op == "call_module" and not isinstance(place, cresset.nn.Module):
                    raise RuntimeError(
                        f"Node {node} target {node.target} {'.'.join(path)} of  does not reference an nn.Module"
                    )

    # ---- printing

    def python_code(
        self,
        root_module,
        *,
        verbose=False,
        include_stride=False,
        include_device=False,
        colored=False,
        expanded_def=False,
        additional_meta=None,
    ):
        """The graph as Python: `.src`, and the `.globals` that it needs.

        Args:
            root_module: the name of the module, "self".
            verbose: with the dtype and shape of values where they are known, and the lines of the program that made
                them.
            include_stride, include_device: these, too, if verbose.
            colored: for a terminal; such code is to be read, not run.
            expanded_def: each parameter on a line of its own.
            additional_meta: keys of `node.meta` that are told above each call, if verbose.
        """
        told = {} if additional_meta is None else {"additional_meta": additional_meta}  # not every CodeGen knows it
        return self._codegen.python_code(
            self, root_module, verbose, include_stride, include_device, colored, expanded_def, **told
        )

    def __str__(self):
        return "graph():" + "".join(f"\n    {node.format_node()}" for node in self.nodes)

    def print_tabular(self):
        """Print a table of the nodes."""
        rows = [
            [
                node.op,
                node.name,
                str(node.target) if isinstance(node.target, str) else _short(node.target),
                str(node.args),
                str(node.kwargs),
            ]
            for node in self.nodes
        ]
        head = ["opcode", "name", "target", "args", "kwargs"]
        widths = [max([len(head[i]) + 2, *(len(row[i]) for row in rows)]) for i in range(5)]
        line = lambda row: "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
        print("\n".join([line(head), "  ".join("-" * width for width in widths), *map(line, rows)]))

    # ---- how code is made

    def set_codegen(self, codegen):
        self._codegen = codegen

    def process_inputs(self, *args):
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out):
        return self._codegen.process_outputs(out)

    def on_generate_code(self, make_transformer):
        """Let `make_transformer(the one before)` give a function that changes the list of lines of generated code."""
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)
        codegen = self._codegen

        class Undo:
            def __enter__(self):
                return None

            def __exit__(self, *_):
                codegen._body_transformer = before

        return Undo()

    # ---- copies

    def __deepcopy__(self, memo=None):
        memo = {} if memo is None else memo
        g = Graph(tracer_cls=self._tracer_cls, tracer_extras=self._tracer_extras)
        memo[id(self)] = g
        val_map = {}
        result = g.graph_copy(self, val_map, return_output_node=True)
        g._codegen = copy.deepcopy(self._codegen, memo)
        if result is not None:
            output = g.output(result[0], type_expr=result[1].type)
            output.meta = dict(result[1].meta)
        for old, new in val_map.items():
            memo[id(old)] = new
        return g

    def __getstate__(self):
        rows = [
            (
                node.name,
                node.op,
                _Function.of(node.target),
                map_arg(node.args, _Reference),
                map_arg(node.kwargs, _Reference),
                node.type,
                _picklable(node.meta),
            )
            for node in self.nodes
        ]
        return {
            "rows": rows,
            "codegen": self._codegen,
            "tracer_cls": self._tracer_cls,
            "tracer_extras": self._tracer_extras,
        }

    def __setstate__(self, state):
        self.__init__(tracer_cls=state["tracer_cls"], tracer_extras=state["tracer_extras"])
        self._codegen = state["codegen"]
        made = {}
        resolve = lambda a: map_aggregate(a, lambda x: made[x.name] if isinstance(x, _Reference) else x)
        for name, op, target, args, kwargs, kind, meta in state["rows"]:
            made[name] = self.create_node(
                op,
                target.found() if isinstance(target, _Function) else target,
                resolve(args),
                dict(resolve(kwargs)),
                name,
                kind,
            )
            made[name].meta = meta


class _Reference:
    """A node in a pickled graph, by its name."""

    def __init__(self, node):
        self.name = node.name


class _Function:
    """A function of the library in a pickled graph, by its public name: `torch.nn.functional.relu`."""

    def __init__(self, name):
        self.name = name

    @classmethod
    def of(cls, target):
        name = _public_name(target) if callable(target) else None
        return target if name is None else cls(name)

    def found(self):
        value = cresset
        for part in self.name.split(".")[1:]:
            value = getattr(value, part)
        return value


def _picklable(meta):
    return {key: value for key, value in meta.items() if key in ("stack_trace", "nn_module_stack", "source_fn_stack")}


def _has_attribute(module, path):
    for part in path.split("."):
        if not hasattr(module, part):
            return False
        module = getattr(module, part)
    return True


def _short(function):
    return (
        f"<built-in function {function.__name__}>"
        if getattr(operator, function.__name__, None) is function
        else repr(function)
    )
