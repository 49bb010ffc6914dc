"""Control flow as functions: `cond`, `map`, `while_loop` and scans, which a graph can hold; run as they are, they are
plain Python."""

import cresset
from cresset.pytree import tree_flatten, tree_unflatten

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]

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


def map(f, xs, *args):
    """f(x, *args) of every x along the first dimension of `xs`, one after the other; the results are stacked.

    Args:
        f: gives a tensor, or a tree of tensors, of the same shapes for every x.
        xs: a tensor, or a tree of tensors with the same first dimension.

    >>> from cresset.func.control_flow import map
    >>> map(lambda x, scale: x.sum() * scale, cresset.tensor([[1.0, 2.0], [3.0, 4.0]]), 10)
    tensor([30., 70.])
    """
    if not callable(f):
        raise RuntimeError(f"map: expected a function, got a {type(f).__name__}")
    tensors, spec = tree_flatten(xs)
    if not tensors or not all(isinstance(tensor, cresset.Tensor) for tensor in tensors):
        raise RuntimeError(f"map: Mapped xs can only consist of tensors. Got xs {tensors}")
    shapes = [tensor.shape for tensor in tensors]
    if not all(shapes):
        raise RuntimeError(f"map: mapped xs have a first dimension. Got shapes {shapes}")
    if any(shape[0] != shapes[0][0] for shape in shapes):
        raise RuntimeError(f"map: Leading dimensions of mapped xs must be consistent. Got shapes {shapes}")
    if shapes[0][0] == 0:
        raise RuntimeError("map: Leading dimensions of mapped xs cannot be 0")
    steps = zip(*(tensor.unbind(0) for tensor in tensors), strict=True)
    results = [tree_flatten(f(tree_unflatten(list(step), spec), *args)) for step in steps]
    leaves, result_spec = results[0]
    if any(other != result_spec for _, other in results) or not all(isinstance(x, cresset.Tensor) for x in leaves):
        raise RuntimeError("map: the function must give a tensor, or the same tree of tensors for every x")
    return tree_unflatten([cresset.stack(column) for column in zip(*(r for r, _ in results), strict=True)], result_spec)


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


def _steps(who, xs, dim, reverse):
    """The slices of a tree of tensors along a dimension, in the order they are taken."""
    tensors, spec = tree_flatten(xs)
    if not tensors or not all(isinstance(tensor, cresset.Tensor) for tensor in tensors):
        kinds = [type(tensor).__name__ for tensor in tensors]
        raise RuntimeError(f"{who}: All xs leaves must be a Tensor, got {kinds}")
    if not isinstance(dim, int) or isinstance(dim, bool):
        raise RuntimeError(f"{who}: Dim must be an int, but got {type(dim).__name__}")
    parts = [tensor.unbind(dim) for tensor in tensors]
    if len({len(part) for part in parts}) > 1:
        raise RuntimeError(f"{who}: xs have {[len(part) for part in parts]} slices along dimension {dim}")
    if not parts[0]:
        raise RuntimeError(f"{who}: All xs leaves must have a scan dimension > 0")
    steps = [tree_unflatten(list(step), spec) for step in zip(*parts, strict=True)]
    return steps[::-1] if reverse else steps


def _stacked(who, results, dim, reverse):
    """A tree of tensors of a tree for each step, the steps along a new dimension."""
    flat = [tree_flatten(result) for result in results]
    leaves, spec = flat[0]
    if any(other != spec for _, other in flat) or not all(isinstance(x, cresset.Tensor) for x in leaves):
        raise RuntimeError(f"{who}: combine_fn must give a tensor, or the same tree of tensors at every step")
    columns = zip(*(found for found, _ in (flat[::-1] if reverse else flat)), strict=True)
    return tree_unflatten([cresset.stack(column, dim) for column in columns], spec)


def scan(combine_fn, init, xs, *, dim=0, reverse=False):
    """(the last carry, the results of all steps): carry, result = combine_fn(carry, x) for every x along a dimension.

    Args:
        combine_fn: gives the next carry, of the shape and dtype of the one before, and the result of the step.
        init: the first carry, a tensor or a tree of tensors.
        xs: a tensor, or a tree of tensors of the same size in `dim`.
        dim: along which the slices lie; the results are stacked along the first one.
        reverse: begin with the last slice.

    >>> from cresset.func.control_flow import scan
    >>> scan(lambda carry, x: (carry + x, carry * x), cresset.tensor(1.0), cresset.tensor([2.0, 3.0]))
    (tensor(6.), tensor([2., 9.]))
    """
    if not callable(combine_fn):
        raise RuntimeError(f"scan: Combine_fn must be a callable, but got {type(combine_fn).__name__}")
    leaves = tree_flatten(init)[0]
    if not leaves:
        raise RuntimeError("scan: scan() operator requires init leaves.")
    for leaf in leaves:
        if not isinstance(leaf, cresset.Tensor):
            raise RuntimeError(f"scan: All init leaves must be a Tensor but got {leaf}")
    carry, results = init, []
    for x in _steps("scan", xs, dim, reverse):
        before = _metadata(carry)
        carry, result = combine_fn(carry, x)
        if _metadata(carry) != before:
            after = _metadata(carry)
            raise RuntimeError(f"scan: Expected init and carry to have same metadata, got {before} and {after}")
        results.append(result)
    return carry, _stacked("scan", results, 0, reverse)


def _metadata(tree):
    leaves, spec = tree_flatten(tree)
    return [(tuple(leaf.shape), leaf.dtype) if isinstance(leaf, cresset.Tensor) else leaf for leaf in leaves], str(spec)


def associative_scan(combine_fn, xs, dim, reverse=False, combine_mode="pointwise"):
    """What combine_fn makes of the slices so far, for each slice along a dimension: `cumsum` for an addition.

    Args:
        combine_fn: combines two slices; which two are combined first must not matter.
        xs: a tensor, or a tree of tensors of the same size in `dim`.
        reverse: begin with the last slice.
        combine_mode: "pointwise" or "generic"; both compute one step after the other.

    >>> from cresset.func.control_flow import associative_scan
    >>> associative_scan(lambda a, b: a * b, cresset.tensor([1.0, 2.0, 3.0]), 0)
    tensor([1., 2., 6.])
    """
    if not callable(combine_fn):
        raise ValueError(f"associative_scan: Combine_fn must be a callable, but got {type(combine_fn).__name__}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"associative_scan: Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    steps = _steps("associative_scan", xs, dim, reverse)
    found = steps[:1]
    for x in steps[1:]:
        found.append(combine_fn(found[-1], x))
    return _stacked("associative_scan", found, dim, reverse)
