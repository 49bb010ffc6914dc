"""multi_margin_loss and its gradients, on every device."""

import pytest

import cresset
import cresset.nn.functional as F
from cresset.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.kernels

TOLERANCE = {"float32": 1e-5, "float64": 1e-12, "bfloat16": 2e-2}


def by_definition(x, target, p, margin, weight):
    """The sum over the other classes, in operators."""
    place = target.unsqueeze(1)
    gap = margin - x.gather(1, place) + x
    gap = cresset.where(gap > 0, gap, cresset.zeros_like(gap)) ** p
    loss = gap.scatter(1, place, 0.0).sum(1) / x.size(1)
    return loss if weight is None else loss * weight[target]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", [(5, 3), (4, 1), (3, 70), (2, 1003), (300, 8)])
@pytest.mark.parametrize("p", [1, 2])
def test_it_is_its_definition_with_its_gradient(p, shape, dtype):
    dtype = getattr(cresset, dtype)
    x = cresset.randn(shape).to(dtype)
    target = cresset.randint(shape[1], shape[:1])
    for weight in (None, cresset.linspace(0.5, 2, shape[1]).to(dtype)):
        for margin in (1.0, 0.25):
            got, expected = x.clone().requires_grad_(), x.double().clone().requires_grad_()
            wide = None if weight is None else weight.double()
            loss = F.multi_margin_loss(got, target, p, margin, weight, reduction="none")
            reference = by_definition(expected, target, p, margin, wide)
            grad = cresset.linspace(-1, 1, len(loss))
            loss.backward(grad.to(dtype))
            reference.backward(grad.double())
            tolerance = TOLERANCE[str(dtype).split(".")[-1]]
            for g, e in ((loss, reference), (got.grad, expected.grad)):
                assert g.dtype == dtype
                cresset.testing.assert_close(g.double(), e, rtol=tolerance, atol=tolerance)


def test_reductions_and_a_single_sample():
    x, target = cresset.tensor([[1.0, 0.5, 3.0], [0.0, 0.0, 0.0]]), cresset.tensor([0, 1])
    assert F.multi_margin_loss(x[0], target[0]).item() == pytest.approx(3.5 / 3)
    assert F.multi_margin_loss(x, target, reduction="sum").item() == pytest.approx(5.5 / 3)
    assert F.multi_margin_loss(x, target).item() == pytest.approx(5.5 / 6)
    assert F.multi_margin_loss(x[:0], target[:0], reduction="none").shape == (0,)


def test_its_derivatives_of_both_orders():
    x, target = cresset.randn(4, 5, dtype=cresset.float64, requires_grad=True), cresset.tensor([0, 4, 2, 2])
    weight = cresset.linspace(0.5, 1, 5, dtype=cresset.float64)
    for p in (1, 2):
        assert gradcheck(lambda x, p=p: F.multi_margin_loss(x, target, p, 1.0, weight), (x,))
        assert gradgradcheck(lambda x, p=p: F.multi_margin_loss(x, target, p, 1.0, weight), (x,))


def test_samples_of_vmap_are_more_rows():
    x, target = cresset.randn(3, 4, 5), cresset.randint(5, (3, 4))
    expected = cresset.stack([F.multi_margin_loss(x[k], target[k]) for k in range(3)])
    cresset.testing.assert_close(cresset.vmap(F.multi_margin_loss)(x, target), expected)
    slopes = cresset.vmap(cresset.func.grad(F.multi_margin_loss))(x, target)
    single = cresset.func.grad(F.multi_margin_loss)(x[1], target[1])
    cresset.testing.assert_close(slopes[1], single)


def test_it_refuses_what_is_no_loss():
    with pytest.raises(NotImplementedError, match='"multi_margin_loss" not implemented'):
        F.multi_margin_loss(cresset.zeros(2, 3, dtype=cresset.int64), cresset.tensor([0, 1]))
    with pytest.raises(RuntimeError, match="expected a matrix of scores"):
        cresset._multi_margin_loss(cresset.zeros(3), cresset.tensor([0]), 1, 1.0, None)
