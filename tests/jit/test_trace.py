"""torch.jit.trace: programs recorded on example inputs."""

import threading
import warnings

import pytest

import cresset
from cresset import nn
from cresset.jit import TracerWarning, TracingCheckError, trace, trace_module
from cresset.nn import functional as F


def kinds(traced):
    return [node.kind() for node in traced.graph.nodes() if node.kind().startswith("aten::")]


def test_a_traced_module_shares_its_parameters_and_gradients_flow():
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    traced = trace(module, cresset.ones(2, 3))
    assert isinstance(traced, cresset.jit.ScriptModule)
    assert list(traced.state_dict()) == list(module.state_dict())
    x = cresset.randn(5, 3)
    assert cresset.equal(traced(x), module(x))
    traced(x).sum().backward()
    assert module[0].weight.grad is not None
    with cresset.no_grad():
        module[2].bias.fill_(100.0)
    assert cresset.equal(traced(x), module(x))


def test_sizes_are_followed():
    def flat(x):
        y = x.view(x.size(0), -1)
        return (
            y.reshape(x.shape[0] * x.shape[1], x.size(-1)).sum() / x.numel(),
            y * y.shape[1],
            x.new_zeros(x.shape[0] + 1),
        )

    traced = trace(flat, cresset.ones(2, 3, 4))
    for shape in ((2, 3, 4), (5, 1, 2), (1, 7, 3)):
        x = cresset.randn(*shape)
        for got, want in zip(traced(x), flat(x), strict=True):
            assert got.shape == want.shape and cresset.allclose(got, want)


def test_a_frozen_branch_is_told_once_with_its_line():
    def branch(x):
        if x.sum() > 0:
            return x + 1
        return x - 1

    with pytest.warns(TracerWarning, match="Converting a tensor to a Python boolean") as told:
        traced = trace(branch, cresset.ones(2))
    assert len(told) == 1 and told[0].filename == __file__
    assert traced(-cresset.ones(2)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "program, message",
    [
        (lambda x: x * float(x[0]), "a tensor to a Python number"),
        (lambda x: x * x[0].item(), "a tensor to a Python number"),
        (lambda x: x * x.tolist()[0], "a tensor to a Python list"),
        (lambda x: x + 1 if x.size(0) == 2 else x, "a tensor to a Python boolean"),
        (lambda x: x * cresset.tensor([1.0, 2.0]), "torch.tensor results are registered as constants"),
    ],
)
def test_what_becomes_a_constant_is_told(program, message):
    with pytest.warns(TracerWarning, match=message):
        trace(program, cresset.ones(2))


def test_a_program_without_surprises_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace(
            nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 2)).eval(),
            cresset.ones(1, 1, 4, 4),
        )


def test_random_operators_are_told_and_can_be_left_unchecked():
    dropout = nn.Dropout(0.5)
    with pytest.warns(TracerWarning, match="Trace had nondeterministic nodes"):
        traced = trace(dropout, cresset.ones(1000))
    assert 300 < (traced(cresset.ones(1000)) == 0).sum().item() < 700
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace(dropout, cresset.ones(10), check_trace=False)


def test_a_program_that_changes_between_runs_fails_the_check():
    count = [0]

    def odd(x):
        count[0] += 1
        return x + 1 if count[0] % 2 else x * 2

    with pytest.raises(TracingCheckError, match="Graphs differed across invocations"):
        trace(odd, cresset.ones(2))


def test_results_that_differ_on_other_inputs_are_told():
    def clipped(x):
        return x if x.max() > 0 else x * 0

    with pytest.raises(TracingCheckError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trace(clipped, cresset.ones(2), check_inputs=[(-cresset.ones(2),)])


def test_what_a_0d_tensor_holds_is_recorded_where_a_number_is_wanted():
    def program(count, x):
        return cresset.arange(count) * cresset.arange(0, count, 2).sum() + x

    traced = trace(program, (cresset.tensor(3), cresset.ones(1)))
    assert traced(cresset.tensor(4), cresset.ones(1)).tolist() == [1, 3, 5, 7]


def test_nodes_say_whether_they_draw_random_numbers():
    def program(x):
        return F.dropout(cresset.normal(x, 1.0), 0.5, True) + F.dropout(x, 0.5, False)

    graph = trace(program, (cresset.zeros(3),), check_trace=False).graph
    found = [node.isNondeterministic() for node in graph.nodes() if node.kind() in ("aten::normal", "aten::dropout")]
    assert found == [True, True, False]
    assert not any(node.isNondeterministic() for node in graph.findAllNodes("aten::add"))


def test_cholesky_solve_is_recorded():
    traced = trace(lambda b, factor: cresset.cholesky_solve(b, factor), (cresset.ones(1, 1), cresset.ones(1, 1)))
    assert traced(cresset.tensor([[8.0]]), cresset.tensor([[2.0]])).item() == 2


def test_writes_and_views_are_recorded_as_they_are():
    def written(x):
        y = x.clone()
        row = y[1:]
        y[0] = 5
        row.mul_(2)
        y[y > 3] = 0
        return y, row

    traced = trace(written, cresset.ones(3, 2))
    x = cresset.randn(4, 2)
    for got, want in zip(traced(x), written(x), strict=True):
        assert cresset.equal(got, want)
    assert "aten::mul_" in kinds(traced) and "aten::index_put_" in kinds(traced)


def test_the_callers_example_is_not_written_to():
    x = cresset.zeros(2)
    trace(lambda t: t.add_(1), x)
    assert x.tolist() == [0.0, 0.0]


def test_batch_norm_keeps_its_statistics_while_it_is_traced_and_updates_them_afterwards():
    norm = nn.BatchNorm1d(3)
    traced = trace(norm, cresset.randn(4, 3))
    assert norm.num_batches_tracked.item() == 0
    traced(cresset.randn(4, 3))
    assert norm.num_batches_tracked.item() == 1 and norm.running_mean.abs().sum() > 0


def test_tuples_lists_and_dicts_go_in_and_out():
    def swap(pair, table):
        return pair[1] + table["k"], (pair[0], pair[1] * 2)

    traced = trace(swap, ((cresset.ones(2), cresset.zeros(2)), {"k": cresset.full((2,), 3.0)}))
    first, (second, third) = traced((cresset.ones(1), cresset.ones(1)), {"k": cresset.ones(1)})
    assert (first.item(), second.item(), third.item()) == (2.0, 1.0, 2.0)


def test_a_dict_is_a_result_only_without_strict():
    def named(x):
        return {"a": x, "b": x + 1}

    with pytest.raises(RuntimeError, match="Encountering a dict at the output of the tracer"):
        trace(named, cresset.ones(1))
    assert trace(named, cresset.ones(1), strict=False)(cresset.zeros(1))["b"].item() == 1.0
    with pytest.warns(TracerWarning, match="Encountering a list"):
        trace(lambda x: [x, x], cresset.ones(1))


@pytest.mark.parametrize(
    "program, inputs, problem",
    [
        (lambda x: 3, cresset.ones(1), "Only tensors, lists, tuples of tensors"),
        (lambda x: None, cresset.ones(1), "didn't return any values"),
        (lambda x: (x, "a"), cresset.ones(1), "Only tensors, lists, tuples of tensors"),
        (lambda x, n: x, (cresset.ones(1), 3), r"Type 'Tuple\[Tensor, int\]' cannot be traced"),
    ],
)
def test_what_cannot_be_traced_is_named(program, inputs, problem):
    with pytest.raises(RuntimeError, match=problem):
        trace(program, inputs)


def test_a_parameter_that_no_module_holds_is_refused():
    weight = nn.Parameter(cresset.ones(2))
    with pytest.raises(RuntimeError, match="Cannot insert a Tensor that requires grad as a constant"):
        trace(lambda x: x * weight, cresset.ones(2))


def test_inputs_by_name():
    class Affine(nn.Module):
        def forward(self, x, *, scale):
            return x * scale

    traced = trace(Affine(), example_kwarg_inputs={"x": cresset.ones(2), "scale": cresset.ones(2)})
    assert traced(x=cresset.ones(2), scale=cresset.full((2,), 4.0)).tolist() == [4.0, 4.0]
    with pytest.raises(RuntimeError, match="give one of example_inputs and example_kwarg_inputs"):
        trace(Affine())


def test_several_methods_of_a_module():
    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)

        def forward(self, x):
            return self.fc(x)

        def twice(self, x):
            return self.fc(self.fc(x))

    module = Pair()
    traced = trace_module(module, {"forward": cresset.ones(1, 2), "twice": cresset.ones(1, 2)})
    x = cresset.randn(3, 2)
    assert cresset.equal(traced(x), module(x)) and cresset.equal(traced.twice(x), module.twice(x))
    with pytest.raises(AttributeError, match="expected a dictionary"):
        trace_module(module, cresset.ones(2))
    with pytest.raises(AttributeError, match="use trace_module"):
        trace(module.twice, cresset.ones(1, 2))


def test_is_tracing_is_true_inside_of_a_trace_of_this_thread_alone():
    seen = []

    def program(x):
        other = threading.Thread(target=lambda: seen.append((cresset.jit.is_tracing(), type(cresset.ones(2).shape[0]))))
        other.start()
        other.join()
        seen.append(cresset.jit.is_tracing())
        return x * 1

    trace(program, cresset.ones(2), check_trace=False)
    assert seen == [(False, int), True] and not cresset.jit.is_tracing()
    assert type(cresset.ones(2).shape[0]) is int and isinstance(
        cresset.Tensor.__dict__["shape"], type(cresset.Tensor.__dict__["ndim"])
    )


def test_an_error_in_the_program_leaves_nothing_behind():
    with pytest.raises(ZeroDivisionError):
        trace(lambda x: x / (1 // 0), cresset.ones(2))
    assert not cresset.jit.is_tracing() and type(cresset.ones(2).shape[0]) is int


def test_a_traced_or_scripted_program_is_given_back():
    traced = trace(lambda x: x + 1, cresset.ones(1))
    with pytest.warns(UserWarning, match="tracing it is a no-op"):
        assert trace(traced, cresset.ones(1)) is traced


MODELS = {
    "encoder": lambda: (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (cresset.randn(2, 5, 8),),
        (cresset.randn(3, 7, 8),)),
    "lstm": lambda: (nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True), (cresset.randn(2, 5, 3),),
        (cresset.randn(4, 3, 3),)),
    "attention": lambda: (nn.MultiheadAttention(8, 2), (cresset.randn(5, 2, 8),) * 3, (cresset.randn(4, 3, 8),) * 3),
    "embedding": lambda: (nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 2)), (cresset.tensor([[1, 2]]),),
        (cresset.tensor([[3], [4]]),)),
    "cnn": lambda: (nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        (cresset.randn(1, 1, 6, 6),), (cresset.randn(3, 1, 8, 9),)),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_traced_models_give_eagers_numbers_for_other_sizes(name):
    cresset.manual_seed(0)
    module, example, other = MODELS[name]()
    module.eval()
    traced = trace(module, example)
    for inputs in (example, other):
        got, want = cresset.pytree.tree_leaves(traced(*inputs)), cresset.pytree.tree_leaves(module(*inputs))
        assert all(cresset.allclose(a, b, atol=1e-6) for a, b in zip(got, want, strict=True))


def test_losses_are_traced_as_one_operator():
    traced = trace(lambda x, y: F.cross_entropy(x, y), (cresset.randn(3, 4), cresset.tensor([0, 1, 2])))
    assert kinds(traced) == ["aten::cross_entropy_loss"]


def test_a_size_that_is_given_back_is_a_tensor():
    """In a list, too: it follows the size of a later input."""

    def sizes(x):
        return x * 2, [x.size(0), x.size(0) * x.size(1)]

    with pytest.warns(cresset.jit.TracerWarning, match="list"):
        traced = cresset.jit.trace(sizes, (cresset.ones(2, 3),))
    assert [size.tolist() for size in traced(cresset.ones(4, 5))[1]] == [4, 20]
