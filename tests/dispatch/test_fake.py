"""Fake tensors: shapes, dtypes and devices without memory."""

import copy

import pytest

import cresset as torch
from cresset import nn
from cresset._subclasses import (
    CrossRefFakeMode,
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from cresset._subclasses.fake_tensor import FakeCopyMode, MetadataMismatchError


def test_what_is_made_inside_has_no_memory():
    with FakeTensorMode():
        x = torch.randn(10**6, 10**6)
        y = torch.tensor([1.0, 2.0])
    assert isinstance(x, FakeTensor) and x.shape == (10**6, 10**6)
    assert isinstance(y, FakeTensor) and y.shape == (2,)
    with pytest.raises(RuntimeError, match="doesn't have storage"):
        x.data_ptr()


def test_operators_give_the_shapes_dtypes_and_strides_of_real_ones():
    def program(a, b):
        c = (a @ b).to(torch.float64).transpose(0, 1)
        return c, c.sum(1, keepdim=True), torch.cat([a, a]), a[:, 1:], (a > 0).any(), a.topk(2).indices

    real = program(torch.randn(3, 4), torch.randn(4, 5))
    with FakeTensorMode() as mode:
        fake = program(mode.from_tensor(torch.randn(3, 4)), mode.from_tensor(torch.randn(4, 5)))
    for r, f in zip(real, fake, strict=True):
        assert (r.shape, r.dtype, r.stride()) == (f.shape, f.dtype, f.stride())


def test_a_device_need_not_be_there():
    with FakeTensorMode():
        x = torch.ones(2, device="cuda")
        y = (x * 2).to("cpu")
        z = x + 1
    assert x.device == torch.device("cuda:0") and z.device == x.device and y.device.type == "cpu"
    with pytest.raises(RuntimeError, match="two different devices"):
        x + y


def test_outside_of_the_mode_fake_tensors_stay_fake():
    with FakeTensorMode() as mode:
        x = torch.ones(2, 3)
    y = x.t() @ x
    assert isinstance(y, FakeTensor) and y.shape == (3, 3) and y.fake_mode is mode


def test_values_are_refused_with_the_operators_name():
    with FakeTensorMode():
        x = torch.randn(3)
        with pytest.raises(DataDependentOutputException, match="aten._local_scalar_dense.default"):
            x.sum().item()
        with pytest.raises(DataDependentOutputException):
            bool(x.sum() > 0)
        with pytest.raises(DynamicOutputShapeException, match="aten.nonzero"):
            x.nonzero()


def test_a_constant_keeps_its_value():
    with FakeTensorMode():
        assert torch.tensor(3).item() == 3


def test_real_tensors_take_part_only_when_that_is_allowed():
    real = torch.ones(3)
    with FakeTensorMode(), pytest.raises(AssertionError, match="convert all Tensors to FakeTensors first"):
        torch.ones(3) + real
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert (torch.ones(3) + real).shape == (3,)


def test_modes_do_not_mix():
    with FakeTensorMode():
        a = torch.ones(2)
    with FakeTensorMode():
        b = torch.ones(2)
    with pytest.raises(AssertionError, match="Mixing fake modes"):
        a + b


def test_one_tensor_has_one_fake_form():
    real, mode = torch.ones(3, requires_grad=True), FakeTensorMode()
    fake = mode.from_tensor(real)
    assert mode.from_tensor(real) is fake and fake.requires_grad and fake.is_leaf
    assert mode.from_tensor(fake) is fake


def test_a_model_trains_on_shapes():
    with FakeTensorMode():
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(), nn.Linear(8, 2))
        optimizer = torch.optim.Adam(model.parameters())
        loss = nn.functional.cross_entropy(model(torch.randn(5, 4)), torch.randint(2, (5,)))
        loss.backward()
        optimizer.step()
    assert all(isinstance(p, FakeTensor) and p.grad.shape == p.shape for p in model.parameters())


def test_in_place_changes_of_shape_are_followed():
    with FakeTensorMode():
        x = torch.ones(2, 3)
        x.unsqueeze_(0)
        assert x.shape == (1, 2, 3)
        y = torch.ones(2)
        y.add_(1)
        assert y.shape == (2,)


def test_copies_are_fake():
    with FakeTensorMode():
        layer = nn.Linear(2, 3)
    other = copy.deepcopy(layer)
    assert isinstance(other.weight, FakeTensor) and isinstance(other.weight, nn.Parameter)
    assert other.weight is not layer.weight


def test_printing_shows_the_shape():
    with FakeTensorMode():
        assert repr(torch.ones(2, 3)) == "FakeTensor(..., size=(2, 3))"


def test_an_operator_of_a_program_runs_by_its_shape_rule():
    @torch.library.custom_op("test_fake::doubled", mutates_args=())
    def doubled(x: torch.Tensor) -> torch.Tensor:
        raise AssertionError("the kernel must not run")

    with FakeTensorMode():
        with pytest.raises(RuntimeError, match="no fake impl"):
            doubled(torch.ones(2))
        doubled.register_fake(lambda x: x.new_empty(2 * x.shape[0]))
        result = doubled(torch.ones(2))
    assert isinstance(result, FakeTensor) and result.shape == (4,)


def test_symbols_for_sizes_are_refused_where_they_would_be_made():
    env = torch.fx.experimental.symbolic_shapes.ShapeEnv(allow_dynamic_output_shape_ops=False)
    assert not env.allow_dynamic_output_shape_ops and env.allow_scalar_outputs
    with pytest.raises(NotImplementedError, match="sizes are numbers here"):
        torch._subclasses.FakeTensorMode(shape_env=env).from_tensor(torch.ones(2))
    mode = torch._subclasses.FakeTensorMode(shape_env=env, static_shapes=True)
    assert mode.shape_env is env and mode.from_tensor(torch.ones(2)).shape == (2,)


def test_the_constructor_of_a_subclass_may_be_marked_for_export():
    mark = torch._export.wrappers.mark_subclass_constructor_exportable_experimental

    class Part(torch.Tensor):
        @mark
        def __init__(self, data):
            self.note = "made"

    assert Part(torch.ones(2)).note == "made"
    with pytest.raises(RuntimeError, match="can only be applied on subclass tensor.__init__, not on 'other'"):

        @mark
        def other(self):
            pass


def test_a_number_is_divided_by_a_fake_tensor():
    x = FakeTensorMode().from_tensor(torch.ones(2, 3))
    assert (1 / x).shape == (2, 3) and (2 / x.long()).dtype == torch.float32


@pytest.mark.parametrize("n", range(4))
def test_polygamma_has_the_shape_of_its_tensor(n):
    assert torch.polygamma(n, FakeTensorMode().from_tensor(torch.ones(2, 3))).shape == (2, 3)


def test_an_index_may_be_a_list():
    with FakeTensorMode():
        x = torch.ones(4, 3)
        assert x[[0, 2]].shape == (2, 3) and x[[0, 2], [1, 1]].shape == (2,)
        x[[0, 1]] = 5.0


def test_views_have_the_memory_of_what_they_show():
    with FakeTensorMode():
        x = torch.ones(3, 4)
        view, other = x[1], x + 1
    assert x.untyped_storage().nbytes() == 48 and x.untyped_storage().device.type == "meta"
    assert torch._subclasses.fake_utils.outputs_alias_inputs(view, [x])
    assert not torch._subclasses.fake_utils.outputs_alias_inputs(other, [x])


def test_the_mode_that_is_on_or_that_tensors_are_of_is_found():
    mode = FakeTensorMode()
    assert torch._guards.active_fake_mode() is None and torch._guards.detect_fake_mode(torch.ones(1)) is None
    with mode:
        assert torch._guards.active_fake_mode() is mode
        fake = torch.ones(1)
    assert torch._guards.detect_fake_mode({"x": [fake, torch.ones(1)]}) is mode
    with pytest.raises(AssertionError, match="several fake modes"):
        torch._guards.detect_fake_mode([fake, FakeTensorMode().from_tensor(torch.ones(1))])


def test_real_tensors_are_printed_in_the_mode():
    x, shown = torch.tensor([1.0, 2.0]), []
    with FakeTensorMode():
        shown += [repr(x), f"{x}", repr(torch.ones(2))]
    assert shown == ["tensor([1., 2.])", "tensor([1., 2.])", "FakeTensor(..., size=(2,))"]


def test_the_old_constructors_make_fake_tensors_of_data():
    with FakeTensorMode():
        made = [torch.ones(2).new([1.0, 2.0, 3.0]), torch.Tensor([[1.0, 2.0]]), torch.LongTensor([1])]
    assert all(isinstance(t, FakeTensor) for t in made)
    assert [(t.shape, t.dtype) for t in made] == [((3,), torch.float32), ((1, 2), torch.float32), ((1,), torch.int64)]


def test_the_dtype_of_gradients_is_that_of_the_real_tensor():
    x = torch.ones(2, requires_grad=True)
    x.grad_dtype = torch.bfloat16
    assert FakeTensorMode().from_tensor(x).grad_dtype == torch.bfloat16


def test_what_is_computed_of_known_numbers_is_known():
    with FakeTensorMode():
        x = torch.tensor(4.0)
        y = x.add_(1)
        assert x.item() == y.item() == 5.0 and (x * 2).item() == 10.0
        assert torch.div(4, 4, rounding_mode="trunc").item() == 1
        assert torch.tensor([1.0, 2.0]).constant is None
        assert x.expand(4).constant is None


def test_a_write_of_what_is_not_known_makes_all_that_shares_the_memory_unknown():
    with FakeTensorMode():
        x = torch.tensor([1.0])
        y = x[:]
        assert x.constant.untyped_storage()._cdata == y.constant.untyped_storage()._cdata
        y.add_(torch.rand(1))
        assert x.constant is None and y.constant is None
        with pytest.raises(DataDependentOutputException):
            x.item()
        z = torch.tensor([1])
        z.expand(4)[0] = 2
        w = torch.tensor([1])
        w.resize_(2)
        v = torch.tensor([1.0]).uniform_()
        assert z.constant is None and w.constant is None and v.constant is None


@pytest.fixture
def carrying():
    with torch._functorch.config.patch(fake_tensor_propagate_real_tensors=True):
        yield FakeTensorMode()


def test_fake_tensors_can_carry_what_real_ones_would_hold(carrying):
    given = torch.tensor([[3.0, 0.0], [0.0, 4.0]])
    with carrying:
        x = carrying.from_tensor(given)
        places = x.nonzero()
        total = x.square().sum()
        x.add_(1)
        assert places.shape == (2, 2) and total.item() == 25.0
        assert x.real_tensor.tolist() == [[4.0, 1.0], [1.0, 5.0]] and x.max().item() == 5.0
        drawn = torch.rand(3)
        assert drawn.real_tensor.shape == (3,) and isinstance(drawn, FakeTensor)
    assert given.sum().item() == 7.0


def test_a_shape_rule_that_is_wrong_is_found_beside_the_real_tensors(carrying):
    library = torch.library.Library("wrongly", "DEF")
    library.define("doubled(Tensor x) -> Tensor")
    library.impl("doubled", lambda x: x * 2, "CPU")
    torch.library.register_fake("wrongly::doubled", lambda x: x.new_empty(7), lib=library)
    with carrying, pytest.raises(MetadataMismatchError, match=r"torch.Size\(\[3\]\) of the real one"):
        torch.ops.wrongly.doubled(torch.ones(3))
    library._destroy()


def test_a_shape_rule_that_is_wrong_is_found_without_carrying_values():
    library = torch.library.Library("falsely", "DEF")
    library.define("doubled(Tensor x) -> Tensor")
    library.impl("doubled", lambda x: x * 2, "CPU")
    torch.library.register_fake("falsely::doubled", lambda x: x.new_empty(7), lib=library)
    with CrossRefFakeMode(), pytest.raises(MetadataMismatchError, match="output of falsely.doubled.default"):
        torch.ops.falsely.doubled(torch.ones(3))
    library._destroy()


def test_every_operator_can_be_compared_with_its_shape_rule():
    seen = []
    with CrossRefFakeMode(ignore_op_fn=lambda op: seen.append(str(op))):
        layer = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.ReLU())
        layer(torch.ones(2, 2, 5, 5)).sum().backward()
        x = torch.ones(3, 4)
        x.t()[1:].add_(1)
        x.nonzero()
    assert "aten.native_batch_norm.default" in seen and layer[0].weight.grad is not None


def test_views_that_a_shape_rule_does_not_give_are_found():
    library = torch.library.Library("viewing", "DEF")
    library.define("part(Tensor(a) x) -> Tensor(a)")
    library.impl("part", lambda x: x[1:], "CPU")
    torch.library.register_fake("viewing::part", lambda x: x[1:].clone(), lib=library)
    with CrossRefFakeMode(), pytest.raises(MetadataMismatchError, match="memory of an argument"):
        torch.ops.viewing.part(torch.ones(3))
    with CrossRefFakeMode(check_aliasing=False):
        assert torch.ops.viewing.part(torch.ones(3)).shape == (2,)
    library._destroy()


def test_a_fake_tensor_is_resized_itself():
    with FakeTensorMode():
        x = torch.rand(4)
        view = x[:]
        assert x.resize_(2, 3) is x
    assert x.shape == (2, 3) and x.stride() == (3, 1) and view.shape == (4,)


def test_what_claims_to_be_on_the_meta_device_is_fake_like_others():
    with FakeTensorMode():
        x = torch.ones(1, device="meta")
        assert (x * 2).sum().device.type == "meta" and x.constant is None


def test_a_module_is_copied_without_memory():
    norm, shared = nn.BatchNorm2d(3), torch.ones(2)
    with FakeCopyMode(FakeTensorMode()):
        made = copy.deepcopy(norm)
        pair = copy.deepcopy([shared, shared])
    assert all(isinstance(tensor, FakeTensor) for tensor in made.state_dict().values())
    assert isinstance(made.weight, nn.Parameter) and made.weight.requires_grad and made.running_mean.shape == (3,)
    assert pair[0] is pair[1] and isinstance(pair[0], FakeTensor)
