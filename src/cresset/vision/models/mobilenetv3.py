"""MobileNet of the third generation: inverted bottlenecks, some with squeeze and excitation."""

from functools import partial

from cresset import nn

from .layers import Conv2dNormActivation, SqueezeExcitation, make_divisible
from .mobilenetv2 import initialize
from .registry import build, register_model

# input channels, kernel, expanded channels, output channels, squeeze and excitation, activation, stride; then the last
# layer
LARGE = [
    (16, 3, 16, 16, False, "RE", 1), (16, 3, 64, 24, False, "RE", 2), (24, 3, 72, 24, False, "RE", 1),
    (24, 5, 72, 40, True, "RE", 2),
    (40, 5, 120, 40, True, "RE", 1), (40, 5, 120, 40, True, "RE", 1), (40, 3, 240, 80, False, "HS", 2),
    (80, 3, 200, 80, False, "HS", 1),
    (80, 3, 184, 80, False, "HS", 1), (80, 3, 184, 80, False, "HS", 1), (80, 3, 480, 112, True, "HS", 1),
    (112, 3, 672, 112, True, "HS", 1),
    (112, 5, 672, 160, True, "HS", 2), (160, 5, 960, 160, True, "HS", 1), (160, 5, 960, 160, True, "HS", 1),
]  # fmt: skip
SMALL = [
    (16, 3, 16, 16, True, "RE", 2), (16, 3, 72, 24, False, "RE", 2), (24, 3, 88, 24, False, "RE", 1),
    (24, 5, 96, 40, True, "HS", 2),
    (40, 5, 240, 40, True, "HS", 1), (40, 5, 240, 40, True, "HS", 1), (40, 5, 120, 48, True, "HS", 1),
    (48, 5, 144, 48, True, "HS", 1),
    (48, 5, 288, 96, True, "HS", 2), (96, 5, 576, 96, True, "HS", 1), (96, 5, 576, 96, True, "HS", 1),
]  # fmt: skip


class InvertedResidual(nn.Module):
    """Widen, convolve each channel, weigh the channels, narrow; and the input added where the shape allows it."""

    def __init__(self, row, width_mult, norm_layer):
        super().__init__()
        inp, kernel, wide, out = (row[0], row[1], row[2], row[3])
        inp, wide, out = (make_divisible(channels * width_mult) for channels in (inp, wide, out))
        squeeze, activation, stride = row[4], nn.Hardswish if row[5] == "HS" else nn.ReLU, row[6]
        self.use_res_connect = stride == 1 and inp == out
        parts = []
        if wide != inp:
            parts.append(Conv2dNormActivation(inp, wide, 1, norm_layer=norm_layer, activation_layer=activation))
        parts.append(
            Conv2dNormActivation(
                wide, wide, kernel, stride, groups=wide, norm_layer=norm_layer, activation_layer=activation
            )
        )
        if squeeze:
            parts.append(SqueezeExcitation(wide, make_divisible(wide // 4), scale_activation=nn.Hardsigmoid))
        parts.append(Conv2dNormActivation(wide, out, 1, norm_layer=norm_layer, activation_layer=None))
        self.block = nn.Sequential(*parts)
        self.out_channels = out

    def forward(self, input):
        result = self.block(input)
        return result + input if self.use_res_connect else result


class MobileNetV3(nn.Module):
    """The rows of `setting`, `width_mult` times as wide, and a hidden layer of `last_channel` before the head."""

    def __init__(self, setting, last_channel, num_classes=1000, width_mult=1.0, norm_layer=None, dropout=0.2):
        super().__init__()
        norm_layer = norm_layer or partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)
        width = make_divisible(setting[0][0] * width_mult)
        parts = [Conv2dNormActivation(3, width, 3, 2, norm_layer=norm_layer, activation_layer=nn.Hardswish)]
        parts += [InvertedResidual(row, width_mult, norm_layer) for row in setting]
        width = parts[-1].out_channels
        parts.append(Conv2dNormActivation(width, 6 * width, 1, norm_layer=norm_layer, activation_layer=nn.Hardswish))
        self.features = nn.Sequential(*parts)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        last = make_divisible(last_channel * width_mult)
        self.classifier = nn.Sequential(
            nn.Linear(6 * width, last),
            nn.Hardswish(inplace=True),
            nn.Dropout(dropout, inplace=True),
            nn.Linear(last, num_classes),
        )
        initialize(self)

    def forward(self, x):
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


@register_model()
def mobilenet_v3_large(*, weights=None, progress=True, **kwargs):
    """The large MobileNetV3. `weights`: None, or those that get_model_weights("mobilenet_v3_large") lists."""
    return build(
        "mobilenet_v3_large", lambda **options: MobileNetV3(LARGE, 1280, **options), weights, progress, **kwargs
    )


@register_model()
def mobilenet_v3_small(*, weights=None, progress=True, **kwargs):
    """The small MobileNetV3. `weights`: None, or those that get_model_weights("mobilenet_v3_small") lists."""
    return build(
        "mobilenet_v3_small", lambda **options: MobileNetV3(SMALL, 1024, **options), weights, progress, **kwargs
    )
