"""BuildExtension: setuptools' `build_ext` for extensions against <cresset/extension.h>. What it builds is imported like
any compiled module.
"""

import os

from setuptools import Distribution  # noqa: F401  (setuptools first: it takes the place of distutils)
from setuptools.command.build_ext import build_ext

from .building import CFLAGS, CompilerError, find_nvcc, refuse_foreign_headers

__all__ = ["BuildExtension"]

# The part that Python imports: it hands its own file to `fill`, which finds the operators in it.
MODULE = """#include <Python.h>
static int fill(PyObject* module) {
  PyObject* opening = PyImport_ImportModule("cresset.utils.cpp_extension.setup");
  PyObject* done = opening ? PyObject_CallMethod(opening, "fill", "O", module) : NULL;
  Py_XDECREF(opening);
  Py_XDECREF(done);
  return done ? 0 : -1;
}
static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void*)fill}, {0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "NAME", NULL, 0, NULL, slots, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit_NAME(void) { return PyModuleDef_Init(&definition); }
"""


def fill(module):
    """Give a module that Python is importing the operators that its file holds."""
    from .opening import open_extension

    found = open_extension(module.__file__, module.__name__.rpartition(".")[2])
    module.__dict__.update({name: getattr(found, name) for name in found.__all__}, __all__=found.__all__)


class BuildExtension(build_ext):
    """The command `build_ext` for CppExtension and CUDAExtension: cmdclass={"build_ext": BuildExtension}.

    Args:
        use_ninja, no_python_abi_suffix: of PyTorch's; see docs/ignored_arguments.md.
    """

    @classmethod
    def with_options(cls, **options):
        """The class with some of its options set."""
        unknown = sorted(set(options) - {"use_ninja", "no_python_abi_suffix", "max_jobs"})
        if unknown:
            raise TypeError(f"BuildExtension.with_options: there is no option {', '.join(unknown)}")
        return type(cls.__name__, (cls,), {"options": options})

    def build_extension(self, ext):
        name = ext.name.rpartition(".")[2]
        for path in ext.sources:
            with open(path, encoding="utf-8") as file:
                try:
                    refuse_foreign_headers(path, file.read())
                except CompilerError as error:
                    raise RuntimeError(f"Error building extension {name!r}: {error}") from None
        if any(path.endswith(".cu") for path in ext.sources):
            self.compile_cuda(ext)
        os.makedirs(self.build_temp, exist_ok=True)
        module = os.path.join(self.build_temp, f"{name}_module.c")
        with open(module, "w", encoding="utf-8") as file:
            file.write(MODULE.replace("NAME", name))
        (compiled,) = self.compiler.compile(
            [module], output_dir=self.build_temp, include_dirs=ext.include_dirs, extra_postargs=["-fPIC"]
        )
        ext.extra_objects = [*ext.extra_objects, compiled]
        ext.extra_compile_args = [*CFLAGS, *(ext.extra_compile_args or [])]
        super().build_extension(ext)

    def compile_cuda(self, ext):
        """The .cu files become objects by nvcc."""
        nvcc = find_nvcc()
        if nvcc is None:
            raise RuntimeError(
                f"Error building extension {ext.name!r}: its CUDA sources need nvcc, which is not found; set "
                "CUDA_HOME to where CUDA is installed"
            )
        os.makedirs(self.build_temp, exist_ok=True)
        for path in [path for path in ext.sources if path.endswith(".cu")]:
            made = os.path.join(self.build_temp, os.path.basename(path) + ".o")
            self.spawn(
                [
                    nvcc,
                    "-std=c++17",
                    "-O2",
                    "-Xcompiler",
                    "-fPIC,-fvisibility=hidden",
                    *(f"-I{folder}" for folder in ext.include_dirs),
                    "-c",
                    path,
                    "-o",
                    made,
                ]
            )
            ext.extra_objects = [*ext.extra_objects, made]
        ext.sources = [path for path in ext.sources if not path.endswith(".cu")]
