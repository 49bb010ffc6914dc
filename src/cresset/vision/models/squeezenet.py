"""SqueezeNet: few parameters, by squeezing the channels before each 3 by 3 convolution."""

import cresset
from cresset import nn

from .registry import build, register_model


class Fire(nn.Module):
    """Squeeze the channels, then expand them by 1 by 1 and by 3 by 3 convolutions side by side."""

    def __init__(self, inplanes, squeeze_planes, expand1x1_planes, expand3x3_planes):
        super().__init__()
        self.inplanes = inplanes
        self.squeeze = nn.Conv2d(inplanes, squeeze_planes, 1)
        self.squeeze_activation = nn.ReLU(inplace=True)
        self.expand1x1 = nn.Conv2d(squeeze_planes, expand1x1_planes, 1)
        self.expand1x1_activation = nn.ReLU(inplace=True)
        self.expand3x3 = nn.Conv2d(squeeze_planes, expand3x3_planes, 3, padding=1)
        self.expand3x3_activation = nn.ReLU(inplace=True)

    def forward(self, x):
        x = self.squeeze_activation(self.squeeze(x))
        return cresset.cat(
            [self.expand1x1_activation(self.expand1x1(x)), self.expand3x3_activation(self.expand3x3(x))], 1
        )


def _pool():
    return nn.MaxPool2d(3, 2, ceil_mode=True)


class SqueezeNet(nn.Module):
    """`version` "1_0" as first published, "1_1" with less work."""

    def __init__(self, version="1_0", num_classes=1000, dropout=0.5):
        super().__init__()
        self.num_classes = num_classes
        if version == "1_0":
            parts = [
                nn.Conv2d(3, 96, 7, 2),
                nn.ReLU(inplace=True),
                _pool(),
                Fire(96, 16, 64, 64),
                Fire(128, 16, 64, 64),
                Fire(128, 32, 128, 128),
                _pool(),
            ]
            parts += [
                Fire(256, 32, 128, 128),
                Fire(256, 48, 192, 192),
                Fire(384, 48, 192, 192),
                Fire(384, 64, 256, 256),
                _pool(),
                Fire(512, 64, 256, 256),
            ]
        elif version == "1_1":
            parts = [
                nn.Conv2d(3, 64, 3, 2),
                nn.ReLU(inplace=True),
                _pool(),
                Fire(64, 16, 64, 64),
                Fire(128, 16, 64, 64),
                _pool(),
            ]
            parts += [
                Fire(128, 32, 128, 128),
                Fire(256, 32, 128, 128),
                _pool(),
                Fire(256, 48, 192, 192),
                Fire(384, 48, 192, 192),
            ]
            parts += [Fire(384, 64, 256, 256), Fire(512, 64, 256, 256)]
        else:
            raise ValueError(f"Unsupported SqueezeNet version {version}: 1_0 or 1_1 expected")
        self.features = nn.Sequential(*parts)
        final = nn.Conv2d(512, num_classes, 1)
        self.classifier = nn.Sequential(nn.Dropout(dropout), final, nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((1, 1)))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                if module is final:
                    nn.init.normal_(module.weight, 0.0, 0.01)
                else:
                    nn.init.kaiming_uniform_(module.weight)
                nn.init.constant_(module.bias, 0)

    def forward(self, x):
        return self.classifier(self.features(x)).flatten(1)


@register_model()
def squeezenet1_0(*, weights=None, progress=True, **kwargs):
    """SqueezeNet 1.0. `weights`: None, or those that get_model_weights("squeezenet1_0") lists."""
    return build("squeezenet1_0", lambda **options: SqueezeNet("1_0", **options), weights, progress, **kwargs)


@register_model()
def squeezenet1_1(*, weights=None, progress=True, **kwargs):
    """SqueezeNet 1.1. `weights`: None, or those that get_model_weights("squeezenet1_1") lists."""
    return build("squeezenet1_1", lambda **options: SqueezeNet("1_1", **options), weights, progress, **kwargs)
