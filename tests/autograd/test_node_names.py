"""What autograd calls the node of a result: PyTorch's name for the call, where operators, their overloads and functions
made of several operators are told apart.
"""

import pytest

import cresset
import cresset.nn.functional as F

X = cresset.tensor([0.5, 1.5])
Y = cresset.tensor([2.0, 3.0])

OVERLOADS = [
    (lambda x: x.fmod(2), "FmodBackward0"),
    (lambda x: x.fmod(Y), "FmodBackward1"),
    (lambda x: x**2.5, "PowBackward0"),
    (lambda x: x**Y, "PowBackward1"),
    (lambda x: 2**x, "PowBackward2"),
    (lambda x: (x * 1).pow_(Y), "PowBackward1"),
    (lambda x: x.clamp(0, 1), "ClampBackward1"),
    (lambda x: x.clamp(min=0), "ClampBackward1"),
    (lambda x: x.clamp(min=Y), "ClampBackward0"),
    (lambda x: x.lerp(Y, 0.5), "LerpBackward0"),
    (lambda x: x.lerp(Y, Y), "LerpBackward1"),
    (lambda x: 1 - x, "RsubBackward1"),
    (lambda x: x - 1, "SubBackward0"),
    (lambda x: 2 / x, "MulBackward0"),
    (lambda x: x.div(Y, rounding_mode="floor"), "DivBackward2"),
    (lambda x: x.div(Y, rounding_mode=None), "DivBackward2"),
    (lambda x: x.half().div(Y.half(), rounding_mode="trunc"), "DivBackward2"),
    (lambda x: x.sort().values, "SortBackward0"),
    (lambda x: x.sort(stable=True).values, "SortBackward1"),
    (lambda x: x @ Y, "DotBackward0"),
    (lambda x: x[None] @ Y, "MvBackward0"),
    (lambda x: x[None] @ Y[:, None], "MmBackward0"),
    (lambda x: x[None, None] @ Y[:, None], "UnsafeViewBackward0"),
    (lambda x: F.linear(x[None], cresset.ones(3, 2)), "MmBackward0"),
    (lambda x: F.linear(x[None], cresset.ones(3, 2), cresset.ones(3)), "AddmmBackward0"),
    (lambda x: F.linear(x[None, None], cresset.ones(3, 2), cresset.ones(3)), "ViewBackward0"),
]


@pytest.mark.parametrize(("call", "name"), OVERLOADS)
def test_node_has_the_name_of_its_overload(call, name):
    node = call(X.clone().requires_grad_()).grad_fn
    assert node.name() == type(node).__name__ == name


def test_error_about_a_changed_tensor_names_what_reads_it():
    x, w = cresset.ones(1, 2, 2, requires_grad=True) * 1, cresset.ones(2, 2, requires_grad=True)
    y = x @ w
    x.mul_(2)
    with pytest.raises(RuntimeError, match="that MatmulBackward0 needs"):
        y.sum().backward()
