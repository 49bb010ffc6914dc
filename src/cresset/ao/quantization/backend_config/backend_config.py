"""The classes that describe a backend: patterns of operators, and the dtypes it computes them in."""

import enum
from dataclasses import dataclass

import cresset

__all__ = ["BackendConfig", "BackendPatternConfig", "DTypeConfig", "DTypeWithConstraints", "ObservationType"]


class ObservationType(enum.Enum):
    """Where observers stand around a pattern.

    >>> cresset.ao.quantization.backend_config.ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT.value
    1
    """

    OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT = 0
    OUTPUT_SHARE_OBSERVER_WITH_INPUT = 1
    INPUT_OUTPUT_NOT_OBSERVED = 2


@dataclass
class DTypeWithConstraints:
    """A dtype, with bounds for its integers and scale that the backend asks for; None asks for nothing.

    >>> bounded = cresset.ao.quantization.backend_config.DTypeWithConstraints(cresset.quint8, 0, 127)
    >>> bounded.quant_max_upper_bound
    127
    """

    dtype: cresset.dtype | None = None
    quant_min_lower_bound: int | float | None = None
    quant_max_upper_bound: int | float | None = None
    scale_min_lower_bound: int | float | None = None
    scale_max_upper_bound: int | float | None = None
    scale_exact_match: float | None = None
    zero_point_exact_match: int | None = None

    def allows(self, observer):
        """Whether an observer's integers and scale are within the bounds."""
        low, high = getattr(observer, "quant_min", None), getattr(observer, "quant_max", None)
        least, greatest = self.quant_min_lower_bound, self.quant_max_upper_bound
        bounded = least is not None and greatest is not None
        if bounded and (low is None or high is None or low < least or high > greatest):
            return False
        eps, smallest = getattr(observer, "eps", None), self.scale_min_lower_bound
        if smallest is not None and (eps is None or eps < smallest):
            return False
        if self.scale_exact_match is None or self.zero_point_exact_match is None:
            return True
        inner = getattr(observer, "activation_post_process", observer)
        if not all(hasattr(inner, name) for name in ("scale", "zero_point")):
            return False
        return (float(inner.scale), int(inner.zero_point)) == (self.scale_exact_match, self.zero_point_exact_match)


def _plain(value):
    return value.dtype if isinstance(value, DTypeWithConstraints) else value


class DTypeConfig:
    """The dtypes in which a backend computes a pattern; None asks for nothing.

    >>> of_bytes = cresset.ao.quantization.backend_config.DTypeConfig(cresset.quint8, cresset.quint8, cresset.qint8)
    >>> of_bytes.weight_dtype
    torch.qint8
    """

    def __init__(self, input_dtype=None, output_dtype=None, weight_dtype=None, bias_dtype=None, is_dynamic=None):
        def constrained(value):
            return value if isinstance(value, DTypeWithConstraints) else DTypeWithConstraints(dtype=value)

        self.input_dtype_with_constraints = constrained(input_dtype)
        self.output_dtype_with_constraints = constrained(output_dtype)
        self.weight_dtype_with_constraints = constrained(weight_dtype)
        self.bias_dtype, self.is_dynamic = bias_dtype, is_dynamic

    @property
    def input_dtype(self):
        """The dtype of what goes in."""
        return self.input_dtype_with_constraints.dtype

    @property
    def output_dtype(self):
        """The dtype of what comes out."""
        return self.output_dtype_with_constraints.dtype

    @property
    def weight_dtype(self):
        """The dtype of the weight."""
        return self.weight_dtype_with_constraints.dtype

    @classmethod
    def from_dict(cls, dtype_config_dict):
        """Of a dict with these names."""
        return cls(**dtype_config_dict)

    def to_dict(self):
        """As a dict; what is not asked for is left out."""
        found = {}
        for name in ("input", "output", "weight"):
            constrained = getattr(self, f"{name}_dtype_with_constraints")
            if constrained.dtype is not None:
                found[f"{name}_dtype"] = constrained
        if self.bias_dtype is not None:
            found["bias_dtype"] = self.bias_dtype
        if self.is_dynamic is not None:
            found["is_dynamic"] = self.is_dynamic
        return found

    def __eq__(self, other):
        return isinstance(other, DTypeConfig) and vars(self) == vars(other)

    def __repr__(self):
        given = {key: _plain(value) for key, value in self.to_dict().items()}
        return f"DTypeConfig({', '.join(f'{key}={value}' for key, value in given.items())})"


class BackendPatternConfig:
    """What a backend does with a pattern: a type of modules, a function, a method's name, or a tuple of them in the
    order in which they are called.

    >>> b = cresset.ao.quantization.backend_config
    >>> linear = b.BackendPatternConfig(cresset.nn.Linear).set_root_module(cresset.nn.Linear)
    >>> linear.add_dtype_config(b.DTypeConfig(cresset.quint8, cresset.quint8, cresset.qint8)).dtype_configs
    [DTypeConfig(input_dtype=torch.quint8, output_dtype=torch.quint8, weight_dtype=torch.qint8)]
    """

    def __init__(self, pattern=None):
        self.pattern = pattern
        self.observation_type = ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT
        self.dtype_configs = []
        self.root_module = self.qat_module = self.reference_quantized_module = self.fused_module = None
        self.fuser_method = None
        self._root_node_getter = self._extra_inputs_getter = self._pattern_complex_format = None
        self._num_tensor_args_to_observation_type = {}
        self._input_type_to_index = {}

    def set_observation_type(self, observation_type):
        """Where observers stand."""
        self.observation_type = observation_type
        return self

    def add_dtype_config(self, dtype_config):
        """One more choice of dtypes."""
        self.dtype_configs.append(dtype_config)
        return self

    def set_dtype_configs(self, dtype_configs):
        """All choices of dtypes."""
        self.dtype_configs = dtype_configs
        return self

    def set_root_module(self, root_module):
        """The type of the layer with the weight."""
        self.root_module = root_module
        return self

    def set_qat_module(self, qat_module):
        """The type that imitates quantization in training."""
        self.qat_module = qat_module
        return self

    def set_reference_quantized_module(self, reference_quantized_module):
        """The type that takes the root's place in a reference model."""
        self.reference_quantized_module = reference_quantized_module
        return self

    def set_fused_module(self, fused_module):
        """The type that the pattern's layers become."""
        self.fused_module = fused_module
        return self

    def set_fuser_method(self, fuser_method):
        """What makes one layer of them: called with `is_qat` and the layers."""
        self.fuser_method = fuser_method
        return self

    def _set_root_node_getter(self, root_node_getter):
        self._root_node_getter = root_node_getter
        return self

    def _set_extra_inputs_getter(self, extra_inputs_getter):
        self._extra_inputs_getter = extra_inputs_getter
        return self

    def _set_num_tensor_args_to_observation_type(self, num_tensor_args_to_observation_type):
        self._num_tensor_args_to_observation_type = num_tensor_args_to_observation_type
        return self

    def _set_input_type_to_index(self, input_type_to_index):
        self._input_type_to_index = input_type_to_index
        return self

    def _set_pattern_complex_format(self, pattern):
        self._pattern_complex_format = pattern
        return self

    @property
    def nested_pattern(self):
        """The pattern as (last call, patterns of its arguments ...); of two calls (second, first)."""
        if self._pattern_complex_format is not None or not isinstance(self.pattern, tuple):
            return self.pattern if self._pattern_complex_format is None else self._pattern_complex_format
        nested, *later = self.pattern
        for call in later:
            nested = (call, nested)
        return nested

    @classmethod
    def from_dict(cls, backend_pattern_config_dict):
        """Of a dict, as `to_dict` gives it."""
        new = cls()
        for key, value in backend_pattern_config_dict.items():
            name = _NAMES.get(key)
            if name is None:
                raise ValueError(f"BackendPatternConfig: there is no setting {key!r}")
            made = [c if isinstance(c, DTypeConfig) else DTypeConfig.from_dict(c) for c in value] if (
                key == "dtype_configs") else value  # fmt: skip
            setattr(new, name, made)
        return new

    def to_dict(self):
        """As a dict; what is not set is left out."""
        found = {
            "observation_type": self.observation_type,
            "dtype_configs": [config.to_dict() for config in self.dtype_configs],
        }
        for key, name in _NAMES.items():
            value = getattr(self, name)
            if key not in found and value not in (None, {}):
                found[key] = value
        return found

    def __repr__(self):
        given = {key: value for key, value in self.to_dict().items() if value}
        return f"BackendPatternConfig({given})"


_NAMES = {
    "pattern": "pattern", "observation_type": "observation_type", "dtype_configs": "dtype_configs",
    "root_module": "root_module", "qat_module": "qat_module",
    "reference_quantized_module_for_root": "reference_quantized_module", "fused_module": "fused_module",
    "fuser_method": "fuser_method", "root_node_getter": "_root_node_getter",
    "extra_inputs_getter": "_extra_inputs_getter",
    "num_tensor_args_to_observation_type": "_num_tensor_args_to_observation_type",
    "input_type_to_index": "_input_type_to_index", "pattern_complex_format": "_pattern_complex_format",
}  # fmt: skip


class BackendConfig:
    """The patterns that a backend computes with integers; of two for one pattern the later holds.

    >>> b = cresset.ao.quantization.backend_config
    >>> mine = b.BackendConfig("mine").set_backend_pattern_config(b.BackendPatternConfig(cresset.nn.Linear))
    >>> mine.name, len(mine.configs)
    ('mine', 1)
    """

    def __init__(self, name=""):
        self.name = name
        self._pattern_complex_format_to_config = {}

    def set_name(self, name):
        """Its name."""
        self.name = name
        return self

    def set_backend_pattern_config(self, config):
        """One more pattern."""
        self._pattern_complex_format_to_config[config.nested_pattern] = config
        return self

    def set_backend_pattern_configs(self, configs):
        """More patterns."""
        for config in configs:
            self.set_backend_pattern_config(config)
        return self

    @property
    def configs(self):
        """All patterns."""
        return list(self._pattern_complex_format_to_config.values())

    @classmethod
    def from_dict(cls, backend_config_dict):
        """Of a dict, as `to_dict` gives it."""
        new = cls(backend_config_dict.get("name", ""))
        for config in backend_config_dict.get("configs", ()):
            known = isinstance(config, BackendPatternConfig)
            new.set_backend_pattern_config(config if known else BackendPatternConfig.from_dict(config))
        return new

    def to_dict(self):
        """As a dict: the name and the patterns' dicts."""
        return {"name": self.name, "configs": [config.to_dict() for config in self.configs]}

    def __repr__(self):
        return f"BackendConfig({self.to_dict()})"
