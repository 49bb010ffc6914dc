"""Storages, views, strides, versions and devices of tensors."""

import copy
import gc
import pickle
import weakref

import pytest

import cresset as torch


class TestViews:
    def test_a_view_shares_memory_with_its_base(self):
        base = torch.zeros(2, 3)
        base.t()[2, 1] = 5
        base[0].add_(1)
        base.view(6)[3:4].fill_(7)
        assert base.tolist() == [[1, 1, 1], [7, 0, 5]]
        assert base.t()._base is base and base.t()._is_view()

    def test_strides_and_offsets_say_where_the_elements_are(self):
        t = torch.arange(24).reshape(2, 3, 4)
        part = t[1, 1:, ::2]
        assert (part.shape, part.stride(), part.storage_offset()) == ((2, 2), (4, 2), 16)
        assert part.tolist() == [[16, 18], [20, 22]] and not part.is_contiguous()
        assert t.permute(2, 0, 1).stride() == (1, 12, 4)
        assert torch.ones(3, 1).expand(3, 4).stride() == (1, 0)

    def test_channels_last_keeps_the_shape_and_changes_the_strides(self):
        t = torch.arange(24.0).reshape(1, 2, 3, 4)
        last = t.to(memory_format=torch.channels_last)
        assert last.stride() == (24, 1, 8, 2) and last.shape == t.shape and last.equal(t)
        assert last.is_contiguous(memory_format=torch.channels_last) and not last.is_contiguous()
        assert (last + 1).stride() == last.stride() == last.clone().stride() == torch.empty_like(last).stride()

    def test_as_strided_stays_inside_the_storage(self):
        t = torch.arange(6)
        assert t.as_strided((2, 2), (3, 1), 1).tolist() == [[1, 2], [4, 5]]
        for size, stride, offset in [
            ((7,), (1,), 0),
            ((2,), (1,), 5),
            ((2,), (2**62,), 0),
            ((2,), (1,), 2**62),
            ((2**62, 2), (1, 1), 0),
            ((2,), (-1,), 1),
        ]:
            with pytest.raises(RuntimeError):
                t.as_strided(size, stride, offset)

    def test_a_view_that_would_need_a_copy_is_refused_and_reshape_copies(self):
        t = torch.zeros(2, 3).t()
        with pytest.raises(RuntimeError, match="view size is not compatible"):
            t.view(6)
        assert t.reshape(6).data_ptr() != t.data_ptr()

    def test_the_same_bytes_as_another_dtype(self):
        assert torch.tensor([1.0]).view(torch.int32).item() == 0x3F800000
        assert torch.zeros(4, dtype=torch.uint8).view(torch.int16).shape == (2,)
        with pytest.raises(RuntimeError, match="divisible"):
            torch.zeros(3, dtype=torch.uint8).view(torch.int16)

    def test_in_place_on_elements_that_overlap_is_refused(self):
        with pytest.raises(RuntimeError, match="single memory location"):
            torch.zeros(1).expand(3).add_(1)


class TestVersions:
    def test_every_change_counts_and_views_share_the_count(self):
        t = torch.zeros(4)
        t.add_(1)
        t[1:].mul_(2)
        t[0] = 3
        assert t._version == t[2:]._version == 3

    def test_data_shares_memory_but_not_the_version(self):
        t = torch.zeros(2)
        t.data.add_(1)
        assert t._version == 0 and t.tolist() == [1, 1]

    def test_detach_shares_both(self):
        t = torch.zeros(2)
        t.detach().add_(1)
        assert t._version == 1 and t.tolist() == [1, 1]


class TestStorages:
    def test_a_storage_is_all_the_memory_behind_a_view(self):
        t = torch.arange(4, dtype=torch.int16)
        part = t[2:]
        assert part.untyped_storage().nbytes() == 8 and part.untyped_storage() == t.untyped_storage()
        assert part.storage().tolist() == [0, 1, 2, 3]
        assert part.untyped_storage().tolist() == [0, 0, 1, 0, 2, 0, 3, 0]

    def test_set_uses_other_memory_from_now_on(self):
        t, other = torch.zeros(3), torch.arange(6.0)
        assert t.set_(other.untyped_storage(), 1, (2, 2), (3, 1)) is t
        other[1] = 9
        assert t.tolist() == [[9, 2], [4, 5]]
        assert t.set_(other).is_set_to(other) and t.set_().shape == (0,)
        with pytest.raises(RuntimeError, match="out of bounds"):
            other.set_(other.untyped_storage(), 1, (6,), (1,))
        with pytest.raises(RuntimeError):
            t.set_(torch.zeros(2, dtype=torch.int64))

    def test_resize_keeps_what_fits(self):
        assert torch.arange(6).resize_(2, 2).tolist() == [[0, 1], [2, 3]]
        assert torch.arange(2).resize_(3)[:2].tolist() == [0, 1]

    def test_shared_memory_is_kept_by_views(self):
        t = torch.arange(3)
        view = t[1:]
        assert not t.is_shared()
        t.share_memory_()
        t[1] = 7
        assert t.is_shared() and view.is_shared() and view.tolist() == [7, 2]

    @pytest.mark.skipif(torch.cuda.is_available(), reason="with a GPU memory can be pinned")
    def test_without_a_gpu_memory_cannot_be_pinned(self):
        assert not torch.zeros(2).is_pinned()
        with pytest.raises(RuntimeError, match="accelerator"):
            torch.zeros(2).pin_memory()

    def test_data_can_be_exchanged(self):
        t = torch.zeros(2, requires_grad=True)
        t.data = torch.ones(3)
        assert t.tolist() == [1, 1, 1] and t.requires_grad and t.is_leaf


class TestConversion:
    def test_to_gives_the_tensor_itself_when_nothing_changes(self):
        t = torch.zeros(2)
        assert t.to(torch.float32) is t is t.to("cpu") is t.float() is t.to(t) is t.cpu() is t.contiguous()
        assert t.to(torch.float32, copy=True) is not t
        for changed in (
            t.to(torch.int8),
            t.to("cpu", torch.int8),
            t.to(dtype=torch.int8),
            t.char(),
            t.type(torch.int8),
            t.to(torch.zeros(0, dtype=torch.int8)),
        ):
            assert changed.dtype == torch.int8

    def test_old_type_names(self):
        assert (
            torch.zeros(1).type() == "torch.FloatTensor"
            and torch.zeros(1).type("torch.LongTensor").dtype == torch.int64
        )
        assert torch.LongTensor([1, 2]).dtype == torch.int64 and torch.LongTensor(2, 3).shape == (2, 3)
        assert isinstance(torch.zeros(1), torch.FloatTensor) and not isinstance(torch.zeros(1), torch.LongTensor)

    @pytest.mark.parametrize("value", [0.0, 1.0, -2.5, 100.0])
    @pytest.mark.parametrize(
        "dtype", [torch.float16, torch.bfloat16, torch.float8_e5m2, torch.float64, torch.complex64, torch.complex32]
    )
    def test_small_numbers_survive_narrow_types(self, value, dtype):
        assert torch.tensor([value]).to(dtype).to(torch.float64).item() == (
            96.0 if (dtype, value) == (torch.float8_e5m2, 100.0) else value
        )

    def test_float8_overflow(self):
        big = torch.tensor([1000.0, -1000.0, 1e6])
        assert big.to(torch.float8_e4m3fn).float().tolist() == [448.0, -448.0, 448.0]
        assert big.to(torch.float8_e5m2).float().tolist() == [1024.0, -1024.0, float("inf")]

    def test_powers_of_two_in_float8_e8m0fnu(self):
        assert torch.tensor([1.0, 1.4, 1.5, 3.0, 0.25]).to(torch.float8_e8m0fnu).float().tolist() == [1, 1, 2, 4, 0.25]


class TestDevices:
    def test_a_meta_tensor_has_a_shape_and_no_data(self):
        t = torch.zeros(2, 3, device="meta")
        assert (t @ t.T).shape == (2, 2) and (t + 1).device.type == "meta" and t.sum(0).shape == (3,)
        for read in (t.tolist, lambda: t.sum().item(), lambda: bool(t[0, 0]), lambda: t.to("cpu")):
            with pytest.raises((RuntimeError, NotImplementedError)):
                read()

    def test_a_meta_tensor_is_resized_and_set(self):
        t = torch.zeros(2, 3, device="meta")
        assert t.resize_(4, 5) is t and t.shape == (4, 5) and t.untyped_storage().nbytes() == 80
        assert t.resize_(2).stride() == (1,) and t.untyped_storage().nbytes() == 80
        assert t.resize_(1, 2, 3, 4, memory_format=torch.channels_last).stride() == (24, 1, 8, 2)
        assert t.resize_as_(torch.empty(3, 1, device="meta")).shape == (3, 1)
        source = torch.zeros(2, 2, device="meta").T
        assert t.set_(source).shape == (2, 2) and t.stride() == (1, 2) and t.is_set_to(source)

    def test_devices_do_not_mix(self):
        with pytest.raises(RuntimeError, match="device"):
            torch.zeros(3, device="meta") + torch.zeros(3)
        with pytest.raises(RuntimeError, match="device"):
            torch.binomial(torch.tensor(1.0), torch.zeros(2, 3, device="meta"))
        assert (torch.zeros(3, device="meta") + torch.tensor(1.0)).is_meta
        assert torch.zeros_like(torch.zeros(3, device="meta"), device="cpu").tolist() == [0, 0, 0]

    def test_device_as_context_and_as_default(self):
        with torch.device("meta"):
            assert torch.zeros(1).is_meta and torch.tensor([1.0]).is_meta and torch.arange(3).is_meta
            assert torch.zeros(1, device="cpu").is_cpu
        assert torch.zeros(1).is_cpu
        torch.set_default_device("meta")
        try:
            assert torch.rand(2).is_meta and torch.get_default_device() == torch.device("meta")
        finally:
            torch.set_default_device(None)
        assert torch.zeros(1).is_cpu

    def test_device_objects(self):
        assert torch.device("cuda", 1) == torch.device("cuda:1") != torch.device("cuda:0")
        assert repr(torch.device("cuda:1")) == "device(type='cuda', index=1)" and str(torch.device("cpu")) == "cpu"
        assert pickle.loads(pickle.dumps(torch.device("cuda:1"))) == torch.device("cuda:1")
        with pytest.raises(RuntimeError, match="device"):
            torch.device("banana")


class TestIdentity:
    def test_the_same_object_comes_back(self):
        t = torch.zeros(2, requires_grad=True)
        y = (t * 2).sum()
        y.backward()
        assert t.grad is t.grad and y.grad_fn is y.grad_fn

    def test_weak_references_follow_the_object(self):
        t = torch.zeros(2)
        ref = weakref.ref(t)
        assert ref() is t
        del t
        assert ref() is None

    def test_what_a_weak_reference_led_to_outlives_the_tensor_whose_gradient_it_was(self):
        leaf = torch.ones(2, requires_grad=True)
        leaf.sum().backward()
        ref = weakref.ref(leaf.grad)
        gradient = ref()
        del leaf
        gc.collect()
        assert (gradient + 1).tolist() == [2, 2] and ref() is gradient
        del gradient
        assert ref() is None

    def test_attributes_live_as_long_as_the_graph_holds_the_tensor(self):
        t = torch.zeros(2, requires_grad=True)
        t.note = "kept"
        y = t * t
        address = id(t)
        del t
        gc.collect()
        leaf = y.grad_fn.next_functions[0][0].variable
        assert id(leaf) == address and leaf.note == "kept"

    def test_a_cycle_through_an_attribute_is_collected(self):
        t = torch.zeros(2)
        t.me = t
        ref = weakref.ref(t)
        del t
        gc.collect()
        assert ref() is None


class TestCopies:
    def test_deepcopy_keeps_sharing(self):
        a = torch.zeros(3)
        x, y = copy.deepcopy((a, a[1:]))
        x[1] = 5
        assert y.tolist() == [5, 0] and a.tolist() == [0, 0, 0]

    @pytest.mark.parametrize("other", [lambda a: a.data, lambda a: a.data[1:], lambda a: a.unbind()[1].data])
    def test_deepcopy_keeps_sharing_with_data(self, other):
        a = torch.zeros(3)
        x, y = copy.deepcopy((a, other(a)))
        assert x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr() != a.data_ptr()

    def test_copy_shares_memory(self):
        a = torch.zeros(3)
        assert copy.copy(a).data_ptr() == a.data_ptr()

    @pytest.mark.parametrize(
        "dtype", [torch.float32, torch.bfloat16, torch.complex64, torch.bool, torch.float8_e5m2, torch.uint64]
    )
    def test_pickle_keeps_dtype_strides_and_values(self, dtype):
        t = torch.arange(6).reshape(2, 3).to(dtype).t()
        back = pickle.loads(pickle.dumps(t))
        assert (back.dtype, back.stride(), back.shape) == (t.dtype, t.stride(), t.shape)
        assert back.to(torch.float64).tolist() == t.to(torch.float64).tolist()

    def test_pickle_keeps_the_gradient_flag_and_attributes(self):
        a = torch.zeros(3, requires_grad=True)
        a.note = [1]
        back = pickle.loads(pickle.dumps(a))
        assert back.tolist() == [0, 0, 0] and back.requires_grad and back.note == [1]

    @pytest.mark.parametrize(
        "thing", [torch.float32, torch.strided, torch.channels_last, torch.Size([1, 2]), torch.device("cpu")], ids=str
    )
    def test_small_objects_pickle_and_copy(self, thing):
        assert pickle.loads(pickle.dumps(thing)) == copy.deepcopy(thing) == copy.copy(thing) == thing
        assert type(pickle.loads(pickle.dumps(thing))) is type(thing)


def test_a_tensor_of_a_storage_reads_its_bytes_as_the_dtype_and_shares_them():
    numbers = torch.tensor([1.5, -2.0])
    assert torch.tensor(numbers.untyped_storage(), dtype=torch.float32).tolist() == [1.5, -2.0]
    assert torch.tensor(numbers.untyped_storage(), dtype=torch.int32).tolist() == numbers.view(torch.int32).tolist()
    assert torch.as_tensor(numbers.storage()).tolist() == [1.5, -2.0]
    assert torch.ones(1).new_tensor(numbers.untyped_storage()).tolist() == [1.5, -2.0]
    assert torch.tensor(torch.UntypedStorage(0)).dtype == torch.float32
    shared = torch.tensor(numbers.storage())
    shared[1] = 4
    assert numbers.tolist() == [1.5, 4.0]
    with pytest.raises(
        RuntimeError, match="Expected a Storage of type torch.float64 or an UntypedStorage, but got torch.float32"
    ):
        torch.tensor(numbers.storage(), dtype=torch.float64)


class TestStoragesAsOtherPackagesReadThem:
    def test_a_tensor_that_shares_its_storage_is_found_by_address_and_size(self):
        x = torch.arange(6.0)
        for view in (x[2:], x.view(2, 3).t()):
            assert view.untyped_storage().data_ptr() == x.data_ptr() and view.untyped_storage().nbytes() == 24
            typed = view._typed_storage()
            assert (typed._data_ptr(), typed._size(), typed._nbytes(), typed._element_size()) == (
                x.data_ptr(),
                6,
                24,
                4,
            )
            assert typed._cdata == x.untyped_storage()._cdata and typed.pickle_storage_type() == "FloatStorage"

    def test_storages_without_bytes_have_no_address(self):
        assert torch.empty(3, device="meta").untyped_storage().data_ptr() == 0
        assert torch.empty(3, device="meta").untyped_storage().nbytes() == 12
        assert torch.empty(0).untyped_storage().nbytes() == 0

    def test_bytes_as_numbers(self):
        storage = torch.UntypedStorage([1, 0, 2, 0])
        assert storage.float().tolist() == [1, 0, 2, 0] and storage.long().dtype == torch.int64
        assert storage.untyped() is storage and storage.new().nbytes() == 0 and storage.get_device() is None
        storage.byteswap(torch.int16)
        assert storage.tolist() == [0, 1, 0, 2] and storage.to(device="cpu").nbytes() == 4
        assert isinstance(storage, torch.storage._StorageBase) and storage.resizable() and storage.filename is None


def test_a_storage_is_copied_from_one_of_its_size():
    two, one = torch.zeros((), dtype=torch.float16), torch.ones((), dtype=torch.int8)
    with pytest.raises(RuntimeError, match="size does not match, self was 2 bytes but src was 1 bytes"):
        two.untyped_storage().copy_(one.untyped_storage())
    assert two.item() == 0.0


@pytest.mark.parametrize("shape", [(5,), (5, 0)])
def test_what_was_pickled_can_be_resized(shape):
    again = pickle.loads(pickle.dumps(torch.ones(shape)))
    assert again.untyped_storage().nbytes() == torch.ones(shape).nbytes
    assert again.resize_(40).shape == (40,)


def test_data_is_set_to_the_tensor():
    x = torch.ones(2, 4)
    assert x.is_set_to(x.data) and x.is_set_to(x.detach())
    assert not x.is_set_to(x.clone()) and not x.is_set_to(x.view(4, 2))


def test_is_pinned_takes_a_device_and_looks_at_it():
    x = torch.ones(2)
    assert not x.is_pinned() and not x.is_pinned("cuda") and not x.is_pinned(device=None)
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        x.is_pinned("bogus")


def test_split_takes_the_names_of_its_arguments():
    pieces = torch.split(tensor=torch.arange(4), split_size_or_sections=[1, 3])
    assert [piece.tolist() for piece in pieces] == [[0], [1, 2, 3]]
    assert len(torch.split(torch.arange(4), split_size_or_sections=2, dim=0)) == 2


def test_resizing_to_the_same_sizes_does_nothing():
    x = torch.arange(6)[::2]
    assert x.resize_(3).stride() == (2,) and x._version == 0
    assert x.resize_(3, memory_format=torch.contiguous_format).stride() == (1,) and x._version == 0


def test_an_out_of_other_sizes_is_as_it_was_when_the_kernel_refuses():
    for call, error in (
        (lambda out: torch.amax(torch.ones(1, 2, 4, dtype=out.dtype), 0, out=out), NotImplementedError),
        (
            lambda out: torch.index_select(torch.ones(3, dtype=out.dtype), 0, torch.tensor([1, 5]), out=out),
            IndexError,
        ),
        (lambda out: torch.take(torch.ones(3, dtype=out.dtype), torch.tensor([1, 5]), out=out), IndexError),
    ):
        out = torch.tensor([1 + 1j, 2, 3], dtype=torch.complex64)
        with pytest.raises(error):
            call(out)
        assert out.tolist() == [1 + 1j, 2, 3] and out.untyped_storage().nbytes() == 24


@pytest.mark.parametrize("function", [torch.floor_divide, torch.remainder, torch.fmod])
def test_an_out_is_as_it_was_when_a_divisor_is_zero(function):
    dividend, divisor = torch.tensor([4, 5, 6], dtype=torch.int32), torch.tensor([3, 3, 0], dtype=torch.int32)
    for out in (torch.full((3,), 7), torch.full((2,), 7), dividend):
        before, size = out.tolist(), out.untyped_storage().nbytes()
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            function(dividend, divisor, out=out)
        assert out.tolist() == before and out.untyped_storage().nbytes() == size


def test_arange_of_bools_is_refused_before_out_is_resized():
    x = torch.zeros(2, 4, dtype=torch.bool)
    with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
        torch.arange(4, out=x)
    assert x.shape == (2, 4)


def test_other_memory_for_a_recorded_tensor_is_refused():
    x = torch.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="derivative for set_ is not implemented"):
        x.set_(torch.zeros(2))
    assert x.tolist() == [2.0, 2.0]


def test_a_refused_set_counts_for_nothing():
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="out of bounds"):
        x.set_(torch.zeros(1).untyped_storage(), 4, (2,), (1,))
    assert x._version == 0 and x.tolist() == [1.0, 1.0]


def test_a_tensor_of_the_meta_device_takes_other_sizes():
    x = torch.empty(0, device="meta")
    assert x.resize_(2, 3) is x and x.shape == (2, 3) and x.stride() == (3, 1)
    x.resize_(2, 2, 2, 2, memory_format=torch.channels_last)
    assert x.stride() == (8, 1, 4, 2) and x.untyped_storage().nbytes() == 64
