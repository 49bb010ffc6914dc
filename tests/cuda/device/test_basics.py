"""Memory, copies, pointwise operators, streams, events and graphs on a CUDA device."""

import gc
import random

import pytest

import cresset as torch


def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and torch.equal(a.cpu(), b.cpu())


class TestCopies:
    def test_there_and_back(self):
        x = torch.arange(12.0).reshape(3, 4)
        y = x.cuda()
        assert y.is_cuda and str(y.device) == "cuda:0" and y.to("cuda") is y and same(y, x)
        assert y.cpu().device.type == "cpu"

    @pytest.mark.parametrize(
        "dtype",
        [
            torch.float32,
            torch.float64,
            torch.float16,
            torch.bfloat16,
            torch.int64,
            torch.int8,
            torch.bool,
            torch.complex64,
        ],
    )
    def test_every_layout_travels(self, dtype):
        x = torch.arange(24).reshape(2, 3, 4).to(dtype)
        for view in (x, x.permute(2, 0, 1), x[:, ::2], x[1:, 1:, ::3], x[0, 0, 0], x[:0], x.expand(2, 2, 3, 4)):
            assert same(view.cuda(), view)
            assert same(x.cuda().cpu(), x)
        on_device = x.cuda()
        assert same(on_device.permute(2, 0, 1).contiguous(), x.permute(2, 0, 1).contiguous())
        assert same(on_device[:, ::2].clone(), x[:, ::2].clone())

    def test_conversion_on_the_way(self):
        x = torch.tensor([1.5, -2.5, 300.0])
        assert same(x.to("cuda", torch.int64), x.to(torch.int64)) and same(
            x.cuda().to("cpu", torch.float64), x.double()
        )
        assert same(x.cuda().half().float(), x.half().float())

    def test_into_views_of_the_device(self):
        x, y = torch.zeros(3, 4, device="cuda"), torch.arange(4.0)
        x[1] = y.cuda()
        x[:, 0].copy_(torch.tensor([7.0, 8.0, 9.0]))
        assert x.tolist() == [[7, 0, 0, 0], [8, 1, 2, 3], [9, 0, 0, 0]]

    def test_single_elements(self):
        x = torch.tensor([3.5, 4.5], device="cuda")
        assert x[1].item() == 4.5 and float(x[0]) == 3.5 and bool(x[0] > 1) and x.tolist() == [3.5, 4.5]

    def test_pinned_memory(self):
        x = torch.arange(100.0).pin_memory()
        y = x.cuda(non_blocking=True)
        torch.cuda.synchronize()
        assert x.is_pinned() and not torch.ones(1).is_pinned() and same(y, x)

    def test_numpy_is_refused(self):
        with pytest.raises(TypeError, match="cpu"):
            torch.ones(2, device="cuda").numpy()


class TestPointwise:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
    def test_formulas_agree_with_the_cpu(self, dtype):
        x, y = torch.linspace(-3, 3, 1031, dtype=dtype), torch.linspace(0.5, 2, 1031, dtype=dtype)
        for f in (
            lambda a, b: a + b,
            lambda a, b: a * b - 2,
            lambda a, b: (a / b).exp(),
            lambda a, b: torch.where(a > 0, a, b),
            lambda a, b: torch.nn.functional.gelu(a),
            lambda a, b: a.clamp(-1, 1),
        ):
            torch.testing.assert_close(f(x.cuda(), y.cuda()).cpu(), f(x, y))

    def test_broadcasting_and_strides(self):
        a, b = torch.arange(12.0).reshape(3, 4), torch.arange(3.0).reshape(3, 1)
        assert same(a.cuda() + b.cuda(), a + b) and same(a.cuda().t() * b.cuda().t()[0], a.t() * b.t()[0])
        assert same(a.cuda()[:, ::2] + 1, a[:, ::2] + 1) and same(a.cuda() + torch.tensor(2.0), a + 2)

    def test_promotion(self):
        a, b = torch.arange(5).cuda(), torch.linspace(0, 1, 5).cuda()
        assert (
            (a + b).dtype == torch.float32
            and same(a + b, a.cpu() + b.cpu())
            and same(a // 2, a.cpu() // 2)
            and same(a == 2, a.cpu() == 2)
        )
        assert same(a + 1.5, a.cpu() + 1.5) and same(b > a, b.cpu() > a.cpu())

    def test_in_place_and_out(self):
        x = torch.zeros(4, device="cuda")
        where = x.data_ptr()
        x.add_(5).mul_(2).clamp_(max=9)
        assert x.data_ptr() == where and x.tolist() == [9] * 4
        out = torch.empty(4, device="cuda")
        torch.add(x, x, out=out)
        assert out.tolist() == [18] * 4

    def test_unaligned_views(self):
        x = torch.arange(1000.0).cuda()
        assert same(x[1:] + x[:-1], x.cpu()[1:] + x.cpu()[:-1])

    def test_gradients(self):
        a, b = torch.linspace(-2, 2, 50), torch.linspace(1, 3, 50)

        def grads(a, b):
            a, b = a.clone().requires_grad_(), b.clone().requires_grad_()
            ((a * b).tanh() + a.sigmoid() / b).backward(torch.ones_like(a))
            return a.grad.cpu(), b.grad.cpu()

        for mine, theirs in zip(grads(a.cuda(), b.cuda()), grads(a, b), strict=True):
            torch.testing.assert_close(mine, theirs)

    def test_devices_must_agree(self):
        with pytest.raises(RuntimeError, match="cuda:0.*cpu|cpu.*cuda:0"):
            torch.ones(3) + torch.ones(3, device="cuda")


class TestStreamsAndEvents:
    def test_work_in_a_stream(self):
        s = torch.cuda.Stream()
        assert torch.cuda.current_stream() == torch.cuda.default_stream() != s
        with torch.cuda.stream(s):
            assert torch.cuda.current_stream() == s
            assert torch._C._cuda_getCurrentRawStream(0) == s.cuda_stream
            x = torch.ones(8, device="cuda") * 3
        torch.cuda.current_stream().wait_stream(s)
        x.record_stream(torch.cuda.current_stream())
        assert x.tolist() == [3] * 8 and s.query()
        s.synchronize()

    def test_events_measure_time(self):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        with pytest.raises(ValueError, match="recorded"):
            start.elapsed_time(end)
        start.record()
        torch.ones(1000, device="cuda").exp()
        end.record()
        end.synchronize()
        assert start.query() and start.elapsed_time(end) >= 0


class TestGraphs:
    def test_work_is_repeated_with_new_numbers(self):
        x = torch.ones(16, device="cuda")
        graph = torch.cuda.CUDAGraph()
        (x * 2 + 1).tolist()
        with torch.cuda.graph(graph):
            y = x * 2 + 1
        for value in (3.0, 5.0):
            x.fill_(value)
            graph.replay()
            assert y.tolist() == [2 * value + 1] * 16
        with pytest.raises(RuntimeError, match="already owns"):
            graph.capture_begin()

    def test_the_default_stream_cannot_be_recorded(self):
        with pytest.raises(RuntimeError, match="non-default stream"):
            torch.cuda.CUDAGraph().capture_begin()


class TestMemory:
    def test_figures_follow_tensors(self):
        gc.collect()
        before = torch.cuda.memory_allocated()
        x = torch.empty(1024, 1024, device="cuda")
        during = torch.cuda.memory_allocated()
        assert (
            during - before == 4 * 2**20
            and torch.cuda.memory_reserved() >= during
            and torch.cuda.max_memory_allocated() >= during
        )
        del x
        assert torch.cuda.memory_allocated() == before
        torch.cuda.empty_cache()
        assert "Allocated memory" in torch.cuda.memory_summary()

    def test_freed_memory_is_given_again(self):
        x = torch.empty(100_000, device="cuda")
        where = x.data_ptr()
        del x
        assert torch.empty(100_000, device="cuda").data_ptr() == where

    def test_blocks_split_and_merge(self):
        torch.cuda.empty_cache()
        start = torch.cuda.memory_reserved()
        blocks = [torch.empty(n * 1000, dtype=torch.uint8, device="cuda") for n in range(1, 150)]
        assert len({b.data_ptr() for b in blocks}) == len(blocks)
        for b in blocks[::2] + blocks[1::2]:
            b.fill_(1)
        del b, blocks
        torch.cuda.empty_cache()
        assert torch.cuda.memory_reserved() <= start

    def test_any_order_of_allocations(self):
        choose = random.Random(3)
        live = []
        for _ in range(4000):
            if choose.random() < 0.55 or not live:
                live.append(
                    torch.empty(
                        choose.choice([choose.randint(1, 4000), choose.randint(1, 300_000), 65536]),
                        dtype=torch.uint8,
                        device="cuda",
                    )
                )
            else:
                live.pop(choose.randrange(len(live)))
        spans = sorted((t.data_ptr(), t.data_ptr() + t.numel()) for t in live)
        assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:], strict=False))

    def test_out_of_memory_says_who_holds_it(self):
        total = torch.cuda.mem_get_info()[1]
        holder = torch.empty(total // 4, dtype=torch.uint8, device="cuda")
        with pytest.raises(
            torch.cuda.OutOfMemoryError, match=r"(?s)Tried to allocate.*largest holders.*test_basics.py"
        ):
            torch.empty(total, dtype=torch.uint8, device="cuda")
        del holder
        assert torch.ones(3, device="cuda").tolist() == [1, 1, 1]

    def test_the_share_of_a_process(self):
        torch.cuda.set_per_process_memory_fraction(0.1)
        try:
            with pytest.raises(torch.cuda.OutOfMemoryError, match="set_per_process_memory_fraction"):
                torch.empty(torch.cuda.mem_get_info()[1] // 2, dtype=torch.uint8, device="cuda")
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)

    def test_the_snapshot_lists_blocks(self):
        x = torch.empty(3 * 2**20, dtype=torch.uint8, device="cuda")
        blocks = [b for s in torch.cuda.memory_snapshot() for b in s["blocks"] if b["address"] == x.data_ptr()]
        assert blocks[0]["state"] == "active_allocated" and blocks[0]["requested_size"] == x.numel()
        assert blocks[0]["frames"][0]["filename"].endswith("test_basics.py")


class TestDevices:
    def test_what_the_device_is(self):
        facts = torch.cuda.get_device_properties(0)
        assert (
            facts.name == torch.cuda.get_device_name()
            and facts.total_memory > 2**28
            and facts.multi_processor_count > 0
        )
        assert torch.cuda.current_device() == 0 and torch.cuda.get_device_capability() == (facts.major, facts.minor)

    def test_a_device_that_is_not_there(self):
        with pytest.raises(RuntimeError, match="invalid device ordinal"):
            torch.ones(1).to(f"cuda:{torch.cuda.device_count()}")
        with pytest.raises(RuntimeError, match="invalid device ordinal"):
            torch.cuda.set_device(torch.cuda.device_count())


class TestSharing:
    def test_dlpack_shares_the_memory(self):
        x = torch.arange(6.0).cuda()
        y = torch.from_dlpack(x)
        y.mul_(2)
        assert x.__dlpack_device__() == (2, 0) and y.data_ptr() == x.data_ptr() and x.tolist() == [0, 2, 4, 6, 8, 10]

    def test_the_array_interface(self):
        x = torch.zeros(2, 3, dtype=torch.int32, device="cuda")
        facts = x.t().__cuda_array_interface__
        assert (facts["typestr"], facts["shape"], facts["strides"], facts["data"]) == (
            "<i4",
            (3, 2),
            (4, 12),
            (x.data_ptr(), False),
        )
        assert x.__cuda_array_interface__["strides"] is None and not hasattr(torch.zeros(1), "__cuda_array_interface__")

    def test_files(self, tmp_path):
        x = {"w": torch.arange(4.0).cuda(), "b": torch.ones(2)}
        torch.save(x, tmp_path / "x.pt")
        there, here = torch.load(tmp_path / "x.pt"), torch.load(tmp_path / "x.pt", map_location="cpu")
        assert (
            there["w"].is_cuda
            and not there["b"].is_cuda
            and not here["w"].is_cuda
            and here["w"].tolist() == there["w"].tolist() == [0, 1, 2, 3]
        )
        assert torch.load(tmp_path / "x.pt", map_location="cuda")["b"].is_cuda


class TestPlacement:
    def test_the_error_names_both_arguments(self):
        with pytest.raises(RuntimeError, match=r"argument 'mat2' is on cpu, 'input' on cuda:0"):
            torch.mm(torch.ones(2, 2, device="cuda"), torch.ones(2, 2))
        with pytest.raises(RuntimeError, match="two devices"):
            torch.nn.functional.cross_entropy(torch.randn(2, 3).cuda(), torch.tensor([0, 1]))

    def test_single_numbers_come_along(self):
        x = torch.arange(3.0).cuda()
        assert (x * torch.tensor(2.0)).tolist() == [0, 2, 4] and x.fill_(torch.tensor(7.0)).tolist() == [7, 7, 7]
