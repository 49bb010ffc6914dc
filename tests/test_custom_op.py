"""torch._custom_ops and torch._custom_op: operators by registrations on their names, before there was torch.library."""

from collections.abc import Sequence

import pytest

import cresset
from cresset import _custom_ops as custom_ops
from cresset._custom_op.impl import CustomOp, custom_op, get_op, global_registry

NAME = "tests_older::f"


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    for name in [name for name in global_registry if name.startswith("tests_older::")]:
        custom_ops._destroy(name)


def sine():
    """An operator with a kernel and no derivative."""
    custom_ops.custom_op(NAME, "(Tensor x) -> Tensor")
    custom_ops.impl(NAME, func=lambda x: x.sin())
    return get_op(NAME)


def test_a_schema_from_type_hints_a_kernel_and_a_shape_rule():
    @custom_ops.custom_op(NAME)
    def f(x: cresset.Tensor, dim: int) -> cresset.Tensor: ...

    @custom_ops.impl(NAME, device_types="cpu")
    def kernel(x, dim):
        return x.sum(dim)

    @custom_ops.impl_abstract(NAME)
    def shape(x, dim):
        return x.new_empty(x.shape[:dim] + x.shape[dim + 1 :])

    op = get_op(NAME)
    assert op is cresset.ops.tests_older.f.default and str(op._schema).endswith("(Tensor x, SymInt dim) -> Tensor")
    assert op(cresset.ones(2, 3), 0).tolist() == [2.0, 2.0, 2.0]
    assert op(cresset.ones(2, 3, device="meta"), 0).shape == (3,)


def test_the_derivative_is_what_is_saved_and_a_dict_of_gradients():
    op = sine()
    seen = []
    custom_ops.impl_save_for_backward(NAME, func=lambda inputs, output: seen.append(inputs._fields) or inputs.x)
    custom_ops.impl_backward(NAME, func=lambda ctx, saved, grad: {"x": grad * saved.cos()})
    x = cresset.zeros(2, requires_grad=True)
    op(x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0] and seen == [("x",)]


def test_lists_have_lists_of_gradients():
    custom_ops.custom_op(NAME, "(Tensor[] xs) -> Tensor")
    custom_ops.impl(NAME, func=lambda xs: xs[0] + xs[1])
    custom_ops.impl_save_for_backward(NAME, func=lambda inputs, output: None)
    custom_ops.impl_backward(NAME, func=lambda ctx, saved, grad: {"xs": [grad, None]})
    xs = [cresset.zeros(1, requires_grad=True) for _ in range(2)]
    get_op(NAME)(xs).backward()
    assert xs[0].grad.tolist() == [1.0] and xs[1].grad is None


def test_results_may_have_no_derivative():
    custom_ops.custom_op(NAME, "(Tensor x) -> (Tensor, Tensor)")
    custom_ops.impl(NAME, func=lambda x: (x.clone(), x.clone()))
    custom_ops.impl_save_for_backward(NAME, func=lambda inputs, output: None)
    custom_ops.impl_backward(NAME, [False, True], func=lambda ctx, saved, a, b: {"x": b})
    first, second = get_op(NAME)(cresset.ones(1, requires_grad=True))
    assert not first.requires_grad and second.requires_grad


@pytest.mark.parametrize(
    ("gradients", "text"),
    [
        (lambda grad: grad, "to be a dict"),
        (lambda grad: {"x": grad, "y": None, "z": None}, "to have keys"),
        (lambda grad: {"x": 1.0, "n": None}, "either None or a Tensor"),
        (lambda grad: {"x": grad, "n": grad}, "non-Tensor-like types"),
    ],
)
def test_wrong_gradients_are_refused(gradients, text):
    custom_ops.custom_op(NAME, "(Tensor x, int n) -> Tensor")
    custom_ops.impl(NAME, func=lambda x, n: x * n)
    custom_ops.impl_save_for_backward(NAME, func=lambda inputs, output: None)
    custom_ops.impl_backward(NAME, func=lambda ctx, saved, grad: gradients(grad))
    with pytest.raises(RuntimeError, match=text):
        get_op(NAME)(cresset.ones(1, requires_grad=True), 2).backward()


def test_without_a_derivative_nothing_is_recorded():
    op = sine()
    x = cresset.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="Autograd has not been implemented for operator tests_older::f"):
        op(x)
    with cresset.no_grad():
        op(x)
    custom_ops.impl_backward(NAME, func=lambda ctx, saved, grad: {"x": grad})
    with pytest.raises(RuntimeError, match="unable to find a 'save_for_backward'"):
        op(x)


@pytest.mark.parametrize(
    ("run", "error", "text"),
    [
        (lambda: custom_ops.custom_op("f", "(Tensor x) -> Tensor"), ValueError, "a namespace"),
        (lambda: custom_ops.custom_op("aten::f", "(Tensor x) -> Tensor"), ValueError, "reserved namespace"),
        (lambda: custom_ops.custom_op("a.b::f", "(Tensor x) -> Tensor"), ValueError, "not contain any"),
        (lambda: custom_ops.custom_op("a::f.g", "(Tensor x) -> Tensor"), ValueError, "do not handle overloads"),
        (lambda: custom_ops.custom_op(NAME, "(Tensor(a!) x) -> Tensor(a!)"), ValueError, "only supports functional"),
        (lambda: custom_ops.custom_op(NAME, "(Tensor self) -> Tensor"), ValueError, "arguments named 'self'"),
        (lambda: custom_ops.custom_op(NAME)(len), ValueError, "to be a Python function"),
        (lambda: custom_ops.custom_op(NAME)(sine), ValueError, "to have name 'f' but got 'sine'"),
        (lambda: (sine(), sine()), RuntimeError, "multiple times"),
        (lambda: (sine(), custom_ops.impl(NAME, func=abs)), RuntimeError, "already has an implementation"),
        (lambda: (sine(), custom_ops.impl(NAME, device_types="hip")), ValueError, "we only support device_type"),
        (lambda: (sine(), custom_ops.impl_backward(NAME, True)), RuntimeError, "output_differentiability"),
        (lambda: CustomOp(), RuntimeError, "CustomOp constructor is private"),
        (lambda: get_op("tests_older::absent"), ValueError, "Could not find the operator"),
    ],
)
def test_what_is_refused(run, error, text):
    with pytest.raises(error, match=text):
        run()


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ("f(Tensor(a) x) -> Tensor(a)", "operator that returns views"),
        ("f(Tensor(a!) x) -> Tensor", "non-functional"),
        ("f(Tensor x) -> ()", "no returns"),
    ],
)
def test_derivatives_are_for_operators_that_only_compute(schema, text):
    with cresset.library._scoped_library("tests_older", "FRAGMENT") as library:
        library.define(schema)
        with pytest.raises(RuntimeError, match=text):
            custom_ops.impl_backward(NAME, func=lambda ctx, saved, grad: {})
        custom_ops._destroy(NAME)


def test_operators_of_torch_library_get_kernels_too():
    with cresset.library._scoped_library("tests_older", "FRAGMENT") as library:
        library.define("f(Tensor x) -> Tensor")
        custom_ops.impl(NAME, func=lambda x: -x)
        assert cresset.ops.tests_older.f(cresset.ones(1)).item() == -1.0
        custom_ops._destroy(NAME)


def test_what_has_no_kernel_says_so():
    @custom_op(NAME)
    def f(sizes: Sequence[int]) -> cresset.Tensor: ...

    with pytest.raises(NotImplementedError, match="no Tensor inputs"):
        f((1, 2))
    assert repr(f) == '<CustomOp(op="tests_older::f")>'
    f._destroy()

    @custom_op(NAME)
    def f(x: cresset.Tensor) -> cresset.Tensor: ...

    with pytest.raises(NotImplementedError, match="no cpu impl registered"):
        f(cresset.ones(1))
    with pytest.raises(NotImplementedError, match="no fake impl or Meta kernel"):
        f(cresset.ones(1, device="meta"))


def test_a_vmap_rule_gets_the_arguments_that_were_given():
    seen = []

    @cresset.library.custom_op("test_given::scaled", mutates_args=())
    def scaled(x: cresset.Tensor, factor: float = 1.0) -> cresset.Tensor:
        return x * factor

    @scaled.register_vmap
    def _(info, in_dims, x, factor=1.0):
        seen.append((in_dims, factor))
        return scaled(x, factor), 0

    assert cresset.vmap(scaled)(cresset.ones(2)).tolist() == [1.0, 1.0]
    assert cresset.vmap(lambda x: scaled(x, 3.0))(cresset.ones(2)).tolist() == [3.0, 3.0]
    assert seen == [((0,), 1.0), ((0, None), 3.0)]
