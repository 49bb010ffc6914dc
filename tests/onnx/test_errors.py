"""What cannot be exported says so: the operator, the line, the module, the fix."""

import io
import re

import pytest

import cresset
from cresset import nn
from cresset.onnx.errors import OnnxExporterError, UnsupportedOperatorError

from .models import asserting
from .test_export import exported


class Inner(nn.Module):
    def forward(self, x):
        return cresset.linalg.svd(x)[1]


def test_an_operator_without_an_onnx_form_is_named_with_its_line_and_module():
    model = nn.Sequential(nn.ReLU(), Inner())
    with pytest.raises(
        UnsupportedOperatorError,
        match=r"has no ONNX form here; .*test_errors.py:\d+, in forward; in the module Sequential\.1\.",
    ):
        exported(model, cresset.ones(2, 2))


@pytest.mark.parametrize("name", ["svd", "qr", "inv", "cholesky", "eigvalsh"])
def test_what_lapack_computes_is_refused(name):
    with pytest.raises(UnsupportedOperatorError, match="has no ONNX form here"):
        exported(lambda x: getattr(cresset.linalg, name)(x), cresset.eye(3))


def test_what_lapack_computes_of_constants_is_a_constant():
    matrix = cresset.tensor([[2.0, 0.0], [0.0, 4.0]])
    file = exported(lambda x: x @ cresset.linalg.inv(matrix), cresset.ones(1, 2))
    assert file.kinds == ["MatMul"] and file.elements(*file.initializers) == [0.5, 0.0, 0.0, 0.25]


def test_a_condition_on_elements_is_refused():
    def model(x):
        return x if x.sum() > 0 else -x

    with pytest.raises(
        OnnxExporterError,
        match=r"asks for the truth value of a tensor that depends on its inputs.*test_errors.py.*Use torch.where",
    ):
        exported(model, cresset.ones(2))


def test_a_number_taken_out_is_refused():
    with pytest.raises(OnnxExporterError, match="asks for the number in a tensor"):
        exported(lambda x: x * x.max().item(), cresset.ones(2))


def test_numbers_of_constants_and_assertions_are_fine():
    assert exported(asserting, cresset.ones(2)).kinds == ["Mul"]


def test_a_loop_over_a_free_dimension_names_the_line():
    def model(x):
        total = x[0]
        for k in range(1, x.shape[0]):
            total = total + x[k]
        return total

    assert exported(model, cresset.ones(3, 2)).kinds.count("Add") == 2
    with pytest.raises(
        OnnxExporterError,
        match=r"(?s)makes \d+ calls when n is \d+ and \d+ when n is \d+.*test_errors.py.*leave it out of dynamic_axes",
    ):
        exported(model, cresset.ones(3, 2), input_names=["x"], dynamic_axes={"x": {0: "n"}})


def test_another_way_for_another_size_is_refused():
    with pytest.raises(OnnxExporterError, match=r"calls (exp|relu) when n is \d and (exp|relu) when n is \d"):
        exported(
            lambda x: x.relu() if x.shape[0] > 4 else x.exp(),
            cresset.ones(4),
            input_names=["x"],
            dynamic_axes={"x": {0: "n"}},
        )


def test_a_size_that_is_no_formula_is_refused():
    with pytest.raises(OnnxExporterError, match="is no formula of the free dimensions"):
        exported(
            lambda x: cresset.zeros(2 ** x.shape[0]), cresset.ones(4), input_names=["x"], dynamic_axes={"x": {0: "n"}}
        )


def test_a_model_that_needs_the_size_of_the_example():
    with pytest.raises(
        OnnxExporterError, match="runs with the example inputs but not when its free dimensions have other sizes"
    ):
        exported(nn.Linear(3, 2), cresset.ones(2, 3), input_names=["x"], dynamic_axes={"x": {1: "features"}})


def test_the_models_own_error_comes_through():
    with pytest.raises(RuntimeError, match="in_features|shape"):
        exported(nn.Linear(3, 2), cresset.ones(2, 4), input_names=["x"], dynamic_axes={"x": {0: "n"}})


def test_what_other_libraries_compute_is_noticed():
    numpy = pytest.importorskip("numpy")
    with pytest.raises(OnnxExporterError, match="is no recorded operator"):
        exported(lambda x: x + cresset.from_numpy(numpy.exp(x.numpy())), cresset.ones(2))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"input_names": ["a", "b"]}, "2 input_names for 1 input tensors"),
        ({"output_names": ["a", "b"]}, "2 output_names for 1 output tensors"),
        ({"input_names": ["a"], "output_names": ["a"]}, "not distinct"),
        ({"dynamic_axes": {"other": {0: "n"}}}, "dynamic_axes names 'other'"),
        (
            {"input_names": ["x"], "dynamic_axes": {"x": {5: "n"}}},
            "dimension 5 of 'x' cannot be free; it has 2 dimensions",
        ),
        ({"opset_version": 99}, "opset_version has to be from 14 to 23, got 99"),
        ({"dynamic_shapes": {"y": {0: "n"}}}, "dynamic_shapes names ['y']"),
    ],
)
def test_arguments_that_do_not_fit(settings, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        exported(nn.ReLU(), cresset.ones(2, 2), **settings)


def test_one_symbol_is_one_size():
    with pytest.raises(ValueError, match="the free dimension 'n' is 2 in one input and 3 in 'b'"):
        exported(lambda a, b: (a, b), cresset.ones(2), cresset.ones(3), dynamic_axes={"a": {0: "n"}, "b": {0: "n"}})


def test_settings_that_are_not_there_say_so():
    with pytest.raises(NotImplementedError, match="report is not supported"):
        exported(nn.ReLU(), cresset.ones(2), report=True)


def test_a_model_without_tensors():
    with pytest.raises(OnnxExporterError, match="gives no tensor"):
        exported(lambda x: None, cresset.ones(2))


def test_weights_beside_need_a_path():
    program = cresset.onnx.export(nn.ReLU(), (cresset.ones(2),))
    with pytest.raises(ValueError, match="needs a path"):
        program.save(io.BytesIO(), external_data=True)


def test_after_an_error_everything_is_as_before():
    model = nn.Sequential(Inner()).train()
    with pytest.raises(UnsupportedOperatorError):
        exported(model, cresset.ones(2, 2))
    assert model.training and cresset._native.function_mode_depth() == 0 and not cresset.onnx.is_in_onnx_export()
    assert bool(cresset.ones(1).sum() > 0)
