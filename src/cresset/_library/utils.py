"""torch._library.utils: questions about operators and schemas."""

from .. import _native
from ..ops import namespaces
from ..ops.tags import Tag
from ..pytree import tree_leaves
from .registration import split_name

__all__ = [
    "get_layout_constraint_tag", "is_builtin", "is_functional_schema", "is_tensorlist_like_type", "lookup_op",
    "mutates_and_returns_first_arg", "parse_namespace",
]  # fmt: skip


def lookup_op(qualname):
    """The overload that a name such as "aten::add.Tensor" means."""
    space, name, overload = split_name(qualname)
    return getattr(getattr(namespaces.namespace(space), name), overload)


def parse_namespace(qualname):
    """("mylib", "f") of "mylib::f"."""
    parts = qualname.split("::")
    if len(parts) != 2:
        raise ValueError(
            f'Expected `qualname` to be of the form "namespace::name", but got {qualname}. The qualname passed to '
            "the torch.library APIs must consist of a namespace and a name, e.g. aten::sin"
        )
    return parts[0], parts[1]


def _schema(schema):
    return namespaces.Schema(schema) if isinstance(schema, str) else schema


def is_functional_schema(schema, *, allow_valid_view=False):
    """Whether an operator writes to nothing and gives memory of its own.

    >>> from cresset._library.utils import is_functional_schema
    >>> is_functional_schema("f(Tensor x) -> Tensor"), is_functional_schema("g(Tensor(a!) x) -> Tensor(a!)")
    (True, False)
    """
    schema = _schema(schema)
    if schema.is_mutable:
        return False
    if any(result.alias_info is not None for result in schema.returns):
        return allow_valid_view
    return bool(schema.returns)


def is_tensorlist_like_type(typ):
    """Whether a schema's type is a list of tensors, some of which may be None: `Tensor[]`, `Tensor?[]`, `Tensor[]?`."""
    text = str(typ).removesuffix("?")
    return text in ("Tensor[]", "Tensor?[]", "List[Tensor]", "List[Optional[Tensor]]", "Optional[List[Tensor]]")


def mutates_and_returns_first_arg(op):
    """Whether an operator writes to its first argument, to no other, and gives it back."""
    schema = op._schema
    if not schema.arguments or not schema.arguments[0].is_written or len(schema.returns) != 1:
        return False
    result = schema.returns[0].alias_info
    return (
        result is not None
        and result.before_set == schema.arguments[0].alias_info.before_set
        and not any(argument.is_written for argument in schema.arguments[1:])
    )


_LAYOUT_TAGS = [
    getattr(Tag, name)
    for name in ("needs_exact_strides", "needs_contiguous_strides", "needs_fixed_stride_order", "flexible_layout")
]


def get_layout_constraint_tag(fn, *, with_default=True):
    """The tag that says which strides an operator's arguments must have; by default needs_exact_strides."""
    for tag in _LAYOUT_TAGS:
        if tag in fn.tags:
            return tag
    if not with_default:
        return None
    return _LAYOUT_TAGS[3] if is_builtin(fn) else _LAYOUT_TAGS[0]


def is_builtin(op):
    """Whether an operator is not one that a program defined."""
    return op.namespace in ("aten", "prim", "prims", "cresset")


def fill_defaults(schema, args, kwargs):
    """(args, kwargs) of a call with the defaults of a schema in place."""
    values = schema.bind(args, kwargs)
    pairs = list(zip(schema.arguments, values, strict=True))
    return tuple(v for a, v in pairs if not a.keyword_only), {a.name: v for a, v in pairs if a.keyword_only}


def has_kwarg_only_tensors(schema):
    """Whether a tensor has to be given by name."""
    return any(argument.keyword_only and argument.type.startswith("Tensor") for argument in schema.arguments)


def has_tensor_arg(schema):
    """Whether an argument is a tensor, or tensors."""
    return any("Tensor" in argument.type for argument in schema.arguments)


def any_requires_grad(*args, **kwargs):
    """Whether a tensor among (nested) arguments wants a gradient."""
    from ..pytree import tree_leaves

    return any(isinstance(leaf, _native.Tensor) and leaf.requires_grad for leaf in tree_leaves((args, kwargs)))


def _any_requires_grad(*args, **kwargs):
    """Whether an argument, or an item of a list among them, requires a gradient."""
    for value in (*args, *kwargs.values()):
        items = value if isinstance(value, (list, tuple)) else (value,)
        if any(isinstance(item, _native.Tensor) and item.requires_grad for item in items):
            return True
    return False


def _any_output_is_alias_to_input_or_output(args, kwargs, outputs):
    """Whether a result shares memory with an argument or with another result."""
    tensors = [leaf for leaf in tree_leaves((args, kwargs or {})) if isinstance(leaf, _native.Tensor)]
    storages = {_native.storage_info(tensor)[0] for tensor in tensors if tensor.untyped_storage().nbytes()}
    for output in tree_leaves(outputs):
        if isinstance(output, _native.Tensor):
            storage = _native.storage_info(output)[0]
            if storage in storages:
                return True
            if output.untyped_storage().nbytes():
                storages.add(storage)
    return False
