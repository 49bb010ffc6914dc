"""A name that is not there raises AttributeError with the nearest one that is."""

import subprocess
import sys

import pytest

import cresset


@pytest.mark.parametrize(
    "module, name, nearest",
    [
        (lambda: cresset, "zeross", "zeros"),
        (lambda: cresset.linalg, "choleski", "cholesky"),
        (lambda: cresset.nn, "Linaer", "Linear"),
        (lambda: cresset.nn.functional, "soft_max", "softmax"),
        (lambda: cresset.nn.init, "xavier_unform_", "xavier_uniform_"),
        (lambda: cresset.optim, "Adm", "Adam"),
        (lambda: cresset.fft, "rftt", "rfft"),
        (lambda: cresset.special, "erff", "erf"),
        (lambda: cresset.autograd, "gradd", "grad"),
        (lambda: cresset.distributions, "Normel", "Normal"),
    ],
)
def test_the_nearest_name_is_named(module, name, nearest):
    module = module()
    assert not hasattr(module, name)
    with pytest.raises(AttributeError) as caught:
        getattr(module, name)
    assert type(caught.value).__name__ == "AttributeError"
    assert str(caught.value) == f"module '{module.__name__}' has no attribute '{name}'; did you mean '{nearest}'?"


@pytest.mark.parametrize("name", ["qqqqqqqq", "jiz", "conv7d", "shapely"])
def test_a_name_that_is_no_slip_of_another_is_not_in_cresset(name):
    with pytest.raises(
        AttributeError, match=f"module 'cresset' has no attribute '{name}': it is not in cresset; docs/compatibility.md"
    ):
        getattr(cresset, name)


def test_python_names_the_nearest_method_of_a_tensor():
    program = "import cresset; cresset.ones(1).softmx(0)"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stderr
    assert "AttributeError: 'Tensor' object has no attribute 'softmx'. Did you mean: 'softmax'?" in said
