"""Leaves have gradients of their own, also where derivatives pass a gradient on as it is."""

import pytest

import cresset


@pytest.mark.parametrize("dtype", [cresset.float32, cresset.bfloat16], ids=str)
def test_leaves_of_a_sum_do_not_share_their_gradients(dtype):
    a, b, given = (cresset.ones(3, dtype=dtype, requires_grad=needs) for needs in (True, True, False))
    (a + b).backward(given)
    a.grad.add_(1)
    given.mul_(5)
    assert a.grad.tolist() == [2.0, 2.0, 2.0] and b.grad.tolist() == [1.0, 1.0, 1.0]


def test_a_leaf_that_is_added_to_itself_has_twice_the_gradient():
    a = cresset.ones(3, requires_grad=True)
    (a + a).sum().backward()
    assert a.grad.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("dtype", [cresset.float32, cresset.bfloat16], ids=str)
def test_a_factor_of_a_sum_counts(dtype):
    a, b = cresset.ones(2, dtype=dtype, requires_grad=True), cresset.ones(2, dtype=dtype, requires_grad=True)
    cresset.add(a, b, alpha=3).sum().backward()
    assert a.grad.tolist() == [1.0, 1.0] and b.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("dtype", [cresset.float32, cresset.float16, cresset.bfloat16], ids=str)
def test_the_gradient_of_a_sum_is_that_of_the_result_itself(dtype):
    a, b = (cresset.ones(2, dtype=dtype, requires_grad=True) for _ in range(2))
    given = cresset.tensor([0.5, 2.0], dtype=dtype)
    by_a, by_b = cresset.autograd.grad(a + b, [a, b], given)
    assert by_a.data_ptr() == by_b.data_ptr() == given.data_ptr()


def test_a_slice_of_everything_passes_its_gradient_on():
    a = cresset.ones(4, requires_grad=True)
    (a[:] * 2 + a[1:].sum()).sum().backward()
    assert a.grad.tolist() == [2.0, 6.0, 6.0, 6.0]


def test_the_strides_of_grad_follow_the_leaf_unless_told_otherwise():
    x = cresset.ones(2, 3).t().requires_grad_()
    x.backward(cresset.ones(3, 2))
    assert x.grad.stride() == x.stride()
    x.grad = None
    with cresset.autograd.enforce_grad_layout_policy(False):
        x.backward(cresset.ones(3, 2))
    assert x.grad.stride() == (2, 1)


def test_a_leaf_with_other_memory_is_another_leaf():
    x = cresset.ones(4, requires_grad=True)
    y = x.clone()
    with cresset.no_grad():
        x.set_(cresset.ones(3))
    with pytest.raises(RuntimeError, match="not have been used"):
        cresset.autograd.grad(y.sum(), x)
    x.sum().backward()
    assert x.grad.tolist() == [1, 1, 1]


def test_attributes_of_autograd_cannot_be_deleted():
    x = cresset.ones(2, requires_grad=True)
    for name in ("data", "requires_grad", "_grad_fn", "_backward_hooks"):
        with pytest.raises(RuntimeError, match="cannot be deleted"):
            delattr(x, name)
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        cresset.ones(2).data = cresset.eye(2).to_sparse()


def test_sparse_gradients_are_summed_in_the_order_of_their_calls():
    class Given(cresset.autograd.Function):
        @staticmethod
        def forward(ctx, x, grad):
            ctx.save_for_backward(grad)
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return ctx.saved_tensors[0], None

    first, second = (
        cresset.sparse_coo_tensor(cresset.tensor([places]), cresset.ones(len(places)), (4,))
        for places in ([0, 3], [0, 1, 3])
    )
    x = cresset.zeros(4, requires_grad=True)
    (Given.apply(x, first) + Given.apply(x, second)).sum().backward()
    assert x.grad._indices().tolist() == (first + second)._indices().tolist() == [[0, 3, 0, 1, 3]]


class TestGradDtype:
    def test_it_is_the_dtype_of_the_leaf_until_another_one_is_set(self):
        x = cresset.ones(2, requires_grad=True)
        assert x.grad_dtype is cresset.float32
        kept = x * 2
        x.grad_dtype = cresset.float16  # graphs that were made before see it
        kept.sum().backward()
        assert x.grad.dtype is cresset.float16 and x.grad.tolist() == [2.0, 2.0]
        with pytest.raises(RuntimeError, match="because there is already a gradient with dtype 'half'"):
            x.grad_dtype = cresset.float64
        x.grad = None
        with pytest.raises(RuntimeError, match="gradient with dtype 'float' to a tensor with grad_dtype 'Half'"):
            x.grad = cresset.ones(2)

    def test_none_takes_gradients_as_they_come(self):
        class Wide(cresset.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return grad.double()

        x = cresset.ones(2, requires_grad=True)
        Wide.apply(x).sum().backward()
        assert x.grad.dtype is cresset.float32
        x.grad = x.grad_dtype = None
        Wide.apply(x).sum().backward()
        assert x.grad_dtype is None and x.grad.dtype is cresset.float64
        x.grad = cresset.ones(2, dtype=cresset.float16)

    def test_only_leaves_have_it(self):
        y = cresset.ones(2, requires_grad=True) * 2
        with pytest.raises(RuntimeError, match="can only be accessed on leaf tensors"):
            y.grad_dtype  # noqa: B018
        with pytest.raises(RuntimeError, match="can only be set on leaf tensors"):
            y.grad_dtype = cresset.float16
        with pytest.raises(RuntimeError, match="must be a torch.dtype or None, but got str"):
            cresset.ones(2).grad_dtype = "float16"


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
def test_a_gradient_with_history_is_a_copy_in_the_layout_of_its_leaf():
    x = cresset.ones(2, 3).T.requires_grad_()
    (x * x).sum().backward(create_graph=True)
    assert x.grad.stride() == x.stride() == (1, 3)
    node = x.grad.grad_fn
    assert type(node).__name__ == "CopyBackwards" and node.next_functions[0][0] is None
    x.grad.sum().backward()
    assert x.grad[0, 0] == 4  # 2 x, and 2 from its derivative


def test_grad_of_what_is_no_leaf_warns_until_it_is_retained():
    x = cresset.ones(2, requires_grad=True)
    y = 2 * x
    with pytest.warns(UserWarning, match="grad attribute of a Tensor that is not a leaf Tensor is being accessed"):
        assert y.grad is None
    y.retain_grad()
    assert y.grad is None and x.grad is None and y.detach().grad is None
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0]
