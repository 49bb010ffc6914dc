"""The one-way order between the layers, held by reading `#include`s and imports.

A file may use its own floor and the floors below. The tables NATIVE and PYTHON are the order, the rest reads.
A floor is crossed upward only inside a function and only with its reason beside it: `import ...  # upward: why`.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# The floors, lowest first. The folders of native/:
NATIVE = [["base"], ["tensor"], ["dispatch"], ["autograd"], ["ops"], ["cuda"], ["distributed"], ["bindings"]]

# The modules and packages of cresset/ ("" is the package itself, which shows everything to the user). A module inside a
# package may have a floor of its own: "show.summary".
PYTHON = [
    ["_native", "version", "show", "types", "torch_version", "__config__", "__future__", "pytree"],
    [
        "ops", "autograd", "linalg", "fft", "special", "func", "functional", "random", "cuda", "cpu", "xpu", "mps",
        "mtia", "devices", "backends",
        "accelerator", "profiler", "library", "_library", "overrides", "return_types", "storage", "sparse", "nested",
        "masked",
        "signal", "futures", "tensors", "_utils", "quasirandom", "_prims", "_prims_common", "_custom_op", "_custom_ops",
        "_tensor",
        "_tensor_str", "_ops", "_classes", "_VF", "_vmap_internals",
    ],
    ["nn", "amp"],
    ["optim", "data", "show.summary", "show.drawing", "serialization", "safetensors", "distributions", "testing",
        "utils", "multiprocessing", "hub", "monitor"],
    ["graph", "dispatch", "_subclasses"],
    ["compiler", "fx", "jit", "_jit_internal", "_dynamo", "_inductor", "_functorch", "_higher_order_ops", "_guards",
        "_logging", "_C"],
    ["export", "_export", "_inductor.package", "onnx", "distributed", "ao", "quantization", "package"],
    ["train", "debug", "serve", "vision", "text", "metrics", "standing_in", "cli"],
    ["", "__main__"],
]  # fmt: skip

# Headers of other projects that one folder alone may include.
FOREIGN_HEADERS = {
    "bindings": re.compile(r"Python\.h|structmember\.h|frameobject\.h|nanobind/|pybind11/|numpy/"),
    "cuda": re.compile(r"(cuda|cublas|cudnn|cusolver|cusparse|cufft|curand|nvrtc|nccl)\w*\.h(pp)?$|nvtx3/"),
}

UPWARD = re.compile(r"#\s*upward:\s*\S")


def floors(table):
    return {name: level for level, names in enumerate(table) for name in names}


def part_of(dotted, level):
    """The part of the package with a floor of its own that a dotted name belongs to: its module, or else the package
    around it.
    """
    inner = ".".join(dotted.split(".")[:2])
    return inner if inner in level else dotted.split(".")[0]


def check_native(folder):
    """The lines under `folder` that break the order, as messages."""
    level, found = floors(NATIVE), []
    for file in sorted(p for p in folder.rglob("*") if p.suffix in {".h", ".hpp", ".cpp", ".cc", ".cu", ".cuh"}):
        here, *rest = file.relative_to(folder).parts
        if not rest or here not in level:
            found.append(f"{file}: not in a folder with a floor; NATIVE in {Path(__file__).name} has {sorted(level)}")
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if not (match := re.match(r'\s*#\s*include\s*[<"]([^">]+)[">]', line)):
                continue
            header, place = match[1], f"{file}:{number}"
            beside = (file.parent / header).resolve()
            inside = (
                beside.relative_to(folder.resolve())
                if beside.is_file() and beside.is_relative_to(folder.resolve())
                else Path(header)
            )
            there = inside.parts[0] if len(inside.parts) > 1 else here
            if there in level and level[there] > level[here]:
                found.append(f"{place}: {here}/ includes {header}, but {there}/ stands above it")
            for owner, foreign in FOREIGN_HEADERS.items():
                if here != owner and foreign.match(header) and not beside.is_file():
                    found.append(f"{place}: {here}/ includes {header}; only {owner}/ may")
    return found


class Uses(ast.NodeVisitor):
    """Collects (line, part, inside a function) for each part of cresset that a module imports or reaches."""

    def __init__(self, package, parts):
        self.package, self.parts, self.found, self.depth = package, parts, [], 0
        self.names_of_root = set()

    def use(self, node, dotted):
        root, _, rest = dotted.partition(".")
        if root == "cresset" and rest:
            self.found.append((node, rest, self.depth > 0))

    def visit_Import(self, node):
        for alias in node.names:
            self.use(node, alias.name)
            if alias.name == "cresset" or (alias.name.startswith("cresset.") and not alias.asname):
                self.names_of_root.add(alias.asname or "cresset")

    def visit_ImportFrom(self, node):
        base = self.package[: len(self.package) - node.level + 1] if node.level else []
        origin = ".".join([*base, *([node.module] if node.module else [])])
        if (
            origin == "cresset"
        ):  # `from cresset import nn` uses nn; `from cresset import Tensor` uses only what the root shows
            for alias in node.names:
                if alias.name in self.parts:
                    self.use(node, f"cresset.{alias.name}")
        else:
            self.use(node, origin)

    def visit_Attribute(self, node):
        if isinstance(node.value, ast.Name) and node.value.id in self.names_of_root and node.attr in self.parts:
            self.use(node, f"cresset.{node.attr}")
        self.generic_visit(node)

    def visit_FunctionDef(self, node):
        for outside in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(outside)
        self.depth += 1
        for statement in node.body:
            self.visit(statement)
        self.depth -= 1

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_If(self, node):
        if "TYPE_CHECKING" not in ast.unparse(node.test):  # such imports are for type checkers and never run
            self.generic_visit(node)


def check_python(folder):
    """The lines of the package in `folder` that break the order, as messages."""
    level, found = floors(PYTHON), []
    parts = {
        p.stem if p.is_file() else p.name for p in folder.iterdir() if p.suffix == ".py" or any(p.glob("*.py"))
    } - {"__init__"}
    for part in sorted(parts - set(level)):
        found.append(f"{folder / part}: has no floor; give it one in PYTHON in {Path(__file__).name}")
    for file in sorted(folder.rglob("*.py")):
        inside = file.relative_to(folder)
        here = part_of(".".join(inside.with_suffix("").parts), level) if inside.parts != ("__init__.py",) else ""
        if here not in level:
            continue
        text = file.read_text()
        lines = text.splitlines()
        uses = Uses(["cresset", *inside.parent.parts], parts)
        uses.visit(ast.parse(text, str(file)))
        for node, used, in_function in uses.found:
            there = part_of(used, level)
            if there not in level or level[there] <= level[here]:
                continue
            written = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            marked = UPWARD.search(written)
            if not (marked and in_function):
                hint = (
                    "a marked import must stand inside a function"
                    if marked
                    else "if it must, import inside a function with `# upward: why`"
                )
                found.append(f"{file}:{node.lineno}: {here} uses cresset.{there}, which stands above it; {hint}")
    return found


def test_native_includes_go_one_way():
    problems = check_native(ROOT / "native")
    assert not problems, "\n" + "\n".join(problems)


def test_python_imports_go_one_way():
    problems = check_python(ROOT / "src" / "cresset")
    assert not problems, "\n" + "\n".join(problems)


@pytest.fixture
def tree(tmp_path):
    """Writes made-up source files and gives their folder."""

    def write(files):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return tmp_path

    return write


@pytest.mark.parametrize(
    "file, text, problem",
    [
        ("base/error.h", '#include "tensor/tensor.h"', "base/ includes tensor/tensor.h, but tensor/ stands above it"),
        ("tensor/view.cpp", '#include "../autograd/node.h"', "autograd/ stands above it"),
        ("ops/matmul.cpp", "#  include <cuda_runtime.h>", "ops/ includes cuda_runtime.h; only cuda/ may"),
        ("autograd/node.cpp", "#include <Python.h>", "only bindings/ may"),
        ("dispatch/call.cpp", "#include <nanobind/nanobind.h>", "only bindings/ may"),
        ("ops/sort.cpp", "#include <cublasLt.h>", "only cuda/ may"),
        ("helpers/things.h", "", "not in a folder with a floor"),
    ],
)
def test_a_bad_include_is_found(tree, file, text, problem):
    folder = tree({"tensor/tensor.h": "", "autograd/node.h": "", file: text})
    (found,) = check_native(folder)
    assert problem in found and file in found


def test_a_good_include_is_left_alone(tree):
    tree(
        {
            "base/error.h": "#include <vector>",
            "base/cpu.h": '#include "error.h"',
            "ops/cumsum.cpp": '#include "base/error.h"',
        }
    )
    tree({"ops/custom.cpp": "#include <cstdint>\n#include <cmath>", "cuda/driver.h": "#include <cuda.h>"})
    tree(
        {
            "bindings/a.cpp": '#include <Python.h>\n#include "cuda/driver.h"',
            "ops/b.cpp": '#include "base/cpu.h"',
        }
    )
    assert check_native(tree({})) == []


BAD_IMPORTS = [
    ("ops/shape.py", "from ..nn import functional", "ops uses cresset.nn, which stands above it"),
    ("ops/shape.py", "from .. import nn", "ops uses cresset.nn"),
    ("ops/shape.py", "import cresset.optim as o", "ops uses cresset.optim"),
    ("ops/shape.py", "import cresset\nf = lambda x: cresset.nn.Linear", "ops uses cresset.nn"),
    ("ops/shape.py", "import cresset as torch\ndef f(): return torch.nn", "ops uses cresset.nn"),
    ("ops/pointwise/exp.py", "from ...compiler import trace", "ops uses cresset.compiler"),
    ("nn/linear.py", "def f():\n    from cresset import optim", "nn uses cresset.optim"),
    ("nn/linear.py", "from ..optim import SGD  # upward: handy", "must stand inside a function"),
    ("nn/linear.py", "def f():\n    from ..optim import SGD  # upward:", "nn uses cresset.optim"),
    ("optim/sgd.py", "from cresset.train import Trainer", "optim uses cresset.train"),
    ("shelf.py", "", "has no floor"),
]
PACKAGE = {f"{part}/__init__.py": "" for part in ("ops", "nn", "optim", "compiler", "train")} | {
    "__init__.py": "from . import nn, train"
}


@pytest.mark.parametrize("file, text, problem", BAD_IMPORTS)
def test_a_bad_import_is_found(tree, file, text, problem):
    (found,) = check_python(tree({**PACKAGE, file: text}))
    assert problem in found


@pytest.mark.parametrize(
    "text",
    [
        "import cresset\nfrom cresset import Tensor, _native\nfrom . import ops\nx = cresset.ones",
        "from ..ops import add\nfrom cresset.ops import mul",
        "def f():\n    from ..optim import SGD  # upward: the default of a method, looked up when it is called",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..optim import SGD",
        "import numpy\nfrom torch import optim",
    ],
)
def test_a_good_import_is_left_alone(tree, text):
    assert check_python(tree({**PACKAGE, "nn/linear.py": text})) == []
