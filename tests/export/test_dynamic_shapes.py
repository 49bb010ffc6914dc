"""Free dimensions of exported programs."""

import pytest

import cresset
from cresset import nn
from cresset.export import AdditionalInputs, Dim, ShapesCollection, dims, export


class Flat(nn.Module):
    def forward(self, x):
        return x.reshape(x.shape[0], -1), x.shape[1] * 2 + 1


class Sum(nn.Module):
    def forward(self, x, y):
        return x + y


def test_a_free_dimension_follows_the_input():
    program = export(Flat(), (cresset.zeros(3, 4, 5),), dynamic_shapes={"x": {0: Dim("batch"), 1: Dim("width")}})
    flat, number = program.module()(cresset.zeros(7, 2, 5))
    assert flat.shape == (7, 10) and number == 5


def test_an_input_out_of_range_is_refused_by_its_name_and_dimension():
    batch = Dim("batch", min=2, max=8)
    run = export(
        Sum(), (cresset.zeros(4, 3), cresset.zeros(4, 3)), dynamic_shapes={"x": {0: batch}, "y": {0: batch}}
    ).module()
    assert run(cresset.zeros(8, 3), cresset.ones(8, 3)).sum().item() == 24
    with pytest.raises(AssertionError, match=r"x has size 9 in dimension 0, so that batch is 9, more than the most, 8"):
        run(cresset.zeros(9, 3), cresset.zeros(9, 3))
    with pytest.raises(
        AssertionError, match=r"x has size 1 in dimension 0, so that batch is 1, less than the least, 2"
    ):
        run(cresset.zeros(1, 3), cresset.zeros(1, 3))
    with pytest.raises(
        AssertionError, match=r"y has size 5 in dimension 0, so that batch is 5, but x.size\(\)\[0\] says that it is 4"
    ):
        run(cresset.zeros(4, 3), cresset.zeros(5, 3))
    with pytest.raises(AssertionError, match=r"x has size 2 in dimension 1, but the program was exported with 3 there"):
        run(cresset.zeros(4, 2), cresset.zeros(4, 3))
    with pytest.raises(AssertionError, match="y has dtype torch.int64"):
        run(cresset.zeros(4, 3), cresset.zeros(4, 3, dtype=cresset.int64))


def test_a_call_of_another_structure_is_refused():
    run = export(Sum(), (cresset.zeros(2), cresset.zeros(2))).module()
    with pytest.raises(ValueError, match="Trying to flatten user inputs with exported input tree spec"):
        run([cresset.zeros(2)], cresset.zeros(2))


def test_a_derived_dimension_is_checked_and_used():
    half = Dim("half")

    class Halves(nn.Module):
        def forward(self, x, y):
            return x[: y.shape[0]] + y

    program = export(Halves(), (cresset.zeros(6), cresset.ones(3)), dynamic_shapes={"x": {0: 2 * half}, "y": {0: half}})
    assert program.module()(cresset.zeros(10), cresset.ones(5)).shape == (5,)
    with pytest.raises(AssertionError, match=r"x has size 9 in dimension 0, which is no 2\*half"):
        program.module()(cresset.zeros(9), cresset.ones(4))


def test_a_dimension_that_cannot_be_free_is_an_error():
    with pytest.raises(RuntimeError, match="Constraints violated"):
        export(nn.Linear(4, 2), (cresset.zeros(3, 4),), dynamic_shapes={"input": {1: Dim("features")}})


def test_a_loop_over_a_free_dimension_is_an_error_that_names_the_line():
    class Loop(nn.Module):
        def forward(self, x):
            total = x[0]
            for k in range(1, x.shape[0]):
                total = total + x[k]
            return total

    with pytest.raises(RuntimeError, match=r"export: the model .*batch is \d+.*test_dynamic_shapes\.py:\d+"):
        export(Loop(), (cresset.zeros(3, 2),), dynamic_shapes={"x": {0: Dim("batch")}})


def test_auto_is_free_where_the_module_allows_it():
    program = export(nn.Linear(4, 2), (cresset.zeros(3, 4),), dynamic_shapes={"input": (Dim.AUTO, Dim.AUTO)})
    assert program.module()(cresset.zeros(9, 4)).shape == (9, 2)
    with pytest.raises(AssertionError, match="dimension 1, but the program was exported with 4"):
        program.module()(cresset.zeros(9, 5))


def test_static_dynamic_and_numbers():
    program = export(Sum(), (cresset.zeros(3, 4), cresset.zeros(3, 4)), dynamic_shapes=((Dim.STATIC, 4), None))
    with pytest.raises(AssertionError, match="x has size 5 in dimension 0"):
        program.module()(cresset.zeros(5, 4), cresset.zeros(3, 4))
    with pytest.raises(ValueError, match="Static shape constraint of 5 does not match"):
        export(Sum(), (cresset.zeros(3, 4), cresset.zeros(3, 4)), dynamic_shapes=((None, 5), None))
    with pytest.raises(RuntimeError, match="Constraints violated"):
        export(nn.Linear(4, 2), (cresset.zeros(3, 4),), dynamic_shapes={"input": (None, Dim.DYNAMIC)})


@pytest.mark.parametrize(
    "shapes, problem",
    [
        ({"x": {0: Dim("b")}}, "its top-level keys must be the arg names"),
        ({"x": {5: Dim("b")}, "y": None}, "names dimension 5 of 'x', which has 2 dimensions"),
        ({"x": (Dim("b"),), "y": None}, "to have the same length"),
        ({"x": {0: 1.5}, "y": None}, "Unexpected dimension 1.5"),
        ({"x": {0: Dim("b", min=10)}, "y": None}, r"not in the range \[10,"),
        ((None,), "has 1 entries for 2 arguments"),
        ({"x": 3, "y": None}, "Unexpected dynamic_shape 3 of Tensor x"),
    ],
)
def test_wrong_dynamic_shapes_are_named(shapes, problem):
    with pytest.raises(ValueError, match=problem):
        export(Sum(), (cresset.zeros(3, 4), cresset.zeros(3, 4)), dynamic_shapes=shapes)


def test_dims_are_checked_when_they_are_made():
    with pytest.raises(AssertionError, match="valid identifier"):
        Dim("not a name")
    with pytest.raises(AssertionError, match="inconsistent min=5, max=3"):
        Dim("b", min=5, max=3)
    with pytest.raises(NotImplementedError, match="positive"):
        Dim("b") * -1
    height, width = dims("height", "width", max=9)
    assert repr(height + 1) == "height + 1" and (width * 2).max == 18


def test_a_shapes_collection_and_additional_inputs_give_dynamic_shapes():
    x, y = cresset.zeros(3, 4), cresset.zeros(3, 4)
    shapes, batch = ShapesCollection(), Dim("batch")
    shapes[x], shapes[y] = {0: batch}, {0: batch}
    assert export(Sum(), (x, y), dynamic_shapes=shapes).module()(cresset.zeros(6, 4), cresset.zeros(6, 4)).shape == (
        6,
        4,
    )
    more = AdditionalInputs()
    more.add((cresset.zeros(7, 5, 5),))
    program = export(Flat(), (cresset.zeros(3, 4, 5),), dynamic_shapes=more)
    more.verify(program)
    assert program.module()(cresset.zeros(2, 9, 5))[0].shape == (2, 45)
