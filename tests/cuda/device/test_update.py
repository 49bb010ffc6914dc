"""Optimizers on CUDA: the step that the CPU takes, for all parameters in one launch."""

import pytest

import cresset
from cresset import optim

SHAPES = [(5,), (3, 7), (), (0,), (1030,), (2, 2, 2), (4096,)]
OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("Adam", {"lr": 0.01, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.01, "amsgrad": True, "maximize": True}),
    ("AdamW", {"lr": 0.01}),
    ("Adamax", {}),
    ("NAdam", {}),
    ("RAdam", {}),
    ("Adagrad", {}),
    ("Adadelta", {}),
    ("RMSprop", {"centered": True, "momentum": 0.5}),
    ("Rprop", {}),
    ("ASGD", {}),
]


def parameters(device, dtype=cresset.float32, shapes=SHAPES):
    generator = cresset.Generator().manual_seed(0)
    made = []
    for shape in shapes:
        value, grad = (
            cresset.randn(shape, generator=generator, dtype=cresset.float64).to(device, dtype) for _ in range(2)
        )
        parameter = cresset.nn.Parameter(value)
        parameter.grad = grad
        made.append(parameter)
    return made


def stepped(make, device, dtype=cresset.float32, steps=3, **more):
    made = parameters(device, dtype, **more)
    optimizer = make(made)
    for _ in range(steps):
        optimizer.step()
    return made, optimizer


def assert_same(on_device, on_cpu, **tolerance):
    for a, b in zip(on_device[0], on_cpu[0], strict=True):
        cresset.testing.assert_close(a.detach().cpu(), b.detach(), **tolerance)
        for name, value in on_cpu[1].state.get(b, {}).items():
            mine = on_device[1].state[a][name]
            cresset.testing.assert_close(mine.cpu(), value, **tolerance)


@pytest.mark.parametrize(("name", "settings"), OPTIMIZERS, ids=str)
def test_every_optimizer_steps_as_on_the_cpu(name, settings, cuda):
    def make(made):
        return getattr(optim, name)(made, **settings)

    assert_same(stepped(make, cuda), stepped(make, "cpu"), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", [cresset.float64, cresset.float16, cresset.bfloat16, cresset.complex64], ids=str)
def test_dtypes(dtype, cuda):
    def make(made):
        return optim.AdamW(made, lr=0.01)

    assert_same(stepped(make, cuda, dtype), stepped(make, "cpu", dtype), rtol=1e-6, atol=1e-7)


def test_groups_have_their_own_settings(cuda):
    def make(made):
        return optim.AdamW([{"params": made[:3], "lr": 0.1}, {"params": made[3:], "weight_decay": 0.0}], lr=0.01)

    assert_same(stepped(make, cuda), stepped(make, "cpu"), rtol=1e-6, atol=1e-7)


def test_many_parameters_and_many_step_counts(cuda):
    def make(made):
        optimizer = optim.Adam(made, lr=0.01)
        optimizer.step()
        for number, parameter in enumerate(made):
            optimizer.state[parameter]["step"].fill_(number)
        return optimizer

    shapes = [(3,)] * 90
    assert_same(
        stepped(make, cuda, shapes=shapes, steps=1), stepped(make, "cpu", shapes=shapes, steps=1), rtol=1e-6, atol=1e-7
    )


def test_hundreds_of_parameters(cuda):
    made, optimizer = stepped(lambda made: optim.AdamW(made, lr=0.01), cuda, shapes=[(3,)] * 400, steps=1)
    _, expected = stepped(lambda made: optim.AdamW(made, lr=0.01), "cpu", shapes=[(3,)] * 400, steps=1)
    values = [p.tolist() for p in made]
    cresset.testing.assert_close(values, [p.tolist() for p in expected.param_groups[0]["params"]], rtol=1e-6, atol=1e-7)


def test_strides_that_differ(cuda):
    def run(device):
        value = cresset.arange(12.0).reshape(3, 4).to(device).t()
        parameter = cresset.nn.Parameter(value)
        parameter.grad = cresset.ones(4, 3).to(device)
        unaligned = cresset.nn.Parameter(cresset.arange(10.0).to(device)[1:])
        unaligned.grad = cresset.ones(9).to(device)
        optimizer = optim.SGD([parameter, unaligned], lr=0.5, momentum=0.5)
        optimizer.step()
        optimizer.step()
        return [p.tolist() for p in (parameter, unaligned)]

    assert run(cuda) == run("cpu")


def test_a_step_count_on_the_device(cuda):
    """fused=True keeps it there, so that a step can be skipped without waiting."""

    def make(made):
        return optim.Adam(made, lr=0.01, fused=True)

    on_device, on_cpu = stepped(make, cuda), stepped(make, "cpu")
    assert on_device[1].state[on_device[0][0]]["step"].device.type == "cuda"
    assert_same(on_device, on_cpu, rtol=1e-6, atol=1e-7)


def test_a_step_moves_the_version(cuda):
    made, _ = stepped(lambda made: optim.SGD(made, lr=0.1), cuda, steps=0)
    before = made[0]._version
    optim.SGD(made, lr=0.1).step()
    assert made[0]._version == before + 1


def test_a_captured_step(cuda):
    made = parameters(cuda)
    expected, _ = stepped(lambda made: optim.Adam(made, lr=0.01), "cpu", steps=4)
    optimizer = optim.Adam(made, lr=0.01, fused=True, capturable=True)
    optimizer.step()
    graph = cresset.cuda.CUDAGraph()
    with cresset.cuda.graph(graph):
        optimizer.step()
    for _ in range(3):
        graph.replay()
    for a, b in zip(made, expected, strict=True):
        cresset.testing.assert_close(a.detach().cpu(), b.detach(), rtol=1e-6, atol=1e-7)


def test_a_count_on_the_host_cannot_be_captured(cuda):
    made = parameters(cuda)
    optimizer = optim.Adam(made, lr=0.01)
    optimizer.step()
    with pytest.raises(RuntimeError, match="capturable is False"), cresset.cuda.graph(cresset.cuda.CUDAGraph()):
        optimizer.step()
