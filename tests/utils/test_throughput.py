"""torch.utils.ThroughputBenchmark: calls of a model by several threads."""

import json

import pytest

import cresset
from cresset import nn
from cresset.utils import ThroughputBenchmark
from cresset.utils.throughput_benchmark import format_time


class Sum(nn.Module):
    def forward(self, x, y):
        if x.numel() == 0:
            raise ValueError("empty")
        return x + y


@pytest.mark.filterwarnings("ignore:.*wait for each other")
def test_the_calls_of_all_threads_are_counted_and_traced(tmp_path):
    bench = ThroughputBenchmark(Sum())
    bench.add_input(cresset.ones(2), y=cresset.ones(2))
    assert bench.run_once(cresset.ones(2), cresset.ones(2)).tolist() == [2, 2]
    stats = bench.benchmark(
        num_calling_threads=3, num_warmup_iters=2, num_iters=20, profiler_output_path=str(tmp_path / "trace.json")
    )
    assert stats.num_iters == 20 and stats.latency_avg_ms > 0
    assert stats.iters_per_second == pytest.approx(20 / stats.total_time_seconds)
    assert "Total number of iterations: 20\n" in str(stats)
    rows = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert 0 < [row["name"] for row in rows].count("aten::add") <= 20


def test_an_error_in_a_thread_is_told():
    bench = ThroughputBenchmark(Sum())
    with pytest.raises(RuntimeError, match="add_input"):
        bench.benchmark()
    bench.add_input(cresset.ones(0), cresset.ones(0))
    with pytest.raises(ValueError, match="empty"):
        bench.benchmark(num_iters=1)


def test_times_have_the_unit_that_suits_them():
    assert [format_time(time_us=1500), format_time(time_s=2)] == ["1.500ms", "2.000s"]
    assert format_time(time_ms=0.2) == "200.000us"
    with pytest.raises(AssertionError, match="one of"):
        format_time()
