"""Every layer recorded, by jit.trace and by export, gives eager's numbers."""

import pytest

import cresset
from cresset import nn


def layers():
    """(name, module, inputs) of the layers."""
    cresset.manual_seed(0)
    r, C = cresset.randn, cresset
    img = r(2, 4, 8, 8)
    seq = r(2, 4, 8)
    vol = r(1, 4, 4, 4, 4)
    flat = r(3, 4)
    L = []
    for n in "ReLU ReLU6 GELU SiLU Mish ELU SELU CELU LeakyReLU Hardtanh Hardswish Hardsigmoid Hardshrink Softshrink Tanhshrink Softplus Softsign LogSigmoid Sigmoid Tanh Threshold RReLU PReLU Softmax LogSoftmax Softmin GLU Identity Flatten Softmax2d".split():  # noqa: E501
        k = {"Threshold": (0.1, 20.0), "Softmax": (1,), "LogSoftmax": (1,), "Softmin": (1,)}.get(n, ())
        L.append((n, getattr(nn, n)(*k), (img if n != "PReLU" else img,)))
    L += [
        ("Conv1d", nn.Conv1d(4, 6, 3, padding="same"), (seq,)),
        ("Conv3d", nn.Conv3d(4, 2, 3), (vol,)),
        ("ConvT1", nn.ConvTranspose1d(4, 2, 3), (seq,)),
        ("ConvT3", nn.ConvTranspose3d(4, 2, 3), (vol,)),
        ("Conv2d_reflect", nn.Conv2d(4, 2, 3, padding=1, padding_mode="reflect"), (img,)),
        ("BN1", nn.BatchNorm1d(4), (seq,)),
        ("BN3", nn.BatchNorm3d(4), (vol,)),
        ("IN2", nn.InstanceNorm2d(4, affine=True), (img,)),
        ("LN", nn.LayerNorm([8, 8]), (img,)),
        ("GN", nn.GroupNorm(2, 4), (img,)),
        ("LRN", nn.LocalResponseNorm(2), (img,)),
        ("RMS", nn.RMSNorm(8), (img,)),
        ("MP1", nn.MaxPool1d(2), (seq,)),
        ("MP3", nn.MaxPool3d(2), (vol,)),
        ("MPi", nn.MaxPool2d(2, return_indices=True), (img,)),
        ("AP1", nn.AvgPool1d(2), (seq,)),
        ("AP3", nn.AvgPool3d(2), (vol,)),
        ("AAP", nn.AdaptiveAvgPool2d((3, None)), (img,)),
        ("AAP3", nn.AdaptiveAvgPool3d(2), (vol,)),
        ("AMP", nn.AdaptiveMaxPool2d(2), (img,)),
        ("LP", nn.LPPool2d(2, 2), (img,)),
        ("Up", nn.Upsample(scale_factor=2, mode="bilinear"), (img,)),
        ("UpBic", nn.Upsample(size=(5, 5), mode="bicubic", align_corners=True), (img,)),
        ("PS", nn.PixelShuffle(2), (img,)),
        ("PUS", nn.PixelUnshuffle(2), (img,)),
        ("CS", nn.ChannelShuffle(2), (img,)),
        ("Unfold", nn.Unfold(2), (img,)),
        ("Fold", nn.Fold((4, 4), 2), (r(2, 8, 9),)),
        ("RefPad", nn.ReflectionPad2d(1), (img,)),
        ("RepPad", nn.ReplicationPad1d(1), (seq,)),
        ("ZPad", nn.ZeroPad2d(1), (img,)),
        ("CPad", nn.CircularPad2d(1), (img,)),
        ("ConstPad", nn.ConstantPad3d(1, 2.0), (vol,)),
        ("Bilinear", nn.Bilinear(4, 4, 3), (flat, flat)),
        ("EB", nn.EmbeddingBag(9, 3), (C.tensor([[1, 2]]),)),
        ("CosSim", nn.CosineSimilarity(), (flat, flat)),
        ("PD", nn.PairwiseDistance(), (flat, flat)),
        ("RNN", nn.RNN(8, 3), (seq,)),
        ("RNNCell", nn.RNNCell(4, 3), (flat,)),
        ("LSTMCell", nn.LSTMCell(4, 3), (flat,)),
        ("GRUCell", nn.GRUCell(4, 3), (flat,)),
        ("LSTMproj", nn.LSTM(8, 4, proj_size=2), (seq,)),
        ("Dec", nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), (seq, seq)),
        ("TF", nn.Transformer(8, 2, 1, 1, 16, batch_first=True), (seq, seq)),
        ("MSE", nn.MSELoss(), (flat, flat * 2)),
        ("L1", nn.L1Loss(reduction="sum"), (flat, flat * 2)),
        ("CE", nn.CrossEntropyLoss(), (flat, C.tensor([0, 1, 2]))),
        ("BCE", nn.BCELoss(), (flat.sigmoid(), flat.sigmoid())),
        ("BCEL", nn.BCEWithLogitsLoss(), (flat, flat.sigmoid())),
        ("KL", nn.KLDivLoss(reduction="batchmean"), (flat.log_softmax(1), flat.softmax(1))),
        ("NLL", nn.NLLLoss(), (flat.log_softmax(1), C.tensor([0, 1, 2]))),
        ("Huber", nn.HuberLoss(), (flat, flat * 3)),
        ("SL1", nn.SmoothL1Loss(), (flat, flat * 3)),
        ("Hinge", nn.HingeEmbeddingLoss(), (flat, flat.sign())),
        ("Margin", nn.MarginRankingLoss(), (flat, flat * 2, flat.sign())),
        ("Trip", nn.TripletMarginLoss(), (flat, flat * 2, flat * 3)),
        ("MLM", nn.MultiLabelMarginLoss(), (flat, C.zeros(3, 4, dtype=C.int64))),
        ("MM", nn.MultiMarginLoss(), (flat, C.tensor([0, 1, 2]))),
        ("Poisson", nn.PoissonNLLLoss(), (flat, flat.abs())),
        ("GNLL", nn.GaussianNLLLoss(), (flat, flat * 2, flat.abs() + 1)),
        ("SoftMargin", nn.SoftMarginLoss(), (flat, flat.sign())),
        ("MLSM", nn.MultiLabelSoftMarginLoss(), (flat, (flat > 0).float())),
        ("CosEmb", nn.CosineEmbeddingLoss(), (flat, flat * 2, C.ones(3))),
        (
            "CTC",
            nn.CTCLoss(),
            (r(5, 2, 4).log_softmax(2), C.tensor([[1, 2], [1, 3]]), C.tensor([5, 5]), C.tensor([2, 2])),
        ),
        ("WN", nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), (flat,)),
        ("SN", nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3)), (flat,)),
    ]
    return {name: (module.eval(), inputs) for name, module, inputs in L}


LAYERS = layers()


@pytest.mark.parametrize("record", ["trace", "export"])
@pytest.mark.parametrize("name", LAYERS)
def test_a_recorded_layer_gives_eagers_numbers(name, record):
    module, inputs = LAYERS[name]
    run = (
        cresset.jit.trace(module, inputs, check_trace=False)
        if record == "trace"
        else cresset.export.export(module, inputs).module()
    )
    got, want = (cresset.pytree.tree_leaves(f(*inputs)) for f in (run, module))
    assert len(got) == len(want)
    assert all(
        a is b or cresset.allclose(a.float(), b.float(), atol=1e-5, equal_nan=True)
        for a, b in zip(got, want, strict=True)
    )


def test_a_table_that_is_renormalized_while_it_is_read_is_refused():
    with pytest.raises(RuntimeError, match="max_norm writes to the table while it is read"):
        cresset.export.export(nn.Embedding(9, 3, max_norm=1.0), (cresset.tensor([1, 2]),))
