"""fuse_modules: batch norm folded into the layer before it, and a relu kept with it, so that they are quantized as
one."""

import copy

import cresset
from cresset import nn

from ..nn import intrinsic

_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def fold_batch_norm(layer, norm):
    """A copy of a linear or convolution layer that does what layer and norm do in evaluation.

    y = (W x + b - m) * g / sqrt(v + eps) + h: the weight and the bias take the factor, the bias the rest.
    """
    if layer.training:
        raise RuntimeError(
            "fuse_modules: batch norm can be folded in evaluation only; call model.eval() first, or fuse_modules_qat"
        )
    new = copy.deepcopy(layer)
    with cresset.no_grad():
        gain = norm.weight if norm.weight is not None else cresset.ones_like(norm.running_var)
        shift = norm.bias if norm.bias is not None else cresset.zeros_like(norm.running_mean)
        factor = gain / (norm.running_var + norm.eps).sqrt()
        bias = layer.bias if layer.bias is not None else cresset.zeros_like(norm.running_mean)
        new.weight = nn.Parameter(layer.weight * factor.reshape(-1, *(1,) * (layer.weight.dim() - 1)))
        new.bias = nn.Parameter((bias - norm.running_mean) * factor + shift)
    return new


def _fused(layers, training):
    first, *rest = layers
    if rest and isinstance(rest[0], _NORMS):
        if training:
            raise NotImplementedError(
                "fuse_modules_qat: batch norm is not folded in training here; fuse in evaluation, or leave the norm "
                "as it is"
            )
        first, rest = fold_batch_norm(first, rest[0]), rest[1:]
    if not rest:
        return first
    if len(rest) > 1 or not isinstance(rest[0], nn.ReLU):
        raise NotImplementedError(
            f"fuse_modules: cannot fuse modules: {tuple(type(layer).__name__ for layer in layers)}"
        )
    for kind, name in (
        (nn.Linear, "LinearReLU"),
        (nn.Conv1d, "ConvReLU1d"),
        (nn.Conv2d, "ConvReLU2d"),
        (nn.Conv3d, "ConvReLU3d"),
        (nn.BatchNorm2d, "BNReLU2d"),
        (nn.BatchNorm3d, "BNReLU3d"),
    ):
        if isinstance(first, kind):
            return getattr(intrinsic, name)(first, rest[0])
    raise NotImplementedError(f"fuse_modules: cannot fuse modules: {tuple(type(layer).__name__ for layer in layers)}")


def fuse_known_modules(mod_list, is_qat, additional_fuser_method_mapping=None):
    """The modules as many as were given: what the first ones do together, then Identity for each that it replaces.

    Args:
        is_qat: for training, where batch norm cannot be folded.
        additional_fuser_method_mapping: from a tuple of types of modules to what fuses them, called with `is_qat` and
            the modules.
    """
    method = (additional_fuser_method_mapping or {}).get(tuple(type(layer) for layer in mod_list))
    before, after = list(mod_list[0]._forward_pre_hooks.values()), list(mod_list[-1]._forward_hooks.values())
    mod_list[0]._forward_pre_hooks.clear()
    mod_list[-1]._forward_hooks.clear()
    fused = _fused(mod_list, is_qat) if method is None else method(is_qat, *mod_list)
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
    """`fuse_modules` for training: layers and relus."""
    return _fuse(model, modules_to_fuse, inplace, True, fuser_func, fuse_custom_config_dict)
