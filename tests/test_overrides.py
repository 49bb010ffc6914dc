"""__torch_function__: types of one's own and modes see the calls of operators and of functions made of them."""

import copy
import pickle
import subprocess
import sys

import pytest

import cresset
from cresset import overrides


class Logged:
    """Not a tensor, but it answers for itself."""

    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func)
        return "answered"


class Named(cresset.Tensor):
    """A tensor that notes which functions it went through."""

    seen = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs)


@pytest.mark.parametrize("name", ["add", "tensor_split", "tensordot", "block_diag", "stack", "diag_embed"])
def test_operators_and_functions_made_of_them_ask(name):
    Logged.calls.clear()
    function = getattr(cresset, name)
    assert function([Logged(), Logged()] if name in ("stack",) else Logged(), 1) == "answered"
    assert Logged.calls == [function]


def test_a_function_made_of_others_is_seen_as_itself():
    x = cresset.ones(2, 2).as_subclass(Named)
    Named.seen.clear()
    result = cresset.diag_embed(x)
    assert Named.seen == ["diag_embed"]
    assert type(result) is Named
    Named.seen.clear()
    x.tensor_split(2)
    assert Named.seen == ["tensor_split"]


def test_a_mode_sees_the_public_function():
    seen = []

    class Watch(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = cresset.ones(4)
    with Watch():
        cresset.tensor_split(x, 2)
    assert seen == [cresset.tensor_split]


def test_a_mode_sees_tensors_made_of_data_and_may_place_them_elsewhere():
    seen = []

    class Elsewhere(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            kwargs = dict(kwargs or {})
            seen.append((func, types, dict(kwargs)))
            kwargs.setdefault("dtype", cresset.float64)
            return func(*args, **kwargs)

    with Elsewhere():
        made = cresset.tensor([1, 2]), cresset.as_tensor([1, 2]), cresset.asarray([1, 2], copy=True)
        kept = cresset.tensor([1], dtype=cresset.int8, requires_grad=False)
    assert [t.dtype for t in made] == [cresset.float64] * 3 and kept.dtype == cresset.int8
    assert seen[:3] == [
        (cresset.tensor, (), {}),
        (cresset.as_tensor, (), {}),
        (cresset.asarray, (), {"copy": True}),
    ]


def test_without_overrides_it_is_the_function():
    assert cresset.diag_embed(cresset.ones(2)).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert cresset.diag_embed.__name__ == "diag_embed"
    assert ">>>" in cresset.diag_embed.__doc__
    again = pickle.loads(pickle.dumps(cresset.diag_embed))
    assert again(cresset.ones(1)).tolist() == [[1.0]]


def test_names_and_lists_of_functions():
    assert overrides.resolve_name(cresset.tensor_split) == "torch.tensor_split"
    assert overrides.resolve_name(cresset.Tensor.add_) == "torch.Tensor.add_"
    assert overrides.resolve_name(len) is None
    assert overrides.is_tensor_method_or_property(cresset.Tensor.tensor_split)
    functions = overrides.get_overridable_functions()
    assert cresset.tensor_split in functions[cresset]
    assert cresset.zeros in overrides.get_ignored_functions()
    assert cresset.zeros not in functions[cresset]
    assert overrides.get_testing_overrides()[cresset.add](1, 2) == -1


def test_a_mode_sees_items_taken_and_set():
    seen = []

    class Watch(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append((func.__name__, args[1:]))
            return func(*args, **(kwargs or {}))

    x = cresset.zeros(2, 2)
    with Watch():
        x[0, 1] = 5
        row = x[0]
    assert seen == [("__setitem__", ((0, 1), 5)), ("__getitem__", (0,))]
    assert row.tolist() == [0.0, 5.0]


def test_redispatching_a_function_shows_what_it_calls():
    seen = []

    class Loud(cresset.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return cresset.overrides.redispatch_function(func, types, args, kwargs)

    def scaled(a, b):
        if cresset.overrides.has_torch_function((a, b)):
            return cresset.overrides.handle_torch_function(scaled, (a, b), a, b)
        return a * b + 1

    result = scaled(Loud(cresset.tensor([3.0])), Loud(cresset.tensor([4.0])))
    assert result.tolist() == [13.0] and type(result) is cresset.Tensor
    assert seen == ["scaled", "mul"]


class Asked(cresset.Tensor):
    """A tensor that notes the objects it is asked about."""

    seen = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(func)
        return super().__torch_function__(func, types, args, kwargs)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: x + 1, "add"),
        (lambda x: 1 - x, "sub"),
        (lambda x: x @ x, "matmul"),
        (lambda x: -x, "neg"),
        (lambda x: x > 0, "gt"),
        (lambda x: x.add(1), "add"),
        (lambda x: x.multiply(2), "multiply"),
        (lambda x: x.tensor_split(2), "tensor_split"),
        (lambda x: x.is_shared(), "is_shared"),
        (lambda x: x.element_size(), "element_size"),
    ],
)
def test_a_method_asks_by_the_object_that_the_class_has(call, name):
    x = Asked(cresset.tensor([1.0, 2.0]))
    Asked.seen.clear()
    call(x)
    assert Asked.seen[0] is getattr(cresset.Tensor, name) and Asked.seen[0].__name__ == name
    assert Asked.seen[0] is not getattr(cresset, name, None)


@pytest.mark.parametrize(
    ("function", "module", "name"),
    [
        (cresset.add, "torch", "add"),
        (cresset.arcsin, "torch", "arcsin"),
        (cresset.einsum, "torch.functional", "einsum"),
        (cresset.linalg.inv, "torch._C._linalg", "linalg_inv"),
        (cresset.fft.fftshift, "torch._C._fft", "fft_fftshift"),
        (cresset.special.expit, "torch._C._special", "special_expit"),
        (cresset.nn.functional.celu, "torch.nn.functional", "celu"),
        (cresset.nn.functional.one_hot, "torch._C._nn", "one_hot"),
        (cresset.nn.init.constant_, "torch.nn.init", "constant_"),
        (cresset.sym_float, "torch", "sym_float"),
    ],
)
def test_functions_ask_by_themselves_and_know_where_they_are_at_home(function, module, name):
    Logged.calls.clear()
    assert function(Logged(), 1) == "answered"
    assert Logged.calls == [function] and (function.__module__, function.__name__) == (module, name)
    assert function in overrides.get_testing_overrides()


def test_a_further_name_is_one_object_however_it_is_come_by():
    assert copy.deepcopy(cresset.Tensor.add) is cresset.Tensor.add
    assert copy.copy(cresset.special.expit) is cresset.special.expit
    assert copy.deepcopy(cresset.Tensor.tensor_split) is cresset.Tensor.tensor_split
    assert cresset.Tensor.add.__doc__ == cresset.add.__doc__ and cresset.special.expit(cresset.zeros(1)).item() == 0.5
    assert cresset._native.function_behind(cresset.special.expit) is cresset.sigmoid


def test_the_lists_tell_methods_from_functions():
    functions = overrides.get_overridable_functions()
    assert cresset.Tensor.add in functions[cresset.Tensor] and cresset.add in functions[cresset]
    assert cresset.add not in functions[cresset.Tensor] and cresset.Tensor.__gt__ in functions[cresset.Tensor]
    assert overrides.is_tensor_method_or_property(cresset.Tensor.add)
    assert not overrides.is_tensor_method_or_property(cresset.add)
    assert overrides.resolve_name(cresset.Tensor.add) == "torch.Tensor.add"
    assert overrides.resolve_name(cresset.nn.functional.celu) == "torch.nn.functional.celu"


class Position:
    """A number that answers for itself, by a method of its own and not of its class."""

    def __init__(self, value):
        self.value, self.asked = value, []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.asked.append(func)
        return "answered"

    def __index__(self):
        return self.value


def test_an_object_in_an_index_or_a_list_is_asked():
    position, x = Position(1), cresset.zeros(2, 2)
    assert x[position] == "answered" and x[0, position] == "answered" and x[(0, [position])] == "answered"
    assert cresset.nn.functional.pad(x, [1, position]) == "answered"
    assert position.asked == [cresset.Tensor.__getitem__] * 3 + [cresset.nn.functional.pad]


def test_an_object_that_is_assigned_is_asked():
    position, x = Position(1), cresset.zeros(2)
    x[0] = position
    x[position] = 5
    assert position.asked == [cresset.Tensor.__setitem__] * 2 and x.tolist() == [0.0, 0.0]


def test_has_torch_function_wants_a_list_of_arguments():
    with pytest.raises(TypeError, match="has_torch_function: expected a tuple or list"):
        overrides.has_torch_function(cresset.ones(2))
    with cresset._C.DisableTorchFunctionSubclass():
        assert not overrides.has_torch_function((Asked(cresset.ones(1)),))


def test_subclasses_can_be_asked_again_inside_of_where_they_are_not():
    x = Asked(cresset.ones(2))
    with cresset._C.DisableTorchFunctionSubclass():
        assert type(cresset.sum(x)) is cresset.Tensor
        with overrides._enable_torch_function():
            assert type(cresset.sum(x)) is Asked


def test_the_modes_that_watch_are_listed():
    assert overrides._get_current_function_mode_stack() == [] and overrides._get_current_function_mode() is None
    with overrides.BaseTorchFunctionMode() as outer, overrides.BaseTorchFunctionMode() as inner:
        assert overrides._get_current_function_mode_stack() == [outer, inner]
        assert overrides._get_current_function_mode() is inner


def test_an_object_is_asked_for_its_gradient():
    class Answers:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func, args, kwargs["create_graph"]

    x = Answers()
    assert cresset.autograd.grad(x, x, create_graph=True) == (cresset.autograd.grad, ((x,), (x,)), True)


def test_gradients_of_a_subclass_are_of_the_subclass():
    x = Asked(cresset.ones(2)).requires_grad_()
    (grad,) = cresset.autograd.grad((x * x).sum(), x)
    assert type(grad) is Asked and grad.tolist() == [2.0, 2.0]


# ---- attributes, and methods that compute nothing


class Telling(cresset.Tensor):
    """Keeps the names of what it was asked."""

    told = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.told.append(overrides.resolve_name(func) or func.__name__)
        return super().__torch_function__(func, types, args, kwargs)


QUESTIONS = {
    "shape.__get__": lambda x: x.shape,
    "device.__get__": lambda x: x.device,
    "layout.__get__": lambda x: x.layout,
    "grad.__get__": lambda x: x.grad,
    "H.__get__": lambda x: x.H,
    "real.__get__": lambda x: x.real,
    "is_maia.__get__": lambda x: x.is_maia,
    "dim": lambda x: x.dim(),
    "numel": lambda x: x.nelement(),
    "size": lambda x: x.size(dim=0),
    "stride": lambda x: x.stride(),
    "is_floating_point": lambda x: x.is_floating_point(),
    "is_contiguous": lambda x: x.is_contiguous(memory_format=cresset.contiguous_format),
    "item": lambda x: x.item(),
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: x.numpy(force=True),
    "retain_grad": lambda x: x.retain_grad(),
    "__len__": len,
    "__bool__": bool,
    "__float__": float,
    "__int__": int,
    "__complex__": complex,
    "__repr__": repr,
    "__format__": lambda x: f"{x}",
    "__contains__": lambda x: 1.0 in x,
    "__deepcopy__": copy.deepcopy,
    "__dlpack_device__": lambda x: x.__dlpack_device__(),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_subclass_is_asked_about_attributes_and_methods(name):
    x = cresset.ones(1, 1).as_subclass(Telling).requires_grad_()
    Telling.told.clear()
    answer = QUESTIONS[name](x)
    assert Telling.told == [f"torch.Tensor.{name}"]
    plain = QUESTIONS[name](cresset.ones(1, 1, requires_grad=True))
    if isinstance(plain, cresset.Tensor):
        assert type(answer) is Telling and answer.tolist() == plain.tolist()
    else:
        assert str(answer).replace("Telling", "tensor") == str(plain)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_mode_is_asked_about_attributes_and_methods(name):
    told = []

    class Watching(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            told.append(overrides.resolve_name(func))
            return func(*args, **(kwargs or {}))

    x = cresset.ones(1, 1, requires_grad=True)
    with Watching():
        QUESTIONS[name](x)
    assert told == [f"torch.Tensor.{name}"]


def test_a_subclass_is_asked_before_an_attribute_is_set_or_deleted():
    x = cresset.ones(2).as_subclass(Telling)
    Telling.told.clear()
    x.grad = cresset.ones(2)
    x.requires_grad = True
    del x.grad
    assert Telling.told == ["torch.Tensor.grad.__set__", "torch.Tensor.requires_grad.__set__", "__delete__"]
    assert x.requires_grad and x.grad is None


def test_a_subclass_may_answer_an_attribute_otherwise():
    class Long(cresset.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func == cresset.Tensor.shape.__get__:
                return (7,)
            if func is cresset.Tensor.__len__:
                return 7
            return super().__torch_function__(func, types, args, kwargs)

    x = cresset.ones(2).as_subclass(Long)
    assert x.shape == (7,) and len(x) == 7 and x.size() == (2,)


def test_an_error_of_a_subclass_that_is_asked_about_an_attribute_comes_out():
    class Shy(cresset.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise KeyError("no answer")

    x = cresset.ones(2).as_subclass(Shy)
    for question in (lambda: x.shape, lambda: x.dim(), lambda: len(x), lambda: bool(x), lambda: float(x), lambda: x.T):
        with pytest.raises(KeyError, match="no answer"):
            question()
    with pytest.raises(KeyError, match="no answer"):
        x.grad = None
    with pytest.raises(KeyError, match="no answer"):
        x.real = 1


def test_a_mode_that_watches_operators_is_not_asked_about_attributes():
    told = []

    class Operators(overrides.OperatorMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            told.append(func.__name__)
            return func(*args, **(kwargs or {}))

    with Operators():
        x = cresset.ones(2, 2)
        assert x.shape == (2, 2) and x.dim() == 2 and x.tolist() == [[1.0, 1.0], [1.0, 1.0]]
        x.T.neg()
    assert told == ["ones", "t", "neg"]


def test_attributes_are_among_what_obeys():
    listed = overrides.get_overridable_functions()[cresset.Tensor]
    assert cresset.Tensor.shape.__get__ in listed and cresset.Tensor.size in listed and cresset.Tensor.numpy in listed
    assert overrides.resolve_name(cresset.Tensor.shape.__get__) == "torch.Tensor.shape.__get__"
    assert cresset.Tensor.shape.__qualname__ == "TensorBase.shape"
    assert overrides.get_testing_overrides()[cresset.Tensor.size](cresset.ones(1), 0) == -1


def test_what_is_computed_as_an_attribute_can_be_set_only_where_it_is_a_part():
    x = cresset.zeros(2, dtype=cresset.complex64)
    x.real = cresset.ones(2)
    assert x.tolist() == [1, 1]
    with pytest.raises(AttributeError):
        x.T = x
    with pytest.warns(UserWarning, match="volatile was removed"):
        assert not x.volatile


def test_a_class_is_not_asked_about_an_instance_that_is_not_whole_yet():
    class Whole(cresset.Tensor):
        __slots__ = ["mark"]

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            assert all(arg.mark for arg in args if isinstance(arg, Whole))
            return overrides.redispatch_function(func, types, args, kwargs)

    x = cresset.ones(2).as_subclass(Whole)
    x.mark = ["a"]
    back = copy.deepcopy(x)
    assert back.mark == ["a"] and back.mark is not x.mark
    assert type(cresset.ones(2, requires_grad=True).as_subclass(Whole)) is Whole


def test_special_is_found_where_the_functions_of_the_root_were_wrapped_before():
    program = """
import cresset
for name in dir(cresset):
    if isinstance(getattr(cresset, name), type(cresset.exp)):
        setattr(cresset, name, lambda *args, run=getattr(cresset, name): run(*args))
print(cresset.special.expit(cresset.zeros(1)).item())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "0.5\n"
