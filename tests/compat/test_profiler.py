"""The profiler's plans and FLOP counts beside PyTorch's."""

import pytest

import cresset

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("wait, warmup, active, repeat, skip", [(1, 1, 2, 1, 0), (0, 1, 1, 0, 3), (2, 1, 3, 2, 1)])
def test_schedules_agree(wait, warmup, active, repeat, skip):
    import torch.profiler

    plans = [
        lib.profiler.schedule(wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=skip)
        for lib in (cresset, torch)
    ]
    for step in range(20):
        ours, theirs = (plan(step) for plan in plans)
        assert ours.name == theirs.name, step


def count(lib, build, backward):
    counter = __import__(f"{lib.__name__}.utils.flop_counter", fromlist=["FlopCounterMode"]).FlopCounterMode(
        display=False
    )
    with counter:
        result = build(lib)
        if backward:
            result.sum().backward()
    return counter.get_total_flops()


# Without groups: PyTorch counts the weight gradient of a grouped convolution as if there were one group; tests/utils
# has the grouped one.
MODELS = {
    "linear": lambda lib: lib.nn.Linear(4, 3)(lib.ones(5, 4, requires_grad=True)),
    "bmm": lambda lib: lib.bmm(lib.ones(2, 3, 4, requires_grad=True), lib.ones(2, 4, 5, requires_grad=True)),
    "matmul": lambda lib: lib.ones(6, 3, 4, requires_grad=True) @ lib.ones(4, 5, requires_grad=True),
    "addmm": lambda lib: lib.addmm(lib.ones(5), lib.ones(3, 4, requires_grad=True), lib.ones(4, 5)),
    "convolution": lambda lib: lib.nn.Conv2d(4, 6, 3, stride=2)(lib.ones(2, 4, 9, 9, requires_grad=True)),
    "transposed": lambda lib: lib.nn.ConvTranspose2d(4, 6, 3, stride=2)(lib.ones(2, 4, 5, 5, requires_grad=True)),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("backward", [False, True])
def test_flops_agree(name, backward):
    assert count(cresset, MODELS[name], backward) == count(torch, MODELS[name], backward)


def test_operators_and_nodes_have_pytorch_names():
    def names(lib):
        with lib.profiler.profile(activities=[lib.profiler.ProfilerActivity.CPU]) as prof:
            (lib.ones(3, requires_grad=True).exp() * 2).sum().backward()
        return {event.name for event in prof.events()}

    import torch.profiler

    shared = {
        "aten::ones",
        "aten::exp",
        "aten::mul",
        "aten::sum",
        "ExpBackward0",
        "MulBackward0",
        "SumBackward0",
        "autograd::engine::evaluate_function: ExpBackward0",
    }
    assert shared <= names(cresset) and shared <= names(torch)


def test_memory_is_told_of_in_pytorchs_columns_and_numbers():
    theirs = __import__("torch.profiler._memory_profiler", fromlist=["Action"])
    from cresset.profiler import memory_timeline as ours

    columns = {category and category.name: number for category, number in ours.COLUMN.items()}
    assert columns == {category and category.name: number for category, number in theirs._CATEGORY_TO_INDEX.items()}
    assert {action.name: action.value for action in ours.Action} == {
        action.name: action.value for action in theirs.Action
    }


def test_what_an_event_tells_has_pytorchs_names():
    """Events, averages and lists of them have what PyTorch's have in public, and the same for no time on a device."""

    def recorded(lib):
        with lib.profiler.profile(activities=[lib.profiler.ProfilerActivity.CPU], profile_memory=True) as prof:
            lib.ones(3).exp()
        return prof

    import torch.profiler

    for make in (lambda p: p.events()[0], lambda p: p.key_averages()[0], lambda p: p.key_averages()):
        ours, theirs = make(recorded(cresset)), make(recorded(torch))
        wanted = {name for name in dir(theirs) if "device" in name or "memory" in name}
        wanted -= {"total_device_percent"}  # what a table has printed last
        assert {name for name in wanted if not name.startswith("_") and not hasattr(ours, name)} == set()
        for name in ("device_time_total", "self_device_time_total", "device_memory_usage"):
            if hasattr(theirs, name) and name in wanted:
                assert getattr(ours, name) == getattr(theirs, name) == 0
