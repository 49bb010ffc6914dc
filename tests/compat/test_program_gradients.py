"""What random programs (fuzz/programs.py) once found about gradients, hooks and strides, each as short as it can be:
the same on both libraries, step by step. test_program_findings.py has the others.
"""

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).with_name("fuzz")))
from found import assert_runs_as_in_pytorch  # noqa: E402

PROGRAMS = {
    "one number, or none, is its own sum, also as a bool": [
        "v0 = t.tensor([True, False])",
        "v0.select(-1, 0).cumsum_(0)",
        "v0[1].cumprod_(-1)",
        "v1 = t.zeros((2, 0), dtype=t.bool).cumsum_(1)",
        "v2 = t.cumsum(t.tensor(0.5), 0, dtype=t.bool)",
        "v0.cumsum_(0)",
        "v3 = t.cumprod(v0, 0, dtype=t.bool)",
    ],
    "elements that overlap are refused before the sizes of what is copied to them": [
        "v0 = t.zeros((4, 3)).expand((2, 4, 3))",
        "v0.index_copy_(-1, t.tensor(0), v0)",
        "v1 = t.index_copy(v0, 0, t.tensor([1]), t.ones((1, 4, 3)))",
    ],
    "complex numbers lie as their parts": [
        "v0 = values((2, 3, 2, 4), 'float32', 3).permute(2, 0, 3, 1)",
        "v1 = t.complex(v0, v0)",
        "v2 = t.complex(v0, v0.contiguous())",
        "v3 = t.polar(v0, t.ones(()).expand(3))",
        "v4 = t.complex(v0[..., ::2], v0[..., :1])",
        "t.complex(v0, v0 * 2, out=v1)",
        "t.polar(v0, v0 * 2, out=v1[:1])",
        "v5 = t.complex(t.ones(3).expand(2, 3), t.ones(2, 1))",
        "v6 = t.complex(v0.double()[:, :, :, :0], v0.double()[..., :0])",
    ],
    "a leaf that gets another dtype is another one to what was recorded": [
        "v0 = t.ones(2, dtype=t.float64).requires_grad_()",
        "v1 = v0 * 2",
        "v0.data = t.ones(2)",
        "v2 = t.autograd.grad(v1.sum(), v0)[0]",
        "v3 = t.autograd.grad((v1 * v0).sum(), v0)[0]",
        "v4 = v0 * 3",
        "v0.data = t.zeros(2)",
        "v5 = t.autograd.grad(v4.sum(), v0)[0]",
    ],
    "the order of the dimensions of images that lie in both orders": [
        f"say([t.empty_strided({sizes}, x).dim_order() for x in ({strides}, {other})])"
        for sizes, strides, other in (
            ((0, 1, 1, 1), (1, 1, 1, 1), (1, 0, 0, 0)),
            ((1, 2, 1, 1), (2, 1, 2, 2), (2, 1, 1, 1)),
            ((1, 1, 0, 1, 1), (1, 1, 1, 1, 1), (1, 1, 2, 1, 1)),
            ((2, 3, 1, 1), (3, 1, 3, 3), (3, 1, 1, 1)),
            ((1, 3, 2, 1, 1), (6, 1, 3, 1, 6), (6, 1, 3, 3, 3)),
        )
    ],
    "a quantile is the squeezed result of what picks it": [
        "v0 = values((2, 3, 4), 'float64', 5).requires_grad_()",
        *(
            line
            for call in (
                "t.quantile(v0, 0.25, -1)",
                "t.quantile(v0, 0.5)",
                "t.nanquantile(v0, 0.5, 1, keepdim=True)",
                "t.quantile(v0, t.tensor([0.25, 0.5], dtype=t.float64), 0)",
                "t.quantile(v0[0, 0], 0.25)",
                "t.quantile(v0, 0.25, 0, interpolation='lower')",
            )
            for line in (
                f"v1 = {call}",
                "v1.grad_fn.register_hook(node_hook('h1', 'say'))",
                "say([node.name() for node, _ in v1.grad_fn.next_functions])",
                "v1.abs().sum().backward()",
            )
        ),
    ],
    "complex vectors of another shape are not normalized": [
        "v0 = values((2, 3), 'complex64', 3)",
        *(f"v1 = F.rms_norm(v0, {rest})" for rest in ("(3,)", "(2, 3)", "(4,)", "(1, 2, 3)", "()", "(3,), t.ones(1)")),
        "v2 = F.rms_norm(v0[0, :1], (4,))",
        "v3 = F.rms_norm(v0, (3,), values((3,), 'complex64', 5))",
    ],
    "the absolute difference keeps neither of its operands": [
        "with t.inference_mode(): v0 = t.arange(4.0)",
        "v1 = t.ones(4).requires_grad_()",
        *(
            line
            for call in ("F.l1_loss(v0, v1)", "F.l1_loss(v1, v0, reduction='none')", "F.mse_loss(v0, v1)")
            for line in (f"v2 = {call}", "v2.sum().backward()")
        ),
    ],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_runs_as_in_pytorch(name):
    assert_runs_as_in_pytorch(PROGRAMS[name])
