"""Tells rounding from mistakes: how far apart two results of one step may lie.

A difference of some units in the last place is rounding. A larger one is, element by element, where the leading library
alone shows that no more digits can be asked for, in one of four ways. *Condition*: each operand moved by some units in
the last place of the result moves the result as far. *Operations*: so does what each operation on the way gives, also
inside of a function or a derivative, where terms may cancel that nobody sees. *Method*: with such operands, the
library's own result differs as much from its result in double precision (of a float64 program: in float32 from double
precision, and as many units count). *Truth*: its result in double precision is the other library's, and its own is far
from both. So no operator is excused as such, and no element because of its neighbors.

For this the program runs again. Operands that a step makes for itself get names first, so that they are moved, too.
After each step that was compared, all variables get the values that they had, moved; so nothing adds up from step to
step, but what a backward pass had kept aside is that of moved operands.
"""

import random
import re

import numpy as np
from side import ASSIGNED, Side, fits, memory, numbers

# What one operation may add in relative error: some units in the last place of the dtype in which it gives its result.
EPSILON = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "complex32": 2.0**-10,
    "complex64": 2.0**-23,
    "complex128": 2.0**-52,
}
SMALLEST = {
    "float64": 1e-307,
    "float32": 1e-37,
    "float16": 1.2e-7,
    "bfloat16": 1e-37,
    "complex32": 1.2e-7,
    "complex64": 1e-37,
    "complex128": 1e-307,
}
LARGEST = {"float16": 65504.0, "bfloat16": 2.0**128 * (1 - 2.0**-8), "float32": 2.0**128 * (1 - 2.0**-24)}
REAL = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}  # of the parts
DOUBLE = ("float64", "complex128")
UNITS = 8
RERUNS = 16
NEARER = 64  # how many times nearer to the truth, at least, what is no rounding of it has to be
MOVED = 4  # units: a single one is often rounded away again
# Units: operands so close by that the same error of the method is met, and one of many; at last farther ones, for
# functions that hardly move.
NEARBY = [range(-64, 65)] * (RERUNS // 2) + [range(-4096, 4097)] * (RERUNS // 2)
# The dtypes of a program that runs in another precision, and the methods that convert to them.
NARROW = re.compile(r"\b(complex64)\b|\b(?:float32|b?float16)\b(?!\(\))|(?<=[.])(?:float|half|bfloat16)\(\)")
WIDE = re.compile(r"\b(complex128)\b|\bfloat64\b|(?<=[.])double\(\)")
BYTES = re.compile(r"(storage\(\)\.resize_\()(\d+)")  # as many as four times wider numbers need
CALLS = re.compile(r"\bm\d+\(")
MAKES = re.compile(r"\b(?:values|t\.(?:rand|randn|full|ones|zeros|arange|linspace|tensor))\(")
LOWERED = re.compile(r"\bautocast\('cpu', dtype=t[.](\w+)\)|[.]float\(\)")
GRADIENT = re.compile(r"backward\(|[.]grad\(")
# What draws random numbers while it computes, other ones in another precision; and what keeps them for its derivative.
DRAWS = re.compile(
    r"dropout|gumbel|rrelu|rand\w*_like|multinomial|\b(?:normal|uniform|bernoulli|random|exponential)_?\("
)
KEEPS_DRAWS = re.compile(r"dropout|gumbel|rrelu")


def away(expected, got, dtype):
    """Where two arrays of numbers differ by more than the rounding of one operation, element by element."""
    with np.errstate(all="ignore"):
        same = (expected == got) | ((expected != expected) & (got != got))
        if dtype in EPSILON:
            close = np.abs(expected - got) <= UNITS * EPSILON[dtype] * np.abs(expected) + SMALLEST[dtype]
            same |= close & np.isfinite(expected) & np.isfinite(got)
        if np.iscomplexobj(expected):  # beside a part that is no number or infinite, the other one counts alone
            parts = [~away(getattr(expected, part), getattr(got, part), REAL[dtype]) for part in ("real", "imag")]
            same |= parts[0] & parts[1] & ~np.isfinite(expected)
    return ~same


class Rounding:
    """The steps of a program up to one whose result is in question. `seen` has whether each was compared."""

    def __init__(self, library, steps, seen):
        self.library = library
        self.steps = list(named_operands(steps, seen))  # (a step, the variables that follow after it; None: all)
        self.clean = None

    def explains(self, read, theirs, ours, dtype):
        """Where two results are as near as can be asked for. `read` gives the result of a side, or None."""
        kept = self.library.get_rng_state(), self.library.is_grad_enabled()
        try:
            self.end_where_it_was_made(read, theirs)
            near = self.condition(read, theirs, ours, dtype)
            for other in (self.operations, self.method, self.truth):
                near = near if near.all() else near | other(read, theirs, ours, dtype)
            return near
        finally:
            self.library.set_rng_state(kept[0])
            self.library.set_grad_enabled(kept[1])
            self.library.set_default_dtype(self.library.float32)

    def end_where_it_was_made(self, read, theirs):
        """Forget the last steps, of those that were not compared, that left the result as it was: they say nothing of
        how it was made.
        """
        while len(self.steps) > 1 and self.steps[-2][1] is not None:
            again = Again(self.library)
            for text, _ in self.steps[:-1]:
                again.run(text)
            made = read(again.side)
            if made is None or made.shape != theirs.shape or not np.array_equal(made, theirs, equal_nan=True):
                break
            self.steps.pop()

    def condition(self, read, theirs, ours, dtype):
        """Where operands that are moved by some units in the last place move the result as far as it is away.

        Operands of fewer digits than the result are what they are. But a gradient may have come through such numbers,
        and what is written to an out= of more digits has those of the operands.
        """
        self.clean = self.clean or self.values_on_the_way()
        coarsest = self.coarsest(dtype)
        cast = dtype in DOUBLE and self.is_cast_from_whole_numbers()
        near = ~away(theirs, ours, narrow(dtype) if cast else dtype)
        spread, unsure = np.zeros(theirs.shape), np.zeros(theirs.shape, bool)
        for seed in range(RERUNS):
            again = Again(self.library)
            for at, (text, names) in enumerate(self.steps):
                again.run(text)
                if at < len(self.steps) - 1:
                    again.follow(self.clean[at], names, random.Random(f"{seed}/{at}"), coarsest)
            moved = read(again.side)
            if moved is None or moved.shape != theirs.shape:
                continue
            with np.errstate(all="ignore"):
                unsure |= np.isfinite(moved) != np.isfinite(theirs)
                distance = np.abs(moved - theirs)
                spread = np.fmax(spread, np.where(np.isfinite(distance), distance, 0))
                signless = np.isinf(ours) & (theirs != 0) & (spread >= np.abs(theirs))  # no digit is sure, nor the sign
                near |= unsure | signless | (np.abs(theirs - ours) <= UNITS / MOVED * spread)
            if near.all():
                break
        return near

    def operations(self, read, theirs, ours, dtype):
        """Where results on the way that are moved by some units in the last place move the result as far as it is
        away. Variables have the values that they had.
        """
        coarsest, spread = self.coarsest(dtype), np.zeros(theirs.shape)
        near = ~away(theirs, ours, dtype)
        for seed in range(RERUNS):
            again = Again(self.library)
            for at, (text, names) in enumerate(self.steps):
                with shaking(self.library, f"{seed}/{at}", coarsest):
                    again.run(text)
                if at < len(self.steps) - 1 and names is None:
                    again.follow(self.clean[at], names)
            moved = read(again.side)
            if moved is None or moved.shape != theirs.shape:
                continue
            with np.errstate(all="ignore"):
                distance = np.abs(moved - theirs)
                spread = np.fmax(spread, np.where(np.isfinite(distance), distance, 0))
                near |= np.abs(theirs - ours) <= UNITS / MOVED * spread
            if near.all():
                break
        return near

    def coarsest(self, dtype):
        """The unit of the coarsest numbers that are moved for a result of a dtype."""
        return max(EPSILON[dtype], *map(self.unit_of_what_is_read, self.in_question()))

    def method(self, read, theirs, ours, dtype):
        """Where the library's own result is as far from the one in double precision, for operands close by."""
        fault, near = np.zeros(theirs.shape), ~away(theirs, ours, dtype)
        units = EPSILON["float32" if dtype in DOUBLE else dtype]
        for seed in range(RERUNS + 1):
            pair = self.beside_double(read, seed, dtype in DOUBLE)
            if pair is None or pair[0].shape != theirs.shape:
                break
            rounded, exact = pair
            with np.errstate(all="ignore"):
                distance = np.abs(rounded - exact)
                # More than some units of one is no rounding: the two are not the same program.
                alike = distance <= 8 * UNITS * units * np.maximum(1, np.abs(exact))
                fault = np.fmax(fault, np.where(alike, distance, 0))
                near |= np.abs(theirs - ours) <= UNITS * fault * (EPSILON[dtype] / units)
            if near.all():
                break
        return near

    def truth(self, read, theirs, ours, dtype):
        """Where the library's result in double precision, of the same operands, shows that it is the one in error."""
        pair = None if dtype in DOUBLE else self.beside_double(read, 0, False, whole=True)
        if pair is None or pair[0].shape != theirs.shape:
            return np.zeros(theirs.shape, bool)
        rounded, exact = pair
        with np.errstate(all="ignore"):
            again = (rounded == theirs) | ((rounded != rounded) & (theirs != theirs))  # the same program indeed
            nearer = NEARER * np.abs(ours - exact) <= np.abs(theirs - exact)
            return again & np.isfinite(exact) & (nearer | ~away(exact, ours, dtype) | (ours == overflown(exact, dtype)))

    def beside_double(self, read, seed, narrowed, whole=False):
        """The result and that in double precision, both of the same operands, which are moved (seed 0: which are not);
        None where the programs go different ways. `whole`: what a layer gives on the way is no operand.
        """
        pair = self.both_ways(read, seed, narrowed, whole)
        return pair if pair is not None else self.last_step_both_ways(read, seed, narrowed)

    def last_step_both_ways(self, read, seed, narrowed):
        """The same of the last step alone, where it needs no history: what came before may have been about bytes."""
        text = self.steps[-1][0]
        if GRADIENT.search(text) or CALLS.search(text) or DRAWS.search(text):
            return None
        before = Again(self.library)
        for earlier, _ in self.steps[:-1]:
            before.run(earlier)
        rounded, exact = Again(self.library, narrow if narrowed else str), Again(self.library, wide, "float64")
        for again, rewrite in ((rounded, narrow if narrowed else str), (exact, wide)):
            again.side.names.update((name, x) for name, x in before.side.names.items() if ASSIGNED.match(name))
            for name, tensor in before.side.tensors().items():
                if ASSIGNED.match(name):
                    dtype = getattr(self.library, rewrite(before.side.dtype(tensor)))
                    again.side.names[name] = tensor.detach().to(dtype, copy=True)
        if seed:
            rounded.follow(rounded.values(), None, random.Random(f"{seed}/alone"), by=NEARBY[seed - 1])
        exact.follow(rounded.values(), None)
        for again in (rounded, exact):
            again.run(text)
        results = read(rounded.side), read(exact.side)
        failed = rounded.side.error or exact.side.error or any(x is None for x in results)
        return None if failed or results[0].shape != results[1].shape else results

    def both_ways(self, read, seed, narrowed, whole):
        linked, through = self.linked(), GRADIENT.search(self.steps[-1][0])
        rounded, exact = Again(self.library, narrow if narrowed else str), Again(self.library, wide, "float64")
        for at, (text, names) in enumerate(self.steps):
            state = self.library.get_rng_state()
            rounded.run(text)
            after = self.library.get_rng_state()
            self.library.set_rng_state(state)
            exact.run(text)
            self.library.set_rng_state(after)
            if at in linked and (rounded.side.error is None) != (exact.side.error is None):
                return None
            last = at == len(self.steps) - 1
            if DRAWS.search(text) and (last or names == () or (through and at in linked and KEEPS_DRAWS.search(text))):
                return None
            if not last and names != () and not (whole and names and CALLS.search(text)):
                rng = random.Random(f"{seed}/{at}") if seed else None
                rounded.follow(self.clean[at], names, rng, by=NEARBY[seed - 1])
                if not exact.follow(rounded.values(), names):
                    return None
        results = read(rounded.side), read(exact.side)
        return None if any(x is None for x in results) or results[0].shape != results[1].shape else results

    def linked(self):
        """The places of the steps whose variables the last one may have to do with, directly or through others."""
        mentioned = [set(re.findall(r"\b[vmow]\d+\b", text)) for text, _ in self.steps]
        places, names = set(), mentioned[-1]
        while more := {at for at, found in enumerate(mentioned) if found & names} - places:
            places |= more
            names = names.union(*(mentioned[at] for at in more))
        return places

    def in_question(self):
        """The steps since the last one that was compared and found right."""
        compared = [at for at, (_, names) in enumerate(self.steps[:-1]) if names is None]
        return [text for text, _ in self.steps[max(compared, default=-1) + 1 :]]

    def is_cast_from_whole_numbers(self):
        """Whether the last step writes a function of whole numbers, which is computed in float32, to an out=."""
        read, _, target = self.steps[-1][0].partition("out=")
        names = re.findall(r"\b[vw]\d+\b", read)
        return bool(target and names) and not any(name in self.units for name in names)

    def unit_of_what_is_read(self, text):
        """The unit of the operands of a step with out=, or of what they are converted to on the way; 1 of a step
        through a history; else 0.
        """
        if GRADIENT.search(text):
            return 1
        if found := LOWERED.search(text):
            return EPSILON[found[1] or "float32"]
        read, _, target = text.partition("out=")
        units = [self.units[name] for name in re.findall(r"\b[vw]\d+\b", read) if name in self.units]
        return min(units, default=0) if target else 0

    def values_on_the_way(self):
        """All variables after each step; `units` has those of the ones of fractions before the last step."""
        again, found = Again(self.library), []
        for text, _ in self.steps:
            tensors = again.side.tensors()
            again.run(text)
            found.append(again.values())
        dtypes = {name: again.side.dtype(tensor) for name, tensor in tensors.items()}
        self.units = {name: EPSILON[dtype] for name, dtype in dtypes.items() if dtype in EPSILON}
        return found


class Again:
    """A program once more, rewritten, by a library with this default dtype."""

    def __init__(self, library, rewrite=str, default="float32"):
        self.side, self.rewrite, self.default = Side(library), rewrite, getattr(library, default)
        self.known = {}

    def run(self, text):
        self.side.t.set_default_dtype(self.default)
        self.side.run(self.rewrite(text))
        self.side.t.set_default_dtype(self.side.t.float32)

    def values(self):
        """The elements of all tensors by name."""
        found = {}
        for name, tensor in self.side.tensors().items():
            looks = self.side.looks(tensor)
            if fits(tensor, looks):
                found[name] = numbers(memory(tensor, looks).copy(), looks["dtype"])
        return found

    def follow(self, values, names, rng=None, coarsest=1, by=(-MOVED, MOVED)):
        """Give the variables of these names, or all, these values; with `rng`, those whose units are no coarser, and
        any new one, moved by one of so many units in the last place. Whether each had the right sizes.
        """
        agree = True
        if names is None:
            self.side.diary.clear()  # what was said was compared
        # Fractions last: they may share memory with whole numbers, and are what is moved.
        for name, tensor in sorted(self.side.tensors().items(), key=lambda x: self.side.dtype(x[1]) in EPSILON):
            looks = self.side.looks(tensor)
            if not fits(tensor, looks):
                continue
            there = memory(tensor, looks)
            changed = self.known.get(name) != (id(tensor), looks["version"])
            self.known[name] = (id(tensor), looks["version"])
            value = values.get(name) if names is None or name in names else None
            unit = EPSILON.get(looks["dtype"], 2)
            if value is None:
                if not changed or rng is None or unit > 1:
                    continue
                value = moved(numbers(there, looks["dtype"]), unit, rng, by)
            elif value.shape != there.shape:
                agree = False
                continue
            elif rng is not None and unit <= coarsest:
                value = moved(value, unit, rng, by)
            write(there, looks["dtype"], value)
        return agree


def shaking(library, seed, coarsest):
    """A block in which what each operation of the library makes, of units no coarser, is moved by some units."""
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_map_only

    drawn = library.Generator().manual_seed(random.Random(seed).getrandbits(40))

    def shaken(tensor):
        unit = EPSILON.get(str(tensor.dtype).rpartition(".")[2], 2)
        if unit > coarsest or tensor.layout is not library.strided or tensor._is_zerotensor():
            return tensor  # PyTorch ends where a zero without memory is computed with here
        signs = library.randint(0, 2, tuple(tensor.shape), generator=drawn) * 2 - 1
        return tensor * (1 + MOVED * unit * signs.to(tensor.dtype))

    class Shaking(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            views = any(returned.alias_info is not None for returned in function._schema.returns)
            return result if views else tree_map_only(library.Tensor, shaken, result)

    return Shaking()


def moved(value, unit, rng, by):
    """The numbers, each larger by one of so many units."""
    units = np.array([rng.choice(by) for _ in range(value.size)], float).reshape(value.shape)
    with np.errstate(all="ignore"):
        return np.where(value == 0, value, value * (1 + units * unit))


def overflown(value, dtype):
    """Real numbers, infinite where they are larger than those of the dtype."""
    if dtype not in LARGEST:
        return value
    return np.where(np.abs(value) > LARGEST[dtype], np.copysign(np.inf, value), value)


def write(array, dtype, value):
    """Put numbers into the memory of a tensor."""
    with np.errstate(all="ignore"):
        if dtype == "bfloat16":
            bits = np.ascontiguousarray(value, np.float32).view(np.uint32).astype(np.uint64)
            rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
            array[...] = np.where(value != value, array, rounded.reshape(array.shape))
        elif dtype != "complex32":
            array[...] = value if np.iscomplexobj(array) else value.real


def wide(text):
    """A step with every fraction a double."""
    text = NARROW.sub(lambda m: "double()" if m[0].endswith(")") else "complex128" if m[1] else "float64", text)
    return BYTES.sub(lambda m: f"{m[1]}{4 * int(m[2])}", text)


def narrow(text):
    """A step of doubles in single precision."""
    return WIDE.sub(lambda m: "float()" if m[0].endswith(")") else "complex64" if m[1] else "float32", text)


def named_operands(steps, seen):
    """The steps, each after steps that make what it made for itself, tensors and what a layer makes of them on the way;
    with the variables that are known after it: all (None) where it was compared.
    """
    count = 0
    for text, compared in zip(steps, seen, strict=True):
        while found := MAKES.search(text) or CALLS.search(text):
            end = closing(text, found.end())
            if end == len(text) and text[found.start()] == "m":
                break  # the result itself
            yield f"w{count} = {text[found.start() : end]}", (f"w{count}",)
            text = f"{text[: found.start()]}w{count}{text[end:]}"
            count += 1
        yield text, None if compared else ()


def closing(text, at):
    """The place behind the bracket that closes the one before `at`."""
    depth = 1
    while depth:
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return at
