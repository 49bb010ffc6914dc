"""Quantized tensors: integers with a scale."""

import copy
import pickle

import pytest

import cresset


def test_integers_stand_for_numbers():
    q = cresset.quantize_per_tensor(cresset.tensor([-1.0, 0.0, 1.0, 100.0]), 0.5, 10, cresset.quint8)
    assert q.int_repr().tolist() == [8, 10, 12, 210] and q.int_repr().dtype == cresset.uint8
    assert q.dequantize().tolist() == [-1.0, 0.0, 1.0, 100.0]
    assert q.is_quantized and q.dtype == cresset.quint8 and q.q_scale() == 0.5 and q.q_zero_point() == 10
    assert q.qscheme() == cresset.per_tensor_affine and repr(q.qscheme()) == "torch.per_tensor_affine"
    assert not cresset.ones(1).is_quantized


def test_what_is_out_of_bounds_is_clamped_and_halves_go_to_even():
    q = cresset.quantize_per_tensor(cresset.tensor([-500.0, 500.0, 0.5, 1.5, 2.5]), 1.0, 0, cresset.qint8)
    assert q.int_repr().tolist() == [-128, 127, 0, 2, 2]


def test_each_channel_has_its_scale():
    q = cresset.quantize_per_channel(
        cresset.tensor([[1.0, 2.0], [10.0, 20.0]]), cresset.tensor([0.5, 5.0]), cresset.tensor([0, 1]), 0, cresset.qint8
    )
    assert q.int_repr().tolist() == [[2, 4], [3, 5]] and q.dequantize().tolist() == [[1.0, 2.0], [10.0, 20.0]]
    assert (
        q.q_per_channel_axis() == 0
        and q.q_per_channel_scales().tolist() == [0.5, 5.0]
        and q.q_per_channel_zero_points().tolist() == [0, 1]
    )
    with pytest.raises(RuntimeError, match="one scale for all"):
        q.q_scale()
    with pytest.raises(RuntimeError, match="2 channels"):
        cresset.quantize_per_channel(cresset.ones(2, 2), cresset.ones(3), cresset.zeros(3), 0, cresset.qint8)


def test_a_scale_from_the_extremes():
    q = cresset.quantize_per_tensor_dynamic(cresset.tensor([-127.5, 127.5]), cresset.quint8, False)
    assert q.q_scale() == 1.0 and q.q_zero_point() in (127, 128)


def test_a_tiny_range_is_taken_for_noise():
    q = cresset.quantize_per_tensor_dynamic(cresset.tensor([0.0, 1e-30]), cresset.quint8, False)
    assert q.q_scale() == pytest.approx(6.1e-5) and q.int_repr().tolist() == [0, 0]


def test_the_middle_of_two_integers_goes_to_the_even_one_with_the_zero_point():
    x = cresset.tensor([0.5, 1.5, 2.5])
    assert cresset.quantize_per_tensor(x, 1.0, 1, cresset.quint8).int_repr().tolist() == [2, 2, 4]
    one = cresset.quantize_per_tensor(x * 2, 1.0, 0, cresset.quint8)
    zero = cresset.quantize_per_tensor(x * 0, 1.0, 0, cresset.quint8)
    assert cresset.ops.quantized.add(one, zero, 2.0, 1).int_repr().tolist() == [1, 3, 3]  # operators add it afterwards


def test_operators_have_schemas():
    assert str(cresset.ops.quantized.cat.default) == "quantized.cat.default" and "mul" in dir(cresset.ops.quantized)
    with pytest.raises(AttributeError):
        cresset.ops.quantized.nothing  # noqa: B018
    with pytest.raises(NotImplementedError, match="expected a quantized tensor"):
        cresset.ops.quantized.add(cresset.ones(1), cresset.ones(1), 1.0, 0)
    q = cresset.quantize_per_tensor(cresset.tensor([2.0, -1.0]), 1.0, 10, cresset.quint8)
    more, turned = cresset.ops.quantized.add_scalar(q, 300), cresset.ops.quantized.mul_scalar(q, -2)
    assert more.q_zero_point() == 0 and more.dequantize().tolist() == pytest.approx([302, 299], abs=2.2)
    assert turned.dequantize().tolist() == [-4.0, 2.0]


def test_it_prints_its_scale():
    q = cresset.quantize_per_tensor(cresset.tensor([1.0]), 0.5, 0, cresset.qint8)
    assert (
        repr(q) == "tensor([1.], size=(1,), dtype=torch.qint8,\n       quantization_scheme=torch.per_tensor_affine, "
        "scale=0.5, zero_point=0)"
    )


def test_what_moves_elements_moves_integers():
    q = cresset.quantize_per_tensor(cresset.arange(6.0), 1.0, 0, cresset.qint8)
    assert q.reshape(2, 3).t().int_repr().tolist() == [[0, 3], [1, 4], [2, 5]]
    assert q[2:4].int_repr().tolist() == [2, 3] and q[5].item() == 5.0
    assert q.clone().int_repr().tolist() == [0, 1, 2, 3, 4, 5]
    assert q.max().item() == 5.0 and (q == 3).tolist() == [False, False, False, True, False, False]
    with pytest.raises(
        NotImplementedError, match=r"add: not implemented for quantized tensors; call dequantize\(\) first"
    ):
        q + q


def test_pools_and_parts_are_quantized():
    q = cresset.quantize_per_tensor(cresset.arange(16.0).reshape(1, 1, 4, 4), 1.0, 3, cresset.quint8)
    functional = cresset.nn.functional
    assert functional.max_pool2d(q, 2).dequantize().flatten().tolist() == [5.0, 7.0, 13.0, 15.0]
    assert functional.adaptive_avg_pool2d(q, 1).int_repr().item() == 10  # 7.5 + 3, to even
    assert [t.shape[3] for t in q.split(3, 3)] == [3, 1] and cresset.stack([q, q]).is_quantized
    assert functional.pad(q, (1, 0)).int_repr()[0, 0, 0].tolist() == [3, 3, 4, 5, 6]
    assert q.clamp(2.0, 4.0).dequantize().max().item() == 4.0 and functional.relu6(q).dequantize().max().item() == 6.0


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda x: cresset.quantize_per_tensor(x, 0.0, 0, cresset.qint8), "scale must not be zero"),
        (lambda x: cresset.quantize_per_tensor(x, 1.0, 300, cresset.quint8), "zero_point 300 is out of bounds"),
        (lambda x: cresset.quantize_per_tensor(x, 1.0, 0, cresset.int8), "expected torch.qint8"),
        (lambda x: cresset.quantize_per_tensor(x.double(), 1.0, 0, cresset.qint8), "expected a float32"),
        (lambda x: x.q_scale(), "expected a quantized tensor"),
        (lambda x: cresset.zeros(2, dtype=cresset.qint8), "only a quantized tensor has this dtype"),
    ],
)
def test_bad_arguments_are_refused(call, words):
    with pytest.raises(RuntimeError, match=words):
        call(cresset.ones(2))


def test_copies():
    q = cresset.quantize_per_tensor(cresset.arange(3.0), 1.0, 1, cresset.qint8)
    for other in (copy.deepcopy(q), pickle.loads(pickle.dumps(q))):
        assert other.int_repr().tolist() == [1, 2, 3] and other.dtype == cresset.qint8 and other.q_zero_point() == 1


def test_imitation_gives_what_quantizing_gives_and_lets_gradients_through():
    x = cresset.tensor([0.12, 9.0, -3.0], requires_grad=True)
    y = cresset.fake_quantize_per_tensor_affine(x, 0.1, 0, 0, 15)
    assert y.tolist() == pytest.approx([0.1, 1.5, 0.0])
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 0.0]
    w = cresset.tensor([[1.2], [1.2]], requires_grad=True)
    z = cresset.fake_quantize_per_channel_affine(w, cresset.tensor([1.0, 0.1]), cresset.tensor([0, 0]), 0, -5, 5)
    assert z.flatten().tolist() == [1.0, 0.5]
    z.sum().backward()
    assert w.grad.flatten().tolist() == [1.0, 0.0]


def test_a_quantized_tensor_is_resized_in_place():
    x = cresset.quantize_per_tensor(cresset.tensor([0.0, 1.0, 2.0, 3.0]), 0.5, 3, cresset.qint8)
    assert x.resize_(2, 1) is x and x.shape == (2, 1) and x.tolist() == [[0.0], [1.0]]
    assert x.resize_((5,)).int_repr()[:2].tolist() == [3, 5] and x.dequantize().shape == (5,)
    cresset.use_deterministic_algorithms(True)
    try:
        with pytest.raises(RuntimeError, match="quantized_resize_cpu_ does not have a deterministic implementation"):
            x.resize_(8)
    finally:
        cresset.use_deterministic_algorithms(False)


def test_an_empty_quantized_tensor_has_the_scale_it_is_given():
    x = cresset._empty_affine_quantized([2, 3], scale=2, zero_point=3, dtype=cresset.quint8)
    assert (x.shape, x.q_scale(), x.q_zero_point(), x.dtype) == ((2, 3), 2.0, 3, cresset.quint8)
    assert x.flatten().shape == x.ravel().shape == (6,)


def test_the_parts_of_a_file_must_fit_each_other():
    from cresset._utils import _rebuild_qtensor

    storage = cresset.TypedStorage(wrap_storage=cresset.UntypedStorage(12), dtype=cresset.quint8)

    def rebuilt(axis, channels=3):
        scales = cresset.ones(channels, dtype=cresset.float64), cresset.zeros(channels, dtype=cresset.int64)
        return _rebuild_qtensor(storage, 0, (3, 4), (4, 1), (cresset.per_channel_affine, *scales, axis), False, None)

    assert rebuilt(0).shape == (3, 4)
    for axis in (-1, 2):
        with pytest.raises(ValueError, match=f"axis {axis} is out of range"):
            rebuilt(axis)
    with pytest.raises(ValueError, match="scales/zero_points length"):
        rebuilt(0, channels=4)


class TestWriting:
    """What is written to a quantized tensor is rounded to what it can hold."""

    def made(self):
        return cresset.quantize_per_tensor(cresset.tensor([1.0, 2.0, 3.0]), 0.5, 1, cresset.quint8)

    def test_numbers(self):
        x = self.made()
        x[0] = 2.3
        assert x.tolist() == [2.5, 2.0, 3.0]
        x[1:] = cresset.tensor([5.0, 6.1])
        assert x.tolist() == [2.5, 5.0, 6.0]
        assert x.fill_(1.2).tolist() == [1.0, 1.0, 1.0]
        assert x.copy_(cresset.tensor([0.3, 0.5, 0.9])).tolist() == [0.5, 0.5, 1.0]

    def test_a_quantized_tensor_brings_its_scale(self):
        x, other = self.made(), cresset.quantize_per_tensor(cresset.tensor([3.0, 6.0, 9.0]), 3.0, 0, cresset.quint8)
        assert x.copy_(other).tolist() == [3.0, 6.0, 9.0] and (x.q_scale(), x.q_zero_point()) == (3.0, 0)
        with pytest.raises(RuntimeError, match="Copying from quantized Tensor to non-quantized Tensor is not allowed"):
            cresset.zeros(3).copy_(other)

    def test_a_tensor_like_it_has_its_scale(self):
        like = cresset.empty_like(self.made())
        assert (like.q_scale(), like.dtype, like.shape) == (0.5, cresset.quint8, (3,))


def test_a_channel_of_a_tensor_with_scales_for_each():
    rows = cresset.tensor([[1.0, 2.0], [3.0, 4.0]])
    x = cresset.quantize_per_channel(rows, cresset.tensor([0.5, 1.0]), cresset.tensor([0, 1]), 0, cresset.quint8)
    assert x[1].tolist() == [3.0, 4.0] and (x[1].q_scale(), x[1].q_zero_point()) == (1.0, 1)
    assert x.unsqueeze(0).q_per_channel_axis() == 1 and x.unsqueeze(2).q_per_channel_axis() == 0


def test_a_squeezed_tensor_keeps_its_scales():
    x = cresset.quantize_per_channel(
        cresset.ones(3, 1, 2), cresset.tensor([0.5, 1.0]), cresset.tensor([0, 1]), 2, cresset.quint8
    )
    assert x.squeeze().shape == (3, 2) and x.squeeze().q_per_channel_axis() == 1
    assert x.squeeze(1).tolist() == [[1.0, 1.0]] * 3 and x.squeeze(0).q_per_channel_axis() == 2
    one = cresset.quantize_per_channel(cresset.ones(1, 2), cresset.ones(1), cresset.zeros(1), 0, cresset.quint8)
    with pytest.raises(RuntimeError, match="only possible on non-axis dimension"):
        one.squeeze(0)


@pytest.mark.parametrize("dtype, bounds", [("quint8", (0, 255)), ("qint8", (-128, 127))])
def test_quantized_dtypes_have_the_bounds_of_their_integers(dtype, bounds):
    info = cresset.iinfo(getattr(cresset, dtype))
    assert (info.min, info.max) == bounds


def test_several_tensors_at_once_are_a_tuple():
    parts = cresset.quantize_per_tensor(
        [cresset.ones(1), cresset.ones(2)], cresset.tensor([0.5, 1.0]), cresset.tensor([0, 1]), cresset.quint8
    )
    assert isinstance(parts, tuple) and [p.int_repr().tolist() for p in parts] == [[2], [2, 2]]


def test_a_scale_may_be_negative():
    q = cresset.quantize_per_tensor(cresset.tensor([-1.0, 1.0]), -0.5, 3, cresset.quint8)
    assert q.int_repr().tolist() == [5, 1] and q.tolist() == [-1.0, 1.0]


def test_the_memory_is_that_of_the_integers():
    q = cresset.quantize_per_tensor(cresset.arange(6.0).reshape(2, 3), 1.0, 0, cresset.quint8)
    assert q.storage().dtype == cresset.quint8 and list(q.untyped_storage()) == [0, 1, 2, 3, 4, 5]
    assert q[1].storage_offset() == 3 and q[1].data_ptr() == q.data_ptr() + 3
    halves = cresset.quantize_per_tensor(cresset.ones(2), 1.0, 0, cresset.quint4x2)
    for ask in (halves.untyped_storage, halves.storage, halves.data_ptr):
        with pytest.raises(NotImplementedError, match="Cannot access storage"):
            ask()


def test_another_order_of_memory():
    q = cresset.quantize_per_tensor(cresset.rand(2, 3, 4, 5), 0.1, 0, cresset.qint8)
    last = q.to(memory_format=cresset.channels_last)
    assert last.stride() == (60, 1, 15, 3) and last.tolist() == q.tolist()
    assert q.to("cpu") is q and q.to("cpu", copy=True).data_ptr() != q.data_ptr()


def test_an_empty_tensor_with_a_scale_for_each_channel():
    settings = {"scales": cresset.tensor([0.5, 1.0]), "zero_points": cresset.tensor([1, 2]), "dtype": cresset.qint8}
    q = cresset._empty_per_channel_affine_quantized([3, 2], axis=1, **settings)
    assert (q.shape, q.dtype, q.q_per_channel_axis()) == ((3, 2), cresset.qint8, 1)
    assert q.q_per_channel_scales().tolist() == [0.5, 1.0] and q.q_per_channel_zero_points().tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="2 scales do not fit dimension 0"):
        cresset._empty_per_channel_affine_quantized([3, 2], axis=0, **settings)


class TestFunctions:
    def test_normalization_by_given_statistics(self):
        q = cresset.quantize_per_tensor(cresset.tensor([[[[0.0, 2.0]], [[2.0, 4.0]]]]), 1.0, 0, cresset.quint8)
        weight, bias = cresset.tensor([1.0, 2.0]), cresset.tensor([0.0, 1.0])
        mean, var = cresset.ones(2), cresset.ones(2)
        y = cresset.quantized_batch_norm(q, weight, bias, mean, var, 0.0, 1.0, 1)
        assert y.tolist() == [[[[-1.0, 1.0]], [[3.0, 7.0]]]]
        with pytest.raises(RuntimeError, match="Weight must be provided"):
            cresset.quantized_batch_norm(q, None, bias, mean, var, 0.0, 1.0, 1)
        with pytest.raises(RuntimeError, match="Expect bias size to match C"):
            cresset.quantized_batch_norm(q, weight, cresset.ones(3), mean, var, 0.0, 1.0, 1)
        with pytest.raises(NotImplementedError, match="expected a quantized tensor"):
            cresset.quantized_batch_norm(q.dequantize(), weight, bias, mean, var, 0.0, 1.0, 1)

    @pytest.mark.parametrize("rank", [1, 2, 3])
    def test_the_largest_of_each_window(self, rank):
        x = cresset.rand(1, 2, *(4,) * rank)
        q = cresset.quantize_per_tensor(x, 0.1, 3, cresset.quint8)
        pool = getattr(cresset, f"quantized_max_pool{rank}d")
        expected = getattr(cresset.nn.functional, f"max_pool{rank}d")(q.dequantize(), 2)
        assert pool(q, [2] * rank).tolist() == expected.tolist()
        assert pool(q, 2, 1, 1).shape == (1, 2, *(5,) * rank)
        with pytest.raises(NotImplementedError, match="expected a quantized tensor"):
            pool(x, 2)


def test_extremes_and_sorted_elements_are_quantized_alike():
    q = cresset.quantize_per_tensor(cresset.tensor([[1.0, -2.0, 3.5], [0.0, 5.0, 2.0]]), 0.5, 10, cresset.quint8)
    assert q.max().is_quantized and q.max().item() == 5.0 and q.min().q_scale() == 0.5
    values, places = q.max(1)
    assert values.is_quantized and values.tolist() == [3.5, 5.0] and places.tolist() == [2, 1]
    least = cresset.min(q, dim=0, keepdim=True)
    assert least.values.tolist() == [[0.0, -2.0, 2.0]] and least.indices.tolist() == [[1, 0, 1]]
    assert q.sort().values.is_quantized and q.topk(1).indices.tolist() == [[2], [1]]
