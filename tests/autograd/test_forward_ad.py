"""Forward mode: tangents through operators of every kind, views, in-place changes, and the graph."""

import pytest

import cresset
from cresset.autograd import forward_ad as fw
from cresset.utils._pytree import tree_map_only

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
        lambda x: in_place(x, lambda y: y.mul_(y)),
        lambda x: in_place(x, lambda y: y.pow_(y.view(2, 2))),
        lambda x: in_place(x, lambda y: y.addcmul_(y, y, value=3)),
        lambda x: cresset.view_as_real(in_place(cresset.view_as_complex(x), lambda y: y.mul_(y))),
        lambda x: cresset.complex(x, x * x).abs(),
    ],
)
def test_tangents_agree_with_differences(function):
    eps = 1e-6
    expected = (function(A + eps * B) - function(A - eps * B)) / (2 * eps)
    assert cresset.allclose(push(function), expected, atol=1e-8)


def in_place(x, change):
    """What a change in place makes of a copy."""
    y = x * 1
    change(y)
    return y


def test_what_is_detached_and_written_over_has_no_tangent_but_its_old_values():
    assert cresset.equal(push(lambda x: in_place(x, lambda y: y.div_(y.detach()))), B / A)


def test_tangents_of_what_is_written_over_itself_have_gradients():
    x = A.clone().requires_grad_()
    with fw.dual_level():
        y = in_place(fw.make_dual(x, B), lambda y: y.mul_(y))
        fw.unpack_dual(y).tangent.sum().backward()
    assert cresset.equal(x.grad, 2 * B)


def test_in_vmap_tangents_of_what_is_written_over_itself_are_those_of_its_old_values():
    def squares(x):
        return in_place(x, lambda y: y.mul_(y))

    pushed = cresset.func.vmap(lambda x, v: cresset.func.jvp(squares, (x,), (v,))[1])(A, B)
    assert cresset.equal(pushed, 2 * A * B)


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
        (lambda: fw.make_dual(A, B + 0j), RuntimeError, "tangent of torch.complex128 does not fit into a primal of"),
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


@pytest.mark.parametrize("function", [lambda x: x * 1j, lambda x: x / 1j, lambda x: 1j - x], ids=["mul", "div", "sub"])
def test_a_complex_number_makes_a_complex_tangent(function):
    start, direction = cresset.tensor([1.0, 2.0]), cresset.tensor([1.0, 3.0])
    with fw.dual_level():
        tangent = fw.unpack_dual(function(fw.make_dual(start, direction))).tangent
    assert tangent.tolist() == (function(start + direction) - function(start)).tolist()


def test_the_tangent_is_kept_as_it_is_where_its_memory_is_laid_out_like_the_primal():
    primal, tangent = cresset.zeros(2), cresset.ones(2, requires_grad=True)
    part = cresset.arange(5.0)[:4]
    with fw.dual_level():
        assert fw.unpack_dual(fw.make_dual(primal, tangent)).tangent is tangent
        dual = fw.make_dual(part, cresset.ones(4))
        assert fw.unpack_dual(dual.as_strided((5,), (1,), 0)).tangent.tolist() == [1.0, 1.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize("dtype", [cresset.float16, cresset.float32, cresset.bfloat16])
def test_a_tangent_of_another_dtype_is_converted(dtype):
    with fw.dual_level():
        x = fw.make_dual(cresset.tensor([1.0, 2.0], dtype=cresset.float64), cresset.tensor([1.0, 0.5], dtype=dtype))
        tangent = fw.unpack_dual((x * x).sum()).tangent
    assert tangent.dtype == cresset.float64 and tangent.item() == 4.0


def test_a_tangent_has_no_tangent_and_detaching_in_place_forgets_it():
    with fw.dual_level():
        dual = fw.make_dual(cresset.zeros(2), cresset.ones(2))
        with pytest.raises(RuntimeError, match="has a forward gradient at the same level"):
            fw.make_dual(cresset.zeros(2), dual)
        copy = dual.clone()
        copy.detach_()
        assert fw.unpack_dual(copy * 2).tangent is None


def test_pushing_tangents_can_be_switched_off():
    with fw.dual_level():
        dual = fw.make_dual(cresset.zeros(2), cresset.ones(2))
        assert fw._current_level == 0
        with fw._set_fwd_grad_enabled(False):
            assert not fw._is_fwd_grad_enabled()
            assert fw.unpack_dual(dual * 2).tangent is None
        assert fw.unpack_dual(dual * 2).tangent is not None
    assert fw._current_level == -1


def function_with(jvp, forward=lambda ctx, x: x[:2]):
    return type("Given", (cresset.autograd.Function,), {"forward": staticmethod(forward), "jvp": staticmethod(jvp)})


def dirty(ctx, x):
    ctx.mark_dirty(x)
    return x.mul_(2)


def constant(ctx, x):
    result = x.clone()
    ctx.mark_non_differentiable(result)
    return result


@pytest.mark.parametrize(
    "made, phrase",
    [
        (function_with(lambda ctx, t: t[:2].clone()), "not returning a view$"),
        (function_with(lambda ctx, t: t[:2].clone().view(2)), "a view of the given tangent"),
        (function_with(lambda ctx, t: t * 2, lambda ctx, x: x), "an input as-is"),
        (function_with(lambda ctx, t: t * 2, dirty), "not modifying the forward mode gradients inplace"),
        (function_with(lambda ctx, t: t, constant), "return None at that position"),
    ],
    ids=["copy", "other", "as it is", "in place", "constant"],
)
def test_jvp_does_to_tangents_what_forward_does_to_primals(made, phrase):
    with fw.dual_level(), pytest.raises(RuntimeError, match=phrase):
        made.apply(fw.make_dual(cresset.ones(3), cresset.ones(3)).clone())


def test_jvp_sees_what_was_saved_for_it_alone():
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clone()

    def jvp(ctx, tangent):
        assert ctx.saved_tensors == ()
        return tangent

    with fw.dual_level():
        x = fw.make_dual(cresset.ones(3, requires_grad=True), cresset.ones(3))
        assert fw.unpack_dual(function_with(jvp, forward).apply(x)).tangent.tolist() == [1.0, 1.0, 1.0]


def test_a_function_without_a_jvp_may_ask_which_inputs_need_a_gradient():
    """Those with a tangent do, whether or not they require gradients: solve gave no tangent for its matrix."""
    A, B, T = (cresset.randn(3, 3, dtype=cresset.float64) for _ in range(3))
    with fw.dual_level():
        dual = fw.make_dual(A, T)
        tangent = fw.unpack_dual(cresset.linalg.solve(dual, B)).tangent
    cresset.testing.assert_close(tangent, -cresset.linalg.solve(A, T @ cresset.linalg.solve(A, B)))


def test_writing_to_out_is_refused_where_a_tangent_would_be_lost():
    plain, place = cresset.ones(2), cresset.empty(2)
    with fw.dual_level():
        dual = fw.make_dual(cresset.ones(2), cresset.ones(2))
        for call in (lambda: cresset.add(dual, plain, out=place), lambda: cresset.add(plain, plain, out=dual)):
            with pytest.raises(NotImplementedError, match="because it is an out= function"):
                call()


def test_a_formula_that_lacks_a_derivative_is_refused():
    """The tangent of the first argument was left out without a word."""
    with fw.dual_level():
        dual = fw.make_dual(cresset.ones(2), cresset.ones(2))
        assert fw.unpack_dual(cresset.igamma(cresset.ones(2), dual)).tangent[0].item() == pytest.approx(0.36787944)
        with pytest.raises(NotImplementedError, match="Trying to use forward AD with igamma that does not support it"):
            cresset.igamma(dual, dual)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda y, x: y.exp_(), lambda p: p.exp() * (1 + p)),  # by a formula of the result
        (lambda y, x: y.mul_(x), lambda p: 4 * p),
    ],
)
@pytest.mark.parametrize("dtype", [cresset.float64, cresset.complex128])
def test_the_tangent_of_what_was_changed_in_place_has_a_gradient(change, expected, dtype):
    """With the point as its own direction: of exp(p) p, of 2 p p."""
    p = cresset.tensor([1.0, 2.0], dtype=dtype, requires_grad=True)
    push(lambda x: change(x.clone(), x), p, p).abs().sum().backward()
    cresset.testing.assert_close(p.grad, expected(p.detach()))


class Wrapped(cresset.Tensor):
    """A tensor that holds another and lets it do the work."""

    @staticmethod
    def __new__(cls, held):
        made = cresset.Tensor._make_wrapper_subclass(cls, held.shape, strides=held.stride(), dtype=held.dtype)
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args, kwargs = tree_map_only(cls, lambda x: x.held, (args, kwargs or {}))
        return tree_map_only(cresset.Tensor, cls, func(*args, **kwargs))


@pytest.mark.parametrize("primal_kind", [cresset.Tensor.clone, Wrapped], ids=["plain", "wrapped"])
def test_a_tangent_keeps_its_class_and_goes_through_views(primal_kind):
    with fw.dual_level():
        dual = fw.make_dual(primal_kind(cresset.ones(2, 3)), Wrapped(cresset.arange(6.0).reshape(2, 3)))
        for result, expected in ((dual.select(0, 1), [3.0, 4.0, 5.0]), (dual.select(0, 1) * 2, [6.0, 8.0, 10.0])):
            tangent = fw.unpack_dual(result).tangent
            assert type(tangent) is Wrapped and tangent.held.tolist() == expected


def test_the_primal_of_a_result_has_no_tangent():
    with fw.dual_level():
        y = fw.make_dual(cresset.tensor([2.0, 3.0]), cresset.ones(2)) * 2
        for dual in (y, y.view(2, 1), y[0], y[:0]):
            primal, tangent = fw.unpack_dual(dual)
            assert tangent is not None and fw.unpack_dual(primal).tangent is None
            assert fw.unpack_dual(primal * 3).tangent is None
            assert primal.tolist() == dual.tolist() and primal.stride() == dual.stride()
            assert primal.data_ptr() == dual.data_ptr()


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.t_(),
        lambda x: x.transpose_(0, 1),
        lambda x: x.unsqueeze_(1),
        lambda x: x.unsqueeze_(0).squeeze_(),
        lambda x: x.as_strided_((2, 2), (3, 1)),
    ],
)
def test_the_tangent_follows_a_tensor_that_becomes_a_view_of_itself(change):
    primal = cresset.arange(6.0).reshape(2, 3)
    with fw.dual_level():
        x = fw.make_dual(primal, primal * 10).clone()
        change(x)
        assert fw.unpack_dual(x).tangent.equal(x * 10) and fw.unpack_dual(x * 2).tangent.equal(x * 20)


def test_the_tangent_of_a_subclass_is_of_its_class():
    class Tagged(cresset.Tensor):
        pass

    x = cresset.tensor([1.0, 2.0]).as_subclass(Tagged)
    with fw.dual_level():
        dual = fw.make_dual(x, cresset.ones(2))
        primal, tangent = fw.unpack_dual(dual * dual)
        of_parameter = fw.make_dual(cresset.nn.Parameter(cresset.ones(2)), cresset.ones(2))
        plain = fw.unpack_dual(of_parameter).tangent
    assert type(primal) is type(tangent) is Tagged and tangent.tolist() == [2.0, 4.0]
    assert type(plain) is cresset.Tensor


@pytest.mark.parametrize("size", [2, 3])
def test_what_has_a_tangent_is_not_resized(size):
    with fw.dual_level():
        x = fw.make_dual(cresset.ones(2), cresset.ones(2))
        for resize in (lambda: x.resize_(size), lambda: x.resize_as_(cresset.ones(size))):
            with pytest.raises(RuntimeError, match="cannot resize variables that has a forward grad"):
                resize()
        assert x.shape == (2,) and x._version == 0


def test_what_has_a_tangent_gets_no_other_memory_and_lends_none():
    other = cresset.zeros(3)
    with fw.dual_level():
        x = fw.make_dual(cresset.ones(2), cresset.ones(2))
        for take in (x.set_, lambda: x.set_(other), lambda: x.set_(other.untyped_storage()), lambda: other.set_(x)):
            with pytest.raises(NotImplementedError, match="forward AD with set_"):
                take()
        assert x.tolist() == [1.0, 1.0] and other.tolist() == [0.0, 0.0, 0.0]
