"""What a module's state is: `state_dict` and `load_state_dict`, their hooks, and what is said of names
that do not fit."""

import itertools
import warnings
import weakref
from collections import OrderedDict, namedtuple

import cresset

from .conversion import swap_loaded
from .hooks import add_hook
from .parameter import Parameter, is_lazy

EXTRA_STATE = "_extra_state"


class _IncompatibleKeys(namedtuple("_IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What `load_state_dict` did not find, and what it found too much."""

    __slots__ = ()

    def __repr__(self):
        return super().__repr__() if self.missing_keys or self.unexpected_keys else "<All keys matched successfully>"

    __str__ = __repr__


class HasState:
    """The part of Module that saves and loads: it reads the dictionaries of parameters, buffers and submodules."""

    def register_state_dict_pre_hook(self, hook):
        """Call hook(module, prefix, keep_vars) before state_dict is made."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def _register_state_dict_hook(self, hook):
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return add_hook(self._state_dict_hooks, hook)

    def register_state_dict_post_hook(self, hook):
        """Call hook(module, state_dict, prefix, local_metadata) after state_dict is made; it may change it in place."""
        hook._from_public_api = True
        return add_hook(self._state_dict_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        return add_hook(self._load_state_dict_pre_hooks, _WithModule(hook, self) if with_module else hook)

    def register_load_state_dict_pre_hook(self, hook):
        """Call hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        first.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook):
        """Call hook(module, incompatible_keys) after load_state_dict; it may change the keys in place."""
        return add_hook(self._load_state_dict_post_hooks, hook)

    def get_extra_state(self):
        """What else belongs to the state_dict; a subclass that has some overrides this and `set_extra_state`."""
        raise RuntimeError(f"{type(self).__name__}.get_extra_state: not overridden, so there is no extra state")

    def set_extra_state(self, state):
        """Take back what `get_extra_state` gave."""
        raise RuntimeError(f"{type(self).__name__}.set_extra_state: not overridden, so there is no extra state")

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, parameter in self._parameters.items():
            if parameter is not None:
                destination[prefix + name] = parameter if keep_vars else parameter.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if type(self).get_extra_state is not HasState.get_extra_state:
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """All parameters and persistent buffers by their dotted paths; they share memory with the module's.

        Args:
            destination: a dictionary to fill.
            prefix: stands before every name.
            keep_vars: keep the tensors' history.
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
                FutureWarning,
                stacklevel=2,
            )
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            replaced = hook(self, destination, prefix, metadata)
            if getattr(hook, "_from_public_api", False):
                if replaced is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif replaced is not None:
                destination = replaced
        return destination

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        """Copy what belongs to this module itself (not to its submodules) out of `state_dict`."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        buffers = {k: v for k, v in self._buffers.items() if k not in self._non_persistent_buffers_set}
        own = {k: v for k, v in itertools.chain(self._parameters.items(), buffers.items()) if v is not None}
        for name, tensor in own.items():
            key = prefix + name
            if key in state_dict:
                self._load_tensor(name, tensor, key, state_dict[key], local_metadata, error_msgs)
            elif strict:
                missing_keys.append(key)

        key = prefix + EXTRA_STATE
        if type(self).set_extra_state is not HasState.set_extra_state:
            if key in state_dict:
                self.set_extra_state(state_dict[key])
            elif strict:
                missing_keys.append(key)
        elif strict and key in state_dict:
            unexpected_keys.append(key)

        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != prefix + EXTRA_STATE:
                    name, dot, _ = key[len(prefix) :].partition(".")
                    if name not in (self._modules if dot else own):
                        unexpected_keys.append(key)

    def _load_tensor(self, name, tensor, key, saved, local_metadata, error_msgs):
        if not isinstance(saved, cresset.Tensor):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                "checkpoint "
                f"but received {type(saved)}"
            )
            return
        assign = local_metadata.get("assign_to_params_buffers", False)
        lazy = is_lazy(tensor)
        if not lazy and tensor.dim() == 0 and saved.shape == (1,):
            saved = saved[0]  # files of very old versions keep scalars as vectors
        if not lazy and saved.shape != tensor.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {saved.shape} from checkpoint, "
                f"the shape in current model is {tensor.shape}."
            )
            return
        if tensor.is_meta and not saved.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current "
                "model, "
                "which is a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary to "
                "their "
                "corresponding key in the module instead of copying them in place?)",
                stacklevel=4,
            )
        swap = cresset.__future__.get_swap_module_params_on_conversion()
        try:
            with cresset.no_grad():
                if swap:
                    swap_loaded(tensor, tensor.module_load(saved, assign=assign), saved)
                elif assign:
                    if isinstance(tensor, Parameter):
                        if not isinstance(saved, Parameter):
                            saved = Parameter(saved, requires_grad=tensor.requires_grad)
                        else:
                            saved.requires_grad_(tensor.requires_grad)
                    setattr(self, name, saved)
                else:
                    tensor.copy_(saved)
        except Exception as error:
            error_msgs.append(
                f'While {"swapping" if swap else "copying"} the parameter named "{key}", whose dimensions in '
                f"the model are {tensor.size()} and "
                f"whose dimensions in the checkpoint are {saved.size()}, an exception occurred : {error.args}."
            )

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copy parameters and buffers from `state_dict`, by name.

        Args:
            strict: refuse a state_dict with missing or unexpected names.
            assign: make the given tensors the module's own, instead of copying their values.

        Returns: the missing and the unexpected names.
        """
        if not hasattr(state_dict, "keys"):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing, unexpected, errors = [], [], []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata

        _load_below(self, state_dict, "", metadata, assign, (missing, unexpected, errors))
        if strict:
            if unexpected:
                errors.insert(0, f"Unexpected key(s) in state_dict: {_quoted(unexpected)}. ")
            if missing:
                errors.insert(0, f"Missing key(s) in state_dict: {_quoted(missing)}. ")
        if errors:
            listed = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}")
        return _IncompatibleKeys(missing, unexpected)


def _load_below(module, state, prefix, metadata, assign, complaints):
    """Load `module` and what is below it. Not a closure: one that calls itself would keep the tensors in a cycle."""
    local = {} if metadata is None else metadata.get(prefix[:-1], {})
    if assign:
        local["assign_to_params_buffers"] = assign
    missing, unexpected, errors = complaints
    module._load_from_state_dict(state, prefix, local, True, missing, unexpected, errors)
    for name, child in module._modules.items():
        if child is not None:
            below = prefix + name + "."
            part = {k: v for k, v in state.items() if k.startswith(below)}
            _load_below(child, part, below, metadata, assign, complaints)
    keys = _IncompatibleKeys(missing, unexpected)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, keys) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                "values, "
                "if incompatible_keys need to be modified, it should be done inplace."
            )


class _WithModule:
    """A load_state_dict hook that gets its module first; a copy of the module gets a hook of its own."""

    def __init__(self, hook, module):
        self.hook, self.module = hook, weakref.ref(module)  # the module owns the hook

    def __call__(self, *args):
        return self.hook(self.module(), *args)

    def __getstate__(self):
        return self.hook, self.module()

    def __setstate__(self, state):
        self.__init__(*state)


def _quoted(names):
    # Names can come from a file: what a terminal would obey is escaped.
    return ", ".join(f'"{name}"' if name.isprintable() else repr(name) for name in names)


def consume_prefix_in_state_dict_if_present(state_dict, prefix):
    """Take `prefix` off the names in `state_dict`, in place: "module." after training in parallel, for example.

    >>> state = {"module.weight": 1}
    >>> nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'weight': 1}
    """
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    for key in list(metadata or ()):
        # The metadata's names are those of modules: "", "module", "module.layer", ...
        if key and (key == prefix.rstrip(".") or key.startswith(prefix)):
            metadata[key[len(prefix) :]] = metadata.pop(key)
