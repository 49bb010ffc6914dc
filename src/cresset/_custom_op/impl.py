"""The older way to operators of one's own: first a schema, then kernels, then what is saved for backward and backward
itself, each a registration. torch.library.custom_op is the way now; both make the same operators.
"""

import collections
import inspect

from .. import _native
from .._library import registration
from .._library.infer_schema import infer_schema
from .._library.utils import is_functional_schema, is_tensorlist_like_type
from .._native import Tensor
from ..ops import namespaces
from ..pytree import tree_leaves

__all__ = ["CustomOp", "custom_op", "get_ctx", "infer_schema"]

SUPPORTED_DEVICE_TYPE_TO_KEY = {"cpu": "CPU", "cuda": "CUDA", "xpu": "XPU"}
RESERVED_NS = {"prim", "prims", "aten", "at", "torch", "pytorch"}
get_ctx = registration.get_ctx

global_registry = {}  # qualified name -> CustomOp


def parse_qualname(qualname):
    """("mylib", "f") of "mylib::f"."""
    space, separator, name = qualname.partition("::")
    if not separator:
        raise ValueError(f"Expected there to be a namespace in {qualname}, as in mylib::f")
    if "." in name:
        raise ValueError(f"The torch.custom_ops APIs do not handle overloads, names with '.' in them. Got: {qualname}")
    return space, name


def validate_namespace(ns):
    """Refuse a namespace that is PyTorch's, or no name."""
    if "." in ns:
        raise ValueError(f'custom_op(..., ns="{ns}"): expected ns to not contain any . (and be a valid variable name)')
    if ns in RESERVED_NS:
        raise ValueError(f"custom_op(..., ns='{ns}'): '{ns}' is a reserved namespace, choose another")


def _checked_function(qualname, func):
    name = parse_qualname(qualname)[1]
    if not inspect.isfunction(func):
        raise ValueError(f"custom_op(...)(func): Expected `func` to be a Python function, got: {type(func)}")
    if func.__name__ != name:
        raise ValueError(
            f"custom_op(qualname={qualname!r}, ...)(func): expected `func` to have name {name!r} but got "
            f"{func.__name__!r}"
        )
    return func


def custom_op(qualname, manual_schema=None):
    """A decorator that makes a CustomOp of a function with type hints, or of a schema.

    >>> from cresset._custom_op.impl import custom_op
    >>> @custom_op("example_older::doubled")
    ... def doubled(x: cresset.Tensor) -> cresset.Tensor: ...
    >>> _ = doubled.impl("cpu")(lambda x: x * 2)
    >>> doubled(cresset.ones(2))
    tensor([2., 2.])
    """
    validate_namespace(parse_qualname(qualname)[0])

    def make(func):
        _checked_function(qualname, func)
        schema = infer_schema(func, mutates_args=()) if manual_schema is None else manual_schema
        return defined(qualname, schema)

    return make


def defined(qualname, text):
    """A new CustomOp of a schema without the name, as in "(Tensor x) -> Tensor"."""
    validate_namespace(parse_qualname(qualname)[0])
    try:
        schema = namespaces.Schema(qualname + text)
    except RuntimeError as error:
        raise AssertionError(f"Invalid function schema: {parse_qualname(qualname)[1]}{text}: {error}") from None
    if not is_functional_schema(schema):
        raise ValueError(
            "custom_op only supports functional operators: that write to no argument, give memory of their own, and "
            f"give something. Got: {schema}"
        )
    if any(argument.name == "self" for argument in schema.arguments):
        raise ValueError(f"custom_op does not support arguments named 'self'. Please rename it. Got: {schema}")
    op = CustomOp._of(registration.add_operator(schema))
    op._own = True
    return op


def find_custom_op(qualname):
    """The CustomOp of a name; of an operator that torch.library defined, one is made."""
    if qualname not in global_registry:
        parse_qualname(qualname)
        CustomOp._of(registration.find(qualname))
    return global_registry[qualname]


def get_op(qualname):
    """The overload of torch.ops that a name means."""
    parse_qualname(qualname)
    try:
        return registration.find(qualname)
    except RuntimeError as error:
        raise ValueError(f"Could not find the operator {qualname}: {error}") from None


class CustomOp:
    """An operator whose kernels and derivative are registered one by one."""

    def __init__(self, *args, _private_access=False):
        if not _private_access:
            raise RuntimeError("The CustomOp constructor is private. Please use custom_op(...) to make a CustomOp")
        self._op = None
        self._own = False
        self._undo = []
        self._save = self._backward = self._differentiable = None

    @staticmethod
    def _of(op):
        made = CustomOp(_private_access=True)
        made._op = op
        global_registry[op.name()] = made
        if op._composite is None and op._autograd_kernel is None:
            made._undo.append(registration.implement(op, made._recorded, "Autograd"))
        return made

    def __repr__(self):
        return f'<CustomOp(op="{self._op.name()}")>'

    def __call__(self, *args, **kwargs):
        return self._op(*args, **kwargs)

    def _destroy(self):
        """Forget the operator, or, of one that torch.library defined, what was registered here."""
        while self._undo:
            self._undo.pop()()
        if self._own:
            registration.remove_operator(self._op)
        global_registry.pop(self._op.name(), None)

    def impl(self, device_types):
        """A kernel for device types, "cpu" or "cuda", as a decorator."""
        kinds = [device_types] if isinstance(device_types, str) else list(device_types)
        for kind in kinds:
            if kind not in SUPPORTED_DEVICE_TYPE_TO_KEY:
                raise ValueError(
                    f"CustomOp.impl(device_types=[{kind}, ...]): we only support device_type in "
                    f"{sorted(SUPPORTED_DEVICE_TYPE_TO_KEY)}"
                )

        def register(function):
            for kind in kinds:
                if {kind, None} & set(self._op._kernels) or self._op._composite is not None:
                    raise RuntimeError(
                        f"impl(..., device_types={kind}): the operator {self._op.name()} already has an implementation "
                        "for this device type"
                    )
                self._undo.append(registration.implement(self._op, function, kind))
            return function

        return register

    def impl_abstract(self, _stacklevel=2):
        """The shape rule, as a decorator."""

        def register(function):
            before = self._op._fake, self._op._fake_source
            registration.set_fake(self._op, function, allow_override=False)
            self._undo.append(lambda: self._op.__dict__.update(_fake=before[0], _fake_source=before[1]))
            return function

        return register

    # ---- the derivative

    def _check_differentiable(self, who):
        op, schema = self._op, self._op._schema
        detail = None
        if schema.is_mutable:
            detail = "non-functional operator"
        elif not schema.returns:
            detail = "operator with no returns"
        elif any(result.alias_info is not None for result in schema.returns):
            detail = "operator that returns views"
        if detail is not None:
            raise RuntimeError(
                f"Cannot use torch._custom_ops APIs to register backward formula for {detail}. Got operator "
                f"{op.name()} with schema: {schema}"
            )
        if op._composite is not None:
            raise RuntimeError(
                f"{who}: the operator {op.name()} is CompositeImplicitAutograd: its derivative is that of what it is "
                "made of"
            )
        if op._autograd_kernel is not None and op._autograd_kernel != self._recorded:
            raise RuntimeError(
                f"{who}: the operator {op.name()} already has an autograd kernel (Autograd, AutogradCPU or "
                "AutogradCUDA)"
            )

    def impl_save_for_backward(self, _stacklevel=2):
        """What is saved: a function of the inputs, a named tuple, and the output, as a decorator."""

        def register(function):
            self._check_differentiable("impl_save_for_backward")
            self._set("_save", function)
            return function

        return register

    def impl_backward(self, output_differentiability=None, _stacklevel=2):
        """The derivative: a function of ctx, what was saved, and a gradient for each result, which gives a dict of a
        gradient for each tensor argument. `output_differentiability` says which results have one.
        """
        if output_differentiability is not None:
            count = len(self._op._schema.returns)
            if (
                not isinstance(output_differentiability, list)
                or len(output_differentiability) != count
                or not all(isinstance(each, bool) for each in output_differentiability)
            ):
                raise RuntimeError(
                    "impl_backward(output_differentiability): expected output_differentiability to be a list of bools "
                    f"with length equal to the number of outputs of this CustomOp, {count}. Got: "
                    f"{output_differentiability}"
                )

        def register(function):
            self._check_differentiable("impl_backward")
            self._set("_backward", function)
            self._differentiable = output_differentiability
            return function

        return register

    def _set(self, name, function):
        if getattr(self, name) is not None:
            raise RuntimeError(f"{self._op.name()}: {name.strip('_')} is registered already")
        setattr(self, name, function)
        if self._save is not None and self._backward is not None:
            op = self._op
            before = op._backward, op._setup_context
            op._backward, op._setup_context = self._gradients, self._keep
            self._undo.append(lambda: op.__dict__.update(_backward=before[0], _setup_context=before[1]))

    def _recorded(self, *args, **kwargs):
        """The autograd kernel: refuses to record what has no derivative."""
        wants = any(isinstance(leaf, Tensor) and leaf.requires_grad for leaf in tree_leaves((args, kwargs)))
        if wants and _native.is_grad_enabled() and self._op._backward is None:
            name = self._op.name()
            if self._save is None and self._backward is None:
                raise RuntimeError(f"Autograd has not been implemented for operator {name}")
            missing = "save_for_backward" if self._save is None else "backward"
            raise RuntimeError(
                f"unable to find a '{missing}' for operator {name}: impl_save_for_backward and impl_backward belong "
                "together"
            )
        return self._op(*args, **kwargs)

    def _keep(self, ctx, inputs, output, keyword_only_inputs=None):
        schema = self._op._schema
        named = collections.namedtuple(f"{schema.op}_args", [argument.name for argument in schema.arguments])
        ctx.saved_by_program = self._save(named(*inputs, **(keyword_only_inputs or {})), output)
        ctx.list_lengths = {a.name: len(v) for a, v in zip(schema.arguments, inputs, strict=False) if _is_list(a, v)}
        results = output if isinstance(output, tuple) else (output,)
        plain = []
        for result, differs in zip(results, self._differentiable or [True] * len(results), strict=True):
            tensors = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
            if self._differentiable is not None and differs and len(tensors) != len(tree_leaves(result)):
                raise RuntimeError(
                    f"{self._op.name()}: with output_differentiability={self._differentiable}, got a differentiable "
                    f"output that is not a Tensor: {result}"
                )
            plain += [] if differs else tensors
        ctx.mark_non_differentiable(*plain)

    def _gradients(self, ctx, *grads):
        given = self._backward(ctx, ctx.saved_by_program, *grads)
        name, arguments = self._op.name(), self._op._schema.arguments
        if not isinstance(given, dict):
            raise RuntimeError(
                f"{name}: expected the output of the backward function to be a dict but got {type(given)}"
            )
        tensors = {argument.name for argument in arguments if "Tensor" in argument.type}
        others = {argument.name for argument in arguments} - tensors
        if others & {key for key, grad in given.items() if grad is not None}:
            raise RuntimeError(
                f"{name}: the backward function gave gradients for arguments of non-Tensor-like types: "
                f"{sorted(others & set(given))}"
            )
        if set(given) - others != tensors:
            raise RuntimeError(
                f"{name}: expected the returned grad_input dict to have keys {tensors} but got {set(given)}"
            )
        for argument in arguments:
            self._check_gradient(argument, given.get(argument.name), ctx.list_lengths.get(argument.name))
        return tuple(given.get(argument.name) for argument in arguments)

    def _check_gradient(self, argument, grad, length):
        name = self._op.name()
        if argument.name is None or "Tensor" not in argument.type:
            return
        if length is None:
            if grad is not None and not isinstance(grad, Tensor):
                raise RuntimeError(
                    f"{name}: expected either None or a Tensor as the gradient of {argument.name!r}, got {type(grad)}"
                )
            return
        if not isinstance(grad, (list, tuple)):
            raise RuntimeError(
                f"{name}: for the input {argument.name!r}, a list of tensors, expected a list of gradients but got "
                f"{type(grad)}"
            )
        if len(grad) != length:
            raise RuntimeError(
                f"{name}: for the input {argument.name!r} expected a list of {length} gradients but got {len(grad)}"
            )
        if any(each is not None and not isinstance(each, Tensor) for each in grad):
            raise RuntimeError(
                f"{name}: for the input {argument.name!r} expected each gradient of the list to be None or Tensor"
            )


def _is_list(argument, value):
    return is_tensorlist_like_type(argument.type) and value is not None
