"""Modes that see every operator of a block."""

import threading

import pytest

import cresset as torch
from cresset.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,
    _get_current_dispatch_mode,
    _get_current_dispatch_mode_stack,
)


class Log(TorchDispatchMode):
    def __init__(self, name="", lines=None):
        super().__init__()
        self.name, self.lines = name, [] if lines is None else lines

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.lines.append(self.name + str(func))
        return func(*args, **(kwargs or {}))


def test_a_mode_sees_what_makes_and_what_computes():
    with Log() as log:
        x = torch.ones(2)
        y = x + 1
    z = y * 2
    assert log.lines == ["aten.ones.default", "aten.add.Tensor"] and z.tolist() == [4.0, 4.0]


def test_inside_a_handler_the_mode_around_it_is_on():
    lines = []
    with Log("outer ", lines), Log("inner ", lines):
        torch.ones(1)
    assert lines == ["inner aten.ones.default", "outer aten.ones.default"]


def test_the_stack_can_be_asked_for_and_set_aside():
    assert _get_current_dispatch_mode() is None
    with Log() as outer, Log() as inner:
        assert _get_current_dispatch_mode() is inner and _get_current_dispatch_mode_stack() == [outer, inner]
        with _disable_current_modes() as modes:
            assert modes == [outer, inner] and _get_current_dispatch_mode() is None
            torch.ones(1)
        assert outer.lines == inner.lines == []
    assert _get_current_dispatch_mode_stack() == []


def test_an_exception_leaves_the_stack_as_it_was():
    class Failing(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise KeyError("no")

    with Log() as log:
        with pytest.raises(KeyError), Failing():
            torch.ones(1)
        torch.zeros(1)
    assert log.lines == ["aten.zeros.default"]
    assert torch.ones(1).tolist() == [1.0]


def test_other_threads_are_not_seen():
    with Log() as log:
        thread = threading.Thread(target=lambda: torch.ones(1))
        thread.start()
        thread.join()
    assert log.lines == []


def test_a_mode_may_answer_with_something_else():
    class Zeros(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is torch.ops.aten.add.Tensor:
                return torch.zeros_like(args[0])
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, requires_grad=True)
    with Zeros():
        y = x + 1
    assert y.tolist() == [0.0, 0.0] and y.requires_grad


def test_autograd_records_above_and_backward_is_seen_operator_by_operator():
    x = torch.tensor([2.0], requires_grad=True)
    with Log() as log:
        y = (x * x).sum()
        forward = len(log.lines)
        y.backward()
    assert x.grad.tolist() == [4.0]
    assert log.lines[:2] == ["aten.mul.Tensor", "aten.sum.default"] and len(log.lines) > forward


def test_views_under_a_mode_are_views():
    x = torch.zeros(4, requires_grad=True)
    with Log():
        y = x * 1
        y[:2].add_(1)
    y.sum().backward()
    assert y.tolist() == [1.0, 1.0, 0.0, 0.0] and x.grad.tolist() == [1.0] * 4


def test_random_numbers_are_those_without_a_mode():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    with Log() as log:
        assert torch.equal(torch.rand(3), expected)
    assert log.lines[0] == "aten.rand.default"


def test_a_mode_sees_out_and_writes_in_place():
    out = torch.empty(2)
    with Log() as log:
        torch.add(torch.ones(2), 1, out=out)
        out.mul_(2)
    assert out.tolist() == [4.0, 4.0] and "aten.mul_.Tensor" in log.lines


def test_a_layer_runs_under_a_mode_as_without():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU(), torch.nn.Flatten())
    x = torch.randn(2, 1, 5, 5)
    expected = model.eval()(x)
    with Log() as log:
        result = model(x)
    assert torch.allclose(result, expected) and any("convolution" in line or "conv2d" in line for line in log.lines)


def test_a_mode_without_a_handler_says_so():
    with pytest.raises(NotImplementedError, match="has no __torch_dispatch__"), TorchDispatchMode():
        torch.ones(1)


def test_an_operator_of_a_program_is_seen_and_may_have_a_rule_for_the_mode():
    @torch.library.custom_op("test_modes::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    with Log() as log:
        assert twice(torch.ones(1)).tolist() == [2.0]
    assert "test_modes.twice.default" in log.lines

    @torch.library.register_torch_dispatch("test_modes::twice", Log)
    def _(mode, func, types, args, kwargs):
        return args[0] * 10

    with Log():
        assert twice(torch.ones(1)).tolist() == [10.0]


@pytest.mark.parametrize(
    ("call", "seen"),
    [
        (lambda x: x.var(), "aten.var.correction"),
        (lambda x: x.std(0, keepdim=True), "aten.std.correction"),
        (lambda x: torch.var_mean(x, unbiased=False), "aten.var_mean.correction"),
        (lambda x: x.narrow(0, -2, 1), "aten.slice.Tensor"),
        (lambda x: x.chunk(2), "aten.split.Tensor"),
        (lambda x: x.reshape(-1), "aten.view.default"),
        (lambda x: x.t().reshape(-1), "aten.reshape.default"),
        (lambda x: x.square(), "aten.pow.Tensor_Scalar"),
    ],
)
def test_operators_that_pytorch_makes_of_one_other_are_seen_as_that_one(call, seen):
    x = torch.arange(12.0).view(3, 4)
    with Log() as log:
        result = call(x)
    assert log.lines[-1] == seen
    for mine, plain in zip(result, call(x), strict=True) if isinstance(result, tuple) else [(result, call(x))]:
        assert mine.tolist() == plain.tolist()


@pytest.mark.parametrize(
    ("shape", "bias", "seen"),
    [
        ((4, 3), True, ["t", "addmm"]),
        ((2, 4, 3), True, ["t", "view", "addmm", "view"]),
        ((3,), True, ["t", "view", "addmm", "view"]),
        ((4, 3), False, ["t", "mm"]),
        ((2, 4, 3), False, ["t", "view", "mm", "_unsafe_view"]),
        ((3,), False, ["t", "unsqueeze", "mm", "squeeze_"]),
        ((0, 3), True, ["t", "addmm"]),
    ],
)
def test_a_layers_product_is_seen_as_the_products_of_matrices_that_pytorch_makes_of_it(shape, bias, seen):
    """Programs that count operations know those, and not `linear`."""
    x, weight = torch.randn(shape, requires_grad=True), torch.randn(5, 3, requires_grad=True)
    offset = torch.randn(5) if bias else None
    with Log() as log:
        y = torch.nn.functional.linear(x, weight, offset)
    assert sorted(log.lines) == sorted(f"aten.{name}.{'dim' if name == 'squeeze_' else 'default'}" for name in seen)
    expected = torch.nn.functional.linear(x, weight, offset)
    assert torch.allclose(y, expected) and y.stride() == expected.stride()
    (got,) = torch.autograd.grad(y.sum(), weight)
    assert torch.allclose(got, torch.autograd.grad(expected.sum(), weight)[0])


def test_products_of_stacks_are_seen_as_one_of_matrices():
    a, b = torch.randn(2, 3, 4, 5), torch.randn(2, 3, 5, 6)
    with Log() as log:
        product = a @ b
    seen = ["expand", "view", "expand", "view", "bmm", "_unsafe_view"]
    assert log.lines == [f"aten.{name}.default" for name in seen] and torch.allclose(product, a.matmul(b))


def test_a_spread_is_seen_with_the_arguments_of_its_one_form():
    calls = []

    class Keep(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            calls.append((args[1:], kwargs))
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, 3)
    with Keep():
        x.var()
        x.var(1)
        x.var([0, 1], unbiased=False, keepdim=True)
        x.var(dim=1, correction=2)
    assert calls == [
        ((), {}),
        (([1],), {"correction": 1}),
        (([0, 1],), {"correction": 0, "keepdim": True}),
        (([1],), {"correction": 2}),
    ]


def test_a_mode_answers_with_a_plain_method():
    class OfTheClass(TorchDispatchMode):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with pytest.raises(RuntimeError, match="classmethod is not supported, please make it a plain method"), OfTheClass():
        torch.ones(1)
    assert _get_current_dispatch_mode() is None


def test_printing_is_nothing_that_a_mode_sees():
    seen = []

    class Logged(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = torch.ones(3)
    with Logged():
        assert repr(x) == "tensor([1., 1., 1.])"
    assert not seen


def test_contiguous_is_a_clone_where_elements_move_and_nothing_else():
    x = torch.ones(2, 3)
    with Log() as seen:
        x.contiguous(), x.t().contiguous(), x.any(1), x.all(), x.all((0, 1))
    assert seen.lines == ["aten.t.default", "aten.clone.default", "aten.any.dim", "aten.all.default", "aten.all.dims"]
