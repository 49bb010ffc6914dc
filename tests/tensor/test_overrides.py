"""Tensor subclasses, the __torch_function__ protocol and function modes."""

import copy
import pickle

import pytest

import cresset as torch
from cresset.overrides import TorchFunctionMode, handle_torch_function, has_torch_function, is_tensor_like


class Named(torch.Tensor):
    """A subclass that changes nothing."""


class Logged(torch.Tensor):
    """A subclass that notes the calls it sees."""

    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs)


class Diagonal:
    """Not a tensor at all: a diagonal matrix that knows how to be summed, and nothing else."""

    def __init__(self, n, value):
        self.n, self.value = n, value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.sum:
            return args[0].n * args[0].value
        if func in (torch.add, torch.Tensor.add):
            return "added"
        return NotImplemented


class TestSubclasses:
    def test_operations_keep_the_class(self):
        t = torch.ones(2, 3).as_subclass(Named)
        for result in (
            t + 1,
            1 + t,
            t * t,
            t.sum(),
            t[0],
            t[:, None],
            t.T,
            t.view(6),
            torch.exp(t),
            torch.cat([t, t]),
            t.clone(),
            t.max(1).values,
            t @ t.T,
            t > 0,
            -t,
            t.split(1)[0],
        ):
            assert type(result) is Named
        assert type(t.detach()) is Named and type(torch.ones(2)) is torch.Tensor

    def test_in_place_gives_the_tensor_itself(self):
        t = torch.ones(2).as_subclass(Named)
        u = t
        t += 1
        assert t is u and t.add_(1) is t and type(t) is Named

    def test_a_subclass_is_made_by_its_constructor_and_shares_memory(self):
        data = torch.zeros(3)
        t = Named(data)
        t[0] = 5
        assert data.tolist() == [5, 0, 0] and type(t) is Named and isinstance(t, torch.Tensor)

    def test_the_plain_constructor_gives_a_plain_tensor_that_shares_memory(self):
        t = torch.zeros(3).as_subclass(Named)
        for made in (torch.Tensor(t), torch.FloatTensor(t), torch.ones(1).new(t)):
            made[0] += 1
            assert type(made) is torch.Tensor
        assert t.tolist() == [3, 0, 0]

    def test_gradients_flow_through_as_subclass(self):
        x = torch.ones(2, requires_grad=True)
        (x.as_subclass(Named) * 3).sum().backward()
        assert x.grad.tolist() == [3, 3]

    def test_a_subclass_sees_functions_methods_and_operators(self):
        t = torch.ones(2).as_subclass(Logged)
        Logged.calls.clear()
        torch.exp(t), t.exp(), t + 1, torch.stack([t, t])
        assert Logged.calls == ["exp", "exp", "add", "stack"]

    def test_the_more_derived_class_is_asked_first(self):
        class Child(Named):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return "child"

        child, parent = torch.ones(1).as_subclass(Child), torch.ones(1).as_subclass(Named)
        assert parent + child == "child" and child + parent == "child"

    def test_unrelated_classes_do_not_mix(self):
        class Other(torch.Tensor):
            pass

        with pytest.raises(TypeError):
            torch.ones(1).as_subclass(Named) + torch.ones(1).as_subclass(Other)

    def test_subclasses_copy_and_pickle_with_their_attributes(self):
        t = torch.ones(2).as_subclass(Named)
        t.note = "kept"
        for other in (copy.deepcopy(t), copy.copy(t), pickle.loads(pickle.dumps(t))):
            assert type(other) is Named and other.note == "kept" and other.tolist() == [1, 1]

    def test_a_disabled_subclass_gives_plain_tensors(self):
        class Quiet(torch.Tensor):
            __torch_function__ = torch.Tensor._disabled_torch_function

        assert type(torch.ones(1).as_subclass(Quiet) + 1) is torch.Tensor

    def test_a_subclass_prints(self):
        assert repr(torch.ones(2).as_subclass(Named)) == "Named([1., 1.])"


class TestOtherTypes:
    def test_functions_ask_the_argument(self):
        assert torch.sum(Diagonal(3, 2.0)) == 6.0
        assert torch.ones(2) + Diagonal(2, 1.0) == "added" and torch.add(Diagonal(2, 1.0), torch.ones(2)) == "added"

    def test_not_implemented_by_all_is_a_type_error(self):
        with pytest.raises(TypeError):
            torch.exp(Diagonal(2, 1.0))

    def test_functions_of_ones_own_take_part(self):
        def double(x):
            if has_torch_function((x,)):
                return handle_torch_function(double, (x,), x)
            return 2 * x

        class Half:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return func.__name__, types

        assert double(3) == 6 and double(Half()) == ("double", (Half,))
        assert is_tensor_like(Half()) and not is_tensor_like(3)
        with pytest.raises(TypeError, match="double"):
            double(Diagonal(1, 1.0))


class TestModes:
    def test_a_mode_sees_every_call(self):
        class Log(TorchFunctionMode):
            def __init__(self):
                self.seen = []

            def __torch_function__(self, func, types, args=(), kwargs=None):
                self.seen.append(func.__name__)
                return func(*args, **(kwargs or {}))

        with Log() as outer:
            x = torch.ones(2) + 1
            with Log() as inner:
                x.exp()
        torch.ones(2)
        assert outer.seen == ["ones", "add", "exp"] and inner.seen == ["exp"] and x.tolist() == [2, 2]

    def test_a_mode_can_change_results(self):
        class Zeros(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                return "nothing" if func is torch.rand else func(*args, **(kwargs or {}))

        with Zeros():
            assert torch.rand(3) == "nothing" and torch.ones(1).item() == 1

    def test_a_mode_ends_with_an_exception(self):
        class Broken(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                raise KeyError("broken")

        with pytest.raises(KeyError), Broken():
            torch.ones(1)
        assert torch.ones(1).item() == 1


class TestFunctionsOfOtherModules:
    """nn.functional, linalg and fft ask as well, by PyTorch's names."""

    class Answers:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    @pytest.mark.parametrize(
        ("call", "name"),
        [
            (lambda x: torch.nn.functional.cross_entropy(x, torch.tensor([0])), "cross_entropy"),
            (lambda x: torch.nn.functional.mse_loss(x, x), "mse_loss"),
            (lambda x: torch.nn.functional.softmax(x, 0), "softmax"),
            (lambda x: torch.nn.functional.max_pool2d(x, 2), "max_pool2d"),
            (lambda x: torch.nn.functional.conv2d(x, torch.ones(1, 1, 1, 1)), "conv2d"),
            (lambda x: torch.nn.functional.scaled_dot_product_attention(x, x, x), "scaled_dot_product_attention"),
            (lambda x: torch.linalg.inv(x), "linalg_inv"),
            (lambda x: torch.linalg.norm(x), "linalg_norm"),
            (lambda x: torch.fft.fft(x), "fft_fft"),
        ],
    )
    def test_what_is_no_tensor_answers(self, call, name):
        assert call(self.Answers()) == name

    def test_subclasses_and_modes_see_the_outermost_call(self):
        Logged.calls.clear()
        x = torch.eye(2).as_subclass(Logged)
        assert type(torch.nn.functional.mse_loss(x, x)) is Logged and Logged.calls[0] == "mse_loss"

        class Names(TorchFunctionMode):
            seen = []

            def __torch_function__(self, func, types, args=(), kwargs=None):
                self.seen.append(func.__name__)
                return func(*args, **(kwargs or {}))

        with Names():
            torch.nn.functional.normalize(torch.ones(1, 2))
        assert Names.seen == ["ones", "normalize"]

    def test_subclasses_can_be_passed_over_by_pytorchs_name_for_it(self):
        Logged.calls.clear()
        with torch._C.DisableTorchFunctionSubclass():
            torch.ones(2).as_subclass(Logged) + 1
        assert Logged.calls == []
