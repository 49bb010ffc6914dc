"""What an expression may mean besides a graph's Value: Python objects, things that can be called, things to loop
over."""

from ...graph import types
from ...graph.graph import Value
from .matching import match_operator


class Sugar:
    """A meaning that is no value yet."""

    what = "an object"


class Py(Sugar):
    """A Python object: a module, function, class or constant. `constant`: read from a module or class, so that numbers
    may be taken from it.
    """

    what = "a Python object"

    def __init__(self, object, constant=False):
        self.object, self.constant = object, constant


class Method(Sugar):
    """A method of a value, not called yet."""

    what = "a method"

    def __init__(self, value, name):
        self.value, self.name = value, name


class Operator(Sugar):
    """An operator by its kind, `aten::add`, with arguments that come first."""

    what = "an operator"

    def __init__(self, kind, first=(), named=None):
        self.kind, self.first, self.named = kind, tuple(first), named or {}


class Compiled(Sugar):
    """A compiled function."""

    what = "a function"

    def __init__(self, function):
        self.function = function


class ClassMaker(Sugar):
    """A class, to be called."""

    what = "a class"

    def __init__(self, type):
        self.type = type


class Special(Sugar):
    """What an emitter's method writes when it is called."""

    what = "a function"

    def __init__(self, write):
        self.write = write


class Several(Sugar):
    """A tuple of meanings, as enumerate gives for a list of modules."""

    what = "a tuple"

    def __init__(self, items):
        self.items = list(items)


class Bounds(Sugar):
    """What `slice(start, stop, step)` gives: three values."""

    what = "a slice"

    def __init__(self, start, stop, step):
        self.parts = (start, stop, step)


class Raised(Sugar):
    """An exception, to be raised."""

    what = "an exception"

    def __init__(self, name, message):
        self.name, self.message = name, message


class Closure(Sugar):
    """A function inside of a function without parameters, as archives have for fork."""

    what = "a nested function"

    def __init__(self, tree):
        self.tree = tree


class Super(Sugar):
    """`super()`: methods of the class above."""

    what = "super()"

    def __init__(self, value, python_class):
        self.value, self.python_class = value, python_class


# ---- things to loop over


class Iteration(Sugar):
    """Something with items. `count` is known beforehand (the loop is unrolled), or None: then `length` writes it."""

    what = "something to loop over"
    count = None

    def length(self, emitter, place):
        raise NotImplementedError

    def item(self, emitter, index, place):
        """The item at `index`: a number if `count` is known, else a Value."""
        raise NotImplementedError


class Static(Iteration):
    """Items that are known beforehand: submodules, a tuple's items."""

    def __init__(self, items):
        self.items, self.count = list(items), len(items)

    def item(self, emitter, index, place):
        return self.items[index]


class Indexed(Iteration):
    """A list, text or tensor."""

    def __init__(self, value):
        self.value = value

    def length(self, emitter, place):
        return match_operator(emitter, "aten::len", [self.value], {}, place)

    def item(self, emitter, index, place):
        index = emitter.constant(index) if isinstance(index, int) else index
        if isinstance(self.value.type(), types.TensorType):
            return match_operator(emitter, "aten::select", [self.value, emitter.constant(0), index], {}, place)
        return match_operator(emitter, "aten::__getitem__", [self.value, index], {}, place)


class Range(Iteration):
    """range(start, stop, step)."""

    def __init__(self, start, stop, step):
        self.start, self.stop, self.step = start, stop, step

    def length(self, emitter, place):
        if self.start is None:
            return self.stop
        step = self.step if self.step is not None else emitter.constant(1)
        return match_operator(emitter, "aten::__range_length", [self.start, self.stop, step], {}, place)

    def item(self, emitter, index, place):
        index = emitter.constant(index) if isinstance(index, int) else index
        if self.start is None:
            return index
        step = self.step if self.step is not None else emitter.constant(1)
        return match_operator(emitter, "aten::__derive_index", [index, self.start, step], {}, place)


class Counted(Iteration):
    """enumerate(inner, start)."""

    def __init__(self, inner, start):
        self.inner, self.start, self.count = inner, start, inner.count

    def length(self, emitter, place):
        return self.inner.length(emitter, place)

    def item(self, emitter, index, place):
        number = emitter.constant(index) if isinstance(index, int) else index
        if self.start is not None:
            number = match_operator(emitter, "aten::add", [number, self.start], {}, place)
        return Several([number, self.inner.item(emitter, index, place)])


class Zipped(Iteration):
    """zip(...). One part that is known beforehand unrolls all."""

    def __init__(self, parts):
        self.parts = parts
        counts = [part.count for part in parts if part.count is not None]
        self.count = min(counts) if counts else None

    def length(self, emitter, place):
        lengths = [part.length(emitter, place) for part in self.parts]
        if len(lengths) == 1:
            return lengths[0]
        packed = emitter.graph.insert("prim::ListConstruct", lengths, [types.ListType(types.IntType())]).output()
        return match_operator(emitter, "prim::min", [packed], {}, place)

    def item(self, emitter, index, place):
        return Several([part.item(emitter, index, place) for part in self.parts])


def is_value(meaning):
    return isinstance(meaning, Value)


class Variable:
    """What a name means here. `declared`: the type that an annotation gave it. `root`: the variable of which a
    condition told more.
    """

    __slots__ = ("declared", "meaning", "root")

    def __init__(self, meaning, declared=None, root=None):
        self.meaning, self.declared, self.root = meaning, declared, root or self

    @property
    def type(self):
        return self.declared or (self.meaning.type() if is_value(self.meaning) else None)
