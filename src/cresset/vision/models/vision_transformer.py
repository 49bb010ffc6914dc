"""The vision transformer: an image as a sequence of patches."""

import math
from collections import OrderedDict
from functools import partial

import cresset
from cresset import nn

from .layers import MLP
from .registry import build, register_model

_NORM = partial(nn.LayerNorm, eps=1e-6)


class MLPBlock(MLP):
    """Linear, GELU, linear."""

    def __init__(self, in_dim, mlp_dim, dropout):
        super().__init__(in_dim, [mlp_dim, in_dim], activation_layer=nn.GELU, inplace=None, dropout=dropout)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.normal_(module.bias, std=1e-6)


class EncoderBlock(nn.Module):
    """x + attention, then x + a perceptron of it, each behind a normalization."""

    def __init__(self, num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer=_NORM):
        super().__init__()
        self.num_heads = num_heads
        self.ln_1 = norm_layer(hidden_dim)
        self.self_attention = nn.MultiheadAttention(hidden_dim, num_heads, dropout=attention_dropout, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = norm_layer(hidden_dim)
        self.mlp = MLPBlock(hidden_dim, mlp_dim, dropout)

    def forward(self, input):
        x = self.ln_1(input)
        x, _ = self.self_attention(x, x, x, need_weights=False)
        x = self.dropout(x) + input
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    """Learned positions, then blocks, then a normalization."""

    def __init__(
        self,
        seq_length,
        num_layers,
        num_heads,
        hidden_dim,
        mlp_dim,
        dropout,
        attention_dropout,
        norm_layer=_NORM,
    ):
        super().__init__()
        self.pos_embedding = nn.Parameter(cresset.empty(1, seq_length, hidden_dim).normal_(std=0.02))
        self.dropout = nn.Dropout(dropout)
        blocks = (
            (f"encoder_layer_{i}", EncoderBlock(num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer))
            for i in range(num_layers)
        )
        self.layers = nn.Sequential(OrderedDict(blocks))
        self.ln = norm_layer(hidden_dim)

    def forward(self, input):
        return self.ln(self.layers(self.dropout(input + self.pos_embedding)))


class VisionTransformer(nn.Module):
    """A transformer over the patches of an image, and one more token that becomes the answer.

    Args:
        image_size, patch_size: in pixels; the patches must fill the image.
        representation_size: of a hidden layer before the head, if any.
    """

    def __init__(
        self, image_size, patch_size, num_layers, num_heads, hidden_dim, mlp_dim, dropout=0.0, attention_dropout=0.0,
        num_classes=1000,
        representation_size=None, norm_layer=_NORM,
    ):  # fmt: skip
        super().__init__()
        if image_size % patch_size:
            raise AssertionError(f"VisionTransformer: patches of {patch_size} do not fill an image of {image_size}")
        self.image_size, self.patch_size, self.hidden_dim, self.mlp_dim = image_size, patch_size, hidden_dim, mlp_dim
        self.attention_dropout, self.dropout, self.num_classes = attention_dropout, dropout, num_classes
        self.representation_size, self.norm_layer = representation_size, norm_layer
        self.conv_proj = nn.Conv2d(3, hidden_dim, patch_size, patch_size)
        self.class_token = nn.Parameter(cresset.zeros(1, 1, hidden_dim))
        self.seq_length = (image_size // patch_size) ** 2 + 1
        self.encoder = Encoder(
            self.seq_length, num_layers, num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer
        )
        head = OrderedDict()
        if representation_size is None:
            head["head"] = nn.Linear(hidden_dim, num_classes)
        else:
            head["pre_logits"] = nn.Linear(hidden_dim, representation_size)
            head["act"] = nn.Tanh()
            head["head"] = nn.Linear(representation_size, num_classes)
        self.heads = nn.Sequential(head)
        fan_in = 3 * patch_size * patch_size
        nn.init.trunc_normal_(self.conv_proj.weight, std=math.sqrt(1 / fan_in))
        nn.init.zeros_(self.conv_proj.bias)
        if representation_size is not None:
            nn.init.trunc_normal_(self.heads.pre_logits.weight, std=math.sqrt(1 / hidden_dim))
            nn.init.zeros_(self.heads.pre_logits.bias)
        nn.init.zeros_(self.heads.head.weight)
        nn.init.zeros_(self.heads.head.bias)

    def _process_input(self, x):
        height, width = x.shape[-2:]
        for name, size in (("high", height), ("wide", width)):  # not `if`: a tracer writes these calls down
            cresset._assert(
                size == self.image_size, f"VisionTransformer: expected images {self.image_size} {name}, got {size}"
            )
        return self.conv_proj(x).flatten(2).transpose(1, 2)

    def forward(self, x):
        x = self._process_input(x)
        x = cresset.cat([self.class_token.expand(x.shape[0], -1, -1), x], dim=1)
        return self.heads(self.encoder(x)[:, 0])


def _builder(name, patch_size, num_layers, num_heads, hidden_dim, mlp_dim):
    def builder(*, weights=None, progress=True, **kwargs):
        kwargs.setdefault("image_size", 224)
        if weights is not None:
            kwargs["image_size"] = _side_of_pictures(name, weights)
        make = lambda **options: VisionTransformer(
            patch_size=patch_size,
            num_layers=num_layers,
            num_heads=num_heads,
            hidden_dim=hidden_dim,
            mlp_dim=mlp_dim,
            **options,
        )
        return build(name, make, weights, progress, **kwargs)

    builder.__name__ = builder.__qualname__ = name
    builder.__doc__ = (
        f"The vision transformer {name}, for images of 224 pixels unless image_size says otherwise. "
        f"`weights`: None, or those that get_model_weights({name!r}) lists."
    )
    return register_model()(builder)


def _side_of_pictures(name, weights):
    """The side of the pictures that published weights are for."""
    from .registry import WEIGHTS

    return WEIGHTS[name].verify(weights).value[1]


vit_b_16 = _builder("vit_b_16", 16, 12, 12, 768, 3072)
vit_b_32 = _builder("vit_b_32", 32, 12, 12, 768, 3072)
vit_l_16 = _builder("vit_l_16", 16, 24, 16, 1024, 4096)
vit_l_32 = _builder("vit_l_32", 32, 24, 16, 1024, 4096)
vit_h_14 = _builder("vit_h_14", 14, 32, 16, 1280, 5120)
