"""EfficientNet: inverted bottlenecks with squeeze and excitation, scaled in width and depth together."""

import math
from functools import partial

from cresset import nn

from .layers import Conv2dNormActivation, SqueezeExcitation, StochasticDepth, make_divisible
from .registry import build, register_model

# expansion, kernel, stride, input channels, output channels, repetitions
STAGES = [
    (1, 3, 1, 32, 16, 1), (6, 3, 2, 16, 24, 2), (6, 5, 2, 24, 40, 2), (6, 3, 2, 40, 80, 3), (6, 5, 1, 80, 112, 3),
    (6, 5, 2, 112, 192, 4),
    (6, 3, 1, 192, 320, 1),
]  # fmt: skip


class MBConv(nn.Module):
    """Widen, convolve each channel, weigh the channels, narrow; and the input added where the shape allows it."""

    def __init__(self, expansion, kernel, stride, in_channels, out_channels, stochastic_depth_prob, norm_layer):
        super().__init__()
        self.use_res_connect = stride == 1 and in_channels == out_channels
        parts, wide = [], make_divisible(in_channels * expansion)
        if wide != in_channels:
            parts.append(Conv2dNormActivation(in_channels, wide, 1, norm_layer=norm_layer, activation_layer=nn.SiLU))
        parts.append(
            Conv2dNormActivation(
                wide, wide, kernel, stride, groups=wide, norm_layer=norm_layer, activation_layer=nn.SiLU
            )
        )
        parts.append(SqueezeExcitation(wide, max(1, in_channels // 4), activation=partial(nn.SiLU, inplace=True)))
        parts.append(Conv2dNormActivation(wide, out_channels, 1, norm_layer=norm_layer, activation_layer=None))
        self.block = nn.Sequential(*parts)
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.out_channels = out_channels

    def forward(self, input):
        result = self.block(input)
        return self.stochastic_depth(result) + input if self.use_res_connect else result


class EfficientNet(nn.Module):
    """STAGES, `width_mult` times as wide and `depth_mult` times as deep."""

    def __init__(
        self, width_mult, depth_mult, dropout, stochastic_depth_prob=0.2, num_classes=1000, norm_layer=nn.BatchNorm2d
    ):
        super().__init__()
        wide = lambda channels: make_divisible(channels * width_mult)
        parts = [Conv2dNormActivation(3, wide(32), 3, 2, norm_layer=norm_layer, activation_layer=nn.SiLU)]
        repeats = [math.ceil(stage[-1] * depth_mult) for stage in STAGES]
        done, total = 0, sum(repeats)
        for (expansion, kernel, stride, in_channels, out_channels, _), count in zip(STAGES, repeats, strict=True):
            blocks, width = [], wide(in_channels)
            for position in range(count):
                drop = stochastic_depth_prob * done / total
                blocks.append(
                    MBConv(
                        expansion, kernel, stride if position == 0 else 1, width, wide(out_channels), drop, norm_layer
                    )
                )
                width, done = wide(out_channels), done + 1
            parts.append(nn.Sequential(*blocks))
        parts.append(Conv2dNormActivation(width, 4 * width, 1, norm_layer=norm_layer, activation_layer=nn.SiLU))
        self.features = nn.Sequential(*parts)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Dropout(dropout, inplace=True), nn.Linear(4 * width, num_classes))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.ones_(module.weight)
                nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Linear):
                bound = 1.0 / math.sqrt(module.out_features)
                nn.init.uniform_(module.weight, -bound, bound)
                nn.init.zeros_(module.bias)

    def forward(self, x):
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


def _builder(name, width_mult, depth_mult, dropout, **fixed):
    def builder(*, weights=None, progress=True, **kwargs):
        kwargs = {"dropout": dropout, **fixed, **kwargs}
        return build(
            name, lambda **options: EfficientNet(width_mult, depth_mult, **options), weights, progress, **kwargs
        )

    builder.__name__ = builder.__qualname__ = name
    builder.__doc__ = (
        f"EfficientNet, {width_mult} times as wide and {depth_mult} times as deep. `weights`: None, or "
        f"those that get_model_weights({name!r}) lists."
    )
    return register_model()(builder)


_FAR = {"norm_layer": partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)}
efficientnet_b0 = _builder("efficientnet_b0", 1.0, 1.0, 0.2)
efficientnet_b1 = _builder("efficientnet_b1", 1.0, 1.1, 0.2)
efficientnet_b2 = _builder("efficientnet_b2", 1.1, 1.2, 0.3)
efficientnet_b3 = _builder("efficientnet_b3", 1.2, 1.4, 0.3)
efficientnet_b4 = _builder("efficientnet_b4", 1.4, 1.8, 0.4)
efficientnet_b5 = _builder("efficientnet_b5", 1.6, 2.2, 0.4, **_FAR)
efficientnet_b6 = _builder("efficientnet_b6", 1.8, 2.6, 0.5, **_FAR)
efficientnet_b7 = _builder("efficientnet_b7", 2.0, 3.1, 0.5, **_FAR)
