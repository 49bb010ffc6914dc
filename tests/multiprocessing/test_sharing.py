"""Tensors in shared memory, through queues, and processes that fail."""

import os

import pytest

import cresset
import cresset.multiprocessing as mp
from cresset import nn
from cresset.multiprocessing.reductions import StorageWeakRef


def fill(queue, answers, done):
    tensor = queue.get(timeout=60)
    tensor.fill_(5)
    answers.put(tensor[1:])
    done.wait(60)


def fail(index):
    if index == 1:
        raise ValueError("one is not welcome")


def leave(index):
    os._exit(3)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_queue_sends_memory_not_copies(method):
    context = mp.get_context(method)
    queue, answers, done = context.Queue(), context.Queue(), context.Event()
    process = context.Process(target=fill, args=(queue, answers, done))
    process.start()
    tensor = cresset.zeros(3)
    queue.put(tensor)
    answer = answers.get(timeout=60)
    done.set()
    process.join(60)
    assert process.exitcode == 0 and tensor.tolist() == [5, 5, 5] and tensor.is_shared()
    assert answer.data_ptr() == tensor[1:].data_ptr()


def test_pickler_keeps_what_a_tensor_is():
    from multiprocessing.reduction import ForkingPickler

    for tensor in (
        nn.Parameter(cresset.ones(2, 2)),
        cresset.arange(6).reshape(2, 3).t()[1:],
        cresset.empty(0),
        cresset.tensor(True),
    ):
        back = ForkingPickler.loads(ForkingPickler.dumps(tensor))
        assert type(back) is type(tensor) and back.dtype == tensor.dtype and back.stride() == tensor.stride()
        assert back.tolist() == tensor.tolist() and back.requires_grad == tensor.requires_grad and back.is_shared()
    with pytest.raises(RuntimeError, match="refusing to serialize non-leaf"):
        ForkingPickler.dumps(cresset.ones(2, requires_grad=True) * 2)


def test_share_memory_of_a_module_is_seen_by_children():
    model = nn.Linear(2, 1).share_memory()
    process = mp.get_context("fork").Process(target=model.weight.data.fill_, args=(3.0,))
    process.start()
    process.join(60)
    assert model.weight.is_shared() and model.weight.tolist() == [[3, 3]]


def test_descriptors_are_given_back():
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(5):
        cresset.zeros(10).share_memory_()
    assert before == 0 or len(os.listdir("/proc/self/fd")) == before


def test_spawn_tells_what_went_wrong():
    with pytest.raises(mp.ProcessRaisedException, match="one is not welcome") as raised:
        mp.spawn(fail, nprocs=2)
    assert raised.value.error_index == 1
    with pytest.raises(mp.ProcessExitedException, match="exit code 3"):
        mp.start_processes(leave, nprocs=1, start_method="fork")


def test_the_sharing_strategy_reads_back():
    before = mp.get_sharing_strategy()
    try:
        mp.set_sharing_strategy("file_system")
        assert mp.get_sharing_strategy() == "file_system" and "file_system" in mp.get_all_sharing_strategies()
        with pytest.raises(AssertionError, match="'carrier_pigeon'"):
            mp.set_sharing_strategy("carrier_pigeon")
        assert mp.get_sharing_strategy() == "file_system"
    finally:
        mp.set_sharing_strategy(before)


@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_a_batch_is_collated_into_new_shared_memory():
    row = cresset.tensor([1.0, 2.0])
    for memory in (row.storage()._new_shared(4), row.untyped_storage()._new_shared(16, device=row.device)):
        assert memory.is_shared()
        out = cresset.stack([row, row * 2], out=cresset.empty(0).set_(memory).resize_(2, 2))
        assert out.is_shared() and out.data_ptr() == memory.data_ptr() and out.tolist() == [[1.0, 2.0], [2.0, 4.0]]


def test_a_weak_reference_to_a_storage_is_the_same_for_all_views_and_ends_with_the_last():
    x = cresset.ones(3)
    view, other = x[1:], cresset.ones(3)
    seen = {StorageWeakRef(x.untyped_storage()), StorageWeakRef(view.untyped_storage()), StorageWeakRef(x.storage())}
    assert len(seen) == 1
    assert StorageWeakRef(other.untyped_storage()) not in seen
    (reference,) = seen
    del x
    assert not reference.expired()
    del view
    assert reference.expired()
