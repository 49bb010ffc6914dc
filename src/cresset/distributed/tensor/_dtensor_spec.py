"""DTensorSpec: what is true of a distributed tensor in every process: the grid, the placements, and the whole's shape,
strides and dtype. Equal ones are one object, so that calls are looked up by identity.
"""

import math
import weakref
from typing import NamedTuple

import cresset

from .placement_types import Placement, _StridedShard

__all__ = ["DTensorSpec", "TensorMeta"]

_known = weakref.WeakValueDictionary()


class TensorMeta(NamedTuple):
    """The whole tensor without its elements."""

    shape: object
    stride: tuple
    dtype: object


class DTensorSpec:
    """Where the parts of a tensor lie.

    Args:
        mesh: the grid of processes.
        placements: one for each dimension of the grid.
        tensor_meta: shape, strides and dtype of the whole.
    """

    __slots__ = ("__weakref__", "_meta", "_parts", "_shell", "dual", "mesh", "placements", "tensor_meta")

    def __new__(cls, mesh, placements, tensor_meta=None):
        placements = tuple(placements)
        shape, stride, dtype = tensor_meta
        key = (mesh, placements, tuple(shape), tuple(stride), dtype)
        made = _known.get(key)
        if made is None:
            made = super().__new__(cls)
            made.mesh, made.placements = mesh, placements
            made.tensor_meta = TensorMeta(cresset.Size(shape), tuple(stride), dtype)
            made._shell = made._parts = made._meta = made.dual = None
            _known[key] = made
        return made

    @property
    def device_mesh(self):
        """The grid of processes."""
        return self.mesh

    @property
    def shape(self):
        """The sizes of the whole."""
        return self.tensor_meta.shape

    @property
    def stride(self):
        """The strides of the whole."""
        return self.tensor_meta.stride

    @property
    def dtype(self):
        """The dtype."""
        return self.tensor_meta.dtype

    @property
    def ndim(self):
        """The number of dimensions of the whole."""
        return len(self.tensor_meta.shape)

    @property
    def num_shards(self):
        """In how many parts it is cut."""
        return math.prod(self.mesh.size(i) for i, p in enumerate(self.placements) if p.is_shard())

    @property
    def sums(self):
        """The dimensions of the grid along which it has parts of a reduction."""
        return [i for i, p in enumerate(self.placements) if p.is_partial()]

    @property
    def dim_map(self):
        """For each dimension of the tensor the one of the grid that cuts it; -1 where none does."""
        found = [-1] * self.ndim
        for i, p in enumerate(self.placements):
            if p.is_shard():
                found[p.dim] = i
        return found

    def is_replicated(self):
        """Whether each process has all of it."""
        return all(p.is_replicate() for p in self.placements)

    def is_sharded(self):
        """Whether it is cut anywhere."""
        return any(p.is_shard() for p in self.placements)

    def placed(self, placements):
        """The same tensor, placed so."""
        return DTensorSpec(self.mesh, placements, self.tensor_meta)

    def shell(self):
        """A tensor with the whole's shape and dtype on one element that nobody reads."""
        if self._shell is None:
            with cresset.no_grad():
                kind = self.mesh.device_type
                device = cresset.device(kind, cresset.cuda.current_device()) if kind == "cuda" else kind
                self._shell = cresset.empty((), dtype=self.dtype, device=device).expand(tuple(self.shape))
        return self._shell

    def meta(self):
        """A tensor without elements that has the whole's shape, strides and dtype."""
        if self._meta is None:
            self._meta = cresset.empty_strided(tuple(self.shape), self.stride, dtype=self.dtype, device="meta")
        return self._meta

    def local_shape(self):
        """The shape of this process's part, and where in the whole it begins."""
        if self._parts is None:
            self._parts = part_of(self.shape, self.mesh, self.placements)
        return self._parts

    def __str__(self):
        kind = {"float": "f", "bfloat": "bf", "int": "i", "uint": "u", "complex": "c", "bool": "b"}
        name = str(self.dtype)[6:]
        word = name.rstrip("0123456789")
        places = "".join(str(p) for p in self.placements)
        return f"Spec({kind.get(word, word)}{name[len(word) :] or 8}{list(self.shape)}({places}))"

    __repr__ = __str__


def contiguous_strides(shape):
    """The strides of a contiguous tensor."""
    strides, step = [], 1
    for n in reversed(tuple(shape)):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def cut_order(placements):
    """The dimensions of the grid that cut, in the order in which they do: a _StridedShard comes after the later ones
    that cut the same dimension.
    """
    order = []
    late: list[int] = []
    for i, p in enumerate(placements):
        if isinstance(p, _StridedShard):
            late.append(i)
        elif p.is_shard():
            order.append(i)
    return order + late


def part_of(shape, mesh, placements, coordinate=None):
    """The shape of a process's part of a tensor, and where in the whole it begins."""
    place = mesh.get_coordinate() if coordinate is None else coordinate
    if place is None:
        return (0,), ()
    sizes, offset = list(shape), [0] * len(shape)
    for i in cut_order(placements):
        dim = placements[i].dim
        size, first = placements[i].local_shard_size_and_offset(sizes[dim], mesh.shape[i], place[i])
        sizes[dim], offset[dim] = size, offset[dim] + first
    return tuple(sizes), tuple(offset)


def normalized(placements, mesh, ndim, who):
    """Placements as a tuple of the grid's length, with dimensions counted from the front."""
    placements = tuple(placements)
    if len(placements) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: "
            f"{len(placements)}, and device_mesh.ndim: {mesh.ndim}."
        )
    made = []
    for p in placements:
        if not isinstance(p, Placement):
            raise TypeError(f"{who}: placements are Shard, Replicate or Partial, not {type(p).__name__}")
        if p.is_shard():
            dim = p.dim + ndim if p.dim < 0 else p.dim
            if not 0 <= dim < ndim:
                raise AssertionError(f"Sharding dim {p.dim} greater than tensor ndim {ndim}")
            if dim != p.dim:
                p = _StridedShard(dim, split_factor=p.split_factor) if isinstance(p, _StridedShard) else type(p)(dim)
        made.append(p)
    return tuple(made)


DTensorSpec.__module__ = TensorMeta.__module__ = "torch.distributed.tensor._dtensor_spec"
