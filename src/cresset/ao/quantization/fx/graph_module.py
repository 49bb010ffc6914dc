"""The modules that quantization by graphs makes: they keep attributes of the model, also in copies."""

import copy

from cresset.fx import GraphModule

__all__ = ["FusedGraphModule", "ObservedGraphModule", "ObservedStandaloneGraphModule", "QuantizedGraphModule"]


class _Keeping(GraphModule):
    """A GraphModule with attributes of the model it was made of."""

    def __init__(self, root, graph, preserved_attr_names=()):
        kept = {name: getattr(root, name) for name in preserved_attr_names if hasattr(root, name)}
        super().__init__(root, graph, class_name="GraphModule")
        self.preserved_attr_names = set(preserved_attr_names)
        for name, value in kept.items():
            setattr(self, name, value)


class FusedGraphModule(_Keeping):
    """What `fuse_fx` gives."""


class ObservedGraphModule(_Keeping):
    """What `prepare_fx` gives: observers look at what passes."""


class ObservedStandaloneGraphModule(ObservedGraphModule):
    """The same of a module that is quantized as a model of its own."""


class QuantizedGraphModule(_Keeping):
    """What `convert_fx` gives. The packed weights of functions are in its state, each as a weight and a bias."""

    def _packed(self):
        return {name: value for name, value in vars(self).items() if name.startswith("_packed_weight_")}

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name, packed in self._packed().items():
            destination[prefix + name] = packed.unpack()

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, *rest):
        for name, packed in self._packed().items():
            if prefix + name in state_dict:
                loaded = copy.copy(packed)
                loaded.weight, loaded.bias = state_dict.pop(prefix + name)
                setattr(self, name, loaded)
            else:
                missing_keys.append(prefix + name)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, *rest)
