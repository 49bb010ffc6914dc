"""transpose_, t_, squeeze_ and unsqueeze_: the tensor itself gets other sizes and strides over the same memory."""

import pytest

import cresset


@pytest.mark.parametrize(
    ("change", "expected"),
    [(lambda x: x.transpose_(0, 1), (3, 2)), (lambda x: x.t_(), (3, 2)), (lambda x: x.swapaxes_(0, 1), (3, 2)),
     (lambda x: x.unsqueeze_(1), (2, 1, 3)), (lambda x: x.unsqueeze_(-1).squeeze_(), (2, 3)),
     (lambda x: x.unsqueeze_(0).squeeze_(0), (2, 3))],
)  # fmt: skip
def test_the_tensor_itself_changes_and_its_memory_stays(change, expected):
    x = cresset.arange(6.0).reshape(2, 3)
    place = x.data_ptr()
    assert change(x) is x
    assert x.shape == expected
    assert x.data_ptr() == place
    assert x.sum().item() == 15.0


def test_t_gives_the_elements_in_the_other_order():
    x = cresset.tensor([[1, 2], [3, 4]])
    x.t_()
    assert x.tolist() == [[1, 3], [2, 4]]


def test_the_gradient_of_a_recorded_tensor_comes_back_in_the_sizes_it_had():
    x = cresset.ones(2, 3, requires_grad=True)
    y = x * 2
    y.transpose_(0, 1)
    y.unsqueeze_(0)
    (y * cresset.arange(6.0).reshape(1, 3, 2)).sum().backward()
    assert x.grad.tolist() == [[0.0, 4.0, 8.0], [2.0, 6.0, 10.0]]


def test_a_leaf_that_requires_grad_is_refused_and_left_alone():
    x = cresset.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="transpose_: a leaf Variable that requires grad"):
        x.transpose_(0, 1)
    with pytest.raises(RuntimeError, match="squeeze_: a view of a leaf Variable that requires grad"):
        x[:1].squeeze_()
    assert x.shape == (2, 3)
    with cresset.no_grad():
        assert x.t_().shape == (3, 2)


@pytest.mark.parametrize("start", [cresset.tensor(0.0), cresset.tensor([0]), cresset.tensor([0, 1])], ids=str)
def test_only_a_0d_tensor_stands_for_an_integer(start):
    x = cresset.arange(9).view(3, 3)
    assert x.narrow(0, cresset.tensor(1), 1).tolist() == [[3, 4, 5]]
    with pytest.raises(TypeError, match=r"argument 'start' \(position 3\) must be int, not Tensor"):
        x.narrow(0, start, 1)
