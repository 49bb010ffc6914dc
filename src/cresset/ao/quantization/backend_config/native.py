"""What the layers and operators of this library compute with integers."""

import operator

import cresset
import cresset.nn.functional as F
from cresset import nn

from ...nn import intrinsic, quantized
from ..fuser_method_mappings import _DEFAULT_OP_LIST_TO_FUSER_METHOD as _FUSERS
from ..qconfig_mapping import FIXED
from ..quantization_mappings import DEFAULT_QAT_MODULE_MAPPINGS as _QAT
from .backend_config import BackendConfig, BackendPatternConfig, DTypeConfig, ObservationType

__all__ = [
    "get_fbgemm_backend_config", "get_native_backend_config", "get_native_backend_config_dict",
    "get_onednn_backend_config", "get_qnnpack_backend_config", "get_x86_backend_config",
]  # fmt: skip

OWN = ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT
SHARED = ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT
NONE = ObservationType.INPUT_OUTPUT_NOT_OBSERVED

STATIC_WEIGHTED = DTypeConfig(cresset.quint8, cresset.quint8, cresset.qint8, cresset.float)
STATIC = DTypeConfig(cresset.quint8, cresset.quint8)
STATIC_FLOAT_WEIGHT = DTypeConfig(cresset.quint8, cresset.quint8, cresset.float, cresset.float)
DYNAMIC = DTypeConfig(cresset.quint8, cresset.float, cresset.qint8, cresset.float, is_dynamic=True)
DYNAMIC_HALF = DTypeConfig(cresset.float16, cresset.float, cresset.float16, cresset.float, is_dynamic=True)

_RELUS = (nn.ReLU, F.relu)
_OPERANDS = {"weight": 1, "bias": 2}


def _weighted(kind, function, fused_relu, dtypes):
    """A layer, its function, and either with a relu behind it."""
    name = kind.__name__
    reference = getattr(quantized.reference, name)

    def config(pattern):
        return BackendPatternConfig(pattern).set_dtype_configs(dtypes)

    yield config(kind).set_root_module(kind).set_reference_quantized_module(reference).set_qat_module(_QAT.get(kind))
    if kind in _QAT:
        yield config(_QAT[kind]).set_root_module(kind).set_reference_quantized_module(reference)
    yield config(function)._set_input_type_to_index(_OPERANDS)
    if fused_relu is None:
        return
    for form in (fused_relu, _QAT[fused_relu]):
        yield (
            config(form)
            .set_root_module(kind)
            .set_reference_quantized_module(reference)
            .set_qat_module(_QAT[fused_relu])
        )
    for relu in _RELUS:
        yield config((kind, relu)).set_fuser_method(_FUSERS[kind, nn.ReLU]).set_fused_module(fused_relu)
        yield config((function, relu))._set_input_type_to_index(_OPERANDS)


def _normalized(kind, norm, dtypes):
    """A layer and a batch norm, which become one layer."""
    reference = getattr(quantized.reference, kind.__name__)
    yield BackendPatternConfig((kind, norm)).set_dtype_configs(dtypes).set_fuser_method(_FUSERS[kind, norm])
    for relu in _RELUS if kind is not nn.Linear else ():
        fuser = _FUSERS[kind, norm, nn.ReLU]
        yield BackendPatternConfig((kind, norm, relu)).set_dtype_configs(dtypes).set_fuser_method(fuser)
    for fused in (f"{kind.__name__.replace('Conv', 'ConvBn')}", f"{kind.__name__.replace('Conv', 'ConvBnReLU')}"):
        fused = "LinearBn1d" if kind is nn.Linear else fused
        if not hasattr(intrinsic, fused):
            continue
        trained = getattr(intrinsic.qat, fused)
        for form in (getattr(intrinsic, fused), trained):
            yield (
                BackendPatternConfig(form)
                .set_dtype_configs(dtypes)
                .set_root_module(kind)
                .set_reference_quantized_module(reference)
                .set_qat_module(trained)
            )


def _binary(dtypes):
    observed = {0: OWN, 1: SHARED, 2: OWN}
    for function in (operator.add, cresset.add, operator.mul, cresset.mul):
        for relu in (*_RELUS, cresset.relu):
            yield (
                BackendPatternConfig((function, relu))
                .set_dtype_configs(dtypes)
                ._set_num_tensor_args_to_observation_type(observed)
            )
        yield (
            BackendPatternConfig(function).set_dtype_configs(dtypes)._set_num_tensor_args_to_observation_type(observed)
        )
    yield BackendPatternConfig(cresset.matmul).set_dtype_configs(dtypes)


_OWN_SCALE = [
    nn.ELU, nn.LeakyReLU, nn.Hardswish, nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d, nn.Dropout, nn.PReLU,
    nn.BatchNorm2d, nn.BatchNorm3d, F.elu, F.hardswish, F.leaky_relu, F.dropout, F.instance_norm,
    F.group_norm,
]  # fmt: skip
_OWN_SCALE_FLOAT_WEIGHT = [nn.LayerNorm, F.layer_norm]
_SHARED_SCALE = [
    nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d,
    nn.Hardtanh, nn.Identity, nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.PixelShuffle, nn.PixelUnshuffle, nn.ReLU,
    nn.ReLU6, F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d, F.avg_pool1d, F.avg_pool2d,
    F.avg_pool3d, F.hardtanh, F.hardtanh_, F.interpolate, F.max_pool1d, F.max_pool2d, F.max_pool3d, F.pixel_shuffle,
    F.pixel_unshuffle, F.relu, F.relu6, cresset.cat, cresset.clamp, cresset.flatten, cresset.mean, cresset.narrow,
    cresset.repeat_interleave, cresset.squeeze, cresset.stack, cresset.transpose, cresset.unsqueeze, operator.floordiv,
    "clamp", "contiguous", "detach", "detach_", "mean", "permute", "relu", "relu_", "repeat", "repeat_interleave",
    "reshape", "resize_", "squeeze", "squeeze_", "transpose", "unsqueeze", "unsqueeze_", "view",
]  # fmt: skip
_ABOUT = ["shape", "size"]


def _configs():
    weighted, dynamic = [STATIC_WEIGHTED], [STATIC_WEIGHTED, DYNAMIC, DYNAMIC_HALF]
    yield from _weighted(nn.Linear, F.linear, intrinsic.LinearReLU, dynamic)
    yield from _normalized(nn.Linear, nn.BatchNorm1d, weighted)
    for dims in (1, 2, 3):
        conv, turned, norm = (getattr(nn, f"{name}{dims}d") for name in ("Conv", "ConvTranspose", "BatchNorm"))
        yield from _weighted(conv, getattr(F, f"conv{dims}d"), getattr(intrinsic, f"ConvReLU{dims}d"), weighted)
        yield from _normalized(conv, norm, weighted)
        yield from _weighted(turned, getattr(F, f"conv_transpose{dims}d"), None, weighted)
        yield BackendPatternConfig((turned, norm)).set_dtype_configs(weighted).set_fuser_method(_FUSERS[turned, norm])
    for norm, fused in ((nn.BatchNorm2d, intrinsic.BNReLU2d), (nn.BatchNorm3d, intrinsic.BNReLU3d)):
        for relu in _RELUS:
            yield (
                BackendPatternConfig((norm, relu))
                .set_dtype_configs([STATIC])
                .set_fuser_method(_FUSERS[norm, nn.ReLU])
                .set_fused_module(fused)
            )
        yield BackendPatternConfig(fused).set_dtype_configs([STATIC])
    yield from _binary([STATIC])
    for kind in (*_OWN_SCALE, *FIXED):
        yield BackendPatternConfig(kind).set_dtype_configs([STATIC])
    for kind in _OWN_SCALE_FLOAT_WEIGHT:
        yield BackendPatternConfig(kind).set_dtype_configs([STATIC_FLOAT_WEIGHT])
    for kind in _SHARED_SCALE:
        yield BackendPatternConfig(kind).set_dtype_configs([STATIC]).set_observation_type(SHARED)
    for kind in _ABOUT:
        yield BackendPatternConfig(kind).set_dtype_configs([STATIC]).set_observation_type(NONE)
    for kind in (nn.LSTM, nn.GRU, nn.LSTMCell, nn.GRUCell, nn.RNNCell):
        yield BackendPatternConfig(kind).set_dtype_configs([DYNAMIC, DYNAMIC_HALF]).set_root_module(kind)


def get_native_backend_config():
    """What is computed with integers here.

    >>> config = cresset.ao.quantization.backend_config.get_native_backend_config()
    >>> config.name, nn.Linear in [pattern.pattern for pattern in config.configs]
    ('native', True)
    """
    return BackendConfig("native").set_backend_pattern_configs(_configs())


def get_native_backend_config_dict():
    """The same as a dict.

    >>> cresset.ao.quantization.backend_config.get_native_backend_config_dict()["name"]
    'native'
    """
    return get_native_backend_config().to_dict()


def get_fbgemm_backend_config():
    """The same under the name of an engine for servers.

    >>> cresset.ao.quantization.backend_config.get_fbgemm_backend_config().name
    'fbgemm'
    """
    return get_native_backend_config().set_name("fbgemm")


def get_x86_backend_config():
    """The same under the name of PyTorch's choice of engines for x86.

    >>> cresset.ao.quantization.backend_config.get_x86_backend_config().name
    'x86'
    """
    return get_native_backend_config().set_name("x86")


def get_qnnpack_backend_config():
    """The same under the name of an engine for phones.

    >>> cresset.ao.quantization.backend_config.get_qnnpack_backend_config().name
    'qnnpack'
    """
    return get_native_backend_config().set_name("qnnpack")


def get_onednn_backend_config():
    """The same under the name of oneDNN.

    >>> cresset.ao.quantization.backend_config.get_onednn_backend_config().name
    'onednn'
    """
    return get_native_backend_config().set_name("onednn")
