"""Exported programs as packages: what is written ahead of time, and called without the model's source.

A package is the `.pt2` file of `export.save`. No code is generated: what is loaded runs the program's operators, under
`compile`. Packages with PyTorch's generated libraries are refused.
"""

import copy
import io
import os
import tempfile

import cresset

from .. import export
from ..compiler import compile
from ..utils._pytree import tree_flatten, tree_unflatten
from . import config

__all__ = ["AOTICompiledModel", "load_package"]

_CONSTANTS = "aot_inductor.package_constants_in_so"
_OWN = (_CONSTANTS, "aot_inductor.package", "aot_inductor.output_path")


def write_package(program, path, settings):
    """Write an ExportedProgram to a path, an open file or, without one, a new file; gives the place."""
    if not isinstance(program, export.ExportedProgram):
        raise ValueError("Only ExportedProgram is supported")
    if program.example_inputs is None:
        raise RuntimeError(
            "exported_program.example_inputs is required to be set in order for AOTInductor compilation."
        )
    is_file = hasattr(path, "write")
    if path is not None and not is_file and not os.fspath(path).endswith(".pt2"):
        raise AssertionError(
            f"Expect package path to be a file ending in .pt2, is None, or is a buffer. Instead got {path}"
        )
    unknown = [name for name in settings if name not in (*_OWN, *vars(config))]
    if unknown:
        raise RuntimeError(f"aoti_compile_and_package: there is no setting {unknown[0]!r}")
    if settings.get("aot_inductor.output_path"):
        raise RuntimeError("Please pass in a package path instead of setting the aot_inductor.output_path config.")
    if not settings.get(_CONSTANTS, True):
        program = copy.copy(program)
        program._state_dict = {name: _shape_of(tensor) for name, tensor in program.state_dict.items()}
    if path is None:
        handle, path = tempfile.mkstemp(prefix="cresset_", suffix=".pt2")
        os.close(handle)
    export.save(program, path)
    return path


def _shape_of(tensor):
    shape = tensor.detach().to("meta")
    return cresset.nn.Parameter(shape, tensor.requires_grad) if isinstance(tensor, cresset.nn.Parameter) else shape


class AOTICompiledModel:
    """A program that was loaded from a package. Called with the model's arguments, it gives what the model gives,
    without gradients.
    """

    def __init__(self, program):
        self._program = program
        self._module = program.module()
        self._run = compile(self._module)

    def __call__(self, *args, **kwargs):
        absent = [name for name, tensor in self._constants().items() if tensor.is_meta]
        if absent:
            raise RuntimeError(
                f"AOTICompiledModel: the package was written without its constants; load_constants() has not given "
                f"{', '.join(absent[:5])}"
            )
        leaves = tree_flatten((args, kwargs))[0]
        in_spec = self._program.call_spec.in_spec
        if len(leaves) == in_spec.num_leaves:  # also ((x,)) where the model takes (x)
            args, kwargs = tree_unflatten(leaves, in_spec)
        with cresset.no_grad():
            return self._run(*args, **kwargs)

    def _constants(self):
        return {**dict(self._module.named_parameters()), **dict(self._module.named_buffers())}

    def get_constant_fqns(self):
        """The names of the parameters and buffers."""
        return list(self._constants())

    def load_constants(self, constants_map, *, check_full_update, user_managed=False, allow_h2d_copy=False):
        """Give the parameters and buffers other values.

        Args:
            constants_map: tensors by name.
            check_full_update: whether all of them have to be given.
            user_managed: the tensors themselves are used, not copies: later changes of them are seen.
            allow_h2d_copy: tensors of the CPU are copied to the device that the program is on.
        """
        known = self._constants()
        if check_full_update and (absent := [name for name in known if name not in constants_map]):
            raise RuntimeError(f"load_constants: {', '.join(absent[:5])} not given, and check_full_update is True")
        for name, tensor in constants_map.items():
            if name not in known:
                raise RuntimeError(f"load_constants: the program has no constant {name!r}; it has {', '.join(known)}")
            old = known[name]
            if tensor.shape != old.shape or tensor.dtype != old.dtype:
                raise RuntimeError(
                    f"load_constants: {name} is {tuple(old.shape)} of {old.dtype}, got {tuple(tensor.shape)} of "
                    f"{tensor.dtype}"
                )
            if not old.is_meta and tensor.device != old.device:
                if not allow_h2d_copy:
                    raise RuntimeError(
                        f"load_constants: {name} is on {old.device}, got a tensor on {tensor.device}; "
                        "allow_h2d_copy=True copies it"
                    )
                tensor = tensor.to(old.device)
            value = tensor.detach() if user_managed else tensor.detach().clone()
            *path, own = name.split(".")
            owner = self._module.get_submodule(".".join(path))
            if own in owner._parameters:
                owner._parameters[own] = cresset.nn.Parameter(value, requires_grad=False)
            else:
                owner._buffers[own] = value


def load_package(path, model_name="model", run_single_threaded=False, num_runners=1, device_index=-1):
    """The program in a package.

    Args:
        path: where it is, or an open file.
        model_name: "model": a package holds one.
        run_single_threaded, num_runners: there are no threads of its own that run it.
        device_index: -1: the program stays on the device that it was exported on.
    """
    if model_name != "model":
        raise RuntimeError(f"load_package: the package holds one program, 'model'; there is no {model_name!r}")
    if device_index != -1:
        raise NotImplementedError("load_package: move the model before it is exported; device_index has to be -1")
    if not hasattr(path, "read"):
        with open(path, "rb") as file:
            path = io.BytesIO(file.read())
    try:
        return AOTICompiledModel(export.load(path))
    except RuntimeError as error:
        if "aotinductor" in str(error):
            raise RuntimeError(
                "load_package: the file holds a library that PyTorch generated, which needs PyTorch; write the package "
                "here, with aoti_compile_and_package"
            ) from None
        raise
