"""Tensors and the rest of Python: numbers, iteration, formatting, buffers, NumPy, DLPack."""

import math
import pickle
import sys

import pytest

import cresset as torch


class TestNumbers:
    def test_one_element_is_a_number(self):
        assert int(torch.tensor([3.7])) == 3 and float(torch.tensor(2)) == 2.0 and complex(torch.tensor(1j)) == 1j
        assert bool(torch.tensor([[0]])) is False and math.sqrt(torch.tensor(9.0)) == 3.0
        assert "abc"[torch.tensor(1)] == "b" and list(range(torch.tensor(2))) == [0, 1]
        assert torch.tensor(2**64 - 1, dtype=torch.uint64).item() == 2**64 - 1
        with pytest.raises(TypeError):
            "abc"[torch.tensor(1.0)]

    def test_iteration_and_unpacking(self):
        a, b = torch.arange(4).reshape(2, 2)
        assert (a.tolist(), b.tolist()) == ([0, 1], [2, 3])
        assert [int(x) for x in torch.arange(3)] == [0, 1, 2] and [int(x) for x in reversed(torch.arange(3))] == [
            2,
            1,
            0,
        ]
        assert 2 in torch.arange(3) and 5 not in torch.arange(3) and len(torch.zeros(4, 2)) == 4

    def test_formatting(self):
        assert (
            f"{torch.tensor(2 / 3):.3f}" == "0.667"
            and f"{torch.tensor(7):>4d}" == "   7"
            and format(torch.tensor(0.25), ".1f") == "0.2"
        )
        assert f"{torch.tensor([1.0])}" == "tensor([1.])"
        with pytest.raises(TypeError, match="Tensor.__format__"):
            f"{torch.tensor([1.0]):.2f}"

    def test_comparison_with_what_is_no_number(self):
        t = torch.ones(2)
        assert (t == None) is False and (t != "a") is True  # noqa: E711
        with pytest.raises(TypeError):
            t < "a"

    def test_tensors_are_keys_by_identity(self):
        a, b = torch.ones(1), torch.ones(1)
        assert {a: 1, b: 2}[b] == 2


class TestBuffers:
    def test_a_tensor_is_a_buffer(self):
        t = torch.arange(6, dtype=torch.int32).reshape(2, 3)
        view = memoryview(t)
        assert (view.shape, view.format, view.tolist()) == ((2, 3), "i", [[0, 1, 2], [3, 4, 5]])
        assert bytes(torch.tensor([1, 2], dtype=torch.uint8)) == b"\x01\x02"

    def test_the_buffer_keeps_the_memory_alive(self):
        view = memoryview(torch.arange(1000))
        torch.zeros(1000, dtype=torch.int64)
        assert view[999] == 999

    def test_a_tensor_with_gradient_or_without_a_format_has_none(self):
        for t in (torch.ones(1, requires_grad=True), torch.ones(1, dtype=torch.bfloat16), torch.ones(1, device="meta")):
            with pytest.raises(BufferError):
                memoryview(t)

    def test_frombuffer_shares_memory(self):
        data = bytearray(8)
        t = torch.frombuffer(data, dtype=torch.int16, offset=2, count=2)
        t[1] = 3
        assert t.tolist() == [0, 3] and data[4] == 3
        with pytest.raises(ValueError):
            torch.frombuffer(data, dtype=torch.int32, offset=1)


class TestNumPy:
    np = pytest.importorskip("numpy")

    @pytest.mark.parametrize(
        "dtype",
        [
            "float64",
            "float32",
            "float16",
            "complex64",
            "complex128",
            "int8",
            "int16",
            "int32",
            "int64",
            "uint8",
            "uint16",
            "uint32",
            "uint64",
            "bool",
        ],
    )
    def test_memory_is_shared_both_ways(self, dtype):
        array = self.np.zeros((2, 3), dtype=dtype)
        t = torch.from_numpy(array)
        assert str(t.dtype) == "torch." + dtype and t.numpy().dtype == array.dtype
        assert t.numpy().dtype.char == array.dtype.char  # NumPy has two types of 8 bytes, and other libraries know one
        t.T[2, 0] = 1
        assert array[0, 2] == 1
        t.numpy()[1, 1] = 1
        assert array[1, 1] == 1 and t.data_ptr() == array.ctypes.data

    def test_strided_views_are_shared(self):
        t = torch.arange(6).reshape(2, 3).T
        assert t.numpy().strides == (8, 24) and self.np.asarray(t).tolist() == [[0, 3], [1, 4], [2, 5]]
        with pytest.raises(ValueError, match="negative"):
            torch.from_numpy(self.np.arange(3)[::-1])

    def test_numpy_functions_take_tensors(self):
        assert self.np.add(torch.arange(3), 1).tolist() == [1, 2, 3]
        assert self.np.array(torch.arange(2), dtype="float32").dtype == "float32"

    def test_operators_with_arrays_and_numpy_numbers(self):
        assert (torch.arange(3) + self.np.arange(3)).tolist() == [0, 2, 4]
        assert (torch.ones(1) * self.np.float64(2)).dtype == torch.float32
        assert (torch.arange(3) == self.np.arange(3)).tolist() == [True, True, True]
        assert torch.tensor([self.np.float64(1), self.np.float64(2)]).dtype == torch.float64

    def test_what_numpy_cannot_hold_or_must_not_see(self):
        with pytest.raises(RuntimeError, match="requires grad"):
            torch.ones(1, requires_grad=True).numpy()
        assert torch.ones(1, requires_grad=True).numpy(force=True).tolist() == [1]
        with pytest.raises(TypeError, match="(?i)bfloat16"):
            torch.ones(1, dtype=torch.bfloat16).numpy()

    def test_memory_that_may_not_be_written_is_read_by_dlpack(self):
        array = self.np.arange(3)
        array.flags.writeable = False
        assert torch.from_dlpack(array).tolist() == [0, 1, 2]

    def test_the_version_of_dlpack_that_is_asked_for_is_given(self):
        x = torch.arange(3)
        assert '"dltensor_versioned"' in repr(x.__dlpack__(max_version=(1, 3)))
        assert '"dltensor"' in repr(x.__dlpack__(max_version=(0, 8))) and '"dltensor"' in repr(x.__dlpack__())
        copied = torch.from_dlpack(x.__dlpack__(max_version=(1, 0), copy=True))
        assert copied.data_ptr() != x.data_ptr() and copied.tolist() == [0, 1, 2]

    def test_a_tensor_is_made_of_what_speaks_dlpack(self):
        x = torch.ones(2)

        class Before1:  # knows nothing of versions
            def __dlpack__(self, stream=None):
                return x.__dlpack__(stream=stream)

        assert torch.from_dlpack(Before1()).data_ptr() == x.data_ptr()
        made = torch.tensor(Before1(), dtype=torch.float64)
        assert made.tolist() == [1.0, 1.0] and made.dtype == torch.float64
        assert torch.tensor(Before1()).data_ptr() != x.data_ptr()

    def test_dlpack_both_ways(self):
        array = self.np.from_dlpack(torch.arange(3))
        assert array.tolist() == [0, 1, 2]
        array = self.np.arange(4.0)
        t = torch.from_dlpack(array)
        t[0] = 7
        assert array[0] == 7


class TestDLPack:
    def test_a_capsule_shares_memory_and_is_used_once(self):
        t = torch.arange(6).reshape(2, 3).T
        capsule = torch.utils.dlpack.to_dlpack(t)
        other = torch.utils.dlpack.from_dlpack(capsule)
        other[0, 0] = 9
        assert t[0, 0].item() == 9 and other.stride() == (1, 3)
        with pytest.raises(RuntimeError, match="once"):
            torch.from_dlpack(capsule)

    def test_an_unused_capsule_lets_go_of_the_tensor(self):
        for _ in range(100):
            torch.arange(10).__dlpack__()

    def test_a_tensor_that_requires_grad_is_not_exported(self):
        with pytest.raises(BufferError):
            torch.ones(1, requires_grad=True).__dlpack__()


def test_the_array_namespace_is_the_library():
    assert torch.ones(1).__array_namespace__() is torch


class TestFromDLPackArguments:
    def test_the_device_is_where_the_tensor_comes_to_lie(self):
        x = torch.arange(3.0)
        assert torch.from_dlpack(x, device="cpu").data_ptr() == x.data_ptr()
        assert torch.from_dlpack(x, device=torch.device("meta")).device.type == "meta"
        with pytest.raises(ValueError, match="without copying"):
            torch.from_dlpack(x, device="meta", copy=False)
        with pytest.raises(AssertionError, match="unsupported device type"):
            torch.from_dlpack(x, device=3)

    def test_copy_is_one_and_its_absence_is_none(self):
        x = torch.arange(3.0)
        assert torch.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
        assert torch.from_dlpack(x, copy=False).data_ptr() == x.data_ptr()

    def test_a_capsule_has_no_choice(self):
        for how in ({"device": "cpu"}, {"copy": True}, {"copy": False}):
            with pytest.raises(AssertionError, match="already a DLPack capsule"):
                torch.from_dlpack(torch.ones(1).__dlpack__(), **how)

    def test_an_export_names_its_device(self):
        x = torch.ones(2)
        assert x.__dlpack_device__() == (torch.utils.dlpack.DLDeviceType.kDLCPU, 0)
        x.__dlpack__(dl_device=(1, 0))
        with pytest.raises(BufferError, match="Unsupported device_type: 16"):
            x.__dlpack__(dl_device=(torch.utils.dlpack.DLDeviceType.kDLHexagon, 0))
        with pytest.raises(ValueError, match="cannot move"):
            x.__dlpack__(dl_device=(2, 0), copy=False)


class TestStoragesFromBytes:
    def test_big_endian_numbers_are_turned_around(self):
        data = bytes([0, 1, 0, 2])
        assert torch.TypedStorage.from_buffer(data, "big", dtype=torch.int16).tolist() == [1, 2]
        assert torch.TypedStorage.from_buffer(data, "little", dtype=torch.int16).tolist() == [256, 512]
        assert torch.FloatStorage.from_buffer(b"\x3f\x80\0\0", byte_order="big").tolist() == [1.0]
        assert torch.UntypedStorage.from_buffer(data, "big", dtype=torch.int16).tolist() == [1, 0, 2, 0]

    def test_the_parts_of_a_complex_number_are_turned_around_each(self):
        parts = b"\x3f\x80\0\0\x40\0\0\0"
        assert torch.ComplexFloatStorage.from_buffer(parts, "big").tolist() == [1 + 2j]

    def test_the_storage_is_a_copy(self):
        data = bytearray(range(4))
        storage = torch.ByteStorage.from_buffer(data, "native")
        data[0] = 9
        assert storage.tolist() == [0, 1, 2, 3]

    def test_count_and_offset_choose_a_part(self):
        assert torch.ShortStorage.from_buffer(bytes(range(8)), "big", 2, 2).tolist() == [0x0203, 0x0405]
        assert torch.ByteStorage.from_buffer(b"", "native").tolist() == []

    def test_bytes_become_bools(self):
        assert torch.UntypedStorage.from_buffer(bytes([0, 1, 7]), "native", dtype=torch.bool).tolist() == [0, 1, 1]

    @pytest.mark.parametrize(
        "args, how, error",
        [
            (("nope",), {}, ValueError), (("big", 9), {}, ValueError), (("big", -1, 1), {}, ValueError),
            (("big", -1, 99), {}, ValueError),
            (("big", -1, -1), {}, ValueError), ((), {}, RuntimeError), (("big",), {"dtype": "x"}, RuntimeError),
        ],
    )  # fmt: skip
    def test_what_does_not_fit_is_refused(self, args, how, error):
        with pytest.raises(error, match="from_buffer"):
            torch.TypedStorage.from_buffer(bytes(8), *args, **{"dtype": torch.int16, **how})

    def test_the_dtype_is_given_once(self):
        with pytest.raises(RuntimeError, match="cannot be None"):
            torch.UntypedStorage.from_buffer(bytes(8), "big")
        with pytest.raises(RuntimeError, match="'dtype' can only be specified"):
            torch.FloatStorage.from_buffer(bytes(8), "big", dtype=torch.float64)


class TestResizingInAMemoryFormat:
    def test_the_strides_are_those_of_the_format(self):
        other = torch.zeros(1, 3, 2, 2)
        last = other.to(memory_format=torch.channels_last)
        assert torch.empty(0).resize_as_(other, memory_format=torch.channels_last).stride() == (12, 1, 6, 3)
        assert torch.empty(0).resize_(1, 3, 2, 2, memory_format=torch.channels_last).stride() == (12, 1, 6, 3)
        assert torch.empty(0).resize_as_(last).stride() == (12, 4, 2, 1)
        assert torch.empty(0).resize_as_(last, memory_format=torch.preserve_format).stride() == (12, 1, 6, 3)
        assert torch.empty(0).resize_as_(other, memory_format=torch.preserve_format).stride() == (12, 4, 2, 1)

    def test_a_format_of_another_rank_is_refused_before_anything_changes(self):
        x = torch.zeros(2)
        with pytest.raises(RuntimeError, match="required rank 4"):
            x.resize_(2, 3, memory_format=torch.channels_last)
        with pytest.raises(RuntimeError, match="Unsupported memory format"):
            x.resize_(2, 3, memory_format=torch.preserve_format)
        assert x.shape == (2,)

    def test_cpu_gives_the_format(self):
        assert torch.zeros(1, 3, 2, 2).cpu(memory_format=torch.channels_last).stride() == (12, 1, 6, 3)


def test_numpy_shows_a_parameter_while_nothing_is_recorded():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        x.numpy()
    with torch.no_grad():
        assert x.numpy().tolist() == [1.0, 1.0]


def test_numpy_without_numpy_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", None)  # as if it were not installed
    with pytest.raises(RuntimeError, match="Numpy is not available.*pip install numpy"):
        torch.ones(2).numpy()


@pytest.mark.parametrize("shape", [(0, 5, 5), (3, 0)])
def test_an_array_without_elements_lends_no_memory(shape):
    numpy = pytest.importorskip("numpy")
    x = torch.as_tensor(numpy.zeros(shape))
    assert x.untyped_storage().nbytes() == 0
    assert pickle.loads(pickle.dumps(x)).shape == shape


def test_a_tensor_lists_the_names_that_it_has():
    x = torch.ones(2, 2)
    names = [name for name in dir(x) if name != "imag"]
    assert "shape" in names and all(hasattr(x, name) for name in names)
