"""Convolutions on CUDA through cuDNN: what the CPU gives, in every layout."""

import pytest

import cresset
from cresset.nn import functional

TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-5, "float64": 1e-12}


@pytest.fixture(autouse=True)
def exact():
    """Without TF32."""
    cresset.backends.cudnn.allow_tf32 = False
    yield
    cresset.backends.cudnn.allow_tf32 = True


def made(*shape, dtype="float32", seed=0):
    generator = cresset.Generator().manual_seed(seed)
    return cresset.randn(shape, dtype=cresset.float64, generator=generator).to(getattr(cresset, dtype))


def agrees(function, *tensors, dtype="float32", **arguments):
    """The result and all gradients."""

    def computed(device, to):
        there = [t.detach().to(device=device, dtype=to).requires_grad_() for t in tensors]
        result = function(*there, **arguments)
        result.backward(made(*result.shape, dtype=dtype, seed=9).to(device=device, dtype=to))
        assert result.is_contiguous()
        return [result.detach()] + [t.grad for t in there]

    for result, expected in zip(computed("cuda", tensors[0].dtype), computed("cpu", cresset.float64)):
        assert result.dtype == tensors[0].dtype
        assert result.shape == expected.shape
        error = (result.cpu().double() - expected).abs().max().item()
        assert error <= TOLERANCE[dtype] * max(expected.abs().max().item(), 1)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_every_dtype(dtype):
    agrees(
        functional.conv2d,
        made(2, 4, 7, 6, dtype=dtype),
        made(5, 4, 3, 3, dtype=dtype),
        made(5, dtype=dtype),
        padding=1,
        dtype=dtype,
    )


@pytest.mark.parametrize(
    "input, weight, arguments",
    [
        ((2, 4, 9, 8), (6, 4, 3, 3), {"stride": 2, "padding": 1}),
        ((2, 4, 9, 8), (6, 4, 1, 1), {}),
        ((1, 4, 9, 8), (6, 2, 3, 2), {"groups": 2, "dilation": (2, 1)}),
        ((2, 3, 5, 5), (3, 1, 3, 3), {"groups": 3, "padding": (1, 2)}),
        ((1, 1, 4, 4), (2, 1, 2, 2), {"stride": (2, 1)}),
    ],
)
def test_two_dimensions(input, weight, arguments):
    agrees(functional.conv2d, made(*input), made(*weight, seed=1), **arguments)


def test_one_dimension():
    agrees(functional.conv1d, made(2, 3, 9), made(4, 3, 3, seed=1), made(4, seed=2), stride=2, padding=1)


def test_three_dimensions():
    agrees(functional.conv3d, made(1, 2, 4, 5, 4), made(3, 2, 2, 3, 2, seed=1), made(3, seed=2), padding=(1, 0, 1))


@pytest.mark.parametrize("arguments", [{}, {"stride": 2, "output_padding": 1, "padding": 1}, {"groups": 2}])
def test_transposed(arguments):
    agrees(
        functional.conv_transpose2d,
        made(2, 4, 4, 3),
        made(4, 3, 3, 3, seed=1),
        made(3 * arguments.get("groups", 1), seed=2),
        **arguments,
    )


def test_inputs_of_any_strides():
    agrees(lambda x, w: functional.conv2d(x.transpose(2, 3)[:, :, ::2], w), made(2, 3, 6, 9), made(4, 3, 2, 2, seed=1))


def test_channels_last_stays():
    x = made(2, 4, 6, 5).cuda().to(memory_format=cresset.channels_last)
    w = made(8, 4, 3, 3, seed=1).cuda().to(memory_format=cresset.channels_last)
    result = functional.conv2d(x, w)
    assert result.is_contiguous(memory_format=cresset.channels_last)
    assert (result.cpu() - functional.conv2d(x.cpu(), w.cpu())).abs().max() < 1e-4


def test_results_look_contiguous_and_follow_each_other_in_the_private_layout():
    x, first, second = made(2, 4, 6, 5), made(8, 4, 3, 3, seed=1), made(4, 8, 3, 3, seed=2)
    agrees(lambda x, a, b: functional.conv2d(functional.conv2d(x, a, padding=1).relu(), b), x, first, second)
    result = functional.conv2d(x.cuda(), first.cuda())
    assert result.stride() == (8 * 4 * 3, 12, 3, 1)
    assert cresset.equal(result.view(2, -1).cpu(), result.cpu().view(2, -1))


def test_tf32_is_used_only_when_it_is_allowed():
    x = cresset.full((1, 1, 2, 2), 1 + 2**-12, device="cuda")
    w = cresset.ones(1, 1, 1, 1, device="cuda")
    assert functional.conv2d(x, w)[0, 0, 0, 0].item() == 1 + 2**-12
    with cresset.backends.cudnn.flags(enabled=True, allow_tf32=True):
        if "Emulated" in cresset.cuda.get_device_name():
            assert functional.conv2d(x, w)[0, 0, 0, 0].item() == 1
    assert functional.conv2d(x, w)[0, 0, 0, 0].item() == 1 + 2**-12


def test_the_fastest_plan_is_looked_for_on_request():
    x, w = made(2, 3, 5, 4), made(2, 3, 2, 2, seed=1)
    with cresset.backends.cudnn.flags(enabled=True, benchmark=True, allow_tf32=False):
        agrees(functional.conv2d, x, w)


def test_another_plan_is_taken_when_the_best_one_does_not_run():
    agrees(
        functional.conv2d,
        made(1, 2, 9, 9, dtype="float16"),
        made(2, 2, 2, 2, dtype="float16", seed=1),
        dilation=7,
        dtype="float16",
    )


def test_the_library_is_there():
    assert cresset.backends.cudnn.is_available()
    assert cresset.backends.cudnn.version() >= 90000
    assert cresset.backends.cudnn.is_acceptable(cresset.ones(1, device="cuda"))


def test_nothing_to_convolve():
    assert functional.conv2d(
        cresset.zeros(0, 3, 4, 4, device="cuda"), cresset.zeros(2, 3, 2, 2, device="cuda")
    ).shape == (0, 2, 3, 3)


@pytest.mark.parametrize("limit", [1, 3, 0])
def test_as_many_plans_are_tried_as_the_limit_says(limit):
    x, w = cresset.randn(2, 8, 16, 16, device="cuda"), cresset.randn(8, 8, 3, 3, device="cuda")
    expected = cresset.conv2d(x, w, padding=1)
    with cresset.backends.cudnn.flags(enabled=True, benchmark=True, benchmark_limit=limit, allow_tf32=False):
        cresset.testing.assert_close(cresset.conv2d(x, w, padding=1), expected, rtol=1e-4, atol=1e-3)
