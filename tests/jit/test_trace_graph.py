"""torch.jit._get_trace_graph: what packages that count operations walk."""

import math

import pytest

import cresset
from cresset import nn
from cresset.jit import _get_trace_graph


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
        self.last = nn.Linear(4, 2)

    def forward(self, x, scale=None):
        x = self.last(self.first(x).mean((2, 3)))
        return x if scale is None else x * scale


def kinds(graph):
    return [node.kind() for node in graph.nodes() if node.kind().startswith("aten::")]


def test_parameters_and_buffers_are_inputs_behind_the_arguments():
    net, x = Small().eval(), cresset.ones(2, 3, 5, 5)
    graph, result, inputs = _get_trace_graph(net, (x,), return_inputs=True)
    state = [*net.parameters(), *net.buffers()]
    assert len(inputs) == 1 + len(state) and inputs[0] is x and all(a is b for a, b in zip(inputs[1:], state))
    assert [tuple(v.type().sizes()) for v in graph.inputs()] == [tuple(t.shape) for t in inputs]
    assert result.equal(net(x))
    assert kinds(graph) == ["aten::_convolution", "aten::batch_norm", "aten::relu", "aten::mean", "aten::linear"]


def test_one_tensor_and_named_arguments():
    graph, result = _get_trace_graph(Small(), cresset.ones(2, 3, 5, 5), {"scale": cresset.tensor(2.0)})
    assert kinds(graph)[-1] == "aten::mul" and result.shape == (2, 2)
    graph, _ = _get_trace_graph(lambda x: x + 1, cresset.ones(2))
    assert kinds(graph) == ["aten::add"] and len(list(graph.inputs())) == 1


def test_sizes_and_constants_can_be_counted_with():
    graph, _ = _get_trace_graph(Small(), cresset.ones(2, 3, 5, 5))
    convolution, norm = [node for node in graph.nodes() if node.kind() in ("aten::_convolution", "aten::batch_norm")]
    x, weight = list(convolution.inputs())[:2]
    assert x.isCompleteTensor() and math.prod(weight.type().sizes()) == 4 * 3 * 9
    assert convolution.output().type().sizes() == [2, 4, 5, 5]
    assert not list(convolution.inputs())[3].isCompleteTensor()
    assert list(norm.inputs())[5].toIValue() is True and list(norm.inputs())[7].toIValue() == 1e-5


@pytest.mark.parametrize(
    ("module", "kind", "transposed"),
    [
        (nn.Conv1d(3, 4, 3), "aten::_convolution", False),
        (nn.Conv3d(3, 4, 1, groups=1), "aten::_convolution", False),
        (nn.ConvTranspose1d(3, 4, 2, stride=2), "aten::_convolution", True),
        (nn.Conv1d(3, 4, 3, padding="same"), "aten::_convolution_mode", None),
    ],
)
def test_convolutions_are_of_one_kind(module, kind, transposed):
    x = cresset.ones(1, 3, *[5] * (module.weight.dim() - 2))
    graph, result = _get_trace_graph(module, x)
    (node,) = [node for node in graph.nodes() if node.kind().startswith("aten::")]
    assert node.kind() == kind and node.output().type().sizes() == list(result.shape)
    if transposed is not None:
        assert list(node.inputs())[6].toIValue() is transposed and len(list(node.inputs())) == 13


def test_hooks_may_name_scopes():
    net = Small()

    def push(module, args):
        if state := cresset._C._get_tracing_state():
            state.push_scope("first part")

    def pop(module, args, result):
        if state := cresset._C._get_tracing_state():
            state.pop_scope()

    net.first.register_forward_pre_hook(push)
    net.first.register_forward_hook(pop)
    graph, _ = _get_trace_graph(net, cresset.ones(2, 3, 5, 5))
    scopes = {node.kind(): node.scopeName() for node in graph.nodes()}
    assert scopes["aten::relu"] == "first part" and scopes["aten::linear"] == "Small.last"
    net(cresset.ones(2, 3, 5, 5))  # nothing records: nothing to name


def test_what_it_cannot_do_is_refused():
    for option in ("_force_outplace", "_return_inputs_states"):
        with pytest.raises(NotImplementedError, match="_get_trace_graph"):
            _get_trace_graph(Small(), cresset.ones(2, 3, 5, 5), **{option: True})
