"""What surrounds the kernels on a CUDA device: pinned memory, waits that are watched, marks for profilers, copies
between devices, old names.
"""

import ctypes
import json
import warnings

import pytest

import cresset as torch
from cresset import nn


class TestPinnedMemory:
    @pytest.mark.parametrize(
        "make",
        [
            lambda **k: torch.empty(3, 4, **k), lambda **k: torch.zeros(5, **k),
            lambda **k: torch.ones(2, dtype=torch.int64, **k), lambda **k: torch.full((2,), 7.0, **k),
            lambda **k: torch.arange(6, **k), lambda **k: torch.linspace(0, 1, 5, **k), lambda **k: torch.eye(3, **k),
            lambda **k: torch.rand(4, **k),
            lambda **k: torch.randn(4, **k), lambda **k: torch.randint(9, (4,), **k),
            lambda **k: torch.randperm(5, **k), lambda **k: torch.tensor([1.0, 2.0], **k),
            lambda **k: torch.empty_like(torch.ones(3), **k), lambda **k: torch.zeros_like(torch.ones(3), **k),
            lambda **k: torch.empty_strided((2, 2), (1, 2), **k),
            lambda **k: torch.ones(1).new_zeros(3, **k), lambda **k: torch.ones(1).new_tensor([3.0], **k),
            lambda **k: torch.hann_window(8, **k), lambda **k: torch.empty(0, **k),
        ],
    )  # fmt: skip
    def test_new_tensors_are_pinned(self, make):
        x = make(pin_memory=True)
        assert x.is_pinned() and x.device == torch.device("cpu") and str(x.device) == "cpu" and not make().is_pinned()

    def test_values_are_there(self):
        assert torch.arange(5, pin_memory=True).tolist() == [0, 1, 2, 3, 4] and torch.full(
            (2,), 7.0, pin_memory=True
        ).tolist() == [7, 7]
        x = torch.linspace(0, 1, 3, pin_memory=True)
        assert (
            x.cuda(non_blocking=True).tolist() == [0, 0.5, 1]
            and (x + 1).tolist() == [1, 1.5, 2]
            and not (x + 1).is_pinned()
        )

    def test_views_and_storages_are_pinned_copies_are_not(self):
        x = torch.zeros(4, pin_memory=True)
        assert (
            x[1:].is_pinned()
            and x.untyped_storage().is_pinned()
            and x.detach().is_pinned()
            and not x.clone().is_pinned()
        )
        assert x.pin_memory() is x and torch.ones(3).pin_memory().is_pinned()

    def test_only_host_memory_can_be_pinned(self):
        with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
            torch.empty(3, device="cuda", pin_memory=True)
        with pytest.raises(RuntimeError, match="cannot pin 'cuda:0'"):
            torch.empty(3, device="cuda").pin_memory()

    def test_an_error_leaves_the_next_tensor_alone(self):
        with pytest.raises(RuntimeError):
            torch.full((2,), 1e300, dtype=torch.int8, pin_memory=True)
        assert not torch.zeros(2).is_pinned()

    def test_memory_of_others_can_be_registered(self):
        cudart, x = torch.cuda.cudart(), torch.arange(4096.0)
        assert not x.is_pinned()
        assert cudart.cudaHostRegister(x.data_ptr(), x.nbytes, 0) == cudart.cudaError.success
        assert x.is_pinned() and x[5:].is_pinned() and not torch.ones(1).is_pinned()
        y = x.cuda(non_blocking=True)
        torch.cuda.synchronize()
        assert y.tolist() == x.tolist()
        assert cudart.cudaHostRegister(x.data_ptr(), x.nbytes, 0) == cudart.cudaError.errorHostMemoryAlreadyRegistered
        assert cudart.cudaHostUnregister(x.data_ptr()) == 0 and not x.is_pinned()
        with pytest.raises(torch.cuda.CudaError, match="713"):
            torch.cuda.check_error(cudart.cudaHostUnregister(x.data_ptr()))

    @pytest.mark.parametrize("workers", [0, 1])
    def test_batches_of_a_loader(self, workers):
        data = torch.utils.data.TensorDataset(torch.arange(8.0).reshape(4, 2), torch.arange(4))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of forking while threads are there
            batches = list(
                torch.utils.data.DataLoader(
                    data,
                    batch_size=2,
                    pin_memory=True,
                    num_workers=workers,
                    worker_type="thread" if workers else "process",
                )
            )
        assert all(part.is_pinned() for batch in batches for part in batch)
        assert [batch[0].cuda(non_blocking=True).tolist() for batch in batches] == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]

    def test_a_loader_pins_what_is_inside(self):
        loader = torch.utils.data.DataLoader([{"x": torch.ones(2), "name": "a"}] * 2, batch_size=2, pin_memory=True)
        (batch,) = loader
        assert batch["x"].is_pinned() and batch["name"] == ["a", "a"]


class TestWaits:
    @pytest.fixture(autouse=True)
    def quiet_again(self):
        yield
        torch.cuda.set_sync_debug_mode(0)

    WAITS = [
        lambda x: x.sum().item(),
        lambda x: x.cpu(),
        lambda x: x.tolist(),
        lambda x: bool(x[0] > 0),
        lambda x: x.nonzero(),
        lambda x: x.copy_(torch.ones(4)),
        lambda x: x[x > 1],
    ]

    @pytest.mark.parametrize("wait", WAITS)
    def test_waiting_warns_or_raises(self, wait):
        x = torch.arange(4.0, device="cuda")
        wait(x.clone())
        torch.cuda.set_sync_debug_mode("warn")
        with pytest.warns(UserWarning, match="synchronizing CUDA operation"):
            wait(x.clone())
        torch.cuda.set_sync_debug_mode("error")
        with pytest.raises(RuntimeError, match="synchronizing CUDA operation"):
            wait(x.clone())
        torch.cuda.set_sync_debug_mode("default")
        wait(x)

    def test_work_that_does_not_wait_is_silent(self):
        host = torch.ones(4, pin_memory=True)
        torch.cuda.set_sync_debug_mode("error")
        x = torch.zeros(4, device="cuda")
        x.copy_(host, non_blocking=True)
        (x * 2 + x.exp()).sum()
        torch.cuda.synchronize()

    def test_the_mode_is_told(self):
        for name, number in (("warn", 1), ("error", 2), ("default", 0)):
            torch.cuda.set_sync_debug_mode(name)
            assert torch.cuda.get_sync_debug_mode() == number
        for wrong in ("loud", 3):
            with pytest.raises(RuntimeError, match="debug_mode"):
                torch.cuda.set_sync_debug_mode(wrong)


class TestProfilers:
    def test_ranges_appear_in_the_profile(self):
        x = torch.ones(2, device="cuda")
        with torch.profiler.profile() as found:
            assert torch.cuda.nvtx.range_push("outer") == 0
            with torch.cuda.nvtx.range("inner {}", 3):
                x + 1
            torch.cuda.nvtx.mark("a moment")
            assert torch.cuda.nvtx.range_pop() == 0
        counts = {event.key: event.count for event in found.key_averages()}
        assert counts["outer"] == counts["inner 3"] == counts["a moment"] == 1
        assert torch.cuda.nvtx.range_pop() == -1
        handle = torch.cuda.nvtx.range_start("overlapping")
        torch.cuda.nvtx.range_end(handle)

    def test_a_range_around_a_function(self):
        @torch.cuda.nvtx.range("named")
        def double(x):
            return x * 2

        with torch.profiler.profile() as found:
            assert double(3) == 6 and double(4) == 8
        assert [event.count for event in found.key_averages() if event.key == "named"] == [2]

    def test_profilers_of_others_are_told(self):
        with torch.cuda.profiler.profile():
            torch.ones(2, device="cuda")
        torch.cuda.check_error(torch.cuda.cudart().cudaProfilerStart())
        torch.cuda.profiler.stop()


def test_functions_of_the_runtime_library():
    cudart = torch.cuda.cudart()
    assert cudart.cudaMemGetInfo(0) == torch.cuda.mem_get_info(0) and cudart.cudaGetErrorString(
        cudart.cudaError.success
    )
    handle = ctypes.c_void_p()
    assert cudart.cudaStreamCreate(ctypes.addressof(handle)) == 0
    with torch.cuda.stream(torch.cuda.ExternalStream(handle.value)):
        x = torch.ones(3, device="cuda") * 2
        torch.cuda.current_stream().synchronize()
    assert x.tolist() == [2, 2, 2]
    assert cudart.cudaStreamDestroy(handle.value) == 0


class TestOldNames:
    def test_types_make_tensors_on_the_device(self):
        x = torch.cuda.FloatTensor([[1, 2], [3, 4]])
        assert (
            x.is_cuda
            and x.dtype == torch.float32
            and x.tolist() == [[1, 2], [3, 4]]
            and x.type() == "torch.cuda.FloatTensor"
        )
        assert (
            torch.cuda.LongTensor(2, 3).shape == (2, 3)
            and torch.cuda.HalfTensor(2).dtype == torch.float16
            and torch.cuda.BoolTensor([True]).tolist() == [True]
        )
        assert (
            isinstance(x, torch.cuda.FloatTensor)
            and not isinstance(x, torch.FloatTensor)
            and not isinstance(x.cpu(), torch.cuda.FloatTensor)
        )
        assert torch.cuda.FloatTensor(x).data_ptr() == x.data_ptr() and torch.cuda.FloatTensor().numel() == 0
        with pytest.raises(TypeError, match="expected a tensor on 'cuda'"):
            torch.cuda.FloatTensor(torch.ones(2))

    def test_type_moves(self):
        x = torch.tensor([1.5, 2.5])
        assert x.type("torch.cuda.LongTensor").is_cuda and x.type(torch.cuda.DoubleTensor).dtype == torch.float64
        assert (
            not x.cuda().type("torch.FloatTensor").is_cuda
            and x.cuda().type(torch.float64).is_cuda
            and x.cuda().new(3).is_cuda
        )

    def test_a_default_type(self):
        with pytest.warns(UserWarning, match="deprecated"):
            torch.set_default_tensor_type("torch.cuda.FloatTensor")
        try:
            assert torch.zeros(2).is_cuda
        finally:
            with pytest.warns(UserWarning, match="deprecated"):
                torch.set_default_tensor_type(torch.FloatTensor)
        assert not torch.zeros(2).is_cuda

    def test_storages(self):
        storage = torch.cuda.FloatStorage(4)
        assert storage.is_cuda and len(storage) == 4 and isinstance(storage, torch.cuda.FloatStorage)


class TestStreamsOfAnyDevice:
    def test_general_names_give_the_device_s(self):
        stream, event = torch.Stream("cuda"), torch.Event("cuda", enable_timing=True)
        assert (
            isinstance(stream, torch.cuda.Stream)
            and isinstance(event, torch.cuda.Event)
            and isinstance(torch.cuda.Stream(), torch.Stream)
        )
        assert isinstance(torch.Stream(), torch.cuda.Stream) and not isinstance(torch.Stream("cpu"), torch.cuda.Stream)
        with stream:
            x = torch.ones(3, device="cuda")
            event.record()
        event.synchronize()
        assert x.tolist() == [1, 1, 1] and event.query() and event.event_id == event.cuda_event != 0

    def test_a_wait_by_an_event(self):
        first, second = torch.cuda.Stream(priority=-1), torch.cuda.Stream()
        with torch.cuda.stream(first):
            x = torch.full((1000,), 3.0, device="cuda")
        second.wait_event(first.record_event())
        with torch.cuda.stream(second):
            y = x * 2
        second.synchronize()
        assert y.sum().item() == 6000 and first.priority <= second.priority


class TestComm:
    def test_copies_and_sums(self):
        x = torch.arange(6.0, device="cuda")
        assert (
            torch.cuda.comm.broadcast(x, [0])[0] is x
            and torch.cuda.comm.broadcast_coalesced([x, x], [0])[0][1].tolist() == x.tolist()
        )
        assert torch.cuda.comm.reduce_add([x, x, x]).tolist() == [0, 3, 6, 9, 12, 15] and x.tolist() == [
            0,
            1,
            2,
            3,
            4,
            5,
        ]
        assert [t.tolist() for t in torch.cuda.comm.reduce_add_coalesced([[x, x], [x, x]])] == [[0, 2, 4, 6, 8, 10]] * 2
        with pytest.raises(ValueError, match="input 1 has invalid size"):
            torch.cuda.comm.reduce_add([x, x[:2]])
        with pytest.raises(TypeError, match="CUDA devices"):
            torch.cuda.comm.reduce_add([x.cpu()])

    def test_pieces(self):
        x = torch.arange(6.0)
        pieces = torch.cuda.comm.scatter(x, ["cuda:0", 0], chunk_sizes=[2, 4])
        assert [p.tolist() for p in pieces] == [[0, 1], [2, 3, 4, 5]] and all(p.is_cuda for p in pieces)
        assert (
            torch.cuda.comm.gather(pieces).tolist() == x.tolist()
            and not torch.cuda.comm.gather(pieces, destination="cpu").is_cuda
        )
        out = torch.empty(6, device="cuda")
        assert torch.nn.parallel.comm.gather(pieces, out=out) is out and out.tolist() == x.tolist()
        with pytest.raises(RuntimeError, match="not given together"):
            torch.cuda.comm.gather(pieces, destination=0, out=out)


class TestGraphedCallables:
    def test_a_module_gives_the_same_values_and_gradients(self):
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).cuda()
        plain = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).cuda()
        plain.load_state_dict(module.state_dict())
        graphed = torch.cuda.make_graphed_callables(module, (torch.randn(3, 4, device="cuda", requires_grad=True),))
        assert graphed is module
        for _ in range(2):
            x = torch.randn(3, 4, device="cuda")
            mine, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
            graphed(mine).square().sum().backward()
            plain(theirs).square().sum().backward()
            torch.testing.assert_close(mine.grad, theirs.grad)
            for p, q in zip(graphed.parameters(), plain.parameters()):
                torch.testing.assert_close(p.grad, q.grad)

    def test_training_steps(self):
        torch.manual_seed(0)
        module = nn.Linear(3, 1).cuda()
        graphed = torch.cuda.make_graphed_callables(module, (torch.randn(8, 3, device="cuda"),))
        x = torch.randn(8, 3, device="cuda")
        y = x.sum(1, keepdim=True)
        losses = []
        for _ in range(20):
            loss = (graphed(x) - y).square().mean()
            module.zero_grad()
            loss.backward()
            with torch.no_grad():
                for p in module.parameters():
                    p -= 0.2 * p.grad
            losses.append(loss.item())
        assert losses[-1] < 0.05 * losses[0]

    def test_another_mode_is_not_replayed(self):
        module = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.0)).cuda()
        graphed = torch.cuda.make_graphed_callables(module, (torch.randn(3, 2, device="cuda"),))
        graphed.eval()
        assert graphed(torch.randn(5, 2, device="cuda")).shape == (5, 2)  # recorded with 3 rows
        graphed.train()
        with pytest.raises(ValueError, match=r"shape \(3, 2\)"):
            graphed(torch.randn(5, 2, device="cuda"))

    def test_several_functions_and_structures(self):
        def first(x, pair):
            return {"sum": x + pair[0], "product": x * pair[1]}

        second = nn.Linear(2, 2).cuda()
        sample = (
            torch.ones(3, 2, device="cuda", requires_grad=True),
            (torch.ones(3, 2, device="cuda"), torch.ones(3, 2, device="cuda")),
        )
        f, g = torch.cuda.make_graphed_callables(
            (first, second), (sample, (torch.ones(3, 2, device="cuda", requires_grad=True),))
        )
        x = torch.full((3, 2), 2.0, device="cuda", requires_grad=True)
        out = f(x, (torch.full((3, 2), 5.0, device="cuda"), torch.full((3, 2), 4.0, device="cuda")))
        assert out["sum"].tolist() == [[7, 7]] * 3 and out["product"].tolist() == [[8, 8]] * 3
        g(out["product"]).sum().backward()
        torch.testing.assert_close(x.grad, 4 * second.weight.detach().sum(0).expand(3, 2))

    def test_what_is_refused(self):
        with pytest.raises(TypeError, match="must be tensors on 'cuda'"):
            torch.cuda.make_graphed_callables(lambda x: x, (torch.ones(2),))
        module = nn.Linear(2, 2).cuda()
        module.register_forward_hook(lambda *_: None)
        with pytest.raises(RuntimeError, match="hooks"):
            torch.cuda.make_graphed_callables(module, (torch.ones(2, 2, device="cuda"),))


def test_answers_of_the_backends():
    assert torch.backends.cuda.is_built() and torch.backends.cuda.is_flash_attention_available()
    q = torch.empty(1, 2, 16, 64, dtype=torch.float16, device="cuda")
    params = torch.backends.cuda.SDPAParams(q, q, q, None, 0.0, True)
    assert torch.backends.cuda.can_use_flash_attention(params) and torch.backends.cuda.can_use_efficient_attention(
        params
    )
    wide = torch.backends.cuda.SDPAParams(q.float(), q.float(), q.float(), None, 0.5, True)
    assert not torch.backends.cuda.can_use_flash_attention(
        wide
    ) and not torch.backends.cuda.can_use_efficient_attention(wide)


def test_doctor_computes_on_the_device(capsys):
    from cresset import cli

    assert cli.main(["doctor", "--json"]) == 0
    found = {item["topic"]: item for item in json.loads(capsys.readouterr().out)}
    assert (
        found["CUDA"]["state"] == found["NVRTC"]["state"] == found["cuda:0"]["state"] == "good"
        and "a small gradient took" in found["CUDA"]["text"]
    )
    assert torch.cuda.get_device_name(0) in found["cuda:0"]["text"] and found["GPU driver"]["text"].startswith(
        "for CUDA "
    )


def test_graphs_that_share_a_pool_give_it_back_together():
    pool, x = torch.cuda.graph_pool_handle(), torch.ones(4, device="cuda")
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    for recorded in (first, second):
        x.mul(2)
        with torch.cuda.graph(recorded, pool=pool):
            y = x.mul(2)

    def segments():
        torch.cuda.empty_cache()
        return torch.cuda.memory_snapshot(pool)

    assert first.pool() == second.pool() == pool and y.shape == (4,) and first.raw_cuda_graph_exec()
    del y
    first.reset()
    assert segments()
    second.reset()
    assert not segments()


def test_the_version_is_the_driver_s():
    assert torch.version.cuda == "{}.{}".format(*divmod(torch._native.cuda.driver_version() // 10, 100))


class TestManagement:
    def test_figures_of_the_device(self):
        x = torch.ones(1000, device="cuda")
        assert 0 <= torch.cuda.utilization() <= 100 and 0 <= torch.cuda.memory_usage("cuda:0") <= 100
        assert (
            0 < torch.cuda.temperature(0) < 120
            and 1_000 < torch.cuda.power_draw() < 2_000_000
            and 0 < torch.cuda.clock_rate() < 10_000
        )
        assert x.nbytes <= torch.cuda.device_memory_used() < torch.cuda.get_device_properties(0).total_memory

    def test_processes_are_listed(self):
        torch.ones(1, device="cuda")
        first, *rest = torch.cuda.list_gpu_processes(0).splitlines()
        assert (
            first == "GPU:0"
            and rest
            and all("GPU memory" in line or line == "no processes are running" for line in rest)
        )
