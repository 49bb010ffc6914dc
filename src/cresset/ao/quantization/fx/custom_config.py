"""What a program says about its own modules when graphs are quantized."""

__all__ = ["ConvertCustomConfig", "FuseCustomConfig", "PrepareCustomConfig", "StandaloneModuleConfigEntry"]

from typing import Any, NamedTuple


class StandaloneModuleConfigEntry(NamedTuple):
    """How a module that is quantized as a model of its own is prepared."""

    qconfig_mapping: Any = None
    example_inputs: Any = ()
    prepare_custom_config: Any = None
    backend_config: Any = None


class _Custom:
    """Settings by name, with PyTorch's words for them in dicts."""

    def __init__(self):
        for name, usual in self._settings.values():
            setattr(self, name, usual())

    @classmethod
    def from_dict(cls, given):
        """Of a dict, as `to_dict` gives it."""
        new = cls()
        for key, value in given.items():
            if key not in cls._settings:
                raise ValueError(f"{cls.__name__}: expected the keys {list(cls._settings)}, got {key!r}")
            setattr(new, cls._settings[key][0], value)
        return new

    def to_dict(self):
        """As a dict; what is not set is left out."""
        found = {key: getattr(self, name) for key, (name, _) in self._settings.items()}
        return {key: value for key, value in found.items() if value}

    def set_preserved_attributes(self, attributes):
        """Names of the model's attributes that the result keeps."""
        self.preserved_attributes = attributes
        return self


def _by_type(table, first, second, quant_type):
    kind = getattr(quant_type, "name", "STATIC").lower()
    table.setdefault(kind, {})[first] = second


class FuseCustomConfig(_Custom):
    """What `fuse_fx` takes."""

    _settings = {"preserved_attributes": ("preserved_attributes", list)}


class PrepareCustomConfig(_Custom):
    """What `prepare_fx` takes.

    >>> from cresset.ao.quantization.fx.custom_config import PrepareCustomConfig
    >>> PrepareCustomConfig().set_input_quantized_indexes([0]).to_dict()
    {'input_quantized_idxs': [0]}
    """

    _settings = {
        "standalone_module_name": ("standalone_module_names", dict),
        "standalone_module_class": ("standalone_module_classes", dict),
        "float_to_observed_custom_module_class": ("float_to_observed_mapping", dict),
        "non_traceable_module_name": ("non_traceable_module_names", list),
        "non_traceable_module_class": ("non_traceable_module_classes", list),
        "input_quantized_idxs": ("input_quantized_indexes", list),
        "output_quantized_idxs": ("output_quantized_indexes", list),
        "preserved_attributes": ("preserved_attributes", list),
    }

    def set_standalone_module_name(
        self, module_name, qconfig_mapping, example_inputs, prepare_custom_config, backend_config
    ):
        """The module of that name is quantized as a model of its own."""
        self.standalone_module_names[module_name] = StandaloneModuleConfigEntry(
            qconfig_mapping, example_inputs, prepare_custom_config, backend_config
        )
        return self

    def set_standalone_module_class(
        self, module_class, qconfig_mapping, example_inputs, prepare_custom_config, backend_config
    ):
        """Modules of a type are quantized as models of their own."""
        self.standalone_module_classes[module_class] = StandaloneModuleConfigEntry(
            qconfig_mapping, example_inputs, prepare_custom_config, backend_config
        )
        return self

    def set_float_to_observed_mapping(self, float_class, observed_class, quant_type=None):
        """Modules of a type become those of another, by its `from_float`, which look at data by themselves."""
        _by_type(self.float_to_observed_mapping, float_class, observed_class, quant_type)
        return self

    def set_non_traceable_module_names(self, module_names):
        """Modules of these names are not entered."""
        self.non_traceable_module_names = module_names
        return self

    def set_non_traceable_module_classes(self, module_classes):
        """Modules of these types are not entered."""
        self.non_traceable_module_classes = module_classes
        return self

    def set_input_quantized_indexes(self, indexes):
        """The model's inputs with these numbers come quantized."""
        self.input_quantized_indexes = indexes
        return self

    def set_output_quantized_indexes(self, indexes):
        """The model's results with these numbers are given quantized."""
        self.output_quantized_indexes = indexes
        return self


class ConvertCustomConfig(_Custom):
    """What `convert_fx` takes."""

    _settings = {
        "observed_to_quantized_custom_module_class": ("observed_to_quantized_mapping", dict),
        "preserved_attributes": ("preserved_attributes", list),
    }

    def set_observed_to_quantized_mapping(self, observed_class, quantized_class, quant_type=None):
        """Modules of an observed type become those of another, by its `from_observed`."""
        _by_type(self.observed_to_quantized_mapping, observed_class, quantized_class, quant_type)
        return self
