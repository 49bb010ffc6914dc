"""QConfigMapping: which parts of a model are quantized how, for quantization by graphs."""

import re
from collections import OrderedDict

import cresset
import cresset.nn.functional as F
from cresset import nn

from . import fake_quantize as fake
from . import observer as watch
from .qconfig import (
    QConfig,
    default_quint8_weight_qconfig,
    default_reuse_input_qconfig,
    default_symmetric_qnnpack_qat_qconfig,
    default_symmetric_qnnpack_qconfig,
    get_default_qat_qconfig,
    get_default_qconfig,
)

__all__ = ["QConfigMapping", "get_default_qat_qconfig_mapping", "get_default_qconfig_mapping"]

_TRANSPOSED = [
    nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d,
    F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d,
]  # fmt: skip
# Operators whose results have bounds, and so a scale that is known.
FIXED = {
    **dict.fromkeys(
        [nn.Hardsigmoid, F.hardsigmoid, "hardsigmoid", "hardsigmoid_", nn.Sigmoid, cresset.sigmoid, "sigmoid",
         "sigmoid_", nn.Softmax], watch.default_fixed_qparams_range_0to1_observer
    ),
    **dict.fromkeys([nn.Tanh, cresset.tanh, "tanh", "tanh_"], watch.default_fixed_qparams_range_neg1to1_observer),
}  # fmt: skip
_KEYS = {
    "": "global_qconfig",
    "object_type": "object_type_qconfigs",
    "module_name_regex": "module_name_regex_qconfigs",
    "module_name": "module_name_qconfigs",
    "module_name_object_type_order": "module_name_object_type_order_qconfigs",
}


class QConfigMapping:
    """Which `QConfig` (None: it stays in floating point) the parts of a model get. What names a part more closely comes
    first: the n-th call of a type inside a module, a module's name, a pattern of names, a type, and last the global
    one. A module's name is also that of what is inside of it.

    >>> q = cresset.ao.quantization
    >>> mapping = q.QConfigMapping().set_global(q.default_qconfig).set_object_type(nn.Conv2d, None)
    >>> mapping.set_module_name("head", q.default_per_channel_qconfig).module_name_qconfigs.keys()
    odict_keys(['head'])
    """

    def __init__(self):
        self.global_qconfig = None
        self.object_type_qconfigs = OrderedDict()
        self.module_name_regex_qconfigs = OrderedDict()
        self.module_name_qconfigs = OrderedDict()
        self.module_name_object_type_order_qconfigs = OrderedDict()

    def set_global(self, global_qconfig):
        """Of all that nothing else is said of."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type, qconfig):
        """Of modules of a type, calls of a function, or of a method by its name."""
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex, qconfig):
        """Of modules with a name that matches."""
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name, qconfig):
        """Of the module of that name, and what is inside of it."""
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(self, module_name, object_type, index, qconfig):
        """Of the call number `index` of a type inside the module of that name."""
        self.module_name_object_type_order_qconfigs[module_name, object_type, index] = qconfig
        return self

    def to_dict(self):
        """As a dict, for `from_dict`."""
        pairs = {
            key: [(*(part if isinstance(part, tuple) else (part,)), config) for part, config in self._of(key).items()]
            for key in list(_KEYS)[1:]
        }
        return {"": self.global_qconfig, **pairs}

    @classmethod
    def from_dict(cls, qconfig_dict):
        """Of a dict: {"": the global one, "object_type": [(type, qconfig), ...], "module_name": ..., ...}.

        >>> q = cresset.ao.quantization
        >>> q.QConfigMapping.from_dict({"": None, "object_type": [(nn.Linear, None)]}).object_type_qconfigs
        OrderedDict([(<class 'torch.nn.modules.linear.Linear'>, None)])
        """
        new = cls()
        for key, given in qconfig_dict.items():
            if key not in _KEYS:
                raise ValueError(f"QConfigMapping: expected the keys {list(_KEYS)}, got {key!r}")
            if key == "":
                new.global_qconfig = given
                continue
            for *part, config in given:
                new._of(key)[tuple(part) if len(part) > 1 else part[0]] = config
        return new

    def _of(self, key):
        return getattr(self, _KEYS[key])

    def __repr__(self):
        lines = ["QConfigMapping ("]
        for name in _KEYS.values():
            value = getattr(self, name)
            if name == "global_qconfig":
                lines += [f" {name}", f"  {value}"]
            elif value:
                lines += [f" {name}", *(f"  {key}: {config}" for key, config in value.items())]
            else:
                lines += [f" {name}", "  OrderedDict()"]
        return "\n".join([*lines, ")"])

    def find(self, kinds, path, owner, number):
        """The qconfig of a node.

        Args:
            kinds: its object types: what is called, or, of layers that were fused, each of them.
            path: the name of the module it is, or is called in.
            owner: the type of that module; it may itself be named as an object type.
            number: which call of its kind inside the module it is.
        """
        found = self.global_qconfig
        for kind in (owner, *reversed(kinds)):
            found = self.object_type_qconfigs.get(kind, found)
        for pattern, config in self.module_name_regex_qconfigs.items():
            if re.match(pattern, path):
                found = config
                break
        name = path
        while name:
            if name in self.module_name_qconfigs:
                found = self.module_name_qconfigs[name]
                break
            name = name.rpartition(".")[0]
        inside = (path, path.rpartition(".")[0])
        for (name, kind, index), config in self.module_name_object_type_order_qconfigs.items():
            if name in inside and kind in kinds and index == number:
                found = config
        return found


def _mapping(qconfig, backend, weight, fixed):
    per_tensor = QConfig(activation=qconfig.activation, weight=weight)
    float_weight = QConfig(activation=qconfig.activation, weight=watch.default_placeholder_observer)
    mapping = QConfigMapping().set_global(qconfig).set_object_type("reshape", default_reuse_input_qconfig)
    for kind in _TRANSPOSED:  # of which the engines take one scale for the whole weight
        mapping.set_object_type(kind, per_tensor if backend in ("fbgemm", "x86") else qconfig)
    for kind in (F.layer_norm, nn.LayerNorm):
        mapping.set_object_type(kind, float_weight)
    mapping.set_object_type(nn.PReLU, default_quint8_weight_qconfig)
    for kind, observer in FIXED.items():
        mapping.set_object_type(kind, QConfig(activation=fixed(observer), weight=weight))
    return mapping


def get_default_qconfig_mapping(backend="x86", version=0):
    """The usual mapping for a model that is trained.

    >>> mapping = cresset.ao.quantization.get_default_qconfig_mapping("x86")
    >>> mapping.global_qconfig == cresset.ao.quantization.get_default_qconfig("x86")
    False
    >>> nn.Sigmoid in mapping.object_type_qconfigs
    True
    """
    return _mapping(
        get_default_qconfig(backend, version), backend, watch.default_weight_observer, lambda observer: observer
    )


def get_default_qat_qconfig_mapping(backend="x86", version=1):
    """The usual mapping for training with imitated quantization.

    >>> nn.Tanh in cresset.ao.quantization.get_default_qat_qconfig_mapping("x86").object_type_qconfigs
    True
    """
    return _mapping(
        get_default_qat_qconfig(backend, version),
        backend,
        fake.default_weight_fake_quant,
        lambda observer: fake.FixedQParamsFakeQuantize.with_args(observer=observer),
    )


def _get_symmetric_qnnpack_qconfig_mapping():
    """The usual mapping with weights whose zero point is zero."""
    return _with_global(get_default_qconfig_mapping("qnnpack"), default_symmetric_qnnpack_qconfig)


def _get_symmetric_qnnpack_qat_qconfig_mapping():
    """The same for training."""
    return _with_global(get_default_qat_qconfig_mapping("qnnpack"), default_symmetric_qnnpack_qat_qconfig)


def _with_global(mapping, qconfig):
    usual = mapping.global_qconfig
    for kind, config in mapping.object_type_qconfigs.items():
        if config == usual:
            mapping.object_type_qconfigs[kind] = qconfig
    return mapping.set_global(qconfig)
