"""torch.ops.aten: PyTorch's schemas of our operators."""

import copy
import pickle

import pytest

import cresset
from cresset.ops import aten_table


def test_every_line_of_the_table_is_a_schema_that_prints_as_it_is_written():
    for name, lines in aten_table._lines().items():
        assert [str(schema) for schema in aten_table.overloads(name)] == lines


def test_an_overload_has_its_schema_and_runs():
    add = cresset.ops.aten.add.Tensor
    assert str(add) == "aten.add.Tensor" and add.name() == "aten::add.Tensor"
    assert [a.name for a in add._schema.arguments] == ["self", "other", "alpha"]
    assert add(cresset.ones(2), cresset.ones(2), alpha=3).tolist() == [4.0, 4.0]


def test_an_overload_is_one_object_that_copies_and_pickles_as_itself():
    relu = cresset.ops.aten.relu.default
    assert relu is cresset.ops.aten.relu.default
    assert copy.deepcopy(relu) is relu and pickle.loads(pickle.dumps(relu)) is relu


def test_an_unknown_overload_and_an_unknown_operator_are_named():
    with pytest.raises(AttributeError, match="'aten.add' has no overload name 'Nothing'"):
        cresset.ops.aten.add.Nothing
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        cresset.ops.aten.nothing_of_the_kind
    with pytest.raises(KeyError, match="aten::add.Nothing"):
        aten_table.find("aten::add.Nothing")


@pytest.mark.parametrize(
    "call, expected",
    [
        (lambda aten, x: aten.cross_entropy_loss(x, cresset.tensor([0, 1]), None, 2), lambda F,
            x: F.cross_entropy(x, cresset.tensor([0, 1]), reduction="sum")),
        (lambda aten, x: aten.mse_loss(x, x * 2, 0), lambda F, x: F.mse_loss(x, x * 2, reduction="none")),
        (lambda aten, x: aten.to(x, cresset.float64), lambda F, x: x.double()),
        (lambda aten, x: aten.to(x, dtype=cresset.int64, copy=True), lambda F, x: x.long()),
        (lambda aten, x: aten._softmax(x, 1, False), lambda F, x: F.softmax(x, 1)),
        (lambda aten, x: aten.gelu(x, approximate="tanh"), lambda F, x: F.gelu(x, approximate="tanh")),
        (lambda aten, x: aten.upsample_nearest1d(x[None], None, [2.0]), lambda F,
            x: F.interpolate(x[None], scale_factor=2)),
        (lambda aten, x: aten.upsample_linear1d(x[None], [5], True), lambda F,
            x: F.interpolate(x[None], size=5, mode="linear", align_corners=True)),
        (lambda aten, x: aten.reflection_pad1d(x, [1, 1]), lambda F, x: F.pad(x[None], (1, 1), "reflect")[0]),
        (lambda aten, x: aten.max_pool1d(x, [2]), lambda F, x: F.max_pool1d(x, 2)),
        (lambda aten, x: aten.avg_pool2d(x[None], [2, 2], []), lambda F, x: F.avg_pool2d(x[None], 2)),
        (lambda aten, x: aten._weight_norm(x, cresset.ones(2, 1), 0), lambda F, x: x / x.norm(dim=1, keepdim=True)),
        (lambda aten, x: aten.fft_fft(x), lambda F, x: cresset.fft.fft(x)),
        (lambda aten, x: aten.linalg_norm(x), lambda F, x: cresset.linalg.norm(x)),
    ],
)  # fmt: skip
def test_forms_with_numbers_for_words_give_what_the_functions_give(call, expected):
    x = cresset.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])
    assert cresset.allclose(call(cresset.ops.aten, x), expected(cresset.nn.functional, x))


def test_operators_have_tags():
    aten, tag = cresset.ops.aten, cresset.Tag
    assert aten.sin.default.tags == [tag.core, tag.pointwise, tag.pt2_compliant_tag]
    assert tag.pointwise not in aten.mm.default.tags and tag.pt2_compliant_tag in aten.mm.default.tags
    assert tag.dynamic_output_shape in aten.nonzero.default.tags
    assert tag.nondeterministic_seeded in aten.bernoulli.default.tags


class TestFormsOfPyTorchsKernels:
    def test_plain_convolutions(self):
        x, weight = cresset.randn(2, 5, 5, 5), cresset.randn(3, 2, 3, 3, 3)
        run = cresset.ops.aten.slow_conv_dilated3d
        assert run(x, weight, [3, 3, 3], None, [1, 1, 1], [0, 0, 0], [2, 2, 2]).equal(
            cresset.conv3d(x, weight, dilation=2)
        )
        assert cresset.ops.aten.slow_conv3d(x, weight, [3, 3, 3], padding=1).equal(cresset.conv3d(x, weight, padding=1))
        with pytest.raises(RuntimeError, match="kernel_size"):
            cresset.ops.aten.slow_conv3d(x, weight, [3, 3, 2])

    def test_second_derivatives_of_a_convolution(self):
        x, weight = cresset.tensor([[[1.0, 2.0, 3.0]]]), cresset.tensor([[[1.0, -1.0]]])
        grad, second = cresset.tensor([[[1.0, 10.0]]]), cresset.tensor([[[1.0, 0.0, 0.0]]])
        settings = ([1], [0], [1], False, [0], 1)
        # dL/dx is [w0 g0, w1 g0 + w0 g1, w1 g1]; its product with `second` is w0 g0
        by_grad, by_input, by_weight = cresset.ops.aten._convolution_double_backward(
            second, None, None, grad, weight, x, *settings, [True, True, True]
        )
        assert by_grad.tolist() == [[[1.0, 0.0]]] and by_weight.tolist() == [[[1.0, 0.0]]]
        assert by_input is None or not by_input.any()

    def test_values_that_occur(self):
        x = cresset.tensor([3, 1, 3])
        assert [t.tolist() for t in cresset._unique(x, return_inverse=True)] == [[1, 3], [1, 0, 1]]
        assert [t.tolist() for t in cresset._unique(x)] == [[1, 3], []]

    def test_a_product_and_its_activation(self):
        a, b = cresset.tensor([[1.0, -1.0]]), cresset.tensor([[1.0, -3.0], [0.0, 1.0]])
        assert cresset._addmm_activation(cresset.ones(2), a, b).tolist() == [[2.0, 0.0]]
