"""Every layer beside PyTorch's: how it prints, what it starts with from the same seed, what it computes, its gradients."""

import copy
import inspect
import warnings

import pytest

import cresset
import cresset.nn.functional as F
from cresset import nn

torch = pytest.importorskip("torch")


def numbers(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


X2, X3, X4, X5 = numbers(5, 4), numbers(2, 4, 6), numbers(2, 4, 6, 6), numbers(2, 4, 6, 6, 6)
CLASSES, SCORES = torch.tensor([1, 0, 3, 2]), numbers(4, 5)
TARGET, SIGNS = torch.sigmoid(X3.flip(0)), X3.flip(0).sign()
HIDDEN = torch.triu(torch.full((2, 2), -torch.inf), 1)

# What makes the layer (nn stands for both libraries), and the inputs.
LAYERS = [
    ("nn.Linear(4, 3)", X2), ("nn.Linear(4, 3, bias=False)", X2), ("nn.Bilinear(4, 3, 2)", X2, numbers(5, 3)),
    ("nn.Linear(4, 3, dtype=torch.float64)", X2.double()), ("nn.Identity(3, a=4)", X3), ("nn.LazyLinear(3)", X2),
    ("nn.Conv1d(4, 6, 3)", X3), ("nn.Conv1d(4, 6, 3, padding='same', dilation=2)", X3),
    ("nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2)", X4),
    ("nn.Conv2d(4, 6, (3, 2), padding_mode='reflect', padding=1, bias=False)", X4),
    ("nn.Conv2d(4, 6, 4, padding='same', padding_mode='circular')", X4), ("nn.Conv3d(4, 2, 2)", X5),
    ("nn.ConvTranspose1d(4, 6, 3, stride=2)", X3), ("nn.ConvTranspose3d(4, 2, 2)", X5),
    ("nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)", X4),
    ("nn.ConvTranspose2d(4, 6, 3, stride=2)", X4, [14, 14]),
    ("nn.LazyConv1d(3, 2)", X3), ("nn.LazyConv2d(3, 2)", X4), ("nn.LazyConv3d(3, 2)", X5),
    ("nn.LazyConvTranspose1d(3, 2)", X3), ("nn.LazyConvTranspose2d(3, 2)", X4), ("nn.LazyConvTranspose3d(3, 2)", X5),
    ("nn.BatchNorm1d(4)", X3), ("nn.BatchNorm1d(4)", X2), ("nn.BatchNorm2d(4, momentum=None)", X4),
    ("nn.BatchNorm2d(4, affine=False, track_running_stats=False)", X4), ("nn.BatchNorm3d(4, bias=False)", X5),
    ("nn.LazyBatchNorm1d()", X3), ("nn.LazyBatchNorm2d()", X4), ("nn.LazyBatchNorm3d()", X5),
    ("nn.InstanceNorm1d(4)", X3), ("nn.InstanceNorm2d(4, affine=True, track_running_stats=True)", X4),
    ("nn.InstanceNorm2d(4)", X4[0]), ("nn.InstanceNorm3d(4)", X5),
    ("nn.LazyInstanceNorm1d()", X3), ("nn.LazyInstanceNorm2d()", X4), ("nn.LazyInstanceNorm3d()", X5),
    ("nn.LayerNorm(6)", X3), ("nn.LayerNorm((4, 6), bias=False)", X3), ("nn.LayerNorm((4, 6), elementwise_affine=False)", X3),
    ("nn.GroupNorm(2, 4)", X4), ("nn.GroupNorm(2, 4, affine=False)", X4), ("nn.RMSNorm(6)", X3),
    ("nn.RMSNorm(6, eps=1e-3, elementwise_affine=False)", X3), ("nn.LocalResponseNorm(2)", X4),
    ("nn.CrossMapLRN2d(3)", X4), ("nn.SyncBatchNorm(4).eval()", X4),
    ("nn.Embedding(5, 3)", CLASSES), ("nn.Embedding(5, 3, padding_idx=-2, scale_grad_by_freq=True)", CLASSES),
    ("nn.Embedding(5, 3, max_norm=1.0, norm_type=1.0)", CLASSES), ("nn.Embedding.from_pretrained(torch.ones(5, 3))", CLASSES),
    ("nn.EmbeddingBag(5, 3)", CLASSES, torch.tensor([0, 2])),
    ("nn.EmbeddingBag(5, 3, mode='max')", CLASSES, torch.tensor([0, 2])),
    ("nn.EmbeddingBag(5, 3, mode='sum', padding_idx=0)", CLASSES.view(2, 2), None, numbers(2, 2)),
    ("nn.MaxPool1d(2)", X3), ("nn.MaxPool2d((2, 3), return_indices=True)", X4), ("nn.MaxPool3d(2, ceil_mode=True)", X5),
    ("nn.AvgPool1d(2)", X3), ("nn.AvgPool2d(2, divisor_override=3)", X4), ("nn.AvgPool3d(2)", X5),
    ("nn.LPPool1d(2, 3)", X3), ("nn.LPPool2d(2, 3)", X4), ("nn.LPPool3d(2, 3)", X5),
    ("nn.AdaptiveAvgPool1d(2)", X3), ("nn.AdaptiveAvgPool2d((2, None))", X4), ("nn.AdaptiveAvgPool3d(2)", X5),
    ("nn.AdaptiveMaxPool1d(2)", X3), ("nn.AdaptiveMaxPool2d(2, True)", X4), ("nn.AdaptiveMaxPool3d(2)", X5),
    ("nn.MaxUnpool1d(2)", *torch.nn.functional.max_pool1d(X3, 2, return_indices=True)),
    ("nn.MaxUnpool2d(2)", *torch.nn.functional.max_pool2d(X4, 2, return_indices=True)),
    ("nn.MaxUnpool3d(2)", *torch.nn.functional.max_pool3d(X5, 2, return_indices=True)),
    ("nn.ConstantPad1d(2, 3.0)", X3), ("nn.ConstantPad2d((1, 2, 0, 1), 3.0)", X4), ("nn.ConstantPad3d(1, 2)", X5),
    ("nn.ZeroPad1d(1)", X3), ("nn.ZeroPad2d(1)", X4), ("nn.ZeroPad3d(1)", X5),
    ("nn.ReflectionPad1d(2)", X3), ("nn.ReflectionPad2d(2)", X4), ("nn.ReflectionPad3d(1)", X5),
    ("nn.ReplicationPad1d(2)", X3), ("nn.ReplicationPad2d(2)", X4), ("nn.ReplicationPad3d(1)", X5),
    ("nn.CircularPad1d(2)", X3), ("nn.CircularPad2d(2)", X4), ("nn.CircularPad3d(1)", X5),
    ("nn.Upsample(scale_factor=2)", X4), ("nn.Upsample(size=(3, 4), mode='bilinear', align_corners=True)", X4),
    ("nn.UpsamplingNearest2d(scale_factor=2)", X4), ("nn.UpsamplingBilinear2d(size=4)", X4),
    ("nn.Fold((2, 3), 2)", numbers(2, 8, 2)), ("nn.Unfold(2, padding=1)", X4), ("nn.PixelShuffle(2)", X4),
    ("nn.PixelUnshuffle(2)", X4), ("nn.ChannelShuffle(2)", X4), ("nn.CosineSimilarity()", X3, X3 + 1),
    ("nn.PairwiseDistance()", X3, X3 + 1), ("nn.Flatten()", X4), ("nn.Unflatten(1, (2, 2))", X4),
    ("nn.RNN(6, 3)", X3), ("nn.RNN(6, 3, 2, 'relu', bidirectional=True)", X3), ("nn.LSTM(6, 3, proj_size=2)", X3),
    ("nn.LSTM(6, 3, num_layers=2, bidirectional=True, dropout=0.5, batch_first=True)", X3), ("nn.LSTM(6, 3)", X3[0]),
    ("nn.LSTM(6, 3)", X3, (numbers(1, 4, 3), numbers(1, 4, 3))), ("nn.GRU(6, 3, bias=False)", X3),
    ("nn.GRU(6, 3, num_layers=2, bidirectional=True)", X3, numbers(4, 4, 3)),
    ("nn.RNNCell(4, 3)", X2), ("nn.RNNCell(4, 3, nonlinearity='relu')", X2[0]), ("nn.LSTMCell(4, 3)", X2),
    ("nn.GRUCell(4, 3, bias=False)", X2, numbers(5, 3)),
    ("nn.MultiheadAttention(6, 2)", X3, X3, X3), ("nn.MultiheadAttention(6, 2, bias=False, dropout=0.5)", X3[0], X3[0], X3[0]),
    ("nn.MultiheadAttention(6, 2, kdim=4, vdim=5, add_bias_kv=True, batch_first=True, add_zero_attn=True)", X3, numbers(2, 3, 4),
     numbers(2, 3, 5)),
    ("nn.TransformerEncoderLayer(6, 2, 8)", X3), ("nn.TransformerDecoderLayer(6, 2, 8)", X3, X3),
    ("nn.TransformerEncoderLayer(6, 2, 8, norm_first=True, activation='gelu')", X3, HIDDEN),
    ("nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8), 2, nn.LayerNorm(6))", X3, HIDDEN),
    ("nn.TransformerDecoder(nn.TransformerDecoderLayer(6, 2, 8), 2)", X3, X3, HIDDEN), ("nn.Transformer(6, 2, 2, 2, 8)", X3, X3 + 1),
    ("nn.AdaptiveLogSoftmaxWithLoss(4, 10, [2, 5])", numbers(6, 4), torch.tensor([0, 9, 3, 1, 5, 6])),
    ("nn.Sequential(nn.Linear(6, 2), nn.ReLU(), nn.Sequential(nn.Linear(2, 3)))", X3),
    ("nn.LinearCrossEntropyLoss(5, 5)", SCORES, CLASSES), ("nn.Dropout(0.3)", X3), ("nn.Dropout1d()", X3), ("nn.Dropout2d()", X4),
    ("nn.Dropout3d()", X5), ("nn.AlphaDropout()", X3), ("nn.FeatureAlphaDropout()", X4),
    *[(f"nn.{a}", X4) for a in (
        "Threshold(0.1, 20.0)", "Threshold(0.1, 2.0, True)", "ReLU()", "ReLU(True)", "RReLU()", "RReLU(0.1, 0.2, True)", "Hardtanh()",
        "Hardtanh(-2, 2, True)", "ReLU6()", "ReLU6(True)", "Sigmoid()", "Hardsigmoid()", "Tanh()", "SiLU()", "Mish()", "Hardswish()",
        "ELU()", "ELU(2.0, True)", "CELU()", "SELU()", "GLU()", "GELU()", "GELU('tanh')", "Hardshrink()", "LeakyReLU()",
        "LeakyReLU(0.2, True)", "LogSigmoid()", "Softplus()", "Softshrink()", "PReLU()", "PReLU(4)", "Softsign()", "Tanhshrink()",
        "Softmin(1)", "Softmax(1)", "LogSoftmax(-1)", "Softmax2d()",
    )],
    *[(f"nn.{a}", X3, TARGET) for a in (
        "L1Loss()", "MSELoss()", "MSELoss(reduction='sum')", "MSELoss(reduction='none')", "SmoothL1Loss(beta=0.5)", "HuberLoss()",
        "BCEWithLogitsLoss()", "BCEWithLogitsLoss(pos_weight=torch.ones(6) * 2)", "KLDivLoss(reduction='batchmean')",
        "PoissonNLLLoss()", "MultiLabelSoftMarginLoss()",
    )],
    ("nn.BCELoss()", torch.sigmoid(X3), TARGET), ("nn.NLLLoss()", SCORES, CLASSES), ("nn.NLLLoss2d()", SCORES, CLASSES),
    ("nn.CrossEntropyLoss()", SCORES, CLASSES), ("nn.CrossEntropyLoss(reduction='none')", X3, torch.zeros(2, 6).long()),
    ("nn.CrossEntropyLoss(torch.ones(5) * 2, ignore_index=1, label_smoothing=0.1)", SCORES, CLASSES),
    ("nn.GaussianNLLLoss()", X3, TARGET, TARGET.flip(0)), ("nn.HingeEmbeddingLoss()", X3, SIGNS), ("nn.SoftMarginLoss()", X3, SIGNS),
    ("nn.MultiLabelMarginLoss()", SCORES, torch.tensor([[0, 1, -1, 2, 3]] * 4)), ("nn.MultiMarginLoss()", SCORES, CLASSES),
    ("nn.CosineEmbeddingLoss()", SCORES, SCORES.flip(0), CLASSES.sign()),
    ("nn.MarginRankingLoss()", SCORES[0], SCORES[1], SCORES[2].sign()),
    ("nn.TripletMarginLoss()", SCORES, SCORES.flip(0), SCORES.flip(1)),
    ("nn.TripletMarginWithDistanceLoss()", SCORES, SCORES.flip(0), SCORES.flip(1)),
    ("nn.CTCLoss()", numbers(7, 2, 4).log_softmax(2), torch.tensor([[1, 2], [3, 3]]), (7, 6), (2, 2)),
]  # fmt: skip


def ours(value):
    """The same value in cresset."""
    if isinstance(value, torch.Tensor):
        return cresset.from_numpy(value.numpy().copy())
    return type(value)(ours(v) for v in value) if isinstance(value, (list, tuple)) else value


def tensors(value, kind):
    if isinstance(value, kind):
        return [value]
    return [t for v in value for t in tensors(v, kind)] if isinstance(value, (list, tuple)) else []


def assert_same(mine, theirs, what="", rtol=1e-4, atol=1e-5):
    assert str(mine.dtype) == str(theirs.dtype) and tuple(mine.shape) == tuple(theirs.shape), what
    torch.testing.assert_close(
        torch.from_numpy(mine.detach().numpy()), theirs.detach(), rtol=rtol, atol=atol, msg=lambda m: f"{what}: {m}"
    )


def make(spec):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(3)
        theirs = eval(spec, {"nn": torch.nn, "torch": torch})
        cresset.manual_seed(3)
        mine = eval(spec, {"nn": nn, "torch": cresset})
    return mine, theirs


def assert_same_state(mine, theirs):
    assert repr(mine) == repr(theirs)
    assert [name for name, _ in mine.named_modules()] == [name for name, _ in theirs.named_modules()]
    a, b = mine.state_dict(), theirs.state_dict()
    assert list(a) == list(b) and a._metadata == b._metadata
    for key in a:
        if not isinstance(b[key], torch.nn.parameter.UninitializedTensorMixin):
            assert_same(a[key], b[key], key, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer[0].replace("nn.", ""))
@pytest.mark.filterwarnings("ignore")
def test_layer_is_pytorchs(layer):
    spec, *inputs = layer
    mine, theirs = make(spec)
    assert_same_state(mine, theirs)
    for mode in (True, False):
        mine.train(mode), theirs.train(mode)
        cresset.manual_seed(5)
        got = tensors(mine(*ours(inputs)), cresset.Tensor)
        torch.manual_seed(5)
        expected = tensors(theirs(*copy.deepcopy(inputs)), torch.Tensor)
        assert len(got) == len(expected)
        for a, b in zip(got, expected, strict=True):
            assert_same(a, b, "output")
        differentiable = [(a, b) for a, b in zip(got, expected, strict=True) if b.requires_grad]
        assert all(a.requires_grad for a, _ in differentiable)
        if differentiable:
            sum((a * a).sum() for a, _ in differentiable).backward()
            sum((b * b).sum() for _, b in differentiable).backward()
            for (name, p), q in zip(theirs.named_parameters(), mine.parameters(), strict=True):
                assert (p.grad is None) == (q.grad is None), name
                if p.grad is not None:
                    assert_same(q.grad, p.grad, name, rtol=1e-3, atol=1e-4)
        assert_same_state(mine, theirs)
    copy.deepcopy(mine)


@pytest.mark.parametrize(
    "spec",
    [
        "nn.ModuleList([nn.Linear(1, 2) for _ in range(3)] + [nn.ReLU()])",
        "nn.ModuleDict({'a': nn.ReLU(), 'b': nn.Linear(2, 2)})",
        "nn.ParameterList([torch.ones(2), 3])",
        "nn.ParameterDict({'a': torch.ones(2), 'b': 2})",
    ],
)
def test_container_is_pytorchs(spec):
    assert_same_state(*make(spec))


def parameters_of(function):
    return [
        (p.name, None if callable(p.default) else p.default, p.kind)
        for p in inspect.signature(function).parameters.values()
    ]


@pytest.mark.parametrize("name", torch.nn.modules.__all__)
def test_constructor_has_pytorchs_signature(name):
    assert parameters_of(getattr(nn, name).__init__) == parameters_of(getattr(torch.nn, name).__init__)


@pytest.mark.parametrize(
    "name",
    [
        n
        for n in dir(torch.nn.functional)
        if inspect.isfunction(getattr(torch.nn.functional, n)) and hasattr(F, n) and n[0] != "_"
    ],
)
def test_function_has_pytorchs_signature(name):
    theirs = getattr(torch.nn.functional, name)
    expected = [p[:2] for p in parameters_of(theirs)]
    if [name for name, _ in expected] == ["args", "kwargs"]:
        pytest.skip("PyTorch's signature is hidden behind *args")
    assert [p[:2] for p in parameters_of(getattr(F, name))] == expected


@pytest.mark.parametrize(
    "fill",
    [
        "uniform_(w, -2, 3)", "normal_(w, 1, 2)", "trunc_normal_(w, 0, 0.5, -1, 1)", "xavier_uniform_(w, 2)", "xavier_normal_(w)",
        "kaiming_uniform_(w, 0.1)", "kaiming_normal_(w, mode='fan_out', nonlinearity='relu')", "constant_(w, 3)", "ones_(w)",
        "zeros_(w)", "eye_(w)", "sparse_(w, 0.5)", "orthogonal_(w)", "dirac_(w.view(4, 1, 5), 2)", "trunc_normal_(w, 0, 1, 1, 2)",
    ],
)  # fmt: skip
def test_same_seed_same_starting_values(fill):
    if fill.startswith("orthogonal") and not hasattr(cresset.linalg, "qr"):
        pytest.skip("needs linalg.qr")
    results = []
    for lib in (cresset, torch):
        lib.manual_seed(1)
        w = lib.empty(4, 5).zero_()
        eval(f"init.{fill}", {"init": lib.nn.init, "w": w})
        results.append(w)
    assert_same(*results)


def test_packed_sequences_run_like_pytorchs():
    lengths = [3, 5, 1]
    x = numbers(3, 5, 6)
    for spec in ("nn.LSTM(6, 4, num_layers=2, bidirectional=True)", "nn.GRU(6, 4)", "nn.RNN(6, 4, bidirectional=True)"):
        results = []
        mine, theirs = make(spec)
        for lib, layer, value in ((cresset, mine, ours(x)), (torch, theirs, x)):
            rnn = lib.nn.utils.rnn
            packed = rnn.pack_padded_sequence(value, lengths, batch_first=True, enforce_sorted=False)
            output, state = layer(packed)
            padded, counted = rnn.pad_packed_sequence(output, batch_first=True, padding_value=-1.0, total_length=6)
            assert counted.tolist() == lengths
            results.append([padded, *tensors(state, lib.Tensor), output.data])
        for a, b in zip(*results, strict=True):
            assert_same(a, b)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "apply",
    [
        "nn.utils.weight_norm(layer)", "nn.utils.weight_norm(layer, dim=None)", "nn.utils.weight_norm(layer, dim=1)",
        "nn.utils.spectral_norm(layer)", "nn.utils.parametrizations.weight_norm(layer)",
        "nn.utils.parametrizations.spectral_norm(layer)", "nn.utils.parametrizations.spectral_norm(layer, dim=1)",
    ],
)  # fmt: skip
@pytest.mark.parametrize("layer", ["nn.Linear(4, 3)", "nn.Conv2d(4, 3, 2)"])
def test_weights_as_functions_are_pytorchs(apply, layer):
    x = X2 if "Linear" in layer else X4
    results = []
    for lib, value in ((cresset, ours(x)), (torch, x)):
        lib.manual_seed(0)
        made = eval(apply, {"nn": lib.nn, "layer": eval(layer, {"nn": lib.nn})})
        made(value)
        output = made(value)
        (output * output).sum().backward()
        results.append((made, output, [p.grad for p in made.parameters()]))
    (mine, a, mine_grads), (theirs, b, their_grads) = results
    assert_same(a, b)
    assert list(mine.state_dict()) == list(theirs.state_dict()) and repr(mine) == repr(theirs)
    for p, q in zip(mine_grads, their_grads, strict=True):
        assert_same(p, q, rtol=1e-3, atol=1e-4)


def test_fused_layers_are_pytorchs():
    for spec, norm, x in (
        ("nn.Conv2d(4, 6, 3)", "nn.BatchNorm2d(6)", X4),
        ("nn.Linear(4, 6)", "nn.BatchNorm1d(6)", X2),
    ):
        results = []
        for lib, value in ((cresset, ours(x)), (torch, x)):
            lib.manual_seed(0)
            layer, bn = eval(spec, {"nn": lib.nn}), eval(norm, {"nn": lib.nn})
            bn(layer(value))
            fuse = lib.nn.utils.fuse_conv_bn_eval if "Conv" in spec else lib.nn.utils.fuse_linear_bn_eval
            results.append(fuse(layer.eval(), bn.eval())(value))
        assert_same(*results)
