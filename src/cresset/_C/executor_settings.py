"""Settings of the executors that PyTorch has for scripted programs. There is one way here, so that none has an effect;
programs that set and restore them read what they wrote. See docs/ignored_arguments.md.
"""

import warnings

# PyTorch's defaults.
_settings = {
    "profiling_executor": True,
    "profiling_mode": True,
    "texpr_fuser": True,
    "fuse_on_cpu": False,
    "fuse_on_gpu": False,
    "bailout_depth": 12,
}


def _exchange(name, value):
    before, _settings[name] = _settings[name], value
    return before


def _jit_set_profiling_executor(enabled):
    """Keep the setting; what it was."""
    return _exchange("profiling_executor", bool(enabled))


def _jit_set_profiling_mode(enabled):
    """Keep the setting; what it was."""
    return _exchange("profiling_mode", bool(enabled))


def _jit_set_texpr_fuser_enabled(enabled):
    """Keep the setting."""
    _exchange("texpr_fuser", bool(enabled))


def _jit_override_can_fuse_on_cpu(override):
    """Keep what `_jit_can_fuse_on_cpu` says."""
    _exchange("fuse_on_cpu", bool(override))


def _jit_override_can_fuse_on_gpu(override):
    """Keep what `_jit_can_fuse_on_gpu` says."""
    _exchange("fuse_on_gpu", bool(override))


def _jit_can_fuse_on_cpu():
    """What `_jit_override_can_fuse_on_cpu` was told; False at first."""
    return _settings["fuse_on_cpu"]


def _jit_can_fuse_on_gpu():
    """What `_jit_override_can_fuse_on_gpu` was told; False at first."""
    return _settings["fuse_on_gpu"]


def _jit_set_bailout_depth(depth):
    """Keep the setting; what it was."""
    return _exchange("bailout_depth", int(depth))


def _jit_set_nvfuser_enabled(enabled):
    """A fuser that PyTorch has no more either: a warning."""
    warnings.warn("nvfuser is no longer supported, _jit_set_nvfuser_enabled has no effect", stacklevel=2)


def _jit_set_nvfuser_guard_mode(enabled):
    """The same: a warning."""
    warnings.warn("nvfuser is no longer supported, _jit_set_nvfuser_guard_mode has no effect", stacklevel=2)
