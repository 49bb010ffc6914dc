"""Draws the next step of a random program, a line of Python, from what the variables of the program are by now.

A family of steps is a function with a weight that takes the `Maker` and returns the line, or None where nothing fits.
The families stand in steps_values.py, steps_memory.py and steps_autograd.py. Most steps make sense; a part asks for
what must be refused.
"""

import math

FLOATS = ["float32", "float32", "float32", "float64", "float64", "float16", "bfloat16"]
INTEGERS = ["int64", "int64", "int32", "int16", "int8", "uint8"]
COMPLEX = ["complex64", "complex128"]
MOST_VARIABLES = 8
MOST_ELEMENTS = 300

FAMILIES = []  # (weight, function)


def family(weight):
    """Register a function from a Maker to a line of Python or None."""

    def register(function):
        FAMILIES.append((weight, function))
        return function

    return register


class Maker:
    """Makes lines for a program whose variables live in `side` (see lockstep.Side)."""

    def __init__(self, rng, side):
        self.rng, self.side, self.t = rng, side, side.t
        self.count = 0
        self.weights = [weight for weight, _ in FAMILIES]
        self.functions = [function for _, function in FAMILIES]

    def line(self):
        """The next step."""
        names = self.all_names()
        if len(names) > MOST_VARIABLES and self.rng.random() < 0.7:
            return f"del {self.rng.choice(names)}"
        while True:
            if len(self.tensors()) < 2:
                return f"{self.new()} = {self.creation()}"
            (function,) = self.rng.choices(self.functions, self.weights)
            try:
                line = function(self)
            except RuntimeError:  # a view whose history cannot be told any more refuses even to be looked at
                continue
            if line is not None:
                return line

    # ---- names

    def new(self, letter="v"):
        self.count += 1
        return f"{letter}{self.count - 1}"

    def all_names(self):
        return [n for n in self.side.names if len(n) > 1 and n[0] in "vnmo" and n[1:].isdigit()]

    def named(self, letter):
        return [n for n in self.side.names if len(n) > 1 and n[0] == letter and n[1:].isdigit()]

    def tensors(self):
        return [n for n in self.named("v") if isinstance(self.side.names[n], self.t.Tensor)]

    def of(self, name):
        return self.side.names[name]

    # ---- drawing

    def chance(self, probability):
        return self.rng.random() < probability

    def pick(self, *values):
        return self.rng.choice(values)

    def tensor(self, fits=None):
        """The name of a tensor that fits, or None."""
        names = self.tensors()
        if fits is not None:
            names = [n for n in names if fits(self.of(n))]
        return self.rng.choice(names) if names else None

    def floating(self):
        """A tensor of fractions, or None."""
        return self.tensor(lambda x: x.is_floating_point() and x.numel() <= MOST_ELEMENTS)

    def small(self):
        return self.tensor(lambda x: x.numel() <= MOST_ELEMENTS)

    def dtype_name(self, tensor):
        return self.side.dtype(tensor)

    def dtype(self):
        kind = self.rng.random()
        return self.rng.choice(
            FLOATS if kind < 0.65 else INTEGERS if kind < 0.83 else ["bool"] if kind < 0.9 else COMPLEX
        )

    def shape(self):
        rank = self.rng.choice([0, 1, 1, 2, 2, 2, 2, 3, 3, 4])
        odd = self.chance(0.25)
        return tuple(self.rng.choice([0, 1, 1, 2, 3, 5] if odd else [2, 2, 3, 4]) for _ in range(rank))

    def dim(self, tensor, spoilt=0.02):
        rank = tensor.dim()
        if self.chance(spoilt):
            return self.pick(rank, -rank - 1, 7)
        return self.rng.randrange(-rank, rank) if rank else self.pick(0, -1)

    def number(self, dtype=None):
        """The text of a number, mostly one that the dtype can hold without rounding."""
        if dtype in INTEGERS and self.chance(0.8):
            return str(self.pick(0, 1, 2, 3, 5) if dtype == "uint8" else self.pick(0, 1, 2, 3, -1, -2, 5))
        if dtype == "bool" and self.chance(0.8):
            return self.pick("True", "False")
        if dtype in COMPLEX and self.chance(0.4):
            return self.pick("1j", "(1+2j)", "(-0.5-1j)")
        return self.pick("0", "1", "2", "-1", "3", "0.5", "-1.5", "2.0", "0.25", "True", "4", "-0.5")

    def creation(self, shape=None, dtype=None):
        """The text of a new tensor."""
        shape = self.shape() if shape is None else shape
        dtype = self.dtype() if dtype is None else dtype
        style = self.rng.random()
        if style < 0.65:
            made = f"values({shape}, '{dtype}', {self.rng.randrange(9)})"
        elif style < 0.75:
            word = self.pick("zeros", "ones")
            made = f"t.{word}({shape}, dtype=t.{dtype})"
        elif style < 0.8:
            made = f"t.full({shape}, {self.number(dtype)}, dtype=t.{dtype})"
        elif style < 0.88:
            count = math.prod(shape)
            made = (
                f"t.arange({count}).to(t.{dtype}).reshape({shape})"
                if count < 128
                else f"t.ones({shape}, dtype=t.{dtype})"
            )
        elif style < 0.93 and len(shape) >= 2:
            swapped = (*shape[:-2], shape[-1], shape[-2])
            made = f"values({swapped}, '{dtype}', {self.rng.randrange(9)}).transpose(-1, -2)"
        elif style < 0.96 and shape:
            made = f"values({(*shape[:-1], shape[-1] * 2)}, '{dtype}', {self.rng.randrange(9)})[..., ::2]"
        elif dtype in FLOATS:
            made = f"t.{self.pick('rand', 'randn')}({shape}, dtype=t.{dtype})"
        else:
            made = f"t.zeros({shape}, dtype=t.{dtype})"
        return made

    def partner(self, tensor, dtype=None):
        """The text of an operand that mostly broadcasts with `tensor`."""
        if self.chance(0.25):
            return self.number(self.dtype_name(tensor))
        if self.chance(0.6):
            shape = tuple(tensor.shape)
            name = self.tensor(lambda x: broadcasts(tuple(x.shape), shape))
            if name:
                return name
        if self.chance(0.05):
            return self.tensor()
        shape = list(tensor.shape)
        for d in range(len(shape)):
            if self.chance(0.15):
                shape[d] = 1
        if shape and self.chance(0.15):
            shape = shape[1:]
        if dtype is None:
            dtype = self.dtype() if self.chance(0.2) else self.dtype_name(tensor)
        return self.creation(tuple(shape), dtype)

    def fitting(self, shape, dtype=None):
        """The text of a tensor of this shape: one that there is, or a new one."""
        if self.chance(0.6):
            name = self.tensor(
                lambda x: tuple(x.shape) == tuple(shape) and (dtype is None or self.dtype_name(x) == dtype)
            )
            if name:
                return name
        return self.creation(tuple(shape), dtype)

    def result(self, text):
        """A line that gives the value of `text` a name: mostly a new one."""
        if self.chance(0.06):
            return f"{self.rng.choice(self.tensors())} = {text}"
        return f"{self.new()} = {text}"


def broadcasts(a, b):
    """Shapes that broadcast to something that is not large."""
    size = 1
    for i in range(1, max(len(a), len(b)) + 1):
        m, n = (a[-i] if i <= len(a) else 1), (b[-i] if i <= len(b) else 1)
        if m != n and m != 1 and n != 1:
            return False
        size *= n if m == 1 else m
    return size <= MOST_ELEMENTS


def is_small_number(tensor, bound=100):
    """All elements are ordinary numbers that every integer dtype holds."""
    if tensor.numel() == 0:
        return True
    plain = tensor.detach()
    if plain.is_complex():
        return False
    if plain.dtype.is_floating_point:
        return bool((plain.abs() < bound).all())
    return True
