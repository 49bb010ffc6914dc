"""Calls of operators with distributed tensors: the operator's placement rule says which placements of its operands give
which of its results; the cheapest one is taken, the operands are moved, and the operator runs on the parts.

A rule is asked once for a kind of call; what it decided is a Plan, which is looked up from then on.
"""

import functools
import math
import warnings
from typing import NamedTuple

import cresset

from ... import _native
from ...ops import formulas
from ...ops.registry import placement_rules
from ._dtensor_spec import DTensorSpec, TensorMeta
from .placement_types import _StridedShard
from .redistribution import WHOLE, redistributed, summed_backward

PLANS: dict = {}  # (operator, argument keys) -> Plan
QUICK: dict = {}  # (operator, spec, spec) -> the result's spec, of calls that move nothing
LIMIT = 8192  # plans that are kept; a program with more kinds of calls begins anew
_settings = {"implicit_replication": False}
_said: set = set()


class Way(NamedTuple):
    """Placements of the operands and of the results along one dimension of the grid.

    `even`: operands that are cut must be cut in parts of one size.
    """

    ins: tuple
    outs: object
    even: bool = False


class Call:
    """What a rule is told, besides the arguments, in which specs stand for tensors."""

    def __init__(self, name, mesh, tensors, results, wants_gradient):
        self.name, self.mesh, self.tensors, self.results = name, mesh, tensors, results
        self.wants_gradient = wants_gradient

    @property
    def result(self):
        """Shape, strides and dtype of the (first) result."""
        return self.results[0]

    def all(self, placement, outs=None):
        """The way in which every operand, and the result, is placed alike."""
        return Way((placement,) * len(self.tensors), placement if outs is None else outs)


class Plan:
    """A decided call: the specs of the operands and of the results, and what runs."""

    __slots__ = ("ins", "outs", "run", "summed")

    def __init__(self, ins, outs, run, summed):
        self.ins, self.outs, self.run, self.summed = ins, outs, run, summed


# ---- arguments


def _key(value, cls, tensors):
    """An argument as part of a key; distributed tensors are collected."""
    if type(value) is cls or isinstance(value, cls):
        tensors.append(value)
        return value._spec
    if isinstance(value, (list, tuple)):
        return (type(value), *[_key(item, cls, tensors) for item in value])
    if isinstance(value, slice):
        return (slice, value.start, value.stop, value.step)
    if isinstance(value, cresset.Tensor):
        raise TypeError  # replaced before
    return (type(value), value)


def _replaced(value, cls, by):
    """Arguments with every distributed tensor replaced by the next of `by`."""
    if isinstance(value, cls):
        return next(by)
    if isinstance(value, (list, tuple)):
        made = [_replaced(item, cls, by) for item in value]
        return made if isinstance(value, list) else tuple(made)
    return value


def _has_plain(value, cls):
    if isinstance(value, (list, tuple)):
        return any(_has_plain(item, cls) for item in value)
    return isinstance(value, cresset.Tensor) and not isinstance(value, cls)


def _first(value, cls):
    if isinstance(value, cls):
        return value
    if isinstance(value, (list, tuple)):
        for item in value:
            found = _first(item, cls)
            if found is not None:
                return found
    return None


def _distributed(value, cls, mesh, name):
    """Plain tensors of one element as distributed ones that every process has; others are refused."""
    if isinstance(value, (list, tuple)):
        made = [_distributed(item, cls, mesh, name) for item in value]
        return made if isinstance(value, list) else tuple(made)
    if not isinstance(value, cresset.Tensor) or isinstance(value, cls):
        return value
    if value.ndim == 0 or _settings["implicit_replication"] or (value.numel() == 1 and value.ndim == 1):
        return cls.from_local(value, mesh, [WHOLE] * mesh.ndim, run_check=False)
    raise RuntimeError(
        f"{name}: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling "
        f"distributed operators! The plain one has shape {tuple(value.shape)}; distribute_tensor(x, mesh, placements) "
        "makes it one"
    )


# ---- deciding


@functools.cache
def rule_of(name):
    """The placement rule of an operator; None if it says nothing."""
    from .rules import RULES  # which use this module

    found = placement_rules.get(name)
    if found is None and name.endswith("_") and not name.endswith("__"):
        found = placement_rules.get(name[:-1])
    if found is None and formulas.definition(name.removesuffix("_")) is not None:
        found = "pointwise"
    return RULES[found] if isinstance(found, str) else found


def _cost(spec, before, after, n):
    """Roughly the bytes that a process sends, and a fixed price for each exchange."""
    if before == after:
        return 0.0
    if after.is_partial() and (not before.is_replicate() or after.reduce_op != "sum"):
        return math.inf
    size = math.prod(spec.shape) * spec.dtype.itemsize
    if before.is_replicate():
        return 1.0 if after.is_shard() else 10.0 + size  # parts of a sum are not made without need
    # PyTorch's preferences: reduce to whole tensors where nobody else is cut, otherwise to what is cut; gather rather
    # than change a cut.
    whole = 1000.0 + 2.0 * size
    if before.is_partial():
        return whole + after.is_shard()
    return 1.5 * whole if after.is_shard() else whole + 2.0


def _fits(way, specs, mesh, m, fixed):
    """Whether the operands can be cut so; one shorter than the grid only where it is, or follows a `fixed` first."""
    for spec, placement in zip(specs, way.ins, strict=True):
        if not placement.is_shard():
            continue
        if placement.dim >= spec.ndim:
            return False
        length, n = spec.shape[placement.dim], mesh.shape[m]
        now = spec.placements[m] == placement
        if length < n and not now and not fixed:
            return False
        cuts = math.prod(k for i, k in enumerate(mesh.shape) if i == m or spec.placements[i].is_shard(placement.dim))
        if way.even and length % cuts:
            return False
    return True


def _strided(way, specs, m):
    """A way for operands that are cut after a later dimension of the grid: they stay so, where all of them are."""
    cut = [(spec.placements[m], p) for spec, p in zip(specs, way.ins, strict=True) if p.is_shard()]
    factors = {getattr(now, "split_factor", None) if now.is_shard(p.dim) else None for now, p in cut}
    if len(factors) != 1 or None in factors:
        return way
    (factor,) = factors

    def strided(placements):
        return tuple(_StridedShard(p.dim, split_factor=factor) if p.is_shard() else p for p in placements)

    outs = strided(way.outs) if isinstance(way.outs, tuple) else strided((way.outs,))[0]
    return Way(strided(way.ins), outs, way.even)


def _choose(name, specs, ways, mesh, m, fixed, results):
    """The cheapest way along dimension `m` of the grid."""
    none = Way((WHOLE,) * len(specs), WHOLE)
    best, price = None, math.inf
    for way in (*[_strided(way, specs, m) for way in ways], none):
        if fixed and way.ins[0] != specs[0].placements[m]:
            continue
        if fixed and (way.outs[0] if isinstance(way.outs, tuple) else way.outs) != way.ins[0]:
            continue
        if way is not none and not _fits(way, specs, mesh, m, fixed):
            continue
        pairs = zip(specs, way.ins, strict=True)
        cost = sum(_cost(spec, spec.placements[m], after, mesh.shape[m]) for spec, after in pairs)
        if cost < price:
            best, price = way, cost
    if best is None:
        raise RuntimeError(
            f"{name}: in-place operations that require placement changes are not supported. It has placements "
            f"{specs[0].placements} along which {name} cannot run; redistribute it first"
        )
    outs = best.outs if isinstance(best.outs, tuple) else (best.outs,) * len(results)
    return best.ins, outs


def _metas(result):
    """(flat list of the tensors of a result)."""
    if isinstance(result, cresset.Tensor):
        return [result]
    if isinstance(result, (list, tuple)):
        return [tensor for item in result for tensor in _metas(item)]
    return []


def _described(tensor):
    return TensorMeta(tensor.shape, tensor.stride(), tensor.dtype)


def decide(func, name, tensors, args, kwargs, cls):
    """The Plan of a call; None where the results' shapes are not known before it runs."""
    specs = [tensor._spec for tensor in tensors]
    mesh = specs[0].mesh
    for spec in specs[1:]:
        if spec.mesh is not mesh and spec.mesh != mesh:
            raise ValueError(
                f"{name}: Expected all DTensor args to be on the same mesh. Received DTensor args on at least two "
                f"different meshes: {mesh} and {spec.mesh}"
            )
    rule = rule_of(name)
    in_place = name.endswith("_") and not name.endswith("__")
    metas = iter([spec.meta() for spec in specs])
    if in_place:  # shapes do not change, and memory that there is none of is not written
        results = [specs[0].tensor_meta]
    else:
        try:
            replaced = _replaced(args, cls, metas), {k: _replaced(v, cls, metas) for k, v in kwargs.items()}
            with cresset.no_grad():
                results = [_described(t) for t in _metas(func(*replaced[0], **_on_meta(replaced[1])))]
        except Exception:
            return None  # it runs on whole tensors, and says itself what is wrong
    wants_gradient = cresset.is_grad_enabled() and any(tensor._local_tensor.requires_grad for tensor in tensors)
    call = Call(name, mesh, specs, results, wants_gradient)
    stand_ins = iter(specs)
    shown = _replaced(args, cls, stand_ins), {k: _replaced(v, cls, stand_ins) for k, v in kwargs.items()}
    if rule is None:
        _say(name, specs)
        ways, run = [], None
    else:
        ways = rule(call, *shown[0], **shown[1])
        ways, run = ways if isinstance(ways, tuple) else (ways, None)
    chosen = [_choose(name, specs, ways, mesh, m, in_place, results) for m in range(mesh.ndim)]
    ins = [spec.placed([ins[i] for ins, _ in chosen]) for i, spec in enumerate(specs)]
    outs = [DTensorSpec(mesh, [outs[k] for _, outs in chosen], meta) for k, meta in enumerate(results)]
    summed = []
    for i in range(len(specs)):
        partly = [m for m, (ins_m, outs_m) in enumerate(chosen)
                  if ins_m[i].is_replicate() and not all(p.is_replicate() for p in outs_m)]  # fmt: skip
        summed.append(tuple(partly))
    return Plan(ins, outs, run, summed)


def _on_meta(kwargs):
    return {k: "meta" if k == "device" and v is not None else v for k, v in kwargs.items()}


def _say(name, specs):
    if name not in _said and not all(spec.is_replicated() for spec in specs):
        _said.add(name)
        warnings.warn(
            f"DTensor: {name} has no placement rule: its operands are brought together whole in every process",
            stacklevel=2,
        )


# ---- running


def dispatch(cls, func, args, kwargs):
    """Run an operator on distributed tensors."""
    name = _native.function_behind(func).__name__
    out = kwargs.pop("out", None) if kwargs else None
    if _has_plain((args, list(kwargs.values())), cls):
        found = _first((args, list(kwargs.values())), cls)
        mesh = (found if found is not None else _first(out, cls))._spec.mesh
        args = _distributed(args, cls, mesh, name)
        kwargs = {k: _distributed(v, cls, mesh, name) for k, v in kwargs.items()}
    tensors: list = []
    keys = _key(args, cls, tensors), tuple((k, _key(v, cls, tensors)) for k, v in kwargs.items())
    if not tensors:  # only the place of the result is distributed
        return _stored(cls, name, out, func(*args, **kwargs))
    gradients = cresset.is_grad_enabled() and tuple(t._local_tensor.requires_grad for t in tensors)
    kind = tensors[0]._spec.mesh.device_type
    lower = cresset.get_autocast_dtype(kind) if cresset.is_autocast_enabled(kind) else None
    key = (func, keys, gradients, lower, _settings.get("loss_parallel"))
    try:
        plan = PLANS.get(key)
        known = True
    except TypeError:  # an argument that is no key
        plan, known = None, False
    if plan is None:
        plan = decide(func, name, tensors, args, kwargs, cls)
        if plan is None:
            return _stored(cls, name, out, _whole(cls, func, tensors, args, kwargs))
        if known:
            if len(PLANS) >= LIMIT:
                PLANS.clear()
                QUICK.clear()
            PLANS[key] = plan
            _note_quick(func, name, tensors, args, kwargs, plan)
    locals_ = []
    for tensor, spec, summed in zip(tensors, plan.ins, plan.summed, strict=True):
        local, now = tensor._local_tensor, tensor._spec
        if spec is not now:
            local = redistributed(local, spec.shape, spec.mesh, now.placements, spec.placements)
            tensor = None
        locals_.append(summed_backward(tensor, local, spec.mesh, summed) if summed else local)
    parts = iter(locals_)
    local_args = _replaced(args, cls, parts)
    local_kwargs = {k: _replaced(v, cls, parts) for k, v in kwargs.items()}
    result = plan.run(func, plan, local_args, local_kwargs) if plan.run else func(*local_args, **local_kwargs)
    if name.endswith("_") and not name.endswith("__"):
        return args[0]
    return _stored(cls, name, out, _wrapped(cls, result, iter(plan.outs)))


def _note_quick(func, name, tensors, args, kwargs, plan):
    """Remember a call of two tensors that moves nothing, with or without a gradient."""
    if kwargs or len(args) != 2 or len(tensors) != 2 or plan.run or any(plan.summed) or len(plan.outs) != 1:
        return
    moves = any(spec is not tensor._spec for tensor, spec in zip(tensors, plan.ins, strict=True))
    if not moves and not name.endswith("_"):
        plan.outs[0].shell()
        QUICK[func, tensors[0]._spec, tensors[1]._spec] = plan.outs[0]


def _wrapped(cls, result, specs):
    if isinstance(result, cresset.Tensor):
        return cls._of(result, next(specs))
    if isinstance(result, (list, tuple)):
        made = [_wrapped(cls, item, specs) for item in result]
        if isinstance(result, list):
            return made
        return tuple(made) if type(result) is tuple else type(result)(made)
    return result


def _whole(cls, func, tensors, args, kwargs):
    """The call on whole tensors, in every process; the results are whole."""
    mesh = tensors[0]._spec.mesh
    everywhere = (WHOLE,) * mesh.ndim
    parts = []
    for tensor in tensors:
        spec = tensor._spec
        parts.append(redistributed(tensor._local_tensor, spec.shape, mesh, spec.placements, everywhere))
    locals_ = iter(parts)
    result = func(*_replaced(args, cls, locals_), **{k: _replaced(v, cls, locals_) for k, v in kwargs.items()})
    specs = iter([DTensorSpec(mesh, everywhere, _described(t)) for t in _metas(result)])
    return _wrapped(cls, result, specs)


def _stored(cls, name, out, result):
    """Put a result into out=, if there is one."""
    if out is None:
        return result
    if isinstance(out, (list, tuple)):
        for place, item in zip(out, result, strict=True):
            _stored(cls, name, place, item)
        return out
    if not isinstance(out, cls):
        raise RuntimeError(f"{name}: out= is a plain tensor and the result is a DTensor; give a DTensor")
    if not isinstance(result, cls):
        raise RuntimeError(f"{name}: out= is a DTensor and the result is none; give a plain tensor")
    if out.shape != result.shape:
        raise RuntimeError(f"{name}: out= has shape {tuple(out.shape)}, the result {tuple(result.shape)}")
    out._local_tensor.copy_(result.redistribute(out.device_mesh, out.placements)._local_tensor)
    return out
