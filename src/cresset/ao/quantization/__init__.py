"""Quantization of models: PyTorch's torch.ao.quantization, for eager models.

Dynamic: `quantize_dynamic(model, {nn.Linear})`. Static: give the model a `qconfig`, `prepare` it, show it data,
    `convert` it. In training:
`prepare_qat`, train, `convert`.
"""

# ruff: noqa: F401  (the names are here to be imported)

from . import fake_quantize, fuser_method_mappings, observer, qconfig, quantization_mappings, stubs
from .fake_quantize import *  # noqa: F403
from .fuse_modules import fuse_known_modules, fuse_modules, fuse_modules_qat
from .fuser_method_mappings import *  # noqa: F403
from .observer import *  # noqa: F403
from .qconfig import *  # noqa: F403
from .qconfig_mapping import QConfigMapping, get_default_qat_qconfig_mapping, get_default_qconfig_mapping
from .quantization_mappings import (
    get_default_compare_output_module_list,
    get_default_dynamic_quant_module_mappings,
    get_default_float_to_quantized_operator_mappings,
    get_default_qat_module_mappings,
    get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings,
    get_default_static_quant_reference_module_mappings,
    get_dynamic_quant_module_class,
    get_embedding_qat_module_mappings,
    get_quantized_operator,
    get_static_quant_module_class,
    no_observer_set,
)
from .quantize import (
    add_quant_dequant,
    convert,
    prepare,
    prepare_qat,
    propagate_qconfig_,
    quantize,
    quantize_dynamic,
    quantize_qat,
    swap_module,
)
from .stubs import DeQuantStub, QuantStub, QuantWrapper

__all__ = [name for name in dir() if not name.startswith("_")]
