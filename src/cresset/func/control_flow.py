"""Control flow as functions: `cond` and `while_loop`, which a graph can hold; run as they are, they are plain
Python."""

import cresset
from cresset.pytree import tree_flatten, tree_unflatten

__all__ = ["cond", "while_loop"]

# Those who record programs, the innermost last: a function that says whether a tensor depends on the program's inputs.
# A recording cannot hold one branch of a `cond` on such a tensor, but it can hold both and a choice.
recording = []


def _holds(who, condition):
    if isinstance(condition, cresset.Tensor):
        if condition.numel() != 1:
            raise RuntimeError(
                f"{who}: expected one bool or a tensor of one element, got shape {tuple(condition.shape)}"
            )
        return bool(condition)
    if not isinstance(condition, (bool, int, float)):
        raise RuntimeError(f"{who}: expected a bool or a tensor of one element, got a {type(condition).__name__}")
    return bool(condition)


def cond(pred, true_fn, false_fn, operands=()):
    """true_fn(*operands) if `pred`, else false_fn(*operands).

    >>> x = cresset.tensor([1.0, 2.0])
    >>> cresset.cond(x.sum() > 2, lambda x: x * 2, lambda x: -x, (x,))
    tensor([2., 4.])
    """
    for function in (true_fn, false_fn):
        if not callable(function):
            raise RuntimeError(f"cond: expected functions for both branches, got a {type(function).__name__}")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(f"cond: expected operands as a tuple or list, got a {type(operands).__name__}")
    if recording and isinstance(pred, cresset.Tensor) and recording[-1](pred):
        return _chosen(pred, true_fn(*operands), false_fn(*operands))
    return (true_fn if _holds("cond", pred) else false_fn)(*operands)


def _chosen(pred, first, second):
    """The one result or the other, element by element."""
    (ours, spec), (others, other_spec) = tree_flatten(first), tree_flatten(second)
    alike = spec == other_spec and all(
        isinstance(a, cresset.Tensor) and isinstance(b, cresset.Tensor) and (a.shape, a.dtype) == (b.shape, b.dtype)
        for a, b in zip(ours, others, strict=True)
    )
    if not alike:
        raise RuntimeError(
            "cond: the branches of a program that is recorded give tensors of the same shapes and dtypes"
        )
    pred = pred.reshape(())
    return tree_unflatten([cresset.where(pred, a, b) for a, b in zip(ours, others, strict=True)], spec)


def while_loop(cond_fn, body_fn, carried_inputs):
    """Carry values through body_fn as long as cond_fn of them holds.

    >>> cresset.while_loop(lambda i: i < 3, lambda i: (i + 1,), (cresset.tensor(0),))
    (tensor(3),)
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("while_loop: cond_fn and body_fn must be functions")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(
            f"while_loop: expected carried_inputs as a tuple or list, got a {type(carried_inputs).__name__}"
        )
    values = tuple(carried_inputs)
    while _holds("while_loop", cond_fn(*values)):
        values = body_fn(*values)
        values = tuple(values) if isinstance(values, (tuple, list)) else (values,)
        if len(values) != len(carried_inputs):
            raise RuntimeError(f"while_loop: body_fn must return {len(carried_inputs)} values, got {len(values)}")
    return values
