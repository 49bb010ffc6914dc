"""docs/cresset_in_one_file.py runs, is right, and resembles the real thing."""

import ctypes
import importlib.util
import math
import shutil
import subprocess
from pathlib import Path

import pytest

PATH = Path(__file__).resolve().parents[2] / "docs" / "cresset_in_one_file.py"
spec = importlib.util.spec_from_file_location("cresset_in_one_file", PATH)
small = importlib.util.module_from_spec(spec)
spec.loader.exec_module(small)


def test_the_example_learns_exclusive_or(capsys):
    assert small.main() < 0.01
    assert "sigmoid(2.0) = 0.8807970779778823" in capsys.readouterr().out


def test_broadcasting_adds_a_row_to_every_row():
    x = small.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert (x + small.tensor([10.0, 20.0])).tolist() == [[11.0, 22.0], [13.0, 24.0]]


def test_a_transposed_tensor_shares_its_storage():
    x = small.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert x.T.storage is x.storage
    assert x.T.tolist() == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]


def test_the_gradient_of_a_broadcast_input_has_its_shape():
    x = small.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    b = small.tensor([5.0, 6.0], requires_grad=True)
    (x * b).sum().backward()
    assert x.grad.tolist() == [[5.0, 6.0], [5.0, 6.0]]
    assert b.grad.tolist() == [4.0, 6.0]


def test_backward_twice_adds_up_in_grad():
    x = small.tensor([1.0, 1.0], requires_grad=True)
    (2 * x).sum().backward()
    (3 * x).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


@pytest.mark.parametrize("op, inputs", [
    (small.add, (2.0, 3.0)), (small.mul, (2.0, 3.0)), (small.div, (2.0, 3.0)), (small.neg, (2.0,)),
    (small.exp, (0.5,)), (small.sigmoid, (0.5,)),
], ids=lambda v: getattr(v, "name", None))  # fmt: skip
def test_every_derivative_agrees_with_finite_differences(op, inputs):
    tensors = [small.tensor(v, requires_grad=True) for v in inputs]
    op(*tensors).backward()
    for i, t in enumerate(tensors):
        above, below = ([v + h * (i == j) for j, v in enumerate(inputs)] for h in (1e-6, -1e-6))
        assert t.grad.tolist() == pytest.approx((op(*above) - op(*below)) / 2e-6, rel=1e-6)


def test_matmul_gradients_are_the_transposed_products():
    a = small.tensor([[1.0, 2.0]], requires_grad=True)
    b = small.tensor([[3.0], [4.0]], requires_grad=True)
    (a @ b).sum().backward()
    assert a.grad.tolist() == [[3.0, 4.0]]
    assert b.grad.tolist() == [[1.0], [2.0]]


def test_the_second_derivative_needs_no_rule():
    x = small.tensor(2.0, requires_grad=True)
    small.run_backward(x * x * x, small.tensor(1.0), create_graph=True)
    slope, x.grad = x.grad, None
    assert slope.tolist() == 12.0
    slope.backward()
    assert x.grad.tolist() == 12.0


def test_what_is_used_twice_is_computed_once_in_c():
    x = small.Expression("x")
    text = small.print_c("f", ["x"], small.exp(x) * small.exp(x))
    assert text.count("exp(") == 1


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_compiled_code_gives_the_bits_that_eager_gives(tmp_path):
    source, library = tmp_path / "k.c", tmp_path / "k.so"
    source.write_text("#include <math.h>\n" + "\n".join(small.kernels(small.sigmoid)))
    subprocess.run(["cc", "-O2", "-ffp-contract=off", "-shared", "-fPIC", source, "-o", library, "-lm"], check=True)
    compiled = ctypes.CDLL(str(library))
    values = [-3.0, -0.1, 0.0, 0.7, 20.0]
    array = ctypes.c_double * len(values)
    x, ones, forward, backward = array(*values), array(*[1.0] * len(values)), array(), array()
    compiled.sigmoid(x, forward, ctypes.c_long(len(values)))
    compiled.sigmoid_backward_x(ones, x, backward, ctypes.c_long(len(values)))
    t = small.tensor(values, requires_grad=True)
    y = small.sigmoid(t)
    y.sum().backward()
    assert list(forward) == y.tolist() == [1 / (1 + math.exp(-v)) for v in values]
    assert list(backward) == t.grad.tolist()
