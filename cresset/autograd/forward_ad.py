"""Forward-mode differentiation: tensors that carry a tangent, which every operation pushes on to its results.

    with dual_level():
        x = make_dual(primal, tangent)
        y, y_tangent = unpack_dual(f(x))     # y_tangent = J tangent

There is one level at a time. Note [Pushing tangents]: when an argument of an operator has a tangent, the core calls `propagate` with
the arguments and the results. A pointwise operator's formula gives the slopes; a view of the primal is a view of the tangent; any
other operator's vjp u -> J'u is linear in u, so that differentiating it by u gives J. All of this is
made of recorded operations on the primals, so that tangents can themselves be differentiated backward.
"""

import contextlib
import functools
import math
import weakref
from collections import namedtuple

import cresset
from cresset import _native
from cresset._native import Tensor
from cresset.ops import formulas

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(namedtuple("UnpackedDualTensor", "primal tangent")):
    """The two parts of a dual tensor; the tangent may be None."""

    __slots__ = ()


class Level:
    """An open level. Tangents carry its number, so that those of a closed level are not taken for one of the next."""

    depth, number = -1, 0
    duals = []  # weak references to the tensors that were given tangents


def current_level():
    return Level.depth


def enter_dual_level():
    """Open the level; it must be closed with exit_dual_level. `dual_level()` does both."""
    if Level.depth >= 0:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    Level.depth = 0
    Level.number += 1
    return Level.depth


def exit_dual_level(*, level=None):
    """Close the level: all tangents are gone."""
    level = Level.depth if level is None else level
    if level != Level.depth or level < 0:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    Level.depth = -1
    duals, Level.duals = Level.duals, []
    for ref in duals:
        if (tensor := ref()) is not None:
            _native.set_tangent(tensor, None, -1)


class dual_level:
    """The block in which tensors can have tangents.

    >>> with dual_level():
    ...     x = make_dual(cresset.tensor(3.0), cresset.tensor(1.0))
    ...     unpack_dual(x * x).tangent
    tensor(6.)
    """

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, *_):
        exit_dual_level()


def make_dual(tensor, tangent, *, level=None):
    """A view of `tensor` that carries `tangent`, which has its shape, dtype and device."""
    if (Level.depth if level is None else level) < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for what, value in (("primal", tensor), ("tangent", tangent)):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(f"Expected {what} to be floating point or complex, but got: {value.dtype}")
    if tangent_of(tensor) is not None:
        raise RuntimeError("make_dual: the tensor already has a tangent at this level; unpack_dual gives the primal")
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            f"make_dual: Expected primal and tangent to have the same size, got {tuple(tensor.shape)} and {tuple(tangent.shape)}"
        )
    if tensor.dtype != tangent.dtype:
        raise RuntimeError(
            f"make_dual: Expected primal and tangent to have the same dtype, got {tensor.dtype} and {tangent.dtype}"
        )
    dual = tensor.view_as(tensor)
    set_tangent(dual, tangent)
    return dual


def unpack_dual(tensor, *, level=None):
    """The primal and the tangent of a tensor; the tangent is None if it has none.

    >>> unpack_dual(cresset.tensor(3.0))
    UnpackedDualTensor(primal=tensor(3.), tangent=None)
    """
    tangent = tangent_of(tensor)
    if tangent is None:
        return UnpackedDualTensor(tensor, None)
    with paused([tensor]):
        return UnpackedDualTensor(tensor.view_as(tensor), tangent)


# ---- tangents


def tangent_of(tensor):
    """The tangent of a tensor in the open level, or None."""
    found = _native.get_tangent(tensor)
    if found is None or Level.depth < 0 or found[1] != Level.number:
        return None
    return found[0]


def set_tangent(tensor, tangent):
    if _native.get_tangent(tensor) is None:
        Level.duals.append(weakref.ref(tensor))
    _native.set_tangent(tensor, tangent, Level.number)


def tangents_of(args):
    """(tensor or None, its tangent or None) for each argument; None if there is no tangent at all."""
    pairs = [(arg, tangent_of(arg)) if isinstance(arg, Tensor) else (None, None) for arg in args]
    return pairs if any(tangent is not None for _, tangent in pairs) else None


@contextlib.contextmanager
def paused(tensors):
    """For a block, the tensors are only their primals."""
    found = [(tensor, _native.get_tangent(tensor)) for tensor in tensors]
    found = [(tensor, pair) for tensor, pair in found if pair is not None]
    for tensor, _ in found:
        _native.set_tangent(tensor, None, -1)
    try:
        yield
    finally:
        for tensor, (tangent, number) in found:
            _native.set_tangent(tensor, tangent, number)


# ---- pushing tangents through an operator; see Note [Pushing tangents]


def propagate(name, overload, arguments, outputs, before=None):
    """Give the results of a call their tangents. Called by the core.

    Args:
        arguments: all arguments by name.
        before: for an in-place call, the first argument's value before it, if it was kept.
    """
    tensors = [value for value in flat(arguments.values()) if isinstance(value, Tensor)]
    pairs = [(tensor, tangent_of(tensor)) for tensor in tensors]
    with paused(tensors):
        if all(tangent is None for _, tangent in pairs):
            return  # tangents of a level that is closed
        tangents = {id(tensor): tangent for tensor, tangent in pairs if tangent is not None}
        target = outputs[0] if name.endswith("_") and outputs[0] is tensors[0] else None
        pushed = push(name, overload, arguments, outputs, tangents, target, before)
    for output, tangent in zip(outputs, pushed, strict=True):
        if output is not target and any(output is tensor for tensor in tensors):
            continue  # nothing was to be done, such as a conversion to the same dtype
        if tangent is None:
            if output is target and tangent_of(output) is not None:  # overwritten by something constant
                tangent_of(output).zero_()
            continue
        tangent = shaped(tangent, output)
        if output is target:
            write_tangent(output, tangent)
        else:
            set_tangent(output, tangent)
    for output in outputs[:1]:  # a node's outputs have one node
        for kept, place in _native.saved_outputs(output) if output.requires_grad else ():
            if (tangent := tangent_of(outputs[place])) is not None:
                set_tangent(kept, tangent)


def push(name, overload, arguments, outputs, tangents, target, before):
    """The results' tangents, None where there is none."""
    values = dict(arguments)
    first = next(iter(values))
    if target is not None:
        name = name.removesuffix("_")
        if before is not None:
            tangents[id(before)] = tangents.get(id(target))
            values[first] = before
    if name == "detach":
        return [None]
    formula = formulas.definition(name)
    if formula is not None and not any(t.is_complex() for t in flat(values.values()) if isinstance(t, Tensor)):
        return [by_formula(formula, values, outputs[0], tangents)]
    operator = operators().get(name)
    if operator is None:  # copy_ and the like have no form that leaves the argument alone: change a copy
        operator = operators()[name + "_"]
        return by_double_backward(operator, values, tangents, changes=first)
    if target is None and outputs and outputs[0]._is_view() and id(values[first]) in tangents:
        viewed = {**values, first: tangents[id(values[first])]}
        result = operator(**viewed)
        return result if isinstance(result, (tuple, list)) else [result]
    return by_double_backward(operator, values, tangents)


def by_formula(formula, values, output, tangents):
    """Sum over the inputs of slope times tangent. A formula's gradient is elementwise, so it is its own transpose."""
    ordered = list(values.values())
    inputs, attributes = (
        ordered[: len(formula.inputs)],
        ordered[len(formula.inputs) : len(formula.inputs) + len(formula.attributes)],
    )
    inputs = [
        {"l": -math.inf, "h": math.inf}.get(kind) if value is None else value
        for kind, value in zip(formula.kinds, inputs, strict=True)
    ]
    if not formula.differentiable:
        return None
    total = None
    for place, value in enumerate(inputs):
        tangent = tangents.get(id(value)) if isinstance(value, Tensor) else None
        if tangent is None:
            continue
        part = formula.gradients(tangent, inputs, attributes, output)[place]
        if part is not None:
            total = part if total is None else total + part
    return total


def by_double_backward(operator, values, tangents, changes=None):
    """J t, as the derivative by u of J'u. `changes` names an argument that the operator writes to."""
    with cresset.enable_grad():
        sources, given = [], []

        def fresh(value):
            """Each use of a dual gets its own start, so that only this call is differentiated."""
            if isinstance(value, (list, tuple)) and any(isinstance(item, Tensor) for item in value):
                return [fresh(item) for item in value]
            if not isinstance(value, Tensor) or id(value) not in tangents:
                return value
            source = value.view_as(value) if value.requires_grad else value.detach().requires_grad_()
            sources.append(source)
            given.append(tangents[id(value)])
            return source

        started = {name: fresh(value) for name, value in values.items()}
        if changes is not None:
            started[changes] = started[changes].clone()
        results = operator(**started)
        results = results if isinstance(results, (tuple, list)) else [results]
        kept = [result for result in results if isinstance(result, Tensor) and result.requires_grad]
        if not kept:
            return [None] * len(results)
        directions = [
            cresset.ones_like(result, requires_grad=True) for result in kept
        ]  # anywhere will do; 0 has a log in it
        pulled = cresset.autograd.grad(kept, sources, directions, create_graph=True, allow_unused=True)
        pairs = [(p, t) for p, t in zip(pulled, given, strict=True) if p is not None and p.requires_grad]
        if not pairs:
            return [None] * len(results)
        pulled, given = zip(*pairs, strict=True)
        differentiable = any(source.grad_fn is not None for source in sources) or any(t.requires_grad for t in given)
        found = cresset.autograd.grad(pulled, directions, given, create_graph=differentiable, allow_unused=True)
        found = iter(found)
        return [next(found) if isinstance(result, Tensor) and result.requires_grad else None for result in results]


def shaped(tangent, output):
    """A formula may give less than the result's shape, where it broadcasts."""
    if tangent.dtype != output.dtype:
        tangent = tangent.to(output.dtype)
    return tangent if tangent.shape == output.shape else tangent.expand(output.shape)


def write_tangent(tensor, tangent):
    """After an in-place change: the tangent of a view is written into the tangent of its base."""
    base = tensor._base
    if base is None:
        set_tangent(tensor, tangent)
        return
    whole = tangent_of(base)
    if whole is None:
        whole = cresset.zeros_like(base)
        set_tangent(base, whole)
    part = whole.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset() - base.storage_offset())
    part.copy_(tangent)
    set_tangent(tensor, part)


@functools.cache
def operators():
    return _native.operators()


def flat(values):
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from flat(value)
        else:
            yield value
