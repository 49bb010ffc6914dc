"""Calls of modules and the lookup of their attributes, which are native, keep Python's and PyTorch's rules."""

import copy
import pickle

import pytest

import cresset
from cresset import nn


class Scale(nn.Module):
    def __init__(self, factor=2.0):
        super().__init__()
        self.factor = nn.Parameter(cresset.tensor(factor))

    def forward(self, x, *, times=1):
        return x * self.factor * times


class Guarded(Scale):
    """Has a __getattr__ of its own, which sees parameters first."""

    asked = ()

    def __getattr__(self, name):
        if name == "magic":
            return 42
        type(self).asked += (name,)
        return super().__getattr__(name)


class Counted(Scale):
    calls = 0

    def __call__(self, *args, **kwargs):
        type(self).calls += 1
        return super().__call__(*args, **kwargs)


ONE = cresset.tensor(1.0)


def test_arguments_reach_forward():
    assert Scale()(ONE).item() == 2 and Scale()(ONE, times=3).item() == 6 and Scale()(x=ONE).item() == 2


def test_forward_can_be_replaced_on_one_module():
    module = Scale()
    module.forward = lambda x: x + 100
    assert module(ONE).item() == 101 and Scale()(ONE).item() == 2


def test_a_call_of_its_own_is_used():
    assert Counted()(ONE).item() == 2 and Counted.calls == 1


def test_a_class_can_be_changed_later():
    class Late(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(cresset.zeros(1))

        def forward(self, x):
            return x

    module = Late()
    assert module(ONE).item() == 1
    Late.__call__ = lambda self, x: "called"
    Late.__getattr__ = lambda self, name: f"no {name}"
    assert module(ONE) == "called" and module.weight == "no weight"
    del Late.__call__, Late.__getattr__
    assert module(ONE).item() == 1 and module.weight.tolist() == [0.0]


def test_every_module_can_be_watched_through_the_base():
    seen, native = [], nn.Module.__call__

    def watched(self, *args, **kwargs):
        seen.append(type(self).__name__)
        return native(self, *args, **kwargs)

    nn.Module.__call__ = watched
    try:
        nn.Sequential(Scale())(ONE)
    finally:
        nn.Module.__call__ = native
    assert seen == ["Sequential", "Scale"]
    assert Scale()(ONE).item() == 2 and seen == ["Sequential", "Scale"]


def test_a_getattr_of_its_own_sees_parameters():
    Guarded.asked = ()
    module = Guarded()
    assert module(ONE).item() == 2
    assert module.magic == 42 and "factor" in Guarded.asked


def test_super_finds_parameters_and_nothing_else():
    module = Guarded()
    assert nn.Module.__getattr__(module, "factor") is module.factor
    with pytest.raises(AttributeError, match="'Guarded' object has no attribute 'training'"):
        nn.Module.__getattr__(module, "training")


def test_a_missing_attribute_names_the_class():
    module = Scale()
    with pytest.raises(AttributeError, match="'Scale' object has no attribute 'weight'"):
        module.weight
    assert getattr(module, "weight", None) is None and not hasattr(module, "weight")


def test_object_does_not_see_parameters():
    with pytest.raises(AttributeError):
        object.__getattribute__(Scale(), "factor")


def test_properties_come_before_parameters():
    class Halved(nn.Module):
        def __init__(self):
            super().__init__()
            self._parameters["weight"] = nn.Parameter(cresset.tensor(4.0))

        @property
        def weight(self):
            return self._parameters["weight"] / 2

    assert Halved().weight.item() == 2


def test_an_attribute_error_in_a_property_is_an_attribute_error():
    class Broken(nn.Module):
        @property
        def width(self):
            return self.missing

    with pytest.raises(AttributeError, match="object has no attribute 'width'"):
        Broken().width


def test_registered_things_are_found_and_forgotten():
    module = Scale()
    module.register_buffer("mean", cresset.ones(1))
    module.child = nn.Identity()
    assert module.mean is module._buffers["mean"] and module.child is module._modules["child"]
    module.register_parameter("nothing", None)
    assert module.nothing is None
    del module.factor, module.mean, module.child
    assert not any(hasattr(module, name) for name in ("factor", "mean", "child"))


def test_a_mapping_of_its_own_can_hold_the_parameters():
    class Doubled(dict):
        def __getitem__(self, name):
            return super().__getitem__(name) * 2

    module = Scale()
    module._parameters = Doubled(module._parameters)
    assert module.factor.item() == 4


def test_copies_and_pickles_are_called_like_the_original():
    for module in (copy.deepcopy(Scale(3.0)), copy.copy(Scale(3.0)), pickle.loads(pickle.dumps(Scale(3.0)))):
        assert module(ONE).item() == 3


def test_hooks_run_and_stop_running():
    module, seen = Scale(), []
    handles = [
        module.register_forward_pre_hook(lambda m, args: (args[0] * 10,)),
        module.register_forward_hook(lambda m, args, result: seen.append(result.item())),
        nn.modules.module.register_module_forward_hook(lambda m, args, result: seen.append("all")),
    ]
    assert module(ONE).item() == 20 and seen == ["all", 20.0]
    for handle in handles:
        handle.remove()
    assert module(ONE).item() == 2 and len(seen) == 2


def test_a_module_that_was_not_initialized_says_so():
    class Forgot(nn.Module):
        def __init__(self):
            self.ready = True

        def forward(self, x):
            return x

    with pytest.raises(AttributeError, match="'Forgot' object has no attribute"):
        Forgot()(ONE)


@pytest.mark.filterwarnings("ignore:.*functional_call")
def test_functional_call_and_parametrizations_replace_what_forward_sees():
    module = Scale()
    replaced = nn.utils.stateless.functional_call(module, {"factor": cresset.tensor(5.0)}, (ONE,))
    assert replaced.item() == 5 and module(ONE).item() == 2
    linear = nn.Linear(2, 2, bias=False)
    nn.init.ones_(linear.weight)

    class Tripled(nn.Module):
        def forward(self, x):
            return 3 * x

    nn.utils.parametrize.register_parametrization(linear, "weight", Tripled())
    assert linear(cresset.ones(2)).tolist() == [6.0, 6.0]


# ---- where an exception came from


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(3, 2)

    def forward(self, x, mask=None):
        return self.fc1(x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Module()
        self.encoder.layers = nn.ModuleList([Layer(), Layer()])

    def forward(self, x):
        for layer in self.encoder.layers:
            x = layer(x, mask=None)
        return x


def note_of(call):
    with pytest.raises(Exception) as raised:
        call()
    (note,) = raised.value.__notes__
    return note


def test_a_note_has_the_whole_path_to_the_innermost_module():
    assert note_of(lambda: Model()(cresset.ones(4, 3))) == (
        "in encoder.layers.1.fc1: Linear(in_features=3, out_features=2, bias=True), input (4, 2)"
    )


def test_a_module_called_by_itself_needs_no_path():
    assert note_of(lambda: nn.Linear(3, 2)(cresset.ones(5))) == (
        "in Linear(in_features=3, out_features=2, bias=True), input (5,)"
    )


def test_a_note_shows_all_that_came_in():
    class Picky(nn.Module):
        def forward(self, *args, **kwargs):
            raise ValueError("no")

    x = cresset.ones(2)
    assert note_of(lambda: Picky()(x, [x, x], None, mask=x, scale=2.0)) == (
        "in Picky(), inputs (2,), [(2,), (2,)], None, mask=(2,), scale=float"
    )
    assert note_of(Picky()) == "in Picky(), no input"


def test_the_exception_itself_stays_as_it_was():
    class Strict(nn.Module):
        def forward(self, x):
            raise KeyError("width")

    with pytest.raises(KeyError) as raised:
        nn.Sequential(Strict())(ONE)
    assert raised.value.args == ("width",) and raised.value.__notes__ == ["in 0: Strict(), input ()"]


def test_an_exception_that_is_caught_and_replaced_gets_its_own_note():
    class Careful(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 2)

        def forward(self, x):
            try:
                return self.inner(x)
            except RuntimeError as error:
                raise ValueError("wrong width") from error

    with pytest.raises(ValueError) as raised:
        nn.Sequential(Careful())(cresset.ones(5))
    assert raised.value.__notes__ == ["in 0: Careful(), input (5,)"]
    (note,) = raised.value.__cause__.__notes__  # it never left Careful
    assert note == "in Linear(in_features=3, out_features=2, bias=True), input (5,)"


def test_a_module_that_is_no_submodule_ends_the_path():
    class Hiding(nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden = [nn.Linear(3, 2)]

        def forward(self, x):
            return self.hidden[0](x)

    assert note_of(lambda: Hiding()(cresset.ones(5))).startswith("in Linear(")


def test_an_exception_with_a_note_can_be_pickled():
    with pytest.raises(RuntimeError) as raised:
        Model()(cresset.ones(4, 3))
    assert pickle.loads(pickle.dumps(raised.value)).args == raised.value.args


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (
            lambda: nn.GRU(3, 5)(cresset.ones(2, 3, dtype=cresset.float64)),
            ValueError,
            r"Convert input: input\.to\(torch\.float32\), or convert model: model\.to\(torch\.float64\)",
        ),
        (
            lambda: nn.GRU(3, 5)(cresset.ones(0, 4, dtype=cresset.float64)),
            ValueError,
            r"Convert input: input\.to\(torch\.float32\), or convert model: model\.to\(torch\.float64\)",
        ),
        (lambda: nn.GRU(3, 5)(cresset.ones(0, 3)), RuntimeError, "Expected sequence length to be larger than 0 in RNN"),
        (lambda: nn.GRUCell(3, 5)(cresset.ones(2, 3), cresset.ones(2, 4)), RuntimeError, "hidden0 has inconsistent"),
        (
            lambda: nn.LSTMCell(3, 5)(cresset.ones(2, 3), (cresset.ones(2, 5), cresset.ones(3, 5))),
            RuntimeError,
            "Input batch size 2 doesn't match hidden1 batch size 3",
        ),
        (lambda: nn.HuberLoss(delta=1j), TypeError, "delta must be a float or int"),
        (
            lambda: nn.LinearCrossEntropyLoss(3, 2)(cresset.ones(4, 5), cresset.zeros(4, 2)),
            RuntimeError,
            r"last dimensions \(in_features\), got 5 and 3, respectively",
        ),
        (
            lambda: nn.LinearCrossEntropyLoss(3, 2, weight=cresset.ones(3)),
            RuntimeError,
            r"expected weight shape to be \(2,\), got \(3,\)",
        ),
        (
            lambda: nn.LinearCrossEntropyLoss(3, 2, label_smoothing=2.0),
            RuntimeError,
            r"label_smoothing.*range \[0, 1\]",
        ),
        (lambda: nn.LSTM(3, 5, bias=0), TypeError, "bias should be of type bool, got: int"),
        (lambda: nn.GRU(3, 5, batch_first="yes"), TypeError, "batch_first should be of type bool, got: str"),
        (lambda: nn.LSTM(0, 5), ValueError, "input_size must be greater than zero"),
        (lambda: nn.RNN(3.5, 5), TypeError, "input_size should be of type int, got: float"),
        (
            lambda: cresset.gru_cell(
                cresset.ones(4, 8), cresset.ones(4, 16), cresset.ones(48, 8), cresset.ones(49, 16)
            ),
            RuntimeError,
            "weight_hh",
        ),
    ],
)
def test_layers_say_which_argument_does_not_fit(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_a_vector_is_loaded_as_a_scalar_only_if_it_has_one_element():
    module = nn.Module()
    module.register_parameter("threshold", nn.Parameter(cresset.tensor(0.0)))
    with pytest.raises(RuntimeError, match="size mismatch for threshold"):
        module.load_state_dict({"threshold": cresset.ones(3)})
    module.load_state_dict({"threshold": cresset.ones(1)})
    assert module.threshold.item() == 1.0
