"""Runs a program step by step on one library or on two, and tells the first thing in which they differ.

After each step all that can be seen of every variable is compared: class of the error, shape, dtype, strides, offset,
size and sharing of memory, version, leaf and gradient flags, the gradient, and each element. Where two elements differ
by rounding (rounding.py), the first library's bits go to the second, so that rounding never adds up from step to step
and a tolerance is one step's.
"""

import builtins
import ctypes
import re

import numpy as np
from rounding import EPSILON, Rounding, away
from side import ASSIGNED, BITS, Side, asked, fits, memory, numbers, span

# A tensor has other memory from then on, and with it another version in cresset, or a version of its own in PyTorch.
REPLACED = re.compile(r"\.set_\(|\.data = |m\d+\.(double|float|half|to)\(|to_parameters\(|unsafe_(chunk|split)\(")
STORAGE_WRITTEN = re.compile(r"untyped_storage\(\)\.(fill_|copy_)\(")  # counts as a write in cresset alone


def catches(theirs, ours):
    """Whether `except theirs` catches `ours`, by their names (PyTorch's torch.linalg.LinAlgError is a _LinAlgError)."""
    theirs = theirs.removeprefix("_")
    return theirs == ours or issubclass(getattr(builtins, ours, type(None)), getattr(builtins, theirs, int))


def counts_apart(t, tensor, others):
    """Whether PyTorch counts writes to this tensor apart from those to another one with the same memory.

    There a version belongs to a tensor and its views; cresset's belongs to the memory. So what `set_`, `.data =`,
    files, pickle, and NumPy made share memory is counted together, and no write is missed.
    """
    start = tensor.untyped_storage().data_ptr()
    version = tensor._version
    sharing = [
        x for x in others if x is not tensor and not x.is_inference() and x.untyped_storage().data_ptr() == start
    ]
    before = [x._version for x in sharing]
    t._C._autograd._unsafe_set_version_counter((tensor,), (version + 1000,))
    after = [x._version for x in sharing]
    t._C._autograd._unsafe_set_version_counter((tensor,), (version,))
    return any(a == b for a, b in zip(after, before))


def places(array, other=None):
    """The addresses of the bytes of an array, or of those in which another one of the same form differs."""
    found = np.full((*array.shape, array.itemsize), array.__array_interface__["data"][0])
    for axis, step in enumerate((*array.strides, 1)):
        found += np.expand_dims(np.arange(found.shape[axis]) * step, tuple({*range(found.ndim)} - {axis}))
    if other is None:
        return set(found.flat)
    ours, theirs = (np.ascontiguousarray(x).view(np.uint8).reshape(found.shape) for x in (array, other))
    return set(found[ours != theirs])


class Lockstep:
    """A program under way on each of `libraries`; the first one leads."""

    def __init__(self, libraries):
        self.sides = [Side(library) for library in libraries]
        self.begin()

    def begin(self):
        for side in self.sides:
            side.begin()
        self.steps, self.seen = [], []  # and whether each was compared
        self.replaced = self.storage_written = False

    @property
    def lead(self):
        return self.sides[0]

    def step(self, text, compare=True, between=lambda who: None, instead=None):
        """Run one step on all sides, or for the leading one another step `instead`. Returns how they differ after it,
        or None.
        """
        self.steps.append(instead or text)
        self.seen.append(compare)
        self.replaced |= bool(REPLACED.search(text))
        self.storage_written |= bool(STORAGE_WRITTEN.search(text))
        # The last side first: its crash is the one that is looked for.
        for side in reversed(self.sides):
            between(side.t.__name__)
            side.run(instead or text if side is self.lead else text)
        for side in self.sides:
            if side.error and (
                side.error[0] in ("SystemError", "MemoryError", "RecursionError") or "has a bug" in side.error[1]
            ):
                return f"{side.t.__name__} raised {side.error[0]}: {side.error[1]}"
        if compare:
            return self.look()
        if len(self.sides) > 1:
            self.settle_versions()
        return None

    def look(self):
        """How the sides differ after the last step, or None."""
        if len(self.sides) < 2 or not self.steps:
            return None
        self.seen[-1] = True
        why = self.difference()
        self.storage_written = False
        return f"{why}; both raised {self.lead.error[0]}" if why and all(side.error for side in self.sides) else why

    def difference(self):
        lead, other = self.sides
        if (lead.error is None) != (other.error is None):
            who, error = (lead, lead.error) if lead.error else (other, other.error)
            return f"only {who.t.__name__} raised {error[0]}: {error[1][:300]}"
        if lead.error and not catches(lead.error[0], other.error[0]):
            return f"raised {other.error[0]} instead of {lead.error[0]}: {other.error[1][:200]} | {lead.error[1][:200]}"
        theirs, ours = lead.tensors(), other.tensors()
        if theirs.keys() != ours.keys():
            return f"tensors {sorted(ours.keys() - theirs.keys())} instead of {sorted(theirs.keys() - ours.keys())}"
        unequal, held = [], lead.optimized()
        for name, tensor in theirs.items():
            mine = ours[name]
            expected, got = lead.looks(tensor), other.looks(mine)
            if self.counted_apart(expected["version"], got["version"], tensor, mine, [*theirs.values(), *held]):
                got["version"] = expected["version"]
            if expected != got:
                return "; ".join(
                    f"{name}: {key} {got[key]} instead of {expected[key]}"
                    for key in expected
                    if expected[key] != got[key]
                )
            if expected["dtype"] not in BITS:
                return f"{name}: dtype {expected['dtype']} cannot be compared"
            size = span(expected) * np.dtype(BITS[expected["dtype"]]).itemsize
            if (
                size
                and fits(tensor, expected)
                and ctypes.string_at(tensor.data_ptr(), size) != ctypes.string_at(mine.data_ptr(), size)
            ):
                unequal.append((name, memory(tensor, expected), memory(mine, got), expected["dtype"]))
        shared, got = lead.sharing(theirs), other.sharing(ours)
        if shared != got:
            return "; ".join(
                f"{name} shares the memory of {got[name]} instead of {shared[name]}"
                for name in shared
                if shared[name] != got[name]
            )
        rounded = {shared[name] for name, _, _, dtype in unequal if dtype in EPSILON}
        wrong = {}
        for name, expected, got, dtype in unequal:
            if dtype not in EPSILON and shared[name] in rounded:
                continue  # the bits of fractions that are compared as such
            if why := self.elements(name, expected, got, dtype):
                wrong[name] = why
        for name, expected, got, dtype in unequal:
            # Bits of fractions of other dtypes, which agree as such (two nans of different signs, say), are excused.
            if name in wrong and not places(expected, got) <= set().union(
                *(
                    places(bits)
                    for other, bits, _, kind in unequal
                    if other not in wrong and kind != dtype and kind in EPSILON
                )
            ):
                return wrong[name]
        for _, expected, got, _ in unequal:
            got[...] = expected
        return self.other_names() or self.diaries()

    def gradients(self):
        """How the gradients alone of the sides differ after the last step, or None."""
        found = ({k: asked(lambda x=x: x.grad) for k, x in side.tensors().items()} for side in self.sides)
        theirs, ours = ({k: x for k, x in grads.items() if hasattr(x, "shape")} for grads in found)
        if theirs.keys() != ours.keys():
            return "other tensors have gradients"
        for name, tensor in theirs.items():
            looks = [side.looks(x) for side, x in zip(self.sides, (tensor, ours[name]))]
            alike = all(looks[0][word] == looks[1][word] for word in ("shape", "dtype"))
            pair = [memory(x, look) for x, look in zip((tensor, ours[name]), looks)]
            if not alike or self.elements(f"{name}.grad", *pair, looks[0]["dtype"]):
                return f"{name}: another gradient"
        return None

    def counted_apart(self, expected, got, tensor, mine, others):
        """Whether two versions differ because the libraries count writes to the memory differently; they count as
        equal from then on.
        """
        if (
            expected == got
            or "none" in (expected, got)
            or not (self.replaced or self.storage_written or counts_apart(self.lead.t, tensor, others))
        ):
            return False
        for side, seen in zip(self.sides, (tensor, mine)):
            side.first[id(seen), "version"] = (seen, seen._version - expected)
        return True

    def settle_versions(self):
        """After a step that is not looked at: what shares memory then may be gone when the versions are compared."""
        lead, other = self.sides
        theirs = {k: x for k, x in lead.names.items() if ASSIGNED.match(k) and isinstance(x, lead.t.Tensor)}
        for name, tensor in theirs.items():
            mine = other.names.get(name)
            if isinstance(mine, other.t.Tensor) and not tensor.is_inference() and not mine.is_inference():
                versions = lead.version(tensor), other.version(mine)
                self.counted_apart(*versions, tensor, mine, theirs.values())

    def elements(self, name, expected, got, dtype):
        """How the elements of one variable differ beyond rounding, in words, or None."""
        theirs, ours = numbers(expected, dtype), numbers(got, dtype)
        wrong = away(theirs, ours, dtype)
        if not wrong.any():
            return None
        if dtype in EPSILON:

            def read(side):
                tensor = side.tensors().get(name)
                looks = tensor is not None and side.looks(tensor)
                return numbers(memory(tensor, looks).copy(), looks["dtype"]) if looks and fits(tensor, looks) else None

            wrong &= ~self.rounding().explains(read, theirs, ours, dtype)
            if not wrong.any():
                return None
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        return f"{name}: {ours[where]} instead of {theirs[where]} at {list(where)} of {expected.shape} {dtype}"

    def rounding(self):
        return Rounding(self.lead.t, self.steps, self.seen)

    def other_names(self):
        """Differences in arrays of NumPy and other values with names."""
        lead, other = self.sides
        for name, expected in lead.names.items():
            if name[0] == "n" and ASSIGNED.match(name):
                got = other.names.get(name)
                if isinstance(expected, np.ndarray):
                    said = same(lead.names["plain"](expected), other.names["plain"](got))
                    if not said:
                        return f"{name}: {other.names['plain'](got)} instead of {lead.names['plain'](expected)}"
        return None

    def diaries(self):
        lead, other = self.sides
        for expected, got in zip(lead.diary, other.diary):
            if not same(expected, got) and not self.said_alike():
                words = "; in None alone" if self.said_alike(without_none) else apart(expected, got)
                return f"said {got} instead of {expected}"[:600] + words
        if len(lead.diary) != len(other.diary):
            longer = max(lead, other, key=lambda side: len(side.diary))
            return f"only {longer.t.__name__} said {longer.diary[min(len(lead.diary), len(other.diary))]}"[:600]
        lead.diary.clear()
        other.diary.clear()
        return None

    def said_alike(self, form=lambda *said: said):
        """Whether what was said, in a form of both, is the same but for rounding, as tensors are compared."""
        lead, other = self.sides
        said = form(tuple(lead.diary), tuple(other.diary))
        if not same(*map(without_fractions, said)):
            return False
        for at, (theirs, ours) in enumerate(zip(*map(fractions, said))):

            def read(side, at=at):
                said = fractions(side.diary)
                return numbers_of(said[at]) if at < len(said) else None

            pair = numbers_of(theirs), numbers_of(ours)
            wrong = away(*pair, theirs[1])
            if wrong.any() and (wrong & ~self.rounding().explains(read, *pair, theirs[1])).any():
                return False
        return True


def fractions(value):
    """All tensors and arrays of fractions in a plain value."""
    if not isinstance(value, (tuple, list)):
        return []
    if value and value[0] in ("tensor", "array"):
        return [value] if value[1] in EPSILON else []
    return [found for part in value for found in fractions(part)]


def without_fractions(value):
    """A plain value without the elements of its tensors of fractions."""
    if not isinstance(value, tuple):
        return value
    if value and value[0] in ("tensor", "array"):
        return value[:-1] if value[1] in EPSILON else value
    return tuple(map(without_fractions, value))


def numbers_of(plain):
    """The elements of a plain tensor or array."""
    return np.array(plain[-1], np.complex128 if plain[1].startswith("complex") else np.float64)


def apart(expected, got):
    """In what alone two plain values differ, in words."""
    if same(*without_none(expected, got)):
        return "; in None alone"
    if same(without_flags(expected), without_flags(got)):
        return "; in flags alone"
    return "; in the last places alone" if same(expected, got, slack=256) else ""


def without_none(expected, got):
    """Two plain values without what is None in one of them, or in either where they are of different lengths."""
    if not (isinstance(expected, tuple) and isinstance(got, tuple)):
        return expected, got
    if len(expected) != len(got):
        return tuple(v for v in expected if v is not None), tuple(v for v in got if v is not None)
    pairs = [without_none(e, g) for e, g in zip(expected, got) if e is not None and g is not None]
    return tuple(e for e, _ in pairs), tuple(g for _, g in pairs)


def without_flags(value):
    """A plain value without what its tensors say about requiring a gradient."""
    if not isinstance(value, tuple):
        return value
    return value[:3] + value[4:] if value and value[0] == "tensor" else tuple(map(without_flags, value))


def same(expected, got, slack=1):
    """Two plain values agree; fractions to the precision of the dtype they came from (see `plain`), or of float32, or
    to `slack` times as much.
    """
    if isinstance(expected, tuple) and isinstance(got, tuple):
        if len(expected) != len(got):
            return False
        if expected and expected[0] in ("tensor", "array"):
            dtype = expected[1]
            return expected[:-1] == got[:-1] and close(expected[-1], got[-1], slack * EPSILON.get(dtype, 0.0))
        return all(same(e, g, slack) for e, g in zip(expected, got))
    return close(expected, got, slack * EPSILON["float32"])


def close(expected, got, epsilon):
    if isinstance(expected, list):
        return (
            isinstance(got, list)
            and len(expected) == len(got)
            and all(close(e, g, epsilon) for e, g in zip(expected, got))
        )
    if type(expected) is not type(got):
        return False
    if expected == got or (expected != expected and got != got):
        return True
    if isinstance(expected, (float, complex)):
        return abs(expected - got) <= 64 * epsilon * max(abs(expected), 1e-30)
    return False
