"""FullyShardedDataParallel: a wrapper around a module that is sharded by `fully_shard`, with the settings and methods
of PyTorch's class. Parameters keep their names and shapes; there are no flat ones.
"""

import contextlib

import cresset

from ...nn import Module
from .. import collectives, objects, world
from ..device_mesh import DeviceMesh
from ..tensor.dtensor import DTensor
from .api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateKeyType,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictSettings,
    StateDictType,
)
from .policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from .sharded_module import FSDPModule, fully_shard
from .wrap import wrap_parts

__all__ = ["FullyShardedDataParallel", "OptimStateKeyType"]

WRAPPED = "_fsdp_wrapped_module"
HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)
CONFIGS = {
    StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (ShardedStateDictConfig, ShardedOptimStateDictConfig),
}


def _mesh_of(process_group, strategy, kind):
    """The grid for groups of processes and a strategy."""
    everyone = world.default_group("FullyShardedDataParallel")
    if strategy is ShardingStrategy.NO_SHARD:
        group = process_group if process_group is not None else everyone
        ranks = world.get_process_group_ranks(group)
        alone = world.new_group([world.get_rank()], use_local_synchronization=True)
        return DeviceMesh(kind, [[r] for r in ranks], mesh_dim_names=("replicate", "shard"), _groups=[group, alone])
    if strategy in HYBRID:
        if not isinstance(process_group, tuple):
            raise ValueError(
                "FullyShardedDataParallel: HYBRID_SHARD needs device_mesh=, a grid of two dimensions of "
                "which the first repeats, or process_group=(inside, between)"
            )
        inside, between = process_group
        first = world.get_process_group_ranks(inside)
        steps = [r - world.get_rank() for r in world.get_process_group_ranks(between)]
        ranks = [[r + step for r in first] for step in steps]
        names = ("replicate", "shard")
        return DeviceMesh(kind, ranks, mesh_dim_names=names, _groups=[between, inside])
    return DeviceMesh.from_group(process_group if process_group is not None else everyone, kind)


class FullyShardedDataParallel(Module):
    """A model whose parameters, gradients and optimizer state are cut over the processes.

    Args:
        module: wrapped, and sharded in place.
        process_group: the processes; for HYBRID_SHARD a pair (inside, between).
        sharding_strategy: a ShardingStrategy; by default FULL_SHARD.
        cpu_offload: a CPUOffload.
        auto_wrap_policy: which parts are wrapped by themselves; see wrap.py.
        backward_prefetch: begin to bring the next parameters together in backward; None: not.
        mixed_precision: a MixedPrecision.
        ignored_modules, ignored_states: modules, or parameters, that stay as they are.
        param_init_fn: fn(module) initializes modules on the device meta, each with its own parameters.
        device_id: where the module is brought first.
        sync_module_states: take parameters and buffers of the first process.
        forward_prefetch: begin to bring the next parameters together in forward, in the order of the one before.
        limit_all_gathers: PyTorch's way to bound memory on GPUs; here one exchange is under way beside the present one.
        use_orig_params: parameters keep their shapes in any case.
        device_mesh: the grid; for HYBRID_SHARD of two dimensions.
    """

    def __init__(
        self, module, process_group=None, sharding_strategy=None, cpu_offload=None, auto_wrap_policy=None,
        backward_prefetch=BackwardPrefetch.BACKWARD_PRE, mixed_precision=None, ignored_modules=None,
        param_init_fn=None, device_id=None, sync_module_states=False, forward_prefetch=False, limit_all_gathers=True,
        use_orig_params=False, ignored_states=None, device_mesh=None,
    ):  # fmt: skip
        super().__init__()
        if isinstance(module, FullyShardedDataParallel):
            raise RuntimeError("FullyShardedDataParallel: the module is wrapped already")
        if process_group is not None and device_mesh is not None:
            raise ValueError("Cannot pass both process_group and device_mesh at the same time.")
        if ignored_modules is not None and ignored_states is not None:
            raise ValueError(
                "Cannot pass both ignored_modules and ignored_states at the same time. Please just pass ignored_states."
            )
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        parts = list(ignored_modules or ())
        parameters = {p for part in parts for p in part.parameters()}
        for state in ignored_states or ():
            if isinstance(state, Module):
                parts.append(state)
                parameters.update(state.parameters())
            else:
                parameters.add(state)
        ignored = {inner for part in parts for inner in part.modules()}
        if device_id is not None:
            where = cresset.device("cuda", device_id) if isinstance(device_id, int) else cresset.device(device_id)
            module.to(where)
            kind = where.type
        else:
            first = next(module.parameters(), None)
            kind = first.device.type if first is not None and first.device.type != "meta" else "cpu"
        mesh = device_mesh if device_mesh is not None else _mesh_of(process_group, strategy, kind)
        if auto_wrap_policy is not None:
            settings = {
                "sharding_strategy": strategy, "cpu_offload": cpu_offload, "backward_prefetch": backward_prefetch,
                "mixed_precision": mixed_precision, "param_init_fn": param_init_fn,
                "sync_module_states": sync_module_states, "forward_prefetch": forward_prefetch,
                "limit_all_gathers": limit_all_gathers, "use_orig_params": use_orig_params,
            }  # fmt: skip
            states = list(parameters) or None

            def wrap_one(part, given):
                own = given.get("sharding_strategy", strategy)
                if isinstance(part, FullyShardedDataParallel):
                    return part
                where = {"device_mesh": mesh} if own is strategy else {}
                return FullyShardedDataParallel(part, ignored_states=states, **{**where, **given})

            wrap_parts(module, auto_wrap_policy, wrap_one, settings, ignored)
        _materialize(module, param_init_fn, ignored)
        if sync_module_states:
            _synchronize(module, mesh)
        precision = mixed_precision or MixedPrecision()
        if precision.buffer_dtype is not None:
            for buffers in (part._buffers for part in module.modules() if part not in ignored):
                for name, buffer in buffers.items():
                    if buffer is not None and buffer.is_floating_point():
                        buffers[name] = buffer.to(precision.buffer_dtype)
        offload = cpu_offload or CPUOffload()
        if precision.param_dtype is not None:
            _keep_precision(module, precision._module_classes_to_ignore, mesh, ignored)
        fully_shard(
            module,
            mesh=mesh,
            reshard_after_forward=strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.HYBRID_SHARD),
            mp_policy=MixedPrecisionPolicy(
                precision.param_dtype,
                precision.reduce_dtype,
                None,
                precision.cast_forward_inputs or precision.cast_root_forward_inputs,
            ),
            offload_policy=CPUOffloadPolicy() if offload.offload_params else OffloadPolicy(),
            ignored_params=parameters,
        )
        self._fsdp_wrapped_module = module
        self.sharding_strategy, self.cpu_offload, self.mixed_precision = strategy, offload, precision
        self.backward_prefetch, self.forward_prefetch = backward_prefetch, forward_prefetch
        self.limit_all_gathers, self._use_orig_params = limit_all_gathers, use_orig_params
        self.process_group = mesh.get_group(mesh.ndim - 1)
        self._device_mesh = mesh
        self._settings = StateDictSettings(StateDictType.FULL_STATE_DICT, FullStateDictConfig(),
                                           FullOptimStateDictConfig())  # fmt: skip
        self._register_state_dict_hook(_given_out)
        self._register_load_state_dict_pre_hook(_taken_in, with_module=True)
        group = module._fsdp_state.group
        group.looks_ahead = forward_prefetch
        if backward_prefetch is None:
            group.backward_prefetch = [_Nothing()]

    # ---- the wrapped module

    @property
    def module(self):
        """The wrapped module."""
        return self._fsdp_wrapped_module

    def forward(self, *args, **kwargs):
        """That of the wrapped module."""
        return self._fsdp_wrapped_module(*args, **kwargs)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__(WRAPPED), name)

    def __getitem__(self, key):
        return self._fsdp_wrapped_module[key]

    def check_is_root(self):
        """Whether no other instance has this one inside; known from the first forward on."""
        return self._fsdp_wrapped_module._fsdp_state.is_root

    @staticmethod
    def fsdp_modules(module, root_only=False):
        """The instances in a model; with root_only those that are in no other."""
        found = [part for part in module.modules() if isinstance(part, FullyShardedDataParallel)]
        if not root_only:
            return found
        inner = {part for one in found for part in one._fsdp_wrapped_module.modules()}
        return [one for one in found if one not in inner]

    def apply(self, fn):
        """Call fn on every module inside, with whole parameters."""
        with FullyShardedDataParallel.summon_full_params(self):
            return super().apply(fn)

    def named_parameters(self, *args, **kwargs):
        """The parameters; inside summon_full_params by the names of the plain model."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield (_clean(name) if self.__dict__.get("_summoned") else name), parameter

    def named_buffers(self, *args, **kwargs):
        """The buffers; inside summon_full_params by the names of the plain model."""
        for name, buffer in super().named_buffers(*args, **kwargs):
            yield (_clean(name) if self.__dict__.get("_summoned") else name), buffer

    # ---- gradients

    @contextlib.contextmanager
    def no_sync(self):
        """Inside, gradients add up in every process and are not reduced."""
        groups = _groups(self)
        before = [group.sync for group in groups]
        for group in groups:
            group.sync = False
        try:
            yield
        finally:
            for group, sync in zip(groups, before, strict=True):
                group.sync = sync

    def clip_grad_norm_(self, max_norm, norm_type=2.0):
        """Scale all gradients so that their norm together is at most `max_norm`; the norm before."""
        norm = cresset.nn.utils.clip_grad_norm_(self.parameters(), max_norm, norm_type)
        return norm.full_tensor() if isinstance(norm, DTensor) else norm

    def register_comm_hook(self, state, hook):
        """Refused: gradients are reduced by `fully_shard`."""
        raise NotImplementedError(
            "register_comm_hook: gradients of sharded parameters are reduced by one exchange that cannot be replaced; "
            "fully_shard's set_all_reduce_hook is called with the result"
        )

    # ---- whole parameters

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module, recurse=True, writeback=True, rank0_only=False, offload_to_cpu=False, with_grads=False
    ):
        """Inside, parameters are whole, plain tensors.

        Args:
            recurse: also those of instances inside.
            writeback: keep changes.
            rank0_only: PyTorch's way to save memory in the other processes, where they stay cut.
            offload_to_cpu: bring them to the CPU; refused, as changes would be lost.
            with_grads: bring gradients together, too.
        """
        if offload_to_cpu and any(p.is_cuda for p in module.parameters()):
            raise NotImplementedError("summon_full_params: offload_to_cpu is not done; call .cpu() on what is needed")
        if rank0_only and writeback:
            raise NotImplementedError("rank0_only and writeback are not supported together")
        roots = FullyShardedDataParallel.fsdp_modules(module, root_only=True)
        groups = [group for root in roots for group in (_groups(root) if recurse else _groups(root)[:1])]
        instances = FullyShardedDataParallel.fsdp_modules(module)
        for group in groups:
            group.unshard()
            if with_grads:
                for unit in group.units:
                    grad = unit.current().grad
                    if grad is not None:
                        unit.leaf().grad = _whole_grad(unit, grad)
        shown = not rank0_only or world.get_rank() == 0
        if not shown:
            for group in groups:
                group.reshard()
        for one in instances:
            one.__dict__["_summoned"] = True
        try:
            yield
        finally:
            for one in instances:
                one.__dict__["_summoned"] = False
            for group in groups:
                for unit in group.units:
                    if writeback:
                        _write_back(unit, group)
                    if with_grads and unit.whole is not None:
                        unit.leaf().grad = None
                group.reshard()

    # ---- state

    @staticmethod
    def set_state_dict_type(module, state_dict_type, state_dict_config=None, optim_state_dict_config=None):
        """What state_dict gives from now on; the settings before."""
        kinds = CONFIGS[state_dict_type]
        config = state_dict_config if state_dict_config is not None else kinds[0]()
        optim_config = optim_state_dict_config if optim_state_dict_config is not None else kinds[1]()
        if type(config) is not kinds[0]:
            raise RuntimeError(f"Expected state_dict_config of type {kinds[0]} but got {type(config)}")
        if type(optim_config) is not kinds[1]:
            raise RuntimeError(f"Expected optim_state_dict_config of type {kinds[1]} but got {type(optim_config)}")
        before = None
        for one in FullyShardedDataParallel.fsdp_modules(module):
            before = before or one._settings
            one._settings = StateDictSettings(state_dict_type, config, optim_config)
        return before

    @staticmethod
    def get_state_dict_type(module):
        """The settings of state_dict."""
        found = FullyShardedDataParallel.fsdp_modules(module)
        if not found:
            raise RuntimeError("get_state_dict_type: there is no FullyShardedDataParallel in the model")
        return found[0]._settings

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(module, state_dict_type, state_dict_config=None, optim_state_dict_config=None):
        """Inside, what state_dict gives."""
        found = FullyShardedDataParallel.fsdp_modules(module)
        before = [one._settings for one in found]
        FullyShardedDataParallel.set_state_dict_type(module, state_dict_type, state_dict_config,
                                                     optim_state_dict_config)  # fmt: skip
        try:
            yield
        finally:
            for one, settings in zip(found, before, strict=True):
                one._settings = settings

    @staticmethod
    def optim_state_dict(model, optim, optim_state_dict=None, group=None):
        """The state of an optimizer by names of parameters, as the settings of state_dict ask for it.

        Args:
            optim_state_dict: what `optim.state_dict()` gave; by default asked for now.
            group: the processes; those of the model.
        """
        settings = FullyShardedDataParallel.get_state_dict_type(model)
        config = settings.optim_state_dict_config
        made = _named_state(model, optim, optim_state_dict)
        if settings.state_dict_type is StateDictType.FULL_STATE_DICT:
            made = _mapped(made, lambda t: t.full_tensor() if isinstance(t, DTensor) else t)
            if config.rank0_only and world.get_rank(group) != 0:
                return {}
        elif settings.state_dict_type is StateDictType.LOCAL_STATE_DICT:
            made = _mapped(made, lambda t: t.to_local() if isinstance(t, DTensor) else t)
        return _mapped(made, lambda t: t.cpu()) if config.offload_to_cpu else made

    @staticmethod
    def optim_state_dict_to_load(
        model, optim, optim_state_dict, is_named_optimizer=False, load_directly=False, group=None
    ):
        """What `optim_state_dict` gave, as `optim.load_state_dict` takes it.

        Args:
            is_named_optimizer: keep the names.
            load_directly: load it, too.
            group: the processes; those of the model.
        """
        from ..tensor import distribute_tensor

        names = {parameter: _clean(name) for name, parameter in model.named_parameters()}
        numbers, state, number = {}, {}, 0
        for params in (g["params"] for g in optim.param_groups):
            for p in params:
                numbers[names[p]] = names[p] if is_named_optimizer else number
                number += 1
                kept = optim_state_dict["state"].get(names[p])
                if kept is None:
                    continue
                state[numbers[names[p]]] = {
                    key: distribute_tensor(value.detach(), p.device_mesh, p.placements, src_data_rank=None)
                    if isinstance(p, DTensor) and isinstance(value, cresset.Tensor) and value.shape == p.shape
                    and not isinstance(value, DTensor)
                    else value
                    for key, value in kept.items()
                }  # fmt: skip
        groups = [
            {**saved, "params": [numbers[name] for name in saved["params"] if name in numbers]}
            for saved in optim_state_dict["param_groups"]
        ]
        made = {"state": state, "param_groups": groups}
        if load_directly:
            optim.load_state_dict(made)
        return made

    @staticmethod
    def full_optim_state_dict(model, optim, optim_input=None, rank0_only=True, group=None):
        """PyTorch's older name: the state of an optimizer with whole tensors.

        Args:
            optim_input: what the optimizer was made of; found in it.
        """
        config = FullOptimStateDictConfig(rank0_only=rank0_only)
        with FullyShardedDataParallel.state_dict_type(model, StateDictType.FULL_STATE_DICT, None, config):
            return FullyShardedDataParallel.optim_state_dict(model, optim, group=group)

    @staticmethod
    def sharded_optim_state_dict(model, optim, group=None):
        """PyTorch's older name: the state of an optimizer with distributed tensors."""
        with FullyShardedDataParallel.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
            return FullyShardedDataParallel.optim_state_dict(model, optim, group=group)

    @staticmethod
    def shard_full_optim_state_dict(full_optim_state_dict, model, optim_input=None, optim=None):
        """PyTorch's older name: whole state as `optim.load_state_dict` takes it.

        Args:
            optim_input: what the optimizer was made of; found in `optim`, which is needed.
        """
        if optim is None:
            raise ValueError("shard_full_optim_state_dict: give optim=")
        return FullyShardedDataParallel.optim_state_dict_to_load(model, optim, full_optim_state_dict)

    @staticmethod
    def scatter_full_optim_state_dict(full_optim_state_dict, model, optim_input=None, optim=None, group=None):
        """PyTorch's older name: whole state that rank 0 has, as `optim.load_state_dict` takes it in every process.

        Args:
            full_optim_state_dict: of rank 0; the others' is not looked at.
            optim_input: what the optimizer was made of; found in `optim`, which is needed.
            group: the processes; by default all.
        """
        if optim is None:
            raise ValueError("scatter_full_optim_state_dict: give optim=")
        state = [full_optim_state_dict if world.get_rank(group) == 0 else None]
        objects.broadcast_object_list(state, group_src=0, group=group)
        return FullyShardedDataParallel.optim_state_dict_to_load(model, optim, state[0])

    @staticmethod
    def rekey_optim_state_dict(optim_state_dict, optim_state_key_type, model, optim_input=None, optim=None):
        """An optimizer's state by the names of parameters, or by their numbers.

        Args:
            optim_state_key_type: an OptimStateKeyType, by what the result is.
            model: whose parameters they are; it need not be one of FSDP.
            optim_input: the parameters or groups that the optimizer was made of; by default the model's.
            optim: or the optimizer itself.
        """
        names = {parameter: _clean(name) for name, parameter in model.named_parameters()}
        given = [group["params"] for group in optim.param_groups] if optim is not None else optim_input
        flat = []
        for one in names if given is None else given:
            flat += one["params"] if isinstance(one, dict) else one if isinstance(one, (list, tuple)) else [one]
        if optim_state_key_type is OptimStateKeyType.PARAM_NAME:
            keys = {number: names[p] for number, p in enumerate(flat)}
        elif optim_state_key_type is OptimStateKeyType.PARAM_ID:
            keys = {names[p]: number for number, p in enumerate(flat)}
        else:
            raise ValueError(f"rekey_optim_state_dict: no OptimStateKeyType: {optim_state_key_type!r}")
        state = {keys.get(key, key): kept for key, kept in optim_state_dict["state"].items()}
        groups = [
            {**group, "params": [keys.get(key, key) for key in group["params"]]}
            for group in optim_state_dict["param_groups"]
        ]
        return {"state": state, "param_groups": groups}

    flatten_sharded_optim_state_dict = staticmethod(
        lambda sharded_optim_state_dict, model, optim: FullyShardedDataParallel.optim_state_dict_to_load(
            model, optim, sharded_optim_state_dict
        )
    )


def _keep_precision(module, classes, mesh, ignored):
    """Modules of these classes compute in their own dtype: inputs are brought to it, results back."""
    for part in module.modules():
        if not isinstance(part, tuple(classes)) or isinstance(part, FSDPModule) or part in ignored:
            continue
        first = next(part.parameters(), None)
        if first is None:
            continue

        def before(part, inputs, dtype=first.dtype):
            part.__dict__["_given_dtype"] = inputs[0].dtype
            return tuple(x.to(dtype) if isinstance(x, cresset.Tensor) else x for x in inputs)

        fully_shard(part, mesh=mesh)
        part.register_forward_pre_hook(before)
        part.register_forward_hook(lambda part, _, output: output.to(part.__dict__["_given_dtype"]))


class _Nothing:
    """Stands where the next module to bring together would: none."""

    def unshard(self, async_op=False):
        """Nothing."""


def _clean(name):
    return name.replace(f"{WRAPPED}.", "")


def _groups(module):
    states = [getattr(part, "_fsdp_state", None) for part in module.modules()]
    found: list = []
    for state in states:
        if state is not None and state.group not in found:
            found.append(state.group)
    return found


def _materialize(module, init, ignored):
    for part in module.modules():
        own = [*part._parameters.values(), *part._buffers.values()]
        if part in ignored or not any(t is not None and t.is_meta and not isinstance(t, DTensor) for t in own):
            continue
        if init is not None:
            init(part)
        else:
            part.to_empty(device="cpu", recurse=False)
            if not hasattr(part, "reset_parameters"):
                raise ValueError(
                    f"FullyShardedDataParallel: {type(part).__name__} has parameters without elements (device "
                    "meta) and no reset_parameters; give param_init_fn"
                )
            with cresset.no_grad():
                part.reset_parameters()


def _synchronize(module, mesh):
    """Give the plain parameters and buffers of the grid's first process to all."""
    with cresset.no_grad():
        for tensor in [*module.parameters(), *module.buffers()]:
            if not isinstance(tensor, DTensor):
                for dim in range(mesh.ndim):
                    if mesh.shape[dim] > 1:
                        collectives.broadcast(tensor.detach(), group=mesh.get_group(dim), group_src=0)


def _whole_grad(unit, grad):
    whole = grad.full_tensor() if unit.inner is None else grad.redistribute(
        grad.device_mesh, [*[cresset.distributed.tensor.Replicate()] * (grad.device_mesh.ndim - unit.inner.mesh.ndim),
                           *unit.inner.placements])._local_tensor  # fmt: skip
    return whole.to(unit.dtype)


def _write_back(unit, group):
    """Cut the whole form again."""
    if not group.is_whole:
        return
    with cresset.no_grad():
        local = unit.current()._local_tensor
        place = group.mesh.get_local_rank(group.mesh.ndim - 1)
        part = unit.leaf().detach().narrow(unit.dim, min(place * unit.chunk, unit.shape[unit.dim]),
                                           local.shape[unit.dim])  # fmt: skip
        local.detach().copy_(part)


def _given_out(module, state_dict, prefix, local_metadata):
    """Names without the wrapper's, and tensors as the settings ask for them."""
    settings = module._settings
    config = settings.state_dict_config
    for key in [key for key in state_dict if key.startswith(prefix)]:
        value = state_dict.pop(key)
        if isinstance(value, DTensor):
            if settings.state_dict_type is StateDictType.FULL_STATE_DICT:
                value = value.full_tensor().detach()
                if config.rank0_only and world.get_rank() != 0:
                    continue
            elif settings.state_dict_type is StateDictType.LOCAL_STATE_DICT:
                value = value.to_local().detach()
        if config.offload_to_cpu and isinstance(value, cresset.Tensor):
            value = value.cpu()
        state_dict[prefix + _clean(key[len(prefix) :])] = value
    return state_dict


def _taken_in(module, state_dict, prefix, *_):
    """Names with the wrapper's again, and tensors as the parameters lie."""
    from ..tensor import distribute_tensor

    for group in _groups(module):
        group.reshard()
    inner = prefix + WRAPPED + "."
    mine = dict(module.named_parameters())
    for key in [key for key in state_dict if key.startswith(prefix) and not key.startswith(inner)]:
        state_dict[inner + key[len(prefix) :]] = state_dict.pop(key)
    for key in [key for key in state_dict if key.startswith(inner)]:
        value, rest = state_dict[key], key[len(prefix) :]
        target = next((p for name, p in mine.items() if _clean(name) == _clean(rest)), None)
        if isinstance(target, DTensor) and isinstance(value, cresset.Tensor) and not isinstance(value, DTensor):
            if module._settings.state_dict_type is StateDictType.LOCAL_STATE_DICT:
                value = DTensor._of(value, target._spec)
            elif value.shape == target.shape:
                value = distribute_tensor(value.detach(), target.device_mesh, target.placements, src_data_rank=None)
            state_dict[key] = value


def _named_state(model, optim, given):
    """An optimizer's state by names of parameters."""
    names = {parameter: _clean(name) for name, parameter in model.named_parameters()}
    raw = given if given is not None else optim.state_dict()
    by_number = [names[p] for group in optim.param_groups for p in group["params"]]
    state = {by_number[n] if isinstance(n, int) else n: dict(kept) for n, kept in raw["state"].items()}
    groups = [{**group, "params": [by_number[n] for n in group["params"]]} for group in raw["param_groups"]]
    return {"state": state, "param_groups": groups}


def _mapped(made, change):
    state = {
        name: {key: change(value) if isinstance(value, cresset.Tensor) else value for key, value in kept.items()}
        for name, kept in made["state"].items()
    }
    return {"state": state, "param_groups": made["param_groups"]}


FullyShardedDataParallel.__module__ = "torch.distributed.fsdp.fully_sharded_data_parallel"
