"""Layer, RMS, batch and group normalization on CUDA give what the CPU gives, and so do their gradients."""

import pytest

import cresset
import cresset.nn.functional as F

TOLERANCE = {"float32": 5e-5, "float64": 1e-11, "float16": 6e-3, "bfloat16": 6e-2}


def numbers(*shape, dtype="float32", seed=0):
    return cresset.randn(*shape, generator=cresset.Generator().manual_seed(seed)).to(getattr(cresset, dtype))


def results_and_gradients(f, tensors):
    tensors = [t.detach().clone().requires_grad_() for t in tensors]
    y = f(*tensors)
    y.backward(cresset.linspace(-1, 1, y.numel(), dtype=cresset.float64).reshape(y.shape).to(y.device, y.dtype))
    return [y.detach(), *(t.grad for t in tensors)]


def check(f, tensors, tolerance):
    """Also the strides agree; what is far from zero may differ by more."""
    got, want = results_and_gradients(f, [t.cuda() for t in tensors]), results_and_gradients(f, tensors)
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype and g.stride() == w.stride()
        cresset.testing.assert_close(
            g.cpu(), w, rtol=tolerance, atol=tolerance * (max(1, w.abs().max().item()) if w.numel() else 0)
        )


class TestRows:
    @pytest.mark.parametrize(
        ("rows", "n", "dtype"),
        [
            (37, 5, "float32"),
            (9, 96, "float16"),
            (70, 64, "bfloat16"),
            (70, 64, "float32"),
            (3, 1001, "float64"),
            (2, 4096, "bfloat16"),
        ],
    )
    def test_layer_and_rms_norm(self, rows, n, dtype):
        x, weight, bias = (numbers(*s, dtype=dtype, seed=i) for i, s in enumerate([(rows, n), (n,), (n,)]))
        check(lambda x, w, b: F.layer_norm(x, (n,), w, b), [x, weight, bias], TOLERANCE[dtype])
        check(lambda x, w: F.rms_norm(x, (n,), w, 1e-5), [x, weight], TOLERANCE[dtype])

    def test_without_parameters_and_with_some(self):
        x, weight, bias = numbers(6, 5, 8), numbers(5, 8, seed=1), numbers(5, 8, seed=2)
        check(lambda x: F.layer_norm(x, (8,)), [x], 2e-5)
        check(lambda x: F.rms_norm(x, (8,)), [x], 2e-5)
        check(lambda x, w: F.layer_norm(x, (5, 8), w), [x, weight], 2e-5)
        check(lambda x, b: F.layer_norm(x, (5, 8), None, b), [x, bias], 2e-5)

    def test_rows_longer_than_the_registers(self):
        x, weight, bias = numbers(2, 20003), numbers(20003, seed=1), numbers(20003, seed=2)
        check(lambda x, w, b: F.layer_norm(x, (20003,), w, b), [x, weight, bias], 5e-5)
        check(lambda x, w: F.rms_norm(x, (20003,), w), [x, weight], 5e-5)

    def test_half_rows_with_float_parameters(self):
        x, weight, bias = numbers(20, 64, dtype="bfloat16"), numbers(64, seed=1), numbers(64, seed=2)
        check(lambda x, w, b: F.layer_norm(x, (64,), w, b), [x, weight, bias], 6e-2)

    def test_far_from_zero_and_strided(self):
        check(lambda x: F.layer_norm(x + 1000, (256,)), [numbers(3, 256)], 2e-3)
        check(lambda x: F.layer_norm(x[:, 1:, ::2], (5,)), [numbers(3, 4, 10)], 2e-5)

    def test_memory_that_begins_between_vectors(self):
        tensors = [numbers(3 * 64 + 1), numbers(65, seed=1), numbers(65, seed=2)]
        check(lambda x, w, b: F.layer_norm(x[1:].view(3, 64), (64,), w[1:], b[1:]), tensors, 2e-5)
        check(lambda x: F.batch_norm(x[1:].view(2, 6, 16), None, None, training=True), tensors[:1], 2e-5)

    def test_statistics_are_kept(self):
        got, want = (
            cresset.native_layer_norm(x, (7,), None, None, 1e-5) for x in (numbers(3, 7).cuda(), numbers(3, 7))
        )
        for g, w in zip(got, want, strict=True):
            cresset.testing.assert_close(g.cpu(), w, rtol=1e-5, atol=1e-6)

    def test_of_nothing(self):
        assert F.layer_norm(cresset.zeros(0, 4, device="cuda"), (4,)).shape == (0, 4)
        check(lambda x, w: F.layer_norm(x, (4,), w), [numbers(0, 4), numbers(4)], 0)
        check(lambda x, w: F.batch_norm(x, None, None, w, training=True), [numbers(0, 4, 2), numbers(4)], 0)


class TestChannels:
    @pytest.mark.parametrize("training", [True, False])
    @pytest.mark.parametrize(
        ("shape", "channels_last", "dtype"),
        [
            ((9, 6), False, "float32"), ((3, 8, 5), False, "float64"), ((2, 16, 4, 4), False, "bfloat16"),
            ((2, 16, 4, 4), True, "bfloat16"),
            ((3, 5, 7, 7), True, "float32"), ((2, 4, 2, 3, 3), False, "float32"),
        ],
    )  # fmt: skip
    def test_batch_norm(self, training, shape, channels_last, dtype):
        x, weight, bias = (numbers(*s, dtype=dtype, seed=i) for i, s in enumerate([shape, shape[1:2], shape[1:2]]))
        if channels_last:
            x = x.to(memory_format=cresset.channels_last)
        running = {}

        def batch_norm(x, weight, bias):
            # On the CPU all parameters share a dtype, as in PyTorch.
            kind = x.dtype if dtype == "float64" or not x.is_cuda else cresset.float32
            mean = cresset.zeros(shape[1], device=x.device, dtype=kind)
            variance = cresset.ones(shape[1], device=x.device, dtype=kind)
            running[x.device.type] = mean, variance
            return F.batch_norm(x, mean, variance, weight, bias, training, 0.3)

        check(batch_norm, [x, weight, bias], max(TOLERANCE[dtype], 1e-6))
        for g, w in zip(running["cuda"], running["cpu"], strict=True):
            tolerance = 1e-4 if g.dtype == w.dtype else 2e-2
            cresset.testing.assert_close(g.cpu().to(w.dtype), w, rtol=tolerance, atol=max(tolerance / 10, 1e-5))

    def test_batch_norm_without_parameters(self):
        check(lambda x: F.batch_norm(x, None, None, training=True), [numbers(4, 6, 5, 5)], 2e-5)

    def test_batch_norm_of_many_images(self):
        check(lambda x: F.batch_norm(x, None, None, training=True), [numbers(40, 3, 30, 30)], 5e-5)

    @pytest.mark.parametrize(
        ("shape", "groups", "dtype"),
        [
            ((3, 8, 5), 2, "float32"),
            ((2, 16, 4, 4), 4, "bfloat16"),
            ((3, 6, 7, 7), 6, "float32"),
            ((5, 4), 1, "float64"),
        ],
    )
    def test_group_norm(self, shape, groups, dtype):
        tensors = [numbers(*s, dtype=dtype, seed=i) for i, s in enumerate([shape, shape[1:2], shape[1:2]])]
        check(lambda x, w, b: F.group_norm(x, groups, w, b), tensors, TOLERANCE[dtype])
        check(lambda x: F.group_norm(x, groups), tensors[:1], TOLERANCE[dtype])

    def test_group_norm_of_channels_last(self):
        x = numbers(2, 8, 3, 3).to(memory_format=cresset.channels_last)
        check(lambda x: F.group_norm(x, 2), [x], 2e-5)
