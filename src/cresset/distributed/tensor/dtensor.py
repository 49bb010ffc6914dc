"""DTensor: a tensor whose parts lie on several processes. See Note [Gradients of distributed tensors]."""

import copy

import cresset
from cresset import _native

from ...tensors.interpreted import InterpretedTensor
from .. import collectives, device_mesh
from . import dispatch, redistribution
from ._dtensor_spec import DTensorSpec, TensorMeta, normalized
from .placement_types import Replicate

_make_subclass = _native.make_subclass
_quick = dispatch.QUICK
_set_data = cresset.Tensor.data.__set__


class DTensor(InterpretedTensor):
    """A tensor whose parts lie on the processes of a grid. `distribute_tensor` and `DTensor.from_local` make them.

    Args:
        local_tensor: the part of this process.
        spec: a DTensorSpec.
        requires_grad: whether gradients are wanted.
    """

    kind = "distributed"
    instead = "full_tensor()"

    def __new__(cls, local_tensor, spec, *, requires_grad=False):
        if not isinstance(local_tensor, cresset.Tensor):
            raise TypeError(f"DTensor: local_tensor must be Tensor, not {type(local_tensor).__name__}")
        if requires_grad and not local_tensor.requires_grad:
            local_tensor = local_tensor.detach().requires_grad_()
        return cls._of(local_tensor, spec)

    @classmethod
    def _of(cls, local, spec):
        made = _make_subclass(DTensor, spec._shell if spec._shell is not None else spec.shell())
        made._local_tensor, made._spec = local, spec
        return made

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if not kwargs and len(args) == 2:
            a, b = args
            if type(a) is DTensor and type(b) is DTensor:
                spec = _quick.get((func, a._spec, b._spec))
                if spec is not None:
                    local = func(a._local_tensor, b._local_tensor)
                    if local.dtype is spec.tensor_meta[2]:  # not, where autocast is on now and was not before
                        made = _make_subclass(DTensor, spec._shell)
                        made._local_tensor, made._spec = local, spec
                        return made
        return dispatch.dispatch(DTensor, func, args, dict(kwargs or {}))

    # ---- what interpreted tensors ask

    @property
    def _recorded(self):
        return self._local_tensor

    def _with(self, recorded):
        return DTensor._of(recorded, self._dual())

    def _dual(self):
        """The spec of the gradient."""
        spec = self._spec
        if spec.dual is None:
            spec.dual = spec.placed(redistribution.dual(spec.placements))
        return spec.dual

    def _become(self, other):
        self._local_tensor, self._spec = other._local_tensor, other._spec
        _set_data(self, self._spec.shell())

    def _stepped(self):
        """The part that an elementwise optimizer changes in the whole's place: see optim/by_formula.py."""
        return self._local_tensor

    # ---- what it is

    @property
    def device_mesh(self):
        """The grid of processes."""
        return self._spec.mesh

    @property
    def placements(self):
        """How it lies along each dimension of the grid."""
        return self._spec.placements

    def stride(self, dim=None):
        """The strides of the whole, if it lay in one memory."""
        return self._spec.stride if dim is None else self._spec.stride[dim]

    def is_contiguous(self, memory_format=None):
        """Whether the part of this process is."""
        return self._local_tensor.is_contiguous(memory_format=memory_format or cresset.contiguous_format)

    def __repr__(self, *, tensor_contents=None):
        return (
            f"DTensor(local_tensor={self._local_tensor}, device_mesh={self._spec.mesh}, placements={self.placements})"
        )

    def element_size(self):
        """The bytes of an element."""
        return self._local_tensor.element_size()

    def data_ptr(self):
        """Where the part of this process begins in memory."""
        return self._local_tensor.data_ptr()

    def untyped_storage(self):
        """The memory of this process's part."""
        return self._local_tensor.untyped_storage()

    @property
    def _version(self):
        return self._local_tensor._version

    @property
    def data(self):
        return self.detach()

    @data.setter
    def data(self, value):
        if not isinstance(value, DTensor):
            raise TypeError(f"data: a DTensor can become a DTensor, not a {type(value).__name__}")
        self._spec = value._spec
        self._local_tensor.data = value._local_tensor.detach()
        _set_data(self, value._spec.shell())

    @property
    def grad(self):
        """The gradient, placed as the tensor is."""
        grad = self._local_tensor.grad
        if grad is None:
            return None
        seen = self.__dict__.get("_grad_seen")
        if seen is None or seen._local_tensor is not grad:
            seen = self.__dict__["_grad_seen"] = self._with(grad)
        return seen

    @grad.setter
    def grad(self, value):
        if value is not None and not isinstance(value, DTensor):
            raise TypeError(f"assigned grad expected to be a DTensor or None but got {type(value).__name__}")
        self.__dict__.pop("_grad_seen", None)
        if value is not None:
            value = value.redistribute(self.device_mesh, self._dual().placements)._local_tensor
        self._local_tensor.grad = value

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """Add to each leaf's `.grad` the gradient of this tensor, weighted by `gradient`."""
        cresset.autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def _backward_start(self, gradient):
        """The gradient that backward begins with, placed as it must be."""
        if gradient is None:
            if self.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            gradient = cresset.ones_like(self._local_tensor)
        elif isinstance(gradient, DTensor):
            gradient = gradient.redistribute(self.device_mesh, self._dual().placements)._local_tensor
        share = redistribution._share(self.placements, self._dual().placements, self.device_mesh)
        return gradient if share == 1 else gradient * share

    def register_post_accumulate_grad_hook(self, hook):
        """Call `hook(tensor)` after a gradient was added to this leaf."""
        return self._local_tensor.register_post_accumulate_grad_hook(lambda _: hook(self))

    # ---- elements

    def numpy(self, *, force=False):
        """Refused: the elements are not all here."""
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    __array__ = numpy

    def tolist(self):
        """Refused: the elements are not all here."""
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got DTensor")

    def to_dense(self, dtype=None, *, masked_grad=None):
        """All elements, in every process: `full_tensor()`."""
        whole = self.full_tensor()
        return whole if dtype is None else whole.to(dtype)

    def item(self):
        """The only element as a Python number. All processes of the grid call this, unless each has it."""
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return self.full_tensor().item()

    def __getitem__(self, index):
        from .indexing import read

        return read(self, index)

    def __setitem__(self, index, value):
        from .indexing import write

        write(self, index, value)

    def __iter__(self):
        return iter(self.unbind(0))

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            made = DTensor._of(self._local_tensor.detach().clone(), self._spec)
            made.requires_grad_(self.requires_grad)
            grad = self.grad
            if grad is not None:
                made.grad = copy.deepcopy(grad, memo)
            for name, value in self.__dict__.items():
                if name not in ("_local_tensor", "_spec", "_grad_seen", "_shared_backward"):
                    made.__dict__[name] = copy.deepcopy(value, memo)
            memo[id(self)] = made
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        mesh = self.device_mesh
        about = (mesh.device_type, mesh.mesh.tolist(), mesh.mesh_dim_names)
        meta = (tuple(self.shape), tuple(self.stride()), self.dtype)
        places = [(type(p).__name__, *vars(p).values()) for p in self.placements]
        return _rebuilt, (self._local_tensor, about, places, meta, self.requires_grad)

    # ---- between parts and whole

    @staticmethod
    def from_local(
        local_tensor, device_mesh=None, placements=None, *, run_check=False, shape=None, stride=None,
        grad_placements=None,
    ):  # fmt: skip
        """The tensor whose part in this process is `local_tensor`.

        Args:
            local_tensor: the part.
            device_mesh: the grid; by default that of `with mesh:`.
            placements: one for each dimension of the grid; by default whole in every process.
            run_check: where it is whole, take the elements of the first process, so that they are the same.
            shape, stride: of the whole; where they are not given, all parts have the same size.
            grad_placements: how the gradient is to be placed when it comes back.
        """
        mesh = device_mesh if device_mesh is not None else current_mesh()
        if isinstance(local_tensor, DTensor):
            raise RuntimeError("from_local: the local tensor is a DTensor already")
        if not isinstance(local_tensor, cresset.Tensor):
            raise TypeError(f"from_local: expected a Tensor, got {type(local_tensor).__name__}")
        placements = [Replicate()] * mesh.ndim if placements is None else placements
        placements = normalized(placements, mesh, local_tensor.ndim, "from_local")
        if (shape is None) != (stride is None):
            raise RuntimeError("Please pass both shape and stride at the same time.")
        if shape is None:
            shape, strides = list(local_tensor.shape), list(local_tensor.stride())
            for p, n in zip(placements, mesh.shape, strict=True):
                if p.is_shard():
                    step = strides[p.dim]
                    shape[p.dim] *= n
                    strides = [s * n if s > step else s for s in strides]
            stride = strides
        if mesh.get_coordinate() is None:
            local_tensor = local_tensor.new_empty(0)
        elif run_check:
            with cresset.no_grad():
                for i, p in enumerate(placements):
                    if p.is_replicate() and mesh.shape[i] > 1:
                        collectives.broadcast(local_tensor.detach(), group=mesh.get_group(i), group_src=0)
        spec = DTensorSpec(mesh, placements, TensorMeta(shape, stride, local_tensor.dtype))
        if local_tensor.requires_grad and cresset.is_grad_enabled():
            if grad_placements is None:
                local_tensor = local_tensor.view_as(local_tensor)
            else:
                back = normalized(grad_placements, mesh, local_tensor.ndim, "from_local")
                local_tensor = _Returned.apply(local_tensor, tuple(shape), mesh, redistribution.dual(placements), back)
        return DTensor._of(local_tensor, spec)

    def to_local(self, *, grad_placements=None):
        """The part of this process.

        Args:
            grad_placements: how the gradient that comes back is placed, where that is not as the tensor is.
        """
        local, spec = self._local_tensor, self._spec
        if not (local.requires_grad and cresset.is_grad_enabled()):
            return local
        if grad_placements is None:
            return local.view_as(local)
        given = normalized(grad_placements, spec.mesh, self.ndim, "to_local")
        return _Returned.apply(local, tuple(spec.shape), spec.mesh, given, redistribution.dual(spec.placements))

    def full_tensor(self, *, grad_placements=None):
        """All elements, in every process. All processes of the grid call this."""
        whole = self.redistribute(self.device_mesh, [Replicate()] * self.device_mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)

    def redistribute(
        self, device_mesh=None, placements=None, *, async_op=False, forward_dtype=None, backward_dtype=None
    ):
        """The same tensor with other placements. All processes of the grid call this.

        Args:
            device_mesh: the grid, the one that it is on.
            placements: one for each dimension of the grid.
            async_op: PyTorch's promise to wait later; it is complete when it returns.
            forward_dtype, backward_dtype: in which dtype parts and gradients travel.
        """
        spec = self._spec
        if device_mesh is not None and device_mesh != spec.mesh:
            raise NotImplementedError("Cross device mesh comm not supported yet!")
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        target = normalized(placements, spec.mesh, self.ndim, "redistribute")
        for p, q in zip(spec.placements, target, strict=True):
            if q.is_partial() and p != q:
                raise RuntimeError(
                    f"Can not redistribute from {p} to {q}, redistributing to Partial is for internal use only!"
                )
        local = self._local_tensor
        if forward_dtype is not None:
            local = local.to(forward_dtype)
        if backward_dtype is not None:
            local = _GradientIn.apply(local, backward_dtype)
        if target == spec.placements and local is self._local_tensor:
            return self
        local = redistribution.redistributed(local, spec.shape, spec.mesh, spec.placements, target)
        meta = TensorMeta(spec.shape, spec.stride, local.dtype)
        return DTensor._of(local, DTensorSpec(spec.mesh, target, meta))


class _Returned(cresset.autograd.Function):
    """The same tensor; its gradient comes as `given` and goes on as `wanted`."""

    @staticmethod
    def forward(ctx, local, shape, mesh, given, wanted):
        ctx.facts = shape, mesh, given, wanted
        return local.view_as(local)

    @staticmethod
    def backward(ctx, grad):
        shape, mesh, given, wanted = ctx.facts
        return redistribution.Moved.apply(grad, shape, mesh, given, wanted, None), None, None, None, None


class _GradientIn(cresset.autograd.Function):
    """The same tensor; its gradient travels in another dtype."""

    @staticmethod
    def forward(ctx, local, dtype):
        ctx.dtype = dtype
        return local.view_as(local)

    @staticmethod
    def backward(ctx, grad):
        return grad.to(ctx.dtype), None


def current_mesh():
    """The grid of `with mesh:`."""
    return device_mesh.current_mesh()


_PLACEMENTS = {"Shard", "_StridedShard", "Replicate", "Partial"}


def _rebuilt(local, about, places, meta, requires_grad):
    """A DTensor from what was saved of it; its grid is made anew, of the processes that load it."""
    from . import placement_types

    mesh = device_mesh.DeviceMesh(about[0], about[1], mesh_dim_names=about[2])
    placements = []
    for name, *values in places:
        if name not in _PLACEMENTS:
            raise ValueError(f"load: there is no placement {name!r}")
        named = {"split_factor": values[1]} if name == "_StridedShard" else {}
        placements.append(getattr(placement_types, name)(*values[:1], **named))
    spec = DTensorSpec(mesh, placements, TensorMeta(*meta))
    return DTensor(local.detach(), spec, requires_grad=requires_grad)


DTensor.__module__ = "torch.distributed.tensor"
__all__ = ["DTensor", "current_mesh"]
