"""opcheck: whether an operator does what its registrations say."""

import cresset

from .. import _native
from .._native import Tensor
from ..ops import namespaces
from ..pytree import tree_flatten, tree_leaves, tree_map_only, tree_unflatten
from .operator import OpOverload


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
    found, kwargs = _overload(op), kwargs or {}
    names = (tuple(_CHECKS) if test_utils == "ALL" else (test_utils,)) if isinstance(test_utils, str) else test_utils
    if not isinstance(names, (tuple, list)) or not set(names) <= set(_CHECKS):
        raise ValueError(
            f"opcheck(op, ..., test_utils={test_utils}): expected test_utils to be subset of {tuple(_CHECKS)}"
        )
    results = {}
    for name in names:
        try:
            _CHECKS[name](found, args, kwargs, {"atol": atol, "rtol": rtol})
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error}") from error
            results[name] = error
    return results


def _overload(op):
    """The overload that is meant: one itself, what custom_op gave, or the only one of a packet."""
    op = getattr(op, "_opoverload", op)
    if isinstance(op, namespaces.OpOverloadPacket):
        names = op.overloads()
        if len(names) != 1:
            raise RuntimeError(f"opcheck: {op} has the overloads {names}; give one of them")
        op = getattr(op, names[0])
    if not isinstance(op, namespaces.OpOverload):
        raise ValueError(
            f"opcheck(op, ...): op must be an OpOverload such as torch.ops.aten.sin.default, got {type(op)}"
        )
    return op


def _called(op, values):
    """The operator on arguments in the schema's order."""
    arguments = list(zip(op._schema.arguments, values, strict=True))
    return op(*(v for a, v in arguments if not a.keyword_only), **{a.name: v for a, v in arguments if a.keyword_only})


def _copied(tree):
    return tree_map_only(Tensor, lambda t: t.detach().clone().requires_grad_(t.requires_grad), tree)


def _check_schema(op, args, kwargs, _):
    args, kwargs = _copied((args, kwargs))
    values = op._schema.bind(args, kwargs)
    before = _copied(values)
    is_defined = isinstance(op, OpOverload)
    checks = is_defined and op._checks_aliases
    if is_defined:
        op._checks_aliases = False  # what it shares is looked at below, by argument
    try:
        detached = tree_map_only(Tensor, Tensor.detach, values)
        result = op._run(detached) if is_defined else _called(op, detached)
    finally:
        if is_defined:
            op._checks_aliases = checks
    for argument, old, new in zip(op._schema.arguments, before, values, strict=True):
        for a, b in zip(tree_leaves(old), tree_leaves(new), strict=True):
            if isinstance(a, Tensor) and not argument.is_written and not cresset.equal(a.nan_to_num(), b.nan_to_num()):
                raise RuntimeError(f"Argument {argument.name} is not defined as mutable but was mutated")
    returned = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
    for argument, value in zip(op._schema.arguments, values, strict=True):
        tensors = [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]
        if argument.alias_info is None and any(shares_memory(a, b) for a in tensors for b in returned):
            raise RuntimeError(f"Argument {argument.name} is not defined to alias output but was aliasing")
    for place, one in enumerate(returned):
        for other, also in enumerate(returned[:place]):
            if shares_memory(one, also) and not any(result.alias_info for result in op._schema.returns):
                raise RuntimeError(f"Outputs {other} and {place} alias unexpectedly")


def shares_memory(a, b):
    return _native.storage_info(a)[0] == _native.storage_info(b)[0]


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
    real, fake = (tree_leaves(_called(op, arguments)) for arguments in (values, shapes))
    if len(real) != len(fake):
        raise RuntimeError(f"the shape rule gives {len(fake)} results, the kernel {len(real)}")
    for number, (a, b) in enumerate(zip(real, fake, strict=True)):
        if not isinstance(a, Tensor):
            continue
        for what, mine, said in (
            ("Shapes", tuple(a.shape), tuple(b.shape)), ("Dtypes", a.dtype, b.dtype),
            ("Strides: Stride mismatch,", a.stride(), b.stride()),
        ):  # fmt: skip
            if mine != said:
                raise RuntimeError(f"{what} {mine} and {said} are not equal: result {number}, by kernel and shape rule")


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
