"""Computing late: what a compiled region gives is what eager gives, to the bit, whoever looks when."""

import copy
import io
import threading

import pytest

import cresset
from cresset import _native, nn
from cresset.nn import functional as F

N = 40_000  # elements that are computed late


def values(*shape, dtype=cresset.float32, seed=0):
    generator = cresset.Generator().manual_seed(seed)
    return (cresset.randn(shape or (N,), generator=generator) * 2).to(dtype)


def check(function, *args):
    """The compiled function gives eager's bits, and leaves its arguments like eager."""
    ours, theirs = copy.deepcopy(args), copy.deepcopy(args)
    got, expected = cresset.compile(function)(*ours), function(*theirs)
    flat_got, flat_expected = (list(x) if isinstance(x, (tuple, list)) else [x] for x in (got, expected))
    for x, y in zip([*flat_got, *ours], [*flat_expected, *theirs], strict=True):
        if isinstance(x, cresset.Tensor):
            assert x.dtype == y.dtype and x.shape == y.shape and x.stride() == y.stride()
            assert cresset.equal(x.view(bits(x)), y.view(bits(y)))
    return got


def bits(t):
    return {1: cresset.uint8, 2: cresset.int16, 4: cresset.int32, 8: cresset.int64}[t.element_size()]


class TestBits:
    """Programs of pointwise operators, whole and in part."""

    @pytest.mark.parametrize("dtype", [cresset.float32, cresset.float64, cresset.bfloat16, cresset.float16])
    def test_a_chain(self, dtype):
        a, b = values(dtype=dtype), values(dtype=dtype, seed=1)
        check(lambda a, b: ((a * b + 1).sigmoid() - (b * 0.5).tanh()).abs().add(1).log().clamp(-2, 2), a, b)

    def test_dtypes_are_mixed(self):
        a, b = values(), values(dtype=cresset.bfloat16, seed=1)
        check(lambda a, b: (a * b + b.double()).exp() - b, a, b)
        check(lambda a, b: a * (b > 0) + cresset.arange(N), a, b)
        check(lambda a, b: cresset.where(a > b, a, b * 2), a, b)
        check(lambda a, b: (a > 0) & (b < 1) | ~(a == b), a, b)

    def test_operands_are_broadcast(self):
        a, row, column = values(200, 300), values(300, seed=1), values(200, 1, seed=2)
        check(lambda a, row, column: (a + row) * column - cresset.tensor(3.0) + (row * 2)[:1], a, row, column)
        check(lambda a, row, column: (row + column).exp() + a, a, row, column)

    def test_strides_of_every_order(self):
        a, b = values(128, 400), values(400, 128, seed=1)
        check(lambda a, b: (a.t() * 2 + b).sin() + 1, a, b)
        check(lambda a, b: (a.t() * 2).sin() + 1, a, b)
        check(lambda a, b: (a[::2, 1::2] * 2).exp(), values(300, 400), b)
        images = values(8, 3, 50, 50).to(memory_format=cresset.channels_last)
        check(lambda x, y: (x * 2 + y).relu() - x, images, values(8, 3, 50, 50, seed=1))

    def test_views_of_results(self):
        a = values(200, 300)
        check(lambda a: (a * 2).view(300, 200) + 1, a)
        check(lambda a: ((a * 2).t() + 1, (a * 3)[:, :7].exp(), (a + 1)[3]), a)
        check(lambda a: (a * 2).reshape(-1).relu().view(200, 300).t().contiguous() + a.t(), a)

    def test_results_of_no_rank_and_of_no_elements(self):
        check(lambda a: (a * 2).sum() * 3 + 1, values())
        check(lambda a: a * 2 + 1, cresset.ones(0, 5))

    def test_other_operators_between(self):
        a, b = values(256, 200), values(200, 256, seed=1)
        check(lambda a, b: F.softmax((a @ b).relu() + 1, -1) * 2 - F.layer_norm(a @ b, (256,)).exp(), a, b)
        check(lambda a, b: cresset.cat([a * 2, a + 1]).cumsum(0).abs().sqrt(), a, b)

    def test_attributes_of_operators(self):
        a = values()
        check(lambda a: F.leaky_relu(a, 0.2) + F.softplus(a, 2.0) + F.elu(a, 0.5) + F.gelu(a, approximate="tanh"), a)
        check(lambda a: cresset.add(a, a * 3, alpha=2).clamp(min=0.1).pow(2.5).rsub(1), a)

    def test_under_autocast(self):
        a, w = values(256, 200), values(256, 200, seed=1)

        def f(a, w):
            with cresset.autocast("cpu", dtype=cresset.bfloat16):
                return F.linear(a, w).relu() * 2 + a.sum(-1, keepdim=True)

        check(f, a, w)

    def test_inside_vmap_and_grad(self):
        a = values(8, 8000)
        check(lambda a: cresset.vmap(lambda row: (row * 2).sin() + row.sum())(a), a)
        check(lambda a: cresset.func.grad(lambda x: ((x * 2).sin() ** 2).sum())(a), a)
        check(lambda a: cresset.func.jvp(lambda x: (x * 2).sin().exp(), (a,), (a + 1,)), a)

    def test_in_inference_mode(self):
        def f(a):
            with cresset.inference_mode():
                return (a * 2).relu() + 1

        assert check(f, values()).is_inference()


class TestWrites:
    """What is read late is what was there when the call was made."""

    def test_an_argument_is_changed_after_it_was_used(self):
        def f(a):
            y = a * 2
            a.add_(1)
            return y + a

        check(f, values())

    def test_a_part_of_it_is_changed(self):
        def f(a):
            y, z = a * 2, a.view(100, -1)
            z[3] = 7
            z[:, 1].mul_(2)
            a[5:9] = a[6:10] * 0.5
            return y

        check(f, values())

    def test_a_result_is_changed(self):
        def f(a):
            y = a * 2
            z = y + 1
            y.zero_()
            w = y + z
            z += 1
            return y, z, w

        check(f, values())

    def test_through_data_and_detach(self):
        def f(a):
            y, z = a * 2, a + 1
            a.data.fill_(3)
            z.detach().mul_(2)
            return y, z

        check(f, values())

    def test_through_numpy(self):
        def f(a):
            y = a * 2
            a.numpy()[:] = 1
            z = a * 3
            a.numpy()[:] = 5
            w = y * 2
            w.numpy()[:7] = 9
            return y, z, w

        pytest.importorskip("numpy")
        check(f, values())

    def test_by_out(self):
        def f(a):
            y = a * 2
            cresset.add(a, 1, out=a)
            out = cresset.empty(N)
            cresset.mul(y, 2, out=out)
            return y, out

        check(f, values())

    def test_by_resizing(self):
        def f(a):
            y = a * 2
            a.untyped_storage().resize_(0)
            return y

        a = values()
        expected = a * 2
        assert cresset.equal(cresset.compile(f)(a), expected)

    def test_by_an_optimizer(self):
        w = nn.Parameter(values())
        optimizer = cresset.optim.SGD([w], lr=0.5)
        w.grad = cresset.ones(N)
        expected = (w * 2).detach()

        @cresset.compile
        def f():
            y = w.detach() * 2
            optimizer.step()
            return y

        assert cresset.equal(f(), expected) and not cresset.equal(w * 2, expected)

    def test_random_numbers_are_drawn_in_order(self):
        def f(a):
            y = a * 2 + cresset.rand(N)
            a.uniform_()
            return F.dropout(y, 0.5) + cresset.rand(N), a * 3

        cresset.manual_seed(1)
        expected = f(values())
        cresset.manual_seed(1)
        got = cresset.compile(f)(values())
        assert all(map(cresset.equal, got, expected))


class TestWhoLooks:
    """A pending tensor is a tensor."""

    def pending(self, look):
        """What `look` finds in a result that nobody has looked at."""

        @cresset.compile
        def f(a):
            y = a * 2 + 1
            assert _native.is_pending(y)
            return look(y)

        return f(cresset.ones(N))

    def test_its_facts_need_no_elements(self):
        @cresset.compile
        def f(a):
            y = a * 2
            facts = y.shape, y.stride(), y.dtype, y.device, y.is_contiguous(), y.requires_grad, y._version
            assert _native.is_pending(y) and _native.is_pending(y.view(2, -1)) and _native.is_pending(y[3:])
            return facts

        assert f(cresset.ones(N)) == ((N,), (1,), cresset.float32, cresset.device("cpu"), True, False, 0)

    def test_numbers(self):
        assert self.pending(lambda y: y[7].item()) == 3 and self.pending(lambda y: float(y.sum())) == 3 * N
        assert self.pending(lambda y: y[:2].tolist()) == [3.0, 3.0] and self.pending(lambda y: bool((y > 2).all()))
        assert self.pending(repr).startswith("tensor([3., 3., 3., ")

    def test_memory(self):
        pytest.importorskip("numpy")
        assert self.pending(lambda y: y.numpy().copy())[0] == 3 and self.pending(lambda y: y.data_ptr()) != 0
        assert self.pending(lambda y: cresset.from_dlpack(y))[3] == 3
        assert self.pending(lambda y: y.untyped_storage().nbytes()) == 4 * N

    def test_copies(self):
        def saved(y):
            file = io.BytesIO()
            cresset.save(y, file)
            file.seek(0)
            return cresset.load(file)

        for copied in (copy.copy, copy.deepcopy, saved, cresset.clone, lambda y: y.share_memory_()):
            assert self.pending(copied).tolist() == [3.0] * N

    def test_another_thread(self):
        def look(y):
            found = []
            thread = threading.Thread(target=lambda: found.append((y + 1).sum().item()))
            thread.start()
            thread.join()
            return found[0]

        assert self.pending(look) == 4 * N

    def test_hooks_see_it(self):
        seen, model = [], nn.Sequential(nn.Tanh(), nn.ReLU())
        model[0].register_forward_hook(lambda module, args, out: seen.append(out.abs().max().item()))
        cresset.compile(model)(values(200, 300))
        assert len(seen) == 1 and 0.9 < seen[0] <= 1

    def test_nothing_is_pending_after_the_region(self):
        kept = []

        def f(a):
            kept.append(a * 2)
            kept.append(kept[0] + 1)
            return kept[1] * 3

        y = cresset.compile(f)(cresset.ones(N))
        assert not any(map(_native.is_pending, [*kept, y])) and [t[0].item() for t in kept] == [2, 3]

    def test_an_exception_leaves_what_was_made(self):
        kept = []

        def f(a):
            kept.append(a * 2 + 1)
            raise KeyError("here")

        with pytest.raises(KeyError, match="here"):
            cresset.compile(f)(cresset.ones(N))
        assert not _native.is_pending(kept[0]) and kept[0][0].item() == 3
        assert not cresset.compiler.is_compiling()

    def test_errors_come_at_their_own_line(self):
        @cresset.compile
        def f(a):
            y = a * 2
            try:
                y + cresset.ones(N + 1)
            except RuntimeError as error:
                assert "do not broadcast" in str(error)
                return y
            raise AssertionError

        assert f(cresset.ones(N))[0].item() == 2

    def test_generators_and_recursion(self):
        @cresset.compile
        def f(a, depth):
            return a if depth == 0 else f((a * 0.5).sin(), depth - 1) + 1

        def eager(a, depth):
            return a if depth == 0 else eager((a * 0.5).sin(), depth - 1) + 1

        a = values()
        assert cresset.equal(f(a, 5), eager(a, 5))

        @cresset.compile
        def numbers(a):
            for k in range(3):
                yield a * k + 1

        assert [y[0].item() for y in numbers(cresset.ones(N))] == [1, 2, 3]

    def test_a_disabled_function_computes_at_once(self):
        @cresset.compiler.disable
        def inner(a):
            y = a * 2
            assert not _native.is_pending(y)
            return y

        @cresset.compile
        def f(a):
            y = inner(a + 1)
            z = y * 2
            assert _native.is_pending(z)
            return z

        assert f(cresset.ones(N))[0].item() == 8


def test_many_threads_compute_the_same():
    a = values()
    expected = ((a * 2).sin() + a).exp()
    compiled, wrong = cresset.compile(lambda a: ((a * 2).sin() + a).exp()), []

    def work():
        for _ in range(50):
            if not cresset.equal(compiled(a), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_threads_that_want_one_value_wait_for_who_computes_it():
    a = values(400_000)  # so many that the interpreter's lock is let go meanwhile
    expected, found = ((a * 2).sin() + a).exp()[-1].item(), []

    @cresset.compile
    def region():
        y = ((a * 2).sin() + a).exp()
        begin = threading.Barrier(4)

        def look():
            begin.wait()
            found.append(y[-1].item())

        threads = [threading.Thread(target=look) for _ in range(3)]
        [t.start() for t in threads]
        begin.wait()
        found.append(y[-1].item())
        [t.join(60) for t in threads]

    for _ in range(30):
        region()
    assert found == [expected] * 120


@pytest.mark.parametrize("length", [1, 3, 255, 256, 300, 1000, 1024, 1100, 4096, 20_000])
@pytest.mark.parametrize("dtype", [cresset.float32, cresset.float64, cresset.bfloat16], ids=str)
def test_one_row_for_all(length, dtype):
    """What is broadcast over the first dimensions is read where it lies; blocks end anywhere in its rows."""
    x, bias = values(max(2, 70_000 // length), length, dtype=dtype), values(length, dtype=dtype, seed=1)
    check(lambda x, bias: F.gelu(x + bias) * x, x, bias)
    check(lambda x, bias: ((x + bias) * bias.abs()).square().mean(), x, bias)
    check(lambda x, bias: (x + bias).exp().sum(-1), x, bias)
    check(lambda x, bias: (x[1:] + bias) * 2, x, bias)
    check(lambda x, bias: (x.t() + bias[:, None]) * 2, x, bias)


def test_rows_of_several_lengths_in_one_group():
    x, short, plane, column = values(40, 6, 512), values(512, seed=1), values(6, 512, seed=2), values(40, 1, 1, seed=3)
    check(lambda x, a, b, c: ((x + a) * b - a) / (c + 9) + b, x, short, plane, column)
    check(
        lambda x, a, b, c: (((x * b + a) * c) + b.float()).square().mean(), x, short.bfloat16(), plane.double(), column
    )


def test_more_values_than_may_wait():
    check(lambda a: [a * k + 1 for k in range(150)][::7], values())


class TestTraining:
    """Gradients and steps, inside of regions and around them."""

    def model(self):
        cresset.manual_seed(0)
        return nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.LayerNorm(256), nn.Linear(256, 64), nn.Tanh())

    def train(self, wrap, whole):
        model = self.model()
        optimizer = cresset.optim.AdamW(model.parameters(), lr=0.01)
        f = model if whole else wrap(model)

        def step(x):
            optimizer.zero_grad()
            loss = ((f(x) - x).square() * 2).mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        step = wrap(step) if whole else step
        losses = [step(values(600, 64, seed=k)) for k in range(3)]
        return [*losses, *model.parameters(), *(p.grad for p in model.parameters())]

    @pytest.mark.parametrize("whole", [False, True], ids=["a compiled model", "a compiled step"])
    def test_steps_leave_eagers_bits(self, whole):
        for x, y in zip(self.train(cresset.compile, whole), self.train(lambda f: f, whole), strict=True):
            assert cresset.equal(x, y)

    def test_convolutions_with_statistics(self):
        def run(wrap):
            cresset.manual_seed(0)
            model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 8, 3), nn.SiLU())
            wrap(model)(values(8, 3, 32, 32)).square().mean().backward()
            return [*(p.grad for p in model.parameters()), *model.buffers()]

        for x, y in zip(run(cresset.compile), run(lambda m: m), strict=True):
            assert cresset.equal(x, y)

    def test_gradients_of_gradients_and_hooks(self):
        def f(a):
            a = a.detach().requires_grad_()
            seen = []
            y = (a * 2).sin()
            y.register_hook(lambda g: seen.append(g.sum()) or g * 3)
            (first,) = cresset.autograd.grad((y * y).sum(), a, create_graph=True)
            (second,) = cresset.autograd.grad((first.tanh() * a).sum(), a)
            return first.detach(), second, seen[0].detach()

        check(f, values())

    def test_a_saved_value_that_is_changed_is_an_error_as_in_eager(self):
        def f(a):
            a = a.detach().requires_grad_()
            y = (a * 2).exp()
            y.add_(1)
            y.sum().backward()

        for g in (f, cresset.compile(f)):
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                g(values())

    def test_gradients_accumulate(self):
        def f(a):
            a = a.detach().requires_grad_()
            for _ in range(3):
                ((a * 2).sin() * a).sum().backward()
            return a.grad

        check(f, values())

    def test_checkpointing_and_saved_tensors_hooks(self):
        def f(a):
            a = a.detach().requires_grad_()
            y = cresset.utils.checkpoint.checkpoint(lambda x: (x * 2).sin().exp(), a, use_reentrant=False)
            with cresset.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):
                y = (y * 3).tanh()
            y.sum().backward()
            return y.detach(), a.grad

        check(f, values())


class TestElementsMoved:
    """Elements that fused groups read and write, at most the least there can be."""

    def moved(self, function, *args):
        with cresset.compiler.regions.listening() as groups:
            cresset.compile(function)(*args)
            heard = groups()
        return len(heard), sum(g["read"] for g in heard), sum(g["written"] for g in heard)

    @pytest.mark.parametrize(
        "function, inputs, expected",
        [
            pytest.param(lambda a: a * 2 + 1, 1, (1, N, N), id="a chain: read once, write once"),
            pytest.param(lambda a: (a.sin() + a.cos()).exp() * a, 1, (1, N, N), id="an input is used three times"),
            pytest.param(lambda a, b: (a * b + a).relu() - b, 2, (1, 2 * N, N), id="two inputs"),
            pytest.param(lambda a: (a * 2, a * 3), 1, (1, N, 2 * N), id="two results of one input"),
            pytest.param(lambda a: [a + k for k in range(5)], 1, (1, N, 5 * N), id="five results of one input"),
            pytest.param(lambda a: (lambda y: (y, y + 1))(a * 2), 1, (1, N, 2 * N), id="a result of a result"),
            pytest.param(lambda a, b: cresset.where(a > b, a, b), 2, (1, 2 * N, N), id="a condition is never written"),
            pytest.param(lambda a: (a > 0).float() * a, 1, (1, N, N), id="bools and casts"),
            pytest.param(lambda a: a.clamp(-1, 1).abs().log1p().neg(), 1, (1, N, N), id="four functions"),
            pytest.param(lambda a: F.gelu(a) + F.silu(a) + F.mish(a), 1, (1, N, N), id="activations"),
            pytest.param(lambda a: (a * 2).view(100, -1).t() + 1, 1, (1, N, N), id="through views"),
            pytest.param(lambda a: (a * 2).sum(), 1, (1, N, 0), id="before a sum: nothing is written but the sum"),
            pytest.param(lambda a: ((a * 2).sum() * 3, a)[0], 1, (1, N, 0), id="a number after a sum"),
            pytest.param(lambda a, b: ((a - b) * 0.5).square().mean(), 2, (1, 2 * N, 0), id="the mean of a loss"),
            pytest.param(lambda a: (a.view(400, -1) * 2).sum(-1), 1, (1, N, 0), id="sums of rows"),
            pytest.param(lambda a: (lambda y: (y, y.sum()))(a * 2), 1, (1, N, N), id="what is summed is wanted, too"),
            pytest.param(lambda a: (a.exp(), (a.exp() * 2).sum()), 1, (2, 2 * N, N), id="beside a sum"),
            pytest.param(lambda a: (a.view(400, -1) * 2).sum(0), 1, (1, N, N), id="sums of columns read memory"),
            pytest.param(lambda a: F.softmax((a * 2).view(400, -1), -1), 1, (1, N, N), id="before a softmax"),
            pytest.param(
                lambda a: F.layer_norm((a * 2 + 1).view(400, -1), (100,)).exp() * 3,
                1,
                (2, 2 * N, 2 * N),
                id="before and after a layer norm",
            ),
            pytest.param(lambda a: F.dropout(a * 2, 0.5).relu() + 1, 1, (2, 2 * N, 2 * N), id="around dropout"),
            pytest.param(lambda a, b: cresset.cat([a * 2, b + 1]), 2, (2, 2 * N, 2 * N), id="before cat"),
            pytest.param(lambda a: (a * 2 + 1)[: N // 2], 1, (1, N, N), id="a part of a result"),
            pytest.param(lambda a, b: a.lerp(b, 0.25).clamp(0, 1), 2, (1, 2 * N, N), id="two inputs and a number"),
            pytest.param(lambda a: a.double().exp().float() * 2, 1, (1, N, N), id="through another dtype"),
            pytest.param(lambda a, b: (a * b, a + b, a - b), 2, (1, 2 * N, 3 * N), id="three results of two inputs"),
            pytest.param(lambda a: cresset.where(a > 0, a, 0.01 * a), 1, (1, N, N), id="a leaky relu"),
        ],
    )
    def test_pointwise_programs(self, function, inputs, expected):
        assert self.moved(function, *(values(seed=k) for k in range(inputs))) == expected

    def test_broadcast_operands_are_read_as_often_as_they_are_large(self):
        a, row, column = values(200, 300), values(300), values(200, 1)
        assert self.moved(lambda: (a + row) * column) == (1, 60_000 + 300 + 200, 60_000)
        assert self.moved(lambda: (a + cresset.tensor(2.0)) * cresset.ones(1)) == (1, 60_000, 60_000)

    def test_what_nobody_refers_to_is_never_computed(self):
        def f(a):
            a * 2 + 1
            return a

        assert self.moved(f, values()) == (0, 0, 0)

    def test_backward_writes_gradients_and_what_is_saved(self):
        w = values().requires_grad_()

        def f():
            y = (w * 2).sin().exp()  # sin saves its input, exp its result
            y.backward(cresset.ones(N))
            return y

        groups, read, written = self.moved(f)
        assert written == 2 * N  # y and the gradient; what is saved and the gradients between are never written

    def test_a_training_step_of_a_loss(self):
        w, x = values(seed=1).requires_grad_(), values(seed=2)

        def f():
            ((w * x).sigmoid() - 1).square().mean().backward()

        groups, read, written = self.moved(f)
        # Forward reads w and x and writes what is saved: the sigmoid, and what is squared. Backward reads both and x,
        # and writes the gradient.
        assert (read, written) == (2 * N + 3 * N, 2 * N + N)
        assert groups == 2


class TestReductions:
    """Sums and means fold what is still to be computed as it is made, in eager's order."""

    @pytest.mark.parametrize("dtype", [cresset.float32, cresset.float64])
    @pytest.mark.parametrize(
        "shape", [(40_000,), (200, 300), (7, 8192), (3, 5000, 4), (50_000, 1), (9, 4097), (40_961,), (2, 3, 4096, 2)]
    )
    def test_every_shape(self, shape, dtype):
        a = values(*shape, dtype=dtype)
        dims = [None, -1, 0, *([(-1, -2)] if len(shape) > 1 else [])]
        for dim in dims:
            check(lambda a, dim=dim: (a * 1.1 + 0.3).sum(dim), a)
            check(lambda a, dim=dim: (a * 1.1 + 0.3).exp().mean(dim, keepdim=True), a)
            check(lambda a, dim=dim: (lambda y: (y.sum(dim), y, y.mean(dim)))(a * 1.1), a)

    def test_other_dtypes(self):
        check(lambda a: (a * 2).sum(dtype=cresset.float64), values())
        check(lambda a: (a > 0).sum(), values())
        check(lambda a: (a * 2).sum(), values(dtype=cresset.bfloat16))

    def test_what_was_summed_is_asked_for_later(self):
        def f(a):
            y = a * 2
            total = y.sum()
            z = y + total
            a.zero_()
            return y, z, total, a

        check(f, values())

    def test_a_large_one_that_is_kept(self):
        check(lambda a: (lambda y: (y.mean(), y))((a + 1).exp()), values(2_200_000))

    def test_gradients(self):
        def f(a):
            a = a.requires_grad_()
            ((a * 2).sin().view(100, -1).sum(-1) * 3).sum().backward()
            return a.grad

        check(f, values())

    def test_errors(self):
        for f in (lambda a: (a * 2).sum(5), lambda a: (a * 2).mean(dtype=cresset.int64)):
            with pytest.raises((IndexError, RuntimeError)) as ours:
                cresset.compile(f)(values())
            with pytest.raises(ours.type, match=None) as theirs:
                f(values())
            assert str(ours.value) == str(theirs.value)

    def test_from_several_threads(self):
        a = values(300_000)
        f = cresset.compile(lambda a, k: ((a * k).exp() + 1).sum())
        expected, found = [((a * k).exp() + 1).sum() for k in range(4)], [None] * 4

        def work(k):
            for _ in range(20):
                found[k] = f(a, k)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(cresset.equal(x, y) for x, y in zip(found, expected, strict=True))


def test_the_log_tells_what_was_done(tmp_path):
    import os
    import subprocess
    import sys

    program = "import cresset\n@cresset.compile\ndef f(a):\n    return a * 2 + 1\nf(cresset.ones(40000))\n"
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "CRESSET_COMPILE_LOG": "segments,kernels,fusion"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert "f: 1 groups of 2 pointwise calls" in run.stderr and "mul, add; reads 40000 and writes 40000" in run.stderr
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "CRESSET_COMPILE_LOG": "all"},
        capture_output=True,
        text=True,
    )
    assert "CRESSET_COMPILE_LOG: expected words of segments, kernels, fusion" in run.stderr


def test_explain_shows_groups_and_draws_them():
    found = cresset.compiler.explain(lambda a: (a * 2 + 1).matmul(a))(values(200, 200))
    assert [g["calls"] for g in found.groups] == [["mul", "add"]] and found.groups[0]["reason"] == "matmul"
    assert "mul, add: 40000 elements, reads 40000, writes 40000, 1 results never written" in str(found)
    assert found._repr_svg_().startswith("<svg") and ">add<" in found._repr_svg_()
