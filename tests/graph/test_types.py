"""Types: their two spellings, which fits where, which one covers two."""

import pytest

from cresset.graph import types
from cresset.graph.types import (
    AnyType,
    BoolType,
    DictType,
    FloatType,
    IntType,
    ListType,
    NamedTupleType,
    NoneType,
    NumberType,
    OptionalType,
    StringType,
    TensorType,
    TupleType,
    UnionType,
    parse_schema_type,
    unify,
)


@pytest.mark.parametrize(
    "type_, graph_text, source_text",
    [
        (ListType(IntType()), "int[]", "List[int]"),
        (OptionalType(TensorType()), "Tensor?", "Optional[Tensor]"),
        (DictType(StringType(), TensorType()), "Dict(str, Tensor)", "Dict[str, Tensor]"),
        (TupleType([IntType(), FloatType()]), "(int, float)", "Tuple[int, float]"),
        (TupleType([]), "()", "Tuple[()]"),
        (NumberType(), "Scalar", "number"),
        (UnionType([IntType(), StringType()]), "Union(int, str)", "Union[int, str]"),
    ],
)
def test_a_type_has_a_spelling_in_graphs_and_one_in_source(type_, graph_text, source_text):
    assert (str(type_), type_.annotation_str) == (graph_text, source_text)


@pytest.mark.parametrize(
    "text", ["int[2]?", "Dict(str, t)", "Tensor(a!)[]", "(int, Tensor)", "Future(t)", "str?", "Tensor?[]"]
)
def test_the_types_of_schemas_are_read(text):
    expected = text.replace("(a!)", "").replace("[2]", "[]").replace("Future(t)", "Future[t]")  # as in graphs
    assert str(parse_schema_type(text)) == expected


def test_a_text_that_is_no_type_is_refused():
    with pytest.raises(RuntimeError, match="'Banana' is no type"):
        parse_schema_type("Banana[]")


@pytest.mark.parametrize(
    "small, large",
    [
        (IntType(), OptionalType(IntType())),
        (NoneType(), OptionalType(TensorType())),
        (IntType(), NumberType()),
        (TupleType([IntType(), NoneType()]), TupleType([NumberType(), OptionalType(IntType())])),
        (NamedTupleType("__torch__.P", ["x"], [IntType()]), TupleType([IntType()])),
        (IntType(), UnionType([StringType(), IntType()])),
        (ListType(IntType()), AnyType()),
        (TensorType("float32", (2,)), TensorType()),
    ],
)
def test_a_subtype_fits_and_not_the_other_way(small, large):
    assert small.isSubtypeOf(large)
    assert small == large or not large.isSubtypeOf(small)


def test_lists_are_of_one_type_only():
    assert not ListType(IntType()).isSubtypeOf(ListType(NumberType()))
    assert not ListType(IntType()).isSubtypeOf(ListType(OptionalType(IntType())))


def test_an_optional_of_an_optional_is_an_optional():
    assert OptionalType(OptionalType(IntType())) == OptionalType(IntType())
    assert UnionType([IntType(), NoneType()]) == OptionalType(IntType())


@pytest.mark.parametrize(
    "first, second, covering",
    [
        (NoneType(), IntType(), OptionalType(IntType())),
        (IntType(), FloatType(), None),
        (TensorType("float32"), TensorType("int64"), TensorType()),
        (
            TupleType([NoneType(), IntType()]),
            TupleType([TensorType(), IntType()]),
            TupleType([OptionalType(TensorType()), IntType()]),
        ),
        (BoolType(), StringType(), None),
    ],
)
def test_the_type_that_covers_two(first, second, covering):
    assert unify(first, second) == covering == unify(second, first)


def test_open_types_are_filled_in_from_the_arguments():
    known = {}
    formal = parse_schema_type("Dict(str, t)")
    assert types.match_variables(formal, DictType(StringType(), IntType()), known)
    assert types.substitute(parse_schema_type("t[]"), known) == ListType(IntType())
