"""The same small programs on nested tensors give the same components in cresset and in PyTorch."""

import warnings

import pytest

import cresset

torch = pytest.importorskip("torch")


def near(a, b):
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(near, a, b))
    return a == pytest.approx(b, rel=1e-5, abs=1e-6)


def lists(value):
    if getattr(value, "is_nested", False):
        return [item.detach().tolist() for item in value.unbind()]
    return value.detach().tolist()


PROGRAMS = {
    "add number": lambda t, n: n + 1,
    "add": lambda t, n: n + n,
    "mul row": lambda t, n: n * t.tensor([1.0, 2.0, 3.0]),
    "relu": lambda t, n: (n - 3).relu(),
    "sin": lambda t, n: n.sin(),
    "gelu": lambda t, n: t.nn.functional.gelu(n),
    "linear": lambda t, n: t.nn.functional.linear(n, t.arange(6.0).reshape(2, 3), t.ones(2)),
    "matmul": lambda t, n: n @ t.arange(6.0).reshape(3, 2),
    "layer_norm": lambda t, n: t.nn.functional.layer_norm(n, (3,)),
    "softmax": lambda t, n: n.softmax(-1),
    "softmax ragged": lambda t, n: n.softmax(1),
    "sum ragged": lambda t, n: n.sum(1),
    "sum last": lambda t, n: n.sum(-1),
    "mean ragged": lambda t, n: n.mean(1),
    "mean": lambda t, n: n.mean(),
    "transpose": lambda t, n: n.transpose(1, 2),
    "unsqueeze": lambda t, n: n.unsqueeze(-1),
    "reshape": lambda t, n: n.reshape(2, -1, 3, 1),
    "chunk": lambda t, n: n.chunk(3, -1)[1],
    "cat": lambda t, n: t.cat([n, n], -1),
    "padded": lambda t, n: n.to_padded_tensor(-1.0),
    "padded to": lambda t, n: t.nested.to_padded_tensor(n, 0.0, (2, 5, 3)),
    "values": lambda t, n: n.values(),
    "offsets": lambda t, n: n.offsets(),
    "where": lambda t, n: t.where(n > 2, n, -n),
    "zeros_like": lambda t, n: t.zeros_like(n),
    "double": lambda t, n: n.double(),
    "embedding": lambda t, n: t.nn.functional.embedding(
        t.nested.nested_tensor([t.tensor([1, 2]), t.tensor([0])], layout=t.jagged), t.arange(12.0).reshape(3, 4)
    ),
}


def batch(t, **kwargs):
    return t.nested.nested_tensor(
        [t.arange(6.0).reshape(2, 3), t.arange(12.0).reshape(4, 3)], layout=t.jagged, **kwargs
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_jagged_tensors(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert near(*(lists(PROGRAMS[name](t, batch(t))) for t in (cresset, torch)))


@pytest.mark.parametrize("name", ["add number", "add", "relu", "linear", "softmax", "transpose", "padded", "cat"])
def test_strided_tensors(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = [
            t.nested.nested_tensor([t.arange(6.0).reshape(2, 3), t.arange(12.0).reshape(4, 3)])
            for t in (cresset, torch)
        ]
        assert near(*(lists(PROGRAMS[name](t, n)) for t, n in zip((cresset, torch), made, strict=True)))
        assert repr(made[0]) == repr(made[1])


def test_gradients():
    def program(t):
        w = t.arange(6.0).reshape(2, 3).requires_grad_()
        n = batch(t, requires_grad=True)
        (t.nn.functional.linear(n, w) ** 2).to_padded_tensor(0.0).sum().backward()
        return [lists(n.grad), lists(w.grad)]

    assert near(program(cresset), program(torch))


def test_attention():
    def program(t):
        parts = [t.arange(24.0).reshape(3, 2, 4).sin(), t.arange(40.0).reshape(5, 2, 4).cos()]
        q = t.nested.nested_tensor(parts, layout=t.jagged).transpose(1, 2)
        return lists(t.nn.functional.scaled_dot_product_attention(q, q, q))

    assert near(program(cresset), program(torch))
