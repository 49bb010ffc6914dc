"""MobileNet of the second generation: inverted bottlenecks."""

from cresset import nn

from .layers import Conv2dNormActivation, make_divisible
from .registry import build, register_model

# expansion, channels, repetitions, stride of the first
SETTING = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


class InvertedResidual(nn.Module):
    """Widen, convolve each channel, narrow; and the input added where the shape allows it."""

    def __init__(self, inp, oup, stride, expand_ratio, norm_layer=None):
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        if stride not in (1, 2):
            raise ValueError(f"InvertedResidual: stride should be 1 or 2 instead of {stride}")
        self.stride, self.out_channels = stride, oup
        wide = round(inp * expand_ratio)
        self.use_res_connect = stride == 1 and inp == oup
        parts = []
        if expand_ratio != 1:
            parts.append(Conv2dNormActivation(inp, wide, 1, norm_layer=norm_layer, activation_layer=nn.ReLU6))
        parts.append(
            Conv2dNormActivation(
                wide, wide, stride=stride, groups=wide, norm_layer=norm_layer, activation_layer=nn.ReLU6
            )
        )
        parts += [nn.Conv2d(wide, oup, 1, bias=False), norm_layer(oup)]
        self.conv = nn.Sequential(*parts)

    def forward(self, x):
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(nn.Module):
    """The rows of `inverted_residual_setting`, `width_mult` times as wide."""

    def __init__(
        self,
        num_classes=1000,
        width_mult=1.0,
        inverted_residual_setting=None,
        round_nearest=8,
        block=None,
        norm_layer=None,
        dropout=0.2,
    ):
        super().__init__()
        block, norm_layer = block or InvertedResidual, norm_layer or nn.BatchNorm2d
        width = make_divisible(32 * width_mult, round_nearest)
        self.last_channel = make_divisible(1280 * max(1.0, width_mult), round_nearest)
        parts = [Conv2dNormActivation(3, width, stride=2, norm_layer=norm_layer, activation_layer=nn.ReLU6)]
        for expansion, channels, count, stride in inverted_residual_setting or SETTING:
            made = make_divisible(channels * width_mult, round_nearest)
            for position in range(count):
                parts.append(
                    block(width, made, stride if position == 0 else 1, expand_ratio=expansion, norm_layer=norm_layer)
                )
                width = made
        parts.append(
            Conv2dNormActivation(width, self.last_channel, 1, norm_layer=norm_layer, activation_layer=nn.ReLU6)
        )
        self.features = nn.Sequential(*parts)
        self.classifier = nn.Sequential(nn.Dropout(dropout), nn.Linear(self.last_channel, num_classes))
        initialize(self)

    def forward(self, x):
        return self.classifier(nn.functional.adaptive_avg_pool2d(self.features(x), (1, 1)).flatten(1))


def initialize(model):
    """The start of both generations: normal weights, no biases."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, (nn.BatchNorm2d, nn.GroupNorm)):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, 0, 0.01)
            nn.init.zeros_(module.bias)


@register_model()
def mobilenet_v2(*, weights=None, progress=True, **kwargs):
    """MobileNetV2. `weights`: None, or those that get_model_weights("mobilenet_v2") lists."""
    return build("mobilenet_v2", MobileNetV2, weights, progress, **kwargs)
