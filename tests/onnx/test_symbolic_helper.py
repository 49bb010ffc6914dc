"""torch.onnx.symbolic_helper and the operators of symbolic_opset*: what symbolic functions of other packages are
written with.
"""

import pytest

import cresset as torch
from cresset import nn
from cresset.onnx import symbolic_helper, symbolic_opset9, symbolic_opset11


@pytest.fixture
def exported():
    """Export relu by a symbolic function; the kinds of the nodes that it wrote."""

    def run(symbolic, shape=(2, 3)):
        torch.onnx.register_custom_op_symbolic("aten::relu", symbolic, 14)
        try:
            program = torch.onnx.export(nn.ReLU(), (torch.ones(shape),), input_names=["x"])
        finally:
            torch.onnx.unregister_custom_op_symbolic("aten::relu", 14)
        return [node.kind for node in program.graph.nodes]

    return run


def test_operators_of_the_opsets_write_their_nodes(exported):
    def symbolic(g, x):
        y = symbolic_opset11.unsqueeze(g, x, 0)
        y = symbolic_opset11.select(g, y, 0, g.op("Constant", value_t=torch.tensor([0])))
        y = symbolic_opset11.squeeze(g, y, 0)
        y = symbolic_opset9.softmax(g, symbolic_opset9.expand(g, y, [-1, 3]), 1)
        return symbolic_helper._reshape_helper(g, y, [2, 3])

    assert exported(symbolic) == ["Unsqueeze", "Gather", "Squeeze", "Expand", "Softmax", "Reshape"]


def test_a_symbolic_function_sees_sizes_and_rank(exported):
    seen = {}

    def symbolic(g, x):
        seen.update(
            sizes=symbolic_helper._get_tensor_sizes(x),
            rank=symbolic_helper._get_tensor_rank(x),
            tensor=symbolic_helper._is_tensor(x),
        )
        return g.op("Relu", x)

    exported(symbolic, (4, 5))
    assert seen == {"sizes": [4, 5], "rank": 2, "tensor": True}


def test_parse_args_makes_numbers_of_what_was_given():
    @symbolic_helper.parse_args("v", "f", "i", "is", "b", "none")
    def symbolic(g, x, alpha, count, sizes, flag, rest):
        return x, alpha, count, sizes, flag, rest

    assert symbolic(None, "x", 1, 2.0, (1, torch.tensor(2)), 1, None) == ("x", 1.0, 2, [1, 2], True, None)


def test_parse_args_refuses_what_depends_on_the_inputs(exported):
    @symbolic_helper.parse_args("f")
    def symbolic(g, x):
        return g.op("Relu", x)

    with pytest.raises(
        torch.onnx.errors.UnsupportedOperatorError, match="'x' of symbolic must be known when the model is exported"
    ):
        exported(symbolic)


def test_parse_args_counts_the_arguments():
    @symbolic_helper.parse_args("v")
    def symbolic(g, x, y):
        return x

    with pytest.raises(AssertionError, match="mismatch between the number of arguments"):
        symbolic(None, 1, 2)


def test_onnx_numbers_of_dtypes():
    assert symbolic_helper.cast_pytorch_to_onnx["Long"] == 7 and symbolic_helper.scalar_type_to_onnx[6] == 1


def test_unsupported_operators_are_named():
    with pytest.raises(
        torch.onnx.errors.UnsupportedOperatorError, match="roi in opset 9. no such node. Please try opset version 16"
    ):
        symbolic_helper._onnx_opset_unsupported_detailed("roi", 9, 16, "no such node")


def test_shape_as_tensor():
    assert torch.onnx.operators.shape_as_tensor(torch.ones(2, 3)).tolist() == [2, 3]
    assert torch.onnx.operators.reshape_from_tensor_shape(torch.ones(6), torch.tensor([2, 3])).shape == (2, 3)
