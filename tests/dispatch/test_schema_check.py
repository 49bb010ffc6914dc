"""A mode that checks what operators do against their schemas."""

import pytest

import cresset as torch
from cresset._subclasses.schema_check_mode import Aliasing, Mutation, SchemaCheckMode


@pytest.fixture(scope="module")
def lying():
    """Operators whose schemas say that they neither write nor give views."""
    library = torch.library.Library("lying", "DEF")
    library.define("view(Tensor x) -> Tensor")
    library.define("write(Tensor x) -> Tensor")
    library.define("same(Tensor(a) x) -> Tensor(a)")
    library.define("twice(Tensor x) -> (Tensor, Tensor)")
    library.impl("view", lambda x: x.view(-1), "CPU")
    library.impl("write", lambda x: x.mul_(2).clone(), "CPU")
    library.impl("same", lambda x: x, "CPU")
    library.impl("twice", lambda x: (y := x.clone(), y.view(-1)), "CPU")
    yield torch.ops.lying
    library._destroy()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("view", "Argument x is not defined to alias output but was aliasing output 0"),
        ("write", "Argument x is not defined as mutable but was mutated"),
        ("same", "are not allowed to directly return inputs, but output 0 is x"),
        ("twice", "Outputs 0 and 1 alias unexpectedly"),
    ],
)
def test_a_schema_that_does_not_say_what_happens_is_an_error(lying, name, message):
    with pytest.raises(RuntimeError, match=message), SchemaCheckMode():
        getattr(lying, name)(torch.ones(2, 2))


def test_what_is_written_to_and_what_shares_memory_is_listed():
    x = torch.ones(3)
    with SchemaCheckMode() as seen:
        x.add_(x).relu()
        x.view(3, 1)
    assert seen.ops == ["aten::add_", "aten::relu", "aten::view"]
    assert seen.mutated == [Mutation("aten::add_", "input"), Mutation("aten::add_", "other")]
    assert seen.aliasing == [
        Aliasing("aten::add_", "input", "output_0"),
        Aliasing("aten::add_", "other", "output_0"),
        Aliasing("aten::view", "input", "output_0"),
    ]
    seen.reset_cache()
    assert seen.ops == seen.mutated == seen.aliasing == []


def test_a_list_of_views_and_running_statistics_are_as_the_schemas_say():
    norm, x = torch.nn.BatchNorm1d(3), torch.arange(6.0).view(2, 3)
    with SchemaCheckMode() as seen:
        norm(x)
        x.split(1)
    assert Mutation("aten::native_batch_norm", "running_mean") in seen.mutated
    assert seen.aliasing[-1] == Aliasing("aten::split", "input", "output_0")


def test_a_schema_says_which_places_may_be_the_same_memory():
    info = torch._C._SchemaInfo("f(Tensor(a!) self, Tensor other, bool training=False) -> Tensor(a!)")
    kind = torch._C._SchemaArgType
    own, other, result = (
        torch._C._SchemaArgument(*place) for place in ((kind.input, 0), (kind.input, 1), (kind.output, 0))
    )
    assert info.may_alias(own, result) and not info.may_alias(own, other)
    assert info.is_mutable(own) and not info.is_mutable(other)
    x = torch.ones(2)
    info.add_argument_values({"self": x, "other": x})
    assert info.may_alias(own, other) and info.is_mutable("other")
    with pytest.raises(RuntimeError, match="Invalid index 3 for schema, which has 3 inputs"):
        info.is_mutable(torch._C._SchemaArgument(kind.input, 3))
    with pytest.raises(RuntimeError, match="Schema has no argument named missing"):
        info.is_mutable("missing")


def test_lists_overlap_where_a_tensor_of_one_lies_in_the_memory_of_the_other():
    x, y = torch.ones(3), torch.ones(3)
    assert torch._C._overlaps([x, y], x[1:]) and not torch._C._overlaps(x, y)
    assert not torch._C._overlaps([], [x])
    assert torch._C._is_alias_of(x, x[1:]) and not torch._C._is_alias_of([], x)
