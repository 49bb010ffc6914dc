"""torch.utils.benchmark, flop_counter and collect_env."""

import pytest

import cresset
from cresset import nn
from cresset.utils import benchmark
from cresset.utils.flop_counter import FlopCounterMode, register_flop_formula


def measurement(times, **spec):
    return benchmark.Measurement(10, times, benchmark.TaskSpec("f()", "pass", **spec))


def test_a_measurement_sums_up():
    one = measurement([10e-6, 20e-6, 30e-6, 40e-6, 50e-6], label="sum", sub_label="small")
    assert one.median == pytest.approx(3e-6) and one.mean == pytest.approx(3e-6) and one.iqr == pytest.approx(2e-6)
    assert "sum: small" in repr(one) and "Median: 3.00 us" in repr(one) and "WARNING" in repr(one)
    assert not one.meets_confidence() and len(benchmark.Measurement.merge([one, one])[0].times) == 10


def test_timer_runs_the_statement():
    seen = []
    timer = benchmark.Timer("seen.append(torch.ones(1))", globals={"seen": seen}, num_threads=1)
    assert timer.timeit(10).median > 0 and len(seen) >= 10
    assert benchmark.Timer("1 + 1").blocked_autorange(min_run_time=0.01).median < 1e-3
    assert benchmark.Timer("1 + 1").adaptive_autorange(max_run_time=0.1).times
    with pytest.raises(ValueError, match="only a `str` stmt"):
        benchmark.Timer(len)


def test_compare_is_a_table():
    results = [
        measurement([1e-4], label="add", sub_label="small", description="ours"),
        measurement([2e-4], label="add", sub_label="small", description="theirs"),
    ]
    compare = benchmark.Compare(results)
    compare.trim_significant_figures()
    text = str(compare)
    assert "small  |  10.0  |    20.0" in text and "Times are in microseconds (us)." in text and "1 threads" in text


def test_flops_by_module_and_backward():
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    with FlopCounterMode(display=False) as counter:
        y = model(cresset.ones(5, 4))
        assert counter.get_total_flops() == 2 * 5 * (4 * 3 + 3 * 2)
        y.sum().backward()
    counts, aten = counter.get_flop_counts(), cresset.ops.aten
    assert counts["Sequential.0"] == {aten.addmm: 2 * 5 * 12, aten.mm: 2 * 5 * 12}  # no gradient of the input
    assert counts["Sequential.2"] == {aten.addmm: 2 * 5 * 6, aten.mm: 2 * 5 * 6 * 2}
    assert counter.get_total_flops() == 2 * 5 * (12 + 6) + 2 * 5 * (12 + 6 * 2)
    assert "Sequential.0" in counter.get_table()


def test_flops_of_convolutions_and_their_gradients_have_operators_of_their_own():
    for convolve in (nn.functional.conv2d, nn.functional.conv_transpose2d):
        with FlopCounterMode(display=False) as counter:
            x, weight = cresset.ones(1, 3, 4, 4, requires_grad=True), cresset.ones(3, 3, 2, 2, requires_grad=True)
            convolve(x, weight).sum().backward()
        counts, aten = counter.get_flop_counts()["Global"], cresset.ops.aten
        assert counts[aten.convolution_backward] == 2 * counts[aten.convolution] > 0


def test_flops_by_a_formula_of_ones_own():
    x = cresset.ones(4, 5)
    with FlopCounterMode(display=False, custom_mapping={cresset.ops.aten.add: lambda *_, out_shape: 5}) as counter:
        x + x
    assert counter.get_flop_counts() == {"Global": {cresset.ops.aten.add: 5}}

    def elements(*args, out_val):
        return out_val.numel()

    elements._get_raw = True
    with FlopCounterMode(display=False, custom_mapping={cresset.ops.aten.add: elements}) as counter:
        x + x
    assert counter.get_total_flops() == 20


def test_flops_of_an_operator_of_ones_own():
    @cresset.library.custom_op("measuring::double", mutates_args=())
    def double(x: cresset.Tensor) -> cresset.Tensor:
        return x * 2

    with pytest.raises(ValueError, match="expected each target to be OpOverloadPacket"):
        register_flop_formula(cresset.ops.measuring.double.default)(lambda x, out_shape: 1)

    @register_flop_formula(cresset.ops.measuring.double)
    def count(x_shape, out_shape=None):
        return 7 * x_shape.numel()

    with FlopCounterMode(display=False) as counter:
        double(cresset.ones(3))
    assert counter.get_total_flops() == 21
    with pytest.raises(RuntimeError, match="duplicate registrations for measuring.double"):
        register_flop_formula(cresset.ops.measuring.double)(count)


def test_flops_of_convolutions():
    with FlopCounterMode(display=False) as counter:
        nn.Conv2d(3, 8, 3, padding=1)(cresset.ones(2, 3, 4, 4))
    assert counter.get_total_flops() == 2 * (2 * 8 * 4 * 4) * (3 * 3 * 3)


def test_flops_of_a_grouped_convolution_with_backward():
    with FlopCounterMode(display=False) as counter:
        nn.Conv2d(4, 6, 3, stride=2, groups=2)(cresset.ones(2, 4, 9, 9, requires_grad=True)).sum().backward()
    forward = 2 * (2 * 6 * 4 * 4) * (2 * 3 * 3)
    assert counter.get_total_flops() == 3 * forward  # each gradient takes as many


def test_flops_of_attention():
    q = cresset.ones(2, 3, 8, 4, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        nn.functional.scaled_dot_product_attention(q, q, q).sum().backward()
    product = 2 * (2 * 3) * 8 * 8 * 4
    assert counter.get_total_flops() == 2 * product + 5 * product  # two forward, five backward


def test_collect_env_runs_commands():
    from cresset.utils import collect_env

    assert collect_env.run("echo hello") == (0, "hello", "") and collect_env.run("no-such-command")[0] != 0
    assert "Python" in collect_env.get_pretty_env_info()


def test_the_operations_of_an_attention_by_its_shapes():
    from cresset.utils.flop_counter import sdpa_flop_count

    query, shared = (2, 32, 128, 64), (2, 8, 128, 64)
    assert sdpa_flop_count(query, shared, shared) == sdpa_flop_count(query, query, query) == 4 * 2 * 32 * 128 * 128 * 64
    with pytest.raises(AssertionError, match="no shapes of one attention"):
        sdpa_flop_count(query, (2, 5, 128, 64), (2, 5, 128, 64))
