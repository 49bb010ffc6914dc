"""Settings of the tracer, with PyTorch's defaults. They are kept for programs that set and read them.
`recompile_limit` is read where graphs go to a backend of one's own (one that fails costs a warning, whatever
`suppress_errors` says); nothing else is traced, so the others have no effect.
"""

import contextlib
import sys

accumulated_cache_size_limit = 256
accumulated_recompile_limit = 256
assume_static_by_default = True
automatic_dynamic_shapes = True
cache_size_limit = 8
capture_dynamic_output_shape_ops = False
capture_scalar_outputs = False
disable = False
error_on_nested_fx_trace = True
error_on_recompile = False
fake_tensor_cache_crosscheck_enabled = False
fake_tensor_cache_enabled = True
force_parameter_static_shapes = True
inline_inbuilt_nn_modules = True
optimize_ddp = True
recompile_limit = 8
skip_fwd_side_effects_in_bwd_under_checkpoint = False
specialize_int = False
suppress_errors = False
verbose = False


def patching(module_name):
    """The function `patch` of a module of settings."""

    @contextlib.contextmanager
    def patch(changes=None, value=None, **settings):
        """Change settings for a while: patch("verbose", True), patch({"verbose": True}) or patch(verbose=True)."""
        module = sys.modules[module_name]
        wanted = {**({changes: value} if isinstance(changes, str) else changes or {}), **settings}
        for name in wanted:
            if not hasattr(module, name):
                raise AttributeError(f"{module_name.partition('.')[2]}: there is no setting {name!r}")
        before = {name: getattr(module, name) for name in wanted}
        vars(module).update(wanted)
        try:
            yield
        finally:
            vars(module).update(before)

    return patch


patch = patching(__name__)
