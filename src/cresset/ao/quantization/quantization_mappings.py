"""Which quantized layer stands in for which: the tables that `prepare`, `convert` and their relatives read."""

import copy

import cresset
from cresset import nn

from ..nn import intrinsic, qat, quantized
from .fake_quantize import default_fixed_qparams_range_0to1_fake_quant, default_fixed_qparams_range_neg1to1_fake_quant
from .stubs import DeQuantStub, QuantStub

__all__ = [
    "DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS", "DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS",
    "DEFAULT_MODULE_TO_ACT_POST_PROCESS", "DEFAULT_QAT_MODULE_MAPPINGS",
    "DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS", "DEFAULT_STATIC_QUANT_MODULE_MAPPINGS",
    "get_default_compare_output_module_list", "get_default_dynamic_quant_module_mappings",
    "get_default_float_to_quantized_operator_mappings", "get_default_qat_module_mappings",
    "get_default_qconfig_propagation_list", "get_default_static_quant_module_mappings",
    "get_default_static_quant_reference_module_mappings", "get_dynamic_quant_module_class",
    "get_embedding_qat_module_mappings", "get_quantized_operator", "get_static_quant_module_class", "no_observer_set",
]  # fmt: skip

_NAMED_ALIKE = (
    "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d",
    "ConvTranspose3d", "Dropout", "ELU", "GroupNorm", "Hardswish", "InstanceNorm1d", "InstanceNorm2d",
    "InstanceNorm3d", "LayerNorm", "LeakyReLU", "Linear", "PReLU", "ReLU6",
)  # fmt: skip
_WITH_RELU = ("ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU")
_WITH_NORM = ("ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d", "ConvBnReLU3d", "LinearBn1d")
_FUSED = ("BNReLU2d", "BNReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU")

DEFAULT_STATIC_QUANT_MODULE_MAPPINGS = {
    QuantStub: quantized.Quantize,
    DeQuantStub: quantized.DeQuantize,
    quantized.FloatFunctional: quantized.QFunctional,
    **{getattr(nn, name): getattr(quantized, name) for name in _NAMED_ALIKE},
    **{getattr(intrinsic, name): getattr(intrinsic.quantized, name) for name in _FUSED},
    **{getattr(qat, name): getattr(quantized, name) for name in ("Linear", "Conv1d", "Conv2d", "Conv3d")},
    **{getattr(intrinsic.qat, name): getattr(intrinsic.quantized, name) for name in _WITH_RELU},
    **{getattr(intrinsic.qat, f"ConvBn{n}d"): getattr(quantized, f"Conv{n}d") for n in (1, 2, 3)},
    **{getattr(intrinsic.qat, f"ConvBnReLU{n}d"): getattr(intrinsic.quantized, f"ConvReLU{n}d") for n in (1, 2, 3)},
    intrinsic.qat.LinearBn1d: quantized.Linear,
}
DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS = {
    QuantStub: quantized.Quantize,
    DeQuantStub: quantized.DeQuantize,
    **{getattr(nn, name): getattr(quantized.reference, name) for name in quantized.reference.__all__},
}
DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS = {
    intrinsic.LinearReLU: intrinsic.quantized.dynamic.LinearReLU,
    **{
        getattr(nn, name): getattr(quantized.dynamic, name)
        for name in ("GRUCell", "Linear", "LSTM", "GRU", "LSTMCell", "RNNCell")
    },
}
DEFAULT_QAT_MODULE_MAPPINGS = {
    **{getattr(nn, name): getattr(qat, name) for name in ("Linear", "Conv1d", "Conv2d", "Conv3d")},
    **{getattr(intrinsic, name): getattr(intrinsic.qat, name) for name in (*_WITH_RELU, *_WITH_NORM)},
}
# Layers whose results have bounds: they are observed by a given scale, whatever the qconfig says.
DEFAULT_MODULE_TO_ACT_POST_PROCESS = {
    nn.Hardsigmoid: default_fixed_qparams_range_0to1_fake_quant,
    nn.Sigmoid: default_fixed_qparams_range_0to1_fake_quant,
    nn.Softmax: default_fixed_qparams_range_0to1_fake_quant,
    nn.Tanh: default_fixed_qparams_range_neg1to1_fake_quant,
}
DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS = {
    getattr(nn.functional, name): getattr(cresset.ops.quantized, name)
    for name in ("elu", "hardswish", "instance_norm", "layer_norm", "leaky_relu", "dropout")
}


def no_observer_set():
    """Types of layers whose results are not observed although they have a quantized form.

    >>> nn.Dropout in cresset.ao.quantization.no_observer_set()
    True
    """
    return {DeQuantStub, nn.Dropout}


def get_default_static_quant_module_mappings():
    """Which layer `convert` puts in the place of which."""
    return copy.copy(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS)


def get_default_static_quant_reference_module_mappings():
    """Which layer `convert(is_reference=True)` puts in the place of which."""
    return copy.copy(DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS)


def get_default_dynamic_quant_module_mappings():
    """Which layer `quantize_dynamic` puts in the place of which."""
    return copy.copy(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS)


def get_default_qat_module_mappings():
    """Which layer `prepare_qat` puts in the place of which."""
    return copy.copy(DEFAULT_QAT_MODULE_MAPPINGS)


def get_embedding_qat_module_mappings():
    """get_default_qat_module_mappings, with embeddings."""
    return {**DEFAULT_QAT_MODULE_MAPPINGS, nn.Embedding: qat.Embedding, nn.EmbeddingBag: qat.EmbeddingBag}


def get_default_float_to_quantized_operator_mappings():
    """Which operator of torch.ops.quantized computes a function of nn.functional.

    >>> str(cresset.ao.quantization.get_default_float_to_quantized_operator_mappings()[nn.functional.elu])
    'quantized.elu'
    """
    return copy.copy(DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS)


def get_default_qconfig_propagation_list():
    """The types of modules that a qconfig means something to.

    >>> nn.Linear in cresset.ao.quantization.get_default_qconfig_propagation_list()
    True
    """
    tables = (
        DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, DEFAULT_QAT_MODULE_MAPPINGS, DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS
    )  # fmt: skip
    return {kind for table in tables for kind in table} | {nn.Sequential}


def get_default_compare_output_module_list():
    """The types of modules whose results are compared, floating-point and quantized.

    >>> cresset.ao.nn.quantized.Linear in cresset.ao.quantization.get_default_compare_output_module_list()
    True
    """
    return {*DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, *DEFAULT_STATIC_QUANT_MODULE_MAPPINGS.values(),
        *DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, *DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS.values()}  # fmt: skip


def _class_in(table, kind, additional, what):
    table = {**table, **(additional or {})}
    if kind not in table:
        raise AssertionError(f"Floating point module class {kind} does not have a corresponding {what} module class")
    return table[kind]


def get_static_quant_module_class(float_module_class, additional_static_quant_mapping=None, is_reference=False):
    """The type that `convert` puts in the place of `float_module_class`.

    >>> cresset.ao.quantization.quantization_mappings.get_static_quant_module_class(nn.Conv2d).__name__
    'Conv2d'
    """
    table = DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS if is_reference else DEFAULT_STATIC_QUANT_MODULE_MAPPINGS
    return _class_in(table, float_module_class, additional_static_quant_mapping, "quantized")


def get_dynamic_quant_module_class(float_module_class, additional_dynamic_quant_mapping=None):
    """The type that `quantize_dynamic` puts in the place of `float_module_class`.

    >>> cresset.ao.quantization.get_dynamic_quant_module_class(nn.LSTM) is cresset.ao.nn.quantized.dynamic.LSTM
    True
    """
    table = DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS
    return _class_in(table, float_module_class, additional_dynamic_quant_mapping, "quantized")


def get_quantized_operator(float_op):
    """The operator of torch.ops.quantized that computes a function of nn.functional.

    >>> str(cresset.ao.quantization.get_quantized_operator(nn.functional.hardswish))
    'quantized.hardswish'
    """
    if float_op not in DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS:
        raise AssertionError(f"Operator {float_op} does not have corresponding quantized op")
    return DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS[float_op]
