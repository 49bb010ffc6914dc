"""torch.compile: PyTorch's shape of results, names and errors."""

import sys

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


def test_answers_about_compilation():
    assert not cresset.compiler.is_compiling() and not cresset._dynamo.is_compiling()
    assert cresset.compile(lambda: cresset.compiler.is_compiling())()
    assert not cresset.compile(cresset.compiler.disable(lambda: cresset.compiler.is_compiling()))()
    assert cresset.compiler.disable(reason="slow")(len)([1]) == 1 and cresset.compiler.disable(len, False) is len
    with cresset._dynamo.config.patch(verbose=True):
        assert cresset._dynamo.config.verbose
    assert not cresset._dynamo.config.verbose
    with cresset.compiler.set_stance("force_eager"):
        cresset.compiler.reset()


def test_a_stance_is_asked_for_at_every_call():
    late = cresset.compile(lambda: cresset.compiler.is_compiling())
    graphs = cresset.compile(lambda: cresset.compiler.is_compiling(), mode="reduce-overhead")
    with cresset.compiler.set_stance("force_eager"):
        assert not late() and not graphs()
    with cresset.compiler.set_stance("eager_on_recompile"):
        assert late() and graphs()
    with cresset.compiler.set_stance("default", force_backend="eager"):
        assert not late() and not graphs()
    with cresset.compiler.set_stance("default", force_backend="inductor"):
        assert late() and graphs()
    assert late() and graphs() and not cresset.compiler.is_compiling()


def test_a_region_is_one_frame():
    """What a region costs is time of small models: there is one Python function between the caller and the program."""

    def depth():
        frame, frames = sys._getframe(), 0
        while frame := frame.f_back:
            frames += 1
        return frames

    class Model(cresset.nn.Module):
        def forward(self):
            return depth()

    assert cresset.compile(depth)() == depth() + 1
    assert cresset.compile(Model())() == Model()() + 1


def test_a_backend_is_forced_in_the_default_stance_only():
    with cresset.compiler.set_stance("default", force_backend="eager"):
        assert not cresset.compile(lambda: cresset.compiler.is_compiling())()
    assert cresset.compile(lambda: cresset.compiler.is_compiling())()
    with pytest.raises(RuntimeError, match="force_backend"):
        cresset.compiler.set_stance("force_eager", force_backend="eager")


def test_explain_counts_graphs_breaks_and_calls():
    def broken(x):
        y = x.sin()
        return y * 2 if y.sum().item() > 0 else y * 3

    found = cresset._dynamo.explain(lambda x: x.sin() + x.cos())(cresset.ones(3))
    assert (found.graph_count, found.graph_break_count, found.op_count) == (1, 0, 3)
    found = cresset._dynamo.explain(broken)(cresset.ones(3))
    assert (found.graph_count, found.graph_break_count) == (2, 1) and "in broken" in found.break_reasons[0]
    assert "Graph Break Count: 1" in str(found)


def test_there_are_no_artifacts_to_keep():
    assert cresset.compiler.save_cache_artifacts() is None and cresset.compiler.load_cache_artifacts(b"") is None
    with pytest.raises(TypeError, match="expected bytes, got str"):
        cresset.compiler.load_cache_artifacts("")


def test_a_compiled_module_can_be_copied_and_saved(tmp_path):
    import copy

    model = cresset.compile(nn.Linear(2, 1))
    again = copy.deepcopy(model)
    x = cresset.ones(1, 2)
    assert cresset.equal(again(x), model(x)) and again._orig_mod is not model._orig_mod


def test_only_max_autotune_lets_products_change_their_bits():
    """Plans of products on a CUDA device: 1 says that bits stay as they are, 2 that they need not."""
    native, levels = cresset._native.cuda, []

    def look(x):
        levels.append(native.measure_products(0))
        native.measure_products(levels[-1])
        return x

    x = cresset.ones(2)
    cresset.compile(look)(x)
    cresset.compile(look, mode="max-autotune")(x)
    cresset.compile(cresset.compile(look), mode="max-autotune-no-cudagraphs")(x)
    look(x)
    assert levels == [1, 2, 2, 1]


def test_what_cannot_be_called_is_refused():
    with pytest.raises(AssertionError, match="A callable function is expected, but <class 'int'> is provided"):
        cresset.compile(5)


def test_a_function_of_arrays_becomes_one_of_tensors():
    numpy = pytest.importorskip("numpy")

    @cresset.compiler.wrap_numpy
    def function(a, b=1):
        a += 1
        return numpy.cumsum(a), {"twice": [a * 2]}, b

    x = cresset.zeros(2)
    sums, parts, number = function(x, b=3)
    assert x.tolist() == [1.0, 1.0]  # the array lies in the tensor's memory
    assert sums.tolist() == [1.0, 2.0] and parts["twice"][0].tolist() == [2.0, 2.0] and number == 3
    with pytest.raises(RuntimeError, match="requires grad"):
        function(cresset.zeros(2, requires_grad=True))
