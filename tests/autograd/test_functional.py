"""Derivatives of functions as functions."""

import pytest

import cresset
from cresset.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp

X = cresset.tensor([1.0, 2.0])


def squares(x):
    return x**2


def cubes(x):
    return (x**3).sum()


@pytest.mark.parametrize("options", [{}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}])
def test_jacobian(options):
    assert jacobian(squares, X, **options).tolist() == [[2, 0], [0, 4]]
    total, values = jacobian(lambda x: (x.sum(), x * 3), X, **options)
    assert total.tolist() == [1, 1] and values.tolist() == [[3, 0], [0, 3]]
    by_x, by_y = jacobian(lambda x, y: (x * y).sum(), (X, X * 10), **options)
    assert by_x.tolist() == [10, 20] and by_y.tolist() == [1, 2]


@pytest.mark.parametrize("options", [{}, {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}])
def test_hessian(options):
    assert hessian(cubes, X, **options).tolist() == [[6, 0], [0, 12]]
    (xx, xy), (yx, yy) = hessian(lambda x, y: (x * x * y).sum(), (X, X), **options)
    assert (
        xx.tolist() == [[2, 0], [0, 4]]
        and xy.tolist() == yx.tolist() == [[2, 0], [0, 4]]
        and yy.tolist() == [[0, 0], [0, 0]]
    )


def test_products_with_a_vector():
    v = cresset.tensor([1.0, 10.0])
    for product in (vjp, jvp):
        value, slope = product(squares, X, v)
        assert value.tolist() == [1, 4] and slope.tolist() == [2, 40]
    for product in (vhp, hvp):
        value, second = product(cubes, X, v)
        assert value.item() == 9 and second.tolist() == [6, 120]


def test_results_can_be_differentiated_when_asked():
    x = cresset.tensor([1.0, 2.0], requires_grad=True)
    assert not jacobian(squares, x).requires_grad
    j = jacobian(squares, x, create_graph=True)
    assert cresset.autograd.grad(j.sum(), x)[0].tolist() == [2, 2]


def test_what_does_not_depend_is_zero_or_refused():
    def constant(x):
        return cresset.ones(2)

    assert jacobian(constant, X).tolist() == [[0, 0], [0, 0]]
    with pytest.raises(RuntimeError, match="Output 0 of the user-provided function does not require gradients"):
        jacobian(constant, X, strict=True)
    with pytest.raises(RuntimeError, match="independent of input 1"):
        jacobian(lambda x, y: x * 2, (X, X), strict=True)
    with pytest.raises(RuntimeError, match="jacobian of the user-provided function"):
        hessian(lambda x: x.sum(), X, strict=True)


@pytest.mark.parametrize(
    "run, error, phrase",
    [
        (lambda: jacobian(squares, [X]), TypeError, "must be either a Tensor or a tuple of Tensors"),
        (lambda: jacobian(squares, X, strategy="sideways"), AssertionError, "forward-mode"),
        (lambda: jacobian(squares, X, strategy="forward-mode"), NotImplementedError, "vectorize=True"),
        (lambda: jacobian(squares, X, strict=True, vectorize=True), RuntimeError, "not supported together"),
        (lambda: hessian(squares, X), RuntimeError, "should contain a single element"),
        (lambda: hessian(lambda x: (x.sum(), x.sum()), X), RuntimeError, "should return a single Tensor"),
        (lambda: vjp(squares, X), RuntimeError, "v can only be None"),
        (lambda: jvp(squares, X), RuntimeError, "v can only be None"),
        (lambda: vjp(squares, X, cresset.ones(3)), RuntimeError, "v has invalid size"),
        (lambda: vjp(squares, X, (X, X)), RuntimeError, "should contain a single Tensor"),
    ],
)
def test_what_is_refused(run, error, phrase):
    with pytest.raises(error, match=phrase):
        run()
