"""Exported files run in ONNX Runtime and give what the model gives, at the sizes of the example and at others."""

import inspect
import io
import math

import pytest

import cresset
import cresset.nn.functional as F
from cresset import nn

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def run(content, inputs):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    return session.run(None, {name: t.numpy() for name, t in zip(names, inputs, strict=False)})


def check(model, example, others=(), *, free=None, opset=18, tolerance=1e-4):
    """Export with the example, check the file, and compare on all inputs. `free` maps the number of an input to its
    free dimensions.
    """
    if isinstance(model, nn.Module):
        model.eval()
    names = [f"in{k}" for k in range(len(example))]
    axes = {f"in{k}": dict(dims.items()) for k, dims in (free or {}).items()}
    file = io.BytesIO()
    cresset.onnx.export(model, tuple(example), file, input_names=names, dynamic_axes=axes, opset_version=opset)
    onnx.checker.check_model(onnx.load_from_string(file.getvalue()), full_check=True)
    for inputs in (example, *others):
        with cresset.no_grad():
            wanted = cresset.pytree.tree_leaves(model(*inputs))
        for got, want in zip(
            run(file.getvalue(), inputs), [w for w in wanted if isinstance(w, cresset.Tensor)], strict=True
        ):
            got = cresset.from_numpy(got)
            assert got.dtype == want.dtype and got.shape == want.shape, (got.dtype, want.dtype, got.shape, want.shape)
            assert cresset.allclose(got.double(), want.double(), rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.fixture(autouse=True)
def seed():
    cresset.manual_seed(0)


def floats(*shape):
    return cresset.randn(shape)


# ---------------------------------------------------------------- layers, with a free batch

LAYERS = {
    "linear": (lambda: nn.Linear(6, 4), (6,)),
    "linear without bias": (lambda: nn.Linear(6, 4, bias=False), (3, 6)),
    "bilinear pointwise": (lambda: nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 2), nn.Softmax(-1)), (6,)),
    "conv1d": (lambda: nn.Conv1d(3, 5, 3, padding=1, dilation=1), (3, 9)),
    "conv1d same": (lambda: nn.Conv1d(3, 5, 4, padding="same"), (3, 9)),
    "conv2d": (lambda: nn.Conv2d(4, 6, 3, stride=2, padding=(1, 0), groups=2), (4, 9, 8)),
    "conv3d": (lambda: nn.Conv3d(2, 3, 2), (2, 4, 5, 6)),
    "conv reflect": (lambda: nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect"), (2, 5, 6)),
    "conv circular": (lambda: nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular"), (2, 5, 6)),
    "transposed": (lambda: nn.ConvTranspose2d(4, 2, 3, stride=2, padding=1, output_padding=1), (4, 5, 6)),
    "batch norm": (lambda: nn.BatchNorm2d(3), (3, 4, 5)),
    "batch norm 1d": (lambda: nn.BatchNorm1d(3), (3,)),
    "batch norm without averages": (lambda: nn.BatchNorm2d(3, track_running_stats=False), (3, 4, 5)),
    "layer norm": (lambda: nn.LayerNorm((4, 5)), (3, 4, 5)),
    "layer norm plain": (lambda: nn.LayerNorm(5, elementwise_affine=False), (3, 5)),
    "group norm": (lambda: nn.GroupNorm(2, 4), (4, 3, 5)),
    "instance norm": (lambda: nn.InstanceNorm2d(3, affine=True), (3, 4, 5)),
    "rms norm": (lambda: nn.RMSNorm(5), (3, 5)),
    "max pool": (lambda: nn.MaxPool2d(3, stride=2, padding=1), (2, 7, 8)),
    "max pool ceil": (lambda: nn.MaxPool2d(2, ceil_mode=True), (2, 7, 7)),
    "max pool indices": (lambda: nn.MaxPool2d(2, return_indices=True), (2, 6, 8)),
    "max pool 1d": (lambda: nn.MaxPool1d(2), (2, 8)),
    "avg pool": (lambda: nn.AvgPool2d(2, padding=1), (2, 6, 8)),
    "avg pool without pads": (lambda: nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False), (2, 6, 8)),
    "adaptive avg": (lambda: nn.AdaptiveAvgPool2d(1), (2, 6, 8)),
    "adaptive avg parts": (lambda: nn.AdaptiveAvgPool2d((3, 2)), (2, 6, 8)),
    "adaptive max": (lambda: nn.AdaptiveMaxPool2d(1), (2, 6, 8)),
    "flatten": (lambda: nn.Flatten(), (2, 3, 4)),
    "unflatten": (lambda: nn.Unflatten(1, (2, 3)), (6, 4)),
    "pixel shuffle": (lambda: nn.PixelShuffle(2), (4, 3, 3)),
    "pixel unshuffle": (lambda: nn.PixelUnshuffle(2), (1, 4, 6)),
    "upsample nearest": (lambda: nn.Upsample(scale_factor=2), (2, 3, 4)),
    "upsample bilinear": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), (2, 3, 4)),
    "zero pad": (lambda: nn.ZeroPad2d((1, 2, 0, 1)), (2, 3, 4)),
    "reflection pad": (lambda: nn.ReflectionPad2d(1), (2, 3, 4)),
    "replication pad": (lambda: nn.ReplicationPad2d(1), (2, 3, 4)),
    "dropout": (lambda: nn.Dropout(0.5), (6,)),
    "prelu": (lambda: nn.PReLU(3), (3, 4)),
    "lstm": (lambda: nn.LSTM(4, 5, num_layers=2, bidirectional=True, batch_first=True), (6, 4)),
    "gru": (lambda: nn.GRU(4, 5, batch_first=True), (6, 4)),
    "rnn relu": (lambda: nn.RNN(4, 5, nonlinearity="relu", batch_first=True), (6, 4)),
    "gru without bias": (lambda: nn.GRU(4, 5, bias=False, batch_first=True), (6, 4)),
    "encoder layer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (5, 8)),
    "encoder": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True),
        2), (5, 8)),
    "local response": (lambda: nn.LocalResponseNorm(2), (4, 3, 5)),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layers_agree_at_any_batch(name):
    make, shape = LAYERS[name]
    check(make(), [floats(2, *shape)], [[floats(5, *shape)], [floats(1, *shape)]], free={0: {0: "n"}})


@pytest.mark.parametrize("opset", [14, 15, 16, 17, 18, 19, 20, 21, 22, 23])
def test_opsets_from_14_on(opset):
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.BatchNorm2d(4),
        nn.GELU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(36, 8),
        nn.LayerNorm(8),
        nn.GELU("tanh"),
        nn.Softmax(-1),
    )
    check(model, [floats(2, 3, 8, 8)], [[floats(5, 3, 8, 8)]], free={0: {0: "n"}}, opset=opset)
    check(
        lambda x: (x.mean(1), x.amax((0, 1)), x.std(1), x.prod(1), x.norm(dim=1)),
        [floats(2, 5)],
        [[floats(4, 5)]],
        free={0: {0: "n"}},
        opset=opset,
    )


@pytest.mark.parametrize("name", """ReLU ReLU6 Sigmoid Tanh GELU SiLU Mish ELU SELU CELU LeakyReLU Hardtanh Hardswish Hardsigmoid Softplus Softsign Tanhshrink
    Softshrink Hardshrink LogSigmoid Softmin GLU Threshold""".split())  # fmt: skip  # noqa: E501
def test_activations(name):
    make = {"Softmin": lambda: nn.Softmin(-1), "Threshold": lambda: nn.Threshold(0.1, 20.0)}.get(
        name, lambda: getattr(nn, name)()
    )
    check(make(), [floats(2, 6) * 3], [[floats(5, 6) * 3]], free={0: {0: "n"}})


# ---------------------------------------------------------------- functions

FUNCTIONS = {
    "arithmetic": lambda x: (x + 1, 2 - x, x * 0.5, 1 / (x + 9), x**3, x**0.5, -x, x // 2, x % 3, x.abs() ** x),
    "compared": lambda x: (x > 0, x <= 0.5, x == x, x != 0, (x > 0) & (x < 1), ~(x > 0), (x > 0) | (x < -1),
        (x > 0) ^ (x < 1)),
    "exponentials": lambda x: (x.exp(), x.abs().log(), x.abs().sqrt(), x.abs().rsqrt(), x.expm1(), x.abs().log1p(),
        x.abs().log2(), x.erf(), x.exp2()),
    "angles": lambda x: (x.sin(), x.cos(), x.tan(), x.tanh(), x.sinh(), x.cosh(), x.atan(), x.atan2(x + 2)),
    "rounding": lambda x: (x.floor(), x.ceil(), x.round(), x.trunc(), x.frac(), x.sign()),
    "chosen": lambda x: (x.clamp(-1, 1), x.clamp(min=0), cresset.where(x > 0, x, 0.0), cresset.maximum(x, -x),
        cresset.minimum(x, x * 2), x.masked_fill(x > 0, 7.0), x.nan_to_num()),
    "sums": lambda x: (x.sum(), x.sum(0), x.sum(-1, keepdim=True), x.mean((0, 1)), x.prod(1), x.var(1),
        x.std(1, unbiased=False), x.logsumexp(1), x.norm(), x.norm(1, dim=1)),
    "extremes": lambda x: (x.max(), x.max(1), x.min(0), x.argmax(1), x.argmin(), x.amax(1), x.amin((0, 1)),
        x.aminmax(dim=1), x.topk(2, 1)),
    "truths": lambda x: ((x > 0).all(), (x > 0).any(1), (x > 0).sum(), x.count_nonzero(1), x.isnan(), x.isinf()),
    "ordered": lambda x: (x.sort(1), x.argsort(1, descending=True), x.cumsum(1), x.flip(0, 1), x.roll(1, 1),
        x.kthvalue(2, 1)),
    "views": lambda x: (x.view(-1), x.reshape(-1, 2, 2), x.t(), x.unsqueeze(0), x.unsqueeze(-1).squeeze(-1),
        x.permute(1, 0), x[None].expand(3, -1, -1), x.flatten()),
    "parts": lambda x: (*x.chunk(2, 1), *x.split(3, 1), *x.split([1, 3], 1), *x.unbind(1), x.narrow(1, 1, 2),
        x.select(1, -1)),
    "joined": lambda x: (cresset.cat([x, x * 2], 1), cresset.cat([x, x]), cresset.stack([x, -x], 1), x.repeat(2, 3),
        cresset.tile(x, (2,)), x.repeat_interleave(2, 1)),
    "indexed": lambda x: (x[0], x[:, 1], x[:, -1], x[1:], x[:-1, ::2], x[..., None], x[:, 1:3, None], x[-2:],
        x[:, [0, 2]], x[cresset.tensor([1, 0])], x[:, cresset.tensor([3, 0])], x[0, 1]),
    "advanced": lambda x: (x[cresset.tensor([0, 1]), cresset.tensor([2, 3])],
        x[cresset.tensor([[0], [1]]), cresset.tensor([0, 3])],
        x[None][:, cresset.tensor([0, 1]), cresset.tensor([1, 1])]),
    "gathered": lambda x: (x.gather(1, x.argsort(1)), x.index_select(1, cresset.tensor([2, 0])),
        x.scatter(1, x.argsort(1), x), cresset.take(x, cresset.tensor([0, 5]))),
    "masks": lambda x: (x[x > 0], cresset.masked_select(x, x > 0), (x > 0).nonzero()),
    "triangles": lambda x: ((x @ x.t()).tril(), (x @ x.t()).triu(1), cresset.ones(x.shape[0], x.shape[0]).tril()),
    "made": lambda x: (cresset.zeros(x.shape[0], 3), cresset.ones_like(x), x.new_full((2, x.shape[0]), 5.0),
        cresset.arange(x.shape[0]), cresset.arange(x.size(0), dtype=cresset.float32) / x.size(0),
        cresset.eye(x.shape[0]), cresset.linspace(0, 1, x.shape[0])),
    "products": lambda x: (x @ x.t(), cresset.einsum("ij,kj->ik", x, x), cresset.einsum("ij->j", x),
        cresset.addmm(x, x @ x.t(), x, beta=0.5, alpha=2), x.matmul(cresset.ones(4)), cresset.bmm(x[None], x.t()[None]),
        cresset.outer(x[0], x[1]), F.linear(x, cresset.ones(3, 4))),
    "softmaxes": lambda x: (x.softmax(0), F.log_softmax(x, 1), F.normalize(x), F.cosine_similarity(x, x + 1),
        F.pairwise_distance(x, x + 1)),
    "casts": lambda x: (x.double(), x.long(), x.to(cresset.float16).float(), x.bool(), x.int() + x, (x > 0).float() * 2,
        x.long() / 2, x.long() * 1.5, x.long() // 2, x.type_as(x)),
    "sizes": lambda x: (x * x.shape[0], x / math.sqrt(x.shape[0]), x + x.numel(), x.sum() / len(x),
        x.view(x.shape[0], -1, 2), x.reshape(x.shape[0] * 2, -1), x.expand(2, *x.shape), x[: x.shape[0] // 2],
        x[x.shape[0] - 1]),
    "losses": lambda x: (F.mse_loss(x, x * 2), F.smooth_l1_loss(x, x * 2),
        F.binary_cross_entropy_with_logits(x, (x > 0).float()), F.cross_entropy(x, cresset.zeros(len(x)).long())),
    "padded": lambda x: (F.pad(x, (1, 2)), F.pad(x, (1, 0, 2, 1), value=3.0), F.pad(x[None], (1, 1), mode="reflect"),
        F.pad(x, (-1, 0)), F.one_hot(x.abs().long().clamp(max=3), 4)),
    "moments": lambda x: (cresset.var_mean(x, 1), cresset.std_mean(x, 0), x.var()),
    "windows": lambda x: (x.unfold(1, 2, 1), x.diagonal(), cresset.diag_embed(x),
        F.unfold(x[None, None], (2, 2))) if x.shape[0] == 4 else x.unfold(1, 2, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_with_fixed_sizes(name):
    check(FUNCTIONS[name], [floats(4, 4)])


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in ("windows",)])
def test_functions_with_a_free_size(name):
    check(FUNCTIONS[name], [floats(4, 4)], [[floats(7, 4)], [floats(3, 4)]], free={0: {0: "n"}})


INTEGERS = {
    "arithmetic": lambda i: (i + 1, i * 2, i - 3, i // 2, i % 3, -i, i / 2, i * 0.5, i.abs(), i.sign(), i.sum(),
        i.float().mean(), i.clamp(0, 2), i.max(), i == 1, i**2),
    "truths": lambda i: ((i > 0) > (i > 1), (i > 0).clamp(min=1), (i > 0).amax(0), cresset.where(i > 1, i > 2, i < 0),
        (i > 0).masked_fill(i > 3, False), cresset.maximum(i > 0, i > 1)),
    "bits": lambda i: (i & 1, i | 2, i ^ 3, ~i),
}  # fmt: skip


@pytest.mark.parametrize("name", INTEGERS)
def test_functions_of_integers(name):
    check(
        INTEGERS[name],
        [cresset.tensor([[-3, -1, 2], [5, 0, 7]])],
        [[cresset.tensor([[1, -7, 3]] * 4)]],
        free={0: {0: "n"}},
    )


# ---------------------------------------------------------------- more, with the free dimensions that each has


class With(nn.Module):
    """A function of modules and inputs."""

    def __init__(self, function, *modules):
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(modules)

    def forward(self, *args):
        return self.function(*self.parts, *args)


def ids(*shape):
    return cresset.randint(0, 10, shape)


def rotated(x):
    angles = cresset.outer(cresset.arange(x.shape[1]).float(), 1 / (10000 ** (cresset.arange(0, 4, 2).float() / 4)))
    even, odd = x[..., ::2], x[..., 1::2]
    return cresset.stack(
        [even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos()], -1
    ).flatten(-2)


def masked_mean(x, mask):
    return (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


def decoded(transformer, source, target):
    return transformer(source, target, tgt_mask=nn.Transformer.generate_square_subsequent_mask(target.shape[1]))


N, NT = {0: "n"}, {0: "n", 1: "t"}
# name: (model, shapes of the example, shapes of another input, free dimensions of each input); a function makes inputs
# that are not plain floats
MORE = {
    "bag of words": (lambda: nn.EmbeddingBag(10, 3), [lambda: ids(2, 4)], [lambda: ids(5, 4)], [N]),
    "bags by offsets": (lambda: With(lambda bag, i, o: bag(i, o), nn.EmbeddingBag(10, 3, mode="sum")),
        [lambda: ids(8), lambda: cresset.tensor([0, 2, 5])], [lambda: ids(11), lambda: cresset.tensor([0, 1, 2, 7])],
        [{0: "t"}, N]),
    "bilinear": (lambda: nn.Bilinear(3, 4, 5), [(2, 3), (2, 4)], [(6, 3), (6, 4)], [N, N]),
    "grid sample": (lambda: lambda x, grid: F.grid_sample(x, grid.tanh(), align_corners=False),
        [(2, 3, 4, 5), (2, 6, 7, 2)], [(3, 3, 4, 5), (3, 6, 7, 2)], [N, N]),
    "affine grid": (lambda: lambda t: F.affine_grid(t, (t.shape[0], 3, 4, 5), align_corners=False), [(2, 2, 3)],
        [(3, 2, 3)], [N]),
    "unfold": (lambda: nn.Unfold(2), [(2, 3, 4, 5)], [(3, 3, 4, 5)], [N]),
    "fold": (lambda: nn.Fold((4, 5), 2), [(2, 12, 12)], [(3, 12, 12)], [N]),
    "adaptive mean, uneven": (lambda: nn.AdaptiveAvgPool2d(3), [(2, 3, 7, 5)], [(3, 3, 7, 5)], [N]),
    "adaptive max, uneven": (lambda: nn.AdaptiveMaxPool2d(3), [(2, 3, 7, 5)], [(3, 3, 7, 5)], [N]),
    "power mean pool": (lambda: nn.LPPool2d(2, 2), [(2, 3, 4, 6)], [(3, 3, 4, 6)], [N]),
    "max unpool": (lambda: With(lambda pool, back, x: back(*pool(x)), nn.MaxPool2d(2, return_indices=True),
        nn.MaxUnpool2d(2)), [(2, 3, 4, 4)], [(3, 3, 4, 4)], [N]),
    "channel shuffle": (lambda: nn.ChannelShuffle(2), [(2, 4, 4, 6)], [(3, 4, 4, 6)], [N]),
    "transformer": (lambda: With(decoded, nn.Transformer(8, 2, 1, 1, 16, batch_first=True)), [(2, 5, 8), (2, 4, 8)],
        [(3, 7, 8), (3, 6, 8)], [{0: "n", 1: "s"}, NT]),
    "padding mask": (lambda: With(lambda encoder, x, m: encoder(x, src_key_padding_mask=m > 9),
        nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)), [(2, 5, 8),
        (2, 5)], [(1, 3, 8), (1, 3)], [NT, NT]),
    "weight norm": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(3, 4)), [(2, 3)], [(4, 3)], [N]),
    "spectral norm": (lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(3, 4)), [(2, 3)], [(4, 3)], [N]),
    "cells": (lambda: With(lambda a, b, c, x, h: (a(x, (h, h)), b(x, h), c(x, h)), nn.LSTMCell(3, 4), nn.GRUCell(3, 4),
        nn.RNNCell(3, 4)), [(2, 3), (2, 4)], [(4, 3), (4, 4)], [N, N]),
    "given state": (lambda: With(lambda lstm, x, h, c: lstm(x, (h, c)), nn.LSTM(3, 4)),
        [(5, 2, 3), (1, 2, 4), (1, 2, 4)], [(7, 3, 3), (1, 3, 4), (1, 3, 4)], [{0: "t", 1: "n"}, {1: "n"}, {1: "n"}]),
    "one sequence": (lambda: nn.LSTM(3, 4), [(5, 3)], [(7, 3)], [N]),
    "distances": (lambda: lambda a: cresset.cdist(a, a + 1), [(4, 3)], [(6, 3)], [N]),
    "rotary": (lambda: rotated, [(2, 5, 4)], [(3, 8, 4)], [NT]),
    "relative places": (lambda: lambda x: (cresset.arange(x.shape[0])[None] - cresset.arange(x.shape[0])[:,
        None]).clamp(-2, 2) + 2, [(4,)], [(9,)], [N]),
    "masked mean": (lambda: masked_mean, [(2, 5, 4), (2, 5)], [(3, 6, 4), (3, 6)], [NT, NT]),
    "shared heads": (lambda: lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True),
        [(2, 4, 5, 8), (2, 2, 5, 8)], [(1, 4, 3, 8), (1, 2, 3, 8)], [{0: "n", 2: "t"}, {0: "n", 2: "t"}]),
    "windows": (lambda: lambda x: x.view(x.shape[0], x.shape[1] // 2, 2, x.shape[2] // 2, 2, 3).permute(0, 1, 3, 2, 4,
        5).reshape(-1, 4, 3), [(1, 8, 8, 3)], [(2, 4, 6, 3)], [{0: "n", 1: "h", 2: "w"}]),
    "mesh": (lambda: lambda x: cresset.meshgrid(cresset.arange(x.shape[0]), cresset.arange(x.shape[1]), indexing="ij"),
        [(3, 4)], [(5, 6)], [{0: "h", 1: "w"}]),
    "one of each row": (lambda: lambda x, i: x[cresset.arange(x.shape[0]), i.argmax(-1)], [(3, 4, 2), (3, 4)],
        [(5, 6, 2), (5, 6)], [NT, NT]),
    "half of it": (lambda: lambda x: x[:, : x.shape[1] // 2] * x.shape[1] ** -0.5, [(3, 4)], [(5, 9)], [NT]),
    "rounded up": (lambda: lambda x: cresset.zeros(math.ceil(x.shape[0] / 4)), [(9,)], [(17,)], [N]),
    "to a multiple": (lambda: lambda x: F.pad(x, (0, 0, 0, -x.shape[0] % 4)), [(5, 2)], [(11, 2)], [N]),
    "two halves": (lambda: lambda x: x.chunk(2, 0), [(8,)], [(11,)], [N]),
    "norms": (lambda: lambda x: (cresset.linalg.norm(x, dim=-1), cresset.linalg.vector_norm(x, 3, dim=1),
        x.norm(p=math.inf, dim=0), cresset.dist(x, x + 1)), [(5, 2)], [(8, 2)], [N]),
    "running": (lambda: lambda x: (x.cumprod(0), x.cummin(0), x.cummax(1), x.logcumsumexp(1)), [(5, 3)], [(8, 3)], [N]),
    "middle": (lambda: lambda x: (x.median(), x.median(0), x.quantile(0.3, 1)), [(5, 3)], [(8, 3)], [N]),
    "formulas": (lambda: lambda x: (x.sigmoid().logit(), cresset.logaddexp(x, x + 1), x.tanh().erfinv(),
        x.sigmoid().xlogy(x.sigmoid()), x.sinc(), cresset.lerp(x, x + 1, 0.3), cresset.addcmul(x, x, x, value=2.0),
        x.fmod(0.3), x.remainder(0.3)), [(3, 4)], [(5, 4)], [N]),
}  # fmt: skip


@pytest.mark.parametrize("name", MORE)
def test_models_with_free_dimensions(name):
    make, example, other, free = MORE[name]
    made = [[shape() if callable(shape) else floats(*shape) for shape in shapes] for shapes in (example, other)]
    check(make(), made[0], [made[1]], free=dict(enumerate(free)))


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
@pytest.mark.parametrize(
    "settings",
    [
        {"scale_factor": 2.0},
        {"scale_factor": 0.6},
        {"size": (5, 9)},
        {"scale_factor": 1.5, "recompute_scale_factor": True},
    ],
    ids=str,
)
def test_resizing(mode, settings):
    free = {0: {0: "n", 2: "h", 3: "w"}}
    check(lambda x: F.interpolate(x, mode=mode, **settings), [floats(2, 3, 6, 7)], [[floats(3, 3, 8, 9)]], free=free)
    if mode.startswith("bi"):
        check(lambda x: F.interpolate(x, mode=mode, antialias=True, **settings), [floats(2, 3, 6, 7)])
        check(
            lambda x: F.interpolate(x, mode=mode, align_corners=True, **settings),
            [floats(2, 3, 6, 7)],
            [[floats(3, 3, 8, 9)]],
            free=free,
        )


# ---------------------------------------------------------------- writes


def written(x):
    y = x.clone()
    y[:, 0] = 1.0
    y[0] = x[1]
    y[1:, 1:3] += 2
    y[y > 1.5] = 0.5
    y[..., -1].mul_(2)
    y.add_(1).relu_()
    z = y.view(-1)
    z[0] = 9.0
    return y, z, y.t()


def test_writes_in_place():
    check(written, [floats(3, 4)], [[floats(5, 4)]], free={0: {0: "n"}})


def views_see_writes(x):
    y = x * 1
    part, turned = y[1:], y.t()
    turned.mul_(2)
    part += 1
    out = cresset.zeros(x.shape[0], 2)
    out[:, 1] = part[0, 0]
    out.copy_(out + 1)
    return y, part, turned, out


def test_views_see_writes():
    check(views_see_writes, [floats(3, 4)], [[floats(6, 4)]], free={0: {0: "n"}})


def test_places_by_tensors_are_written():
    def model(x):
        y = x.clone()
        y[cresset.tensor([0, 2])] = 5.0
        y.index_put_((cresset.tensor([1]), cresset.tensor([3])), cresset.tensor([7.0]), accumulate=True)
        return (
            y,
            y.scatter_add(1, cresset.zeros(3, 2, dtype=cresset.long), x),
            y.index_add(0, cresset.tensor([1, 1]), x[:2]),
            y.index_fill(1, cresset.tensor([2]), 4.0),
        )

    check(model, [floats(3, 4)])


# ---------------------------------------------------------------- models


class Attention(nn.Module):
    def __init__(self, **settings):
        super().__init__()
        self.qkv, self.settings = nn.Linear(8, 24), settings

    def forward(self, x, mask=None):
        b, n, d = x.shape
        q, k, v = (t.view(b, n, 2, d // 2).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        mixed = F.scaled_dot_product_attention(
            q, k, v, attn_mask=None if mask is None else mask[:, None, None, :], **self.settings
        )
        return mixed.transpose(1, 2).reshape(b, n, d)


FREE = {0: {0: "batch", 1: "length"}}


@pytest.mark.parametrize("settings", [{}, {"is_causal": True}, {"scale": 0.3}])
def test_attention_of_any_length(settings):
    check(Attention(**settings), [floats(2, 5, 8)], [[floats(3, 9, 8)], [floats(1, 1, 8)]], free=FREE)


def test_attention_with_a_mask():
    mask = cresset.tensor([[True, True, False, True, False], [False] * 5])
    check(
        Attention(),
        [floats(2, 5, 8), mask],
        [[floats(1, 3, 8), cresset.tensor([[True, False, True]])]],
        free={**FREE, 1: {0: "batch", 1: "length"}},
    )


def test_multihead_attention_of_any_length():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x):
            return self.attention(x, x, x)

    check(Model(), [floats(2, 5, 8)], [[floats(3, 7, 8)]], free=FREE)


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(20, 8), nn.Embedding(16, 8)
        self.norm, self.qkv, self.head = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 20, bias=False)
        self.head.weight = self.words.weight
        self.register_buffer("mask", cresset.tril(cresset.ones(16, 16)).view(1, 1, 16, 16))

    def forward(self, ids):
        b, t = ids.size()
        x = self.words(ids) + self.places(cresset.arange(0, t, dtype=cresset.long, device=ids.device))
        q, k, v = self.qkv(self.norm(x)).split(8, dim=2)
        q, k, v = (s.view(b, t, 2, 4).transpose(1, 2) for s in (q, k, v))
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
        x = x + (F.softmax(scores, dim=-1) @ v).transpose(1, 2).contiguous().view(b, t, 8)
        return self.head(x[:, [-1], :])


def test_a_language_model_of_any_length():
    ids = cresset.randint(0, 20, (2, 5))
    check(Gpt(), [ids], [[cresset.randint(0, 20, (1, 16))], [cresset.randint(0, 20, (4, 1))]], free=FREE)


def test_a_language_model_at_its_longest():
    check(Gpt(), [cresset.randint(0, 20, (2, 16))], [[cresset.randint(0, 20, (3, 4))]], free=FREE)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 6, batch_first=True, num_layers=2)

    def forward(self, x):
        outputs, (h, c) = self.lstm(x)
        return outputs[:, -1], outputs.mean(1), h, c


def test_a_recurrent_model_of_any_length():
    check(Reader(), [floats(2, 5, 4)], [[floats(3, 11, 4)], [floats(1, 1, 4)]], free=FREE)


def test_pictures_of_any_size():
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 8, 3, padding=1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 2),
    )
    check(model, [floats(1, 3, 32, 32)], [[floats(2, 3, 47, 61)]], free={0: {0: "n", 2: "height", 3: "width"}})


def test_pictures_that_are_halved_and_doubled():
    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down, self.middle, self.up = (
                nn.Conv2d(1, 4, 3, padding=1),
                nn.Conv2d(4, 4, 3, padding=1),
                nn.ConvTranspose2d(4, 4, 2, stride=2),
            )

        def forward(self, x):
            a = self.down(x).relu()
            b = self.middle(F.max_pool2d(a, 2))
            c = cresset.cat(
                [
                    self.up(b),
                    F.interpolate(b, scale_factor=2, mode="nearest"),
                    F.interpolate(b, size=a.shape[2:], mode="bilinear"),
                    a,
                ],
                1,
            )
            return c.flatten(2).transpose(1, 2)

    check(UNet(), [floats(1, 1, 16, 16)], [[floats(2, 1, 24, 40)]], free={0: {0: "n", 2: "height", 3: "width"}})


@pytest.mark.parametrize(
    "name", ["resnet18", "mobilenet_v3_small", "vit_b_16", "efficientnet_b0", "squeezenet1_1", "convnext_tiny"]
)
def test_vision_models(name):
    size = 224 if name == "vit_b_16" else 64
    model = getattr(cresset.vision.models, name)(weights=None)
    check(model, [floats(1, 3, size, size)], [[floats(2, 3, size, size)]], free={0: {0: "n"}}, tolerance=1e-3)


def test_the_signature_is_pytorchs():
    torch = pytest.importorskip("torch")
    ours, theirs = (inspect.signature(lib.onnx.export).parameters for lib in (cresset, torch))
    assert list(ours) == list(theirs)
    for name, parameter in theirs.items():
        assert ours[name].kind == parameter.kind
        assert str(ours[name].default).rpartition(".")[2] == str(parameter.default).rpartition(".")[2], name


def test_half_precision():
    check(nn.Linear(4, 3).half(), [floats(2, 4).half()], tolerance=1e-2)


def test_verify_compares_with_the_model():
    program = cresset.onnx.export(nn.Linear(4, 3), (floats(2, 4),), verify=True)
    assert program(floats(2, 4))[0].shape == (2, 3)
    assert program.model_proto.graph.node[0].op_type == "Gemm"


def test_weights_in_a_file_beside(tmp_path):
    model, x = nn.Linear(64, 32), floats(2, 64)
    program = cresset.onnx.export(model, (x,))
    program.save(tmp_path / "m.onnx", external_data=True)
    assert (tmp_path / "m.onnx.data").stat().st_size >= 4 * 64 * 32
    onnx.checker.check_model(str(tmp_path / "m.onnx"))
    (got,) = run(str(tmp_path / "m.onnx"), [x])
    assert cresset.allclose(cresset.from_numpy(got), model(x), atol=1e-5)
