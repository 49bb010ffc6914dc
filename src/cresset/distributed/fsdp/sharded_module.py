"""fully_shard and FSDPModule: a module whose parameters are brought together around its forward and backward."""

import functools

import cresset

from ... import pytree
from .. import world
from ..device_mesh import DeviceMesh, init_device_mesh
from ..tensor.placement_types import Shard
from .policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from .units import Group, Unit, complete, later

__all__ = ["FSDPModule", "UnshardHandle", "fully_shard", "register_fsdp_forward_method", "share_comm_ctx"]


AS_IT_IS, ON_ITS_DEVICE = MixedPrecisionPolicy(), OffloadPolicy()


class Context:
    """What the groups of one root share: the order of forward and of the one before, whether a backward runs, and
    gradients that are on their way."""

    def __init__(self):
        self.order: list = []
        self.following: dict = {}  # group -> the one that came after it in the last forward
        self.groups: list = []
        self.reducing: list = []
        self.running = False

    def learn(self):
        """Keep the order of a forward, for the next one to bring parameters together ahead of their use."""
        self.following = dict(zip(self.order, [*self.order[1:], self.order[0]], strict=True))  # the root's is the first
        self.let_go()

    def let_go(self):
        """Of parameters that were brought together for a module that was not called then."""
        for group in self.groups:
            if group.work is not None:
                group.reshard()


class State:
    """What fully_shard keeps for a module."""

    def __init__(self, modules, group):
        self.modules, self.group = modules, group
        self.context = None
        self.is_root = False
        self.root_setting = None  # reshard_after_forward, where the program left it open
        self.is_last_backward = True
        self.inside = 0
        self.entered: set = set()

    # ---- forward

    def before_forward(self, module, args, kwargs):
        if self.context is None:
            self._become_root(module)
        group = self.group
        context = self.context
        if self.is_root and not group.in_backward and not context.running:
            context.order.clear()
            complete(context.reducing, len(context.reducing))  # of a backward that an error has ended
            context.let_go()
        for other in group.forward_prefetch:
            other.unshard(async_op=True)
        group.unshard()
        group.wait()
        if group.looks_ahead and not group.forward_prefetch and group in context.following and not context.running:
            context.following[group].unshard(async_op=True)
        for other in group.forward_prefetch:
            other.unshard(async_op=True)
        if group.policy.cast_forward_inputs and group.policy.param_dtype is not None:
            args, kwargs = (pytree.tree_map(functools.partial(_cast, group.policy.param_dtype), given)
                            for given in (args, kwargs))  # fmt: skip
        return args, kwargs

    def after_forward(self, _module, _args, outputs):
        group = self.group
        if not self.context.running:
            self.context.order.append(group)
            if group.reshard_after_forward:
                group.reshard()
            if self.is_root:
                self.context.learn()
        if group.policy.output_dtype is not None:
            outputs = pytree.tree_map(functools.partial(_cast, group.policy.output_dtype), outputs)
        if cresset.is_grad_enabled():
            for value in pytree.tree_leaves(outputs):
                if isinstance(value, cresset.Tensor) and value.requires_grad:
                    value.register_hook(self.before_backward)
        return outputs

    def _become_root(self, module):
        """The first module whose forward runs is the root of those inside it."""
        self.context, self.is_root = Context(), True
        if self.root_setting is None:
            self.group.reshard_after_forward = False
        for part in module.modules():
            state = getattr(part, "_fsdp_state", None)
            if state is not None:
                state.context = self.context
                if state.group not in self.context.groups:
                    self.context.groups.append(state.group)
                    state.group.reducing = self.context.reducing

    # ---- backward

    def before_backward(self, grad):
        group, context = self.group, self.context
        if not context.running:
            context.running = True
            later(self._end)
        group.in_backward = True
        if group.unshard_in_backward:
            group.unshard()
            group.wait()
        if group.backward_prefetch:
            for other in group.backward_prefetch:
                other.unshard(async_op=True)
        elif group in context.order:
            at = context.order.index(group)
            if at > 0 and context.order[at - 1].unshard_in_backward:
                context.order[at - 1].unshard(async_op=True)
        return grad

    def _end(self):
        """Backward is over: what was not used in all its parameters is reduced now."""
        context = self.context
        context.running = False
        for group in context.groups:
            group.reduce()
            group.after_backward()
        complete(context.reducing, len(context.reducing))
        if self.is_last_backward:
            context.order.clear()


def _cast(dtype, value):
    return value.to(dtype) if isinstance(value, cresset.Tensor) and value.is_floating_point() else value


class UnshardHandle:
    """What `unshard(async_op=True)` gives."""

    def __init__(self, group):
        self._group = group

    def wait(self):
        """Complete it: the parameters are whole."""
        self._group.wait()


class FSDPModule:
    """What `fully_shard` makes of a module's class: that class, with the methods here."""

    def __new__(cls, *args, **kwargs):
        """A module of the class that it was before."""
        plain = cls.__mro__[2] if cls.__name__.startswith("FSDP") else cls
        made = plain.__new__(plain)
        made.__init__(*args, **kwargs)
        return made

    def _get_fsdp_state(self):
        return self._fsdp_state

    def _groups(self, recurse=True):
        found = self.modules() if recurse else [self]
        return [part._fsdp_state.group for part in found if isinstance(part, FSDPModule)]

    def unshard(self, async_op=False):
        """Bring the parameters of this module together, those of modules inside that are sharded themselves apart.

        Args:
            async_op: begin to, and give a handle to wait for.
        """
        group = self._fsdp_state.group
        group.unshard(async_op=True)
        if async_op:
            return UnshardHandle(group)
        group.wait()
        return None

    def reshard(self):
        """Give the memory of whole parameters back."""
        self._fsdp_state.group.reshard()

    def set_is_last_backward(self, is_last_backward):
        """Whether the next backward is the last one of a step: then what was noted for it is forgotten."""
        for part in self.modules():
            if isinstance(part, FSDPModule):
                part._fsdp_state.is_last_backward = is_last_backward

    def set_requires_gradient_sync(self, requires_gradient_sync, *, recurse=True):
        """Whether gradients are reduced: without, those of whole parameters add up in every process."""
        for group in self._groups(recurse):
            group.sync = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce, *, recurse=True):
        """Whether gradients are reduced between copies of the model (a grid of two dimensions)."""
        for group in self._groups(recurse):
            group.all_reduce = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward, recurse=True):
        """Whether memory is given back between forward and backward."""
        if not isinstance(reshard_after_forward, bool):
            raise ValueError(f"reshard_after_forward should be a bool, got {type(reshard_after_forward)}")
        for part in self.modules() if recurse else [self]:
            if isinstance(part, FSDPModule):
                part._fsdp_state.group.reshard_after_forward = reshard_after_forward
                part._fsdp_state.root_setting = reshard_after_forward

    def set_reshard_after_backward(self, reshard_after_backward, *, recurse=True):
        """Whether memory is given back after backward."""
        for group in self._groups(recurse):
            group.reshard_after_backward = reshard_after_backward

    def set_modules_to_forward_prefetch(self, modules):
        """Begin to bring these modules' parameters together while this one computes forward."""
        self._fsdp_state.group.forward_prefetch = _groups_of(modules, "set_modules_to_forward_prefetch")

    def set_modules_to_backward_prefetch(self, modules):
        """Begin to bring these modules' parameters together while this one computes backward; by default the one whose
        forward came before.
        """
        self._fsdp_state.group.backward_prefetch = _groups_of(modules, "set_modules_to_backward_prefetch")

    def set_all_reduce_hook(self, hook, *, stream=None):
        """Call hook(reduced part) after gradients were reduced.

        Args:
            stream: of a GPU, for the hook; there is none on the CPU.
        """
        if stream is not None:
            raise NotImplementedError("set_all_reduce_hook: stream= is for GPUs with a stream of their own for it")
        self._fsdp_state.group.all_reduce_hook = hook

    def set_gradient_divide_factor(self, factor):
        """Divide sums of gradients by this, not by the number of processes."""
        self._fsdp_state.group.divide_factor = factor

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def set_force_sum_reduction_for_comms(self, enable):
        """Sum gradients and divide afterwards, where the engine could take their mean."""
        for group in self._groups():
            group.force_sum = enable

    def set_unshard_in_backward(self, unshard_in_backward):
        """Whether parameters are brought together before backward; not needed where it does not read them."""
        self._fsdp_state.group.unshard_in_backward = unshard_in_backward

    def _set_unshard_async_op(self, async_op):
        """Every exchange here begins without waiting."""


def _groups_of(modules, who):
    for module in modules:
        if not isinstance(module, FSDPModule):
            raise ValueError(f"{who}: expects FSDPModules, got {type(module).__name__}")
    return [module._fsdp_state.group for module in modules]


_classes: dict = {}


def _sharded_class(cls):
    if cls not in _classes:
        made = type(f"FSDP{cls.__name__}", (FSDPModule, cls), {"__deepcopy__": _refuse_deepcopy})
        made.__module__ = "torch.distributed.fsdp._fully_shard._fsdp_init"
        _classes[cls] = made
    return _classes[cls]


def _refuse_deepcopy(self, memo):
    raise AssertionError("FSDP does not support deepcopy. Please use state dict for serialization.")


def _default_mesh():
    if not world.is_initialized():
        world.init_process_group()
    kind = "cuda" if cresset.cuda.is_available() else "cpu"
    return init_device_mesh(kind, (world.get_world_size(),))


def _chosen_dims(mesh, dims):
    """The part of a grid that DataParallelMeshDims names."""
    shard, copies = (
        (given,) if isinstance(given, str) else tuple(given or ()) for given in (dims.shard, dims.replicate)
    )
    if not shard or len(copies) > 1 or (copies and len(shard) > 1):
        raise NotImplementedError(
            f"fully_shard: {dims} names no dimension that cuts, or several to be seen as one beside a copy; "
            "flatten them first: mesh['a', 'b']._flatten('ab')"
        )
    chosen = mesh[(*copies, *shard)]
    return chosen if len(shard) == 1 else chosen._flatten()


def _managed(modules, ignored):
    """The parameters of modules that no FSDP module inside manages: {parameter: [(module, name)]}."""
    found: dict = {}
    seen = set()

    def walk(part):
        if id(part) in seen:
            return
        seen.add(id(part))
        for name, parameter in part._parameters.items():
            if parameter is not None and parameter not in ignored:
                found.setdefault(parameter, []).append((part, name))
        for child in part.children():
            if not isinstance(child, FSDPModule):
                walk(child)

    for module in modules:
        walk(module)
    return found


def fully_shard(
    module, *, mesh=None, reshard_after_forward=None, shard_placement_fn=None, mp_policy=AS_IT_IS,
    offload_policy=ON_ITS_DEVICE, ignored_params=None, dp_mesh_dims=None,
):  # fmt: skip
    """Cut the parameters of a module over the processes; they are brought together for its forward and backward. Apply
    it to parts of a model before the model. All processes of the grid call this.

    Args:
        module: changed in place, or a list of modules that travel together; its class becomes one of FSDPModule.
        mesh: the grid: one dimension, or two, of which the first repeats and the second cuts; by default all processes.
        reshard_after_forward: give the memory back between forward and backward; None: not for the root.
        shard_placement_fn: fn(parameter) -> Shard(dim) where another dimension than the first is cut.
        mp_policy, offload_policy: see there.
        ignored_params: parameters that stay as they are.
        dp_mesh_dims: which dimensions of `mesh` cut and which repeat, a DataParallelMeshDims; by default as above.
    """
    modules = list(module) if isinstance(module, (list, tuple)) else [module]
    for part in modules:
        if isinstance(part, (cresset.nn.ModuleList, cresset.nn.ModuleDict)) and "forward" not in vars(type(part)):
            raise ValueError(f"fully_shard does not support containers that do not implement forward: {part}")
        if isinstance(part, FSDPModule):
            raise ValueError(f"fully_shard: {type(part).__name__} is sharded already")
    mesh = mesh if mesh is not None else _default_mesh()
    mesh = mesh if dp_mesh_dims is None else _chosen_dims(mesh, dp_mesh_dims)
    if not isinstance(mesh, DeviceMesh) or mesh.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    if mesh.ndim == 2 and mesh.mesh_dim_names is None:
        raise AssertionError("Please init the 2D mesh for HSDP with mesh_dim_names specified")
    after = reshard_after_forward
    if isinstance(after, int) and not isinstance(after, bool):
        if after not in (1, mesh.shape[-1]):
            raise NotImplementedError(
                f"fully_shard: reshard_after_forward={after} asks for parts over fewer processes between forward and "
                f"backward; use True (all {mesh.shape[-1]}) or False"
            )
        after = after != 1
    units = []
    for parameter, places in _managed(modules, set(ignored_params or ())).items():
        placed = shard_placement_fn(parameter) if shard_placement_fn is not None else None
        if placed is not None and not isinstance(placed, Shard):
            raise ValueError(f"fully_shard: shard_placement_fn must give Shard or None, got {placed!r}")
        dim = 0 if placed is None else placed.dim % max(parameter.ndim, 1)
        if parameter.ndim == 0:
            raise ValueError("fully_shard doesn't support scalar parameters. Change "
                             f"{places[0][1]} to a 1D tensor with numel equal to 1.")  # fmt: skip
        unit = Unit(parameter, places, mesh, dim, mp_policy.param_dtype)
        if isinstance(offload_policy, CPUOffloadPolicy) and unit.device.type != "cpu":
            local = unit.sharded._local_tensor.detach().cpu()
            local = local.pin_memory() if offload_policy.pin_memory else local
            unit.sharded._local_tensor = local.requires_grad_(unit.requires_grad)
        units.append(unit)
    group = Group(units, mesh, mp_policy, True if after is None else after)
    state = State(modules, group)
    state.root_setting = after
    for part in modules:
        part.__dict__["_fsdp_state"] = state
        part.__class__ = _sharded_class(type(part))
        part.register_state_dict_pre_hook(lambda module, *_: _all_cut(module))
        part._register_load_state_dict_pre_hook(lambda *_: group.reshard())
    _around_forward(state, modules)
    return module


def _all_cut(module):
    for part in module.modules():
        if isinstance(part, FSDPModule):
            part._fsdp_state.group.reshard()


def _around_forward(state, modules):
    """Run before the first of several modules, and after the last of them."""
    if len(modules) == 1:
        modules[0].register_forward_pre_hook(state.before_forward, prepend=True, with_kwargs=True)
        modules[0].register_forward_hook(state.after_forward, prepend=False)
        return

    def before(module, args, kwargs):
        state.entered.add(id(module))
        return state.before_forward(module, args, kwargs)

    def after(module, args, outputs):
        last = len(state.entered) == len(modules)
        if last:
            state.entered.clear()
            return state.after_forward(module, args, outputs)
        keep, state.group.reshard_after_forward = state.group.reshard_after_forward, False
        try:
            return state.after_forward(module, args, outputs)
        finally:
            state.group.reshard_after_forward = keep

    for module in modules:
        module.register_forward_pre_hook(before, prepend=True, with_kwargs=True)
        module.register_forward_hook(after, prepend=False)


def register_fsdp_forward_method(module, method_name):
    """Let another method than `forward` bring the parameters together, too."""
    if not isinstance(module, FSDPModule):
        return
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")
    original = getattr(module, method_name)

    @functools.wraps(original)
    def method(self, *args, **kwargs):
        args, kwargs = self._fsdp_state.before_forward(self, args, kwargs)
        outputs = original(*args, **kwargs)
        return self._fsdp_state.after_forward(self, args, outputs)

    setattr(module, method_name, method.__get__(module, type(module)))


def share_comm_ctx(modules):
    """Let several roots share what they use for exchanges on a GPU; on the CPU there is nothing to share."""
    _groups_of(modules, "share_comm_ctx")


FSDPModule.__module__ = UnshardHandle.__module__ = "torch.distributed.fsdp._fully_shard._fully_shard"
