"""The steps from a floating-point model to a quantized one: prepare, look at data, convert; or quantize_dynamic in
one."""

import copy
import inspect

import cresset
from cresset import nn

from ..nn import quantized
from .fake_quantize import FakeQuantizeBase
from .observer import ObserverBase
from .qconfig import default_dynamic_qconfig, float16_dynamic_qconfig, remembers_nothing
from .quantization_mappings import DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS as _DYNAMIC
from .quantization_mappings import DEFAULT_MODULE_TO_ACT_POST_PROCESS as _BOUNDED
from .quantization_mappings import DEFAULT_QAT_MODULE_MAPPINGS as _QAT
from .quantization_mappings import DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS as _REFERENCE
from .quantization_mappings import DEFAULT_STATIC_QUANT_MODULE_MAPPINGS as _STATIC
from .quantization_mappings import no_observer_set
from .stubs import DeQuantStub, QuantWrapper

_FUNCTIONALS = (quantized.FloatFunctional, quantized.QFunctional)


def propagate_qconfig_(module, qconfig_dict=None, prepare_custom_config_dict=None):
    """Give every module a `qconfig`: its own, by its name or type in `qconfig_dict`, or its parent's.

    Args:
        prepare_custom_config_dict: children of `module` with a name in "non_traceable_module_name" or a type in
            "non_traceable_module_class" get none.
    """
    custom = prepare_custom_config_dict or {}
    names, kinds = custom.get("non_traceable_module_name", ()), tuple(custom.get("non_traceable_module_class", ()))
    left_out = [child for name, child in module.named_children() if name in names or type(child) in kinds]
    _propagate(module, qconfig_dict or {}, getattr(module, "qconfig", None), "", left_out)


def _propagate(module, given, parent, name, left_out=()):
    config = getattr(module, "qconfig", given.get(name, given.get(type(module), parent)))  # None leaves it as it is
    module.qconfig = config
    for child_name, child in module.named_children():
        if any(child is one for one in left_out):
            continue
        _propagate(child, given, config, f"{name}.{child_name}" if name else child_name)


def _observed(module):
    """Whether an observer stands behind a module: those that have a quantized form."""
    return type(module) in _STATIC and type(module) not in no_observer_set() or _has_bounds(module)


def _has_bounds(module):
    """Whether, in training, the scale of a module's result is given."""
    return module.training and type(module) in _BOUNDED


def prepare(model, inplace=False, allow_list=None, observer_non_leaf_module_list=None, prepare_custom_config_dict=None):
    """A copy of the model in which observers stand behind the layers that have a `qconfig`, their own or their
    parent's.

    Args:
        allow_list: the types of layers that may have one; those that have a quantized form by default.
        observer_non_leaf_module_list: types of modules with children that get one, too.
        prepare_custom_config_dict: {"float_to_observed_custom_module_class": {type: the type with `from_float` that
            takes its place}}.

    >>> q = cresset.ao.quantization
    >>> model = q.QuantWrapper(nn.Linear(2, 2))
    >>> model.qconfig = q.default_qconfig
    >>> hasattr(q.prepare(model).module, "activation_post_process")
    True
    """
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    if not any(getattr(m, "qconfig", None) for m in model.modules()):
        import warnings

        warnings.warn(
            (
                "None of the submodule got qconfig applied. Make sure you passed correct configuration through "
                "`qconfig_dict` or by assigning the `.qconfig` attribute directly on submodules"
            ),
            stacklevel=2,
        )
    custom = (prepare_custom_config_dict or {}).get("float_to_observed_custom_module_class", {})
    _swap_children(
        model,
        lambda m: (
            custom[type(m)].from_float(m) if type(m) in custom and getattr(m, "qconfig", None) is not None else None
        ),
    )
    parents, observed_custom = tuple(observer_non_leaf_module_list or ()), tuple(custom.values())

    def wanted(m):
        if getattr(m, "qconfig", None) is None:
            return False
        if type(m) in parents or type(m) in observed_custom or isinstance(m, _FUNCTIONALS):
            return True
        return (
            _observed(m)
            if allow_list is None
            else type(m) in allow_list and not isinstance(m, DeQuantStub) and (not list(m.children()) or _observed(m))
        )

    for module in list(_outermost(model, wanted)):
        _watch(module)
    return model


def _outermost(module, wanted):
    """The modules that are wanted, not those inside of them."""
    if wanted(module):
        yield module
        return
    for child in module.children():
        yield from _outermost(child, wanted)


def _watch(module):
    by_channel = (cresset.per_channel_affine, cresset.per_channel_symmetric)
    turned = isinstance(module, (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d))
    if turned and getattr(module.qconfig.weight(), "qscheme", None) in by_channel:
        raise AssertionError("Per channel weight observer is not supported yet for ConvTranspose{n}d.")
    module.activation_post_process = _BOUNDED[type(module)]() if _has_bounds(module) else module.qconfig.activation()
    if isinstance(module, _FUNCTIONALS):  # which call it themselves
        return
    if remembers_nothing(module.activation_post_process):
        module.register_forward_pre_hook(_look_at_input, prepend=True)
    else:
        module.register_forward_hook(_look, prepend=True)  # it sees results before the program's hooks change them


def _unwatch(module):
    """Take away the observer of a module that nothing stands in for."""
    if isinstance(module._modules.get("activation_post_process"), (ObserverBase, FakeQuantizeBase)):
        del module.activation_post_process
        for hooks in (module._forward_hooks, module._forward_pre_hooks):
            for number in [number for number, hook in hooks.items() if hook in (_look, _look_at_input)]:
                del hooks[number]


def _look(module, inputs, output):
    return module.activation_post_process(output)


def _look_at_input(module, inputs):
    return module.activation_post_process(inputs[0])


def prepare_qat(model, mapping=None, inplace=False):
    """A copy of the model (in training) in which layers imitate quantization."""
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    table = _QAT if mapping is None else mapping
    _swap_children(
        model, lambda m: table[type(m)].from_float(m) if type(m) in table and getattr(m, "qconfig", None) else None
    )
    for module in list(_outermost(model, lambda m: _observed(m) and getattr(m, "qconfig", None) is not None)):
        _watch(module)
    return model


def _swap_children(module, swapped):
    for name, child in list(module.named_children()):
        new = swapped(child)
        if new is None:
            _swap_children(child, swapped)
        else:
            setattr(module, name, new)


def convert(
    module,
    mapping=None,
    inplace=False,
    remove_qconfig=True,
    is_reference=False,
    convert_custom_config_dict=None,
    use_precomputed_fake_quant=False,
):
    """A copy of a prepared model that has seen data, with layers of integers in the place of those that were observed.

    Args:
        convert_custom_config_dict: {"observed_to_quantized_custom_module_class": {type: the type with `from_observed`
            that takes its place}}.
        is_reference: put layers of `ao.nn.quantized.reference` in their place, which compute in floating point with the
            weight quantized and dequantized.
        use_precomputed_fake_quant: take a weight's scale as its FakeQuantize has it, without looking at the weight
            again.
    """
    module = module if inplace else copy.deepcopy(module)
    default = _REFERENCE if is_reference else _STATIC
    table = default if mapping is None else mapping

    custom = (convert_custom_config_dict or {}).get("observed_to_quantized_custom_module_class", {})

    def swapped(child):
        if type(child) in custom and getattr(child, "qconfig", None) is not None:
            return custom[type(child)].from_observed(child)
        if type(child) not in table:
            return None
        ready = (
            type(child) in no_observer_set()
            or isinstance(getattr(child, "activation_post_process", None), (ObserverBase, FakeQuantizeBase))
            or table is not default
        )
        return (
            _made(table[type(child)], child, use_precomputed_fake_quant, is_reference)
            if ready and getattr(child, "qconfig", None)
            else None
        )

    _swap_children(module, swapped)  # not the module itself, which has no parent to stand in
    if remove_qconfig:
        _remove_qconfig(module)
    return module


def _remove_qconfig(module):
    """Take the `qconfig` from a module and all inside of it, and the observers that nothing stands in for."""
    for part in list(module.modules()):
        part.__dict__.pop("qconfig", None)
        _unwatch(part)


def quantize(model, run_fn, run_args, mapping=None, inplace=False):
    """prepare, run_fn(model, *run_args) to show it data, convert."""
    model = prepare(model if inplace else copy.deepcopy(model), inplace=True).eval()
    run_fn(model, *run_args)
    return convert(model, mapping, inplace=True)


def quantize_qat(model, run_fn, run_args, inplace=False):
    """prepare_qat, run_fn(model, *run_args) to train it, convert."""
    model = prepare_qat((model if inplace else copy.deepcopy(model)).train(), inplace=True)
    run_fn(model, *run_args)
    return convert(model, inplace=True)


def quantize_dynamic(model, qconfig_spec=None, dtype=cresset.qint8, mapping=None, inplace=False):
    """A copy of the model whose linear and recurrent layers have int8 weights and quantize each input by its extremes.

    Args:
        qconfig_spec: the types or names of layers to change, or a dict from them to a qconfig; by default linear
            and recurrent ones.
        dtype: torch.qint8, or torch.float16.

    >>> model = nn.Sequential(nn.Linear(4, 3))
    >>> model = cresset.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=cresset.qint8)
    >>> model
    Sequential(
      (0): DynamicQuantizedLinear(in_features=4, out_features=3, dtype=torch.qint8, qscheme=torch.per_tensor_affine)
    )
    """
    defaults = {cresset.qint8: default_dynamic_qconfig, cresset.float16: float16_dynamic_qconfig}
    if dtype not in defaults:
        raise ValueError(f"Don't know how to quantize with default settings for {dtype}. Provide full qconfig please")
    table = _DYNAMIC if mapping is None else mapping
    if qconfig_spec is None:
        qconfig_spec = dict.fromkeys(table, defaults[dtype])
    elif not isinstance(qconfig_spec, dict):
        qconfig_spec = dict.fromkeys(qconfig_spec, defaults[dtype])
    unknown = [kind.__name__ for kind in qconfig_spec if isinstance(kind, type) and kind not in table]
    if unknown:
        raise NotImplementedError(
            f"quantize_dynamic: not implemented for {', '.join(unknown)}; it is for "
            f"{', '.join(kind.__name__ for kind in table)}"
        )
    model = (model if inplace else copy.deepcopy(model)).eval()
    propagate_qconfig_(model, qconfig_spec)
    return convert(model, table, inplace=True)


def add_quant_dequant(module):
    """A QuantWrapper around every module that has a `qconfig` of its own."""
    if not list(module.children()) and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in list(module.named_children()):
        setattr(module, name, add_quant_dequant(child))
    return module


def swap_module(mod, mapping, custom_module_class_mapping=None, use_precomputed_fake_quant=False):
    """The module that `mapping` has for this one's type, made of it; the module itself if there is none."""
    if getattr(mod, "qconfig", None) is None:
        return mod
    if type(mod) in (custom_module_class_mapping or {}):
        return custom_module_class_mapping[type(mod)].from_observed(mod)
    return _made(mapping[type(mod)], mod, use_precomputed_fake_quant) if type(mod) in mapping else mod


def _made(kind, mod, use_precomputed_fake_quant, is_reference=False):
    """A quantized layer of a floating-point one, with its hooks; a class of a program's own may not know the
    argument.
    """
    if is_reference and getattr(kind, "_IS_REFERENCE", False):
        observer = mod.qconfig.weight()
        observer(mod.weight.detach())
        new = kind.from_float(mod, quantized.reference.parameters_of(observer))
    elif "use_precomputed_fake_quant" in inspect.signature(kind.from_float).parameters:
        new = kind.from_float(mod, use_precomputed_fake_quant=use_precomputed_fake_quant)
    else:
        new = kind.from_float(mod)
    for hook in mod._forward_pre_hooks.values():
        if hook is not _look_at_input:
            new.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        if hook is not _look:
            new.register_forward_hook(hook)
    return new
