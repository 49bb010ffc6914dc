"""summary counts what a reader can count by hand; draw shows every layer and follows what lies between them."""

import re
from xml.etree import ElementTree

import pytest

import cresset
from cresset import nn


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)

    def forward(self, x):
        return self.norm(x + self.inner(x).relu())


def test_summary_counts_parameters_and_products():
    made = cresset.summary(
        nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16, 5)), (2, 3, 4, 4)
    )
    assert made.total_params == (3 * 9 + 1) * 8 + (128 + 1) * 5
    assert made.total_mult_adds == 2 * 8 * 16 * 27 + 2 * 5 * 128
    assert made.activation_bytes == 4 * (2 * 8 * 16 * 3 + 2 * 5)
    assert "0: Conv2d" in str(made) and "(2, 8, 4, 4)" in str(made)
    assert made._repr_html_().count("<tr>") == 1 + 5


def test_summary_leaves_the_model_as_it_was():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout())
    before = {name: t.clone() for name, t in model.state_dict().items()}
    cresset.summary(model, (3, 4))
    assert model.training and not model[0]._forward_hooks
    assert all(t.device.type == "cpu" and t.equal(before[name]) for name, t in model.state_dict().items())


def test_summary_of_an_error_names_the_layer_and_cleans_up():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(3, 2))
    with pytest.raises(RuntimeError):
        cresset.summary(model, (2, 4))
    assert not model[0]._forward_hooks and model.training


def test_summary_needs_a_size():
    with pytest.raises(TypeError, match="input_size"):
        cresset.summary(nn.Linear(1, 1))


def test_summary_takes_the_input_itself():
    indices = cresset.zeros(2, 3, dtype=cresset.int64)
    assert str(cresset.summary(nn.Embedding(10, 4), indices)) == str(
        cresset.summary(nn.Embedding(10, 4), (2, 3), dtypes=cresset.int64)
    )


def test_a_model_that_takes_other_dtypes_is_told_how_to_say_so():
    with pytest.raises(RuntimeError) as error:
        cresset.summary(nn.Embedding(10, 4), (2, 3))
    assert any("for a model that takes others give dtypes= or input_data=" in note for note in error.value.__notes__)


@pytest.mark.parametrize("size", ["32", 4, (2, "x"), {"x": 2}, (-1, 4)])
def test_what_is_no_shape_is_refused_with_a_sentence(size):
    with pytest.raises(TypeError, match=r"summary: input_size should be the shape of the input .* or a list of shapes"):
        cresset.summary(nn.Linear(4, 4), size)


@pytest.mark.parametrize("look", [cresset.summary, cresset.draw])
def test_a_class_in_the_place_of_a_model_is_refused_with_a_sentence(look):
    with pytest.raises(TypeError, match="model should be a Module, an instance of Module, got the class Linear"):
        look(nn.Linear, (2, 4))


def test_a_picture_follows_functions_between_layers(tmp_path):
    picture = str(cresset.draw(Residual(), cresset.zeros(2, 4), path=tmp_path / "model.svg"))
    assert (tmp_path / "model.svg").read_text() == picture
    root = ElementTree.fromstring(picture)
    assert root.tag.endswith("svg")
    assert re.findall(r'class="kind"[^>]*>([^<]*)', picture) == ["input", "Linear", "LayerNorm", "output"]
    assert picture.count('class="edge"') == 4  # input to both layers, one layer to the other, and to the output
    assert picture.count("(2, 4)</text>") >= 4


def test_shapes_may_be_given_as_tuples():
    assert "(5, 2)" in str(cresset.draw(nn.Linear(3, 2), (5, 3)))
