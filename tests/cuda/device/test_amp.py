"""Mixed precision on CUDA: what autocast does to operators, and a GradScaler that does not wait for the device."""

import math

import pytest

import cresset
from cresset import optim
from cresset.amp import GradScaler


def parameters(device, *grads, dtype=cresset.float32):
    made = []
    for grad in grads:
        parameter = cresset.nn.Parameter(cresset.ones(len(grad), dtype=dtype, device=device))
        parameter.grad = cresset.tensor(grad, dtype=dtype, device=device)
        made.append(parameter)
    return made


def started(scale=4.0, **settings):
    scaler = GradScaler("cuda", init_scale=scale, **settings)
    scaler.scale(cresset.ones((), device="cuda"))
    return scaler


class TestScaler:
    @pytest.mark.parametrize("settings", [{}, {"fused": True}], ids=str)
    def test_a_good_step_uses_gradients_without_the_scale(self, settings, cuda):
        scaler, made = started(), parameters(cuda, [4.0, 8.0], [0.0, 4.0, 2.0])
        optimizer = optim.SGD(made, lr=0.5, **settings)
        scaler.step(optimizer)
        assert [p.tolist() for p in made] == [[0.5, 0.0], [1.0, 0.5, 0.75]]
        assert [p.grad.tolist() for p in made] == [[1, 2], [0, 1, 0.5]]
        scaler.update()
        assert (scaler.get_scale(), scaler._get_growth_tracker()) == (4.0, 1)

    @pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
    @pytest.mark.parametrize("settings", [{}, {"fused": True}], ids=str)
    def test_an_overflow_skips_the_step_and_halves_the_scale(self, bad, settings, cuda):
        scaler, made = started(), parameters(cuda, [4.0, 8.0], [0.0, bad, 2.0])
        optimizer = optim.Adam(made, lr=0.5, **settings)
        scaler.step(optimizer)
        scaler.update()
        assert [p.tolist() for p in made] == [[1, 1], [1, 1, 1]]
        assert scaler.get_scale() == 2.0
        if settings:
            assert optimizer.state[made[0]]["step"].item() == 0

    def test_fused_adam_steps_as_one_that_is_not(self, cuda):
        results = []
        for settings in ({}, {"fused": True}):
            scaler, made = started(), parameters(cuda, [4.0, 8.0], [0.5, 4.0, 2.0])
            optimizer = optim.AdamW(made, lr=0.5, **settings)
            for bad in (1.0, math.inf, 1.0):
                made[0].grad.fill_(bad)
                made[1].grad.fill_(2.0)
                scaler.step(optimizer)
                scaler.update()
            results.append([p.tolist() for p in made])
        assert results[0] == results[1]

    def test_the_scale_grows_after_good_steps(self, cuda):
        scaler = started(growth_interval=2)
        scales = []
        for _ in range(4):
            optimizer = optim.SGD(parameters(cuda, [1.0]), lr=0.5)
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
        assert scales == [4, 8, 8, 16]

    def test_the_scale_does_not_grow_to_infinity(self, cuda):
        scaler = started(scale=2.0**127, growth_interval=1)
        scaler.step(optim.SGD(parameters(cuda, [1.0]), lr=0.5))
        scaler.update()
        assert scaler.get_scale() == 2.0**127

    def test_unscale_before_clipping(self, cuda):
        scaler, made = started(), parameters(cuda, [12.0, 16.0])
        optimizer = optim.SGD(made, lr=1.0, fused=True)
        scaler.unscale_(optimizer)
        assert made[0].grad.tolist() == [3, 4]
        assert cresset.nn.utils.clip_grad_norm_(made, 2.5).item() == 5
        scaler.step(optimizer)
        cresset.testing.assert_close(made[0].tolist(), [-0.5, -1.0], rtol=1e-5, atol=1e-5)

    def test_float16_gradients_are_refused_unless_the_step_unscales(self, cuda):
        made = parameters(cuda, [4.0], dtype=cresset.float16)
        with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
            started().step(optim.SGD(made, lr=0.5))
        started().step(optim.SGD(made, lr=0.5, fused=True))
        assert made[0].tolist() == [0.5]

    def test_bfloat16_gradients_and_strides(self, cuda):
        parameter = cresset.nn.Parameter(cresset.ones(3, 2, dtype=cresset.bfloat16, device=cuda))
        parameter.grad = cresset.full((2, 3), 4.0, dtype=cresset.bfloat16, device=cuda).t()
        scaler = started()
        scaler.unscale_(optim.SGD([parameter], lr=0.5))
        assert parameter.grad.tolist() == [[1, 1]] * 3


class TestAutocast:
    def test_products_are_in_low_precision_and_losses_in_float32(self, cuda):
        layer = cresset.nn.Linear(4, 3, device=cuda)
        x = cresset.ones(2, 4, device=cuda)
        for dtype in (cresset.float16, cresset.bfloat16):
            with cresset.autocast("cuda", dtype=dtype):
                y = layer(x)
                assert y.dtype == dtype
                assert (y @ y.t()).dtype == dtype
                assert y.exp().dtype == cresset.float32
                assert y.sum().dtype == cresset.float32
                assert (y + x[:, :3]).dtype == cresset.float32
            assert layer(x).dtype == cresset.float32

    def test_the_cpu_is_left_alone(self, cuda):
        with cresset.autocast("cuda"):
            assert (cresset.ones(2, 2) @ cresset.ones(2, 2)).dtype == cresset.float32
        with cresset.autocast("cpu"):
            assert (cresset.ones(2, 2, device=cuda) @ cresset.ones(2, 2, device=cuda)).dtype == cresset.float32

    def test_the_cast_of_a_parameter_is_kept(self, cuda):
        layer = cresset.nn.Linear(4, 4, device=cuda)
        x = cresset.ones(2, 4, device=cuda)
        with cresset.autocast("cuda", dtype=cresset.bfloat16):
            y = layer(layer(x))
            casts = {id(node) for node in nodes(y.grad_fn) if "ToDtype" in node.name() or "ToCopy" in node.name()}
        assert len(casts) == 2  # of the weight and of the bias, once each
        y.float().sum().backward()
        assert layer.weight.grad.dtype == cresset.float32
        assert layer.weight.grad.device.type == "cuda"

    def test_a_written_parameter_is_cast_again(self, cuda):
        weight = cresset.nn.Parameter(cresset.ones(2, 2, device=cuda))
        with cresset.autocast("cuda", dtype=cresset.bfloat16):
            before = (weight @ weight).detach().cpu()
            with cresset.no_grad():
                weight.mul_(2)
            after = (weight @ weight).detach().cpu()
        assert (after == 4 * before).all()


def nodes(node):
    """All nodes below one."""
    found, left = [], [node]
    while left:
        node = left.pop()
        if node is not None and all(node is not other for other in found):
            found.append(node)
            left += [below for below, _ in node.next_functions]
    return found
