"""Operators of one's own: defined by a schema or a Python function, with kernels for devices, a shape rule, a
derivative and a rule for vmap.

@torch.library.custom_op("mylib::scaled", mutates_args=())
def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by

y = torch.ops.mylib.scaled(x, 2.0)
"""

import functools
import inspect
import types
import typing
from collections.abc import Sequence

import cresset

from . import _native
from ._native import Tensor, level_of
from .ops import namespaces
from .overrides import handle_torch_function, has_torch_function
from .pytree import tree_flatten, tree_leaves, tree_map_only, tree_unflatten

__all__ = [
    "Library", "custom_op", "define", "fallthrough_kernel", "get_ctx", "impl", "impl_abstract", "infer_schema",
    "opcheck", "register_autograd", "register_fake", "register_kernel",
    "register_vmap",
]  # fmt: skip

# What dispatch keys of PyTorch mean here.
_IMPLICIT = ("CompositeImplicitAutograd",)
_EXPLICIT = ("CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional", "default", "")
_AUTOCAST = {"AutocastCPU": "cpu", "AutocastCUDA": "cuda", "AutocastXPU": "xpu"}
_DEVICES = {"CPU": "cpu", "CUDA": "cuda", "Meta": "meta", "cpu": "cpu", "cuda": "cuda", "meta": "meta"}
_AUTOGRAD = ("Autograd", "AutogradCPU", "AutogradCUDA")


class OpOverload(namespaces.OpOverload):
    """An operator that a program defined."""

    def __init__(self, schema, tags=()):
        super().__init__(schema, tags)
        self._kernels = {}  # device type, or None for all -> function
        self._autocast_kernels = {}  # device type -> function, called in its place where autocast is on for the device
        self._composite = self._autograd_kernel = self._fake = self._vmap_rule = None
        self._backward = self._setup_context = None
        self._checks_aliases = False

    def __call__(self, *args, **kwargs):
        leaves = tree_leaves((args, kwargs))
        if has_torch_function(leaves):
            return handle_torch_function(self, leaves, *args, **kwargs)
        values = self._schema.bind(args, kwargs)
        for device, kernel in self._autocast_kernels.items():
            if cresset.is_autocast_enabled(device):
                return self._called(kernel, values)
        if self._composite is not None:
            return self._called(self._composite, values)
        if self._autograd_kernel is not None and not _below.autograd:
            with _below():
                return self._called(self._autograd_kernel, values)
        tensors = [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]
        written = any(argument.is_written for argument in self._schema.arguments)
        if any(map(level_of, tensors)) and written:
            return self._write_samples(values)
        if any(map(level_of, tensors)) or (
            not written and _native.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        ):
            flat, spec = tree_flatten(values)
            shape = []
            return _unflat(_function_of(self, spec, shape).apply(*flat), shape)
        return self._run(values)

    def _called(self, function, values):
        """A kernel called with arguments in the schema's order."""
        arguments = self._schema.arguments
        return function(
            *(v for v, a in zip(values, arguments, strict=True) if not a.keyword_only),
            **{a.name: v for v, a in zip(values, arguments, strict=True) if a.keyword_only},
        )

    def _run(self, values):
        """The kernel for the arguments' device. It is not recorded."""
        tensors = [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]
        device = next((tensor.device.type for tensor in tensors if tensor.device.type != "cpu"), "cpu")
        if device == "meta" and "meta" not in self._kernels:
            return self._run_fake(values)
        kernel = self._kernels.get(device) or self._kernels.get(None)
        if kernel is None:
            raise NotImplementedError(
                f"Could not run '{self.name()}' with arguments from the '{device.upper()}' backend: no kernel is "
                f"registered for it; there are kernels for {sorted(map(str, self._kernels))}"
            )
        versions = [tensor._version for tensor in tensors]
        with cresset.no_grad():
            result = self._called(kernel, values)
        if self._checks_aliases:
            self._check_aliases(result, tensors)
        for argument, value in zip(self._schema.arguments, values, strict=True):
            for tensor in tree_leaves(value) if argument.is_written else ():
                if (
                    isinstance(tensor, Tensor)
                    and tensor._version == versions[next(i for i, t in enumerate(tensors) if t is tensor)]
                ):
                    _native.bump_version(tensor)
        return result

    def _run_fake(self, values):
        if self._fake is None:
            raise RuntimeError(
                f"There was no fake impl registered for {self}. This is necessary for the meta device and for "
                "tracing; use `torch.library.register_fake` to add a fake impl"
            )
        with cresset.no_grad():
            return self._called(self._fake, values)

    def _check_aliases(self, result, tensors):
        storages = [_native.storage_info(tensor)[0] for tensor in tensors if tensor.device.type != "meta"]
        for output in tree_leaves(result):
            if not isinstance(output, Tensor) or output.device.type == "meta":
                continue
            if _native.storage_info(output)[0] in storages:
                raise RuntimeError(
                    f"{self.name()}: The output of this custom operator (1) must not also be an input to this custom "
                    "operator and (2) may not alias any inputs "
                    "to this custom operator or other returns. Give a clone instead"
                )
            storages.append(_native.storage_info(output)[0])

    def _write_samples(self, values):
        """Inside vmap, an operator that writes to arguments runs sample by sample."""
        from .func import batching

        flat, spec = tree_flatten(values)
        frame = batching.frame_of(max(map(level_of, flat)), self.name())
        pairs = [_native.batch_of(leaf) if level_of(leaf) == frame.number else (leaf, None) for leaf in flat]
        written = [a.is_written for a, v in zip(self._schema.arguments, values, strict=True) for _ in tree_leaves(v)]
        if any(
            is_target and isinstance(v, Tensor) and d is None for is_target, (v, d) in zip(written, pairs, strict=True)
        ):
            batching.refuse_unbatched_target(self._schema.op)
        results = [
            self._called(self, tree_unflatten([v if d is None else v.select(d, i) for v, d in pairs], spec))
            for i in range(frame.batch_size)
        ]
        if results[0] is None:
            return None
        return tree_map_only(Tensor, lambda t: t, _stacked(results, frame.number))


class _below:
    """Inside, the autograd kernels of this thread's calls are passed over: what such a kernel calls is the operator
    below it.
    """

    autograd = False

    def __enter__(self):
        self.before, _below.autograd = _below.autograd, True

    def __exit__(self, *_):
        _below.autograd = self.before


def _stacked(results, level=None):
    leaves = [tree_flatten(result) for result in results]
    stacked = [
        cresset.stack(list(items)) if isinstance(items[0], Tensor) else items[0]
        for items in zip(*(flat for flat, _ in leaves), strict=True)
    ]
    if level is not None:
        stacked = [_native.sample_of(item, 0, level) if isinstance(item, Tensor) else item for item in stacked]
    return tree_unflatten(stacked, leaves[0][1])


def _unflat(outputs, shape):
    return tree_unflatten(list(outputs) if isinstance(outputs, tuple) else [outputs], shape[0])


def _function_of(op, spec, shape):
    """The autograd.Function of a call: of the leaves of its arguments, which have the structure `spec`. `shape` gets
    that of the results.
    """
    from .autograd.function import Function

    def forward(*flat):
        leaves, result_spec = tree_flatten(op._run(tree_unflatten(flat, spec)))
        shape[:] = [result_spec]
        return tuple(leaves)

    def setup_context(ctx, inputs, output):
        if op._setup_context is None:
            return
        values, arguments = tree_unflatten(inputs, spec), op._schema.arguments
        given = {
            "ctx": ctx,
            "inputs": tuple(v for v, a in zip(values, arguments, strict=True) if not a.keyword_only),
            "output": _unflat(output, shape),
        }
        if any(argument.keyword_only for argument in arguments):
            given["keyword_only_inputs"] = {a.name: v for v, a in zip(values, arguments, strict=True) if a.keyword_only}
        op._setup_context(**given)

    def backward(ctx, *grads):
        if op._backward is None:
            raise RuntimeError(
                f"Trying to backward through {op} but no autograd formula was registered. Please use "
                "register_autograd to add one."
            )
        slopes = op._backward(
            ctx, *(grads if shape[0].is_leaf() or shape[0].type is tuple else [_unflat(grads, shape)])
        )
        slopes = slopes if isinstance(slopes, tuple) else (slopes,)
        arguments = spec.children_specs
        if len(slopes) < sum(not argument.keyword_only for argument in op._schema.arguments):
            raise RuntimeError(
                f"{op}: the backward must give a gradient or None for each of the {len(arguments)} arguments, it gave "
                f"{len(slopes)}"
            )
        flat = []
        for k, part in enumerate(arguments):
            slope = slopes[k] if k < len(slopes) else None
            flat += (
                [slope] if part.is_leaf() else [None] * part.num_leaves if slope is None else part.flatten_up_to(slope)
            )
        return tuple(flat)

    def vmap(info, in_dims, *flat):
        if op._vmap_rule is not None:
            result, out_dims = op._vmap_rule(info, tuple(tree_unflatten(in_dims, spec)), *tree_unflatten(flat, spec))
            leaves, result_spec = tree_flatten(result)
            shape[:] = [result_spec]
            dims = tuple(tree_leaves(out_dims))
            return tuple(leaves), dims if len(dims) == len(leaves) else dims * len(leaves)
        samples = [
            op._called(
                op,
                tree_unflatten([v if d is None else v.select(d, i) for v, d in zip(flat, in_dims, strict=True)], spec),
            )
            for i in range(info.batch_size)
        ]
        leaves, result_spec = tree_flatten(_stacked(samples))
        shape[:] = [result_spec]
        return tuple(leaves), (0,) * len(leaves)

    methods = {"forward": forward, "setup_context": setup_context, "backward": backward, "vmap": vmap}
    name = f"GeneratedBackwardFor_{op._schema.namespace}_{op.__name__.replace('.', '_')}"
    return type(name, (Function,), {key: staticmethod(method) for key, method in methods.items()})


# ---- finding and defining


def _split_name(qualname):
    if not isinstance(qualname, str) or qualname.count("::") != 1:
        raise ValueError(
            f'Expected `qualname` to be of the form "namespace::name", but got {qualname}. It consists of a namespace '
            "and a name, e.g. aten::sin"
        )
    space, _, name = qualname.partition("::")
    name, _, overload = name.partition(".")
    return space, name, overload or "default"


def _find(op):
    """The overload that `op` names or is."""
    if isinstance(op, CustomOpDef):
        return op._opoverload
    if isinstance(op, OpOverload):
        return op
    if isinstance(op, namespaces.OpOverloadPacket):
        return next(iter(op._overloads.values()))
    if not isinstance(op, str):
        raise ValueError(f"expected an operator or its name, got {type(op)}")
    space, name, overload = _split_name(op)
    packet = namespaces.namespace(space)._packets.get(name)
    if packet is None or not isinstance(packet, namespaces.OpOverloadPacket):
        raise RuntimeError(
            f"operator {space}::{name} does not exist; define it first, with torch.library.define or "
            "torch.library.custom_op"
        )
    return getattr(packet, overload)


def _define(schema, replace=False, tags=()):
    packets = namespaces.namespace(schema.namespace)._packets
    packet = packets.setdefault(schema.op, namespaces.OpOverloadPacket(schema.name))
    overload = schema.overload_name or "default"
    if not isinstance(packet, namespaces.OpOverloadPacket) or (overload in packet._overloads and not replace):
        raise RuntimeError(
            f"Tried to register an operator ({schema}) with the same name and overload name multiple times."
        )
    packet._overloads[overload] = OpOverload(
        schema, tags if isinstance(tags, (tuple, list)) else () if tags is None else (tags,)
    )
    return packet._overloads[overload]


def _no_keyset(who, with_keyset):
    if with_keyset:
        raise NotImplementedError(
            f"{who}: with_keyset=True is not supported: there are no sets of dispatch keys here to give to a kernel"
        )


def _implement(op, function, key, allow_override=True):
    """Register a kernel under what PyTorch calls a dispatch key."""
    if key in _IMPLICIT:
        place, name = op.__dict__, "_composite"
    elif key in _EXPLICIT:
        place, name = op._kernels, None
    elif key in _AUTOGRAD:
        place, name = op.__dict__, "_autograd_kernel"
    elif key in _DEVICES:
        place, name = op._kernels, _DEVICES[key]
    elif key in _AUTOCAST:
        place, name = op._autocast_kernels, _AUTOCAST[key]
    else:
        raise ValueError(
            f"{op.name()}: there is no dispatch key {key!r} here; there are "
            f"{sorted((*_DEVICES, *_AUTOGRAD, *_AUTOCAST, *_IMPLICIT, *_EXPLICIT[:-1]))}"
        )
    if not allow_override and place.get(name) is not None:
        raise RuntimeError(
            f"{op.name()}: This is not allowed since there's already a kernel registered for the dispatch key "
            f"{key!r}; allow_override=True replaces it"
        )
    place[name] = function


def _decorator(register, function):
    """`register(function)`, or a decorator that does it."""
    if function is not None:
        register(function)
        return function

    def decorate(function):
        register(function)
        return function

    return decorate


class Library:
    """A namespace to define operators in.

    Args:
        kind: "DEF" to own the namespace, "FRAGMENT" to add to it, "IMPL" to implement operators of others.

    >>> library = cresset.library.Library("example_library", "FRAGMENT")
    >>> library.define("doubled(Tensor x) -> Tensor")
    'doubled'
    >>> library.impl("doubled", lambda x: 2 * x, "CPU")
    >>> cresset.ops.example_library.doubled(cresset.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, ns, kind, dispatch_key=""):
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in ("prim", "aten") and kind != "IMPL":
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._op_defs = set()

    def __repr__(self):
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema, alias_analysis="", *, tags=()):
        """Define an operator by its schema, without the namespace. Gives its name."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(
                f"Library.define: Invalid alias_analysis type {alias_analysis!r}; it is '', 'FROM_SCHEMA' or "
                "'CONSERVATIVE'"
            )
        op = _define(namespaces.Schema(f"{self.ns}::{schema}"), tags=tags)
        self._op_defs.add(op.name())
        return op.name().partition("::")[2]

    def impl(self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=True):
        """Implement an operator for a dispatch key: a device ("CPU", "CUDA", "Meta"), "Autograd", or all
        ("CompositeExplicitAutograd", which has no derivative of its own, "CompositeImplicitAutograd", whose operations
        are recorded).
        """
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        name = op_name if isinstance(op_name, str) else op_name.name()
        op = _find(name if "::" in name else f"{self.ns}::{name}")
        _no_keyset("Library.impl", with_keyset)
        _implement(op, fn, dispatch_key or self.dispatch_key or "CompositeImplicitAutograd", allow_override)

    def fallback(self, fn, dispatch_key="", *, with_keyset=False):
        """A kernel for all operators of the namespace that have none of their own for the key. It is called with the
        operator first.
        """
        _no_keyset("Library.fallback", with_keyset)
        for packet in namespaces.namespace(self.ns)._packets.values():
            for op in packet._overloads.values():
                if not op._kernels and op._composite is None:
                    _implement(
                        op, functools.partial(fn, op), dispatch_key or self.dispatch_key or "CompositeExplicitAutograd"
                    )


def define(qualname, schema=None, *, lib=None, tags=()):
    """Define an operator: `define("mylib::f", "(Tensor x) -> Tensor")`. Also, as a decorator of a kernel,
    `define(library, "f(...) -> ...")`.

    >>> cresset.library.define("example_define::negated", "(Tensor x) -> Tensor")
    >>> cresset.library.impl("example_define::negated", "cpu", lambda x: -x)
    >>> cresset.ops.example_define.negated(cresset.ones(1))
    tensor([-1.])
    """
    if isinstance(qualname, Library):
        name = qualname.define(schema, tags=tags)
        return lambda function: (qualname.impl(name, function), function)[1]
    _split_name(qualname)
    _define(namespaces.Schema(qualname + schema), tags=tags)
    return None


def impl(qualname, types, func=None, *, lib=None):
    """Implement an operator for device types ("cpu", "cuda", "default" for all) or dispatch keys; a decorator without
    `func`.
    """
    if isinstance(qualname, Library):  # impl(library, name, key)
        return lambda function: (qualname.impl(types, function, func or ""), function)[1]
    keys = (types,) if isinstance(types, str) else types
    op = _find(qualname)

    def register(function):
        for key in keys:
            _implement(op, function, key)

    if func is not None:
        register(func)
        return None
    return _decorator(register, None)


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """A kernel for device types (None: all)."""
    kinds = [None] if device_types is None else [device_types] if isinstance(device_types, str) else device_types
    return _decorator(lambda function: _find(op)._kernels.update(dict.fromkeys(kinds, function)), func)


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override=True):
    """The shape rule: a function of the same arguments that makes results of the right shapes, without computing. The
    meta device uses it.
    """

    def register(function):
        found = _find(op)
        if found._fake is not None and not allow_override:
            raise RuntimeError(
                f"register_fake(...): the operator {found.name()} already has a fake impl registered; "
                "allow_override=True replaces it"
            )
        found._fake = function

    return _decorator(register, func)


impl_abstract = register_fake


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """The derivative: `setup_context(ctx, inputs, output)` keeps what `backward(ctx, *grads)` needs, which gives a
    gradient for each argument.
    """
    found = _find(op)
    if any(argument.is_written for argument in found._schema.arguments):
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {found} with schema {found._schema}. "
            "Please create a functional operator and register an autograd formula for that."
        )
    found._backward, found._setup_context = backward, setup_context


def register_vmap(op, func=None, /, *, lib=None):
    """The rule for vmap: `func(info, in_dims, *args)` with whole batches gives `(output, out_dims)`. Without one,
    samples run one by one.
    """

    def register(function):
        _find(op)._vmap_rule = function

    return _decorator(register, func)


def fallthrough_kernel():
    """What PyTorch passes to Library.impl to skip a dispatch key, of which there are none here."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def get_ctx():
    """The context of a fake implementation, whose `new_dynamic_size` would make sizes that depend on data: there are
    none here.
    """
    raise RuntimeError(
        "get_ctx: sizes that depend on data cannot be told on the meta device; get_ctx can only be called where they "
        "can"
    )


# ---- operators from Python functions


class CustomOpDef:
    """What `custom_op` gives: a function, to which kernels, a shape rule, a derivative and a rule for vmap can be
    added.
    """

    def __init__(self, schema, function, device_types, tags=None):
        self._opoverload = _define(schema, replace=True, tags=tags)
        self._opoverload._checks_aliases = True
        self._init_fn, self._qualname = function, schema.name
        self.register_kernel(device_types)(function)
        functools.update_wrapper(self, function)

    def __repr__(self):
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args, **kwargs):
        return self._opoverload(*args, **kwargs)

    def register_kernel(self, device_types, fn=None, /):
        """A kernel for device types."""
        return register_kernel(self, device_types, fn)

    def register_fake(self, fn, /):
        """The shape rule."""
        return register_fake(self, fn)

    def register_autograd(self, backward, /, *, setup_context=None):
        """The derivative."""
        register_autograd(self, backward, setup_context=setup_context)

    def register_vmap(self, func=None):
        """The rule for vmap."""
        return register_vmap(self, func)


def custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """Make an operator of a Python function, as which it takes part in autograd, vmap and the meta device.

    Args:
        name: "namespace::name".
        mutates_args: the arguments it writes to, or "unknown": all tensors.
        device_types: for which devices the function is; None: all.
        schema: by default what the type hints say.

    >>> @cresset.library.custom_op("example_custom::cubed", mutates_args=())
    ... def cubed(x: cresset.Tensor) -> cresset.Tensor:
    ...     return x**3
    >>> def keep(ctx, inputs, output):
    ...     ctx.save_for_backward(inputs[0])
    >>> cubed.register_autograd(lambda ctx, grad: grad * 3 * ctx.saved_tensors[0] ** 2, setup_context=keep)
    >>> x = cresset.tensor(2.0, requires_grad=True)
    >>> cubed(x).backward()
    >>> x.grad
    tensor(12.)
    """
    _split_name(name)

    def make(function):
        text = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        return CustomOpDef(namespaces.Schema(name + text), function, device_types, tags)

    return make if fn is None else make(fn)


def _hint_text(hint):
    """The schema's type for a type hint; None if there is none."""
    simple = {
        Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", cresset.dtype: "ScalarType",
        cresset.device: "Device", complex: "Scalar",
    }  # fmt: skip
    if hint in simple:
        return simple[hint]
    if set(typing.get_args(hint)) in (
        {int, float},
        {int, float, bool},
        {int, float, complex},
        {int, float, bool, complex},
    ):
        return "Scalar"
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType) and type(None) in inside:
        rest = [part for part in inside if part is not type(None)]
        text = _hint_text(rest[0] if len(rest) == 1 else typing.Union[tuple(rest)])  # noqa: UP007 (the parts are not known here)
        return None if text is None else text + "?"
    if origin in (list, Sequence, tuple) and (origin is not tuple or (len(inside) == 2 and inside[1] is ...)):
        text = _hint_text(inside[0])
        return None if text is None else text + "[]"
    return None


def infer_schema(prototype_function, /, *, mutates_args, op_name=None, tags=()):
    """The schema that a function's type hints say.

    >>> def f(x: cresset.Tensor, n: int = 1) -> cresset.Tensor: ...
    >>> cresset.library.infer_schema(f, mutates_args=())
    '(Tensor x, SymInt n=1) -> Tensor'
    """
    signature = inspect.signature(prototype_function)
    hints = typing.get_type_hints(prototype_function)
    who = "infer_schema(func): "
    parts, keyword_only, seen = [], False, []
    for number, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ValueError(
                who
                + f"We do not support positional-only args, varargs, or varkwargs. Got func with signature {signature})"
            )
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            parts.append("*")
        if name not in hints:
            raise ValueError(
                who + f"Parameter {name} must have a type annotation. Got func with signature {signature})"
            )
        text = _hint_text(hints[name])
        if text is None:
            raise ValueError(
                who + f"Parameter {name} has unsupported type {hints[name]}. Got func with signature {signature})"
            )
        seen.append(name)
        if mutates_args == "unknown" or name in mutates_args:
            if not text.startswith("Tensor"):
                if mutates_args != "unknown":
                    raise ValueError(
                        who
                        + f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be mutated"
                    )
            else:
                text = f"Tensor(a{number}!)" + text[6:]
        default = ""
        if parameter.default is not parameter.empty:
            value = parameter.default
            if not (value is None or isinstance(value, (int, float, bool, str, cresset.dtype))):
                raise ValueError(
                    who
                    + f"Parameter {name} has an unsupported default value type {type(value)}. Got func with signature {signature})"
                )
            default = f"={value}" if not isinstance(value, str) else f'="{value}"'
            default = default.replace("=torch.", "=")
        parts.append(f"{text} {name}{default}")
    if mutates_args != "unknown" and (unknown := set(mutates_args) - set(seen)):
        raise ValueError(
            who
            + f"{unknown} in mutates_args were not found in the function's arguments. mutates_args should contain the names of all args that the custom op mutates"
        )
    return f"{op_name or ''}({', '.join(parts)}) -> {_result_text(hints, signature, who)}"


def _result_text(hints, signature, who):
    if "return" not in hints:
        raise ValueError(
            who + f"No return type annotation was provided. Please add one. Got func with signature {signature})"
        )
    hint = hints["return"]
    if hint in (None, type(None)):
        return "()"
    if typing.get_origin(hint) is tuple and ... not in typing.get_args(hint):
        parts = [_hint_text(part) for part in typing.get_args(hint)]
        if None not in parts:
            return f"({', '.join(parts)})"
    text = _hint_text(hint)
    if text is None:
        raise ValueError(who + f"Return has unsupported type {hint}. Got func with signature {signature})")
    return text


# ---- checking


class OpCheckError(Exception):
    """What an operator says of itself is not what it does."""


def opcheck(
    op,
    args,
    kwargs=None,
    *,
    test_utils=("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"),
    raise_exception=True,
    atol=None,
    rtol=None,
):
    """Check on sample arguments that an operator does what its registrations say.

    test_schema: it writes to what the schema marks and to nothing else, and its results are memory of their own.
        test_autograd_registration: results
    have a history where an argument wants a gradient. test_faketensor: the shape rule agrees with the kernel.
        test_aot_dispatch_dynamic: gradients
    are the same by backward and by torch.func.vjp.

    >>> @cresset.library.custom_op("example_check::halved", mutates_args=())
    ... def halved(x: cresset.Tensor) -> cresset.Tensor:
    ...     return x / 2
    >>> _ = halved.register_fake(lambda x: cresset.empty_like(x))
    >>> cresset.library.opcheck(halved, (cresset.ones(2),))["test_faketensor"]
    'SUCCESS'
    """
    found, kwargs = _find(op), kwargs or {}
    names = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    results = {}
    for name in names:
        if name not in _CHECKS:
            raise ValueError(f"opcheck: there is no {name!r}; the tests are {sorted(_CHECKS)}")
        try:
            _CHECKS[name](found, args, kwargs, {"atol": atol, "rtol": rtol})
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error}") from error
            results[name] = error
    return results


def _copied(tree):
    return tree_map_only(Tensor, lambda t: t.detach().clone().requires_grad_(t.requires_grad), tree)


def _check_schema(op, args, kwargs, _):
    args, kwargs = _copied((args, kwargs))
    values = op._schema.bind(args, kwargs)
    before = _copied(values)
    result = op._run(tree_map_only(Tensor, Tensor.detach, values))
    for argument, old, new in zip(op._schema.arguments, before, values, strict=True):
        for a, b in zip(tree_leaves(old), tree_leaves(new), strict=True):
            if isinstance(a, Tensor) and not argument.is_written and not cresset.equal(a.nan_to_num(), b.nan_to_num()):
                raise RuntimeError(f"Argument {argument.name} is not defined as mutable but was mutated")
    returned = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
    op._check_aliases(returned, [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)])


def _check_history(op, args, kwargs, _):
    args, kwargs = _copied((args, kwargs))
    values = op._schema.bind(args, kwargs)
    wants = any(isinstance(leaf, Tensor) and leaf.requires_grad for leaf in tree_leaves(values))
    if not wants or any(argument.is_written for argument in op._schema.arguments):
        return
    outputs = [
        leaf
        for leaf in tree_leaves(op(*args, **kwargs))
        if isinstance(leaf, Tensor) and (leaf.is_floating_point() or leaf.is_complex())
    ]
    if outputs and not any(output.requires_grad for output in outputs):
        raise RuntimeError(
            "an argument requires grad, but no output does; register the derivative with "
            "torch.library.register_autograd"
        )


def _check_fake(op, args, kwargs, _):
    values = op._schema.bind(*_copied((args, kwargs)))
    values = tree_map_only(Tensor, Tensor.detach, values)
    shapes = tree_map_only(Tensor, lambda t: t.to("meta"), values)
    real, fake = (tree_leaves(op._called(op, arguments)) for arguments in (values, shapes))
    if len(real) != len(fake):
        raise RuntimeError(f"the shape rule gives {len(fake)} results, the kernel {len(real)}")
    for number, (a, b) in enumerate(zip(real, fake, strict=True)):
        if isinstance(a, Tensor) and (tuple(a.shape), a.dtype, a.stride()) != (tuple(b.shape), b.dtype, b.stride()):
            raise RuntimeError(
                f"result {number}: the shape rule gives shape {tuple(b.shape)}, {b.dtype}, strides {b.stride()}, the "
                f"kernel {tuple(a.shape)}, {a.dtype}, {a.stride()}"
            )


def _check_gradients(op, args, kwargs, tolerances):
    args, kwargs = _copied((args, kwargs))
    flat, spec = tree_flatten(args)
    places = [i for i, leaf in enumerate(flat) if isinstance(leaf, Tensor) and leaf.requires_grad]
    if not places or any(argument.is_written for argument in op._schema.arguments):
        return

    def outputs(*tensors):
        leaves = list(flat)
        for place, tensor in zip(places, tensors, strict=True):
            leaves[place] = tensor
        found = tree_leaves(op(*tree_unflatten(leaves, spec), **kwargs))
        return tuple(
            leaf for leaf in found if isinstance(leaf, Tensor) and (leaf.is_floating_point() or leaf.is_complex())
        )

    inputs = [flat[place] for place in places]
    recorded = outputs(*inputs)
    by_backward = cresset.autograd.grad(
        recorded, inputs, [cresset.ones_like(o) for o in recorded], allow_unused=True, materialize_grads=True
    )
    values, pull = cresset.func.vjp(outputs, *(tensor.detach() for tensor in inputs))
    given = {key: value for key, value in tolerances.items() if value is not None}
    for a, b in zip(by_backward, pull(tuple(cresset.ones_like(value) for value in values)), strict=True):
        if not cresset.allclose(a, b, equal_nan=True, **given):
            raise RuntimeError("backward and torch.func.vjp give different gradients")


_CHECKS = {
    "test_schema": _check_schema, "test_autograd_registration": _check_history, "test_faketensor": _check_fake,
    "test_aot_dispatch_dynamic": _check_gradients,
    "test_aot_dispatch_static": _check_gradients,
}  # fmt: skip
