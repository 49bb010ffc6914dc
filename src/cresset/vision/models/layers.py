"""Layers that several models share: torchvision.ops.misc."""

from cresset import nn


class Conv2dNormActivation(nn.Sequential):
    """Convolution, normalization, activation. The size stays at stride 1."""

    def __init__(
        self, in_channels, out_channels, kernel_size=3, stride=1, padding=None, groups=1, norm_layer=nn.BatchNorm2d,
        activation_layer=nn.ReLU,
        dilation=1, inplace=True, bias=None,
    ):  # fmt: skip
        if padding is None:
            padding = (kernel_size - 1) // 2 * dilation
        bias = norm_layer is None if bias is None else bias
        parts = [
            nn.Conv2d(
                in_channels, out_channels, kernel_size, stride, padding, dilation=dilation, groups=groups, bias=bias
            )
        ]
        if norm_layer is not None:
            parts.append(norm_layer(out_channels))
        if activation_layer is not None:
            parts.append(activation_layer() if inplace is None else activation_layer(inplace=inplace))
        super().__init__(*parts)
        self.out_channels = out_channels


class SqueezeExcitation(nn.Module):
    """Each channel times a weight that follows from the means of all channels."""

    def __init__(self, input_channels, squeeze_channels, activation=nn.ReLU, scale_activation=nn.Sigmoid):
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(input_channels, squeeze_channels, 1)
        self.fc2 = nn.Conv2d(squeeze_channels, input_channels, 1)
        self.activation = activation()
        self.scale_activation = scale_activation()

    def forward(self, input):
        return self.scale_activation(self.fc2(self.activation(self.fc1(self.avgpool(input))))) * input


class MLP(nn.Sequential):
    """Linear layers with activations and dropout between them."""

    def __init__(
        self,
        in_channels,
        hidden_channels,
        norm_layer=None,
        activation_layer=nn.ReLU,
        inplace=None,
        bias=True,
        dropout=0.0,
    ):
        inside = {} if inplace is None else {"inplace": inplace}
        parts, width = [], in_channels
        for hidden in hidden_channels[:-1]:
            parts.append(nn.Linear(width, hidden, bias=bias))
            if norm_layer is not None:
                parts.append(norm_layer(hidden))
            parts += [activation_layer(**inside), nn.Dropout(dropout, **inside)]
            width = hidden
        parts += [nn.Linear(width, hidden_channels[-1], bias=bias), nn.Dropout(dropout, **inside)]
        super().__init__(*parts)


class StochasticDepth(nn.Module):
    """Zero for whole samples (mode "row") or the whole batch ("batch") with probability `p`, while training."""

    def __init__(self, p, mode):
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"StochasticDepth: p is a probability, got {p}")
        if mode not in ("row", "batch"):
            raise ValueError(f"StochasticDepth: mode must be 'row' or 'batch', got {mode!r}")
        self.p, self.mode = p, mode

    def forward(self, input):
        if not self.training or self.p == 0.0:
            return input
        survival = 1.0 - self.p
        shape = [input.shape[0] if self.mode == "row" else 1] + [1] * (input.ndim - 1)
        kept = input.new_empty(shape).bernoulli_(survival)
        return input * (kept.div_(survival) if survival > 0.0 else kept)

    def extra_repr(self):
        return f"p={self.p}, mode={self.mode}"


def make_divisible(value, divisor=8, minimum=None):
    """The multiple of `divisor` next to `value`, at least nine tenths of it."""
    made = max(minimum or divisor, int(value + divisor / 2) // divisor * divisor)
    return made + divisor if made < 0.9 * value else made
