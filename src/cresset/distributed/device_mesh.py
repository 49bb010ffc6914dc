"""torch.distributed.device_mesh: grids of processes. Each dimension of a grid has a group for every line along it."""

import math
import threading

import cresset

from . import world

__all__ = ["DeviceMesh", "init_device_mesh"]

_active = threading.local()


def _coalesced(parts):
    """A flattened dimension as (size, stride) pairs from the slowest on: sizes of one are left out, and what is evenly
    spaced is one pair.
    """
    made = []
    for size, stride in parts:
        if size == 1:
            continue
        if made and made[-1][1] == size * stride:
            made[-1] = (made[-1][0] * size, stride)
        else:
            made.append((size, stride))
    return tuple(made)


class DeviceMesh:
    """A grid of processes, of any number of dimensions, which may have names.

    Args:
        device_type: the kind of device that the processes compute on.
        mesh: the ranks, nested lists or a tensor of integers.
        mesh_dim_names: a name for each dimension; then `mesh["name"]` is the line of this process along it.
        backend_override: one pair of engine and options for each dimension; None where the default is meant.
    """

    device_type: str = "cpu"  # these three are set for each grid
    mesh: cresset.Tensor | None = None
    mesh_dim_names: tuple[str, ...] | None = None

    def __init__(
        self, device_type, mesh=None, *, mesh_dim_names=None, backend_override=None, _init_backend=True, _groups=None,
        _layout=None, _root=None,
    ):  # fmt: skip
        if mesh is None:
            raise TypeError("DeviceMesh: the ranks are missing; give `mesh`, or use init_device_mesh")
        if isinstance(mesh, cresset.Tensor) and mesh.device.type != "cpu":
            raise ValueError(f"`mesh` must be a CPU tensor, got {mesh}")
        self.device_type = device_type
        ranks = mesh.detach() if isinstance(mesh, cresset.Tensor) else cresset.tensor(mesh, dtype=cresset.int32)
        self.mesh = ranks.to(cresset.int32).contiguous()
        if not self.mesh.ndim:
            self.mesh = self.mesh.reshape(1)
        self._shape = tuple(self.mesh.shape)
        self._ranks = [int(r) for r in self.mesh.flatten().tolist()]
        self.mesh_dim_names = tuple(mesh_dim_names) if mesh_dim_names else None
        self._flattened = {}
        self._root = _root
        self._sliced = {}
        strides = self.mesh.stride()
        self._layout = _layout or tuple(_coalesced([(n, s)]) for n, s in zip(self._shape, strides, strict=True))
        self._hash = hash((tuple(self._ranks), self._shape, device_type, self.mesh_dim_names))
        self._coordinate = None
        self._groups = _groups
        if not _init_backend and _groups is None:
            return
        if not world.is_initialized():
            world.init_process_group()
        size = world.get_world_size()
        if len(self._ranks) > size:
            raise RuntimeError(
                f"Mesh should not be bigger than default world size {size}, but found {len(self._ranks)} ranks!"
            )
        if len(set(self._ranks)) != len(self._ranks):
            raise RuntimeError(f"DeviceMesh: each rank may be in it once, not {self.mesh.tolist()}")
        mine = world.get_rank()
        if mine in self._ranks:
            place, found = self._ranks.index(mine), []
            for n in reversed(self._shape):
                found.append(place % n)
                place //= n
            self._coordinate = tuple(reversed(found))
        if self._groups is None:
            self._groups = self._make_groups(backend_override or (None,) * len(self._shape))

    def _make_groups(self, overrides):
        """The group of this process along each dimension; None outside of the grid."""
        made = []
        for dim, override in enumerate(overrides):
            engine = override[0] if isinstance(override, tuple) else override
            name = self.mesh_dim_names[dim] if self.mesh_dim_names else str(dim)
            made.append(_group_of_lines(self.mesh.movedim(dim, -1), f"mesh_{name}", engine))
        return made

    # ---- what it is

    @property
    def shape(self):
        """The number of processes along each dimension."""
        return self._shape

    @property
    def ndim(self):
        """The number of dimensions."""
        return len(self._shape)

    def size(self, mesh_dim=None):
        """The number of processes: all, or those along a dimension."""
        return len(self._ranks) if mesh_dim is None else self._shape[mesh_dim]

    def __repr__(self):
        sizes = (
            ", ".join(f"{k}={v}" for k, v in zip(self.mesh_dim_names, self._shape, strict=True))
            if self.mesh_dim_names
            else None
        )
        shape = f"({sizes})" if sizes else str(self._shape)
        strides = []
        for parts in self._layout:
            steps = tuple(stride for _, stride in parts)
            strides.append(steps[0] if len(steps) == 1 else steps)
        return f"DeviceMesh({shape}, '{self.device_type}', stride={tuple(strides)})"

    def __hash__(self):
        return self._hash

    def __eq__(self, other):
        return self is other or (
            isinstance(other, DeviceMesh)
            and self._hash == other._hash
            and self._ranks == other._ranks
            and self._shape == other._shape
            and self.device_type == other.device_type
            and self.mesh_dim_names == other.mesh_dim_names
        )

    def __enter__(self):
        if not hasattr(_active, "meshes"):
            _active.meshes = []
        _active.meshes.append(self)
        return self

    def __exit__(self, *_):
        _active.meshes.pop()

    def __deepcopy__(self, memo):
        return self  # its groups are this process's: there is one of each

    # ---- where this process is

    def get_rank(self):
        """The number of this process in the group of all."""
        return world.get_rank()

    def get_coordinate(self):
        """The place of this process in the grid; None outside of it."""
        return self._coordinate

    def get_local_rank(self, mesh_dim=None):
        """The place of this process along a dimension, given by number or name."""
        if mesh_dim is None and self.ndim > 1:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions",
                "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
            )
        if self._coordinate is None:
            raise RuntimeError(f"get_local_rank: rank {world.get_rank()} is not in {self}")
        if isinstance(mesh_dim, str) and (self.mesh_dim_names is None or mesh_dim not in self.mesh_dim_names):
            return self[mesh_dim].get_local_rank()
        return self._coordinate[self._number(mesh_dim or 0)]

    def _number(self, mesh_dim):
        if isinstance(mesh_dim, str):
            if self.mesh_dim_names is None or mesh_dim not in self.mesh_dim_names:
                raise KeyError(
                    f"Mesh dimension '{mesh_dim}' does not exist.",
                    f"Available mesh dimensions are: mesh_dim_names={self.mesh_dim_names}",
                )
            return self.mesh_dim_names.index(mesh_dim)
        return mesh_dim

    # ---- groups

    def get_group(self, mesh_dim=None):
        """The group of this process along a dimension, given by number or name."""
        if self._groups is None:
            raise RuntimeError("DeviceMesh process groups not initialized!")
        if mesh_dim is None and self.ndim > 1:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions",
                "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
                "If you want to get the list of all the ProcessGroups in the DeviceMesh,"
                "please use `get_all_groups()` instead.",
            )
        if isinstance(mesh_dim, str) and mesh_dim in self._flattened:
            return self._flattened[mesh_dim].get_group()
        return self._groups[self._number(mesh_dim or 0)]

    def get_all_groups(self):
        """The groups of this process, one for each dimension."""
        return [self.get_group(dim) for dim in range(self.ndim)]

    @staticmethod
    def from_group(group, device_type, mesh=None, *, mesh_dim_names=None):
        """A grid on groups that exist: one group, or one for each dimension with the ranks in `mesh`."""
        if isinstance(group, (list, tuple)):
            if not group:
                raise ValueError("Expects at least one ProcessGroup to be specified when passing a list")
            if mesh is None:
                raise ValueError("Must pass mesh if passing multiple ProcessGroups")
            ranks = cresset.as_tensor(mesh, dtype=cresset.int32)
            if ranks.ndim != len(group):
                raise ValueError("Expects mesh with ndim equal to number of ProcessGroups but got mesh "
                                 f"{ranks.tolist()} and {len(group)} ProcessGroups")  # fmt: skip
            return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names, _groups=list(group))
        ranks = world.get_process_group_ranks(group)
        if mesh is not None and cresset.as_tensor(mesh).flatten().tolist() != ranks:
            raise ValueError(f"Invalid mesh {mesh} for ProcessGroup with ranks {ranks}")
        return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names, _groups=[group])

    # ---- parts of it

    def _get_root_mesh(self):
        return self if self._root is None else self._root

    @property
    def _root_mesh(self):
        return self._root

    def _get_mesh_dim_by_name(self, mesh_dim_name):
        return self._number(mesh_dim_name)

    def __getitem__(self, mesh_dim_names):
        """The part of the grid along the named dimensions in which this process lies."""
        if not self.mesh_dim_names:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if names == self.mesh_dim_names:
            return self
        if names not in self._sliced:
            self._sliced[names] = self._slice(names)
        return self._sliced[names]

    def _slice(self, names):
        known = list(self.mesh_dim_names)
        if len(names) == 1 and names[0] in self._flattened:
            return self._flattened[names[0]]
        valid = [*known, *self._flattened]
        if not names or any(name not in known for name in names):
            raise KeyError(f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are {valid}.")
        if len(set(names)) != len(names):
            raise KeyError(f"Invalid mesh_dim_names {names} specified: a name is there more than once.")
        dims = [known.index(name) for name in names]
        others = [dim for dim in range(self.ndim) if dim not in dims]
        lines = self.mesh.permute(*others, *dims).reshape(-1, *(self._shape[dim] for dim in dims))
        return DeviceMesh(
            self.device_type, self._line_of_mine(lines), mesh_dim_names=names,
            _groups=[self._groups[dim] for dim in dims], _layout=tuple(self._layout[dim] for dim in dims),
            _root=self._get_root_mesh(),
        )  # fmt: skip

    def _line_of_mine(self, lines):
        """Of the parts of a grid the one with this process; the first one in a process outside of it."""
        mine = world.get_rank()
        return next((line for line in lines if (line == mine).any().item()), lines[0])

    def _get_all_submeshes(self, mesh_dim_name):
        dim = self._number(mesh_dim_name)
        lines = self.mesh.movedim(dim, -1).reshape(-1, self._shape[dim])
        mine = self[mesh_dim_name]
        return [
            mine
            if line.tolist() == mine.mesh.tolist()
            else DeviceMesh(self.device_type, line, mesh_dim_names=(mesh_dim_name,), _init_backend=False)
            for line in lines
        ]

    def _flatten(self, mesh_dim_name=None, backend_override=None):
        """The grid as one dimension, which its root knows by this name. All processes of the root call this."""
        if not self.mesh_dim_names:
            raise RuntimeError("Cannot flatten a DeviceMesh without mesh_dim_names!")
        name, root = mesh_dim_name or "_".join(self.mesh_dim_names), self._get_root_mesh()
        if self.ndim == 1 and self.mesh_dim_names[0] == name:
            return self
        if name in root.mesh_dim_names:
            raise ValueError(f"{name} already exists for submesh of the {root}. ", f"The mesh_dim_names of submesh "
                             f"and flattened mesh are {root.mesh_dim_names}.")  # fmt: skip
        known = root._flattened.get(name)
        if known is not None:
            if known._ranks != self._ranks:
                raise ValueError(f"Flatten mesh with mesh_dim_name {name} has been created before for other ranks.")
            return known
        engine = backend_override[0] if isinstance(backend_override, tuple) else backend_override
        dims = [root.mesh_dim_names.index(known) for known in self.mesh_dim_names]
        others = [dim for dim in range(root.ndim) if dim not in dims]
        lines = root.mesh.permute(*others, *dims).reshape(-1, self.size())
        group = self._groups[0] if self.ndim == 1 else _group_of_lines(lines, f"mesh_{name}", engine)
        layout = _coalesced([part for dim in dims for part in root._layout[dim]])
        root._flattened[name] = DeviceMesh(
            self.device_type, self.mesh.flatten(), mesh_dim_names=(name,), _groups=[group], _layout=(layout,),
            _root=root,
        )  # fmt: skip
        return root._flattened[name]

    def _unflatten(self, dim, mesh_sizes, mesh_dim_names, backend_override=None):
        """A grid in which one dimension is several. All processes of the grid call this."""
        dim = self._number(dim)
        if math.prod(mesh_sizes) != self._shape[dim]:
            raise ValueError(f"_unflatten: sizes {tuple(mesh_sizes)} are not {self._shape[dim]} processes in all")
        shape = (*self._shape[:dim], *mesh_sizes, *self._shape[dim + 1 :])
        names = None
        if self.mesh_dim_names:
            names = (*self.mesh_dim_names[:dim], *mesh_dim_names, *self.mesh_dim_names[dim + 1 :])
        made = DeviceMesh(self.device_type, self.mesh.reshape(shape), mesh_dim_names=names, _init_backend=False)
        lines, groups = made.mesh, []
        for at in range(made.ndim):
            if dim <= at < dim + len(mesh_sizes):
                groups.append(_group_of_lines(lines.movedim(at, -1), f"mesh_{names[at] if names else at}", None))
            else:
                groups.append(self._groups[at if at < dim else at - len(mesh_sizes) + 1])
        return DeviceMesh(self.device_type, made.mesh, mesh_dim_names=names, _groups=groups)


def _group_of_lines(lines, what, engine):
    """The group of this process among those of the lines, the last dimension of a tensor of ranks. The group of all is
    used where it is one.
    """
    lines = lines.reshape(-1, lines.shape[-1]).tolist()
    everyone = world.get_process_group_ranks(None)
    if len(lines) == 1 and lines[0] == everyone and engine in (None, world.get_backend()):
        return world.default_group("DeviceMesh")
    mine, found = world.get_rank(), None
    for ranks in lines:
        made = world.new_group(ranks, backend=engine, group_desc=what, sort_ranks=False)
        if mine in ranks:
            found = made
    return found


def current_mesh():
    """The grid of the innermost `with mesh:`."""
    meshes = getattr(_active, "meshes", None)
    if not meshes:
        raise RuntimeError("No device mesh is currently active!")
    return meshes[-1]


def init_device_mesh(device_type, mesh_shape, *, mesh_dim_names=None, backend_override=None):
    """The grid of all processes in a shape; the last dimension counts fastest.

    Args:
        device_type: the kind of device, without a number.
        mesh_shape: the number of processes along each dimension.
        mesh_dim_names: a name for each dimension.
        backend_override: engines by dimension (its number or name), where the default is not meant.
    """
    mesh_shape = tuple(mesh_shape)
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(
                "Each mesh_dim_name must be unique. "
                f"Found repeated mesh_dim_name in mesh_dim_names {tuple(mesh_dim_names)}"
            )
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length! "
                f"Found len(mesh_dim_names): {len(mesh_dim_names)} and len(mesh_shape):{len(mesh_shape)}."
            )
    if not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. ",
            "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'.",
        )
    overrides = None
    if backend_override:
        overrides = [None] * len(mesh_shape)
        for dim, engine in backend_override.items():
            if isinstance(dim, str):
                if dim not in (mesh_dim_names or ()):
                    raise RuntimeError(f"Found invalid keys in backend_override: got {[dim]}, expected integers in "
                                       f"range [0, {len(mesh_shape)}) or one of {mesh_dim_names}")  # fmt: skip
                dim = tuple(mesh_dim_names).index(dim)
            overrides[dim] = engine
    if not world.is_initialized():
        world.init_process_group()
    if math.prod(mesh_shape) > world.get_world_size():
        raise RuntimeError(
            f"Mesh should not be bigger than default world size {world.get_world_size()}, but found "
            f"{math.prod(mesh_shape)} ranks!"
        )
    ranks = cresset.arange(math.prod(mesh_shape), dtype=cresset.int32).view(mesh_shape)
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names, backend_override=overrides)


DeviceMesh.__module__ = "torch.distributed.device_mesh"
