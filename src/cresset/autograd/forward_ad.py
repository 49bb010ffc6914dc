"""Forward-mode differentiation: tensors that carry a tangent, which every operation pushes on to its results.

    with dual_level():
        x = make_dual(primal, tangent)
        y, y_tangent = unpack_dual(f(x))     # y_tangent = J tangent

The public functions open one level at a time; torch.func nests them, and a tensor then has a tangent for each level it
is in.

Note [Pushing tangents]: when an argument of an operator has a tangent, the core calls `propagate` with the arguments,
the results and a node for the call. A pointwise operator's formula gives the slopes; a view of the primal is a view of
the tangent; any other operator's vjp u -> J'u is linear in u, so that differentiating it by u gives J. All of this is
made of recorded operations on the primals, so that tangents can themselves be differentiated backward. Levels go from
the outermost to the innermost: while an inner tangent is computed, the primals still have their outer ones, so that it
gets outer tangents of its own.
"""

import contextlib
import math
import weakref
from collections import namedtuple

import cresset
from cresset import _native
from cresset._native import Tensor
from cresset.ops import aten_table, formulas

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(namedtuple("UnpackedDualTensor", "primal tangent")):
    """The two parts of a dual tensor; the tangent may be None."""

    __slots__ = ()


class Level:
    """The open levels. Tangents carry their level's number, so that those of a closed level are not taken for one of
    the next.
    """

    depth, number, enabled = -1, 0, True
    open = []  # the numbers of the open levels, the innermost last
    duals = {}  # number -> weak references to the tensors that were given tangents


def current_level():
    return Level.depth


def __getattr__(name):
    if name == "_current_level":
        return Level.depth
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _is_fwd_grad_enabled():
    """Whether operations push tangents on."""
    return Level.enabled


class _set_fwd_grad_enabled:
    """Say whether operations push tangents on, for a block or from now on."""

    def __init__(self, mode):
        self.before, Level.enabled = Level.enabled, bool(mode)

    def __enter__(self):
        pass

    def __exit__(self, *_):
        Level.enabled = self.before


def enter_dual_level():
    """Open the level; it must be closed with exit_dual_level. `dual_level()` does both."""
    if Level.depth >= 0:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    return enter_nested_level()


def enter_nested_level():
    """Open a level inside those that are open."""
    Level.depth += 1
    Level.number += 1
    Level.open.append(Level.number)
    Level.duals[Level.number] = []
    return Level.depth


def exit_dual_level(*, level=None):
    """Close the level: all tangents are gone."""
    level = Level.depth if level is None else level
    if level != Level.depth or level < 0:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    Level.depth -= 1
    number = Level.open.pop()
    for ref in Level.duals.pop(number):
        if (tensor := ref()) is not None:
            _native.set_tangent(tensor, None, number)


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
    """A view of `tensor` that carries `tangent`, which has its shape and device; a tangent of another dtype is
    converted."""
    if (Level.depth if level is None else level) < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for what, value in (("primal", tensor), ("tangent", tangent)):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(f"Expected {what} to be floating point or complex, but got: {value.dtype}")
    if tangent_of(tensor) is not None:
        raise RuntimeError("make_dual: the tensor already has a tangent at this level; unpack_dual gives the primal")
    if tangent_of(tangent) is not None:
        raise RuntimeError("make_dual: the tangent has a forward gradient at the same level; unpack_dual it first")
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "make_dual: Trying to set a forward gradient that has a different size than that of the original Tensor: "
            f"{tuple(tangent.shape)} and {tuple(tensor.shape)}"
        )
    if tensor.dtype != tangent.dtype:
        if tangent.is_complex() and not tensor.is_complex():
            raise RuntimeError(f"make_dual: a tangent of {tangent.dtype} does not fit into a primal of {tensor.dtype}")
        tangent = tangent.to(tensor.dtype)
    dual = tensor.view_as(tensor)
    set_tangent(dual, tangent if _laid_out_alike(tangent, tensor) else laid_out(tangent, tensor))
    return dual


def _laid_out_alike(tangent, primal):
    """Whether every view of the one is a view of the other."""
    if tangent.stride() != primal.stride() or tangent.is_conj() != primal.is_conj():
        return False
    if _native.level_of(tangent) or _native.level_of(primal) or primal.layout != cresset.strided:
        return True
    if _native.is_dispatched(tangent) or _native.is_dispatched(primal):  # what their classes hold is theirs to know
        return True
    return _native.storage_info(tangent)[2] == _native.storage_info(primal)[2]


def unpack_dual(tensor, *, level=None):
    """The primal and the tangent of a tensor; the tangent is None if it has none.

    >>> unpack_dual(cresset.tensor(3.0))
    UnpackedDualTensor(primal=tensor(3.), tangent=None)
    """
    tangent = None if level is not None and level < 0 else tangent_of(tensor)
    if tangent is None:
        return UnpackedDualTensor(tensor, None)
    if type(tensor) is not type(tangent) and _native.has_torch_function((tensor,)):
        tangent = tangent.as_subclass(type(tensor))
    with paused([tensor], Level.open[-1]):
        # The same memory, but no view of `tensor`: it would take the tangent of its base again.
        return UnpackedDualTensor(tensor.unsqueeze(0).unsafe_chunk(1)[0].squeeze(0), tangent)


# ---- tangents


def tangent_of(tensor, number=None):
    """The tangent of a tensor in an open level (the innermost, unless a number is given), or None."""
    if Level.depth < 0:
        return None
    number = Level.open[-1] if number is None else number
    return next((tangent for level, tangent in _native.get_tangents(tensor) if level == number), None)


def set_tangent(tensor, tangent, number=None):
    number = Level.open[-1] if number is None else number
    if tangent_of(tensor, number) is None:
        Level.duals[number].append(weakref.ref(tensor))
    _native.set_tangent(tensor, tangent, number)


def tangents_of(args, number=None):
    """(tensor or None, its tangent or None) for each argument; None if there is no tangent at all."""
    pairs = [(arg, tangent_of(arg, number)) if isinstance(arg, Tensor) else (None, None) for arg in args]
    return pairs if any(tangent is not None for _, tangent in pairs) else None


def levels_of(tensors):
    """The numbers of the open levels in which some of the tensors have tangents, the outermost first."""
    found = {number for tensor in tensors for number, _ in _native.get_tangents(tensor)}
    return [number for number in Level.open if number in found]


def innermost_in_vmap(tensors):
    """Those of the deepest level of vmap: for what happens there, the others are constants."""
    top = max(map(_native.level_of, tensors), default=0)
    return [tensor for tensor in tensors if _native.level_of(tensor) == top] if top else tensors


@contextlib.contextmanager
def paused(tensors, number=0):
    """For a block, the tensors are only their primals at the level of this number and inside it."""
    found = []
    for tensor in [
        *(t._base for t in tensors if t._base is not None),
        *tensors,
    ]:  # a view would take its base's tangent
        for level, tangent in _native.get_tangents(tensor):
            if level >= number:
                found.append((tensor, tangent, level))
                _native.set_tangent(tensor, None, level)
    try:
        yield
    finally:
        for tensor, tangent, level in found:
            _native.set_tangent(tensor, tangent, level)


# ---- pushing tangents through an operator; see Note [Pushing tangents]


def propagate(name, arguments, outputs, before, node, sources):
    """Give the results of a call their tangents. Called by the core.

    Args:
        arguments: all arguments by name.
        before: for an in-place call, the first argument's value before it, if it was kept.
        node: stands for the call, with an edge for each tensor among the arguments; None if it has no derivative.
        sources: the tensors its edges lead to.
    """
    tensors = [value for value in flat(arguments.values()) if isinstance(value, Tensor)]
    target = outputs[0] if name.endswith("_") and outputs[0] is tensors[0] else None
    if not Level.enabled:
        return
    tensors = innermost_in_vmap(tensors)
    numbers = levels_of(tensors)
    if not numbers:  # their tangents belong to a level that is closed
        for tensor in tensors:
            for number, _ in _native.get_tangents(tensor):
                _native.set_tangent(tensor, None, number)
        return
    if (
        target is not None and before is not None
    ):  # the old value has the old tangents, which are about to be written over
        copies = {word: as_it_was(value, target, before) for word, value in arguments.items()}
        for word, copy in copies.items():
            if copy is not arguments[word]:
                for number in numbers:
                    if (tangent := tangent_of(arguments[word], number)) is not None:
                        set_tangent(copy, tangent.clone(), number)
                tensors.append(copy)
        arguments = copies
    for number in numbers:
        propagate_level(number, tensors, target, name, arguments, outputs, node, sources)


def as_it_was(value, target, before):
    """An argument of a call in place: where it is what the call has written over, the copy that was made before."""
    if value is target:
        return before
    if not isinstance(value, Tensor) or elements_of(value) != elements_of(target):
        return value
    copy = before if value.requires_grad else before.detach()
    return copy.view_as(copy) if value.shape == copy.shape else copy.reshape(value.shape)


def elements_of(tensor):
    """Where the elements of a tensor lie, one after another."""
    while _native.level_of(tensor):
        tensor, _ = _native.batch_of(tensor)
    steps = [(size, stride) for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size != 1]
    return tensor.data_ptr(), tensor.dtype, steps


def propagate_level(number, tensors, target, name, arguments, outputs, node, sources):
    """What `propagate` does, for one level."""
    pairs = [(tensor, tangent_of(tensor, number)) for tensor in tensors]
    tangents = {id(tensor): tangent for tensor, tangent in pairs if tangent is not None}
    if id(target) in tangents and _native.is_grad_enabled():  # it is about to be written over, and may be kept
        tangents[id(target)] = tangents[id(target)].clone()
    first = next(iter(arguments.values()))
    views = target is None and id(first) in tangents and is_view(name, outputs[0])
    with paused(tensors, number):
        if node is None:
            pushed = [None] * len(outputs)
        elif views:
            pushed = view_tangent(name, arguments, first, tangents[id(first)])
        else:
            pushed = push(name, arguments, outputs, tangents, target, node, sources)
        if not views:
            pushed = [settled(t, o, tangents) for t, o in zip(pushed, outputs, strict=True)]
    for output, tangent in zip(outputs, pushed, strict=True):
        if output is target:
            write_tangent(output, tangent, number)
        elif tangent is not None and not any(output is tensor for tensor in tensors):  # it may have been left as it was
            set_tangent(output, tangent, number)
    if outputs[0].requires_grad:  # what backward keeps of the results has tangents too
        for kept, place in _native.saved_outputs(outputs[0]):
            if (tangent := tangent_of(outputs[place], number)) is not None:
                set_tangent(kept, tangent, number)


def is_view(name, output):
    """Whether a call gave a view. What a class with __torch_dispatch__ made of one shares no memory that is known."""
    if not _native.is_dispatched(output):
        return output._is_view()
    packet = aten_table.packet(name)
    return packet is not None and any(getattr(packet, overload).is_view for overload in packet.overloads()[:1])


def view_tangent(name, arguments, primal, tangent):
    """The same view of the tangent, so that a change of one is seen in the other."""
    values = {**arguments, next(iter(arguments)): tangent}
    if name == "as_strided" and values["storage_offset"] is not None:
        values["storage_offset"] += tangent.storage_offset() - primal.storage_offset()
    viewed = _native.operators()[name](**values)
    return viewed if isinstance(viewed, (tuple, list)) else [viewed]


def push(name, arguments, outputs, tangents, target, node, sources):
    """The results' tangents, None where there is none."""
    formula = formulas.definition(name if target is None else name.removesuffix("_"))
    # A complex number among the arguments makes a complex result of real tensors.
    if formula is not None and not any(t.is_complex() for t in (*sources, outputs[0]) if t is not None):
        return [by_formula(formula, arguments, outputs[0], tangents)]
    return by_double_backward(node, sources, outputs, tangents)


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


def by_double_backward(node, sources, outputs, tangents):
    smooth = [is_differentiable(output) for output in outputs]
    pairs = [(source, tangents.get(id(source))) for source in sources]
    return transposed(lambda u: _native.run_node(node, tuple(u)), outputs, smooth, pairs)


def transposed(vjp, outputs, smooth, pairs):
    """J t, as the derivative by u of J'u.

    Args:
        vjp: gives J'u, an item for each of `pairs`, from a gradient for each output.
        smooth: which outputs have gradients.
        pairs: the inputs with their tangents.
    """
    recording = _native.is_grad_enabled()
    with cresset.enable_grad():
        # At any u the derivative is the same; at 0 a formula with a logarithm in it would fail.
        u = [
            cresset.ones_like(o.detach(), requires_grad=True) if s else None
            for o, s in zip(outputs, smooth, strict=True)
        ]
        reached = [
            (slope, tangent)
            for slope, (_, tangent) in zip(vjp(u), pairs, strict=True)
            if tangent is not None and slope is not None
        ]
        found = [(slope, tangent) for slope, tangent in reached if slope.requires_grad]
        if not found:  # a slope that does not depend on u is zero, as that of a random draw
            return [
                cresset.zeros_like(o.detach()) if reached and s else None for o, s in zip(outputs, smooth, strict=True)
            ]
        slopes, given = zip(*found, strict=True)
        create_graph = recording and any(
            t is not None and (t.requires_grad or _native.level_of(t)) for pair in pairs for t in pair
        )
        pushed = cresset.autograd.grad(
            slopes, [x for x in u if x is not None], given, None, create_graph, allow_unused=True
        )
        pushed = iter(pushed)
        return [None if x is None else next(pushed) for x in u]


def is_differentiable(tensor):
    return tensor.is_floating_point() or tensor.is_complex()


def settled(tangent, output, others):
    """A tangent with the dtype, the shape and the layout of its primal, in memory of its own."""
    if tangent is None:
        return None
    if tangent.dtype != output.dtype:
        tangent = tangent.to(output.dtype)
    if tangent.shape != output.shape:
        tangent = tangent.expand(output.shape)
    shares = tangent._base is not None or any(tangent is other for other in others.values())
    if not shares and _native.level_of(tangent):
        return tangent
    return laid_out(tangent, output) if shares or tangent.stride() != output.stride() else tangent


def laid_out(tangent, primal):
    if _native.level_of(tangent) or _native.level_of(primal):
        if primal.layout != cresset.strided:
            return tangent.clone()
        outward = sorted(range(primal.dim()), key=primal.stride, reverse=True)
        copied = tangent.permute(outward).clone(memory_format=cresset.contiguous_format)
        return copied.permute([outward.index(dim) for dim in range(primal.dim())])
    if _native.is_dispatched(tangent):
        return tangent.new_empty_strided(primal.shape, primal.stride()).copy_(tangent)
    elements = _native.storage_info(primal)[2] // primal.element_size()
    if primal.layout != cresset.strided or elements <= primal.numel():
        return cresset.empty_like(primal.detach()).copy_(tangent)
    whole = tangent.new_zeros(elements)  # views of the primal may reach elements that are not its own
    return whole.as_strided(primal.shape, primal.stride(), primal.storage_offset()).copy_(tangent)


def write_tangent(tensor, tangent, number):
    """After an in-place change: write into the tangent there is, which views of the tensor share."""
    held = tangent_of(tensor, number)
    if tangent is None:
        if held is not None:
            held.zero_()
        return
    if held is None or not vmaps_of(tangent) <= vmaps_of(held):
        base = tensor._base
        if base is None:
            set_tangent(tensor, tangent, number)
            return
        whole, of_base = tangent.new_zeros(base.shape), tangent_of(base, number)
        set_tangent(base, whole if of_base is None else whole.copy_(of_base), number)
        _native.set_tangent(tensor, None, number)  # the view now takes its part of that
        held = tangent_of(tensor, number)
    held.copy_(tangent)


def vmaps_of(tensor):
    """The levels of vmap at which a tensor differs from sample to sample."""
    found = set()
    while level := _native.level_of(tensor):
        tensor, dim = _native.batch_of(tensor)
        if dim is not None:
            found.add(level)
    return found


def flat(values):
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from flat(value)
        else:
            yield value
