"""Operators made of Python functions."""

import contextlib
import functools
import logging
from collections import OrderedDict

from ..ops import namespaces
from ..ops.tags import Tag
from . import registration
from .infer_schema import infer_schema

# PyTorch's name for it, which programs that listen to it know.
log = logging.getLogger("torch._library.custom_ops")

OPDEFS = OrderedDict()  # the operators that custom_op made, by name


class CustomOpDef:
    """What `custom_op` gives: a function, to which kernels, a shape rule, a derivative and a rule for vmap can be
    added.
    """

    def __init__(self, schema, function, device_types, tags=None):
        self._opoverload = registration.add_operator(schema, replace=True, tags=tags)
        self._opoverload._checks_aliases, self._opoverload._definition = True, self
        self._init_fn, self._qualname = function, schema.name
        self._namespace, self._name = schema.namespace, schema.op
        self.register_kernel(device_types)(function)
        functools.update_wrapper(self, function)
        OPDEFS[schema.name] = self

    def __repr__(self):
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args, **kwargs):
        return self._opoverload(*args, **kwargs)

    def register_kernel(self, device_types, fn=None, /):
        """A kernel for device types."""
        return registration.register_kernel(self, device_types, fn)

    def register_fake(self, fn, /):
        """The shape rule."""
        return registration.register_fake(self, fn)

    def register_torch_dispatch(self, torch_dispatch_class, fn=None, /):
        """What is called in the place of the __torch_dispatch__ of a class of tensors or of a mode."""
        return registration.register_torch_dispatch(self, torch_dispatch_class, fn)

    def register_autograd(self, backward, /, *, setup_context=None):
        """The derivative."""
        registration.register_autograd(self, backward, setup_context=setup_context)

    def register_vmap(self, func=None):
        """The rule for vmap."""
        return registration.register_vmap(self, func)

    def register_autocast(self, device_type, cast_inputs):
        """The dtype that arguments are cast to where autocast is on."""
        return registration.register_autocast(self, device_type, cast_inputs)

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type, enabled=True):
        """A block in which the kernel of a device type is, or is not, used; without it, the function itself is."""
        op = self._opoverload
        before = set(op._disabled)
        if device_type not in op._kernels:
            log.warning(
                "Attempted to set kernel for %s on %s, but no kernel was registered for this device type.",
                device_type, self._qualname,
            )  # fmt: skip
        elif enabled == (device_type not in op._disabled):
            log.warning(
                "Attempted to %s the kernel for %s on %s, which is already %s.",
                "enable" if enabled else "disable", device_type, self._qualname, "enabled" if enabled else "disabled",
            )  # fmt: skip
        else:
            (op._disabled.discard if enabled else op._disabled.add)(device_type)
        try:
            yield
        finally:
            op._disabled = before


def custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """Make an operator of a Python function, as which it takes part in autograd, vmap and the meta device.

    Args:
        name: "namespace::name".
        mutates_args: the arguments it writes to, or "unknown": all tensors.
        device_types: for which devices the function is; None: all.
        schema: by default what the type hints say.
        tags: what else is known of it. torch.Tag.inplace: it writes to its first argument and gives it back;
            torch.Tag.out: it writes to its keyword-only arguments and gives them back.

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
    registration.split_name(name)
    if isinstance(mutates_args, str) and mutates_args != "unknown":
        raise ValueError(
            f"custom_op: mutates_args must be a collection of names, not the string {mutates_args!r}; to say that "
            '"x" is written to, write {"x"}'
        )
    written = mutates_args if mutates_args == "unknown" else set(mutates_args)
    tags = registration.tags_of(tags)
    if Tag.inplace in tags and Tag.out in tags:
        raise AssertionError("torch.Tag.inplace and torch.Tag.out are mutually exclusive")

    def make(function):
        text = infer_schema(function, mutates_args=written, tags=tags) if schema is None else schema
        parsed = namespaces.Schema(name + text)
        if schema is not None and written != "unknown":
            _check_written(parsed, written)
        _check_tagged(parsed, tags)
        if any(a.keyword_only and a.type.startswith("Tensor") and not a.is_written for a in parsed.arguments):
            raise NotImplementedError(
                f"custom_op with kwarg-only Tensor args is not supported. Please make your tensors not kwarg-only. "
                f"Got: {text}"
            )
        every = [*tags, *([] if Tag.pt2_compliant_tag in tags else [Tag.pt2_compliant_tag])]
        return CustomOpDef(parsed, function, device_types, every)

    return make if fn is None else make(fn)


def triton_op(name, fn=None, /, *, mutates_args, schema=None):
    """Make an operator of a function that launches kernels of Triton, each through `wrap_triton`, or calls operators.
    On the meta device and for shapes the function itself runs, unless `register_fake` says otherwise.

    Args:
        name, mutates_args, schema: as in `custom_op`.

    >>> @cresset.library.triton_op("example_triton::twice", mutates_args=())
    ... def twice(x: cresset.Tensor) -> cresset.Tensor:
    ...     return 2 * x
    >>> twice(cresset.ones(2))
    tensor([2., 2.])
    """

    def make(function):
        made = custom_op(name, function, mutates_args=mutates_args, schema=schema)
        made.register_fake(function)
        return made

    return make if fn is None else make(fn)


def wrap_triton(triton_kernel, /):
    """A kernel of Triton, to be launched in a `triton_op`: the kernel itself, since nothing here looks into it."""
    if not hasattr(triton_kernel, "__getitem__"):
        raise RuntimeError(
            "wrap_triton only works on functions annotated with triton.jit or triton.autotune, "
            f"not on {type(triton_kernel).__name__}"
        )
    return triton_kernel


def _check_written(schema, written):
    marked = {argument.name for argument in schema.arguments if argument.is_written}
    if marked != written:
        raise ValueError(
            f"custom_op: Attempted to create a custom op with `mutates_args={written}` and a schema by which the op "
            f"mutates {marked or set()}; they must agree. Got: {schema}"
        )


def _check_tagged(schema, tags):
    """Whether a schema is what the tags inplace and out promise."""
    if Tag.inplace in tags:
        first = schema.arguments[0] if schema.arguments else None
        if (
            len(schema.returns) != 1
            or not schema.returns[0].is_written
            or (schema.returns[0].alias_info.before_set != first.alias_info.before_set)
        ):
            raise ValueError(
                f"custom_op with torch.Tag.inplace: the return must alias the first argument, as in "
                f"`(Tensor(a!) x) -> Tensor(a!)`. Got: {schema}"
            )
    if Tag.out in tags:
        marked = [argument for argument in schema.arguments if argument.is_written]
        if any(not argument.keyword_only for argument in marked):
            raise ValueError(f"custom_op with torch.Tag.out: what it writes to must be keyword-only. Got: {schema}")
        if any(argument.type != "Tensor" for argument in marked):
            raise ValueError(f"custom_op with torch.Tag.out only supports Tensor as what it writes to. Got: {schema}")
        if [r.alias_info for r in schema.returns] != [a.alias_info for a in marked]:
            raise ValueError(
                f"custom_op with torch.Tag.out: the return must alias the mutable keyword-only arguments, in order. "
                f"Got: {schema}"
            )
