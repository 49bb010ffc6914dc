"""functional_call: a module with other tensors than its own, under the names it has, and some that it has not."""

import pytest

import cresset
from cresset import nn
from cresset.func import functional_call


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)
        self.shift = nn.Buffer(cresset.ones(1))
        self.note = 0.0

    def forward(self, x, *, times=1):
        return self.layer(x) * times + self.shift


class Tied(Small):
    def __init__(self):
        super().__init__()
        self.again, self.shift_again = self.layer.bias, self.shift

    def forward(self, x):
        return super().forward(x) + self.again + self.shift_again


X = cresset.tensor([[2.0]])


def new(**more):
    given = {"layer.weight": cresset.tensor([[3.0]]), "layer.bias": cresset.tensor([5.0]), "shift": cresset.zeros(1)}
    return given | {name.replace("__", "."): value for name, value in more.items()}


def test_keyword_arguments_go_along():
    assert functional_call(Small(), new(), X, {"times": 2}).item() == 22.0
    assert functional_call(Small(), new(), kwargs={"x": X}).item() == 11.0


def test_an_attribute_that_is_no_parameter_is_replaced_too():
    module = Small()
    module.plain = cresset.zeros(1)
    module.forward = lambda x: x + module.plain
    assert functional_call(module, {"plain": cresset.ones(1)}, X).item() == 3.0
    assert module.plain.item() == 0.0


def test_a_name_that_the_module_lacks_is_there_for_the_call():
    class Wants(nn.Module):
        def forward(self, x):
            return x + self.extra, list(self.parameters())

    module = Wants()
    for extra, parameters in ((cresset.ones(1), 0), (nn.Parameter(cresset.ones(1)), 1)):
        result, seen = functional_call(module, {"extra": extra}, X)
        assert result.item() == 3.0 and len(seen) == parameters
        assert not hasattr(module, "extra") and not list(module.parameters())


def test_what_forward_puts_in_a_tensors_place_is_in_the_dictionary():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.count = nn.Buffer(cresset.zeros(1))

        def forward(self, x):
            self.count = self.count + 1
            return x

    module, start = Counts(), cresset.tensor([2.0])
    given = {"count": start}
    functional_call(module, given, X)
    assert module.count.item() == 0.0 and start.item() == 2.0 and given["count"].item() == 3.0


def test_tied_tensors_are_replaced_together_before_names_are_compared():
    assert functional_call(Tied(), new(), X, strict=True).item() == 16.0
    with pytest.raises(RuntimeError, match=r"Missing key\(s\): 'again', 'shift_again'\."):
        functional_call(Tied(), new(), X, strict=True, tie_weights=False)
    with pytest.raises(ValueError, match=r"multiple values for keys \['again', 'layer.bias'\], which are tied"):
        functional_call(Tied(), new(again=cresset.zeros(1)), X)


def test_a_module_that_holds_itself_is_walked_by_its_names():
    module = Small()
    module.layer.parent = module
    given = {"layer.parent.layer.weight": cresset.tensor([[3.0]]), "layer.bias": cresset.zeros(1)}
    assert functional_call(module, given, X, tie_weights=False).item() == 7.0


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        (new(extra=cresset.ones(1)), RuntimeError, r"Unexpected key\(s\): 'extra'\."),
        ({"shift": cresset.ones(1)}, RuntimeError, r"Missing key\(s\): 'layer.bias', 'layer.weight'\."),
    ],
)
def test_names_are_compared_where_asked_for(given, kind, words):
    with pytest.raises(kind, match=words):
        functional_call(Small(), given, X, strict=True)


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        (new(layer__weight=7), TypeError, "7 is not an instance of torch.Tensor"),
        (new(note=cresset.ones(1)), TypeError, "attribute `note`: 0.0 is not an instance of torch.Tensor"),
        (new(other__bias=cresset.ones(1)), AttributeError, "Small has no attribute `other`"),
        (new(note__bias=cresset.ones(1)), TypeError, "submodule `note`: 0.0 is not an instance of torch.nn.Module"),
        ((new(), {"shift": X}), ValueError, r"\['shift'\] appeared in multiple dictionaries"),
        ([1], ValueError, "to be dictionaries"),
    ],
    ids=str,
)
def test_what_cannot_be_replaced_is_named_and_the_module_stays_as_it_was(given, kind, words):
    module = Small()
    before = [(name, tensor) for name, tensor in module.state_dict(keep_vars=True).items()]
    with pytest.raises(kind, match=words):
        functional_call(module, given, X)
    after = list(module.state_dict(keep_vars=True).items())
    assert [name for name, _ in before] == [name for name, _ in after]
    assert all(a is b for (_, a), (_, b) in zip(before, after, strict=True))


def test_scripted_modules_are_refused_and_the_older_name_warns():
    with pytest.raises(RuntimeError, match="can't be used with Jitted modules"):
        functional_call(cresset.jit.script(nn.Linear(1, 1)), {}, X)
    with pytest.warns(FutureWarning, match="Please use `torch.func.functional_call`"):
        nn.utils.stateless.functional_call(Small(), new(), X)
