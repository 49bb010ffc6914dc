"""How a call with tensors of a batch is computed: `interpret`, which the core asks, and what the rules of the operators
share.

A rule stands with its operator, in cresset/ops. It gets a Call: the arguments with each tensor of the level replaced by
the batch it stands for, and beside each its batch dimension, None if every sample is the same. It gives results whose
dimension 0 is the batch. Rules that many operators share are words, and in words.py. An operator without a rule is run
sample by sample, with a warning.

Note [Levels]: each open vmap has a frame with a number, the level of its tensors. Interpreting a call at one level
makes calls with the batches, which may themselves be tensors of a level below. What is recorded for a gradient is
recorded at the level at which the call was made, if a tensor of that level wants it, and in the calls below otherwise:
so grad inside vmap gives a gradient for each sample, and grad around vmap the gradient of all.
"""

import functools
import threading
import warnings
from dataclasses import dataclass

import cresset
from cresset import _native
from cresset._native import Tensor, batch_of, level_of, sample_of
from cresset.ops import formulas
from cresset.ops.registry import batch_rules, signature_parts


@dataclass
class Frame:
    """An open vmap."""

    number: int
    batch_size: int
    randomness: str


class _Open(threading.local):
    def __init__(self):
        self.frames = []


_open = _Open()
_operators = _native.operators()
WITHOUT_RULE_WARNED = set()


def frames():
    """The open frames, the innermost last."""
    return _open.frames


def top_level():
    """The level of the innermost vmap, 0 outside."""
    return _open.frames[-1].number if _open.frames else 0


class opened:
    """A block inside a new frame."""

    def __init__(self, batch_size, randomness):
        self.frame = Frame(top_level() + 1, batch_size, randomness)

    def __enter__(self):
        _open.frames.append(self.frame)
        _native.set_vmap_depth(len(_open.frames))
        return self.frame

    def __exit__(self, *_):
        _open.frames.pop()
        _native.set_vmap_depth(len(_open.frames))


class closed_from:
    """A block in which the frames from this one inward are not seen: what the rules of random operators run in."""

    def __init__(self, frame):
        self.frame = frame

    def __enter__(self):
        self.inner = _open.frames[self.frame.number - 1 :]
        del _open.frames[self.frame.number - 1 :]
        _native.set_vmap_depth(len(_open.frames))

    def __exit__(self, *_):
        _open.frames.extend(self.inner)
        _native.set_vmap_depth(len(_open.frames))


class Unbatched:
    """Marks a rule's result in which every sample is the same."""

    def __init__(self, value):
        self.value = value


class Call:
    """One call at one level.

    args: in the signature's order; a tensor of the level is its batch. dims: the batch dimension of each, None if it
        has none;
    for a list of tensors, a list. given: the arguments as they were.
    """

    def __init__(self, name, given, frame):
        self.name, self.given, self.frame = name, given, frame
        self.function = _operators[name.partition(".")[0]]
        self.args, self.dims = [], []
        for argument in given:
            if isinstance(argument, list):
                pairs = [self._opened(item) for item in argument]
                self.args.append([value for value, _ in pairs])
                self.dims.append([dim for _, dim in pairs])
            else:
                value, dim = self._opened(argument)
                self.args.append(value)
                self.dims.append(dim)

    def _opened(self, argument):
        if level_of(argument) != self.frame.number:
            return argument, None
        return batch_of(argument)

    @property
    def size(self):
        return self.frame.batch_size

    @property
    def is_batched(self):
        return any(dim is not None for dims in self.dims for dim in (dims if isinstance(dims, list) else (dims,)))

    def place(self, parameter):
        """Which argument this parameter is; None if there is no such one."""
        return next((i for i, part in enumerate(signature_parts(self.name)) if part.name == parameter), None)

    def rank(self, i=0):
        """The number of dimensions of a tensor argument, as the function sees it."""
        return self.given[i].dim()

    def front(self, i=0):
        """A batched argument with the batch first; an unbatched one as it is."""
        return to_front(self.args[i], self.dims[i])

    def full(self, i=0):
        """An argument with the batch first, expanded if it has none."""
        return expanded(self.args[i], self.dims[i], self.size)

    def padded(self, i, rank):
        """A batched argument with the batch first and then dimensions of size one up to `rank` of a sample, to
        broadcast.
        """
        if self.dims[i] is None:
            return self.args[i]
        value = self.front(i)
        missing = rank - value.dim() + 1
        # A view, not unsqueeze: it gives a batch of one sample a stride that tells nothing of the order of dimensions.
        return value.view(len(value), *(1,) * missing, *value.shape[1:]) if missing > 0 else value

    def dim(self, dim, rank=None):
        """The dimension of the batch for one of a sample, or of another tensor of `rank`: checked, from the front,
        behind the batch.
        """
        return wrap_dim(dim, self.rank() if rank is None else rank)

    @property
    def in_place(self):
        """Whether the operator writes to its first argument."""
        return changes_first(self.name)

    def in_channels(self, value, at=1):
        """(B, N, C, ...) as (N, B C, ...); with at=0, (B, O, ...) as (B O, ...)."""
        return value.flatten(0, 1) if at == 0 else value.movedim(0, 1).flatten(1, 2)

    def out_of_channels(self, value):
        """(N, B C, ...) as (B, N, C, ...)."""
        return value.unflatten(1, (self.size, -1)).movedim(1, 0)

    def with_number(self, function):
        """`function` of the batch, where a sample that is a single number counts as a vector of one."""
        value = self.front()
        return function(value) if self.rank() else _without_last(function(value.unsqueeze(1)))

    def made_of(self, function):
        """What an operator gives that is other operators: `function` gets the arguments as the caller gave them."""
        result = function(*self.given)
        return None if result is None else pieces_of(self, result)

    def expanded(self, value, dim):
        """A value with the batch at `dim` first, or for every sample if that is None."""
        return expanded(value, dim, self.size)

    def along(self):
        """The operator with its dimension one further: see words.along."""
        from . import words  # which uses this module

        return words.along(self)

    def pointwise(self):
        """The operator on corresponding elements: see `pointwise`."""
        return pointwise(self)

    def run(self, *args, name=None):
        """The operator, or another, on other arguments in the signature's order."""
        return run(name or self.name, args)

    def result(self, value):
        """A rule's result as tensors of the level."""
        if isinstance(value, (tuple, list)):
            return tuple(map(self.result, value))
        if value is None:
            return None
        if isinstance(value, Unbatched):
            if isinstance(value.value, (tuple, list)):
                return tuple(self.result(Unbatched(part)) for part in value.value)
            return None if value.value is None else sample_of(value.value, None, self.frame.number)
        return sample_of(value, 0, self.frame.number)


def run(name, args):
    """An operator on arguments in its signature's order."""
    parts = signature_parts(name)
    positional = [value for value, part in zip(args, parts, strict=True) if not part.keyword_only]
    # That a fresh tensor wants a gradient is said of the tensor of the level, by the core.
    named = {
        part.name: value
        for value, part in zip(args, parts, strict=True)
        if part.keyword_only and part.name != "requires_grad"
    }
    return _operators[name.partition(".")[0]](*positional, **named)


def to_front(value, dim):
    return value if dim is None or dim == 0 else value.movedim(dim, 0)


def expanded(value, dim, size):
    return value.expand(size, *value.shape) if dim is None else to_front(value, dim)


def interpret(name, given, level, out):
    """The results of a call with tensors of this level (0: a random operator without any). Called by the core."""
    frame = frame_of(level or top_level(), name)
    if out is not None:
        return into_out(name, given, level, out)
    call = Call(name, given, frame)
    found = rule_of(name)
    is_random = getattr(found, "is_random", False)
    if not call.is_batched and not is_random:
        result = call.run(*call.args)
        return given[0] if changes_first(name) else call.result(Unbatched(result))
    if changes_first(name) and call.dims[0] is None and not is_random:
        refuse_unbatched_target(name)
    result = call_pieces(call, found)
    return given[0] if changes_first(name) else call.result(result)


@functools.cache
def rule_of(name):
    """The rule of an operator, from its own file; None if it says nothing. Formulas and random operators are told by
    what they are.
    """
    from . import words  # which uses this module

    base = name.partition(".")[0]
    if words.is_random(name):
        return words.draw
    found = batch_rules.get(name) or batch_rules.get(base)
    if found is None and formulas.definition(base.removesuffix("_")) is not None:
        return pointwise
    return words.RULES[found] if isinstance(found, str) else found


def call_pieces(call, found):
    if found is not None:
        result = found(call)
        if result is not NotImplemented:
            return result
    return sample_by_sample(call)


def frame_of(level, name):
    if level > len(_open.frames):
        raise RuntimeError(
            f"{name}: a tensor of a vmap that is over (level {level}); only what the function returns can be used "
            "outside"
        )
    return _open.frames[level - 1]


def changes_first(name):
    """Whether the operator writes to its first argument."""
    return name.partition(".")[0].endswith("_")


def refuse_unbatched_target(name):
    raise RuntimeError(
        f"vmap: {name.partition('.')[0]}: an inplace operation is not possible because the tensor it changes is the "
        "same for all samples while "
        "another argument has a value for every sample (it has more elements). Make the tensor from a batched one, "
        f"for example with x.new_zeros(...), or use out-of-place operators instead of {name.partition('.')[0]}"
    )


def into_out(name, given, level, out):
    """out=: the results are copied in."""
    results = run(name, given)
    results = results if isinstance(results, (tuple, list)) else [results]
    for target, result in zip(out, results, strict=True):
        if level_of(target) < level:
            raise RuntimeError(
                f"vmap: {name}: out= was made outside and cannot hold a value for every sample; assign the result "
                "instead"
            )
        target.copy_(result)
    return out


fallback = {"enabled": True}  # whether there may be such a loop


def sample_by_sample(call):
    """What an operator without a rule does: a loop over the batch."""
    base = call.name.partition(".")[0]
    if not fallback["enabled"]:
        raise RuntimeError(f"vmap: Batching rule not implemented for {base}, and the loop over samples is switched off")
    if base not in WITHOUT_RULE_WARNED:
        WITHOUT_RULE_WARNED.add(base)
        warnings.warn(
            (
                f"There is a performance drop because we have not yet implemented the batching rule for {base}; it "
                "runs "
                "once for each sample."
            ),
            stacklevel=6,
        )
    if not call.size:
        raise RuntimeError(f"vmap: {base} has no batching rule, and without samples its result is not known")

    def sample(value, dim, i):
        return value if dim is None else value.select(dim, i)

    results = []
    for i in range(call.size):
        args = [
            [sample(v, d, i) for v, d in zip(value, dim, strict=True)]
            if isinstance(value, list)
            else sample(value, dim, i)
            for value, dim in zip(call.args, call.dims, strict=True)
        ]
        results.append(call.run(*args))
    if changes_first(call.name):
        return None
    if isinstance(results[0], (tuple, list)):
        return [cresset.stack(list(parts)) for parts in zip(*results, strict=True)]
    return cresset.stack(results)


def wrap_dim(dim, rank):
    """The dimension of the batch for one of a sample: checked, from the front, behind the batch."""
    bound = max(rank, 1)
    if not -bound <= dim < bound:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {dim})")
    return dim % bound + 1


def pointwise(call):
    """Operators on corresponding elements: batches first, ranks aligned, and the rest is broadcasting."""
    places = [i for i, value in enumerate(call.given) if isinstance(value, Tensor)]
    rank = max(call.rank(i) for i in places)
    args = list(call.args)
    for i in places:
        args[i] = call.padded(i, rank)
    promote_as_samples(call, args, places)
    result = call.run(*args)
    if args[0] is result or changes_first(call.name):
        return None
    return result


def promote_as_samples(call, args, places):
    """A sample that is a single number is weak in type promotion, though the batch of them is not: convert where it
    matters.
    """
    if len({call.given[i].dtype for i in places}) < 2:
        return

    def promoted(tensors):
        ranked = [None, None]  # tensors with dimensions, without
        for tensor in tensors:
            weak = tensor.dim() == 0
            ranked[weak] = tensor.dtype if ranked[weak] is None else cresset.promote_types(ranked[weak], tensor.dtype)
        strong, weak = ranked
        if strong is None or weak is None:
            return strong or weak
        return cresset.result_type(cresset.empty(1, dtype=strong), cresset.empty((), dtype=weak))

    wanted = promoted([call.given[i] for i in places])
    if wanted != promoted([args[i] for i in places]):
        for i in places:
            if args[i].dtype != cresset.bool and not (i == 0 and changes_first(call.name)):
                args[i] = args[i].to(wanted)


def pieces_of(call, result):
    """Tensors of the level, as a rule gives them."""
    if isinstance(result, (tuple, list)):
        return [pieces_of(call, part) for part in result]
    if level_of(result) != call.frame.number:
        return Unbatched(result)
    value, dim = batch_of(result)
    return Unbatched(value) if dim is None else to_front(value, dim)


_native.set_interpreter(interpret)


def _without_last(result):
    if isinstance(result, (tuple, list)):
        return [_without_last(part) for part in result]
    return result.squeeze(1) if result.dim() == 2 else result
