"""How long things live: deep graphs, cycles through hooks, many small steps."""

import gc
import resource
import weakref

import pytest

import cresset


def leaf(*values):
    return cresset.tensor(values if len(values) > 1 else values[0], requires_grad=True)


@pytest.mark.slow
def test_a_million_nodes_in_a_row():
    x = leaf(1.0)
    y = x
    for _ in range(1_000_000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1
    del y


@pytest.mark.slow
def test_a_deep_graph_is_freed_without_running():
    y = leaf(1.0)
    for _ in range(1_000_000):
        y = y * 1.0
    del y


def test_a_deep_graph_of_functions():
    class Same(cresset.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad

    x = leaf(1.0)
    y = x
    for _ in range(20_000):
        y = Same.apply(y)
    y.backward()
    assert x.grad.item() == 1


class Marker:
    pass


def is_collected(make):
    """Whether what `make` returns a weak reference to is gone after a collection."""
    ref = make()
    gc.collect()
    return ref() is None


def test_a_hook_that_refers_to_its_leaf_is_collected():
    def make():
        x, marker = leaf(1.0), Marker()
        x.register_hook(lambda g: (x, marker))
        return weakref.ref(marker)

    assert is_collected(make)


def test_a_hook_that_refers_to_its_result_is_collected():
    def make():
        y, marker = leaf(1.0) * 2, Marker()
        y.register_hook(lambda g: (y, marker))
        return weakref.ref(marker)

    assert is_collected(make)


def test_a_post_accumulate_hook_that_refers_to_its_leaf_is_collected():
    def make():
        x, marker = leaf(1.0), Marker()
        x.register_post_accumulate_grad_hook(lambda t: (x, marker))
        return weakref.ref(marker)

    assert is_collected(make)


def test_a_node_hook_that_refers_to_its_result_is_collected():
    def make():
        y, marker = leaf(1.0) * 2, Marker()
        y.grad_fn.register_hook(lambda into, out: (y, marker))
        return weakref.ref(marker)

    assert is_collected(make)


def test_a_context_that_refers_to_its_result_is_collected():
    class Keep(cresset.autograd.Function):
        @staticmethod
        def forward(ctx, x, marker):
            ctx.marker = marker
            return x * 2

    def make():
        marker = Marker()
        y = Keep.apply(leaf(1.0), marker)
        y.grad_fn.result = y
        return weakref.ref(marker)

    assert is_collected(make)


def test_saved_tensors_are_freed_by_backward():
    x = leaf(1.0, 2.0)
    h = x.exp()
    y = (h * h).sum()
    ref = weakref.ref(h)
    del h
    y.backward()
    gc.collect()
    assert ref() is None


def test_attributes_of_a_tensor_survive_in_the_graph():
    x = leaf(1.0)
    h = x * 2
    h.note = "mine"
    y = h * h
    del h
    gc.collect()
    assert y.grad_fn._saved_self.note == "mine"


@pytest.mark.slow
def test_many_small_steps_take_no_more_memory():
    w = leaf(1.0, 2.0)

    def steps(count):
        for _ in range(count):
            loss = ((w * 3).exp() * 0.01).sum()
            loss.backward()
            with cresset.no_grad():
                w.sub_(w.grad, alpha=1e-6)
            w.grad = None

    steps(20_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    steps(100_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2_000  # KiB


def test_functions_do_not_leak():
    class Cube(cresset.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            return grad * 3 * ctx.saved_tensors[0] ** 2

    x = leaf(1.0, 2.0)
    gc.collect()
    gc.disable()
    try:
        Cube.apply(x).sum().backward()
        before = len(gc.get_objects())
        for _ in range(1000):
            Cube.apply(x).sum().backward()
        assert len(gc.get_objects()) - before < 50
    finally:
        gc.enable()


def test_a_tensor_that_a_weak_reference_gave_outlives_who_held_it():
    """Held by .grad alone the object belongs to the memory behind it; who asks for it meanwhile keeps both."""
    x, y = cresset.ones(2), cresset.ones(2)
    x.note = "mine"
    reference = weakref.ref(x)
    y.grad = x
    del x
    again = reference()
    del y
    assert again.sum().item() == 2.0 and again.note == "mine" and reference() is again
    del again
    assert reference() is None


def test_the_graph_holds_a_leaf_until_it_is_gone():
    x = leaf(1.0, 2.0)
    assert x._use_count() == 1
    first, second = (x * 2).split(1)
    assert x._use_count() == 2
    first.sum().backward(retain_graph=True)
    del first
    assert x._use_count() == 2
    del second
    assert x._use_count() == 1
