"""What the functions of nn.functional promise, with values a reader can work out; gradients against finite
differences."""

import math
import warnings

import pytest

import cresset
import cresset.nn.functional as F
from cresset import nn
from cresset.autograd import gradcheck


def values(*shape):
    return cresset.randn(
        *shape, dtype=cresset.float64, generator=cresset.Generator(cresset.get_default_device()).manual_seed(sum(shape))
    ).requires_grad_()


class TestCrossEntropy:
    def test_of_even_scores_is_the_logarithm_of_the_number_of_classes(self):
        assert F.cross_entropy(cresset.zeros(2, 4), cresset.tensor([0, 3])).item() == pytest.approx(math.log(4))

    def test_ignored_targets_do_not_count(self):
        scores, target = cresset.tensor([[2.0, 0.0], [0.0, 0.0]]), cresset.tensor([0, -100])
        assert F.cross_entropy(scores, target).item() == pytest.approx(math.log(1 + math.exp(-2)))
        assert F.cross_entropy(scores, target, reduction="none")[1].item() == 0
        assert math.isnan(F.cross_entropy(scores, cresset.tensor([-100, -100])).item())

    def test_weights_make_a_weighted_mean(self):
        scores, target = cresset.tensor([[1.0, 0.0], [0.0, 3.0]]), cresset.tensor([0, 1])
        first, second = F.cross_entropy(scores, target, reduction="none").tolist()
        weighted = F.cross_entropy(scores, target, weight=cresset.tensor([1.0, 3.0]))
        assert weighted.item() == pytest.approx((first + 3 * second) / 4)

    def test_probabilities_and_smoothing(self):
        scores, target = cresset.randn(3, 4), cresset.tensor([1, 0, 2])
        hot = F.one_hot(target, 4).float()
        smooth = hot * 0.9 + 0.1 / 4
        expected = F.cross_entropy(scores, smooth)
        assert cresset.allclose(F.cross_entropy(scores, target, label_smoothing=0.1), expected)
        assert cresset.allclose(F.cross_entropy(scores, hot, label_smoothing=0.1), expected)

    def test_bad_targets_are_named(self, refused):
        with refused(IndexError, "Target 3 is out of bounds"):
            F.cross_entropy(cresset.zeros(2, 3), cresset.tensor([0, 3]))
        with pytest.raises(ValueError, match=r"Expected input batch_size \(2\) to match target batch_size \(3\)"):
            F.cross_entropy(cresset.zeros(2, 3), cresset.tensor([0, 1, 2]))
        with pytest.raises(RuntimeError, match="expected target dtype to be Long or Byte"):
            F.cross_entropy(cresset.zeros(2, 3), cresset.tensor([0, 1], dtype=cresset.int32))


class TestPad:
    def test_modes(self):
        x = cresset.tensor([[1.0, 2.0, 3.0]])
        assert F.pad(x, (1, 2), value=9.0).tolist() == [[9, 1, 2, 3, 9, 9]]
        assert F.pad(x, (2, 1), "reflect").tolist() == [[3, 2, 1, 2, 3, 2]]
        assert F.pad(x, (2, 1), "replicate").tolist() == [[1, 1, 1, 2, 3, 3]]
        assert F.pad(x, (2, 1), "circular").tolist() == [[2, 3, 1, 2, 3, 1]]
        assert F.pad(x, (-1, 0)).tolist() == [[2, 3]]

    def test_two_dimensions(self):
        assert F.pad(cresset.tensor([[5]]), (1, 0, 0, 1)).tolist() == [[0, 5], [0, 0]]

    def test_too_much_is_refused(self):
        with pytest.raises(RuntimeError, match="Padding size should be less than the corresponding input dimension"):
            F.pad(cresset.ones(1, 3), (3, 0), "reflect")
        with pytest.raises(NotImplementedError, match="Unrecognised padding mode"):
            F.pad(cresset.ones(1, 3), (1, 0), "mirror")

    @pytest.mark.parametrize("mode", ["constant", "reflect", "replicate"])
    def test_padded_images_keep_their_channels_last(self, mode):
        x = cresset.arange(24.0).reshape(1, 2, 3, 4)
        y = F.pad(x.contiguous(memory_format=cresset.channels_last), (1, 1, 0, 2), mode)
        assert y.is_contiguous(memory_format=cresset.channels_last)
        assert y.tolist() == F.pad(x, (1, 1, 0, 2), mode).tolist()


class TestResampling:
    def test_a_line_stays_a_line(self):
        line = cresset.arange(4.0).view(1, 1, 4)
        bigger = F.interpolate(line, size=7, mode="linear", align_corners=True)
        assert bigger.flatten().tolist() == pytest.approx([0, 0.5, 1, 1.5, 2, 2.5, 3])

    def test_nearest_repeats(self):
        assert F.interpolate(cresset.tensor([[[1.0, 2.0]]]), scale_factor=2).tolist() == [[[1, 1, 2, 2]]]

    @pytest.mark.parametrize(("size", "wanted"), [
        (8, [0 + 1, 2 + 3, 4 + 5, 6 + 7]),
        (12, [0 + 1 + 2, 3 + 4 + 5, 6 + 7 + 8, 9 + 10 + 11]),
        (6, [0 + 1, 2, 3 + 4, 5]),
        (2, [0, 0, 1, 0]),
    ])  # fmt: skip
    def test_the_gradient_of_nearest_is_the_sum_of_the_copies(self, size, wanted):
        x = cresset.zeros(1, 1, 4, requires_grad=True)
        F.interpolate(x, size=size, mode="nearest").backward(cresset.arange(float(size)).reshape(1, 1, size))
        assert x.grad.flatten().tolist() == wanted

    @pytest.mark.parametrize(
        ("mode", "shape"), [("linear", (1, 1, 5)), ("bilinear", (1, 1, 5, 5)), ("trilinear", (1, 1, 5, 5, 5))]
    )
    def test_linear_interpolation_to_the_same_size_changes_nothing(self, mode, shape):
        x = cresset.rand(shape)
        assert (F.interpolate(x, scale_factor=1.1, mode=mode) == x).all()  # 5 * 1.1 is cut to 5

    def test_bytes_are_cut_to_bytes_after_each_dimension(self):
        # A bicubic filter overshoots beside a step: along the row to 263 and -7, which are no bytes. The column then
        # sees 255 and 0.
        steps = cresset.tensor([[0, 0, 0, 255, 255, 255]] * 3 + [[0] * 6] * 3, dtype=cresset.uint8)
        image = F.interpolate(steps[None, None], size=(6, 12), mode="bicubic")[0, 0]
        assert image[0].tolist() == [0, 0, 0, 0, 0, 58, 197, 255, 255, 255, 255, 255] and image.dtype == cresset.uint8
        taller = F.interpolate(steps[None, None], size=(12, 12), mode="bicubic")[0, 0]
        assert taller[:, 11].tolist() == taller[:, 7].tolist()

    def test_bytes_shrink_by_a_triangle_of_whole_weights(self):
        # To half the width the weights are 1/8, 3/8, 3/8, 1/8; at the ends what is outside does not count.
        line = cresset.tensor([[[[8, 16, 24, 80, 0, 255, 255, 3]]]], dtype=cresset.uint8)
        smaller = F.interpolate(line, size=(1, 4), mode="bilinear", antialias=True).flatten()
        assert smaller.tolist() == [round((3 * 8 + 3 * 16 + 24) / 7), round((16 + 72 + 240) / 8), 138, 147]

    @pytest.mark.parametrize("shape", [(1, 1, 7, 5), (2, 3, 33, 41), (1, 1, 3, 700), (1, 19, 300, 2)])
    def test_bytes_are_those_of_double_precision_to_one(self, shape):
        x = cresset.randint(0, 256, shape, dtype=cresset.uint8)
        for size in ((4, 6), (50, 90), (1, 1)):
            for mode in ("bilinear", "bicubic"):
                for antialias in (False, True):
                    got = F.interpolate(x, size=size, mode=mode, antialias=antialias)
                    across = F.interpolate(x.double(), size=(shape[2], size[1]), mode=mode, antialias=antialias)
                    across = across.round().clamp(0, 255)
                    exact = F.interpolate(across, size=size, mode=mode, antialias=antialias).clamp(0, 255)
                    assert (got - exact).abs().max() < 2  # a half between may be rounded to either side

    def test_bytes_of_samples(self):
        x = cresset.randint(0, 256, (4, 2, 3, 20, 20), dtype=cresset.uint8)

        def resize(image):
            return F.interpolate(image, size=(7, 29), mode="bilinear", antialias=True)

        assert cresset.vmap(resize)(x).equal(cresset.stack([resize(image) for image in x]))

    @pytest.mark.parametrize("dtype", [cresset.int32, cresset.complex64, cresset.bool])
    def test_what_is_no_image_is_refused_between_the_pixels(self, dtype):
        with pytest.raises(NotImplementedError, match="mode bilinear is not implemented for torch"):
            F.interpolate(cresset.ones(1, 1, 2, 2, dtype=dtype), size=3, mode="bilinear")

    @pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
    def test_constants_stay_constant_with_antialiasing(self, mode):
        image = F.interpolate(cresset.ones(1, 1, 9, 7), size=(4, 3), mode=mode, antialias=True)
        assert cresset.allclose(image, cresset.ones(1, 1, 4, 3))

    def test_the_identity_grid_reads_the_image_itself(self):
        image = cresset.randn(2, 3, 4, 5)
        theta = cresset.eye(2, 3).expand(2, 2, 3)
        for align in (True, False):
            grid = F.affine_grid(theta, image.shape, align_corners=align)
            for mode in ("bilinear", "nearest", "bicubic"):
                assert cresset.allclose(F.grid_sample(image, grid, mode, align_corners=align), image, atol=1e-5)

    def test_fold_and_unfold_of_no_images(self):
        columns = F.unfold(cresset.ones(0, 2, 2, 2), 2)
        assert F.fold(columns, (2, 2), 2).shape == (0, 2, 2, 2)

    def test_fold_undoes_unfold_without_overlap(self):
        image = cresset.randn(2, 3, 4, 6)
        assert cresset.equal(F.fold(F.unfold(image, 2, stride=2), (4, 6), 2, stride=2), image)


class TestAttention:
    def test_is_the_formula(self):
        q, k, v = values(2, 3, 4), values(2, 5, 4), values(2, 5, 6)
        expected = ((q @ k.mT) / 2).softmax(-1) @ v
        assert cresset.allclose(F.scaled_dot_product_attention(q, k, v), expected)

    def test_causal_queries_do_not_see_the_future(self):
        q = values(1, 4, 2)
        before = F.scaled_dot_product_attention(q, q, q, is_causal=True)
        changed = q.detach().clone()
        changed[0, 3] = 100.0
        after = F.scaled_dot_product_attention(changed, changed, changed, is_causal=True)
        assert cresset.allclose(before[0, :3], after[0, :3])

    def test_a_query_that_sees_nothing_gives_zeros(self):
        q, mask = values(1, 2, 2), cresset.tensor([[True, True], [False, False]])
        assert F.scaled_dot_product_attention(q, q, q, attn_mask=mask)[0, 1].tolist() == [0, 0]

    def test_heads_may_share_keys(self):
        q, k = values(1, 4, 3, 2), values(1, 2, 3, 2)
        shared = F.scaled_dot_product_attention(q, k, k, enable_gqa=True)
        repeated = k.repeat_interleave(2, 1)
        assert cresset.allclose(shared, F.scaled_dot_product_attention(q, repeated, repeated))


def test_ctc_counts_alignments():
    # Of the four alignments of two times, three spell the label 1: "11", "1-" and "-1".
    even = cresset.full((2, 1, 2), 0.5).log()
    loss = F.ctc_loss(even, cresset.tensor([[1]]), (2,), (1,), reduction="none")
    assert loss.item() == pytest.approx(-math.log(3 / 4))
    impossible = F.ctc_loss(even, cresset.tensor([[1, 1]]), (2,), (2,), reduction="none")
    assert impossible.item() == math.inf
    assert F.ctc_loss(even, cresset.tensor([[1, 1]]), (2,), (2,), zero_infinity=True).item() == 0


def test_one_hot_and_embedding_pick_rows():
    table = cresset.tensor([[1.0, 2.0], [3.0, 4.0]])
    index = cresset.tensor([[1, 0]])
    assert F.embedding(index, table).tolist() == [[[3, 4], [1, 2]]]
    assert (F.one_hot(index, 2).float() @ table).tolist() == [[[3, 4], [1, 2]]]
    assert F.embedding_bag(index, table, mode="mean").tolist() == [[2, 3]]


def test_dropout_scales_what_it_keeps():
    cresset.manual_seed(0)
    y = F.dropout(cresset.ones(10000), 0.25)
    assert y.unique().tolist() == pytest.approx([0, 1 / 0.75]) and 0.22 < (y == 0).float().mean().item() < 0.28
    assert F.dropout(cresset.ones(3), 0.25, training=False).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="between 0 and 1"):
        F.dropout(cresset.ones(1), 1.5)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.cross_entropy(x, cresset.tensor([0, 2, 1]), label_smoothing=0.2),
        lambda x: F.gaussian_nll_loss(x, cresset.zeros(3, 4, dtype=x.dtype), x.exp()),
        lambda x: F.multi_margin_loss(x, cresset.tensor([0, 2, 1])),
        lambda x: F.triplet_margin_loss(x, x * x, x + 1),
        lambda x: F.cosine_similarity(x, x * x + 1, dim=1),
        lambda x: F.glu(x) + F.softmin(x, 1)[:, :2],
        lambda x: F.pad(x[None], (2, 1), "reflect"),
        lambda x: F.interpolate(x[None, None], size=(5, 3), mode="bicubic"),
        lambda x: F.interpolate(x[None, None], size=(2, 3), mode="bilinear", antialias=True),
        lambda x: F.grid_sample(x[None, None], x[None, :, :2, None].expand(-1, -1, -1, 2) * 0.3, align_corners=False),
        lambda x: F.unfold(x[None], 2, padding=1),
        lambda x: F.local_response_norm(x[None], 2),
        lambda x: F.normalize(x),
        lambda x: F.scaled_dot_product_attention(x, x * 2, x + 1, is_causal=True),
        lambda x: F.bilinear(x, x + 1, x.new_ones(2, 4, 4)),
        lambda x: F.embedding(cresset.tensor([0, 2, 2]), x),
        lambda x: F.embedding_bag(cresset.tensor([[0, 2], [1, 1]]), x, mode="max"),
        lambda x: F.ctc_loss(x.log_softmax(-1)[:, None], cresset.tensor([[1, 2]]), (3,), (2,)),
    ],
)  # fmt: skip
def test_gradient_agrees_with_finite_differences(function):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert gradcheck(function, (values(3, 4),))


def test_one_logit_for_many_targets_is_for_the_root_function_only():
    logit, targets = cresset.zeros(1, requires_grad=True), cresset.tensor([[1.0], [0.0], [1.0]])
    loss = cresset.binary_cross_entropy_with_logits(logit, targets, None, cresset.tensor([3.0]), 2)
    assert loss.item() == pytest.approx(7 * math.log(2))
    loss.backward()
    assert logit.grad.tolist() == [-3 * 0.5 + 0.5 - 3 * 0.5]
    with pytest.raises(ValueError, match="must be the same as input size"):
        F.binary_cross_entropy_with_logits(logit, targets)


def test_the_dtype_of_a_loss_is_the_target_s_or_the_input_s():
    half, single = cresset.tensor([0.0], dtype=cresset.bfloat16), cresset.tensor([1.0])
    assert F.binary_cross_entropy_with_logits(half, half, single).dtype == cresset.bfloat16
    assert F.binary_cross_entropy_with_logits(single, half).dtype == cresset.bfloat16
    assert F.soft_margin_loss(half, single).dtype == cresset.bfloat16


def test_the_classes_of_a_broadcast_input_are_counted_before():
    loss = F.multilabel_soft_margin_loss(cresset.zeros(1), cresset.ones(3, 3), reduction="none")
    assert loss.tolist() == pytest.approx([3 * math.log(2)] * 3)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    "offsets, problem",
    [
        ([-1, 2], "has to be 0"), ([1, 2], "has to be 0"), ([0, -1, 5], "must not decrease"),
        ([0, 3, 1, 4], "must not decrease"), ([0, 9], "greater than"),
        ([0, -(2**60), 2], "must not decrease"), ([0, 2**40], "greater than"),
    ],
)  # fmt: skip
def test_embedding_bag_refuses_offsets_that_are_none(offsets, problem, last, mode):
    table = cresset.arange(12.0).view(6, 2)
    with pytest.raises(RuntimeError, match=problem):
        F.embedding_bag(cresset.arange(5), table, cresset.tensor(offsets), mode=mode, include_last_offset=last)
    with pytest.raises(RuntimeError, match="at least 1"):
        F.embedding_bag(
            cresset.arange(5), table, cresset.tensor([], dtype=cresset.int64), mode=mode, include_last_offset=True
        )


class TestBlocksOfAttention:
    def test_whole_blocks_are_listed_apart_or_not(self):
        from cresset.nn.attention.flex_attention import create_block_mask, flex_attention

        def causal(b, h, q, kv):
            return q >= kv

        apart = create_block_mask(causal, None, None, 256, 256)
        together = create_block_mask(causal, None, None, 256, 256, separate_full_blocks=False)
        assert together.full_kv_num_blocks is None and together.to_dense().equal(apart.to_dense())
        x = cresset.randn(1, 1, 256, 4)
        cresset.testing.assert_close(
            flex_attention(x, x, x, block_mask=together), flex_attention(x, x, x, block_mask=apart)
        )
        with pytest.raises(NotImplementedError, match="compute_dq_write_order"):
            create_block_mask(causal, None, None, 256, 256, compute_dq_write_order=True)
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            create_block_mask(causal, None, None, 256, 256, nonsense=1)

    @pytest.mark.parametrize("sizes", [(None, None, 300, 200), (2, 3, 129, 64), (1, 1, 64, 1), (1, 2, 0, 64)])
    def test_a_mask_is_asked_for_some_rows_of_blocks_at_a_time(self, monkeypatch, sizes):
        from cresset.nn.attention import flex_attention

        asked = []

        def near(b, h, q, kv):
            asked.append(q.numel() * kv.numel() * b.numel() * h.numel())
            return (q + b - kv).abs() < 40 + h

        whole = flex_attention.create_block_mask(near, *sizes, BLOCK_SIZE=(32, 16))
        assert len(asked) == 1
        monkeypatch.setattr(flex_attention, "_AT_ONCE", 1 << 15)
        asked.clear()
        parts = flex_attention.create_block_mask(near, *sizes, BLOCK_SIZE=(32, 16))
        assert max(asked) <= 1 << 15 and (len(asked) > 1) == (max(sizes[2:]) > 64)
        for name in ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_indices"):
            assert getattr(parts, name).equal(getattr(whole, name)), name

    def test_a_score_function_is_no_mask(self):
        from cresset.nn.attention.flex_attention import create_block_mask

        with pytest.raises(AssertionError, match="requires a mask_mod function"):
            create_block_mask(lambda score, b, h, q, kv: score, None, None, 8, 8)

    @pytest.mark.parametrize("longest", [(1, 2), (2, 1)])
    def test_the_longest_sequence_is_no_longer_than_said(self, longest):
        x, starts = cresset.ones(3, 1, 4), cresset.tensor([0, 1, 3], dtype=cresset.int32)
        with pytest.raises(ValueError, match="less than the longest sequence, 2"):
            cresset.nn.attention.varlen.varlen_attn(x, x, x, starts, starts, *longest)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_images_with_channels_last_stay_so_when_they_are_resized(mode):
    image = cresset.arange(24.0).view(1, 2, 3, 4)
    resized = cresset.nn.functional.interpolate(
        image.contiguous(memory_format=cresset.channels_last), scale_factor=2, mode=mode
    )
    assert resized.is_contiguous(memory_format=cresset.channels_last)
    assert (resized == cresset.nn.functional.interpolate(image, scale_factor=2, mode=mode)).all()


def test_weights_do_not_change_the_dtype_of_a_binary_cross_entropy():
    half = cresset.full((2,), 0.5, requires_grad=True)
    loss = cresset.nn.functional.binary_cross_entropy(half, cresset.ones(2), cresset.tensor([1.0, 3.0]).double())
    loss.backward()
    assert loss.dtype == cresset.float32 and half.grad.tolist() == [-1.0, -3.0]


def test_what_pytorch_refuses_is_refused():
    F, whole = cresset.nn.functional, cresset.tensor([1, 2])
    ones = cresset.ones(2)
    refused = {
        "alpha cannot be 0": lambda: F.celu(ones, 0),
        "eps must be non-negative": lambda: F.cosine_similarity(ones, ones, 0, -1),
        "all elements of target should be between 0 and 1": lambda: F.binary_cross_entropy(ones / 2, -ones),
        "Found dtype torch.int64 but expected torch.float32": lambda: F.binary_cross_entropy(ones / 2, whole - 1),
        "result type ComplexFloat can't be cast": lambda: F.binary_cross_entropy(ones / 2, ones, ones * 1j),
        "Lower bound should be less than or equal": lambda: cresset.rrelu_(ones, 0.5, 0.25),
        "base given to float_power_ has dtype": lambda: ones.float_power_(2),
        "result type Float can't be cast": lambda: whole.mvlgamma_(2),
        "Expected a floating point or complex tensor": lambda: cresset.linalg.vecdot(whole, whole),
        "inconsistent tensor size": lambda: cresset.linalg.vecdot(ones, ones[:1]),
        "Optional dtype must be either a floating point or complex": lambda: cresset.nanmean(ones, dtype=cresset.uint8),
        "Boolean beta only supported for Boolean": lambda: cresset.addr(cresset.ones(2, 2), ones, ones, beta=True),
        "round_cpu": lambda: cresset.round(whole, decimals=2),
        "cast to the desired output type Long": lambda: whole.polygamma_(1),
        "unsigned type with negative limits": lambda: F.hardtanh(cresset.ones(2, dtype=cresset.uint8)),
        "requires a floating point or complex dtype": lambda: cresset.fft.fftfreq(2, dtype=cresset.int32),
    }
    for words, call in refused.items():
        with pytest.raises(RuntimeError, match=words):  # NotImplementedError is one, too
            call()
    with pytest.raises(TypeError, match="isin"):
        cresset.isin(whole, element=whole, test_element=whole)
    with pytest.raises(ValueError, match="both be None or neither be None"):
        F.instance_norm(cresset.ones(1, 2, 3), running_var=ones)
    with pytest.raises(RuntimeError, match="`zero_point` must be between"):
        cresset.fake_quantize_per_tensor_affine(ones, 0.5, 3, 0, 2)
    for reduction in ("mean", True, ones):  # in words it is asked for in nn.functional
        with pytest.raises(TypeError, match="'reduction' must be int"):
            cresset.kl_div(ones, ones, reduction)


def test_the_conjugate_of_real_numbers_is_themselves():
    x = cresset.ones(2, requires_grad=True)
    assert x.conj_physical() is x and cresset.conj_physical(x) is x
    assert cresset.conj_physical(x.detach(), out=cresset.zeros(2)).tolist() == [1.0, 1.0]


def test_the_distance_of_pairs_is_between_tensors():
    with pytest.raises(TypeError, match=r"argument 'x2' \(position 2\) must be Tensor, not float"):
        F.pairwise_distance(cresset.ones(1, 4), 2.0)


def test_attention_of_no_samples_gives_none():
    layer = cresset.nn.MultiheadAttention(4, 2)
    output, weights = layer(*[cresset.ones(3, 0, 4)] * 3)
    assert output.shape == (3, 0, 4) and weights.shape == (0, 3, 3)
    assert layer(*[cresset.ones(3, 0, 4)] * 3, need_weights=False)[0].shape == (3, 0, 4)


def test_convolutions_have_the_names_of_pytorchs_kernels():
    x, weight = cresset.ones(1, 1, 2, 2, 2), cresset.ones(1, 1, 1, 1, 1)
    assert cresset._C._nn.slow_conv3d(x, weight, 1).shape == x.shape
    with pytest.raises(RuntimeError, match="It is expected stride equals to 3"):
        cresset._C._nn.slow_conv3d(x, weight, [1, 1, 1], stride=[])


def test_instance_norm_says_when_the_number_of_channels_is_another():
    layer = cresset.nn.InstanceNorm1d(4)
    assert layer._get_no_batch_dim() == 2
    with pytest.warns(UserWarning, match="not used because affine=False"):
        layer(cresset.rand(3, 2, 2))
    with pytest.raises(ValueError, match="expected input's size at dim=1"):
        cresset.nn.InstanceNorm1d(4, affine=True)(cresset.rand(3, 2, 2))


@pytest.mark.parametrize("spatial", [2, 3])
def test_a_grid_over_a_single_element_has_a_gradient_of_zeros(spatial):
    grid = cresset.randn(1, *(2,) * spatial, spatial, requires_grad=True)
    image = cresset.ones(1, 1, *(1,) * spatial)
    F.grid_sample(image, grid, padding_mode="reflection", align_corners=True).sum().backward()
    assert grid.grad.eq(0).all()


def test_the_numbers_of_grid_sampler_have_names():
    image, grid = cresset.rand(1, 1, 3, 3), cresset.rand(1, 2, 2, 2) * 4 - 2
    for mode, number in F.GRID_SAMPLE_INTERPOLATION_MODES.items():
        for padding, other in F.GRID_SAMPLE_PADDING_MODES.items():
            expected = F.grid_sample(image, grid, mode, padding, align_corners=True)
            assert cresset.grid_sampler(image, grid, number, other, True).equal(expected)


def test_batch_norm_of_one_value_a_channel_is_refused_in_training_even_of_no_channels():
    for shape in [(1, 3), (1, 3, 1), (1, 0), (1,)]:
        with pytest.raises(ValueError, match="more than 1 value per channel"):
            F.batch_norm(cresset.ones(shape), None, None, training=True)
    assert F.batch_norm(cresset.ones(1, 0, 5), None, None, training=True).shape == (1, 0, 5)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: F.mse_loss(x, x[:, :1]),
        lambda x: F.kl_div(x, x),
        lambda x: F.softmax(x),
        lambda x: nn.Softmax()(x),
        lambda x: nn.LogSoftmax()(x),
        lambda x: nn.Softmin()(x),
        lambda x: F.grid_sample(x[None, None], cresset.zeros(1, 1, 1, 2)),
        lambda x: F.upsample(x[None, None], scale_factor=2),
        lambda x: nn.TransformerEncoderLayer(2, 1, 2)(x, cresset.zeros(2, 2), x[0] > 1),
    ],
)
def test_a_warning_names_the_line_of_the_caller(call):
    with pytest.warns(UserWarning) as caught:
        call(cresset.ones(2, 2))
    assert [(w.filename, w.lineno) for w in caught][0] == (__file__, call.__code__.co_firstlineno)


@pytest.mark.parametrize(
    "layer",
    [
        nn.LogSigmoid(), nn.RReLU(), nn.RReLU().eval(), nn.AvgPool3d(2), nn.AdaptiveAvgPool3d(2),
        nn.AdaptiveMaxPool3d(2), nn.LPPool3d(2, 2),
    ],
    ids=str,
)  # fmt: skip
def test_these_layers_give_contiguous_volumes_also_of_channels_that_lie_last(layer):
    x = cresset.randn(2, 3, 4, 5, 6)
    given = x.to(memory_format=cresset.channels_last_3d).requires_grad_()
    cresset.manual_seed(0)
    result = layer(given)
    cresset.manual_seed(0)
    assert result.is_contiguous()
    cresset.testing.assert_close(result, layer(x))
    result.sum().backward()
    assert given.grad.shape == x.shape


def test_rms_norm_keeps_channels_last():
    x = cresset.randn(2, 3, 4, 5)
    for shape in ((5,), (3, 4, 5)):
        result = nn.RMSNorm(shape)(x.to(memory_format=cresset.channels_last))
        assert result.is_contiguous(memory_format=cresset.channels_last)
        cresset.testing.assert_close(result, nn.RMSNorm(shape)(x), check_stride=False)
