"""Leaves have gradients of their own, also where derivatives pass a gradient on as it is."""

import cresset


def test_leaves_of_a_sum_do_not_share_their_gradients():
    a, b, given = (cresset.ones(3, requires_grad=needs) for needs in (True, True, False))
    (a + b).backward(given)
    a.grad.add_(1)
    given.mul_(5)
    assert a.grad.tolist() == [2.0, 2.0, 2.0] and b.grad.tolist() == [1.0, 1.0, 1.0]


def test_a_leaf_that_is_added_to_itself_has_twice_the_gradient():
    a = cresset.ones(3, requires_grad=True)
    (a + a).sum().backward()
    assert a.grad.tolist() == [2.0, 2.0, 2.0]


def test_a_factor_of_a_sum_counts():
    a, b = cresset.ones(2, requires_grad=True), cresset.ones(2, requires_grad=True)
    cresset.add(a, b, alpha=3).sum().backward()
    assert a.grad.tolist() == [1.0, 1.0] and b.grad.tolist() == [3.0, 3.0]


def test_a_slice_of_everything_passes_its_gradient_on():
    a = cresset.ones(4, requires_grad=True)
    (a[:] * 2 + a[1:].sum()).sum().backward()
    assert a.grad.tolist() == [2.0, 6.0, 6.0, 6.0]
