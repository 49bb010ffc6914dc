"""Compiling an extension: which commands, when they are needed, and one process at a time.

Note [When an extension is compiled]
The library lies in a folder named by the hash of the sources, the arguments and the compiler. Beside it stands the list
of all files that the compiler read, with their hashes: a header that changed means compiling again, to a library of
another name, since a process that has the first one open would get that again. A library is written under a passing
name and put in its place at the end, so that nobody ever opens half of one. No command goes through a shell.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess

__all__ = ["Build", "CompilerError", "find_nvcc", "header_folder"]

CFLAGS = ["-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-fno-gnu-unique"]
FOREIGN = re.compile(
    r'^[ \t]*#[ \t]*include[ \t]*[<"]((?:torch|ATen|c10|caffe2)/[^>"]*|pybind11/[^>"]*)[>"]', re.MULTILINE
)


class CompilerError(Exception):
    """An extension cannot be compiled; with the compiler's own words where there are any."""


def header_folder():
    """Where <cresset/extension.h> is."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "headers")


def find_compiler():
    """The C++ compiler: $CXX, or g++, c++ or clang++ on the path."""
    wanted = os.environ.get("CXX")
    for name in [wanted] if wanted else ["g++", "c++", "clang++"]:
        if found := shutil.which(name):
            return found
    raise CompilerError(
        f"there is no C++ compiler; looked for {wanted or 'g++, c++ and clang++'} (install one, or name it in the "
        "environment variable CXX)"
    )


def find_nvcc():
    """CUDA's compiler: that of $CUDA_HOME or $CUDA_PATH, or on the path; None if there is none."""
    for home in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")):
        if home and os.path.exists(os.path.join(home, "bin", "nvcc")):
            return os.path.join(home, "bin", "nvcc")
    return shutil.which("nvcc")


def refuse_foreign_headers(path, text):
    """A source for PyTorch's C++ classes is told what is offered instead."""
    if found := FOREIGN.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise CompilerError(
            f"{path}:{line} includes {found[1]}. PyTorch's C++ classes (at::Tensor, TORCH_LIBRARY, PYBIND11_MODULE) "
            "are not in cresset. What is offered instead is "
            "<cresset/extension.h>: tensors as plain structs with pointer, sizes and strides, and operators "
            "registered with a shape rule and CPU and CUDA kernels; "
            "docs/extensions.md in cresset's sources shows one from start to end"
        )


def words(name, value):
    """A list of arguments, checked."""
    if value is None:
        return []
    if isinstance(value, str) or not all(isinstance(item, (str, os.PathLike)) for item in value):
        raise TypeError(f"cpp_extension: {name} is a list of strings, got {value!r}")
    return [os.fspath(item) for item in value]


def digest(data):
    return hashlib.sha256(data).hexdigest()


class Build:
    """One extension to be compiled.

    Args:
        texts: {path: source}; a path without a folder is written into the build folder.
        folder: where the results go.
        with_cuda: use nvcc; None: if there are .cu files.
    """

    def __init__(
        self, name, texts, cflags=None, cuda_cflags=None, ldflags=None, include_paths=None, folder=None, with_cuda=None
    ):
        self.name, self.texts = name, texts
        if not texts:
            raise CompilerError("there are no sources")
        for path, text in texts.items():
            refuse_foreign_headers(path, text)
        self.compiler = find_compiler()
        cuda_files = [path for path in texts if path.endswith(".cu")]
        self.nvcc = find_nvcc() if (with_cuda if with_cuda is not None else cuda_files) else None
        if cuda_files and self.nvcc is None:
            raise CompilerError(
                f"{cuda_files[0]} needs CUDA's compiler nvcc, which is not found; set CUDA_HOME to where CUDA is "
                "installed, or leave the CUDA sources out"
            )
        folders = [f"-I{folder}" for folder in [header_folder(), *words("extra_include_paths", include_paths)]]
        self.cflags = [*CFLAGS, *folders, f"-DTORCH_EXTENSION_NAME={name}", *words("extra_cflags", cflags)]
        self.cuda_flags = [
            "-std=c++17",
            "-O2",
            "-Xcompiler",
            "-fPIC,-fvisibility=hidden",
            *folders,
            *words("extra_cuda_cflags", cuda_cflags),
        ]
        self.ldflags = words("extra_ldflags", ldflags)
        if self.nvcc:
            self.ldflags += [f"-L{os.path.join(os.path.dirname(os.path.dirname(self.nvcc)), 'lib64')}", "-lcudart"]
        self.folder = os.path.join(os.path.abspath(folder), self.key())

    def key(self):
        compilers = [
            subprocess.run([tool, "--version"], capture_output=True, text=True).stdout
            for tool in (self.compiler, self.nvcc)
            if tool
        ]
        described = [self.name, list(self.texts.items()), self.cflags, self.cuda_flags, self.ldflags, compilers]
        return digest(json.dumps(described).encode())[:24]

    def current(self):
        """The path of the library, if it is there and made from the files as they are now; None if not."""
        try:
            with open(os.path.join(self.folder, "inputs.json"), encoding="utf-8") as file:
                read = json.load(file)
            library = self.library(read)
            is_current = os.path.exists(library) and all(
                digest(contents(path)) == known for path, known in read.items()
            )
        except (OSError, ValueError, TypeError, AttributeError):
            return None
        return library if is_current else None

    def library(self, read):
        """The path of the library made from files with these hashes."""
        return os.path.join(self.folder, f"{self.name}-{digest(json.dumps(sorted(read.items())).encode())[:12]}.so")

    def run(self, verbose=False, keep_intermediates=True):
        """The path of the library, compiled if that is needed; see Note [When an extension is compiled]."""
        os.makedirs(self.folder, exist_ok=True)
        with open(os.path.join(self.folder, "lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return self.current() or self.compile(verbose, keep_intermediates)

    def compile(self, verbose, keep_intermediates):
        objects, read = [], {}
        for number, (path, text) in enumerate(self.texts.items()):
            if not os.path.dirname(path):
                path = os.path.join(self.folder, path)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            made, listed = (os.path.join(self.folder, f"{number}.{end}") for end in ("o", "d"))
            compiler, flags = (self.nvcc, self.cuda_flags) if path.endswith(".cu") else (self.compiler, self.cflags)
            self.command([compiler, *flags, "-MMD", "-MF", listed, "-c", path, "-o", made], verbose)
            objects.append(made)
            read |= {file: digest(contents(file)) for file in files_listed(listed)}
        library = self.library(read)
        self.command([self.compiler, "-shared", *objects, *self.ldflags, "-o", f"{library}.unfinished"], verbose)
        os.replace(f"{library}.unfinished", library)
        with open(os.path.join(self.folder, "inputs.json"), "w", encoding="utf-8") as file:
            json.dump(read, file)
        if not keep_intermediates:
            for file in objects:
                os.remove(file)
        return library

    def command(self, arguments, verbose):
        if verbose:
            print(" ".join(arguments), flush=True)
        done = subprocess.run(arguments, capture_output=True, text=True)
        if done.returncode != 0:
            raise CompilerError(
                f"{os.path.basename(arguments[0])} ended with status {done.returncode} and "
                f"said\n{done.stderr or done.stdout}"
            )
        if verbose and done.stderr:
            print(done.stderr, flush=True)


def contents(path):
    with open(path, "rb") as file:
        return file.read()


def files_listed(path):
    """The files that a compiler's dependency file (`target: file file \\`) names."""
    with open(path, encoding="utf-8") as file:
        text = file.read().partition(":")[2].replace("\\\n", " ")
    return [part.replace("\0", " ") for part in text.replace("\\ ", "\0").split()]
