"""What the profiler tells of a device: kernels, copies and fills with their times, and who asked for them."""

import json
import os
import subprocess
import sys

import pytest

import cresset as torch
from cresset.profiler import ProfilerActivity, profile, record_function
from cresset.profiler.events import DeviceType

BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]


def work():
    x = torch.randn(64, 64).cuda()
    with record_function("product"):
        y = x @ x
    return y.exp().sum().item()


def on_device(prof):
    return [event for event in prof.events() if event.device_type is DeviceType.CUDA]


@pytest.fixture(scope="module", autouse=True)
def warm():
    work()  # kernels are compiled


@pytest.fixture
def recorded():
    with profile(activities=BOTH, profile_memory=True) as prof:
        work()
    return prof


def test_kernels_and_copies_belong_to_their_operators(recorded):
    events = {event.name: event for event in recorded.events() if event.device_type is DeviceType.CPU}
    exp, total = events["aten::exp"], events["aten::sum"]
    assert len(exp.kernels) == 1 and exp.self_device_time_total > 0
    assert exp.device_time_total == exp.self_device_time_total == exp.kernels[0].duration
    assert total.device_time_total > 0
    assert [kernel.name for kernel in events["aten::item"].kernels] == ["Memcpy DtoH"]
    product = events["product"]
    assert product.device_time_total == sum(child.device_time_total for child in product.cpu_children) > 0
    assert product.self_device_time_total == 0


def test_what_the_device_did_has_a_place_and_a_time(recorded):
    found = on_device(recorded)
    names = [event.name for event in found]
    assert any("HtoD" in name for name in names) and any("DtoH" in name for name in names), names
    assert len(found) >= 5 and all(event.time_range.elapsed_us() >= 0 for event in found)
    assert all(event.device_index == 0 and event.cpu_time_total == 0 for event in found)
    whole = max(event.time_range.end for event in recorded.events())
    for event in found:  # by the same clock as the operators
        assert -1000 < event.time_range.start <= event.time_range.end < whole + 1000
    kernels = [event for event in found if event.kind == "kernel"]
    assert all(event.linked_correlation_id for event in kernels), [(e.name, e.linked_correlation_id) for e in kernels]
    copies = [event for event in found if event.kind == "copy"]
    assert any(event.activity.bytes in (64 * 64 * 4, 64) for event in copies)


def test_the_table_has_columns_of_the_device(recorded):
    averages = recorded.key_averages()
    for by in ("cuda_time_total", "device_time_total", "self_cuda_time_total"):
        table = averages.table(sort_by=by, row_limit=8)
        assert all(title in table for title in ("Self CUDA", "CUDA total", "CUDA time avg", "CUDA Mem"))
        assert "Self CUDA time total: " in table
    times = [average.cuda_time_total for average in averages]
    assert max(times) > 0
    kernels = sum(event.device_time_total for event in on_device(recorded))
    assert averages.self_device_time_total == pytest.approx(kernels)
    (product,) = [average for average in averages if average.key == "aten::matmul"]
    assert product.cuda_memory_usage >= 64 * 64 * 4 and product.cuda_time == product.device_time > 0


def test_the_trace_has_rows_of_streams_and_arrows(recorded, tmp_path):
    recorded.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = json.loads((tmp_path / "trace.json").read_text())
    rows = trace["traceEvents"]
    kernels = [row for row in rows if row.get("cat") == "kernel"]
    assert kernels and all(row["pid"] == 0 and row["tid"] == row["args"]["stream"] for row in kernels)
    starts = {row["id"]: row for row in rows if row["ph"] == "s"}
    ends = {row["id"]: row for row in rows if row["ph"] == "f"}
    assert starts and starts.keys() == ends.keys()
    for row in kernels:
        launch, end = starts[row["args"]["correlation"]], ends[row["args"]["correlation"]]
        assert end["ts"] == row["ts"] and end["tid"] == row["tid"] and launch["pid"] == os.getpid()
        assert launch["ts"] <= row["ts"] + 1000
    calls = [row for row in rows if row.get("cat") == "cuda_driver"]
    assert {row["args"]["correlation"] for row in kernels} <= {row["args"]["correlation"] for row in calls}
    assert {row["args"]["name"] for row in rows if row["name"] == "thread_name" and row["pid"] == 0}
    assert trace["deviceProperties"][0]["name"] == torch.cuda.get_device_name()


def test_streams_are_told_apart():
    stream = torch.cuda.Stream()
    x = torch.ones(100, device="cuda")
    torch.cuda.synchronize()
    with profile(activities=BOTH) as prof:
        x.exp()
        with torch.cuda.stream(stream):
            x.exp()
    streams = {event.activity.stream for event in on_device(prof) if event.kind == "kernel"}
    assert len(streams) == 2


def test_the_device_alone():
    with profile(activities=[ProfilerActivity.CUDA]) as prof:
        work()
    assert prof.events() and all(event.device_type is DeviceType.CUDA for event in prof.events())
    assert "Self CUDA" in prof.key_averages().table(sort_by="cuda_time_total")


def test_the_processor_alone():
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        work()
    assert not on_device(prof) and "CUDA" not in prof.key_averages().table()


def test_cuda_is_among_the_activities_by_default():
    assert torch.profiler.supported_activities() == set(BOTH)
    with profile() as prof:
        work()
    assert on_device(prof)
    with torch.autograd.profiler.profile(use_device="cuda") as old:
        work()
    assert "Self CUDA" in old.table()


def test_two_at_once_and_one_after_the_other():
    with profile(activities=BOTH) as outer:
        work()
        with profile(activities=BOTH) as inner:
            torch.ones(3, device="cuda").exp()
        work()
    (exp,) = [event for event in inner.events() if event.name == "aten::exp"]
    assert len(exp.kernels) == 1
    assert sum(event.name == "aten::exp" and len(event.kernels) == 1 for event in outer.events()) == 3
    with profile(activities=BOTH) as later:
        torch.ones(3, device="cuda").exp()
    assert len(on_device(later)) == 2


def test_stacks_by_the_time_of_the_device(tmp_path):
    with profile(activities=BOTH, with_stack=True) as prof:
        work()
    prof.export_stacks(str(tmp_path / "stacks.txt"), "self_cuda_time_total")
    prof.export_flame_graph(str(tmp_path / "flame.svg"), "self_cuda_time_total")
    assert "test_profiler.py" in (tmp_path / "flame.svg").read_text()


def test_the_memory_of_the_device_over_time(tmp_path):
    with profile(activities=BOTH, profile_memory=True, record_shapes=True, with_stack=True) as prof:
        kept = torch.ones(1 << 18, device="cuda")
    prof.export_memory_timeline(str(tmp_path / "m.json"))  # cuda:0 by default
    _, sizes = json.loads((tmp_path / "m.json").read_text())
    assert sum(sizes[-1]) >= kept.nbytes
    prof.export_memory_timeline(str(tmp_path / "m.html"), "cuda:0")
    assert "Memory of cuda:0" in (tmp_path / "m.html").read_text()


def test_a_captured_graph():
    x = torch.ones(100, device="cuda")
    x.exp() + 1  # compiled before
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x.exp() + 1
    with profile(activities=BOTH) as prof:
        for _ in range(3):
            graph.replay()
        torch.cuda.synchronize()
    assert y[0].item() == pytest.approx(3.7182817)
    if torch._native.cuda.activity_source()[0] == "CUPTI":
        assert len([event for event in on_device(prof) if event.kind == "kernel"]) >= 3


PROGRAM = """
import cresset as torch
from cresset.profiler import ProfilerActivity, profile
x = torch.ones(100, device="cuda")
x.exp()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
    y = x.exp()
(exp,) = [event for event in prof.events() if event.name == "aten::exp"]
print(torch._native.cuda.activity_source()[0], len(exp.kernels), exp.kernels[0].duration > 0, exp.kernels[0].name)
"""


IS_EMULATED = "CRESSET_EMULATOR_PROTECT" in os.environ
WITHOUT = ["CRESSET_PROFILER_CUPTI"] + ["CRESSET_EMULATOR_CUPTI"] * IS_EMULATED  # nobody asks, another profiler has it


@pytest.mark.parametrize("variable", WITHOUT)
def test_without_cupti_events_measure(variable):
    environment = {**os.environ, variable: "0"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=200)
    assert done.stdout.split()[:3] == ["events", "1", "True"], done.stdout + done.stderr
    assert "cuLaunchKernel" not in done.stdout  # the kernel's own name


def test_cresset_profile_tells_the_time_of_the_device(tmp_path):
    (tmp_path / "program.py").write_text(
        "import torch\nx = torch.ones(300, 300).cuda()\nfor _ in range(5):\n    y = x @ x\ny.sum().item()\n"
    )
    command = [sys.executable, "-m", "cresset", "profile", "program.py"]
    environment = {**os.environ, "COLUMNS": "180"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=200)
    assert done.returncode == 0 and "GPU peak" in done.stdout and "on the GPU" in done.stdout, done.stderr
    (row,) = [line for line in done.stdout.splitlines() if "y = x @ x" in line]
    *_, time, unit, calls = row.partition("program.py")[0].split()[:8]
    assert calls == "5" and unit in ("us", "ms") and float(time) > 0  # of the device, beside the calls
