"""ResNet, ResNeXt and wide ResNet."""

from cresset import nn

from .registry import build, register_model


def conv3x3(in_planes, out_planes, stride=1, groups=1, dilation=1):
    """A 3 by 3 convolution that keeps the size at stride 1."""
    return nn.Conv2d(in_planes, out_planes, 3, stride, dilation, dilation, groups, bias=False)


def conv1x1(in_planes, out_planes, stride=1):
    """A linear map of the channels."""
    return nn.Conv2d(in_planes, out_planes, 1, stride, bias=False)


class BasicBlock(nn.Module):
    """x + two 3 by 3 convolutions of x."""

    expansion = 1

    def __init__(
        self, inplanes, planes, stride=1, downsample=None, groups=1, base_width=64, dilation=1, norm_layer=None
    ):
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        if groups != 1 or base_width != 64:
            raise ValueError(f"BasicBlock: only groups=1 and base_width=64, got {groups} and {base_width}")
        if dilation > 1:
            raise NotImplementedError(f"BasicBlock: only dilation=1, got {dilation}")
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = norm_layer(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = norm_layer(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class Bottleneck(nn.Module):
    """x + a 3 by 3 convolution of x between two linear maps of the channels; the 3 by 3 one has the stride."""

    expansion = 4

    def __init__(
        self, inplanes, planes, stride=1, downsample=None, groups=1, base_width=64, dilation=1, norm_layer=None
    ):
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        width = int(planes * (base_width / 64.0)) * groups
        self.conv1 = conv1x1(inplanes, width)
        self.bn1 = norm_layer(width)
        self.conv2 = conv3x3(width, width, stride, groups, dilation)
        self.bn2 = norm_layer(width)
        self.conv3 = conv1x1(width, planes * self.expansion)
        self.bn3 = norm_layer(planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    """Four stages of blocks, each half as large and twice as deep as the one before.

    Args:
        block: BasicBlock or Bottleneck.
        layers: the number of blocks in each stage.
        zero_init_residual: start each block as the identity.
        replace_stride_with_dilation: for the last three stages, whether to dilate instead of shrinking.
    """

    def __init__(
        self,
        block,
        layers,
        num_classes=1000,
        zero_init_residual=False,
        groups=1,
        width_per_group=64,
        replace_stride_with_dilation=None,
        norm_layer=None,
    ):
        super().__init__()
        self._norm_layer = norm_layer or nn.BatchNorm2d
        self.inplanes, self.dilation, self.groups, self.base_width = 64, 1, groups, width_per_group
        dilate = replace_stride_with_dilation or [False, False, False]
        if len(dilate) != 3:
            raise ValueError(f"ResNet: replace_stride_with_dilation has 3 elements, got {dilate}")
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = self._norm_layer(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = self._make_layer(block, 64, layers[0])
        self.layer2 = self._make_layer(block, 128, layers[1], 2, dilate[0])
        self.layer3 = self._make_layer(block, 256, layers[2], 2, dilate[1])
        self.layer4 = self._make_layer(block, 512, layers[3], 2, dilate[2])
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.constant_(module.weight, 1)
                nn.init.constant_(module.bias, 0)
        if zero_init_residual:
            for module in self.modules():
                last = (
                    module.bn3
                    if isinstance(module, Bottleneck)
                    else module.bn2
                    if isinstance(module, BasicBlock)
                    else None
                )
                if last is not None and last.weight is not None:
                    nn.init.constant_(last.weight, 0)

    def _make_layer(self, block, planes, blocks, stride=1, dilate=False):
        dilation_before = self.dilation
        if dilate:
            self.dilation *= stride
            stride = 1
        downsample = None
        if stride != 1 or self.inplanes != planes * block.expansion:
            downsample = nn.Sequential(
                conv1x1(self.inplanes, planes * block.expansion, stride), self._norm_layer(planes * block.expansion)
            )
        made = [
            block(
                self.inplanes,
                planes,
                stride,
                downsample,
                self.groups,
                self.base_width,
                dilation_before,
                self._norm_layer,
            )
        ]
        self.inplanes = planes * block.expansion
        for _ in range(1, blocks):
            made.append(
                block(
                    self.inplanes,
                    planes,
                    groups=self.groups,
                    base_width=self.base_width,
                    dilation=self.dilation,
                    norm_layer=self._norm_layer,
                )
            )
        return nn.Sequential(*made)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


def _builder(name, block, layers, text, **fixed):
    def builder(*, weights=None, progress=True, **kwargs):
        return build(name, lambda **options: ResNet(block, layers, **fixed, **options), weights, progress, **kwargs)

    builder.__name__ = builder.__qualname__ = name
    builder.__doc__ = (
        f"{text}. `weights`: None, or those that get_model_weights({name!r}) lists; the rest goes to ResNet."
    )
    return register_model()(builder)


resnet18 = _builder("resnet18", BasicBlock, [2, 2, 2, 2], "ResNet with 18 layers")
resnet34 = _builder("resnet34", BasicBlock, [3, 4, 6, 3], "ResNet with 34 layers")
resnet50 = _builder("resnet50", Bottleneck, [3, 4, 6, 3], "ResNet with 50 layers")
resnet101 = _builder("resnet101", Bottleneck, [3, 4, 23, 3], "ResNet with 101 layers")
resnet152 = _builder("resnet152", Bottleneck, [3, 8, 36, 3], "ResNet with 152 layers")
resnext50_32x4d = _builder(
    "resnext50_32x4d", Bottleneck, [3, 4, 6, 3], "ResNeXt: 50 layers, 32 groups of 4", groups=32, width_per_group=4
)
resnext101_32x8d = _builder(
    "resnext101_32x8d", Bottleneck, [3, 4, 23, 3], "ResNeXt: 101 layers, 32 groups of 8", groups=32, width_per_group=8
)
resnext101_64x4d = _builder(
    "resnext101_64x4d", Bottleneck, [3, 4, 23, 3], "ResNeXt: 101 layers, 64 groups of 4", groups=64, width_per_group=4
)
wide_resnet50_2 = _builder(
    "wide_resnet50_2", Bottleneck, [3, 4, 6, 3], "ResNet with 50 layers, twice as wide inside", width_per_group=128
)
wide_resnet101_2 = _builder(
    "wide_resnet101_2", Bottleneck, [3, 4, 23, 3], "ResNet with 101 layers, twice as wide inside", width_per_group=128
)
