"""The profiler: what is recorded, how it nests, and what is written."""

import json
import pickle

import pytest

import cresset
from cresset.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    tensorboard_trace_handler,
)


def names(prof):
    return [event.name for event in prof.events()]


def test_operators_and_ranges_nest():
    with profile() as prof, record_function("outer"):
        cresset.ones(2).exp()
    outer, ones, exp = prof.events()
    assert [outer.name, ones.name, exp.name] == ["outer", "aten::ones", "aten::exp"]
    assert outer.cpu_children == [ones, exp] and exp.cpu_parent is outer
    assert outer.cpu_time_total >= ones.cpu_time_total + exp.cpu_time_total
    assert outer.self_cpu_time_total == pytest.approx(outer.cpu_time_total - ones.cpu_time_total - exp.cpu_time_total)


def test_backward_nodes_are_named():
    x = cresset.ones(3, requires_grad=True)
    with profile() as prof:
        x.exp().sum().backward()
    assert {
        "ExpBackward0",
        "autograd::engine::evaluate_function: ExpBackward0",
        "torch::autograd::AccumulateGrad",
    } <= set(names(prof))


def test_nothing_is_recorded_outside():
    with profile() as prof:
        pass
    cresset.ones(2)
    assert prof.events() == [] and not cresset._native.is_profiling()


def test_the_older_profiler_is_found_in_the_newer_one():
    prof = profile(record_shapes=True)
    assert prof.profiler is None and not cresset.autograd.profiler._is_profiler_enabled
    with prof:
        cresset.ones(2).exp()
        assert prof.profiler.function_events is None and cresset.autograd.profiler._is_profiler_enabled
    assert [event.name for event in prof.profiler.function_events] == ["aten::ones", "aten::exp"]
    assert prof.profiler.record_shapes and prof.profiler.total_average().count == 2


def test_the_settings_of_pytorch_s_tracing_library_are_taken_and_can_be_copied():
    config = cresset._C._profiler._ExperimentalConfig(verbose=True)
    assert pickle.loads(pickle.dumps(config)) == config and config.verbose and not config.trace_only
    with profile(with_stack=True, experimental_config=config) as prof:
        cresset.ones(2)
    assert "test_profile.py" in prof.events()[0].stack[0] and cresset.profiler.kineto_available()


def test_shapes_flops_and_memory():
    a, b = cresset.ones(64, 32), cresset.ones(32, 128)
    with profile(record_shapes=True, with_flops=True, profile_memory=True) as prof:
        kept = a @ b
    (event,) = prof.key_averages(group_by_input_shape=True)
    assert event.input_shapes == [[64, 32], [32, 128]] and event.flops == 2 * 64 * 32 * 128
    assert event.cpu_memory_usage >= kept.nbytes
    table = prof.key_averages(group_by_input_shape=True).table(sort_by="self_cpu_time_total")
    assert "[[64, 32], [32, 128]]" in table and "524.288" in table and "CPU Mem" in table


def test_key_averages_count_and_limit_rows():
    with profile() as prof:
        for _ in range(3):
            cresset.ones(2)
        cresset.zeros(2)
    rows = {event.key: event.count for event in prof.key_averages()}
    assert rows == {"aten::ones": 3, "aten::zeros": 1}
    assert "aten::ones" in prof.key_averages().table(sort_by="count", row_limit=1)
    assert "aten::zeros" not in prof.key_averages().table(sort_by="count", row_limit=1)
    with pytest.raises(ValueError, match="cannot sort by 'beauty'"):
        prof.key_averages().table(sort_by="beauty")


def test_schedule_and_steps():
    handed = []
    with profile(
        schedule=schedule(wait=1, warmup=1, active=2, repeat=1), on_trace_ready=lambda p: handed.append(names(p))
    ) as prof:
        for _ in range(6):
            cresset.ones(2)
            prof.step()
    assert handed == [["ProfilerStep#2", "aten::ones", "ProfilerStep#3", "aten::ones"]]


def test_schedule_skips_first():
    plan = schedule(wait=0, warmup=1, active=1, skip_first=2)
    wanted = [ProfilerAction.NONE] * 2 + [ProfilerAction.WARMUP, ProfilerAction.RECORD_AND_SAVE] * 2
    assert [plan(step) for step in range(6)] == wanted
    with pytest.raises(AssertionError, match="active > 0"):
        schedule(wait=1, warmup=1, active=0)


def test_chrome_trace(tmp_path):
    with profile(record_shapes=True, on_trace_ready=tensorboard_trace_handler(str(tmp_path / "log"), "me")) as prof:
        cresset.ones(2, 2).exp()
    prof.add_metadata_json("run", '{"number": 1}')
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = json.loads((tmp_path / "trace.json").read_text())
    (exp,) = [event for event in trace["traceEvents"] if event["name"] == "aten::exp"]
    assert (
        exp["ph"] == "X" and exp["dur"] >= 0 and exp["args"]["Input Dims"] == [[2, 2]] and trace["run"] == {"number": 1}
    )
    (written,) = (tmp_path / "log").iterdir()
    assert written.name.startswith("me.") and written.name.endswith(".pt.trace.json")


def test_stacks(tmp_path):
    with profile(with_stack=True) as prof:
        cresset.ones(400, 400) @ cresset.ones(400, 400)
    assert "test_stacks" in prof.events()[0].stack[0]
    prof.export_stacks(str(tmp_path / "stacks.txt"))
    line = (tmp_path / "stacks.txt").read_text().splitlines()[-1]
    assert "test_stacks" in line and int(line.rsplit(" ", 1)[1]) > 0


def test_calls_are_told_apart_by_their_lines():
    def outer():
        return cresset.ones(2)

    with profile(with_stack=True) as prof:
        for _ in range(3):
            outer()
        outer()
    assert [event.count for event in prof.key_averages()] == [4]
    first, second = prof.key_averages(group_by_stack_n=2)
    assert (first.count, second.count) == (3, 1)
    assert "outer" in first.stack[0] and "test_calls_are_told_apart" in first.stack[1] and first.stack != second.stack
    table = prof.key_averages(group_by_stack_n=2).table()
    assert "Source Location" in table and table.count("): outer") == 2
    row = next(line for line in table.splitlines() if "): outer" in line)
    below = table.splitlines()[table.splitlines().index(row) + 1]
    assert below.strip().startswith(f"{__file__}("[:40])  # the caller stands under the line, where the line begins
    assert below.index(__file__[:40]) == row.index(__file__[:40])


def test_stacks_need_to_be_recorded(tmp_path):
    with profile() as prof:
        cresset.ones(2)
    with pytest.warns(UserWarning, match="with_stack=True"):
        prof.export_stacks(str(tmp_path / "stacks.txt"))
    assert (tmp_path / "stacks.txt").read_text() == ""
    with pytest.raises(RuntimeError, match="with_stack=True"):
        prof.export_flame_graph(str(tmp_path / "flame.svg"))
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.events().export_stacks(str(tmp_path / "stacks.txt"), "beauty")


def test_a_deep_stack_is_kept():
    def deeper(depth):
        return cresset.ones(2) if depth == 0 else deeper(depth - 1)

    with profile(with_stack=True) as prof:
        deeper(300)
    (event,) = prof.events()
    assert sum("deeper" in line for line in event.stack) == 301


def test_memory_is_counted_by_the_thread_that_asks_for_it():
    """What other threads allocate meanwhile is not an operator's."""
    import threading

    begin, end, kept = threading.Event(), threading.Event(), []

    def other():
        begin.wait()
        kept.append(cresset.zeros(1 << 20))
        end.set()

    thread = threading.Thread(target=other)
    thread.start()
    with profile(profile_memory=True) as prof, record_function("mine"):
        begin.set()
        end.wait()
        kept.append(cresset.ones(1 << 10))
    thread.join()
    (mine,) = [event for event in prof.events() if event.name == "mine"]
    assert mine.cpu_memory_usage == 4 << 10


def test_an_optimizers_step_has_a_name():
    weight = cresset.nn.Parameter(cresset.ones(3))
    optimizer = cresset.optim.SGD([weight], lr=0.1)
    weight.sum().backward()
    with profile() as prof:
        optimizer.step()
    step, update = prof.events()
    assert step.name == "Optimizer.step#SGD.step" and step.is_user_annotation
    assert update.name == "Optimizer.update#SGD" and update.cpu_parent is step


def test_record_function_decorates_and_survives_errors():
    @record_function("named")
    def fail():
        raise KeyError("x")

    with profile() as prof:
        with pytest.raises(KeyError):
            fail()
        cresset.ones(1)
    named, ones = prof.events()
    assert named.name == "named" and ones.cpu_parent is None


def test_asking_too_early_says_so():
    with profile() as prof, pytest.raises(AssertionError, match="nothing is recorded yet"):
        prof.events()


def test_legacy_profile_and_two_at_once():
    with cresset.autograd.profiler.profile() as outer:
        cresset.ones(1)
        with profile() as inner:
            cresset.zeros(1)
    assert [event.name for event in outer.function_events] == ["aten::ones", "aten::zeros"] and names(inner) == [
        "aten::zeros"
    ]


class TestArguments:
    def test_what_cannot_be_recorded_is_told(self):
        with pytest.warns(UserWarning, match="XPU is not available, disabling XPU profiling"):
            profile(activities=[ProfilerActivity.CPU, ProfilerActivity.XPU])
        with pytest.warns(UserWarning, match="disabling XPU"), pytest.raises(AssertionError, match="No activities"):
            profile(activities=[ProfilerActivity.XPU])
        with pytest.raises(NotImplementedError, match="execution_trace_observer"):
            profile(execution_trace_observer=object())
        with pytest.warns(FutureWarning, match="use_cuda"):
            profile(use_cuda=False)

    def test_a_recording_has_a_name(self):
        with profile(custom_trace_id_callback=lambda: "mine") as prof:
            pass
        assert prof.get_trace_id() == "mine"
        with profile() as one, profile() as other:
            pass
        assert one.get_trace_id() != other.get_trace_id() and len(one.get_trace_id()) == 32
        with cresset.autograd.profiler.profile(custom_trace_id_callback=lambda: "older") as prof:
            pass
        assert prof.trace_id == "older"

    def test_only_the_activities_that_are_named_are_switched(self):
        with profile() as prof:
            prof.toggle_collection_dynamic(False, [ProfilerActivity.CUDA])
            cresset.ones(2).exp()
            prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
            cresset.ones(2).tanh()
        names = {event.name for event in prof.events()}
        assert "aten::exp" in names and "aten::tanh" not in names

    @pytest.mark.skipif(cresset.cuda.is_available(), reason="there is a device")
    def test_a_device_that_is_not_there_is_told_of(self):
        with pytest.warns(UserWarning, match="CUDA is not available, disabling CUDA profiling"):
            prof = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
        with prof:
            cresset.ones(2)
        table = prof.key_averages().table(sort_by="cuda_time_total")
        assert names(prof) == ["aten::ones"] and "CUDA" not in table
        with (
            pytest.warns(UserWarning, match="disabling CUDA"),
            pytest.raises(AssertionError, match="nothing to record of CUDA"),
        ):
            profile(activities=[ProfilerActivity.CUDA])
        with (
            pytest.warns(UserWarning, match="disabling CUDA"),
            cresset.autograd.profiler.profile(use_device="cuda") as prof,
        ):
            cresset.ones(2)
        assert prof.use_device is None and "CUDA" not in prof.table()
        with pytest.warns(UserWarning, match="xpu doesn't support profile"):
            cresset.autograd.profiler.profile(use_device="xpu")

    def test_only_device_events_need_kineto(self):
        with pytest.raises(AssertionError, match="Kineto"):
            cresset.autograd.profiler.profile(use_cpu=False)


def test_vitals_are_kept_where_they_are_asked_for(monkeypatch):
    monkeypatch.delenv("TORCH_VITAL", raising=False)
    assert not cresset.set_vital("Part", "before", 1) and "before" not in cresset.read_vitals()
    monkeypatch.setenv("TORCH_VITAL", "ON")
    assert cresset.vitals_enabled() and cresset.set_vital("Part", "enabled", "True")
    assert "[TORCH_VITAL] Part.enabled\t\t True\n" in cresset.read_vitals()


class TestEventsThatAProgramMakes:
    """torch.autograd.profiler_util."""

    def event(self, id, start, end, thread=0):
        return cresset.autograd.profiler_util.FunctionEvent(
            id=id, node_id=0, name="f", thread=thread, start_us=start, end_us=end
        )

    def test_an_event_lies_inside_the_one_around_it_in_its_thread(self):
        made = [(1, 0, 10), (2, 1, 4), (3, 2, 3), (4, 8, 12), (5, 2, 3, 1)]
        events = cresset.autograd.profiler_util.EventList(self.event(*each) for each in made)
        events._populate_cpu_children()
        assert [[child.id for child in event.cpu_children] for event in events] == [[2], [3], [], [], []]
        assert events[2].cpu_parent is events[1] and events[4].cpu_parent is None

    def test_an_average_counts_calls_and_averages(self):
        average = cresset.autograd.profiler_util.FunctionEventAvg()
        average.add(self.event(1, 10, 15)).add(self.event(2, 20, 30)).add(average)
        assert (average.key, average.count, average.cpu_time_total, average.cpu_time) == ("f", 4, 30, 7.5)


def test_events_are_forgotten_when_nobody_keeps_them():
    """A program that is watched as a whole may record some steps of its own."""
    from cresset.profiler.recording import Recording

    whole = Recording(
        record_shapes=False, profile_memory=True, with_stack=True, with_flops=False, keep_events=False, sums=True
    )
    whole.start()
    cresset.ones(2)
    with record_function("around"):
        with profile(profile_memory=True) as part:
            kept = cresset.zeros(3)
        cresset.ones(4)
    with profile() as later:
        cresset.ones(5)
    whole.stop()
    assert names(part) == ["aten::zeros"] and part.events()[0].cpu_memory_usage == kept.nbytes
    assert names(later) == ["aten::ones"] and later.events()[0].cpu_parent is None
    assert whole.events == [] and whole.allocations == []
    calls = {}
    for _stack, name, count, _time in whole.sums["operators"]:
        calls[name] = calls.get(name, 0) + count
    assert calls == {"aten::ones": 3, "aten::zeros": 1}
    assert not cresset._native.is_profiling()


def test_asking_for_a_number_is_a_call():
    """It is where a program waits for a device."""
    x = cresset.ones(1)
    with profile() as prof:
        x.item()
    assert names(prof) == ["aten::item"]


def test_ranges_as_operators_stand_in_graphs_and_stay_there():
    ops = cresset.ops.profiler
    graph = cresset.fx.Graph()
    x = graph.placeholder("x")
    handle = graph.call_function(ops._record_function_enter, ("mine",))
    y = graph.call_function(cresset.relu, (x,))
    graph.call_function(ops._record_function_exit, (handle,))
    graph.output(y)
    module = cresset.fx.GraphModule({}, graph)
    graph.eliminate_dead_code()
    with profile() as prof:
        assert module(cresset.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]
    assert [(event.key, event.count) for event in prof.key_averages()] == [("mine", 1), ("aten::relu", 1)]


def test_a_range_given_as_an_object_ends_once():
    ops = cresset.ops.profiler
    with profile() as prof:
        ops._record_function_exit(ops._record_function_enter_new("new"))
    assert [event.key for event in prof.key_averages()] == ["new"]
    handle = ops._record_function_enter("old")
    ops._record_function_exit(handle)
    with pytest.raises(RuntimeError, match="_record_function_exit: the range has ended already"):
        ops._record_function_exit(handle)
