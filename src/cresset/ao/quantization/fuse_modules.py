"""fuse_modules: batch norm folded into the layer before it (in training, kept with it), a relu kept with it, so that
they are quantized as one.
"""

import copy

from cresset import nn

from .fuser_method_mappings import get_fuser_method


def fuse_known_modules(mod_list, is_qat, additional_fuser_method_mapping=None):
    """The modules as many as were given: what the first ones do together, then Identity for each that it replaces.

    Args:
        is_qat: for training, where batch norm stays a part of what is fused.
        additional_fuser_method_mapping: from a tuple of types of modules to what fuses them, called with `is_qat` and
            the modules.
    """
    method = get_fuser_method(tuple(type(layer) for layer in mod_list), additional_fuser_method_mapping)
    before, after = list(mod_list[0]._forward_pre_hooks.values()), list(mod_list[-1]._forward_hooks.values())
    mod_list[0]._forward_pre_hooks.clear()
    mod_list[-1]._forward_hooks.clear()
    fused = method(is_qat, *mod_list)
    for hook in before:
        fused.register_forward_pre_hook(hook)
    for hook in after:
        fused.register_forward_hook(hook)
    fused.train(mod_list[0].training)
    return [fused, *(nn.Identity().train(mod_list[0].training) for _ in mod_list[1:])]


def _fuse(model, modules_to_fuse, inplace, training, fuser, custom):
    model = model if inplace else copy.deepcopy(model)
    more = (custom or {}).get("additional_fuser_method_mapping", {})
    unknown = set(custom or {}) - {"additional_fuser_method_mapping"}
    if unknown:
        raise ValueError(
            f"fuse_modules: fuse_custom_config_dict has the unknown key {sorted(unknown)[0]!r}; it may have "
            "'additional_fuser_method_mapping'"
        )
    groups = [modules_to_fuse] if modules_to_fuse and isinstance(modules_to_fuse[0], str) else modules_to_fuse
    for names in groups:
        layers = fuser([model.get_submodule(name) for name in names], training, more)
        if len(layers) != len(names):
            raise ValueError(f"fuse_modules: fuser_func gave {len(layers)} modules for the {len(names)} of {names}")
        for name, layer in zip(names, layers, strict=True):
            parent, _, own = name.rpartition(".")
            setattr(model.get_submodule(parent), own, layer)
    return model


def fuse_modules(model, modules_to_fuse, inplace=False, fuser_func=fuse_known_modules, fuse_custom_config_dict=None):
    """Fuse the named modules, a list of names (or several): conv, bn, relu; linear, relu. What is merged into the first
    becomes Identity.

    Args:
        fuser_func: makes as many modules of a list of them; called as fuse_known_modules is.
        fuse_custom_config_dict: may have an "additional_fuser_method_mapping", see fuse_known_modules.

    >>> model = nn.Sequential(nn.Linear(2, 2), nn.ReLU()).eval()
    >>> type(cresset.ao.quantization.fuse_modules(model, ["0", "1"])[0]).__name__
    'LinearReLU'
    """
    return _fuse(model, modules_to_fuse, inplace, False, fuser_func, fuse_custom_config_dict)


def fuse_modules_qat(
    model, modules_to_fuse, inplace=False, fuser_func=fuse_known_modules, fuse_custom_config_dict=None
):
    """`fuse_modules` for training: batch norms stay, as a part of what is fused."""
    return _fuse(model, modules_to_fuse, inplace, True, fuser_func, fuse_custom_config_dict)
