"""The judge of random programs (fuzz/rounding.py) takes rounding for rounding, and a small mistake for a mistake."""

import random
import sys
import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).with_name("fuzz")))
import lockstep  # noqa: E402
import programs  # noqa: E402
from side import memory  # noqa: E402

import cresset  # noqa: E402

F = cresset.nn.functional


def difference(steps):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return programs.replay(lockstep.Lockstep([torch, cresset]), steps)[0]


ROUNDING = {
    "a gradient of terms that cancel, after a call of another precision that is refused": [
        "v1 = values((3, 2, 4), 'bfloat16', 7)",
        "m2 = t.nn.LSTM(3, 4, num_layers=2, batch_first=True, proj_size=2)",
        "with t.autocast('cpu', dtype=t.float16): v3 = (v1 @ values((4, 2), 'float64', 6)).sum()",
        "m2(t.arange(24).to(t.float32).reshape((2, 4, 3)))[1][0].square().mean().backward()",
    ],
    "a product that its bias cancels": [
        "v0 = values((2,), 'float32', 7)",
        "v1 = F.layer_norm(v0, (2,), t.rand((2,), dtype=t.float32), values((2,), 'float32', 6))",
    ],
    "a product that its bias cancels, both of their own": [
        "v0 = values((2, 2, 2), 'float32', 4).cumsum(-1)",
        "v1 = F.layer_norm(v0, (2,), values((2,), 'float32', 8), values((4,), 'float32', 8)[..., ::2])",
    ],
    "a mean far from zero, in double precision": [
        "v0 = t.arange(24).to(t.float64).reshape((4, 3, 2))",
        "v1 = F.instance_norm(v0)",
    ],
    "a difference that loses digits, in double precision": [
        "t.manual_seed(1)",
        "v0 = t.rand((2, 2), dtype=t.float64)",
        "v1 = F.tanhshrink(v0)",
    ],
    "a difference that hardly moves, in double precision": [
        "v0 = t.full((2,), -0.0125, dtype=t.float64)",
        "v1 = F.tanhshrink(v0)",
    ],
    "a function of whole numbers, to an out= of more digits": [
        "v0 = t.tensor([-10, 3])",
        "v1 = t.zeros(2, dtype=t.float64)",
        "t.sigmoid(v0, out=v1)",
    ],
    "a gradient of terms that cancel, which a hook is told": [
        "v0 = t.full((3, 3), -1, dtype=t.float32).requires_grad_()",
        "v0.register_hook(hook('h', 'say'))",
        "v1 = t.autograd.grad(F.rms_norm(v0, (3,)).sum(), v0)[0]",
    ],
    "a gradient along what a normalization takes out": [
        "v0 = values((2, 2, 2), 'float32', 6).requires_grad_()",
        "v0.register_hook(hook('h', 'clone'))",
        "v1 = t.select_scatter(F.log_softmax(v0, -1), v0[0] * 2, 0, 0)",
        "v2 = F.batch_norm(v1, None, None, training=True)",
        "v2.backward(v2)",
    ],
    "gradients that cancel behind a layer": [
        "m0 = t.nn.BatchNorm1d(3)",
        "m0(values((2, 3), 'float32', 7)).pow(2).sum().backward()",
    ],
    "gradients of equal numbers behind a layer, of which only one library's cancel": [
        "m0 = t.nn.BatchNorm1d(3)",
        "v0 = F.dropout(values((2,), 'float32'), 0.5)",
        "m0(values((2, 3), 'float32', 8)).pow(2).sum().backward()",
    ],
    "numbers that are too large for halves, of which one library makes nan on the way": [
        "v0 = t.arange(16).to(t.float16).reshape((4, 4)).requires_grad_()",
        "v1 = F.bilinear(v0, v0, t.arange(32).to(t.float16).reshape((2, 4, 4)))",
        "v2 = F.bilinear(v1, v1, values((2, 2, 2), 'float16', 3))",
        "v2.abs().sum().backward()",
    ],
    "a difference that loses digits, of bits of halves": [
        "v0 = values((4, 2), 'float16', 7)",
        "v1 = values((2, 4), 'float32', 8)",
        "v1.set_(v0.untyped_storage())",
        "v2 = F.tanhshrink(v1)",
    ],
    "tiny complex numbers, of which one library's logarithm is nan": [
        "v0 = t.full((2,), 1e-30 + 1e-33j, dtype=t.complex64).mul_(1e-7)",
        "v1 = t.log1p(v0)",
    ],
    "fractions whose memory is one of whole numbers, too": [
        "v0 = t.rand((4, 2), dtype=t.float64)",
        "v1 = t.zeros(0, dtype=t.int64).set_(v0.untyped_storage())",
        "v2 = F.batch_norm(v0, None, None, training=True)",
    ],
    "a gradient of large terms that cancel inside of attention, in double precision": [
        "v0 = t.tensor([4.503662109375, 8.23193359375, 16.9114990234375, 24.867919921875], dtype=t.float64)",
        "v1 = v0.reshape(1, 4, 1).requires_grad_()",
        "v2 = F.scaled_dot_product_attention(v1, v1, v1)",
        "v3 = t.autograd.grad((v2 * v2).sum(), v1)[0]",
    ],
    "signs of nans of halves, in the bits of doubles that lie in two of their parts": [
        "v0 = values((3,), 'float64', 3)",
        "v1, v2 = v0.view(t.float16).chunk(2)",
        "v1.log1p_()",
    ],
}


@pytest.mark.parametrize("name", ROUNDING)
def test_rounding_is_no_difference(name):
    assert difference(ROUNDING[name]) is None


def test_rounding_before_the_step_that_is_looked_at_is_no_difference():
    pair = lockstep.Lockstep([torch, cresset])
    steps = ["t.manual_seed(1)", "v0 = t.randn_like(t.zeros(6, 3)) / 32", "v1 = F.tanhshrink(v0)", "v2 = 1"]
    assert [pair.step(text, compare=text == steps[-1]) for text in steps] == [None] * 4


def test_what_is_drawn_after_a_result_was_made_says_nothing_about_its_rounding():
    pair = lockstep.Lockstep([torch, cresset])
    steps = [
        "v0 = t.tensor([-3.719785451889038, 0.8618601560592651])",
        "v1 = F.log_softmax(v0, -1)",  # PyTorch's has fewer digits
        "v2 = F.dropout(v0, 0.5)",
    ]
    assert [pair.step(text, compare=text != steps[1]) for text in steps] == [None] * 3


@pytest.mark.parametrize(
    "change",
    ["v0.squeeze_()", "grown(v0, lambda: v0.resize_((6,)))", "in_thread(lambda: v0.mul_(2))"],
)
def test_changes_of_memory_that_was_given_to_another_tensor_are_told_from_others(change):
    steps = [
        "v0 = values((2, 2), 'float32')",
        "v1 = values((2, 2), 'float32', 3).requires_grad_()",
        "v2 = v1 @ v1",
        "v0.set_(v1.untyped_storage(), 0, (2, 2))",
        change,
        "v2.sum().backward()",
    ]
    pair = lockstep.Lockstep([torch, cresset])
    why, kept = programs.replay(pair, steps)
    assert kept == steps
    assert "versions belong to memory" in programs.judged(pair, [torch, cresset], steps, why)[2]
    assert programs.judged(pair, [torch, cresset], [*steps[:3], steps[-1]], why)[2] is None


def test_a_change_that_only_pytorch_notices_is_known_where_the_gradient_is_right(monkeypatch):
    steps = [
        "v0 = t.tensor([1.5, 2.0, 0.5, 3.0], dtype=t.float64).requires_grad_()",
        "v1 = v0 * 1",
        "v1[:2].mul_(v1[2:])",
        "v1.sum().backward()",
    ]
    pair = lockstep.Lockstep([torch, cresset])
    why, kept = programs.replay(pair, steps)
    assert kept == steps
    assert "left untouched" in programs.judged(pair, [torch, cresset], steps, why)[2]
    monkeypatch.setattr(cresset.Tensor, "sum", lambda x: cresset.sum(x) * 2)
    assert programs.judged(pair, [torch, cresset], steps, why)[2] is None


def test_a_hook_that_refuses_before_a_change_that_only_pytorch_notices_is_known(monkeypatch):
    steps = [
        "v0 = t.tensor(3.0).requires_grad_()",
        "v0.register_hook(hook('h1', 'refuse'))",
        "v1 = t.cummax(v0, 0)[0]",
        "v0.detach().log1p_()",
        "v1.backward()",
    ]
    pair = lockstep.Lockstep([torch, cresset])
    why, kept = programs.replay(pair, steps)
    assert kept == steps and "raised ValueError instead of RuntimeError" in why
    assert "two things" in programs.judged(pair, [torch, cresset], steps, why)[2]
    monkeypatch.setattr(cresset, "cummax", lambda x, dim: (cresset.Tensor.cummax(x, dim)[0] * 2,))
    assert programs.judged(pair, [torch, cresset], steps, why)[2] is None


# What PyTorch reads or writes where a user sees no write: the lines, and those without which nothing excuses them.
UNSEEN = {
    "what shares memory, and is known to be another number": (
        ["v0 = t.arange(3).to(t.complex64)", "v1 = v0.unflatten(-1, (1, 3))", "v1.pow_(v0)"],
        [1],
    ),
    "a place that there is not, of inference mode": (
        ["with t.inference_mode(): v0 = t.tensor([-4, 3])", "m1 = t.nn.Embedding(5, 3)", "v1 = m1(v0)"],
        [2],
    ),
    "a gradient of what was changed behind it": (
        [
            "v0 = values((2, 3), 'float32', 6).requires_grad_()",
            "v1 = v0.data",
            "v2 = F.scaled_dot_product_attention(v0, v0, v0)",
            "with t.no_grad(): v1[...] = 2",
            "(v2 * v2).sum().backward()",
        ],
        [3],
    ),
    "a gradient that is added to what was given": (
        [
            "v0 = t.cat([t.nn.Parameter(values((3,), 'float32')).view(-1)])",
            "v0.backward(v0, retain_graph=True)",
            "v0.sum().backward()",
        ],
        [1],
    ),
    "a view of a result that is one": (
        ["v0 = values((2, 4), 'float32', 6)", "v1 = t.einsum('ij,kj->ik', v0, v0)", "v2 = v1[:1]",
            "say(v2._base is v1, v2 is v1)"],
        [1],
    ),
    "a negative number that wraps round in a comparison": (
        ["v0 = values((3,), 'uint8', 4)", "v1 = t.tensor(-3)", "v2 = v1 < v0"],
        [2],
    ),
    "a factor that wraps round in a gradient": (
        ["v0 = values((3,), 'float32', 4).requires_grad_()",
            "v1 = t.addcmul(v0, t.tensor(6, dtype=t.uint8), v0, value=-1)", "v1.sum().backward()"],
        [1],
    ),
    "a complex number of NumPy": (
        ["v0 = t.tensor(True)", "n1 = np.complex64(2)", "v2 = v0 + n1"],
        [1],
    ),
    "numbers that were drawn for a call that was refused, seen in what is drawn": (
        ["v0 = values((2, 3), 'int16')", "v1 = values((4, 2), 'float32', 4)", "v2 = F.dropout(v0, 0.5)",
            "v3 = F.dropout(v1, 0.5)"],
        [2],
    ),
    "a node with a hook that PyTorch makes anew": (
        ["v0 = t.ones((1, 2, 4), dtype=t.float64).requires_grad_()", "v1 = F.max_pool1d(v0, 2)",
            "v1.grad_fn.register_hook(node_hook('h1', 'refuse'))", "with t.no_grad(): t.neg(v1, out=v1)",
            "v2 = t.autograd.grad((v1 * v1).sum(), v0)[0]"],
        [3],
    ),
    "a dtype that is refused where there are numbers": (
        ["v0 = t.zeros((0, 2))", "v1 = v0.to(t.int64)", "v1.normal_()"],
        [1],
    ),
    "memory that is shared, of numbers that are refused alone, too": (
        ["v0 = values((4,), 'float32', 7)", "v1 = v0.to(t.complex64)", "v2 = v1.expand(2, 4)", "v2.sign_()"],
        [1],
    ),
    "a hook of several gradients, after what a function said": (
        ["v0 = values((3,), 'float64', 5).requires_grad_()", "v1, v2 = Two.apply(v0, t.ones(3, dtype=t.float64))",
            "t.autograd.graph.register_multi_grad_hook((v0, v2), lambda grads: say('h1', [g is None for g in grads]))",
            "v2.backward(v0, retain_graph=True)"],
        [2],
    ),
    "numbers that were drawn for a call that was refused": (
        ["v0 = values((2, 3), 'bool')", "v1 = F.dropout(v0, 0.5)",
            "with t.random.fork_rng(devices=[]): say(t.rand(2))"],
        [1],
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", UNSEEN)
def test_what_is_known_is_so_by_its_circumstances(name):
    steps, needed = UNSEEN[name]
    pair = lockstep.Lockstep([torch, cresset])
    why, kept = programs.replay(pair, steps)
    assert kept == steps
    assert why
    assert programs.judged(pair, [torch, cresset], steps, why)[2]
    plain = ["v1 = v0 * 1" if at in needed else step for at, step in enumerate(steps)]
    assert programs.judged(pair, [torch, cresset], plain, why)[2] is None


BEYOND = {
    "of a distance whose operand is detached": [
        "v0 = values((2, 3), 'float32', 4).requires_grad_()",
        "v1 = v0 * 1",
        "v2 = t.dist(v1, t.ones(2, 3))",
        "v1.detach_()",
        "v2.backward()",
    ],
    "of a tensor that is twice in a list": [
        "v0, v1 = values((3,), 'float32', 4).requires_grad_(), values((3,), 'float32', 5)",
        "v2 = v1 * 1",
        "t._foreach_add_([v2, v2], [v0, v0], alpha=2)",
        "v2.sum().backward()",
    ],
    "of a leaf that is a view of what was written to": [
        "v0 = values((2,), 'float32', 1)",
        "v1 = v0[1]",
        "v1.requires_grad_()",
        "v2 = v1.exp()",
        "v0[:] = v1",
        "v2.sum().backward()",
    ],
    "of a power of zero": [
        "v0 = values((2, 3), 'float32', 4).requires_grad_()",
        "v1 = 0 ** v0.abs()",
        "v2 = t.autograd.grad(v1.pow(2).sum(), v0, create_graph=True)[0]",
        "(v2 + v0).pow(2).sum().backward()",
    ],
    "of a cross entropy of doubles": [
        "v0 = values((3,), 'float64', 4).requires_grad_()",
        "v1 = F.binary_cross_entropy(v0.sigmoid(), t.tensor([0.5, 0.75, 1.0], dtype=t.float64))",
        "v2 = t.autograd.grad(v1.pow(2).sum(), v0, create_graph=True)[0]",
        "v2.pow(2).sum().backward()",
    ],
    "of distances": [
        "v0 = values((2, 3, 4), 'float32', 4).requires_grad_()",
        "v1 = t.cdist(v0, v0, p=inf)",
        "v2 = t.autograd.grad(v1.pow(2).sum(), v0, create_graph=True)[0]",
        "v2.pow(2).sum().backward()",
    ],
    "of a bool to the power of a tensor": [
        "v0 = values((2, 3), 'float32', 4).requires_grad_()",
        "v1 = True ** v0",
        "(v0 + v1).sum().backward()",
    ],
    "of a transform whose point was changed": [
        "v0 = values((2,), 'float64', 4).requires_grad_()",
        "v1 = t.func.hessian(lambda x: (x ** 3).sum())(v0)",
        "with t.no_grad(): v0.mul_(2)",
        "v1.sum().backward()",
    ],
    "of what a tracer keeps": [
        "m0 = t.nn.Conv1d(2, 3, 2)",
        "v0 = t.nn.utils.parameters_to_vector(m0.parameters())",
        "v1 = t.func.linearize(lambda x: x * x, v0)[1](t.ones_like(v0))",
        "v1.mean().backward()",
    ],
    "of a target beside a certain probability": [
        "v0 = t.tensor([1.0, 1.0, 0.5], dtype=t.float16).requires_grad_()",
        "v1 = t.tensor([1.0, 0.5, 0.5], dtype=t.float16).requires_grad_()",
        "F.binary_cross_entropy(v0, v1).backward()",
    ],
    "of a target beside a probability that is known": [
        "v0 = t.arange(32).to(t.float16).requires_grad_()",
        "F.binary_cross_entropy(v0.sigmoid(), v0.sigmoid(), reduction='sum').sum().backward()",
    ],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BEYOND)
def test_gradients_that_pytorch_has_another_way_are_known_where_they_are_right(name, monkeypatch):
    pair = lockstep.Lockstep([torch, cresset])
    why, kept = programs.replay(pair, BEYOND[name])
    assert kept == BEYOND[name] and programs.judged(pair, [torch, cresset], kept, why)[2]
    backward = cresset.Tensor.backward
    monkeypatch.setattr(cresset.Tensor, "backward", lambda x: backward(x * 2))
    assert programs.judged(pair, [torch, cresset], kept, why)[2] is None


# What PyTorch refuses and cresset computes: the lines, and the function of cresset whose mistake must be seen.
REFUSED = {
    "a number for a tensor": (["v0 = values((3,), 'float32', 5)", "v1 = t.maximum(v0, 0.5)"], cresset, "maximum"),
    "a bound of each kind": (["v0 = values((3,), 'float32', 5)", "v1 = t.clamp(v0, v0 * 2, 1)"], cresset, "clamp"),
    "distances in half precision": (["v0 = values((3, 2), 'float16', 5)", "v1 = t.cdist(v0, v0)"], cresset, "cdist"),
    "a complex number by halves": (
        ["v0 = t.full((), 2 + 1j, dtype=t.complex64)", "v1 = values((3,), 'float16', 5)", "v2 = t.div(v0, v1)"],
        cresset,
        "div",
    ),
    "a second derivative in half precision": (
        [
            "v0 = values((3,), 'float16', 5).requires_grad_()",
            "v1 = t.autograd.grad(t.special.i0(v0).sum(), v0, create_graph=True)[0]",
            "v1.sum().backward()",
        ],
        cresset.Tensor,
        "sum",
    ),
    "a number for a half, beside one that the line makes": (
        ["v0 = t.full((), 0.5, dtype=t.float16)", "v1 = t.addcdiv(v0, -0.5, values((), 'float16', 0))"],
        cresset,
        "addcdiv",
    ),
    "out= of complex halves": (
        [
            "v0 = t.view_as_complex(values((3, 2), 'float16', 7))",
            "v1 = t.zeros(2, dtype=t.complex32)",
            "t.exp(v0, out=v1)",
        ],
        cresset,
        "exp",
    ),
    "a number for a complex half": (
        ["v0 = t.view_as_complex(values((3, 2), 'float16', 7))", "v1 = t.logical_or(v0, 0)"],
        cresset,
        "logical_or",
    ),
    "a number for a half": (
        ["v0 = t.full((), 0.5, dtype=t.float16)", "v1 = t.addcdiv(v0, t.ones((), dtype=t.float16), 0.5)"],
        cresset,
        "addcdiv",
    ),
    "one number along its dimension": (
        ["v0 = t.tensor(2.5)", "v1 = t.take_along_dim(v0, v0.argmax(0, keepdim=True), 0)"],
        cresset,
        "take_along_dim",
    ),
    "a form of nothing": (
        ["v0 = t.zeros((2, 0))", "v1 = F.bilinear(v0, v0, t.zeros((2, 0, 0)))"],
        F,
        "bilinear",
    ),
    "windows of the padding alone": (
        ["v0 = t.zeros((1, 3, 0))", "v1 = F.conv1d(v0, t.ones((1, 3, 2)), t.ones(1), padding=1)"],
        F,
        "conv1d",
    ),
    "a graph that is walked again": (
        ["v0 = values((3,), 'float32', 5).requires_grad_()", "v1 = v0 * 2", *["v1.sum().backward()"] * 2],
        cresset.Tensor,
        "sum",
    ),
    "a view whose history PyTorch makes anew": (
        [
            "v0 = t.arange(2).to(t.float32).reshape((2,)).requires_grad_()",
            "v1 = v0.broadcast_to((2, 2))",
            "with t.no_grad(): v0.log1p_()",
            "v1.sum().backward()",
        ],
        cresset.Tensor,
        "sum",
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED)
def test_what_pytorch_refuses_is_known_where_it_is_right(name, monkeypatch):
    steps, place, function = REFUSED[name]
    pair = lockstep.Lockstep([torch, cresset])
    why, kept = programs.replay(pair, steps)
    assert kept == steps
    assert programs.judged(pair, [torch, cresset], steps, why)[2]
    right = getattr(place, function)

    def wrong(*given, out=None, **named):
        result = (right(*given, **named) + 1) * 2
        return result if out is None else out.resize_(result.shape).copy_(result)

    monkeypatch.setattr(place, function, wrong)
    assert programs.judged(pair, [torch, cresset], steps, why)[2] is None


def test_the_jacobian_of_nothing_has_the_class_of_what_there_is_none_of(monkeypatch):
    steps = ["v0 = t.ones((2, 0)).as_subclass(Tagged) * 2", "v1 = t.autograd.functional.jacobian(lambda x: x * x, v0)"]
    pair = lockstep.Lockstep([torch, cresset])
    why, _ = programs.replay(pair, steps)
    assert programs.judged(pair, [torch, cresset], steps, why)[2]
    right = cresset.autograd.functional.jacobian
    monkeypatch.setattr(
        cresset.autograd.functional, "jacobian", lambda *given: right(*given).as_subclass(cresset.Tensor)
    )
    assert programs.judged(pair, [torch, cresset], steps, why)[2] is None


def off(function, by):
    """The function with each result too large by a part of it."""
    return lambda *given, **named: function(*given, **named) * (1 + by)


def one_off(function, by):
    """The function with its first element too large by a part of it."""

    def spoiled(*given, **named):
        result = function(*given, **named)
        first = cresset.zeros_like(result)
        first.view(-1)[0] = by
        return result * (1 + first)

    return spoiled


class WithoutTheMean(cresset.autograd.Function):
    """layer_norm whose derivative forgets that the mean depends on the input."""

    @staticmethod
    def forward(ctx, x, shape):
        scale = (x.var(-1, correction=0, keepdim=True) + 1e-5).rsqrt()
        y = (x - x.mean(-1, keepdim=True)) * scale
        ctx.save_for_backward(y, scale)
        return y

    @staticmethod
    def backward(ctx, grad):
        y, scale = ctx.saved_tensors
        return scale * (grad - y * (grad * y).mean(-1, keepdim=True)), None


class WithoutTheSpread(WithoutTheMean):
    """layer_norm whose derivative forgets that the scale depends on the input."""

    @staticmethod
    def backward(ctx, grad):
        _, scale = ctx.saved_tensors
        return scale * (grad - grad.mean(-1, keepdim=True)), None


NORM = ["v0 = values((3, 4), '{0}', 5)", "v1 = F.layer_norm(v0, (4,))"]
CANCELED = ROUNDING["a product that its bias cancels, both of their own"]
GRADIENT = [
    "v0 = values((3, 4), 'float32', 5).requires_grad_()",
    "v1 = F.layer_norm(v0, (4,))",
    "v2 = t.autograd.grad((v1 * values((3, 4), 'float32', 3)).sum(), v0)[0]",
]
HOOKED = [
    "v0 = values((3, 4), 'float32', 5).requires_grad_()",
    "v0.register_hook(hook('h', 'say'))",
    "v1 = F.layer_norm(v0, (4,))",
    "t.autograd.grad((v1 * values((3, 4), 'float32', 3)).sum(), v0)",
]
BATCHED = ["v0 = values((4, 3), 'float32', 2)", "v1 = F.batch_norm(v0, None, None, training=True)"]
SHRUNK = ["v0 = t.linspace(0.05, 1, 8, dtype=t.{0})", "v1 = F.tanhshrink(v0)"]
ATTENDED = [
    "v0 = values((2, 4, 3), 'float64', 5).requires_grad_()",
    "v1 = F.scaled_dot_product_attention(v0, v0, v0)",
    "v2 = t.autograd.grad((v1 * v1).sum(), v0)[0]",
]
SPOILED = {
    "attention and its gradient in float64": ("scaled_dot_product_attention", lambda f: one_off(f, 1e-11), ATTENDED),
    "each element of a normalization": ("layer_norm", lambda f: off(f, 1e-4), [x.format("float32") for x in NORM]),
    "one element of a normalization": ("layer_norm", lambda f: one_off(f, 1e-4), [x.format("float32") for x in NORM]),
    "a normalization in float64": ("layer_norm", lambda f: off(f, 1e-12), [x.format("float64") for x in NORM]),
    "a normalization in half precision": ("layer_norm", lambda f: off(f, 2e-2), [x.format("float16") for x in NORM]),
    "a product before its bias cancels it": ("layer_norm", lambda f: off(f, 1e-4), CANCELED),
    "batch_norm": ("batch_norm", lambda f: one_off(f, 1e-4), BATCHED),
    "a difference that loses digits": ("tanhshrink", lambda f: off(f, 1e-4), [x.format("float32") for x in SHRUNK]),
    "such a difference in float64": ("tanhshrink", lambda f: off(f, 1e-10), [x.format("float64") for x in SHRUNK]),
    "a gradient without the mean": ("layer_norm", lambda f: WithoutTheMean.apply, GRADIENT),
    "a gradient without the spread": ("layer_norm", lambda f: WithoutTheSpread.apply, GRADIENT),
    "such a gradient in a hook": ("layer_norm", lambda f: WithoutTheMean.apply, HOOKED),
}


@pytest.mark.parametrize("name", SPOILED)
def test_a_small_mistake_is_a_difference(name, monkeypatch):
    function, spoil, steps = SPOILED[name]
    assert difference(steps) is None
    monkeypatch.setattr(F, function, spoil(getattr(F, function)))
    assert difference(steps) is not None


def test_mistakes_anywhere_in_random_programs_are_found():
    """One element of one result of a random program is wrong in its fourth digit (float64: in its tenth)."""
    tried = found = 0
    for number in range(120):
        spoiled, why = program_with_mistake(number)
        tried += spoiled
        found += spoiled and why is not None
    assert tried > 20
    assert found == tried


def program_with_mistake(number):
    """Run a random program, spoil one element that its last step made, and look: (whether there was one, the
    difference).
    """
    pair = lockstep.Lockstep([torch, cresset])
    rng = random.Random(f"mistakes/{number}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        maker = programs.Maker(rng, pair.lead)
        for _ in range(rng.randint(5, 15)):
            before = {id(x) for x in pair.lead.tensors().values()}
            if pair.step(maker.line()):
                return False, None  # a known difference
        ours = pair.sides[1]
        for name, tensor in ours.tensors().items():
            looks = ours.looks(tensor)
            wrong = {"float32": 1e-4, "float64": 1e-10}.get(looks["dtype"])
            if wrong is None or id(pair.lead.tensors()[name]) in before or not tensor.numel():
                continue
            elements = memory(tensor, looks)  # so that no version counts it
            first = (0,) * elements.ndim
            if 1e-3 < abs(elements[first]) < 1e6:
                elements[first] *= 1 + wrong
                return True, pair.look()
    return False, None
