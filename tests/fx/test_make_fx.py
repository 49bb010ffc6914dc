"""make_fx: functions as graphs of aten operators."""

import pytest

import cresset
from cresset import nn
from cresset.fx.experimental.proxy_tensor import make_fx


def targets(module):
    return [str(node.target) for node in module.graph.nodes if node.op == "call_function"]


def test_a_function_becomes_its_operators():
    def program(x, y):
        z = x.sin() + y
        z[0] = 1
        return z * 2, x.sum()

    graph = make_fx(program)(cresset.ones(2, 3), cresset.ones(3))
    assert targets(graph) == [
        "aten.sin.default",
        "aten.add.Tensor",
        "aten.select.int",
        "aten.fill_.Scalar",
        "aten.mul.Tensor",
        "aten.sum.default",
    ]
    assert [node.name for node in graph.graph.nodes if node.op == "placeholder"] == ["x_1", "y_1"]
    x, y = cresset.randn(2, 3), cresset.randn(3)
    assert all(cresset.equal(a, b) for a, b in zip(graph(x, y), program(x, y), strict=True))


def test_tensors_that_are_no_arguments_are_attributes():
    weight = cresset.tensor([1.0, 2.0])
    graph = make_fx(lambda x: x * weight)(cresset.ones(2))
    assert graph._tensor_constant0.tolist() == [1.0, 2.0] and graph(cresset.full((2,), 3.0)).tolist() == [3.0, 6.0]
    module = nn.Linear(2, 1)
    graph = make_fx(module)(cresset.ones(1, 2))
    assert graph.weight is module.weight and cresset.equal(graph(cresset.ones(1, 2)), module(cresset.ones(1, 2)))


def test_nested_arguments_keep_their_structure():
    graph = make_fx(lambda d: {"sum": d["a"] + d["b"][0]})({"a": cresset.ones(2), "b": (cresset.ones(2),)})
    assert graph({"a": cresset.ones(2), "b": (cresset.full((2,), 4.0),)})["sum"].tolist() == [5.0, 5.0]


def test_a_decomposition_is_entered():
    table = {cresset.ops.aten.silu.default: lambda x: x * x.sigmoid()}
    graph = make_fx(nn.functional.silu, decomposition_table=table)(cresset.ones(2))
    assert targets(graph) == ["aten.sigmoid.default", "aten.mul.Tensor"]


def test_symbolic_sizes_follow_the_input():
    graph = make_fx(lambda x: x.view(x.shape[0], -1) * x.shape[1], tracing_mode="symbolic")(cresset.ones(2, 3, 4))
    assert graph(cresset.ones(5, 6, 7)).shape == (5, 42) and graph(cresset.ones(5, 6, 7))[0, 0].item() == 6.0
    fixed = make_fx(lambda x: nn.functional.linear(x, cresset.ones(2, 3)), tracing_mode="symbolic")(cresset.ones(4, 3))
    assert fixed(cresset.ones(9, 3)).shape == (9, 2)


def test_what_cannot_be_recorded_is_an_error():
    with pytest.raises(RuntimeError, match="make_fx: the model asks for the truth value of a tensor"):
        make_fx(lambda x: x if x.sum() > 0 else -x)(cresset.ones(2))
    with pytest.raises(RuntimeError, match="make_fx: a constant .* is another one when the inputs are others"):
        make_fx(cresset.func.grad(lambda a: (a**2).sum()))(cresset.ones(2))
    with pytest.raises(AssertionError, match="Unexpected tracing type"):
        make_fx(lambda x: x, tracing_mode="dreamt")


def test_a_mode_of_fake_tensors_can_be_left_for_a_while():
    from cresset._subclasses.fake_tensor import FakeTensor, FakeTensorMode
    from cresset.fx.experimental.proxy_tensor import maybe_disable_fake_tensor_mode

    with FakeTensorMode():
        assert isinstance(cresset.ones(2), FakeTensor)
        with maybe_disable_fake_tensor_mode():
            assert cresset.ones(2).tolist() == [1.0, 1.0]
