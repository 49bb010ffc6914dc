"""Proxies: what a program gets instead of tensors while it is traced. Each operation on one becomes a node."""

import collections
import dis
import inspect
import operator
import sys
import traceback

import cresset

from ..graph.places import PACKAGE, asserts
from . import traceback as fx_traceback
from .immutable_collections import immutable_dict, immutable_list
from .node import Node, base_types

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "ParameterProxy",
    "Proxy",
    "Scope",
    "ScopeContextManager",
    "TraceError",
    "TracerBase",
]


class TraceError(ValueError):
    """The program asked a proxy for something that only a value has."""


class Scope:
    """The module that is being traced: its path and its class."""

    def __init__(self, module_path, module_type):
        self.module_path, self.module_type = module_path, module_type


class ScopeContextManager:
    """Inside, the scope is another."""

    def __init__(self, scope, current_scope):
        self._scope, self._before = scope, Scope(scope.module_path, scope.module_type)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type

    def __enter__(self):
        return self._scope

    def __exit__(self, *_):
        self._scope.module_path, self._scope.module_type = self._before.module_path, self._before.module_type


class TracerBase:
    """Makes nodes of calls and proxies of nodes. Subclasses say what is recorded and how arguments are written down."""

    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"

    def __init__(self):
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.node_name_to_scope = {}

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        """A new node at the end of the graph."""
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        if fx_traceback.has_preserved_node_meta():
            node.meta.update(fx_traceback.get_current_meta())
        elif "custom" in fx_traceback.get_current_meta():
            node.meta["custom"] = dict(fx_traceback.get_current_meta()["custom"])
        if self.module_stack:
            node.meta["nn_module_stack"] = dict(self.module_stack)
        return node

    def proxy(self, node):
        """What stands for a node in the program."""
        return Proxy(node, self)

    def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None):
        """A node for a call, and the proxy that stands for its result."""
        written, written_kwargs = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, written, dict(written_kwargs), name, type_expr)
        proxy = proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)
        if self.record_stack_traces and not node.stack_trace:
            node.stack_trace = _users_stack()
        return proxy

    def create_arg(self, a):
        """An argument as a node holds it: proxies become their nodes, containers are written down part by part."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            parts = [self.create_arg(element) for element in a]
            return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
        if isinstance(a, list):
            return immutable_list([self.create_arg(element) for element in a])
        if isinstance(a, dict):
            return immutable_dict(self._written_dict(a))
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(*(self.create_arg(part) for part in (a.start, a.stop, a.step)))
        if (
            isinstance(a, base_types)
            or a is None
            or a is ...
            or isinstance(a, (type, cresset.Generator))
            or inspect.isfunction(a)
            or inspect.isbuiltin(a)
        ):
            return a
        if hasattr(a, "__dataclass_fields__"):
            keywords = {name: self.create_arg(getattr(a, name)) for name in a.__dataclass_fields__}
            return self.create_node("call_function", type(a), (), keywords)
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _written_dict(self, a):
        written = {}
        for key, value in a.items():
            if isinstance(key, (Proxy, Node)):
                raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}")
            written[key] = self.create_arg(value)
        return written

    def to_bool(self, obj):
        """A proxy is asked whether it is true. An assert becomes a recorded one if `trace_asserts`."""
        if self.trace_asserts and asserts(sys._getframe(2)):
            return True
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj):
        """A proxy is iterated over: only unpacking into so many names can be recorded."""
        count = _unpacked_count(sys._getframe(2))
        if count is not None:
            return iter([obj[i] for i in range(count)])
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument. "
            "See the torch.fx docs on pytorch.org for a more detailed explanation of what types of control flow can "
            "be traced, and check out the "
            "Proxy docstring for help troubleshooting Proxy iteration errors"
        )

    def keys(self, obj):
        """The keys of a proxy, as in `**proxy`."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """A tracer that only appends to a graph: for proxies made by hand."""

    def __init__(self, graph):
        super().__init__()
        self.graph = graph


def _unpacked_count(frame):
    """How many names the program is unpacking into, or None if it is not."""
    step = next(step for step in dis.get_instructions(frame.f_code) if step.offset == frame.f_lasti)
    return step.argval if step.opname == "UNPACK_SEQUENCE" else None


def _users_stack():
    """The stack of the program that is traced, without the frames of this package."""
    frames = [frame for frame in traceback.extract_stack() if not frame.filename.startswith(PACKAGE)]
    return "".join(traceback.format_list(frames)).strip()


class Proxy:
    """Stands for the value of a node while a program is traced. What is done to it becomes nodes.

    Control flow that depends on a proxy cannot be recorded (TraceError): give the value with `concrete_args`, or keep
    the part in a function marked with `torch.fx.wrap` or in a leaf module.
    """

    def __init__(self, node, tracer=None):
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self):
        return f"Proxy({self.node.name})"

    def __getattr__(self, name):
        if name in ("node", "tracer"):  # of a proxy that is being copied
            raise AttributeError(name)
        return Attribute(self, name)

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self):
        return self.tracer.iter(self)

    def __bool__(self):
        return self.tracer.to_bool(self)

    def __abs__(self):
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __len__(self):
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    def __deepcopy__(self, memo):
        return Proxy(self.node, self.tracer)

    def keys(self):
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(cls, orig_method, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tracers = {}
        _find_tracers((args, kwargs), tracers)
        if len(tracers) != 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to trace operations {orig_method}"
            )
        tracer = next(iter(tracers))
        if _is_tensor_method(orig_method):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        return tracer.create_proxy(
            "call_function", orig_method, args, kwargs, name=tracer.graph._target_to_str(orig_method.__name__)
        )


def _find_tracers(a, found):
    if isinstance(a, Proxy):
        found.setdefault(a.tracer)
    elif isinstance(a, (tuple, list)):
        for part in a:
            _find_tracers(part, found)
    elif isinstance(a, dict):
        for part in a.values():
            _find_tracers(part, found)


def _is_tensor_method(function):
    name = getattr(function, "__name__", "")
    return getattr(cresset.Tensor, name, None) is function and getattr(cresset, name, None) is not function


class Attribute(Proxy):
    """An attribute of a proxy. It becomes a node when it is used as a value; calling it is a method call."""

    def __init__(self, root, attr):
        self.root, self.attr, self.tracer, self._node = root, attr, root.tracer, None

    @property
    def node(self):
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A parameter whose shape is known, so that reading it records nothing."""

    def __init__(self, tracer, node, name, param):
        super().__init__(node, tracer)
        if not isinstance(param, cresset.nn.Parameter):
            raise AssertionError(f"expected a Parameter, got {type(param)}")
        self.param, self.name = param, name

    def __repr__(self):
        return f"ParameterProxy({self.name})"

    @property
    def shape(self):
        return self.param.shape

    @property
    def ndim(self):
        return self.param.ndim

    def size(self, *args):
        return self.param.size(*args)

    def dim(self):
        return self.param.dim()

    def numel(self):
        return self.param.numel()

    def nelement(self):
        return self.param.nelement()


def _define_operators():
    """Python's operators, forwards and with a plain value on the left."""

    def forwards(target):
        def method(self, *args, **kwargs):
            return self.tracer.create_proxy("call_function", target, (self, *args), kwargs)

        return method

    def reflected(target):
        def method(self, other):
            return self.tracer.create_proxy("call_function", target, (other, self), {})

        return method

    both = "add sub mul floordiv truediv mod pow lshift rshift and_ or_ xor matmul".split()
    for name in "eq ne lt gt le ge pos neg invert getitem".split() + both:
        setattr(Proxy, f"__{name.strip('_')}__", forwards(getattr(operator, name)))
    for name in both:
        setattr(Proxy, f"__r{name.strip('_')}__", reflected(getattr(operator, name)))
    Proxy.__hash__ = object.__hash__


_define_operators()
