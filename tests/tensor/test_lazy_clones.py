"""Lazy clones: two storages with one memory until one of them is written to."""

import pytest

import cresset as torch


def shares(*tensors):
    return [torch._C._is_cow_tensor(t) for t in tensors]


def test_a_lazy_clone_has_a_storage_of_its_own_and_the_same_memory():
    t = torch.arange(4.0)
    clone = t._lazy_clone()
    assert shares(t, clone) == [True, True] and clone.tolist() == t.tolist()
    assert torch._C._storage_address(t) != torch._C._storage_address(clone)
    assert t.const_data_ptr() == clone.const_data_ptr() == torch._C._data_address(clone)


def test_reading_and_viewing_leave_it_shared():
    t = torch.arange(4.0)
    clone = t._lazy_clone()
    assert (t + clone).sum() == 12 and t.view(2, 2).T.tolist() == [[0.0, 2.0], [1.0, 3.0]]
    assert shares(t, clone) == [True, True]


def test_the_first_that_is_written_to_gets_new_memory_and_the_last_keeps_the_old():
    t = torch.arange(4.0)
    clone, view, at = t._lazy_clone(), t.view(2, 2), t.const_data_ptr()
    view += 1
    assert shares(t, view, clone) == [False, False, True]
    assert t.const_data_ptr() == view.const_data_ptr() != at
    assert t.tolist() == [1.0, 2.0, 3.0, 4.0] and clone.tolist() == [0.0, 1.0, 2.0, 3.0]
    clone += 1
    assert not torch._C._is_cow_tensor(clone) and clone.const_data_ptr() == at


def test_three_share_one_memory():
    a = torch.ones(2)
    b = a._lazy_clone()
    c = torch._lazy_clone(b)
    b.fill_(2)
    del a
    c.fill_(3)
    assert b.tolist() == [2.0, 2.0] and c.tolist() == [3.0, 3.0]


def write_to_the_data(t):
    t.data.zero_()


def write_to_a_buffer(t):
    memoryview(t)[0] = 0.0


def write_to_the_storage(t):
    t.untyped_storage().fill_(0)


def write_by_index(t):
    t[0] = 0.0


def write_by_out(t):
    torch.zeros(3, out=t)


def write_to_many(t):
    torch._foreach_zero_([t])


def write_to_another_process(t):
    t.share_memory_()
    t.zero_()


def resize(t):
    t.resize_(5).zero_()


@pytest.mark.parametrize(
    "write",
    [
        write_to_the_data, write_to_a_buffer, write_to_the_storage, write_by_index, write_by_out, write_to_many,
        write_to_another_process, resize,
    ],
)  # fmt: skip
@pytest.mark.parametrize("to_the_clone", [True, False])
def test_no_write_to_one_reaches_the_other(write, to_the_clone):
    t = torch.ones(3)
    clone = t._lazy_clone()
    written, other = (clone, t) if to_the_clone else (t, clone)
    write(written)
    assert written.tolist()[0] == 0.0 and other.tolist() == [1.0, 1.0, 1.0]
    other.fill_(2)
    assert written.tolist()[0] == 0.0


def test_a_numpy_array_of_one_is_not_seen_by_the_other():
    pytest.importorskip("numpy")
    t = torch.ones(2)
    clone = t._lazy_clone()
    array = t.numpy()
    array[0] = 5
    assert t.tolist() == [5.0, 1.0] and clone.tolist() == [1.0, 1.0]
    later = t._lazy_clone()  # the array's owner writes without asking
    array[0] = 6
    assert later.tolist() == [5.0, 1.0]


def test_an_optimizer_writes_to_its_parameter_alone():
    parameter = torch.nn.Parameter(torch.ones(2))
    before = parameter.detach()._lazy_clone()
    parameter.grad = torch.ones(2)
    torch.optim.SGD([parameter], lr=1.0).step()
    assert parameter.tolist() == [0.0, 0.0] and before.tolist() == [1.0, 1.0]


def test_gradients_flow_through_a_lazy_clone():
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    (x._lazy_clone() ** 2).sum().backward()
    assert x.grad.tolist() == [4.0, 6.0]


def test_a_lazy_clone_without_memory_is_one():
    assert torch.empty(0)._lazy_clone().shape == (0,)
    assert torch.ones(2, device="meta")._lazy_clone().device.type == "meta"


def test_a_lazy_clone_of_bools_keeps_what_bytes_mean():
    t = torch.tensor([2, 0], dtype=torch.uint8).view(torch.bool)
    clone = t._lazy_clone()
    assert clone.sum() == 1 and clone.logical_not_().tolist() == [False, True] and t.tolist() == [True, False]
