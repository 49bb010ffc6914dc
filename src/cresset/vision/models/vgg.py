"""VGG: 3 by 3 convolutions and pooling, then three linear layers."""

from cresset import nn

from .registry import build, register_model

# channels of the convolutions; M halves the size
PLANS = {
    "vgg11": [64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"],
    "vgg13": [64, 64, "M", 128, 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"],
    "vgg16": [64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512, "M", 512, 512, 512, "M"],
    "vgg19": [64, 64, "M", 128, 128, "M", 256, 256, 256, 256, "M", 512, 512, 512, 512, "M", 512, 512, 512, 512, "M"],
}


def make_layers(cfg, batch_norm=False):
    """The convolutional part of a plan."""
    parts, width = [], 3
    for step in cfg:
        if step == "M":
            parts.append(nn.MaxPool2d(2, 2))
            continue
        parts.append(nn.Conv2d(width, step, 3, padding=1))
        if batch_norm:
            parts.append(nn.BatchNorm2d(step))
        parts.append(nn.ReLU(inplace=True))
        width = step
    return nn.Sequential(*parts)


class VGG(nn.Module):
    """`features`, pooled to 7 by 7, then three linear layers."""

    def __init__(self, features, num_classes=1000, init_weights=True, dropout=0.5):
        super().__init__()
        self.features = features
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096), nn.ReLU(True), nn.Dropout(dropout), nn.Linear(4096, 4096), nn.ReLU(True),
            nn.Dropout(dropout),
            nn.Linear(4096, num_classes),
        )  # fmt: skip
        if not init_weights:
            return
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
                if module.bias is not None:
                    nn.init.constant_(module.bias, 0)
            elif isinstance(module, nn.BatchNorm2d):
                nn.init.constant_(module.weight, 1)
                nn.init.constant_(module.bias, 0)
            elif isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, 0, 0.01)
                nn.init.constant_(module.bias, 0)

    def forward(self, x):
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


def _builder(name):
    plan, batch_norm = PLANS[name.removesuffix("_bn")], name.endswith("_bn")

    def builder(*, weights=None, progress=True, **kwargs):
        return build(name, lambda **options: VGG(make_layers(plan, batch_norm), **options), weights, progress, **kwargs)

    builder.__name__ = builder.__qualname__ = name
    builder.__doc__ = (
        f"{name.upper()}. `weights`: None, or those that get_model_weights({name!r}) lists; the rest goes to VGG."
    )
    return register_model()(builder)


vgg11, vgg11_bn = _builder("vgg11"), _builder("vgg11_bn")
vgg13, vgg13_bn = _builder("vgg13"), _builder("vgg13_bn")
vgg16, vgg16_bn = _builder("vgg16"), _builder("vgg16_bn")
vgg19, vgg19_bn = _builder("vgg19"), _builder("vgg19_bn")
