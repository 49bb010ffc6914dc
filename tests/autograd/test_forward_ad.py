"""Forward mode: tangents through operators of every kind, views, in-place changes, and the graph."""

import pytest

import cresset
from cresset.autograd import forward_ad as fw

A = cresset.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=cresset.float64)
B = cresset.tensor([[0.5, -1.0], [2.0, 1.5]], dtype=cresset.float64)


def push(function, primal=A, tangent=B):
    with fw.dual_level():
        return fw.unpack_dual(function(fw.make_dual(primal, tangent))).tangent


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * x + 2 * x,
        lambda x: x @ x,
        lambda x: x.sum(0),
        lambda x: x.t()[0] * x[1],
        lambda x: x.max(1).values,
        lambda x: x.softmax(1),
        lambda x: cresset.cat([x, x * 2]),
        lambda x: x.clamp(min=1.5),
        lambda x: x / (1 + x.exp()),
        lambda x: x.cumsum(0).prod(),
        lambda x: x + x[0],
        lambda x: cresset.where(x > 2.5, x * x, x),
        lambda x: x[x > 1.5],
        lambda x: x.clone().mul_(x).t().contiguous(),
        lambda x: cresset.complex(x, x * x).abs(),
    ],
)
def test_tangents_agree_with_differences(function):
    eps = 1e-6
    expected = (function(A + eps * B) - function(A - eps * B)) / (2 * eps)
    assert cresset.allclose(push(function), expected, atol=1e-8)


def test_a_change_of_a_view_reaches_the_tangent_of_the_base():
    def function(x):
        y = x * 1
        y[0].mul_(3)
        y.t()[1].add_(x[0])
        return y

    expected = B.clone()
    expected[0] *= 3
    expected[:, 1] += B[0]
    assert push(function).tolist() == expected.tolist()


def test_a_change_of_a_dual_is_a_change_of_its_tangent():
    tangent = B.clone()
    with fw.dual_level():
        x = fw.make_dual(A.clone(), tangent)
        x[0].mul_(5)
        x.add_(x)
        expected = (2 * B * cresset.tensor([[5.0], [1.0]])).tolist()
        assert fw.unpack_dual(x).tangent.tolist() == expected


def test_a_copy_has_a_tangent_of_its_own():
    with fw.dual_level():
        x = fw.make_dual(A, B)
        y = x.clone()
        y.copy_(cresset.zeros(2, 2))
        assert fw.unpack_dual(y).tangent.tolist() == [[0, 0], [0, 0]]
        assert fw.unpack_dual(x).tangent.tolist() == B.tolist()


def test_views_follow_their_base():
    with fw.dual_level():
        buffer = cresset.zeros(2, 2, dtype=cresset.float64)
        before = buffer[1]
        buffer.add_(fw.make_dual(A, B))
        after = buffer[0]
        assert fw.unpack_dual(before).tangent.tolist() == B[1].tolist()
        assert fw.unpack_dual(before * 2).tangent.tolist() == (B[1] * 2).tolist()
        buffer.mul_(3)
        assert fw.unpack_dual(after).tangent.tolist() == (B[0] * 3).tolist()


def test_a_tangent_may_be_expanded():
    row = cresset.ones(1, dtype=cresset.float64)
    assert push(lambda x: x.view(4).mul(2), A, row.expand(2, 2)).tolist() == [2, 2, 2, 2]
    assert row.tolist() == [1]


def test_a_constant_that_is_written_to_gets_a_tangent():
    def function(x):
        buffer = cresset.zeros(3, 2, dtype=cresset.float64)
        buffer[1:] = x
        return buffer

    assert push(function).tolist() == [[0, 0], *B.tolist()]


def test_a_random_operator_is_not_run_again():
    cresset.manual_seed(0)
    with fw.dual_level():
        y, tangent = fw.unpack_dual(
            cresset.dropout(fw.make_dual(cresset.ones(100), cresset.full((100,), 3.0)), 0.5, True)
        )
    assert 0 < (y == 0).sum() < 100 and tangent.tolist() == (3 * y).tolist()


def test_no_tangent_for_what_does_not_depend():
    with fw.dual_level():
        x = fw.make_dual(A, B)
        for y in (x.detach(), x > 2, x.argmax(), A * 2):
            assert fw.unpack_dual(y).tangent is None


def test_tangents_end_with_the_level():
    with fw.dual_level():
        x = fw.make_dual(A, B)
        y = x * 2
    assert fw.unpack_dual(x).tangent is None
    with fw.dual_level():
        assert fw.unpack_dual(y).tangent is None and fw.unpack_dual(y * 2).tangent is None


def test_forward_over_reverse():
    x = A.clone().requires_grad_()
    with fw.dual_level():
        dual = fw.make_dual(x, B)
        (slope,) = cresset.autograd.grad((dual**3).sum(), dual, create_graph=True)
        assert cresset.allclose(fw.unpack_dual(slope).tangent, 6 * A * B)


def test_reverse_over_forward():
    x = A.clone().requires_grad_()
    with fw.dual_level():
        fw.unpack_dual((fw.make_dual(x, B) ** 3).cumsum(0)).tangent.sum().backward()
    weights = cresset.tensor([[2.0], [1.0]])
    assert cresset.allclose(x.grad, 6 * A * B * weights)


def test_the_primal_keeps_its_history():
    x = A.clone().requires_grad_()
    with fw.dual_level():
        fw.unpack_dual(fw.make_dual(x, B) * 2).primal.sum().backward()
    assert x.grad.tolist() == [[2, 2], [2, 2]]


@pytest.mark.parametrize(
    "run, error, phrase",
    [
        (lambda: fw.make_dual(A, B[0]), RuntimeError, "different size"),
        (lambda: fw.make_dual(A, B.float()), RuntimeError, "same dtype"),
        (lambda: fw.make_dual(A.long(), B), ValueError, "Expected primal to be floating point or complex"),
        (lambda: fw.make_dual(A, B.long()), ValueError, "Expected tangent to be floating point or complex"),
        (lambda: fw.make_dual(fw.make_dual(A, B), B), RuntimeError, "already has a tangent"),
        (fw.enter_dual_level, RuntimeError, "Nested forward mode AD is not supported"),
        (lambda: fw.exit_dual_level(level=3), RuntimeError, "not the last one"),
    ],
)
def test_what_is_refused(run, error, phrase):
    with fw.dual_level(), pytest.raises(error, match=phrase):
        run()


def test_outside_a_level_there_are_no_duals():
    with pytest.raises(RuntimeError, match="no level exists"):
        fw.make_dual(A, B)


def test_there_is_no_tangent_below_the_first_level():
    with fw.dual_level():
        x = fw.make_dual(cresset.tensor(3.0), cresset.tensor(1.0))
        assert fw.unpack_dual(x, level=0).tangent.item() == 1.0
        assert fw.unpack_dual(x, level=-1).tangent is None
