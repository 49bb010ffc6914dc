"""interpolate beside PyTorch's: values, gradients, the memory format of both, and a graph that is walked twice."""

import itertools

import pytest

import cresset

torch = pytest.importorskip("torch")

MODES = ["nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear"]
RANKS = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}
FORMATS = {4: "channels_last", 5: "channels_last_3d"}


def _cases():
    for mode, rank in itertools.product(MODES, (1, 2, 3)):
        if RANKS.get(mode, rank) == rank:
            for options in ({"size": (5,) * rank}, {"scale_factor": 0.6}, {"scale_factor": 2.5}):
                for channels_last in (False, True)[:rank]:  # signals have no such format
                    yield mode, rank, options, channels_last


def _resized(lib, values, mode, options, format, corners):
    x = lib.tensor(values, dtype=lib.float32)
    if format:
        x = x.contiguous(memory_format=getattr(lib, FORMATS[x.ndim]))
    x.requires_grad_()
    y = lib.nn.functional.interpolate(x, mode=mode, align_corners=corners, **options)
    weights = lib.arange(y.numel(), dtype=lib.float32).view(y.shape).sin()
    (grad,) = lib.autograd.grad((y * weights).sum(), x, retain_graph=True)
    return y, grad


def _assert_alike(mine, theirs):
    for a, b in zip(mine, theirs, strict=True):
        assert tuple(a.shape) == tuple(b.shape) and a.stride() == b.stride()
        torch.testing.assert_close(torch.tensor(a.tolist()), b.detach(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("case", list(_cases()), ids=str)
def test_values_gradients_and_strides_are_pytorchs(case):
    mode, rank, options, channels_last = case
    values = torch.randn(2, 3, *(4, 6, 3)[:rank], generator=torch.Generator().manual_seed(rank)).tolist()
    for corners in (None,) if mode.startswith("nearest") else (False, True):
        _assert_alike(*(_resized(lib, values, mode, options, channels_last, corners) for lib in (cresset, torch)))


@pytest.mark.parametrize("mode", ["linear", "bilinear", "bicubic", "trilinear"])
def test_a_graph_without_saved_tensors_is_walked_twice(mode):
    x = cresset.ones(1, 2, *[4] * RANKS[mode], requires_grad=True)
    y = cresset.nn.functional.interpolate(x, scale_factor=2, mode=mode).sum()
    y.backward()
    y.backward()
    assert x.grad.sum().item() == pytest.approx(2 * x.numel() * 2 ** RANKS[mode])


@pytest.mark.parametrize("gaps", [lambda x: x[:, :, 1:-1, 1:-1], lambda x: x[:, :, ::2, ::2], lambda x: x[0][None]])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_images_with_gaps_keep_the_format_that_pytorch_keeps(gaps, antialias, dtype):
    strides = []
    for lib in (cresset, torch):
        x = lib.arange(1 * 3 * 12 * 12).view(1, 3, 12, 12).to(getattr(lib, dtype))
        x = gaps(x.contiguous(memory_format=lib.channels_last))
        y = lib.nn.functional.interpolate(x, size=(5, 7), mode="bilinear", antialias=antialias)
        strides.append(y.stride())
    assert strides[0] == strides[1]


@pytest.mark.parametrize("size", [(2, 2), (3, 5), (8, 8), (11, 16)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
def test_lanczos_is_pytorchs(size, dtype):
    found = []
    for lib in (cresset, torch):
        x = (lib.arange(3 * 64).view(1, 3, 8, 8) * 7 % 251).to(getattr(lib, dtype))
        found.append(lib.nn.functional.interpolate(x, size=size, mode="lanczos", antialias=True).tolist())
    torch.testing.assert_close(torch.tensor(found[0]), torch.tensor(found[1]), atol=1e-3, rtol=1e-5)


@pytest.mark.parametrize(
    "rank,options,words",
    [
        (1, {"antialias": True}, "4-D tensor"),
        (3, {"antialias": True}, "4-D tensor"),
        (2, {"antialias": False}, "antialias=True"),
        (2, {"antialias": True, "align_corners": True}, "align_corners=True"),
    ],
)
def test_lanczos_is_refused_where_pytorch_refuses_it(rank, options, words):
    for lib in (cresset, torch):
        with pytest.raises(ValueError, match=words):
            lib.nn.functional.interpolate(lib.zeros(1, 1, *[4] * rank), size=(2,) * rank, mode="lanczos", **options)


@pytest.mark.parametrize("size", [(2.0, 2.0), ("2", 2)])
def test_sizes_are_whole_numbers(size):
    for lib in (cresset, torch):
        with pytest.raises(TypeError, match="expected size to be one of int or"):
            lib.nn.functional.interpolate(lib.zeros(1, 1, 4, 4), size=size)


@pytest.mark.parametrize("size", [0, 24])
def test_pytorchs_operators_resize_into_a_tensor(size):
    for lib in (cresset, torch):
        out = lib.empty(size).view(2, 3, 4) if size else lib.empty(0)
        found = lib._C._nn.upsample_nearest1d(lib.ones(2, 3, 2), (4,), 2, out=out)
        assert found is out and tuple(out.shape) == (2, 3, 4) and out.sum().item() == 24


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_images_of_half_precision_are_read_at_places_of_half_precision(dtype, mode, padding, align_corners):
    draw = torch.Generator().manual_seed(0)
    image = 5 * torch.randn(2, 3, 9, 9, generator=draw)
    places = 2.4 * torch.rand(2, 5, 7, 2, generator=draw) - 1.2
    read = []
    for lib in (cresset, torch):
        x, grid = (lib.tensor(v.tolist()).to(getattr(lib, dtype)).requires_grad_() for v in (image, places))
        y = lib.nn.functional.grid_sample(x, grid, mode, padding, align_corners)
        y.float().sum().backward()
        read.append(torch.tensor(y.tolist()))
        if mode == "nearest":
            assert not grid.grad.any()
    assert torch.equal(*read)
