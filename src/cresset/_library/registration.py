"""Finding, defining and implementing operators: what torch.library's functions do."""

import contextlib
import functools
import inspect
import re
import sys
import warnings

from .. import _native
from ..ops import namespaces
from ..ops.tags import Tag
from ..pytree import tree_map_only
from .operator import OpOverload

# What dispatch keys of PyTorch mean here.
_IMPLICIT = ("CompositeImplicitAutograd",)
_EXPLICIT = ("CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional", "default", "")
_AUTOCAST = {"AutocastCPU": "cpu", "AutocastCUDA": "cuda", "AutocastXPU": "xpu"}
_DEVICE_TYPES = {
    "CPU": "cpu", "CUDA": "cuda", "Meta": "meta", "XPU": "xpu", "MPS": "mps", "HPU": "hpu", "IPU": "ipu", "XLA": "xla",
    "MTIA": "mtia", "PrivateUse1": "privateuseone",
}  # fmt: skip
_DEVICES = {**_DEVICE_TYPES, **{kind: kind for kind in _DEVICE_TYPES.values()}}
_AUTOGRAD = ("Autograd", *(f"Autograd{key}" for key in _DEVICE_TYPES))


def split_name(qualname):
    if not isinstance(qualname, str) or qualname.count("::") != 1:
        raise ValueError(
            f'Expected `qualname` to be of the form "namespace::name", but got {qualname}. It consists of a namespace '
            "and a name, e.g. aten::sin"
        )
    space, _, name = qualname.partition("::")
    name, _, overload = name.partition(".")
    return space, name, overload or "default"


def find(op):
    """The overload that `op` names or is."""
    if isinstance(getattr(op, "_opoverload", None), OpOverload):
        return op._opoverload
    if isinstance(op, OpOverload):
        return op
    if isinstance(op, namespaces.OpOverload):
        raise ValueError(f"{op}: expected an operator that torch.library defined; this is one of ours")
    if isinstance(op, namespaces.OpOverloadPacket):
        return next(iter(op._overloads.values()))
    if not isinstance(op, str):
        raise ValueError(f"expected an operator or its name, got {type(op)}")
    space, name, overload = split_name(op)
    packet = namespaces.namespace(space)._packets.get(name)
    if packet is None or not isinstance(packet, namespaces.OpOverloadPacket):
        raise RuntimeError(
            f"operator {space}::{name} does not exist; define it first, with torch.library.define or "
            "torch.library.custom_op"
        )
    return getattr(packet, overload)


_TYPES = frozenset(
    ["Tensor", "int", "SymInt", "float", "bool", "str", "Scalar", "complex", "ScalarType", "Device", "DeviceIndex",
     "Layout", "MemoryFormat", "Generator", "Dimname", "QScheme", "Storage", "Stream", "Any", "AnyClassType",
     "NoneType", "SymBool", "SymFloat", "Future", "Dict", "Tuple", "Union", "List", "Optional", "RRef", "Capsule",
     "number", "DType", "None"]
)  # fmt: skip
_INSTEAD = {"int64_t": "`SymInt` or `int`", "int32_t": "`SymInt` or `int`", "double": "`float`", "half": "`float`"}


def _check_types(schema):
    """Refuse the types that schemas do not have."""
    for each in (*schema.arguments, *schema.returns):
        word = re.match(r"[\w.]*", each.type)[0]
        is_variable = len(word) == 1 or word[:1] in ("", "_") or "." in word  # of a type, or a class by its full name
        if word in _INSTEAD:
            raise RuntimeError(f"{schema}: {word} is not a type of schemas. Use {_INSTEAD[word]}")
        if word not in _TYPES and not is_variable:
            raise RuntimeError(f"{schema}: unknown type specifier {word!r}")


def add_operator(schema, replace=False, tags=()):
    _check_types(schema)
    packets = namespaces.namespace(schema.namespace)._packets
    packet = packets.setdefault(schema.op, namespaces.OpOverloadPacket(schema.name))
    overload = schema.overload_name or "default"
    if not isinstance(packet, namespaces.OpOverloadPacket) or (overload in packet._overloads and not replace):
        raise RuntimeError(
            f"Tried to register an operator ({schema}) with the same name and overload name multiple times."
        )
    made = packet._overloads[overload] = OpOverload(schema, tags_of(tags))
    made.overloadpacket = packet
    return made


def tags_of(tags):
    """Tags as a list: one may be given alone, None stands for none."""
    return list(tags) if isinstance(tags, (tuple, list, set)) else [] if tags is None else [tags]


def remove_operator(op):
    """Forget an operator; its packet goes with the last overload."""
    packets = namespaces.namespace(op.namespace)._packets
    packet = packets.get(op._opname)
    if packet is not None and packet._overloads.get(op._overloadname) is op:
        del packet._overloads[op._overloadname]
        if not packet._overloads:
            del packets[op._opname]


def _no_keyset(who, with_keyset):
    if with_keyset:
        raise NotImplementedError(
            f"{who}: with_keyset=True is not supported: there are no sets of dispatch keys here to give to a kernel"
        )


def implement(op, function, key, allow_override=True):
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
    before = place.get(name)
    place[name] = function
    if name is None and place is op._kernels:
        op._shapes_itself = key.startswith("CompositeExplicitAutograd")

    def undo():
        if place.get(name) is function:
            place[name] = before
            if before is None and place is not op.__dict__:
                del place[name]

    return undo


def decorator(register, function):
    """`register(function)`, or a decorator that does it."""
    if function is not None:
        register(function)
        return function

    def decorate(function):
        register(function)
        return function

    return decorate


_OWNED = {}  # namespaces of libraries of the kind DEF -> where they were made
_KNOWN = namespaces.NAMESPACES


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
        if kind == "DEF":
            if ns in _OWNED:
                raise RuntimeError(
                    f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}; please put all of your "
                    f"definitions in a single TORCH_LIBRARY block, or use FRAGMENT. Previous registration of "
                    f"TORCH_LIBRARY was registered at {_OWNED[ns]}"
                )
            frame = sys._getframe(1)
            _OWNED[ns] = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._op_defs, self._undo = set(), []

    def __repr__(self):
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema, alias_analysis="", *, tags=()):
        """Define an operator by its schema, without the namespace. Gives its name."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(
                f"Library.define: Invalid alias_analysis type {alias_analysis!r}; it is '', 'FROM_SCHEMA' or "
                "'CONSERVATIVE'"
            )
        op = add_operator(namespaces.Schema(f"{self.ns}::{schema}"), tags=tags)
        self._op_defs.add(op.name())
        self._undo.append(functools.partial(remove_operator, op))
        return op.name().partition("::")[2]

    def impl(self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=True):
        """Implement an operator for a dispatch key: a device ("CPU", "CUDA", "Meta"), "Autograd", or all
        ("CompositeExplicitAutograd", which has no derivative of its own, "CompositeImplicitAutograd", whose operations
        are recorded).
        """
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        op = self._named(op_name)
        _no_keyset("Library.impl", with_keyset)
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        self._undo.append(implement(op, fn, key, allow_override))

    def _named(self, op_name):
        name = op_name if isinstance(op_name, str) else op_name.name()
        if self.ns == "aten" and not name.startswith(tuple(f"{ns}::" for ns in _KNOWN if ns != "aten")):
            raise NotImplementedError(
                f"Library.impl: {name}: operators of aten have their own kernels here, which cannot be "
                "replaced; define an operator of your own, or use a TorchDispatchMode"
            )
        return find(name if "::" in name else f"{self.ns}::{name}")

    def _register_fake(self, op_name, fn, _stacklevel=1, *, allow_override=False):
        """The shape rule of an operator; it goes with the library."""
        op = self._named(op_name)
        before = op._fake, op._fake_source
        set_fake(op, fn, allow_override)
        self._undo.append(lambda: op.__dict__.update(_fake=before[0], _fake_source=before[1]))

    def _register_torch_dispatch_rule(self, op_name, torch_dispatch_class, fn):
        """What is called in the place of a class's or mode's __torch_dispatch__ for an operator."""
        op = self._named(op_name)
        op._dispatch_rules[torch_dispatch_class] = fn
        self._undo.append(lambda: op._dispatch_rules.pop(torch_dispatch_class, None))

    def _destroy(self):
        """Take back what was defined and registered through this library."""
        while self._undo:
            self._undo.pop()()
        self._op_defs.clear()
        if self.kind == "DEF":
            _OWNED.pop(self.ns, None)

    def fallback(self, fn, dispatch_key="", *, with_keyset=False):
        """A kernel for all operators of the namespace that have none of their own for the key. It is called with the
        operator first.
        """
        _no_keyset("Library.fallback", with_keyset)
        for packet in namespaces.namespace(self.ns)._packets.values():
            for op in packet._overloads.values():
                if not op._kernels and op._composite is None:
                    implement(
                        op, functools.partial(fn, op), dispatch_key or self.dispatch_key or "CompositeExplicitAutograd"
                    )


def define(qualname, schema=None, *, lib=None, tags=(), alias_analysis=""):
    """Define an operator: `define("mylib::f", "(Tensor x) -> Tensor")`. Also, as a decorator of a kernel,
    `define(library, "f(...) -> ...")`.

    >>> cresset.library.define("example_define::negated", "(Tensor x) -> Tensor")
    >>> cresset.library.impl("example_define::negated", "cpu", lambda x: -x)
    >>> cresset.ops.example_define.negated(cresset.ones(1))
    tensor([-1.])
    """
    if isinstance(qualname, Library):
        name = qualname.define(schema, alias_analysis, tags=tags)
        return lambda function: (qualname.impl(name, function), function)[1]
    if not isinstance(qualname, str):
        raise ValueError(f"define(qualname, schema): expected qualname to be instance of str, got {type(qualname)}")
    split_name(qualname)
    if not schema.lstrip().startswith("("):
        raise ValueError(
            f'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> Tensor" but got '
            f'"{schema}"'
        )
    if lib is not None:  # whose namespace it is then, whatever the name says
        lib.define(qualname.partition("::")[2] + schema, tags=tags)
    else:
        add_operator(namespaces.Schema(qualname + schema), tags=tags)
    return None


def impl(qualname, types, func=None, *, lib=None):
    """Implement an operator for device types ("cpu", "cuda", "default" for all) or dispatch keys; a decorator without
    `func`.
    """
    if isinstance(qualname, Library):  # impl(library, name, key)
        return lambda function: (qualname.impl(types, function, func or ""), function)[1]
    keys = (types,) if isinstance(types, str) else types
    for key in keys:
        if not key[:1].isupper() and key != "default" and key not in _DEVICES:
            raise RuntimeError(
                f"impl: Expected one of cpu, cuda, meta, xpu, mps, hpu, ipu, xla, mtia, privateuseone device type, got "
                f"{key!r}"
            )
    op = find(qualname)

    def register(function):
        for key in keys:
            undo = implement(op, function, key)
            if lib is not None:
                lib._undo.append(undo)

    if func is not None:
        register(func)
        return None
    return decorator(register, None)


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """A kernel for device types (None: all)."""
    kinds = [None] if device_types is None else [device_types] if isinstance(device_types, str) else device_types
    found = find(op)
    _check_has_device(found, kinds)

    def register(function):
        for kind in kinds:
            undo = implement(found, function, "default" if kind is None else kind)
            if lib is not None:
                lib._undo.append(undo)

    return decorator(register, func)


def _check_has_device(op, kinds):
    """An operator that takes no tensors must be told the device by an argument."""
    arguments = op._schema.arguments
    if kinds == [None] or any("Tensor" in a.type for a in arguments) or any("Device" in a.type for a in arguments):
        return
    raise ValueError(
        f"{op}: Functions without tensor inputs are required to have a `device: torch.device` argument, by which the "
        "kernel is found"
    )


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override=True):
    """The shape rule: a function of the same arguments that makes results of the right shapes, without computing. The
    meta device uses it.
    """

    found = find(op)

    def register(function):
        if lib is not None:
            lib._register_fake(found, function, allow_override=allow_override)
        else:
            set_fake(found, function, allow_override)

    return decorator(register, func)


def set_fake(op, function, allow_override):
    """Make a function the shape rule of an operator."""
    if op._composite is not None:
        raise RuntimeError(
            f"register_fake(...): the operator {op.name()} already has an CompositeImplicitAutograd implementation, of "
            "which the shape follows; it needs no fake impl"
        )
    if "meta" in op._kernels and not allow_override:
        raise RuntimeError(
            f"register_fake(...): the operator {op.name()} already has an DispatchKey::Meta implementation; "
            "either that or a fake impl, not both"
        )
    if op._fake is not None and not allow_override:
        raise RuntimeError(
            f"register_fake(...): the operator {op.name()} already has a fake impl registered, at {op._fake_source}; "
            "allow_override=True replaces it"
        )
    for tag in (Tag.inplace, Tag.out):
        if tag in op.tags:
            warnings.warn(
                f"register_fake: {op.name()} has torch.{tag}: its fake impl is known without one, and this takes its "
                "place",
                stacklevel=3,
            )
    op._fake, op._fake_source = function, source_of(function)


def source_of(function):
    """Where a function stands, as "file:line"."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return None if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def impl_abstract(qualname, func=None, *, lib=None, _stacklevel=1):
    """The older name of register_fake."""
    return register_fake(qualname, func, lib=lib, _stacklevel=_stacklevel + 1)


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """The derivative: `setup_context(ctx, inputs, output)` keeps what `backward(ctx, *grads)` needs, which gives a
    gradient for each argument.
    """
    found = find(op)
    if Tag.out in found.tags:
        raise RuntimeError(
            f"Cannot register autograd formula for {found}: Out variants do not support autograd, they write to memory "
            "that is given"
        )
    _check_keyword_tensors(found._schema, "register_autograd")
    if any(argument.is_written for argument in found._schema.arguments):
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {found} with schema {found._schema}. "
            "Please create a functional operator and register an autograd formula for that."
        )
    before = found._backward, found._setup_context
    found._backward, found._setup_context = backward, setup_context
    if lib is not None:
        lib._undo.append(lambda: found.__dict__.update(_backward=before[0], _setup_context=before[1]))


def _check_keyword_tensors(schema, who):
    if any(a.keyword_only and a.type.startswith("Tensor") and not a.is_written for a in schema.arguments):
        raise NotImplementedError(
            f"{who} with kwarg-only Tensor args is not supported: derivatives and batches go by position. In your "
            f"definition, please make your tensors not kwarg-only. Got: {schema}"
        )


def register_vmap(op, func=None, /, *, lib=None):
    """The rule for vmap: `func(info, in_dims, *args)` with whole batches gives `(output, out_dims)`. Without one,
    samples run one by one.
    """

    found = find(op)
    _check_keyword_tensors(found._schema, "register_vmap")

    def register(function):
        before, found._vmap_rule = found._vmap_rule, function
        if lib is not None:
            lib._undo.append(lambda: found.__dict__.update(_vmap_rule=before))

    return decorator(register, func)


def register_torch_dispatch(op, torch_dispatch_class, func=None, /, *, lib=None):
    """What is called for an operator in the place of the `__torch_dispatch__` of a class of tensors, or of a mode:
    `func(class or mode, op, types, args, kwargs)`.
    """
    found = find(op)

    def register(function):
        if lib is not None:
            lib._register_torch_dispatch_rule(found, torch_dispatch_class, function)
        else:
            found._dispatch_rules[torch_dispatch_class] = function

    return decorator(register, func)


def register_autocast(op, device_type, cast_inputs, /, *, lib=None):
    """Where autocast is on for a device type, run the operator on arguments cast to `cast_inputs`, autocast off."""
    if not isinstance(op, str) and not hasattr(op, "_opoverload") and not isinstance(op, OpOverload):
        raise ValueError(f"register_autocast(op): got unexpected type for op: {type(op)}")
    if device_type not in ("cpu", "cuda"):
        raise ValueError(f"Unknown device type: {device_type}")
    found = find(op)
    from ..amp.autocast_mode import autocast  # upward: asked for only by who casts

    def cast(*args, **kwargs):
        args, kwargs = tree_map_only(
            _native.Tensor,
            lambda t: t.to(cast_inputs) if t.is_floating_point() and t.dtype != _native.float64 else t,
            (args, kwargs),
        )
        with autocast(device_type, enabled=False):
            return found(*args, **kwargs)

    undo = implement(found, cast, "AutocastCPU" if device_type == "cpu" else "AutocastCUDA")
    if lib is not None:
        lib._undo.append(undo)
    return cast


class _Kernel:
    """A kernel of an operator, as get_kernel gives it; it cannot be called when it was taken back."""

    def __init__(self, op, place, key, function):
        self.op, self.place, self.key, self.function = op, place, key, function

    def call_boxed(self, dispatch_keys, *args, **kwargs):
        """Run the kernel on these arguments. The set of dispatch keys is PyTorch's, and says nothing here."""
        if self.place.get(self.key) is not self.function:
            raise RuntimeError(f"the kernel of {self.op.name()} has been invalidated: it was taken back or replaced")
        return self.function(*args, **kwargs)


def get_kernel(op, dispatch_key):
    """The kernel that an operator has for a dispatch key ("CPU", "CUDA", "Meta", ...)."""
    key = dispatch_key if isinstance(dispatch_key, str) else dispatch_key.name
    if key not in _DEVICES:
        raise RuntimeError(f"get_kernel: {key!r} is not a device; there are {sorted(_DEVICE_TYPES)}")
    found = find(op)
    kind = _DEVICES[key] if _DEVICES[key] in found._kernels else None
    if kind not in found._kernels:
        raise RuntimeError(f"get_kernel: no kernel for {key} for {found.name()}")
    return _Kernel(found, found._kernels, kind, found._kernels[kind])


@contextlib.contextmanager
def scoped_library(*args, **kwargs):
    """A Library for a block: what is defined and registered through it is taken back at the end."""
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


def fallthrough_kernel():
    """What PyTorch passes to Library.impl to skip a dispatch key, of which there are none here."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def get_ctx():
    """The context of a fake implementation, whose `new_dynamic_size` would make sizes that depend on data: there are
    none here.
    """
    raise RuntimeError(
        "get_ctx: a data-dependent shape cannot be told on the meta device; get_ctx can only be called where there are "
        "data"
    )
