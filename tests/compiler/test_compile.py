"""torch.compile as it is today: eager, with PyTorch's shape of results, names and errors."""

import pytest

import cresset
from cresset import nn


def test_a_module_keeps_its_results_and_gets_the_prefix():
    model = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5))
    compiled = cresset.compile(model, mode="max-autotune", dynamic=True)
    x = cresset.ones(1, 2)
    compiled.eval()
    assert not model.training and cresset.equal(compiled(x), model(x))
    assert list(compiled.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    assert isinstance(compiled, cresset._dynamo.eval_frame.OptimizedModule) and compiled._orig_mod is model
    compiled.note = 3
    assert model.note == 3 and compiled[0] is model[0] and cresset.compile(compiled) is compiled
    compiled.load_state_dict(compiled.state_dict())


def test_functions_and_decorators():
    @cresset.compile
    def twice(x):
        """Two times x."""
        return 2 * x

    @cresset.compile(fullgraph=True, backend="eager")
    def thrice(x):
        return 3 * x

    assert (
        twice(2) == 4
        and thrice(2) == 6
        and twice.__doc__ == "Two times x."
        and cresset.compile(len, disable=True) is len
    )


def test_a_module_compiles_itself():
    model = nn.Linear(2, 1)
    before = model(cresset.ones(2))
    model.compile()
    assert cresset.equal(model(cresset.ones(2)), before)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"mode": "default", "options": {}}, "both can't be specified"),
        ({"mode": "fastest"}, "Unrecognized mode=fastest"),
        ({"backend": "mine"}, "Invalid backend: 'mine'"),
    ],
)
def test_errors(options, message):
    with pytest.raises(RuntimeError, match=message):
        cresset.compile(len, **options)


def test_a_backend_of_ones_own_is_not_called_and_a_warning_says_so():
    with pytest.warns(UserWarning, match="'mine' is not called"):

        def mine(graph, inputs):
            raise AssertionError

        assert cresset.compile(len, backend=mine)([1]) == 1


def test_answers_about_compilation():
    assert not cresset.compiler.is_compiling() and not cresset._dynamo.is_compiling()
    assert cresset.compiler.disable(len) is len and cresset.compiler.disable(recursive=False)(len) is len
    with cresset._dynamo.config.patch(verbose=True):
        assert cresset._dynamo.config.verbose
    assert not cresset._dynamo.config.verbose
    with cresset.compiler.set_stance("force_eager"):
        cresset.compiler.reset()


def test_a_backend_is_forced_in_the_default_stance_only():
    cresset.compiler.set_stance("default", force_backend="eager")
    with pytest.raises(RuntimeError, match="force_backend"):
        cresset.compiler.set_stance("force_eager", force_backend="eager")
