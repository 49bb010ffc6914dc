"""__torch_function__: types of one's own and modes see the calls of operators and of functions made of them."""

import pickle

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
