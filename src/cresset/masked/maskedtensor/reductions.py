"""Reductions of masked tensors: of the elements that are there. The result has one where its slice has one."""

import cresset

from .. import reducing
from ..masks import _canonical_dim, any_of
from .core import recorded, with_recorded, wrapped

REDUCE_NAMES = ["sum", "mean", "amin", "amax", "argmin", "argmax", "prod", "all", "norm", "var", "std"]


def _all(data, dim=None, *, keepdim=False, mask):
    filled = data.masked_fill(~mask, True)
    return filled.all() if dim is None else filled.all(dim, keepdim=keepdim)


def reduction(name):
    """The reduction of that name as a function of a masked tensor and the arguments of the ordinary one."""
    masked = _all if name == "all" else getattr(reducing, name)

    def reduce(input, *args, **kwargs):
        args = list(args)
        if name == "norm":
            kwargs["ord"] = kwargs.pop("p", args.pop(0) if args else 2)
            kwargs["ord"] = 2 if kwargs["ord"] == "fro" else kwargs["ord"]
        dim = args.pop(0) if args else kwargs.pop("dim", None)
        if isinstance(dim, bool) and name in ("var", "std"):  # var(unbiased)
            dim, kwargs["unbiased"] = None, dim
        if args and name in ("var", "std"):
            kwargs["unbiased"] = args.pop(0)
        if args:
            kwargs["keepdim"] = args.pop(0)
        if args:
            raise TypeError(f"{name}: too many arguments for a MaskedTensor: {args}")
        keepdim = bool(kwargs.get("keepdim", False))
        data, mask = input.get_data(), input.get_mask()
        if input.is_sparse:
            if dim is not None:
                raise TypeError(
                    f"{name}: of a MaskedTensor with sparse data all elements are reduced, not those along dim={dim}; "
                    "call to_dense() first"
                )
            if name in ("argmin", "argmax"):
                return _place_of_extreme(masked, data, mask)
            data, mask = recorded(data), recorded(mask)
        there = any_of(mask, _canonical_dim(dim, mask.ndim), keepdim)
        return wrapped(masked(data, **_given(dim), mask=mask, **kwargs), there)

    return reduce


def _given(dim):
    return {} if dim is None else {"dim": dim}


def _place_of_extreme(masked, data, mask):
    """The index of the extreme element in the flattened whole, from its index among the values."""
    if data.layout is not cresset.sparse_coo:
        raise TypeError(
            f"{masked.__name__}: not implemented for a MaskedTensor with sparse_csr data; call to_dense() first"
        )
    among = masked(recorded(data), mask=recorded(mask)).to(cresset.int64)
    place = cresset.zeros((), dtype=cresset.int64, device=data.device)
    for index, n in zip(data.indices()[:, among], data.shape, strict=True):
        place = place * n + index
    return wrapped(place, recorded(mask).any())


def softmax(function):
    """softmax or log_softmax of what is there; the mask stays."""

    def normalized(input, dim=None, dtype=None, **kwargs):
        if dim is None:
            raise TypeError(f"{function.__name__}: a MaskedTensor needs a dim")
        if kwargs.pop("_stacklevel", 3) is None or kwargs:
            raise TypeError(f"{function.__name__}: unknown arguments {sorted(kwargs)} for a MaskedTensor")
        data = with_recorded(input._masked_data, recorded(input.get_data()))
        mask = input.get_mask()
        # A slice without an element gives nan, which must not reach the gradient of the others.
        result = function(data.masked_fill(~mask, 0), dim, dtype=dtype, mask=mask | ~mask.any(dim, True))
        return wrapped(result, mask)

    return normalized
