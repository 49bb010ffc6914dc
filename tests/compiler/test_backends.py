"""Backends of one's own: they get graphs, their results are used, and Python's state is never stale."""

import unittest

import pytest

import cresset
from cresset._dynamo.testing import (
    AotEagerAndRecordGraphs,
    CompileCounter,
    CompileCounterWithBackend,
    EagerAndRecordGraphs,
    make_test_cls_with_patches,
    normalize_gm,
)


@pytest.fixture(autouse=True)
def forgotten():
    cresset._dynamo.reset()


def test_the_graph_and_example_inputs_are_given_and_the_result_is_used():
    seen = []

    def doubled(graph, inputs):
        seen.append(([node.op for node in graph.graph.nodes], [tuple(t.shape) for t in inputs]))
        return lambda *args: tuple(2 * result for result in graph.forward(*args))

    f = cresset.compile(lambda x: (x + 1).relu() * 3, backend=doubled)
    assert f(cresset.tensor([-2.0, 1.0])).tolist() == [0.0, 12.0]
    assert f(cresset.tensor([0.0, 2.0])).tolist() == [6.0, 18.0]
    assert seen == [(["placeholder", "call_method", "call_method", "call_method", "output"], [(2,)])]


def test_inputs_come_first_also_where_a_tensor_is_made_before_they_are_used():
    seen = []

    def backend(graph, inputs):
        seen.extend(node.name if node.op == "placeholder" else node.op for node in graph.graph.nodes)
        return graph.forward

    f = cresset.compile(lambda x, y: cresset.ones(2) + x * y, backend=backend)
    assert f(cresset.tensor([2.0, 3.0]), cresset.tensor([4.0, 5.0])).tolist() == [9.0, 16.0]
    assert seen == ["arg0_1", "arg1_1", "call_function", "call_method", "call_method", "output"]


def test_a_value_from_outside_that_changes_is_noticed():
    box, counter = {"k": 2.0}, CompileCounter()
    f = cresset.compile(lambda x: x * box["k"], backend=counter)
    assert f(cresset.ones(1)).item() == 2
    box["k"] = 5.0
    assert f(cresset.ones(1)).item() == 5 and counter.frame_count == 2


def test_side_effects_happen_once_a_call():
    seen = []

    def f(x):
        seen.append(tuple(x.shape))
        return x + len(seen)

    compiled = cresset.compile(f, backend=CompileCounter())
    assert compiled(cresset.zeros(1)).item() == 1 and compiled(cresset.zeros(1)).item() == 2
    assert seen == [(1,), (1,)]


def test_an_argument_is_written_to_once():
    x = cresset.zeros(3)
    assert cresset.compile(lambda x: x.add_(1) * 2, backend=CompileCounter())(x).tolist() == [2.0, 2.0, 2.0]
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_random_numbers_are_those_of_eager():
    def f(x):
        return x + cresset.rand(3) + cresset.nn.functional.dropout(x, 0.5)

    cresset.manual_seed(3)
    expected, after = f(cresset.ones(3)), cresset.rand(1)
    cresset.manual_seed(3)
    assert cresset.equal(cresset.compile(f, backend=CompileCounter())(cresset.ones(3)), expected)
    assert cresset.equal(cresset.rand(1), after)


def test_where_the_program_looks_at_elements_a_new_graph_begins():
    def f(x):
        y = x * 2
        return y.sin() + 1 if y.sum().item() > 0 else y.cos() - 1

    recorded = EagerAndRecordGraphs()
    compiled = cresset.compile(f, backend=recorded)
    for x in (cresset.ones(2), -cresset.ones(2)):
        assert cresset.equal(compiled(x), f(x))
    assert len(recorded.graphs) == 3  # the first half is the same in both calls
    assert sum(cresset._dynamo.utils.counters["graph_break"].values()) == 2
    (reason, *_) = cresset._dynamo.utils.counters["graph_break"]
    assert "the number in a tensor" in reason and "test_backends.py" in reason


def test_gradients_flow_through_what_the_backend_made():
    model = cresset.nn.Sequential(cresset.nn.Linear(2, 3), cresset.nn.Tanh())
    compiled, x = cresset.compile(model, backend=CompileCounter()), cresset.ones(1, 2)
    model(x).sum().backward()
    expected = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    compiled(x).sum().backward()
    assert all(cresset.equal(p.grad, e) for p, e in zip(model.parameters(), expected, strict=True))


def test_what_no_graph_can_hold_runs_eagerly_and_a_warning_says_so():
    w = cresset.ones(2, requires_grad=True)

    def step(x):
        (w * x).sum().backward()
        return w.grad.clone()

    with pytest.warns(UserWarning, match=r"step runs without its backend: backward\(\) is no part of a graph"):
        assert cresset.compile(step, backend=CompileCounter())(cresset.ones(2)).tolist() == [1.0, 1.0]
    assert w.grad.tolist() == [1.0, 1.0]


def test_a_backend_that_fails_costs_a_warning():
    def fails(graph, inputs):
        raise ZeroDivisionError("no code today")

    compiled = cresset.compile(lambda x: x + 1, backend=fails)
    with pytest.warns(UserWarning, match="the backend failed: ZeroDivisionError: no code today") as heard:
        assert compiled(cresset.ones(1)).item() == 2
        assert compiled(cresset.ones(1)).item() == 2
    assert len(heard) == 1


def test_a_new_size_is_a_new_graph_unless_sizes_are_dynamic():
    counter = CompileCounter()
    f = cresset.compile(lambda x: x.sin(), backend=counter)
    for n in (1, 2, 3, 2):
        f(cresset.ones(n))
    assert counter.frame_count == 3
    counter.clear()
    f = cresset.compile(lambda x: x.sin(), backend=counter, dynamic=True)
    for n in (1, 2, 3, 2):
        f(cresset.ones(n))
    assert counter.frame_count == 1


def test_after_the_limit_graphs_run_as_they_are():
    counter = CompileCounter()
    f = cresset.compile(lambda x: x.sin(), backend=counter, recompile_limit=2)
    with pytest.warns(UserWarning, match="has made 2 graphs of it, the limit"):
        for n in (1, 2, 3):
            assert f(cresset.zeros(n)).tolist() == [0.0] * n
    assert counter.frame_count == 2


def test_fullgraph_refuses_a_second_graph():
    def f(x):
        return x + 1 if x.sum() > 0 else x - 1

    with pytest.raises(cresset._dynamo.exc.Unsupported, match="in f"):
        cresset.compile(f, backend=CompileCounter(), fullgraph=True)(cresset.ones(2))


def test_a_registered_backend_is_found_by_its_name():
    counter = CompileCounterWithBackend("eager")
    cresset._dynamo.register_backend(counter, name="counting_backend")
    assert "counting_backend" in cresset.compiler.list_backends()
    assert cresset.compile(lambda x: x + 1, backend="counting_backend")(cresset.zeros(1)).item() == 1
    assert counter.frame_count == 1 and len(counter.graphs) == 1
    with pytest.raises(AssertionError, match="there is a backend 'counting_backend' already"):
        cresset._dynamo.register_backend(counter, name="counting_backend")


def test_a_stance_decides_what_a_new_graph_is():
    counter = CompileCounter()
    f = cresset.compile(lambda x: x + 1, backend=counter)
    f(cresset.zeros(1))
    with cresset.compiler.set_stance("fail_on_recompile"):
        assert f(cresset.zeros(1)).item() == 1
        with pytest.raises(RuntimeError, match="fail_on_recompile"):
            f(cresset.zeros(2))
    with cresset.compiler.set_stance("eager_on_recompile"):
        assert f(cresset.zeros(2)).tolist() == [1, 1] and counter.frame_count == 1
    with cresset.compiler.set_stance("force_eager"):
        assert f(cresset.zeros(3)).tolist() == [1, 1, 1] and counter.frame_count == 1
    other = CompileCounter()
    with cresset.compiler.set_stance("default", force_backend=other):
        f(cresset.zeros(1))
    assert other.frame_count == 1 and f(cresset.zeros(1)).item() == 1 and counter.frame_count == 1


def test_older_names():
    counter = CompileCounter()
    assert cresset._dynamo.optimize(counter)(lambda x: x * 2)(cresset.ones(1)).item() == 2 and counter.frame_count == 1
    with pytest.raises(AssertionError, match="the tensor has 1 dimensions, there is none 3"):
        cresset._dynamo.mark_dynamic(cresset.ones(2), 3)


def test_a_name_that_no_backend_has():
    with pytest.raises(cresset._dynamo.exc.InvalidBackend, match="Invalid backend: 'none_such'"):
        cresset.compile(lambda x: x, backend="none_such")


def test_one_graph_serves_for_nested_tensors_of_any_lengths():
    seen = []

    def backend(module, inputs):
        seen.append(module)
        return module.forward

    doubled = cresset.compile(lambda x: x * 2, backend=backend)
    for lengths in ((2, 3), (4, 1), (7, 7)):
        x = cresset.nested.nested_tensor([cresset.ones(n, 5) for n in lengths], layout=cresset.jagged)
        assert doubled(x).values().equal(cresset.full((sum(lengths), 5), 2.0))
    assert len(seen) == 1
    assert doubled(cresset.eye(2).to_sparse()).to_dense().tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert len(seen) == 2


def test_the_backend_where_none_is_named_can_be_another():
    counter = CompileCounter()
    try:
        cresset.compiler.set_default_backend(counter)
        assert cresset.compiler.get_default_backend() is counter
        assert cresset.compile(lambda x: x + 1)(cresset.ones(1)).tolist() == [2.0]
        assert cresset.compile(lambda x: x + 1, backend="eager")(cresset.ones(1)).tolist() == [2.0]
        assert counter.frame_count == 1
        cresset.compiler.set_default_backend("nobody")
        with pytest.raises(RuntimeError, match="Invalid backend: 'nobody'"):
            cresset.compile(lambda x: x + 1)
        with pytest.raises(TypeError, match="backend must be a string or callable"):
            cresset.compiler.set_default_backend(3)
    finally:
        cresset.compiler.set_default_backend(None)
    assert cresset.compiler.get_default_backend() == "inductor"


def test_graphs_of_functions_and_of_their_derivatives_are_kept():
    backend, x = AotEagerAndRecordGraphs(), cresset.tensor([2.0], requires_grad=True)
    cresset.compile(lambda x: (x * x).sum(), backend=backend)(x).backward()
    assert x.grad.tolist() == [4.0]
    assert (len(backend.graphs), len(backend.fw_graphs), len(backend.bw_graphs)) == (1, 1, 1)


def test_code_without_comments_and_spaces():
    assert normalize_gm("a = 1  \n  # said\n\n\n\nb = 2\n") == "a = 1\n\nb = 2\n"


def test_a_class_of_tests_is_varied_by_patches():
    class Settings:
        fast = False

    class TestSetting(unittest.TestCase):
        def setUp(self):
            self.before = Settings.fast

        def test_fast(self):
            assert Settings.fast and not self.before

        def test_slow(self):
            assert not Settings.fast

        test_slow.fails_fast = True

    Fast = make_test_cls_with_patches(TestSetting, "Fast", "_fast", (Settings, "fast", True), xfail_prop="fails_fast")
    assert Fast.__name__ == "FastTestSetting" and not hasattr(Fast, "test_slow")
    result = unittest.defaultTestLoader.loadTestsFromTestCase(Fast).run(unittest.TestResult())
    assert result.testsRun == 2 and not result.failures and len(result.expectedFailures) == 1 and not Settings.fast


@pytest.mark.parametrize("context", [cresset.no_grad, cresset.inference_mode, cresset.enable_grad])
def test_what_was_read_before_it_is_written_is_written_once(context):
    def by_index(a):
        a[0] *= 2.0
        return a * 2

    def after_reading(a):
        b = a + 1
        a.mul_(2)
        return a + b

    for function, written in ((by_index, [2.0, 1.0]), (after_reading, [2.0, 2.0])):
        x = cresset.ones(2)
        with context():
            result = cresset.compile(function, backend=lambda graph, inputs: graph)(x)
            assert x.tolist() == written and result.equal(function(cresset.ones(2)))
