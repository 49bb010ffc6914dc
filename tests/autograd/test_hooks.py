"""Hooks on tensors, on nodes, on several gradients, and their handles."""

import pickle
import threading
from collections import OrderedDict

import pytest

import cresset
from cresset.autograd.graph import register_multi_grad_hook
from cresset.utils.hooks import RemovableHandle, unserializable_hook, warn_if_has_hooks


def leaf(*values):
    return cresset.tensor(values if len(values) > 1 else values[0], requires_grad=True)


def test_a_hook_replaces_the_gradient_for_those_after_it():
    x, seen = leaf(1.0), []
    x.register_hook(lambda g: g * 2)
    x.register_hook(lambda g: seen.append(g.item()))
    (3 * x).backward()
    assert seen == [6] and x.grad.item() == 6


def test_a_handle_removes_its_hook():
    x = leaf(1.0)
    with x.register_hook(lambda g: g * 10):
        (x * 1).backward()
    (x * 1).backward()
    assert x.grad.item() == 11


def test_a_hook_sees_the_sum_of_all_paths():
    x, seen = leaf(1.0), []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.item()))
    (3 * y + 4 * y).backward()
    assert seen == [7]


def test_a_hook_belongs_to_the_value_it_was_put_on():
    x, seen = leaf(1.0), {}
    y = x * 1
    y.register_hook(lambda g: seen.update(before=g.item()))
    y.mul_(3)
    y.register_hook(lambda g: seen.update(after=g.item()))
    y.backward()
    assert seen == {"before": 3, "after": 1}


def test_retained_gradients_are_those_after_the_hooks():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    (y * 3).backward()
    assert y.grad.item() == 30 and x.grad.item() == 60


def test_a_retained_gradient_is_a_contiguous_copy():
    x = cresset.ones(2, 3, requires_grad=True)
    y = x.t()
    y.retain_grad()
    y.exp().sum().backward()
    assert y.grad.is_contiguous() and y.grad.shape == (3, 2)


def test_after_accumulation_the_optimizer_may_step():
    x = leaf(1.0)

    def step(t):
        with cresset.no_grad():
            t -= 0.5 * t.grad
        t.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 1).backward()
    (x * 1).backward()
    assert x.item() == 0 and x.grad is None


def test_after_accumulation_a_hook_may_give_the_leaf_and_nothing_else():
    x, y = leaf(1.0), leaf(1.0)
    x.register_post_accumulate_grad_hook(lambda t: t.sub_(t.grad, alpha=0.5))
    (x * 1).backward()
    assert x.item() == 0.5
    y.register_post_accumulate_grad_hook(lambda t: t + 1)
    with pytest.raises(RuntimeError, match="should return None"):
        (y * 1).backward()
    z = leaf(1.0)
    z.register_post_accumulate_grad_hook(lambda t: 5)
    with pytest.raises(TypeError, match="hook returned 'int'"):
        (z * 1).backward()


def test_hooks_of_a_node():
    x, seen = leaf(1.0), []
    y = x * 3
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
    handle = y.grad_fn.register_hook(lambda into, out: seen.append((into[0].item(), out[0].item())))
    y.backward(retain_graph=True)
    handle.remove()
    y.backward()
    assert seen == [(30, 10)] and x.grad.item() == 60


def test_several_gradients_at_once():
    a, b, seen = leaf(1.0), leaf(2.0), []
    handle = register_multi_grad_hook([a, b], lambda grads: seen.append([g if g is None else g.item() for g in grads]))
    (2 * a + 3 * b).backward()
    (5 * a).backward()
    cresset.autograd.grad(7 * a + 8 * b, b)
    handle.remove()
    (a + b).backward()
    assert seen == [[2, 3], [5, None], [None, 8]]


def test_several_gradients_with_that_of_the_root_are_told_of_once():
    a, seen = leaf(2.0), []
    b = a * 3
    register_multi_grad_hook([a, b], lambda grads: seen.append([g.item() for g in grads]))
    b.backward()
    assert seen == [[3, 1]]


def test_any_of_several_gradients():
    a, b, seen = leaf(1.0), leaf(2.0), []
    register_multi_grad_hook([a, b], lambda grad: seen.append(grad.item()), mode="any")
    (2 * a + 2 * b).backward()
    assert seen == [2]
    with pytest.raises(ValueError, match="'all', 'any'"):
        register_multi_grad_hook([a], print, mode="some")


def test_the_node_of_a_leaf_has_hooks():
    x, seen = leaf(1.0), []
    node = x.expand_as(x).grad_fn.next_functions[0][0]
    node.register_prehook(lambda grads: seen.append(("before", grads[0].item(), x.grad)))
    node.register_hook(lambda into, out: seen.append(("after", out[0].item(), x.grad.item())))
    (x * 3).backward()
    assert seen == [("before", 3, None), ("after", 3, 3)]


def test_a_step_at_the_end_of_backward():
    x, seen = leaf(1.0), []
    x.register_hook(
        lambda g: cresset.autograd.Variable._execution_engine.queue_callback(lambda: seen.append(x.grad.item()))
    )
    (x * 3).backward()
    assert seen == [3]
    with pytest.raises(RuntimeError, match="only be installed during backward"):
        cresset.autograd.Variable._execution_engine.queue_callback(print)


def test_threads_have_their_own_backward():
    x = cresset.ones(1000, requires_grad=True)

    def run(results):
        for k in range(50):
            y = x * k
            seen = []
            y.register_hook(lambda g: seen.append(cresset._native.current_backward()))  # noqa: B023
            (g,) = cresset.autograd.grad(y.sum(), x)
            results.append((g[0].item() == k, seen[0] >= 0))

    results = []
    threads = [threading.Thread(target=run, args=(results,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [(True, True)] * 200 and cresset._native.current_backward() == -1


@pytest.mark.parametrize(
    "run, phrase",
    [
        (lambda x: cresset.ones(1).register_hook(print), "doesn't require gradient"),
        (lambda x: cresset.ones(1).register_post_accumulate_grad_hook(print), "doesn't require gradient"),
        (lambda x: (x * 2).register_post_accumulate_grad_hook(print), "non-leaf"),
        (lambda x: cresset.ones(1).retain_grad(), "can't retain_grad"),
        (lambda x: (x.register_hook(lambda g: g.sum()), x.sum().backward()), "changed the size"),
    ],
)
def test_what_is_refused(run, phrase):
    with pytest.raises(RuntimeError, match=phrase):
        run(leaf(1.0, 2.0))


def test_a_handle_knows_further_dictionaries():
    hooks, marks = OrderedDict(), OrderedDict()
    handle = RemovableHandle(hooks, extra_dict=marks)
    hooks[handle.id], marks[handle.id] = print, True
    handle.remove()
    handle.remove()
    assert not hooks and not marks


def test_a_handle_and_its_dictionary_travel_together():
    hooks = OrderedDict()
    handle = RemovableHandle(hooks)
    hooks[handle.id] = print
    hooks, handle = pickle.loads(pickle.dumps((hooks, handle)))
    assert len(hooks) == 1
    handle.remove()
    assert not hooks


def test_hooks_that_saving_would_lose_are_told():
    x = leaf(1.0)
    x.register_hook(unserializable_hook(lambda g: g))
    warn_if_has_hooks(x)
    x.register_hook(lambda g: g)
    with pytest.warns(UserWarning, match="will not be serialized"):
        warn_if_has_hooks(x)


class TestSavedTensorHooksThatFail:
    def saved_after(self):
        """The gradient of a product that is made outside of any block."""
        x = cresset.ones(2, requires_grad=True)
        (x * x).sum().backward()
        return x.grad.tolist()

    def test_hooks_that_cannot_be_called_are_refused_at_once(self):
        for hooks in ((1, 2), (lambda t: t, None), (None, lambda t: t)):
            with pytest.raises(TypeError, match="must be callable"):
                cresset.autograd.graph.saved_tensors_hooks(*hooks).__enter__()
        assert self.saved_after() == [2, 2]

    def test_an_exception_in_a_hook_leaves_no_hook_behind(self):
        seen = []

        def pack(tensor):
            seen.append(tensor)
            raise KeyError("no room")

        x = cresset.ones(2, requires_grad=True)
        with pytest.raises(KeyError), cresset.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            x * x
        assert self.saved_after() == [2, 2] and len(seen) == 1

    def test_hooks_cannot_be_forbidden_where_they_are_in_use(self):
        graph = cresset.autograd.graph
        in_use, refused = (
            graph.saved_tensors_hooks(lambda t: t, lambda t: t),
            pytest.raises(RuntimeError, match="not here"),
        )
        with in_use, refused, graph.disable_saved_tensors_hooks("not here"):
            pass
        with pytest.raises(TypeError, match="must be a str"), cresset.autograd.graph.disable_saved_tensors_hooks(5):
            pass


def test_hooks_of_a_leaf_run_before_those_of_its_node():
    x, order = cresset.ones(1, requires_grad=True), []
    node = x.view_as(x).grad_fn.next_functions[0][0]
    node.register_prehook(lambda grads: order.append("node") or (grads[0] * 10,))
    x.register_hook(lambda grad: order.append("leaf") or grad + 1)
    x.sum().backward()
    assert order == ["leaf", "node"] and x.grad.tolist() == [20.0]
    (grad,) = cresset.autograd.grad(x.sum(), x)  # the node does not run then, the leaf's hooks do
    assert order == ["leaf", "node", "leaf"] and grad.tolist() == [2.0]


def test_a_batch_of_gradients_is_not_retained():
    x = cresset.ones(2, requires_grad=True)
    y = x * 3
    y.retain_grad()
    (batch,) = cresset.autograd.grad(y * y, y, cresset.eye(2), is_grads_batched=True, retain_graph=True)
    assert batch.tolist() == [[6.0, 0.0], [0.0, 6.0]] and y.grad is None
    (y * y).sum().backward()
    assert y.grad.tolist() == [6.0, 6.0]


def test_a_retained_gradient_is_a_copy_of_what_the_caller_gets():
    x = cresset.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    for create_graph in (False, True):
        y.grad = None
        (gradient,) = cresset.autograd.grad((y * y).sum(), y, retain_graph=True, create_graph=create_graph)
        with cresset.no_grad():
            gradient.mul_(10)
        assert y.grad.tolist() == [4.0, 4.0]


def test_a_gradient_that_does_not_come_is_none_to_the_hooks():
    class Nothing(cresset.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return None

    seen = []
    x = leaf(1.0, 2.0)
    y = x * 2
    x.register_hook(lambda grad: seen.append(("leaf", grad)))
    y.register_hook(lambda grad: seen.append(("result", grad)))
    Nothing.apply(y).sum().backward()
    assert seen == [("result", None), ("leaf", None)] and x.grad is None


def test_a_hook_that_is_removed_by_an_earlier_one_still_runs_this_time():
    count = []
    y = leaf(1.0) * 2
    y.grad_fn.register_prehook(lambda grads: handle.remove())
    handle = y.grad_fn.register_prehook(lambda grads: count.append(1))
    y.backward(retain_graph=True)
    y.backward()
    assert count == [1]


def test_hooks_of_a_node_run_for_a_result_whose_grad_is_wanted():
    order = []
    x = leaf(1.0)
    y = x.clone()
    y.grad_fn.register_prehook(lambda grads: order.append("node"))
    y.register_hook(lambda grad: order.append("tensor"))
    (y * 3).backward(inputs=(y,))
    assert order == ["tensor", "node"] and y.grad == 3 and x.grad is None


def test_the_hook_after_a_leaf_sees_the_gradient_that_was_kept():
    x = leaf(1.0, 2.0)
    node = x.view_as(x).grad_fn.next_functions[0][0]
    seen = []

    def add_half(leaf):
        leaf.grad.add_(0.5)

    x.register_post_accumulate_grad_hook(add_half)
    node.register_hook(lambda inputs, outputs: seen.append(outputs[0].clone()))
    (x * 2).sum().backward()
    assert seen[0].tolist() == [2.5, 2.5]


def test_a_hook_that_is_added_while_the_node_runs_is_called_after_it():
    def unpack(tensor):
        node = cresset._C._current_autograd_node()
        node.register_hook(lambda inputs, outputs: tuple(grad / 2 for grad in inputs))
        return tensor

    x = leaf(3.0)
    with cresset.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        y = x.exp()
    y.backward()
    assert cresset.allclose(x.grad, x.detach().exp() / 2)


def test_hooks_on_any_gradient_count_for_each_thread():
    x, y = leaf(1.0), leaf(2.0)
    count = []
    register_multi_grad_hook((x, y), lambda grad: count.append(1), mode="any")
    product = x * y
    ready = threading.Barrier(4)

    def run():
        ready.wait()
        product.backward(retain_graph=True)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(count) == 4
