"""The parameters that one call of fully_shard manages: cut between uses, brought together for forward and backward, and
their gradients reduced and cut again.

Note [Whole parameters]
A parameter has two forms: a DTensor that is cut along its first dimension, which the optimizer and checkpoints see, and
a whole tensor, which the module computes with. The whole one is the same object for the life of the model: autograd
saves it in forward, its memory is given back after forward, and filled again before backward reads it.
"""

import math

import cresset

from ...autograd.variable import Variable
from ...nn import Parameter
from .. import collectives
from ..reductions import RedOpType
from ..tensor._dtensor_spec import DTensorSpec, TensorMeta, contiguous_strides
from ..tensor.dtensor import DTensor
from ..tensor.placement_types import Replicate, Shard, _StridedShard


class Unit:
    """One parameter in both forms, and the modules that have it."""

    def __init__(self, parameter, places, mesh, dim, dtype):
        self.places = places  # (module, name)
        self.requires_grad = parameter.requires_grad
        self.inner = parameter._spec if isinstance(parameter, DTensor) else None  # how tensor parallelism has cut it
        local = (parameter._local_tensor if self.inner else parameter).detach()
        self.shape, self.dim = tuple(local.shape), dim
        self.dtype = dtype if dtype is not None and local.is_floating_point() else local.dtype
        n, place = mesh.shape[-1], mesh.get_local_rank(mesh.ndim - 1)
        self.chunk = -(-self.shape[dim] // n)
        size, first = Shard.local_shard_size_and_offset(self.shape[dim], n, place)
        part = local.narrow(dim, first, size).clone(memory_format=cresset.contiguous_format)
        self.sharded = Parameter(DTensor._of(part, self._spec(parameter, mesh)), self.requires_grad)
        for name, value in vars(parameter).items():
            if not name.startswith("_"):
                setattr(self.sharded, name, value)
        self.device = local.device if local.device.type != "meta" else cresset.device(mesh.device_type)
        self.whole = None
        self.put(self.sharded)

    def _spec(self, parameter, mesh):
        """The spec of the cut form: with tensor parallelism, on the grid of both."""
        outer = [Replicate()] * (mesh.ndim - 1)
        if self.inner is None:
            meta = TensorMeta(parameter.shape, parameter.stride(), parameter.dtype)
            return DTensorSpec(mesh, [*outer, Shard(self.dim)], meta)
        inner = self.inner
        root = mesh._get_root_mesh()
        if root is not inner.mesh._get_root_mesh() or root is mesh:
            raise ValueError(
                f"fully_shard: a parameter lies on {inner.mesh} and is to be cut on {mesh}; both must be parts of one "
                "grid with names, such as mesh['dp'] and mesh['tp']"
            )
        both = root[(*mesh.mesh_dim_names, *inner.mesh.mesh_dim_names)]
        factor = 1
        for p, n in zip(inner.placements, inner.mesh.shape, strict=True):
            factor *= n if p.is_shard(self.dim) else 1
        mine = _StridedShard(self.dim, split_factor=factor) if factor > 1 else Shard(self.dim)
        return DTensorSpec(both, [*outer, mine, *inner.placements], inner.tensor_meta)

    def put(self, parameter):
        """Let the modules see one of the forms."""
        for module, name in self.places:
            module._parameters[name] = parameter

    def current(self):
        """The cut form, which the program may have replaced (load_state_dict with assign, to_empty)."""
        module, name = self.places[0]
        now = module._parameters[name]
        if now is not self.sharded and now is not self.whole and isinstance(now, DTensor):
            self.sharded = now
        return self.sharded

    def part(self):
        """This process's part, padded, in the dtype in which it travels."""
        local = self.current()._local_tensor.detach()
        if local.device.type == "meta":
            raise RuntimeError(
                f"FSDP: parameter {self.places[0][1]!r} of {type(self.places[0][0]).__name__} has no elements (device "
                "meta); call to_empty() and initialize it before forward"
            )
        local = local.to(self.device, self.dtype)
        if local.shape[self.dim] != self.chunk:
            padded = local.new_zeros([self.chunk if d == self.dim else n for d, n in enumerate(self.shape)])
            padded.narrow(self.dim, 0, local.shape[self.dim]).copy_(local)
            local = padded
        return local.reshape(-1)

    def part_length(self):
        """The number of elements of a process's padded part."""
        return math.prod(self.chunk if d == self.dim else n for d, n in enumerate(self.shape))

    def leaf(self):
        """The whole form as autograd knows it."""
        if self.whole is None:
            made = cresset.empty(self.shape, dtype=self.dtype, device=self.device)
            if self.inner is not None:
                meta = TensorMeta(self.inner.shape, contiguous_strides(self.inner.shape), self.dtype)
                spec = DTensorSpec(self.inner.mesh, self.inner.placements, meta)
                self.whole = Parameter(DTensor._of(made, spec), self.requires_grad)
            else:
                self.whole = Parameter(made, self.requires_grad)
        return self.whole._local_tensor if self.inner is not None else self.whole

    def fill(self, parts):
        """Put the parts of all processes, one after the other, into the whole form."""
        leaf = self.leaf()
        storage = leaf.untyped_storage()
        if storage.nbytes() == 0 and leaf.numel():
            storage.resize_(leaf.numel() * leaf.element_size())
        rest = [self.chunk if d == self.dim else n for d, n in enumerate(self.shape)]
        whole = parts.view(-1, *rest).movedim(0, self.dim)
        place = leaf.data
        if self.dim == 0 and whole.numel() == place.numel():
            place.view(-1).copy_(parts)
        else:
            whole = whole.reshape([-1 if d == self.dim else n for d, n in enumerate(self.shape)])
            place.copy_(whole.narrow(self.dim, 0, self.shape[self.dim]))
        self.whole.requires_grad_(self.current().requires_grad)

    def empty(self):
        """Give the memory of the whole form back."""
        if self.whole is not None:
            self.leaf().untyped_storage().resize_(0)

    def gradient(self, dtype, n):
        """The gradient of the whole form as rows, one for each process, padded."""
        grad = self.leaf().grad.to(dtype)
        length = n * self.chunk
        if grad.shape[self.dim] != length:
            padded = grad.new_zeros([length if d == self.dim else k for d, k in enumerate(self.shape)])
            padded.narrow(self.dim, 0, grad.shape[self.dim]).copy_(grad)
            grad = padded
        return grad.unflatten(self.dim, (n, self.chunk)).movedim(self.dim, 0).reshape(n, -1)

    def take(self, flat):
        """Add the reduced part to the gradient of the cut form."""
        local = self.current()._local_tensor
        rest = [self.chunk if d == self.dim else k for d, k in enumerate(self.shape)]
        grad = flat.view(rest).narrow(self.dim, 0, local.shape[self.dim]).to(local.dtype).to(local.device)
        if local.grad is None:
            local.grad = grad.clone(memory_format=cresset.contiguous_format)
        else:
            local.grad += grad


class Group:
    """The units of one module, which travel together."""

    def __init__(self, units, mesh, mp_policy, reshard_after_forward):
        self.units, self.mesh, self.policy = units, mesh, mp_policy
        self.shards, self.size = mesh.get_group(mesh.ndim - 1), mesh.shape[-1]
        self.copies = mesh.get_group(0) if mesh.ndim > 1 else None
        self.reshard_after_forward, self.reshard_after_backward = reshard_after_forward, True
        self.sync, self.all_reduce, self.last_backward = True, True, True
        self.unshard_in_backward, self.divide_factor, self.force_sum, self.all_reduce_hook = True, None, False, None
        self.is_whole, self.in_backward = False, False
        self.work = self.flat = self.unreduced = None
        self.reducing: list = []  # what completes reductions that are on their way; of one root's groups together
        self.looks_ahead = True  # in forward: begins to bring together what came next in the one before
        self.forward_prefetch: list = []
        self.backward_prefetch: list = []
        self.hooked: set = set()
        self.arrived: set = set()  # units whose gradient this backward has completed

    # ---- bringing together

    def unshard(self, async_op=False):
        """Bring the parameters together; with async_op, begin to."""
        if self.is_whole or self.work is not None or not self.units:
            return
        with cresset.no_grad():
            parts = [unit.part() for unit in self.units]
            kinds = {part.dtype for part in parts}
            self.work, self.flat = [], []
            for kind in sorted(kinds, key=str):
                mine = [part for part in parts if part.dtype == kind]
                given = mine[0] if len(mine) == 1 else cresset.cat(mine)
                flat = given.new_empty(self.size * given.numel())
                work = collectives.all_gather_into_tensor(flat, given, self.shards, async_op=True)
                self.work.append(work)
                self.flat.append((kind, flat, given))
        if not async_op:
            self.wait()

    def wait(self):
        """Complete what `unshard` began, and let the modules see whole parameters."""
        if self.work is None:
            return
        for work in self.work:
            if work is not None:
                work.wait()
        with cresset.no_grad():
            for kind, flat, _ in self.flat:
                rows, at = flat.view(self.size, -1), 0
                for unit in self.units:
                    if unit.dtype == kind:
                        length = unit.part_length()
                        unit.fill(rows[:, at : at + length].reshape(-1))
                        at += length
        self.work = self.flat = None
        self.is_whole = True
        for unit in self.units:
            unit.put(unit.whole)
            self._watch(unit)

    def _watch(self, unit):
        """See when the gradient of a whole parameter is complete."""
        leaf = unit.leaf()
        if leaf.requires_grad and id(leaf) not in self.hooked:
            self.hooked.add(id(leaf))
            leaf.register_post_accumulate_grad_hook(lambda _: self.arrive(unit))

    def reshard(self):
        """Give the memory of whole parameters back; the modules see the cut ones."""
        self.wait()
        if not self.is_whole:
            return
        self.is_whole = False
        for unit in self.units:
            unit.put(unit.sharded)
            unit.empty()

    # ---- reducing

    def arrive(self, unit):
        """A gradient is complete in the backward that runs: reduce when all are."""
        self.arrived.add(unit)
        if all(unit in self.arrived for unit in self.units if unit.leaf().requires_grad):
            self.reduce()
            self.after_backward()

    def after_backward(self):
        """The backward of this module is over."""
        self.in_backward = False
        self.arrived.clear()
        if self.reshard_after_backward:
            self.reshard()

    def reduce(self):
        """Begin to reduce the gradients of whole parameters; `complete` keeps this process's part. While one group's
        gradients travel, the backward of the next one computes."""
        ready = [unit for unit in self.units if unit.whole is not None and unit.leaf().grad is not None]
        if not ready or not self.sync:
            return
        with cresset.no_grad():
            by_dtype: dict = {}
            for unit in ready:
                by_dtype.setdefault(self.policy.reduce_dtype or unit.leaf().grad.dtype, []).append(unit)
            before = len(self.reducing)
            for dtype, units in sorted(by_dtype.items(), key=lambda item: str(item[0])):
                self.reducing.append(self._reduce(dtype, units))
            complete(self.reducing, before)

    def _reduce(self, dtype, units):
        """Begin to reduce gradients of one dtype; what completes it."""
        rows = [unit.gradient(dtype, self.size) for unit in units]
        lengths = [row.shape[1] for row in rows]
        given = (rows[0] if len(rows) == 1 else cresset.cat(rows, 1)).contiguous()
        for unit in units:
            unit.leaf().grad = None
        copies = self.mesh.shape[0] if self.copies is not None else 1
        factor = self.divide_factor or self.size * copies
        plain = self.force_sum or self.divide_factor is not None
        op, all_reduce, work = RedOpType.SUM if plain else RedOpType.AVG, self.all_reduce, None
        made = given.new_empty(given.shape[1])
        if self.size > 1:
            work = collectives.reduce_scatter_tensor(made, given, op, self.shards, async_op=True)
        else:
            made.copy_(given.view(-1))

        def finish():
            if work is not None:
                work.wait()
            if self.unreduced is not None and dtype in self.unreduced:
                made.add_(self.unreduced.pop(dtype))
            if self.copies is not None:
                if not all_reduce:
                    self.unreduced = {**(self.unreduced or {}), dtype: made}
                    return
                collectives.all_reduce(made, op, self.copies)
            if plain and factor != 1:
                made.div_(factor)
            if self.all_reduce_hook is not None:
                self.all_reduce_hook(made)
            for unit, part in zip(units, made.split(lengths), strict=True):
                unit.take(part)

        return finish


def complete(reducing, count):
    """Complete the first `count` reductions that are on their way."""
    with cresset.no_grad():
        for finish in [reducing.pop(0) for _ in range(count)]:
            finish()


def later(callback):
    """Call at the end of the backward that is running."""
    Variable._execution_engine.queue_callback(callback)
