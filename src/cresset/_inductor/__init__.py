"""torch._inductor: the names that programs use of PyTorch's code generator. No code is generated: see
cresset.compiler."""

import importlib as _importlib

from ..compiler import MODES, cudagraph_mark_step_begin
from ..show import missing_names as _missing_names
from . import config

__all__ = [
    "aoti_compile_and_package", "aoti_load_package", "config", "cudagraph_mark_step_begin", "list_mode_options",
]  # fmt: skip


def list_mode_options(mode=None, dynamic=None):
    """The settings that the modes of `compile` stand for: none, for each. With `mode` those of one.

    >>> cresset._inductor.list_mode_options("default")
    {}
    """
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")
    return {} if mode is not None else {name: {} for name in MODES}


def aoti_compile_and_package(exported_program, *, package_path=None, inductor_configs=None):
    """Write an exported program as a package that `aoti_load_package` calls without the model's source; gives its path.

    Args:
        package_path: a path that ends in .pt2, or an open file; None makes a file among the temporary ones.
        inductor_configs: settings of PyTorch's code generator. One counts: without
            "aot_inductor.package_constants_in_so" the package has no weights, and `load_constants` gives them.

    >>> import tempfile
    >>> program = cresset.export.export(nn.ReLU(), (cresset.ones(2),))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = cresset._inductor.aoti_compile_and_package(program, package_path=f"{folder}/relu.pt2")
    ...     run = cresset._inductor.aoti_load_package(path)
    >>> run(cresset.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    from .package import write_package  # upward: a package holds an exported program

    return write_package(exported_program, package_path, inductor_configs or {})


def aoti_load_package(path, run_single_threaded=False, device_index=-1):
    """The program in a package: a callable, as `load_package` of `_inductor.package` gives it."""
    from .package import load_package  # upward: likewise

    return load_package(path, run_single_threaded=run_single_threaded, device_index=device_index)


def __getattr__(name):
    if name in ("package", "utils"):
        return _importlib.import_module("." + name, __name__)
    raise _missing_names.MissingName(__name__, name)
