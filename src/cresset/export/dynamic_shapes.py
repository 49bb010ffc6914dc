"""Which dimensions of the inputs are free: Dim, and how dynamic_shapes says it."""

import dataclasses
import enum
import keyword
from typing import Any

import cresset

from ..graph.recordings import Free
from ..pytree import tree_flatten_with_path, tree_map_with_path

__all__ = [
    "AdditionalInputs",
    "Constraint",
    "Dim",
    "ShapesCollection",
    "dims",
    "refine_dynamic_shapes_from_suggested_fixes",
]

MOST = 2**63 - 1


class _Hint(enum.Enum):
    AUTO = enum.auto()
    STATIC = enum.auto()
    DYNAMIC = enum.auto()


@dataclasses.dataclass(frozen=True)
class _DimHint:
    """A dimension without a name: AUTO may be free, DYNAMIC is free, STATIC is not. Called with min and max it has that
    range.
    """

    type: _Hint
    min: int | None = None
    max: int | None = None

    def __call__(self, min=None, max=None):
        if self.type is _Hint.STATIC:
            raise AssertionError("Dim.STATIC takes no range")
        _check_range(self.type.name, min, max)
        return _DimHint(self.type, min, max)

    def __repr__(self):
        limits = [f"{name}={value}" for name, value in (("min", self.min), ("max", self.max)) if value is not None]
        return f"Dim.{self.type.name}" + (f"({', '.join(limits)})" if limits else "")


def _check_range(name, low, high):
    if low is not None and low < 0:
        raise AssertionError(f"Dim: the least size of {name} is {low}, which is negative")
    if high is not None and high < (low or 0):
        raise AssertionError(f"Cannot create Dim with inconsistent min={low or 0}, max={high}")


class Dim:
    """A dimension whose size is free. The same Dim in two places means the same size; `2 * dim` and `dim + 1` follow
    it.

    Args:
        name: how messages and graphs call it.
        min, max: the sizes it may have.

    >>> batch = cresset.export.Dim("batch", min=2, max=64)
    >>> batch, 2 * batch + 1
    (Dim('batch', min=2, max=64), 2*batch + 1)
    """

    AUTO, STATIC, DYNAMIC = _DimHint(_Hint.AUTO), _DimHint(_Hint.STATIC), _DimHint(_Hint.DYNAMIC)

    def __init__(self, name, *, min=None, max=None):
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        _check_range(name, min, max)
        self.__name__, self.min, self.max = name, 0 if min is None else min, MOST if max is None else max

    root: Any = property(lambda self: self)
    factor: Any = 1
    offset: Any = 0

    def _derived(self, factor, offset):
        return _DerivedDim(self.root, factor, offset)

    def __add__(self, other):
        return self._derived(self.factor, self.offset + _whole(other, "+"))

    def __sub__(self, other):
        return self._derived(self.factor, self.offset - _whole(other, "-"))

    def __mul__(self, other):
        if _whole(other, "*") <= 0:
            raise NotImplementedError(f"Attempted to multiply {self!r} by {other}; only positive integers are allowed")
        return self._derived(self.factor * other, self.offset * other)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other):
        raise NotImplementedError(f"Attempted to negate {self.__name__}. The derived dim must be increasing.")

    def __repr__(self):
        limits = [f"min={self.min}"] * (self.min != 0) + [f"max={self.max}"] * (self.max != MOST)
        return f"Dim({', '.join([repr(self.__name__), *limits])})"


def _whole(other, sign):
    if not isinstance(other, int) or isinstance(other, bool):
        raise NotImplementedError(f"Dim: cannot compute with `{sign}` and {other!r}; only whole numbers are possible")
    return other


class _DerivedDim(Dim):
    """factor * root + offset."""

    root = factor = offset = None

    def __init__(self, root, factor, offset):
        self.root, self.factor, self.offset = root, factor, offset
        product = root.__name__ if factor == 1 else f"{factor}*{root.__name__}"
        self.__name__ = product + (f" + {offset}" if offset > 0 else f" - {-offset}" if offset < 0 else "")
        self.min = factor * root.min + offset
        self.max = MOST if root.max == MOST else factor * root.max + offset

    def __repr__(self):
        return self.__name__


def dims(*names, min=None, max=None):
    """Several Dims with the same range.

    >>> height, width = cresset.export.dims("height", "width", max=512)
    """
    return tuple(Dim(name, min=min, max=max) for name in names)


@dataclasses.dataclass(frozen=True)
class Constraint:
    """The range of one dimension of one input."""

    name: str
    dim: int
    min: int
    max: int


class ShapesCollection:
    """Free dimensions by tensor: `shapes[x] = {0: batch}`, turned into dynamic_shapes by `dynamic_shapes(module,
    args)`.

    >>> x, shapes = cresset.ones(4, 3), cresset.export.ShapesCollection()
    >>> shapes[x] = {0: cresset.export.Dim.AUTO}
    >>> shapes.dynamic_shapes(nn.Linear(3, 1), (x,))
    {'input': {0: Dim.AUTO}}
    """

    def __init__(self):
        self._shapes = {}

    def __setitem__(self, tensor, shape):
        if not isinstance(tensor, (cresset.Tensor, int)):
            raise AssertionError(f"Cannot assign shape to non-tensor type {type(tensor)}")
        known = self._shapes.get(id(tensor))
        if known is not None and known[1] != shape:
            raise AssertionError(f"Shapes assigned to input is a dynamic size that disagrees: {known[1]} and {shape}")
        self._shapes[id(tensor)] = (tensor, shape)

    def __getitem__(self, tensor):
        if id(tensor) not in self._shapes:
            self._shapes[id(tensor)] = (tensor, {})
        return self._shapes[id(tensor)][1]

    def __len__(self):
        return len(self._shapes)

    def dynamic_shapes(self, m, args, kwargs=None):
        """The free dimensions in the structure of the arguments."""
        bound = bind(m, args, kwargs or {})
        found = set()

        def shape_of(path, leaf):
            if id(leaf) in self._shapes:
                found.add(id(leaf))
                return self._shapes[id(leaf)][1]
            return None

        result = tree_map_with_path(shape_of, bound)
        if len(found) != len(self._shapes):
            raise ValueError("Some tensors that were assigned shapes were not found in args")
        return result


class AdditionalInputs:
    """Further example inputs: dimensions whose sizes differ among them are free.

    >>> more = cresset.export.AdditionalInputs()
    >>> more.add((cresset.ones(7, 3),))
    >>> more.dynamic_shapes(nn.Linear(3, 1), (cresset.ones(4, 3),))
    {'input': (Dim.DYNAMIC, None)}
    """

    def __init__(self):
        self._examples = []

    def add(self, args, kwargs=None):
        """Another example."""
        if not isinstance(args, tuple):
            raise AssertionError(f"Representative args {args} must be a tuple")
        self._examples.append((args, kwargs or {}))

    def dynamic_shapes(self, m, args, kwargs=None):
        """The dimensions that are not the same in all examples, in the structure of the arguments."""
        leaves, spec = tree_flatten_with_path(bind(m, args, kwargs or {}))
        others = [[leaf for _, leaf in tree_flatten_with_path(bind(m, *example))[0]] for example in self._examples]

        def shape_of(k, leaf):
            if not isinstance(leaf, cresset.Tensor):
                return None
            return tuple(
                Dim.DYNAMIC if any(other[k].shape[axis] != size for other in others) else None
                for axis, size in enumerate(leaf.shape)
            )

        return spec.unflatten([shape_of(k, leaf) for k, (_, leaf) in enumerate(leaves)])

    def verify(self, ep):
        """Run the program on all examples."""
        module = ep.module()
        for args, kwargs in self._examples:
            module(*args, **kwargs)


def bind(module, args, kwargs):
    """The arguments by the names of the module's parameters."""
    import inspect

    function = module.forward if isinstance(module, cresset.nn.Module) else module
    bound = inspect.signature(function).bind(*args, **kwargs).arguments
    return dict(bound)


def refine_dynamic_shapes_from_suggested_fixes(msg, dynamic_shapes):
    """PyTorch's export suggests new shapes in the text of an error; this one names the dimension instead, so there is
    nothing to read.
    """
    raise NotImplementedError(
        "refine_dynamic_shapes_from_suggested_fixes: errors of export name the dimension that cannot be free; there "
        "are no suggested fixes to read"
    )


# ---- reading dynamic_shapes


class AutoFree(Free):
    """A dimension that is fixed if the program does not run with other sizes."""


def read(inputs, shapes):
    """{(input name, axis): Free} and {symbol: (min, max)} of what dynamic_shapes says for the `Inputs` of a
    recording."""
    free, ranges = {}, {}
    if not shapes:
        return free, ranges
    if isinstance(shapes, (ShapesCollection, AdditionalInputs)):
        raise ValueError("export: give shapes.dynamic_shapes(module, args), or the object itself to export()")
    if isinstance(shapes, (tuple, list)):
        if len(shapes) != len(inputs.bound):
            raise ValueError(
                f"export: dynamic_shapes has {len(shapes)} entries for {len(inputs.bound)} arguments: "
                f"{list(inputs.bound)}"
            )
        shapes = dict(zip(inputs.bound, shapes, strict=True))
    unknown = [name for name in shapes if name not in inputs.bound]
    missing = [name for name in inputs.bound if name not in shapes]
    if unknown or missing:
        raise ValueError(
            "export: When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names of "
            "`inputs`: "
            f"{list(inputs.bound)}, but here they are {list(shapes)}. Since here `inputs` is a dict of these names, "
            "give None for what is not free"
        )
    position = 0
    for name, value in inputs.bound.items():
        for tensor, spec in _pairs(value, shapes[name], name):
            if tensor is None:
                continue
            input_name = inputs.names[position]
            for axis, dimension in _axes(tensor, spec, input_name):
                found = _free(dimension, input_name, axis, tensor.shape[axis])
                if found is not None:
                    free[input_name, axis] = found[0]
                    low, high = ranges.get(found[0].symbol, (0, MOST))
                    ranges[found[0].symbol] = (max(low, found[1]), min(high, found[2]))
            position += 1
    return free, ranges


def _pairs(value, spec, where):
    """Each leaf of an argument with what is said of it."""
    if isinstance(value, cresset.Tensor):
        if spec is not None and not isinstance(spec, (dict, tuple, list)):
            raise ValueError(
                f"export: Unexpected dynamic_shape {spec!r} of Tensor {where}; give a dict, a tuple or None"
            )
        yield value, spec
    elif isinstance(value, dict):
        if spec is not None and set(spec) - set(value):
            raise ValueError(
                f"export: dynamic_shapes[{where!r}] names {sorted(set(spec) - set(value))}, which the input does not "
                f"have: {list(value)}"
            )
        for key, item in value.items():
            yield from _pairs(item, None if spec is None else spec.get(key), f"{where}[{key!r}]")
    elif isinstance(value, (tuple, list)):
        if spec is not None and (not isinstance(spec, (tuple, list)) or len(spec) != len(value)):
            raise ValueError(f"export: dynamic_shapes[{where!r}] is {spec!r}, but the input has {len(value)} items")
        for k, item in enumerate(value):
            yield from _pairs(item, None if spec is None else spec[k], f"{where}[{k}]")
    else:
        from ..pytree import tree_leaves

        if isinstance(value, (int, float, bool, str)) or value is None:
            if spec is not None:
                raise ValueError(
                    f"export: Expected dynamic_shapes for {where}, which is no tensor, to be None, got {spec!r}"
                )
            return
        for leaf in tree_leaves(value):
            yield (leaf if isinstance(leaf, cresset.Tensor) else None), None


def _axes(tensor, spec, name):
    if spec is None:
        return
    if isinstance(spec, dict):
        for axis, dimension in spec.items():
            if not isinstance(axis, int) or not -tensor.ndim <= axis < tensor.ndim:
                raise ValueError(
                    f"export: dynamic_shapes names dimension {axis} of {name!r}, which has {tensor.ndim} dimensions"
                )
            yield axis % tensor.ndim, dimension
        return
    if len(spec) != tensor.ndim:
        raise ValueError(
            f"export: Expected dynamic shape spec of {name!r} to have the same length as the tensor has dimensions, "
            f"{tensor.ndim}, but got {len(spec)}"
        )
    yield from enumerate(spec)


def _free(dimension, name, axis, size):
    """(Free, min, max), or None for a dimension that is fixed."""
    if dimension is None or (isinstance(dimension, _DimHint) and dimension.type is _Hint.STATIC):
        return None
    if isinstance(dimension, bool) or not isinstance(dimension, (int, str, Dim, _DimHint)):
        raise ValueError(
            f"export: Unexpected dimension {dimension!r} in dynamic_shapes of {name!r}, dimension {axis}; try a Dim, "
            "an int or None"
        )
    if isinstance(dimension, int):
        if dimension != size:
            raise ValueError(
                f"export: Static shape constraint of {dimension} does not match the input's size {size}, in dimension "
                f"{axis} of {name!r}"
            )
        return None
    if isinstance(dimension, str):
        dimension = Dim(dimension)
    if isinstance(dimension, _DimHint):
        low, high = dimension.min or 0, MOST if dimension.max is None else dimension.max
        if dimension.type is _Hint.AUTO and size in (0, 1):
            return None
        return (AutoFree if dimension.type is _Hint.AUTO else Free)(f"{name}_dim_{axis}"), low, high
    if not dimension.min <= size <= dimension.max:
        raise ValueError(
            f"export: {name!r} has size {size} in dimension {axis}, which is not in the range [{dimension.min}, "
            f"{dimension.max}] of {dimension!r}"
        )
    rest = size - dimension.offset
    if rest % dimension.factor:
        raise ValueError(f"export: {name!r} has size {size} in dimension {axis}, which is no {dimension!r}")
    root = dimension.root
    return Free(root.__name__, dimension.factor, dimension.offset), root.min, root.max
