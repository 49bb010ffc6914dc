"""Storages: casts, copies, those without memory, and tensors on files."""

import copy
import gc
import struct
import sys
import threading
import weakref

import pytest

import cresset
import cresset as torch


def test_elements_are_cast_by_the_methods_named_after_dtypes():
    storage = torch.FloatStorage([1.5, 0.0])
    assert storage.double().dtype == torch.float64 and storage.int().tolist() == [1, 0]
    assert storage.bool().tolist() == [True, False] and storage.complex_float()[0] == 1.5 + 0j
    assert storage.half().dtype == torch.float16 and storage.resizable()
    copied = copy.copy(storage)
    copied[0] = 9.0
    assert storage[0] == 1.5 and sys.getsizeof(storage) >= 8


def test_a_storage_of_the_meta_device_has_no_elements():
    storage = torch.TypedStorage([1, 2], dtype=torch.int64, device="meta")
    assert storage.nbytes() == 16
    with pytest.raises(NotImplementedError, match="Not available for 'meta'"):
        storage[0]
    with pytest.raises(NotImplementedError, match="Not available"):
        storage.untyped()[0]
    with pytest.raises(RuntimeError, match="only available on CPU"):
        storage.share_memory_()


def test_a_tensor_takes_only_a_storage_of_its_dtype():
    x = torch.tensor([])
    with pytest.raises(RuntimeError, match="Expected a Storage of type torch.float32"):
        x.set_(torch.arange(2).storage())
    assert x.set_(torch.ones(2).storage()).tolist() == [1.0, 1.0]


def test_the_names_of_storage_types_are_known_by_dtype():
    assert torch.storage._dtype_to_storage_type_map()[torch.float32] == "FloatStorage"


def test_a_tensor_lies_on_a_file(tmp_path):
    path = tmp_path / "numbers"
    shared = torch.from_file(path, shared=True, size=3, dtype=torch.int16)
    shared.copy_(torch.tensor([1, 2, 3]))
    assert path.read_bytes() == bytes([1, 0, 2, 0, 3, 0])
    own = torch.from_file(path, size=2, dtype=torch.int16)
    assert shared.untyped_storage().filename == str(path) and own.untyped_storage().filename is None
    own.zero_()
    assert path.read_bytes()[0] == 1
    with pytest.raises(RuntimeError, match="on the CPU"):
        torch.from_file(path, size=1, device="meta")


@pytest.mark.parametrize(("dtype", "filled"), [(torch.int8, 127), (torch.int64, 2**63 - 1), (torch.bool, True)])
def test_new_elements_of_a_resized_tensor_are_conspicuous_where_that_is_asked_for(dtype, filled):
    x = torch.zeros(2, dtype=dtype)
    torch.use_deterministic_algorithms(True)
    try:
        x.resize_(4)
        y = torch.zeros(1).resize_(3)
    finally:
        torch.use_deterministic_algorithms(False)
    assert x.tolist() == [0, 0, filled, filled] and y[0] == 0 and bool(y[1:].isnan().all())


def test_a_part_of_a_storage_is_a_storage_that_shares_the_memory():
    whole = cresset.arange(32, dtype=cresset.uint8).untyped_storage()
    part = whole[16:20]
    assert type(part) is cresset.UntypedStorage and part.tolist() == [16, 17, 18, 19]
    bytes = cresset.asarray(part, dtype=cresset.uint8)
    bytes[0] = 99
    assert whole[16] == 99 and bytes.storage_offset() == 0
    assert whole[-3:].tolist() == [29, 30, 31] and whole[5:5].nbytes() == 0
    with pytest.raises(RuntimeError, match="only a step of 1 is supported"):
        whole[::2]


def test_a_part_that_begins_anywhere_can_be_read_as_any_dtype():
    whole = cresset.frombuffer(bytearray(b"abc" + struct.pack("<2f", 1.5, 2.5)), dtype=cresset.uint8).untyped_storage()
    assert cresset.asarray(whole[3:], dtype=cresset.uint8).view(cresset.float32).tolist() == [1.5, 2.5]
    assert cresset.asarray(whole[3:], dtype=cresset.float32).tolist() == [1.5, 2.5]


def test_a_typed_storage_as_a_tensor_keeps_its_dtype():
    storage = cresset.ones(2, dtype=cresset.int16).storage()
    assert cresset.asarray(storage).dtype == cresset.int16
    assert cresset.asarray(storage, dtype=cresset.float64).tolist() == [1.0, 1.0]


def test_a_tensor_of_the_cpu_has_no_index():
    x = cresset.zeros(2, device="cpu:0")
    assert x.device == cresset.device("cpu") and cresset.ones(2).to("cpu:0").device.index is None
    assert (x + cresset.ones(2)).tolist() == [1, 1]
    assert cresset.nn.Linear(2, 2).to("cpu:0").weight.device.index is None


@pytest.mark.parametrize(
    "name", ["Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool"]
)
def test_a_tensor_says_which_class_stands_for_its_storages(name):
    kind = getattr(torch, name + "Storage")
    x = torch.ones(1, dtype=kind.dtype)
    assert x.storage_type() is kind and isinstance(x.storage(), kind)


def test_storages_swap_their_memory():
    x, y = torch.arange(4.0), torch.ones(4)
    part, ours, theirs = x[1:3], x.untyped_storage(), y.untyped_storage()
    ours._swap_data_ptr_(theirs)
    assert x.tolist() == [1.0] * 4 and part.tolist() == [1.0, 1.0] and y.tolist() == [0.0, 1.0, 2.0, 3.0]
    ours.resize_(0)
    ours._swap_data_ptr_(theirs)
    assert part.tolist() == [1.0, 2.0] and theirs.nbytes() == 0
    with pytest.raises(RuntimeError):
        y.sum()  # its memory is gone
    ours._swap_data_ptr_(ours)
    with pytest.raises(RuntimeError, match="same nbytes"):
        ours._swap_data_ptr_(torch.ones(5).untyped_storage())
    with pytest.raises(RuntimeError, match="same device"):
        ours._swap_data_ptr_(torch.ones(4, device="meta").untyped_storage())


def test_shared_memory_is_handed_on_by_its_file_descriptor():
    storage = torch.arange(3, dtype=torch.uint8).untyped_storage()
    descriptor, size = storage._share_fd_cpu_()
    other = torch.UntypedStorage._new_shared_fd_cpu(descriptor, size)
    other[0] = 9
    assert storage.tolist() == [9, 1, 2] and storage.is_shared()
    with pytest.raises(RuntimeError, match="has no name"):
        storage._share_filename_cpu_()
    with pytest.raises(RuntimeError, match="only available on CPU"):
        torch.TypedStorage(2, dtype=torch.int64, device="meta")._share_fd_cpu_()


def test_a_storage_is_written_to_a_file(tmp_path):
    with open(tmp_path / "numbers", "w+b") as file:
        torch.tensor([1, 2], dtype=torch.int16).untyped_storage()._write_file(file, True, True, 2)
        file.seek(0)
        assert file.read() == struct.pack("<qhh", 2, 1, 2)
        with pytest.raises(NotImplementedError, match="Cannot copy out"):
            torch.UntypedStorage(2, device="meta")._write_file(file, True, True, 1)


def test_a_storage_without_memory_has_no_list():
    with pytest.raises(NotImplementedError, match="Not available"):
        torch.TypedStorage([1, 2], dtype=torch.int64, device="meta").tolist()


def test_a_file_is_named_by_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TypeError, match="argument 'filename' .* must be str, not Tensor"):
        cresset.from_file(cresset.empty(0, 3), shared=True)
    assert not list(tmp_path.iterdir())
    assert cresset.from_file(tmp_path / "numbers", shared=True, size=2).tolist() == [0, 0]


def test_nothing_is_copied_out_of_what_has_no_memory():
    target = cresset.ones(2)
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        target.copy_(cresset.ones(2, device="meta"))
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        cresset.TypedStorage([1, 2], dtype=cresset.int8).copy_(
            cresset.TypedStorage([3, 4], device="meta", dtype=cresset.int8)
        )
    assert target.tolist() == [1.0, 1.0] and cresset.ones(2, device="meta").copy_(target).is_meta


def test_memory_that_numpy_holds_cannot_be_resized():
    numpy = pytest.importorskip("numpy")
    x = torch.zeros(3)
    assert x.untyped_storage().resizable() and x.storage().resizable()
    assert isinstance(x.numpy(), numpy.ndarray)
    assert not x.untyped_storage().resizable()


@pytest.mark.parametrize("word", ["QUInt8", "QInt8", "QInt32", "QUInt4x2", "QUInt2x4"])
def test_storages_of_quantized_numbers_hold_whole_ones(word):
    storage = getattr(torch, word + "Storage")(4)
    storage[:] = 1
    storage[2] = 7
    assert storage.tolist() == [1, 1, 7, 1] and storage._deepcopy({}).tolist() == [1, 1, 7, 1]


def test_the_storage_of_new_tensors_follows_the_default_dtype():
    assert torch.Storage is torch.FloatStorage
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.Storage is torch.DoubleStorage
    finally:
        torch.set_default_dtype(torch.float32)


def test_other_sizes_over_a_storage_make_it_as_large_as_they_need():
    x = torch.ones(1)
    x.set_(x.untyped_storage(), 2, (2, 3))
    assert x.storage_offset() == 2 and x.shape == (2, 3) and x.untyped_storage().nbytes() == (2 + 6) * 4
    x.set_(x.untyped_storage(), 0, (3, 2), (4, 1))
    assert x.untyped_storage().nbytes() == (2 * 4 + 1 + 1) * 4
    with pytest.raises(RuntimeError, match="out of bounds for storage of size"):  # sizes that stay do not
        x.set_(x.untyped_storage(), 2**20, (3, 2))


class Named(torch.UntypedStorage):
    """A storage with a class of its own, which counts how many ended."""

    ended = 0

    def __del__(self):
        Named.ended += 1


class TestTheObjectOfAStorage:
    def test_is_one_for_all_tensors_on_the_memory(self):
        x = torch.zeros(4)
        storage = x.untyped_storage()
        for other in (x, x.view(2, 2), x.detach(), x.data, torch.zeros(1).set_(x)):
            assert other.untyped_storage() is storage
        assert x.storage().untyped() is storage and x.clone().untyped_storage() is not storage

    def test_is_kept_with_all_that_is_on_it_as_long_as_a_tensor_has_the_memory(self):
        x = torch.zeros(2)
        x.untyped_storage().owner = "me"
        seen = weakref.ref(x.untyped_storage())
        assert x.untyped_storage().owner == "me" and seen() is x.untyped_storage()
        storage = x.untyped_storage()
        del x
        assert seen() is storage
        del storage
        assert seen() is None

    def test_keeps_its_class_and_ends_once(self):
        Named.ended = 0
        x = torch.tensor(Named(16))
        for _ in range(2):
            assert type(x.untyped_storage()) is Named and type(x[1:].untyped_storage()) is Named
        assert Named.ended == 0
        storage = x.untyped_storage()
        del x
        assert Named.ended == 0 and type(storage.clone()) is Named
        Named.ended = 0
        del storage
        assert Named.ended == 1

    def test_is_collected_when_it_refers_to_itself(self):
        storage = torch.UntypedStorage(2)
        storage.me, seen = storage, weakref.ref(storage)
        x = torch.tensor(storage, dtype=torch.uint8)
        del storage
        gc.collect()
        assert seen() is x.untyped_storage()
        del x
        gc.collect()
        assert seen() is None

    def test_counts_as_one_that_holds_the_storage(self):
        x = torch.zeros(2)
        storage = x.untyped_storage()
        assert torch._C._storage_Use_Count(storage._cdata) == 2
        del x
        assert torch._C._storage_Use_Count(storage._cdata) == 1

    def test_outlives_tensors_that_threads_drop(self):
        storage = torch.UntypedStorage(64)
        seen = weakref.ref(storage)

        def use(storage):
            for _ in range(500):
                x = torch.tensor(storage, dtype=torch.uint8)
                (x + x).sum()
                assert x.untyped_storage() is storage

        threads = [threading.Thread(target=use, args=(storage,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert torch._C._storage_Use_Count(storage._cdata) == 1 and seen() is storage
        del storage, threads, thread
        gc.collect()
        assert seen() is None

    def test_is_made_by_subclasses_of_the_base_alone(self):
        with pytest.raises(RuntimeError, match="Cannot directly construct StorageBase"):
            torch._C.StorageBase()

        class Own(torch._C.StorageBase):
            def __new__(cls, *args):
                return super().__new__(cls, *args)

        assert isinstance(Own(torch.UntypedStorage(5)), torch._C.StorageBase)
        assert issubclass(torch.UntypedStorage, torch._C.StorageBase)

    def test_stays_when_its_memory_is_resized(self):
        x = torch.ones(2)
        storage = x.untyped_storage()
        x.resize_(100)
        assert x.untyped_storage() is storage and storage.nbytes() == 400
        storage.resize_(8)
        assert len(storage) == 8 and storage.tolist() == list(struct.pack("ff", 1, 1))


def test_storages_of_the_gpu_are_not_made_of_a_buffer():
    for call in (cresset.cuda.ByteStorage.from_buffer, cresset.cuda.FloatStorage.from_buffer):
        with pytest.raises(RuntimeError, match="Not available for CUDA storage"):
            call(b"1234", "little")


def test_a_storage_is_printed_element_by_element():
    memory = cresset.tensor([1, 2], dtype=cresset.uint8).untyped_storage()
    assert repr(memory) == " 1\n 2\n[torch.storage.UntypedStorage(device=cpu) of size 2]"
    assert (
        repr(cresset.UntypedStorage(3, device="meta")) == "...\n[torch.storage.UntypedStorage(device=meta) of size 3]"
    )
    typed = cresset.TypedStorage([0.5], dtype=cresset.float64)
    assert repr(typed) == " 0.5\n[torch.storage.TypedStorage(dtype=torch.float64, device=cpu) of size 1]"
