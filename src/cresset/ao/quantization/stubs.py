"""Marks in a model: here integers begin, here they end."""

from cresset import nn


class QuantStub(nn.Module):
    """Until `convert` the identity, with an observer behind it; then floating point to integers."""

    def __init__(self, qconfig=None):
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x):
        return x


class DeQuantStub(nn.Module):
    """Until `convert` the identity; then integers to floating point."""

    def __init__(self, qconfig=None):
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x):
        return x


class QuantWrapper(nn.Module):
    """A module between a QuantStub and a DeQuantStub."""

    def __init__(self, module):
        super().__init__()
        config = getattr(module, "qconfig", None)
        self.quant, self.dequant = QuantStub(config), DeQuantStub(config)
        self.module = module
        self.train(module.training)

    def forward(self, X):
        return self.dequant(self.module(self.quant(X)))
