"""Tracing: run a module's forward with proxies, and keep what was done as a graph."""

import builtins
import collections
import contextlib
import functools
import inspect
import math
import sys
import types

import cresset

from .. import pytree
from ..nn.module import Module
from ..nn.parameter import Parameter
from .code import _PyTreeCodeGen
from .graph import Graph
from .graph_module import GraphModule
from .node import _side_effectful_functions
from .proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase

__all__ = [
    "PH",
    "PHWithMeta",
    "ProxyableClassMeta",
    "Tracer",
    "is_fx_symbolic_tracing",
    "is_fx_tracing",
    "symbolic_trace",
    "wrap",
]

_wrapped_functions = {}  # (id of a module's globals, name) -> those globals
_wrapped_methods = {}  # (class, name) -> None
_tracing = False
_PytreeInfo = collections.namedtuple("_PytreeInfo", "orig_args in_spec out_spec")

_orig_module_call = Module.__call__  # the call of a module when nothing is traced


def is_fx_tracing():
    """Whether a symbolic trace is being made."""
    return _tracing


def is_fx_symbolic_tracing():
    """is_fx_tracing, and not inside a compiled region."""
    return _tracing


class ProxyableClassMeta(type):
    """Objects of a class whose constructor gets proxies become nodes themselves."""

    def __call__(cls, *args, **kwargs):
        found = next((part for part in pytree.tree_leaves((args, kwargs)) if isinstance(part, Proxy)), None)
        if found is None:
            return super().__call__(*args, **kwargs)
        return found.tracer.create_proxy("call_function", cls, args, kwargs)


class PHBase:
    """Stands in `concrete_args` for an input that stays one."""

    def __repr__(self):
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """A PH with notes for the node."""

    def __init__(self, ph_key=None):
        self.ph_key = ph_key

    def transfer_meta(self, node):
        if self.ph_key is not None:
            node.meta["ph_key"] = self.ph_key


def wrap(fn_or_name):
    """Let calls of a function be recorded as they are instead of being entered. Call it, or use it as a decorator,
    where the module's names are defined.

    >>> cresset.fx.wrap("len")
    'len'
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name; got "
            f"{type(fn_or_name).__name__}"
        )
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_functions[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


class Patches:
    """Attributes replaced for the time of a trace."""

    def __init__(self):
        self.undo = []

    def item(self, table, name, value):
        missing = name not in table
        before = table.get(name)
        self.undo.append(lambda: table.pop(name) if missing else table.__setitem__(name, before))
        table[name] = value

    def attribute(self, owner, name, value):
        own = vars(owner).get(name, _ABSENT)
        self.undo.append(lambda: delattr(owner, name) if own is _ABSENT else setattr(owner, name, own))
        setattr(owner, name, value)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        while self.undo:
            self.undo.pop()()


_ABSENT = object()
_OVERRIDABLE = type(cresset.flatten)  # functions made of others that ask __torch_function__ first

# Functions of nn.functional whose calls PyTorch records as they were written.
_BUILT_IN = set(
    """avg_pool1d avg_pool2d avg_pool3d bilinear channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d
    conv_transpose2d conv_transpose3d cosine_similarity gelu hardshrink linear logsigmoid native_channel_shuffle one_hot
    pdist pixel_shuffle pixel_unshuffle prelu scaled_dot_product_attention softplus softshrink""".split()
)


def _recorded(function, name=None, of_library=False):
    """`function`, which is recorded when a proxy is among its arguments.

    One of the library's is not marked as wrapped, and has its defaults written out where PyTorch's is written in
    Python.
    """
    complete = (
        of_library
        and name is None
        and function in vars(cresset.nn.functional).values()
        and function.__name__ not in _BUILT_IN
    )

    @functools.wraps(function)
    def recorded(*args, **kwargs):
        proxy = next((part for part in pytree.tree_leaves((args, kwargs)) if isinstance(part, Proxy)), None)
        if proxy is None:
            return function(*args, **kwargs)
        if name is not None:
            return proxy.tracer.create_proxy("call_method", name, args, kwargs)
        if complete:
            args, kwargs = _with_defaults(function, args, kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        if not of_library:
            made.node.meta["is_wrapped"] = True
        return made

    return recorded


def _with_defaults(function, args, kwargs):
    """What must be given by place, the rest by name."""
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    places, names = [], {}
    for parameter in bound.signature.parameters.values():
        value = bound.arguments[parameter.name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            places += value
        elif parameter.kind is parameter.VAR_KEYWORD:
            names.update(value)
        elif parameter.default is parameter.empty:
            places.append(value)
        else:
            names[parameter.name] = value
    return tuple(places), names


class Tracer(TracerBase):
    """Traces a module or function symbolically. Subclass it to decide what is entered (`is_leaf_module`) and how calls
    are recorded.

    Args:
        autowrap_modules: modules whose functions are recorded when they get proxies; `math` unless said.
        autowrap_functions: further functions to record.
        param_shapes_constant: reading a parameter's shape gives numbers and records nothing.
    """

    def __init__(self, autowrap_modules=(math,), autowrap_functions=(), param_shapes_constant=False):
        super().__init__()
        self._autowrap_functions = {id(f): f for f in autowrap_functions}
        for module in autowrap_modules:
            self._autowrap_functions.update(
                {id(f): f for name, f in vars(module).items() if not name.startswith("_") and callable(f)}
            )
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths = None
        self.root_module_name = ""
        self.num_calls = {}

    # ---- arguments

    def create_arg(self, a):
        """Parameters and modules are written down by their names in the root, other tensors as new attributes of it."""
        if isinstance(a, Parameter):
            for name, p in self.root.named_parameters():
                if a is p:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, cresset.Tensor):
            for name, p in self.root.named_buffers():
                if a is p:
                    return self.create_node("get_attr", name, (), {})
        if isinstance(a, Module):
            for name, p in self.root.named_modules():
                if a is p:
                    return self.create_node("get_attr", name, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(self.create_arg(part) for part in a), {})
        if isinstance(a, cresset.Tensor):
            return self.create_node("get_attr", self._constant_name(a), (), {})
        if type(a) in _proxyable_classes:
            return self.create_node("get_attr", self._constant_name(a, f"_{type(a).__name__}_constant_"), (), {})
        return super().create_arg(a)

    def _constant_name(self, a, stem="_tensor_constant"):
        name = self.tensor_attrs.get(id(a)) if isinstance(a, cresset.Tensor) else None
        if name is None:
            number = 0
            while hasattr(self.root, f"{stem}{number}"):
                number += 1
            name = f"{stem}{number}"
            if isinstance(a, cresset.Tensor):
                self.tensor_attrs[id(a)] = name
            setattr(self.root, name, a)
            self._kept.append(a)
        return name

    # ---- modules

    def is_leaf_module(self, m, module_qualified_name):
        """Whether a module is one node instead of being entered: those of torch.nn are, but Sequential."""
        return m.__module__.startswith(("cresset.nn", "torch.nn", "cresset.ao.nn", "torch.ao.nn")) and not isinstance(
            m, cresset.nn.Sequential
        )

    def path_of_module(self, mod):
        """The dotted name of a module in the root."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
            if path is None:
                raise NameError("module is not installed as a submodule")
            return path
        for name, other in self.root.named_modules():
            if mod is other:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(self, m, forward, args, kwargs):
        """A module is called: one node if it is a leaf, else what `forward` does."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))):
            count = self.num_calls.get(path, 0)
            self.num_calls[path] = count + 1
            key = f"{path}@{count}" if count else path
            self.module_stack[key] = (path, type(m))
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                self.module_stack.pop(key, None)

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        """An attribute of a module is read: parameters (and buffers, if `proxy_buffer_attributes`) become proxies."""
        if isinstance(attr_val, Parameter):
            return self._proxy_of(attr_val, self.root.named_parameters(), parameter_proxy_cache)
        if self.proxy_buffer_attributes and isinstance(attr_val, cresset.Tensor):
            return self._proxy_of(attr_val, self.root.named_buffers(), parameter_proxy_cache)
        return attr_val

    def _proxy_of(self, value, named, cache):
        for name, other in named:
            if value is other:
                if name not in cache:
                    make = None
                    if self.param_shapes_constant and isinstance(value, Parameter):
                        make = functools.partial(_parameter_proxy, self, name, value)
                    cache[name] = self.create_proxy("get_attr", name, (), {}, proxy_factory_fn=make)
                return cache[name]
        return value

    def get_fresh_qualname(self, prefix):
        """A name like `prefix` that the root does not have yet."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    # ---- inputs

    def create_args_for_root(self, root_fn, is_module, concrete_args=None):
        """Inputs for the parameters of the function: the function to call (with inputs as a flat list, where they were
        trees) and them.
        """
        function = inspect.unwrap(root_fn)
        code = function.__code__
        names = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        args = []
        if is_module:
            if not names:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            names, args = names[1:], [self.root]
        signature = inspect.signature(function)
        counters = collections.Counter()

        def default_of(name):
            parameter = signature.parameters.get(name)
            return () if parameter is None or parameter.default is inspect.Parameter.empty else (parameter.default,)

        def input_of(name):
            if concrete_args is not None and name in concrete_args:
                return self._concrete_input(name, concrete_args[name], default_of(name), counters)
            default = default_of(name)
            kind = _annotation(function, name.lstrip("*"))
            return self.create_proxy("placeholder", name, default, {}, type_expr=kind)

        if isinstance(concrete_args, tuple):
            if len(names) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(names)} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(names, concrete_args))
        args += [input_of(name) for name in names]
        starred = []
        if code.co_flags & inspect.CO_VARARGS:
            starred.append("*" + code.co_varnames[len(names) + is_module])
        if code.co_flags & inspect.CO_VARKEYWORDS:
            starred.append("**" + code.co_varnames[len(names) + is_module + len(starred)])
        star_values = [input_of(name) for name in starred]
        if (
            any(isinstance(value, (tuple, list, dict)) and _has_proxy(value) for value in args)
            or concrete_args is not None
        ):
            return self._flattened(function, names, args, is_module)
        if not starred:
            positional = args[: code.co_argcount]
            keywords = dict(zip(names[code.co_argcount - is_module :], args[code.co_argcount :]))
            return (
                lambda *given: function(*given, **keywords)
            ) if keywords else root_fn if not is_module else function, positional
        keywords = dict(zip(names[code.co_argcount - is_module :], args[code.co_argcount :]))
        return _call_with_stars(function, starred, star_values, keywords), args[: code.co_argcount]

    def _concrete_input(self, name, value, default, counters):
        """A tree that holds PH: inputs there, the given values elsewhere; these are checked when the graph runs."""

        def one(leaf):
            counters[name] += 1
            if isinstance(leaf, PHBase):
                out = self.create_proxy("placeholder", f"{name}_{counters[name]}", default, {})
                if isinstance(leaf, PHWithMeta):
                    leaf.transfer_meta(out.node)
                return out
            made = self.create_proxy("placeholder", f"{name}_{counters[name]}", default, {})
            if isinstance(leaf, (bool, int, float)) and not isinstance(leaf, cresset.Tensor):
                message = f"{name} has been specialized to have value {leaf} but got another value"
                cresset._assert(made == leaf, message)
            elif leaf is None:
                message = f"{name} has been specialized to have value None but got another value"
                self.create_proxy("call_function", _assert_is_none, (made, message), {})
            return leaf

        return pytree.tree_map(one, value)

    def _flattened(self, function, names, args, is_module):
        first = 1 if is_module else 0
        leaves, spec = pytree.tree_flatten(tuple(args[first:]))
        given = list(names)

        def flat(*flat_args):
            result = function(*args[:first], *pytree.tree_unflatten(list(flat_args), spec))
            values, out_spec = pytree.tree_flatten(result)
            if any(isinstance(value, (tuple, list, dict)) for value in args[first:]):
                self.graph._codegen = _PyTreeCodeGen(_PytreeInfo(given, spec, out_spec))
                return values
            return result

        return flat, leaves

    # ---- the trace

    def trace(self, root, concrete_args=None):
        """The graph of a module's forward (or of a function)."""
        global _tracing
        outer, _tracing = _tracing, True
        self._kept = []
        try:
            if isinstance(root, Module):
                self.root = root
                if not hasattr(type(root), self.traced_func_name):
                    raise AssertionError(
                        f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}"
                    )
                function = getattr(type(root), self.traced_func_name)
                self.root_module_name = root._get_name()
                self.submodule_paths = {module: name for name, module in root.named_modules()}
            else:
                self.root, function = Module(), root
            self.graph = Graph(tracer_cls=type(self))
            self.tensor_attrs = {}
            self._collect_tensors(self.root, [])
            if not isinstance(function, types.FunctionType):
                raise AssertionError(f"symbolic_trace: expected a function or a module, got {type(function).__name__}")
            function_globals = inspect.unwrap(function).__globals__
            returned = _annotation(function, "return")
            function, args = self.create_args_for_root(function, isinstance(root, Module), concrete_args)
            with Patches() as patches, _module_calls(self, patches):
                self._patch_functions(patches, function_globals)
                result = function(*args)
            self.create_node("output", "output", (self.create_arg(result),), {}, type_expr=returned)
            self.submodule_paths = None
        finally:
            _tracing = outer
        return self.graph

    def _collect_tensors(self, module, path):
        for name, value in vars(module).items():
            if isinstance(value, cresset.Tensor):
                self.tensor_attrs[id(value)] = ".".join([*path, name])
        for name, child in module.named_children():
            self._collect_tensors(child, [*path, name])

    def _patch_functions(self, patches, function_globals):
        for (_, name), table in _wrapped_functions.items():
            function = table.get(name, getattr(builtins, name, None))
            if function is not None:
                patches.item(table, name, _recorded(function))
        for owner, name in _wrapped_methods:
            patches.attribute(owner, name, _recorded(getattr(owner, name), name))
        # Tensor-like arguments answer for themselves where an operator is called. Functions made of operators are
        # recorded whole.
        libraries = [vars(place) for place in (cresset.nn.functional, cresset.linalg, cresset.fft)]
        made_of_others = {
            id(value): value
            for table in libraries
            for value in table.values()
            if isinstance(value, (types.FunctionType, _OVERRIDABLE))
        }
        places = [function_globals, *(vars(module) for module in self._autowrap_search), *libraries]
        places += [
            vars(sys.modules[type(module).__module__])
            for module in self.root.modules()
            if type(module).__module__.partition(".")[0] not in ("cresset", "torch")
        ]
        for table in {id(table): table for table in places}.values():
            for name, value in list(table.items()):
                if name.startswith("_") or not callable(value):
                    continue
                if id(value) in self._autowrap_functions:
                    patches.item(table, name, _recorded(value))
                elif id(value) in made_of_others:
                    patches.item(table, name, _recorded(value, of_library=True))

    def __deepcopy__(self, memo):
        return type(self)()


def _annotation(function, name):
    """What a parameter (or the result) is annotated with, if that is a type and not text."""
    kind = getattr(function, "__annotations__", {}).get(name)
    return None if isinstance(kind, str) else kind


def _parameter_proxy(tracer, name, parameter, node):
    return ParameterProxy(tracer, node, name, parameter)


def _assert_is_none(value, msg):
    assert value is None, msg


_side_effectful_functions.add(_assert_is_none)


def _has_proxy(value):
    return any(isinstance(part, Proxy) for part in pytree.tree_leaves(value))


def _call_with_stars(function, starred, values, keywords):
    """The function called with proxies for *args and **kwargs themselves: inside, these names are the proxies."""
    code = function.__code__
    flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    total = code.co_argcount + code.co_kwonlyargcount + len(starred)
    plain = code.replace(co_argcount=total, co_kwonlyargcount=0, co_flags=flags)
    bare = types.FunctionType(plain, function.__globals__, function.__name__, None, function.__closure__)

    def call(*given):
        return bare(*given, *keywords.values(), *values)

    return call


_proxyable_classes = {}


@contextlib.contextmanager
def _module_calls(tracer, patches):
    """For the time of the trace, calls of modules and reads of their parameters go to the tracer."""
    call, getattribute = Module.__call__, Module.__getattr__
    cache = {}

    def traced_getattr(module, name):
        return tracer.getattr(name, getattribute(module, name), cache)

    def traced_call(module, *args, **kwargs):
        return tracer.call_module(module, lambda *a, **k: call(module, *a, **k), args, kwargs)

    patches.attribute(Module, "__getattr__", traced_getattr)
    patches.attribute(Module, "__call__", traced_call)
    try:
        yield
    finally:
        patches.__exit__()
        _quicken(Module)


def _quicken(cls):
    """Slots that were reset by the patches lead to native code again."""
    from .. import _native

    _native.quicken_module(cls)
    for child in cls.__subclasses__():
        _quicken(child)


def symbolic_trace(root, concrete_args=None):
    """The graph of a module or function, as a GraphModule that computes the same.

    Args:
        concrete_args: values for arguments that control flow depends on; `PH` stands for what remains an input.

    >>> class Net(nn.Module):
    ...     def forward(self, x):
    ...         return cresset.relu(x) + 1
    >>> print(cresset.fx.symbolic_trace(Net()).code.strip())
    def forward(self, x):
        relu = torch.relu(x);  x = None
        add = relu + 1;  relu = None
        return add
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
