"""The bases of layers that programs name to tell kinds of layers apart, as counters of operations do."""

import pytest

from cresset import nn

BASES = {
    nn.modules.padding._ReflectionPadNd: (nn.ReflectionPad1d, nn.ReflectionPad2d, nn.ReflectionPad3d),
    nn.modules.padding._ReplicationPadNd: (nn.ReplicationPad1d, nn.ReplicationPad2d, nn.ReplicationPad3d),
    nn.modules.padding._CircularPadNd: (nn.CircularPad1d, nn.CircularPad2d, nn.CircularPad3d),
    nn.modules.padding._ConstantPadNd: (nn.ConstantPad1d, nn.ZeroPad2d, nn.ZeroPad3d),
    nn.modules.conv._ConvNd: (nn.Conv1d, nn.Conv2d, nn.ConvTranspose3d),
    nn.modules.conv._LazyConvXdMixin: (nn.LazyConv1d, nn.LazyConvTranspose2d),
    nn.modules.batchnorm._BatchNorm: (nn.BatchNorm1d, nn.BatchNorm3d, nn.SyncBatchNorm),
    nn.modules.batchnorm._NormBase: (nn.BatchNorm2d, nn.InstanceNorm2d),
    nn.modules.instancenorm._InstanceNorm: (nn.InstanceNorm1d, nn.InstanceNorm3d),
    nn.modules.dropout._DropoutNd: (nn.Dropout, nn.Dropout2d, nn.AlphaDropout),
    nn.modules.pooling._AdaptiveAvgPoolNd: (nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d),
    nn.modules.pooling._AdaptiveMaxPoolNd: (nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool3d),
    nn.modules.pooling._MaxUnpoolNd: (nn.MaxUnpool1d, nn.MaxUnpool2d),
}


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.__name__)
def test_layers_have_the_bases_that_pytorchs_have(base):
    assert all(issubclass(layer, base) for layer in BASES[base])
