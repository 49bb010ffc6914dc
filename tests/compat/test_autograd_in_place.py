"""The same small programs give the same in cresset and in PyTorch: changes in place and views."""

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).with_name("autograd")))

from autograd_programs import assert_same, leaf, programs  # noqa: E402


class InPlace:
    def on_a_result(lib):
        x = leaf(lib, [1.0, 2.0])
        y = x * 3
        y.mul_(2)
        y += 1
        (y * y).sum().backward()
        return x.grad, y

    def on_a_view_of_a_result(lib):
        x = leaf(lib, [[1.0, 2.0], [3.0, 4.0]])
        y = x * 1
        y[0].mul_(5)
        (y * y).sum().backward()
        return x.grad, y

    def a_view_made_before_sees_the_change(lib):
        x = leaf(lib, [1.0, 2.0, 3.0])
        y = x * 1
        v = y[1:]
        y.mul_(2)
        (v * v).sum().backward()
        return x.grad, v

    def the_base_sees_a_change_of_its_view(lib):
        x = leaf(lib, [1.0, 2.0, 3.0])
        y = x * 1
        y[1:].pow_(3)
        y.sum().backward()
        return x.grad

    def a_view_of_a_view(lib):
        x = leaf(lib, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        y = x * 1
        y[1][1:].mul_(10)
        y.t()[0].add_(1)
        (y * y).sum().backward()
        return x.grad

    def two_views_that_overlap(lib):
        x = leaf(lib, [1.0, 2.0, 3.0, 4.0])
        y = x * 1
        a, b = y[:3], y[1:]
        a.mul_(2)
        b.mul_(3)
        (a.sum() + 2 * b.sum()).backward()
        return x.grad

    def setitem_with_a_number(lib):
        x = leaf(lib, [1.0, 2.0, 3.0])
        y = x * 2
        y[1] = 7.0
        (y * y).sum().backward()
        return x.grad, y

    def setitem_with_a_tensor(lib):
        x, w = leaf(lib, [1.0, 2.0, 3.0]), leaf(lib, [10.0, 20.0])
        y = x * 2
        y[1:] = w * w
        (y * y).sum().backward()
        return x.grad, w.grad

    def a_constant_becomes_part_of_the_graph(lib):
        buffer = lib.zeros(3)
        x = leaf(lib, [1.0, 2.0])
        buffer[1:] = x * 2
        (buffer * buffer).sum().backward()
        return x.grad, buffer.requires_grad

    def copy_into_a_view_of_a_constant(lib):
        buffer = lib.ones(2, 2)
        x = leaf(lib, [3.0, 4.0])
        buffer[:, 0].copy_(x)
        (buffer**2).sum().backward()
        return x.grad, buffer.requires_grad, buffer.is_leaf

    def relu_in_place(lib):
        x = leaf(lib, [-1.0, 2.0])
        y = (x * 2).relu_()
        y.sum().backward()
        return x.grad

    def a_chain_in_place(lib):
        x = leaf(lib, [0.5, 1.5])
        y = x.clone()
        y.sin_().mul_(x)
        y.sum().backward()
        return x.grad

    def a_chain_that_destroys_what_is_needed(lib):
        x = leaf(lib, [0.5, 1.5])
        y = x.clone()
        y.exp_().mul_(x)
        y.sum().backward()

    def with_another_operand(lib):
        x, w = leaf(lib, [1.0, 2.0]), leaf(lib, [3.0, 4.0])
        y = x.clone()
        y.mul_(w)
        y.add_(w, alpha=2)
        y.sum().backward()
        return x.grad, w.grad

    def zero_cuts_the_history(lib):
        x = leaf(lib, [1.0, 2.0])
        y = x * 2
        y.zero_()
        z = y + x
        z.sum().backward()
        return x.grad

    def detach_in_place(lib):
        x = leaf(lib, [1.0, 2.0])
        y = x * 2
        y.detach_()
        return y.requires_grad, y.is_leaf, y.grad_fn is None

    def detach_shares_memory_and_the_version(lib):
        x = leaf(lib, [1.0, 2.0])
        y = x * x
        d = y.detach()
        d.mul_(2)
        return y, y._version, d._version

    def a_detached_change_is_noticed(lib):
        x = leaf(lib, [1.0, 2.0])
        y = x.exp()
        y.detach().mul_(2)
        y.sum().backward()

    def a_change_through_data_is_not_noticed(lib):
        x = leaf(lib, [1.0, 2.0])
        y = x * 2
        z = y * y
        y.data.mul_(10)
        z.sum().backward()
        return x.grad

    def on_a_leaf(lib):
        leaf(lib, [1.0]).add_(1)

    def on_a_view_of_a_leaf(lib):
        leaf(lib, [1.0, 2.0])[0].add_(1)

    def on_a_leaf_without_recording(lib):
        x = leaf(lib, [1.0])
        with lib.no_grad():
            x.add_(1)
            x[0].mul_(2)
        (x * 3).backward()
        return x, x.grad, x.is_leaf

    def on_something_backward_needs(lib):
        x = leaf(lib, [1.0])
        y = x * 1
        z = y * y
        y.add_(1)
        z.backward()

    def on_something_backward_does_not_need(lib):
        x = leaf(lib, [1.0])
        y = x * 1
        z = y + y
        y.add_(1)
        z.backward()
        return x.grad

    def on_one_of_several_views(lib):
        x = leaf(lib, [1.0, 2.0]) * 1
        a, _ = x.unbind(0)
        a.add_(1)

    def on_one_of_several_views_of_a_constant(lib):
        x = lib.ones(2)
        a, _ = x.split(1)
        a.add_(1)
        return x

    def on_a_view_made_without_recording(lib):
        x = leaf(lib, [1.0, 2.0]) * 1
        with lib.no_grad():
            v = x[0]
        v.add_(1)

    def of_a_narrower_dtype(lib):
        leaf(lib, [1.0]).mul(1).add_(lib.ones(1, dtype=lib.complex64))

    def out_of_a_recorded_call(lib):
        lib.add(leaf(lib, [1.0]), 1, out=lib.empty(1))

    def swapped_rows(lib):
        x = leaf(lib, [[1.0, 2.0], [3.0, 4.0]])
        y = x * 1
        y[[0, 1]] = y[[1, 0]] * lib.tensor([[1.0], [10.0]])
        (y * lib.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
        return x.grad

    def masked_fill(lib):
        x = leaf(lib, [1.0, 2.0, 3.0])
        y = x * 2
        y.masked_fill_(y > 3, 0.0)
        y.sum().backward()
        return x.grad

    def a_transposed_view(lib):
        x = leaf(lib, [[1.0, 2.0], [3.0, 4.0]])
        y = x * 1
        y.t().mul_(lib.tensor([[1.0, 2.0], [3.0, 4.0]]))
        (y * y).sum().backward()
        return x.grad

    def second_derivative_through_it(lib):
        x = leaf(lib, [1.0, 2.0])
        y = x * 1
        y[0].pow_(3)
        (g,) = lib.autograd.grad((y * y).sum(), x, create_graph=True)
        return lib.autograd.grad(g.sum(), x)

    def the_grad_fn_of_a_view_is_renewed(lib):
        x = leaf(lib, [1.0, 2.0]) * 1
        v = x[0]
        before = v.grad_fn.name()
        x.mul_(2)
        return before, v.grad_fn.name(), x.grad_fn.name()

    def the_base_of_a_changed_view_has_copy_slices(lib):
        x = leaf(lib, [1.0, 2.0]) * 1
        x[0].mul_(2)
        return x.grad_fn.name()

    def a_view_of_an_unrecorded_base_that_becomes_recorded(lib):
        base = lib.zeros(2, 2)
        view = base[0]
        base.add_(leaf(lib, [1.0, 2.0]))
        return view.requires_grad, base.requires_grad

    def a_view_of_an_unrecorded_base_is_used(lib):
        base, x = lib.zeros(2, 2), leaf(lib, [1.0, 2.0])
        view = base[0]
        base.add_(x)
        y = view * view
        y.sum().backward()
        return x.grad, y.requires_grad


@pytest.mark.parametrize("program", programs(InPlace))
def test_the_same_program_gives_the_same(program):
    assert_same(program)
