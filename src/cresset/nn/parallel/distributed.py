"""DistributedDataParallel: the same model in several processes, each with its part of the data; gradients are averaged
while backward runs.

Gradients travel in buckets: several parameters in one exchange, in the order in which backward reached them the first
time. A bucket leaves as soon as its last gradient is there, so that the exchange and the rest of backward overlap.
Gradients are exchanged where they lie, unless copying them into the bucket and back costs less than a message: what
carries them knows from which size on.
"""

import contextlib
import os

import cresset

from ...autograd.variable import Variable
from ..module import Module
from . import buckets
from .mixed_precision import _MixedPrecision


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
        delay_all_reduce_named_params: pairs of name and parameter whose gradients travel all at once, when that of
            `param_to_hook_all_reduce` is there.
        mixed_precision: a _MixedPrecision.
        device_mesh: a mesh of one dimension, in place of process_group.
        skip_all_reduce_unused_params: buckets without a used parameter do not travel; every process must use the same.
        bucket_cap_mb_list: megabytes of the first bucket, the second, ...
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

        if (delay_all_reduce_named_params is None) != (param_to_hook_all_reduce is None):
            raise ValueError(
                "DistributedDataParallel: delay_all_reduce_named_params and param_to_hook_all_reduce need each other"
            )
        if device_mesh is not None:
            if process_group is not None:
                raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
            if device_mesh.ndim != 1:
                raise RuntimeError(f"Only 1D device mesh is supported, but got {device_mesh}.")
            process_group, self.device_mesh = device_mesh.get_group(mesh_dim=0), device_mesh
        self._distributed = distributed
        self.process_group = distributed.world.member_of(process_group, "DistributedDataParallel")
        self.module, self.dim, self.broadcast_buffers = module, dim, broadcast_buffers
        self.device_ids, self.output_device = device_ids, output_device
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError(
                f"DistributedDataParallel: device_ids can only be None or contain a single element, got {device_ids}"
            )
        self.mixed_precision = _MixedPrecision() if mixed_precision is None else mixed_precision
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [(n, p) for n, p in module.named_parameters() if n not in self.parameters_to_ignore]
        self._names = {id(p): n for n, p in named}
        self._delayed = [p for _, p in delay_all_reduce_named_params or ()]
        late = {id(p) for p in self._delayed}
        self._trained = [p for _, p in named if p.requires_grad and id(p) not in late]
        if not self._trained and not self._delayed:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
                "gradient."
            )
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.gradient_as_bucket_view, self.require_backward_grad_sync = gradient_as_bucket_view, True
        self.skip_all_reduce_unused_params = skip_all_reduce_unused_params
        self._caps = buckets.caps(bucket_cap_mb, bucket_cap_mb_list)
        self.bucket_bytes_cap = max(self._caps)
        self._world = self.process_group.size()
        self._hook, self._hook_name, self._iterations = None, "", 0
        self._join_config, self._active = None, None
        if init_sync:
            self._check_alike(named)
            self._sync([*(p.detach() for _, p in named), *self._buffers_to_sync()])
        self._has_buffers = bool(self._buffers_to_sync())
        self.mixed_precision.cast_buffers(self._buffers_to_sync())
        self._set_buckets(self._trained[::-1])
        self._arrived, self._rebuilt = [], False
        self._unfinished, self._used, self._running, self._on_their_way = None, None, False, []
        for parameter in self._trained:
            for handle in getattr(parameter, "_optimizer_hook_handles", ()):  # its step waits for the average
                handle.remove()
            parameter.register_post_accumulate_grad_hook(self._on_gradient)
        if self._delayed:
            self._delayed_bucket = buckets.Bucket(0, self._delayed, buckets.ALL)
            param_to_hook_all_reduce.register_post_accumulate_grad_hook(self._reduce_delayed)

    def _set_buckets(self, order):
        in_place = self._averages_in_place() and not self.gradient_as_bucket_view
        carrier = self._distributed.collectives
        copied = carrier.copied_to_average(self.process_group, order[0].device) if in_place else buckets.ALL
        self._buckets = buckets.divided(order, self._caps, copied)
        self._bucket_of = {id(p): b for b in self._buckets for p in b.parameters}

    def _averages_in_place(self):
        """Whether gradients are averaged as they are: no hook, no other dtype."""
        return self._hook is None and self.mixed_precision.travelling is None

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
        return [b.detach() for n, b in self.module.named_buffers() if n not in self.parameters_to_ignore]

    def _sync(self, tensors, source=0):
        """Give one rank's elements to all: tensors of a dtype travel together."""
        if self._world == 1:
            return
        kinds = {}
        for tensor in tensors:
            kinds.setdefault((tensor.dtype, tensor.device), []).append(tensor)
        with cresset.no_grad():
            for same in kinds.values():
                flat = cresset.cat([t.reshape(-1) for t in same])
                self._distributed.broadcast(flat, group=self.process_group, group_src=source)
                for tensor, part in zip(same, flat.split([t.numel() for t in same]), strict=True):
                    tensor.copy_(part.view(tensor.shape))

    def _sync_buffers(self, takes_part=True):
        """Make the buffers those of rank 0; where some processes have no more data, those of the last that has."""
        if self.broadcast_buffers and self._has_buffers and (tensors := self._buffers_to_sync()):
            joining = self._join_config is not None and self._join_config.enable
            self._sync(tensors, self._last_rank(takes_part) if joining else 0)

    def _last_rank(self, is_one):
        """The highest rank of those that say so."""
        rank = cresset.tensor([self.process_group.rank() if is_one else -1], device=self.join_device)
        self._distributed.all_reduce(rank, self._distributed.ReduceOp.MAX, self.process_group)
        return int(rank)

    def _rebuild(self):
        """Buckets in the order in which gradients arrived in rank 0's first pass: all processes must have the same."""
        self._rebuilt = True
        place = {id(p): i for i, p in enumerate(self._trained)}
        order = cresset.tensor([place[id(p)] for p in self._arrived], device=self._trained[0].device)
        if self._world > 1:
            self._distributed.broadcast(order, group=self.process_group, group_src=0)
        self._set_buckets([self._trained[i] for i in order.tolist()])

    # ---- forward

    def forward(self, *inputs, **kwargs):
        syncs = self.training and cresset.is_grad_enabled() and self.require_backward_grad_sync
        if syncs and self._unfinished:
            raise RuntimeError(self._unused_words())
        if self._join_config is not None and self._join_config.enable:
            self._meet_in_forward(syncs)
        elif syncs and not self._rebuilt and len(self._arrived) == len(self._trained) and self._used is None:
            self._rebuild()
        if self.training:
            self._sync_buffers()
        if self.device_ids:
            device = (
                cresset.device("cuda", self.device_ids[0])
                if isinstance(self.device_ids[0], int)
                else self.device_ids[0]
            )
            inputs, kwargs = _moved(inputs, device), _moved(kwargs, device)
        output = self.mixed_precision.call(self.module, self.parameters_to_ignore, inputs, kwargs)
        if syncs:
            self._start_pass()
            self._iterations += 1
            if self.find_unused_parameters or self.static_graph:
                self._used = self._reached(output)
        return output

    def _start_pass(self):
        for bucket in self._buckets:
            bucket.start()
        self._on_their_way = []
        self._running, self._unfinished, self._used, self._arrived = False, None, None, []

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
        self._arrived.append(parameter)
        if not self._running:
            self._running = True
            Variable._execution_engine.queue_callback(self._finish)
            if self._used is not None:
                for bucket in self._buckets:
                    for key in bucket.keys - self._used:
                        self._ready(key, bucket)
        self._ready(id(parameter), self._bucket_of[id(parameter)])

    def _ready(self, key, bucket):
        """A gradient is there, or will not come: when all of a bucket are, it leaves."""
        if key not in bucket.missing:
            return
        bucket.missing.discard(key)
        if not bucket.missing:
            self._leave()
        elif self._on_their_way:
            self._on_their_way[-1].is_completed()  # an exchange goes on when it is asked about

    def _leave(self):
        """Begin the exchanges of full buckets, in order: all processes must do so alike."""
        for bucket in self._buckets:
            if bucket.missing:
                return
            if not bucket.has_left():
                bucket.fill()
                self._exchange(bucket)

    def _exchange(self, bucket):
        skips = self._used is not None and self.skip_all_reduce_unused_params
        if skips and not any(id(p) in self._used for p in bucket.parameters):
            bucket.works = []
        elif self._averages_in_place():
            tensors = [bucket.alone[id(p)] for p in bucket.parameters if id(p) in bucket.alone]
            tensors += [bucket.flat] if bucket.views else []
            bucket.works = [self._begin(tensors)] if self._world > 1 else []
            self._on_their_way += bucket.works
        else:
            last = bucket.index == len(self._buckets) - 1
            flat = self.mixed_precision.cast_gradients(bucket.flat)
            grads = buckets.GradBucket(bucket.index, flat, bucket.parameters, last)
            bucket.future = self._hook(grads) if self._hook is not None else self._average(flat)

    def _share(self):
        """Of how many processes the average is."""
        return self._world if self._active is None else self._active

    def _average(self, flat):
        return self._begin([flat]).get_future()

    def _begin(self, tensors):
        return self._distributed.collectives.average(tensors, self._share(), self.process_group)

    def _reduce_delayed(self, _):
        """Average the gradients that were asked to wait, all at once."""
        if not self.require_backward_grad_sync:
            return
        bucket = self._delayed_bucket
        with cresset.no_grad():
            for p in bucket.parameters:
                view = bucket.views[id(p)]
                view.zero_() if p.grad is None else view.copy_(p.grad)
            self._average(bucket.flat).wait()
            for p in bucket.parameters:
                p.grad = bucket.views[id(p)].clone()

    def _finish(self):
        """Backward is over: wait for what is on its way, and give the parameters their gradients."""
        self._running = False
        unfinished = [p for b in self._buckets for p in b.parameters if id(p) in b.missing]
        if unfinished:
            self._unfinished = [self._names[id(p)] for p in unfinished]
            return
        self._deliver(self._used_anywhere() if self._used is not None else None)

    def _deliver(self, used):
        """Give the parameters the gradients that came: all, or those of `used`."""
        with cresset.no_grad():
            for bucket in self._buckets:
                bucket.wait()
                for p in bucket.parameters:
                    if used is not None and id(p) not in used:
                        continue  # no process has a gradient for it: its own stays as it is
                    view = bucket.views.get(id(p))
                    if view is None:
                        grad = bucket.alone[id(p)]
                        now = p.grad
                        if now is not grad and (now is None or now.data_ptr() != grad.data_ptr()):
                            p.grad = grad
                    elif self.gradient_as_bucket_view:
                        p.grad = view
                    elif p.grad is None:
                        p.grad = view.clone()
                    else:
                        p.grad.copy_(view)
                    if hasattr(p, "_in_backward_optimizers"):
                        for optimizer in p._in_backward_optimizers:
                            optimizer.step()
                        p.grad = None

    def _used_anywhere(self):
        return self._union([float(id(p) in self._used) for p in self._trained])

    def _union(self, flags):
        """The parameters for which some process has a flag."""
        flags = cresset.tensor(flags, device=self.join_device)
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
        """A context in which gradients stay in this process and add up; the first backward pass after it averages
        them."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state, hook):
        """Let `hook(state, bucket)` exchange the gradients of a bucket: it gives a Future of the result.

        Args:
            state: passed to the hook.
            hook: a function of `state` and a GradBucket; torch.distributed.algorithms.ddp_comm_hooks has some.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self._hook is not None:
            raise RuntimeError("register_comm_hook can only be called once.")
        self._hook = lambda bucket: hook(state, bucket)
        for bucket in self._buckets:
            bucket.pack(buckets.ALL)
        self._hook_name = getattr(hook, "__qualname__", type(hook).__qualname__)

    def _register_builtin_comm_hook(self, comm_hook_type):
        from ...distributed.algorithms.ddp_comm_hooks import default_hooks  # upward: hooks are made of collectives

        hooks = {"ALLREDUCE": default_hooks.allreduce_hook, "FP16_COMPRESS": default_hooks.fp16_compress_hook}
        self.register_comm_hook(self.process_group, hooks[comm_hook_type.name])

    def _set_static_graph(self):
        self.static_graph = True

    def _get_ddp_logging_data(self):
        """What this model is set to and what it did, by PyTorch's names."""
        sizes = ", ".join(str(bucket.size()) for bucket in self._buckets)
        parameters = self._trained + self._delayed
        unused = [] if self._used is None else [p for p in self._trained if id(p) not in self._used]
        place = {id(p): i for i, p in enumerate(self._trained)}
        return {
            "world_size": self._world, "rank": self.process_group.rank(), "module_name": type(self.module).__name__,
            "backend_name": str(self.process_group.name()), "device_ids": ", ".join(map(str, self.device_ids or ())),
            "output_device": -1 if self.output_device is None else self.output_device,
            "dtypes": ", ".join(sorted({str(p.dtype).removeprefix("torch.") for p in parameters})),
            "master_addr": os.environ.get("MASTER_ADDR", "N/A"), "master_port": os.environ.get("MASTER_PORT", "N/A"),
            "num_parameter_tensors": len(parameters),
            "is_multi_device_module": int(len({p.device for p in parameters}) > 1),
            "total_parameter_size_bytes": sum(p.numel() * p.element_size() for p in parameters),
            "unused_parameter_size": sum(p.numel() * p.element_size() for p in unused),
            "broadcast_buffers": int(self.broadcast_buffers), "bucket_cap_bytes": self.bucket_bytes_cap,
            "find_unused_parameters": int(self.find_unused_parameters), "static_graph": int(self.static_graph),
            "gradient_as_bucket_view": int(self.gradient_as_bucket_view), "num_buckets_reduced": len(self._buckets),
            "bucket_sizes": sizes, "has_rebuilt_buckets": int(self._rebuilt),
            "rebuilt_bucket_sizes": sizes if self._rebuilt else "", "iteration": self._iterations,
            "has_sync_bn": int(any("SyncBatchNorm" in type(m).__name__ for m in self.module.modules())),
            "comm_hook": self._hook_name,
            "join_uneven_inputs": int(self._join_config is not None and self._join_config.enable),
            "prev_iteration_grad_ready_order_indices": ", ".join(str(place[id(p)]) for p in self._arrived),
        }  # fmt: skip

    # ---- processes with different numbers of batches

    def join(self, divide_by_initial_world_size=True, enable=True, throw_on_early_termination=False):
        """A context for loops that are longer in some processes than in others: those that are done first take part in
        the exchanges of the others with zeros, and get the model of the last at the end.

        Args:
            divide_by_initial_world_size: average over all processes; or only over those that have data left.
            enable: False for loops of one length: nothing is checked.
            throw_on_early_termination: raise an error in every process as soon as one is done.
        """
        from ...distributed.algorithms.join import Join  # upward: joining is made of collectives

        return Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, **kwargs):
        """What this process does in place of the others' steps, for Join."""
        from ...distributed.algorithms.join import ModelJoinHook  # upward: joining is made of collectives

        self._divide_by_all = kwargs.get("divide_by_initial_world_size", True)
        return ModelJoinHook(self)

    @property
    def join_device(self):
        """Where its collectives run."""
        return next(self.module.parameters()).device

    @property
    def join_process_group(self):
        """The processes that take part."""
        return self.process_group

    def _meet_in_forward(self, syncs):
        from ...distributed.algorithms.join import Join  # upward: joining is made of collectives

        work = Join.notify_join_context(self)
        self._active = None
        if work is not None and not self._divide_by_all:
            self._active = int(work.result()[0])
        self._someone_syncs(syncs)

    def _someone_syncs(self, syncs):
        flag = cresset.tensor([float(syncs)], device=self.join_device)
        self._distributed.all_reduce(flag, group=self.process_group)
        return bool(flag)

    def _take_part_in_a_step(self):
        """Do with zeros what the others do in forward and backward."""
        syncs = self._someone_syncs(False)
        self._sync_buffers(takes_part=False)
        if not syncs:
            return
        self._start_pass()
        self._active = None
        for bucket in self._buckets:
            bucket.empty()
            self._exchange(bucket)
        unused = self.find_unused_parameters or self.static_graph
        self._deliver(self._union([0.0] * len(self._trained)) if unused else None)

    def _take_the_last_model(self, is_last):
        """At the end all have the model of a process that had the most data."""
        named = [p.detach() for n, p in self.module.named_parameters() if n not in self.parameters_to_ignore]
        self._sync([*named, *self._buffers_to_sync()], self._last_rank(is_last))

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
