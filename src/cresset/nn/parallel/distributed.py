"""DistributedDataParallel: the same model in several processes, each with its part of the data; gradients are averaged
while backward runs.

Gradients travel in buckets: several parameters in one exchange, in about the order in which backward reaches them. A
bucket leaves as soon as its last gradient is there, so that the exchange and the rest of backward overlap. A large
gradient of a bucket is exchanged where it lies: copying it into the bucket and back would cost more than a message.
"""

import contextlib

import cresset

from ...autograd.variable import Variable
from ..module import Module

FIRST_BUCKET, BUCKET = 1 << 20, 25 << 20  # bytes
LARGE = 1 << 17  # bytes of a gradient that travels by itself


class GradBucket:
    """Gradients that travel together, as a communication hook sees them."""

    def __init__(self, index, flat, parameters, is_last):
        self._index, self._buffer, self._parameters, self._is_last = index, flat, parameters, is_last

    def index(self):
        """Which bucket this is."""
        return self._index

    def buffer(self):
        """All gradients in one tensor with one dimension."""
        return self._buffer

    def set_buffer(self, buffer):
        """Replace it by another of the same size."""
        if buffer.numel() != self._buffer.numel():
            raise ValueError(f"set_buffer: {buffer.numel()} elements for a bucket of {self._buffer.numel()}")
        self._buffer = buffer

    def gradients(self):
        """The gradients, as views of the buffer."""
        at, views = 0, []
        for parameter in self._parameters:
            views.append(self._buffer[at : at + parameter.numel()].view(parameter.shape))
            at += parameter.numel()
        return views

    def parameters(self):
        """The parameters."""
        return list(self._parameters)

    def is_last(self):
        """Whether it is the last one of a backward pass."""
        return self._is_last


class _Bucket:
    """Some parameters, the memory for the gradients that travel together, and what is on its way.

    Args:
        whole: all gradients travel together, also the large ones.
    """

    def __init__(self, index, parameters, whole):
        self.index, self.parameters = index, parameters
        self.pack(whole)
        self.start()

    def pack(self, whole):
        """Make the memory for those that travel together."""
        small = [p for p in self.parameters if whole or p.numel() * p.element_size() < LARGE]
        first = self.parameters[0]
        self.flat = cresset.zeros(sum(p.numel() for p in small), dtype=first.dtype, device=first.device)
        self.views, at = {}, 0
        for p in small:
            self.views[id(p)] = self.flat[at : at + p.numel()].view(p.shape)
            at += p.numel()

    def start(self):
        """A new backward pass begins."""
        self.missing = {id(p) for p in self.parameters}
        self.alone = {}  # id of a parameter -> its gradient, which travels by itself
        self.works, self.future = None, None


def _buckets(parameters, sizes):
    """Parameters in groups of one dtype and device, the last ones first, up to so many bytes each; the first is small."""
    open_groups, done = {}, []
    limits = {}
    for p in reversed(parameters):
        key = (p.dtype, p.device)
        group, size = open_groups.get(key, ([], 0))
        group, size = [*group, p], size + p.numel() * p.element_size()
        if size >= limits.get(key, sizes[0]):
            done.append(group)
            open_groups.pop(key, None)
            limits[key] = sizes[1]
        else:
            open_groups[key] = (group, size)
    return done + [group for group, _ in open_groups.values()]


def _tensors_in(value):
    if isinstance(value, cresset.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors_in(item)
    elif hasattr(value, "__dataclass_fields__"):
        yield from _tensors_in(vars(value))


class DistributedDataParallel(Module):
    """Run a model in every process of a group on its own data, and average the gradients.

    Args:
        module: the model, as `module` in the state_dict. Its parameters and buffers become those of rank 0.
        device_ids, output_device: the one GPU of this process, or None.
        dim: PyTorch's; not used with one device a process.
        broadcast_buffers: make the buffers those of rank 0 before each forward pass in training.
        init_sync: make parameters and buffers those of rank 0 now.
        process_group: by default all processes.
        bucket_cap_mb: megabytes of gradients that travel together; 25, the first time 1.
        find_unused_parameters: look in every forward pass which parameters have no part in the outputs.
        check_reduction: PyTorch's, without an effect there either.
        gradient_as_bucket_view: let `grad` be a view of a bucket, which saves a copy.
        static_graph: the same parameters are used in every pass.
    """

    def __init__(
        self, module, device_ids=None, output_device=None, dim=0, broadcast_buffers=True, init_sync=True,
        process_group=None,
        bucket_cap_mb=None, find_unused_parameters=False, check_reduction=False, gradient_as_bucket_view=False,
        static_graph=False, delay_all_reduce_named_params=None, param_to_hook_all_reduce=None, mixed_precision=None,
        device_mesh=None, skip_all_reduce_unused_params=False, bucket_cap_mb_list=None,
    ):  # fmt: skip
        super().__init__()
        from ... import distributed  # upward: a model in several processes asks for their group

        for name, value in (
            ("delay_all_reduce_named_params", delay_all_reduce_named_params), ("device_mesh", device_mesh),
            ("param_to_hook_all_reduce", param_to_hook_all_reduce), ("mixed_precision", mixed_precision),
            ("bucket_cap_mb_list", bucket_cap_mb_list),
            ("skip_all_reduce_unused_params", skip_all_reduce_unused_params or None),
        ):  # fmt: skip
            if value is not None:
                raise NotImplementedError(f"DistributedDataParallel: {name} is not in cresset yet")
        self._distributed = distributed
        self.process_group = distributed.world.member_of(process_group, "DistributedDataParallel")
        self.module, self.dim, self.broadcast_buffers = module, dim, broadcast_buffers
        self.device_ids, self.output_device = device_ids, output_device
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError(
                f"DistributedDataParallel: device_ids can only be None or contain a single element, got {device_ids}"
            )
        self._skipped = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [(n, p) for n, p in module.named_parameters() if n not in self._skipped]
        self._names = {id(p): n for n, p in named}
        self._trained = [p for _, p in named if p.requires_grad]
        if not self._trained:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
                "gradient."
            )
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.gradient_as_bucket_view, self.require_backward_grad_sync = gradient_as_bucket_view, True
        self.bucket_bytes_cap = BUCKET if bucket_cap_mb is None else int(bucket_cap_mb * 1024 * 1024)
        self._world = self.process_group.size()
        self._hook = None
        if init_sync:
            self._check_alike(named)
            self._sync([*(p.detach() for _, p in named), *self._buffers_to_sync()])
        first = FIRST_BUCKET if bucket_cap_mb is None else self.bucket_bytes_cap
        groups = _buckets(self._trained, (first, self.bucket_bytes_cap))
        self._buckets = [_Bucket(i, ps, gradient_as_bucket_view) for i, ps in enumerate(groups)]
        self._bucket_of = {id(p): b for b in self._buckets for p in b.parameters}
        self._unfinished, self._used, self._running = None, None, False
        for parameter in self._trained:
            parameter.register_post_accumulate_grad_hook(self._on_gradient)

    # ---- alike

    def _check_alike(self, named):
        if self._world == 1:
            return
        mine = [(n, list(p.shape), str(p.dtype)) for n, p in named]
        every = [None] * self._world
        self._distributed.all_gather_object(every, mine, self.process_group)
        for rank, other in enumerate(every):
            if other != every[0]:
                here = next((pair for pair in zip(every[0], other) if pair[0] != pair[1]), (len(every[0]), len(other)))
                raise RuntimeError(
                    f"DistributedDataParallel: the models of rank 0 and rank {rank} differ: {here[0]} and {here[1]}"
                )

    def _buffers_to_sync(self):
        return [b.detach() for n, b in self.module.named_buffers() if n not in self._skipped]

    def _sync(self, tensors):
        """Give rank 0's elements to all: tensors of a dtype travel together."""
        if self._world == 1:
            return
        kinds = {}
        for tensor in tensors:
            kinds.setdefault((tensor.dtype, tensor.device), []).append(tensor)
        with cresset.no_grad():
            for same in kinds.values():
                flat = cresset.cat([t.reshape(-1) for t in same])
                self._distributed.broadcast(flat, group=self.process_group, group_src=0)
                for tensor, part in zip(same, flat.split([t.numel() for t in same]), strict=True):
                    tensor.copy_(part.view(tensor.shape))

    # ---- forward

    def forward(self, *inputs, **kwargs):
        syncs = self.training and cresset.is_grad_enabled() and self.require_backward_grad_sync
        if syncs and self._unfinished:
            raise RuntimeError(self._unused_words())
        if self.training and self.broadcast_buffers and (buffers := self._buffers_to_sync()):
            self._sync(buffers)
        if self.device_ids:
            device = (
                cresset.device("cuda", self.device_ids[0])
                if isinstance(self.device_ids[0], int)
                else self.device_ids[0]
            )
            inputs, kwargs = _moved(inputs, device), _moved(kwargs, device)
        output = self.module(*inputs, **kwargs)
        if syncs:
            for bucket in self._buckets:
                bucket.start()
            self._running, self._unfinished, self._used = False, None, None
            if self.find_unused_parameters or self.static_graph:
                self._used = self._reached(output)
        return output

    def _reached(self, output):
        """The parameters that have a part in the outputs, by walking back from them."""
        seen, found = set(), set()
        stack = [t.grad_fn for t in _tensors_in(output) if t.grad_fn is not None]
        found.update(id(t) for t in _tensors_in(output) if t.grad_fn is None and t.requires_grad)
        while stack:
            node = stack.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            variable = getattr(node, "variable", None)
            if variable is not None:
                found.add(id(variable))
            stack.extend(following for following, _ in node.next_functions)
        return found

    # ---- backward

    def _on_gradient(self, parameter):
        if not self.require_backward_grad_sync:
            return
        if not self._running:
            self._running = True
            Variable._execution_engine.queue_callback(self._finish)
            if self._used is not None:
                for bucket in self._buckets:
                    for p in bucket.parameters:
                        if id(p) not in self._used:
                            self._ready(p, bucket)
        self._ready(parameter, self._bucket_of[id(parameter)])

    def _ready(self, parameter, bucket):
        """A gradient is there, or will not come: when all of a bucket are, it leaves."""
        if id(parameter) not in bucket.missing:
            return
        view, grad = bucket.views.get(id(parameter)), parameter.grad
        with cresset.no_grad():
            if view is None:
                grad = cresset.zeros_like(parameter) if grad is None else grad.detach()
                bucket.alone[id(parameter)] = grad.div_(self._world) if self._world > 1 else grad
            elif grad is None:
                view.zero_()
            elif grad is not view and grad.data_ptr() != view.data_ptr():
                if self._hook is None:
                    cresset.div(grad, self._world, out=view)
                else:
                    view.copy_(grad)
            elif self._hook is None:
                view.div_(self._world)
        bucket.missing.discard(id(parameter))
        if not bucket.missing:
            self._leave()

    def _leave(self):
        """Begin the exchanges of full buckets, in order: all processes must do so alike."""
        for bucket in self._buckets:
            if bucket.missing:
                return
            if bucket.works is not None or bucket.future is not None:
                continue
            if self._hook is not None:
                last = bucket.index == len(self._buckets) - 1
                bucket.future = self._hook(GradBucket(bucket.index, bucket.flat, bucket.parameters, last))
            else:
                tensors = [bucket.alone[id(p)] for p in bucket.parameters if id(p) in bucket.alone]
                tensors += [bucket.flat] if bucket.views else []
                bucket.works = [self._begin(tensor) for tensor in tensors] if self._world > 1 else []

    def _begin(self, tensor):
        return self._distributed.all_reduce(tensor, group=self.process_group, async_op=True)

    def _finish(self):
        """Backward is over: wait for what is on its way, and give the parameters their gradients."""
        self._running = False
        unfinished = [p for b in self._buckets for p in b.parameters if id(p) in b.missing]
        if unfinished:
            self._unfinished = [self._names[id(p)] for p in unfinished]
            return
        used = self._used_anywhere() if self._used is not None else None
        with cresset.no_grad():
            for bucket in self._buckets:
                self._wait(bucket)
                for p in bucket.parameters:
                    if used is not None and id(p) not in used:
                        continue  # no process has a gradient for it: its own stays as it is
                    view = bucket.views.get(id(p))
                    if view is None:
                        p.grad = bucket.alone[id(p)] if p.grad is None else p.grad
                    elif self.gradient_as_bucket_view:
                        p.grad = view
                    elif p.grad is None:
                        p.grad = view.clone()
                    else:
                        p.grad.copy_(view)

    def _wait(self, bucket):
        """Until the averages of a bucket are there."""
        if bucket.works is not None:
            for work in bucket.works:
                work.wait()
            return
        result = bucket.future.wait()
        result = result[0] if isinstance(result, (list, tuple)) else result
        if result.data_ptr() != bucket.flat.data_ptr():
            bucket.flat.copy_(result)

    def _used_anywhere(self):
        flags = cresset.tensor([float(id(p) in self._used) for p in self._trained])
        self._distributed.all_reduce(flags, group=self.process_group)
        return {id(p) for p, flag in zip(self._trained, flags.tolist(), strict=True) if flag}

    def _unused_words(self):
        names = ", ".join(self._unfinished[:10]) + (", ..." if len(self._unfinished) > 10 else "")
        return (
            "Expected to have finished reduction in the prior iteration before starting a new one. These parameters "
            "had no part "
            f"in the loss, so their gradients were never ready: {names}. Pass find_unused_parameters=True to "
            "DistributedDataParallel, or let forward return everything that the loss is made of"
        )

    # ---- settings

    @contextlib.contextmanager
    def no_sync(self):
        """A context in which gradients stay in this process and add up; the first backward pass after it averages them."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state, hook):
        """Let `hook(state, bucket)` exchange the gradients of a bucket: it gives a Future of the result.

        Args:
            state: passed to the hook.
            hook: a function of `state` and a GradBucket.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self._hook is not None:
            raise RuntimeError("register_comm_hook can only be called once.")
        self._hook = lambda bucket: hook(state, bucket)
        for bucket in self._buckets:
            bucket.pack(True)

    def _set_static_graph(self):
        self.static_graph = True

    def _get_ddp_logging_data(self):
        return {"world_size": self._world, "rank": self.process_group.rank(), "num_buckets": len(self._buckets)}

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module, params_and_buffers_to_ignore):
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore

    def __getstate__(self):
        raise RuntimeError(
            "DistributedDataParallel: save `module`, the model inside; the wrapper belongs to its processes"
        )

    def __deepcopy__(self, memo):
        self.__getstate__()


def _moved(value, device):
    if isinstance(value, cresset.Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {key: _moved(item, device) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_moved(item, device) for item in value)
    return value
