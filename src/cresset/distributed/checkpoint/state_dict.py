"""torch.distributed.checkpoint.state_dict: the state of models and optimizers by the names that the plain model has, as
distributed or as whole tensors.
"""

import dataclasses

import cresset

from ...nn import Module
from ...nn.parallel import DistributedDataParallel
from ...nn.state import _IncompatibleKeys
from .. import objects, world
from ..fsdp import FullyShardedDataParallel, StateDictType
from ..tensor import DTensor, distribute_tensor

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
    "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip

WRAPPERS = ("_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_orig_mod")


@dataclasses.dataclass
class StateDictOptions:
    """How state is given and taken.

    Args:
        full_state_dict: whole tensors in place of distributed ones.
        cpu_offload: on the CPU; together with full_state_dict only the first process gets them.
        ignore_frozen_params: leave out parameters that are not trained.
        keep_submodule_prefixes: with `submodules`, keep the names that they have in the model.
        strict: refuse names that are missing or too many.
        broadcast_from_rank0: take whole tensors from the first process.
        flatten_optimizer_state_dict: the optimizer's state as one dictionary of names with dots.
        dsd_fqn_modifiers: a method of the model that changes names; PyTorch's.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _checked(options, who):
    options = options or StateDictOptions()
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError(f"{who}: full_state_dict must be True when broadcast_from_rank0 is True.")
    return options


def plain_name(model, name):
    """The name of a parameter or buffer without those of wrappers."""
    parts, at = [], model
    for part in name.split("."):
        skip = part in WRAPPERS or (part == "module" and isinstance(at, DistributedDataParallel))
        if not skip:
            parts.append(part)
        at = getattr(at, part, None)
    return ".".join(parts)


def _names(model):
    """{parameter: its plain name}, each once."""
    return {parameter: plain_name(model, name) for name, parameter in model.named_parameters()}


def _given(value, options):
    """A tensor of the state as the options ask for it."""
    if isinstance(value, cresset.Tensor):
        if options.full_state_dict and isinstance(value, DTensor):
            value = value.full_tensor()
        if options.cpu_offload and value.device.type != "cpu":
            value = value.cpu()
        return value.detach()
    if isinstance(value, dict):
        return {key: _given(item, options) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_given(item, options) for item in value)
    return value


def _only_first(state, options):
    """With whole tensors on the CPU, only the first process keeps them."""
    if options.full_state_dict and options.cpu_offload and world.is_initialized() and world.get_rank() != 0:
        return {}
    return state


def _chosen_prefixes(model, submodules):
    names = [plain_name(model, name) for name, part in model.named_modules() if part in submodules]
    return tuple(name + "." for name in names)


def get_model_state_dict(model, *, submodules=None, options=None):
    """The state of a model, by plain names.

    Args:
        model: plain, or wrapped and cut in any way.
        submodules: only what these modules of it have.
        options: a StateDictOptions.
    """
    options = _checked(options, "get_model_state_dict")
    with FullyShardedDataParallel.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        raw = model.state_dict()
    frozen = {plain_name(model, name) for name, p in model.named_parameters() if not p.requires_grad}
    prefixes = None if submodules is None else _chosen_prefixes(model, submodules)
    made = {}
    for name, value in raw.items():
        name = plain_name(model, name)
        if options.ignore_frozen_params and name in frozen:
            continue
        if prefixes is not None:
            prefix = next((prefix for prefix in prefixes if name.startswith(prefix)), None)
            if prefix is None:
                continue
            name = name if options.keep_submodule_prefixes else name[len(prefix) :]
        made[name] = _given(value, options)
    return _only_first(made, options)


def _from_first(values):
    """Whole tensors (and other data) of the first process, in every one."""
    from .. import collectives

    known = [
        {k: (list(v.shape), v.dtype) if isinstance(v, cresset.Tensor) else v for k, v in values.items()}
        if world.get_rank() == 0
        else None
    ]
    objects.broadcast_object_list(known, 0)
    made = {}
    for key, about in known[0].items():
        is_tensor = isinstance(about, tuple) and len(about) == 2 and isinstance(about[1], cresset.dtype)
        if not is_tensor:
            made[key] = about
            continue
        value = values[key].detach().contiguous() if world.get_rank() == 0 else cresset.empty(about[0], dtype=about[1])
        collectives.broadcast(value, 0)
        made[key] = value
    return made


def _placed(value, like):
    """A whole tensor as the distributed one that is there; others as they are."""
    if isinstance(like, DTensor) and isinstance(value, cresset.Tensor) and not isinstance(value, DTensor):
        return distribute_tensor(value.detach(), like.device_mesh, like.placements, src_data_rank=None)
    return value


def set_model_state_dict(model, model_state_dict, *, options=None):
    """Take over state that `get_model_state_dict` gave.

    Args:
        model: plain, or wrapped and cut in any way.
        model_state_dict: by plain names, whole or distributed; or {module: its own state}.
        options: a StateDictOptions.

    Returns: the names that were missing, and those that were too many.
    """
    options = _checked(options, "set_model_state_dict")
    given = _flat_modules(model, model_state_dict)
    if options.broadcast_from_rank0 and world.is_initialized():
        given = _from_first(given)
    elif not given and options.full_state_dict:
        return _IncompatibleKeys([], [])
    with FullyShardedDataParallel.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        mine = model.state_dict()
        names = {plain_name(model, name): name for name in mine}
        made = {names.get(name, name): _placed(value, mine.get(names.get(name))) for name, value in given.items()}
        found = model.load_state_dict(made, strict=options.strict)
    return _IncompatibleKeys(
        [plain_name(model, name) for name in found.missing_keys],
        [plain_name(model, name) for name in found.unexpected_keys],
    )


def _flat_modules(model, state):
    if not state or isinstance(next(iter(state)), str):
        return dict(state)
    made = {}
    for part, values in state.items():
        name = next((n for n, known in model.named_modules() if known is part), None)
        if name is None:
            raise RuntimeError(f"set_model_state_dict: {type(part).__name__} is not a module of the model")
        made.update({f"{plain_name(model, name)}.{key}" if name else key: value for key, value in values.items()})
    return made


# ---- optimizers


def _listed(optimizers):
    return [optimizers] if isinstance(optimizers, cresset.optim.Optimizer) else list(optimizers)


def _init_optim_state(optimizer):
    """Let an optimizer that has taken no step make its state, without a change of the parameters."""
    if optimizer.state:
        return
    params = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
    if any(p.grad is not None for p in params):  # SGD without momentum has no state after a step, either
        return
    before = []
    for group in optimizer.param_groups:
        before.append({key: group[key] for key in ("lr", "weight_decay") if key in group})
        if "lr" in group:
            group["lr"] = cresset.tensor(0.0) if isinstance(group["lr"], cresset.Tensor) else 0.0
        if "weight_decay" in group:
            group["weight_decay"] = 0.0
    for p in params:
        p.grad = cresset.zeros_like(p)
    optimizer.step(closure=None)
    for group, settings in zip(optimizer.param_groups, before, strict=True):
        group.update(settings)
    for kept in optimizer.state.values():
        if isinstance(kept.get("step"), cresset.Tensor):
            kept["step"].zero_()
    optimizer.zero_grad(set_to_none=True)


def get_optimizer_state_dict(model, optimizers, *, submodules=None, options=None):
    """The state of optimizers, by the plain names of the model's parameters.

    Args:
        model: whose parameters they change.
        optimizers: one or several.
        submodules: only what these modules of it have.
        options: a StateDictOptions.
    """
    options = _checked(options, "get_optimizer_state_dict")
    names = _names(model)
    prefixes = None if submodules is None else _chosen_prefixes(model, submodules)
    state: dict = {}
    groups = []
    for optimizer in _listed(optimizers):
        _init_optim_state(optimizer)
        for group in optimizer.param_groups:
            chosen = [p for p in group["params"] if prefixes is None or names[p].startswith(prefixes)]
            for p in chosen:
                if p in optimizer.state:
                    state[names[p]] = _given(dict(optimizer.state[p]), options)
            settings = {key: value for key, value in group.items() if key not in ("params", "param_names")}
            groups.append({**settings, "params": [names[p] for p in chosen]})
    made = {"state": state, "param_groups": groups}
    if options.flatten_optimizer_state_dict:
        made = _flattened(made)
    return _only_first(made, options)


def _flattened(state):
    flat = {f"state.{name}.{key}": value for name, kept in state["state"].items() for key, value in kept.items()}
    for group in state["param_groups"]:
        for name in group["params"]:
            flat.update({f"param_groups.{name}.{key}": value for key, value in group.items() if key != "params"})
    return flat


def _unflattened(flat, optimizers, names):
    state: dict = {}
    groups = []
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            made = {"params": [names[p] for p in group["params"]]}
            for p in group["params"]:
                prefix = f"state.{names[p]}."
                kept = {key[len(prefix) :]: value for key, value in flat.items() if key.startswith(prefix)}
                if kept:
                    state[names[p]] = kept
            for key in group:
                found = f"param_groups.{names[group['params'][0]]}.{key}"
                if key not in ("params", "param_names") and found in flat:
                    made[key] = flat[found]
            groups.append(made)
    return {"state": state, "param_groups": groups}


def set_optimizer_state_dict(model, optimizers, optim_state_dict, *, options=None):
    """Take over state that `get_optimizer_state_dict` gave, for the same parameters by name, in any groups."""
    options = _checked(options, "set_optimizer_state_dict")
    optimizers, names = _listed(optimizers), _names(model)
    if options.broadcast_from_rank0 and world.is_initialized():
        flat = _flattened(optim_state_dict) if "param_groups" in optim_state_dict else dict(optim_state_dict)
        optim_state_dict = _unflattened(_from_first(flat), optimizers, names)
    elif not optim_state_dict and options.full_state_dict:
        return
    elif "param_groups" not in optim_state_dict:
        optim_state_dict = _unflattened(optim_state_dict, optimizers, names)
    by_name = {name: group for group in optim_state_dict["param_groups"] for name in group["params"]}
    for optimizer in optimizers:
        _init_optim_state(optimizer)
        state, groups, number = {}, [], 0
        for group in optimizer.param_groups:
            saved: dict = {}
            numbers = []
            for p in group["params"]:
                name = names[p]
                if name in optim_state_dict["state"]:
                    kept, now = optim_state_dict["state"][name], optimizer.state.get(p, {})
                    state[number] = {key: _placed(value, now.get(key)) for key, value in kept.items()}
                elif p.requires_grad and options.strict and optimizer.state.get(p):
                    raise RuntimeError(f"Missing optimizer state for parameter '{name}' in checkpoint.")
                saved = by_name.get(name, saved)
                numbers.append(number)
                number += 1
            settings = {key: saved.get(key, value) for key, value in group.items() if key not in ("params",)}
            groups.append({**settings, "params": numbers})
        optimizer.load_state_dict({"state": state, "param_groups": groups})


def get_state_dict(model, optimizers, *, submodules=None, options=None):
    """(the state of a model, that of its optimizers): see get_model_state_dict and get_optimizer_state_dict."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def set_state_dict(model, optimizers, *, model_state_dict, optim_state_dict, options=None):
    """Take over what `get_state_dict` gave; the names that were missing in the model's, and those that were too
    many."""
    if not isinstance(model, Module):
        raise TypeError(f"set_state_dict: expected a Module, got {type(model).__name__}")
    if optim_state_dict:
        set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
