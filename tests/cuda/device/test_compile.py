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


# ---- graphs of launches


def counted(function):
    """What `function` replayed: graphs, replays, launches in them, launches outside."""
    before = _native.cuda.replay_statistics()
    function()
    after = _native.cuda.replay_statistics()
    return {name: after[name] - before[name] for name in ("graphs", "replays", "replayed", "plain")}


def test_launches_that_repeat_themselves_are_replayed_as_a_graph():
    weight, x = randn(16, 16), randn(8, 16, seed=1)
    step = cresset.compile(lambda x: (x @ weight).relu() @ weight + 1, mode="reduce-overhead")
    wanted = bits((x @ weight).relu() @ weight + 1)
    for _ in range(4):
        assert bits(step(x)) == wanted

    def steps():
        for _ in range(5):
            step(x)

    found = counted(steps)
    assert found["replays"] >= 4 and found["plain"] <= 4


def test_new_numbers_and_new_memory_are_seen_by_graphs():
    weight = randn(16, 16)
    step = cresset.compile(lambda x, a: (x @ weight) * a @ weight, mode="reduce-overhead")
    for seed in range(4):
        x = randn(8, 16, seed=seed)
        for a in (0.5, 0.5, 0.5, 2.0, 0.5):
            assert bits(step(x, a)) == bits((x @ weight) * a @ weight)


def test_a_training_step_is_replayed_with_eagers_bits():
    def run(compiled):
        cresset.manual_seed(3)
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).cuda()
        optimizer = cresset.optim.Adam(model.parameters(), lr=1e-2)
        x, y = randn(6, 8), (randn(6, seed=2) > 0).long()

        def step():
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        function = cresset.compile(step, mode="reduce-overhead") if compiled else step
        return [bits(function()) for _ in range(12)] + [bits(p) for p in model.parameters()]

    assert counted(lambda: run(True))["replays"] > 0
    assert run(True) == run(False)


def test_a_region_inside_of_a_captured_graph_is_part_of_that_graph():
    x = randn(32)
    step = cresset.compile(lambda x: (x * 2).exp() + 1, mode="reduce-overhead")
    for _ in range(3):
        step(x)
    graph = cresset.cuda.CUDAGraph()
    with cresset.cuda.graph(graph):
        y = step(x)
    x.copy_(randn(32, seed=5))
    graph.replay()
    assert bits(y) == bits((x * 2).exp() + 1)


# ---- operators on rows


@pytest.mark.parametrize("dtype", [cresset.float32, cresset.bfloat16])
def test_a_normalization_reads_and_writes_by_expressions(dtype):
    x, r, w, b = (
        randn(12, 96, dtype=dtype),
        randn(12, 96, seed=1),
        randn(96, seed=2, dtype=dtype),
        randn(96, dtype=dtype),
    )

    def function(x, r):
        s = x + r.to(x.dtype)
        return s, F.layer_norm(s, (96,), w, b).bfloat16() * 2

    agree(function, x, r)
    agree(lambda x, r: F.rms_norm(x * 2, (96,), w).float() + r, x, r)
    agree(lambda x, r: F.layer_norm(x * 2, (96,)) + x, x, r)


def test_the_statistics_of_a_late_normalization_can_be_read():
    agree(lambda x: cresset.native_layer_norm(x * 2, (24,), None, None, 1e-5), randn(6, 24))
    agree(lambda x: cresset.native_layer_norm(x * 2, (24,), None, None, 1e-5)[1:], randn(6, 24))


def test_a_weight_that_is_changed_after_the_call_counts_as_it_was():
    w = randn(24)

    def function(x):
        y = F.layer_norm(x + 1, (24,), w)
        w.mul_(2)
        return y * 3

    wanted = bits(function(randn(5, 24)))
    w.div_(2)
    for _ in range(3):
        got = bits(cresset.compile(function)(randn(5, 24)))
        w.div_(2)
        _native.cuda.finish_fused_kernels()
        assert got == wanted


def test_two_normalizations_in_one_expression():
    agree(lambda x, y: F.layer_norm(x + 1, (24,)) + F.rms_norm(y * 2, (24,)), randn(5, 24), randn(5, 24), fused=False)
    agree(lambda x: F.layer_norm(F.layer_norm(x + 1, (24,)) * 2, (24,)) + 1, randn(5, 24))


@pytest.mark.parametrize("norm", ["LayerNorm", "RMSNorm"])
def test_the_gradients_of_a_normalization_are_eagers(norm):
    def run(compiled):
        cresset.manual_seed(0)
        layer, linear = getattr(nn, norm)(64).cuda(), nn.Linear(64, 64).cuda()

        def block(x):
            return x + linear(layer(x))

        function = cresset.compile(lambda x: block(block(block(x))).square().mean()) if compiled else None
        function = function or (lambda x: block(block(block(x))).square().mean())
        x, seen = randn(10, 64).requires_grad_(), []
        for _ in range(3):
            with cresset.autocast("cuda", dtype=cresset.bfloat16):
                function(x).backward()
            _native.cuda.finish_fused_kernels()
            seen += [bits(t.grad) for t in (x, *layer.parameters(), *linear.parameters())]
            for t in (x, *layer.parameters(), *linear.parameters()):
                t.grad = None
        return seen

    before = launched()
    assert run(True) == run(False)
    assert launched() > before


# ---- what is computed again in backward


def forgotten():
    return _native.late_statistics()["forgotten"]


@pytest.mark.parametrize("in_half", [False, True])
def test_what_gelu_and_a_normalization_made_is_computed_again_in_backward(in_half):
    """The normalization where it reads no more bytes than are saved."""

    def run(compiled):
        cresset.manual_seed(0)
        norm, up, down = nn.LayerNorm(64).cuda(), nn.Linear(64, 128).cuda(), nn.Linear(128, 64).cuda()
        parameters = [*norm.parameters(), *up.parameters(), *down.parameters()]

        def function(x):
            x = x * 2
            return x + down(F.gelu(up(norm(x)))) + 1

        function = cresset.compile(function) if compiled else function
        x, seen = randn(8192, 64).requires_grad_(), []
        for _ in range(2):
            with cresset.autocast("cuda", dtype=cresset.bfloat16, enabled=in_half):
                y = function(x)
            held = cresset.cuda.memory_allocated()
            y.square().mean().backward()
            _native.cuda.finish_fused_kernels()
            seen += [bits(t.grad) for t in (x, *parameters)]
            for t in (x, *parameters):
                t.grad = None
        return seen, held

    before = forgotten()
    (seen, held), (eager_seen, eager_held) = run(True), run(False)
    assert seen == eager_seen
    # gelu's result of 4 MiB and the normalization's of 2 MiB; or gelu's of 2 MiB.
    assert forgotten() == before + (2 if in_half else 4)
    assert held <= eager_held - (2 if in_half else 6) * 2**20


def test_a_change_of_what_was_forgotten_is_eagers_error():
    linear = nn.Linear(64, 64).cuda()

    def function(x):
        y = F.gelu(x * 2)
        z = linear(y)
        linear(y)
        y.add_(1)
        return z.sum()

    with pytest.raises(RuntimeError, match="changed in place"):
        cresset.compile(function)(randn(4096, 64).requires_grad_()).backward()


def test_what_is_written_to_after_the_recipe_read_it_counts_as_it_was():
    def run(compiled):
        cresset.manual_seed(0)
        linear = nn.Linear(64, 64).cuda()
        x = randn(4096, 64)

        def function(w):
            y = linear(F.silu(x * w))
            z = linear(y.detach() * w)
            x.mul_(3)
            return (y + z).square().mean()

        w = randn(64, seed=3).requires_grad_()
        (cresset.compile(function) if compiled else function)(w)
        return bits(x)

    assert run(True) == run(False)


# ---- memory that is written over


def scores_and_loss(x, weight, target, seen=None):
    scores = x @ weight.mT
    if seen is not None:
        seen.append(scores)
    return F.cross_entropy(scores.view(-1, scores.shape[-1]), target)


def test_the_gradient_of_scores_takes_their_place():
    """Where nobody else can see them: it is as large as they are."""
    x, weight = randn(1024, 32).requires_grad_(), randn(512, 32, seed=1).requires_grad_()
    target = cresset.arange(1024, device="cuda") % 512
    size = 1024 * 512 * 4

    def gradients(function, **how):
        loss = function(x, weight, target)
        cresset.cuda.reset_peak_memory_stats()
        before = cresset.cuda.memory_allocated()
        found = cresset.autograd.grad(loss, (x, weight), **how)
        return [bits(g) for g in found], cresset.cuda.max_memory_allocated() - before

    wanted, eager = gradients(scores_and_loss)
    got, compiled = gradients(cresset.compile(scores_and_loss))
    kept, with_graph = gradients(cresset.compile(scores_and_loss), retain_graph=True)
    assert wanted == got == kept
    assert compiled < size <= min(eager, with_graph)


def test_scores_that_somebody_sees_are_left_as_they_are():
    x, weight = randn(1024, 32), randn(512, 32, seed=1).requires_grad_()
    target, seen = cresset.arange(1024, device="cuda") % 512, []
    compiled = cresset.compile(scores_and_loss)
    loss = compiled(x, weight, target, seen)
    before = bits(seen[0])
    loss.backward(retain_graph=True)
    first = bits(weight.grad)
    weight.grad = None
    loss.backward()
    assert bits(seen[0]) == before
    assert bits(weight.grad) == first


class Attention(nn.Module):
    def __init__(self, width=192, heads=4):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, tell, joined):
        batch, length, width = x.shape
        whole = self.qkv(x)
        whole.register_hook(lambda grad: joined.append(grad.data_ptr()))
        parts = whole.split(width, 2)
        q, k, v = (z.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for z in parts)
        q.register_hook(tell)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


def attention_gradients(compiled, tell, **how):
    cresset.manual_seed(0)
    model, x = Attention().cuda().to(cresset.bfloat16), randn(16, 64, 192, dtype=cresset.bfloat16)
    joined = []
    y = (cresset.compile(model) if compiled else model)(x, tell, joined)
    y.float().square().sum().backward(**how)
    return [bits(p.grad) for p in model.parameters()], joined


def test_gradients_of_query_key_and_value_are_made_where_they_are_joined():
    wanted, _ = attention_gradients(False, lambda g: None)
    for how, in_place in (({}, True), ({"retain_graph": True}, False)):
        apart = []
        got, joined = attention_gradients(True, lambda g, apart=apart: apart.append(g.data_ptr()), **how)
        assert got == wanted
        assert (joined == apart) is in_place


def test_a_gradient_that_somebody_keeps_is_not_joined_in_place():
    wanted, got = [], []
    assert attention_gradients(True, got.append)[0] == attention_gradients(False, wanted.append)[0]
    assert bits(got[0]) == bits(wanted[0])
    _, joined = attention_gradients(True, got.append)
    assert joined != [got[1].data_ptr()]
