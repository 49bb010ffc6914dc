"""Every layer of torch.nn as a row: the text that makes it in either library, and inputs for it. Plus how two results
are compared.
"""

import warnings

import pytest

import cresset
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
    ("nn.LayerNorm(6)", X3), ("nn.LayerNorm((4, 6), bias=False)", X3),
    ("nn.LayerNorm((4, 6), elementwise_affine=False)", X3),
    ("nn.GroupNorm(2, 4)", X4), ("nn.GroupNorm(2, 4, affine=False)", X4), ("nn.RMSNorm(6)", X3),
    ("nn.RMSNorm(6, eps=1e-3, elementwise_affine=False)", X3), ("nn.LocalResponseNorm(2)", X4),
    ("nn.CrossMapLRN2d(3)", X4), ("nn.SyncBatchNorm(4).eval()", X4),
    ("nn.Embedding(5, 3)", CLASSES), ("nn.Embedding(5, 3, padding_idx=-2, scale_grad_by_freq=True)", CLASSES),
    ("nn.Embedding(5, 3, max_norm=1.0, norm_type=1.0)", CLASSES),
    ("nn.Embedding.from_pretrained(torch.ones(5, 3))", CLASSES),
    ("nn.EmbeddingBag(5, 3)", CLASSES, torch.tensor([0, 2])),
    ("nn.EmbeddingBag(5, 3, mode='max')", CLASSES, torch.tensor([0, 2])),
    ("nn.EmbeddingBag(5, 3, mode='sum', padding_idx=0)", CLASSES.view(2, 2), None, numbers(2, 2)),
    ("nn.MaxPool1d(2)", X3), ("nn.MaxPool2d((2, 3), return_indices=True)", X4), ("nn.MaxPool3d(2, ceil_mode=True)", X5),
    ("nn.AvgPool1d(2)", X3), ("nn.AvgPool2d(2, divisor_override=3)", X4), ("nn.AvgPool3d(2)", X5),
    ("nn.FractionalMaxPool2d(2, output_size=3, _random_samples=torch.full((2, 4, 2), 0.3))", X4),
    ("nn.FractionalMaxPool3d(2, output_ratio=0.5, _random_samples=torch.full((2, 4, 3), 0.6))", X5),
    ("nn.FractionalMaxPool2d((2, 3), output_ratio=(0.5, 0.6), return_indices=True)", X4),
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
    ("nn.MultiheadAttention(6, 2)", X3, X3, X3),
    ("nn.MultiheadAttention(6, 2, bias=False, dropout=0.5)", X3[0], X3[0], X3[0]),
    ("nn.MultiheadAttention(6, 2, kdim=4, vdim=5, add_bias_kv=True, batch_first=True, add_zero_attn=True)", X3,
        numbers(2, 3, 4),
     numbers(2, 3, 5)),
    ("nn.TransformerEncoderLayer(6, 2, 8)", X3), ("nn.TransformerDecoderLayer(6, 2, 8)", X3, X3),
    ("nn.TransformerEncoderLayer(6, 2, 8, norm_first=True, activation='gelu')", X3, HIDDEN),
    ("nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8), 2, nn.LayerNorm(6))", X3, HIDDEN),
    ("nn.TransformerDecoder(nn.TransformerDecoderLayer(6, 2, 8), 2)", X3, X3, HIDDEN),
    ("nn.Transformer(6, 2, 2, 2, 8)", X3, X3 + 1),
    ("nn.AdaptiveLogSoftmaxWithLoss(4, 10, [2, 5])", numbers(6, 4), torch.tensor([0, 9, 3, 1, 5, 6])),
    ("nn.Sequential(nn.Linear(6, 2), nn.ReLU(), nn.Sequential(nn.Linear(2, 3)))", X3),
    ("nn.LinearCrossEntropyLoss(5, 5)", SCORES, CLASSES), ("nn.Dropout(0.3)", X3), ("nn.Dropout1d()", X3),
    ("nn.Dropout2d()", X4),
    ("nn.Dropout3d()", X5), ("nn.AlphaDropout()", X3), ("nn.FeatureAlphaDropout()", X4),
    *[(f"nn.{a}", X4) for a in (
        "Threshold(0.1, 20.0)", "Threshold(0.1, 2.0, True)", "ReLU()", "ReLU(True)", "RReLU()", "RReLU(0.1, 0.2, True)",
        "Hardtanh()",
        "Hardtanh(-2, 2, True)", "ReLU6()", "ReLU6(True)", "Sigmoid()", "Hardsigmoid()", "Tanh()", "SiLU()", "Mish()",
        "Hardswish()",
        "ELU()", "ELU(2.0, True)", "CELU()", "SELU()", "GLU()", "GELU()", "GELU('tanh')", "Hardshrink()", "LeakyReLU()",
        "LeakyReLU(0.2, True)", "LogSigmoid()", "Softplus()", "Softshrink()", "PReLU()", "PReLU(4)", "Softsign()",
        "Tanhshrink()",
        "Softmin(1)", "Softmax(1)", "LogSoftmax(-1)", "Softmax2d()",
    )],
    *[(f"nn.{a}", X3, TARGET) for a in (
        "L1Loss()", "MSELoss()", "MSELoss(reduction='sum')", "MSELoss(reduction='none')", "SmoothL1Loss(beta=0.5)",
        "HuberLoss()",
        "BCEWithLogitsLoss()", "BCEWithLogitsLoss(pos_weight=torch.ones(6) * 2)", "KLDivLoss(reduction='batchmean')",
        "PoissonNLLLoss()", "MultiLabelSoftMarginLoss()",
    )],
    ("nn.BCELoss()", torch.sigmoid(X3), TARGET), ("nn.NLLLoss()", SCORES, CLASSES), ("nn.NLLLoss2d()", SCORES, CLASSES),
    ("nn.CrossEntropyLoss()", SCORES, CLASSES), ("nn.CrossEntropyLoss(reduction='none')", X3, torch.zeros(2, 6).long()),
    ("nn.CrossEntropyLoss(torch.ones(5) * 2, ignore_index=1, label_smoothing=0.1)", SCORES, CLASSES),
    ("nn.GaussianNLLLoss()", X3, TARGET, TARGET.flip(0)), ("nn.HingeEmbeddingLoss()", X3, SIGNS),
    ("nn.SoftMarginLoss()", X3, SIGNS),
    ("nn.MultiLabelMarginLoss()", SCORES, torch.tensor([[0, 1, -1, 2, 3]] * 4)),
    ("nn.MultiMarginLoss()", SCORES, CLASSES),
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
