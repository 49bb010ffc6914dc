"""Layers with inputs, for tests that script each of them: {name: (make the layer, make its arguments)}, both given the
library.
"""


def images(t, *shape):
    return (t.arange(float(_size(shape))).reshape(shape) % 7 - 3,)


def _size(shape):
    size = 1
    for one in shape:
        size *= one
    return size


def pair(t, *shape):
    (x,) = images(t, *shape)
    return x, (x * 1.5 + 1) % 2


def logits(t):
    return images(t, 4, 3)[0], t.tensor([0, 2, 1, 1])


LAYERS = {
    "Linear": (lambda t: t.nn.Linear(4, 3), lambda t: images(t, 2, 4)),
    "Linear without bias": (lambda t: t.nn.Linear(4, 3, bias=False), lambda t: images(t, 2, 4)),
    "Bilinear": (lambda t: t.nn.Bilinear(2, 3, 4), lambda t: (images(t, 5, 2)[0], images(t, 5, 3)[0])),
    "Identity": (lambda t: t.nn.Identity(), lambda t: images(t, 2, 4)),
    "Conv1d": (lambda t: t.nn.Conv1d(2, 3, 3, padding=1), lambda t: images(t, 1, 2, 8)),
    "Conv2d": (lambda t: t.nn.Conv2d(2, 4, 3, stride=2, groups=2), lambda t: images(t, 2, 2, 8, 8)),
    "Conv2d same": (lambda t: t.nn.Conv2d(2, 4, 3, padding="same"), lambda t: images(t, 2, 2, 8, 8)),
    "Conv2d reflect": (lambda t: t.nn.Conv2d(2, 4, 3, padding=1, padding_mode="reflect"),
        lambda t: images(t, 2, 2, 8, 8)),
    "Conv3d": (lambda t: t.nn.Conv3d(2, 3, 2), lambda t: images(t, 1, 2, 4, 4, 4)),
    "ConvTranspose1d": (lambda t: t.nn.ConvTranspose1d(2, 3, 3), lambda t: images(t, 1, 2, 8)),
    "ConvTranspose2d": (lambda t: t.nn.ConvTranspose2d(2, 3, 3, stride=2), lambda t: images(t, 1, 2, 4, 4)),
    "ConvTranspose2d with a size": (lambda t: t.nn.ConvTranspose2d(2, 3, 3, stride=2),
        lambda t: (*images(t, 1, 2, 4, 4), [10, 10])),
    "ConvTranspose3d": (lambda t: t.nn.ConvTranspose3d(2, 3, 2), lambda t: images(t, 1, 2, 3, 3, 3)),
    "BatchNorm1d": (lambda t: t.nn.BatchNorm1d(3), lambda t: images(t, 4, 3)),
    "BatchNorm2d": (lambda t: t.nn.BatchNorm2d(3), lambda t: images(t, 2, 3, 4, 4)),
    "BatchNorm2d of the batch": (lambda t: t.nn.BatchNorm2d(3, track_running_stats=False),
        lambda t: images(t, 2, 3, 4, 4)),
    "BatchNorm2d of all batches": (lambda t: t.nn.BatchNorm2d(3, momentum=None), lambda t: images(t, 2, 3, 4, 4)),
    "InstanceNorm2d": (lambda t: t.nn.InstanceNorm2d(3), lambda t: images(t, 2, 3, 4, 4)),
    "InstanceNorm1d with all": (lambda t: t.nn.InstanceNorm1d(3, affine=True, track_running_stats=True),
        lambda t: images(t, 2, 3, 4)),
    "LayerNorm": (lambda t: t.nn.LayerNorm([3, 4]), lambda t: images(t, 2, 3, 4)),
    "GroupNorm": (lambda t: t.nn.GroupNorm(2, 4), lambda t: images(t, 2, 4, 3)),
    "RMSNorm": (lambda t: t.nn.RMSNorm(4), lambda t: images(t, 2, 4)),
    "LocalResponseNorm": (lambda t: t.nn.LocalResponseNorm(2), lambda t: images(t, 2, 4, 3, 3)),
    "MaxPool1d": (lambda t: t.nn.MaxPool1d(2), lambda t: images(t, 1, 2, 8)),
    "MaxPool2d": (lambda t: t.nn.MaxPool2d(3, stride=2, padding=1), lambda t: images(t, 1, 2, 8, 8)),
    "MaxPool2d with indices": (lambda t: t.nn.MaxPool2d(2, return_indices=True), lambda t: images(t, 1, 2, 8, 8)),
    "MaxPool3d": (lambda t: t.nn.MaxPool3d(2), lambda t: images(t, 1, 2, 4, 4, 4)),
    "AvgPool1d": (lambda t: t.nn.AvgPool1d(2), lambda t: images(t, 1, 2, 8)),
    "AvgPool2d": (lambda t: t.nn.AvgPool2d((2, 3)), lambda t: images(t, 1, 2, 6, 6)),
    "AvgPool3d": (lambda t: t.nn.AvgPool3d(2), lambda t: images(t, 1, 2, 4, 4, 4)),
    "AdaptiveAvgPool1d": (lambda t: t.nn.AdaptiveAvgPool1d(3), lambda t: images(t, 1, 2, 8)),
    "AdaptiveAvgPool2d": (lambda t: t.nn.AdaptiveAvgPool2d((None, 2)), lambda t: images(t, 1, 2, 8, 6)),
    "AdaptiveAvgPool3d": (lambda t: t.nn.AdaptiveAvgPool3d(2), lambda t: images(t, 1, 2, 4, 4, 4)),
    "AdaptiveMaxPool1d": (lambda t: t.nn.AdaptiveMaxPool1d(3), lambda t: images(t, 1, 2, 8)),
    "AdaptiveMaxPool2d": (lambda t: t.nn.AdaptiveMaxPool2d(2), lambda t: images(t, 1, 2, 8, 6)),
    "LPPool2d": (lambda t: t.nn.LPPool2d(2, 2), lambda t: (images(t, 1, 2, 4, 4)[0].abs(),)),
    "MaxUnpool2d": (lambda t: t.nn.MaxUnpool2d(2),
        lambda t: (images(t, 1, 1, 2, 2)[0], t.tensor([[[[0, 3], [9, 14]]]]))),
    "Dropout in evaluation": (lambda t: t.nn.Dropout(0.5).eval(), lambda t: images(t, 2, 4)),
    "Dropout2d in evaluation": (lambda t: t.nn.Dropout2d(0.5).eval(), lambda t: images(t, 2, 4, 2, 2)),
    "AlphaDropout in evaluation": (lambda t: t.nn.AlphaDropout(0.5).eval(), lambda t: images(t, 2, 4)),
    "FeatureAlphaDropout in evaluation": (lambda t: t.nn.FeatureAlphaDropout(0.5).eval(), lambda t: images(t, 2, 4, 2)),
    "Embedding": (lambda t: t.nn.Embedding(5, 3, padding_idx=-1), lambda t: (t.tensor([[0, 4], [2, 2]]),)),
    "Embedding of a length": (lambda t: t.nn.Embedding(5, 3, max_norm=0.5), lambda t: (t.tensor([[0, 4], [2, 2]]),)),
    "EmbeddingBag": (lambda t: t.nn.EmbeddingBag(5, 3), lambda t: (t.tensor([[0, 4], [2, 2]]),)),
    "EmbeddingBag with offsets": (lambda t: t.nn.EmbeddingBag(5, 3, mode="sum"),
        lambda t: (t.tensor([0, 4, 2, 2]), t.tensor([0, 1]))),
    "Flatten": (lambda t: t.nn.Flatten(), lambda t: images(t, 2, 3, 4)),
    "Unflatten": (lambda t: t.nn.Unflatten(1, (2, 2)), lambda t: images(t, 2, 4)),
    "Fold": (lambda t: t.nn.Fold((4, 4), 2, stride=2), lambda t: images(t, 1, 4, 4)),
    "Unfold": (lambda t: t.nn.Unfold(2), lambda t: images(t, 1, 2, 4, 4)),
    "PixelShuffle": (lambda t: t.nn.PixelShuffle(2), lambda t: images(t, 1, 4, 2, 2)),
    "PixelUnshuffle": (lambda t: t.nn.PixelUnshuffle(2), lambda t: images(t, 1, 1, 4, 4)),
    "ChannelShuffle": (lambda t: t.nn.ChannelShuffle(2), lambda t: images(t, 1, 4, 2, 2)),
    "Upsample": (lambda t: t.nn.Upsample(scale_factor=2), lambda t: images(t, 1, 2, 3, 3)),
    "Upsample bilinear": (lambda t: t.nn.Upsample(size=(5, 4), mode="bilinear", align_corners=True),
        lambda t: images(t, 1, 2, 3, 3)),
    "Upsample linear": (lambda t: t.nn.Upsample(scale_factor=1.5, mode="linear"), lambda t: images(t, 1, 2, 4)),
    "ZeroPad2d": (lambda t: t.nn.ZeroPad2d(1), lambda t: images(t, 1, 2, 3, 3)),
    "ReflectionPad1d": (lambda t: t.nn.ReflectionPad1d(2), lambda t: images(t, 1, 2, 5)),
    "ReplicationPad2d": (lambda t: t.nn.ReplicationPad2d((1, 2, 0, 1)), lambda t: images(t, 1, 2, 3, 3)),
    "ConstantPad1d": (lambda t: t.nn.ConstantPad1d(1, 2.5), lambda t: images(t, 1, 2, 3)),
    "CircularPad2d": (lambda t: t.nn.CircularPad2d(1), lambda t: images(t, 1, 2, 3, 3)),
    "RNN": (lambda t: t.nn.RNN(3, 4), lambda t: images(t, 5, 2, 3)),
    "RNN relu": (lambda t: t.nn.RNN(3, 4, nonlinearity="relu", bias=False), lambda t: images(t, 5, 2, 3)),
    "LSTM": (lambda t: t.nn.LSTM(3, 4, 2, bidirectional=True, batch_first=True), lambda t: images(t, 2, 5, 3)),
    "LSTM without a batch": (lambda t: t.nn.LSTM(3, 4), lambda t: images(t, 5, 3)),
    "LSTM with a state": (lambda t: t.nn.LSTM(3, 4),
        lambda t: (*images(t, 5, 2, 3), (t.ones(1, 2, 4), t.zeros(1, 2, 4)))),
    "GRU": (lambda t: t.nn.GRU(3, 4, batch_first=True), lambda t: images(t, 2, 5, 3)),
    "RNNCell": (lambda t: t.nn.RNNCell(3, 4), lambda t: images(t, 2, 3)),
    "LSTMCell": (lambda t: t.nn.LSTMCell(3, 4), lambda t: images(t, 2, 3)),
    "GRUCell": (lambda t: t.nn.GRUCell(3, 4), lambda t: (*images(t, 2, 3), t.ones(2, 4))),
    "MultiheadAttention": (lambda t: t.nn.MultiheadAttention(4, 2), lambda t: images(t, 5, 2, 4) * 3),
    "MultiheadAttention with more keys": (lambda t: t.nn.MultiheadAttention(4, 2, batch_first=True, add_bias_kv=True,
        add_zero_attn=True), lambda t: images(t, 2, 5, 4) * 3),
    "MultiheadAttention with a mask": (lambda t: t.nn.MultiheadAttention(4, 2, kdim=3, vdim=2),
        lambda t: (images(t, 5, 2, 4)[0], images(t, 3, 2, 3)[0], images(t, 3, 2, 2)[0],
            t.tensor([[False, True, False], [False, False, False]]))),
    "TransformerEncoderLayer": (lambda t: t.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0),
        lambda t: images(t, 5, 2, 4)),
    "TransformerEncoder": (lambda t: t.nn.TransformerEncoder(t.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0,
        batch_first=True, norm_first=True), 2, enable_nested_tensor=False), lambda t: images(t, 2, 5, 4)),
    "TransformerDecoderLayer": (lambda t: t.nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0),
        lambda t: (images(t, 5, 2, 4)[0], images(t, 3, 2, 4)[0])),
    "TransformerDecoder": (lambda t: t.nn.TransformerDecoder(t.nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0), 2),
        lambda t: (images(t, 5, 2, 4)[0], images(t, 3, 2, 4)[0])),
    "Transformer": (lambda t: t.nn.Transformer(4, 2, 1, 1, 8, dropout=0.0),
        lambda t: (images(t, 5, 2, 4)[0], images(t, 3, 2, 4)[0])),
    "Sequential": (lambda t: t.nn.Sequential(t.nn.Linear(4, 4), t.nn.ReLU(),
        t.nn.Sequential(t.nn.Linear(4, 2), t.nn.Tanh())), lambda t: images(t, 2, 4)),
    "CosineSimilarity": (lambda t: t.nn.CosineSimilarity(), lambda t: pair(t, 2, 4)),
    "PairwiseDistance": (lambda t: t.nn.PairwiseDistance(), lambda t: pair(t, 2, 4)),
    "Softmax2d": (lambda t: t.nn.Softmax2d(), lambda t: images(t, 1, 3, 2, 2)),
    "Threshold": (lambda t: t.nn.Threshold(0.1, 20.0), lambda t: images(t, 2, 4)),
    "GELU tanh": (lambda t: t.nn.GELU(approximate="tanh"), lambda t: images(t, 2, 4)),
    "ReLU in place": (lambda t: t.nn.ReLU(inplace=True), lambda t: images(t, 2, 4)),
    "Softmax": (lambda t: t.nn.Softmax(dim=1), lambda t: images(t, 2, 4)),
    "LogSoftmax": (lambda t: t.nn.LogSoftmax(dim=1), lambda t: images(t, 2, 4)),
    "Softmin": (lambda t: t.nn.Softmin(dim=1), lambda t: images(t, 2, 4)),
    "RReLU in evaluation": (lambda t: t.nn.RReLU().eval(), lambda t: images(t, 2, 4)),
    "CrossEntropyLoss": (lambda t: t.nn.CrossEntropyLoss(), logits),
    "CrossEntropyLoss with weights": (lambda t: t.nn.CrossEntropyLoss(weight=t.tensor([1.0, 2.0, 3.0]),
        label_smoothing=0.1, reduction="sum"), logits),
    "NLLLoss": (lambda t: t.nn.NLLLoss(), logits),
    "MultiMarginLoss": (lambda t: t.nn.MultiMarginLoss(), logits),
    "MultiLabelMarginLoss": (lambda t: t.nn.MultiLabelMarginLoss(),
        lambda t: (images(t, 2, 3)[0], t.tensor([[0, 2, -1], [1, -1, 0]]))),
    "GaussianNLLLoss": (lambda t: t.nn.GaussianNLLLoss(), lambda t: (*pair(t, 2, 4), t.ones(2, 4) * 2)),
    "BCELoss": (lambda t: t.nn.BCELoss(), lambda t: (images(t, 2, 4)[0].sigmoid(), pair(t, 2, 4)[1].clamp(0, 1))),
    "MarginRankingLoss": (lambda t: t.nn.MarginRankingLoss(), lambda t: (*pair(t, 4), t.tensor([1.0, -1.0, 1.0, 1.0]))),
    "CosineEmbeddingLoss": (lambda t: t.nn.CosineEmbeddingLoss(), lambda t: (*pair(t, 4, 2), t.tensor([1, -1, 1, 1]))),
    "TripletMarginLoss": (lambda t: t.nn.TripletMarginLoss(), lambda t: (*pair(t, 4, 2), t.ones(4, 2))),
    "TripletMarginWithDistanceLoss": (lambda t: t.nn.TripletMarginWithDistanceLoss(swap=True),
        lambda t: (*pair(t, 4, 2), t.ones(4, 2))),
    "KLDivLoss": (lambda t: t.nn.KLDivLoss(reduction="batchmean"), lambda t: pair(t, 2, 4)),
    "CTCLoss": (lambda t: t.nn.CTCLoss(),
        lambda t: (images(t, 5, 2, 3)[0].log_softmax(2), t.tensor([[1, 2], [2, 1]]), t.tensor([5, 4]),
            t.tensor([2, 1]))),
}  # fmt: skip
for _name in "ReLU ReLU6 ELU CELU SELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid Mish PReLU SiLU Sigmoid Softplus Softshrink Softsign Tanh Tanhshrink".split():
    LAYERS[_name] = (lambda t, name=_name: getattr(t.nn, name)(), lambda t: images(t, 2, 4))
for _name in "L1Loss MSELoss PoissonNLLLoss BCEWithLogitsLoss HingeEmbeddingLoss HuberLoss SmoothL1Loss SoftMarginLoss MultiLabelSoftMarginLoss".split():
    LAYERS[_name] = (lambda t, name=_name: getattr(t.nn, name)(), lambda t: pair(t, 2, 4))
