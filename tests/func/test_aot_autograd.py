"""functorch.compile: forward and backward as graphs for compilers of one's own."""

import copy

import pytest

import cresset
from cresset import nn
from cresset._dynamo.backends.common import aot_autograd
from cresset._functorch.compilers import nop
from cresset._functorch.package.compile import (
    aot_function,
    aot_module,
    default_partition,
    make_boxed_compiler,
    make_boxed_func,
    min_cut_rematerialization_partition,
)
from cresset.nn import functional as F

PARTITIONS = [default_partition, min_cut_rematerialization_partition]


class Recorder:
    """A compiler that keeps the graphs it is given."""

    def __init__(self):
        self.graphs, self.inputs = [], []

    def __call__(self, graph, inputs):
        self.graphs.append(graph)
        self.inputs.append([tuple(t.shape) for t in inputs])
        return make_boxed_func(graph.forward)

    def calls(self, which):
        return [str(node.target) for node in self.graphs[which].graph.nodes if node.op == "call_function"]


def kept(graph, results):
    return [node.name for node in graph.graph.output_node().args[0][results:]]


@pytest.mark.parametrize("partition", PARTITIONS)
def test_gradients_are_those_of_the_function(partition):
    def function(x, weights, *, scale):
        y = F.layer_norm((x @ weights["w"]).sin() * scale, (3,)).softmax(-1)
        return {"loss": y.logsumexp(0).prod(), "rows": y.sum(1), "count": 3}

    def run(f):
        cresset.manual_seed(0)
        x, w = (cresset.randn(*s, dtype=cresset.float64, requires_grad=True) for s in ((4, 5), (5, 3)))
        found = f(x, {"w": w}, scale=2.0)
        (found["loss"] + found["rows"].square().sum()).backward()
        return found["count"], found["loss"].item(), x.grad, w.grad

    expected, found = run(function), run(aot_function(function, nop, partition_fn=partition))
    assert expected[:2] == found[:2]
    for one, other in zip(expected[2:], found[2:], strict=True):
        assert cresset.allclose(one, other, 1e-12, 1e-14)


def test_the_default_partition_keeps_what_backward_reads_and_the_least_cut_computes_it_again():
    def function(a, b):
        return (a * b).sin().cos()

    x, y = cresset.ones(3, requires_grad=True), cresset.arange(3.0)
    recorders = [Recorder(), Recorder()]
    for recorder, partition in zip(recorders, PARTITIONS, strict=True):
        aot_function(function, recorder, partition_fn=partition)(x, y).sum().backward()
    plain, least = recorders
    assert plain.calls(0) == ["aten.mul.Tensor", "aten.sin.default", "aten.cos.default"]
    assert kept(plain.graphs[0], 1) == ["primals_2", "mul", "sin"]
    assert kept(least.graphs[0], 1) == ["primals_1", "primals_2"]
    assert least.calls(1)[:2] == ["aten.mul.Tensor", "aten.sin.default"]
    assert plain.inputs == [[(3,), (3,)], [(3,), (3,), (3,), (3,)]]


@pytest.mark.parametrize("partition", PARTITIONS)
def test_a_module_trains_as_without_and_its_buffers_follow(partition):
    cresset.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.GELU(), nn.Linear(8, 3))
    other = copy.deepcopy(model)
    x, y = cresset.randn(6, 4), cresset.tensor([0, 1, 2, 0, 1, 2])
    for trained in (model, aot_module(other, nop, partition_fn=partition)):
        optimizer = cresset.optim.SGD(trained.parameters(), 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            F.cross_entropy(trained(x), y).backward()
            optimizer.step()
    for (name, one), two in zip(model.state_dict().items(), other.state_dict().values(), strict=True):
        assert cresset.allclose(one, two, 1e-5, 1e-6), name
    assert other[1].num_batches_tracked == 3


def test_graphs_are_made_once_for_each_kind_of_arguments():
    recorder = Recorder()
    function = aot_function(lambda x: x.sin() * 2, recorder, inference_compiler=make_boxed_compiler(nop))
    for size in (3, 3, 4, 3):
        function(cresset.ones(size, requires_grad=True)).sum().backward()
    assert len(recorder.graphs) == 4  # forward and backward, of two sizes
    with cresset.no_grad():
        assert function(cresset.zeros(2)).tolist() == [0.0, 0.0]
    assert len(recorder.graphs) == 4


def test_results_without_a_gradient_and_inputs_that_are_not_used():
    def function(x, unused, places):
        return x.exp(), x.argmax(), unused.shape[0], places + 1

    x, unused = cresset.zeros(2, requires_grad=True), cresset.ones(2, requires_grad=True)
    powers, place, count, places = aot_function(function, nop)(x, unused, cresset.tensor([1]))
    assert (place.item(), count, places.tolist()) == (0, 2, [2])
    assert not place.requires_grad and not places.requires_grad
    powers.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0] and unused.grad is None


def test_a_second_derivative_is_refused():
    x = cresset.ones(2, requires_grad=True)
    (slope,) = cresset.autograd.grad(aot_function(lambda x: x**3, nop)(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="does not currently support double backward"):
        slope.sum().backward()


def test_a_backend_of_compile_gets_both_graphs():
    recorder = Recorder()
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    compiled = cresset.compile(model, backend=aot_autograd(fw_compiler=recorder))
    x = cresset.randn(3, 4)
    compiled(x).square().sum().backward()
    found = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    model(x).square().sum().backward()
    for parameter, gradient in zip(model.parameters(), found, strict=True):
        assert cresset.allclose(parameter.grad, gradient, 1e-5, 1e-6)
    compiled(cresset.randn(3, 4)).sum().backward()
    assert len(recorder.graphs) == 2


def test_dynamic_serves_all_sizes():
    function = aot_function(lambda x: (x * x).sum(), fw_compiler=nop, dynamic=True)
    for size in (2, 5):
        x = cresset.arange(float(size)).requires_grad_()
        function(x).backward()
        assert x.grad.tolist() == [2.0 * k for k in range(size)]


def test_what_is_drawn_while_recording_is_drawn_again():
    def function(x):
        return F.dropout(x, 0.5) * cresset.rand(4)

    x = cresset.ones(3, 2, 4, requires_grad=True)
    compiled = aot_function(function, nop)
    cresset.manual_seed(3)
    expected = function(x)
    cresset.manual_seed(3)
    assert cresset.equal(compiled(x), expected)
