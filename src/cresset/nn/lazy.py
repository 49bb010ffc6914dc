"""LazyModuleMixin: a layer that learns the shape of its parameters from its first input."""

import warnings

from .parameter import is_lazy


class LazyModuleMixin:
    """Calls `initialize_parameters(*inputs)` before the first forward pass, then makes the module `cls_to_become`."""

    cls_to_become: type | None = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)
        warnings.warn(
            (
                "Lazy modules are a new feature under heavy development so changes to the API or functionality can "
                "happen "
                "at any moment."
            ),
            stacklevel=2,
        )

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        # Like a module's, but what has no shape yet is kept as it is, since it cannot be detached.
        for name, parameter in self._parameters.items():
            if parameter is not None:
                destination[prefix + name] = parameter if is_lazy(parameter) or keep_vars else parameter.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if is_lazy(buffer) or keep_vars else buffer.detach()

    def _lazy_load_hook(self, state_dict, prefix, *_):
        # A state_dict with shapes decides the shapes.
        for name, tensor in (*self._parameters.items(), *self._buffers.items()):
            key = prefix + name
            if key in state_dict and tensor is not None and is_lazy(tensor) and not is_lazy(state_dict[key]):
                tensor.materialize(state_dict[key].shape)

    def initialize_parameters(self, *args, **kwargs):
        """Materialize the parameters to suit the inputs; each lazy layer writes its own."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self):
        """Whether the shape of a parameter or buffer is still unknown."""
        return any(is_lazy(t) for t in (*self._parameters.values(), *self._buffers.values()))

    def _infer_parameters(self, module, args, kwargs):
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self):
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward pass to "
            "correctly "
            "initialize the modules"
        )
