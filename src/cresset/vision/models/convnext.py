"""ConvNeXt: a convolutional network in the manner of transformers."""

from functools import partial

import cresset
from cresset import nn
from cresset.nn import functional as F

from .layers import Conv2dNormActivation, StochasticDepth
from .registry import build, register_model


class LayerNorm2d(nn.LayerNorm):
    """Layer normalization of the channels of (N, C, H, W)."""

    def forward(self, x):
        x = F.layer_norm(x.permute(0, 2, 3, 1), self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class Permute(nn.Module):
    """The dimensions in another order."""

    def __init__(self, dims):
        super().__init__()
        self.dims = dims

    def forward(self, x):
        return x.permute(self.dims)


class CNBlock(nn.Module):
    """x + a 7 by 7 convolution of each channel and a perceptron of the channels, scaled by a learned factor."""

    def __init__(self, dim, layer_scale, stochastic_depth_prob, norm_layer=None):
        super().__init__()
        norm_layer = norm_layer or partial(nn.LayerNorm, eps=1e-6)
        self.block = nn.Sequential(
            nn.Conv2d(dim, dim, 7, padding=3, groups=dim, bias=True), Permute([0, 2, 3, 1]), norm_layer(dim),
            nn.Linear(dim, 4 * dim), nn.GELU(),
            nn.Linear(4 * dim, dim), Permute([0, 3, 1, 2]),
        )  # fmt: skip
        self.layer_scale = nn.Parameter(cresset.ones(dim, 1, 1) * layer_scale)
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")

    def forward(self, input):
        return self.stochastic_depth(self.layer_scale * self.block(input)) + input


class ConvNeXt(nn.Module):
    """Stages of blocks: `widths` channels and `depths` blocks each."""

    def __init__(
        self, widths, depths, stochastic_depth_prob=0.0, layer_scale=1e-6, num_classes=1000, block=None, norm_layer=None
    ):
        super().__init__()
        block, norm_layer = block or CNBlock, norm_layer or partial(LayerNorm2d, eps=1e-6)
        parts = [
            Conv2dNormActivation(3, widths[0], 4, 4, padding=0, norm_layer=norm_layer, activation_layer=None, bias=True)
        ]
        done, total = 0, sum(depths)
        for i, (width, depth) in enumerate(zip(widths, depths, strict=True)):
            blocks = []
            for _ in range(depth):
                blocks.append(block(width, layer_scale, stochastic_depth_prob * done / (total - 1.0)))
                done += 1
            parts.append(nn.Sequential(*blocks))
            if i + 1 < len(widths):
                parts.append(nn.Sequential(norm_layer(width), nn.Conv2d(width, widths[i + 1], 2, 2)))
        self.features = nn.Sequential(*parts)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(norm_layer(widths[-1]), nn.Flatten(1), nn.Linear(widths[-1], num_classes))
        for module in self.modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                nn.init.trunc_normal_(module.weight, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, x):
        return self.classifier(self.avgpool(self.features(x)))


def _builder(name, widths, depths, stochastic_depth_prob):
    def builder(*, weights=None, progress=True, **kwargs):
        kwargs.setdefault("stochastic_depth_prob", stochastic_depth_prob)
        return build(name, lambda **options: ConvNeXt(widths, depths, **options), weights, progress, **kwargs)

    builder.__name__ = builder.__qualname__ = name
    builder.__doc__ = (
        f"ConvNeXt with {depths} blocks of {widths} channels. `weights`: None, or those that "
        f"get_model_weights({name!r}) lists."
    )
    return register_model()(builder)


convnext_tiny = _builder("convnext_tiny", [96, 192, 384, 768], [3, 3, 9, 3], 0.1)
convnext_small = _builder("convnext_small", [96, 192, 384, 768], [3, 3, 27, 3], 0.4)
convnext_base = _builder("convnext_base", [128, 256, 512, 1024], [3, 3, 27, 3], 0.5)
convnext_large = _builder("convnext_large", [192, 384, 768, 1536], [3, 3, 27, 3], 0.5)
