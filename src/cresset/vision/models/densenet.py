"""DenseNet: each layer sees the outputs of all layers before it."""

import re
from collections import OrderedDict

import cresset
from cresset import jit, nn
from cresset.nn import functional as F
from cresset.utils.checkpoint import checkpoint

from .registry import WEIGHTS, build, register_model


class _DenseLayer(nn.Module):
    def __init__(self, num_input_features, growth_rate, bn_size, drop_rate, memory_efficient=False):
        super().__init__()
        self.norm1 = nn.BatchNorm2d(num_input_features)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(num_input_features, bn_size * growth_rate, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(bn_size * growth_rate)
        self.relu2 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(bn_size * growth_rate, growth_rate, 3, padding=1, bias=False)
        self.drop_rate, self.memory_efficient = float(drop_rate), memory_efficient

    def _squeeze(self, inputs: list[cresset.Tensor]):
        return self.conv1(self.relu1(self.norm1(cresset.cat(inputs, 1))))

    @jit.unused
    def _squeeze_twice(self, inputs: list[cresset.Tensor]) -> cresset.Tensor:
        """Computed again in backward instead of kept. Compiled programs cannot: they leave that to Python."""
        return checkpoint(self._squeeze, list(inputs), use_reentrant=False)  # the list grows until backward

    def forward(self, inputs: list[cresset.Tensor]):
        if self.memory_efficient and any([x.requires_grad for x in inputs]):  # noqa: C419  (as a compiler reads it)
            squeezed = self._squeeze_twice(inputs)
        else:
            squeezed = self._squeeze(inputs)
        made = self.conv2(self.relu2(self.norm2(squeezed)))
        return F.dropout(made, self.drop_rate, self.training) if self.drop_rate > 0 else made


class _DenseBlock(nn.ModuleDict):
    def __init__(self, num_layers, num_input_features, bn_size, growth_rate, drop_rate, memory_efficient=False):
        super().__init__()
        for i in range(num_layers):
            self.add_module(
                f"denselayer{i + 1}",
                _DenseLayer(num_input_features + i * growth_rate, growth_rate, bn_size, drop_rate, memory_efficient),
            )

    def forward(self, init_features):
        features = [init_features]
        for layer in self.values():
            features.append(layer(features))
        return cresset.cat(features, 1)


class _Transition(nn.Sequential):
    def __init__(self, num_input_features, num_output_features):
        super().__init__()
        self.norm = nn.BatchNorm2d(num_input_features)
        self.relu = nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(num_input_features, num_output_features, 1, bias=False)
        self.pool = nn.AvgPool2d(2, 2)


class DenseNet(nn.Module):
    """Blocks of dense layers with transitions between them.

    Args:
        growth_rate: channels that each layer adds.
        block_config: the number of layers in each block.
        bn_size: how many times the growth rate a layer squeezes its input to.
        memory_efficient: compute the squeezed inputs again in backward instead of keeping them.
    """

    def __init__(
        self,
        growth_rate=32,
        block_config=(6, 12, 24, 16),
        num_init_features=64,
        bn_size=4,
        drop_rate=0,
        num_classes=1000,
        memory_efficient=False,
    ):
        super().__init__()
        self.features = nn.Sequential(
            OrderedDict(
                conv0=nn.Conv2d(3, num_init_features, 7, 2, 3, bias=False),
                norm0=nn.BatchNorm2d(num_init_features),
                relu0=nn.ReLU(inplace=True),
                pool0=nn.MaxPool2d(3, 2, 1),
            )
        )
        width = num_init_features
        for i, count in enumerate(block_config):
            self.features.add_module(
                f"denseblock{i + 1}", _DenseBlock(count, width, bn_size, growth_rate, drop_rate, memory_efficient)
            )
            width += count * growth_rate
            if i != len(block_config) - 1:
                self.features.add_module(f"transition{i + 1}", _Transition(width, width // 2))
                width //= 2
        self.features.add_module("norm5", nn.BatchNorm2d(width))
        self.classifier = nn.Linear(width, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)
            elif isinstance(module, nn.BatchNorm2d):
                nn.init.constant_(module.weight, 1)
                nn.init.constant_(module.bias, 0)
            elif isinstance(module, nn.Linear):
                nn.init.constant_(module.bias, 0)

    def forward(self, x):
        out = F.relu(self.features(x), inplace=True)
        return self.classifier(F.adaptive_avg_pool2d(out, (1, 1)).flatten(1))


# The published files are older than the names: norm.1, conv.2 and the like.
_OLD = re.compile(r"^(.*denselayer\d+\.(?:norm|relu|conv))\.((?:[12])\.(?:weight|bias|running_mean|running_var))$")


def _builder(name, growth_rate, block_config, num_init_features):
    def builder(*, weights=None, progress=True, **kwargs):
        make = lambda **options: DenseNet(growth_rate, block_config, num_init_features, **options)
        weights = WEIGHTS[name].verify(weights)
        if weights is None:
            return build(name, make, None, **kwargs)
        model = make(**kwargs)
        model.load_state_dict(
            {_OLD.sub(r"\1\2", key): value for key, value in weights.get_state_dict(progress).items()}
        )
        return model

    builder.__name__ = builder.__qualname__ = name
    builder.__doc__ = (
        f"DenseNet with blocks of {block_config} layers. `weights`: None, or those that "
        f"get_model_weights({name!r}) lists."
    )
    return register_model()(builder)


densenet121 = _builder("densenet121", 32, (6, 12, 24, 16), 64)
densenet161 = _builder("densenet161", 48, (6, 12, 36, 24), 96)
densenet169 = _builder("densenet169", 32, (6, 12, 32, 32), 64)
densenet201 = _builder("densenet201", 32, (6, 12, 48, 32), 64)
