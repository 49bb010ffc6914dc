"""Compiled regions on the device: one kernel a group, and eager's bits, before and after the kernel is there."""

import pytest

import cresset
from cresset import _native, nn
from cresset.nn import functional as F


@pytest.fixture(autouse=True)
def _late():
    """Small tensors are computed late, too."""
    before = _native.set_late_elements_on_device(1)
    yield
    _native.set_late_elements_on_device(before)


def bits(t):
    t = t.detach().cpu().contiguous()
    return t.dtype, t.shape, t.reshape(-1).view(cresset.uint8).tolist()


def flat(result):
    return result if isinstance(result, tuple) else (result,)


def launched():
    return _native.cuda.fused_statistics()["launched"]


def agree(function, *args, fused=True):
    """The compiled function gives eager's bits: at first, when its kernels are on their way, and with them."""
    wanted = flat(function(*args))
    compiled = cresset.compile(function)
    before = launched()
    for _ in range(3):
        got = flat(compiled(*args))
        for a, b in zip(wanted, got, strict=True):
            assert a.stride() == b.stride()
            assert bits(a) == bits(b)
        _native.cuda.finish_fused_kernels()
    assert (launched() > before) is fused


def randn(*sizes, dtype=cresset.float32, seed=0):
    generator = cresset.Generator().manual_seed(seed)
    return cresset.randn(sizes, generator=generator).to(dtype).cuda()


def test_a_chain_is_one_kernel():
    agree(lambda x, y: (x * y + x).sin() * 2.5 - y, randn(64, 48), randn(64, 48, seed=1))


def test_a_bias_is_read_along_the_last_dimension():
    agree(lambda x, b: F.gelu(x + b, approximate="tanh") * b, randn(64, 48), randn(48, seed=1))


def test_results_of_half_precision_are_rounded_between_two_operators():
    agree(lambda x, h: (x + h, (x + h).bfloat16() * h + 1), randn(40, 24), randn(40, 24, dtype=cresset.bfloat16))
    agree(lambda h: (h * 1.1 + h).tanh() * h, randn(40, 24, dtype=cresset.float16))


def test_transposed_operands_and_results_lie_as_in_eager():
    agree(lambda x, y: (x.t() + y.t() * 2, x.t() * y.reshape(48, 64).abs()), randn(64, 48), randn(64, 48, seed=1))


def test_bools_and_choices():
    agree(lambda x, y: (cresset.where(x > y, x, y.exp()).clamp(-1, 1), (x > 0) & (y < 0)), randn(33, 8), randn(33, 8))


def test_lengths_that_no_vector_divides():
    agree(lambda x, b: (x[:, :47] + b[:47]) * 3, randn(9, 48), randn(48, seed=1))
    agree(lambda x: x.exp() * 2 + 1, randn(1001))


def test_operands_of_one_element_on_the_device():
    agree(lambda x, y: (x[:, :1] * y + x[:1]) * y.sum() - y[0, 0], randn(16, 8), randn(16, 8, seed=1))


def test_a_number_is_no_part_of_a_kernel():
    x = randn(64)
    compiled = cresset.compile(lambda x, a: (x * a + a).exp())
    compiled(x, 0.5)
    _native.cuda.finish_fused_kernels()
    asked = _native.cuda.fused_statistics()["asked"]
    for a in (0.25, -2.0, 3.0):
        assert bits(compiled(x, a)) == bits((x * a + a).exp())
    assert _native.cuda.fused_statistics()["asked"] == asked


def test_a_call_alone_is_eagers_kernel():
    agree(lambda x: x.exp(), randn(100), fused=False)


def test_double_precision_and_integers_as_operands():
    agree(lambda x, n: (x * n + 0.1).sqrt().nan_to_num(), randn(20, 6, dtype=cresset.float64), randn(20, 6).long())


def test_what_another_stream_reads_is_computed_on_the_stream_of_the_call():
    x = randn(256)

    @cresset.compile
    def function(x):
        y = x * 2 + 1
        with cresset.cuda.stream(cresset.cuda.Stream()) as _:
            assert not _native.is_pending(y)
        return y

    assert bits(function(x)) == bits(x * 2 + 1)


class Mixed(nn.Module):
    """Images, rows, half precision, random numbers."""

    def __init__(self):
        super().__init__()
        self.images = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.linear, self.norm = nn.Linear(8, 16), nn.LayerNorm(16)
        self.more, self.last = nn.Linear(16, 16), nn.LayerNorm(16)

    def forward(self, x):
        y = self.images(x)
        y = F.dropout(F.relu(y + y.sigmoid() * x.mean(1, keepdim=True)), 0.3)
        y = F.gelu(self.linear(y.mean((2, 3))), approximate="tanh")
        y = y + self.more(self.norm(y))
        y = y + self.more(F.silu(self.norm(y)))
        return self.last(y + 1).square().sum()


def train(compiled, autocast):
    cresset.manual_seed(1)
    model = Mixed().cuda()
    function = cresset.compile(model) if compiled else model
    optimizer = cresset.optim.AdamW(model.parameters(), lr=1e-2)
    x, seen = randn(4, 3, 8, 8), []
    for _ in range(3):
        with cresset.autocast("cuda", dtype=cresset.bfloat16, enabled=autocast):
            loss = function(x)
        loss.backward()
        seen.append(bits(loss))
        seen += [bits(p.grad) for p in model.parameters()]
        optimizer.step()
        optimizer.zero_grad()
        _native.cuda.finish_fused_kernels()
    return seen


@pytest.mark.parametrize("autocast", [False, True])
def test_training_gives_eagers_bits(autocast):
    assert train(True, autocast) == train(False, autocast)
