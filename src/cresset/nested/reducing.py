"""Reductions of nested tensors: over all elements, regular dimensions, or the ragged one of each component."""

import cresset
from cresset import _native

from .rules import rules
from .tensor import from_items, items, nested

_operators = _native.operators()


def reduction(name, function=None):
    """The rule of an operator that reduces: over all elements, over regular dimensions, or over the ragged one of each
    component.
    """
    function = function or _operators[name]

    def apply(input, dim=None, keepdim=False, **kwargs):
        if dim is None:
            return function(
                input._recorded if input._lengths is None else cresset.cat([item.reshape(-1) for item in items(input)]),
                **kwargs,
            )
        dims = sorted({d % input.dim() for d in ((dim,) if isinstance(dim, int) else dim)})
        if dims == list(range(input.dim())):
            return apply(input, **kwargs).reshape((1,) * input.dim() if keepdim else ())
        if 0 in dims and input._ragged in dims and not input.is_flat and input._lengths is None:
            inner = [d - 1 for d in dims if d]  # the batch and the ragged dimension are one in the packed values
            result = function(input._packed, inner, keepdim, **kwargs)
            return result.unsqueeze(0) if keepdim else result
        if input._layout == cresset.jagged and input._ragged in dims and len(dims) > 1 and 0 not in dims:
            raise RuntimeError(
                f"{name}(): reducing along a ragged and non-batch dimension is not supported for nested tensors"
            )
        if 0 in dims and input._layout == cresset.strided:
            last = "can only be reduced across the last dim"
            words = "only allows reduction of a single dim" if len(dims) > 1 else last
            raise RuntimeError(f"{name}(): NestedTensor {words}; unbind() it")
        if 0 in dims:
            raise RuntimeError(
                f"{name}(): reducing along the batch dimension but not the ragged dimension is not supported for "
                "nested tensors"
            )
        inner = [d - 1 for d in dims] if not isinstance(dim, int) else dims[0] - 1
        results = (
            [function(item, inner, keepdim, **kwargs) for item in items(input)]
            if input.is_flat or input._ragged in dims or input._lengths is not None
            else None
        )
        if results is None:
            ragged = input._ragged - (0 if keepdim else sum(d < input._ragged for d in dims))
            return nested(function(input._packed, inner, keepdim, **kwargs), input._layout, input._offsets, ragged)
        regular = len({tuple(r.shape) for r in results}) == 1
        return cresset.stack(results) if regular else from_items(results, input._layout)

    return apply


for _name in ("sum", "mean", "amax", "amin", "argmax", "argmin", "prod", "any", "all", "logsumexp", "var", "std"):
    if _name in _operators:
        rules[_name] = reduction(_name)


def extreme(name):
    """`max` and `min`: of all elements, or values and where they lie along a dimension."""
    function, kind = _operators[name], getattr(cresset.return_types, name)
    of_all, values, indices = (
        reduction(name, part) for part in (function, lambda *args: function(*args)[0], lambda *args: function(*args)[1])
    )

    def apply(input, dim=None, keepdim=False):
        return of_all(input) if dim is None else kind((values(input, dim, keepdim), indices(input, dim, keepdim)))

    return apply


for _name in ("max", "min"):
    rules[_name] = extreme(_name)


def _filled(name):
    def apply(input, *args):
        getattr(input._recorded, name)(*args)
        return input

    return apply


for _name in ("fill_", "zero_"):
    rules[_name] = _filled(_name)
