"""make_fx records the aten operators that PyTorch records."""

import pytest

import cresset
from cresset.fx.experimental.proxy_tensor import make_fx

torch = pytest.importorskip("torch")


def cases(t):
    F = t.nn.functional
    t.manual_seed(0)
    lin, ln, conv = (
        t.nn.Linear(4, 3),
        t.nn.LayerNorm(4),
        t.nn.Conv2d(2, 3, 3, padding=1),
    )
    emb = t.nn.Embedding(5, 4)
    x, im, ix = t.ones(2, 4), t.ones(1, 2, 6, 6), t.tensor([1, 2])
    return {
        "linear": (lambda x: F.linear(x, lin.weight, lin.bias), x),
        "relu": (lambda x: F.relu(x), x),
        "gelu": (F.gelu, x),
        "silu": (lambda x: F.silu(x), x),
        "softmax": (lambda x: F.softmax(x, -1), x),
        "log_softmax": (lambda x: F.log_softmax(x, -1), x),
        "layer_norm": (lambda x: F.layer_norm(x, (4,), ln.weight, ln.bias), x),
        "group_norm": (lambda x: F.group_norm(x, 2), im),
        "conv2d": (lambda x: F.conv2d(x, conv.weight, conv.bias, padding=1), im),
        "max_pool2d": (lambda x: F.max_pool2d(x, 2), im),
        "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), im),
        "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, 1), im),
        "matmul": (lambda x: x @ x.t(), x),
        "matmul3": (lambda x: t.matmul(x.unsqueeze(0), x.t()), x),
        "mse": (lambda x: F.mse_loss(x, x * 2), x),
        "reshape": (lambda x: x.reshape(-1), x),
        "reshape_t": (lambda x: x.t().reshape(-1), x),
        "flatten": (lambda x: x.flatten(1), im),
        "split": (lambda x: x.split(2, 1)[0], x),
        "chunk": (lambda x: x.chunk(2, 1)[1] + 1, x),
        "var": (lambda x: x.var(), x),
        "std": (lambda x: x.std(1), x),
        "mean": (lambda x: x.mean((0, 1)), x),
        "norm": (lambda x: x.norm(), x),
        "slice": (lambda x: x[:, 1:3] * 2, x),
        "where": (lambda x: t.where(x > 0, x, 0.0), x),
        "masked_fill": (lambda x: x.masked_fill(x > 0, 1.0), x),
        "embedding": (lambda i: F.embedding(i, emb.weight), ix),
        "dropout_eval": (lambda x: F.dropout(x, 0.5, False), x),
        "cat_stack": (lambda x: t.stack([t.cat([x, x]), t.cat([x, x])]), x),
        "pad": (lambda x: F.pad(x, (1, 1)), x),
        "cumsum": (lambda x: x.cumsum(0), x),
        "to": (lambda x: x.to(t.float64).float(), x),
        "expand": (lambda x: x.unsqueeze(0).expand_as(x.unsqueeze(0)), x),
        "tril": (lambda x: x.tril(), x),
        "inplace": (lambda x: x.clone().add_(1).mul_(2), x),
        "normalize": (lambda x: F.normalize(x), x),
        "interp": (lambda x: F.interpolate(x, scale_factor=2.0), im),
        "clamp": (lambda x: x.clamp(min=0), x),
        "topk": (lambda x: x.topk(2)[0], x),
        "outer": (lambda x: t.outer(x[0], x[1]), x),
        "addmm": (lambda x: t.addmm(x[0][:2], x, x.t()), x),
        "l1": (lambda x: F.l1_loss(x, x * 2), x),
        "bce": (lambda x: F.binary_cross_entropy_with_logits(x, x), x),
        "hardswish": (lambda x: F.hardswish(x), x),
        "numel": (lambda x: x.sum() / x.numel(), x),
    }


def operators(graph):
    return [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]


OURS, THEIRS = cases(cresset), cases(torch)


@pytest.mark.parametrize("name", list(OURS))
def test_a_function_is_recorded_as_in_pytorch(name):
    (ours, x), (theirs, y) = OURS[name], THEIRS[name]
    graph = make_fx(ours)(x)
    assert operators(graph) == operators(torch.fx.experimental.proxy_tensor.make_fx(theirs)(y))
    assert cresset.allclose(graph(x), ours(x), equal_nan=True)
