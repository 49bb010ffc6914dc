"""torch.utils.cpp_extension: operators compiled against <cresset/extension.h>. Skipped where there is no C++
compiler."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import cresset as torch
from cresset.utils import cpp_extension

pytestmark = pytest.mark.skipif(shutil.which(os.environ.get("CXX", "g++")) is None, reason="needs a C++ compiler")

SCALED = """
#include <cresset/extension.h>
using namespace cresset;

static const Register scaled = Operator("scaled(Tensor x, float by) -> Tensor")
    .shape([](const Arguments& a) { return Shapes{like(a.tensor(0))}; })
    .cpu([](const Arguments& a, Results& out) {
      const Tensor& x = a.tensor(0);
      check(x.is_contiguous(), "scaled: x must be contiguous");
      for (int64_t i = 0; i < x.numel(); ++i) out[0].as<float>()[i] = x.as<float>()[i] * static_cast<float>(a.number(1));
    });
"""  # noqa: E501


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "extensions"))


@pytest.fixture
def source(tmp_path):
    def write(text, name="source.cpp"):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


def test_an_operator_is_compiled_and_called(source):
    module = cpp_extension.load("ext_scaled", [source(SCALED)])
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(module.scaled(x, 2.0), 2 * x) and torch.equal(torch.ops.ext_scaled.scaled(x, by=3.0), 3 * x)
    assert module.__all__ == ["scaled"]


def test_the_shape_rule_alone_runs_on_meta_tensors(source):
    module = cpp_extension.load("ext_meta", source(SCALED))
    made = module.scaled(torch.empty(4, 5, device="meta"), 2.0)
    assert made.shape == (4, 5) and made.device.type == "meta"


def test_the_derivative_is_written_in_python(source):
    module = cpp_extension.load("ext_grad", source(SCALED))

    def setup_context(ctx, inputs, output):
        ctx.by = inputs[1]

    torch.library.register_autograd(
        "ext_grad::scaled",
        lambda ctx, grad: (module.scaled(grad.contiguous(), ctx.by), None),
        setup_context=setup_context,
    )
    x = torch.ones(3, requires_grad=True)
    module.scaled(x, 4.0).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0, 4.0]


def test_what_a_kernel_throws_is_a_runtime_error_with_its_words(source):
    module = cpp_extension.load("ext_throws", source(SCALED))
    with pytest.raises(RuntimeError, match="ext_throws::scaled: scaled: x must be contiguous"):
        module.scaled(torch.ones(2, 3).t(), 1.0)
    with pytest.raises(RuntimeError, match="expected another dtype than number 7"):
        module.scaled(torch.ones(2, dtype=torch.float64), 1.0)
    with pytest.raises(NotImplementedError, match="there is no cpu impl"):
        torch.ops.ext_throws.scaled.default._kernels.pop("cpu")
        module.scaled(torch.ones(2), 1.0)


def test_every_kind_of_argument_and_several_results():
    module = cpp_extension.load_inline(
        "ext_kinds",
        """
        using namespace cresset;
        static const Register all = Operator("all(Tensor x, Tensor? y, Tensor[] z, int i, float f, bool b, str s, int[] li, float[] lf) -> (Tensor, Tensor)")
            .shape([](const Arguments& a) { return Shapes{{{7}, DType::float64}, {{(int64_t)a.tensors(2).size()}, DType::int64}}; })
            .cpu([](const Arguments& a, Results& out) {
              double* d = out[0].as<double>();
              d[0] = a.has(1); d[1] = (double)a.integer(3); d[2] = a.number(4); d[3] = a.flag(5); d[4] = (double)a.text(6).size();
              d[5] = (double)a.integers(7)[1]; d[6] = a.numbers(8)[0];
              for (int k = 0; k < (int)a.tensors(2).size(); ++k) out[1].as<int64_t>()[k] = a.tensors(2)[(size_t)k].numel();
            });
        static const Register add_one = Operator("add_one_(Tensor(a!) x) -> ()")
            .cpu([](const Arguments& a, Results&) { for (int64_t i = 0; i < a.tensor(0).numel(); ++i) a.tensor(0).as<int32_t>()[i] += 1; });
        """,  # noqa: E501
        functions=["all", "add_one_"],
    )
    first, second = module.all(
        torch.ones(1), None, [torch.ones(2), torch.ones(3, 4)], 7, 0.5, True, "hello", [1, 2], [2.5]
    )
    assert first.tolist() == [0.0, 7.0, 0.5, 1.0, 5.0, 2.0, 2.5] and second.tolist() == [2, 12]
    x = torch.zeros(3, dtype=torch.int32)
    version = x._version
    module.add_one_(x)
    assert x.tolist() == [1, 1, 1] and x._version > version


def test_strides_and_empty_and_0d_tensors_are_seen_as_they_are():
    module = cpp_extension.load_inline(
        "ext_strides",
        """
        using namespace cresset;
        static const Register total = Operator("total(Tensor x) -> Tensor")
            .shape([](const Arguments&) { return Shapes{{{}, DType::float32}}; })
            .cpu([](const Arguments& a, Results& out) {
              const Tensor& x = a.tensor(0);
              float sum = 0;
              if (x.dim == 2)
                for (int64_t i = 0; i < x.size(0); ++i)
                  for (int64_t j = 0; j < x.size(-1); ++j) sum = sum * 10 + x.as<float>()[i * x.stride(0) + j * x.stride(1)];
              else for (int64_t i = 0; i < x.numel(); ++i) sum += x.as<float>()[i];
              out[0].as<float>()[0] = sum;
            });
        """,  # noqa: E501
    )
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert module.total(x).item() == 1234.0 and module.total(x.t()).item() == 1324.0
    assert module.total(torch.tensor(5.0)).item() == 5.0 and module.total(torch.ones(0)).item() == 0.0


def test_a_mistake_in_the_source_shows_the_compilers_message(source):
    with pytest.raises(
        RuntimeError, match=r"Error building extension 'ext_mistake'[\s\S]*mistake\.cpp:1[\s\S]*nonsense"
    ):
        cpp_extension.load("ext_mistake", source("int f() { return nonsense; }", "mistake.cpp"))


@pytest.mark.parametrize("header", ["torch/extension.h", "ATen/ATen.h", "c10/core/ScalarType.h", "pybind11/pybind11.h"])
def test_pytorchs_headers_are_refused_with_what_is_offered_instead(source, header):
    with pytest.raises(
        RuntimeError, match=rf"foreign\.cpp:2 includes {re.escape(header)}.*<cresset/extension.h>.*docs/extensions.md"
    ):
        cpp_extension.load("ext_foreign", source(f"// a comment\n#include <{header}>\n", "foreign.cpp"))


def commands(capsys):
    return [line for line in capsys.readouterr().out.splitlines() if " -c " in line]


def test_it_is_compiled_once_and_again_when_something_changed(source, tmp_path, capsys):
    header = tmp_path / "factor.h"
    header.write_text("#define FACTOR 2\n")
    path = source(
        SCALED.replace("static_cast<float>(a.number(1))", "FACTOR").replace("using", '#include "factor.h"\nusing', 1)
    )
    counts, values = [], []
    for change in (lambda: None, lambda: None, lambda: header.write_text("#define FACTOR 3\n"), lambda: None):
        change()
        values.append(cpp_extension.load("ext_cached", path, verbose=True).scaled(torch.ones(1), 0.0).item())
        counts.append(len(commands(capsys)))
    assert counts == [1, 0, 1, 0] and values == [2.0, 2.0, 3.0, 3.0]
    cpp_extension.load("ext_cached", path, extra_cflags=["-DOTHER"], verbose=True, is_python_module=False)
    assert len(commands(capsys)) == 1


def test_a_broken_library_in_the_cache_is_not_believed(source):
    path = cpp_extension.load("ext_half", source(SCALED), is_python_module=False)
    os.remove(os.path.join(os.path.dirname(path), "inputs.json"))
    Path(path).unlink()  # this process uses the old one until its end
    Path(path).write_bytes(b"half")
    assert (
        cpp_extension.load("ext_half", source(SCALED), is_python_module=False) == path
        and Path(path).stat().st_size > 1000
    )


def test_processes_that_load_the_same_extension_compile_it_once(source, tmp_path):
    program = (
        "import sys, cresset as torch\nfrom cresset.utils import cpp_extension\n"
        "m = cpp_extension.load('ext_shared', sys.argv[1], verbose=True)\nprint('value', m.scaled(torch.ones(1), "
        "5.0).item())"
    )
    folder = Path(torch.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    path, outputs = source(SCALED), []

    def run():
        outputs.append(
            subprocess.run(
                [sys.executable, "-c", program, path], capture_output=True, text=True, env=environment, timeout=100
            )
        )

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all("value 5.0" in done.stdout for done in outputs), [done.stderr for done in outputs]
    assert sum(" -c " in done.stdout for done in outputs) == 1


def test_names_and_arguments_never_reach_a_shell(source, tmp_path):
    for name in ("a; touch pwned", "../up", "", "a b", 3):
        with pytest.raises(ValueError, match="Python name"):
            cpp_extension.load(name, source(SCALED))
    odd = source(SCALED, "with space; touch pwned.cpp")
    assert (
        cpp_extension.load("ext_odd", odd, extra_cflags=["-DX=$(touch pwned)"]).scaled(torch.ones(1), 2.0).item() == 2.0
    )
    assert not list(tmp_path.rglob("pwned")) and not os.path.exists("pwned")
    with pytest.raises(TypeError, match="extra_cflags is a list of strings"):
        cpp_extension.load("ext_flags", source(SCALED), extra_cflags="-O3")


def test_functions_that_the_source_does_not_register_are_named():
    with pytest.raises(RuntimeError, match="registers no operator 'other'; it registers \\['scaled'\\]"):
        cpp_extension.load_inline("ext_named", SCALED, functions=["other"])


def test_an_operator_with_results_needs_a_shape_rule():
    with pytest.raises(RuntimeError, match="no shape rule; add .shape"):
        cpp_extension.load_inline(
            "ext_shapeless",
            (
                'static const cresset::Register f = cresset::Operator("f(Tensor x) -> Tensor").cpu([](const '
                "cresset::Arguments&, cresset::Results&) {});"
            ),
        )


def test_a_shape_rule_that_gives_nonsense_is_an_error():
    module = cpp_extension.load_inline(
        "ext_nonsense",
        """
        using namespace cresset;
        static const Register f = Operator("f(Tensor x) -> Tensor").shape([](const Arguments&) { return Shapes{{{-3}, DType::float32}}; }).cpu([](const Arguments&, Results&) {});
        static const Register g = Operator("g(Tensor x) -> Tensor").shape([](const Arguments&) { return Shapes{}; }).cpu([](const Arguments&, Results&) {});
        """,  # noqa: E501
    )
    with pytest.raises(RuntimeError, match=r"ext_nonsense::f: the shape rule gives sizes \[-3\]"):
        module.f(torch.ones(1))
    with pytest.raises(RuntimeError, match="gives 0 shapes, the schema has 1 results"):
        module.g(torch.ones(1))


def test_cuda_sources_need_nvcc(source, monkeypatch):
    monkeypatch.setattr(cpp_extension.building, "find_nvcc", lambda: None)
    with pytest.raises(RuntimeError, match="kernel.cu needs CUDA's compiler nvcc, which is not found; set CUDA_HOME"):
        cpp_extension.load("ext_cuda", [source(SCALED), source("", "kernel.cu")])


def test_a_library_is_opened_by_load_library_and_others_are_not(source):
    path = cpp_extension.load("ext_library", source(SCALED), is_python_module=False)
    torch.ops.load_library(path)
    assert torch.ops.ext_library.scaled(torch.ones(1), 2.0).item() == 2.0
    with pytest.raises(OSError, match="compiled for PyTorch"):
        torch.ops.load_library(source("no library", "other.so"))


def test_setuptools_builds_a_module_that_python_imports(tmp_path):
    pytest.importorskip("setuptools")
    (tmp_path / "scaled.cpp").write_text(SCALED)
    (tmp_path / "setup.py").write_text(
        textwrap.dedent(
            """
            from setuptools import setup
            from cresset.utils.cpp_extension import BuildExtension, CppExtension
            setup(name="scaled_ext", ext_modules=[CppExtension("scaled_ext", ["scaled.cpp"])], cmdclass={"build_ext": BuildExtension.with_options(use_ninja=False)})
            """  # noqa: E501
        )
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(torch.__file__).parents[1]), str(tmp_path)]),
        "OMP_NUM_THREADS": "1",
    }
    built = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        timeout=200,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    program = (
        "import scaled_ext, cresset as torch; print(scaled_ext.scaled(torch.ones(2), 3.0), "
        "torch.ops.scaled_ext.scaled(torch.ones(1), 2.0), scaled_ext.__all__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=100
    )
    assert done.stdout == "tensor([3., 3.]) tensor([2.]) ['scaled']\n", done.stderr


def test_the_header_compiles_without_a_warning(tmp_path, source):
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wpedantic", f"-I{cpp_extension.include_paths()[0]}"]
    subprocess.run([shutil.which("g++"), *flags, "-fsyntax-only", source(SCALED)], check=True)


def test_the_example_of_the_page_runs(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "extensions.md").read_text()
    (code,) = re.findall(r"```cpp\n(.*?)```", page, re.DOTALL)
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "softclip.cpp").write_text(code)
    (tmp_path / "program.py").write_text(
        program.replace("import torch", "import cresset as torch").replace("from torch", "from cresset")
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(torch.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "program.py"], capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=100
    )
    (printed,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert done.stdout == printed, done.stderr


def test_what_is_for_phones_is_refused_in_words():
    from cresset.utils import mobile_optimizer

    with pytest.raises(NotImplementedError, match="optimize_for_mobile\\(Linear\\).*torch.onnx.export"):
        mobile_optimizer.optimize_for_mobile(torch.nn.Linear(1, 1))
    model = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Dropout(), torch.nn.BatchNorm1d(1))
    names = [lint["name"] for lint in mobile_optimizer.generate_mobile_module_lints(model)]
    assert names == ["REQUIRES_GRAD"] * 4 + ["DROPOUT", "BATCHNORM"]
    assert mobile_optimizer.generate_mobile_module_lints(model.eval().requires_grad_(False)) == []


def test_a_command_is_asked_whether_it_is_a_compiler():
    assert cpp_extension.check_compiler_ok_for_platform("c++")
    assert not cpp_extension.check_compiler_ok_for_platform("true")
