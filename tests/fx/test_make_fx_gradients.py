"""make_fx of functions that differentiate: what backward computes is in the graph."""
# ruff: noqa: E501 -- a table of functions: a row a line

import pytest

import cresset
from cresset.fx.experimental.proxy_tensor import make_fx
from cresset.nn import functional as F

FIRST = cresset.tensor([[0], [1], [2], [0]])


def written_to(x, b):
    """Backward through writes to a part and to the whole."""
    z = (x * b).clone()
    z[0] = b
    z.mul_(2)
    z[1:, :2].add_(x[1:, :2])
    return z.square().sum()


CASES = {
    "used several times, broadcast": lambda x, b: (x * b + x.sin() + b).logsumexp(0).prod() + cresset.cat([x, x], 1).amax(),
    "written to in place": written_to,
    "a loss over classes": lambda x, b: F.cross_entropy(F.gelu(x * b), cresset.tensor([0, 1, 2, 0])),
    "a layer and a loss": lambda x, b: F.mse_loss(F.linear(x, cresset.stack([b, b * 2])), cresset.ones(4, 2)),
    "normalization": lambda x, b: (F.batch_norm(x, None, None, training=True) * b + F.layer_norm(x, (3,), b, b).tanh()).sum(),
    "a convolution and a pooling": lambda x, b: F.max_pool2d(F.conv2d(x[None, None], b.view(1, 1, 1, 3), padding=1), 2).sigmoid().sum(),
    "attention": lambda x, b: F.scaled_dot_product_attention((x * b)[None, None], x[None, None], x[None, None], is_causal=True).sum(),
    "an embedding": lambda x, b: (F.embedding(cresset.tensor([1, 2, 1]), x) * b).prod(),
    "sorting and a scan": lambda x, b: (x.sort(1)[0] * b).cumsum(0).max(0)[0].sum() + x.topk(2)[0].sum(),
    "pieces": lambda x, b: cresset.where(x > 0, x * b, x.exp()).clamp(-1, 1).sum() + x.gather(1, FIRST).sum(),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_graph_of_a_gradient_gives_it_for_other_inputs(name):
    def joint(x, b):
        loss = CASES[name](x, b)
        return (loss, *cresset.autograd.grad(loss, (x, b), allow_unused=True))

    def inputs(seed):
        cresset.manual_seed(seed)
        return cresset.randn(4, 3, requires_grad=True), cresset.randn(3, requires_grad=True)

    graph, other = make_fx(joint)(*inputs(0)), inputs(1)
    for expected, found in zip(joint(*other), graph(*(t.detach() for t in other)), strict=True):
        assert expected is None if found is None else cresset.allclose(expected, found, 1e-5, 1e-6)


def test_a_gradient_of_a_gradient_and_the_transforms_of_func_are_recorded():
    def curvature(x):
        (slope,) = cresset.autograd.grad(x.pow(3).sum(), x, create_graph=True)
        return cresset.autograd.grad(slope.sum(), x)[0]

    x = cresset.tensor([1.0, 2.0, 3.0])
    graph = make_fx(curvature)(cresset.ones(3, requires_grad=True))
    assert graph(x).tolist() == [6.0, 12.0, 18.0]
    assert make_fx(cresset.func.grad(lambda x: (x * x).sum()))(cresset.ones(3))(x).tolist() == [2.0, 4.0, 6.0]


def test_the_operators_of_backward_have_pytorchs_names():
    def joint(x, w):
        return cresset.autograd.grad((x @ w).sin().sum(), (x, w))

    graph = make_fx(joint)(cresset.ones(2, 3, requires_grad=True), cresset.ones(3, 2, requires_grad=True))
    called = [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]
    assert called.count("aten.mm.default") == 3 and "aten.cos.default" in called


def test_factorizations_in_backward_are_recorded():
    def joint(x):
        return cresset.autograd.grad(cresset.linalg.det(x), x)

    graph = make_fx(joint)(cresset.eye(3).requires_grad_())
    assert "aten._linalg_solve_ex.default" in [str(node.target) for node in graph.graph.nodes]
    x = cresset.tensor([[2.0, 1.0], [0.0, 3.0]])
    (found,) = make_fx(joint)(x.clone().requires_grad_())(x)
    assert cresset.allclose(found, cresset.tensor([[3.0, 0.0], [-1.0, 2.0]]))
