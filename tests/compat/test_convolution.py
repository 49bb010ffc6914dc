"""Products, convolution and pooling beside PyTorch, on random sizes."""

import random

import pytest

import cresset

torch = pytest.importorskip("torch")


def ours(tensor):
    return cresset.from_numpy(tensor.detach().numpy().copy()).requires_grad_(tensor.requires_grad)


def assert_close(mine, theirs, what):
    mine = torch.from_numpy(mine.detach().numpy().copy())
    assert mine.shape == theirs.shape, what
    tolerance = 1e-11 if theirs.dtype in (torch.float64, torch.complex128) else 1e-4
    scale = theirs.abs().max() if theirs.numel() else 0
    assert theirs.numel() == 0 or (mine - theirs).abs().max() <= tolerance * (scale + 1e-3), what


def compare(name, tensors, **options):
    """The result and all gradients of nn.functional.<name> in both."""
    theirs = getattr(torch.nn.functional, name)(*tensors, **options)
    copies = [None if t is None else ours(t) for t in tensors]
    mine = getattr(cresset.nn.functional, name)(*copies, **options)
    grad = torch.randn_like(theirs)
    assert_close(mine, theirs, (name, options))
    wanted = [i for i, t in enumerate(tensors) if t is not None]
    expected = torch.autograd.grad(theirs, [tensors[i] for i in wanted], grad)
    got = cresset.autograd.grad(mine, [copies[i] for i in wanted], ours(grad))
    for one, other in zip(got, expected):
        assert_close(one, other, (name, options))


@pytest.mark.parametrize("seed", range(40))
def test_convolution_agrees_with_pytorch(seed):
    pick = random.Random(seed)
    torch.manual_seed(seed)
    rank, groups, transposed = pick.choice([1, 2, 2, 3]), pick.choice([1, 1, 2, 3]), pick.random() < 0.35
    each = lambda choices: [pick.choice(choices) for _ in range(rank)]  # noqa: E731
    stride, dilation, padding, kernel = each([1, 1, 2, 3]), each([1, 1, 2]), each([0, 1, 2]), each([1, 2, 3, 3, 5])
    sizes = [pick.choice([9, 14, 17, 33] if rank < 3 else [9, 10]) for _ in range(rank)]
    c, o = pick.choice([1, 2, 5, 9]), pick.choice([1, 4, 7, 17])
    dtype = pick.choice([torch.float32, torch.float64, torch.complex64])
    x = torch.randn(pick.choice([1, 2, 5]), groups * c, *sizes, dtype=dtype, requires_grad=True)
    shape = (groups * c, o, *kernel) if transposed else (groups * o, c, *kernel)
    w = torch.randn(*shape, dtype=dtype, requires_grad=True)
    b = torch.randn(groups * o, dtype=dtype, requires_grad=True) if pick.random() < 0.6 else None
    options = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
    if transposed:
        options["output_padding"] = [pick.randrange(max(s, d)) for s, d in zip(stride, dilation)]
    compare(f"conv{'_transpose' if transposed else ''}{rank}d", [x, w, b], **options)


@pytest.mark.parametrize("seed", range(20))
def test_pooling_agrees_with_pytorch(seed):
    pick = random.Random(seed)
    torch.manual_seed(seed)
    rank, kernel = pick.choice([1, 2, 3]), pick.choice([2, 3])
    x = torch.randn(2, 3, *[pick.choice([5, 8, 11]) for _ in range(rank)], dtype=torch.float64, requires_grad=True)
    options = dict(stride=pick.choice([None, 1, 2]), padding=pick.choice([0, 1]), ceil_mode=pick.random() < 0.5)
    compare(f"max_pool{rank}d", [x], kernel_size=kernel, **options)
    compare(f"avg_pool{rank}d", [x], kernel_size=kernel, count_include_pad=pick.random() < 0.5, **options)
    compare(f"adaptive_avg_pool{rank}d", [x], output_size=pick.choice([1, 2, 3]))
    compare(f"adaptive_max_pool{rank}d", [x], output_size=pick.choice([1, 2, 3]))


@pytest.mark.parametrize("seed", range(20))
def test_linear_agrees_with_pytorch(seed):
    pick = random.Random(seed)
    torch.manual_seed(seed)
    k, n = pick.choice([1, 7, 64, 200]), pick.choice([1, 10, 48, 65])
    lead = [pick.choice([1, 3, 33]) for _ in range(pick.choice([0, 1, 2]))]
    x, w, b = (torch.randn(*s, requires_grad=True) for s in [(*lead, k), (n, k), (n,)])
    compare("linear", [x, w, b])
