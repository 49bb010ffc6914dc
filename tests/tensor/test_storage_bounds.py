"""Memory that others look at stays where it is, and nobody reads beyond the end of a storage."""

import copy
import gc
import io
import pickle

import pytest

import cresset as torch

NOT_RESIZABLE = "not resizable"
OUT_OF_BOUNDS = "out of bounds for storage of size"


class TestMemoryInOtherHands:
    @pytest.mark.parametrize("resize", [
        lambda x: x.resize_(1000),
        lambda x: x.resize_as_(torch.zeros(1000)),
        lambda x: x.untyped_storage().resize_(0),
        lambda x: x.untyped_storage().resize_(4000),
        lambda x: x.data.resize_(1000),
        lambda x: torch.arange(1000.0, out=x),
        lambda x: torch.cat([torch.zeros(1000)], out=x),
        lambda x: torch.add(torch.zeros(1000), 1, out=x),
        lambda x: torch.kron(torch.zeros(100), torch.zeros(10), out=x),
        lambda x: torch.masked_select(torch.ones(1000), torch.ones(1000) > 0, out=x),
    ])  # fmt: skip
    @pytest.mark.parametrize("share", [
        lambda x: x.numpy(),
        lambda x: __import__("numpy").asarray(x),
        lambda x: memoryview(x),
        lambda x: x.__dlpack__(),
        lambda x: torch.from_dlpack(x),
        lambda x: x[2:4].numpy(),
        lambda x: x.data.numpy(),
        lambda x: x.detach().__array__(),
    ])  # fmt: skip
    @pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
    @pytest.mark.filterwarnings("ignore:.*The out tensor will be resized")
    def test_is_not_resized(self, share, resize):
        pytest.importorskip("numpy")
        x = torch.arange(6.0)
        shared = share(x)
        with pytest.raises(RuntimeError, match=NOT_RESIZABLE):
            resize(x)
        assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
        del shared

    @pytest.mark.parametrize("make", [
        lambda np: torch.from_numpy(np.zeros(6, dtype="float32")),
        lambda np: torch.frombuffer(bytearray(24), dtype=torch.float32),
        lambda np: torch.from_dlpack(np.zeros(6, dtype="float32")),
        lambda np: torch.zeros(6).share_memory_(),
    ])  # fmt: skip
    def test_that_came_from_others_is_not_resized(self, make):
        x = make(pytest.importorskip("numpy"))
        for resize in (
            lambda: x.resize_(1000),
            lambda: x.untyped_storage().resize_(0),
            lambda: torch.arange(1000.0, out=x.resize_(0)),
        ):
            with pytest.raises(RuntimeError, match=NOT_RESIZABLE):
                resize()

    def test_what_was_a_numpy_array_is_never_resized_and_a_buffer_is_when_it_is_released(self):
        pytest.importorskip("numpy")
        x = torch.zeros(3)
        x.numpy()
        with pytest.raises(RuntimeError, match=NOT_RESIZABLE):
            x.resize_(1000)
        y = torch.zeros(3)
        view = memoryview(y)
        view.release()
        assert y.resize_(1000).numel() == 1000
        capsule = y.__dlpack__()
        with pytest.raises(RuntimeError, match=NOT_RESIZABLE):
            y.resize_(2000)
        del capsule
        assert y.resize_(2000).numel() == 2000

    def test_that_fits_in_place_may_change_its_shape(self):
        x = torch.arange(6.0)
        view = memoryview(x)
        assert x.resize_(2, 2).tolist() == [[0.0, 1.0], [2.0, 3.0]] and view.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]

    def test_outlives_the_tensor_that_takes_another(self):
        np = pytest.importorskip("numpy")
        x = torch.full((4096,), 7.0)
        view, capsule = memoryview(x), x.__dlpack__()
        x.set_(torch.zeros(2))
        x.data = torch.zeros(3)
        gc.collect()
        fresh = torch.zeros(4096)
        assert view[0] == view[4095] == 7.0 and torch.from_dlpack(capsule).sum().item() == 7.0 * 4096
        y = torch.full((4096,), 3.0)
        array = y.numpy()
        y.share_memory_()
        y.fill_(5)
        assert np.all(array == 3.0) and y[0].item() == 5.0 and fresh[0].item() == 0.0

    def test_seen_through_data_follows_when_it_is_resized(self):
        x = torch.arange(4.0)
        alias = x.data
        x.resize_(5000)
        x[0] = 9
        assert alias.tolist() == [9.0, 1.0, 2.0, 3.0]
        alias.resize_(20000)
        alias[1] = 8
        assert x[:4].tolist() == [9.0, 8.0, 2.0, 3.0]
        other = alias.data
        x.share_memory_()
        x[2] = 7
        assert alias[:4].tolist() == other[:4].tolist() == [9.0, 8.0, 7.0, 3.0] and other.is_shared()
        del x
        gc.collect()
        assert alias[:4].tolist() == [9.0, 8.0, 7.0, 3.0]


USES = {
    "sum": lambda t: t.sum(),
    "add": lambda t: t + 1,
    "add_": lambda t: t.add_(1),
    "mul by itself": lambda t: t * t,
    "out=": lambda t: torch.add(torch.ones(8), 1, out=t),
    "mm out=": lambda t: torch.mm(torch.ones(2, 2), torch.ones(2, 4), out=t.view(2, 4)),
    "fill_": lambda t: t.fill_(1),
    "copy_ to": lambda t: t.copy_(torch.ones(8)),
    "copy_ from": lambda t: torch.ones(8).copy_(t),
    "cat": lambda t: torch.cat([torch.ones(3), t]),
    "stack": lambda t: torch.stack([t, t]),
    "clone": lambda t: t.clone(),
    "contiguous": lambda t: t.view(2, 4).t().contiguous(),
    "to": lambda t: t.to(torch.float64),
    "tolist": lambda t: t.tolist(),
    "item": lambda t: t[7].item(),
    "bool": lambda t: bool(t[7]),
    "repr": lambda t: repr(t),
    "numpy": lambda t: t.numpy(),
    "memoryview": lambda t: memoryview(t),
    "dlpack": lambda t: t.__dlpack__(),
    "index": lambda t: t[torch.tensor([7])],
    "mask": lambda t: t[t > 0],
    "setitem": lambda t: t.__setitem__(7, 1.0),
    "setitem by index": lambda t: t.__setitem__(torch.tensor([7]), 1.0),
    "sort": lambda t: t.sort(),
    "matmul": lambda t: t.view(2, 4) @ t.view(4, 2),
    "linear": lambda t: torch.nn.functional.linear(t, torch.ones(3, 8)),
    "conv": lambda t: torch.nn.functional.conv1d(t.view(1, 2, 4), torch.ones(1, 2, 2)),
    "softmax": lambda t: t.softmax(0),
    "cumsum": lambda t: t.cumsum(0),
    "normal_": lambda t: t.normal_(),
    "in a list": lambda t: torch.tensor([t, t]),
    "deepcopy": lambda t: copy.deepcopy(t),
    "pickle": lambda t: pickle.loads(pickle.dumps(t)),
    "save": lambda t: torch.load((torch.save(t, file := io.BytesIO()), file.seek(0), file)[2]),
    "foreach": lambda t: torch._foreach_add([t], 1),
    "equal": lambda t: torch.equal(t, torch.ones(8)),
    "through data": lambda t: t.data.sum(),
    "through a view": lambda t: t[4:].sum(),
    "other dtype": lambda t: t.view(torch.int32).sum(),
    "long": lambda t: t.expand(100000, 8).sum(),
}


class TestStoragesThatWereCut:
    @pytest.mark.parametrize("left", [0, 16, 28])
    @pytest.mark.parametrize("use", USES)
    def test_their_tensors_cannot_be_read_or_written(self, use, left):
        if use == "numpy":
            pytest.importorskip("numpy")
        t = torch.arange(8.0)
        t.untyped_storage().resize_(left)
        with pytest.raises(RuntimeError, match=OUT_OF_BOUNDS):
            USES[use](t)

    @pytest.mark.parametrize("use", sorted(set(USES) - {"pickle", "save", "deepcopy"}))
    def test_their_tensors_can_be_used_again_once_the_memory_is_back(self, use):
        if use == "numpy":
            pytest.importorskip("numpy")
        t = torch.arange(8.0)
        view, alias = t[4:], t.data
        t.untyped_storage().resize_(0)
        with pytest.raises(RuntimeError, match=OUT_OF_BOUNDS):
            view + 1
        with pytest.raises(RuntimeError, match=OUT_OF_BOUNDS):
            alias + 1
        t.untyped_storage().resize_(16)
        t.untyped_storage().resize_(32)
        t.copy_(torch.arange(8.0))
        USES[use](t)
        assert alias.shape == (8,) and view.sum().item() == t[4:].sum().item()

    def test_what_is_left_can_be_read(self):
        t = torch.arange(8.0)
        first, last = t[:4], t[6:]
        t.untyped_storage().resize_(16)
        assert first.tolist() == [0.0, 1.0, 2.0, 3.0] and (first + 1).sum().item() == 10.0 and t[4:4].tolist() == []
        with pytest.raises(RuntimeError, match=OUT_OF_BOUNDS):
            last + 1
        assert torch.empty_like(t).shape == t.view(2, 4).flatten().shape == (8,)

    def test_gradients_cannot_be_computed_from_them(self):
        x = torch.arange(8.0, requires_grad=True)
        factor = torch.arange(8.0)
        y = (x * factor).sum()
        factor.untyped_storage().resize_(0)
        with pytest.raises(RuntimeError, match=OUT_OF_BOUNDS):
            y.backward()

    def test_optimizers_refuse_them(self):
        p = torch.nn.Parameter(torch.ones(8))
        p.grad = torch.ones(8)
        p.untyped_storage().resize_(0)
        with pytest.raises(RuntimeError, match=OUT_OF_BOUNDS):
            torch.optim.SGD([p], lr=0.1).step()

    def test_a_storage_object_sees_its_size_of_now(self):
        t = torch.zeros(2, dtype=torch.uint8)
        storage = t.untyped_storage()
        t.resize_(3)
        t.fill_(1)
        assert len(storage) == 3 and storage.tolist() == [1, 1, 1]
        storage.resize_(0)
        assert storage.tolist() == [] and t.untyped_storage().nbytes() == 0

    def test_views_beyond_what_is_left_are_refused(self):
        t = torch.zeros(8)
        t.untyped_storage().resize_(16)
        for beyond in (
            lambda: t.as_strided((8,), (1,)),
            lambda: torch.zeros(8).set_(t.untyped_storage(), 0, (8,)),
            lambda: torch.zeros(3).set_(t.untyped_storage(), 2, (3,)),
        ):
            with pytest.raises(RuntimeError, match=OUT_OF_BOUNDS):
                beyond()
        with pytest.raises(RuntimeError):
            t.untyped_storage().resize_(-1)


def test_a_result_of_no_elements_takes_no_memory_wherever_it_begins():
    whole = torch.zeros(0, 2, 5, dtype=torch.int32)
    out = whole[2:-1, 2:0:3]
    assert out.storage_offset() == 10
    torch.sum(torch.zeros(0, 0, 5, dtype=torch.int32), 2, out=out)
    assert out.shape == (0, 0)
    assert whole.untyped_storage().nbytes() == 0
