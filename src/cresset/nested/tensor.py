"""NestedTensor: a batch of tensors that differ in size, in one packed tensor.

Packed: the components lie one after the other along the dimension in which they differ, the ragged one, and `offsets`
    says where each
begins. Components that differ in several dimensions (layout strided only) lie flat, with their shapes beside them.
"""

import itertools
import math

import cresset

from .. import _utils
from ..tensors.interpreted import InterpretedTensor, make
from .sizes import RaggedSize, number_of

rules = {}  # operator name -> rule


class NestedTensor(InterpretedTensor):
    """A batch of tensors of different sizes. Made by `cresset.nested.nested_tensor` and its relatives."""

    def __new__(cls, values, offsets, *, lengths=None, _ragged_idx=1, _metadata_cache=None):
        """A nested tensor of layout torch.jagged on packed `values`; `nested_tensor_from_jagged` checks its parts."""
        new = nested(values, cresset.jagged, offsets, _ragged_idx, lengths)
        new._metadata_cache.update(_metadata_cache or {})
        return new

    rules = rules
    kind = "nested"
    instead = "to_padded_tensor(0.0)"
    is_nested = True
    is_sparse = False

    @property
    def layout(self):
        return self._layout

    @property
    def _recorded(self):
        return self._packed

    def _with(self, recorded):
        new = nested(recorded, self._layout, self._offsets, self._ragged, self._lengths, self._shapes)
        if "_bounds" in self.__dict__:
            new.__dict__["_bounds"] = dict(self._bounds)
        return new

    def _become(self, other):
        for name in ("_packed", "_layout", "_offsets", "_ragged", "_lengths", "_shapes"):
            self.__dict__[name] = other.__dict__[name]

    @property
    def _base(self):
        return self.__dict__.get("_source")

    def _is_view(self):
        """Whether the values are those of another tensor, `_base`."""
        return self._base is not None

    def _seen_as(self, new):
        """Another nested tensor on the same values, which are this one's."""
        if new._packed is self._packed or new._packed._is_view():
            new.__dict__["_source"] = self if self._base is None else self._base
        return new

    def data_ptr(self):
        """Where the values begin, in the strided layout."""
        return super().data_ptr() if self._layout == cresset.jagged else self._packed.data_ptr()

    @property
    def is_flat(self):
        return self._shapes is not None

    # ---- sizes

    @property
    def shape(self):
        return self.size()

    @property
    def ndim(self):
        return self.dim()

    def dim(self):
        """The number of dimensions, the batch counted."""
        if self._shapes is not None:
            return 1 + (len(self._shapes[0]) if self._shapes else 0)
        return self._packed.dim() + 1

    def size(self, dim=None):
        """The sizes; that of the ragged dimension is a symbol. In the strided layout a dimension must be regular to
        have a size.
        """
        if dim is None:
            if self._layout == cresset.jagged:
                return tuple(self.size(d) for d in range(self.dim()))
            raise RuntimeError(
                "size: NestedTensorImpl doesn't support sizes: a nested tensor of the strided layout has none as a "
                "whole; ask for one dimension, size(0), or unbind() it"
            )
        rank = self.dim()
        if not -rank <= dim < rank:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})"
            )
        dim %= rank
        if dim == 0:
            return self._offsets.numel() - 1 if self._shapes is None else len(self._shapes)
        if self._layout == cresset.jagged:
            return RaggedSize(number_of(self._offsets)) if dim == self._ragged else self._packed.shape[dim - 1]
        sizes = {shape[dim - 1] for shape in component_shapes(self)}
        if len(sizes) != 1:
            raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
        return sizes.pop()

    def numel(self):
        """The number of elements of all components."""
        return (
            self._packed.numel() if self._lengths is None else sum(math.prod(shape) for shape in component_shapes(self))
        )

    nelement = numel

    def __len__(self):
        return self.size(0)

    def stride(self, dim=None):
        """The strides of the jagged layout: that of the batch is a symbol, the others are those of `values()`."""
        if self._layout != cresset.jagged:
            raise RuntimeError("stride: a nested tensor of the strided layout has no strides; its components have")
        if dim is not None:
            return self.stride()[dim]
        inner = self._packed.stride()
        return (RaggedSize(number_of(self._offsets), inner[self._ragged - 1]), *inner)

    @property
    def _size(self):
        return self.size()

    @property
    def _strides(self):
        return self.stride()

    def is_same_size(self, other):
        """Whether another nested tensor has components of the same shapes; if both are jagged, by the same offsets."""
        if not isinstance(other, NestedTensor):
            raise RuntimeError(
                "is_same_size: Expected both self and other to be nested tensors. Other is not nested. While Self is "
                "nested."
            )
        if self._layout == other._layout == cresset.jagged:
            return self.shape == other.shape
        return component_shapes(self) == component_shapes(other)

    def is_contiguous(self, memory_format=None):
        """Whether the components lie one after the other without gaps."""
        if memory_format not in (None, cresset.contiguous_format):
            raise RuntimeError(
                f"is_contiguous: a nested tensor has no memory format but torch.contiguous_format, got {memory_format}"
            )
        return self._lengths is None and self._packed.is_contiguous()

    def _nested_tensor_size(self):
        """The shapes of the components, a row for each."""
        return cresset.tensor([list(shape) for shape in component_shapes(self)], dtype=cresset.int64)

    def _nested_tensor_strides(self):
        """The strides of the components, a row for each."""
        return cresset.tensor([list(_stride_of(item)) for item in items(self)], dtype=cresset.int64)

    def _nested_tensor_storage_offsets(self):
        """Where the components begin in the memory of the values."""
        start = self._packed.storage_offset()
        return cresset.tensor([item.storage_offset() - start for item in items(self)], dtype=cresset.int64)

    # ---- parts

    def values(self):
        """The packed components: along the ragged dimension in the jagged layout, flat in the strided one."""
        if self._layout == cresset.jagged:
            return self._packed.view(self._packed.shape) if self._packed.requires_grad else self._packed
        return cresset.cat([item.reshape(-1) for item in items(self)]) if not self.is_flat else self._packed

    def offsets(self):
        """Where each component begins along the ragged dimension, and where the last ends."""
        self._only_jagged("offsets")
        return self._offsets

    def lengths(self):
        """The sizes of the ragged dimension when there are gaps between the components; else None."""
        self._only_jagged("lengths")
        return self._lengths

    def _only_jagged(self, name):
        if self._layout != cresset.jagged:
            raise AttributeError(
                f"{name}: only nested tensors of layout torch.jagged have them, this one is {self._layout}"
            )

    @property
    def _ragged_idx(self):
        return self._ragged

    @property
    def _values(self):
        """The packed components of the jagged layout, as `values()` gives them."""
        self._only_jagged("_values")
        return self._packed

    @property
    def _metadata_cache(self):
        """The bounds of the lengths, as far as they were given: `min_seqlen` and `max_seqlen`."""
        return self.__dict__.setdefault("_bounds", {})

    @property
    def _min_seqlen(self):
        """A lower bound of the lengths: that which was given, or the least."""
        return self._metadata_cache["min_seqlen"] if "min_seqlen" in self._metadata_cache else min(lengths_of(self))

    @property
    def _max_seqlen(self):
        """An upper bound of the lengths: that which was given, or the greatest."""
        return self._metadata_cache["max_seqlen"] if "max_seqlen" in self._metadata_cache else max(lengths_of(self))

    def _get_min_seqlen(self):
        return self._min_seqlen

    def _get_max_seqlen(self):
        return self._max_seqlen

    @property
    def _maybe_min_seqlen(self):
        return self._metadata_cache.get("min_seqlen")

    @property
    def _maybe_max_seqlen(self):
        return self._metadata_cache.get("max_seqlen")

    @property
    def _min_seqlen_tensor(self):
        return _size_holder(self._metadata_cache.get("min_seqlen"))

    @property
    def _max_seqlen_tensor(self):
        return _size_holder(self._metadata_cache.get("max_seqlen"))

    def unbind(self, dim=0):
        """The components."""
        if dim != 0:
            raise RuntimeError(
                f"unbind: NestedTensor can only be unbound along dimension 0, got dimension {dim} instead."
            )
        if self._shapes is None and not 1 <= self._ragged < self.dim():
            raise RuntimeError(f"unbind(): nested tensor ragged_idx out of bounds (should be >= 1), got {self._ragged}")
        if self._lengths is not None:
            ends, size = (self._offsets[:-1] + self._lengths).tolist(), self._packed.shape[self._ragged - 1]
            if any(end > size for end in ends):
                raise RuntimeError(
                    "unbind(): nested tensor offsets and lengths do not match ragged_idx dimension "
                    f"{self._ragged - 1}: {self._offsets.tolist()} and {self._lengths.tolist()} go beyond {size}"
                )
        return tuple(items(self))

    def __iter__(self):
        return iter(items(self))

    def __getitem__(self, index):
        first, *rest = index if isinstance(index, tuple) else (index,)
        if isinstance(first, int):
            n = self.size(0)
            if not -n <= first < n:
                raise IndexError(f"index {first} is out of bounds for dimension 0 with size {n}")
            item = items(self)[first]
            return item[tuple(rest)] if rest else item
        if first is Ellipsis or first == slice(None):
            chosen = [
                item[(...,) + tuple(rest) if first is Ellipsis else tuple(rest)] if rest else item
                for item in items(self)
            ]
            return from_items(chosen, self._layout)
        if isinstance(first, slice) and not rest:
            return from_items(list(items(self))[first], self._layout)
        raise RuntimeError(f"index: a nested tensor takes an integer or a range for its batch, got {first!r}")

    def __setitem__(self, index, value):
        first, *rest = index if isinstance(index, tuple) else (index,)
        if not isinstance(first, int):
            raise TypeError(
                f"Cannot assign to a nested tensor but for one component, by its number, got {first!r}; "
                f"call {self.instead} first"
            )
        n = self.size(0)
        if not -n <= first < n:
            raise IndexError(f"index {first} is out of bounds for dimension 0 with size {n}")
        component(self, first % n)[tuple(rest) or ...] = value

    def to_padded_tensor(self, padding, output_size=None):
        """A dense tensor in which all components have one size, filled up with `padding`."""
        return padded(self, padding, output_size)

    def to_dense(self, dtype=None, *, masked_grad=None):
        """Refused: say what to fill up with, by `to_padded_tensor`."""
        raise RuntimeError("to_dense: components differ in size; call to_padded_tensor(padding)")

    def detach(self):
        """The same components without history."""
        return self._with(self._packed.detach())

    def tolist(self):
        """The components as nested lists."""
        return [item.tolist() for item in items(self)]

    def item(self):
        """The only element as a Python number."""
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return items(self)[0].item()

    def __repr__(self, *, tensor_contents=None):
        history = (
            f", grad_fn=<{self.grad_fn.name()}>"
            if self.grad_fn is not None
            else ", requires_grad=True"
            if self.requires_grad
            else ""
        )
        if self._layout == cresset.jagged:
            sizes = ", ".join(str(n) for n in self.size())
            return f"NestedTensor(size=({sizes}), offsets={self._offsets}, contiguous={self.is_contiguous()}{history})"
        shown = ["  " + str(item.detach()).replace("\n", "\n  ") for item in items(self)]
        return "nested_tensor([\n" + ",\n".join(shown) + "\n]" + history + ")"

    def __deepcopy__(self, memo):
        import copy

        if id(self) not in memo:
            memo[id(self)] = self._with(copy.deepcopy(self._packed, memo))
            memo[id(self)]._copy_grad_given(self, memo)
        return memo[id(self)]

    def apply_(self, function):
        """Replace each element by function(element), in place; autograd does not see it."""
        self._packed.detach().apply_(function)
        return self

    def __reduce_ex__(self, protocol):
        parts = (self._packed, self._layout, self._offsets, self._ragged, self._lengths, self._shapes)
        return _utils._rebuild_nested_tensor, (*parts, dict(self._metadata_cache))


def _stride_of(item):
    """The strides of a component; one that has no gaps says nothing of what lies around it."""
    return cresset.empty(item.shape, device="meta").stride() if item.is_contiguous() else item.stride()


def _size_holder(bound):
    """A number as the size of a tensor without elements, which is how PyTorch keeps it; None stays None."""
    return None if bound is None else cresset.empty(bound, 0)


def nested(packed, layout, offsets=None, ragged=1, lengths=None, shapes=None):
    """A nested tensor of parts that are known to fit."""
    rank = packed.dim() + 1 if shapes is None else 1 + (len(shapes[0]) if shapes else 0)
    new = make(NestedTensor, (1,) * rank, packed.dtype, packed.device)
    new._packed, new._layout, new._offsets, new._ragged, new._lengths, new._shapes = (
        packed,
        layout,
        offsets,
        ragged,
        lengths,
        shapes,
    )
    return new


def rebuild_nested(packed, layout, offsets, ragged, lengths, shapes, bounds):
    """The inverse of pickling; what the file says is checked."""
    if shapes is not None:
        shapes = [tuple(int(n) for n in shape) for shape in shapes]
        fits = sum(map(math.prod, shapes)) == packed.numel() and all(min(s, default=0) >= 0 for s in shapes)
        if packed.dim() != 1 or not fits:
            raise RuntimeError(f"nested tensor: components of shapes {shapes} do not fit {packed.numel()} elements")
        return nested(packed, layout, shapes=shapes)
    if not 1 <= ragged <= packed.dim() or offsets.dim() != 1:
        raise RuntimeError(f"nested tensor: dimension {ragged} of values of {packed.dim()} dimensions cannot be ragged")
    begins = offsets.tolist()
    sizes = [b - a for a, b in itertools.pairwise(begins)] if lengths is None else lengths.tolist()
    if len(sizes) != len(begins) - 1 or any(
        not 0 <= a <= a + n <= packed.shape[ragged - 1] for a, n in zip(begins, sizes, strict=False)
    ):
        raise RuntimeError(f"nested tensor: offsets {begins} do not fit {packed.shape[ragged - 1]} values")
    new = nested(packed, layout, offsets, ragged, lengths)
    new._metadata_cache.update(bounds)
    return new


def from_buffer(buffer, sizes, strides, offsets):
    """A nested tensor of the strided layout whose components lie anywhere in the elements of one tensor."""
    rows = zip(sizes.tolist(), strides.tolist(), offsets.tolist(), strict=True)
    return from_items([buffer.as_strided(size, stride, start) for size, stride, start in rows], cresset.strided)


def lengths_of(tensor):
    """The ragged size of each component, as Python numbers."""
    if tensor._lengths is not None:
        return tensor._lengths.tolist()
    return (tensor._offsets[1:] - tensor._offsets[:-1]).tolist()


def component_shapes(tensor):
    """The shape of each component."""
    if tensor._shapes is not None:
        return tensor._shapes
    before, after = tensor._packed.shape[: tensor._ragged - 1], tensor._packed.shape[tensor._ragged :]
    return [(*before, n, *after) for n in lengths_of(tensor)]


def component(tensor, place):
    """One component as a view of its own, which may be written to while gradients are recorded."""
    if tensor._shapes is not None:
        sizes = [math.prod(shape) for shape in tensor._shapes]
        return tensor._packed.narrow(0, sum(sizes[:place]), sizes[place]).view(tensor._shapes[place])
    return tensor._packed.narrow(tensor._ragged - 1, int(tensor._offsets[place]), lengths_of(tensor)[place])


def items(tensor):
    """The components, which belong to the graph of the packed values."""
    if tensor._shapes is not None:
        parts = tensor._packed.split([math.prod(shape) for shape in tensor._shapes])
        return tuple(part.reshape(shape) for part, shape in zip(parts, tensor._shapes, strict=True))
    dim = tensor._ragged - 1
    if tensor._lengths is None:
        return tensor._packed.split(lengths_of(tensor), dim) if tensor._offsets.numel() > 1 else ()
    starts = tensor._offsets.tolist()[: tensor._lengths.numel()]
    return tuple(tensor._packed.narrow(dim, start, n) for start, n in zip(starts, lengths_of(tensor), strict=True))


def from_items(tensors, layout, ragged=None):
    """A nested tensor of components. With one dimension in which they differ they are packed along it."""
    tensors = list(tensors)
    if not tensors:
        if layout == cresset.jagged:
            raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
        return nested(cresset.empty(0), layout, shapes=[])
    first = tensors[0]
    for place, item in enumerate(tensors):
        if item.dim() != first.dim():
            if layout == cresset.jagged:
                raise RuntimeError(
                    "When constructing a nested tensor, all tensors in list must have the same dim, got "
                    f"{first.dim()} and {item.dim()}"
                )
            raise RuntimeError(
                f"All Tensors given to nested_tensor must have the same dimension. Found dimension {item.dim()} for "
                f"Tensor at index {place} "
                f"and dimension {tensors[place - 1].dim()} for Tensor at index {place - 1}."
            )
    if layout == cresset.jagged and first.dim() == 0:
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")
    differ = [d for d in range(first.dim()) if len({item.shape[d] for item in tensors}) > 1]
    if first.dim() == 0 or len(differ) > 1:
        if layout == cresset.jagged:
            raise RuntimeError(
                "Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the jagged "
                "layout only allows for a "
                "single ragged dimension, (B, *, D_0, ..., D_N). The components have shapes "
                f"{[tuple(item.shape) for item in tensors]}."
            )
        return nested(
            cresset.cat([item.reshape(-1) for item in tensors]), layout, shapes=[tuple(item.shape) for item in tensors]
        )
    dim = differ[0] if differ else (ragged or 1) - 1
    lengths = [item.shape[dim] for item in tensors]
    offsets = cresset.tensor([0, *itertools.accumulate(lengths)], dtype=cresset.int64)
    new = nested(cresset.cat(tensors, dim), layout, offsets, dim + 1)
    if layout == cresset.jagged:
        new.__dict__["_source"] = new._packed
        new._metadata_cache.update(min_seqlen=min(lengths), max_seqlen=max(lengths))
    return new


def padded(tensor, padding, output_size=None):
    """All components in one dense tensor, filled up with `padding`."""
    shapes = component_shapes(tensor)
    if not shapes:
        return cresset.empty(output_size or (0,), dtype=tensor.dtype)
    size = [len(shapes), *(max(shape[d] for shape in shapes) for d in range(len(shapes[0])))]
    if output_size is not None:
        output_size = [n if wanted in (-1, None) else wanted for n, wanted in zip(size, output_size, strict=False)]
        if len(output_size) != len(size) or any(have > want for have, want in zip(size, output_size, strict=True)):
            raise RuntimeError(
                "to_padded_tensor: Value in output_size is less than NestedTensor padded size. Truncation is not "
                f"supported: {output_size} for {size}"
            )
        size = output_size
    if tensor._layout == cresset.strided and not any(map(math.prod, shapes)):
        raise RuntimeError("to_padded_tensor: at least one constituent tensor should have non-zero numel")
    filled = cresset.full(size, padding, dtype=tensor.dtype, device=tensor.device)
    if tensor._shapes is None and tensor._ragged == 1 and tensor._lengths is None:
        lengths = tensor._offsets[1:] - tensor._offsets[:-1]
        which = cresset.arange(len(shapes)).repeat_interleave(lengths)
        place = cresset.arange(which.numel()) - tensor._offsets[:-1][which]
        inner = tuple(slice(n) for n in tensor._packed.shape[1:])
        if all(s == slice(n) for s, n in zip(inner, size[2:], strict=True)):
            return filled.index_put((which, place), tensor._packed)
    rows = []
    for item in items(tensor):
        spread = [(0, n - have) for n, have in zip(size[1:], item.shape, strict=True)]
        rows.append(cresset.constant_pad_nd(item, [amount for pair in reversed(spread) for amount in pair], padding))
    return cresset.cat([cresset.stack(rows), filled[len(rows) :]]) if rows else filled
