"""Tensor subclasses with __torch_dispatch__: wrappers without memory, and subclasses with it."""

import copy
import gc
import weakref

import pytest

import cresset as torch
from cresset import nn
from cresset.utils._mode_utils import no_dispatch
from cresset.utils._python_dispatch import return_and_correct_aliasing, transform_subclass
from cresset.utils._pytree import tree_map_only

aten = torch.ops.aten


class Logged(torch.Tensor):
    """A wrapper that writes down what is done to it."""

    log = []

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, strides=inner.stride(), storage_offset=inner.storage_offset(), dtype=inner.dtype,
            device=inner.device, requires_grad=inner.requires_grad,
        )  # fmt: skip

    def __init__(self, inner):
        self.inner = inner.detach()

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.log.append(str(func))
        bare = tree_map_only(cls, lambda t: t.inner, (args, kwargs or {}))
        result = func(*bare[0], **bare[1])
        wrapped = tree_map_only(torch.Tensor, cls, result)
        return return_and_correct_aliasing(func, args, kwargs, wrapped)

    def __tensor_flatten__(self):
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inner, context, outer_size, outer_stride):
        return Logged(inner["inner"])


@pytest.fixture(autouse=True)
def empty_log():
    Logged.log = []


def test_a_wrapper_has_the_shape_it_was_given_and_no_memory():
    x = torch.Tensor._make_wrapper_subclass(Logged, (2, 3), strides=(1, 2), storage_offset=4, dtype=torch.float64)
    assert x.shape == (2, 3) and x.stride() == (1, 2) and x.storage_offset() == 4 and x.dtype == torch.float64
    assert x.device.type == "cpu" and not x.is_contiguous() and x.is_leaf and not x.requires_grad
    with pytest.raises(RuntimeError, match="doesn't have storage"):
        x.data_ptr()
    with pytest.raises(RuntimeError, match=".tolist.. is not supported for tensor subclasses."):
        x.tolist()
    with pytest.raises(RuntimeError, match=".numpy.. is not supported for tensor subclasses."):
        x.numpy()
    storage = x.untyped_storage()  # its size is known, its bytes are nowhere
    assert storage is x.untyped_storage() and storage.nbytes() == 48 and storage.device.type == "cpu"
    for use in (storage.data_ptr, lambda: storage.resize_(0), lambda: storage.fill_(0), storage.clone, storage.tolist):
        with pytest.raises(RuntimeError, match="on an invalid python storage"):
            use()


def test_a_class_that_does_not_answer_cannot_be_without_memory():
    class Silent(torch.Tensor):
        pass

    with pytest.raises(TypeError, match="Silent must define __torch_dispatch__"):
        torch.Tensor._make_wrapper_subclass(Silent, (2,))
    with pytest.raises(TypeError, match="must be a type"):
        torch.Tensor._make_wrapper_subclass(3, (2,))


def test_the_class_sees_operators_by_their_names_in_aten():
    x = Logged(torch.tensor([1.0, 2.0]))
    y = (x + 1).mul(x).sum()
    assert type(y) is Logged and y.inner.item() == 8.0
    assert Logged.log == ["aten.add.Tensor", "aten.mul.Tensor", "aten.sum.default"]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: x.sum(0), "aten.sum.dim_IntList"),
        (lambda x: x.max(0), "aten.max.dim"),
        (lambda x: x @ x.mT, "aten.mm.default"),
        (lambda x: x.view(-1), "aten.view.default"),
        (lambda x: x[0], "aten.select.int"),
        (lambda x: x.transpose(0, 1), "aten.transpose.int"),
        (lambda x: torch.cat([x, x]), "aten.cat.default"),
        (lambda x: x.add_(1), "aten.add_.Tensor"),
        (lambda x: x.zero_(), "aten.zero_.default"),
        (lambda x: x.to(torch.float64), "aten._to_copy.default"),
        (lambda x: torch.relu(x), "aten.relu.default"),
        (lambda x: x.softmax(-1), "aten._softmax.default"),
        (lambda x: torch.ones_like(x), "aten.ones_like.default"),
        (lambda x: x.clone(), "aten.clone.default"),
        (lambda x: 2 - x, "aten.rsub.Scalar"),
        (lambda x: x / 2, "aten.div.Tensor"),
    ],
)
def test_overloads_and_arguments(call, name):
    call(Logged(torch.ones(2, 2)))
    assert name in Logged.log


def test_arguments_at_their_defaults_are_left_out():
    seen = []

    class Exact(Logged):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            seen.append((str(func), args[1:], kwargs, types))
            return super().__torch_dispatch__(func, types, args, kwargs)

    x = Exact(torch.ones(2, 2))
    x.sum(0)
    x.sum(0, keepdim=True)
    assert seen[0] == ("aten.sum.dim_IntList", ([0],), {}, (Exact,))
    assert seen[1] == ("aten.sum.dim_IntList", ([0], True), {}, (Exact,))


def test_autograd_stands_above():
    x = Logged(torch.tensor([1.0, 2.0])).requires_grad_()
    y = (x * x).sum()
    assert y.requires_grad and y.grad_fn is not None and not y.inner.requires_grad
    y.backward()
    assert type(x.grad) is Logged and x.grad.inner.tolist() == [2.0, 4.0]


def test_a_gradient_reaches_a_plain_leaf_through_a_wrapper():
    weight = torch.tensor([3.0], requires_grad=True)
    y = (Logged(torch.tensor([2.0])) * weight).sum()
    (grad,) = torch.autograd.grad(y, weight)
    assert type(grad) is Logged and grad.inner.tolist() == [2.0]


def test_second_derivatives():
    x = Logged(torch.tensor([2.0])).requires_grad_()
    (slope,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (curve,) = torch.autograd.grad(slope.sum(), x)
    assert curve.inner.item() == 12.0


def test_writing_in_place_gives_the_same_object_and_counts():
    x = Logged(torch.zeros(2))
    before = x._version
    assert x.add_(1) is x and x.inner.tolist() == [1.0, 1.0] and x._version == before + 1
    out = Logged(torch.zeros(2))
    assert torch.add(x, x, out=out) is out and out.inner.tolist() == [2.0, 2.0]


def test_item_and_truth_ask_the_class():
    x = Logged(torch.tensor(3.0))
    assert x.item() == 3.0 and float(x) == 3.0 and bool(x)
    assert Logged.log == ["aten._local_scalar_dense.default"] * 3
    with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
        Logged(torch.ones(2)).item()


def test_a_parameter_of_the_class_is_trained():
    layer = nn.Linear(2, 1, bias=False)
    layer.weight = nn.Parameter(Logged(torch.ones(1, 2)))
    assert type(layer.weight) is Logged and isinstance(layer.weight, nn.Parameter)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
    layer(torch.tensor([[1.0, 2.0]])).sum().backward()
    optimizer.step()
    assert layer.weight.inner.tolist() == [[0.5, 0.0]]


def test_a_detach_that_loses_the_class_cannot_be_a_parameter():
    class Losing(Logged):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*(a.inner if isinstance(a, Logged) else a for a in args), **(kwargs or {}))

    with pytest.raises(RuntimeError, match="requires that detach\\(\\) returns an instance of the same type"):
        nn.Parameter(Losing(torch.ones(2)))


def test_nobody_answering_is_an_error_that_names_the_operator():
    class Mute(Logged):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="Multiple dispatch failed for 'torch._ops.aten.add.Tensor'"):
        Mute(torch.ones(2)) + 1


def test_a_subclass_is_asked_before_its_base():
    asked = []

    class Base(Logged):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            asked.append(cls.__name__)
            return NotImplemented if cls is Sub else 7

    class Sub(Base):
        pass

    with pytest.raises(TypeError, match="instead of a Tensor"):
        Base(torch.ones(2)) + Sub(torch.ones(2))
    assert asked == ["Sub", "Base"]


def test_a_subclass_with_memory_is_asked_too_and_can_be_passed_over():
    class Own(torch.Tensor):
        log = []

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            cls.log.append(str(func))
            with no_dispatch():
                return func(*args, **(kwargs or {}))

    x = torch.Tensor._make_subclass(Own, torch.tensor([1.0, 2.0]))
    assert (x + 1).tolist() == [2.0, 3.0] and Own.log == ["aten.add.Tensor"]
    assert x.data_ptr() != 0 and x.tolist() == [1.0, 2.0]


def test_vmap_over_a_wrapper_reaches_the_class():
    result = torch.vmap(lambda t: t * 2)(Logged(torch.ones(3, 2)))
    assert type(result) is Logged and result.inner.tolist() == [[2.0, 2.0]] * 3


def test_transform_subclass_takes_apart_and_puts_together():
    x = Logged(torch.ones(2))
    doubled = transform_subclass(x, lambda name, inner: inner * 2)
    assert type(doubled) is Logged and doubled.inner.tolist() == [2.0, 2.0]


def test_wrappers_are_freed():
    x = Logged(torch.ones(2)).requires_grad_()
    y = (x * 2).exp()
    reference = weakref.ref(y)
    y.sum().backward()
    del x, y
    gc.collect()
    assert reference() is None


def test_copies_keep_the_class():
    x = Logged(torch.ones(2))
    assert type(copy.copy(x)) is Logged and type(copy.deepcopy(x)) is Logged


@pytest.mark.parametrize(("policy", "shape", "strides"), [("sizes", (7, 7), (7, 1)), ("strides", (2, 3), (7, 1))])
def test_a_class_may_answer_for_sizes_and_strides(policy, shape, strides):
    class Sized(torch.Tensor):
        @staticmethod
        def __new__(cls):
            return torch.Tensor._make_wrapper_subclass(cls, (2, 3), dispatch_sizes_strides_policy=policy)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return {"sym_size": (7, 7), "sym_stride": (7, 1)}.get(func._opname, NotImplemented)

    x = Sized()
    assert x.shape == shape and x.size() == shape and x.size(0) == shape[0] and x.stride() == strides
    with pytest.raises(NotImplementedError, match="device and layout are those it was made with"):
        torch.Tensor._make_wrapper_subclass(Sized, (2,), dispatch_device=True)


class Saved(torch.Tensor):
    """A wrapper at the module's top, where a file can name it."""

    @staticmethod
    def __new__(cls, held):
        return torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype)

    def __init__(self, held):
        self.held = held

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        bare = tree_map_only(cls, lambda t: t.held, (args, kwargs or {}))
        return tree_map_only(torch.Tensor, cls, func(*bare[0], **bare[1]))


def test_a_wrapper_is_saved_and_comes_back_where_its_class_is_allowed(tmp_path):
    torch.save(Saved(torch.tensor([1.0, 2.0])), tmp_path / "wrapper.pt")
    with pytest.raises(Exception, match="Saved"):
        torch.load(tmp_path / "wrapper.pt")
    with torch.serialization.safe_globals([Saved]):
        back = torch.load(tmp_path / "wrapper.pt")
    assert type(back) is Saved and back.held.tolist() == [1.0, 2.0] and back.shape == (2,)


def test_a_class_that_answers_for_its_sizes_has_tensors_own_methods():
    class Tall(torch.Tensor):
        @staticmethod
        def __new__(cls):
            return torch.Tensor._make_wrapper_subclass(cls, (2, 3), dispatch_sizes_strides_policy="sizes")

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            answers = {"aten::sym_size": (7, 5), "aten::sym_stride": (5, 1)}
            return answers.get(func._schema.name, NotImplemented)

    tall = Tall()
    assert Tall.size is torch.Tensor.size and Tall.stride is torch.Tensor.stride
    assert tall.shape == tall.size() == torch.Size([7, 5]) and isinstance(tall.size(), torch.Size)
    assert (tall.size(-1), tall.stride(), tall.stride(0)) == (5, (5, 1), 5)
    assert torch.Tensor.size(tall) == (7, 5)


def test_an_operand_that_a_class_does_not_take_may_answer_itself():
    class Asks(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})

    class Knows:
        def __radd__(self, other):
            return "known"

    x = torch.ones(2).as_subclass(Asks)
    assert x + Knows() == "known"
    with pytest.raises(TypeError, match="unsupported operand"):
        x * Knows()


def test_a_wrappers_facts_may_be_given_by_position():
    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls):
            return torch.Tensor._make_wrapper_subclass(
                cls, (2, 3), (3, 1), 0, torch.contiguous_format, torch.float64, torch.strided, torch.device("cpu")
            )

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    made = Wrapper()
    assert made.shape == (2, 3) and made.dtype == torch.float64 and made.stride() == (3, 1)


@pytest.mark.parametrize(
    "part",
    [
        lambda x: x.narrow(0, 1, 2),
        lambda x: x[0],
        lambda x: x[1:],
        lambda x: x.diagonal(),
        lambda x: x[:1].expand(4, 3),
    ],
)
def test_the_gradient_of_a_part_of_a_wrapper_has_a_gradient(part):
    inner = torch.arange(9.0, dtype=torch.float64).view(3, 3) / 9
    x = Logged(inner.clone().requires_grad_())
    (slope,) = torch.autograd.grad(part(x).exp().sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(slope.sum(), x)
    plain = inner.clone().requires_grad_()
    (expected,) = torch.autograd.grad(part(plain).exp().sum(), plain)
    assert second.inner.tolist() == expected.tolist()


def test_a_change_of_a_view_of_a_wrapper_reaches_its_base():
    x = Logged(torch.ones(3, requires_grad=True))
    y = x * 1
    y[1:].mul_(5)
    y.sum().backward()
    assert y.inner.tolist() == [1.0, 5.0, 5.0] and x.grad.inner.tolist() == [1.0, 5.0, 5.0]


def test_torch_dispatch_may_be_a_method_of_the_tensor_that_is_asked():
    class Pair(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            made = torch.Tensor._make_wrapper_subclass(cls, inner.shape)
            made.inner = inner
            return made

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            assert isinstance(self, Pair) and args[0] is self
            return func(self.inner)

    result = Pair(torch.tensor([1.0, 2.0])).neg()
    assert type(result) is torch.Tensor and result.tolist() == [-1.0, -2.0]
