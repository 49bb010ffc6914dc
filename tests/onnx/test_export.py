"""What an exported file holds: names, shapes, weights, nodes. The files are read by a small reader of the tests'
own."""

import inspect
import io

import pytest

import cresset
from cresset import nn
from cresset.nn import functional as F
from cresset.onnx.errors import UnsupportedOperatorError

from .reading import File


def exported(model, *args, **settings):
    file = io.BytesIO()
    cresset.onnx.export(model, args, file, **settings)
    return File(file.getvalue())


def linear(weights, bias):
    layer = nn.Linear(2, 1)
    layer.load_state_dict({"weight": cresset.tensor([weights]), "bias": cresset.tensor([bias])})
    return layer


class Sum(nn.Module):
    def forward(self, first, second=None):
        return first if second is None else first + second


def test_a_linear_layer_is_one_node_with_its_weights():
    file = exported(linear([3.0, 4.0], 5.0), cresset.ones(1, 2), input_names=["x"], output_names=["y"])
    assert file.nodes == [("Gemm", ["x", "weight", "bias"], ["y"])]
    assert file.elements("weight") == [3.0, 4.0] and file.elements("bias") == [5.0]
    assert file.inputs == {"x": (1, [1, 2])} and file.outputs == {"y": (1, [1, 1])}
    assert file.opset == 18 and file.ir_version == 8 and file.producer == "cresset"


def test_names_come_from_the_model_where_none_are_given():
    file = exported(Sum(), cresset.ones(2), cresset.ones(2))
    assert list(file.inputs) == ["first", "second"] and list(file.outputs) == ["output"]
    assert exported(Sum(), cresset.ones(2), kwargs={"second": cresset.ones(2)}).nodes == file.nodes
    assert exported(Sum(), cresset.ones(2), {"second": cresset.ones(2)}).nodes == file.nodes  # the older way


def test_keys_of_a_result_name_the_outputs():
    file = exported(lambda x: {"double": x * 2, "parts": (x, x + 1)}, cresset.ones(2), input_names=["x"])
    assert list(file.outputs) == ["double", "parts", "parts_"]


def test_parameters_keep_their_names_and_nodes_say_where_they_are_from():
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.Linear(2, 2)))
    file = exported(model, cresset.ones(1, 2))
    assert sorted(file.initializers) == sorted(model.state_dict())
    assert [name.rpartition("/")[0] for name in file.names] == ["Sequential/0", "Sequential/1/0", "Sequential/1/1"]


def test_a_tied_weight_is_stored_once():
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    model[1].weight = model[0].weight
    assert list(exported(model, cresset.ones(1, 2)).initializers) == ["0.weight"]


def test_free_dimensions_have_their_names():
    file = exported(
        nn.Flatten(), cresset.ones(2, 3, 4), input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "batch"}}
    )
    assert file.inputs == {"x": (1, ["batch", 3, 4])} and file.outputs == {"y": (1, ["batch", 12])}
    ((kind, (_, shape), _),) = file.nodes
    assert kind == "Reshape" and file.elements(shape, "q") in ([0, 12], [-1, 12])


def test_free_dimensions_by_the_models_parameters():
    for shapes in [({0: "n"}, {0: "n"}), {"first": ["n", None], "second": {0: "n"}}]:
        file = exported(Sum(), cresset.ones(3, 2), cresset.ones(3, 2), dynamic_shapes=shapes)
        assert file.inputs == {"first": (1, ["n", 2]), "second": (1, ["n", 2])}


def test_an_axis_without_a_name_gets_one():
    file = exported(nn.ReLU(), cresset.ones(3, 2), input_names=["x"], dynamic_axes={"x": [0]})
    assert file.inputs == {"x": (1, ["x_dynamic_axes_1", 2])}


def test_a_size_is_computed_from_the_input():
    file = exported(
        lambda x: cresset.zeros(x.shape[0] * 2 + 1), cresset.ones(3), input_names=["x"], dynamic_axes={"x": {0: "n"}}
    )
    assert file.kinds == ["Shape", "Gather", "Mul", "Add", "Expand"]
    assert file.outputs == {"output": (1, ["output_dim_0"])}


def test_around_in_a_circle_is_made_of_parts():
    file = exported(lambda x: F.pad(x, (2, 1), mode="circular"), cresset.ones(1, 3))
    assert file.kinds == ["Slice", "Slice", "Slice", "Concat"]
    assert exported(lambda x: F.pad(x, (-1, 1), mode="reflect"), cresset.ones(1, 5)).kinds == ["Slice", "Pad"]


def test_places_of_a_grid_are_one_node():
    def sampled(x, grid):
        return F.grid_sample(x, grid, "bicubic", "border", align_corners=True)

    file = exported(sampled, cresset.ones(1, 2, 4, 4), cresset.zeros(1, 3, 3, 2))
    assert file.kinds == ["GridSample"] and file.outputs == {"output": (1, [1, 2, 3, 3])}
    with pytest.raises(UnsupportedOperatorError, match="needs opset 16, and in volumes 20"):
        exported(lambda x: F.grid_sample(x, x.transpose(1, 4), align_corners=True), cresset.ones(1, 3, 3, 3, 3))


def test_the_inverse_of_erf_is_written_out_in_single_precision():
    assert {"Log", "Sqrt", "Where"} < set(exported(lambda x: x.erfinv(), cresset.ones(2)).kinds)
    with pytest.raises(UnsupportedOperatorError, match="single precision alone"):
        exported(lambda x: x.erfinv(), cresset.ones(2).double())


def test_bags_between_offsets_are_added_where_they_belong():
    bags = nn.EmbeddingBag(5, 2)
    words, starts = cresset.tensor([0, 4, 3, 1]), cresset.tensor([0, 2])
    kinds = exported(bags, words, starts, input_names=["words", "starts"], dynamic_axes={"starts": {0: "bags"}}).kinds
    assert "ScatterElements" in kinds and kinds[-1] == "Div"


def test_what_does_not_depend_on_the_inputs_is_a_constant():
    file = exported(lambda x: x + cresset.arange(3).float().exp().cumsum(0), cresset.ones(3))
    assert file.kinds == ["Add"]


def test_dropout_and_unused_results_are_gone():
    file = exported(nn.Sequential(nn.Dropout(0.5), nn.MaxPool1d(2)), cresset.ones(1, 1, 4))
    assert file.kinds == ["MaxPool"] and len(file.nodes[0][2]) == 1


def test_a_model_in_training_mode_drops():
    model = nn.Dropout(0.5)
    assert exported(model, cresset.ones(4), training=cresset.onnx.TrainingMode.TRAINING).kinds == ["Dropout"]
    assert exported(model.train(), cresset.ones(4)).kinds == ["Identity"]
    assert exported(model, cresset.ones(4), training=cresset.onnx.TrainingMode.PRESERVE).kinds == ["Dropout"]


def test_the_model_comes_back_as_it_was():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", cresset.zeros(()))
            self.norm = nn.BatchNorm1d(2)

        def forward(self, x):
            self.calls += 1
            return self.norm(x) * self.calls

    model = Counter().train()
    model.norm.eval()
    exported(model, cresset.ones(3, 2))
    assert model.calls.item() == 0 and model.training and not model.norm.training
    assert model.norm.num_batches_tracked.item() == 0


def test_training_mode_leaves_averages_and_random_numbers_alone():
    model = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout(0.5))
    state = cresset.get_rng_state()
    exported(model, cresset.tensor([[1.0, 2.0], [3.0, 5.0]]), training=cresset.onnx.TrainingMode.TRAINING)
    assert model[0].running_mean.tolist() == [0.0, 0.0] and model[0].num_batches_tracked.item() == 0
    assert cresset.equal(cresset.get_rng_state(), state)


def test_a_model_knows_that_it_is_exported():
    seen = []

    class Asks(nn.Module):
        def forward(self, x):
            seen.append(cresset.onnx.is_in_onnx_export())
            return x + 1

    exported(Asks(), cresset.ones(2))
    assert seen and all(seen) and not cresset.onnx.is_in_onnx_export()


def test_weights_may_be_inputs():
    layer = linear([3.0, 4.0], 5.0)
    file = exported(layer, cresset.ones(1, 2), keep_initializers_as_inputs=True)
    assert list(file.inputs) == ["input", "weight", "bias"] and list(file.initializers) == ["weight", "bias"]
    file = exported(layer, cresset.ones(1, 2), export_params=False)
    assert list(file.inputs) == ["input", "weight", "bias"] and not file.initializers


def test_weights_in_a_file_beside(tmp_path):
    """What is small stays inside: shapes and axes are read to know the sizes of results."""
    layer = nn.Linear(400, 1)
    layer.load_state_dict({"weight": cresset.tensor([[3.0, 4.0] * 200]), "bias": cresset.tensor([5.0])})
    program = cresset.onnx.export(layer, (cresset.ones(1, 400),))
    program.save(tmp_path / "m.onnx", external_data=True)
    file = File((tmp_path / "m.onnx").read_bytes())
    stored = file.initializers["weight"]
    assert 9 not in stored and stored[14] == [1] and 9 in file.initializers["bias"]
    assert (tmp_path / "m.onnx.data").read_bytes()[:8] == bytes.fromhex("0000404000008040")  # 3.0 and 4.0


@pytest.mark.parametrize(("dtype", "number"), [(cresset.float16, 10), (cresset.bfloat16, 16), (cresset.float64, 11)])
def test_dtypes_of_weights(dtype, number):
    file = exported(linear([1.0, 2.0], 3.0).to(dtype), cresset.ones(1, 2, dtype=dtype))
    assert file.inputs["input"][0] == number
    assert file.initializers["weight"][2] == [number] and len(file.initializers["weight"][9][0]) == 2 * dtype.itemsize


@pytest.mark.parametrize(
    ("opset", "kinds"),
    [
        (14, ["ReduceMean", "Sub", "Mul", "ReduceMean", "Add", "Sqrt", "Div", "Mul", "Add"]),
        (17, ["LayerNormalization"]),
    ],
)
def test_an_opset_has_its_own_operators(opset, kinds):
    file = exported(nn.LayerNorm(4), cresset.ones(2, 4), opset_version=opset)
    assert file.opset == opset and file.kinds == kinds


def test_an_older_opset_becomes_the_first_that_is_written():
    with pytest.warns(cresset.onnx.errors.OnnxExporterWarning, match="opset 11 is too old; the file has opset 14"):
        assert exported(nn.ReLU(), cresset.ones(2), opset_version=11).opset == 14


def test_a_formula_without_an_onnx_operator_is_written_by_its_parts():
    assert exported(nn.SiLU(), cresset.ones(2)).kinds[-1] in ("Mul", "Div")
    assert "Erf" in exported(nn.GELU(), cresset.ones(2)).kinds


def test_a_write_in_place_is_a_new_value():
    def model(x):
        y = x.clone()
        y[0] = 7.0
        return y, x

    file = exported(model, cresset.ones(3), input_names=["x"])
    assert file.nodes[-1] == ("Identity", ["x"], ["output_1"])
    assert "Concat" in file.kinds


def test_the_signature_has_pytorchs_names():
    names = list(inspect.signature(cresset.onnx.export).parameters)
    assert names[:3] == ["model", "args", "f"] and {
        "kwargs",
        "opset_version",
        "dynamic_axes",
        "do_constant_folding",
    } <= set(names)


def test_verbose_prints_the_nodes(capsys):
    exported(nn.ReLU(), cresset.ones(2), input_names=["x"], output_names=["y"], verbose=True)
    assert capsys.readouterr().out == "y = Relu(x)\n"


def test_operators_of_ones_own_have_rules_of_their_own():
    @cresset.library.custom_op("onnx_tests::twice", mutates_args=())
    def twice(x: cresset.Tensor) -> cresset.Tensor:
        return x * 2

    with pytest.raises(
        cresset.onnx.errors.UnsupportedOperatorError,
        match="onnx_tests::twice has no ONNX form.*register_custom_op_symbolic",
    ):
        exported(twice, cresset.ones(2))
    cresset.onnx.register_custom_op_symbolic("onnx_tests::twice", lambda g, x: g.op("mine::Scale", x, factor_f=2.0), 14)
    try:
        program = cresset.onnx.export(twice, (cresset.ones(2),), custom_opsets={"mine": 3})
    finally:
        cresset.onnx.unregister_custom_op_symbolic("onnx_tests::twice", 14)
    (node,) = program.graph.nodes
    assert (node.kind, node.domain, node.attributes) == ("Scale", "mine", {"factor": 2.0})
    assert program.graph.opsets == {"": 18, "mine": 3}


def test_model_is_one_of_onnx_ir():
    pytest.importorskip("onnx_ir")
    model = cresset.onnx.export(nn.Sequential(nn.Linear(2, 3), nn.ReLU()), (cresset.ones(1, 2),)).model
    assert [node.op_type for node in model.graph] == ["Gemm", "Relu"]
    assert [value.name for value in model.graph.inputs] == ["input"]
