"""In-place changes and views: whose history is rewritten, and which changes are refused."""

import pytest

import cresset


def leaf(*values):
    return cresset.tensor(values if len(values) > 1 else values[0], requires_grad=True)


def test_a_change_of_a_view_reaches_the_base():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    y[1:].pow_(2)
    y.sum().backward()
    assert x.grad.tolist() == [1, 4, 6]


def test_a_change_of_the_base_reaches_its_views():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    tail = y[1:]
    y.mul_(2)
    (tail * tail).sum().backward()
    assert tail.tolist() == [4, 6] and x.grad.tolist() == [0, 16, 24]


def test_a_change_of_a_view_reaches_the_other_views():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    a, b = y[:2], y[1:]
    a.mul_(10)
    b.sum().backward()
    assert b.tolist() == [20, 3] and x.grad.tolist() == [0, 10, 1]


def test_values_flow_through_a_buffer():
    buffer, x = cresset.zeros(3), leaf(1.0, 2.0)
    buffer[1:] = x * 2
    (buffer * buffer).sum().backward()
    assert buffer.requires_grad and x.grad.tolist() == [8, 16]


def test_a_view_of_a_buffer_follows_it_into_the_graph():
    buffer, x = cresset.zeros(2, 2), leaf(1.0, 2.0)
    row = buffer[0]
    buffer.add_(x)
    row.mul_(5)
    (buffer * buffer).sum().backward()
    assert row.requires_grad and x.grad.tolist() == [52, 104]


def test_overwritten_values_have_no_gradient():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2
    y[1] = 7.0
    y.sum().backward()
    assert x.grad.tolist() == [2, 0, 2]


def test_second_derivative_through_a_changed_view():
    x = leaf(1.0, 2.0)
    y = x * 1
    y[0].pow_(3)
    (slope,) = cresset.autograd.grad((y * y).sum(), x, create_graph=True)
    (second,) = cresset.autograd.grad(slope.sum(), x)
    assert slope.tolist() == [6, 4] and second.tolist() == [30, 2]


def test_a_view_gets_a_new_node():
    x = leaf(1.0, 2.0) * 1
    v = x[0]
    assert v.grad_fn.name() == "SelectBackward0"
    x[1].mul_(2)
    assert x.grad_fn.name().endswith("CopySlices") and v.grad_fn.name() == "AsStridedBackward0"


def test_without_recording_a_leaf_may_change():
    x = leaf(1.0, 2.0)
    with cresset.no_grad():
        x.mul_(3)
        x[0] = 5.0
    (x * x).sum().backward()
    assert x.is_leaf and x.grad.tolist() == [10, 12]


def no_grad_view(x):
    with cresset.no_grad():
        return x[0]


@pytest.mark.parametrize(
    "run, phrase",
    [
        (lambda x: x.add_(1), "a leaf Variable that requires grad is being used in an in-place operation"),
        (lambda x: x[0].add_(1), "a view of a leaf Variable that requires grad is being used in an in-place operation"),
        (lambda x: (x * 1).unbind()[0].add_(1), "function that returns multiple views"),
        (lambda x: no_grad_view(x * 1).add_(1), "created in no_grad mode"),
        (lambda x: (x * 1)[0].detach_(), "Can't detach views in-place"),
        (lambda x: cresset.exp(x, out=cresset.empty(2)), "don't support automatic differentiation"),
    ],
)
def test_what_is_refused(run, phrase):
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=phrase):
        run(x)
    assert x.tolist() == [1, 2]
