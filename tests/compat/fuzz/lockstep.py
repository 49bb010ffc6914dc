"""Runs a program step by step on one library or on two, and tells the first thing in which they differ.

After each step all that can be seen of every variable is compared: class of the error, shape, dtype, strides, offset,
    size and sharing of memory,
version, leaf and gradient flags, the gradient, and each element. Where two elements differ by rounding, the first
library's bits go to the second, so that rounding never adds up from step to step and a tolerance is one step's.
"""

import builtins
import ctypes
import random
import re
import warnings

import numpy as np
from vocabulary import vocabulary

ASSIGNED = re.compile(r"[vnmo]\d+$")
# A tensor has other memory from then on, and with it another version in cresset, or a version of its own in PyTorch.
REPLACED = re.compile(r"\.set_\(|\.data = |m\d+\.(double|float|half)\(|unsafe_(chunk|split)\(")
STORAGE_WRITTEN = re.compile(r"untyped_storage\(\)\.(fill_|copy_)\(")  # counts as a write in cresset alone
BITS = {
    "float64": np.float64, "float32": np.float32, "float16": np.float16, "bfloat16": np.uint16,
    "complex64": np.complex64, "complex128": np.complex128,
    "int64": np.int64, "int32": np.int32, "int16": np.int16, "int8": np.int8, "uint8": np.uint8, "bool": np.uint8,
    "complex32": np.uint32,
}  # fmt: skip
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
REAL = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}  # of the parts
DOUBLE = ("float64", "complex128")
UNITS = 8
# with each intermediate result changed by some units in the last place: how far that moves an element is its condition
RERUNS = 16
MOVED = 4  # units: a single one is often rounded away again
# The dtypes of a program that runs once more in double precision, and the methods that convert to them.
NARROW = re.compile(r"\b(complex64)\b|\b(?:float32|b?float16)\b(?!\(\))|(?<=[.])(?:float|half|bfloat16)\(\)")

BYTES = re.compile(r"(storage\(\)\.resize_\()(\d+)")  # as many as four times wider numbers need


class Side:
    """One library and the names of the program that runs on it."""

    def __init__(self, library):
        self.t = library
        self.dtypes = {}
        self.words = vocabulary(library)
        self.diary = self.words["diary"]
        self.begin()

    def begin(self):
        self.t.set_grad_enabled(True)
        self.t.set_default_dtype(self.t.float32)
        self.t.manual_seed(0)
        self.names = dict(self.words)
        self.diary.clear()
        self.error = None
        self.first = {}

    def run(self, code):
        """Execute one step; what it raised stays in `error` as (class, message)."""
        try:
            exec(code, self.names)  # the program's own text, made by steps.py
            self.error = None
        except Exception as error:
            self.error = (type(error).__name__, str(error))

    def tensors(self):
        """Every tensor that a name leads to, by name; gradients after their owners."""
        found = {}
        for name, value in self.names.items():
            if not ASSIGNED.match(name):
                continue
            if isinstance(value, self.t.Tensor):
                found[name] = value
            elif isinstance(value, self.t.nn.Module):
                for path, member in (*value.named_parameters(), *value.named_buffers()):
                    found[f"{name}.{path}"] = member
        for name, value in list(found.items()):
            if asked(lambda value=value: value.is_leaf or value.retains_grad) is True and value.grad is not None:
                found[f"{name}.grad"] = value.grad
        return found

    def dtype(self, tensor):
        dtype = tensor.dtype
        if dtype not in self.dtypes:
            self.dtypes[dtype] = str(dtype).split(".")[-1]
        return self.dtypes[dtype]

    def looks(self, tensor):
        """All that can be seen of a tensor but its elements."""
        inference = tensor.is_inference()
        return {
            "class": type(tensor).__name__,
            "shape": tuple(tensor.shape),
            "dtype": self.dtype(tensor),
            "strides": strides_that_lead_somewhere(tensor.shape, tensor.stride()),
            "offset": tensor.storage_offset() if tensor.numel() else 0,  # nothing begins nowhere
            "requires_grad": asked(lambda: tensor.requires_grad),
            "is_leaf": asked(lambda: tensor.is_leaf),
            "version": "none" if inference else self.version(tensor),
            "is_conj": tensor.is_conj(),
            "is_neg": tensor.is_neg(),
            "bytes": self.since(tensor, "bytes", tensor.untyped_storage().nbytes()),
        }

    def version(self, tensor):
        now = asked(
            lambda: tensor._version
        )  # PyTorch has none for a tensor that was given the data of an inference tensor
        return "none" if isinstance(now, str) else self.since(tensor, "version", now)

    def since(self, tensor, what, now):
        """By how much a number has grown since the tensor was first seen: how often a result was written to while it
        was made, and how much memory was used for it, is nobody's business.
        """
        first = self.first.setdefault((id(tensor), what), (tensor, now))
        return now - first[1]

    def sharing(self, tensors):
        """For each name the first name whose tensor has the same memory."""
        first, shared = {}, {}
        for name, tensor in tensors.items():
            storage = tensor.untyped_storage()
            start = asked(storage.data_ptr) if storage.nbytes() and tensor.numel() else ""
            shared[name] = name if isinstance(start, str) else first.setdefault(start, name)
        return shared


def catches(theirs, ours):
    """Whether `except theirs` catches `ours`, by their names."""
    return theirs == ours or issubclass(getattr(builtins, ours, type(None)), getattr(builtins, theirs, int))


def asked(question):
    """The answer, or the class of the error: the history of a view that was written to is looked into only when it is
    asked for.
    """
    try:
        return question()
    except RuntimeError as error:
        return type(error).__name__


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


def strides_that_lead_somewhere(shape, strides):
    """The strides, but of dimensions of one element, and of tensors without any: nothing is found by them."""
    if 0 in shape:
        return (0,) * len(strides)
    return strides if 1 not in shape else tuple(0 if n == 1 else s for n, s in zip(shape, strides))


def span(looks):
    """How many elements lie between the first and the last one of a tensor, both included."""
    if 0 in looks["shape"]:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(looks["shape"], looks["strides"]))


def memory(tensor, looks):
    """The tensor's elements as an array that shares its memory."""
    kind = np.dtype(BITS[looks["dtype"]])
    count = span(looks)
    if not count:
        return np.empty(looks["shape"], kind)
    raw = (ctypes.c_char * (count * kind.itemsize)).from_address(tensor.data_ptr())
    flat = np.frombuffer(raw, kind)
    return np.lib.stride_tricks.as_strided(flat, looks["shape"], [s * kind.itemsize for s in looks["strides"]])


def covers(array, other):
    """Whether the memory of one array holds that of another."""
    (first, last), (start, end) = map(np.lib.array_utils.byte_bounds, (array, other))
    return first <= start and end <= last


def numbers(array, dtype):
    """The elements as numbers NumPy can compute with."""
    if dtype == "bfloat16":
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype in ("float16", "float32"):
        return array.astype(np.float64)
    if dtype == "complex32":
        whole = np.empty(array.shape, np.complex128)
        whole.real, whole.imag = ((array >> shift & 0xFFFF).astype(np.uint16).view(np.float16) for shift in (0, 16))
        return whole
    return array.astype(np.complex128) if dtype == "complex64" else array


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


class Lockstep:
    """A program under way on each of `libraries`; the first one leads."""

    def __init__(self, libraries):
        self.sides = [Side(library) for library in libraries]
        self.begin()

    def begin(self):
        for side in self.sides:
            side.begin()
        self.steps = []
        self.replaced = self.storage_written = False

    @property
    def lead(self):
        return self.sides[0]

    def step(self, text, compare=True, between=lambda who: None):
        """Run one step on all sides. Returns how they differ after it, or None."""
        self.steps.append(text)
        self.replaced |= bool(REPLACED.search(text))
        self.storage_written |= bool(STORAGE_WRITTEN.search(text))
        code = compile(text, "<step>", "exec")
        # The last side first: its crash is the one that is looked for.
        for side in reversed(self.sides):
            between(side.t.__name__)
            side.run(code)
        for side in self.sides:
            if side.error and (
                side.error[0] in ("SystemError", "MemoryError", "RecursionError") or "has a bug" in side.error[1]
            ):
                return f"{side.t.__name__} raised {side.error[0]}: {side.error[1]}"
        why = None
        if len(self.sides) > 1:
            if compare:
                why = self.difference()
            else:
                self.settle_versions()
        self.storage_written &= not compare
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
        unequal = []
        for name, tensor in theirs.items():
            mine = ours[name]
            expected, got = lead.looks(tensor), other.looks(mine)
            if self.counted_apart(expected["version"], got["version"], tensor, mine, theirs.values()):
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
            if size and size + tensor.storage_offset() * tensor.element_size() > tensor.untyped_storage().nbytes():
                continue  # its memory was cut off
            if size and ctypes.string_at(tensor.data_ptr(), size) != ctypes.string_at(mine.data_ptr(), size):
                unequal.append((name, memory(tensor, expected), memory(mine, got), expected["dtype"]))
        if lead.sharing(theirs) != other.sharing(ours):
            expected, got = lead.sharing(theirs), other.sharing(ours)
            return "; ".join(
                f"{name} shares the memory of {got[name]} instead of {expected[name]}"
                for name in expected
                if expected[name] != got[name]
            )
        shared = lead.sharing(theirs)
        rounded = {shared[name] for name, _, _, dtype in unequal if dtype in EPSILON}
        wrong = {}
        for name, expected, got, dtype in unequal:
            if dtype not in EPSILON and shared[name] in rounded:
                continue  # the bits of fractions that are compared as such
            if why := self.elements(name, expected, got, dtype):
                wrong[name] = why
        for name, array, _, dtype in unequal:
            # Bits of fractions of another dtype, which agree as such (two nans of different signs, say), are excused.
            if name in wrong and not any(
                other not in wrong and kind != dtype and kind in EPSILON and covers(bits, array)
                for other, bits, _, kind in unequal
            ):
                return wrong[name]
        for _, expected, got, _ in unequal:
            got[...] = expected
        return self.other_names() or self.diaries()

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
            wrong &= ~self.within_condition(name, theirs, ours, dtype)
            if not wrong.any():
                return None
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        return f"{name}: {ours[where]} instead of {theirs[where]} at {list(where)} of {expected.shape} {dtype}"

    def within_condition(self, name, theirs, ours, dtype):
        """Where the difference is no larger than what units in the last place of every intermediate result make of
        it, or where the other library comes as near to the result in double precision as the leading one.

        The program runs again on the leading library alone, with each new floating-point number moved up or down, then
        with every dtype of fractions widened.
        """
        spread = np.zeros(theirs.shape)
        unsure = np.zeros(theirs.shape, bool)
        for seed in range(RERUNS):
            moved = rerun_with_noise(self.lead.t, self.steps, name, random.Random(seed))
            if moved is None or moved.shape != theirs.shape:
                continue
            with np.errstate(all="ignore"):
                unsure |= np.isfinite(moved) != np.isfinite(theirs)
                distance = np.abs(moved - theirs)
                spread = np.fmax(spread, np.where(np.isfinite(distance), distance, 0))
        with np.errstate(all="ignore"):
            unsure |= np.isinf(ours) & (theirs != 0) & (spread >= np.abs(theirs))  # no digit is sure, nor the sign
            near = unsure | (np.abs(theirs - ours) <= UNITS / MOVED * spread)
            exact = None if dtype in DOUBLE or near.all() else rerun_in_double(self.lead.t, self.steps, name)
            if exact is not None and exact.shape == theirs.shape:
                fault = np.abs(theirs - exact)
                # PyTorch's own result is right to some units of one: it is the same program.
                same_program = fault <= 8 * UNITS * EPSILON[dtype] * np.maximum(1, np.abs(exact))
                near |= same_program & (np.abs(ours - exact) <= UNITS * fault)
            return near

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
            if not same(expected, got):
                return f"said {got} instead of {expected}"[:600] + apart(expected, got)
        if len(lead.diary) != len(other.diary):
            longer = max(lead, other, key=lambda side: len(side.diary))
            return f"only {longer.t.__name__} said {longer.diary[min(len(lead.diary), len(other.diary))]}"[:600]
        lead.diary.clear()
        other.diary.clear()
        return None


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


def rerun_with_noise(library, steps, name, rng):
    """The elements that variable `name` ends with when each new number on the way is moved by some units in the last
    place.
    """
    side = Side(library)
    known = {}
    for text in steps:
        side.run(compile(text, "<step>", "exec"))
        if text is steps[-1]:
            break
        for variable, tensor in side.tensors().items():
            version = 0 if tensor.is_inference() else tensor._version
            if known.get(variable, (None, None))[0] is tensor and known[variable][1] == version:
                continue
            known[variable] = (tensor, version)
            looks = side.looks(tensor)
            if looks["dtype"] in EPSILON and not variable.endswith(".grad"):
                move_last_place(memory(tensor, looks), looks["dtype"], rng)
    tensor = side.tensors().get(name)
    if tensor is None:
        return None
    looks = side.looks(tensor)
    return numbers(memory(tensor, looks).copy(), looks["dtype"])


def rerun_in_double(library, steps, name):
    """The elements that variable `name` ends with when every fraction of the program is a double."""
    side = Side(library)
    library.set_default_dtype(library.float64)
    for text in steps:
        wide = NARROW.sub(lambda m: "double()" if m[0].endswith(")") else "complex128" if m[1] else "float64", text)
        wide = BYTES.sub(lambda m: f"{m[1]}{4 * int(m[2])}", wide)
        side.run(compile(wide, "<step>", "exec"))
    library.set_default_dtype(library.float32)
    tensor = side.tensors().get(name)
    if tensor is None:
        return None
    looks = side.looks(tensor)
    return numbers(memory(tensor, looks).copy(), looks["dtype"]) if looks["dtype"] in DOUBLE else None


def move_last_place(array, dtype, rng):
    if 0 in array.strides and array.size > 1:
        array = array[tuple(slice(0, 1) if s == 0 else slice(None) for s in array.strides)]
    signs = np.array([rng.choice((-MOVED, MOVED)) for _ in range(array.size)], float).reshape(array.shape)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if dtype == "complex32":
            return
        if dtype == "bfloat16":
            array[...] = np.where((array & 0x7FFF) == 0, array, array + signs.astype(np.int16).astype(np.uint16))
        else:
            array[...] = array * (1 + signs.astype(array.real.dtype) * EPSILON[dtype])
