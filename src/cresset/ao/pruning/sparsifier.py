"""What sparsifiers have in common: masks on weights by parametrization, from `prepare` over `step` to `squash_mask`."""

import abc
import copy
from collections import defaultdict

import cresset
from cresset import nn
from cresset.nn.utils import parametrize

__all__ = ["BaseSparsifier", "FakeSparsity", "fqn_to_module", "get_arg_info_from_tensor_fqn", "module_to_fqn"]


class FakeSparsity(nn.Module):
    """A parametrization that multiplies a weight by a mask of zeros and ones.

    >>> cresset.ao.pruning.FakeSparsity(cresset.tensor([1.0, 0.0]))(cresset.tensor([2.0, 3.0]))
    tensor([2., 0.])
    """

    def __init__(self, mask):
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, x):
        if self.mask.shape != x.shape:
            raise AssertionError(
                f"FakeSparsity: the mask has shape {tuple(self.mask.shape)}, the weight {tuple(x.shape)}"
            )
        return self.mask * x

    def state_dict(self, *args, **kwargs):
        """Nothing: the sparsifier's own state holds the mask."""
        return {}


def module_to_fqn(model, module, prefix=""):
    """The name of a module inside of a model; None where it is not there.

    >>> model = nn.Sequential(nn.Sequential(nn.Linear(1, 1)))
    >>> cresset.ao.pruning.module_to_fqn(model, model[0][0])
    '0.0'
    """
    found = next((name for name, part in model.named_modules() if part is module), None)
    return None if found is None else ".".join(part for part in (prefix, found) if part)


def fqn_to_module(model, path):
    """The module of that name inside of a model; None where there is none.

    >>> cresset.ao.pruning.fqn_to_module(nn.Sequential(nn.Linear(2, 1)), "0")
    Linear(in_features=2, out_features=1, bias=True)
    """
    for name in path.split(".") if path else ():
        model = getattr(model, name, None)
    return model


def get_arg_info_from_tensor_fqn(model, tensor_fqn):
    """A tensor's name, taken apart: the module it belongs to and what it is called there.

    >>> found = cresset.ao.pruning.get_arg_info_from_tensor_fqn(nn.Sequential(nn.Linear(2, 1)), "0.weight")
    >>> found["module_fqn"], found["tensor_name"]
    ('0', 'weight')
    """
    tensor_fqn = tensor_fqn.removeprefix(".")
    module_fqn, _, tensor_name = tensor_fqn.rpartition(".")
    return {
        "module_fqn": module_fqn,
        "module": fqn_to_module(model, module_fqn),
        "tensor_name": tensor_name,
        "tensor_fqn": tensor_fqn,
    }


class BaseSparsifier(abc.ABC):
    """Masks for the weights of a model. A subclass says in `update_mask` which elements are zeros.

    Args:
        defaults: settings of every weight that its own configuration leaves out.

    >>> class Halves(cresset.ao.pruning.BaseSparsifier):
    ...     def update_mask(self, module, tensor_name, **settings):
    ...         mask = getattr(module.parametrizations, tensor_name)[0].mask
    ...         mask[:, ::2] = 0
    >>> model, sparsifier = nn.Sequential(nn.Linear(4, 2)), Halves()
    >>> sparsifier.prepare(model, [{"tensor_fqn": "0.weight"}])
    >>> sparsifier.step()
    >>> sparsifier.squash_mask()
    >>> int((model[0].weight == 0).sum())
    4
    """

    def __init__(self, defaults=None):
        super().__init__()
        self.defaults = defaults or {}
        self.state = defaultdict(dict)
        self.groups = []
        self.enable_mask_update = True

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "groups": self.groups}

    def __setstate__(self, state):
        self.__dict__.update(state)

    def __repr__(self):
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.groups):
            settings = [f"{key}: {group[key]}" for key in sorted(group) if key != "module"]
            lines += [f"\tGroup {i}", *(f"\t    {line}" for line in (f"module: {group['module']}", *settings))]
        return "\n".join(lines) + ("\n)" if self.groups else ")")

    def state_dict(self):
        """The masks, and each weight's settings without the module it belongs to."""
        left_out = ("module", "module_fqn", "tensor_name")
        groups = [{key: value for key, value in group.items() if key not in left_out} for group in self.groups]
        return {"state": self.state, "groups": groups}

    def load_state_dict(self, state_dict, strict=True):
        """Take over masks and settings; the model is the one that was given to `prepare`."""
        groups = copy.deepcopy(state_dict["groups"])
        for tensor_fqn, state in state_dict["state"].items():
            about = get_arg_info_from_tensor_fqn(self.model, tensor_fqn)
            module, name = about["module"], about["tensor_name"]
            if module is None:
                if strict:
                    raise RuntimeError(f"Error loading {tensor_fqn} into the model")
                continue
            here = module.parametrizations[name] if parametrize.is_parametrized(module, name) else ()
            masked = next((part for part in here if isinstance(part, FakeSparsity)), None)
            if masked is None:
                masked = FakeSparsity(cresset.ones(getattr(module, name).shape))
                parametrize.register_parametrization(module, name, masked)
            if state.get("mask") is not None:
                masked.mask = state["mask"]
            for group in groups:
                if group["tensor_fqn"] == tensor_fqn:
                    group.update(about)
        self.__setstate__({"state": state_dict["state"], "groups": groups})

    def make_config_from_model(self, model, SUPPORTED_MODULES=frozenset({nn.Linear})):
        """The configuration that names the weight of every linear layer."""
        self.config = [
            {"tensor_fqn": f"{name}.weight"} for name, part in model.named_modules() if type(part) in SUPPORTED_MODULES
        ]

    def prepare(self, model, config):
        """Put a mask of ones on every weight that `config` names.

        Args:
            config: a dict for each weight, with its name as "tensor_fqn" and settings; None for the weights of all
                linear layers.
        """
        self.model, self.config = model, config
        if config is None:
            self.make_config_from_model(model)
        for given in self.config:
            if not isinstance(given, dict):
                raise AssertionError(
                    f"prepare: a configuration is a list of dicts such as {{'tensor_fqn': 'a.weight'}}, got {given!r}"
                )
            group = {**copy.deepcopy(self.defaults), **given}
            if "tensor_fqn" not in group:
                raise AssertionError(f"prepare: tensor_fqn, the name of a weight, is missing in {given!r}")
            about = get_arg_info_from_tensor_fqn(model, group["tensor_fqn"])
            for key, found in about.items():
                if key in group and group[key] not in (found, f".{found}"):
                    raise AssertionError(f"prepare: {key} is {group[key]!r}, but tensor_fqn says {found!r}")
            self.groups.append({**group, **about})
        self._prepare()

    def _prepare(self, *args, **kwargs):
        for group in self.groups:
            module, name = group["module"], group["tensor_name"]
            mask = group["mask"] if "mask" in group else cresset.ones_like(getattr(module, name))
            self.state[group["tensor_fqn"]]["mask"] = mask
            parametrize.register_parametrization(module, name, group.get("parametrization", FakeSparsity)(mask))

    def squash_mask(self, params_to_keep=None, params_to_keep_per_layer=None):
        """Multiply the weights by their masks and take the masks away.

        Args:
            params_to_keep: names of settings that each module keeps, in a dict `sparse_params`.
            params_to_keep_per_layer: names of settings for the names of modules.
        """
        for group in self.groups:
            module = group["module"]
            parametrize.remove_parametrizations(module, group["tensor_name"], leave_parametrized=True)
            kept = [*(params_to_keep or ()), *(params_to_keep_per_layer or {}).get(group["module_fqn"], ())]
            if kept:
                module.sparse_params = {name: group[name] for name in kept}

    def convert(self, module, mapping=None, inplace=False, parameterization=FakeSparsity):
        """A copy of the model with other layers, made by their `from_dense`, where weights have masks.

        Args:
            mapping: {the type of a layer: the type that takes its place}.
        """
        if mapping is None:
            raise NotImplementedError("convert: say in `mapping` which types take whose place")
        module = module if inplace else copy.deepcopy(module)
        for name, child in list(module.named_children()):
            kind = parametrize.type_before_parametrizations(child)
            if kind in mapping and _has_mask(child, parameterization):
                setattr(module, name, _made_of(mapping[kind], child))
            else:
                self.convert(child, mapping, True, parameterization)
        return module

    def step(self):
        """Compute all masks anew."""
        if self.enable_mask_update:
            with cresset.no_grad():
                for group in self.groups:
                    self.update_mask(**group)

    @abc.abstractmethod
    def update_mask(self, module, tensor_name, **kwargs):
        """Change `getattr(module.parametrizations, tensor_name)[0].mask`; the settings come as arguments."""


def _has_mask(module, kind):
    return parametrize.is_parametrized(module) and any(
        isinstance(part, kind) for parts in module.parametrizations.values() for part in parts
    )


def _made_of(kind, module):
    new = kind.from_dense(module)
    for hook in module._forward_pre_hooks.values():
        new.register_forward_pre_hook(hook)
    for hook in module._forward_hooks.values():
        new.register_forward_hook(hook)
    device = next((tensor.device for tensor in (*module.parameters(), *module.buffers())), None)
    return new if device is None else new.to(device)
