"""torch.export beside PyTorch: the same modules give graphs of the same operators with the same arguments, and the same
signatures.
"""

import io

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import cresset  # noqa: E402


def models(t):
    """Modules and example inputs, of one of the two libraries."""
    nn, F = t.nn, t.nn.functional

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 3, 3, padding=1, bias=False), nn.BatchNorm2d(3)

        def forward(self, x):
            return F.relu(self.norm(self.conv(x)) + x, inplace=True)

    class Resize(nn.Module):
        def forward(self, x):
            return (
                F.interpolate(x, scale_factor=2), F.interpolate(x, size=(5, 5), mode="bilinear", align_corners=False),
                F.pad(x, (1, 1)), F.avg_pool2d(x, 2),
                F.adaptive_avg_pool2d(x, 1), F.max_pool2d(x, 2, 2), F.unfold(x, 2),
            )  # fmt: skip

    class Arithmetic(nn.Module):
        def forward(self, x):
            return (
                1 - x,
                2 / x,
                x**2,
                -x,
                x % 3,
                x / 3,
                x + 1,
                3 * x,
                x.mean(),
                x.sum((0, 1)),
                x.argmax(-1),
                t.where(x > 0, x, 0.0),
                x.clamp(0, 1),
                x > 0,
                x.masked_fill(x > 0, float("-inf")).softmax(-1).nan_to_num(nan=2.0, posinf=float("inf")),
            )

    class Shapes(nn.Module):
        def forward(self, x):
            return (
                t.cat([x, x], 1), t.stack([x, x]), x.reshape(-1), x.permute(1, 0), x.transpose(0, 1), x.flatten(),
                x.unsqueeze(0), x.expand(2, 4, 4), x.repeat(2, 1),
                x.view(1, -1), t.zeros_like(x), x[:, 1:3], x[0], x[..., None], x.split([1, 3]), x.chunk(2, 1),
                x.roll(1, 0), x.tril(),
            )  # fmt: skip

    class Activations(nn.Module):
        def forward(self, x):
            return (
                F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.leaky_relu(x), F.elu(x, 0.5), F.softplus(x),
                x.tanh(), x.sigmoid(), F.softmax(x, 1), F.log_softmax(x, -1),
                F.dropout(x, 0.5, self.training), F.linear(x, x),
            )  # fmt: skip

    class Lookup(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(10, 4, padding_idx=0)

        def forward(self, i):
            return self.table(i).mean(1)

    return {
        "mlp": (nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), (t.ones(3, 4),)),
        "cnn": (
            nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1),
                nn.Flatten(), nn.Dropout(0.1), nn.Linear(4, 2)),
            (t.ones(2, 3, 8, 8),),
        ),
        "residual": (Residual(), (t.ones(2, 3, 4, 4),)),
        "resize": (Resize(), (t.ones(1, 1, 4, 4),)),
        "arithmetic": (Arithmetic(), (t.ones(4, 4),)),
        "shapes": (Shapes(), (t.ones(4, 4),)),
        "activations": (Activations(), (t.ones(4, 4),)),
        "embedding": (Lookup(), (t.zeros(2, 3, dtype=t.int64),)),
        "lstm": (nn.LSTM(3, 4, batch_first=True), (t.ones(2, 5, 3),)),
        "gru": (nn.GRU(3, 4, 2, bidirectional=True), (t.ones(5, 2, 3),)),
        "norms": (nn.Sequential(nn.LayerNorm(4), nn.GELU(), nn.GroupNorm(2, 4)), (t.ones(3, 4),)),
        "transposed": (nn.ConvTranspose2d(2, 3, 3, stride=2, output_padding=1), (t.ones(1, 2, 4, 4),)),
    }  # fmt: skip


def described(t, name, training):
    module, args = models(t)[name]
    program = t.export.export(module.train(training), args)
    nodes = []
    for node in program.graph.nodes:
        target = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
        nodes.append(
            (
                node.op,
                node.name,
                str(target),
                str(node.args),
                str({k: v for k, v in node.kwargs.items() if k not in ("device", "pin_memory")}),
            )
        )
    return (
        nodes,
        [str(s) for s in program.graph_signature.input_specs],
        [str(s) for s in program.graph_signature.output_specs],
    )


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("name", models(cresset))
@pytest.mark.filterwarnings("ignore")
def test_graphs_and_signatures_are_pytorchs(name, training):
    ours, theirs = described(cresset, name, training), described(torch, name, training)
    assert ours == theirs


def violations(t):
    """The guards that fail in calls with inputs that a program was not exported for."""

    class Sum(t.nn.Module):
        def forward(self, x, y, flag=True):
            return x + y

    batch = t.export.Dim("batch", min=2, max=8)
    run = t.export.export(
        Sum(), (t.zeros(4, 3), t.zeros(4, 3), True), dynamic_shapes={"x": {0: batch}, "y": {0: batch}, "flag": None}
    ).module()
    found = []
    for x, y, flag in [((9, 3), (9, 3), True), ((4, 2), (4, 2), True), ((4, 3), (5, 3), True), ((4, 3), (4, 3), False)]:
        with pytest.raises(AssertionError) as error:
            run(t.zeros(*x), t.zeros(*y), flag)
        found.append(str(error.value).partition("Guard failed: ")[2].partition(")")[0].partition("\n")[0].rstrip("."))
    return found


def test_the_guards_that_fail_are_pytorchs():
    ours, theirs = violations(cresset), violations(torch)
    assert [guard.partition("(")[0] for guard in ours] == [guard.partition("(")[0] for guard in theirs]


@pytest.mark.parametrize(
    "make",
    [
        lambda t: t.export.Dim("b", min=3, max=2),
        lambda t: t.export.Dim("a b"),
        lambda t: t.export.Dim("b") * -1,
        lambda t: 1 - t.export.Dim("b"),
    ],
)
def test_wrong_dims_raise_pytorchs_exceptions(make):
    with pytest.raises(Exception) as theirs:
        make(torch)
    with pytest.raises(type(theirs.value)):
        make(cresset)


def numbers(t, values):
    return [v.detach().double().numpy() if isinstance(v, t.Tensor) else v for v in values]


@pytest.mark.parametrize("name", models(cresset))
@pytest.mark.filterwarnings("ignore")
def test_pytorch_reads_files_written_here(name):
    cresset.manual_seed(0)
    module, args = models(cresset)[name]
    module.eval()
    file = io.BytesIO()
    cresset.export.save(cresset.export.export(module, args), file)
    loaded = torch.export.load(io.BytesIO(file.getvalue())).module()
    got = numbers(torch, torch.utils._pytree.tree_leaves(loaded(*(torch.from_numpy(a.numpy()) for a in args))))
    want = numbers(cresset, cresset.pytree.tree_leaves(module(*args)))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", models(torch))
@pytest.mark.filterwarnings("ignore")
def test_files_written_by_pytorch_are_read_here(name):
    torch.manual_seed(0)
    module, args = models(torch)[name]
    module.eval()
    file = io.BytesIO()
    torch.export.save(torch.export.export(module, args), file)
    loaded = cresset.export.load(io.BytesIO(file.getvalue())).module()
    got = numbers(cresset, cresset.pytree.tree_leaves(loaded(*(cresset.from_numpy(a.numpy()) for a in args))))
    want = numbers(torch, torch.utils._pytree.tree_leaves(module(*args)))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_free_sizes_go_both_ways():
    def net(t):
        class Net(t.nn.Module):
            def forward(self, x):
                return x.reshape(x.shape[0] * 2, -1), x.shape[0] * 2 + 1

        return t.export.export(Net(), (t.zeros(4, 6),), dynamic_shapes={"x": {0: t.export.Dim("batch", min=2, max=8)}})

    for writer, reader in ((torch, cresset), (cresset, torch)):
        file = io.BytesIO()
        writer.export.save(net(writer), file)
        run = reader.export.load(io.BytesIO(file.getvalue())).module()
        flat, number = run(reader.zeros(7, 6))
        assert tuple(flat.shape) == (14, 3) and number == 15
        with pytest.raises(AssertionError):
            run(reader.zeros(9, 6))
