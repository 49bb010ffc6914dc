"""torch.utils.cpp_extension: operators of one's own in C++, compiled when they are first needed (`load`, `load_inline`)
or by setuptools (`BuildExtension`).

They are written against <cresset/extension.h>, a small header of ours: docs/extensions.md tells how. Sources that
include PyTorch's own headers are refused, and told so.
"""

import os
import re
import shutil
import subprocess

from .building import Build, CompilerError, find_nvcc, header_folder
from .opening import open_extension

__all__ = [
    "BuildExtension", "CUDAExtension", "CUDA_HOME", "CppExtension", "check_compiler_ok_for_platform",
    "get_default_build_root", "include_paths",
    "is_ninja_available", "library_paths", "load", "load_inline",
    "verify_ninja_availability",
]  # fmt: skip

CUDA_HOME = os.path.dirname(os.path.dirname(find_nvcc())) if find_nvcc() else None
ROCM_HOME = HIP_HOME = None  # AMD's compilers are not used
IS_HIP_EXTENSION = False


def include_paths(device_type="cpu", torch_include_dirs=True):
    """The folders of the headers that an extension needs.

    Args:
        device_type: "cuda" adds CUDA's own.
        torch_include_dirs: False leaves cresset's out.
    """
    folders = [header_folder()] if torch_include_dirs else []
    return folders + ([os.path.join(CUDA_HOME, "include")] if device_type == "cuda" and CUDA_HOME else [])


def library_paths(device_type="cpu", torch_include_dirs=True, cross_target_platform=None):
    """The folders of the libraries that an extension is linked with: none of cresset's; for "cuda" CUDA's own.

    Args:
        torch_include_dirs, cross_target_platform: PyTorch's; there is no library of cresset's to link with.
    """
    if cross_target_platform not in (None, "linux"):
        raise ValueError(f"library_paths: extensions are compiled for this machine, not for {cross_target_platform!r}")
    return [os.path.join(CUDA_HOME, "lib64")] if device_type == "cuda" and CUDA_HOME else []


def get_default_build_root():
    """The folder in which `load` keeps what it compiled, one folder for each name; TORCH_EXTENSIONS_DIR in the
    environment names another.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.environ.get("TORCH_EXTENSIONS_DIR") or os.path.join(cache, "cresset", "extensions")


def is_ninja_available():
    """Whether ninja is installed. It is not needed: an extension's files are compiled one after the other."""
    import shutil

    return shutil.which("ninja") is not None


def verify_ninja_availability():
    """RuntimeError if ninja is not installed."""
    if not is_ninja_available():
        raise RuntimeError("Ninja is required to load C++ extensions (pip install ninja to get it)")


def check_compiler_ok_for_platform(compiler):
    """Whether a command is a C++ compiler that extensions can be built with: GCC or Clang.

    >>> check_compiler_ok_for_platform("no_such_compiler")
    False
    """
    found = shutil.which(compiler)
    if found is None:
        return False
    said = subprocess.run([found, "-v"], capture_output=True, text=True, check=False)
    return re.search(r"gcc version|clang version|clang-", said.stderr + said.stdout) is not None


def _refuse(**settings):
    for name, value in settings.items():
        if value:
            raise NotImplementedError(f"cpp_extension: {name} is not supported; leave it out")


def load(
    name,
    sources,
    extra_cflags=None,
    extra_cuda_cflags=None,
    extra_sycl_cflags=None,
    extra_ldflags=None,
    extra_include_paths=None,
    build_directory=None,
    verbose=False,
    with_cuda=None,
    with_sycl=None,
    is_python_module=True,
    is_standalone=False,
    keep_intermediates=True,
):
    """Compile an extension, unless that has been done for the same sources and settings, and define its operators as
    torch.ops.<name>.<operator>.

    Args:
        name: a Python name, the namespace of the operators.
        sources: paths of .cpp files, and of .cu files, for which nvcc is needed.
        extra_cflags, extra_cuda_cflags, extra_ldflags, extra_include_paths: lists of further arguments.
        build_directory: where the result goes; a folder in `get_default_build_root()` by default.
        verbose: print the commands.
        with_cuda: whether to use nvcc; whether there are .cu files by default.
        is_python_module: give an object with the operators as attributes; False: the path of the library.
        keep_intermediates: keep object files.

    What the compiler says comes as a RuntimeError. Several processes may load the same extension: one compiles, the
        others wait.
    """
    _refuse(with_sycl=with_sycl, extra_sycl_cflags=extra_sycl_cflags, is_standalone=is_standalone)
    sources = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    texts = {}
    for path in map(os.path.abspath, map(os.fspath, sources)):
        with open(path, encoding="utf-8") as file:
            texts[path] = file.read()
    return _load(name, texts, extra_cflags, extra_cuda_cflags, extra_ldflags, extra_include_paths, build_directory,
        verbose, with_cuda, is_python_module, keep_intermediates)  # fmt: skip


def load_inline(
    name,
    cpp_sources,
    cuda_sources=None,
    sycl_sources=None,
    functions=None,
    extra_cflags=None,
    extra_cuda_cflags=None,
    extra_sycl_cflags=None,
    extra_ldflags=None,
    extra_include_paths=None,
    build_directory=None,
    verbose=False,
    with_cuda=None,
    with_sycl=None,
    is_python_module=True,
    with_pytorch_error_handling=True,
    keep_intermediates=True,
    use_pch=False,
    no_implicit_headers=False,
):
    """The same for sources given as text: `cpp_sources` and `cuda_sources` are strings or lists of them.

    Args:
        functions: the operators that the source must define; a list, or a dictionary whose values are their
            documentation.
        no_implicit_headers: do not put #include <cresset/extension.h> in front.
        with_pytorch_error_handling: exceptions of a kernel are always RuntimeErrors; False is refused.
        use_pch: the header is small and is not precompiled; True is refused.
    """
    _refuse(
        sycl_sources=sycl_sources,
        with_sycl=with_sycl,
        extra_sycl_cflags=extra_sycl_cflags,
        use_pch=use_pch,
        no_error_handling=not with_pytorch_error_handling,
    )
    join = lambda parts: "\n".join([parts] if isinstance(parts, str) else parts or [])
    header = "" if no_implicit_headers else "#include <cresset/extension.h>\n"
    texts = {"main.cpp": header + join(cpp_sources)}
    if cuda_sources:
        texts["cuda.cu"] = header + join(cuda_sources)
    found = _load(name, texts, extra_cflags, extra_cuda_cflags, extra_ldflags, extra_include_paths, build_directory,
        verbose, with_cuda, True, keep_intermediates)  # fmt: skip
    missing = [
        function
        for function in [functions] * isinstance(functions, str) or functions or []
        if not hasattr(found, function)
    ]
    if missing:
        raise RuntimeError(
            f"load_inline: the source of {name!r} registers no operator {', '.join(map(repr, missing))}; it registers "
            f"{sorted(found.__all__)}. "
            "A function becomes an operator by a cresset::Register, see docs/extensions.md"
        )
    if isinstance(functions, dict):
        for function, text in functions.items():
            getattr(found, function).__doc__ = text
    return found if is_python_module else found.__file__


def _load(name, texts, cflags, cuda_cflags, ldflags, include_paths, build_directory, verbose, with_cuda,
    is_python_module, keep_intermediates):  # fmt: skip
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError(f"cpp_extension: the name of an extension is a Python name, got {name!r}")
    folder = build_directory or os.path.join(get_default_build_root(), name)
    try:
        path = Build(name, texts, cflags, cuda_cflags, ldflags, include_paths, folder, with_cuda).run(
            verbose, keep_intermediates
        )
    except CompilerError as error:
        raise RuntimeError(f"Error building extension {name!r}: {error}") from None
    found = open_extension(path, name)
    return found if is_python_module else path


# ---- setuptools


def CppExtension(name, sources, *args, **kwargs):
    """A setuptools.Extension of C++ sources, for `BuildExtension`."""
    import setuptools

    kwargs["include_dirs"] = [*kwargs.get("include_dirs", []), *include_paths()]
    kwargs["language"] = "c++"
    return setuptools.Extension(name, list(sources), *args, **kwargs)


def CUDAExtension(name, sources, *args, **kwargs):
    """A setuptools.Extension of C++ and CUDA sources, for `BuildExtension`. It needs nvcc (CUDA_HOME)."""
    import setuptools

    kwargs["include_dirs"] = [*kwargs.get("include_dirs", []), *include_paths("cuda")]
    kwargs["library_dirs"] = [*kwargs.get("library_dirs", []), *library_paths("cuda")]
    kwargs["libraries"] = [*kwargs.get("libraries", []), "cudart"]
    kwargs["language"] = "c++"
    return setuptools.Extension(name, list(sources), *args, **kwargs)


def __getattr__(name):
    if name == "BuildExtension":  # setuptools is needed to make it, and for nothing else
        from .setup import BuildExtension

        return BuildExtension
    from ...show.missing_names import MissingName

    raise MissingName(__name__, name)
