"""Quantization of a model's graph: prepare_fx, show it data (or train it), convert_fx.

The graph is recorded by `cresset.fx`, so that functions and operators are quantized as layers are, and nobody marks in
the model where integers begin. `fx/prepare.py` puts observers in, `fx/convert.py` puts integers in their place.
"""

from cresset import Tensor
from cresset.fx import GraphModule

from .backend_config import BackendConfig, get_native_backend_config
from .fx.convert import convert
from .fx.custom_config import ConvertCustomConfig, FuseCustomConfig, PrepareCustomConfig
from .fx.fuse import fuse
from .fx.graph_module import FusedGraphModule, ObservedGraphModule, ObservedStandaloneGraphModule, QuantizedGraphModule
from .fx.prepare import prepare
from .fx.tracing import replace_module, trace
from .qconfig_mapping import QConfigMapping

__all__ = ["convert_fx", "convert_to_reference_fx", "fuse_fx", "prepare_fx", "prepare_qat_fx"]


def _made(kind, given):
    """Settings: as they are, of a dict, or the usual ones."""
    if isinstance(given, dict):
        return kind.from_dict(given)
    return kind() if given is None else given


def _backend(given):
    return get_native_backend_config() if given is None else _made(BackendConfig, given)


def fuse_fx(model, fuse_custom_config=None, backend_config=None):
    """A graph of the model in which layers that follow each other are one: a convolution, its batch norm and a relu.

    The model is in evaluation, and is changed.

    >>> from cresset.ao.quantization.quantize_fx import fuse_fx
    >>> fused = fuse_fx(nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU()).eval())
    >>> type(getattr(fused, "0")).__name__
    'ConvReLU2d'
    """
    custom = _made(FuseCustomConfig, fuse_custom_config)
    graph, _ = trace(model, PrepareCustomConfig())
    fused = FusedGraphModule(model, graph, custom.preserved_attributes)
    return fuse(fused.train(model.training), False, _backend(backend_config))


def prepare_fx(
    model, qconfig_mapping, example_inputs, prepare_custom_config=None, _equalization_config=None, backend_config=None
):
    """A graph of the model (in evaluation) with observers, which look at the data that is shown to it next.

    Args:
        qconfig_mapping: what is quantized how: a QConfigMapping, or its dict.
        example_inputs: arguments of a call; PyTorch asks for them, and reads nothing of them either.
        prepare_custom_config: what is said about modules of one's own: a PrepareCustomConfig, or its dict.
        backend_config: what the backend computes with integers; by default what is computed here.

    >>> from cresset.ao.quantization import get_default_qconfig_mapping
    >>> from cresset.ao.quantization.quantize_fx import convert_fx, prepare_fx
    >>> model, x = nn.Sequential(nn.Linear(4, 2), nn.ReLU()).eval(), cresset.rand(8, 4)
    >>> prepared = prepare_fx(model, get_default_qconfig_mapping("x86"), (x,))
    >>> _ = prepared(x)
    >>> type(getattr(convert_fx(prepared), "0")).__name__
    'LinearReLU'
    """
    return _prepared(
        model, qconfig_mapping, False, example_inputs, prepare_custom_config, _equalization_config, backend_config
    )


def prepare_qat_fx(model, qconfig_mapping, example_inputs, prepare_custom_config=None, backend_config=None):
    """A graph of the model (in training) in which layers and what passes between them imitate quantization.

    Args:
        qconfig_mapping, example_inputs, prepare_custom_config, backend_config: as of `prepare_fx`.

    >>> from cresset.ao.quantization import get_default_qat_qconfig_mapping
    >>> from cresset.ao.quantization.quantize_fx import prepare_qat_fx
    >>> model, x = nn.Sequential(nn.Linear(4, 2), nn.ReLU()).train(), cresset.rand(8, 4)
    >>> prepared = prepare_qat_fx(model, get_default_qat_qconfig_mapping("x86"), (x,))
    >>> type(getattr(prepared, "0")).__module__
    'cresset.ao.nn.intrinsic.qat'
    """
    return _prepared(model, qconfig_mapping, True, example_inputs, prepare_custom_config, None, backend_config)


def _prepared(model, mapping, is_qat, example_inputs, custom, equalization, backend_config, standalone=False):
    who = "prepare_qat_fx" if is_qat else "prepare_fx"
    if equalization is not None and _made(QConfigMapping, equalization).to_dict() != _NOTHING:
        raise NotImplementedError(f"{who}: weights are not equalized; leave out _equalization_config")
    if not isinstance(example_inputs, (tuple, list, dict, Tensor)):
        raise TypeError(f"{who}: expected a tuple of arguments as example_inputs, got {type(example_inputs).__name__}")
    if is_qat and not model.training:
        raise AssertionError("prepare_qat_fx only works on models in training mode")
    custom, backend_config = _made(PrepareCustomConfig, custom), _backend(backend_config)
    mapping = _made(QConfigMapping, mapping)
    graph, scopes = trace(model, custom)
    kind = ObservedStandaloneGraphModule if standalone else ObservedGraphModule
    observed = kind(model, graph, custom.preserved_attributes).train(model.training)
    _prepare_standalone(observed, mapping, is_qat, custom, backend_config)
    fuse(observed, is_qat, backend_config)
    return prepare(observed, mapping, is_qat, scopes, custom, backend_config)


_NOTHING = QConfigMapping().to_dict()


def _prepare_standalone(model, mapping, is_qat, custom, backend_config):
    for name, module in list(model.named_modules()):
        entry = custom.standalone_module_names.get(name, custom.standalone_module_classes.get(type(module)))
        if entry is not None:
            entry = type(entry)(*entry) if hasattr(entry, "_fields") else entry
            inner = _prepared(
                module, entry[0] or mapping, is_qat, entry[1], entry[2], None, entry[3] or backend_config, True
            )
            replace_module(model, name, inner)


def _converted(graph_module, is_reference, convert_custom_config, qconfig_mapping, backend_config):
    if not isinstance(graph_module, GraphModule):
        raise TypeError(f"convert_fx: expected what prepare_fx gives, got a {type(graph_module).__name__}")
    custom = _made(ConvertCustomConfig, convert_custom_config)
    mapping = None if qconfig_mapping is None else _made(QConfigMapping, qconfig_mapping)
    for name, module in list(graph_module.named_modules()):
        if name and isinstance(module, ObservedStandaloneGraphModule):
            replace_module(graph_module, name, _converted(module, is_reference, custom, None, backend_config))
    made = convert(graph_module, is_reference, custom, mapping, _backend(backend_config))
    return QuantizedGraphModule(made, made.graph, custom.preserved_attributes).train(made.training)


def convert_fx(
    graph_module, convert_custom_config=None, _remove_qconfig=True, qconfig_mapping=None, backend_config=None
):
    """What `prepare_fx` made, with integers in the place of what was observed. The argument is changed.

    Args:
        convert_custom_config: what is said about modules of one's own: a ConvertCustomConfig, or its dict.
        qconfig_mapping: parts for which it has None stay as they are.
        backend_config: the one that was given to `prepare_fx`.
    """
    return _converted(graph_module, False, convert_custom_config, qconfig_mapping, backend_config)


def convert_to_reference_fx(
    graph_module, convert_custom_config=None, _remove_qconfig=True, qconfig_mapping=None, backend_config=None
):
    """The same in floating point: weights and what passes are quantized and dequantized, for a compiler that puts its
    own layers in their place.

    Args:
        convert_custom_config, qconfig_mapping, backend_config: as of `convert_fx`.
    """
    return _converted(graph_module, True, convert_custom_config, qconfig_mapping, backend_config)
