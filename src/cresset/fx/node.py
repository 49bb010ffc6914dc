"""A node of a graph: one call, one input, one attribute or the output, and who uses it."""

import builtins
import inspect
import operator
import types

import cresset

from .. import _native
from ..ops.namespaces import OpOverload
from ..ops.tags import Tag
from .immutable_collections import immutable_dict, immutable_list

__all__ = ["Node", "Argument", "Target", "base_types", "has_side_effect", "map_aggregate", "map_arg"]

Target = object  # a callable for call_function, a name for the others
Argument = object
base_types = (
    str,
    int,
    float,
    bool,
    complex,
    cresset.dtype,
    cresset.Tensor,
    cresset.device,
    cresset.memory_format,
    cresset.layout,
)
OPCODES = ("placeholder", "get_attr", "call_function", "call_module", "call_method", "output", "root")

# and _assert_is_none of _symbolic_trace.py
_side_effectful_functions = {
    cresset._assert, cresset._assert_async, operator.setitem,
    cresset.ops.profiler._record_function_enter, cresset.ops.profiler._record_function_enter_new,
    cresset.ops.profiler._record_function_exit,
}  # fmt: skip
_RANDOM = {  # they draw from the stream of random numbers: left out, those behind them would draw others
    getattr(cresset, name)
    for name in (
        "rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "normal", "poisson",
        "bernoulli", "multinomial",
    )
}  # fmt: skip


def has_side_effect(fn):
    """Declare that calls of `fn` must stay in a graph even if nobody uses their result."""
    _side_effectful_functions.add(fn)
    return fn


def map_aggregate(a, fn):
    """`fn` of every leaf of nested tuples, lists, dicts and slices; the containers come back immutable."""
    if isinstance(a, tuple):
        parts = [map_aggregate(element, fn) for element in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return immutable_list([map_aggregate(element, fn) for element in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(value, fn) for key, value in a.items()})
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def map_arg(a, fn):
    """`fn` of every Node in an argument."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


# ---------------------------------------------------------------- names of functions


def _public_names():
    """Every function of the public namespaces, by identity: its name as PyTorch's programs write it."""
    places = {
        "torch": cresset,
        "torch.nn.functional": cresset.nn.functional,
        "torch.linalg": cresset.linalg,
        "torch.fft": cresset.fft,
        "torch.special": cresset.special,
    }
    found = {}
    for place, namespace in places.items():
        for name in dir(namespace):
            value = getattr(namespace, name, None)
            if not callable(value) or isinstance(value, type) or name.startswith("__"):
                continue
            if place == "torch.nn.functional" and not isinstance(value, _native.Operator):
                found[id(value)] = f"{place}.{name}"  # where it is at home
            found.setdefault(id(value), f"{place}.{name}")
    return found


_names = {}


def _public_name(func):
    """`torch.relu` for a function of the library, None for others."""
    if not _names:
        _names.update(_public_names())
    return _names.get(id(func))


def _get_qualified_name(func):
    """The dotted name of a function: `torch.relu`, `_operator.add`, `my_module.f`."""
    if getattr(builtins, getattr(func, "__name__", ""), None) is func:
        return func.__name__
    if (public := _public_name(func)) is not None:
        return public
    if (
        isinstance(func, (types.MethodDescriptorType, types.WrapperDescriptorType))
        and getattr(func, "__objclass__", None) is _native.Tensor
    ):
        return f"torch.Tensor.{func.__name__}"
    name = func.__name__
    module = getattr(func, "__module__", None) or "builtins"
    module = "_operator" if getattr(operator, name, None) is func else module
    if module.partition(".")[0] == "cresset":
        module = "torch" + module[len("cresset") :]
    if name == "<lambda>":
        source = inspect.getsource(func).split("=")[0].strip()
        raise RuntimeError(f"Unable to generate code for lambda function {source}: give it a name with def")
    return f"{module}.{name}"


# ---------------------------------------------------------------- printing


def _type_repr(kind):
    """A type as code: `int`, `torch.Tensor`, `typing.List[int]`."""
    if isinstance(kind, type) and not isinstance(kind, types.GenericAlias):
        if kind.__module__ == "builtins":
            return kind.__qualname__
        module = (
            "torch" + kind.__module__[len("cresset") :]
            if kind.__module__.partition(".")[0] == "cresset"
            else kind.__module__
        )
        return f"{module}.{kind.__qualname__}"
    if kind is ...:
        return "..."
    return kind.__name__ if isinstance(kind, types.FunctionType) else repr(kind).replace("cresset.", "torch.")


def _format_arg(arg):
    if isinstance(arg, Node):
        return f"%{arg.name}"
    if isinstance(arg, list):
        return f"[{', '.join(map(_format_arg, arg))}]"
    if isinstance(arg, tuple):
        inside = ", ".join(map(_format_arg, arg))
        return f"({inside},)" if len(arg) == 1 else f"({inside})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{key}: {_format_arg(value)}" for key, value in arg.items()) + "}"
    return str(arg)


class Node:
    """One step of a graph.

    `op` is one of placeholder (an input; `target` is its name), get_attr (a parameter or attribute of the module),
    call_function, call_module, call_method and output. `users` are the nodes that read it, `meta` is free for passes to
    write in.
    """

    __slots__ = ("__dict__", "__weakref__", "graph", "meta", "name", "op", "target", "type", "users")

    def __init__(self, graph, name, op, target, args, kwargs, return_type=None):
        if op not in OPCODES:
            raise AssertionError(
                f"Node [graph = {graph}, name = '{name}'] op {op!r} must be one of {', '.join(OPCODES)}"
            )
        if op == "call_function":
            if not callable(target):
                raise ValueError(
                    f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a Callable "
                    "is expected"
                )
        elif not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a str is expected"
            )
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self._input_nodes, self.users = {}, {}
        self._prev = self._next = self
        self._erased = False
        self._repr_fn = None
        self.meta = {}
        self._update_args_kwargs(args, kwargs)

    # ---- place in the list

    @property
    def next(self):
        return self._next

    @property
    def prev(self):
        return self._prev

    def _remove_from_list(self):
        self._prev._next, self._next._prev = self._next, self._prev

    def prepend(self, x):
        """Move node `x` to the place before this one."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x

    def append(self, x):
        """Move node `x` to the place after this one."""
        self._next.prepend(x)

    def __lt__(self, other):
        return self is not other and self._comes_before(other)

    def __gt__(self, other):
        return other < self

    def __le__(self, other):
        return self is other or self < other

    def __ge__(self, other):
        return self is other or self > other

    def _comes_before(self, other):
        node = self._next
        while node.op != "root":
            if node is other:
                return True
            node = node._next
        return False

    # ---- arguments

    @property
    def args(self):
        return self._args

    @args.setter
    def args(self, value):
        self._update_args_kwargs(value, self._kwargs)

    @property
    def kwargs(self):
        return self._kwargs

    @kwargs.setter
    def kwargs(self, value):
        self._update_args_kwargs(self._args, value)

    def _update_args_kwargs(self, args, kwargs):
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._input_nodes = {}

        def note(node):
            self._input_nodes.setdefault(node)
            node.users.setdefault(self)
            return node

        self._args = map_arg(tuple(args), note)
        self._kwargs = map_arg(dict(kwargs), note)

    @property
    def all_input_nodes(self):
        """The nodes it reads, each once, in the order of its arguments."""
        return list(self._input_nodes)

    def update_arg(self, idx, arg):
        """Change the positional argument `idx`."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx, arg):
        """Put a positional argument before number `idx`."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key, arg):
        """Change the keyword argument `key`."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input, new_input):
        """Read `new_input` wherever `old_input` was read."""
        replaced = lambda node: new_input if node is old_input else node
        self._update_args_kwargs(map_arg(self.args, replaced), map_arg(self.kwargs, replaced))

    def replace_all_uses_with(self, replace_with, delete_user_cb=lambda user: True, *, propagate_meta=False):
        """Let all users (for which `delete_user_cb` says so) read `replace_with` instead. Returns those that were
        changed.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with already "
                    "has .meta keys"
                )
            replace_with.meta.update(self.meta)
        changed = [user for user in list(self.users) if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    # ---- what it is

    @property
    def stack_trace(self):
        """Where the traced program made it, if that was recorded."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace):
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random=True):
        """Whether it has an effect besides its result, so that dead code elimination must keep it.

        Args:
            impure_random: whether to count what an operator draws from the stream of random numbers.
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            if isinstance(self.target, OpOverload):
                drawn = impure_random and Tag.nondeterministic_seeded in self.target.tags
                return drawn or self.target._schema.is_mutable or self.target in _side_effectful_functions
            schema_is_written = getattr(self.target, "__name__", "").endswith("_") and _get_qualified_name(
                self.target
            ).startswith("torch.")
            known = self.target in _side_effectful_functions or self.target in _RANDOM
            return known or schema_is_written or "out" in self.kwargs
        if self.op == "call_method":
            return self.target.endswith("_") and not self.target.endswith("__")
        if self.op == "call_module":
            module = self.graph.owning_module
            if module is None:
                return False
            try:
                return getattr(module.get_submodule(self.target), "_is_impure", False)
            except AttributeError:
                return False
        return False

    def normalized_arguments(self, root, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs=False):
        """Its arguments by the signature of what it calls, or None where that has none that fits."""
        from .operator_schemas import normalize_function, normalize_module

        if self.op == "call_function":
            return normalize_function(
                self.target, self.args, self.kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs
            )
        if self.op == "call_module":
            return normalize_module(root, self.target, self.args, self.kwargs, normalize_to_only_use_kwargs)
        return None

    def _rename(self, candidate):
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)
            self.graph._graph_namespace._rename_object(self, self.name)

    def _pretty_print_target(self, target):
        """The target as a table shows it: builtins by name, functions with their module."""
        if isinstance(target, str):
            return target
        if getattr(target, "__module__", None) is None:
            return target.__name__
        if target.__module__ == "builtins":
            return f"builtins.{target.__name__}"
        if target.__module__ == "_operator":
            return f"operator.{target.__name__}"
        return _get_qualified_name(target)

    def format_node(self, placeholder_names=None, maybe_return_typename=None, *, include_tensor_metadata=False):
        """One line that says what it does, or None for an input that was put into the list given."""
        if self.op == "output":
            if maybe_return_typename is not None and self.type:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        kind = f"{_type_repr(self.type)} " if self.type else ""
        if self.op == "placeholder" and placeholder_names is not None:
            placeholder_names.append(f"{self.target}{' : ' + kind.strip() if kind else ''}")
            return None
        line = (
            f"%{self.name} : {kind}[num_users={len(self.users)}] = "
            f"{self.op}[target={self._pretty_print_target(self.target)}]"
        )
        if self.op == "placeholder":
            return line + (f"(default={self.args[0]})" if self.args else "")
        if self.op == "get_attr":
            return line
        known = self.meta.get("tensor_meta") or self.meta.get("val")
        shape = f", shape = {tuple(known.shape)}" if include_tensor_metadata and hasattr(known, "shape") else ""
        return f"{line}(args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)}){shape}"

    def __repr__(self):
        return self._repr_fn(self) if self._repr_fn else self.name

    # Copies and pickles belong to the graph, which writes its nodes down as data.
    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        raise RuntimeError("Node: a node is copied with its graph: copy.deepcopy(graph), or graph.node_copy(node)")
