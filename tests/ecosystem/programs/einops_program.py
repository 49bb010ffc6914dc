"""einops: shapes by names, as functions and as layers, traced and scripted."""

import io

import einops
import torch
from einops.layers.torch import EinMix, Rearrange, Reduce

x = torch.arange(6).reshape(2, 3)
assert einops.rearrange(x, "a b -> b a").tolist() == x.t().tolist()
assert einops.reduce(x.float(), "a b -> a", "mean").tolist() == [1.0, 4.0]
assert einops.repeat(x, "a b -> a b r", r=2).shape == (2, 3, 2)
assert einops.einsum(x, x, "a b, c b -> a c").tolist() == [[5, 14], [14, 50]]
packed, shapes = einops.pack([torch.ones(2, 3), torch.zeros(2)], "b *")
assert packed.shape == (2, 4) and [part.shape for part in einops.unpack(packed, shapes, "b *")] == [(2, 3), (2,)]

torch.manual_seed(0)
layers = torch.nn.Sequential(
    Rearrange("b c (h h1) (w w1) -> b (h w) (c h1 w1)", h1=2, w1=2),
    EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=12, d=5),
    Reduce("b t d -> b d", "max"),
)
pictures = torch.randn(2, 3, 4, 4)
wanted = layers(pictures)
assert wanted.shape == (2, 5)
assert torch.equal(torch.jit.trace(layers, pictures)(pictures), wanted)
scripted = torch.jit.script(layers)
assert torch.equal(scripted(pictures), wanted)
file = io.BytesIO()
torch.jit.save(scripted, file)
file.seek(0)
assert torch.equal(torch.jit.load(file)(pictures), wanted)
wanted.sum().backward()
assert layers[1].weight.grad.abs().sum() > 0
