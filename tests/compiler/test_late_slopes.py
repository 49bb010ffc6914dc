"""Functions whose derivative is made along with them in a compiled region: eager's bits, whoever looks when."""

import pytest

import cresset
from cresset import _native
from cresset.compiler import background
from cresset.nn import functional as F
from cresset.ops.pointwise import definitions, system_compiler
from cresset.ops.pointwise.loops import shares_functions

FUNCTIONS = {
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "mish": F.mish,
    "tanhshrink": F.tanhshrink,
}


def leaves():
    generator = cresset.Generator().manual_seed(0)
    h, bias = (cresset.randn(shape, generator=generator) * 2 for shape in ((200, 300), (300,)))
    h[0, :4] = cresset.tensor([0.0, -0.0, 40.0, -40.0])
    return h.requires_grad_(), bias.requires_grad_()


def bits(t):
    return t.detach().contiguous().view(cresset.int32)


def assert_same(got, expected):
    for x, y in zip(got, expected, strict=True):
        assert x.shape == y.shape and x.stride() == y.stride() and cresset.equal(bits(x), bits(y))


def check(program):
    """`program(compiled, h, bias)` gives the same for a compiled function as for the function itself."""
    for _ in range(3):
        assert_same(program(cresset.compile, *leaves()), program(lambda f: f, *leaves()))


def groups_of(program, *args):
    return [(g["calls"], g["kept"]) for g in cresset.compiler.explain(program)(*args).groups]


def forward_and_backward(function, h, bias):
    function(h + bias).sum().backward()


def test_the_formula_says_whether_work_is_shared():
    assert all(shares_functions(definitions[name]) for name in FUNCTIONS)
    others = ("relu", "tanh", "sigmoid", "sin", "log", "softplus")
    assert not any(shares_functions(definitions[name]) for name in others)


def test_the_derivative_is_kept_instead_of_the_argument():
    forward, *rest = cresset.compiler.explain(lambda *args: forward_and_backward(F.gelu, *args))(*leaves()).groups
    assert forward["calls"] == ["add", "gelu backward of input 0", "gelu"]
    assert forward["is_kept"][:2] == [False, True]
    assert [group["calls"] for group in rest] == [["mul"]]


def test_without_gradients_there_is_none():
    with cresset.no_grad():
        assert groups_of(lambda h, bias: F.gelu(h + bias), *leaves()) == [(["add", "gelu"], 1)]


def test_an_argument_in_memory_is_kept_as_it_is():
    h, _ = leaves()
    (forward, _), *_ = groups_of(lambda h: F.gelu(h).mul(2).sum().backward(), h)
    assert forward == ["gelu", "mul"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_have_eagers_bits(name):
    def program(compiled, h, bias):
        y = compiled(lambda h, bias: FUNCTIONS[name](h + bias) * h)(h, bias)
        y.square().mean().backward()
        return y, h.grad, bias.grad

    check(program)


@pytest.mark.skipif(not system_compiler.find(), reason="no C++ compiler")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_printed_groups_have_eagers_bits(name):
    def step(function, h, bias):
        h.grad = bias.grad = None
        function(h, bias).backward()
        return h.grad, bias.grad

    def function(h, bias):
        return FUNCTIONS[name](h + bias).square().sum()

    compiled, args, before = cresset.compile(function), leaves(), _native.printed_statistics()
    for _ in range(4000):
        step(compiled, *args)
        if _native.printed_statistics()["asked"] >= before["asked"] + 2:
            break
    background.wait()
    got = step(compiled, *args)
    assert _native.printed_statistics()["runs"] > before["runs"]
    assert_same(got, step(function, *leaves()))


def test_the_argument_is_read_after_all():
    def program(compiled, h, bias):
        def function(h, bias):
            u = h + bias
            return u, F.gelu(u)

        u, y = compiled(function)(h, bias)
        y.sum().backward()
        return u, u.grad_fn(cresset.ones_like(u))[0], y, h.grad

    check(program)


@pytest.mark.parametrize("which", [0, 1])
def test_what_it_was_made_of_is_written_to_before_backward(which):
    def program(compiled, *args):
        y = compiled(lambda h, bias: F.gelu(h + bias).square().mean())(*args)
        with cresset.no_grad():
            args[which].mul_(3)
        y.backward()
        return y, *(t.grad for t in args), *args

    check(program)


def test_gradients_of_gradients():
    def program(compiled, h, bias):
        y = compiled(lambda h, bias: F.gelu(h + bias).square().mean())(h, bias)
        (grad,) = cresset.autograd.grad(y, h, create_graph=True)
        grad.square().sum().backward()
        return grad, h.grad, bias.grad

    check(program)


def test_backward_twice():
    def program(compiled, h, bias):
        y = compiled(lambda h, bias: F.silu(h + bias).square().mean())(h, bias)
        y.backward(retain_graph=True)
        first = h.grad.clone()
        y.backward()
        return first, h.grad, bias.grad

    check(program)


def test_two_functions_of_one_argument():
    def program(compiled, h, bias):
        def function(h, bias):
            u = h + bias
            return F.gelu(u) * F.silu(u) + u

        compiled(function)(h, bias).square().mean().backward()
        return h.grad, bias.grad

    check(program)


def test_saved_tensors_are_packed_and_unpacked():
    def program(compiled, h, bias):
        with cresset.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2):
            y = compiled(lambda h, bias: F.gelu(h + bias).square().mean())(h, bias)
        y.backward()
        return y, h.grad, bias.grad

    check(program)


def test_a_program_without_backward_stops_making_them():
    function, args = cresset.compile(lambda h, bias: F.gelu(h + bias).sum()), leaves()
    for _ in range(300):
        function(*args)
    made = [
        "gelu backward of input 0" in calls
        for _ in range(16)
        for calls, _ in groups_of(lambda h, bias: F.gelu(h + bias).sum(), *args)
    ]
    assert sum(made) <= 2
    for _ in range(17):  # and makes them again once they are read
        function(*args).backward()
    assert ["add", "gelu backward of input 0", "gelu"] in [
        calls for _ in range(4) for calls, _ in groups_of(lambda *args: forward_and_backward(F.gelu, *args), *args)
    ]
